//! Links between documents lead somewhere.

use crate::{read, root};
use std::path::Path;

/// The targets of a Markdown text's links to files, without the part after `#`.
fn targets(markdown: &str) -> impl Iterator<Item = &str> {
    markdown
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.split('#').next().unwrap_or_default())
        .filter(|target| !target.is_empty() && !target.contains("://"))
}

/// The Markdown files of the workspace's directory, and of `docs` with its folders.
fn documents() -> Vec<String> {
    let mut documents = Vec::new();
    let mut directories = vec![String::new(), "docs".to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(root().join(&directory)).expect("the directory is there") {
            let entry = entry.expect("a readable entry");
            let name = entry.file_name().into_string().expect("a name in UTF-8");
            let path = if directory.is_empty() { name } else { format!("{directory}/{name}") };
            if entry.file_type().expect("a type").is_dir() {
                if !directory.is_empty() {
                    directories.push(path);
                }
            } else if Path::new(&path).extension().is_some_and(|ending| ending == "md") {
                documents.push(path);
            }
        }
    }
    documents
}

#[test]
fn links_of_documents_lead_to_files() {
    let documents = documents();
    for known in ["README.md", "docs/sql.md", "docs/adr/README.md"] {
        assert!(documents.iter().any(|document| document == known), "{documents:?}");
    }
    let mut broken = Vec::new();
    for document in &documents {
        let directory = root().join(document);
        let directory = directory.parent().expect("a file is in a directory");
        let text = read(document);
        broken.extend(
            targets(&text)
                .filter(|target| !directory.join(target).exists())
                .map(|target| format!("{document}: {target}")),
        );
    }
    assert_eq!(broken, [""; 0], "links to files that do not exist");
}

#[test]
fn targets_are_files_beside_the_text() {
    let text = "[a](docs/a.md#part), [b](https://example.org/b) and [c](#c), [d](d.md)";
    assert_eq!(targets(text).collect::<Vec<_>>(), ["docs/a.md", "d.md"]);
}
