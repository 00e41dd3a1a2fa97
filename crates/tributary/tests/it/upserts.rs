//! The winning row of a key in loads with sequences and deletions, and the statements that change rows. The examples are those of
//! the manual, in our own words.

use crate::support::programs::python;
use crate::support::{Client, Curl, Database, LoadReply, Server, wait_until};

/// Loads lines into a table; `headers` are added to the separator.
fn load(server: &Server, db: &Database, table: &str, headers: &[&str], body: &str) -> LoadReply {
    Curl::stream_load(server, &db.name, table).header("column_separator:,").headers(headers).body(body).load()
}

fn affected(client: &mut Client, sql: &str) -> u64 {
    client.ok(sql).affected_rows
}

const SEQUENCE_TYPE: &str =
    "CREATE TABLE st (user_id BIGINT, date DATE, group_id BIGINT, keyword VARCHAR(20))
    UNIQUE KEY(user_id, date, group_id) DISTRIBUTED BY HASH(user_id) BUCKETS 1
    PROPERTIES (\"function_column.sequence_type\" = \"date\", \"group_commit_interval_ms\" = \"50\")";

#[test]
fn the_greatest_sequence_stays_whichever_way_it_came() {
    let mut server = Server::with_settings(&[("flush_age_ms", "300")]);
    let mut db = server.database();
    db.client.ok(SEQUENCE_TYPE);
    let headers =
        ["columns:user_id,date,group_id,modify_date,keyword", "function_column.sequence_col:modify_date"];
    let body = "1,2020-02-22,1,2020-02-21,a\n1,2020-02-22,1,2020-02-22,b\n1,2020-02-22,1,2020-03-05,c\n\
                1,2020-02-22,1,2020-02-26,d\n1,2020-02-22,1,2020-02-23,e\n1,2020-02-22,1,2020-02-24,b\n";
    load(&server, &db, "st", &headers, body).success();
    let shown = "SELECT user_id, date, group_id, keyword FROM st";
    assert_eq!(db.client.rows(shown), ["1|2020-02-22|1|c"]);
    load(&server, &db, "st", &headers, "1,2020-02-22,1,2020-02-22,a\n1,2020-02-22,1,2020-02-23,b\n")
        .success();
    assert_eq!(db.client.rows(shown), ["1|2020-02-22|1|c"]);
    for mode in ["async_mode", "sync_mode", "off_mode"] {
        let group = format!("group_commit:{mode}");
        let headers = [headers[0], headers[1], &group];
        load(&server, &db, "st", &headers, "1,2020-02-22,1,2020-02-22,a\n1,2020-02-22,1,2020-03-05,w\n")
            .success();
        db.client.ok("SYNC");
        assert_eq!(db.client.rows(shown), ["1|2020-02-22|1|w"], "{mode}: of equal ones the later");
        db.client.ok(&format!("SET group_commit = {mode}"));
        let insert = "INSERT INTO st (user_id, date, group_id, keyword, __DORIS_SEQUENCE_COL__) VALUES";
        db.client.ok(&format!(
            "{insert} (1, '2020-02-22', 1, 'low', '2020-01-01'), (1, '2020-02-22', 1, 'c', '2020-03-05')"
        ));
        db.client.ok("SYNC");
        assert_eq!(db.client.rows(shown), ["1|2020-02-22|1|c"], "{mode}");
    }
    let with_sequence = "SELECT keyword, __DORIS_SEQUENCE_COL__, __doris_delete_sign__ FROM st";
    assert_eq!(db.client.rows(with_sequence), ["c|2020-03-05|0"]);
    assert_eq!(db.client.rows("SELECT * FROM st"), ["1|2020-02-22|1|c"], "hidden columns are not in *");
    assert!(!db.client.rows("DESC st").join("\n").contains("__DORIS"));
    let create = db.client.rows("SHOW CREATE TABLE st").join("\n");
    assert!(
        create.contains("\"function_column.sequence_type\" = \"date\"") && !create.contains("__DORIS"),
        "{create}"
    );
    server.kill();
    server.start_again();
    let mut client = server.connect_to(&db.name);
    assert_eq!(client.rows(shown), ["1|2020-02-22|1|c"]);
    client.ok("SET group_commit = off_mode");
    client.ok("INSERT INTO st (user_id, date, group_id, keyword, __DORIS_SEQUENCE_COL__) VALUES (1, '2020-02-22', 1, 'too late', '2020-03-04')");
    assert_eq!(client.rows(shown), ["1|2020-02-22|1|c"]);
}

#[test]
fn rows_are_deleted_by_loads_and_stay_deleted_against_smaller_sequences() {
    let server = Server::with_settings(&[("flush_age_ms", "200")]);
    let mut db = server.database();
    db.client.ok("CREATE TABLE m (name VARCHAR(10), gender VARCHAR(10), age INT) UNIQUE KEY(name) DISTRIBUTED BY HASH(name) BUCKETS 1");
    let shown = "SELECT name, gender, age FROM m ORDER BY name";
    let people = "li,male,10\nwang,male,14\nzhang,male,12\n";
    load(&server, &db, "m", &["columns:name,gender,age", "merge_type:append"], people).success();
    load(&server, &db, "m", &["columns:name,gender,age", "merge_type:delete"], "li,male,10\nnobody,male,1\n")
        .success();
    assert_eq!(db.client.rows(shown), ["wang|male|14", "zhang|male|12"]);
    let merge = ["columns:name,gender,age", "merge_type:MERGE", "delete:name='wang' or age > 40 -- both"];
    let reply = load(&server, &db, "m", &merge, "li,male,10\nwang,male,14\nzhao,female,41\n");
    assert_eq!(reply.success().rows()[1], 3, "rows that delete are loaded");
    assert_eq!(db.client.rows(shown), ["li|male|10", "zhang|male|12"]);
    load(&server, &db, "m", &["hidden_columns:__DORIS_DELETE_SIGN__"], "li,male,10,1\nqian,female,3,0\n")
        .success();
    load(&server, &db, "m", &["columns:name,age,__DORIS_DELETE_SIGN__"], "zhang,1,1\n").success();
    assert_eq!(db.client.rows(shown), ["qian|female|3"]);
    let json = Curl::stream_load(&server, &db.name, "m")
        .header("format:json")
        .header("read_json_by_line:true")
        .header("hidden_columns:__DORIS_DELETE_SIGN__")
        .body("{\"name\":\"qian\",\"__DORIS_DELETE_SIGN__\":1}\n{\"name\":\"wu\",\"age\":5,\"__DORIS_DELETE_SIGN__\":0}\n");
    json.load().success();
    db.client.ok("INSERT INTO m (name, age, __DORIS_DELETE_SIGN__) VALUES ('wu', 5, 1), ('zheng', 6, 0)");
    assert_eq!(db.client.rows(shown), ["zheng|NULL|6"]);

    db.client
        .ok("CREATE TABLE s (k INT, v VARCHAR(10), ver INT) UNIQUE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1
         PROPERTIES (\"function_column.sequence_col\" = \"ver\")");
    db.client.ok("INSERT INTO s VALUES (1, 'a', 5), (2, 'b', 5), (3, 'c', 5)");
    load(&server, &db, "s", &["merge_type:delete"], "1,x,6\n2,x,4\n").success();
    assert_eq!(db.client.rows("SELECT k, v FROM s ORDER BY k"), ["2|b", "3|c"]);
    wait_until("the deletions are flushed", || server.metric("tributary_flushed_rows_total ") >= 3.0);
    db.client.ok("INSERT INTO s VALUES (1, 'too late', 5)");
    assert_eq!(db.client.rows("SELECT k, v FROM s ORDER BY k"), ["2|b", "3|c"]);
    db.client.ok("INSERT INTO s VALUES (1, 'again', 6)");
    assert_eq!(db.client.rows("SELECT k, v FROM s ORDER BY k"), ["1|again", "2|b", "3|c"]);
}

#[test]
fn update_and_delete_change_the_rows_that_they_find() {
    let mut server = Server::with_settings(&[("flush_age_ms", "200")]);
    let mut db = server.database();
    db.client.ok(
        "CREATE TABLE u (id INT NOT NULL, name VARCHAR(20) NOT NULL, score INT DEFAULT \"7\") UNIQUE KEY(id)
         DISTRIBUTED BY HASH(id) BUCKETS 1",
    );
    db.client.ok("CREATE TABLE d (id INT, by_how_much INT) DUPLICATE KEY(id)");
    let values: Vec<String> = (0..100).map(|id| format!("({id}, 'n{id}', {id})")).collect();
    db.client.ok(&format!("INSERT INTO u VALUES {}", values.join(",")));
    let updated = affected(
        &mut db.client,
        "UPDATE u SET score = score + 1000, name = CONCAT(name, '!') WHERE id BETWEEN 10 AND 19",
    );
    assert_eq!(updated, 10);
    assert_eq!(db.client.value("SELECT COUNT(*), SUM(score), SUM(name LIKE '%!') FROM u"), "100|14950|10");
    assert_eq!(affected(&mut db.client, "UPDATE u AS x SET x.score = DEFAULT WHERE x.id = 3"), 1);
    assert_eq!(db.client.value("SELECT score FROM u WHERE id = 3"), "7");
    db.client.ok("INSERT INTO d VALUES (20, 5), (21, 6), (999, 1)");
    assert_eq!(
        affected(&mut db.client, "UPDATE u SET score = u.score + d.by_how_much FROM d WHERE u.id = d.id"),
        2
    );
    assert_eq!(
        db.client.rows("SELECT id, score FROM u WHERE id IN (20, 21, 22) ORDER BY id"),
        ["20|25", "21|27", "22|22"]
    );
    // As MySQL writes them.
    for (joined, count) in [
        ("UPDATE u INNER JOIN d ON u.id = d.id SET u.score = u.score + 0 WHERE d.by_how_much > 5", 1),
        ("UPDATE u x, (SELECT id FROM d) AS y SET x.score = x.score + 0 WHERE x.id = y.id", 2),
        ("DELETE u FROM u JOIN d ON u.id = d.id JOIN d e ON d.id = e.id WHERE e.by_how_much > 500", 0),
    ] {
        assert_eq!(affected(&mut db.client, joined), count, "{joined}");
    }
    assert_eq!(affected(&mut db.client, "DELETE FROM u WHERE id >= 50 AND name <> 'n60'"), 49);
    assert_eq!(
        affected(&mut db.client, "DELETE FROM u x USING d WHERE x.id = d.id AND d.by_how_much > 5"),
        1
    );
    assert_eq!(db.client.value("SELECT COUNT(*), MAX(id) FROM u"), "50|60");
    assert_eq!(affected(&mut db.client, "DELETE FROM u WHERE id = 60 AND 1 = 0"), 0);
    for (statement, text) in [
        ("UPDATE u SET id = 1 WHERE id = 2", "Only value columns of unique table could be updated"),
        ("UPDATE u SET nothing = 1", "unknown column in assignment list: nothing"),
        ("UPDATE u SET y.score = 1", "column in assignment list is invalid, y.score"),
        (
            "UPDATE u SET __DORIS_DELETE_SIGN__ = 1",
            "unknown column in assignment list: __DORIS_DELETE_SIGN__",
        ),
        ("UPDATE u SET score = 1, score = 2", "Column 'score' specified twice"),
        ("UPDATE u SET score = 1 LIMIT 1", "UPDATE with LIMIT"),
        ("UPDATE u, d SET d.by_how_much = 1", "column in assignment list is invalid, d.by_how_much"),
        ("UPDATE u LEFT JOIN d ON u.id = d.id SET score = 1", "UPDATE with an outer join of its table"),
        ("UPDATE u SET name = NULL WHERE id = 1", "null value for not null column"),
        ("DELETE FROM d", "delete command must contain filter"),
    ] {
        let error = db.client.error(statement);
        assert!(error.message.contains(text), "{statement}: {error}");
    }
    assert_eq!(
        db.client.value("SELECT name FROM u WHERE id = 1"),
        "n1",
        "a statement that failed has changed nothing"
    );
    server.kill();
    server.start_again();
    let mut client = server.connect_to(&db.name);
    assert_eq!(client.value("SELECT COUNT(*), MAX(id) FROM u"), "50|60");
    assert_eq!(affected(&mut client, "DELETE FROM u"), 50);
    assert_eq!(client.value("SELECT COUNT(*) FROM u"), "0");
}

#[test]
fn updates_of_one_table_lose_nothing_of_each_other() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok("CREATE TABLE c (id INT, n INT) UNIQUE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    db.client.ok("INSERT INTO c VALUES (1, 0), (2, 0)");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let mut client = server.connect_to(&db.name);
            scope.spawn(move || (0..25).for_each(|_| drop(client.ok("UPDATE c SET n = n + 1"))));
        }
    });
    assert_eq!(db.client.rows("SELECT id, n FROM c ORDER BY id"), ["1|100", "2|100"]);
}

