//! Tables in a container of Azure's blob storage, as Azurite has it.

use crate::object_storage::{csv, stream_load, sums};
use crate::support::programs::{azure_server, python, python_with};
use crate::support::{Door, DoorMode, Server, wait_until};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// The account that every Azurite has, and its key.
const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Azurite with an empty container `tables`. Killed when dropped.
struct Azurite {
    process: Child,
    _directory: TempDir,
    endpoint: String,
}

impl Azurite {
    fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mut command = Command::new(azure_server());
        command.args([
            "--blobPort",
            "0",
            "--skipApiVersionCheck",
            "--silent",
            "--disableTelemetry",
            "--location",
        ]);
        command.arg(directory.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("Azurite starts");
        let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let endpoint = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, address) = line.split_once("successfully listens on ")?;
            Some(address.trim().to_owned())
        });
        std::thread::spawn(move || lines.for_each(drop));
        let endpoint = endpoint.expect("Azurite says where it listens");
        python("azure_container.py", &[&endpoint, ACCOUNT, KEY, "tables"]);
        Self { process, _directory: directory, endpoint }
    }
}

impl Drop for Azurite {
    fn drop(&mut self) {
        // It has no data to lose.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn settings(endpoint: &str) -> Vec<(String, String)> {
    [
        ("table_storage", "az://tables/a/b"),
        ("table_storage_endpoint", endpoint),
        ("table_storage_access_key", ACCOUNT),
        ("table_storage_secret_key", KEY),
        ("store_timeout_ms", "4000"),
        ("flush_age_ms", "300"),
        ("large_load_bytes", "200000"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

fn server(endpoint: &str) -> Server {
    let settings = settings(endpoint);
    let settings: Vec<(&str, &str)> =
        settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    Server::with_settings(&settings)
}

#[test]
fn tables_in_a_container_are_loaded_merged_and_read_by_others() {
    let azurite = Azurite::start();
    let door = Door::to(&azurite.endpoint);
    let mut server = server(&door.url).with_manual_table();
    let mut client = server.connect_to("db");
    client.ok("CREATE TABLE u (id INT NOT NULL, v INT) UNIQUE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    let mut count = 0;
    for (round, mode) in ["async_mode", "sync_mode", "off_mode"].iter().cycle().take(12).enumerate() {
        // One answer of seven is lost: the store has done what it was asked.
        door.set(if round % 2 == 0 { DoorMode::Loses(7) } else { DoorMode::Open });
        stream_load(&server, "dt", mode, &csv(count, 100));
        count += 100;
        client.ok(&format!("INSERT INTO u VALUES ({}, {round}), ({}, {round})", round % 5, round % 7));
        client.ok("SYNC");
    }
    assert!(door.lost() > 0);
    door.set(DoorMode::Open);
    // Written to data files while it arrives.
    stream_load(&server, "dt", "off_mode", &csv(count, 20_000));
    count += 20_000;
    client.ok("DELETE FROM u WHERE id = 6");
    let mut more = 0;
    wait_until("files were merged", || {
        more += 1;
        client.ok(&format!("INSERT INTO u VALUES (1, {more})"));
        client.ok("SYNC");
        server.metric("tributary_compactions_total ") > 0.0
    });
    let expected = format!("{count}|{count}|{}", count * (count - 1) / 2);
    let unique = client.rows("SELECT id, v FROM u ORDER BY id");
    assert_eq!(unique.len(), 6, "{unique:?}");
    for round in 0..2 {
        if round == 0 {
            assert!(server.stop().success());
        } else {
            server.kill();
        }
        server.start_again();
        client = server.connect_to("db");
        assert_eq!(sums(&mut client, "dt"), expected);
        assert_eq!(client.rows("SELECT id, v FROM u ORDER BY id"), unique);
    }
    assert!(!server.data().join("tables").exists(), "no table is on the disk");
    let total = (count * (count - 1) / 2).to_string();
    python_with(
        "delta_checks.py",
        &["sums", "az://tables/a/b/tables/db/dt-1", &count.to_string(), &total],
        &[
            ("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT),
            ("AZURE_STORAGE_ACCOUNT_KEY", KEY),
            ("AZURE_STORAGE_ENDPOINT", &format!("{}/{ACCOUNT}", azurite.endpoint)),
            ("AZURE_ALLOW_HTTP", "true"),
        ],
    );
    let shown = client
        .rows("SELECT NAME, VALUE FROM information_schema.server_settings WHERE NAME LIKE 'table_storage%'");
    assert!(!shown.join(";").contains(KEY) && !server.log().contains(KEY), "{shown:?}");
    client.ok("DROP TABLE dt FORCE");
}

#[test]
fn a_container_that_cannot_be_used_is_refused_with_the_reason() {
    let azurite = Azurite::start();
    let scratch = tempfile::tempdir().expect("a directory");
    let with = |name: &str, value: &str| -> Vec<(String, String)> {
        let given = settings(&azurite.endpoint).into_iter();
        given.map(|(known, of)| if known == name { (known, value.to_owned()) } else { (known, of) }).collect()
    };
    let refusal = |settings: &[(String, String)]| {
        let text = Server::refusal(&scratch.path().join("data"), settings);
        assert!(!text.contains(KEY), "{text}");
        text
    };
    let text = refusal(&with("table_storage", "az://missing/a"));
    assert!(text.contains("az://missing/a") && text.contains("ContainerNotFound"), "{text}");
    let text = refusal(&with("table_storage_secret_key", "aHVzaA=="));
    assert!(text.contains("az://tables/a/b") && text.contains("403"), "{text}");
    let mut first = server(&azurite.endpoint);
    assert!(first.stop().success());
    let text = refusal(&settings(&azurite.endpoint));
    assert!(text.contains("the tables of the server"), "{text}");
}
