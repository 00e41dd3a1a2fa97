//! Generated columns: every row has the values of their expressions, through every door and over kills.

use crate::support::programs::python;
use crate::support::{Client, Curl, LoadReply, MariaDb, Server, wait_until};
use std::fmt::Write as _;
use tributary_client::Value;

/// As in Doris's manual: a column in the middle, and one that is computed from it.
const COLUMNS: &str =
    "a INT, c DOUBLE GENERATED ALWAYS AS (abs(a + b)) NOT NULL, b INT DEFAULT \"100\", d INT AS (c + 1)";
const REST: &str = "DISTRIBUTED BY HASH(a) BUCKETS 1 PROPERTIES (\"group_commit_interval_ms\" = \"20\")";
const NOT_ALLOWED: &str = "The value specified for generated column 'c' in table 'g' is not allowed.";

fn create(client: &mut Client, keys: &str) {
    client.ok(&format!("CREATE TABLE g ({COLUMNS}) {keys} {REST}"));
}

fn load(server: &Server, database: &str, headers: &[&str], body: &str) -> LoadReply {
    let request = Curl::stream_load(server, database, "g").header("column_separator:,");
    request.headers(headers).body(body).load()
}

#[test]
fn statements_compute_values_and_may_only_say_default() {
    let server = Server::shared();
    let mut db = server.database();
    create(&mut db.client, "DUPLICATE KEY(a)");
    db.client.ok("INSERT INTO g VALUES (1, DEFAULT, 5, DEFAULT), (2, DEFAULT, -9, DEFAULT)");
    db.client.ok("INSERT INTO g (a, b) VALUES (3, 4), (4, 5)");
    db.client.ok("INSERT INTO g (c, a) VALUES (DEFAULT, 5 + 0)");
    db.client.ok("INSERT INTO g (b, a) SELECT b + 1, a + 10 FROM g WHERE a < 3");
    db.client.ok("BEGIN");
    db.client.ok("INSERT INTO g (a, b) VALUES (20, 1)");
    db.client.ok("INSERT INTO g (a, b) SELECT 21, 2");
    db.client.ok("COMMIT");
    db.client.ok("SET group_commit = async_mode");
    db.client.ok("INSERT INTO g (a, b) VALUES (30, 1)");
    db.client.ok("SYNC");
    db.client.ok("SET group_commit = off_mode");
    let address = ("127.0.0.1", server.mysql_port());
    let mut prepared = tributary_client::Client::connect(address, Some(&db.name), None).expect("connected");
    for (sql, a) in
        [("INSERT INTO g (a, b) VALUES (?, ?)", 40), ("INSERT INTO g VALUES (?, DEFAULT, ?, DEFAULT)", 41)]
    {
        let statement = prepared.prepare(sql).expect("prepared");
        for step in [0, 10] {
            let values = [Value::BigInt(a + step), Value::BigInt(2)];
            assert_eq!(prepared.execute(statement, &values).expect("inserted").affected_rows, 1);
        }
    }
    let rows = [
        "1|6|5|7",
        "2|7|-9|8",
        "3|7|4|8",
        "4|9|5|10",
        "5|105|100|106",
        "11|17|6|18",
        "12|4|-8|5",
        "20|21|1|22",
        "21|23|2|24",
        "30|31|1|32",
        "40|42|2|43",
        "41|43|2|44",
        "50|52|2|53",
        "51|53|2|54",
    ];
    assert_eq!(db.client.rows("SELECT * FROM g ORDER BY a"), rows);
    for sql in [
        "INSERT INTO g VALUES (1, 2, 3, DEFAULT)",
        "INSERT INTO g VALUES (1, NULL, 3, DEFAULT)",
        "INSERT INTO g (a, b, c) VALUES (1, 2, DEFAULT), (1, 2, 3)",
        "INSERT INTO g SELECT 1, 2, 3, 4",
        "INSERT INTO g (a, b, c) SELECT a, b, c FROM g",
        "INSERT OVERWRITE TABLE g (a, b, c) VALUES (1, 2, 3)",
        "INSERT OVERWRITE TABLE g SELECT * FROM g",
    ] {
        assert_eq!(
            db.client.error(sql).message,
            format!("errCode = 2, detailMessage = {NOT_ALLOWED}"),
            "{sql}"
        );
    }
    let refused = prepared.prepare("INSERT INTO g (a, c) VALUES (?, ?)").expect("prepared");
    let error = prepared.execute(refused, &[Value::BigInt(1), Value::BigInt(2)]).expect_err("it gives c");
    assert!(error.to_string().contains(NOT_ALLOWED), "{error}");
    assert_eq!(db.client.error("INSERT INTO g VALUES (1, 2)").number, 1058);
    let error = db.client.error("INSERT INTO g (a, b) VALUES (1, 2), (1, NULL)");
    assert!(error.message.contains("column_name[c], null value for not null column"), "{error}");
    let error = db.client.error("INSERT INTO g (a, b) VALUES (2147483647, 2147483647)");
    assert!(error.message.contains("column(d) value is incorrect"), "{error}");
    db.client.ok("SET enable_insert_strict = false");
    let answer = db.client.ok("INSERT INTO g (a, b) VALUES (2147483647, 2147483647), (60, NULL), (61, 0)");
    assert!(db.client.rows("SHOW WARNINGS")[0].contains("null value for not null column"));
    assert_eq!((answer.affected_rows, answer.warnings), (2, 1));
    assert_eq!(
        db.client.rows("SELECT a, c, d FROM g WHERE a > 60 ORDER BY a"),
        ["61|61|62", "2147483647|4294967294|NULL"]
    );
    db.client.ok("INSERT OVERWRITE TABLE g (a, b) SELECT a, b FROM g WHERE a <= 3");
    db.client.ok("INSERT OVERWRITE TABLE g (b, a) VALUES (7, 70)");
    assert_eq!(db.client.rows("SELECT * FROM g"), ["70|77|7|78"]);
}

