//! The INSERT examples of the Group Commit manual, typed into the MariaDB command line client.

use crate::support::mariadb::{info_value, infos, without_times};
use crate::support::{MariaDb, Server, is_group_label, is_insert_label, wait_until};
use std::time::{Duration, Instant};

const ASYNC_EXAMPLE: &str = "\
set group_commit = async_mode;
insert into dt values(1, 'Bob', 90), (2, 'Alice', 99);
insert into dt(id, name) values(3, 'John');
select * from dt;
";

/// The result tables of an output: the lines between borders without their padding, rows sorted.
fn tables(output: &str) -> Vec<Vec<String>> {
    let mut tables = Vec::new();
    let mut lines = output.lines().peekable();
    while let Some(line) = lines.next() {
        if !line.starts_with("+-") {
            continue;
        }
        let mut table = Vec::new();
        let mut borders = 1;
        for line in lines.by_ref() {
            if line.starts_with("+-") {
                borders += 1;
                if borders == 3 {
                    break;
                }
            } else {
                let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
                table.push(cells.join("|"));
            }
        }
        table[1..].sort();
        tables.push(table);
    }
    tables
}

/// The lines with the outcomes of statements.
fn outcomes(output: &str) -> Vec<String> {
    let output = without_times(output);
    let is_outcome = |line: &&str| {
        ["Query OK", "Empty set"].iter().any(|start| line.starts_with(start)) || line.contains(" in set ")
    };
    output.lines().filter(is_outcome).map(str::to_owned).collect()
}

fn assert_async_example(output: &str) {
    assert_eq!(
        outcomes(output),
        [
            "Query OK, 0 rows affected (TIME)",
            "Query OK, 2 rows affected (TIME)",
            "Query OK, 1 row affected (TIME)",
            "Empty set (TIME)"
        ],
        "{output}"
    );
    let infos = infos(output);
    assert_eq!(infos.len(), 2, "{output}");
    assert_eq!(infos[0], infos[1], "both inserts belong to one load");
    let (label, txn) = (info_value(infos[0], "label"), info_value(infos[0], "txnId"));
    assert!(is_group_label(label), "{label}");
    assert!(txn.parse::<u64>().is_ok(), "{txn}");
    assert_eq!(infos[0], format!("{{'label':'{label}', 'status':'PREPARE', 'txnId':'{txn}'}}"));
}

fn assert_three_rows(output: &str) {
    assert_eq!(tables(output), [["id|name|score", "1|Bob|90", "2|Alice|99", "3|John|NULL"]], "{output}");
    assert_eq!(outcomes(output), ["3 rows in set (TIME)"], "{output}");
}

#[test]
fn async_inserts_share_a_transaction_and_are_seen_ten_seconds_later() {
    let server = Server::start().with_manual_table();
    let client = MariaDb::new(&server).option("db");
    let started = Instant::now();
    assert_async_example(&client.shows(ASYNC_EXAMPLE));
    let mut shown = String::new();
    wait_until("the group has committed", || {
        shown = client.shows("select * from dt;\n");
        !shown.contains("Empty set")
    });
    assert!(
        started.elapsed() >= Duration::from_secs(10),
        "the default interval is 10 s, not {:?}",
        started.elapsed()
    );
    assert_three_rows(&shown);
}

#[test]
fn a_shorter_interval_makes_async_inserts_visible_sooner() {
    let server = Server::start().with_manual_table();
    let client = MariaDb::new(&server).option("db");
    let altered = client.shows("ALTER TABLE dt SET (\"group_commit_interval_ms\" = \"2000\");\n");
    assert_eq!(outcomes(&altered), ["Query OK, 0 rows affected (TIME)"], "{altered}");
    let started = Instant::now();
    assert_async_example(&client.shows(ASYNC_EXAMPLE));
    let mut shown = String::new();
    wait_until("the group has committed", || {
        shown = client.shows("select * from dt;\n");
        !shown.contains("Empty set")
    });
    assert!(started.elapsed() >= Duration::from_secs(2), "the interval is 2 s, not {:?}", started.elapsed());
    assert_three_rows(&shown);
}

