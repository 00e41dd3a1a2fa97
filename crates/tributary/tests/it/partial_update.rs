//! Partial updates of tables with UNIQUE KEY, by INSERT and Stream Load.

use crate::support::programs::python;
use crate::support::{Curl, LoadReply, Server};
use std::fmt::Write as _;

const TABLE: &str = "CREATE TABLE p (id INT NOT NULL, name VARCHAR(20), score INT DEFAULT \"7\", note VARCHAR(20) DEFAULT \"none\")
    UNIQUE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1
    PROPERTIES (\"replication_num\" = \"1\", \"group_commit_interval_ms\" = \"50\")";
const ALL: &str = "SELECT id, name, score, note FROM p ORDER BY id";

fn load(server: &Server, database: &str, columns: &str, headers: &[&str], body: &str) -> LoadReply {
    let request = Curl::stream_load(server, database, "p")
        .header("column_separator:,")
        .header("partial_columns:true")
        .header(&format!("columns:{columns}"));
    request.headers(headers).body(body).load()
}

#[test]
fn columns_that_are_not_named_stay_as_they_are() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok(TABLE);
    db.client.ok("INSERT INTO p VALUES (1, 'a', 10, 'x'), (2, 'b', 20, 'y')");
    db.client.ok("SET enable_unique_key_partial_update = true");
    let answer = db.client.ok("INSERT INTO p (id, score) VALUES (1, 11), (3, 31)");
    assert_eq!(answer.info_value("status"), "VISIBLE", "it shares no group");
    assert_eq!(db.client.rows(ALL), ["1|a|11|x", "2|b|20|y", "3|NULL|31|none"]);
    db.client.ok("INSERT INTO p (note, id) SELECT 'z', id FROM p WHERE id < 3");
    load(&server, &db.name, "id,name", &[], "2,bb\n3,cc\n").success();
    load(&server, &db.name, "id,s,score=s*2", &["unique_key_update_mode:UPDATE_FIXED_COLUMNS"], "3,50\n")
        .success();
    assert_eq!(db.client.rows(ALL), ["1|a|11|z", "2|bb|20|z", "3|cc|100|none"]);
    // All columns: whole rows.
    db.client.ok("INSERT INTO p (id, name, score, note) VALUES (1, 'new', DEFAULT, NULL)");
    load(&server, &db.name, "id,name,score,note", &[], "2,new,1,n\n").success();
    assert_eq!(db.client.rows(ALL), ["1|new|7|NULL", "2|new|1|n", "3|cc|100|none"]);
    db.client.ok("SET enable_unique_key_partial_update = false");
    db.client.ok("INSERT INTO p (id, name) VALUES (3, 'whole')");
    assert_eq!(db.client.rows("SELECT * FROM p WHERE id = 3"), ["3|whole|7|none"]);
    db.client.ok("UPDATE p SET score = score + 1 WHERE id = 2");
    db.client.ok("DELETE FROM p WHERE id = 3");
    load(&server, &db.name, "id,score", &[], "3,3\n2,22\n").success();
    assert_eq!(db.client.rows(ALL), ["1|new|7|NULL", "2|new|22|n", "3|NULL|3|none"]);
    load(&server, &db.name, "id,score", &["merge_type:DELETE"], "1,0\n").success();
    assert_eq!(db.client.value("SELECT COUNT(*) FROM p"), "2");
    assert_eq!(db.client.rows("DESC p").len(), 4);
}

#[test]
fn statements_of_a_transaction_are_completed_one_after_the_other() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok(TABLE);
    db.client.ok("INSERT INTO p VALUES (1, 'a', 10, 'x')");
    db.client.ok("SET enable_unique_key_partial_update = true");
    db.client.ok("BEGIN");
    db.client.ok("INSERT INTO p (id, score) VALUES (1, 13), (2, 23)");
    db.client.ok("INSERT INTO p (id, note) VALUES (1, 'y'), (2, 'z')");
    db.client.ok("COMMIT");
    assert_eq!(db.client.rows(ALL), ["1|a|13|y", "2|NULL|23|z"]);
}

