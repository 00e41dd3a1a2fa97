//! Nodes that only read the tables of another server: moto has the tables, and PostgreSQL the catalog.

use crate::object_storage::{Bucket, csv, stream_load, sums};
use crate::support::postgres::{PASSWORD, Postgres, Stop};
use crate::support::programs::python;
use crate::support::{Client, Curl, Server, wait_until};
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A bucket and a database, which servers share.
pub struct Cluster {
    bucket: Bucket,
    pub postgres: Arc<Postgres>,
    pub database: String,
    url: String,
}

impl Cluster {
    fn on(postgres: Arc<Postgres>) -> Self {
        let database = postgres.database();
        let url = postgres.url(&database);
        Self { bucket: Bucket::new(), postgres, database, url }
    }

    pub fn new() -> Self {
        Self::on(Postgres::shared())
    }

    pub fn settings(&self, more: &[(&str, &str)]) -> Vec<(String, String)> {
        let own = [("catalog_url", self.url.as_str()), ("catalog_password", PASSWORD)];
        let more = own.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        self.bucket.settings().into_iter().chain(more).collect()
    }

    pub fn server(&self, more: &[(&str, &str)]) -> Server {
        let settings = self.settings(more);
        let settings: Vec<(&str, &str)> =
            settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Server::with_settings(&settings)
    }

    pub fn reader(&self, more: &[(&str, &str)]) -> Server {
        let more: Vec<(&str, &str)> = [("read_only", "true")].iter().chain(more).copied().collect();
        self.server(&more)
    }
}

/// Compares the answers of a reader, which waits for all that the writer shows, with the writer's.
#[track_caller]
fn assert_same(writer: &mut Client, reader: &mut Client, queries: &[&str]) {
    writer.ok("SYNC");
    reader.ok("SYNC");
    for query in queries {
        assert_eq!(reader.rows(query), writer.rows(query), "{query}");
    }
}

