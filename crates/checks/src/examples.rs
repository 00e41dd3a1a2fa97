//! Documentation of the code has no examples that would have to be compiled: starting rustdoc for each crate takes longer than
//! most tests. The crates say so to Cargo, and this module that it stays true. Examples are tests, or in `docs/`, where
//! `scripts/test-docs` runs them.

use crate::{metadata, root, text};
use serde_json::Value;
use std::path::Path;

/// The numbers of the lines of a source that begin a block of code other than text in a comment of documentation.
fn examples(source: &str) -> Vec<usize> {
    let (mut found, mut is_open) = (Vec::new(), false);
    for (index, line) in source.lines().enumerate() {
        let line = line.trim_start();
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let Some(fence) = comment.and_then(|comment| comment.trim().strip_prefix("```")) else { continue };
        if !is_open && fence != "text" {
            found.push(index + 1);
        }
        is_open = !is_open;
    }
    found
}

fn examples_below(directory: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            examples_below(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let source = std::fs::read_to_string(&path).expect("a source is UTF-8");
            found.extend(examples(&source).iter().map(|line| format!("{}:{line}", path.display())));
        }
    }
}

#[test]
fn documentation_has_no_code_that_nobody_compiles() {
    let mut found = Vec::new();
    examples_below(&root().join("crates"), &mut found);
    assert!(found.is_empty(), "nobody compiles this code; write a test, or ```text:\n{}", found.join("\n"));
}

#[test]
fn no_crate_starts_rustdoc_in_vain() {
    let metadata = metadata(&["--no-deps"]);
    let packages = metadata["packages"].as_array().expect("packages").iter();
    let starts = |package: &&Value| {
        let mut targets = package["targets"].as_array().expect("targets").iter();
        targets.any(|target| target["doctest"].as_bool().expect("a flag"))
    };
    let found: Vec<&str> = packages.filter(starts).map(|package| text(package, "name")).collect();
    assert!(found.is_empty(), "write `doctest = false` under [lib] of {found:?}");
}

#[test]
fn code_is_told_from_text() {
    assert_eq!(
        examples("/// ```text\n/// a\n/// ```\n//! ```\n//! f();\n//! ```\n// ```\n    /// ```rust\n"),
        [4, 8]
    );
}
