//! Tables with UNIQUE KEY, by all ways in.

use crate::support::programs::python;
use crate::support::{Curl, Server};
use std::fmt::Write as _;

const TABLE: &str = "CREATE TABLE u (id INT NOT NULL, name VARCHAR(20), score INT) UNIQUE KEY(id)
    DISTRIBUTED BY HASH(id) BUCKETS 1
    PROPERTIES (\"replication_num\" = \"1\", \"group_commit_interval_ms\" = \"50\")";

#[test]
fn the_last_row_of_a_key_stays_whichever_way_it_came_and_after_a_kill() {
    let mut server = Server::with_settings(&[("flush_age_ms", "300"), ("large_load_bytes", "20000")]);
    let mut db = server.database();
    db.client.ok(TABLE);
    let mut expected: Vec<String> = (0..3000).map(|id| format!("{id}|first|0")).collect();
    let mut body = String::new();
    for id in 0..3000 {
        writeln!(body, "{id},first,0").expect("a String takes all");
    }
    // Large enough for data files of its own.
    Curl::stream_load(&server, &db.name, "u").header("column_separator:,").body(&body).load().success();
    assert_eq!(db.client.value("SELECT COUNT(*), SUM(score) FROM u"), "3000|0");
    for (round, mode) in ["async_mode", "sync_mode", "off_mode"].into_iter().enumerate() {
        let score = round + 1;
        let ids = (0..3000).filter(|id| id % (round + 2) == 0);
        let mut body = String::new();
        for id in ids {
            expected[id] = format!("{id}|stream|{score}");
            writeln!(body, "{id},old,-1\n{id},stream,{score}").expect("a String takes all");
        }
        Curl::stream_load(&server, &db.name, "u")
            .header("column_separator:,")
            .header(&format!("group_commit:{mode}"))
            .body(&body)
            .load()
            .success();
        db.client.ok("SYNC");
        db.client.ok(&format!("SET group_commit = {mode}"));
        for id in (round..3000).step_by(500) {
            expected[id] = format!("{id}|insert|{score}");
            db.client.ok(&format!("INSERT INTO u VALUES ({id}, 'insert', {score})"));
        }
        db.client.ok("SYNC");
        assert_eq!(db.client.rows("SELECT id, name, score FROM u ORDER BY id"), expected, "{mode}");
    }
    server.kill();
    server.start_again();
    let mut client = server.connect_to(&db.name);
    assert_eq!(client.rows("SELECT id, name, score FROM u ORDER BY id"), expected);
    assert_eq!(client.value("SELECT COUNT(*) FROM u"), "3000");
    assert_eq!(server.stop().code(), Some(0), "{}", server.log());
    let directory = crate::delta::delta_table(&server);
    let ids: Vec<String> = (0..3000).map(|id| id.to_string()).collect();
    python("delta_checks.py", &["deleted", &directory, &ids.join(",")]);
}

/// Their rows are looked up in the key files.
#[test]
fn queries_of_whole_keys_find_what_is_there_now() {
    let mut server = Server::start();
    let mut db = server.database();
    db.client
        .ok("CREATE TABLE u (day DATE NOT NULL, name VARCHAR(20) NOT NULL, score INT) UNIQUE KEY(day, name)
        DISTRIBUTED BY HASH(day) BUCKETS 1");
    let row =
        |number: u32, score: u32| format!("('2026-01-{:02}', 'n{}', {score})", 1 + number % 28, number % 100);
    for (score, numbers) in [(1, 0..2000_u32), (2, 500..900), (3, 650..700)] {
        let rows: Vec<String> = numbers.map(|number| row(number, score)).collect();
        db.client.ok(&format!("INSERT INTO u VALUES {}", rows.join(",")));
        if score < 3 {
            assert_eq!(server.stop().code(), Some(0), "{}", server.log());
            server.start_again();
            db.client = server.connect_to(&db.name);
        }
    }
    db.client.ok("DELETE FROM u WHERE day = '2026-01-04' AND name = 'n3'");
    let mut expected = std::collections::BTreeMap::new();
    for (score, numbers) in [(1, 0..2000_u32), (2, 500..900), (3, 650..700)] {
        expected.extend(numbers.map(|number| ((1 + number % 28, number % 100), score)));
    }
    expected.remove(&(4, 3));
    assert_eq!(db.client.value("SELECT COUNT(*) FROM u"), expected.len().to_string());
    for (day, name) in [(1, 0), (4, 3), (20, 55), (23, 50), (7, 62), (3, 58), (9, 200)] {
        let found = db
            .client
            .rows(&format!("SELECT score FROM u WHERE name = 'n{name}' AND day = '2026-01-{day:02}'"));
        let wanted: Vec<String> = expected.get(&(day, name)).map(ToString::to_string).into_iter().collect();
        assert_eq!(found, wanted, "{day} {name}");
    }
    let names: Vec<String> = (0..30).map(|name| format!("'n{name}'")).collect();
    let found = db.client.rows(&format!(
        "SELECT name, score FROM u WHERE day IN ('2026-01-04', '2026-01-05') AND name IN ({}) ORDER BY day, LENGTH(name), name",
        names.join(",")
    ));
    let wanted: Vec<String> = expected
        .range((4, 0)..(6, 0))
        .filter(|((_, name), _)| *name < 30)
        .map(|((_, name), score)| format!("n{name}|{score}"))
        .collect();
    assert_eq!(found, wanted);
}

#[test]
fn rows_of_expressions_keep_their_order() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok(TABLE);
    for round in 0..20 {
        // The last of 600 rows of three keys, computed by several queries of many branches.
        let rows: Vec<String> =
            (0..600).map(|row| format!("({} + 0, CONCAT('r', {row}), {row} + {round})", row % 3)).collect();
        db.client.ok(&format!("INSERT INTO u VALUES {}", rows.join(", ")));
        let expected: Vec<String> =
            (597..600).map(|row| format!("{}|r{row}|{}", row % 3, row + round)).collect();
        assert_eq!(db.client.rows("SELECT id, name, score FROM u ORDER BY id"), expected, "round {round}");
    }
}

#[test]
fn what_such_a_table_cannot_do_yet_is_refused_by_name() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok(TABLE);
    db.client.ok("INSERT INTO u VALUES (1, 'a', 1)");
    let reply = Curl::stream_load(&server, &db.name, "u")
        .header("column_separator:,")
        .header("columns:id,score")
        .header("negative:true")
        .body("1,2\n")
        .load();
    assert_eq!(reply.status(), "Fail", "{}", reply.message());
    assert_eq!(db.client.rows("SELECT id, name, score FROM u"), ["1|a|1"]);
    let create = db.client.rows("SHOW CREATE TABLE u").join("\n");
    assert!(create.contains("UNIQUE KEY(`id`)\nDISTRIBUTED BY HASH(`id`)"), "{create}");
    assert_eq!(
        db.client.rows("DESC u"),
        ["id|int|No|true|NULL|", "name|varchar(20)|Yes|false|NULL|NONE", "score|int|Yes|false|NULL|NONE"]
    );
}
