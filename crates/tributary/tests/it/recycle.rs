//! DROP retains objects: RECOVER brings them back, and their time ends.

use crate::support::programs::python;
use crate::support::{Client, Curl, Database, Server, wait_until};
use std::path::PathBuf;

const BIN: &str = "SHOW CATALOG RECYCLE BIN";
/// One row for each key, in partitions of a hundred.
const KEYS: &str = "CREATE TABLE keyed (id INT NOT NULL, name VARCHAR(20), n INT) UNIQUE KEY(id) \
                    PARTITION BY RANGE(id) (PARTITION low VALUES LESS THAN ('100'), PARTITION high VALUES LESS THAN ('200')) \
                    DISTRIBUTED BY HASH(id) BUCKETS 1 PROPERTIES (\"group_commit_interval_ms\" = \"100\")";
const ALL: &str = "SELECT id, name, n FROM keyed ORDER BY id";

/// Type and name of all objects of the database in the bin.
fn kept(db: &mut Database) -> Vec<String> {
    let id = id_of(&mut db.client, &db.name);
    let rows = db.client.table(BIN).rows.into_iter().map(|row| row.into_iter().map(Option::unwrap).collect());
    let rows: Vec<Vec<String>> = rows.collect();
    rows.into_iter().filter(|row| row[2] == id).map(|row| format!("{} {}", row[0], row[1])).collect()
}

/// The id of a database, found through a dropped table of it.
fn id_of(client: &mut Client, db: &str) -> String {
    client
        .ok(&format!("CREATE TABLE {db}.told (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1"));
    client.ok(&format!("DROP TABLE {db}.told"));
    let rows = client.table(&format!("{BIN} WHERE NAME = 'told' ORDER BY TableId DESC")).rows;
    let (id, table) = (rows[0][2].clone().unwrap(), rows[0][3].clone().unwrap());
    client.ok(&format!("DROP CATALOG RECYCLE BIN WHERE 'TableId' = {table}"));
    id
}

fn restart(server: &mut Server, db: &mut Database) {
    server.kill();
    server.start_again();
    db.client = server.connect_to(&db.name);
}

fn directories(server: &Server, db: &Database) -> Vec<PathBuf> {
    let inside = std::fs::read_dir(server.data().join("tables").join(&db.name));
    inside.map(|entries| entries.map(|entry| entry.unwrap().path()).collect()).unwrap_or_default()
}

#[test]
fn a_dropped_table_comes_back_with_all_that_was_acknowledged() {
    let mut server = Server::start();
    let mut db = server.database().with_dt("\"group_commit_interval_ms\" = \"100\"");
    db.client.ok("INSERT INTO dt VALUES (1, 'off', 1)");
    db.client.ok("SET group_commit = sync_mode");
    db.client.ok("INSERT INTO dt VALUES (2, 'sync', 2)");
    db.client.ok("SET group_commit = async_mode");
    db.client.ok("INSERT INTO dt VALUES (3, 'async', 3)");
    db.client.ok("DROP TABLE dt");
    let of_table = "SELECT id, name FROM dt ORDER BY id";
    for _ in 0..2 {
        assert!(db.client.rows("SHOW TABLES").is_empty());
        assert_eq!(db.client.error(of_table).number, 1146);
        assert_eq!(kept(&mut db), ["Table dt"]);
        restart(&mut server, &mut db);
    }
    db.client.ok("RECOVER TABLE dt");
    for _ in 0..2 {
        assert_eq!(db.client.rows(of_table), ["1|off", "2|sync", "3|async"]);
        assert!(kept(&mut db).is_empty());
        restart(&mut server, &mut db);
    }
    db.client.ok("INSERT INTO dt VALUES (4, 'later', 4)");
    restart(&mut server, &mut db);
    assert_eq!(db.client.rows(of_table), ["1|off", "2|sync", "3|async", "4|later"]);
}

