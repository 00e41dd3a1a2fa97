//! curl, unmodified, as a user types it, and the answers to loads.

use super::programs::{Finished, run};
use super::{PATIENCE, Server};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// One call of curl.
pub struct Curl {
    command: Command,
}

impl Curl {
    /// `PUT /api/{db}/{table}/_stream_load` as root.
    pub fn stream_load(server: &Server, database: &str, table: &str) -> Self {
        Self::put(&format!("http://127.0.0.1:{}/api/{database}/{table}/_stream_load", server.http_port()))
    }

    /// `PUT` to a URL as root.
    pub fn put(url: &str) -> Self {
        Self::as_user("root:", url).argument("-X").argument("PUT")
    }

    /// `GET` of a URL as root.
    pub fn get(url: &str) -> Self {
        Self::as_user("root:", url)
    }

    /// A request of `user:password`.
    pub fn as_user(credentials: &str, url: &str) -> Self {
        Self::anonymous(url).argument("--location-trusted").argument("-u").argument(credentials)
    }

    /// A request without credentials.
    pub fn anonymous(url: &str) -> Self {
        let mut command = Command::new("curl");
        command.args(["-q", "-sS", "--max-time", &PATIENCE.as_secs().to_string(), url]);
        Self { command }
    }

    pub fn argument(mut self, argument: &str) -> Self {
        self.command.arg(argument);
        self
    }

    /// A header such as `group_commit:async_mode`.
    pub fn header(self, header: &str) -> Self {
        self.argument("-H").argument(header)
    }

    /// Headers as [`Curl::header`] takes them.
    pub fn headers(self, headers: &[impl AsRef<str>]) -> Self {
        headers.iter().fold(self, |curl, header| curl.header(header.as_ref()))
    }

    /// The body is this text.
    pub fn body(self, text: &str) -> Self {
        // A text with a leading @ would name a file.
        assert!(!text.starts_with('@'));
        self.argument("--data-binary").argument(text)
    }

    /// The body is this file.
    pub fn file(self, path: &Path) -> Self {
        self.argument("-T").argument(&path.display().to_string())
    }

    /// The response's body.
    pub fn text(mut self) -> String {
        run("curl", &mut self.command).success()
    }

    /// The response's status and body.
    pub fn status_and_text(self) -> (u16, String) {
        let text = self.argument("-w").argument("\n%{http_code}").text();
        let (body, status) = text.rsplit_once('\n').expect("the status is the last line");
        (status.parse().expect("a status is a number"), body.to_owned())
    }

    /// The answer to a load: HTTP 200 and Doris's JSON.
    pub fn load(self) -> LoadReply {
        let (status, text) = self.status_and_text();
        assert_eq!(status, 200, "{text}");
        LoadReply::parse(&text)
    }
}

/// Runs a command line in a directory, word for word, as a shell does.
pub fn shell(directory: &Path, line: &str) -> Finished {
    run(line, Command::new("sh").arg("-c").arg(line).current_dir(directory))
}

/// The answer to a load.
#[derive(Clone, Debug)]
pub struct LoadReply {
    pub text: String,
    json: serde_json::Map<String, Value>,
}

impl LoadReply {
    pub fn parse(text: &str) -> Self {
        match serde_json::from_str(text) {
            Ok(Value::Object(json)) => Self { text: text.to_owned(), json },
            _ => panic!("not a JSON object: {text}"),
        }
    }

    /// The keys in their order.
    pub fn keys(&self) -> Vec<&str> {
        self.json.keys().map(String::as_str).collect()
    }

    /// A value of any type as text; empty if the key is missing.
    pub fn get(&self, key: &str) -> String {
        match self.json.get(key) {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        }
    }

    pub fn has(&self, key: &str) -> bool {
        self.json.contains_key(key)
    }

    pub fn status(&self) -> String {
        self.get("Status")
    }

    pub fn message(&self) -> String {
        self.get("Message")
    }

    pub fn label(&self) -> String {
        self.get("Label")
    }

    /// Total, loaded, filtered and unselected rows.
    pub fn rows(&self) -> [u64; 4] {
        ["NumberTotalRows", "NumberLoadedRows", "NumberFilteredRows", "NumberUnselectedRows"].map(|key| {
            self.json.get(key).and_then(Value::as_u64).unwrap_or_else(|| panic!("no {key}: {}", self.text))
        })
    }

    /// The load succeeded.
    pub fn success(self) -> Self {
        assert_eq!((self.status().as_str(), self.message().as_str()), ("Success", "OK"), "{}", self.text);
        self
    }

    /// The load failed; gives the message.
    pub fn failure(&self) -> String {
        assert_eq!(self.status(), "Fail", "{}", self.text);
        assert_eq!(self.get("NumberLoadedRows"), "0", "{}", self.text);
        self.message()
    }
}
