//! Statements and logins that are refused: each with its exact answer.

use crate::support::{Client, MariaDb, Server, ServerError};

fn assert_error(error: &ServerError, number: u16, state: &str, message: &str) {
    assert_eq!((error.number, error.state.as_str(), error.message.as_str()), (number, state, message));
}

#[test]
fn a_wrong_password_is_1045_with_the_user_and_host() {
    let server = Server::start();
    server.connect().ok("CREATE USER 'ann' IDENTIFIED BY 'secret'");
    let wrong = MariaDb::new(&server).user("ann").option("--password=guess").run("select 1;\n").failure();
    assert!(
        wrong.contains("ERROR 1045 (28000): Access denied for user 'ann'@'127.0.0.1' (using password: YES)"),
        "{wrong}"
    );
    let none = MariaDb::new(&server).user("ann").run("select 1;\n").failure();
    assert!(
        none.contains("ERROR 1045 (28000): Access denied for user 'ann'@'127.0.0.1' (using password: NO)"),
        "{none}"
    );
    let unknown = MariaDb::new(&server).user("nobody").run("select 1;\n").failure();
    assert!(unknown.contains("ERROR 1045 (28000): Access denied for user 'nobody'@'127.0.0.1'"), "{unknown}");
    MariaDb::new(&server).user("ann").option("--password=secret").shows("select 1;\n");
}

#[test]
fn a_changed_password_is_asked_for() {
    let server = Server::start();
    server.connect().ok("SET PASSWORD FOR 'root' = PASSWORD('new one')");
    let refused =
        Client::try_connect(server.mysql_port(), None).err().expect("the empty password is wrong now");
    assert_error(&refused, 1045, "28000", "Access denied for user 'root'@'127.0.0.1' (using password: NO)");
    MariaDb::new(&server).option("--password=new one").shows("select 1;\n");
}

#[test]
fn connecting_to_an_unknown_database_is_1049() {
    let server = Server::shared();
    let refused =
        Client::try_connect(server.mysql_port(), Some("nowhere")).err().expect("there is no such database");
    assert_error(&refused, 1049, "42000", "Unknown database 'nowhere'");
}

#[test]
fn a_syntax_error_says_what_was_found_and_where() {
    let server = Server::shared();
    let mut client = server.connect();
    for (statement, number) in [("SELEC 1", 1064), ("SELECT 1 FROM", 1064), ("CREATE TABLE t (id INT", 1064)]
    {
        let error = client.error(statement);
        assert_eq!((error.number, error.state.as_str()), (number, "42000"), "{error}");
        assert!(error.message.starts_with("errCode = 2, detailMessage = "), "{error}");
        assert!(error.message.contains("(line 1, pos "), "{error}");
    }
    let second_line = client.error("SELECT 1,\n  FROM FROM");
    assert!(second_line.message.contains("(line 2, pos "), "{second_line}");
    // The connection is as good as before.
    assert_eq!(client.value("SELECT 1"), "1");
}

#[test]
fn an_unknown_variable_is_named_with_similar_ones() {
    let server = Server::shared();
    let mut client = server.connect();
    let error = client.error("SET group_comit = async_mode");
    assert_eq!((error.number, error.state.as_str()), (1193, "HY000"), "{error}");
    assert!(
        error.message.starts_with("Unknown system variable 'group_comit',the similar variables are {"),
        "{error}"
    );
    let read = client.error("SELECT @@group_comit");
    assert_eq!(read.number, 1193, "{read}");
}

#[test]
fn a_mode_that_does_not_exist_is_refused() {
    let server = Server::shared();
    let mut client = server.connect();
    let error = client.error("SET group_commit = 'abc'");
    assert_error(
        &error,
        1231,
        "42000",
        "errCode = 2, detailMessage = Variable 'group_commit' can't be set to the value of 'abc'",
    );
    assert_eq!(client.value("SELECT @@group_commit"), "off_mode");
    let read_only = client.error("SET version = '8'");
    assert_error(&read_only, 1238, "HY000", "Variable 'version' is a read only variable");
}

#[test]
fn an_unknown_property_is_named() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let create = db.client.error(
        "CREATE TABLE t (id INT NOT NULL) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1 PROPERTIES (\"replication_num\" = \"1\", \"group_comit_mode\" = \"async_mode\")",
    );
    assert_error(
        &create,
        1105,
        "HY000",
        "errCode = 2, detailMessage = Unknown properties: {group_comit_mode=async_mode}",
    );
    let alter = db.client.error("ALTER TABLE dt SET (\"group_comit_mode\" = \"async_mode\")");
    assert_error(
        &alter,
        1105,
        "HY000",
        "errCode = 2, detailMessage = Unknown table property: [group_comit_mode]",
    );
}

