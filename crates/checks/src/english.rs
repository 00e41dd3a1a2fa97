//! Comments and documents avoid the phrases that CONTRIBUTING.md lists under "English".

use crate::{files, read, root};

/// Phrases that may not occur in comments and documents.
const PHRASES: &[&str] = &["so many", "anew", "those that", "whoever", "also if"];
/// Crates whose comments have not been revised yet. A crate leaves this list and does not come back.
const PENDING: &[&str] = &[];
/// Documents that have not been revised yet.
const PENDING_DOCUMENTS: &[&str] = &[];
/// The document that quotes the phrases.
const RULES: &str = "CONTRIBUTING.md";

/// A paragraph of prose with the number of its first line.
struct Prose {
    line: usize,
    text: String,
}

/// Runs of comment lines, each joined to one text without the comment markers.
fn comments(source: &str) -> Vec<Prose> {
    let mut found: Vec<Prose> = Vec::new();
    let mut open = "";
    for (index, line) in source.lines().enumerate() {
        let line = line.trim_start();
        let marker =
            ["///", "//!", "//"].into_iter().find(|marker| line.starts_with(marker)).unwrap_or_default();
        let text = line.trim_start_matches(marker).trim();
        match found.last_mut() {
            _ if marker.is_empty() => {}
            Some(last) if open == marker && !text.is_empty() => {
                last.text.push(' ');
                last.text.push_str(text);
            }
            _ => found.push(Prose { line: index + 1, text: format!("{marker} {text}") }),
        }
        open = if text.is_empty() { "" } else { marker };
    }
    found
}

/// The paragraphs of a Markdown document, without blocks of code.
fn paragraphs(markdown: &str) -> Vec<Prose> {
    let mut found: Vec<Prose> = Vec::new();
    let (mut open, mut fenced) = (false, false);
    for (index, line) in markdown.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        match found.last_mut() {
            _ if is_fence || fenced => {}
            _ if line.trim().is_empty() => {}
            Some(last) if open => {
                last.text.push(' ');
                last.text.push_str(line.trim());
            }
            _ => found.push(Prose { line: index + 1, text: line.trim().to_owned() }),
        }
        open = !line.trim().is_empty() && !is_fence && !fenced;
    }
    found
}

/// The first phrase in a text that CONTRIBUTING.md advises against.
fn phrase(prose: &str) -> Option<&'static str> {
    if prose.starts_with("/// What ") || prose.starts_with("//! What ") {
        return Some("What");
    }
    // Every second piece between backticks is code.
    let lower = prose.to_lowercase().split('`').step_by(2).collect::<Vec<_>>().join("`");
    let is_word = |character: Option<char>| {
        character.is_some_and(|character| character.is_alphanumeric() || character == '_')
    };
    PHRASES.iter().copied().find(|phrase| {
        lower.match_indices(phrase).any(|(at, found)| {
            !is_word(lower[..at].chars().next_back()) && !is_word(lower[at + found.len()..].chars().next())
        })
    })
}

fn faults(name: &str, prose: &[Prose]) -> Vec<String> {
    prose
        .iter()
        .filter_map(|Prose { line, text }| phrase(text).map(|found| format!("{name}:{line}: {found}")))
        .collect()
}

fn faults_of_crate(name: &str) -> Vec<String> {
    let sources = files(&format!("crates/{name}"), "rs");
    sources.iter().flat_map(|file| faults(file, &comments(&read(file)))).collect()
}

#[test]
fn comments_avoid_the_phrases_of_contributing() {
    let mut crates = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).expect("the directory is there") {
        crates.push(entry.expect("a readable entry").file_name().into_string().expect("a name in UTF-8"));
    }
    crates.sort();
    assert!(
        PENDING.iter().all(|pending| crates.iter().any(|name| name == pending)),
        "{PENDING:?} in {crates:?}"
    );
    let mut wrong = Vec::new();
    for name in &crates {
        let faults = faults_of_crate(name);
        match PENDING.contains(&name.as_str()) {
            true if faults.is_empty() => wrong.push(format!("{name} is revised: take it out of PENDING")),
            true => {}
            false => wrong.extend(faults),
        }
    }
    assert_eq!(wrong, [""; 0], "see \"English\" in {RULES}");
}

#[test]
fn documents_avoid_the_phrases_of_contributing() {
    let mut documents: Vec<String> = files("docs", "md");
    documents.extend(["README.md", "ARCHITECTURE.md", "CHANGELOG.md"].map(str::to_owned));
    let mut wrong = Vec::new();
    for document in &documents {
        let faults = faults(document, &paragraphs(&read(document)));
        match PENDING_DOCUMENTS.contains(&document.as_str()) {
            true if faults.is_empty() => {
                wrong.push(format!("{document} is revised: take it out of PENDING_DOCUMENTS"));
            }
            true => {}
            false => wrong.extend(faults),
        }
    }
    assert_eq!(wrong, [""; 0], "see \"English\" in {RULES}");
}

#[test]
fn a_phrase_is_found_in_comments_and_across_lines() {
    let source = "/// What it does.\nfn f() {\n    // There are so\n    // many of them.\n    g(\"anew\");\n}\n//! Whoever\n/// So manyfold\n";
    assert_eq!(faults("f.rs", &comments(source)), ["f.rs:1: What", "f.rs:3: so many", "f.rs:7: whoever"]);
    assert_eq!(
        faults(
            "d.md",
            &paragraphs("# A\n\nOne of those\nthat count, `anew`.\n\n```sh\nanew\n```\nWhat counts.\n")
        ),
        ["d.md:3: those that"]
    );
}
