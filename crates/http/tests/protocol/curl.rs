//! The manual's commands with the real curl. Skipped if curl is not installed.

use crate::fake::{Running, start};
use serde_json::Value;
use std::io::Write;
use tempfile::NamedTempFile;
use tokio::process::Command;

/// Runs curl; `None` if it is not installed.
async fn curl(running: &Running, path: &str, arguments: &[&str], data: Option<&[u8]>) -> Option<String> {
    let mut command = Command::new("curl");
    command.args(["-sS", "--max-time", "60", "--location-trusted"]).args(arguments);
    let mut file = NamedTempFile::new().unwrap();
    if let Some(data) = data {
        file.write_all(data).unwrap();
        command.arg("-T").arg(file.path());
    }
    let output = match command.arg(format!("http://{}{path}", running.address)).output().await {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        output => output.unwrap(),
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[tokio::test]
async fn the_manual_s_stream_load_works_with_and_without_expect() {
    let running = start().await;
    let data = b"6,Amy,60\n7,Ross,98\n";
    for extra in ["Expect: 100-continue", "Expect:"] {
        let arguments =
            ["-u", "root:", "-H", "group_commit:async_mode", "-H", "column_separator:,", "-H", extra];
        let Some(text) = curl(&running, "/api/db/dt/_stream_load", &arguments, Some(data)).await else {
            return;
        };
        let json: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&json["Status"], &json["NumberLoadedRows"], &json["LoadBytes"]),
            (&"Success".into(), &2.into(), &19.into())
        );
    }
}

#[tokio::test]
async fn a_big_file_is_sent_after_100_continue_and_a_chunked_one_without_length() {
    let running = start().await;
    let data = b"1,x\n".repeat(1_000_000);
    for extra in ["Expect: 100-continue", "Transfer-Encoding: chunked"] {
        let arguments = ["-u", "root:", "-H", extra];
        let Some(text) = curl(&running, "/api/db/dt/_stream_load", &arguments, Some(&data)).await else {
            return;
        };
        let json: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&json["Status"], &json["LoadBytes"]), (&"Success".into(), &4_000_000.into()), "{extra}");
    }
}

#[tokio::test]
async fn a_refused_big_file_still_shows_its_reason() {
    let running = start().await;
    let data = vec![b'x'; 40 * 1024 * 1024];
    for (table, header, user, message) in [
        ("t", "format: xml", "root:", "[DATA_FILE_TYPE_ERROR]unknown data format, format=xml"),
        ("t", "Expect:", "root:wrong", "[NOT_AUTHORIZED]Access denied"),
        (
            "no_such",
            "Expect:",
            "root:",
            "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = Unknown table",
        ),
    ] {
        let path = format!("/api/db/{table}/_stream_load");
        let arguments = ["-u", user, "-H", header];
        let Some(text) = curl(&running, &path, &arguments, Some(&data)).await else { return };
        let json: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert!(json["Message"].as_str().unwrap().starts_with(message), "{text}");
    }
}
