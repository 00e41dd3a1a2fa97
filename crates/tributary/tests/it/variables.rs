//! Session variables: what is obeyed, what is refused, and what platforms put into the environment.

use crate::support::Server;
use crate::support::server::command;

#[test]
fn sql_select_limit_limits_a_select_that_has_no_limit() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    db.client.ok("INSERT INTO dt VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, 'd', 4)");
    db.client.ok("SET sql_select_limit = 2");
    assert_eq!(db.client.rows("SELECT id FROM dt ORDER BY id"), ["1", "2"]);
    assert_eq!(db.client.rows("SELECT id FROM dt ORDER BY id LIMIT 3"), ["1", "2", "3"]);
    assert_eq!(db.client.value("SELECT count(*) FROM dt"), "4");
    db.client.ok("SET sql_select_limit = 0");
    assert_eq!(db.client.rows("SELECT id FROM dt"), [""; 0]);
    db.client.ok("SET sql_select_limit = DEFAULT");
    assert_eq!(db.client.rows("SELECT id FROM dt ORDER BY id").len(), 4);
}

#[test]
fn variables_that_would_change_answers_are_refused_and_those_for_speed_are_kept() {
    let server = Server::shared();
    let mut client = server.connect();
    let error = client.error("SET sql_mode = 'NO_BACKSLASH_ESCAPES'");
    assert_eq!((error.number, &*error.state), (1231, "42000"), "{error}");
    assert!(error.message.contains("NO_BACKSLASH_ESCAPES would change what statements mean"), "{error}");
    assert_eq!(client.error("SET show_hidden_columns = true").number, 1231);
    for name in [
        "enable_vectorized_engine",
        "experimental_enable_nereids_planner",
        "parallel_fragment_exec_instance_num",
    ] {
        client.ok(&format!("SET {name} = 1"));
    }
    assert_eq!(client.value("SELECT @@enable_vectorized_engine"), "1");
    assert_eq!(client.value("SELECT @@socket"), "");
    assert_eq!(client.value("SELECT @@max_prepared_stmt_count"), "16382");
    client.ok("SET timestamp = 1700000000.25");
    assert_eq!(client.value("SELECT unix_timestamp()"), "1700000000");
    client.ok("SET timestamp = DEFAULT");
    assert_ne!(client.value("SELECT unix_timestamp()"), "1700000000");
}

#[test]
fn drivers_are_told_the_servers_own_largest_packet() {
    let server = Server::with_settings(&[("max_allowed_packet", "2097152"), ("qe_max_connection", "77")]);
    let mut client = server.connect();
    assert_eq!(client.value("SELECT @@max_allowed_packet"), "2097152");
    assert_eq!(client.value("SELECT @@max_connections"), "77");
    assert_eq!(client.error("SET max_prepared_stmt_count = 1").number, 1229);
    client.ok("SET GLOBAL max_prepared_stmt_count = 0");
    let address = ("127.0.0.1", server.mysql_port());
    let mut preparing = tributary_client::Client::connect(address, None, None).expect("connected");
    let error = preparing.prepare("SELECT 1").unwrap_err().to_string();
    assert!(error.contains("1461") && error.contains("max_prepared_stmt_count"), "{error}");
}

#[test]
fn a_server_starts_where_a_platform_describes_a_service_called_tributary() {
    let variables = [
        ("TRIBUTARY_SERVICE_HOST", "10.0.0.11"),
        ("TRIBUTARY_SERVICE_PORT", "9030"),
        ("TRIBUTARY_SERVICE_PORT_MYSQL", "9030"),
        ("TRIBUTARY_PORT", "tcp://10.0.0.11:9030"),
        ("TRIBUTARY_PORT_9030_TCP", "tcp://10.0.0.11:9030"),
        ("TRIBUTARY_PORT_9030_TCP_PROTO", "tcp"),
        ("TRIBUTARY_PORT_9030_TCP_PORT", "9030"),
        ("TRIBUTARY_PORT_9030_TCP_ADDR", "10.0.0.11"),
        ("TRIBUTARY_HTTP_PORT", "tcp://10.0.0.12:8030"),
    ];
    let settings: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (&name["TRIBUTARY_".len()..], *value)).collect();
    let server = Server::with_settings(&settings);
    assert_eq!(server.connect().value("SELECT 1"), "1");
    let log = server.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("TRIBUTARY_")).collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(variables.iter().all(|(name, _)| lines[0].contains(name)), "{log}");
}

#[test]
fn a_variable_of_the_environment_that_is_no_setting_is_an_error() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, value) in [("TRIBUTARY_PORT", "9030"), ("TRIBUTARY_SERVICE_HOTS", "10.0.0.11")] {
        let output = command(directory.path()).env(name, value).output().expect("the program runs");
        assert!(!output.status.success());
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains(&format!("(environment {name})")), "{error}");
    }
}
