//! Each workaround for DataFusion is still needed: without it, a file of `tests/slt` that its header names fails.
//!
//! A workaround whose file passes without it has become useless, most likely by a newer DataFusion: delete it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;

use common::Server;
use common::slt::{Rows, failures};
use std::path::{Path, PathBuf};

/// A workaround's file.
struct Workaround {
    name: String,
    /// The lines of its header.
    header: Vec<String>,
}

impl Workaround {
    /// The rest of the first line of the header that begins so.
    fn says(&self, begin: &str) -> Option<&str> {
        self.header.iter().find_map(|line| line.strip_prefix(begin)).map(str::trim)
    }
}

/// All workarounds. Files that help others are no workarounds: their headers have no `Upstream:`.
fn all() -> Vec<Workaround> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/workarounds");
    let mut all = Vec::new();
    for kind in ["analyzer", "logical", "physical"] {
        for entry in std::fs::read_dir(root.join(kind)).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let header = text.lines().map_while(|line| line.strip_prefix("//!"));
            let header = header.map(|line| line.trim().to_owned()).collect();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            all.push(Workaround { name, header });
        }
    }
    all.retain(|workaround| !HELPERS.contains(&workaround.name.as_str()));
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

const HELPERS: [&str; 4] = ["guard", "node_rule", "only_where", "pass_through"];

#[test]
fn a_workaround_says_where_the_fault_is_known_and_when_it_can_be_deleted() {
    let mut silent = Vec::new();
    for workaround in all() {
        for begin in ["Upstream:", "Delete when", "slt:"] {
            if workaround.says(begin).is_none_or(str::is_empty) {
                silent.push(format!("{}: no `{begin}`", workaround.name));
            }
        }
    }
    assert_eq!(silent, [""; 0]);
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt").join(name)
}

/// Whether a file has a failure, with its rows in memory or in data files.
async fn fails(workaround: &str, name: &str) -> bool {
    for place in [Rows::InMemory, Rows::InDataFiles] {
        let mut server = Server::without_workaround(workaround);
        if !failures(&mut server, &file(name), place).await.is_empty() {
            return true;
        }
    }
    false
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs for minutes: cargo test -p tributary-query --test workarounds -- --ignored"]
async fn without_a_workaround_one_of_its_files_fails() {
    let mut useless = Vec::new();
    for workaround in all() {
        let files =
            workaround.says("slt:").unwrap_or_default().split(", ").map(|file| file.trim_matches('`'));
        for name in files.filter(|name| !name.is_empty()) {
            let is_needed = fails(&workaround.name, name).await;
            println!("{name} without {}: {}", workaround.name, if is_needed { "fails" } else { "passes" });
            if !is_needed {
                useless.push(format!("{} passes without {}", name, workaround.name));
            }
        }
    }
    assert_eq!(useless, [""; 0], "these workarounds are not needed any more, or their cases are elsewhere");
}

/// Lists the files that need each workaround, for its header: `cargo test … -- --ignored --nocapture`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs every file once for each workaround"]
async fn list_the_files_that_need_each_workaround() {
    let mut names: Vec<String> = std::fs::read_dir(file(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    for workaround in all() {
        let mut needed = Vec::new();
        for name in &names {
            let mut server = Server::without_workaround(&workaround.name);
            let failed = failures(&mut server, &file(name), Rows::InMemory).await;
            if let Some(first) = failed.first() {
                needed.push(format!(
                    "{name} ({}): {}",
                    failed.len(),
                    first.lines().next().unwrap_or_default()
                ));
            }
        }
        println!("{}\n  {}", workaround.name, needed.join("\n  "));
    }
}
