//! Users, roles and privileges, at every door.

use crate::support::{Client, Curl, LoadReply, Server, wait_until};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// The rights that can be granted on everything, without ADMIN.
const RIGHTS: [&str; 8] = [
    "GRANT_PRIV",
    "SELECT_PRIV",
    "LOAD_PRIV",
    "ALTER_PRIV",
    "CREATE_PRIV",
    "DROP_PRIV",
    "USAGE_PRIV",
    "SHOW_VIEW_PRIV",
];
/// The numbers of refusals.
const REFUSALS: [u16; 3] = [1044, 1142, 1227];

/// Statements, each with exactly the grants that it needs; `$` is a database of its own with the tables `t` and `s` and the view
/// `v`.
const NEEDS: [(&str, &[&str]); 48] = [
    ("SELECT * FROM $.t", &["SELECT_PRIV ON $.t"]),
    ("SELECT (SELECT MAX(id) FROM $.t)", &["SELECT_PRIV ON $.t"]),
    ("WITH x AS (SELECT * FROM $.t) SELECT 1 FROM x", &["SELECT_PRIV ON $.t"]),
    ("SELECT 1 FROM (SELECT 1 UNION ALL SELECT id FROM $.t) x", &["SELECT_PRIV ON $.t"]),
    ("EXPLAIN SELECT * FROM $.t", &["SELECT_PRIV ON $.t"]),
    ("SELECT * FROM $.v", &["SELECT_PRIV ON $.v"]),
    ("INSERT INTO $.t VALUES (1, 'a')", &["LOAD_PRIV ON $.t"]),
    ("INSERT INTO $.t VALUES (1 + 1, 'a')", &["LOAD_PRIV ON $.t"]),
    ("INSERT INTO $.t SELECT 1, 'a'", &["LOAD_PRIV ON $.t"]),
    ("INSERT INTO $.t SELECT * FROM $.s", &["LOAD_PRIV ON $.t", "SELECT_PRIV ON $.s"]),
    ("INSERT OVERWRITE TABLE $.t SELECT * FROM $.s", &["LOAD_PRIV ON $.t", "SELECT_PRIV ON $.s"]),
    (
        "CREATE JOB $_j ON SCHEDULE EVERY 1 DAY DO INSERT INTO $.t SELECT * FROM $.s",
        &["LOAD_PRIV ON $.t", "SELECT_PRIV ON $.s"],
    ),
    ("DELETE FROM $.t WHERE id = 1", &["LOAD_PRIV ON $.t"]),
    ("UPDATE $.u SET name = 'x' WHERE id = 1", &["LOAD_PRIV ON $.u", "SELECT_PRIV ON $.u"]),
    ("TRUNCATE TABLE $.t", &["LOAD_PRIV ON $.t"]),
    ("CREATE DATABASE $_x", &["CREATE_PRIV ON $_x.*"]),
    ("DROP DATABASE $", &["DROP_PRIV ON $.*"]),
    (
        "CREATE TABLE $.x (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1",
        &["CREATE_PRIV ON $.x"],
    ),
    ("CREATE TABLE $.x AS SELECT 1 AS a", &["CREATE_PRIV ON $.x"]),
    ("CREATE TABLE $.x AS SELECT * FROM $.s", &["CREATE_PRIV ON $.x", "SELECT_PRIV ON $.s"]),
    ("CREATE TABLE $.x LIKE $.s", &["CREATE_PRIV ON $.x", "SELECT_PRIV ON $.s"]),
    ("CREATE VIEW $.x AS SELECT * FROM $.s", &["CREATE_PRIV ON $.x", "SELECT_PRIV ON $.s"]),
    ("ALTER VIEW $.v AS SELECT * FROM $.s", &["ALTER_PRIV ON $.v", "SELECT_PRIV ON $.s"]),
    ("DROP VIEW $.v", &["DROP_PRIV ON $.v"]),
    ("DROP TABLE $.t", &["DROP_PRIV ON $.t"]),
    ("ALTER TABLE $.t ADD COLUMN x INT", &["ALTER_PRIV ON $.t"]),
    ("ALTER TABLE $.t RENAME y", &["ALTER_PRIV ON $.t"]),
    ("CREATE INDEX i ON $.t (name) USING INVERTED", &["ALTER_PRIV ON $.t"]),
    ("CLEAN LABEL l FROM $", &["LOAD_PRIV ON $.*"]),
    ("CREATE USER $_u", &["GRANT_PRIV ON *.*"]),
    ("CREATE ROLE $_r", &["GRANT_PRIV ON *.*"]),
    ("SHOW ALL GRANTS", &["GRANT_PRIV ON *.*"]),
    ("SHOW ROLES", &["GRANT_PRIV ON *.*"]),
    ("SHOW GRANTS FOR root", &["GRANT_PRIV ON *.*"]),
    ("SHOW PROPERTY FOR root", &["GRANT_PRIV ON *.*"]),
    ("SET PROPERTY FOR nobody 'max_user_connections' = '9'", &["GRANT_PRIV ON *.*"]),
    ("GRANT SELECT_PRIV ON $.t TO nobody", &["GRANT_PRIV ON $.t", "SELECT_PRIV ON $.t"]),
    ("GRANT LOAD_PRIV ON $.* TO ROLE readers", &["GRANT_PRIV ON $.*", "LOAD_PRIV ON $.*"]),
    ("GRANT 'empty' TO nobody", &["GRANT_PRIV ON *.*"]),
    ("SET GLOBAL query_timeout = 900", &["ADMIN_PRIV ON *.*"]),
    ("SHOW BACKENDS", &["ADMIN_PRIV ON *.*"]),
    ("SHOW FRONTENDS", &["ADMIN_PRIV ON *.*"]),
    ("SHOW CATALOG RECYCLE BIN", &["ADMIN_PRIV ON *.*"]),
    ("USE $", &["SELECT_PRIV ON $.t"]),
    ("SHOW TABLES FROM $", &["LOAD_PRIV ON $.t"]),
    ("DESC $.t", &["ALTER_PRIV ON $.t"]),
    ("SHOW CREATE TABLE $.t", &["DROP_PRIV ON $.t"]),
    ("SHOW CREATE VIEW $.v", &["SHOW_VIEW_PRIV ON $.v"]),
];

