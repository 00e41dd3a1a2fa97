//! Another engine that changes tables while loads go on.

use crate::support::programs::script;
use serde_json::Value;

#[test]
fn what_another_engine_changes_while_loads_go_on_is_kept_and_nothing_else_changes() {
    let finished = script("foreign-engines", &["--seconds", "12", "--json"]);
    let report: Value =
        serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished:?}"));
    assert!(
        finished.is_success && report["problems"] == serde_json::json!([]),
        "{report:#}\n{}",
        finished.stderr
    );
    for table in ["rows", "keyed", "copied", "summed"] {
        for change in ["OPTIMIZE", "DELETE", "MERGE", "VACUUM"] {
            let done = &report["counts"][format!("{table}: {change}")];
            assert!(done.as_u64() > Some(0), "{change} of {table}: {report:#}");
        }
    }
}
