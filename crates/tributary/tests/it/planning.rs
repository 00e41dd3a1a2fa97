//! Planning a statement holds nobody up, and its lists are bounded.

use crate::support::{Client, Curl, Server, wait_until};

const TABLE: &str = "CREATE TABLE d.t (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1";

#[test]
fn others_are_served_while_a_statement_is_planned() {
    let server = Server::with_one_thread();
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok(TABLE);
    // A text of 80 KB that is planned for a minute and more.
    let columns: Vec<String> = (0..4000).map(|number| format!("id + {number} AS c{number}")).collect();
    let all = vec!["SELECT * FROM w"; 100].join(" UNION ALL ");
    client.send(&format!("WITH w AS (SELECT {} FROM d.t) {all}", columns.join(", ")));
    let mut other = server.connect();
    let is_planned = |other: &mut Client| {
        other.rows("SHOW PROCESSLIST").iter().any(|row| row.contains("WITH w AS (SELECT"))
    };
    wait_until("it is planned", || is_planned(&mut other));
    assert_eq!(other.value("SELECT COUNT(*) FROM d.t"), "0");
    let (status, _) =
        Curl::anonymous(&format!("http://127.0.0.1:{}/api/health", server.http_port())).status_and_text();
    assert_eq!(status, 200);
    assert!(is_planned(&mut other), "it took less time than the others");
}

#[test]
fn kill_and_time_limits_end_planning() {
    let server = Server::start();
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok(TABLE);
    let columns: Vec<String> = (0..500).map(|number| format!("id + {number} AS c{number}")).collect();
    let all = vec!["SELECT * FROM w"; 240].join(" UNION ALL ");
    // Minutes if nothing ends it.
    let statement = format!("WITH w AS (SELECT {} FROM d.t) {all}", columns.join(", "));
    let id: u32 = client.value("SELECT CONNECTION_ID()").parse().expect("a number");
    client.send(&statement);
    let mut other = server.connect();
    let is_planned = |other: &mut Client| {
        other.rows("SHOW PROCESSLIST").iter().any(|row| row.contains("WITH w AS (SELECT"))
    };
    wait_until("it is planned", || is_planned(&mut other));
    other.ok(&format!("KILL QUERY {id}"));
    let error = client.answered_error();
    assert_eq!(error.number, 1317, "{error}");
    client.ok("SET max_execution_time = 1000");
    assert_eq!(client.error(&statement).number, 5024);
}

#[test]
fn a_select_has_no_more_columns_than_mysqls() {
    let server = Server::shared();
    let mut db = server.database();
    let columns = |count: usize| vec!["1"; count].join(",");
    let error = db.client.error(&format!("SELECT {}", columns(4097)));
    assert_eq!(error.number, 1117, "{error}");
    assert!(error.message.contains("a list has 4097, the limit is 4096"), "{error}");
    let row = db.client.rows(&format!("SELECT {}", columns(4096)));
    assert_eq!(row[0].split('|').count(), 4096);
}
