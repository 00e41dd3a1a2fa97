//! Settings that change while the server runs: their effect, refusals, rights, traces, and what the next start keeps.

use crate::support::{Client, Curl, MariaDb, Server, wait_until};
use serde_json::{Value, json};

fn of(client: &mut Client, name: &str) -> String {
    let sql = format!(
        "SELECT VALUE, ORIGIN, TYPE, IS_MUTABLE FROM information_schema.server_settings WHERE NAME = '{name}'"
    );
    client.rows(&sql).remove(0)
}

fn url(server: &Server, path: &str) -> String {
    format!("http://127.0.0.1:{}{path}", server.http_port())
}

#[test]
fn a_change_is_obeyed_shown_and_recorded() {
    let server = Server::with_settings(&[("flush_age_ms", "3600000")]).with_manual_table();
    let mut client = server.connect_to("db");
    client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    let mariadb = MariaDb::new(&server);
    let shown = mariadb.shows(
        "ADMIN SET FRONTEND CONFIG (\"flush_age_ms\" = \"0\");\nSHOW FRONTEND CONFIG LIKE 'flush_age_ms';",
    );
    assert!(shown.contains("Query OK"), "{shown}");
    assert!(shown.contains("| flush_age_ms | 0     | long | true      | false      | Age of"), "{shown}");
    wait_until("the rows are in a data file", || server.metric("tributary_flushes_total") >= 1.0);
    assert_eq!(of(&mut client, "flush_age_ms"), "0|ADMIN SET, until the next start|long|true");
    let events = "SELECT KIND, USER, TEXT FROM information_schema.server_events WHERE KIND = 'SETTING'";
    assert_eq!(client.rows(events), ["SETTING|root|ADMIN SET FRONTEND CONFIG (\"flush_age_ms\" = \"0\")"]);
    let backend = client.rows("SHOW BACKEND CONFIG LIKE 'load_error_log_needs_login'");
    assert_eq!(backend, ["10001|127.0.0.1|load_error_log_needs_login|false|boolean|true"]);
}

#[test]
fn limits_begin_to_refuse_and_end_to() {
    let server = Server::start().with_manual_table();
    let mut client = server.connect_to("db");
    let begun = || Curl::stream_load(&server, "db", "dt").header("column_separator:,").body("1,a,1\n");
    let load = || begun().load();
    let holding = || {
        let mut other = server.connect_to("db");
        other.ok("BEGIN");
        other.ok("INSERT INTO dt VALUES (2, 'b', 2)");
        other
    };
    let held = holding();
    load().success();
    client.ok("ADMIN SET ALL FRONTENDS CONFIG (\"max_concurrent_loads\" = \"1\")");
    let (status, refused) = begun().status_and_text();
    assert!(
        status == 429 && refused.contains("its setting 'max_concurrent_loads' (current value: 1)"),
        "{refused}"
    );
    client.ok("ADMIN SET BACKEND CONFIG (\"max_concurrent_loads\" = \"2\")");
    load().success();
    drop(held);
    // Sessions.
    client.ok("ADMIN SET FRONTEND CONFIG (\"qe_max_connection\" = \"1\")");
    let most = |mut root: Client| root.value("SELECT @@max_connections");
    wait_until("root has a place of its own", || {
        Client::try_connect(server.mysql_port(), None).is_ok_and(|root| most(root) == "1")
    });
    client.ok("CREATE USER eve");
    let error = Client::connect_as("eve", server.mysql_port()).err().expect("there is one session already");
    assert_eq!(error.number, 1040, "{error}");
    client.ok("ADMIN SET FRONTEND CONFIG (\"qe_max_connection\" = \"100\")");
    Client::connect_as("eve", server.mysql_port()).expect("there are places");
    // New tables.
    client.ok("ADMIN SET FRONTEND CONFIG (\"group_commit_interval_ms_default_value\" = \"123\")");
    client.ok("CREATE TABLE later (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    assert!(client.rows("SHOW CREATE TABLE later")[0].contains("\"group_commit_interval_ms\" = \"123\""));
    // Bodies.
    client.ok("ADMIN SET FRONTEND CONFIG (\"streaming_load_max_mb\" = \"1\")");
    let file = server.scratch().join("large.csv");
    std::fs::write(&file, "1,a,1\n".repeat(200_000)).expect("written");
    let reply = Curl::stream_load(&server, "db", "dt").header("column_separator:,").file(&file).load();
    assert!(reply.failure().contains("`streaming_load_max_mb` 1"), "{}", reply.message());
}

