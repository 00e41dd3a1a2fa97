//! Refusals of tables with UNIQUE KEY and AGGREGATE KEY, in Doris's words: of DDL, DELETE, UPDATE and loads. Texts of sequences,
//! partial updates and partitions are in tests of their own.

use crate::support::{Curl, Server};

#[test]
fn keys_of_types_that_cannot_be_keys_are_refused() {
    let server = Server::shared();
    let mut db = server.database();
    for (columns, text) in [
        ("k FLOAT, v INT) UNIQUE KEY(k)", "Float or double can not used as a key, use decimal instead."),
        ("k DOUBLE, v INT) UNIQUE KEY(k)", "Float or double can not used as a key, use decimal instead."),
        ("k STRING, v INT) UNIQUE KEY(k)", "String Type should not be used in key column[k]."),
        ("k JSON, v INT) UNIQUE KEY(k)", "JsonType type should not be used in key column[k]."),
        ("k STRING, v INT SUM) AGGREGATE KEY(k)", "String Type should not be used in key column[k]."),
        ("k VARIANT, v INT) UNIQUE KEY(k)", "Variant type should not be used in key column[k]."),
        (
            "k ARRAY<INT>, v INT) UNIQUE KEY(k)",
            "Array can only be used in the non-key column of the duplicate table at present.",
        ),
        (
            "k MAP<INT, INT>, v INT SUM) AGGREGATE KEY(k)",
            "Map can only be used in the non-key column of the duplicate table at present.",
        ),
        (
            "k STRUCT<a:INT>, v INT) UNIQUE KEY(k)",
            "Struct can only be used in the non-key column of the duplicate table at present.",
        ),
        ("k BITMAP, v INT) UNIQUE KEY(k)", "Key column can not set complex type:k"),
        ("k HLL, v INT SUM) AGGREGATE KEY(k)", "Key column can not set complex type:k"),
        (
            "k INT, v INT) DUPLICATE KEY(k) PROPERTIES (\"enable_unique_key_merge_on_write\" = \"true\")",
            "enable_unique_key_merge_on_write property only support unique key table",
        ),
        ("k INT SUM, v INT) UNIQUE KEY(k)", "Key column k can not set aggregation type"),
        (
            "k INT, v INT) UNIQUE KEY(k) DISTRIBUTED BY RANDOM",
            "Should not be distributed by random when keys type is unique",
        ),
        (
            "k INT, v INT) UNIQUE KEY(k) DISTRIBUTED BY HASH(v) BUCKETS 1",
            "Distribution column[v] is not key column",
        ),
        (
            "k INT, v INT) UNIQUE KEY(k) PARTITION BY RANGE(v) (PARTITION p VALUES LESS THAN ('1')) DISTRIBUTED BY HASH(k) BUCKETS 1",
            "Merge-on-Write table's partition column must be KEY column",
        ),
        (
            "k INT, v INT SUM) AGGREGATE KEY(k) PARTITION BY RANGE(v) (PARTITION p VALUES LESS THAN ('1')) DISTRIBUTED BY HASH(k) BUCKETS 1",
            "The partition column could not be aggregated column",
        ),
        (
            "k INT, v INT) UNIQUE KEY(k) PROPERTIES (\"enable_unique_key_merge_on_write\" = \"perhaps\")",
            "enable_unique_key_merge_on_write must be 'true' or 'false', not 'perhaps'",
        ),
        (
            "k INT, v INT SUM) AGGREGATE KEY(k) PROPERTIES (\"store_row_column\" = \"true\")",
            "Aggregate table can't support row column now",
        ),
    ] {
        let error = db.client.error(&format!("CREATE TABLE t ({columns}"));
        assert!(error.message.contains(text), "{columns}: {error}");
    }
}

