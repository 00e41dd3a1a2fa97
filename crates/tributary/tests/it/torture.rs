//! A short `tributary torture`, and a proof that it would detect a loss.

use crate::support::server::program;
use serde_json::Value;
use std::path::Path;
use std::process::Output;
use std::time::Duration;
use tributary_torture::{Options, run};

fn torture(arguments: &[&str]) -> Output {
    program().arg("torture").arg("--json").args(arguments).output().expect("the program runs")
}

fn report(output: &Output) -> Value {
    let (text, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}\n{log}"))
}

fn assert_good(output: &Output) -> Value {
    let report = report(output);
    assert_eq!(report["ok"], true, "{report:#}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
    for name in [
        "lost_rows",
        "doubled_rows",
        "half_rows",
        "changed_rows",
        "strange_rows",
        "wrong_winners",
        "wrong_partitions",
    ] {
        assert_eq!(report["figures"][name], 0, "{name}");
    }
    assert!(report["figures"]["acknowledged"]["async"]["rows"].as_u64() > Some(0), "{report:#}");
    for name in ["upserted_rows", "partition_steps", "partitioned_rows", "light_changes"] {
        assert!(report["figures"][name].as_u64() > Some(0), "{name}: {report:#}");
    }
    report
}

#[test]
fn a_server_that_is_killed_again_and_again_keeps_every_acknowledged_row_once() {
    let report = assert_good(&torture(&["--duration", "12s", "--seed", "1"]));
    assert!(report["figures"]["kills_while_running"].as_u64() > Some(0), "{report:#}");
}

#[test]
fn users_and_their_rights_outlive_kills() {
    let output = torture(&["--secure", "--duration", "12s", "--seed", "1", "--writers", "6"]);
    if output.status.code() == Some(2) {
        eprintln!("SKIPPED: {}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let report = report(&output);
    assert_eq!(report["ok"], true, "{report:#}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(report["figures"]["kills_while_running"].as_u64() > Some(0), "{report:#}");
    assert!(report["figures"]["acknowledged"]["async"]["rows"].as_u64() > Some(0), "{report:#}");
    for name in ["loads_denied", "logins_checked"] {
        assert!(report["figures"]["rights"][name].as_u64() > Some(0), "{name}: {report:#}");
    }
}

#[test]
fn loads_with_keys_that_are_cut_off_and_sent_again_are_stored_once() {
    let output = torture(&["--keyed", "--duration", "12s", "--seed", "1", "--kills", "4"]);
    let report = report(&output);
    assert_eq!(report["ok"], true, "{report:#}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
    let figures = &report["figures"];
    assert!(figures["kills_while_running"].as_u64() >= Some(4), "{report:#}");
    let keyed = &figures["keyed"];
    for name in [
        "lost_loads",
        "doubled_loads",
        "half_loads",
        "changed_loads",
        "stale_reads",
        "differing_answers",
        "wrong_channels",
    ] {
        assert_eq!(keyed[name], 0, "{name}");
    }
    for name in ["loads", "channel_loads", "answered_repeated", "pairs", "states_asked", "loads_sampled"] {
        assert!(keyed[name].as_u64() > Some(0), "{name}: {report:#}");
    }
    for mode in ["async", "sync", "off"] {
        assert!(figures["acknowledged"][mode]["rows"].as_u64() > Some(0), "{mode}: {report:#}");
    }
    assert!(keyed["repeats"]["killed"].as_u64() > Some(0), "{report:#}");
    assert_eq!(keyed["loads_compared"].as_u64(), keyed["loads"].as_u64().map(|loads| 2 * loads));
}

#[test]
fn a_run_with_keys_ends_after_the_loads_that_were_asked_for() {
    let report = report(&torture(&["--keyed", "--loads", "300", "--kills", "1", "--seed", "2"]));
    assert_eq!(
        (&report["ok"], &report["figures"]["keyed"]["loads"]),
        (&true.into(), &300.into()),
        "{report:#}"
    );
}

#[test]
fn a_server_with_more_memory_than_its_limits_is_reported() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().to_str().expect("a path in UTF-8");
    let arguments = ["--duration", "30s", "--writers", "2", "--memory-max", "1", "--storage-root-path", path];
    let output = torture(&arguments);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(report.contains("MiB of memory and may have 1"), "{report}");
}

#[test]
fn a_disk_that_fills_up_and_is_freed_loses_nothing() {
    let output = torture(&["--duration", "12s", "--seed", "1", "--full-disk"]);
    if output.status.code() == Some(2) {
        eprintln!("SKIPPED: {}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let report = assert_good(&output);
    assert!(report["figures"]["disks_filled"].as_u64() > Some(0), "{report:#}");
    assert!(report["figures"]["refused_loads"].as_u64() > Some(0), "{report:#}");
}

/// The newest segment of each log ends where it began.
fn empty_the_newest_segments(data: &Path) {
    for log in ["wal", "wal-a", "wal-b"] {
        let Ok(files) = std::fs::read_dir(data.join(log)) else { continue };
        let newest = files
            .map(|file| file.expect("a file").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
            .max();
        if let Some(newest) = newest {
            let bytes = std::fs::read(&newest).expect("a segment");
            let mut emptied = bytes[..4096].to_vec();
            emptied.resize(bytes.len(), 0);
            std::fs::write(&newest, emptied).expect("the segment is written");
        }
    }
}

/// The options of a run in which rows vanish from the log, where they stay for a minute.
fn sabotaged(directory: &Path, keyed: bool) -> Options {
    Options {
        program: env!("CARGO_BIN_EXE_tributary").into(),
        directory: directory.to_owned(),
        duration: Duration::from_secs(60),
        seed: 1,
        writers: 6,
        full_disk: false,
        secure: false,
        keyed,
        loads: None,
        kills: None,
        looked_for_one_in: 50,
        memory_max_bytes: u64::MAX,
        settings: vec![("flush_age_ms".to_owned(), "60000".to_owned())],
        sabotage: Some(empty_the_newest_segments),
    }
}

#[test]
fn acknowledged_rows_that_vanish_from_the_log_are_found_missing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let report = run(&sabotaged(directory.path(), false), &|_| {}).expect("torture runs");
    assert!(!report.is_good());
    assert!(report.figures.lost_rows > 0, "{report}");
    assert!(report.figures.wrong_winners > 0, "{report}");
}

#[test]
fn loads_with_keys_that_vanish_from_the_log_are_found_missing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let report = run(&sabotaged(directory.path(), true), &|_| {}).expect("torture runs");
    assert!(!report.is_good());
    let keyed = report.figures.keyed.as_ref().expect("the figures of keys");
    assert!(keyed.lost_loads > 0, "{report}");
}