#[test]
fn the_logs_filter_changes() {
    let server = Server::start();
    let mut client = server.connect();
    client.ok("ADMIN SET FRONTEND CONFIG (\"log_level\" = \"error\")");
    client.ok("ADMIN SET FRONTEND CONFIG (\"flush_bytes\" = \"1\")");
    client.ok("ADMIN SET FRONTEND CONFIG (\"log_level\" = \"info\")");
    client.ok("ADMIN SET FRONTEND CONFIG (\"flush_age_ms\" = \"1\")");
    let is_logged = |name: &str| {
        server.log().lines().any(|line| line.contains("settings were changed") && line.contains(name))
    };
    wait_until("the last change is logged", || is_logged("flush_age_ms"));
    assert!(!is_logged("flush_bytes"), "{}", server.log());
}

#[test]
fn a_wrong_change_says_what_would_be_right_and_changes_nothing() {
    let server = Server::start();
    let mut client = server.connect();
    let before = client.rows("SELECT NAME, VALUE, ORIGIN FROM information_schema.server_settings ORDER BY 1");
    for (settings, text) in [
        ("\"flush_age\" = \"1\"", "unknown setting `flush_age` (ADMIN SET), did you mean `flush_age_ms`?"),
        (
            "\"http_head_timeout_second\" = \"3601\"",
            "setting `http_head_timeout_second` (ADMIN SET): `3601` is not a whole number from 1 to 3600 (s)",
        ),
        ("\"mem_limit\" = \"101%\"", "`101%` is not a percentage like `10%` (1 to 100) or a number of bytes"),
        ("\"load_error_log_needs_login\" = \"maybe\"", "`maybe` is not true or false"),
        (
            "\"bind\" = \"0.0.0.0\"",
            "setting `bind` can't change while the server runs: set it in the configuration file (--config FILE), or as the \
             environment variable TRIBUTARY_BIND, and restart the server",
        ),
        ("\"flush_age_ms\" = \"1\", \"bind\" = \"::\"", "setting `bind` can't change"),
        ("\"flush_age_ms\" = \"1\", \"flush_age_ms\" = \"2\"", "setting `flush_age_ms` is given twice"),
        ("\"flush_age_ms\" = \"1\", \"persist\" = \"yes\"", "property `persist`: `yes` is not true or false"),
        ("\"persist\" = \"true\"", "no setting is named"),
        ("\"reset_persist\" = \"true\"", "needs \"persist\" = \"true\""),
    ] {
        client.refused(&format!("ADMIN SET FRONTEND CONFIG ({settings})"), 1105, text);
    }
    client.refused("ADMIN SET FRONTEND CONFIG", 1064, "");
    let after = client.rows("SELECT NAME, VALUE, ORIGIN FROM information_schema.server_settings ORDER BY 1");
    assert_eq!(before, after);
    // A value of an unknown name may be a password.
    client.error("ADMIN SET FRONTEND CONFIG (\"catalog_password\" = \"canary\")");
    client.ok("CREATE USER eve");
    client.ok("GRANT SELECT_PRIV ON *.* TO eve");
    let mut eve = Client::connect_as("eve", server.mysql_port()).expect("eve may log in");
    for sql in
        ["ADMIN SET FRONTEND CONFIG (\"flush_age_ms\" = \"1\")", "ADMIN SET FRONTEND CONFIG (\"x\" = \"1\")"]
    {
        let error = eve.error(sql);
        assert_eq!(error.number, 1227, "{error}");
    }
    assert!(!server.log().contains("canary"));
}