#[test]
fn rows_of_many_updates_are_whole_after_kills_and_for_other_readers() {
    let mut server = Server::with_settings(&[("flush_age_ms", "300"), ("large_load_bytes", "20000")]);
    let db = server.database();
    let name = db.name.clone();
    let mut client = db.client;
    client.ok(TABLE);
    let mut body = String::new();
    for id in 0..4000 {
        writeln!(body, "{id},n{id},0,first").expect("a String takes all");
    }
    Curl::stream_load(&server, &name, "p").header("column_separator:,").body(&body).load().success();
    client.ok("SET enable_unique_key_partial_update = true");
    let mut scores = vec![0; 4000];
    for round in 1..=3 {
        // Large enough for data files of its own.
        let mut body = String::new();
        for id in (0..4000).filter(|id| id % (round + 1) == 0) {
            scores[id] = round;
            writeln!(body, "{id},{round}").expect("a String takes all");
        }
        load(&server, &name, "id,score", &[], &body).success();
        client.ok(&format!("INSERT INTO p (id, note) VALUES (6, 'r{round}'), (7, 'r{round}')"));
        server.kill();
        server.start_again();
        client = server.connect_to(&name);
        client.ok("SET enable_unique_key_partial_update = true");
        let note = |id: usize| if id == 6 || id == 7 { format!("r{round}") } else { "first".to_owned() };
        let expected: Vec<String> =
            (0..4000).map(|id| format!("{id}|n{id}|{}|{}", scores[id], note(id))).collect();
        assert_eq!(client.rows(ALL), expected, "round {round}");
    }
    assert_eq!(server.stop().code(), Some(0), "{}", server.log());
    let directory = crate::delta::delta_table(&server);
    let ids: Vec<String> = (0..4000).map(|id| id.to_string()).collect();
    python("delta_checks.py", &["deleted", &directory, &ids.join(",")]);
}

#[test]
fn what_a_partial_update_may_not_do_is_refused_in_the_words_of_doris() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok(TABLE);
    db.client.ok("INSERT INTO p VALUES (1, 'a', 10, 'x')");
    db.client.ok("CREATE TABLE d (id INT, v INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    db.client.ok("CREATE TABLE r (id INT, v INT, w INT) UNIQUE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1
            PROPERTIES (\"enable_unique_key_merge_on_write\" = \"false\")");
    db.client.ok(
        "CREATE TABLE n (id INT, id2 VARCHAR(9), v INT NOT NULL, w INT) UNIQUE KEY(id, id2) DISTRIBUTED BY HASH(id) BUCKETS 1",
    );
    db.client.ok("SET enable_unique_key_partial_update = true");
    db.client.ok("INSERT INTO n (id, id2, v, w) VALUES (1, 'k', 1, 1)");
    // Without a list of columns, rows are whole.
    db.client.ok("INSERT INTO p VALUES (1, 'a', 11, 'y')");
    assert_eq!(db.client.rows("SELECT * FROM p"), ["1|a|11|y"]);
    for (statement, message) in [
        ("INSERT INTO p (score) VALUES (1)", "Partial update should include all key columns, missing: id"),
        (
            "INSERT INTO n (id, v) VALUES (1, 2)",
            "Partial update should include all key columns, missing: id2",
        ),
        (
            "INSERT INTO p (id, __DORIS_SKIP_BITMAP_COL__) VALUES (1, 'x')",
            "Unknown column '__DORIS_SKIP_BITMAP_COL__'",
        ),
        (
            "INSERT INTO n (id, id2, w) VALUES (1, 'k', 3), (2, 'k', 3)",
            "the unmentioned column `v` should have default value or be nullable for newly inserted rows in non-strict mode \
             partial update",
        ),
        ("SET partial_update_new_key_behavior = 'skip'", "APPEND or ERROR"),
    ] {
        let error = db.client.error(statement);
        assert!(error.message.contains(message), "{statement}: {error}");
    }
    db.client.ok("SET partial_update_new_key_behavior = 'error'");
    let error = db.client.error("INSERT INTO p (id, score) VALUES (1, 5), (3, 5)");
    assert!(
        error.message.ends_with(
            "detailMessage = tablet error: [E-7003]Can't append new rows in partial update when \
             partial_update_new_key_behavior is ERROR. Row with key=[3] is not in table."
        ),
        "{error}"
    );
    let error = db.client.error("INSERT INTO n (id, id2, w) VALUES (1, 'z', 5)");
    assert!(error.message.contains("Row with key=[1, z] is not in table."), "{error}");
    db.client.ok("INSERT INTO n (id, id2, w) VALUES (1, 'k', 5)");
    // It says nothing of whole rows.
    db.client.ok("INSERT INTO p (id, name, score, note) VALUES (8, 'h', 8, 'h')");
    db.client.ok("INSERT INTO d (id) VALUES (1)");
    db.client.ok("INSERT INTO r (id, v) VALUES (1, 1)");
    db.client.ok("INSERT INTO r (id, w) VALUES (1, 2)");
    assert_eq!(
        db.client.rows("SELECT id, v, w FROM r"),
        ["1|NULL|2"],
        "a table that merges on read has whole rows"
    );
    assert_eq!(db.client.rows("SELECT * FROM n"), ["1|k|1|5"]);
    assert_eq!(db.client.rows(ALL), ["1|a|11|y", "8|h|8|h"]);

    for (columns, headers, body, message) in [
        ("score", &[][..], "1\n", "Partial update should include all key columns, missing: id"),
        (
            "id,__DORIS_SKIP_BITMAP_COL__",
            &[],
            "1,1\n",
            "Partial update should not include invisible column except delete sign column: __DORIS_SKIP_BITMAP_COL__",
        ),
        (
            "id,score",
            &["partial_update_new_key_behavior:ERROR"],
            "1,2\n4,5\n",
            "Row with key=[4] is not in table.",
        ),
        (
            "id,score",
            &["format:json", "unique_key_update_mode:UPDATE_FLEXIBLE_COLUMNS"],
            "{}",
            "Don't support flexible partial update when 'columns' is specified",
        ),
    ] {
        let headers: Vec<&str> = headers.to_vec();
        let reply = load(&server, &db.name, columns, &headers, body);
        assert!(reply.failure().contains(message), "{columns}: {}", reply.text);
    }
    for table in ["d", "r"] {
        let reply = Curl::stream_load(&server, &db.name, table)
            .header("column_separator:,")
            .header("partial_columns:true")
            .header("columns:id,v")
            .body("1,2\n")
            .load();
        assert!(
            reply.failure().contains("Only unique key merge on write support partial update"),
            "{}",
            reply.text
        );
    }
    assert_eq!(db.client.rows(ALL), ["1|a|11|y", "8|h|8|h"]);
}