/// Seen with any right on the object: here every other right is one too many to be refused.
const SEEN_WITH_ANY: [&str; 5] = ["USE ", "SHOW TABLES", "DESC ", "SHOW CREATE TABLE", "SHOW CREATE VIEW"];

fn prepare(root: &mut Client, database: &str) {
    root.ok(&format!("CREATE DATABASE {database}"));
    for table in ["t", "s"] {
        let columns = "(id INT, name VARCHAR(10)) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1";
        root.ok(&format!("CREATE TABLE {database}.{table} {columns}"));
    }
    root.ok(&format!(
        "CREATE TABLE {database}.u (id INT, name VARCHAR(10)) UNIQUE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1"
    ));
    root.ok(&format!("CREATE VIEW {database}.v AS SELECT * FROM {database}.s"));
}

/// The right's name at the beginning of a grant.
fn right(grant: &str) -> &str {
    grant.split(' ').next().unwrap_or_default()
}

fn run(client: &mut Client, sql: &str) -> Result<(), u16> {
    client.try_query(sql).map_err(|error| {
        assert!(REFUSALS.contains(&error.number), "{sql}: {error}");
        error.number
    })
}

#[test]
fn each_statement_is_refused_without_each_right_that_it_needs_and_works_with_exactly_these() {
    let server = Server::start();
    let mut root = server.connect();
    root.ok("CREATE USER nobody");
    root.ok("CREATE ROLE empty");
    for (number, (sql, needed)) in NEEDS.into_iter().enumerate() {
        let database = format!("d{number}");
        prepare(&mut root, &database);
        // Refused with every right but one of the needed ones.
        for (index, left_out) in needed.iter().enumerate() {
            let user = format!("without_{number}_{index}");
            root.ok(&format!("CREATE USER {user}"));
            let is_seen_with_any = SEEN_WITH_ANY.iter().any(|seen| sql.starts_with(seen));
            let others = RIGHTS.into_iter().filter(|name| *name != right(left_out));
            let others: Vec<&str> =
                if is_seen_with_any { vec!["GRANT_PRIV", "USAGE_PRIV"] } else { others.collect() };
            root.ok(&format!("GRANT {} ON *.* TO {user}", others.join(", ")));
            // The same right, somewhere else.
            if !left_out.ends_with("*.*") {
                root.ok(&format!("GRANT {} ON elsewhere.* TO {user}", right(left_out)));
            }
            let mut client = Client::connect_as(&user, server.mysql_port()).expect("it may connect");
            run(&mut client, &sql.replace('$', &database)).expect_err(&format!("{sql} without {left_out}"));
        }
        // Works with exactly these: by grants of its own, by a role, and by the role that it was made with.
        for way in ["own", "role", "default"] {
            let database = format!("d{number}_{way}");
            prepare(&mut root, &database);
            let of_case = |text: &str| text.replace('$', &database);
            let (user, role) = (format!("with_{number}_{way}"), format!("role_{number}_{way}"));
            root.ok(&format!("CREATE ROLE {role}"));
            let default = if way == "default" { format!(" DEFAULT ROLE '{role}'") } else { String::new() };
            root.ok(&format!("CREATE USER {user}{default}"));
            let to = if way == "own" { user.clone() } else { format!("ROLE {role}") };
            for grant in needed {
                root.ok(&format!("GRANT {} TO {to}", of_case(grant)));
            }
            if way == "role" {
                root.ok(&format!("GRANT '{role}' TO {user}"));
            }
            let mut client = Client::connect_as(&user, server.mysql_port()).expect("it may connect");
            if let Err(error) = client.try_query(&of_case(sql)) {
                panic!("{sql} with {needed:?} by {way}: {error}");
            }
        }
    }
}

