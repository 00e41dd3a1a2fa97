//! Tests of the audit log without a server.

use super::entry::{Entry, Text};
use super::options::{AuditOptions, WhenFull};
use super::*;
use std::path::Path;
use std::time::Duration;

fn entry(text: &str) -> Entry {
    Entry {
        ended_ms: 1_700_000_000_123,
        took: Duration::from_millis(23),
        door: "statement",
        protocol: "mysql",
        connection: Some(7),
        user: "u".into(),
        client: "10.0.0.7:1".into(),
        account_host: Some("10.%".into()),
        db: None,
        table: None,
        format: None,
        txn: None,
        label: None,
        kind: "SELECT",
        text: Text::Statement(text.into(), text.len()),
        affected_rows: 0,
        returned_rows: 1,
        received_bytes: text.len() as u64,
        error: None,
    }
}

fn lines(directory: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(directory.join("audit.log")).expect("a file");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_record_is_a_line_and_has_no_secret() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = AuditOptions { directory: Some(directory.path().to_owned()), ..AuditOptions::default() };
    let audit = Audit::open(options, &Registry::new()).expect("a new directory");
    audit.push(entry("SELECT 1\n"), None);
    let password = "ALTER USER u IDENTIFIED BY 'hush'";
    audit.push(Entry { error: Some((1105, "'hush' is too short".to_owned())), ..entry(password) }, None);
    let text = Text::Illegible("SELECT hush".into(), 20);
    let error = Some((1064, "syntax error: expected x, found 'hush' (line 1, pos 7)".to_owned()));
    audit.push(Entry { text, error, ..entry("") }, None);
    audit.push(Entry { text: Text::Statement("SELECT 'ä".into(), 100), ..entry("") }, None);
    audit.close();
    let lines = lines(directory.path());
    let first = &lines[0];
    let from = first.find("\"time\"").expect("it has one");
    assert_eq!(
        &first[from..],
        "\"time\":\"2023-11-14T22:13:20.100Z\",\"door\":\"statement\",\"protocol\":\"mysql\",\"connection_id\":7,\
         \"client_ip\":\"10.0.0.7:1\",\"user\":\"u\",\"account\":\"'u'@'10.%'\",\"state\":\"EOF\",\"error_code\":0,\
         \"query_time\":23,\"affected_rows\":0,\"return_rows\":1,\"received_bytes\":9,\"stmt_type\":\"SELECT\",\
         \"is_query\":true,\"stmt\":\"SELECT 1\\n\"}"
    );
    assert!(
        lines[1].contains("IDENTIFIED BY '***'") && lines[1].contains("'***' is too short"),
        "{}",
        lines[1]
    );
    assert!(
        lines[2].contains("SELECT … (20 bytes)") && lines[2].contains("\"syntax error (line 1, pos 7)\"")
    );
    assert!(
        lines[3].contains("SELECT 'ä ... /* truncated. audit_plugin_max_sql_length=10 */"),
        "{}",
        lines[3]
    );
    assert!(lines.is_sorted(), "later ids are greater");
    assert!(lines.iter().all(|line| !line.contains("hush")));
}

#[test]
fn entries_without_a_place_are_counted_and_with_one_are_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = AuditOptions {
        directory: Some(directory.path().to_owned()),
        queue_records: 3,
        when_full: WhenFull::Refuse,
        ..AuditOptions::default()
    };
    let audit = Audit::open(options, &Registry::new()).expect("a new directory");
    let mut admissions: Vec<_> = (0..3).map(|_| audit.admit().expect("there is a place")).collect();
    assert_eq!(audit.admit().expect_err("there is none").code, ErrorCode::Busy);
    assert_eq!(audit.shared.metrics.refused.get(), 1);
    drop(admissions.pop());
    admissions.push(audit.admit().expect("it is free again"));
    for admission in admissions {
        audit.push(entry("SELECT 1"), admission);
    }
    // Returns when every record is written, and so has left its place.
    audit.close();
    assert!(audit.admit().is_ok());
    assert!(lines(directory.path()).len() == 3);
    audit.push(entry("too late"), None);
    assert_eq!(audit.shared.metrics.dropped_from_queue.get(), 1);
}

#[test]
fn nobody_pays_for_records_that_nobody_wants() {
    let audit = Audit::open(AuditOptions::default(), &Registry::new()).expect("there is no file");
    assert!(!audit.is_on() && audit.writer.lock().is_none());
    audit.set(true, 100, false);
    assert!(audit.is_on());
    audit.push(entry("SELECT 1"), None);
    audit.set(false, 100, false);
    assert!(!audit.is_on());
    audit.close();
}