#[test]
fn a_sequence_that_is_not_given_stays_and_one_that_is_decides() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok(
        "CREATE TABLE p (id INT NOT NULL, name VARCHAR(20), score INT, note VARCHAR(20), s INT) UNIQUE KEY(id)
            DISTRIBUTED BY HASH(id) BUCKETS 1 PROPERTIES (\"function_column.sequence_col\" = \"s\")",
    );
    db.client.ok("INSERT INTO p VALUES (1, 'a', 10, 'x', 5)");
    load(&server, &db.name, "id,score", &[], "1,11\n").success();
    load(&server, &db.name, "id,note,s", &[], "1,late,4\n").success();
    assert_eq!(db.client.rows("SELECT * FROM p"), ["1|a|11|x|5"]);
    load(&server, &db.name, "id,note,s", &[], "1,y,6\n").success();
    db.client.ok("INSERT INTO p VALUES (1, 'late', 0, 'late', 5)");
    assert_eq!(db.client.rows("SELECT * FROM p"), ["1|a|11|y|6"]);
}

fn flexible(server: &Server, database: &str, body: &str) -> LoadReply {
    Curl::stream_load(server, database, "p")
        .header("format:json")
        .header("unique_key_update_mode:UPDATE_FLEXIBLE_COLUMNS")
        .body(body)
        .load()
}

