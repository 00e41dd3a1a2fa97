//! The facts that a request leaves for its record: cheap copies, with a text that may still have secrets. Never shown to anybody.
//!
//! Not here: what a record shows of it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A request or login that has ended.
#[derive(Debug)]
pub(crate) struct Entry {
    /// When it ended, in ms since 1970.
    pub ended_ms: i64,
    pub took: Duration,
    pub door: &'static str,
    pub protocol: &'static str,
    pub connection: Option<u32>,
    /// The user's name as the client gave it, and the client's address.
    pub user: Arc<str>,
    pub client: Arc<str>,
    /// The host of the user that was found, a pattern perhaps; `None`: there is none.
    pub account_host: Option<Arc<str>>,
    pub db: Option<String>,
    pub table: Option<String>,
    pub format: Option<&'static str>,
    pub txn: Option<u64>,
    pub label: Option<String>,
    pub kind: &'static str,
    pub text: Text,
    pub affected_rows: u64,
    pub returned_rows: u64,
    pub received_bytes: u64,
    pub error: Option<(u16, String)>,
}

/// The text of a request.
pub(crate) enum Text {
    /// The beginning of a statement that was parsed, and the length of the whole.
    Statement(Box<str>, usize),
    /// A text that was not understood, of that length: its beginning.
    Illegible(Box<str>, usize),
    /// Words of the server, with names and without secrets.
    Plain(Box<str>),
}

/// A text of which nobody knows yet what may be shown is not shown.
impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Text(…)")
    }
}

impl Entry {
    /// The memory that it takes, about.
    pub fn bytes(&self) -> usize {
        let text = match &self.text {
            Text::Statement(text, _) | Text::Illegible(text, _) | Text::Plain(text) => text.len(),
        };
        size_of::<Self>() + text + self.error.as_ref().map_or(0, |(_, text)| text.len())
    }
}

/// The beginning of a text, of at most this many bytes.
pub(crate) fn beginning(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
