//! Every header of Doris's Stream Load, one by one: it works, or the load is refused with its name.

use crate::support::{Curl, Server};

/// The outcome of a load with a header.
enum Comes {
    /// The table's rows.
    Rows(&'static [&'static str]),
    /// A key of the answer, and the rows of [`BODY`].
    Answer(&'static str, &'static str),
    /// The load fails, nothing is loaded, and the message has this text.
    Refused(&'static str),
}

use Comes::*;

const BODY: &str = "1,a,10\n2,b,20\n";
const ROWS: &[&str] = &["1|a|10", "2|b|20"];
const JSON: &str = "{\"id\":1,\"name\":\"a\",\"score\":10}\n{\"id\":2,\"name\":\"b\",\"score\":20}";

/// A header's name, all headers of the load (`column_separator: ,` by default), its body, and the outcome.
type Case = (&'static str, &'static [&'static str], &'static str, Comes);

#[rustfmt::skip]
const CASES: &[Case] = &[
    ("label", &["label: header_label"], BODY, Answer("Label", "header_label")),
    ("label", &["label: no label"], BODY, Refused("Label format error.")),
    ("format", &["format: csv_with_names"], "x,y,z\n1,a,10\n2,b,20\n", Rows(ROWS)),
    ("format", &["format: JSON"], JSON, Rows(ROWS)),
    ("format", &["format: orc"], BODY, Refused("the orc body can't be read")),
    ("format", &["format: hive_text"], BODY, Refused("format=hive_text is not supported")),
    ("format", &["format: parquet"], BODY, Refused("the parquet body can't be read")),
    ("format", &["format: arrow"], BODY, Refused("the arrow body can't be read")),
    ("format", &["format: wal"], BODY, Refused("unknown data format, format=wal")),
    ("column_separator", &["column_separator: ||"], "1||a||10\n2||b||20", Rows(ROWS)),
    ("line_delimiter", &["line_delimiter: \\x3b"], "1,a,10;2,b,20", Rows(ROWS)),
    ("columns", &["columns: score, name, id, `x`"], "10,a,1,\n20,b,2,", Rows(ROWS)),
    ("columns", &["columns: n, name, id = n + 0, score = n * 10"], "1,a\n2,b", Rows(ROWS)),
    ("where", &["where: score > 10"], BODY, Rows(&["2|b|20"])),
    ("max_filter_ratio", &["max_filter_ratio: 0.5"], "1,a,10\n2\n", Rows(&["1|a|10"])),
    ("max_filter_ratio", &["max_filter_ratio: 0.4"], "1,a,10\n2\n", Refused("too many filtered rows")),
    ("strict_mode", &["strict_mode: false"], "1,a,x\n", Rows(&["1|a|NULL"])),
    ("strict_mode", &["strict_mode: true"], "1,a,x\n", Refused("too many filtered rows")),
    ("partitions", &["partitions: p1"], BODY, Refused("PARTITION () clause on non partitioned table")),
    ("temporary_partitions", &["temporary_partitions: p1"], BODY, Refused("PARTITION () clause on non partitioned table")),
    ("timeout", &["timeout: 30"], BODY, Rows(ROWS)),
    ("timeout", &["timeout: 259201"], BODY, Refused("Invalid timeout: 259201")),
    ("timezone", &["timezone: +08:00", "columns: id, name, score = hour(from_unixtime(0))"], "1,a", Rows(&["1|a|8"])),
    ("time_zone", &["time_zone: +09:00", "columns: id, name, score = hour(from_unixtime(0))"], "1,a", Rows(&["1|a|9"])),
    ("timezone", &["timezone: Nowhere"], BODY, Refused("Unknown or incorrect time zone: 'Nowhere'")),
    ("exec_mem_limit", &["exec_mem_limit: 2147483648"], BODY, Rows(ROWS)),
    ("exec_mem_limit", &["exec_mem_limit: 2G"], BODY, Refused("Invalid mem limit format, exec_mem_limit=2G")),
    ("jsonpaths", &["format: json", "jsonpaths: [\"$.k[0]\", \"$.n\", \"$.s.t\"]"],
        "{\"k\":[1],\"n\":\"a\",\"s\":{\"t\":10}}", Rows(&["1|a|10"])),
    ("jsonpaths", &["format: json", "jsonpaths: [\"$.id\", \"$.k[*].n\"]"],
        "{\"id\":1,\"k\":[{\"n\":1},{},{\"n\":\"b\"}]}", Rows(&["1|[1,\"b\"]|NULL"])),
    ("jsonpaths", &["format: json", "jsonpaths: [\"$.*\"]"], JSON, Refused("It's invalid jsonpaths.")),
    ("json_root", &["format: json", "json_root: $.d"], "{\"d\":{\"id\":1,\"name\":\"a\",\"score\":10}}", Rows(&["1|a|10"])),
    ("json_root", &["format: json", "json_root: $.d[*]"], JSON, Refused("It's invalid jsonpaths.")),
    ("strip_outer_array", &["format: json", "strip_outer_array: true"],
        "[{\"id\":1,\"name\":\"a\",\"score\":10},\n{\"id\":2,\"name\":\"b\",\"score\":20}]", Rows(ROWS)),
    ("read_json_by_line", &["format: json", "read_json_by_line: true"], JSON, Rows(ROWS)),
    ("num_as_string", &["format: json", "num_as_string: true"], "{\"id\":1,\"name\":[1]}", Rows(&["1|[\"1\"]|NULL"])),
    ("fuzzy_parse", &["format: json", "fuzzy_parse: true"], JSON, Rows(ROWS)),
    ("compress_type", &["compress_type: LZOP"], BODY, Refused("compress_type=LZOP is not supported")),
    ("compress_type", &["compress_type: rar"], BODY, Refused("unknown data format, format=csv, compress_type=rar")),
    ("compress_type", &["compress_type: bz2"], BODY, Refused("broken bzip2 body after 14 bytes")),
    ("enclose", &["column_separator: ,", "enclose: '"], "1,'a,\n',10\n", Rows(&["1|a,\n|10"])),
    ("escape", &["column_separator: ,", "enclose: '", "escape: \\"], "1,'a\\'b',10\n", Rows(&["1|a'b|10"])),
    ("trim_double_quotes", &["trim_double_quotes: true"], "\"1\",\"a\",\"10\"\n", Rows(&["1|a|10"])),
    ("skip_lines", &["skip_lines: 2"], "x\ny\n1,a,10\n2,b,20\n", Rows(ROWS)),
    ("skip_lines", &["skip_lines: -1"], BODY, Refused("Invalid 'skip_lines': -1")),
    ("empty_field_as_null", &["empty_field_as_null: true"], "1,,10\n", Rows(&["1|NULL|10"])),
    ("merge_type", &["merge_type: append"], BODY, Rows(ROWS)),
    ("merge_type", &["merge_type: delete"], BODY, Refused("load by MERGE or DELETE is only supported in unique tables.")),
    ("delete", &["delete: id = 1"], BODY, Refused("Not support DELETE ON clause")),
    ("delete", &["merge_type: merge", "delete: id = 1"], BODY, Refused("load by MERGE or DELETE is only supported in unique tables.")),
    ("function_column.sequence_col", &["function_column.sequence_col: score"], BODY,
        Refused("There is no sequence column in the table")),
    ("hidden_columns", &["hidden_columns: __DORIS_DELETE_SIGN__"], BODY, Rows(ROWS)),
    ("negative", &["negative: true"], BODY, Refused("Column is not SUM AggregateType. column:name")),
    ("two_phase_commit", &["two_phase_commit: true"], BODY, Answer("TwoPhaseCommit", "true")),
    ("partial_columns", &["partial_columns: true"], BODY, Refused("Only unique key merge on write support partial update")),
    ("unique_key_update_mode", &["unique_key_update_mode: UPSERT"], BODY, Rows(ROWS)),
    ("unique_key_update_mode", &["unique_key_update_mode: UPDATE_FIXED_COLUMNS"], BODY,
        Refused("Only unique key merge on write support partial update")),
    ("partial_update_new_key_behavior", &["partial_update_new_key_behavior: append"], BODY, Rows(ROWS)),
    ("partial_update_new_key_behavior", &["partial_update_new_key_behavior: error"], BODY, Rows(ROWS)),
    ("group_commit", &["group_commit: sync_mode"], BODY, Answer("GroupCommit", "true")),
    ("group_commit", &["group_commit: on"], BODY, Refused("group_commit can only be")),
    ("load_to_single_tablet", &["load_to_single_tablet: false"], BODY, Rows(ROWS)),
    (
        "load_to_single_tablet",
        &["load_to_single_tablet: true"],
        BODY,
        Refused("if load_to_single_tablet set to true, the olap table must be with random distribution"),
    ),
    ("send_batch_parallelism", &["send_batch_parallelism: 4"], BODY, Rows(ROWS)),
    ("send_batch_parallelism", &["send_batch_parallelism: x"], BODY, Refused("send_batch_parallelism=x")),
    ("memtable_on_sink_node", &["memtable_on_sink_node: true"], BODY, Rows(ROWS)),
    ("load_stream_per_node", &["load_stream_per_node: 2"], BODY, Rows(ROWS)),
    ("load_stream_per_node", &["load_stream_per_node: x"], BODY, Refused("load_stream_per_node=x")),
    ("enable_profile", &["enable_profile: true"], BODY, Rows(ROWS)),
    ("comment", &["comment: nightly"], BODY, Answer("Comment", "nightly")),
    ("compute_group", &["compute_group: g"], BODY, Refused("header compute_group is not supported")),
    ("cloud_cluster", &["cloud_cluster: g"], BODY, Refused("header cloud_cluster is not supported")),
    ("sql", &["sql: insert into t select 1"], BODY, Refused("header sql has no effect on a Stream Load")),
    ("txn_id", &["txn_id: 7"], BODY, Refused("header txn_id has no effect on a load")),
    ("txn_operation", &["txn_operation: commit"], BODY, Refused("header txn_operation has no effect on a load")),
    ("token", &["token: t"], BODY, Refused("header token is not supported")),
    ("skip_record_to_audit_log_table", &["skip_record_to_audit_log_table: true"], BODY, Rows(ROWS)),
    ("redirect-policy", &["redirect-policy: direct"], BODY, Rows(ROWS)),
];

/// The list in Doris's documentation.
const HEADERS: [&str; 50] = [
    "label",
    "format",
    "column_separator",
    "line_delimiter",
    "columns",
    "where",
    "max_filter_ratio",
    "strict_mode",
    "partitions",
    "temporary_partitions",
    "timeout",
    "timezone",
    "time_zone",
    "exec_mem_limit",
    "jsonpaths",
    "json_root",
    "strip_outer_array",
    "read_json_by_line",
    "num_as_string",
    "fuzzy_parse",
    "compress_type",
    "enclose",
    "escape",
    "trim_double_quotes",
    "skip_lines",
    "empty_field_as_null",
    "merge_type",
    "delete",
    "function_column.sequence_col",
    "hidden_columns",
    "negative",
    "two_phase_commit",
    "partial_columns",
    "unique_key_update_mode",
    "partial_update_new_key_behavior",
    "group_commit",
    "load_to_single_tablet",
    "send_batch_parallelism",
    "memtable_on_sink_node",
    "load_stream_per_node",
    "enable_profile",
    "comment",
    "compute_group",
    "cloud_cluster",
    "sql",
    "txn_id",
    "txn_operation",
    "token",
    "skip_record_to_audit_log_table",
    "redirect-policy",
];

#[test]
fn every_header_of_a_stream_load_works_or_is_refused_by_name() {
    let server = Server::shared();
    for (name, headers, body, comes) in CASES {
        let mut db = server.database().with_dt("\"group_commit_interval_ms\" = \"300\"");
        let mut load = Curl::stream_load(&server, &db.name, "dt");
        let is_csv = !headers
            .iter()
            .any(|header| header.starts_with("format: JSON") || header.starts_with("format: json"));
        if is_csv && !headers.iter().any(|header| header.starts_with("column_separator")) {
            load = load.header("column_separator: ,");
        }
        let reply = load.headers(headers).body(body).load();
        let expected = match comes {
            Rows(rows) => {
                reply.success();
                *rows
            }
            Answer(key, value) => {
                assert_eq!(reply.clone().success().get(key), *value, "{headers:?}: {}", reply.text);
                if *name == "two_phase_commit" { &[] } else { ROWS }
            }
            Refused(text) => {
                assert!(reply.failure().contains(text), "{headers:?}: {}", reply.text);
                &[]
            }
        };
        db.client.ok("SYNC");
        assert_eq!(db.client.rows("SELECT * FROM dt ORDER BY id"), expected, "{headers:?}");
    }
}

#[test]
fn every_header_of_a_stream_load_is_tried_and_described() {
    let page = include_str!("../../../../docs/http.md");
    for header in HEADERS {
        assert!(CASES.iter().any(|(name, ..)| *name == header), "{header} is not tried");
        assert!(page.contains(&format!("`{header}`")), "docs/http.md does not say what {header} does");
    }
}
