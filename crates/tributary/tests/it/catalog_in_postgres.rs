//! A server whose catalog is in PostgreSQL: a real one, which is stopped, killed and started again.

use crate::backup::restored;
use crate::stopped_copy::{assert_copied, contents, fill};
use crate::support::postgres::{PASSWORD, Postgres, Stop};
use crate::support::programs::{Finished, run};
use crate::support::server::program;
use crate::support::{Client, Curl, Server, wait_until};
use std::path::Path;
use std::time::{Duration, Instant};

fn settings(url: &str) -> Vec<(&str, &str)> {
    vec![
        ("catalog_url", url),
        ("catalog_password", PASSWORD),
        ("group_commit_interval_ms_default_value", "50"),
    ]
}

fn owned(settings: &[(&str, &str)]) -> Vec<(String, String)> {
    settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// The complaint of a server that does not start, which names no password.
fn refusal(data: &Path, settings: &[(&str, &str)]) -> String {
    let text = Server::refusal(data, &owned(settings));
    assert!(!text.contains(PASSWORD), "{text}");
    text
}

fn stream_load(server: &Server, mode: &str, label: Option<&str>, first: u64) -> String {
    let body: String = (first..first + 10).map(|id| format!("{id},row {id},{id}\n")).collect();
    let file = server.scratch().join("rows.csv");
    std::fs::write(&file, body).expect("written");
    let load = Curl::stream_load(server, "db", "dt").header("column_separator:,");
    let load = match label {
        Some(label) => load.header(&format!("label:{label}")),
        None => load.header(&format!("group_commit:{mode}")),
    };
    load.file(&file).load().status()
}

fn sums(client: &mut Client) -> String {
    client.ok("SYNC");
    client.value("SELECT CONCAT(COUNT(*), ' ', COUNT(DISTINCT id), ' ', SUM(score)) FROM dt")
}

/// The sums of these many rows from 0 on.
fn expected(rows: u64) -> String {
    format!("{rows} {rows} {}", rows * (rows - 1) / 2)
}

#[test]
fn loads_of_all_modes_survive_kills_of_the_server() {
    let postgres = Postgres::shared();
    let database = postgres.database();
    let url = postgres.url(&database);
    let mut server = Server::with_settings(&settings(&url)).with_manual_table();
    fill(&server);
    let mut rows = 0;
    for round in 0..3 {
        for mode in ["async_mode", "sync_mode", "off_mode"] {
            assert_eq!(stream_load(&server, mode, None, rows), "Success");
            rows += 10;
        }
        let label = format!("named_{round}");
        assert_eq!(stream_load(&server, "", Some(&label), rows), "Success");
        rows += 10;
        let mut client = server.connect_to("db");
        client.ok("SET group_commit = async_mode");
        client.ok(&format!("INSERT INTO dt VALUES ({rows}, 'last', {rows})"));
        rows += 1;
        let copied = if round == 0 { contents(&server) } else { Vec::new() };
        server.kill();
        let mut inspect = program();
        inspect.args(["wal", "inspect"]).env("TRIBUTARY_STORAGE_ROOT_PATH", server.data());
        let names = run(
            "tributary wal inspect",
            inspect.env("TRIBUTARY_CATALOG_URL", &url).env("TRIBUTARY_CATALOG_PASSWORD", PASSWORD),
        );
        let names = names.success();
        assert!(names.contains("db.dt"), "tables have their names: {names}");
        server.start_again();
        let mut client = server.connect_to("db");
        assert_eq!(sums(&mut client), expected(rows));
        for round in 0..=round {
            assert_eq!(stream_load(&server, "", Some(&format!("named_{round}")), 0), "Label Already Exists");
        }
        if round == 0 {
            assert_copied(&server, &copied);
        }
        client.ok(&format!(
            "CREATE TABLE t{round} (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1"
        ));
        client.ok(&format!("ALTER TABLE t{round} ADD COLUMN v INT"));
    }
    let mut client = server.connect();
    assert_eq!(client.rows("SHOW TABLES FROM db").len(), 4);
    let shown = client
        .rows("SELECT NAME, VALUE FROM information_schema.server_settings WHERE NAME LIKE 'catalog%'")
        .join(";");
    assert!(shown.contains(&url) && !shown.contains(PASSWORD) && !server.log().contains(PASSWORD), "{shown}");
    assert!(!server.data().join("catalog.db").exists(), "no catalog is on the disk");
    assert_eq!(postgres.run(&database, "SELECT count(*) FROM tributary.tables WHERE name LIKE 't_'"), "3");
    assert!(server.stop().success());
}

#[test]
fn while_postgresql_is_away_loads_go_on_and_ddl_fails_in_time() {
    let mut postgres = Postgres::start();
    let url = postgres.url(&postgres.database());
    let mut server = Server::with_settings(&settings(&url)).with_manual_table();
    let mut client = server.connect_to("db");
    let create = "CREATE TABLE later (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1";
    let problems = "SELECT PROBLEM, CAUSE FROM information_schema.problems WHERE CODE = 'CATALOG_AWAY'";
    let mut rows = 0;
    for how in [Stop::Fast, Stop::Immediate] {
        postgres.stop(how);
        let begun = Instant::now();
        let refused = client.error(create);
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        assert_eq!(refused.number, 1205, "{refused}");
        assert!(refused.message.contains("PostgreSQL") && !refused.message.contains(PASSWORD), "{refused}");
        for mode in ["async_mode", "sync_mode", "off_mode"] {
            assert_eq!(stream_load(&server, mode, None, rows), "Success");
            rows += 10;
        }
        let label = format!("named_{rows}");
        assert_eq!(stream_load(&server, "", Some(&label), rows), "Success");
        rows += 10;
        assert_eq!(sums(&mut client), expected(rows));
        assert_eq!(client.error("CLEAN LABEL FROM db").number, 1205);
        wait_until("the problem is named", || !client.rows(problems).is_empty());
        let told = client.rows(problems).join(";");
        assert!(told.contains(&url) && !told.contains(PASSWORD), "{told}");
        let ready = Curl::anonymous(&format!("http://127.0.0.1:{}/api/ready", server.http_port()));
        let (status, text) = ready.status_and_text();
        assert!(status == 200 && text.contains("the catalog's database can't be reached"), "{status} {text}");
        postgres.start_again();
        client.ok(create);
        client.ok("DROP TABLE later FORCE");
        wait_until("the problem is over", || client.rows(problems).is_empty());
    }
    // The catalog is away while the server ends and starts: nothing is lost.
    assert_eq!(stream_load(&server, "async_mode", None, rows), "Success");
    rows += 10;
    postgres.stop(Stop::Immediate);
    server.kill();
    let text = refusal(&server.data(), &settings(&url));
    assert!(text.contains("can't be used now") && text.contains(&url), "{text}");
    postgres.start_again();
    server.start_again();
    assert_eq!(sums(&mut server.connect_to("db")), expected(rows));
}

#[test]
fn a_catalog_belongs_to_one_server_and_one_process_of_it() {
    let postgres = Postgres::shared();
    let url = postgres.url(&postgres.database());
    let mut server = Server::with_settings(&settings(&url)).with_manual_table();
    let node = std::fs::read_to_string(server.data().join("node.json")).expect("the identity");
    let node: serde_json::Value = serde_json::from_str(&node).expect("JSON");
    let other = refusal(&server.scratch().join("other"), &settings(&url));
    let id = node["id"].as_str().expect("an id");
    assert!(other.contains(&format!("belongs to the server {id}")) && other.contains("createdb"), "{other}");
    let copy = server.scratch().join("copy");
    let copied = std::process::Command::new("cp").arg("-r").arg(server.data()).arg(&copy).status();
    assert!(copied.expect("cp starts").success());
    let text = refusal(&copy, &settings(&url));
    assert!(text.contains("in use by another process of this server"), "{text}");
    assert_eq!(stream_load(&server, "sync_mode", None, 0), "Success");
    server.connect().ok("CREATE DATABASE still_mine");
    let unset = refusal(&server.scratch().join("copy"), &[]);
    assert!(unset.contains("is in PostgreSQL according to") && unset.contains("catalog_url"), "{unset}");
    // A database with an earlier copy, or with none, is not the catalog.
    let empty = postgres.url(&postgres.database());
    assert!(server.stop().success());
    let text = refusal(&server.data(), &settings(&empty));
    assert!(text.contains("is missing or empty"), "{text}");
    let wrong = refusal(&server.data(), &[("catalog_url", url.as_str()), ("catalog_password", "guess")]);
    assert!(wrong.contains("password authentication failed"), "{wrong}");
    server.start_again();
    assert_eq!(sums(&mut server.connect_to("db")), expected(10));
}

fn move_catalog(from: &str, to: &str) -> Finished {
    let moved = run(
        "tributary catalog move",
        program()
            .args(["catalog", "move", "--from", from, "--to", to])
            .env("TRIBUTARY_CATALOG_PASSWORD", PASSWORD),
    );
    assert!(!moved.stdout.contains(PASSWORD) && !moved.stderr.contains(PASSWORD));
    moved
}

#[test]
fn a_catalog_moves_to_postgresql_and_back() {
    let postgres = Postgres::shared();
    let url = postgres.url(&postgres.database());
    let mut server = Server::start();
    fill(&server);
    let rows = contents(&server);
    let data = server.data().display().to_string();
    let running = move_catalog(&data, &url).failure();
    assert!(running.contains("is in use by another server"), "{running}");
    assert!(server.stop().success());
    let unmoved = refusal(&server.data(), &settings(&url));
    assert!(unmoved.contains("tributary catalog move --from"), "{unmoved}");
    let moved = move_catalog(&data, &url).success();
    assert!(moved.contains("databases and") && moved.contains("catalog.db.moved"), "{moved}");
    assert!(!server.data().join("catalog.db").exists());
    let unset = refusal(&server.data(), &[]);
    assert!(unset.contains("catalog_url"), "{unset}");
    assert!(move_catalog(&data, &url).failure().contains("is in PostgreSQL"));
    for (name, value) in settings(&url) {
        server.set(name, value);
    }
    server.start_again();
    assert_copied(&server, &rows);
    let mut client = server.connect();
    client.ok("CREATE TABLE d.there (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    client.ok("INSERT INTO d.there VALUES (1), (2)");
    client.ok("SYNC");
    let tables = client.rows("SHOW TABLES FROM d");
    let elsewhere = move_catalog(&url, &server.scratch().display().to_string()).failure();
    assert!(elsewhere.contains("there is no catalog of a server"), "{elsewhere}");
    assert!(move_catalog(&url, &data).failure().contains("is in use by another server"));
    assert!(server.stop().success());
    move_catalog(&url, &data).success();
    let set = refusal(&server.data(), &settings(&url));
    assert!(set.contains("is the file"), "{set}");
    let mut server = server.without_settings();
    server.start_again();
    let mut client = server.connect();
    assert_eq!(client.value("SELECT COUNT(*) FROM d.there"), "2");
    assert_eq!(client.rows("SHOW TABLES FROM d"), tables);
    client.ok("DROP TABLE d.there FORCE");
}

#[test]
fn a_backup_has_the_catalog_of_its_moment() {
    let postgres = Postgres::shared();
    let url = postgres.url(&postgres.database());
    let backups = tempfile::tempdir().expect("a directory");
    let mut all = settings(&url);
    let place = backups.path().display().to_string();
    all.push(("backup_path", &place));
    let server = Server::with_settings(&all);
    fill(&server);
    let rows = contents(&server);
    assert_eq!(server.connect().rows("BACKUP SERVER").len(), 1);
    server.connect().ok("CREATE TABLE d.late (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    let copy = restored(backups.path(), None);
    assert!(copy.data().join("catalog.db").exists(), "its catalog is a file");
    assert_copied(&copy, &rows);
    assert_eq!(copy.connect().rows("SHOW TABLES FROM d LIKE 'late'"), Vec::<String>::new());
    // The original goes on.
    server.connect().ok("DROP TABLE d.late");
}
