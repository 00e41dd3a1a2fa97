//! No panic of background work is lost.

use crate::root;
use std::path::{Path, PathBuf};

/// Crates whose background work is watched.
const WATCHED: [&str; 2] = ["engine", "ingest"];
/// The files that give others a way to start tasks.
const STARTERS: [&str; 2] = ["watched.rs", "tasks.rs"];
/// The prefix of a comment that explains why a task need not be watched.
const REASON: &str = "// Unwatched: ";

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a directory of the workspace") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name in UTF-8").to_owned();
        match path.is_dir() {
            true if name != "tests" => sources(&path, found),
            false
                if path.extension().is_some_and(|extension| extension == "rs")
                    && !matches!(&*name, "tests.rs" | "testing.rs") =>
            {
                found.push(path);
            }
            _ => {}
        }
    }
}

/// Lines outside of tests that start an unwatched task without an explanation.
fn unwatched(source: &str) -> Vec<&str> {
    let code = source.split_once("#[cfg(test)]\nmod tests {").map_or(source, |(code, _)| code);
    let mut found = Vec::new();
    let mut before = "";
    for line in code.lines().map(str::trim) {
        let spawns =
            ["tokio::spawn(", "runtime.spawn(", "task::spawn("].iter().any(|call| line.contains(call));
        if spawns && !line.starts_with("//") && !before.starts_with(REASON) {
            found.push(line);
        }
        before = line;
    }
    found
}

#[test]
fn tasks_are_watched_or_say_why_not() {
    let mut files = Vec::new();
    for name in WATCHED {
        sources(&root().join("crates").join(name).join("src"), &mut files);
    }
    assert!(files.len() > 100, "{} files", files.len());
    let mut wrong = Vec::new();
    for path in files.iter().filter(|path| !STARTERS.iter().any(|starter| path.ends_with(starter))) {
        let source = std::fs::read_to_string(path).expect("a source in UTF-8");
        wrong.extend(unwatched(&source).into_iter().map(|line| format!("{}: {line}", path.display())));
    }
    assert!(
        wrong.is_empty(),
        "a panic here would end the work without a word: use `Watcher::spawn_watched` or `spawn_once`, or say in the line above \
         who sees it (`{REASON}…`):\n{}",
        wrong.join("\n")
    );
}

#[test]
fn a_task_without_a_reason_is_found() {
    let source = "fn f() {\n    tokio::spawn(g());\n    // Unwatched: awaited below.\n    let task = tokio::spawn(g());\n}\n\
                  #[cfg(test)]\nmod tests {\n    tokio::spawn(h());\n}\n";
    assert_eq!(unwatched(source), ["tokio::spawn(g());"]);
}