#[test]
fn what_is_persisted_survives_a_restart() {
    let mut server = Server::with_settings(&[("flush_age_ms", "1234"), ("verify_interval_seconds", "0")]);
    let file = server.data().join("settings.toml");
    let mut client = server.connect();
    client.ok("ADMIN SET FRONTEND CONFIG (\"flush_age_ms\" = \"77\", \"log_level\" = \"debug,tributary_wal=info\", \"persist\" = \"true\")");
    client.ok("ADMIN SET FRONTEND CONFIG (\"flush_bytes\" = \"1000\")");
    client.ok("ADMIN SET FRONTEND CONFIG (\"target_file_bytes\" = \"18446744073709551615\", \"persist\" = \"true\")");
    server.kill();
    server.start_again();
    let mut client = server.connect();
    let kept = format!("ADMIN SET, file {}", file.display());
    assert_eq!(of(&mut client, "flush_age_ms"), format!("77|{kept}|long|true"));
    assert_eq!(of(&mut client, "log_level"), format!("debug,tributary_wal=info|{kept}|string|true"));
    assert_eq!(of(&mut client, "target_file_bytes"), format!("18446744073709551615|{kept}|long|true"));
    assert!(of(&mut client, "flush_bytes").starts_with("67108864|default|"));
    let text = std::fs::read_to_string(&file).expect("the server wrote it");
    assert!(text.starts_with("# What ADMIN SET") && text.contains("\nflush_age_ms = 77\n"), "{text}");
    client.ok("ADMIN SET FRONTEND CONFIG (\"persist\" = \"true\", \"reset_persist\" = \"true\")");
    assert_eq!(of(&mut client, "flush_age_ms"), "77|ADMIN SET, until the next start|long|true");
    server.stop();
    server.start_again();
    assert!(of(&mut server.connect(), "flush_age_ms").starts_with("1234|"));
    server.stop();
    std::fs::write(&file, "flush_age_ms = 'soon'\n").expect("written");
    let refusal = Server::refusal(&server.data(), &[]);
    let text = format!("setting `flush_age_ms` (file {}): `soon` is not a whole number", file.display());
    assert!(refusal.contains(&text), "{refusal}");
}

#[test]
fn settings_are_changed_and_shown_over_http_as_by_doris() {
    let mut server = Server::start();
    let mut client = server.connect();
    client.ok("CREATE USER eve");
    let shown = |server: &Server, path: &str| -> Value {
        let text = Curl::get(&url(server, path)).text();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    let post = |server: &Server, user: &str, path: &str| -> (u16, Value) {
        let (status, text) = Curl::as_user(user, &url(server, path)).argument("-XPOST").status_and_text();
        (status, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
    };
    assert!(shown(&server, "/api/show_config").as_array().is_some_and(|all| all.len() > 60));
    let (status, answer) = post(&server, "root:", "/api/_set_config?flush_age_ms=55&flush_bytes=66");
    let data = json!({"set": {"flush_age_ms": "55", "flush_bytes": "66"}, "err": [], "persist": ""});
    assert_eq!((status, &answer["code"], &answer["data"]), (200, &json!(0), &data));
    let (_, answer) =
        post(&server, "root:", "/api/update_config?log_level=info%2Ctributary_wal%3Dwarn&persist=true");
    assert_eq!(answer["data"]["persist"], "true", "{answer}");
    assert_eq!(
        shown(&server, "/api/show_config?conf_item=log_level"),
        json!([["log_level", "string", "info,tributary_wal=warn", "true"]])
    );
    let (_, answer) = post(&server, "root:", "/api/_set_config?flush_age_ms=1&bind=x");
    assert!(
        answer["code"] == 1 && answer["data"].as_str().is_some_and(|text| text.contains("restart")),
        "{answer}"
    );
    let (_, answer) = post(&server, "eve:", "/api/_set_config?flush_age_ms=1");
    assert!(
        answer["code"] == 1 && answer["data"].as_str().is_some_and(|text| text.contains("denied")),
        "{answer}"
    );
    let (status, _) = post(&server, "eve:wrong", "/api/_set_config?flush_age_ms=1");
    assert_eq!(status, 401);
    let (status, text) = Curl::get(&url(&server, "/api/_set_config?flush_age_ms=1")).status_and_text();
    assert!(status == 405 && text.contains("POST"), "{status} {text}");
    assert!(of(&mut client, "flush_age_ms").starts_with("55|"));
    server.kill();
    server.start_again();
    assert!(of(&mut server.connect(), "log_level").starts_with("info,tributary_wal=warn|ADMIN SET, file "));
}

/// Events hide the values of properties that they do not know.
#[test]
fn the_values_of_all_settings_that_change_are_shown() {
    let server = Server::start();
    let mut client = server.connect();
    let settings = client.rows(
        "SELECT NAME, VALUE FROM information_schema.server_settings WHERE IS_MUTABLE = 'true' ORDER BY NAME",
    );
    assert!(settings.len() > 20, "{settings:?}");
    let set = |setting: &String| {
        let (name, value) = setting.split_once('|').expect("two columns");
        format!("ADMIN SET FRONTEND CONFIG (\"{name}\" = \"{value}\")")
    };
    settings.iter().for_each(|setting| drop(client.ok(&set(setting))));
    let events = client.rows("SELECT TEXT FROM information_schema.server_events WHERE KIND = 'SETTING'");
    let hidden: Vec<_> = settings.iter().map(set).filter(|text| !events.contains(text)).collect();
    assert!(hidden.is_empty(), "add them to the names of harmless properties: {hidden:#?}\n{events:#?}");
}