#[test]
fn what_a_user_may_not_see_answers_like_what_is_missing() {
    let server = Server::start();
    let mut root = server.connect();
    prepare(&mut root, "d");
    root.ok("CREATE USER ann");
    let mut ann = Client::connect_as("ann", server.mysql_port()).expect("it may connect");
    for (forbidden, missing) in [
        ("SELECT * FROM d.t", "SELECT * FROM d.n"),
        ("SELECT * FROM d.t", "SELECT * FROM n.t"),
        ("SELECT * FROM d.v", "SELECT * FROM d.n"),
        ("INSERT INTO d.t VALUES (1, 'a')", "INSERT INTO d.n VALUES (1, 'a')"),
        ("DELETE FROM d.t WHERE id = 1", "DELETE FROM d.n WHERE id = 1"),
        ("DROP TABLE d.t", "DROP TABLE d.n"),
        ("DROP TABLE IF EXISTS d.t", "DROP TABLE IF EXISTS d.n"),
        ("TRUNCATE TABLE d.t", "TRUNCATE TABLE d.n"),
        ("ALTER TABLE d.t ADD COLUMN x INT", "ALTER TABLE d.n ADD COLUMN x INT"),
        ("DESC d.t", "DESC d.n"),
        ("SHOW CREATE TABLE d.t", "SHOW CREATE TABLE d.n"),
        ("SHOW CREATE VIEW d.v", "SHOW CREATE VIEW d.n"),
        ("SHOW COLUMNS FROM d.t", "SHOW COLUMNS FROM d.n"),
        ("SHOW TABLES FROM d", "SHOW TABLES FROM n"),
        ("USE d", "USE n"),
        ("SHOW CREATE DATABASE d", "SHOW CREATE DATABASE n"),
        ("SHOW LOAD FROM d", "SHOW LOAD FROM n"),
        ("CREATE TABLE d.t LIKE d.s", "CREATE TABLE n.t LIKE n.s"),
        ("SHOW GRANTS FOR root", "SHOW GRANTS FOR nobody"),
        ("SHOW PROPERTY FOR root", "SHOW PROPERTY FOR nobody"),
        ("SET PROPERTY FOR root 'query_timeout' = 1", "SET PROPERTY FOR nobody 'query_timeout' = 1"),
        ("DROP USER root", "DROP USER nobody"),
        ("KILL 1", "KILL 4000000"),
    ] {
        let (forbidden, missing) = (ann.error(forbidden), ann.error(missing));
        let plain = |text: &str| {
            text.replace("'n'", "'d'")
                .replace("n:", "d:")
                .replace(": n'", ": t'")
                .replace(": v'", ": t'")
                .replace(": s'", ": t'")
                .replace("4000000", "1")
        };
        assert_eq!(plain(&forbidden.message), plain(&missing.message));
        assert_eq!(forbidden.number, missing.number);
    }
    let seen = ann.rows("SHOW DATABASES");
    assert_eq!(seen, ["information_schema", "mysql"]);
    for sql in [
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'd'",
        "SELECT column_name FROM information_schema.columns WHERE table_schema = 'd'",
        "SELECT schema_name FROM information_schema.schemata WHERE schema_name = 'd'",
        "SELECT partition_name FROM information_schema.partitions WHERE table_schema = 'd'",
        "SELECT table_name FROM information_schema.views WHERE table_schema = 'd'",
        "SELECT user FROM information_schema.processlist WHERE user = 'root'",
    ] {
        assert!(ann.rows(sql).is_empty(), "{sql}");
    }
    root.ok("GRANT LOAD_PRIV ON d.t TO ann");
    assert_eq!(ann.rows("SHOW DATABASES"), ["d", "information_schema", "mysql"]);
    assert_eq!(ann.rows("SHOW TABLES FROM d"), ["t"]);
    ann.refused(
        "SELECT * FROM d.t",
        1142,
        "SELECT command denied to user 'ann'@'127.0.0.1' for table 'd: t'",
    );
}

#[test]
fn a_load_over_http_needs_the_right_to_load_into_its_table() {
    let server = Server::start();
    let mut root = server.connect();
    prepare(&mut root, "d");
    root.ok("CREATE USER ann");
    let url = |table: &str| format!("http://127.0.0.1:{}/api/d/{table}/_stream_load", server.http_port());
    let load = |table: &str| {
        let curl = Curl::as_user("ann:", &url(table)).argument("-X").argument("PUT");
        curl.header("Expect: 100-continue").header("column_separator:,").body("1,a\n").text()
    };
    let denied = load("t");
    assert!(denied.contains("LOAD command denied to user 'ann'@'127.0.0.1' for table 'd: t'"), "{denied}");
    let message = |answer: &str| LoadReply::parse(answer).message();
    let missing = message(&load("n")).replace(": n'", ": t'");
    assert_eq!(missing, message(&denied), "a missing table answers alike");
    root.ok("GRANT LOAD_PRIV ON d.t TO ann");
    assert!(load("t").contains("\"Success\""), "{}", load("t"));
    assert!(load("s").contains("LOAD command denied"));
    root.ok("REVOKE LOAD_PRIV ON d.t FROM ann");
    assert!(load("t").contains("LOAD command denied"));
    for path in ["d/t/_schema", "d/t/_count"] {
        let url = format!("http://127.0.0.1:{}/api/{path}", server.http_port());
        let answer = Curl::as_user("ann:", &url).text();
        assert!(answer.contains("denied"), "{path}: {answer}");
    }
    // Connectors ask for it with any user.
    let url = format!("http://127.0.0.1:{}/api/backends", server.http_port());
    assert!(Curl::as_user("ann:", &url).text().contains("is_alive"));
}

/// The right that each request needs. `$` is the database.
const ROUTES: [(&str, &str); 12] = [
    ("PUT /api/$/t/_stream_load", "LOAD_PRIV ON $.t"),
    ("PUT /api/_http_stream", "LOAD_PRIV ON $.t"),
    ("PUT /api/$/_stream_load_2pc", "LOAD_PRIV ON $.*"),
    ("GET /api/$/t/_schema", "SELECT_PRIV ON $.t"),
    ("GET /api/enable_light_schema_change/$/t", "SELECT_PRIV ON $.t"),
    ("GET /api/$/t/_count", "SELECT_PRIV ON $.t"),
    ("POST /api/$/t/_query_plan", "SELECT_PRIV ON $.t"),
    ("GET /api/$/_load_info?label=none", "LOAD_PRIV ON $.*"),
    ("POST /api/$/_cancel?label=none", "LOAD_PRIV ON $.*"),
    ("GET /api/get_wal_size", "ADMIN_PRIV ON *.*"),
    ("GET /rest/v2/manager/node/frontends", "ADMIN_PRIV ON *.*"),
    ("GET /rest/v2/manager/node/backends", "ADMIN_PRIV ON *.*"),
];

