//! Documentation of the code has no examples that would have to be compiled: starting rustdoc for each crate takes longer than
//! most tests. The crates say so to Cargo, and this module that it stays true. Examples are tests, or in `docs/`, where
//! `scripts/test-docs` runs them.

use crate::{files, metadata, read, text};
use serde_json::Value;

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

#[test]
fn documentation_has_no_code_that_nobody_compiles() {
    let in_file = |file: String| {
        let lines = examples(&read(&file)).into_iter();
        lines.map(|line| format!("{file}:{line}")).collect::<Vec<_>>()
    };
    let found: Vec<String> = files("crates", "rs").into_iter().flat_map(in_file).collect();
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
