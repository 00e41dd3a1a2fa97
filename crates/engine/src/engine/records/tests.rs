use super::*;
use crate::background::Record;
use serde::de::DeserializeOwned;
use tributary_types::SourceId;

fn record(definition: &str) -> JobRecord {
    JobRecord { id: SourceId(7), definition: definition.trim().to_owned() }
}

fn body<T: DeserializeOwned>(golden: &str) -> T {
    Envelope::read(&record(golden)).unwrap().body_of(SourceId(7)).unwrap()
}

/// The record is read as it was written, and as an older server wrote it.
fn golden<R: Record>(golden: &str, old: &str) {
    check(&[record(golden), record(old)]).unwrap();
    assert_eq!(body::<R>(golden).written(), golden.trim());
    assert_eq!(body::<R>(old).written(), golden.trim());
}

#[test]
fn records_of_all_kinds_are_written_and_read_as_the_golden_files_say() {
    golden::<broker_load::Record>(
        include_str!("golden/broker_load-1.json"),
        include_str!("golden/broker_load-0.json"),
    );
    golden::<export::Record>(include_str!("golden/export-1.json"), include_str!("golden/export-0.json"));
    golden::<schema_change::Record>(
        include_str!("golden/schema_change-1.json"),
        include_str!("golden/schema_change-0.json"),
    );
    let of_load = include_str!("golden/routine_load-1.json");
    assert_eq!(body::<Definition>(of_load).written(), of_load.trim());
    let of_job = include_str!("golden/scheduled_insert-1.json");
    check(&[record(of_job)]).unwrap();
    assert_eq!(body::<scheduled::Record>(of_job).written(), of_job.trim());
    let of_change = record(include_str!("golden/change_partitions-1.json"));
    let envelope = Envelope::read(&of_change).unwrap();
    let change = Change::read(SourceId(7), &envelope.kind, envelope.body).unwrap();
    let written = tributary_ddl::written(change.table, change.partitions().unwrap());
    assert_eq!(Envelope::written(tributary_ddl::KIND, Change::FORMAT, written), of_change.definition);
    let old = [
        include_str!("golden/replace_partitions-0.json"),
        include_str!("golden/recycle_partitions-0.json"),
        include_str!("../../jobs/routine_load/golden/definition-1.json"),
    ];
    check(&[record(of_load), of_change, record(old[0]), record(old[1]), record(old[2])]).unwrap();
}

#[test]
fn a_record_that_this_program_does_not_know_is_refused_by_its_name() {
    let reason = |text: &str| check(&[record(text)]).unwrap_err();
    for kind in [
        "broker_load",
        "export",
        "schema_change",
        "routine_load",
        "scheduled_insert",
        "change_partitions",
        "replace_partitions",
    ] {
        let newer = reason(&format!("{{\"kind\":\"{kind}\",\"format\":9,\"body\":{{}}}}"));
        assert!(newer.kind == kind && newer.reason.contains("format 9"), "{newer}");
        let empty = reason(&format!("{{\"kind\":\"{kind}\",\"format\":1,\"body\":{{}}}}"));
        assert!(empty.kind == kind && empty.to_string().contains("job 7"), "{empty}");
    }
    let of_load = include_str!("../../jobs/routine_load/golden/definition-1.json");
    let newer = reason(&of_load.replace("\"format\":1", "\"format\":4"));
    assert!(newer.kind == "routine_load" && newer.reason.contains("format 4"), "{newer}");
    let unknown = reason("{\"kind\":\"from_the_future\",\"format\":1,\"body\":{}}");
    assert!(unknown.to_string().contains("'from_the_future'"), "{unknown}");
    assert_eq!(reason("no record").kind, "?");
}