#[test]
fn sync_inserts_are_visible_when_they_return() {
    let server = Server::start().with_manual_table();
    let client = MariaDb::new(&server).option("db");
    client.shows("ALTER TABLE dt SET (\"group_commit_interval_ms\" = \"1000\");\n");
    client.shows("insert into dt values(1, 'Bob', 90), (2, 'Alice', 99), (3, 'John', null);\n");
    let shown = client.shows(
        "set group_commit = sync_mode;\ninsert into dt values(4, 'Bob', 90), (5, 'Alice', 99);\nselect * from dt;\n",
    );
    assert_eq!(
        outcomes(&shown),
        ["Query OK, 0 rows affected (TIME)", "Query OK, 2 rows affected (TIME)", "5 rows in set (TIME)"],
        "{shown}"
    );
    let infos = infos(&shown);
    assert_eq!(infos.len(), 1, "{shown}");
    assert!(is_group_label(info_value(infos[0], "label")), "{shown}");
    assert_eq!(info_value(infos[0], "status"), "PREPARE");
    let rows = ["id|name|score", "1|Bob|90", "2|Alice|99", "3|John|NULL", "4|Bob|90", "5|Alice|99"];
    assert_eq!(tables(&shown), [rows], "{shown}");
}

#[test]
fn off_mode_is_a_transaction_of_its_own() {
    let server = Server::start().with_manual_table();
    let client = MariaDb::new(&server).option("db");
    let shown = client.shows(
        "set group_commit = off_mode;\ninsert into dt values(1, 'Bob', 90);\ninsert into dt values(2, 'Eve', 1);\nselect * from dt;\n",
    );
    assert_eq!(
        outcomes(&shown),
        [
            "Query OK, 0 rows affected (TIME)",
            "Query OK, 1 row affected (TIME)",
            "Query OK, 1 row affected (TIME)",
            "2 rows in set (TIME)"
        ],
        "{shown}"
    );
    let infos = infos(&shown);
    assert_eq!(infos.len(), 2, "{shown}");
    assert_ne!(info_value(infos[0], "txnId"), info_value(infos[1], "txnId"), "{shown}");
    for info in infos {
        let (label, txn) = (info_value(info, "label"), info_value(info, "txnId"));
        assert!(is_insert_label(label), "{label}");
        assert_eq!(info, format!("{{'label':'{label}', 'status':'VISIBLE', 'txnId':'{txn}'}}"));
    }
}

#[test]
fn the_table_property_is_shown_unless_it_is_off() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok("CREATE TABLE `dt` (
        `id` int(11) NOT NULL,
        `name` varchar(50) NULL,
        `score` int(11) NULL
        ) ENGINE=OLAP
        DUPLICATE KEY(`id`)
        DISTRIBUTED BY HASH(`id`) BUCKETS 1
        PROPERTIES (
        \"replication_num\" = \"1\",
        \"group_commit_mode\" = \"async_mode\"
        );");
    let mut create_table = || {
        let table = db.client.table("SHOW CREATE TABLE dt");
        assert_eq!(table.columns, ["Table", "Create Table"]);
        assert_eq!(table.rows[0][0].as_deref(), Some("dt"));
        table.rows[0][1].clone().expect("a statement")
    };
    let shown = create_table();
    let head = "CREATE TABLE `dt` (\n  `id` int NOT NULL,\n  `name` varchar(50) NULL,\n  `score` int NULL\n) ENGINE=OLAP\n\
        DUPLICATE KEY(`id`)\nDISTRIBUTED BY HASH(`id`) BUCKETS 1\nPROPERTIES (\n";
    assert!(shown.starts_with(head), "{shown}");
    assert!(shown.ends_with("\n\"group_commit_mode\" = \"async_mode\"\n);"), "{shown}");
    let mut altering = server.connect_to(&db.name);
    for (mode, line) in [("sync_mode", Some("\"group_commit_mode\" = \"sync_mode\"")), ("off_mode", None)] {
        altering.ok(&format!("ALTER TABLE dt SET (\"group_commit_mode\" = \"{mode}\")"));
        let shown = create_table();
        match line {
            Some(line) => assert!(shown.contains(line), "{shown}"),
            None => assert!(!shown.contains("group_commit_mode"), "{shown}"),
        }
    }
}

#[test]
fn show_create_table_is_a_statement_that_makes_the_same_table() {
    let server = Server::shared();
    let mut db = server
        .database()
        .with_dt("\"group_commit_mode\" = \"sync_mode\", \"group_commit_interval_ms\" = \"77\"");
    let shown = db.client.table("SHOW CREATE TABLE dt").rows[0][1].clone().expect("a statement");
    db.client.ok("DROP TABLE dt");
    db.client.ok(&shown);
    assert_eq!(db.client.table("SHOW CREATE TABLE dt").rows[0][1].as_deref(), Some(shown.as_str()));
}

