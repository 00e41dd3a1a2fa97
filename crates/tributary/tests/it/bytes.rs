//! Columns of bytes, by all ways in and out: values need not be text.

use crate::support::programs::python;
use crate::support::{Curl, Server};
use serde_json::json;

#[test]
fn bytes_survive_every_way_in_a_kill_and_a_flush() {
    let mut server = Server::with_settings(&[("flush_age_ms", "300"), ("arrow_flight_sql_port", "0")]);
    let db = server.database();
    let port = server.mysql_port().to_string();
    python("bytes_checks.py", &["written", &port, &db.name]);
    let [parquet, csv, orc, infile] =
        ["b.parquet", "b.csv", "b.orc", "b.infile"].map(|name| server.scratch().join(name));
    python("bytes_checks.py", &["orc", &orc.display().to_string()]);
    python("bytes_checks.py", &["parquet", &parquet.display().to_string()]);
    python("bytes_checks.py", &["csv", &csv.display().to_string()]);
    let load = |headers: &[&str], path| {
        Curl::stream_load(&server, &db.name, "files").headers(headers).file(path).load().success()
    };
    let columns = "columns:id,way,place,body";
    assert_eq!(load(&["format:parquet", columns], &parquet).rows()[1], 7);
    assert_eq!(load(&["format:orc", columns], &orc).rows()[1], 7);
    python("bytes_checks.py", &["doput", &server.flight_port().to_string(), &db.name]);
    python("bytes_checks.py", &["infile", &port, &db.name, &infile.display().to_string()]);
    let marks = ["column_separator:\\x01", "line_delimiter:\\x02", columns];
    for mode in ["group_commit:off_mode", "group_commit:async_mode"] {
        assert_eq!(load(&[&marks[..], &[mode]].concat(), &csv).rows()[1], 7);
    }
    server.kill();
    server.start_again();
    let ways = "general,hex,literal,many,prepared,parquet,orc,doput";
    let port = server.mysql_port().to_string();
    python("bytes_checks.py", &["read", &port, &db.name, ways]);
    assert_eq!(server.stop().code(), Some(0), "{}", server.log());
    python("bytes_checks.py", &["delta", &crate::delta::delta_table(&server), &format!("{ways},csv,infile")]);
}

#[test]
fn fields_of_lines_are_bytes_where_columns_are_and_text_elsewhere() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok("CREATE TABLE t (k INT, v VARCHAR(10), b VARBINARY(4)) DUPLICATE KEY(k)");
    let path = server.scratch().join(format!("{}.csv", db.name));
    std::fs::write(&path, b"1,a,\xff\x00\n2,\xff,x\n3,\"c,\",\"\xfe,\"\n4,d,12345\n").unwrap();
    let load = |headers: &[&str]| {
        let headers =
            [headers, &["column_separator:,", "group_commit:off_mode", "max_filter_ratio:1"]].concat();
        Curl::stream_load(&server, &db.name, "t").headers(&headers).file(&path).load().success()
    };
    let reply = load(&["enclose:\"", "strict_mode:true"]);
    assert_eq!(reply.rows(), [4, 2, 2, 0], "{}", reply.text);
    let log = Curl::anonymous(&reply.get("ErrorURL")).text();
    assert!(log.contains("only support csv data in utf8 codec"), "{log}");
    assert!(log.contains("column_name[b], the length of input is too long than schema"), "{log}");
    assert_eq!(db.client.rows("SELECT k, v, HEX(b) FROM t ORDER BY k"), ["1|a|FF00", "3|c,|FE2C"]);
    let body = "[{\"k\":5,\"v\":\"x\",\"b\":\"é\\u0000\"},{\"k\":6,\"b\":12}]";
    Curl::stream_load(&server, &db.name, "t")
        .headers(&["format:json", "strip_outer_array:true", "group_commit:off_mode"])
        .body(body)
        .load()
        .success();
    assert_eq!(db.client.rows("SELECT k, HEX(b) FROM t WHERE k > 4 ORDER BY k"), ["5|C3A900", "6|3132"]);
    let url = format!("http://127.0.0.1:{}/api/query/internal/{}", server.http_port(), db.name);
    let statement = json!({"stmt": "SELECT b, x'' FROM t WHERE k = 1"}).to_string();
    let answer =
        Curl::as_user("root:", &url).header("Content-Type: application/json").body(&statement).text();
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["data"]["data"], json!([["0xFF00", "0x"]]), "{answer}");
}

