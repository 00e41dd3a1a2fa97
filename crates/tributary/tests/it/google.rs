//! Tables in a bucket of Google's cloud storage, as a store of these tests has it: no emulator that can be installed takes uploads by the
//! XML API.

use crate::object_storage::lives_in_a_store;
use crate::support::programs::{google_server, python_with};
use crate::support::{Curl, Door, Server};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A store with an empty bucket `tables`, and a service account. Killed when dropped.
struct Store {
    process: Child,
    endpoint: String,
    private_key: String,
    _directory: TempDir,
}

impl Store {
    fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let (private, public) = (directory.path().join("private.pem"), directory.path().join("public.pem"));
        openssl(&["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out"], &private, &[]);
        openssl(&["pkey", "-in"], &private, &["-pubout", "-out", &public.display().to_string()]);
        let private_key = std::fs::read_to_string(&private).expect("openssl wrote it");
        let mut command = google_server("tables", &public);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("the store starts");
        let mut line = String::new();
        let output = process.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut line).expect("UTF-8");
        let endpoint = line.trim().strip_prefix("listens on ").expect("it says where it listens").to_owned();
        Self { process, endpoint, private_key, _directory: directory }
    }

    /// The key of the account, as Google writes it; `endpoint` is where clients find the store that do not know it otherwise.
    fn account(&self, endpoint: Option<&str>) -> String {
        let mut account = json!({
            "type": "service_account",
            "client_email": "tributary@example.iam.gserviceaccount.com",
            "private_key_id": "1",
            "private_key": self.private_key,
        });
        if let Some(endpoint) = endpoint {
            account["gcs_base_url"] = json!(endpoint);
        }
        account.to_string()
    }

    fn settings(&self, endpoint: &str) -> Vec<(String, String)> {
        [
            ("table_storage", "gs://tables/a/b"),
            ("table_storage_endpoint", endpoint),
            ("table_storage_secret_key", &self.account(None)),
            ("store_timeout_ms", "4000"),
            ("flush_age_ms", "300"),
            ("large_load_bytes", "200000"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }

    fn server(&self, endpoint: &str) -> Server {
        let settings = self.settings(endpoint);
        let settings: Vec<(&str, &str)> =
            settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Server::with_settings(&settings)
    }

    /// The keys of unfinished uploads.
    fn uploads(&self) -> String {
        Curl::anonymous(&format!("{}/_uploads", self.endpoint)).text()
    }

    fn begin_upload(&self, key: &str) {
        let url = format!("{}/_uploads/{key}", self.endpoint);
        Curl::anonymous(&url).argument("-X").argument("POST").text();
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // It has no data to lose.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn openssl(before: &[&str], file: &Path, after: &[&str]) {
    let output = Command::new("openssl").args(before).arg(file).args(after).output().expect("openssl runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn tables_in_a_bucket_of_google_are_loaded_merged_and_read_by_others() {
    let store = Store::start();
    let door = Door::to(&store.endpoint);
    let mut server = store.server(&door.url).with_manual_table();
    let [count, total] = lives_in_a_store(&mut server, &door).map(|number| number.to_string());
    python_with(
        "delta_checks.py",
        &["sums", "gs://tables/a/b/tables/db/dt-1", &count, &total],
        &[
            ("GOOGLE_SERVICE_ACCOUNT_KEY", &store.account(Some(&store.endpoint))),
            ("GOOGLE_ALLOW_HTTP", "true"),
        ],
    );
    let mut client = server.connect_to("db");
    let shown = client
        .rows("SELECT NAME, VALUE FROM information_schema.server_settings WHERE NAME LIKE 'table_storage%'");
    assert!(!shown.join(";").contains("PRIVATE") && !server.log().contains("PRIVATE"), "{shown:?}");
    client.ok("DROP TABLE dt FORCE");
}

#[test]
fn uploads_to_google_that_a_crash_left_are_aborted_at_the_next_start() {
    let store = Store::start();
    let mut server = store.server(&store.endpoint).with_manual_table();
    server.kill();
    store.begin_upload("a/b/tables/db/dt-1/part-x.parquet");
    store.begin_upload("a/b2/tables/db/of_another_server.parquet");
    server.start_again();
    assert_eq!(store.uploads(), "a/b2/tables/db/of_another_server.parquet\n", "{}", server.log());
    assert_eq!(server.connect_to("db").value("SELECT COUNT(*) FROM dt"), "0");
}

#[test]
fn a_bucket_of_google_that_cannot_be_used_is_refused_with_the_reason() {
    let store = Store::start();
    let scratch = tempfile::tempdir().expect("a directory");
    let with = |name: &str, value: &str| -> Vec<(String, String)> {
        let given = store.settings(&store.endpoint).into_iter().filter(|(known, _)| known != name);
        given.chain([(name.to_owned(), value.to_owned())]).collect()
    };
    let refusal = |settings: &[(String, String)]| {
        let text = Server::refusal(&scratch.path().join("data"), settings);
        assert!(!text.contains("PRIVATE"), "{text}");
        text
    };
    let text = refusal(&with("table_storage", "gs://missing/a"));
    assert!(text.contains("gs://missing/a") && text.contains("NoSuchBucket"), "{text}");
    let text = refusal(&with("table_storage_access_key", "me"));
    assert!(text.contains("service account"), "{text}");
    let of_another = Store::start();
    let text = refusal(&with("table_storage_secret_key", &of_another.account(None)));
    assert!(text.contains("gs://tables/a/b") && text.contains("AuthenticationRequired"), "{text}");
    let mut first = store.server(&store.endpoint);
    assert!(first.stop().success());
    let text = refusal(&store.settings(&store.endpoint));
    assert!(text.contains("the tables of the server"), "{text}");
}