#[test]
fn a_reader_answers_like_the_writer_and_changes_nothing() {
    let cluster = Cluster::new();
    let writer = cluster.server(&[]).with_manual_table();
    let mut client = writer.connect_to("db");
    stream_load(&writer, "dt", "async_mode", &csv(0, 1000));
    client.ok("CREATE TABLE u (id INT NOT NULL, v INT) UNIQUE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    client.ok(
        "CREATE TABLE a (id INT NOT NULL, n BIGINT SUM) AGGREGATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1",
    );
    client.ok(
        "CREATE TABLE p (id INT NOT NULL, v INT) DUPLICATE KEY(id) \
         PARTITION BY RANGE(id) (PARTITION low VALUES LESS THAN (\"10\"), PARTITION high VALUES LESS THAN (\"100\")) \
         DISTRIBUTED BY HASH(id) BUCKETS 1",
    );
    client.ok("CREATE VIEW seen AS SELECT id, v FROM u WHERE v > 1");
    let reader = cluster.reader(&[]);
    let mut of_reader = reader.connect_to("db");
    let queries = [
        "SELECT COUNT(*), COUNT(DISTINCT id), SUM(score) FROM dt",
        "SELECT * FROM u ORDER BY id",
        "SELECT * FROM a ORDER BY id",
        "SELECT * FROM p ORDER BY id, v",
        "SELECT * FROM p PARTITION(low) ORDER BY id",
        "SELECT * FROM seen ORDER BY id",
        "SELECT dt.id, u.v FROM dt JOIN u ON dt.id = u.id ORDER BY dt.id",
        "SHOW TABLES",
        "SHOW CREATE TABLE u",
        "SELECT COLUMN_NAME, COLUMN_TYPE FROM information_schema.columns WHERE TABLE_SCHEMA = 'db' ORDER BY TABLE_NAME, ORDINAL_POSITION",
    ];
    assert_same(&mut client, &mut of_reader, &queries);
    for round in 0..3 {
        client.ok(&format!("INSERT INTO u VALUES (1, {round}), (2, {round}), ({}, {round})", 10 + round));
        client.ok(&format!("INSERT INTO a VALUES (1, 5), ({round}, 1)"));
        client.ok(&format!("INSERT INTO p VALUES ({round}, 0), ({}, 1)", 50 + round));
        client.ok("SYNC");
        client.ok(&format!("DELETE FROM dt WHERE id = {}", 10 + round));
        client.ok("UPDATE u SET v = v + 10 WHERE id = 2");
        assert_same(&mut client, &mut of_reader, &queries);
    }
    client.ok("ALTER TABLE u ADD COLUMN w INT DEFAULT '7'");
    client.ok("INSERT INTO u VALUES (100, 1, 2)");
    client.ok("ALTER TABLE dt MODIFY COLUMN score BIGINT");
    wait_until("the schema change has ended", || {
        client.rows("SHOW ALTER TABLE COLUMN FROM db").iter().all(|row| row.contains("FINISHED"))
    });
    client.ok("ALTER TABLE p DROP PARTITION low FORCE");
    client.ok("ALTER TABLE a RENAME b");
    client.ok("TRUNCATE TABLE p");
    client.ok("INSERT INTO p VALUES (60, 60)");
    let queries =
        queries.map(|query| query.replace("FROM a", "FROM b").replace("PARTITION(low)", "PARTITION(high)"));
    let queries: Vec<&str> = queries.iter().map(String::as_str).collect();
    assert_same(&mut client, &mut of_reader, &queries);
    client.ok("DROP TABLE b FORCE");
    wait_until("the table is gone", || of_reader.try_query("SELECT * FROM b").is_err());
    // Files of before are merged while it reads.
    for round in 0..20 {
        client.ok(&format!("INSERT INTO dt VALUES ({}, 'more', 0)", 5000 + round));
        client.ok("SYNC");
        assert!(of_reader.value("SELECT COUNT(*) FROM dt").parse::<u64>().expect("a number") >= 997);
    }
    assert_same(&mut client, &mut of_reader, &["SELECT COUNT(*), SUM(id) FROM dt"]);

    refuses_changes(&reader, &mut of_reader);
    let followed = of_reader.rows(
        "SELECT TABLE_NAME, DELTA_VERSION > 0, AGE_MS < 60000, ERROR FROM information_schema.followed_tables ORDER BY TABLE_NAME",
    );
    assert_eq!(followed, ["dt|1|1|NULL", "p|1|1|NULL", "u|1|1|NULL"]);
    assert!(client.rows("SELECT * FROM information_schema.followed_tables").is_empty());
    assert!(of_reader.rows("SELECT CODE, PROBLEM FROM information_schema.problems").is_empty());
    for own in ["wal", "catalog.db", "tables"] {
        assert!(!reader.data().join(own).exists(), "a reader has no {own}");
    }
    let versions = of_reader.rows("SELECT TABLE_NAME, DELTA_VERSION FROM information_schema.followed_tables");
    let (mut reader, mut writer) = (reader, writer);
    assert!(reader.stop().success());
    assert!(writer.stop().success());
    reader.start_again();
    let mut of_reader = reader.connect_to("db");
    let shown = of_reader.rows("SELECT TABLE_NAME, DELTA_VERSION FROM information_schema.followed_tables");
    assert_eq!(shown, versions, "it reads without the writer, too");
}

