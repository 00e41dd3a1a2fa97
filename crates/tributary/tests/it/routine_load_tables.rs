//! `ROUTINE LOAD` without ON from a real broker: every message is in the table that it names, once, whatever is killed.

use crate::support::kafka::{Kafka, create_table, shown};
use crate::support::{Client, Server, wait_until};

/// Messages are made round robin over two partitions, and each second one of a partition is for `t0`, the other for `t1`.
fn exactly(table: u64, rows: u64) -> String {
    let ids: Vec<u64> = (0..rows).filter(|id| id / 2 % 2 == table).collect();
    format!("{}|{}|{}", ids.len(), ids.len(), ids.iter().sum::<u64>())
}

fn count(client: &mut Client, table: u64) -> String {
    client.rows(&format!("SELECT count(*), count(DISTINCT id), coalesce(sum(id), 0) FROM t{table}")).remove(0)
}

/// Waits until the messages below `rows` are loaded, each into its table, and fails at once if one is there twice.
fn wait_for(client: &mut Client, rows: u64) {
    wait_until(&format!("the rows of {rows} messages are there"), || {
        let found: u64 = (0..2)
            .map(|table| {
                client.value(&format!("SELECT count(*) FROM t{table}")).parse::<u64>().expect("a number")
            })
            .sum();
        assert!(found <= rows, "{found} rows of {rows} messages");
        found == rows
    });
    for table in 0..2 {
        assert_eq!(count(client, table), exactly(table, rows), "t{table}");
    }
}

fn create(kafka: &Kafka, clauses: &str, properties: &str) -> String {
    format!(
        "CREATE ROUTINE LOAD j {clauses} PROPERTIES (\"max_batch_interval\" = \"1\"{properties}) {}",
        kafka.source("events")
    )
}

#[test]
fn every_message_is_in_its_table_once_over_kills_and_restarts() {
    let mut kafka = Kafka::start();
    kafka.run("create events 2");
    kafka.run("json/2 events 0 1000 2");
    let mut server = Server::start();
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("USE d");
    create_table(&mut client, "t0");
    create_table(&mut client, "t1");
    client.ok(&create(&kafka, "", ", \"format\" = \"json\""));
    wait_for(&mut client, 1000);
    assert_eq!(
        (shown(&mut client, "j", "IsMultiTable"), shown(&mut client, "j", "TableName")),
        ("true".into(), String::new())
    );
    assert_eq!(shown(&mut client, "j", "Progress"), "{\"0\":\"499\",\"1\":\"499\"}");

    // Tributary is killed while messages arrive.
    for round in 0..5 {
        let from = 1000 + round * 2000;
        kafka.begin(&format!("json/2 events {from} {} 2 lz4", from + 2000));
        wait_until("some of them are there", || {
            let found: u64 = client.value("SELECT count(*) FROM t1").parse().expect("a number");
            round % 2 == 1 || found > from / 2
        });
        server.kill();
        server.start_again();
        kafka.ended();
        client = server.connect_to("d");
    }
    wait_for(&mut client, 11_000);

    // The broker is killed.
    kafka.kill();
    kafka.start_again();
    kafka.run("json/2 events 11000 12000 2 zstd");
    wait_for(&mut client, 12_000);

    // A paused job resumes where it was, even after an orderly stop.
    client.ok("PAUSE ROUTINE LOAD FOR j");
    kafka.run("json/2 events 12000 13000 2");
    server.stop();
    server.start_again();
    client = server.connect_to("d");
    assert_eq!(shown(&mut client, "j", "State"), "PAUSED");
    client.ok("ALTER ROUTINE LOAD FOR j PROPERTIES (\"max_error_number\" = \"2\")");
    client.ok("RESUME ROUTINE LOAD FOR j");
    wait_for(&mut client, 13_000);

    // Messages for no table are bad ones: two are in the budget, also over a kill, and the third is not.
    kafka.run("say events 0 {\"id\": 1}");
    kafka.run("say events 1 t7|{\"id\": 1}");
    wait_until("both are counted", || shown(&mut client, "j", "Statistic").contains("\"errorRows\":2"));
    server.kill();
    server.start_again();
    client = server.connect_to("d");
    assert!(shown(&mut client, "j", "Statistic").contains("\"errorRows\":2"), "they are not read again");
    for _ in 0..3 {
        kafka.run("say events 1 t7|{\"id\": 1}");
    }
    wait_until("the job is paused", || shown(&mut client, "j", "State") == "PAUSED");
    assert!(shown(&mut client, "j", "ReasonOfStateChanged").contains("errCode = 102"));
    let statistic = shown(&mut client, "j", "Statistic");
    assert!(statistic.contains("\"errorRows\":5"), "none is counted twice: {statistic}");
    assert!(shown(&mut client, "j", "ErrorLogUrls").starts_with("http://"));
    // With the table they are rows.
    create_table(&mut client, "t7");
    client.ok("RESUME ROUTINE LOAD FOR j");
    kafka.run("say events 1 t7|{\"id\": 7, \"text\": \"seven\"}");
    wait_until("the new table has its row", || client.value("SELECT count(*) FROM t7") == "1");
    assert_eq!(client.rows("SELECT id, text FROM t7"), ["7|seven"]);
    client.ok("STOP ROUTINE LOAD FOR j");
    wait_for(&mut client, 13_000);
}

#[test]
fn csv_messages_name_tables_that_come_and_go_and_the_database_takes_the_job_with_it() {
    let mut kafka = Kafka::start();
    kafka.run("create events 1");
    let server = Server::start();
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("USE d");
    client.ok("CREATE TABLE u (id BIGINT NOT NULL, n INT) UNIQUE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    create_table(&mut client, "p");
    let refused = client.error(&create(&kafka, "COLUMNS(id, n)", ""));
    assert!(
        refused.message.contains("Multi-table load does not support setting columns info"),
        "{refused:?}"
    );
    client.ok(&create(
        &kafka,
        "COLUMNS TERMINATED BY \",\"",
        ", \"max_error_number\" = \"100\", \"strict_mode\" = \"true\"",
    ));
    for message in ["u|1,10", "p|1,one", "u|1,11", "u|2,twenty", "gone|1,2"] {
        kafka.run(&format!("say events 0 {message}"));
    }
    wait_until("all were read", || shown(&mut client, "j", "Statistic").contains("\"totalRows\":5"));
    assert_eq!(
        (client.rows("SELECT * FROM u"), client.rows("SELECT * FROM p")),
        (vec!["1|11".into()], vec!["1|one".into()])
    );
    assert!(
        shown(&mut client, "j", "Statistic").contains("\"errorRows\":2"),
        "of strict mode, and of no table"
    );
    let statement = client.rows("SHOW CREATE ROUTINE LOAD FOR j")[0].clone();
    assert!(
        statement.contains("CREATE ROUTINE LOAD j\nWITH APPEND\nCOLUMNS TERMINATED BY \",\""),
        "{statement}"
    );
    client.ok("DROP TABLE p FORCE");
    create_table(&mut client, "p");
    kafka.run("say events 0 p|2,two");
    wait_until("the new table has the new row", || client.rows("SELECT * FROM p") == ["2|two"]);
    client.ok("DROP DATABASE d FORCE");
    client.ok("CREATE DATABASE d");
    client.ok("USE d");
    wait_until("the job is cancelled", || shown(&mut client, "j", "State") == "CANCELLED");
    assert!(shown(&mut client, "j", "ReasonOfStateChanged").contains("database of job j was dropped"));
}
