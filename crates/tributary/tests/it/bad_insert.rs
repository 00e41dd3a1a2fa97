//! Bad INSERTs: each with its exact answer, and no row of it in the table.

use crate::support::{Curl, Database, Server, ServerError};

fn database(server: &Server) -> Database {
    let mut db = server.database().with_dt("");
    db.client.ok("CREATE TABLE strict_one (
        id INT NOT NULL,
        code CHAR(3) NULL,
        name VARCHAR(5) NULL,
        price DECIMAL(5,2) NULL,
        day DATE NULL
    ) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1 PROPERTIES (\"replication_num\" = \"1\")");
    db
}

fn assert_error(error: &ServerError, number: u16, state: &str, message: &str) {
    assert_eq!((error.number, error.state.as_str(), error.message.as_str()), (number, state, message));
}

/// Splits off the URL of the reasons and gets them.
fn reasons(error: &ServerError) -> (String, String) {
    let (text, url) = error.message.split_once(". url: ").unwrap_or_else(|| panic!("no url in {error}"));
    (text.to_owned(), Curl::anonymous(url).text())
}

fn assert_filtered(db: &mut Database, statement: &str, reason: &str, source_line: &str) {
    let error = db.client.error(statement);
    assert_eq!((error.number, error.state.as_str()), (1105, "HY000"), "{error}");
    let (text, log) = reasons(&error);
    let expected = format!(
        "errCode = 2, detailMessage = Insert has filtered data in strict mode. first_error_msg: {reason}"
    );
    assert_eq!(text, expected, "{statement}");
    assert_eq!(log, format!("Reason: {reason}. src line [{source_line}]; \n"), "{statement}");
    assert_eq!(db.client.value("SELECT count(*) FROM strict_one"), "0", "{statement}");
}

#[test]
fn an_unknown_table_is_named_with_its_database() {
    let server = Server::shared();
    let mut db = database(&server);
    let message =
        format!("errCode = 2, detailMessage = Table [nowhere] does not exist in database [{}].", db.name);
    for statement in [
        "INSERT INTO nowhere VALUES (1)",
        "INSERT INTO nowhere SELECT 1",
        "INSERT INTO nowhere VALUES (1 + 1)",
        "SELECT * FROM nowhere",
    ] {
        assert_error(&db.client.error(statement), 1146, "42S02", &message);
    }
}

#[test]
fn an_unknown_database_is_named() {
    let server = Server::shared();
    let mut db = database(&server);
    let message = "errCode = 2, detailMessage = Database [nowhere] does not exist.";
    for statement in ["INSERT INTO nowhere.t VALUES (1)", "SELECT * FROM nowhere.t"] {
        assert_error(&db.client.error(statement), 1049, "42000", message);
    }
    assert_error(&db.client.error("USE nowhere"), 1049, "42000", "Unknown database 'nowhere'");
}

#[test]
fn a_table_without_a_database_needs_one() {
    let server = Server::shared();
    let mut client = server.connect();
    for statement in ["INSERT INTO dt VALUES (1, 'a', 1)", "SELECT * FROM dt"] {
        assert_error(&client.error(statement), 1046, "3D000", "No database selected");
    }
}

#[test]
fn a_wrong_number_of_values_names_the_row() {
    let server = Server::shared();
    let mut db = database(&server);
    let at = |row: u32| {
        format!("errCode = 2, detailMessage = Column count doesn't match value count at row {row}")
    };
    let too_few = db.client.error("INSERT INTO dt VALUES (1, 'a')");
    assert_error(&too_few, 1058, "21S01", &at(1));
    let too_many = db.client.error("INSERT INTO dt VALUES (1, 'a', 1), (2, 'b', 2, 3)");
    assert_error(&too_many, 1058, "21S01", &at(2));
    let by_list = db.client.error("INSERT INTO dt (id, name) VALUES (1, 'a', 1)");
    assert_error(&by_list, 1058, "21S01", &at(1));
    assert_eq!(db.client.value("SELECT count(*) FROM dt"), "0");
}

#[test]
fn an_unknown_column_is_named() {
    let server = Server::shared();
    let mut db = database(&server);
    let insert = db.client.error("INSERT INTO dt (id, nickname) VALUES (1, 'a')");
    assert_error(
        &insert,
        1054,
        "42S22",
        "errCode = 2, detailMessage = Unknown column 'nickname' in target table.",
    );
    let select = db.client.error("SELECT nickname FROM dt");
    assert_error(
        &select,
        1054,
        "42S22",
        "errCode = 2, detailMessage = Unknown column 'nickname' in 'table list'",
    );
}

#[test]
fn a_column_named_twice_or_left_out_without_default_is_refused() {
    let server = Server::shared();
    let mut db = database(&server);
    let twice = db.client.error("INSERT INTO dt (id, ID) VALUES (1, 2)");
    assert_error(&twice, 1060, "42S21", "errCode = 2, detailMessage = Column 'id' specified twice");
    let left_out = db.client.error("INSERT INTO dt (name) VALUES ('a')");
    assert_error(
        &left_out,
        1105,
        "HY000",
        "errCode = 2, detailMessage = Column has no default value, column=id",
    );
}