#[test]
fn the_nodes_of_a_cluster_know_of_one_another_and_only_the_writer_takes_loads() {
    let cluster = Cluster::new();
    let mut writer = cluster.server(&[]);
    let mut client = writer.connect();
    let mut readers = [cluster.reader(&[]), cluster.reader(&[])];
    let nodes = "SELECT ROLE, QUERY_PORT, HTTP_PORT, FLIGHT_PORT, VERSION LIKE 'tributary-%', SINCE > '2020-01-01', HEARD_MS < 60000, \
                 ROWS_AGE_MS < 60000, ALIVE, HEARD_AT >= SINCE, COMPUTES_PARTS FROM information_schema.nodes ORDER BY ROLE DESC";
    let row = |role: &str, server: &Server| {
        format!("{role}|{}|{}|NULL|1|1|1|1|YES|1|NO", server.mysql_port(), server.http_port())
    };
    let mut expected: Vec<String> = readers.iter().map(|reader| row("READER", reader)).collect();
    expected.sort();
    expected.insert(0, row("WRITER", &writer));
    let sorted = |client: &mut Client| {
        let mut rows = client.rows(nodes);
        rows[1..].sort();
        rows
    };
    wait_until("the writer knows of its readers", || sorted(&mut client) == expected);
    let mut of_reader = readers[0].connect();
    wait_until("a reader knows of the others", || sorted(&mut of_reader) == expected);
    shows_nodes_as_doris_does(&writer, &readers);
    client.ok("CREATE USER eve");
    let mut eve = Client::connect_as("eve", writer.mysql_port()).expect("eve may log in");
    assert!(eve.rows("SELECT * FROM information_schema.nodes").is_empty());
    // One ends in order, one without a word.
    assert!(readers[0].stop().success());
    readers[1].kill();
    wait_until("the one that has ended is gone", || {
        client.value("SELECT COUNT(*) FROM information_schema.nodes WHERE ROLE = 'READER'") == "1"
    });
    wait_until("the other is not heard of", || {
        client
            .rows("SELECT Alive, ErrMsg LIKE 'not heard of for % s' FROM frontends() WHERE Role = 'OBSERVER'")
            == ["false|1"]
    });
    let silent = "SELECT HEARD_MS > 15000, ALIVE FROM information_schema.nodes WHERE ROLE = 'READER'";
    assert_eq!(client.rows(silent), ["1|NO"]);
    let status = "SELECT Alive, Status LIKE '%\"isQueryDisabled\":true%' FROM backends() WHERE NodeRole = 'computation'";
    assert_eq!(client.rows(status), ["false|1"]);
    assert!(writer.stop().success());
    readers[0].start_again();
    let mut of_reader = readers[0].connect();
    wait_until("the writer is gone", || {
        of_reader.value("SELECT COUNT(*) FROM information_schema.nodes WHERE ROLE = 'WRITER'") == "0"
    });
}

/// SHOW FRONTENDS and SHOW BACKENDS at each node, and the lists from which connectors take the targets of loads.
#[track_caller]
fn shows_nodes_as_doris_does(writer: &Server, readers: &[Server]) {
    let nodes = || std::iter::once(writer).chain(readers);
    let sorted = |mut rows: Vec<String>| {
        rows.sort();
        rows
    };
    for asked in nodes() {
        let is_asked = |node: &Server| node.mysql_port() == asked.mysql_port();
        let role = |node: &Server, of_writer, of_reader| {
            if node.mysql_port() == writer.mysql_port() { of_writer } else { of_reader }
        };
        let frontend = |node: &Server| {
            let role = role(node, "FOLLOWER|true", "OBSERVER|false");
            let here = if is_asked(node) { "Yes|1" } else { "No|0" };
            format!("127.0.0.1|{}|{}|-1|{role}|true||1|{here}", node.http_port(), node.mysql_port())
        };
        let mut client = asked.connect();
        let shown = "SELECT Host, HttpPort, QueryPort, ArrowFlightSqlPort, Role, IsMaster, Alive, ErrMsg, Version LIKE 'tributary-%', \
                     CurrentConnected, LastHeartbeat IS NULL FROM frontends()";
        let found = sorted(client.rows(shown));
        assert_eq!(found, sorted(nodes().map(frontend).collect()));
        let backend = |node: &Server| {
            let role = role(node, "mix|false", "computation|true");
            format!("127.0.0.1|{}|-1|true|false|{role}|1", node.webserver_port())
        };
        let shown = "SELECT Host, HttpPort, ArrowFlightSqlPort, Alive, SystemDecommissioned, NodeRole, \
                     REGEXP_EXTRACT(Status, 'isLoadDisabled\":([a-z]*)', 1), CpuCores > 0 FROM backends()";
        let found = sorted(client.rows(shown));
        assert_eq!(found, sorted(nodes().map(backend).collect()));
        let numbers = sorted(client.rows("SELECT DISTINCT BackendId FROM backends()"));
        assert!(numbers.len() == 1 + readers.len() && numbers.contains(&"10001".to_owned()), "{numbers:?}");
        // The writer comes first.
        let first = client.rows("SHOW FRONTENDS").remove(0);
        assert!(first.contains(&format!("|{}|", writer.mysql_port())), "{first}");
        let ask = |path: &str| -> Value {
            let url = format!("http://127.0.0.1:{}{path}", asked.http_port());
            serde_json::from_str(&Curl::as_user("root:", &url).text()).expect("JSON")
        };
        for (path, port) in [("frontends", writer.http_port()), ("backends", writer.webserver_port())] {
            let list = ask(&format!("/rest/v2/manager/node/{path}"));
            let rows = list["data"]["rows"].as_array().expect("rows");
            let port = port.to_string();
            let mut cells = rows.iter().filter_map(|row| row.as_array()).flatten();
            let has_port = cells.any(|cell| cell.as_str() == Some(port.as_str()));
            assert!(rows.len() == 1 && has_port, "{list}");
        }
        let backends = ask("/api/backends?is_alive=true");
        assert_eq!(backends["data"]["backends"].as_array().map(Vec::len), Some(1), "{backends}");
        assert_eq!(backends["data"]["backends"][0]["http_port"], writer.webserver_port(), "{backends}");
    }
}