/// Routes that show an object to users with any right on it.
const SHOWN_WITH_ANY: [&str; 2] = ["_schema", "_load_info"];

#[test]
fn each_route_is_refused_without_its_right_and_answers_with_exactly_that() {
    let server = Server::start();
    let mut root = server.connect();
    for (number, (route, needed)) in ROUTES.into_iter().enumerate() {
        let database = format!("r{number}");
        prepare(&mut root, &database);
        let (method, path) = route.split_once(' ').expect("a method and a path");
        let url = format!("http://127.0.0.1:{}{}", server.http_port(), path.replace('$', &database));
        let ask = |user: &str| {
            let curl = Curl::as_user(&format!("{user}:"), &url).argument("-X").argument(method);
            let sql = format!(
                "sql: INSERT INTO {database}.t SELECT * FROM http_stream('format' = 'csv', 'column_separator' = ',')"
            );
            let curl = match method {
                "PUT" => curl.header("Expect: 100-continue").body("1,a\n"),
                _ => curl,
            };
            match path {
                "/api/_http_stream" => curl.header(&sql).text(),
                path if path.ends_with("_stream_load") => curl.header("column_separator:,").text(),
                path if path.ends_with("_2pc") => {
                    curl.headers(&["txn_operation: commit", "txn_id: 999999999"]).text()
                }
                _ => curl.text(),
            }
        };
        let is_refused = |answer: &str| answer.contains("denied");
        let (without, with) = (format!("route_without_{number}"), format!("route_with_{number}"));
        root.ok(&format!("CREATE USER {without}"));
        let is_shown = SHOWN_WITH_ANY.iter().any(|route| path.contains(route));
        let others = RIGHTS.into_iter().filter(|name| *name != right(needed));
        let others: Vec<&str> = if is_shown { vec!["GRANT_PRIV", "USAGE_PRIV"] } else { others.collect() };
        root.ok(&format!("GRANT {} ON *.* TO {without}", others.join(", ")));
        if !needed.ends_with("*.*") {
            root.ok(&format!("GRANT {} ON elsewhere.* TO {without}", right(needed)));
        }
        let answer = ask(&without);
        assert!(is_refused(&answer), "{route} without {needed}: {answer}");
        for way in ["own", "role"] {
            let user = format!("{with}_{way}");
            root.ok(&format!("CREATE USER {user}"));
            let grant = needed.replace('$', &database);
            if way == "own" {
                root.ok(&format!("GRANT {grant} TO {user}"));
            } else {
                root.ok(&format!("GRANT {grant} TO ROLE role_{user}"));
                root.ok(&format!("GRANT 'role_{user}' TO {user}"));
            }
            let answer = ask(&user);
            assert!(!is_refused(&answer) && !answer.is_empty(), "{route} with {needed} by {way}: {answer}");
        }
    }
}

#[test]
fn information_schema_lists_the_rights_of_the_reader_or_of_all() {
    let server = Server::start();
    let mut root = server.connect();
    prepare(&mut root, "d");
    root.ok("CREATE ROLE loaders");
    root.ok("CREATE USER ann DEFAULT ROLE 'loaders'");
    root.ok("GRANT LOAD_PRIV ON d.t TO ROLE loaders");
    root.ok("GRANT SELECT_PRIV(id), ALTER_PRIV ON d.s TO ann");
    root.ok("GRANT SELECT_PRIV, GRANT_PRIV ON d.* TO ann");
    let mut ann = Client::connect_as("ann", server.mysql_port()).expect("it may connect");
    let read = |client: &mut Client, table: &str| {
        let sql = format!(
            "SELECT * FROM information_schema.{table} WHERE grantee = '''ann''@''%''' ORDER BY 1, 2, 3, 4, 5"
        );
        client.rows(&sql.replace(", 5", if table == "user_privileges" { "" } else { ", 5" }))
    };
    for client in [&mut ann, &mut root] {
        assert_eq!(read(client, "user_privileges"), ["'ann'@'%'|internal|USAGE|NO"]);
        assert_eq!(read(client, "schema_privileges"), ["'ann'@'%'|internal|d|SELECT|YES"]);
        assert_eq!(
            read(client, "table_privileges"),
            ["'ann'@'%'|internal|d|s|ALTER|NO", "'ann'@'%'|internal|d|t|INSERT|NO"]
        );
        assert_eq!(read(client, "column_privileges"), ["'ann'@'%'|internal|d|s|id|SELECT|NO"]);
    }
    let all = "SELECT DISTINCT grantee FROM information_schema.user_privileges ORDER BY 1";
    assert_eq!(ann.rows(all), ["'ann'@'%'"]);
    assert_eq!(root.rows(all), ["'admin'@'%'", "'ann'@'%'", "'root'@'%'"]);
}