#[test]
fn text_in_an_int_column_fails_a_strict_insert() {
    let server = Server::shared();
    let mut db = database(&server);
    let reason = "column(id) value is incorrect while strict mode is true, src value is abc";
    assert_filtered(&mut db, "INSERT INTO strict_one (id) VALUES (1), ('abc')", reason, "");
}

#[test]
fn null_in_a_not_null_column_fails_an_insert() {
    let server = Server::shared();
    let mut db = database(&server);
    let reason = "column_name[id], null value for not null column, type=INT";
    assert_filtered(&mut db, "INSERT INTO strict_one (id, name) VALUES (1, 'a'), (NULL, 'b')", reason, "");
    db.client.ok("SET group_commit = sync_mode");
    assert_filtered(&mut db, "INSERT INTO strict_one (id, name) VALUES (NULL, 'b')", reason, "");
}

#[test]
fn a_too_long_text_fails_a_strict_insert_with_its_beginning_and_lengths() {
    let server = Server::shared();
    let mut db = database(&server);
    let text = "a text that is longer than thirty-two bytes";
    let reason = format!(
        "column_name[name], the length of input is too long than schema. first 32 bytes of input str: [{}] schema length: 5; actual length: {}; ",
        &text[..32],
        text.len()
    );
    assert_filtered(&mut db, &format!("INSERT INTO strict_one (id, name) VALUES (1, '{text}')"), &reason, "");
    // Lengths are bytes, not characters.
    let umlauts = "column_name[code], the length of input is too long than schema. first 32 bytes of input str: [äö] schema length: 3; actual length: 4; ";
    assert_filtered(&mut db, "INSERT INTO strict_one (id, code) VALUES (1, 'äö')", umlauts, "");
}

#[test]
fn a_number_out_of_range_fails_a_strict_insert() {
    let server = Server::shared();
    let mut db = database(&server);
    let reason = "column(id) value is incorrect while strict mode is true, src value is 2147483648";
    assert_filtered(&mut db, "INSERT INTO strict_one (id) VALUES (2147483648)", reason, "");
    let decimal = "column_name[price], decimal value is not valid for definition, value=1000.00, precision=5, scale=2, min=-999.99, max=999.99; ";
    assert_filtered(&mut db, "INSERT INTO strict_one (id, price) VALUES (1, 1000.00)", decimal, "");
}

#[test]
fn a_date_that_does_not_exist_fails_a_strict_insert() {
    let server = Server::shared();
    let mut db = database(&server);
    let reason = "column(day) value is incorrect while strict mode is true, src value is 2023-02-29";
    assert_filtered(&mut db, "INSERT INTO strict_one (id, day) VALUES (1, '2023-02-29')", reason, "");
}

#[test]
fn a_non_strict_insert_stores_null_or_truncates_and_reports_what_it_filtered() {
    let server = Server::shared();
    let mut db = database(&server);
    db.client.ok("SET enable_insert_strict = false");
    let converted = db.client.ok("INSERT INTO strict_one (id, name, price) VALUES (1, 'abcdefgh', 'cheap')");
    assert_eq!((converted.affected_rows, converted.warnings), (1, 0), "{converted:?}");
    let filtered = db.client.ok("INSERT INTO strict_one (id, name) VALUES (2, 'b'), ('x', 'c'), (NULL, 'd')");
    assert_eq!((filtered.affected_rows, filtered.warnings), (1, 2), "{filtered:?}");
    let log = Curl::anonymous(filtered.info_value("err_url")).text();
    let line = "Reason: column_name[id], null value for not null column, type=INT. src line []; \n";
    assert_eq!(log, line.repeat(2));
    let warnings = db.client.rows("SHOW WARNINGS");
    assert_eq!(warnings, ["Warning|1105|column_name[id], null value for not null column, type=INT"; 2]);
    assert_eq!(
        db.client.rows("SELECT id, name, price FROM strict_one ORDER BY id"),
        ["1|abcde|NULL", "2|b|NULL"]
    );
}

#[test]
fn an_insert_that_is_not_strict_obeys_its_filter_ratio() {
    let server = Server::shared();
    let mut db = database(&server);
    db.client.ok("SET enable_insert_strict = false");
    db.client.ok("SET insert_max_filter_ratio = 0.1");
    let error = db.client.error("INSERT INTO strict_one (id) VALUES (1), (2), (3), (4), (NULL)");
    let (text, _) = reasons(&error);
    assert!(
        text.starts_with("errCode = 2, detailMessage = Insert has too many filtered data 1/5 insert_max_filter_ratio is 0.100000"),
        "{text}"
    );
    assert_eq!(db.client.value("SELECT count(*) FROM strict_one"), "0");
}

#[test]
fn a_bad_insert_harms_no_other_of_its_group() {
    let server = Server::start();
    let mut db = server.database().with_dt("\"group_commit_interval_ms\" = \"3600000\"");
    db.client.ok("SET group_commit = async_mode");
    let first = db.client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    db.client.error("INSERT INTO dt VALUES (2, 'b', 2), ('three', 'c', 3)");
    let last = db.client.ok("INSERT INTO dt VALUES (4, 'd', 4)");
    assert_eq!(first.label(), last.label());
    db.client.ok("SYNC");
    assert_eq!(db.client.rows("SELECT id FROM dt ORDER BY id"), ["1", "4"]);
}
