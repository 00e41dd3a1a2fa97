//! Things that are not well are named in `information_schema.problems`, with their cause, and end when they are over.

use crate::support::{Client, Curl, Server, wait_until};
use std::sync::atomic::{AtomicBool, Ordering};

fn codes(client: &mut Client) -> Vec<String> {
    client.rows("SELECT CODE FROM information_schema.problems ORDER BY 1")
}

fn load(server: &Server, user: &str, headers: &[&str], body: &str) -> u16 {
    let file = server.scratch().join("rows.csv");
    std::fs::write(&file, body).expect("written");
    let url = format!("http://127.0.0.1:{}/api/db/dt/_stream_load", server.http_port());
    Curl::as_user(user, &url)
        .file(&file)
        .headers(&[&["column_separator: ,"], headers].concat())
        .status_and_text()
        .0
}

#[test]
fn a_quiet_server_has_samples_and_no_problem() {
    let server = Server::start().with_manual_table();
    let mut client = server.connect_to("db");
    client.ok("INSERT INTO dt VALUES (1, 'a', 1), (2, 'b', 2)");
    let samples = "SELECT COUNT(*) >= 2, SUM(LOADED_ROWS_PER_SECOND) > 0, MIN(RESIDENT_BYTES) > 1000000, MAX(CONNECTIONS) > 0, \
                   MIN(EVERY_SECONDS) FROM information_schema.server_samples";
    wait_until("two seconds are over", || client.rows(samples) == ["1|1|1|1|1"]);
    wait_until("nothing is wrong", || codes(&mut client).is_empty());
    assert_eq!(server.metric("tributary_problems{code=\"TABLE_LAGS\"}"), 0.0);
}

#[test]
fn settings_and_events_are_shown_to_operators() {
    let server = Server::with_settings(&[("flush_age_ms", "1234")]).with_manual_table();
    let mut client = server.connect_to("db");
    client.ok("CREATE USER eve");
    client.ok("CREATE USER bob IDENTIFIED BY 'canary'");
    client.ok("GRANT SELECT_PRIV ON db.dt TO eve");
    client.ok("SET GLOBAL max_execution_time = 100000");
    client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    client.error("DROP TABLE nowhere");
    let of = "FROM information_schema.server_settings WHERE NAME";
    assert_eq!(
        client.rows(&format!("SELECT VALUE, DEFAULT_VALUE <> VALUE, ORIGIN LIKE 'command line%' OR ORIGIN LIKE 'environment%' {of} = 'flush_age_ms'")),
        ["1234|1|1"]
    );
    assert_eq!(
        client.rows(&format!("SELECT VALUE, ORIGIN, MEANING <> '' {of} = 'mem_limit'")),
        ["90%|default|1"]
    );
    let shown = client.rows("SHOW FRONTEND CONFIG LIKE 'flush_age%'");
    assert!(shown.len() == 1 && shown[0].starts_with("flush_age_ms|1234|long|true|false|"), "{shown:?}");
    let events = client.rows("SELECT KIND, USER, TEXT FROM information_schema.server_events ORDER BY TIME");
    let kinds: Vec<_> = events.iter().map(|event| event.split('|').next().unwrap_or_default()).collect();
    assert_eq!(kinds, ["START", "DDL", "DDL", "RIGHTS", "RIGHTS", "RIGHTS", "SETTING"], "{events:?}");
    assert!(events[6].starts_with("SETTING|root|SET GLOBAL max_execution_time"), "{events:?}");
    assert!(!events.iter().any(|event| event.contains("canary")), "{events:?}");
    let mut eve = Client::connect_as("eve", server.mysql_port()).expect("eve may log in");
    for table in ["server_settings", "server_events"] {
        assert_eq!(eve.value(&format!("SELECT COUNT(*) FROM information_schema.{table}")), "0");
    }
}