#[test]
fn a_user_with_rights_on_columns_sees_these_and_nothing_of_the_others() {
    let mut server = Server::start();
    let mut root = server.connect();
    root.ok("CREATE DATABASE d");
    root.ok(
        "CREATE TABLE d.p (id INT, name VARCHAR(10), salary INT) UNIQUE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1",
    );
    root.ok("INSERT INTO d.p VALUES (1, 'ann', 100), (2, 'bob', 200)");
    root.ok("CREATE VIEW d.v AS SELECT id, salary * 2 AS twice FROM d.p");
    root.ok("CREATE USER ann");
    root.ok("GRANT SELECT_PRIV(id, Name) ON d.p TO ann");
    let shown = root.rows("SHOW GRANTS FOR ann");
    assert!(
        shown[0].contains("|internal.d.p: Select_priv(id); internal.d.p: Select_priv(name)|"),
        "{shown:?}"
    );
    server.kill();
    server.start_again();
    let mut root = server.connect();
    let mut ann = Client::connect_as("ann", server.mysql_port()).expect("it may connect");
    assert_eq!(ann.rows("SELECT * FROM d.p ORDER BY id"), ["1|ann", "2|bob"]);
    assert_eq!(ann.rows("SELECT x.name FROM d.p x JOIN d.p y ON x.id = y.id WHERE x.id = 2"), ["bob"]);
    assert_eq!(ann.rows("SELECT COUNT(*) FROM d.p"), ["2"]);
    assert_eq!(ann.rows("WITH w AS (SELECT * FROM d.p) SELECT * FROM w WHERE id = 1"), ["1|ann"]);
    let unknown = ann.error("SELECT missing FROM d.p").message.replace("missing", "salary");
    for sql in [
        "SELECT salary FROM d.p",
        "SELECT id FROM d.p WHERE salary > 1",
        "SELECT p.salary FROM d.p",
        "SELECT id FROM d.p ORDER BY salary",
        "SELECT (SELECT MAX(salary) FROM d.p)",
        "SELECT SUM(salary) OVER () FROM d.p",
        "EXPLAIN SELECT salary FROM d.p",
    ] {
        let error = ann.error(sql);
        assert_eq!(error.number, 1054, "{sql}: {error}");
        assert!(
            sql != "SELECT salary FROM d.p" || error.message == unknown,
            "{error}: it answers like a missing one"
        );
    }
    assert_eq!(ann.rows("DESC d.p").len(), 2);
    assert_eq!(ann.rows("SHOW FULL COLUMNS FROM d.p").len(), 2);
    assert_eq!(
        ann.rows("SELECT column_name FROM information_schema.columns WHERE table_schema = 'd'"),
        ["id", "name"]
    );
    assert_eq!(ann.rows("SHOW TABLES FROM d"), ["p"]);
    for sql in
        ["SHOW CREATE TABLE d.p", "SHOW INDEX FROM d.p", "SHOW PARTITIONS FROM d.p", "SELECT * FROM d.v"]
    {
        ann.refused(sql, 1142, "");
    }
    for sql in [
        "UPDATE d.p SET name = 'x' WHERE id = 1",
        "DELETE FROM d.p WHERE id = 1",
        "INSERT INTO d.p VALUES (3, 'x', 1)",
    ] {
        ann.refused(sql, 1142, "LOAD command denied");
    }
    let schema = format!("http://127.0.0.1:{}/api/d/p/_schema", server.http_port());
    assert!(Curl::as_user("ann:", &schema).text().contains("denied"));
    // A view made by such a user has the columns that it could read, also for readers who can read more.
    root.ok("GRANT CREATE_PRIV ON d.* TO ann");
    let mut ann = Client::connect_as("ann", server.mysql_port()).expect("it may connect");
    ann.ok("CREATE VIEW d.w AS SELECT * FROM d.p");
    assert_eq!(root.rows("SELECT * FROM d.w ORDER BY id"), ["1|ann", "2|bob"]);
    let prepared_before = ann.rows("SELECT name FROM d.p WHERE id = 1");
    assert_eq!(prepared_before, ["ann"]);
    root.ok("REVOKE SELECT_PRIV(name) ON d.p FROM ann");
    assert_eq!(ann.error("SELECT name FROM d.p WHERE id = 1").number, 1054);
    assert_eq!(ann.rows("SELECT * FROM d.p ORDER BY id"), ["1", "2"]);
    root.ok("GRANT SELECT_PRIV ON d.p TO ann");
    assert_eq!(ann.rows("SELECT salary FROM d.p WHERE id = 1"), ["100"]);
}