#[test]
fn bodies_of_every_kind_are_completed() {
    let server = Server::shared();
    let mut db = server.database();
    create(&mut db.client, "DUPLICATE KEY(a)");
    let name = db.name.clone();
    load(&server, &name, &["columns:a,b"], "1,1\n2,2\n").success();
    // Fields for all columns: those for generated columns are skipped.
    load(&server, &name, &[], "3,99,3,99\n").success();
    load(&server, &name, &["columns:a,b,c,x"], "4,4,99,x\n").success();
    load(&server, &name, &["columns:x,b,a=x*5", "group_commit:async_mode"], "1,5\n").success();
    let json = r#"[{"a":6,"b":6},{"a":7},{"a":8,"b":8,"c":99,"d":99}]"#;
    load(&server, &name, &["format:json", "strip_outer_array:true"], json).success();
    load(&server, &name, &["format:json", "columns:a,b", "jsonpaths:[\"$.x\",\"$.y\"]"], r#"{"x":9,"y":9}"#)
        .success();
    let url = format!("http://127.0.0.1:{}/api/_http_stream", server.http_port());
    let stream = |columns: &str, items: &str| {
        let sql = format!(
            "sql:insert into {name}.g {columns} select {items} from http_stream('format' = 'csv', 'column_separator' = ',')"
        );
        Curl::put(&url).header(&sql).body("10,10\n").load()
    };
    stream("(a, b)", "c1, c2").success();
    stream("(b, a)", "*").success();
    let path = server.scratch().join(format!("{name}.csv"));
    std::fs::write(&path, "11,11\n").expect("written");
    let infile =
        format!("LOAD DATA LOCAL INFILE '{}' INTO TABLE {name}.g COLUMNS TERMINATED BY ','", path.display());
    MariaDb::new(&server)
        .option("--local-infile=1")
        .shows(&format!("{infile} (a, b);{infile} (x, b) SET a = x + 1;"));
    // The condition is on final values.
    let filtered = load(&server, &name, &["columns:a,b", "where:c > 25 and d < 29"], "12,12\n13,13\n14,14\n");
    assert_eq!(filtered.success().rows(), [3, 1, 0, 2]);
    let rows = [
        "1|2|1|3",
        "2|4|2|5",
        "3|6|3|7",
        "4|8|4|9",
        "5|10|5|11",
        "6|12|6|13",
        "7|107|100|108",
        "8|16|8|17",
        "9|18|9|19",
        "10|20|10|21",
        "10|20|10|21",
        "11|22|11|23",
        "12|23|11|24",
        "13|26|13|27",
    ];
    db.client.ok("SYNC");
    assert_eq!(db.client.rows("SELECT * FROM g ORDER BY a"), rows);
    for headers in ["columns:a,b,c=a", "columns:a,x,b=x,C=x"] {
        let message = load(&server, &name, &[headers], "1,1\n").failure();
        assert!(message.contains(NOT_ALLOWED), "{headers}: {message}");
    }
    for (columns, items) in [("(a, b, c)", "c1, c2, c2"), ("", "c1, c2, c1, c2"), ("", "*")] {
        let message = stream(columns, items).failure();
        assert!(message.contains(NOT_ALLOWED), "{columns} {items}: {message}");
    }
    // Rows whose generated values are illegal for their columns.
    let body = "20,20\n21,\\N\n2147483647,2147483647\n";
    let ratio = ["columns:a,b", "max_filter_ratio:0.7", "strict_mode:true"];
    let reply = load(&server, &name, &ratio, body).success();
    assert_eq!(reply.rows(), [3, 1, 2, 0]);
    let reasons = Curl::get(&reply.get("ErrorURL")).text();
    assert!(
        reasons.contains("column(c) values is null while columns is not nullable. src line [21 NULL]"),
        "{reasons}"
    );
    assert!(reasons.contains("column(d) value is incorrect while strict mode is true"), "{reasons}");
    assert!(load(&server, &name, &["columns:a,b"], body).failure().contains("too many filtered rows"));
    let loose = load(&server, &name, &["columns:a,b", "max_filter_ratio:0.7"], body).success();
    assert_eq!(loose.rows(), [3, 2, 1, 0], "what does not fit is NULL where it can be");
    assert_eq!(db.client.rows("SELECT d FROM g WHERE a > 20"), ["NULL"]);
}

#[test]
fn rows_of_keys_are_computed_anew_and_deleted_by_their_keys() {
    let server = Server::shared();
    let mut db = server.database();
    create(&mut db.client, "UNIQUE KEY(a)");
    db.client.ok("INSERT INTO g (a, b) VALUES (1, 1), (2, 2), (3, 3)");
    db.client.ok("UPDATE g SET b = b + 10 WHERE a < 3");
    assert_eq!(db.client.rows("SELECT * FROM g ORDER BY a"), ["1|12|11|13", "2|14|12|15", "3|6|3|7"]);
    for sql in ["UPDATE g SET c = 1", "UPDATE g SET b = 1, c = DEFAULT", "UPDATE g SET g.c = (SELECT 10)"] {
        assert!(db.client.error(sql).message.contains(NOT_ALLOWED), "{sql}");
    }
    db.client.ok("SET enable_unique_key_partial_update = true");
    db.client.ok("INSERT INTO g (a, b) VALUES (1, 20), (4, 4)");
    let missing =
        "Partial update should include all ordinary columns referenced by generated columns, missing: b";
    assert!(db.client.error("INSERT INTO g (a) VALUES (3)").message.contains(missing));
    db.client.ok("SET enable_unique_key_partial_update = false");
    load(&server, &db.name, &["columns:a,b", "partial_columns:true"], "2,30\n").success();
    assert!(
        load(&server, &db.name, &["columns:a", "partial_columns:true"], "2\n").failure().contains(missing)
    );
    db.client.ok("DELETE FROM g WHERE a = 3");
    load(&server, &db.name, &["columns:a,b", "merge_type:DELETE"], "4,4\n").success();
    assert_eq!(db.client.rows("SELECT * FROM g ORDER BY a"), ["1|21|20|22", "2|32|30|33"]);
    // A generated key, computed from a value that a deletion does not name.
    db.client.ok(
        "CREATE TABLE k (a INT, k INT AS (v % 10), v INT, w INT, sum INT AS (v + w)) UNIQUE KEY(a, k) DISTRIBUTED BY HASH(a) BUCKETS 1",
    );
    db.client.ok("INSERT INTO k (a, v, w) VALUES (1, 11, 1), (1, 12, 1), (1, 21, 1)");
    assert_eq!(db.client.rows("SELECT * FROM k ORDER BY k"), ["1|1|21|1|22", "1|2|12|1|13"]);
    db.client.ok("DELETE FROM k WHERE sum = 22");
    assert_eq!(db.client.rows("SELECT * FROM k"), ["1|2|12|1|13"]);
    let flexible = ["format:json", "unique_key_update_mode:UPDATE_FLEXIBLE_COLUMNS"];
    let message = load(&server, &db.name, &flexible, r#"{"a":1,"b":2}"#).failure();
    assert!(message.contains("only support table without generated columns"), "{message}");
    // Parts of a row that no generated column needs.
    db.client.ok("CREATE TABLE p (id INT, a INT, twice INT AS (a * 2), note STRING) UNIQUE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    db.client.ok("INSERT INTO p (id, a, note) VALUES (1, 1, 'x'), (2, 2, 'y')");
    db.client.ok("SET enable_unique_key_partial_update = true");
    db.client.ok("INSERT INTO p (id, a, twice) VALUES (1, 5, DEFAULT)");
    assert_eq!(db.client.rows("SELECT * FROM p ORDER BY id"), ["1|5|10|x", "2|2|4|y"]);
    db.client.ok("SET enable_unique_key_partial_update = false");
    // A sequence that is computed decides which row of a key stays.
    db.client
        .ok("CREATE TABLE q (k INT, v INT, s INT AS (v % 10)) UNIQUE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1
         PROPERTIES (\"function_column.sequence_col\" = \"s\")");
    db.client.ok("INSERT INTO q (k, v) VALUES (1, 19), (1, 21), (2, 5)");
    db.client.ok("UPDATE q SET v = 31 WHERE k = 1");
    db.client.ok("DELETE FROM q WHERE k = 2");
    assert_eq!(db.client.rows("SELECT * FROM q"), ["1|19|9"]);
    // Values that fold.
    db.client.ok(
        "CREATE TABLE f (a INT, b INT, k INT AS (a + b), r INT REPLACE_IF_NOT_NULL AS (k + 1), s INT SUM DEFAULT \"10\")
         AGGREGATE KEY(a, b, k) DISTRIBUTED BY HASH(a) BUCKETS 1",
    );
    db.client.ok("INSERT INTO f (a, b, s) VALUES (1, 2, 3)");
    db.client.ok("INSERT INTO f (a, b) VALUES (1, 2)");
    assert_eq!(db.client.rows("SELECT * FROM f"), ["1|2|3|4|13"]);
}

#[test]
fn a_generated_column_divides_its_table_into_partitions() {
    let server = Server::shared();
    let mut db = server.database();
    db.client
        .ok("CREATE TABLE g (at DATETIME NOT NULL, v INT, day DATE AS (date(at)) NOT NULL) DUPLICATE KEY(at)
         AUTO PARTITION BY RANGE (date_trunc(day, 'month')) () DISTRIBUTED BY HASH(at) BUCKETS 1");
    db.client.ok("INSERT INTO g (at, v) VALUES ('2024-01-31 23:59:59', 1), ('2024-02-01 00:00:00', 2)");
    load(&server, &db.name, &["columns:at,v"], "2024-02-02 01:02:03,3\n2024-03-01 00:00:00,4\n").success();
    let names = db.client.rows(
        "SELECT PARTITION_NAME FROM information_schema.partitions WHERE TABLE_SCHEMA = DATABASE() ORDER BY 1",
    );
    assert_eq!(names, ["p20240101000000", "p20240201000000", "p20240301000000"]);
    db.client
        .ok("INSERT OVERWRITE TABLE g PARTITION (p20240201000000) (at, v) VALUES ('2024-02-28 12:00:00', 9)");
    db.client.ok("ALTER TABLE g DROP PARTITION p20240301000000 FORCE");
    assert_eq!(db.client.rows("SELECT v, day FROM g ORDER BY v"), ["1|2024-01-31", "9|2024-02-28"]);
    db.client.ok(
        "CREATE TABLE l (id INT NOT NULL, side VARCHAR(4) AS (IF(id % 2 = 0, 'even', 'odd')) NOT NULL) UNIQUE KEY(id, side)
         PARTITION BY LIST (side) (PARTITION e VALUES IN ('even')) DISTRIBUTED BY HASH(id) BUCKETS 1",
    );
    let error = db.client.error("INSERT INTO l (id) VALUES (2), (3)");
    assert!(error.message.contains("no partition for this tuple"), "{error}");
    db.client.ok("ALTER TABLE l ADD PARTITION o VALUES IN ('odd')");
    db.client.ok("INSERT INTO l (id) VALUES (2), (3)");
    assert_eq!(db.client.rows("SELECT id FROM l PARTITION (o)"), ["3"]);
    db.client.ok("INSERT INTO l PARTITION (o) (id) VALUES (5)");
    db.client.ok("ALTER TABLE l ADD TEMPORARY PARTITION o2 VALUES IN ('odd')");
    db.client.ok("INSERT INTO l TEMPORARY PARTITION (o2) (id) VALUES (7)");
    let error = db.client.error("INSERT INTO l PARTITION (o) (id) VALUES (4)");
    assert!(error.message.contains("no partition for this tuple"), "{error}");
}

#[test]
fn definitions_show_what_is_generated_and_guard_it() {
    let server = Server::shared();
    let mut db = server.database();
    create(&mut db.client, "DUPLICATE KEY(a)");
    assert_eq!(db.client.rows("DESC g")[1], "c|double|No|false|NULL|NONE,STORED GENERATED");
    let shown = db.client.rows("SHOW CREATE TABLE g")[0].clone();
    assert!(shown.contains("`c` double AS (abs(a + b)) NOT NULL,"), "{shown}");
    let facts = db.client.rows(
        "SELECT COLUMN_NAME, EXTRA, GENERATION_EXPRESSION FROM information_schema.columns
         WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'g' ORDER BY ORDINAL_POSITION",
    );
    assert_eq!(facts, ["a||NULL", "c|STORED GENERATED|abs(a + b)", "b||NULL", "d|STORED GENERATED|c + 1"]);
    db.client.ok("CREATE TABLE copy LIKE g");
    db.client.ok("INSERT INTO copy (a, b) VALUES (1, -3)");
    assert_eq!(db.client.rows("SELECT * FROM copy"), ["1|2|-3|3"]);
    db.client.ok("CREATE TABLE made AS SELECT * FROM copy");
    assert_eq!(db.client.rows("DESC made")[1], "c|double|No|false|NULL|NONE", "rows, not expressions");
    let table =
        |column: &str| format!("CREATE TABLE x (a INT, b ARRAY<INT>, v BITMAP NOT NULL, {column}) {REST}");
    for (column, text) in [
        ("c INT AS (abs(a, 3))", "In generated column 'c', "),
        ("c INT AS (no_such_function(a))", "In generated column 'c', "),
        ("c INT AS (sum(a))", "Expression of generated column 'c' contains a disallowed function:'sum'"),
        ("c DOUBLE AS (b)", "In generated column 'c', cannot cast from array<int> to double"),
        ("c BITMAP NOT NULL AS (a)", "In generated column 'c', cannot cast from int to bitmap"),
        ("c INT AS (v)", "In generated column 'c', cannot cast from varbinary to int"),
        ("c INT AS (a + d)", "Unknown column 'd' in 'generated column function'"),
    ] {
        let error = db.client.error(&table(column));
        assert!(error.message.contains(text), "{column}: {error}");
    }
    assert_eq!(db.client.rows("SHOW TABLES"), ["copy", "g", "made"], "nothing is left of them");
    for (clause, text) in [
        ("ADD COLUMN e INT AS (a)", "Not supporting alter table add generated columns."),
        ("DROP COLUMN b", "Column 'b' has a generated column dependency on :[c]"),
        (
            "RENAME COLUMN c x",
            "Cannot rename column, because column 'c' has a generated column dependency on :[d]",
        ),
    ] {
        let error = db.client.error(&format!("ALTER TABLE g {clause}"));
        assert!(error.message.contains(text), "{clause}: {error}");
    }
    db.client.ok("INSERT INTO g (a, b) VALUES (1, 1)");
    db.client.ok("ALTER TABLE g ADD COLUMN e INT DEFAULT \"5\", RENAME COLUMN d dd");
    db.client.ok("INSERT INTO g (a, b) VALUES (2, 2)");
    assert_eq!(db.client.rows("SELECT a, c, dd, e FROM g ORDER BY a"), ["1|2|3|5", "2|4|5|5"]);
    // A heavy change of other columns, and another order.
    db.client.ok("ALTER TABLE g MODIFY COLUMN e BIGINT DEFAULT \"5\", ORDER BY (a, c, dd, e, b)");
    wait_until("the change is made", || {
        db.client.rows("SHOW ALTER TABLE COLUMN").iter().all(|job| job.contains("|FINISHED|"))
    });
    db.client.ok("INSERT INTO g (a, b) VALUES (4, 4)");
    assert_eq!(db.client.rows("SELECT * FROM g ORDER BY a"), ["1|2|3|5|1", "2|4|5|5|2", "4|8|9|5|4"]);
    db.client.ok("DELETE FROM g WHERE a = 4");
    db.client.ok("ALTER TABLE g DROP COLUMN dd");
    db.client.ok("ALTER TABLE g DROP COLUMN c");
    db.client.ok("INSERT INTO g (a, b) VALUES (3, 3)");
    assert_eq!(db.client.rows("SELECT * FROM g ORDER BY a"), ["1|5|1", "2|5|2", "3|5|3"]);
    // Beside values that the server counts.
    db.client.ok(&format!(
        "CREATE TABLE n (id BIGINT NOT NULL AUTO_INCREMENT, a INT, c INT AS (a + 1)) {}",
        REST.replace("(a)", "(id)")
    ));
    db.client.ok("INSERT INTO n (a) VALUES (7), (8)");
    assert_eq!(db.client.rows("SELECT * FROM n ORDER BY id"), ["1|7|8", "2|8|9"]);
}

#[test]
fn expressions_of_many_types_give_what_queries_give() {
    let server = Server::shared();
    let mut db = server.database();
    let columns = [
        ("s1", "VARCHAR(60)", "concat(upper(s), '-', id)"),
        ("s2", "INT", "char_length(s)"),
        ("n1", "DECIMAL(20,4)", "d * 2 + 0.5"),
        ("n2", "BIGINT", "id DIV 3"),
        ("n3", "BOOLEAN", "id > 3"),
        ("t1", "DATE", "date_add(date(t), INTERVAL 1 DAY)"),
        ("t2", "DATETIME", "date_trunc(t, 'hour')"),
        ("t3", "INT", "timestampdiff(MINUTE, '2024-01-01', t)"),
        ("j1", "VARCHAR(20)", "json_unquote(json_extract(j, '$.k'))"),
        ("a1", "INT", "element_at(ar, 1)"),
        ("a2", "ARRAY<INT>", "array_union(ar, [7])"),
        (
            "c1",
            "STRING",
            "CASE WHEN id IS NULL THEN 'none' WHEN id BETWEEN 1 AND 3 THEN 'few' ELSE 'many' END",
        ),
        ("c2", "INT", "coalesce(id, 0) + 1"),
        ("h1", "CHAR(32)", "md5(s)"),
        ("v1", "INT", "CAST(v['k'] AS INT)"),
    ];
    let mut text =
        "CREATE TABLE m (id INT, s VARCHAR(20), d DECIMAL(10,2), t DATETIME, j JSON, ar ARRAY<INT>, v VARIANT"
            .to_owned();
    for (name, data_type, expr) in columns {
        write!(text, ", {name} {data_type} AS ({expr})").expect("a String takes all");
    }
    db.client.ok(&format!("{text}) DUPLICATE KEY(id) {}", REST.replace("HASH(a)", "HASH(id)")));
    db.client.ok("INSERT INTO m (id, s, d, t, j, ar, v) VALUES
         (1, 'é', 1.25, '2024-02-29 12:34:56', '{\"k\": \"v\"}', [1, 2], '{\"k\": 5}'), (4, NULL, NULL, NULL, NULL, NULL, NULL),
         (NULL, 'abc', -7.5, '1999-12-31 23:59:59', '[]', [], '{}')");
    for (name, data_type, expr) in columns {
        let shown = if name == "a2" { format!("CAST({name} AS STRING)") } else { name.to_owned() };
        let again = match data_type {
            "ARRAY<INT>" => format!("CAST({expr} AS STRING)"),
            "DECIMAL(20,4)" => format!("CAST({expr} AS {data_type})"),
            _ => expr.to_owned(),
        };
        let stored = db.client.rows(&format!("SELECT {shown} FROM m ORDER BY id"));
        assert_eq!(stored, db.client.rows(&format!("SELECT {again} FROM m ORDER BY id")), "{name}");
    }
    // As in Doris's own tests: each is converted to its column's type before the next is computed from it.
    db.client.ok(&format!(
        "CREATE TABLE chain (a INT, c BOOLEAN AS (a), d INT AS (c + 1), e INT AS (d + 1)) {REST}"
    ));
    db.client.ok("INSERT INTO chain (a) VALUES (0), (2), (-2), (NULL)");
    assert_eq!(
        db.client.rows("SELECT * FROM chain ORDER BY a"),
        ["NULL|NULL|NULL|NULL", "-2|1|2|3", "0|0|1|2", "2|1|2|3"]
    );
    db.client.ok(&format!(
        "CREATE TABLE numbers (a INT, x DOUBLE, c INT AS (x), d DOUBLE AS (c + 0.25), e INT AS (d), f DOUBLE AS (e + 0.5)) {REST}"
    ));
    db.client.ok("INSERT INTO numbers (a, x) VALUES (1, 1.7), (2, -1.7), (3, 0), (4, NULL)");
    assert_eq!(
        db.client.rows("SELECT * FROM numbers ORDER BY a"),
        ["1|1.7|1|1.25|1|1.5", "2|-1.7|-1|-0.75|0|0.5", "3|0|0|0.25|0|0.5", "4|NULL|NULL|NULL|NULL|NULL"]
    );
    db.client.ok(&format!("CREATE TABLE large (a BIGINT, c BIGINT AS (a * a), k INT AS (7)) {REST}"));
    let error = db.client.error("INSERT INTO large (a) VALUES (4000000000), (3)");
    assert!(error.message.contains("column_name[c], the value can't be computed: "), "{error}");
    db.client.ok("SET enable_insert_strict = false");
    db.client.ok("INSERT INTO large (a) VALUES (4000000000), (3), (5000000000), (4)");
    db.client.ok("SET enable_insert_strict = true");
    let rows = ["3|9|7", "4|16|7", "4000000000|NULL|7", "5000000000|NULL|7"];
    assert_eq!(db.client.rows("SELECT * FROM large ORDER BY a"), rows);
    // The zone is that of the session or the load.
    db.client.ok(&format!("CREATE TABLE g (a BIGINT, c STRING AS (from_unixtime(a))) {REST}"));
    for zone in ["+00:00", "+08:00", "+00:00"] {
        db.client.ok(&format!("SET time_zone = '{zone}'"));
        db.client.ok("INSERT INTO g (a) VALUES (0)");
    }
    load(&server, &db.name, &["columns:a", "timezone:-01:00"], "3600\n").success();
    let [day, eight] = ["1970-01-01 00:00:00", "1970-01-01 08:00:00"];
    assert_eq!(db.client.rows("SELECT c FROM g ORDER BY c"), [day, day, day, eight]);
}

#[test]
fn values_are_there_after_kills_in_large_loads_and_for_other_readers() {
    let mut server = Server::with_settings(&[("flush_age_ms", "300"), ("large_load_bytes", "30000")]);
    let db = server.database();
    let name = db.name.clone();
    let mut client = db.client;
    client.ok(&format!(
        "CREATE TABLE g (a INT, b INT, id BIGINT AS (a * 10 + b % 7), next INT AS (id + 1)) UNIQUE KEY(a) {REST}"
    ));
    let wrong = "SELECT COUNT(*) FROM g WHERE NOT (id <=> a * 10 + b % 7) OR NOT (next <=> id + 1)";
    let mut rows = 0;
    for round in 0..3 {
        let mut body = String::new();
        for row in 0..3000 {
            writeln!(body, "{},{}", round * 10_000 + row, row * 3).expect("a String takes all");
        }
        client.ok("SET group_commit = async_mode");
        for row in 0..20 {
            client.ok(&format!("INSERT INTO g (a, b) VALUES ({}, {row})", round * 10_000 + 5000 + row));
        }
        load(&server, &name, &["columns:a,b"], &body).success();
        rows += 3020;
        server.kill();
        server.start_again();
        client = server.connect_to(&name);
        assert_eq!(client.value("SELECT COUNT(*) FROM g"), rows.to_string(), "round {round}");
        assert_eq!(client.value(wrong), "0", "round {round}");
        client.ok(&format!("UPDATE g SET b = b + 1 WHERE a % 7 = {round}"));
    }
    assert_eq!(client.value(wrong), "0");
    let expected = client.rows("SELECT id FROM g ORDER BY id");
    assert_eq!(server.stop().code(), Some(0), "{}", server.log());
    let directory = crate::delta::delta_table(&server);
    python("delta_checks.py", &["deleted", &directory, &expected.join(",")]);
}