#[test]
fn changes_of_columns_that_rows_need_are_refused() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok("CREATE TABLE sc (k INT, v INT, ver INT) UNIQUE KEY(k) PROPERTIES (\"function_column.sequence_col\" = \"ver\")");
    for (statement, text) in [
        ("ALTER TABLE sc MODIFY COLUMN ver BIGINT", "Can not alter sequence column[ver]"),
        (
            "ALTER TABLE sc ENABLE FEATURE \"SEQUENCE_LOAD\" WITH PROPERTIES (\"function_column.sequence_type\" = \"Date\")",
            "Can not enable sequence column support, already supported sequence column.",
        ),
        ("ALTER TABLE sc DROP COLUMN k", "Can not drop key column in Unique data model table"),
        (
            "ALTER TABLE sc ADD COLUMN __DORIS_X INT",
            "Disable to create table column with name start with __DORIS_: __DORIS_X",
        ),
    ] {
        let error = db.client.error(statement);
        assert!(error.message.contains(text), "{statement}: {error}");
    }
}

#[test]
fn rows_of_an_aggregated_table_are_deleted_by_plain_conditions_on_its_keys() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok(
        "CREATE TABLE a (k INT, d DATE, v BIGINT SUM) AGGREGATE KEY(k, d) DISTRIBUTED BY HASH(k) BUCKETS 1",
    );
    db.client.ok("CREATE TABLE u (k INT) DUPLICATE KEY(k)");
    let rows: Vec<String> = (0..20).map(|k| format!("({k}, '2026-01-{:02}', {k})", k + 1)).collect();
    db.client.ok(&format!("INSERT INTO a VALUES {}, (NULL, NULL, 7)", rows.join(", ")));
    let value = "delete predicate on value column only supports Unique table with merge-on-write enabled and Duplicate table, \
                 but Table[a] is an Aggregate table.";
    let form = "Where clause only supports compound predicate, binary predicate, is_null predicate or in predicate. But we meet ";
    let list = (0..1025).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
    for (condition, text) in [
        ("", "delete command must contain filter"),
        ("WHERE v = 1", value),
        ("WHERE k = 1 AND v IS NULL", value),
        ("WHERE v IN (1, 2)", value),
        ("WHERE k = 1 OR k = 2", form),
        ("WHERE k LIKE '1%'", form),
        ("WHERE k IN (SELECT k FROM u)", form),
        ("WHERE TRUE", form),
        (
            "WHERE k + 1 = 2",
            "Left expr of binary predicate should be column name, predicate: k + 1 = 2, left expr type:",
        ),
        ("WHERE 1 = k", "Left expr of binary predicate should be column name"),
        (
            "WHERE k = d",
            "Right expr of binary predicate should be value, predicate: k = d, right expr type:SlotReference",
        ),
        ("WHERE k > (SELECT MAX(k) FROM u)", "Right expr of binary predicate should be value"),
        (
            "WHERE (k + 1) IS NULL",
            "Child expr of is_null predicate should be column name, predicate: (k + 1) IS NULL",
        ),
        ("WHERE k IN (1, d)", "Child of in predicate should be value, but get d"),
        ("WHERE nothing = 1", "Unknown column 'nothing'"),
        ("WHERE u.k = 1", "Unknown column 'u.k'"),
        (
            "USING u WHERE a.k = u.k",
            "is for tables with UNIQUE KEY or DUPLICATE KEY, but Table[a] is an Aggregate table",
        ),
        (&format!("WHERE k IN ({list})"), "Element num of in predicate should not be more than 1024"),
    ] {
        let error = db.client.error(&format!("DELETE FROM a {condition}"));
        assert!(error.message.contains(text), "{condition}: {error}");
    }
    assert_eq!(db.client.value("SELECT COUNT(*) FROM a"), "21");
    let mut delete = |condition: &str| {
        db.client.ok(&format!("DELETE FROM a {condition}"));
        db.client.value("SELECT COUNT(*), SUM(v) FROM a")
    };
    assert_eq!(delete("WHERE FALSE"), "21|197");
    assert_eq!(delete("WHERE k = 3 AND d = '2026-01-04'"), "20|194");
    assert_eq!(delete("WHERE k = 4 AND d = '2026-01-04'"), "20|194");
    assert_eq!(delete("AS x WHERE x.k IN (0, 1, 99)"), "18|193");
    assert_eq!(delete("WHERE d >= '2026-01-10' AND (NOT k = 12)"), "8|51");
    assert_eq!(delete("WHERE k BETWEEN 5 AND 3 + 3 AND d IS NOT NULL"), "6|40");
    assert_eq!(delete("WHERE d IS NULL"), "5|33");
    assert_eq!(delete("WHERE k NOT IN (2, 4)"), "2|6");
}

