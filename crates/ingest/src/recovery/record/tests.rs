use super::*;

fn label() -> Label {
    Label::new("daily-1").unwrap()
}

fn commit() -> CommitBody {
    CommitBody {
        format: Format(1),
        version: Version(7),
        db: DbId(2),
        label: label(),
        label_is_kept: true,
        is_group: false,
        kind: Some(TransactionKind::Insert),
        loads: 1,
        rows: 3,
        bytes: 90,
        prepared_at_ms: 1_700_000_000_000,
        committed_at_ms: 1_700_000_000_123,
        files: Vec::new(),
        replaces: None,
        excluded: vec![4, 5],
        source: None,
        attachment: None,
    }
}

fn prepare() -> PrepareBody {
    PrepareBody {
        format: Format(1),
        db: DbId(2),
        label: label(),
        rows: 3,
        bytes: 90,
        prepared_at_ms: 1_700_000_000_000,
        files: Vec::new(),
        source: None,
        attachment: None,
        client: None,
    }
}

fn attached() -> Option<Attachment> {
    Some(Attachment::new(b"partition 0: 17\0\xff").unwrap())
}

fn abort() -> AbortBody {
    AbortBody { format: Format(1), db: DbId(2), label: label(), reason: "user abort".to_owned() }
}

fn entry(body: &str) -> Entry {
    Entry {
        kind: kind::COMMIT,
        table: TableId(1),
        txn: TxnId(1),
        tag: 0,
        body: body.trim().to_owned().into(),
    }
}

/// A body is written as its golden file says, and read from it.
fn check<T: Body + PartialEq + std::fmt::Debug>(body: &T, golden: &str) {
    let written = json(kind::COMMIT, TableId(1), TxnId(1), body);
    assert_eq!(std::str::from_utf8(&written.body).unwrap(), golden.trim());
    assert_eq!(read::<T>(&entry(golden)).unwrap(), *body);
}

#[test]
fn bodies_are_written_and_read_as_the_golden_files_say() {
    check(&commit(), include_str!("golden/commit.json"));
    check(&prepare(), include_str!("golden/prepare.json"));
    let with_attachment = CommitBody { attachment: attached(), ..commit() };
    check(&with_attachment, include_str!("golden/commit-attachment.json"));
    let with_attachment = PrepareBody { attachment: attached(), ..prepare() };
    check(&with_attachment, include_str!("golden/prepare-attachment.json"));
    let source = Some(SourceId(12));
    let with_position = CommitBody { source, attachment: attached(), ..commit() };
    check(&with_position, include_str!("golden/commit-position.json"));
    let with_position = PrepareBody { source, attachment: attached(), ..prepare() };
    check(&with_position, include_str!("golden/prepare-position.json"));
    check(&abort(), include_str!("golden/abort.json"));
    check(&TruncateBody { format: Format(1), version: Version(7) }, include_str!("golden/truncate.json"));
}

/// These files are never changed.
#[test]
fn bodies_of_the_first_servers_are_read() {
    let of_load = read::<CommitBody>(&entry(include_str!("golden/commit-first.json"))).unwrap();
    assert_eq!(of_load.files.len(), 1);
    assert_eq!((of_load.files[0].path.as_str(), of_load.files[0].rows), ("part-00000.parquet", 3));
    assert_eq!(of_load.kind(), TransactionKind::StreamLoad, "the best guess");
    assert_eq!(CommitBody { kind: Some(TransactionKind::Insert), files: Vec::new(), ..of_load }, commit());
    let of_group = read::<CommitBody>(&entry(include_str!("golden/group-commit-first.json"))).unwrap();
    assert_eq!((of_group.kind(), of_group.version, of_group.rows), (TransactionKind::Group, Version(8), 2));
    assert_eq!(read::<PrepareBody>(&entry(include_str!("golden/prepare-first.json"))).unwrap(), prepare());
    assert_eq!(read::<AbortBody>(&entry(include_str!("golden/abort-first.json"))).unwrap(), abort());
    let truncate = read::<TruncateBody>(&entry(include_str!("golden/truncate-first.json"))).unwrap();
    assert_eq!(truncate.version, Version(7));
}

#[test]
fn fields_of_later_servers_are_passed_over() {
    let later = include_str!("golden/truncate.json").trim().replace('}', r#","partition":3}"#);
    assert_eq!(read::<TruncateBody>(&entry(&later)).unwrap().version, Version(7));
}

#[test]
fn a_newer_format_is_refused_with_what_to_do() {
    for body in [r#"{"format":3,"version":7}"#, r#"{"format":3}"#] {
        let error = read::<TruncateBody>(&entry(body)).unwrap_err();
        assert!(error.contains("format 3") && error.contains("start that one"), "{error}");
    }
}

#[test]
fn an_attachment_that_is_no_base64_is_damaged() {
    let text = include_str!("golden/commit-attachment.json").replace("attachment\":\"", "attachment\":\"?");
    assert!(read::<CommitBody>(&entry(&text)).is_err());
}

#[test]
fn a_body_without_what_was_always_there_is_damaged() {
    let error = read::<TruncateBody>(&entry("{}")).unwrap_err();
    assert!(error.contains("version"), "{error}");
}
