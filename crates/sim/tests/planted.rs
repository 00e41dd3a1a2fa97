//! Planted bugs stay plantable: their patches apply to the sources as they are, and nothing else knows of them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::path::{Path, PathBuf};
use tributary_sim::libraries;
use tributary_sim::planted::{Bug, hunt, patch, workspace};

#[test]
fn every_patch_of_a_planted_bug_applies_together_with_all_others() {
    let root = workspace::root();
    let patches = workspace::patches(&root).unwrap_or_else(|problem| panic!("{problem}"));
    assert!(patches.iter().any(|patch| patch.name == workspace::SWITCH));
    let planted = patch::apply(&patches, &workspace::source(&root));
    let planted = planted.unwrap_or_else(|problems| panic!("{}", problems.join("\n")));
    assert!(planted.keys().all(|file| file.starts_with("crates")), "{planted:?}");
}

#[test]
fn each_planted_bug_has_a_name_of_its_own() {
    let mut names: Vec<String> = Bug::all().unwrap().into_iter().map(|bug| bug.name).collect();
    names.sort();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all, "{names:?}");
}

#[test]
fn a_disk_that_skips_syncs_is_found_out() {
    tributary_sim::quiet_panics();
    let bugs = Bug::all().unwrap();
    let hunt_both = || {
        let libraries = libraries();
        for name in ["wal-skips-sync", "store-skips-file-sync"] {
            let bug = bugs.iter().find(|bug| bug.name == name).expect("it is planted");
            let (seeds, _) = hunt(bug, 0, &libraries).expect("it is found");
            assert!(seeds <= 20, "{name}: {seeds} seeds");
        }
    };
    let hunted = std::thread::scope(|scope| tributary_sim::spawn(scope, hunt_both).join());
    hunted.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

#[test]
fn no_other_crate_knows_of_planted_bugs() {
    fn sources(dir: &Path, into: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            match path.file_name().unwrap().to_str().unwrap() {
                "target" | "sim" => {}
                _ if path.is_dir() => sources(&path, into),
                _ if path.extension().is_some_and(|extension| extension == "rs") => into.push(path),
                _ => {}
            }
        }
    }
    let mut files = Vec::new();
    sources(&workspace::root().join("crates"), &mut files);
    assert!(files.len() > 100);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(!text.contains("planted"), "{} has a planted bug", file.display());
    }
}
