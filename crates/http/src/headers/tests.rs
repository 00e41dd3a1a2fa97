use super::*;
use crate::request::{ColumnMapping, MergeHeaders, MergeType, TableHeaders, UpdateHeaders};
use hyper::header::{HeaderName, HeaderValue};
use tributary_decode::{BodyFormat, CsvFormat, CsvHeader, JsonFormat, JsonPath, JsonPaths};
use tributary_types::PartitionNames;

const MAX_BYTES: u64 = 10_240 * 1024 * 1024;

/// Headers of a load with a body of ten bytes, and `pairs`; an empty value is a header too.
fn map(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_LENGTH, HeaderValue::from_static("10"));
    for (name, value) in pairs {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.insert(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

fn parse(pairs: &[(&str, &str)]) -> Result<StreamLoadRequest, String> {
    let headers = map(pairs);
    let headers = Headers(&headers);
    Early::of_stream_load(headers, MAX_BYTES)
        .and_then(|early| stream_load(headers, early, ("d".into(), "t".into()), "root".into()))
        .map_err(|error| error.to_string())
}

#[test]
fn without_headers_the_defaults_are_doris_s() {
    let request = parse(&[]).unwrap();
    assert_eq!((request.db.as_str(), request.table.as_str(), request.user.as_str()), ("d", "t", "root"));
    assert_eq!(request.format, LoadFormat::default().body);
    assert_eq!(request.compression, Compression::None);
    assert_eq!((request.label, request.columns, request.where_expr), (None, None, None));
    assert_eq!(request.max_filter_ratio, 0.0);
    assert_eq!(request.timeout, Duration::from_secs(600));
    assert_eq!(request.group_commit, None);
    assert_eq!(request.merge, MergeHeaders::default());
    assert_eq!(request.table_headers, TableHeaders::default());
    assert!(!request.strict_mode && !request.two_phase_commit);
    assert_eq!(request.update, UpdateHeaders::default());
    assert_eq!((request.content_length, request.chunked), (Some(10), false));
}

#[test]
fn an_empty_header_is_an_absent_one() {
    let names = ["label", "format", "column_separator", "columns", "strict_mode", "timeout", "group_commit"];
    for name in names {
        let request = parse(&[(name, "")]).unwrap();
        assert_eq!(request.format, LoadFormat::default().body, "{name}");
    }
}

#[test]
fn every_header_reaches_its_field() {
    let request = parse(&[
        ("label", "my_label"),
        ("format", "CSV_with_names"),
        ("column_separator", "\\x01"),
        ("line_delimiter", "\\r\\n"),
        ("enclose", "\""),
        ("compress_type", "GZ"),
        ("columns", "a, b = a + 1"),
        ("where", "a > 列"),
        ("max_filter_ratio", "0.2"),
        ("strict_mode", "TRUE"),
        ("timeout", "259200"),
        ("time_zone", "+08:00"),
        ("two_phase_commit", "true"),
        ("group_commit", "ASYNC_MODE"),
        ("temporary_partitions", "p1"),
        ("send_batch_parallelism", "4"),
        ("comment", "nightly"),
    ])
    .unwrap();
    assert_eq!(request.label.unwrap().as_str(), "my_label");
    let csv = CsvFormat {
        header: CsvHeader::Names,
        column_separator: vec![1],
        line_delimiter: b"\r\n".to_vec(),
        enclose: Some(b'"'),
        ..CsvFormat::default()
    };
    assert_eq!(request.format, BodyFormat::Csv(csv));
    assert_eq!(request.compression, Compression::Gzip);
    assert_eq!(
        request.columns.unwrap(),
        [
            ColumnMapping { name: "a".into(), expr: None },
            ColumnMapping { name: "b".into(), expr: Some("a + 1".into()) }
        ]
    );
    assert_eq!(request.where_expr.as_deref(), Some("a > 列"));
    assert_eq!(request.max_filter_ratio, 0.2);
    assert!(request.strict_mode && request.two_phase_commit);
    let names = PartitionNames::Temporary(vec!["p1".to_owned()]);
    let partitioned = TableHeaders { partitions: names, ..TableHeaders::default() };
    assert_eq!(request.table_headers, partitioned);
    assert_eq!(request.timeout.as_secs(), 259_200);
    assert_eq!(request.timezone.as_deref(), Some("+08:00"));
    assert_eq!(request.group_commit, Some(GroupCommitMode::Async));
    assert_eq!(request.comment, "nightly");
}

#[test]
fn every_header_of_json_reaches_its_field() {
    let request = parse(&[
        ("format", "JSON"),
        ("strip_outer_array", "true"),
        ("json_root", "$.rows"),
        ("jsonpaths", "[\"$.a\", \"$.b[0]\"]"),
        ("num_as_string", "true"),
        ("fuzzy_parse", "true"),
        ("column_separator", ","),
    ])
    .unwrap();
    let json = JsonFormat {
        read_by_line: false,
        strip_outer_array: true,
        root: Some(JsonPath::parse("$.rows").unwrap()),
        paths: Some(JsonPaths::parse("[\"$.a\", \"$.b[0]\"]").unwrap()),
        num_as_string: true,
        ..JsonFormat::default()
    };
    assert_eq!(request.format, BodyFormat::Json(json));
    let flexible = [("format", "json"), ("unique_key_update_mode", "UPDATE_FLEXIBLE_COLUMNS")];
    assert_eq!(parse(&flexible).unwrap().update.mode, UpdateMode::Flexible);
}

#[test]
fn two_phase_commit_is_exactly_true() {
    for (text, asked) in [("true", true), ("True", false), ("1", false), ("false", false)] {
        assert_eq!(parse(&[("two_phase_commit", text)]).unwrap().two_phase_commit, asked, "{text}");
    }
}

#[test]
fn what_only_tables_of_a_kind_can_do_is_named() {
    for (name, value, is_obeyed) in [
        ("merge_type", "delete", true),
        ("partial_columns", "true", true),
        ("unique_key_update_mode", "update_fixed_columns", true),
        ("hidden_columns", "__DORIS_DELETE_SIGN__", true),
        ("function_column.sequence_col", "k", true),
        ("negative", "true", true),
        ("partial_update_new_key_behavior", "error", true),
    ] {
        let refused = Some(name).filter(|_| !is_obeyed);
        assert_eq!(parse(&[(name, value)]).unwrap().table_headers.unique, refused);
        let stream = parse_http_stream(&[("sql", "insert into t …"), (name, value)]).unwrap();
        assert_eq!(stream.table_headers.unique, Some(name));
    }
    let named = PartitionNames::Named(vec!["p1".to_owned(), "p2".to_owned()]);
    assert_eq!(parse(&[("partitions", "p1, p2,")]).unwrap().table_headers.partitions, named);
    let stream = parse_http_stream(&[("sql", "insert into t …"), ("partitions", "p1,p2")]).unwrap();
    assert_eq!(stream.table_headers.partitions, named);
    let update =
        parse(&[("partial_columns", "true"), ("partial_update_new_key_behavior", "error")]).unwrap().update;
    assert_eq!(update, UpdateHeaders { mode: UpdateMode::Fixed, rejects_new_keys: true });
    let both = [("partial_columns", "true"), ("unique_key_update_mode", "upsert")];
    assert_eq!(parse(&both).unwrap().update.mode, UpdateMode::Upsert, "the mode counts");
    let merge =
        parse(&[("merge_type", "MERGE"), ("delete", "k = 1"), ("hidden_columns", " a ,b,")]).unwrap().merge;
    assert_eq!((merge.merge_type, merge.delete.as_deref()), (MergeType::Merge, Some("k = 1")));
    assert_eq!((merge.hidden_columns, merge.sequence_col), (vec!["a".to_owned(), "b".to_owned()], None));
}

#[test]
#[allow(clippy::too_many_lines, reason = "one line for each header")]
fn each_bad_header_has_its_text() {
    let cases: &[(&[(&str, &str)], &str)] = &[
        (
            &[("group_commit", "abc")],
            "[INVALID_ARGUMENT]group_commit can only be [async_mode, sync_mode, off_mode]",
        ),
        (&[("format", "xml")], "[DATA_FILE_TYPE_ERROR]unknown data format, format=xml"),
        (
            &[("format", "Avro")],
            "[NOT_IMPLEMENTED_ERROR]format=Avro is not supported; send the data as parquet, orc, arrow, json, csv, \
             csv_with_names or csv_with_names_and_types",
        ),
        (
            &[("format", "json"), ("jsonpaths", "$.a")],
            "[INVALID_ARGUMENT]It's invalid jsonpaths. $.a: expected value at line 1 column 1; give a JSON array of \
             paths, e.g. [\"$.id\", \"$.a.b\"]",
        ),
        (
            &[("jsonpaths", "[\"$.a\"]")],
            "[INVALID_ARGUMENT]jsonpaths has no effect with format=csv; send format=json if the data are JSON",
        ),
        (
            &[("compress_type", "lzo")],
            "[NOT_IMPLEMENTED_ERROR]compress_type=lzo is not supported, since no library that is kept up reads it; \
             use one of gz, bz2, deflate, zstd, lz4, lz4_block, snappy_block",
        ),
        (
            &[("compress_type", "rar")],
            "[DATA_FILE_TYPE_ERROR]unknown data format, format=csv, compress_type=rar",
        ),
        (
            &[("content-encoding", "br")],
            "[NOT_IMPLEMENTED_ERROR]Content-Encoding: br is not supported; use gzip, deflate, zstd, or send the body \
             uncompressed",
        ),
        (
            &[("content-encoding", "gzip"), ("compress_type", "bz2")],
            "[INVALID_ARGUMENT]Content-Encoding: gzip and compress_type=bzip2 are both given; a body is unpacked once, \
             give one of them",
        ),
        (
            &[("compute_group", "g")],
            "[NOT_IMPLEMENTED_ERROR]header compute_group is not supported: there are no compute groups, leave it out",
        ),
        (
            &[("txn_operation", "commit")],
            "[INVALID_ARGUMENT]header txn_operation has no effect on a load; it belongs to PUT \
             /api/{db}/_stream_load_2pc",
        ),
        (
            &[("sql", "insert")],
            "[INVALID_ARGUMENT]header sql has no effect on a Stream Load; it belongs to PUT /api/_http_stream",
        ),
        (
            &[("content-length", "ten")],
            "[INVALID_ARGUMENT]invalid HTTP header CONTENT_LENGTH=ten: invalid digit found in string",
        ),
        (
            &[("content-length", "")],
            "[INVALID_ARGUMENT]content_length is empty and transfer-encoding!=chunked, please set content_length or \
             transfer-encoding=chunked",
        ),
        (
            &[("transfer-encoding", "chunked")],
            "[INVALID_ARGUMENT]please do not set both content_length and transfer-encoding",
        ),
        (
            &[("content-length", "10737418241")],
            "[EXCEEDED_LIMIT]body size 10737418241 exceed BE's conf `streaming_load_max_mb` 10240. increase it if you \
             are sure this load is reasonable",
        ),
        (
            &[("timeout", "soon")],
            "[INVALID_ARGUMENT]Invalid timeout format, timeout=soon: invalid digit found in string",
        ),
        (
            &[("timeout", "0")],
            "[INVALID_ARGUMENT]Invalid timeout: 0. Timeout should between 1 and 259200 seconds",
        ),
        (
            &[("timeout", "259201")],
            "[INVALID_ARGUMENT]Invalid timeout: 259201. Timeout should between 1 and 259200 seconds",
        ),
        (
            &[("label", "my label")],
            "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = Label format error. regex: \
             ^[-_A-Za-z0-9:]{1,128}$, label: my label",
        ),
        (&[("enclose", "''")], "[INVALID_ARGUMENT]enclose must be single-char, actually is ''"),
        (&[("escape", "ab")], "[INVALID_ARGUMENT]escape must be single-char, actually is ab"),
        (
            &[("column_separator", "\\x0")],
            "[INVALID_ARGUMENT]Invalid separator '\\x0': hex length must be a even number; write bytes as \\x01 or \
             \\x0102",
        ),
        (
            &[("partitions", "p"), ("temporary_partitions", "q")],
            "[INVALID_ARGUMENT]Can not specify both partitions and temporary partitions",
        ),
        (&[("strict_mode", "yes")], "[INVALID_ARGUMENT]Invalid strict mode format. Must be bool type"),
        (
            &[("exec_mem_limit", "2G")],
            "[INVALID_ARGUMENT]Invalid mem limit format, exec_mem_limit=2G: invalid digit found in string",
        ),
        (
            &[("send_batch_parallelism", "many")],
            "[INVALID_ARGUMENT]invalid HTTP header send_batch_parallelism=many: invalid digit found in string; give a \
             whole number",
        ),
        (
            &[("load_stream_per_node", "1.5")],
            "[INVALID_ARGUMENT]invalid HTTP header load_stream_per_node=1.5: invalid digit found in string; give a \
             whole number",
        ),
        (&[("skip_lines", "-1")], "[INVALID_ARGUMENT]Invalid 'skip_lines': -1"),
        (
            &[("max_filter_ratio", "1.5")],
            "[INVALID_ARGUMENT]Invalid max_filter_ratio: 1.5. It must be a number from 0 to 1",
        ),
        (
            &[("max_filter_ratio", "NaN")],
            "[INVALID_ARGUMENT]Invalid max_filter_ratio: NaN. It must be a number from 0 to 1",
        ),
        (&[("merge_type", "upsert")], "[INVALID_ARGUMENT]Invalid merge type upsert"),
        (&[("merge_type", "merge")], "[INVALID_ARGUMENT]Excepted DELETE ON clause when merge type is MERGE."),
        (
            &[("delete", "k=1")],
            "[INVALID_ARGUMENT]Not support DELETE ON clause when merge type is not MERGE.",
        ),
        (
            &[("unique_key_update_mode", "x")],
            "[INVALID_ARGUMENT]Invalid unique_key_partial_mode X, must be one of 'UPSERT', 'UPDATE_FIXED_COLUMNS' or \
             'UPDATE_FLEXIBLE_COLUMNS'",
        ),
        (
            &[("unique_key_update_mode", "UPDATE_FLEXIBLE_COLUMNS")],
            "[INVALID_ARGUMENT]flexible partial update only support json format as input file currently",
        ),
        (
            &[("partial_update_new_key_behavior", "skip")],
            "[INVALID_ARGUMENT]Invalid partial_update_new_key_behavior SKIP, must be one of {'APPEND', 'ERROR'}",
        ),
    ];
    for (pairs, text) in cases {
        assert_eq!(parse(pairs).unwrap_err(), *text, "{pairs:?}");
    }
}

#[test]
fn a_header_that_is_not_utf8_is_named() {
    let mut headers = map(&[]);
    headers.insert("where", HeaderValue::from_bytes(b"a = '\xff'").unwrap());
    let headers = Headers(&headers);
    let early = Early::of_stream_load(headers, MAX_BYTES).unwrap();
    let error = stream_load(headers, early, ("d".into(), "t".into()), "root".into()).unwrap_err();
    assert_eq!(error.to_string(), "[INVALID_ARGUMENT]header `where` is not UTF-8");
}

#[test]
fn a_chunked_body_has_no_length() {
    let mut headers = map(&[("transfer-encoding", "gzip, Chunked")]);
    headers.remove(CONTENT_LENGTH);
    let headers = Headers(&headers);
    let early = Early::of_stream_load(headers, MAX_BYTES).unwrap();
    let request = stream_load(headers, early, ("d".into(), "t".into()), "root".into()).unwrap();
    assert_eq!((request.content_length, request.chunked), (None, true));
}

fn parse_http_stream(pairs: &[(&str, &str)]) -> Result<HttpStreamRequest, String> {
    let headers = map(pairs);
    let headers = Headers(&headers);
    Early::of_http_stream(headers, MAX_BYTES)
        .and_then(|early| http_stream(headers, early, "root".into()))
        .map_err(|error| error.to_string())
}

#[test]
fn an_http_stream_refuses_headers_that_only_a_stream_load_reads() {
    let sql = ("sql", "insert into db.dt select * from http_stream('format' = 'CSV')");
    for (name, value) in
        [("column_separator", ","), ("skip_lines", "1"), ("columns", "a, b"), ("where", "a = 1")]
    {
        let error = parse_http_stream(&[sql, (name, value)]).unwrap_err();
        let start = format!("[INVALID_ARGUMENT]header {name} has no effect on an HTTP Stream; ");
        assert!(error.starts_with(&start), "{error}");
    }
    let numbers = parse_http_stream(&[sql, ("send_batch_parallelism", "x")]).unwrap_err();
    assert!(
        numbers.starts_with("[INVALID_ARGUMENT]invalid HTTP header send_batch_parallelism=x"),
        "{numbers}"
    );
    let packed = parse_http_stream(&[sql, ("compress_type", "gz")]).unwrap();
    assert_eq!(packed.compression, Compression::Gzip);
    assert!(parse_http_stream(&[sql, ("compress_type", "lzo")]).unwrap_err().contains("compress_type=lzo"));
}

#[test]
fn an_http_stream_needs_its_statement() {
    let parse = parse_http_stream;
    let sql = "insert into db.dt select * from http_stream('column_separator'=',', 'format' = 'CSV')";
    let request = parse(&[("sql", sql), ("group_commit", "sync_mode"), ("format", "json")]).unwrap();
    assert_eq!((request.sql.as_str(), request.group_commit), (sql, Some(GroupCommitMode::Sync)));
    assert!(parse(&[]).unwrap_err().starts_with("[INVALID_ARGUMENT]the header `sql` is empty"));
}

#[test]
fn a_second_phase_needs_an_operation_and_a_transaction() {
    let parse = |pairs: &[(&str, &str)]| two_phase(Headers(&map(pairs))).map_err(|error| error.to_string());
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[], "No transaction id or label selected."),
        (&[("txn_id", "7")], "No transaction operation('commit' or 'abort') selected."),
        (
            &[("txn_id", "7"), ("txn_operation", "undo")],
            "[INVALID_ARGUMENT]transaction operation should be 'commit' or 'abort'",
        ),
        (
            &[("txn_id", "x7"), ("txn_operation", "commit")],
            "[INVALID_ARGUMENT]convert txn_id [x7] failed, reason=invalid digit found in string",
        ),
    ];
    for (pairs, text) in cases {
        assert_eq!(parse(pairs).unwrap_err(), *text, "{pairs:?}");
    }
    let (op, target) = parse(&[("txn_id", "7"), ("label", "l"), ("txn_operation", "Abort")]).unwrap();
    assert_eq!(op, TwoPhaseOp::Abort);
    assert_eq!((target.txn_id, target.label.unwrap().as_str()), (Some(TxnId(7)), "l"));
}