#[test]
fn a_node_without_others_is_the_only_one() {
    let server = Server::start();
    let mut client = server.connect();
    let nodes = "SELECT ROLE, QUERY_PORT, HEARD_MS < 60000, ROWS_AGE_MS FROM information_schema.nodes";
    wait_until("it knows itself", || !client.rows(nodes).is_empty());
    assert_eq!(client.rows(nodes), [format!("WRITER|{}|1|0", server.mysql_port())]);
}

#[track_caller]
fn refuses_changes(reader: &Server, client: &mut Client) {
    for statement in [
        "INSERT INTO dt VALUES (1, 'a', 1)",
        "INSERT INTO dt SELECT * FROM dt",
        "DELETE FROM dt WHERE id = 1",
        "UPDATE u SET v = 1 WHERE id = 1",
        "TRUNCATE TABLE dt",
        "CREATE TABLE n (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1",
        "CREATE TEMPORARY TABLE n (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1",
        "CREATE TABLE n AS SELECT * FROM dt",
        "ALTER TABLE dt ADD COLUMN x INT",
        "DROP TABLE dt",
        "CREATE DATABASE n",
        "DROP DATABASE db",
        "CREATE VIEW n AS SELECT 1",
        "CREATE USER n IDENTIFIED BY 'abc-12345'",
        "GRANT SELECT_PRIV ON *.* TO root",
        "SET PASSWORD FOR 'root' = PASSWORD('abc-12345')",
        "SET GLOBAL query_timeout = 5",
        "CLEAN LABEL FROM db",
        "BACKUP SERVER",
        "VERIFY",
        "ALTER SYSTEM DECOMMISSION BACKEND '10001'",
    ] {
        client.refused(statement, 1290, "--read-only");
    }
    client.refused("SYNC 5", 1205, "the server that writes can't be asked: its arrow_flight_sql_port is off");
    client.ok("SET read_after = 5");
    client.refused("SELECT COUNT(*) FROM dt", 1205, "receipt 5");
    client.ok("SET read_after = 0");
    client.ok("SET query_timeout = 600");
    client.ok("BEGIN");
    client.refused("INSERT INTO dt VALUES (1, 'a', 1)", 1290, "--read-only");
    client.ok("ROLLBACK");
    let load = Curl::stream_load(reader, "db", "dt").header("column_separator:,").body("1,a,1").load();
    assert!(load.failure().contains("--read-only") && load.get("Retry") == "never", "{}", load.failure());
    let ask = |statement: &str| -> Value {
        let url = format!("http://127.0.0.1:{}/api/query/default_cluster/db", reader.http_port());
        let body = serde_json::json!({ "stmt": statement }).to_string();
        let file = reader.scratch().join("statement.json");
        std::fs::write(&file, body).expect("written");
        let text = Curl::as_user("root:", &url).argument("-X").argument("POST").file(&file).text();
        serde_json::from_str(&text).expect("JSON")
    };
    assert_eq!(ask("INSERT INTO dt VALUES (1, 'a', 1)")["error"]["number"], 1290);
    assert_eq!(ask("SELECT 1 + 1")["data"]["data"][0][0], 2);
}