#[test]
fn all_three_properties_can_be_altered_and_are_shown() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let shown = db.client.value("SHOW CREATE TABLE dt");
    for line in ["\"group_commit_interval_ms\" = \"10000\"", "\"group_commit_data_bytes\" = \"67108864\""] {
        assert!(shown.contains(line), "the manual's default: {shown}");
    }
    for (key, value) in [
        ("group_commit_interval_ms", "2000"),
        ("group_commit_data_bytes", "134217728"),
        ("group_commit_mode", "async_mode"),
    ] {
        let altered = db.client.ok(&format!("ALTER TABLE dt SET (\"{key}\" = \"{value}\");"));
        assert_eq!(altered.affected_rows, 0);
        let shown = db.client.value("SHOW CREATE TABLE dt");
        assert!(shown.contains(&format!("\"{key}\" = \"{value}\"")), "{shown}");
    }
}

#[test]
fn a_group_closes_at_its_bytes_before_its_interval() {
    let server = Server::shared();
    let properties = "\"group_commit_interval_ms\" = \"3600000\", \"group_commit_data_bytes\" = \"1\"";
    let mut db = server.database().with_dt(properties);
    db.client.ok("SET group_commit = async_mode");
    let first = db.client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    wait_until("the first row is visible", || db.client.value("SELECT count(*) FROM dt") == "1");
    let second = db.client.ok("INSERT INTO dt VALUES (2, 'b', 2)");
    assert_ne!(first.label(), second.label());
    wait_until("the second row is visible", || db.client.value("SELECT count(*) FROM dt") == "2");
}

#[test]
fn without_a_session_variable_the_table_property_decides() {
    let server = Server::shared();
    let mut db = server
        .database()
        .with_dt("\"group_commit_mode\" = \"async_mode\", \"group_commit_interval_ms\" = \"1000\"");
    let by_property = db.client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    assert!(is_group_label(by_property.label()), "{by_property:?}");
    assert_eq!(by_property.info_value("status"), "PREPARE");
    // Prepared is not visible, but durable: SYNC waits for it.
    db.client.ok("SYNC");
    assert_eq!(db.client.value("SELECT count(*) FROM dt"), "1");
}

#[test]
fn the_session_variable_beats_the_table_property() {
    let server = Server::shared();
    let mut db = server
        .database()
        .with_dt("\"group_commit_mode\" = \"async_mode\", \"group_commit_interval_ms\" = \"500\"");
    db.client.ok("SET group_commit = off_mode");
    let off = db.client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    assert!(is_insert_label(off.label()), "{off:?}");
    assert_eq!(db.client.value("SELECT count(*) FROM dt"), "1");
    db.client.ok("ALTER TABLE dt SET (\"group_commit_mode\" = \"off_mode\")");
    db.client.ok("SET group_commit = sync_mode");
    let sync = db.client.ok("INSERT INTO dt VALUES (2, 'b', 2)");
    assert!(is_group_label(sync.label()), "{sync:?}");
    assert_eq!(db.client.value("SELECT count(*) FROM dt"), "2");
    assert_eq!(db.client.value("SELECT @@group_commit"), "sync_mode");
    db.client.ok("SET group_commit = DEFAULT");
    let back = db.client.ok("INSERT INTO dt VALUES (3, 'c', 3)");
    assert!(is_insert_label(back.label()), "{back:?}");
}

#[test]
fn sync_and_async_loads_of_a_table_share_a_group() {
    let server = Server::start();
    let mut db = server.database().with_dt("\"group_commit_interval_ms\" = \"3000\"");
    let mut other = server.connect_to(&db.name);
    db.client.ok("SET group_commit = async_mode");
    other.ok("SET group_commit = sync_mode");
    let one = db.client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    let two = other.ok("INSERT INTO dt VALUES (2, 'b', 2)");
    assert_eq!(one.info, two.info);
    // The sync answer says that the whole group is visible.
    assert_eq!(db.client.value("SELECT count(*) FROM dt"), "2");
}

#[test]
fn show_last_insert_repeats_the_info_text() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let insert = db.client.ok("INSERT INTO dt VALUES (1, 'a', 1), (2, 'b', 2)");
    let last = db.client.table("SHOW LAST INSERT");
    let columns =
        ["TransactionId", "Label", "Database", "Table", "TransactionStatus", "LoadedRows", "FilteredRows"];
    assert_eq!(last.columns, columns);
    let (txn, label) = (insert.info_value("txnId"), insert.label());
    let expected = [txn, label, &db.name, "dt", "VISIBLE", "2", "0"].map(|value| Some(value.to_owned()));
    assert_eq!(last.rows, [expected]);
}
