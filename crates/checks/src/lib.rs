//! Tests of the workspace itself, and nothing else: the code has no user.
//!
//! | module | what it holds the workspace to |
//! | --- | --- |
//! | `arrows` | crates use only the crates and libraries that ARCHITECTURE.md gives them |
//! | `folders` | folders of a crate use only the folders that ARCHITECTURE.md gives them |
//! | `packages` | licences and duplicate versions are allowed by `deny.toml` |
//! | `links` | links between the documents lead to files that exist |
//! | `english` | comments and documents avoid the phrases that CONTRIBUTING.md advises against |
//! | `spawns` | panics of background work are noticed |
//! | `examples` | documentation of the code has none that would have to be compiled |
//!
//! The tables and lists in those documents are the rules; a test fails as well when an entry there is no
//! longer needed, so that they stay true. The tests need no network.

#![cfg(test)]

mod arrows;
mod english;
mod examples;
mod folders;
mod links;
mod packages;
mod spawns;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The workspace's directory.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("crates/checks is two below it")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The files below a directory, relative to the workspace, whose names end with `.ending`.
fn files(directory: &str, ending: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join(directory)).expect("the directory is there") {
        let entry = entry.expect("a readable entry");
        let name = format!("{directory}/{}", entry.file_name().to_str().expect("a name in UTF-8"));
        if entry.file_type().expect("a type").is_dir() {
            found.extend(files(&name, ending));
        } else if Path::new(&name).extension().is_some_and(|found| found == ending) {
            found.push(name);
        }
    }
    found.sort();
    found
}

/// Runs `cargo metadata` on the workspace.
fn metadata(arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--offline", "--locked"])
        .args(arguments)
        .current_dir(root())
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo prints JSON")
}

/// A field that Cargo always fills.
fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("{field} is a text in {value}"))
}

/// The rows of the first table under a heading of a Markdown text, without its head; one text a cell.
fn table<'a>(markdown: &'a str, heading: &str) -> Vec<Vec<&'a str>> {
    let (_, section) = markdown
        .split_once(&format!("\n{heading}\n"))
        .unwrap_or_else(|| panic!("there is no heading `{heading}`"));
    let rows =
        section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    rows.skip(2).map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// The words of a cell that are written as code.
fn words(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[test]
fn a_table_is_rows_of_cells() {
    let text = "# A\n\n## B\n\nwords\n\n| h | i |\n| - | - |\n| `a` | `b`, `c` |\n| `d` | – |\n\n| x | y |\n";
    let rows = table(text, "## B");
    assert_eq!(rows, [["`a`", "`b`, `c`"], ["`d`", "–"]]);
    assert_eq!(words(rows[0][1]).collect::<Vec<_>>(), ["b", "c"]);
}
