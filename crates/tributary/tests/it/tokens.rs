//! Tokens of users over HTTP: who may make them, what they are limited to, and when they end.

use crate::support::{Client, Curl, LoadReply, Server, wait_until};

/// Sends a row to a table with this authorization; the answer's status, and its text.
fn load(server: &Server, table: &str, authorization: &[&str]) -> (u16, String) {
    let url = format!("http://127.0.0.1:{}/api/d/{table}/_stream_load", server.http_port());
    let curl = Curl::anonymous(&url).argument("-X").argument("PUT").body("1");
    authorization.iter().fold(curl, |curl, argument| curl.argument(argument)).status_and_text()
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

fn succeeds(answer: &(u16, String)) {
    assert_eq!(LoadReply::parse(&answer.1).status(), "Success", "{answer:?}");
}

fn refused(answer: &(u16, String), text: &str) {
    assert!(answer.1.contains(text), "{answer:?}");
}

/// The token that a statement makes.
fn token(client: &mut Client, statement: &str) -> String {
    let rows = client.rows(statement);
    assert_eq!(rows.len(), 1, "{statement}: {rows:?}");
    rows[0].rsplit('|').next().expect("the last column").to_owned()
}

fn with_users() -> Server {
    let server = Server::start();
    let mut root = server.connect();
    root.ok("CREATE DATABASE d");
    for name in ["t", "other"] {
        root.ok(&format!(
            "CREATE TABLE d.{name} (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1"
        ));
    }
    root.ok("CREATE USER etl IDENTIFIED BY 'right'");
    root.ok("GRANT LOAD_PRIV, SELECT_PRIV ON d.* TO etl");
    server
}

#[test]
fn a_token_stands_for_its_user_and_no_longer_than_it_exists() {
    let mut server = with_users();
    let mut root = server.connect();
    let all = token(&mut root, "CREATE TOKEN nightly FOR etl COMMENT 'for cron'");
    assert!(all.starts_with("trb_") && all.len() == 76, "{all}");
    let error = root.error("CREATE TOKEN nightly FOR etl");
    assert!(error.message.contains("there is a token 'nightly' of this user"), "{error}");
    succeeds(&load(&server, "t", &["-H", &bearer(&all)]));
    succeeds(&load(&server, "t", &["-u", &format!("etl:{all}")]));
    refused(
        &load(&server, "t", &["-u", &format!("root:{all}")]),
        "there is no such token of this user and address",
    );
    let mistyped = all.replace("trb_", "trb-");
    refused(&load(&server, "t", &["-H", &bearer(&mistyped)]), "Access denied");
    assert_eq!(root.value("SELECT COUNT(*) FROM d.t"), "2");
    let shown = root.rows("SHOW TOKENS FOR etl");
    assert!(
        shown.len() == 1 && shown[0].contains("'etl'@'%'|nightly|") && shown[0].ends_with("|for cron"),
        "{shown:?}"
    );
    assert!(!shown[0].contains(&all[4..]), "it is shown once");
    server.kill();
    server.start_again();
    let mut root = server.connect();
    succeeds(&load(&server, "t", &["-H", &bearer(&all)]));
    root.ok("REVOKE LOAD_PRIV ON d.* FROM etl");
    refused(&load(&server, "t", &["-H", &bearer(&all)]), "LOAD command denied to user 'etl'@");
    root.ok("GRANT LOAD_PRIV ON d.* TO etl");
    succeeds(&load(&server, "t", &["-H", &bearer(&all)]));
    root.ok("DROP TOKEN nightly FOR etl");
    refused(&load(&server, "t", &["-H", &bearer(&all)]), "there is no such token");
    root.ok("DROP TOKEN IF EXISTS nightly FOR etl");
    assert!(root.error("DROP TOKEN nightly FOR etl").message.contains("there is no token 'nightly'"));
    let again = token(&mut root, "CREATE TOKEN nightly FOR etl");
    root.ok("DROP USER etl");
    refused(&load(&server, "t", &["-H", &bearer(&again)]), "there is no such token");
}

#[test]
fn a_limited_token_has_no_other_rights_not_even_those_of_root() {
    let server = with_users();
    let mut root = server.connect();
    let limited = token(&mut root, "CREATE TOKEN t FOR root LIMITED TO LOAD ON d.t, SELECT ON d.other");
    let authorization = ["-H", &bearer(&limited)];
    succeeds(&load(&server, "t", &authorization));
    refused(&load(&server, "other", &authorization), "LOAD command denied to user 'root'@");
    let get = |path: &str| {
        let url = format!("http://127.0.0.1:{}{path}", server.http_port());
        Curl::anonymous(&url).header(&bearer(&limited)).text()
    };
    assert!(get("/api/d/other/_count").contains("\"size\":0"), "{}", get("/api/d/other/_count"));
    assert!(get("/api/d/t/_count").contains("denied"), "{}", get("/api/d/t/_count"));
    assert!(get("/api/get_wal_size").contains("denied"), "{}", get("/api/get_wal_size"));
    let shown = root.rows("SHOW TOKENS");
    assert!(shown[0].contains("|Select_priv ON d.other, Load_priv ON d.t|"), "{shown:?}");
    let error = root.error("CREATE TOKEN x LIMITED TO USAGE ON d.t");
    assert!(error.message.contains("there are no such rights on d.t: Usage_priv"), "{error}");
}

#[test]
fn statements_over_http_have_the_rights_of_the_token() {
    let server = with_users();
    let mut root = server.connect();
    let limited = token(&mut root, "CREATE TOKEN t FOR root LIMITED TO LOAD ON d.t, SELECT ON d.other");
    let run = |token: &str, statement: &str| {
        let url = format!("http://127.0.0.1:{}/api/query/internal/d", server.http_port());
        let body = serde_json::json!({ "stmt": statement }).to_string();
        let text = Curl::anonymous(&url).header(&bearer(token)).body(&body).text();
        serde_json::from_str::<serde_json::Value>(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    let id = root.value("SELECT CONNECTION_ID()");
    assert_eq!(run(&limited, "INSERT INTO t VALUES (7)")["code"], 0);
    assert_eq!(run(&limited, "SELECT COUNT(*) FROM other")["data"]["data"][0][0], 0);
    let kill = format!("KILL {id}");
    for (statement, number) in [
        ("SELECT COUNT(*) FROM t", 1142),
        ("INSERT INTO other VALUES (7)", 1142),
        ("CREATE TABLE x (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1", 1142),
        ("SET PASSWORD = PASSWORD('stolen')", 1227),
        ("SET PASSWORD FOR root = PASSWORD('stolen')", 1227),
        ("ALTER USER root IDENTIFIED BY 'stolen'", 1227),
        ("CREATE TOKEN more", 1227),
        ("CREATE TOKEN more FOR etl", 1227),
        ("SHOW TOKENS", 1227),
        ("GRANT ADMIN_PRIV ON *.* TO etl", 1227),
        ("SET GLOBAL query_timeout = 1", 1227),
        (kill.as_str(), 1094),
    ] {
        let answer = run(&limited, statement);
        assert_eq!(answer["error"]["number"], number, "{statement}: {answer}");
    }
    let listed = run(&limited, "SHOW PROCESSLIST");
    assert_eq!(listed["data"]["data"].as_array().map(Vec::len), Some(0), "{listed}");
    assert_eq!(root.value("SELECT COUNT(*) FROM d.t"), "1", "the connection is there");
    let whole = token(&mut root, "CREATE TOKEN whole FOR root");
    assert_eq!(run(&whole, "SELECT COUNT(*) FROM t")["data"]["data"][0][0], 1);
}

#[test]
fn a_token_ends_with_its_time() {
    let server = with_users();
    let mut root = server.connect();
    let short = token(&mut root, "CREATE TOKEN short FOR etl EXPIRES IN 1 SECOND");
    wait_until("it has expired", || {
        load(&server, "t", &["-H", &bearer(&short)]).1.contains("it has expired")
    });
    let long = token(&mut root, "CREATE TOKEN long FOR etl EXPIRES IN 90 DAY");
    succeeds(&load(&server, "t", &["-H", &bearer(&long)]));
    let used = |root: &mut Client| root.rows("SHOW TOKENS FOR etl")[0].split('|').nth(5).map(str::to_owned);
    assert!(used(&mut root).is_some_and(|at| at.starts_with("20")), "{:?}", used(&mut root));
}

#[test]
fn users_make_tokens_for_themselves_and_not_for_those_with_more_rights() {
    let server = with_users();
    let mut root = server.connect();
    root.ok("CREATE USER plain");
    root.ok("ALTER USER etl IDENTIFIED BY ''");
    let mut etl = Client::connect_as("etl", server.mysql_port()).expect("it has no password");
    let own = token(&mut etl, "CREATE TOKEN own");
    succeeds(&load(&server, "t", &["-H", &bearer(&own)]));
    for statement in
        ["CREATE TOKEN x FOR root", "DROP TOKEN x FOR plain", "SHOW TOKENS FOR plain", "SHOW ALL TOKENS"]
    {
        etl.refused(statement, 1227, "");
    }
    assert_eq!(etl.rows("SHOW TOKENS").len(), 1);
    root.ok("GRANT GRANT_PRIV ON *.* TO etl");
    etl.refused("CREATE TOKEN x FOR admin", 1227, "");
    token(&mut etl, "CREATE TOKEN x FOR plain");
    assert_eq!(etl.rows("SHOW ALL TOKENS").len(), 2);
}
