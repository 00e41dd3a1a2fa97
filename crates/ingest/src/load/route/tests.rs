use super::*;
use GroupCommitMode::{Async, Off, Sync};

const ROOM: u64 = 1000;

fn room() -> u64 {
    ROOM
}

/// For cases where the answer does not depend on it.
fn unasked() -> u64 {
    panic!("the space of the log is nothing to this load")
}

fn table(mode: GroupCommitMode) -> TableProperties {
    TableProperties { group_commit_mode: mode, ..TableProperties::default() }
}

fn load(requested: Option<GroupCommitMode>) -> LoadTraits {
    LoadTraits::plain(Source::StreamLoad, requested, Body::Known(10))
}

#[test]
fn the_clients_mode_is_stronger_than_the_tables() {
    let cases = [
        (None, Off, Route::Own(None)),
        (None, Sync, Route::GroupSync(None)),
        (None, Async, Route::GroupAsync),
        (Some(Off), Async, Route::Own(None)),
        (Some(Sync), Async, Route::GroupSync(None)),
        (Some(Async), Off, Route::GroupAsync),
        (Some(Async), Sync, Route::GroupAsync),
    ];
    for (requested, of_table, expected) in cases {
        assert_eq!(route(&load(requested), &table(of_table), room), expected, "{requested:?} on {of_table}");
    }
}

#[test]
fn each_condition_of_the_manual_makes_the_load_its_own_transaction() {
    let plain = load(Some(Async));
    let cases = [
        (LoadTraits { in_transaction: true, ..plain }, Fallback::Transaction),
        (LoadTraits { two_phase_commit: true, ..plain }, Fallback::TwoPhaseCommit),
        (LoadTraits { has_label: true, ..plain }, Fallback::Label),
        (LoadTraits { has_expression: true, ..plain }, Fallback::Expression),
        (LoadTraits { from_query: true, ..plain }, Fallback::Query),
        (LoadTraits { partial_update: true, ..plain }, Fallback::PartialUpdate),
        (LoadTraits { partitions: true, ..plain }, Fallback::Partitions),
        (LoadTraits { body: Body::Known(0), ..plain }, Fallback::EmptyBody),
    ];
    for (load, expected) in cases {
        assert_eq!(route(&load, &table(Off), unasked), Route::Own(Some(expected)));
        let off = LoadTraits { requested: Some(Off), ..load };
        assert_eq!(route(&off, &table(Async), unasked), Route::Own(None), "nothing to fall back from");
    }
    let heavy = TableProperties { light_schema_change: false, ..table(Off) };
    assert_eq!(route(&plain, &heavy, unasked), Route::Own(Some(Fallback::HeavySchema)));
}

#[test]
fn an_insert_of_no_known_bytes_is_no_empty_body() {
    let insert = LoadTraits::plain(Source::Insert, Some(Sync), Body::Known(0));
    assert_eq!(route(&insert, &table(Off), unasked), Route::GroupSync(None));
}

#[test]
fn an_async_load_is_answered_as_sync_when_the_log_may_not_hold_it() {
    let cases = [
        (Body::Known(799), ROOM, Route::GroupAsync),
        (Body::Known(800), ROOM, Route::GroupSync(Some(Switch::TooLarge))),
        (Body::Known(u64::MAX), ROOM, Route::GroupSync(Some(Switch::TooLarge))),
        (Body::Unknown, ROOM, Route::GroupSync(Some(Switch::UnknownSize))),
        (Body::Known(1), 0, Route::GroupSync(Some(Switch::DiskShort))),
        (Body::Unknown, 0, Route::GroupSync(Some(Switch::DiskShort))),
    ];
    for (body, available, expected) in cases {
        let load = LoadTraits { body, ..load(Some(Async)) };
        assert_eq!(route(&load, &table(Off), || available), expected, "{body:?} of {available}");
    }
    let sync = LoadTraits { body: Body::Unknown, ..load(Some(Sync)) };
    assert_eq!(route(&sync, &table(Off), unasked), Route::GroupSync(None), "sync needs no switch");
}

#[test]
fn an_async_load_whose_rows_went_to_data_files_is_answered_like_a_sync_one() {
    let switched = Route::GroupSync(Some(Switch::DataFiles));
    assert_eq!(Route::GroupAsync.with_data_files(true), switched);
    assert!(switched.remark().is_some_and(|remark| remark.contains("large_load_bytes")));
    for route in [Route::GroupSync(None), Route::GroupSync(Some(Switch::DiskShort)), Route::Own(None)] {
        assert_eq!(route.with_data_files(true), route);
    }
    assert_eq!(Route::GroupAsync.with_data_files(false), Route::GroupAsync);
}
