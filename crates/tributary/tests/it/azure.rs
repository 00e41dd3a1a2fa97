//! Tables in a container of Azure's blob storage, as Azurite has it.

use crate::object_storage::lives_in_a_store;
use crate::support::programs::{azure_server, python, python_with};
use crate::support::{Door, Server};
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
    let [count, total] = lives_in_a_store(&mut server, &door).map(|number| number.to_string());
    python_with(
        "delta_checks.py",
        &["sums", "az://tables/a/b/tables/db/dt-1", &count, &total],
        &[
            ("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT),
            ("AZURE_STORAGE_ACCOUNT_KEY", KEY),
            ("AZURE_STORAGE_ENDPOINT", &format!("{}/{ACCOUNT}", azurite.endpoint)),
            ("AZURE_ALLOW_HTTP", "true"),
        ],
    );
    let mut client = server.connect_to("db");
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