#[test]
fn a_bad_value_of_a_property_is_reported() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    for (property, message) in [
        ("\"group_commit_interval_ms\" = \"soon\"", "parse group_commit_interval_ms format error"),
        ("\"group_commit_data_bytes\" = \"64MB\"", "parse group_commit_data_bytes format error"),
        ("\"group_commit_data_bytes\" = \"0\"", "group_commit_data_bytes must be greater than 0"),
        (
            "\"group_commit_mode\" = \"fast\"",
            "Invalid group_commit_mode: fast. Valid values: off_mode, async_mode, sync_mode",
        ),
    ] {
        let expected = format!("errCode = 2, detailMessage = {message}");
        let alter = db.client.error(&format!("ALTER TABLE dt SET ({property})"));
        assert_error(&alter, 1105, "HY000", &expected);
        let create = db.client.error(&format!(
            "CREATE TABLE t (id INT NOT NULL) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1 PROPERTIES ({property})"
        ));
        assert_error(&create, 1105, "HY000", &expected);
    }
}

#[test]
fn existing_and_missing_names_have_mysqls_numbers() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let name = db.name.clone();
    for (statement, number, state, text) in [
        (
            format!("CREATE DATABASE {name}"),
            1007,
            "HY000",
            format!("Can't create database '{name}'; database exists"),
        ),
        (
            "DROP DATABASE nowhere".to_owned(),
            1008,
            "HY000",
            "Can't drop database 'nowhere'; database doesn't exist".to_owned(),
        ),
        (crate::support::DT.to_owned(), 1050, "42S01", "Table 'dt' already exists".to_owned()),
        ("DROP TABLE nowhere".to_owned(), 1051, "42S02", format!("Unknown table '{name}.nowhere'")),
    ] {
        let error = db.client.error(&statement);
        assert_eq!((error.number, error.state.as_str()), (number, state), "{error}");
        assert!(error.message.ends_with(&text), "{error}");
    }
    db.client.ok(&format!("CREATE DATABASE IF NOT EXISTS {name}"));
    db.client.ok("DROP DATABASE IF EXISTS nowhere");
    db.client.ok("DROP TABLE IF EXISTS nowhere");
}

#[test]
fn what_is_not_built_is_refused_by_name() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    for (statement, names) in [
        (
            "CREATE TABLE a (id INT, n QUANTILE_STATE QUANTILE_UNION) AGGREGATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1",
            "QUANTILE_STATE",
        ),
        (
            "CREATE TABLE v (id INT, tags QUANTILE_STATE) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1",
            "QUANTILE_STATE",
        ),
    ] {
        let error = db.client.error(statement);
        assert!(error.message.contains("not supported yet"), "{statement}\n{error}");
        assert!(error.message.contains(names), "{statement}\n{error}");
    }
    assert_eq!(db.client.rows("SHOW TABLES"), ["dt"]);
}

#[test]
fn what_is_missing_has_the_number_by_which_clients_decide() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let table =
        format!("errCode = 2, detailMessage = Table [nowhere] does not exist in database [{}].", db.name);
    for statement in [
        "SELECT * FROM nowhere",
        "DESCRIBE nowhere",
        "SHOW CREATE TABLE nowhere",
        "SHOW COLUMNS FROM nowhere",
        "INSERT INTO nowhere VALUES (1)",
        "SELECT id FROM dt WHERE id IN (SELECT id FROM nowhere)",
        "SELECT * FROM dt JOIN nowhere USING (id)",
    ] {
        assert_error(&db.client.error(statement), 1146, "42S02", &table);
    }
    for statement in ["SELECT * FROM nowhere.t", "DESCRIBE nowhere.t", "INSERT INTO nowhere.t VALUES (1)"] {
        let message = "errCode = 2, detailMessage = Database [nowhere] does not exist.";
        assert_error(&db.client.error(statement), 1049, "42000", message);
    }
    assert_eq!(db.client.error("DROP TABLE nowhere").number, 1051);
    assert_eq!(db.client.error("SELECT nothing FROM dt").number, 1054);
    assert_eq!(db.client.error("SELECT no_such_function(id) FROM dt").number, 1305);
    assert_eq!(db.client.error("SELECT (SELECT id FROM (SELECT 1 id UNION ALL SELECT 2) x)").number, 1242);
}

#[test]
fn the_command_line_prints_errors_as_mysql_does() {
    let server = Server::shared();
    let db = server.database();
    let printed = MariaDb::new(&server).option(&db.name).run("select * from nowhere;\n").failure();
    assert_eq!(
        printed.lines().last(),
        Some(
            format!(
                "ERROR 1146 (42S02) at line 1: errCode = 2, detailMessage = Table [nowhere] does not exist in database [{}].",
                db.name
            )
            .as_str()
        )
    );
}