#[test]
fn a_prepared_load_is_ended_and_seen_by_who_may_load_into_its_table() {
    let server = Server::start();
    let mut root = server.connect();
    prepare(&mut root, "d");
    for (user, table) in [("ann", "t"), ("bob", "s")] {
        root.ok(&format!("CREATE USER {user}"));
        root.ok(&format!("GRANT LOAD_PRIV ON d.{table} TO {user}"));
    }
    let url = |path: &str| format!("http://127.0.0.1:{}/api/d/{path}", server.http_port());
    let put = |user: &str, path: &str| {
        Curl::as_user(&format!("{user}:"), &url(path)).argument("-X").argument("PUT")
    };
    let load = put("ann", "t/_stream_load").header("two_phase_commit:true").header("label:two");
    let prepared =
        load.header("column_separator:,").header("Expect: 100-continue").body("1,a\n").load().success();
    let commit = |user: &str, label: &str| {
        put(user, "_stream_load_2pc").header("txn_operation:commit").header(&format!("label:{label}")).text()
    };
    let (forbidden, missing) = (commit("bob", "two"), commit("bob", "none"));
    assert!(forbidden.contains("Access denied for user 'bob'@'127.0.0.1' to database 'd'"), "{forbidden}");
    assert_eq!(forbidden, missing);
    let mut ann = Client::connect_as("ann", server.mysql_port()).expect("it may connect");
    let mut bob = Client::connect_as("bob", server.mysql_port()).expect("it may connect");
    ann.ok("USE d");
    bob.ok("USE d");
    let by_label = "SHOW TRANSACTION WHERE LABEL = 'two'";
    assert_eq!(ann.rows(by_label).len(), 1);
    bob.refused(by_label, 1105, "transaction with label two does not exist");
    let by_id = format!("SHOW TRANSACTION WHERE ID = {}", prepared.get("TxnId"));
    assert_eq!(ann.rows(&by_id).len(), 1);
    bob.refused(&by_id, 1105, "does not exist");
    assert_eq!(ann.rows("SHOW STREAM LOAD").len(), 1);
    assert!(bob.rows("SHOW STREAM LOAD").is_empty());
    let state = |user: &str| Curl::as_user(&format!("{user}:"), &url("get_load_state?label=two")).text();
    assert!(state("ann").contains("PRECOMMITTED"), "{}", state("ann"));
    assert!(state("bob").contains("UNKNOWN"), "{}", state("bob"));
    assert!(commit("ann", "two").contains("\"Success\""));
    assert_eq!(root.value("SELECT COUNT(*) FROM d.t"), "1");
}

#[test]
fn no_list_shows_anything_of_a_veiled_table() {
    let server = Server::start();
    let mut root = server.connect();
    root.ok("CREATE DATABASE d");
    let rest = "DUPLICATE KEY(veiled_column) DISTRIBUTED BY HASH(veiled_column) BUCKETS 1";
    root.ok(&format!("CREATE TABLE d.veiled_table (veiled_column INT, v INT) {rest}"));
    root.ok("CREATE TABLE d.open (a INT) DUPLICATE KEY(a) DISTRIBUTED BY HASH(a) BUCKETS 1");
    root.ok("CREATE VIEW d.veiled_view AS SELECT * FROM d.veiled_table");
    root.ok("INSERT INTO d.veiled_table VALUES (1, 1)");
    root.ok("ALTER TABLE d.veiled_table ADD COLUMN w INT");
    let url = format!("http://127.0.0.1:{}/api/d/veiled_table/_stream_load", server.http_port());
    Curl::put(&url)
        .header("label:veiled_label")
        .header("Expect: 100-continue")
        .body("2\t2\t2\n")
        .load()
        .success();
    for sql in
        ["CREATE USER nobody", "CREATE USER neighbour", "GRANT SELECT_PRIV, LOAD_PRIV ON d.open TO neighbour"]
    {
        root.ok(sql);
    }
    let lists = [
        "SHOW DATABASES",
        "SHOW FULL PROCESSLIST",
        "SHOW TABLES FROM d",
        "SHOW FULL TABLES FROM d",
        "SHOW TABLE STATUS FROM d",
        "SHOW TRANSACTION FROM d WHERE STATUS = 'visible'",
        "SHOW TRANSACTION FROM d WHERE LABEL = 'veiled_label'",
        "SHOW LOAD FROM d",
        "SHOW STREAM LOAD FROM d",
        "SHOW EXPORT FROM d",
        "SHOW ROUTINE LOAD FROM d",
        "SHOW ALTER TABLE COLUMN FROM d",
        "SHOW ALTER TABLE ROLLUP FROM d",
        "SHOW DYNAMIC PARTITION TABLES FROM d",
        "SHOW CREATE DATABASE d",
        "SHOW DATA",
        "SHOW GRANTS",
    ];
    let paths = ["get_load_state?label=veiled_label", "_load_info?label=veiled_label"];
    let is_hidden =
        |text: &str| ["veiled_table", "veiled_column", "veiled_view"].iter().any(|name| text.contains(name));
    for (user, shows) in [("root", true), ("nobody", false), ("neighbour", false)] {
        let mut client = Client::connect_as(user, server.mysql_port()).expect("it may connect");
        let tables = client.rows(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'information_schema'",
        );
        assert!(tables.len() > 20, "{tables:?}");
        let of_schema = tables.iter().map(|table| format!("SELECT * FROM information_schema.{table}"));
        let mut showing = 0;
        for sql in lists.map(str::to_owned).into_iter().chain(of_schema) {
            let rows = client.try_rows(&sql).unwrap_or_default();
            let shown = rows.iter().find(|row| is_hidden(row));
            assert!(shows || shown.is_none(), "{user}: {sql}: {shown:?}");
            showing += usize::from(shown.is_some());
        }
        for path in paths {
            let url = format!("http://127.0.0.1:{}/api/d/{path}", server.http_port());
            let text = Curl::as_user(&format!("{user}:"), &url).text();
            assert!(shows || (!is_hidden(&text) && !text.contains("VISIBLE")), "{user}: {path}: {text}");
        }
        assert!(!shows || showing > 10, "only {showing} lists show it to {user}");
    }
}

