//! A short torture of a cluster: a writer, two readers, a store that fails requests, and PostgreSQL.

use crate::support::programs::script;
use serde_json::Value;

#[test]
fn a_cluster_whose_parts_are_killed_and_frozen_loses_and_doubles_no_row() {
    let finished = script("cluster", &["torture", "--short", "--json"]);
    let report: Value =
        serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished:?}"));
    assert!(finished.is_success && report["ok"] == true, "{report:#}\n{}", finished.stderr);
    for name in ["lost rows", "doubled rows", "half rows", "wrong keys"] {
        assert_eq!(report[name], 0, "{name}: {report:#}");
    }
    for name in [
        "acknowledged rows",
        "takeovers",
        "loads refused by former writers",
        "kill writer",
        "kill reader",
        "crash postgres",
        "requests failed",
        "loads compared at readers",
        "queries divided at readers",
        "Delta tables compared",
    ] {
        assert!(report[name].as_u64() > Some(0), "{name}: {report:#}");
    }
}
