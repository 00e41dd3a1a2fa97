//! The arrows between the folders of a crate match ARCHITECTURE.md.
//!
//! A crate with a table `### Folders of …` there is held to it: each module at its root is in the table and uses what the table
//! gives it, no arrow is drawn that no file needs, the arrows make no circle, and the header of each folder says what may not
//! be in it. Paths are read from the sources: `crate::a::b`, `crate::{a, b::c}`, and `super::super::a` where it leads to the root.
//! A name that is re-exported by `lib.rs` counts as its module. Comments, texts and `mod tests` are left out.

use crate::arrows::{Arrows, circle, missing, told};
use crate::{read, root};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const HEADING: &str = "### Folders of `";
/// Begins the part of a header that excludes something from its folder.
const EXCLUDED: &str = "Not here:";

/// The crates that have a table of folders, with its heading.
fn crates() -> Vec<(String, String)> {
    let architecture = read("ARCHITECTURE.md");
    let headings = architecture.lines().filter(|line| line.starts_with(HEADING));
    headings
        .map(|heading| {
            let name = heading.split('`').nth(1).unwrap_or_else(|| panic!("`{heading}` names no crate"));
            (name.to_owned(), heading.to_owned())
        })
        .collect()
}

/// The sources of a crate by their paths from `src`, without files of tests.
fn sources(name: &str) -> BTreeMap<String, String> {
    fn collect(directory: &Path, above: &str, into: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(directory).unwrap_or_else(|error| panic!("{directory:?}: {error}")) {
            let entry = entry.expect("a readable entry");
            let file = entry.file_name().into_string().expect("a name in UTF-8");
            let path = format!("{above}{file}");
            if entry.path().is_dir() {
                collect(&entry.path(), &format!("{path}/"), into);
            } else if entry.path().extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(entry.path()).expect("a source is UTF-8");
                into.insert(path, text);
            }
        }
    }
    let mut all = BTreeMap::new();
    collect(&root().join("crates").join(name).join("src"), "", &mut all);
    all.retain(|path, _| !is_of_tests(path));
    all
}

fn is_of_tests(path: &str) -> bool {
    path.split('/').any(|part| matches!(part.trim_end_matches(".rs"), "tests" | "testing"))
}

/// The module at the crate's root that a file belongs to.
fn module(path: &str) -> &str {
    path.split('/').next().unwrap_or(path).trim_end_matches(".rs")
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The code of a source: comments, texts and what follows `mod tests {` are blank.
fn code(source: &str) -> String {
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut bytes = source.as_bytes().to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => end_of(&bytes, at, |rest| rest[0] == b'\n'),
            b'/' if bytes.get(at + 1) == Some(&b'*') => end_of(&bytes, at, |rest| rest.starts_with(b"*/")),
            b'"' => end_of_text(&bytes, at),
            // A character, not a lifetime.
            b'\'' if bytes.get(at + 2) == Some(&b'\'') => at + 3,
            b'\'' if bytes.get(at + 1) == Some(&b'\\') => end_of(&bytes, at + 3, |rest| rest[0] == b'\'') + 1,
            _ => {
                at += 1;
                continue;
            }
        };
        let end = end.min(bytes.len());
        bytes[at..end].fill(b' ');
        at = end;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn end_of(bytes: &[u8], from: usize, is_end: impl Fn(&[u8]) -> bool) -> usize {
    (from..bytes.len()).find(|&at| is_end(&bytes[at..])).unwrap_or(bytes.len())
}

/// The place behind the text that begins at `from`, which may be a raw one.
fn end_of_text(bytes: &[u8], from: usize) -> usize {
    let before = &bytes[..from];
    let hashes = before.iter().rev().take_while(|byte| **byte == b'#').count();
    let is_raw = before.len() > hashes && before[before.len() - hashes - 1] == b'r';
    if is_raw {
        let end = [b"\"".as_slice(), "#".repeat(hashes).as_bytes()].concat();
        return end_of(bytes, from + 1, |rest| rest.starts_with(&end)) + end.len();
    }
    let mut at = from + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

/// The first names of a path, which may be a group: `a::b` has `a`, `{a, b::{c, d}}` has `a` and `b`.
fn heads(path: &str) -> Vec<&str> {
    let Some(group) = path.strip_prefix('{') else {
        let end = path.bytes().position(|byte| !is_word(byte)).unwrap_or(path.len());
        return vec![&path[..end]];
    };
    let mut depth = 1_usize;
    let mut heads = Vec::new();
    let mut is_head = true;
    let mut at = 0;
    while at < group.len() && depth > 0 {
        match group.as_bytes()[at] {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 1 => is_head = true,
            byte if is_head && is_word(byte) => {
                let head =
                    group[at..].split(|letter: char| !letter.is_alphanumeric() && letter != '_').next();
                heads.extend(head);
                is_head = false;
            }
            _ => {}
        }
        at += 1;
    }
    heads
}

/// The names at the crate's root that a file uses.
fn names<'a>(path: &str, code: &'a str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let starts_word = |at: usize| at == 0 || !is_word(code.as_bytes()[at - 1]) && !code[..at].ends_with("::");
    for (at, _) in code.match_indices("crate::").filter(|(at, _)| starts_word(*at)) {
        found.extend(heads(&code[at + "crate::".len()..]));
    }
    // The depth of the file's module: as many `super` lead to the root.
    let depth = path.matches('/').count() + 1;
    for (at, _) in code.match_indices("super::").filter(|(at, _)| starts_word(*at)) {
        let mut rest = &code[at..];
        let mut supers = 0;
        while let Some(behind) = rest.strip_prefix("super::") {
            (rest, supers) = (behind, supers + 1);
        }
        if supers >= depth {
            found.extend(heads(rest));
        }
    }
    found
}

/// The modules behind the names that `lib.rs` re-exports: `pub use a::b::{C, D as E}` gives `a` for `C` and `E`.
fn exports(lib: &str) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    for statement in lib.split("pub use ").skip(1) {
        let statement = statement.split(';').next().unwrap_or_default();
        let from = heads(statement)[0].to_owned();
        let names = match statement.split_once('{') {
            Some((_, group)) => group.trim_end_matches('}'),
            None => statement.rsplit("::").next().unwrap_or(statement),
        };
        for name in names.split(',') {
            let name = name.rsplit(" as ").next().unwrap_or(name);
            exports.insert(name.rsplit("::").next().unwrap_or(name).trim().to_owned(), from.clone());
        }
    }
    exports
}