#[test]
fn rights_that_are_taken_away_end_at_once() {
    let server = Server::start();
    let mut root = server.connect();
    prepare(&mut root, "d");
    root.ok("CREATE USER ann");
    root.ok("GRANT SELECT_PRIV, LOAD_PRIV ON d.* TO ROLE writers");
    root.ok("GRANT 'writers' TO ann");
    let mut ann = Client::connect_as("ann", server.mysql_port()).expect("it may connect");
    ann.ok("SET group_commit = async_mode");
    let insert = "INSERT INTO d.t VALUES (1, 'a')";
    ann.ok(insert);
    ann.rows("SELECT * FROM d.t");
    root.ok("REVOKE LOAD_PRIV ON d.* FROM ROLE writers");
    ann.refused(insert, 1142, "LOAD command denied");
    ann.rows("SELECT * FROM d.t");
    root.ok("REVOKE 'writers' FROM ann");
    ann.refused("SELECT * FROM d.t", 1142, "SELECT command denied");
    root.ok("GRANT LOAD_PRIV ON d.t TO ann");
    ann.ok(insert);
    root.ok("DROP ROLE writers");
    ann.ok(insert);
    // A dropped user's session ends, and its rights are not those of the next user of its name.
    root.ok("DROP USER ann");
    assert!(ann.try_bytes(insert.as_bytes()).map_or(true, |answer| answer.is_err()), "the session has ended");
    assert!(Client::connect_as("ann", server.mysql_port()).is_err());
    wait_until("the session is gone", || root.rows("SHOW PROCESSLIST").len() == 1);
    root.ok("CREATE USER ann");
    let mut ann = Client::connect_as("ann", server.mysql_port()).expect("it may connect");
    ann.refused(insert, 1142, "LOAD command denied");
}

#[test]
fn nobody_gives_or_becomes_more_than_it_is() {
    let server = Server::start();
    let mut root = server.connect();
    prepare(&mut root, "d");
    for sql in [
        "CREATE USER ann",
        "CREATE USER bob",
        "CREATE USER eve DEFAULT ROLE 'admin' COMMENT 'of the night shift'",
        "GRANT GRANT_PRIV, SELECT_PRIV ON *.* TO ann",
        "GRANT LOAD_PRIV ON d.* TO ROLE loaders",
    ] {
        root.ok(sql);
    }
    let mut ann = Client::connect_as("ann", server.mysql_port()).expect("it may connect");
    ann.ok("GRANT SELECT_PRIV ON d.t TO bob");
    for sql in [
        "GRANT LOAD_PRIV ON d.t TO bob",
        "GRANT ADMIN_PRIV ON *.* TO ann",
        "GRANT NODE_PRIV ON *.* TO ann",
        "GRANT 'admin' TO ann",
        "GRANT 'operator' TO ann",
        "GRANT 'loaders' TO ann",
        "GRANT USAGE_PRIV ON RESOURCE s3 TO ann",
        "GRANT USAGE_PRIV ON RESOURCE * TO ann",
        "REVOKE LOAD_PRIV ON d.* FROM ROLE loaders",
        "DROP ROLE loaders",
        "SET PASSWORD FOR eve = PASSWORD('x')",
        "ALTER USER eve IDENTIFIED BY 'x'",
        "DROP USER eve",
        "CREATE USER mallory DEFAULT ROLE 'admin'",
        "SET PASSWORD FOR root = PASSWORD('x')",
        "DROP USER root",
        "KILL 1",
        "SET GLOBAL query_timeout = 1",
    ] {
        let error = ann.error(sql);
        assert!([1044, 1142, 1227, 1094].contains(&error.number), "{sql}: {error}");
    }
    let mut eve = Client::connect_as("eve", server.mysql_port()).expect("it may connect");
    eve.refused("GRANT NODE_PRIV ON *.* TO eve", 1227, "NODE");
    eve.refused("SET PASSWORD FOR root = PASSWORD('x')", 1227, "Only root user can modify root user");
    eve.ok("GRANT LOAD_PRIV ON d.t TO bob");
    root.refused("REVOKE 'operator' FROM root", 1105, "it is needed to administer the server");
    root.refused("GRANT ADMIN_PRIV ON d.* TO bob", 1105, "Admin_priv can not be granted on d.*");
    root.refused(
        "GRANT SELECT_PRIV ON RESOURCE s3 TO bob",
        1105,
        "Select_priv can not be granted on RESOURCE 's3'",
    );
    root.ok("GRANT USAGE_PRIV ON RESOURCE 'S3' TO bob");
    root.ok("REVOKE USAGE_PRIV ON RESOURCE s3 FROM bob");
    root.refused("GRANT USAGE_PRIV ON RESOURCE ftp TO bob", 1105, "there are s3, http, local, kafka");
    let grants = root.rows("SHOW GRANTS FOR bob");
    assert!(grants[0].contains("internal.d.t: Select_priv,Load_priv"), "{grants:?}");
    let own = eve.rows("SHOW GRANTS");
    assert!(own[0].starts_with("'eve'@'%'|of the night shift|No|admin|Admin_priv|NULL|"), "{own:?}");
    let roles = root.rows("SHOW ROLES");
    assert!(
        roles.iter().any(|row| row.starts_with("operator||'root'@'%'|Node_priv,Admin_priv|")),
        "{roles:?}"
    );
    // One's own password, and one's own connections.
    let mut bob = Client::connect_as("bob", server.mysql_port()).expect("it may connect");
    let id = bob.value("SELECT CONNECTION_ID()");
    let mut other = Client::connect_as("bob", server.mysql_port()).expect("it may connect");
    assert_eq!(other.rows("SHOW PROCESSLIST").len(), 2, "two of its own");
    other.ok(&format!("KILL {id}"));
    other.ok("SET PASSWORD = PASSWORD('new')");
    assert!(Client::connect_as("bob", server.mysql_port()).is_err());
    root.ok("ALTER USER bob");
    assert!(Client::connect_as("bob", server.mysql_port()).is_err(), "it still has its password");
    root.ok("ALTER USER IF EXISTS nobody IDENTIFIED BY 'x'");
    root.refused("ALTER USER nobody IDENTIFIED BY 'x'", 1105, "does not exist");
}

