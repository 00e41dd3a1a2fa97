//! Replays the stored inputs: the corpora, and earlier findings.

use std::fs;
use std::path::{Path, PathBuf};
use tributary_fuzz_targets::{TARGETS, Target};

fn kept(kind: &str, target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(kind).join(target.name)
}

fn inputs(dir: &Path) -> Vec<PathBuf> {
    let Ok(files) = fs::read_dir(dir) else { return Vec::new() };
    let mut paths: Vec<_> = files.map(|file| file.expect("a readable directory").path()).collect();
    paths.sort();
    paths
}

/// Runs one input on a stack as the server's threads have it.
fn replay(target: &Target, path: &Path) {
    let data = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let run = target.run;
    let thread = std::thread::Builder::new().stack_size(tributary_sql::STACK_BYTES);
    let outcome = thread.spawn(move || run(&data)).expect("a thread").join();
    assert!(outcome.is_ok(), "{} fails on {}", target.name, path.display());
}

#[test]
fn every_input_of_the_corpora_passes() {
    for target in &TARGETS {
        let paths = inputs(&kept("corpus", target));
        assert!(!paths.is_empty(), "{} is missing or empty", kept("corpus", target).display());
        paths.iter().for_each(|path| replay(target, path));
    }
}

#[test]
fn nothing_that_a_fuzzer_found_fails_again() {
    let mut count = 0;
    for target in &TARGETS {
        let paths = inputs(&kept("regressions", target));
        count += paths.len();
        paths.iter().for_each(|path| replay(target, path));
    }
    assert!(count > 0, "fuzz/regressions is missing or empty");
}

#[test]
fn every_directory_of_inputs_belongs_to_a_target() {
    for kind in ["corpus", "regressions"] {
        for path in inputs(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(kind)) {
            let is_known = TARGETS.iter().any(|target| path.file_name() == Some(target.name.as_ref()));
            assert!(is_known, "{} belongs to no target", path.display());
        }
    }
}
