//! DELETE as clients send it.

use crate::support::{Client, Server, wait_until};
use tributary_client::Value;

#[test]
fn deleted_rows_are_counted_and_gone_at_once_and_after_a_restart() {
    let mut server = Server::start();
    let mut db = server.database().with_dt("");
    db.client.ok("INSERT INTO dt VALUES (1, 'a', 10), (2, 'b', NULL), (3, NULL, 30), (4, 'd', 40)");
    let answer = db.client.ok("DELETE FROM dt WHERE score > 5 AND name <> 'd'");
    assert_eq!((answer.affected_rows, answer.info.as_str()), (1, ""), "NULL is not true");
    assert_eq!(db.client.rows("SELECT id FROM dt ORDER BY id"), ["2", "3", "4"]);
    assert_eq!(db.client.ok("DELETE FROM dt WHERE score > 5 AND name <> 'd'").affected_rows, 0);
    server.kill();
    server.start_again();
    let mut client = server.connect_to(&db.name);
    assert_eq!(client.rows("SELECT id FROM dt ORDER BY id"), ["2", "3", "4"]);
    let address = ("127.0.0.1", server.mysql_port());
    let mut prepared = tributary_client::Client::connect(address, Some(&db.name), None).expect("connected");
    let statement = prepared.prepare("DELETE FROM dt WHERE id = ? OR name = ?").expect("prepared");
    let answer = prepared.execute(statement, &[Value::BigInt(3), Value::Text("d".to_owned())]);
    assert_eq!(answer.expect("executed").affected_rows, 2);
    let answer = prepared.execute(statement, &[Value::BigInt(3), Value::Text("b".to_owned())]);
    assert_eq!(answer.expect("executed").affected_rows, 1);
    assert_eq!(client.value("SELECT COUNT(*) FROM dt"), "0");
    client.ok("INSERT INTO dt VALUES (3, 'again', 1)");
    assert_eq!(client.rows("SELECT id, name FROM dt"), ["3|again"]);
}

#[test]
fn a_delete_that_is_refused_says_why_and_deletes_nothing() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    db.client.ok("INSERT INTO dt VALUES (1, 'a', 10), (2, 'b', 20)");
    for (statement, number, text) in [
        ("DELETE FROM dt", 1105, "delete command must contain filter; TRUNCATE TABLE removes all rows"),
        ("DELETE FROM dt WHERE nothing = 1", 1054, "Unknown column 'nothing'"),
        ("DELETE FROM missing WHERE id = 1", 1146, "missing"),
        ("DELETE FROM no_such_database.dt WHERE id = 1", 1049, "no_such_database"),
        ("DELETE FROM dt PARTITION (p1) WHERE id = 1", 1747, "PARTITION () clause on non partitioned table"),
        ("DELETE FROM dt WHERE id = 1 LIMIT 1", 1235, "DELETE with LIMIT is not supported yet"),
        ("DELETE dt FROM dt JOIN dt other WHERE id = 1", 1052, "'id' in field list is ambiguous"),
        ("DELETE FROM dt WHERE", 1064, "expected an expression"),
        ("DELETE FROM dt WHERE id = CAST('x' AS DATE) + (SELECT id FROM dt)", 1242, "more than 1 row"),
    ] {
        db.client.refused(statement, number, text);
    }
    db.client.ok("BEGIN");
    let error = db.client.error("DELETE FROM dt WHERE id = 1");
    assert!(error.message.contains("DELETE in a transaction is not supported yet"), "{error}");
    db.client.ok("ROLLBACK");
    assert_eq!(db.client.value("SELECT COUNT(*) FROM dt"), "2");
}

#[test]
fn kill_query_ends_a_delete_during_its_search_and_loads_continue() {
    let server = Server::start();
    let mut db = server.database().with_dt("");
    let values: Vec<String> = (0..1000).map(|id| format!("({id}, 'n', {id})")).collect();
    db.client.ok(&format!("INSERT INTO dt VALUES {}", values.join(", ")));
    let mut other = server.connect_to(&db.name);
    let id = db.client.value("SELECT connection_id()");
    db.client.send(
        "DELETE FROM dt WHERE id IN (SELECT a.id FROM dt a JOIN dt b ON a.id >= 0 * b.id JOIN dt c ON a.id + b.id + c.id < 0)",
    );
    let runs = |other: &mut Client| {
        other
            .rows("SHOW FULL PROCESSLIST")
            .iter()
            .any(|row| row.contains(&id) && row.contains("DELETE FROM dt"))
    };
    wait_until("the statement runs", || runs(&mut other));
    other.ok("INSERT INTO dt VALUES (5000, 'meanwhile', 1)");
    assert_eq!(other.value("SELECT COUNT(*) FROM dt"), "1001");
    other.ok(&format!("KILL QUERY {id}"));
    assert_eq!(db.client.answered_error().number, 1317);
    assert_eq!(db.client.value("SELECT COUNT(*) FROM dt"), "1001");
    db.client.ok("SET query_timeout = 1");
    let endless = "DELETE FROM dt WHERE id IN (SELECT a.id FROM dt a JOIN dt b ON a.id >= 0 * b.id JOIN dt c ON a.id + b.id + c.id < 0)";
    assert_eq!(db.client.error(endless).number, 5024);
    assert_eq!(db.client.ok("DELETE FROM dt WHERE id < 1000").affected_rows, 1000);
    assert_eq!(db.client.rows("SELECT id FROM dt"), ["5000"]);
}
