//! Prepared statements of SQL: PREPARE, EXECUTE … USING and DEALLOCATE PREPARE.

use crate::support::Server;

#[test]
fn a_statement_runs_under_its_name_with_the_values_of_user_variables() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client
        .ok("CREATE TABLE t (id INT, name VARCHAR(20)) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    client.ok("SET group_commit = off_mode");
    client.ok("PREPARE ins FROM 'INSERT INTO t VALUES (?, ?), (? + 1, UPPER(?))'");
    client.ok("SET @id = 1, @name = 'ann', @none = NULL");
    assert_eq!(client.ok("EXECUTE ins USING @id, @name, @id, @name").affected_rows, 2);
    assert_eq!(client.ok("EXECUTE INS USING @id, @none, @id, @none").affected_rows, 2);
    client.ok(
        "PREPARE `sel` FROM \"SELECT id, name FROM t WHERE name = ? OR id > ? ORDER BY id, name LIMIT 5\"",
    );
    assert_eq!(client.rows("EXECUTE sel USING @name, @id"), ["1|ann", "2|NULL", "2|ANN"]);
    client.ok("SET @text = 'SELECT ? + 1 AS more'");
    client.ok("PREPARE sel FROM @text");
    assert_eq!(client.rows("EXECUTE sel USING @id"), ["2"], "the name has another statement now");
    client.ok("PREPARE up FROM 'UPDATE t SET name = ? WHERE id = ?'");
    assert_eq!(client.ok("EXECUTE up USING @name, @id").affected_rows, 2);
    client.ok("PREPARE ddl FROM 'CREATE TABLE made (id INT) DUPLICATE KEY(id)'");
    client.ok("EXECUTE ddl");
    assert_eq!(client.error("EXECUTE ddl").number, 1050);
    client.ok("DEALLOCATE PREPARE ddl");
    client.ok("DROP PREPARE up");
    assert_eq!(
        client.rows("SELECT id, name FROM t ORDER BY id, name"),
        ["1|ann", "1|ann", "2|NULL", "2|ANN"]
    );
}

#[test]
fn wrong_names_texts_and_counts_are_refused_as_in_mysql() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("PREPARE s FROM 'SELECT ?'");
    client.ok("SET @a = 1");
    for (sql, code, text) in [
        ("EXECUTE nothing", 1243, "Unknown prepared statement handler (nothing) given to EXECUTE"),
        ("DEALLOCATE PREPARE nothing", 1243, "(nothing) given to DEALLOCATE PREPARE"),
        ("EXECUTE s", 1210, "Incorrect arguments to EXECUTE"),
        ("EXECUTE s USING @a, @a", 1210, "Incorrect arguments to EXECUTE"),
        ("EXECUTE s USING 1", 1064, "a user variable"),
        ("PREPARE x FROM 'EXECUTE s'", 1295, "not supported in the prepared statement protocol"),
        (
            "PREPARE x FROM 'PREPARE y FROM ''SELECT 1'''",
            1295,
            "not supported in the prepared statement protocol",
        ),
        ("PREPARE x FROM ''", 1295, "not supported in the prepared statement protocol"),
        ("PREPARE x FROM 'SELECT 1; SELECT 2'", 1064, "SELECT"),
        ("PREPARE x FROM 'SELECT * FROM nowhere'", 1146, "nowhere"),
        ("PREPARE x FROM @never_set", 1064, "NULL"),
        ("EXECUTE x", 1243, "(x)"),
    ] {
        let error = client.error(sql);
        assert_eq!(error.number, code, "{sql}: {error}");
        assert!(error.message.contains(text), "{sql}: {error}");
    }
    // One that is wrong takes the name from the one before, as in MySQL.
    client.error("PREPARE s FROM 'SELEKT'");
    assert_eq!(client.error("EXECUTE s USING @a").number, 1243);
}

#[test]
fn statements_of_sql_and_of_the_protocol_share_one_limit_and_end_with_the_session() {
    let server = Server::start();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("SET GLOBAL max_prepared_stmt_count = 3");
    let address = ("127.0.0.1", server.mysql_port());
    let mut driver = tributary_client::Client::connect(address, Some(&db.name), None).expect("connected");
    driver.prepare("SELECT ?").expect("prepared");
    driver.query("PREPARE a FROM 'SELECT 1'").expect("prepared");
    driver.query("PREPARE b FROM 'SELECT 2'").expect("prepared");
    let refused = driver.query("PREPARE c FROM 'SELECT 3'").expect_err("it is one too many").to_string();
    assert!(refused.contains("max_prepared_stmt_count"), "{refused}");
    assert!(driver.prepare("SELECT 4").is_err());
    driver.query("PREPARE b FROM 'SELECT 5'").expect("it takes the place of the one before");
    let other = client.error("EXECUTE a");
    assert_eq!(other.number, 1243, "it is of another session");
}
