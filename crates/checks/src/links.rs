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

fn documents() -> Vec<String> {
    let mut documents = Vec::new();
    for directory in ["", "docs", "docs/adr"] {
        for entry in std::fs::read_dir(root().join(directory)).expect("the directory is there") {
            let name = entry.expect("a readable entry").file_name().into_string().expect("a name in UTF-8");
            if Path::new(&name).extension().is_some_and(|ending| ending == "md") {
                documents.push(if directory.is_empty() { name } else { format!("{directory}/{name}") });
            }
        }
    }
    documents
}

#[test]
fn links_of_documents_lead_to_files() {
    let documents = documents();
    assert!(documents.iter().any(|document| document == "README.md"), "{documents:?}");
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