#[test]
fn no_socket_is_opened_for_a_user_who_may_not_leave_the_server() {
    let server = Server::with_settings(&[("egress", "127.0.0.0/8")]);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    listener.set_nonblocking(true).expect("a socket");
    let mut root = server.connect();
    prepare(&mut root, "d");
    root.ok("CREATE USER ann");
    root.ok("GRANT ALL, GRANT_PRIV, SHOW_VIEW_PRIV ON *.* TO ann");
    let mut ann = Client::connect_as("ann", server.mysql_port()).expect("it may connect");
    let http = format!("HTTP('uri' = 'http://127.0.0.1:{port}/f.csv', 'format' = 'csv')");
    let keys = "'s3.access_key' = 'a', 's3.secret_key' = 'b', 's3.region' = 'r'";
    let at = format!("'s3.endpoint' = 'http://127.0.0.1:{port}', {keys}");
    for (sql, resource) in [
        (format!("SELECT * FROM {http}"), "http"),
        (format!("DESC FUNCTION {http}"), "http"),
        (format!("EXPLAIN SELECT * FROM {http}"), "http"),
        (format!("INSERT INTO d.t SELECT * FROM {http}"), "http"),
        (format!("CREATE TABLE d.x AS SELECT * FROM {http}"), "http"),
        (format!("SELECT * FROM S3('uri' = 's3://b/f.csv', 'format' = 'csv', {at})"), "s3"),
        (
            "SELECT * FROM LOCAL('file_path' = 'f.csv', 'backend_id' = '1', 'format' = 'csv')".to_owned(),
            "local",
        ),
        (format!("LOAD LABEL d.l (DATA INFILE('s3://b/f') INTO TABLE t) WITH S3({at})"), "s3"),
        (format!("EXPORT TABLE d.t TO 's3://b/p_' WITH S3({at})"), "s3"),
        (format!("SELECT 1 INTO OUTFILE 's3://b/p_' FORMAT AS CSV PROPERTIES({at})"), "s3"),
        (
            format!(
                "CREATE ROUTINE LOAD d.j ON t FROM KAFKA ('kafka_broker_list' = '127.0.0.1:{port}', 'kafka_topic' = 't')"
            ),
            "kafka",
        ),
    ] {
        let error = ann.error(&sql);
        assert_eq!(error.number, 1227, "{sql}: {error}");
        assert!(
            error.message.contains(&format!("GRANT USAGE_PRIV ON RESOURCE '{resource}' TO")),
            "{sql}: {error}"
        );
    }
    assert!(listener.accept().is_err(), "nobody has connected");
    root.ok("GRANT USAGE_PRIV ON RESOURCE http TO ann");
    let error = ann.error(&format!("SELECT * FROM S3('uri' = 's3://b/f.csv', 'format' = 'csv', {at})"));
    assert_eq!(error.number, 1227, "another way: {error}");
}

#[test]
fn a_load_ends_with_the_right_that_it_began_with() {
    let server = Server::start();
    let mut root = server.connect();
    prepare(&mut root, "d");
    root.ok("CREATE USER ann");
    let grant = |root: &mut Client| root.ok("GRANT LOAD_PRIV ON d.t TO ann");
    let revoke = |root: &mut Client| root.ok("REVOKE LOAD_PRIV ON d.t FROM ann");
    let refused = "the right to load into d.t was revoked while the load ran; nothing of the load was kept";
    let mut ann = Client::connect_as("ann", server.mysql_port()).expect("it may connect");
    let before = root.value("SELECT COUNT(*) FROM d.t");

    // A body that is still arriving.
    let head = "PUT /api/d/t/_stream_load HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic YW5uOg==\r\n\
                column_separator: ,\r\nConnection: close\r\nContent-Length: 8\r\n\r\n";
    for is_granted_again in [false, true] {
        grant(&mut root);
        let mut stream = TcpStream::connect(("127.0.0.1", server.http_port())).expect("it listens");
        stream.write_all(format!("{head}8,a\n").as_bytes()).expect("sent");
        wait_until("the load runs", || {
            root.value("SELECT COUNT(*) FROM information_schema.transactions WHERE STATUS = 'PREPARE'") == "1"
        });
        revoke(&mut root);
        if is_granted_again {
            grant(&mut root);
        }
        stream.write_all(b"9,b\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert_eq!(answer.contains(refused), !is_granted_again, "{answer}");
        assert_eq!(answer.contains("\"Status\": \"Success\""), is_granted_again, "{answer}");
    }

    // A transaction that is committed later, and a plan that is used again.
    ann.ok("USE d");
    ann.ok("BEGIN");
    ann.ok("INSERT INTO t VALUES (10, 'c')");
    revoke(&mut root);
    let error = ann.error("COMMIT");
    assert!(error.message.contains(refused), "{error:?}");
    assert_eq!(error.number, 1142);
    assert_eq!(ann.error("INSERT INTO t VALUES (11, 'c')").number, 1142);
    let after: u64 = root.value("SELECT COUNT(*) FROM d.t").parse().expect("a number");
    assert_eq!(after, before.parse::<u64>().expect("a number") + 2, "the load whose right came back");
}