#[test]
fn each_row_of_a_flexible_update_gives_columns_of_its_own() {
    let server = Server::shared();
    let mut db = server.database();
    db.client
        .ok(&TABLE
            .replace("PROPERTIES (", "PROPERTIES (\"enable_unique_key_skip_bitmap_column\" = \"true\", "));
    db.client.ok("INSERT INTO p VALUES (1, 'a', 10, 'x'), (2, 'b', 20, 'y'), (3, 'c', 30, 'z')");
    let body = "{\"id\":1,\"name\":\"aa\"}\n{\"id\":2,\"score\":null,\"other\":1}\n{\"id\":3,\"__DORIS_DELETE_SIGN__\":1}\n\
                {\"id\":4,\"note\":\"new\"}\n{\"id\":1,\"score\":11}\n{\"id\":5,\"name\":\"e\",\"score\":5,\"note\":\"whole\"}\n";
    let reply = flexible(&server, &db.name, body).success();
    assert_eq!(reply.rows(), [6, 6, 0, 0]);
    let expected = ["1|aa|11|x", "2|b|NULL|y", "4|NULL|7|new", "5|e|5|whole"];
    assert_eq!(db.client.rows(ALL), expected);
    flexible(
        &server,
        &db.name,
        "{\"id\":3,\"name\":\"again\"}\n{\"id\":2,\"__DORIS_DELETE_SIGN__\":0,\"score\":2}\n",
    )
    .success();
    assert_eq!(
        db.client.rows(ALL),
        ["1|aa|11|x", "2|b|2|y", "3|again|7|none", "4|NULL|7|new", "5|e|5|whole"]
    );
    let reply = flexible(&server, &db.name, "{\"name\":\"no key\"}\n");
    assert_eq!(reply.status(), "Fail", "{}", reply.text);
    let create = db.client.rows("SHOW CREATE TABLE p").join("\n");
    assert!(create.contains("\"enable_unique_key_skip_bitmap_column\" = \"true\""), "{create}");
}

