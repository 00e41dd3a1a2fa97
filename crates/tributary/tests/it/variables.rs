//! Session variables that are obeyed or refused, and environment variables of platforms.

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
    for mode in
        ["ALLOW_INVALID_DATES", "HIGH_NOT_PRECEDENCE", "NO_UNSIGNED_SUBTRACTION", "PAD_CHAR_TO_FULL_LENGTH"]
    {
        let error = client.error(&format!("SET sql_mode = CONCAT(@@sql_mode, ',{mode}')"));
        assert_eq!((error.number, &*error.state), (1231, "42000"), "{error}");
        assert!(error.message.contains(&format!("{mode} would change what statements mean")), "{error}");
    }
    assert_eq!(client.error("SET skip_delete_sign = true").number, 1231);
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
fn every_variable_that_drivers_and_tools_read_has_a_value() {
    let server = Server::shared();
    let mut client = server.connect();
    for name in [
        "auto_increment_increment",
        "autocommit",
        "character_set_client",
        "character_set_connection",
        "character_set_results",
        "character_set_server",
        "collation_connection",
        "collation_database",
        "collation_server",
        "event_scheduler",
        "global.character_set_server",
        "global.time_zone",
        "gtid_mode",
        "have_profiling",
        "init_connect",
        "interactive_timeout",
        "license",
        "lower_case_table_names",
        "max_allowed_packet",
        "net_write_timeout",
        "performance_schema",
        "query_cache_size",
        "query_cache_type",
        "secure_file_priv",
        "session.auto_increment_increment",
        "session.transaction_isolation",
        "session.tx_read_only",
        "socket",
        "sql_mode",
        "storage_engine",
        "system_time_zone",
        "time_zone",
        "transaction_isolation",
        "tx_isolation",
        "version_comment",
        "wait_timeout",
    ] {
        assert_eq!(client.rows(&format!("SELECT @@{name}")).len(), 1, "{name}");
    }
    let error = client.error("SELECT @@no_such_variable");
    assert_eq!(error.number, 1193, "{error}");
}

#[test]
fn group_concat_is_cut_where_the_session_asks_for_it() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    db.client.ok("INSERT INTO dt VALUES (1, 'aé', 1), (2, 'bé', 2)");
    let question = "SELECT GROUP_CONCAT(name ORDER BY id SEPARATOR '-') FROM dt";
    assert_eq!(db.client.value(question), "aé-bé");
    for (bytes, shown) in [(4, "aé-"), (6, "aé-b"), (7, "aé-bé"), (100_000_000, "aé-bé")] {
        db.client.ok(&format!("SET group_concat_max_len = {bytes}"));
        assert_eq!(db.client.value(question), shown, "{bytes}");
    }
    assert_eq!(db.client.error("SET group_concat_max_len = 3").number, 1231);
    db.client.ok("SET group_concat_max_len = DEFAULT");
    assert_eq!(db.client.value(question), "aé-bé");
}

#[test]
fn drivers_learn_the_servers_own_largest_packet() {
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

#[test]
fn variables_are_unset_one_by_one_and_all_together() {
    let server = Server::shared();
    let mut client = server.connect();
    let before = client.value("SELECT @@query_timeout");
    client.ok("SET query_timeout = 17");
    client.ok("SET sql_select_limit = 5");
    assert_eq!(client.value("SELECT @@query_timeout"), "17");
    client.ok("UNSET VARIABLE query_timeout");
    assert_eq!(client.value("SELECT @@query_timeout"), before);
    client.ok("SET query_timeout = 17");
    client.ok("UNSET SESSION VARIABLE ALL");
    assert_eq!(client.value("SELECT @@query_timeout"), before);
    client.refused("UNSET VARIABLE nothing_like_it", 1193, "Unknown system variable");
}
