//! `CREATE JOB … ON SCHEDULE … DO INSERT`: runs, kills, rights, and what is shown.

use crate::support::{Client, Server, wait_until};
use serde_json::Value;
use std::time::{Duration, SystemTime};

const TAIL: &str = "DISTRIBUTED BY HASH(id) BUCKETS 1";

/// Tables to read from, with three rows, and to load into.
fn tables(client: &mut Client) {
    client.ok(&format!("CREATE TABLE src (id INT) DUPLICATE KEY(id) {TAIL}"));
    client.ok("INSERT INTO src VALUES (1), (2), (3)");
    client.ok(&format!("CREATE TABLE sink (id INT, at DATETIME(6)) DUPLICATE KEY(id) {TAIL}"));
}

/// A column of a job.
fn shown(client: &mut Client, name: &str, column: &str) -> String {
    client.value(&format!("SELECT {column} FROM jobs(\"type\" = \"insert\") WHERE Name = '{name}'"))
}

fn wait_for_rows(client: &mut Client, least: u64) {
    wait_until(&format!("{least} rows"), || {
        client.value("SELECT COUNT(*) FROM sink").parse::<u64>().expect("a number") >= least
    });
}

#[test]
fn a_job_loads_each_run_once_however_often_the_server_is_killed() {
    let mut server = Server::start();
    let mut db = server.database();
    tables(&mut db.client);
    db.client.ok(
        "CREATE JOB often ON SCHEDULE EVERY 1 SECOND COMMENT 'three rows' DO INSERT INTO sink SELECT id, NOW(6) FROM src;",
    );
    db.client.refused(
        "CREATE JOB often ON SCHEDULE EVERY 1 DAY DO INSERT INTO sink SELECT 1, NOW()",
        1105,
        "already exists",
    );
    db.client
        .ok("CREATE JOB IF NOT EXISTS often ON SCHEDULE EVERY 1 DAY DO INSERT INTO sink SELECT 1, NOW()");
    let mut client = server.connect_to(&db.name);
    for kill in 1..=3 {
        let before: u64 = client.value("SELECT COUNT(*) FROM sink").parse().expect("a number");
        wait_for_rows(&mut client, before + 6);
        if kill < 3 {
            server.kill();
            server.start_again();
            client = server.connect_to(&db.name);
        }
    }
    client.ok("PAUSE JOB WHERE jobName = 'often'");
    client.refused("PAUSE JOB WHERE jobName = 'often'", 1105, "in the state PAUSED");
    let rows: u64 = client.value("SELECT COUNT(*) FROM sink").parse().expect("a number");
    let runs: u64 = shown(&mut client, "often", "SucceedTaskCount").parse().expect("a number");
    assert_eq!(rows, runs * 3, "each run has loaded its rows once");
    assert_eq!(client.rows("SELECT at FROM sink GROUP BY at HAVING COUNT(*) <> 3"), [""; 0]);
    assert_eq!(
        client.rows(
            "SELECT Definer, ExecuteType, RecurringStrategy, Status, ExecuteSql, FailedTaskCount, Comment \
             FROM jobs('type' = 'insert') WHERE Name = 'often'"
        ),
        ["root|RECURRING|EVERY 1 SECOND|PAUSED|INSERT INTO sink SELECT id, NOW(6) FROM src|0|three rows"]
    );
    let of_show = client.table("SHOW JOBS WHERE Name = 'often'");
    assert_eq!((of_show.rows.len(), of_show.columns[1].as_str()), (1, "Name"));
    assert_eq!(
        client.rows(&format!(
            "SELECT KIND, TABLE_NAME, NAME, STATE FROM information_schema.jobs WHERE TABLE_SCHEMA = '{}'",
            db.name
        )),
        ["INSERT|sink|often|PAUSED"]
    );
    client.ok("RESUME JOB WHERE jobName = 'often'");
    wait_for_rows(&mut client, rows + 3);
    client.ok("DROP JOB WHERE jobName = 'often'");
    client.ok("DROP JOB IF EXISTS WHERE jobName = 'often'");
    client.refused("DROP JOB WHERE jobName = 'often'", 1105, "not exist job");
    assert_eq!(client.rows("SHOW JOBS WHERE Name = 'often'"), [""; 0]);
}

#[test]
fn a_job_runs_once_even_if_its_time_passed_without_a_server() {
    let mut server = Server::start();
    let mut db = server.database();
    tables(&mut db.client);
    db.client.ok("SET time_zone = '+05:30'");
    let at = db.client.value("SELECT DATE_FORMAT(DATE_ADD(NOW(), INTERVAL 2 SECOND), '%Y-%m-%d %H:%i:%s')");
    let passes = SystemTime::now() + Duration::from_secs(3);
    db.client
        .ok(&format!("CREATE JOB once ON SCHEDULE AT '{at}' DO INSERT INTO sink SELECT id, NOW() FROM src"));
    server.kill();
    wait_until("the time has passed", || SystemTime::now() > passes);
    server.start_again();
    let mut client = server.connect_to(&db.name);
    wait_until("it has run", || shown(&mut client, "once", "Status") == "FINISHED");
    assert_eq!(client.value("SELECT COUNT(*) FROM sink"), "3");
    // In the job's zone.
    assert_eq!(
        client.value(
            "SELECT COUNT(DISTINCT at) FROM sink WHERE at > DATE_ADD(UTC_TIMESTAMP(), INTERVAL 5 HOUR)"
        ),
        "1"
    );
    assert_eq!(
        client.rows(
            "SELECT JobName, Status, LoadStatistic, User FROM tasks('type' = 'insert') WHERE JobName = 'once'"
        ),
        ["once|SUCCESS|3|root"]
    );
    server.kill();
    server.start_again();
    let mut client = server.connect_to(&db.name);
    assert_eq!(shown(&mut client, "once", "Status"), "FINISHED");
    assert_eq!(client.value("SELECT COUNT(*) FROM sink"), "3");
}