/// Lists the modules that each module at the root uses, and the names that are no module.
fn found(sources: &BTreeMap<String, String>) -> (Arrows, Vec<String>) {
    let modules: BTreeSet<&str> =
        sources.keys().map(|path| module(path)).filter(|name| !matches!(*name, "lib" | "main")).collect();
    let exports = exports(&code(sources.get("lib.rs").map_or("", String::as_str)));
    let mut arrows: Arrows = modules.iter().map(|name| ((*name).to_owned(), BTreeSet::new())).collect();
    let mut unknown = Vec::new();
    for (path, source) in sources.iter().filter(|(path, _)| modules.contains(module(path))) {
        let code = code(source);
        for name in names(path, &code) {
            let to = if modules.contains(name) { Some(name) } else { exports.get(name).map(String::as_str) };
            match to {
                Some(to) if to == module(path) => {}
                Some(to) => {
                    arrows.entry(module(path).to_owned()).or_default().insert(to.to_owned());
                }
                None => unknown.push(format!("{path}: crate::{name}")),
            }
        }
    }
    (arrows, unknown)
}

#[test]
fn every_module_at_a_root_is_in_its_table_of_folders() {
    for (name, heading) in crates() {
        let (found, unknown) = found(&sources(&name));
        assert_eq!(unknown, [""; 0], "{name}: these paths name no module at the root");
        let names = |arrows: &Arrows| arrows.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&found), names(&told(&heading)), "modules at the root of {name}, and `{heading}`");
    }
}

#[test]
fn no_folder_has_an_arrow_that_the_architecture_does_not_draw() {
    for (name, heading) in crates() {
        let (found, told) = (found(&sources(&name)).0, told(&heading));
        assert_eq!(missing(&found, &told), [""; 0], "these arrows are not under `{heading}`");
        assert_eq!(missing(&told, &found), [""; 0], "`{heading}` draws arrows that no file needs");
    }
}

#[test]
fn arrows_between_folders_lead_one_way() {
    for (name, _) in crates() {
        assert_eq!(circle(&found(&sources(&name)).0), [""; 0], "a circle among folders of {name}");
    }
}

#[test]
fn the_header_of_a_folder_says_what_may_not_be_in_it() {
    for (name, _) in crates() {
        let sources = sources(&name);
        let folders: BTreeSet<&str> =
            sources.keys().filter(|path| path.contains('/')).map(|path| module(path)).collect();
        let is_silent = |folder: &&str| {
            let text = sources.get(&format!("{folder}.rs")).map_or("", String::as_str);
            !text.lines().take_while(|line| line.starts_with("//!")).any(|line| line.contains(EXCLUDED))
        };
        let silent: Vec<_> = folders.into_iter().filter(is_silent).collect();
        assert_eq!(silent, [""; 0], "{name}: the headers of these folders have no `{EXCLUDED}`");
    }
}

#[test]
fn paths_are_found_in_code_only() {
    let source = "//! crate::comment\nuse crate::a::b;\nuse crate::{c, d::{e, f},\n g as h};\nfn i() { \
                  crate::j::k(\"crate::text\", r#\"crate::\"raw\"#, '\"', 'x'); super::super::l(); super::m(); \
                  other::crate::n }\n#[cfg(test)]\nmod tests { use crate::o; }";
    let code = code(source);
    assert_eq!(names("x/y.rs", &code).into_iter().collect::<Vec<_>>(), ["a", "c", "d", "g", "j", "l"]);
}

#[test]
fn a_name_of_the_library_is_its_module() {
    let lib = "mod a;\npub use a::b::{C, D as E};\npub use f::G;\npub use h::i::J as K;";
    let exports = exports(lib);
    let of = |name: &str| exports.get(name).map(String::as_str);
    assert_eq!(["C", "E", "G", "K", "D"].map(of), [Some("a"), Some("a"), Some("f"), Some("h"), None]);
    let sources = [("lib.rs", lib), ("a.rs", "use crate::G;"), ("f/x.rs", "use crate::Z;")];
    let sources = sources.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
    let (arrows, unknown) = found(&sources);
    assert_eq!(arrows["a"], ["f".to_owned()].into());
    assert_eq!(unknown, ["f/x.rs: crate::Z"]);
}