#[test]
fn bytes_have_types_of_mysql_and_rules_of_their_own() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.refused("CREATE TABLE t (k INT, b BLOB)", 1235, "use VARBINARY");
    client.refused("CREATE TABLE t (k INT, b BINARY(3))", 1235, "use VARBINARY");
    client.refused("CREATE TABLE t (k INT, b ARRAY<VARBINARY>)", 1235, "varbinary within a type");
    client.refused(
        "CREATE TABLE t (k INT, b VARBINARY(0))",
        1105,
        "VARBINARY takes 1 to 16777216 bytes, not 0",
    );
    client.refused("CREATE TABLE t (b VARBINARY) DUPLICATE KEY(b)", 1105, "cannot be a key column");
    client.refused("CREATE TABLE t (b VARBINARY) UNIQUE KEY(b)", 1105, "should not be used in key column[b]");
    client.refused(
        "CREATE TABLE t (b VARBINARY(9)) DUPLICATE KEY(b) PARTITION BY LIST (b) (PARTITION p VALUES IN ('a'))",
        1105,
        "Complex type column can't be partition column: VARBINARY",
    );
    client.refused(
        "CREATE TABLE t (k INT, b VARBINARY(9) MAX) AGGREGATE KEY(k)",
        1105,
        "Aggregate type MAX is not compatible with primitive type varbinary(9)",
    );
    client.ok("SET mysql_ddl = compat");
    client.ok("CREATE TABLE t (k INT PRIMARY KEY, a BINARY(3), b VARBINARY(9) DEFAULT 'x', c TINYBLOB, d BLOB, e MEDIUMBLOB, f LONGBLOB)");
    let notes = client.rows("SHOW WARNINGS").join("\n");
    assert!(notes.contains("column 'a': BINARY is varbinary(3)"), "{notes}");
    let described = client.rows("DESC t").join("\n");
    for line in
        ["a|varbinary(3)|", "b|varbinary(9)|", "c|varbinary(255)|", "d|blob|", "e|longblob|", "f|longblob|"]
    {
        assert!(described.contains(line), "{line} is not in {described}");
    }
    let sql = "SELECT column_name, data_type, column_type, character_maximum_length, character_set_name \
               FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 't' AND column_name IN ('b', 'd') \
               ORDER BY 1";
    assert_eq!(client.rows(sql), ["b|varbinary|varbinary(9)|9|NULL", "d|blob|blob|65535|NULL"]);
    let create = client.rows("SHOW CREATE TABLE t").join("\n");
    assert!(create.contains("`d` blob") && create.contains("`b` varbinary(9)"), "{create}");
    client.ok("SET mysql_ddl = doris");
    let create = client.rows("SHOW CREATE TABLE t").join("\n");
    assert!(
        create.contains("`f` varbinary NULL") && create.contains("`d` varbinary(65535) NULL"),
        "{create}"
    );
    client.ok("CREATE TABLE u LIKE t");
    client.ok("INSERT INTO t (k, a, f) VALUES (1, x'00ff80', _binary 'é'), (2, 0x41, 'text')");
    client.ok("INSERT INTO u SELECT * FROM t");
    client.ok("ALTER TABLE u MODIFY COLUMN a VARBINARY(4) NULL");
    client.ok("INSERT INTO u (k, a) SELECT 3, CONCAT(a, x'fe') FROM t WHERE k = 1");
    client.ok("ALTER TABLE u ADD COLUMN g VARBINARY(4) DEFAULT 'ab'");
    assert_eq!(
        client.rows("SELECT k, HEX(a), b, HEX(f), g FROM u ORDER BY k"),
        ["1|00FF80|x|C3A9|ab", "2|41|x|74657874|ab", "3|00FF80FE|x|NULL|ab"]
    );
    client.refused(
        "ALTER TABLE u MODIFY COLUMN a VARBINARY(2) NULL",
        1105,
        "Shorten type length is prohibited",
    );
    client.refused(
        "INSERT INTO t (k, a) VALUES (3, x'00ff80ff')",
        1105,
        "schema length: 3; actual length: 4",
    );
    client.ok("CREATE TABLE w AS SELECT unhex('ff') AS x, k, a FROM t");
    assert_eq!(client.rows("SELECT HEX(a), HEX(x) FROM w ORDER BY k"), ["00FF80|FF", "41|FF"]);
    assert_eq!(
        client.rows("SELECT COUNT(*), HEX(MAX(a)), COUNT(DISTINCT a, x) FROM w WHERE x = x'ff'"),
        ["2|41|2"]
    );
}