#[test]
fn names_are_free_meanwhile_and_ids_tell_tables_of_one_name_apart() {
    let server = Server::start();
    let mut db = server.database();
    let make = |client: &mut Client, value: i32| {
        client.ok("CREATE TABLE t (id BIGINT NOT NULL AUTO_INCREMENT, v INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
        client.ok(&format!("INSERT INTO t (v) VALUES ({value})"));
    };
    for value in [1, 2] {
        make(&mut db.client, value);
        db.client.ok("DROP TABLE t");
    }
    make(&mut db.client, 3);
    let taken = db.client.error("RECOVER TABLE t");
    assert_eq!((taken.number, taken.message.contains("Table 't' already exists")), (1050, true), "{taken}");
    assert_eq!(db.client.error("RECOVER TABLE t AS `a b`").number, 1103);
    db.client.ok("RECOVER TABLE t AS second");
    assert_eq!(db.client.value("SELECT v FROM second"), "2", "the one that was dropped last");
    let rows = db.client.table(&format!("{BIN} WHERE NAME LIKE 't'")).rows;
    let id = rows[0][3].clone().unwrap();
    let gone = db.client.error(&format!("RECOVER TABLE t {id}1 AS first"));
    let text = format!("Unknown table 't' or table id '{id}1' in {}", db.name);
    assert!(gone.message.contains(&text), "{gone}");
    db.client.ok(&format!("RECOVER TABLE {}.t {id} AS first", db.name));
    assert_eq!(db.client.value("SELECT v FROM first"), "1");
    let before: i64 = db.client.value("SELECT id FROM first").parse().unwrap();
    db.client.ok("INSERT INTO first (v) VALUES (7)");
    let after: i64 = db.client.value("SELECT id FROM first WHERE v = 7").parse().unwrap();
    assert!(after > before, "values go on: {before}, {after}");
    let none = db.client.error("RECOVER TABLE t AS fourth");
    assert!(none.message.contains("Unknown table 't' or table id '-1' in"), "{none}");
    assert_eq!(db.client.error("RECOVER TABLE nowhere.t").number, 1049);
}

#[test]
fn a_dropped_database_comes_back_with_its_tables_and_views() {
    let mut server = Server::start();
    let mut db = server.database().with_dt("");
    db.client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    db.client.ok("CREATE VIEW v AS SELECT id FROM dt");
    db.client.ok("CREATE TABLE earlier (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    db.client.ok("DROP TABLE earlier");
    let name = db.name.clone();
    db.client.ok(&format!("DROP DATABASE {name}"));
    db.client.ok(&format!("CREATE DATABASE {name}"));
    db.client.ok(&format!("USE {name}"));
    assert!(db.client.rows("SHOW TABLES").is_empty());
    let types = |client: &mut Client| -> Vec<String> {
        client.table(BIN).rows.into_iter().map(|row| row[0].clone().unwrap()).collect()
    };
    for _ in 0..2 {
        assert_eq!(types(&mut db.client), ["Database", "Table", "Table"]);
        let taken = db.client.error(&format!("RECOVER DATABASE {name}"));
        assert!(taken.message.contains(&format!("Database[{name}] already exist.")), "{taken}");
        restart(&mut server, &mut db);
    }
    let wrong = db.client.error(&format!("RECOVER DATABASE {name} 99999 AS again"));
    assert!(wrong.message.contains(&format!("Unknown database '{name}' or database id '99999'")), "{wrong}");
    db.client.ok(&format!("RECOVER DATABASE {name} AS again"));
    for _ in 0..2 {
        assert_eq!(db.client.rows("SHOW TABLES FROM again"), ["dt", "v"]);
        assert_eq!(db.client.rows("SELECT id, name FROM again.dt"), ["1|a"]);
        assert_eq!(types(&mut db.client), ["Table"], "it was dropped before");
        restart(&mut server, &mut db);
    }
    db.client.ok("RECOVER TABLE again.earlier");
    db.client.ok("INSERT INTO again.dt VALUES (2, 'b', 2)");
    restart(&mut server, &mut db);
    assert_eq!(db.client.rows("SHOW TABLES FROM again"), ["dt", "earlier", "v"]);
    assert_eq!(db.client.value("SELECT count(*) FROM again.dt"), "2");
}

#[test]
fn a_database_that_can_not_be_dropped_keeps_its_temporary_partitions() {
    let mut server = Server::start();
    let mut db = server.database();
    db.client.ok(KEYS);
    db.client.ok("INSERT INTO keyed VALUES (1, 'a', 1)");
    db.client.ok("ALTER TABLE keyed ADD TEMPORARY PARTITION new VALUES LESS THAN ('100')");
    db.client.ok("INSERT INTO keyed TEMPORARY PARTITION new VALUES (1, 'new', 2)");
    let catalog = server.data().join("catalog.db").display().to_string();
    let refuses = "CREATE TRIGGER refuses BEFORE INSERT ON recycled_databases BEGIN SELECT RAISE(ABORT, 'refused'); END";
    python("catalog.py", &[&catalog, refuses]);
    let drop = format!("DROP DATABASE {}", db.name);
    let error = db.client.error(&drop);
    assert!(error.message.contains("refused"), "{error}");
    python("catalog.py", &[&catalog, "DROP TRIGGER refuses"]);
    for row in ["1|new|2", "1|newer|3"] {
        assert_eq!(db.client.rows("SELECT id, name, n FROM keyed TEMPORARY PARTITION new"), [row]);
        assert_eq!(db.client.rows(ALL), ["1|a|1"]);
        db.client.ok("INSERT INTO keyed TEMPORARY PARTITION new VALUES (1, 'newer', 3)");
        restart(&mut server, &mut db);
    }
    let name = db.name.clone();
    db.client.ok(&drop);
    db.client.ok(&format!("RECOVER DATABASE {name}"));
    db.client.ok(&format!("USE {name}"));
    for _ in 0..2 {
        assert_eq!(db.client.rows(ALL), ["1|a|1"]);
        assert!(db.client.rows("SHOW TEMPORARY PARTITIONS FROM keyed").is_empty());
        wait_until("only the table's files are left", || directories(&server, &db).len() == 1);
        restart(&mut server, &mut db);
    }
}

#[test]
fn a_dropped_partition_comes_back_with_one_row_for_each_key() {
    let mut server = Server::start();
    let mut db = server.database();
    db.client.ok(KEYS);
    db.client.ok("INSERT INTO keyed VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (101, 'x', 1)");
    db.client.ok("DELETE FROM keyed WHERE id = 3");
    db.client.ok("SET group_commit = async_mode");
    db.client.ok("INSERT INTO keyed VALUES (2, 'changed', 20)");
    db.client.ok("ALTER TABLE keyed DROP PARTITION low");
    let refused = db.client.error("INSERT INTO keyed VALUES (4, 'd', 4)");
    assert!(refused.message.contains("no partition for this tuple"), "{refused}");
    for _ in 0..2 {
        assert_eq!(db.client.rows(ALL), ["101|x|1"]);
        assert_eq!(kept(&mut db), ["Partition low"]);
        restart(&mut server, &mut db);
    }
    db.client.ok("RECOVER PARTITION low FROM keyed");
    for _ in 0..2 {
        assert_eq!(db.client.rows(ALL), ["1|a|1", "2|changed|20", "101|x|1"]);
        assert!(kept(&mut db).is_empty());
        restart(&mut server, &mut db);
    }
    db.client.ok("INSERT INTO keyed VALUES (1, 'again', 10), (3, 'new', 30)");
    db.client.ok("SET enable_unique_key_partial_update = true");
    db.client.ok("INSERT INTO keyed (id, n) VALUES (2, 21)");
    restart(&mut server, &mut db);
    let all = ["1|again|10", "2|changed|21", "3|new|30", "101|x|1"];
    assert_eq!(db.client.rows(ALL), all);
    // Once more, under another name, after a change of columns that files need not follow.
    db.client.ok("ALTER TABLE keyed DROP PARTITION low");
    db.client.ok("ALTER TABLE keyed ADD COLUMN more INT");
    db.client.ok("ALTER TABLE keyed DROP COLUMN name");
    db.client.ok("RECOVER PARTITION low AS lower FROM keyed");
    assert_eq!(
        db.client.rows("SELECT id, n, more FROM keyed PARTITION (lower) ORDER BY id"),
        ["1|10|NULL", "2|21|NULL", "3|30|NULL"]
    );
    db.client.ok("DELETE FROM keyed WHERE n = 21");
    restart(&mut server, &mut db);
    assert_eq!(db.client.rows("SELECT id FROM keyed ORDER BY id"), ["1", "3", "101"]);
}

#[test]
fn a_partition_that_does_not_fit_any_more_is_refused() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok(KEYS);
    db.client.ok("INSERT INTO keyed VALUES (1, 'a', 1)");
    db.client.ok("ALTER TABLE keyed DROP PARTITION low");
    db.client.ok("ALTER TABLE keyed ADD PARTITION low VALUES LESS THAN ('50')");
    let mut refused = |sql: &str, text: &str| {
        let error = db.client.error(sql);
        assert!(error.message.contains(text), "{sql}: {error}");
    };
    refused("RECOVER PARTITION low FROM keyed", "partition[low] already exist in table[keyed]");
    refused(
        "RECOVER PARTITION low AS old FROM keyed",
        "Can not recover partition[low]. Partition item conflict.",
    );
    refused("RECOVER PARTITION low AS high FROM keyed", "Partition name[high] is already used");
    refused(
        "RECOVER PARTITION gone FROM keyed",
        "No partition named 'gone' or partition id '-1' in table keyed",
    );
    refused("RECOVER PARTITION low 9 AS x FROM keyed", "or partition id '9' in table keyed");
    refused("RECOVER PARTITION low", "FROM");
    db.client.ok("ALTER TABLE keyed DROP PARTITION low FORCE");
    db.client.ok("ALTER TABLE keyed ADD COLUMN filled INT NOT NULL DEFAULT '7'");
    let error = db.client.error("RECOVER PARTITION low FROM keyed");
    assert!(error.message.contains("have other types, keys or defaults since it was dropped"), "{error}");
    db.client.ok("CREATE TABLE plain (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    let error = db.client.error("RECOVER PARTITION p FROM plain");
    assert!(error.message.contains("table [plain] is not a partitioned table"), "{error}");
}

#[test]
fn what_is_dropped_by_force_or_thrown_away_is_gone() {
    let server = Server::start();
    let mut db = server.database();
    let make = |client: &mut Client| {
        client.ok("CREATE TABLE t (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1")
    };
    make(&mut db.client);
    db.client.ok("DROP TABLE t FORCE");
    assert!(db.client.error("RECOVER TABLE t").message.contains("Unknown table 't'"));
    db.client.ok(KEYS);
    db.client.ok("INSERT INTO keyed VALUES (1, 'a', 1)");
    db.client.ok("ALTER TABLE keyed DROP PARTITION low FORCE");
    assert!(kept(&mut db).is_empty());
    db.client.ok("ALTER TABLE keyed DROP PARTITION high");
    db.client.ok("DROP TABLE keyed");
    make(&mut db.client);
    db.client.ok("DROP TABLE t");
    assert_eq!(kept(&mut db), ["Table keyed", "Table t", "Partition high"]);
    let rows = db.client.table(&format!("{BIN} WHERE NAME = 'high'")).rows;
    let ids: Vec<String> = rows[0][2..5].iter().map(|id| id.clone().unwrap()).collect();
    db.client
        .ok(&format!("DROP CATALOG RECYCLE BIN WHERE 'TableId' = {} AND 'PartitionId' = {}", ids[1], ids[2]));
    assert_eq!(kept(&mut db), ["Table keyed", "Table t"]);
    db.client.ok(&format!("DROP CATALOG RECYCLE BIN WHERE 'TableId' = {}", ids[1]));
    wait_until("its files are deleted", || directories(&server, &db).len() == 1);
    db.client.ok(&format!("DROP CATALOG RECYCLE BIN WHERE 'DbId' = {}", ids[0]));
    wait_until("all files are deleted", || directories(&server, &db).is_empty());
    for (condition, text) in [
        ("'DbId' = 99999", "Unknown database id '99999'"),
        ("'tableid' = 99999", "Unknown table id '99999'"),
        ("'PartitionId' = 99999", "No partition id '99999'"),
        ("'Id' = 1", "Invalid type: Id, allowed values: 'DbId', 'TableId', 'PartitionId'"),
    ] {
        let error = db.client.error(&format!("DROP CATALOG RECYCLE BIN WHERE {condition}"));
        assert!(error.message.contains(text), "{condition}: {error}");
    }
}

#[test]
fn what_has_been_kept_long_enough_is_deleted() {
    let mut server = Server::with_settings(&[("catalog_trash_expire_second", "1")]);
    let mut db = server.database().with_dt("");
    db.client.ok(KEYS);
    db.client.ok("ALTER TABLE keyed DROP PARTITION low");
    db.client.ok("DROP TABLE dt");
    wait_until("the bin is empty", || db.client.rows(BIN).is_empty());
    wait_until("the files are deleted", || directories(&server, &db).len() == 1);
    let error = db.client.error("RECOVER PARTITION low FROM keyed");
    assert!(error.message.contains("No partition named 'low'"), "{error}");
    let name = db.name.clone();
    db.client.ok(&format!("DROP DATABASE {name}"));
    wait_until("the bin is empty", || db.client.rows(BIN).is_empty());
    wait_until("all files are deleted", || directories(&server, &db).is_empty());
    // Nothing is retained at all.
    server.kill();
    server.set("catalog_trash_expire_second", "0");
    server.start_again();
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("DROP DATABASE d");
    assert!(client.rows(BIN).is_empty());
}

#[test]
fn what_a_two_phase_load_waits_for_is_dropped_by_force_only() {
    let server = Server::start();
    let mut db = server.database().with_dt("");
    let reply = Curl::stream_load(&server, &db.name, "dt")
        .header("column_separator:,")
        .header("two_phase_commit:true")
        .body("6,Amy,60\n")
        .load()
        .success();
    let text = "There are still some transactions in the COMMITTED state waiting to be completed.";
    let name = db.name.clone();
    for (sql, what) in [
        ("DROP TABLE dt".to_owned(), "The table [dt] cannot be dropped. If you want to forcibly drop(cannot be recovered), please use \"DROP TABLE <table> FORCE\".".to_owned()),
        (format!("DROP DATABASE {name}"), format!("The database [{name}] cannot be dropped.")),
    ] {
        let error = db.client.error(&sql);
        assert!(error.message.contains(text) && error.message.contains(&what), "{sql}: {error}");
    }
    let url = format!("http://127.0.0.1:{}/api/{name}/_stream_load_2pc", server.http_port());
    let id = format!("txn_id:{}", reply.get("TxnId"));
    let reply = Curl::put(&url).header(&id).header("txn_operation:commit").load();
    assert_eq!(reply.get("status"), "Success");
    db.client.ok("DROP TABLE dt");
    db.client.ok("RECOVER TABLE dt");
    assert_eq!(db.client.value("SELECT count(*) FROM dt"), "1");
}

#[test]
fn another_reader_sees_a_partition_go_and_come_back() {
    let server = Server::with_settings(&[("flush_age_ms", "300")]);
    let mut db = server.database();
    db.client.ok(
        "CREATE TABLE parts (id INT NOT NULL, score INT) DUPLICATE KEY(id) \
         PARTITION BY RANGE(id) (PARTITION low VALUES LESS THAN ('100'), PARTITION high VALUES LESS THAN ('200')) \
         DISTRIBUTED BY HASH(id) BUCKETS 1",
    );
    db.client.ok("INSERT INTO parts VALUES (1, 1), (2, 2), (101, 3)");
    let directory = crate::delta::delta_table(&server);
    let sums = |count: &str, total: &str| python("delta_checks.py", &["sums", &directory, count, total]);
    db.client.ok("ALTER TABLE parts DROP PARTITION low");
    sums("1", "3");
    db.client.ok("RECOVER PARTITION low FROM parts");
    sums("3", "6");
}

#[test]
fn a_dropped_partition_that_cannot_be_read_stays_until_the_program_that_knows_it_comes() {
    let mut server = Server::start();
    let mut db = server.database();
    db.client.ok(KEYS);
    db.client.ok("INSERT INTO keyed VALUES (1, 'a', 1), (101, 'b', 1)");
    db.client.ok("ALTER TABLE keyed DROP PARTITION low");
    assert!(server.stop().success());
    let catalog = server.data().join("catalog.db").display().to_string();
    let becomes = |from: u32, to: u32| {
        format!(
            "UPDATE recycled_partitions SET definition = replace(definition, '\"format\":{from},\"partition', '\"format\":{to},\"partition')"
        )
    };
    python("catalog.py", &[&catalog, &becomes(1, 9)]);
    server.start_again();
    db.client = server.connect_to(&db.name);
    let row = db.client.table(&format!("{BIN} WHERE NAME = 'low'")).rows.remove(0);
    assert!(row[6].as_ref().unwrap().contains("format 9"), "{row:?}");
    let error = db.client.error("RECOVER PARTITION low FROM keyed");
    assert!(error.message.contains("format 9"), "{error}");
    let comment = "SELECT table_comment FROM information_schema.tables WHERE table_name = 'keyed'";
    let told = "no file is deleted until the table is opened again";
    assert!(db.client.value(comment).starts_with(told));
    assert!(db.client.rows("SHOW TABLE STATUS LIKE 'keyed'")[0].contains(told));
    let partition = row[4].clone().unwrap();
    let error = db.client.error(&format!("DROP CATALOG RECYCLE BIN WHERE 'PartitionId' = {partition}"));
    assert!(error.message.contains("format 9"), "{error}");
    assert!(server.stop().success());
    python("catalog.py", &[&catalog, &becomes(9, 1)]);
    server.start_again();
    db.client = server.connect_to(&db.name);
    db.client.ok("RECOVER PARTITION low FROM keyed");
    assert_eq!(db.client.rows(ALL), ["1|a|1", "101|b|1"]);
    assert_eq!(db.client.value(comment), "");
}