#[test]
fn a_job_that_replaces_a_result_keeps_it_fresh() {
    let server = Server::shared();
    let mut db = server.database();
    tables(&mut db.client);
    let name = format!("result_{}", db.name);
    db.client.ok(&format!(
        "CREATE JOB {name} ON SCHEDULE EVERY 1 SECOND DO INSERT OVERWRITE TABLE sink SELECT SUM(id), NOW() FROM src"
    ));
    wait_until("a sum", || db.client.rows("SELECT id FROM sink") == ["6"]);
    db.client.ok("INSERT INTO src VALUES (4)");
    wait_until("the next sum", || db.client.rows("SELECT id FROM sink") == ["10"]);
    db.client.ok(&format!("DROP JOB {name}"));
}

#[test]
fn a_job_has_the_rights_that_its_user_has_now() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = directory.path().join("audit");
    let server = Server::with_settings(&[("audit_log_dir", &log.display().to_string())]);
    let mut root = server.connect();
    root.ok("CREATE DATABASE d");
    let mut client = server.connect_to("d");
    tables(&mut client);
    for user in ["amy", "bob"] {
        root.ok(&format!("CREATE USER {user}"));
        root.ok(&format!("GRANT LOAD_PRIV, SELECT_PRIV ON d.* TO {user}"));
    }
    let connect = |user: &str| {
        let mut client = Client::connect_as(user, server.mysql_port()).expect("it may connect");
        client.ok("USE d");
        client
    };
    let (mut amy, mut bob) = (connect("amy"), connect("bob"));
    amy.ok("CREATE JOB hers ON SCHEDULE EVERY 1 SECOND DO INSERT INTO sink SELECT id, NOW(6) FROM src");
    wait_for_rows(&mut amy, 3);
    // Nobody else sees it, but for who administers the server.
    assert_eq!(bob.rows("SELECT Name FROM jobs('type' = 'insert')"), [""; 0]);
    assert_eq!(bob.rows("SELECT NAME FROM information_schema.jobs"), [""; 0]);
    bob.refused("DROP JOB WHERE jobName = 'hers'", 1105, "not exist job");
    bob.refused("PAUSE JOB WHERE jobName = 'hers'", 1105, "not exist job");
    assert_eq!(root.rows("SELECT Name, Definer FROM jobs('type' = 'insert')"), ["hers|amy"]);
    root.ok("REVOKE SELECT_PRIV ON d.* FROM amy");
    let failed =
        "SELECT ErrorMsg FROM tasks('type' = 'insert') WHERE Status = 'FAILED' ORDER BY TaskId DESC LIMIT 1";
    wait_until("a run has failed", || root.rows(failed).first().is_some_and(|text| text.contains("src")));
    root.ok("GRANT SELECT_PRIV ON d.* TO amy");
    root.ok("DROP JOB hers");
    let record = |door: &str| {
        let text = std::fs::read_to_string(log.join("audit.log")).unwrap_or_default();
        let records = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        records.into_iter().find(|record| record["door"] == door && record["affected_rows"] == 3)
    };
    wait_until("the audit log has a run", || record("job").is_some());
    let found = record("job").expect("it is there");
    assert_eq!((&found["user"], &found["stmt_type"]), (&"amy".into(), &"INSERT".into()), "{found}");
    assert!(found["stmt"].as_str().is_some_and(|text| text.starts_with("INSERT INTO sink")), "{found}");
}

#[test]
fn a_job_that_cannot_run_is_refused_at_once() {
    let server = Server::shared();
    let mut db = server.database();
    tables(&mut db.client);
    let create = |schedule: &str, statement: &str| {
        format!("CREATE JOB never_{} ON SCHEDULE {schedule} DO {statement}", db.name)
    };
    let fine = "INSERT INTO sink SELECT id, NOW() FROM src";
    let mut client = server.connect_to(&db.name);
    for (schedule, statement, number, text) in [
        ("EVERY 1 DAY", "INSERT INTO nowhere SELECT 1", 1146, "nowhere"),
        ("EVERY 1 DAY", "INSERT INTO sink SELECT nothing, NOW() FROM src", 1054, "nothing"),
        ("EVERY 1 DAY STARTS '2020-01-01 00:00:00'", fine, 1105, "has passed"),
        ("EVERY 1 DAY STARTS '2100-01-01' ENDS '2099-01-01'", fine, 1105, "ENDS is before STARTS"),
        ("AT '2020-01-01 00:00:00'", fine, 1105, "has passed"),
        ("AT 'tomorrow'", fine, 1105, "is no time"),
        ("EVERY 1 DAY", "DELETE FROM sink", 1064, "the only statement that a job can run"),
    ] {
        client.refused(&create(schedule, statement), number, text);
    }
    client.ok("SET sql_mode = 'PIPES_AS_CONCAT'");
    let pipes = "INSERT INTO sink SELECT '1' || id, NOW() FROM src";
    client.refused(&create("EVERY 1 DAY", pipes), 1235, "write CONCAT(a, b)");
    client.ok("SET sql_mode = DEFAULT");
    client.ok("BEGIN");
    client.refused(&create("EVERY 1 DAY", fine), 1105, "transaction");
    client.ok("ROLLBACK");
    client.refused("SELECT * FROM jobs('type' = 'mv')", 1105, "jobs(\"type\" = \"insert\")");
    assert_eq!(client.rows(&format!("SHOW JOBS WHERE Name = 'never_{}'", db.name)), [""; 0]);
    assert_eq!(client.rows(&format!("SHOW JOBS WHERE Name = 'never_{}'", db.name)), [""; 0]);
}