#[test]
fn users_and_rights_of_the_writer_count_at_a_reader() {
    let cluster = Cluster::new();
    let writer = cluster.server(&[]).with_manual_table();
    let mut client = writer.connect_to("db");
    stream_load(&writer, "dt", "sync_mode", &csv(0, 10));
    client.ok("CREATE USER eve");
    // A user of PostgreSQL that can change nothing is enough.
    let database = cluster.url.rsplit('/').next().expect("a database");
    let user = format!("reads_{database}");
    cluster.postgres.run(
        database,
        &format!(
            "CREATE ROLE {user} LOGIN PASSWORD '{PASSWORD}'; GRANT USAGE ON SCHEMA tributary TO {user}; \
             GRANT SELECT ON ALL TABLES IN SCHEMA tributary TO {user}"
        ),
    );
    let url = cluster.url.replace("postgres://tributary@", &format!("postgres://{user}@"));
    let reader = cluster.reader(&[("arrow_flight_sql_port", "0"), ("catalog_url", &url)]);
    let mut eve = Client::connect_as("eve", reader.mysql_port()).expect("a user without a password");
    assert!(eve.try_query("SELECT * FROM db.dt").is_err(), "she may do nothing yet");
    client.ok("GRANT SELECT_PRIV ON db.dt TO eve");
    wait_until("the right is there", || eve.try_query("SELECT * FROM db.dt").is_ok());
    reader.connect().ok("SYNC");
    assert_eq!(sums(&mut reader.connect_to("db"), "dt"), "10|10|45");
    let by_flight = python("flight_reader.py", &[&reader.flight_port().to_string()]);
    assert_eq!(by_flight, "10 rows, and a refusal\n", "Arrow Flight SQL reads, too");
    client.ok("REVOKE SELECT_PRIV ON db.dt FROM eve");
    wait_until("the right is gone", || eve.try_query("SELECT * FROM db.dt").is_err());
    client.ok("DROP USER eve");
    wait_until("the user is gone", || Client::connect_as("eve", reader.mysql_port()).is_err());
}

#[test]
fn a_reader_says_how_old_its_rows_are_and_obeys_the_limit() {
    let cluster = Cluster::on(Arc::new(Postgres::start()));
    let mut writer = cluster.server(&[]).with_manual_table();
    stream_load(&writer, "dt", "sync_mode", &csv(0, 10));
    let reader = cluster.reader(&[("max_staleness_second", "6")]);
    let mut client = reader.connect_to("db");
    client.ok("SYNC");
    let query = "SELECT COUNT(*) FROM dt";
    assert_eq!(client.value(query), "10");
    let ready =
        || Curl::anonymous(&format!("http://127.0.0.1:{}/api/ready", reader.http_port())).status_and_text();
    assert_eq!(ready().0, 200);

    writer.signal("STOP");
    wait_until("what it has is too old", || client.try_query(query).is_err());
    client.refused(query, 1205, "max_staleness_second is 6");
    client.refused("SELECT * FROM dt LIMIT 1", 1205, "the rows of table 'db.dt' that this node has are");
    assert_eq!(client.value("SELECT 1"), "1");
    let (status, text) = ready();
    assert!(status == 503 && text.contains("the rows that this node has are"), "{status} {text}");
    let problems = "SELECT PROBLEM, CAUSE FROM information_schema.problems WHERE CODE = 'READER_BEHIND'";
    wait_until("the problem is named", || !client.rows(problems).is_empty());
    let age = "SELECT AGE_MS >= 6000 FROM information_schema.followed_tables";
    assert_eq!(client.value(age), "1");
    client.ok("ADMIN SET FRONTEND CONFIG (\"max_staleness_second\" = \"0\")");
    assert_eq!(client.value(query), "10", "any age will do");
    client.ok("ADMIN SET FRONTEND CONFIG (\"max_staleness_second\" = \"6\")");
    writer.signal("CONT");
    wait_until("it hears of the writer again", || client.try_query(query).is_ok());
    wait_until("the problem is over", || client.rows(problems).is_empty());

    // A writer that has stopped shows nothing later: what the reader has stays the newest.
    stream_load(&writer, "dt", "async_mode", &csv(10, 10));
    assert!(writer.stop().success());
    client.ok("SYNC");
    let stopped = Instant::now();
    wait_until("the time of the limit has passed", || {
        assert_eq!(client.value(query), "20");
        stopped.elapsed() > Duration::from_secs(8)
    });
    writer.start_again();
    stream_load(&writer, "dt", "async_mode", &csv(20, 10));
    client.ok("SYNC");
    assert_eq!(client.value(query), "30");
}