#[test]
fn a_client_with_bad_rows_and_one_beyond_its_limit_are_named() {
    let server = Server::start().with_manual_table();
    let mut client = server.connect_to("db");
    for user in ["amy", "bob"] {
        client.ok(&format!("CREATE USER {user}"));
        client.ok(&format!("GRANT LOAD_PRIV ON db.dt TO {user}"));
    }
    client.ok("CREATE USER eve");
    client.ok("SET PROPERTY FOR bob max_load_rows_per_second = 1");
    for _ in 0..12 {
        assert_eq!(load(&server, "amy:", &["max_filter_ratio: 0"], "1,a,1\nx,b,2\n"), 200);
        assert_eq!(load(&server, "root:", &["max_filter_ratio: 0.9"], "1,a,1\nx,b,2\n"), 200);
    }
    assert_eq!(load(&server, "bob:", &[], &"1,a,1\n".repeat(1000)), 200);
    for _ in 0..12 {
        assert_eq!(load(&server, "bob:", &[], "1,a,1\n"), 429, "its rows are paid in 1,000 s");
    }
    wait_until("each is named", || codes(&mut client) == ["LIMIT_REACHED", "LOADS_FAIL", "ROWS_REJECTED"]);
    let named = "SELECT SEVERITY, SUBJECT, CAUSE IS NOT NULL, SINCE <= NOW(3) FROM information_schema.problems WHERE \
                 CODE = ";
    assert_eq!(client.rows(&format!("{named}'LOADS_FAIL'")), ["WARNING|'amy' from 127.0.0.1 into db.dt|1|1"]);
    assert_eq!(client.rows(&format!("{named}'LIMIT_REACHED'")), ["WARNING|'bob' from 127.0.0.1|1|1"]);
    let problem =
        client.value("SELECT PROBLEM FROM information_schema.problems WHERE CODE = 'ROWS_REJECTED'");
    assert!(problem.starts_with("12 rows of loads into db.dt were rejected in the last minute"), "{problem}");
    let way_out =
        client.value("SELECT WAY_OUT FROM information_schema.problems WHERE CODE = 'ROWS_REJECTED'");
    let shown = client.rows(&way_out);
    assert!(shown.len() == 12 && shown[0].ends_with("x,b,2"), "the way out is a statement: {shown:?}");
    assert_eq!(server.metric("tributary_problems{code=\"LOADS_FAIL\"}"), 1.0);
    // Problems of tables are for those who see the table, and the others for those who see the server.
    let mut amy = Client::connect_as("amy", server.mysql_port()).expect("amy may log in");
    assert_eq!(codes(&mut amy), ["ROWS_REJECTED"]);
    let mut eve = Client::connect_as("eve", server.mysql_port()).expect("eve may log in");
    assert_eq!(codes(&mut eve), Vec::<String>::new());
    assert_eq!(eve.value("SELECT COUNT(*) FROM information_schema.server_samples"), "0");
}

#[test]
fn a_table_that_can_not_be_flushed_is_named_until_it_can() {
    let server = Server::with_settings(&[("flush_age_ms", "50")]).with_manual_table();
    let mut client = server.connect_to("db");
    let table = std::fs::read_dir(server.data().join("tables/db")).expect("a table");
    let table = table.flatten().next().expect("a table").path();
    let (log, aside) = (table.join("_delta_log"), table.join("aside"));
    std::fs::rename(&log, &aside).expect("moved");
    std::fs::write(&log, "no directory").expect("written");
    client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    let named = "SELECT SEVERITY, TABLE_SCHEMA, TABLE_NAME, CAUSE LIKE '%has failed%' FROM information_schema.problems \
                 WHERE CODE = 'TABLE_IN_TROUBLE'";
    wait_until("the table is named", || client.rows(named) == ["WARNING|db|dt|1"]);
    wait_until("flushes fail", || codes(&mut client).contains(&"NOT_READY".to_owned()));
    wait_until("the log says so", || server.log().contains("problem: Work on db.dt fails again and again."));
    std::fs::remove_file(&log).expect("removed");
    std::fs::rename(&aside, &log).expect("moved back");
    wait_until("it is over", || codes(&mut client).is_empty());
}

#[test]
fn a_user_that_leaves_little_for_others_is_named_until_it_ends() {
    let server = Server::start().with_manual_table();
    let mut client = server.connect_to("db");
    for user in ["noisy", "quiet"] {
        client.ok(&format!("CREATE USER {user}"));
        client.ok(&format!("GRANT LOAD_PRIV ON db.dt TO {user}"));
    }
    let row = format!("(1, '{}', 1)", "x".repeat(40));
    let large = format!("INSERT INTO db.dt VALUES {}", vec![row; 20_000].join(", "));
    let is_over = AtomicBool::new(false);
    let send = |user: &str, statement: &str| {
        let mut client = Client::connect_as(user, server.mysql_port()).expect("it may log in");
        client.ok("SET group_commit = async_mode");
        while !is_over.load(Ordering::Relaxed) {
            client.ok(statement);
        }
    };
    let connections = 3 * std::thread::available_parallelism().map_or(2, usize::from);
    let named = "SELECT SUBJECT, CAUSE IS NOT NULL, PROBLEM LIKE '%one other user has loads, too%' FROM information_schema.problems \
                 WHERE CODE = 'USER_FLOODS'";
    std::thread::scope(|scope| {
        (0..connections).for_each(|_| drop(scope.spawn(|| send("noisy", &large))));
        scope.spawn(|| send("quiet", "INSERT INTO db.dt VALUES (2, 'b', 2)"));
        // Ends the threads if a check fails, too.
        let _over = Over(&is_over);
        wait_until("the user is named", || client.rows(named) == ["'noisy'@'%'|1|1"]);
        let way_out =
            client.value("SELECT WAY_OUT FROM information_schema.problems WHERE CODE = 'USER_FLOODS'");
        assert!(way_out.contains("SET PROPERTY FOR 'noisy'@'%' 'max_load_bytes_per_second'"), "{way_out}");
    });
    wait_until("it is over", || !codes(&mut client).contains(&"USER_FLOODS".to_owned()));
}

/// Ends what loops until it is set.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
