//! Each workaround for DataFusion is still needed: without it, the file of `tests/slt/workarounds` that has its name fails.
//!
//! A workaround whose file passes without it has become useless, most likely by a newer DataFusion: delete both.

use crate::common::Server;
use crate::common::slt::{Rows, failures};
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
        for begin in ["Upstream:", "Delete when"] {
            if workaround.says(begin).is_none_or(str::is_empty) {
                silent.push(format!("{}: no `{begin}`", workaround.name));
            }
        }
    }
    assert_eq!(silent, [""; 0]);
}

fn file(workaround: &str) -> PathBuf {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt/workarounds");
    files.join(workaround).with_extension("slt")
}

/// The failures of a workaround's file, with its rows in memory and in data files.
async fn failures_of(workaround: &str, server: impl Fn() -> Server) -> Vec<String> {
    let mut all = Vec::new();
    for place in [Rows::InMemory, Rows::InDataFiles] {
        all.extend(failures(&mut server(), &file(workaround), place).await);
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_file_of_a_workaround_fails_without_it_and_passes_with_it() {
    for Workaround { name, .. } in all() {
        let failed = failures_of(&name, Server::new).await;
        assert!(failed.is_empty(), "{name}:\n\n{}", failed.join("\n\n"));
        let failed = failures_of(&name, || Server::without_workaround(&name)).await;
        assert!(!failed.is_empty(), "{name} is not needed any more, or its case is elsewhere");
    }
}

#[test]
fn each_file_is_of_a_workaround() {
    let names: Vec<String> = all().into_iter().map(|workaround| workaround.name).collect();
    for entry in std::fs::read_dir(file("any").parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(names.iter().any(|known| known == name), "{} is of no workaround", path.display());
    }
}
