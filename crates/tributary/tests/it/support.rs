//! Shared by the tests: a server, a small MySQL client, curl, the clients of other languages.

pub mod certificates;
pub mod client;
pub mod curl;
pub mod kafka;
pub mod mariadb;
#[path = "../../../catalog/src/postgres/testing.rs"]
pub mod postgres;
pub mod programs;
pub mod server;
pub mod stores;

use std::time::{Duration, Instant};

pub use client::{Client, OkAnswer, ServerError};
pub use curl::{Curl, LoadReply};
pub use mariadb::MariaDb;
pub use server::{Database, Server};
pub use stores::{Door, DoorMode, HttpServer, Page, S3Store};

/// How long a test waits for an expected event. Generous: the machine may be busy with other tests.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The table of the manual's examples.
pub const DT: &str = "CREATE TABLE `dt` (
    `id` int(11) NOT NULL,
    `name` varchar(50) NULL,
    `score` int(11) NULL
) ENGINE=OLAP
DUPLICATE KEY(`id`)
DISTRIBUTED BY HASH(`id`) BUCKETS 1
PROPERTIES (
    \"replication_num\" = \"1\"
);";

/// Waits until `condition` holds.
///
/// # Panics
/// After [`PATIENCE`], naming `what`.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < PATIENCE, "waited {} s in vain until {what}", PATIENCE.as_secs());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Whether the text is `group_commit_` and two times 16 hex digits.
pub fn is_group_label(label: &str) -> bool {
    label.strip_prefix("group_commit_").is_some_and(is_two_words)
}

/// Whether the text is `label_` and two times 16 hex digits.
pub fn is_insert_label(label: &str) -> bool {
    label.strip_prefix("label_").is_some_and(is_two_words)
}

fn is_two_words(text: &str) -> bool {
    text.split_once('_').is_some_and(|(high, low)| [high, low].into_iter().all(is_sixteen_hex_digits))
}

fn is_sixteen_hex_digits(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase())
}