#[test]
fn other_readers_see_one_row_for_each_key_and_no_hidden_column() {
    let mut server = Server::with_settings(&[]);
    let mut db = server.database();
    db.client.ok("CREATE TABLE s (id INT, v VARCHAR(10)) UNIQUE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1
         PROPERTIES (\"function_column.sequence_type\" = \"bigint\")");
    let insert = "INSERT INTO s (id, v, __DORIS_SEQUENCE_COL__, __DORIS_DELETE_SIGN__) VALUES";
    let values: Vec<String> = (0..50).map(|id| format!("({id}, 'a', 10, 0)")).collect();
    db.client.ok(&format!("{insert} {}", values.join(",")));
    let values: Vec<String> = (0..30).map(|id| format!("({id}, 'b', {}, {})", id, id % 2)).collect();
    db.client.ok(&format!("{insert} {}", values.join(",")));
    let ids: Vec<String> =
        (0..50).filter(|id| *id < 10 || id % 2 == 0 || *id >= 30).map(|id| id.to_string()).collect();
    assert_eq!(db.client.rows("SELECT id FROM s ORDER BY id"), ids);
    assert_eq!(server.stop().code(), Some(0), "{}", server.log());
    let directory = crate::delta::delta_table(&server);
    python("delta_checks.py", &["deleted", &directory, &ids.join(",")]);
}

#[test]
fn what_does_not_fit_a_sequence_or_a_deletion_is_refused() {
    let server = Server::shared();
    let mut db = server.database();
    for (keys, properties, text) in [
        (
            "DUPLICATE KEY(k)",
            "\"function_column.sequence_col\" = \"v\"",
            "sequence column only support UNIQUE_KEYS",
        ),
        (
            "UNIQUE KEY(k)",
            "\"function_column.sequence_col\" = \"s\"",
            "Sequence type only support integer types and date types",
        ),
        (
            "UNIQUE KEY(k)",
            "\"function_column.sequence_type\" = \"varchar\"",
            "sequence type only support integer types and date types",
        ),
        (
            "UNIQUE KEY(k)",
            "\"function_column.sequence_col\" = \"x\"",
            "The specified sequence column[x] not exists",
        ),
        (
            "UNIQUE KEY(k)",
            "\"function_column.sequence_col\" = \"v\", \"function_column.sequence_type\" = \"int\"",
            "The sequence_col and sequence_type cannot be set at the same time",
        ),
    ] {
        let error = db
            .client
            .error(&format!("CREATE TABLE t (k INT, v INT, s VARCHAR(5)) {keys} PROPERTIES ({properties})"));
        assert!(error.message.contains(text), "{error}");
    }
    let error = db.client.error("CREATE TABLE t (k INT, __doris_x INT) UNIQUE KEY(k)");
    assert!(
        error.message.contains("Disable to create table column with name start with __DORIS_: __DORIS_X"),
        "{error}"
    );

    db.client.ok(SEQUENCE_TYPE);
    db.client.ok("CREATE TABLE sc (k INT, v INT, ver INT) UNIQUE KEY(k) PROPERTIES (\"function_column.sequence_col\" = \"ver\")");
    db.client.ok("CREATE TABLE p (k INT, v INT) UNIQUE KEY(k)");
    db.client.ok("CREATE TABLE d (k INT, v INT) DUPLICATE KEY(k)");
    let needs = "has sequence column, need to specify the sequence column";
    for (statement, text) in [
        ("INSERT INTO st VALUES (1, '2020-01-01', 1, 'a')", needs),
        ("INSERT INTO st (user_id, keyword) VALUES (1, 'a')", needs),
        ("INSERT INTO sc (k, v) VALUES (1, 2)", needs),
        ("INSERT INTO sc (k, v) SELECT 1, 2", needs),
        (
            "ALTER TABLE sc DROP COLUMN ver",
            "Can not drop sequence mapping column[ver] in Unique data model table[sc]",
        ),
        ("ALTER TABLE sc DROP COLUMN __DORIS_DELETE_SIGN__", "Column does not exists: __DORIS_DELETE_SIGN__"),
        (
            "ALTER TABLE sc SET (\"function_column.sequence_col\" = \"v\")",
            "cannot be changed after CREATE TABLE",
        ),
        ("SELECT __DORIS_SEQUENCE_COL__ FROM p", "__doris_sequence_col__"),
        ("SELECT __DORIS_DELETE_SIGN__ FROM d", "__doris_delete_sign__"),
    ] {
        let error = db.client.error(statement);
        assert!(error.message.to_lowercase().contains(&text.to_lowercase()), "{statement}: {error}");
    }
    for (table, headers, text) in [
        ("st", &[][..], needs),
        (
            "st",
            &["function_column.sequence_col:nothing"],
            "There is no sequence column nothing in the st or the COLUMNS and SET clause",
        ),
        ("sc", &["columns:k,v"], needs),
        ("sc", &["function_column.sequence_col:v"], "is not the sequence column of table sc, which is ver"),
        ("p", &["function_column.sequence_col:v"], "There is no sequence column in the table p"),
        ("d", &["merge_type:delete"], "load by MERGE or DELETE is only supported in unique tables."),
        ("p", &["merge_type:merge"], "Excepted DELETE ON clause when merge type is MERGE."),
        ("p", &["delete:k=1"], "Not support DELETE ON clause when merge type is not MERGE."),
        ("p", &["merge_type:upsert"], "Invalid merge type upsert"),
    ] {
        let reply = load(&server, &db, table, headers, "1,2,3\n");
        assert!(reply.failure().contains(text), "{table} {headers:?}: {}", reply.text);
    }
    // The column takes the load's time by default; the session may allow its absence.
    db.client.ok("SET require_sequence_in_insert = false");
    db.client.ok("INSERT INTO sc (k, v) VALUES (1, 2)");
    db.client.ok("ALTER TABLE sc RENAME COLUMN ver version");
    let create = db.client.rows("SHOW CREATE TABLE sc").join("\n");
    assert!(create.contains("\"function_column.sequence_col\" = \"version\""), "{create}");
    db.client.ok("ALTER TABLE sc ADD COLUMN more INT DEFAULT \"4\"");
    db.client.ok("INSERT INTO sc VALUES (1, 3, 0, 5)");
    assert_eq!(db.client.rows("SELECT * FROM sc"), ["1|3|0|5"], "NULL is less than any value");
    let shown = "SELECT COUNT(*) FROM information_schema.columns WHERE column_name LIKE '\\_\\_DORIS%'";
    assert_eq!(db.client.value(shown), "0");
}

#[test]
fn the_sequence_may_be_a_field_that_the_table_does_not_have() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok("CREATE TABLE q (id INT, v VARCHAR(10)) UNIQUE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1
         PROPERTIES (\"function_column.sequence_type\" = \"bigint\")");
    let common = ["columns: id, v, n", "function_column.sequence_col: n"];
    for (number, (format, body)) in [
        ("format: csv", "1,new,5\n1,old,4\n"),
        ("format: json", "{\"id\":1,\"v\":\"new\",\"n\":5}\n{\"id\":1,\"v\":\"old\",\"n\":4}\n"),
    ]
    .into_iter()
    .enumerate()
    {
        db.client.ok("TRUNCATE TABLE q");
        let headers = [common[0], common[1], format];
        load(&server, &db, "q", &headers, body).success();
        assert_eq!(db.client.rows("SELECT id, v FROM q"), ["1|new"], "{number}: {format}");
    }
}

#[test]
fn a_mapped_sequence_is_shown_by_its_hidden_name() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok("CREATE TABLE m (k INT, v INT, ver BIGINT) UNIQUE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1
        PROPERTIES ('function_column.sequence_col' = 'ver')");
    db.client.ok("INSERT INTO m VALUES (1, 10, 5), (1, 11, 4), (2, 20, 7)");
    let shown = "SELECT k, __DORIS_SEQUENCE_COL__, v FROM m ORDER BY k";
    assert_eq!(db.client.rows(shown), ["1|5|10", "2|7|20"]);
    assert_eq!(db.client.rows("SELECT k FROM m WHERE __doris_sequence_col__ > 5"), ["2"]);
    assert_eq!(db.client.rows("SELECT * FROM m ORDER BY k"), ["1|10|5", "2|20|7"]);
    db.client.ok("SET enable_fold_nondeterministic_fn = true");
    let variable = db.client.rows("SHOW VARIABLES LIKE 'enable_fold_nondeterministic_fn'");
    assert!(variable[0].starts_with("enable_fold_nondeterministic_fn|true"), "{variable:?}");
    assert_eq!(db.client.rows(shown), ["1|5|10", "2|7|20"]);
}