#[test]
fn rows_that_a_start_reads_from_the_log_are_as_old_as_before() {
    let cluster = Cluster::new();
    let mut writer = cluster.server(&[("flush_age_ms", "8000")]).with_manual_table();
    let reader = cluster.reader(&[]);
    let mut client = reader.connect_to("db");
    client.ok("SYNC");
    stream_load(&writer, "dt", "sync_mode", &csv(0, 10));
    let visible = Instant::now();
    writer.kill();
    let age = |client: &mut Client| {
        let age = client.value("SELECT AGE_MS FROM information_schema.followed_tables");
        Duration::from_millis(age.parse().expect("a number"))
    };
    // An age that is counted from the next start would be lower by this much.
    wait_until("the writer was not heard of for a while", || age(&mut client) >= Duration::from_secs(3));
    writer.start_again();
    wait_until("the rows are in files", || {
        let asked = Instant::now();
        let age = age(&mut client);
        let found = client.value("SELECT COUNT(*) FROM dt");
        let since = asked.duration_since(visible);
        assert!(
            found == "10" || age >= since,
            "{found} rows of {age:?} ago, and ten were visible {since:?} ago"
        );
        found == "10"
    });
}

#[test]
fn a_reader_goes_on_while_postgresql_and_the_store_are_away() {
    let mut postgres = Postgres::start();
    let (database, bucket) = (postgres.database(), Bucket::new());
    let url = postgres.url(&database);
    let settings = |more: &[(&str, &str)]| -> Vec<(String, String)> {
        let own = [("catalog_url", url.as_str()), ("catalog_password", PASSWORD)];
        let all = own.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        bucket.settings().into_iter().chain(all).collect()
    };
    let start = |settings: Vec<(String, String)>| {
        let settings: Vec<(&str, &str)> =
            settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Server::with_settings(&settings)
    };
    let writer = start(settings(&[])).with_manual_table();
    stream_load(&writer, "dt", "sync_mode", &csv(0, 10));
    let reader = start(settings(&[("read_only", "true")]));
    let mut client = reader.connect_to("db");
    client.ok("SYNC");
    let query = "SELECT COUNT(*) FROM dt";
    assert_eq!(client.value(query), "10");
    postgres.stop(Stop::Fast);
    let problems = "SELECT CAUSE FROM information_schema.problems WHERE CODE = 'READER_BEHIND'";
    wait_until("the problem is named", || client.rows(problems).join(";").contains("PostgreSQL"));
    assert_eq!(client.value(query), "10");
    postgres.start_again();
    stream_load(&writer, "dt", "sync_mode", &csv(10, 10));
    client.ok("SYNC");
    assert_eq!(client.value(query), "20");
    wait_until("the problem is over", || client.rows(problems).is_empty());
}

#[test]
fn a_reader_that_is_not_set_up_to_read_does_not_start() {
    let cluster = Cluster::new();
    let scratch = tempfile::tempdir().expect("a directory");
    let data = scratch.path().join("reader");
    let without = |settings: Vec<(String, String)>, name: &str| -> Vec<(String, String)> {
        settings.into_iter().filter(|(known, _)| known != name).collect()
    };
    let reads = cluster.settings(&[("read_only", "true")]);
    let text = Server::refusal(&data, &reads);
    assert!(text.contains("there is no catalog in postgres://"), "{text}");
    for missing in ["table_storage", "catalog_url"] {
        let text = Server::refusal(&data, &without(reads.clone(), missing));
        assert!(text.contains(&format!("read_only is true, and {missing} is not set")), "{text}");
    }
    let mut writer = cluster.server(&[]).with_manual_table();
    let audit = cluster.settings(&[("read_only", "true"), ("enable_audit_plugin", "true")]);
    let text = Server::refusal(&data, &audit);
    assert!(text.contains("enable_audit_plugin") && text.contains("audit_log_dir"), "{text}");
    let elsewhere = cluster.settings(&[("read_only", "true"), ("table_storage", "s3://nowhere/else")]);
    cluster.bucket.store.make_bucket("nowhere");
    let text = Server::refusal(&data, &elsewhere);
    assert!(text.contains("no server's tables are in it"), "{text}");
    assert!(writer.stop().success());
    let text = Server::refusal(&writer.data(), &reads);
    assert!(text.contains("is that of a server with rows or a catalog of its own"), "{text}");
    writer.start_again();
    // The flag is the setting.
    let mut command = crate::support::server::command(&data);
    command.arg("--read-only");
    let output = command.output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("read_only is true, and table_storage is not set"), "{text}");
}