#[test]
fn a_deleted_key_of_an_aggregated_table_starts_over_even_after_a_kill() {
    let mut server = Server::with_settings(&[("flush_age_ms", "300")]);
    let mut db = server.database();
    db.client.ok("CREATE TABLE a (k INT, s BIGINT SUM, hi INT MAX, r VARCHAR(9) REPLACE) AGGREGATE KEY(k)
        DISTRIBUTED BY HASH(k) BUCKETS 1 PROPERTIES (\"group_commit_interval_ms\" = \"20\")");
    for round in 1..=4 {
        let rows: Vec<String> = (0..100).map(|k| format!("({k}, 10, {round}, 'r{round}')")).collect();
        db.client.ok(&format!("INSERT INTO a VALUES {}", rows.join(", ")));
        assert_eq!(
            db.client.ok(&format!("DELETE FROM a WHERE k >= {} AND k < 50", round * 10)).affected_rows,
            50 - round * 10
        );
        db.client.ok(&format!("INSERT INTO a VALUES (20, 1, 0, 'new{round}')"));
    }
    let shown = "SELECT k, s, hi, r FROM a WHERE k IN (5, 15, 20, 35, 49, 77) ORDER BY k";
    let expected = ["5|40|4|r4", "15|30|4|r4", "20|23|4|new4", "35|10|4|r4", "77|40|4|r4"];
    assert_eq!(db.client.rows(shown), expected);
    server.kill();
    server.start_again();
    let mut client = server.connect_to(&db.name);
    assert_eq!(client.rows(shown), expected);
    client.ok("BEGIN");
    client.ok("INSERT INTO a VALUES (1, 1, 1, 'x')");
    let error = client.error("DELETE FROM a WHERE k = 1");
    assert!(error.message.contains("DELETE in a transaction is not supported yet"), "{error}");
    client.ok("ROLLBACK");
    assert_eq!(client.value("SELECT COUNT(*) FROM a"), "90");
}

#[test]
fn hidden_columns_and_rows_that_delete_are_shown_on_request() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok("CREATE TABLE u (k INT NOT NULL, v INT) UNIQUE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1
        PROPERTIES (\"function_column.sequence_type\" = \"int\")");
    db.client.ok("CREATE TABLE r (k INT, v INT) UNIQUE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1
        PROPERTIES (\"enable_unique_key_merge_on_write\" = \"false\")");
    db.client.ok("CREATE TABLE d (k INT, v INT) DUPLICATE KEY(k)");
    db.client.ok("INSERT INTO u (k, v, __DORIS_SEQUENCE_COL__) VALUES (1, 10, 5), (2, 20, 6), (3, 30, 7)");
    db.client.ok("INSERT INTO u (k, v, __DORIS_SEQUENCE_COL__, __DORIS_DELETE_SIGN__) VALUES (2, 21, 8, 1)");
    db.client.ok("INSERT INTO d VALUES (1, 1)");
    assert_eq!(db.client.rows("SELECT * FROM u ORDER BY k"), ["1|10", "3|30"]);
    db.client.ok("SET show_hidden_columns = true");
    assert_eq!(db.client.rows("SELECT * FROM u ORDER BY k"), ["1|10|0|5", "2|21|1|8", "3|30|0|7"]);
    assert_eq!(db.client.value("SELECT COUNT(*) FROM u"), "3", "deleted rows count");
    assert_eq!(
        db.client.rows("DESC u")[2..],
        ["__DORIS_DELETE_SIGN__|tinyint|No|false|0|NONE", "__DORIS_SEQUENCE_COL__|int|Yes|false|NULL|NONE"]
    );
    assert_eq!(db.client.rows("SELECT * FROM d"), ["1|1"]);
    assert_eq!(db.client.rows("DESC d").len(), 2);
    for (statement, text) in [
        (
            "UPDATE u SET v = 1 WHERE k = 1",
            "Update is forbidden since current session is in debug mode. Please check the following session variables: ",
        ),
        (
            "DELETE FROM u WHERE k = 1",
            "Delete is forbidden since current session is in debug mode. Please check the following session variables: ",
        ),
    ] {
        let error = db.client.error(statement);
        assert!(error.message.contains(text), "{statement}: {error}");
    }
    db.client.ok("DELETE FROM d WHERE k = 1");
    db.client.ok("SET show_hidden_columns = false");
    assert_eq!(db.client.value("SELECT COUNT(*) FROM u"), "2");
    assert_eq!(db.client.rows("DESC u").len(), 2);
    db.client.ok("INSERT INTO r VALUES (1, 1), (2, 2)");
    let error = db.client.error("DELETE FROM r");
    assert!(error.message.contains("delete all rows is forbidden temporary."), "{error}");
    db.client.ok("DELETE FROM r WHERE v = 1");
    assert_eq!(db.client.rows("SELECT * FROM r"), ["2|2"]);
    assert_eq!(db.client.rows("DESC r")[1], "v|int|Yes|false|NULL|REPLACE");
    assert_eq!(db.client.rows("DESC u")[1], "v|int|Yes|false|NULL|NONE");
    let keys = "SELECT COLUMN_KEY FROM information_schema.columns WHERE TABLE_NAME = 'u' AND TABLE_SCHEMA = DATABASE() ORDER BY ORDINAL_POSITION";
    assert_eq!(db.client.rows(keys), ["UNI", ""]);
}

#[test]
fn rows_that_update_finds_are_of_tables_without_aggregates() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok("CREATE TABLE u (k INT, v INT) UNIQUE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1");
    db.client.ok("CREATE TABLE d (k INT, v INT) DUPLICATE KEY(k)");
    db.client.ok("CREATE TABLE a (k INT, v INT SUM) AGGREGATE KEY(k)");
    for (statement, text) in [
        ("UPDATE a SET v = 1", "Only unique table could be updated."),
        ("UPDATE u SET k = 1", "Only value columns of unique table could be updated"),
        ("UPDATE u SET w = 1", "unknown column in assignment list: w"),
        ("UPDATE u SET d.v = 1", "column in assignment list is invalid, d.v"),
        ("DELETE FROM d", "delete command must contain filter"),
    ] {
        let error = db.client.error(statement);
        assert!(error.message.contains(text), "{statement}: {error}");
    }
    for (headers, text) in [
        (&["merge_type:delete", "negative:true"][..], "not support MERGE or DELETE with NEGATIVE."),
        (&["negative:true"], "Column is not SUM AggregateType. column:v"),
    ] {
        let request = Curl::stream_load(&server, &db.name, "u").header("column_separator:,");
        let reply = request.headers(headers).body("1,2\n").load();
        assert!(reply.failure().contains(text), "{headers:?}: {}", reply.text);
    }
    db.client.ok("CREATE TABLE heavy (k INT, v INT) UNIQUE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1
        PROPERTIES (\"light_schema_change\" = \"false\", \"enable_unique_key_skip_bitmap_column\" = \"true\")");
    let reply = Curl::stream_load(&server, &db.name, "heavy")
        .header("format:json")
        .header("unique_key_update_mode:UPDATE_FLEXIBLE_COLUMNS")
        .body("{\"k\":1}\n")
        .load();
    let text = "Flexible partial update can only support table with light_schema_change enabled. But table heavy's property \
                light_schema_change is false";
    assert!(reply.failure().contains(text), "{}", reply.text);
}