#[test]
fn a_table_is_made_ready_for_flexible_updates_by_alter_table() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok(TABLE);
    db.client.ok("INSERT INTO p VALUES (1, 'a', 10, 'x')");
    let reply = flexible(&server, &db.name, "{\"id\":1,\"score\":2}\n");
    let message = "Flexible partial update can only support table with skip bitmap hidden column. But table p doesn't have it. You can \
                   use `ALTER TABLE p ENABLE FEATURE \"UPDATE_FLEXIBLE_COLUMNS\";` to add it to the table.";
    assert!(reply.failure().contains(message), "{}", reply.message());
    db.client.ok("ALTER TABLE p ENABLE FEATURE \"UPDATE_FLEXIBLE_COLUMNS\"");
    flexible(&server, &db.name, "{\"id\":1,\"score\":2}\n").success();
    assert_eq!(db.client.rows(ALL), ["1|a|2|x"]);
    for (statement, message) in [
        (
            "ALTER TABLE p ENABLE FEATURE \"BATCH_DELETE\"",
            "Can not enable batch delete support, already supported batch delete.",
        ),
        ("ALTER TABLE p ENABLE FEATURE \"x\"", "unknown feature"),
        (
            "ALTER TABLE p SET (\"enable_unique_key_skip_bitmap_column\" = \"false\")",
            "cannot be changed by SET",
        ),
        (
            "CREATE TABLE d (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1
            PROPERTIES (\"enable_unique_key_skip_bitmap_column\" = \"true\")",
            "only support unique key table",
        ),
    ] {
        let error = db.client.error(statement);
        assert!(error.message.contains(message), "{statement}: {error}");
    }
    db.client
        .ok("CREATE TABLE n (id INT, v INT NOT NULL, w INT) UNIQUE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1
        PROPERTIES (\"enable_unique_key_skip_bitmap_column\" = \"true\")");
    let load = |body: &str| {
        Curl::stream_load(&server, &db.name, "n")
            .header("format:json")
            .header("unique_key_update_mode:UPDATE_FLEXIBLE_COLUMNS")
            .body(body)
            .load()
    };
    let reply = load("{\"id\":1,\"v\":1}\n{\"id\":2,\"w\":2}\n");
    let message = "the unmentioned column `v` should have default value or be nullable for newly inserted rows in non-strict \
                   mode flexible partial update";
    assert!(reply.failure().contains(message), "{}", reply.message());
    load("{\"id\":1,\"v\":1}\n").success();
    load("{\"id\":1,\"w\":2}\n").success();
    assert_eq!(db.client.rows("SELECT id, v, w FROM n"), ["1|1|2"]);
}

#[test]
fn rows_of_a_flexible_update_have_sequences_of_their_own() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok(
        "CREATE TABLE p (id INT NOT NULL, name VARCHAR(20), score INT) UNIQUE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1
            PROPERTIES (\"function_column.sequence_type\" = \"int\", \"enable_unique_key_skip_bitmap_column\" = \"true\")",
    );
    db.client
        .ok("INSERT INTO p (id, name, score, __DORIS_SEQUENCE_COL__) VALUES (1, 'a', 1, 5), (2, 'b', 2, 5)");
    let body = "{\"id\":1,\"score\":9,\"__DORIS_SEQUENCE_COL__\":4}\n{\"id\":2,\"score\":9}\n{\"id\":1,\"name\":\"aa\"}\n";
    flexible(&server, &db.name, body).success();
    assert_eq!(db.client.rows("SELECT * FROM p ORDER BY id"), ["1|aa|1", "2|b|9"]);
}

#[test]
fn a_column_with_on_update_has_the_time_of_each_update() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok("CREATE TABLE p (id INT NOT NULL, name VARCHAR(20), score INT,
            at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)) UNIQUE KEY(id)
        DISTRIBUTED BY HASH(id) BUCKETS 1 PROPERTIES (\"enable_unique_key_skip_bitmap_column\" = \"true\")");
    let create = db.client.rows("SHOW CREATE TABLE p").join("\n");
    let line = "`at` datetime(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)";
    assert!(create.contains(line), "{create}");
    let old = "2020-01-01 00:00:00.000";
    let reset = format!("INSERT INTO p VALUES (1, 'a', 1, '{old}'), (2, 'b', 2, '{old}')");
    let is_new = "SELECT id, at > '2024-01-01' FROM p ORDER BY id";
    db.client.ok(&reset);
    assert_eq!(db.client.rows(is_new), ["1|0", "2|0"], "it was given");
    load(&server, &db.name, "id,score", &[], "1,5\n").success();
    assert_eq!(db.client.rows(is_new), ["1|1", "2|0"]);
    assert_eq!(db.client.rows("SELECT id, name, score FROM p ORDER BY id"), ["1|a|5", "2|b|2"]);
    db.client.ok(&reset);
    load(&server, &db.name, "id,at", &[], &format!("1,{old}\n")).success();
    assert_eq!(db.client.rows(is_new), ["1|0", "2|0"], "it was given");
    db.client.ok("UPDATE p SET score = 9 WHERE id = 2");
    assert_eq!(db.client.rows(is_new), ["1|0", "2|1"]);
    db.client.ok(&format!("UPDATE p SET at = '{old}' WHERE id = 2"));
    assert_eq!(db.client.rows(is_new), ["1|0", "2|0"]);
    flexible(&server, &db.name, "{\"id\":1,\"score\":7}\n").success();
    assert_eq!(db.client.rows(is_new), ["1|1", "2|0"]);
    db.client.ok(&reset);
    db.client.ok("SET enable_unique_key_partial_update = true");
    db.client.ok("INSERT INTO p (id, name) VALUES (2, 'bb')");
    assert_eq!(db.client.rows(is_new), ["1|0", "2|1"]);
    let only =
        "'ON UPDATE CURRENT_TIMESTAMP' is only supportted in unique table with merge-on-write enabled.";
    for (table, text) in [
        (
            "(id INT, at DATETIME DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP) DUPLICATE KEY(id)",
            only,
        ),
        (
            "(id INT, at DATETIME DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP) UNIQUE KEY(id)
            PROPERTIES (\"enable_unique_key_merge_on_write\" = \"false\")",
            only,
        ),
        (
            "(id INT, at DATETIME ON UPDATE CURRENT_TIMESTAMP) UNIQUE KEY(id)",
            "needs the same DEFAULT CURRENT_TIMESTAMP",
        ),
        (
            "(id INT, at DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP) UNIQUE KEY(id)",
            "needs the same DEFAULT CURRENT_TIMESTAMP",
        ),
        (
            "(id INT, at DATETIME DEFAULT CURRENT_TIMESTAMP ON UPDATE NOW()) UNIQUE KEY(id)",
            "expected CURRENT_TIMESTAMP",
        ),
    ] {
        let error = db.client.error(&format!("CREATE TABLE x {table}"));
        assert!(error.message.contains(text), "{table}: {error}");
    }
}
