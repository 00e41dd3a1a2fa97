//! Events of the server: starts, statements that change tables, rights, settings and jobs, and problems that begin and end.
//!
//! Invariant: memory is bounded: the last [`EVENTS_MAX`] events stay, each with the beginning of its text. No text has a secret.
//!
//! Not here: failed requests, and requests that read or load.

use parking_lot::Mutex;
use std::collections::VecDeque;
use tributary_sql::{Change, redacted};
use tributary_types::host::unix_ms;

/// Events that stay.
const EVENTS_MAX: usize = 2000;
/// The beginning of a text that is kept.
const TEXT_BYTES_MAX: usize = 500;

/// The matter of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    Start,
    /// A statement that changed databases, tables, partitions or views.
    Ddl,
    /// A statement that changed users, roles, rights or tokens.
    Rights,
    /// A statement that changed a global variable or a limit.
    Setting,
    /// A statement that changed a job.
    Job,
    /// A session or a statement was killed.
    Kill,
    Problem,
    ProblemOver,
}

impl EventKind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "START",
            Self::Ddl => "DDL",
            Self::Rights => "RIGHTS",
            Self::Setting => "SETTING",
            Self::Job => "JOB",
            Self::Kill => "KILL",
            Self::Problem => "PROBLEM",
            Self::ProblemOver => "PROBLEM_OVER",
        }
    }

    const fn of(change: Change) -> Self {
        match change {
            Change::Schema => Self::Ddl,
            Change::Rights => Self::Rights,
            Change::Setting => Self::Setting,
            Change::Job => Self::Job,
            Change::Kill => Self::Kill,
        }
    }
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// Milliseconds since 1970.
    pub at_ms: i64,
    pub kind: EventKind,
    /// The user and its address; `None`: nobody asked for it.
    pub by: Option<(String, String)>,
    pub text: String,
}

/// The last events.
#[derive(Debug, Default)]
pub(crate) struct Events(Mutex<VecDeque<Event>>);

impl Events {
    /// Notes an event of the server itself.
    pub fn note(&self, kind: EventKind, text: &str) {
        self.push(kind, None, text);
    }

    /// Notes a statement that has changed the server.
    pub fn changed(&self, (user, host): (&str, &str), change: Change, text: &str) {
        self.push(EventKind::of(change), Some((user.to_owned(), host.to_owned())), &redacted(text).text);
    }

    fn push(&self, kind: EventKind, by: Option<(String, String)>, text: &str) {
        let text = crate::audit::entry::beginning(text, TEXT_BYTES_MAX).to_owned();
        let mut events = self.0.lock();
        if events.len() == EVENTS_MAX {
            events.pop_front();
        }
        events.push_back(Event { at_ms: unix_ms(), kind, by, text });
    }

    /// All of them, the oldest first.
    pub fn all(&self) -> Vec<Event> {
        self.0.lock().iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_change_the_server_are_events_without_secrets() {
        let events = Events::default();
        events.note(EventKind::Start, "started");
        for text in [
            "SELECT 1",
            "/* by a tool */ create table t (a INT) DUPLICATE KEY(a) DISTRIBUTED BY HASH(a) BUCKETS 1",
            "CREATE USER u IDENTIFIED BY 'canary'",
            "SET sql_mode = ''",
            "SET sql_mode = '', GLOBAL wait_timeout = 1",
            "set @@global.wait_timeout = 1",
            "SET PASSWORD = PASSWORD('canary')",
            "KILL 7",
            "PAUSE ROUTINE LOAD FOR j",
        ] {
            if let Some(change) = tributary_sql::parse(text).expect("a statement").change() {
                events.changed(("u", "h"), change, text);
            }
        }
        let all = events.all();
        let kinds: Vec<_> = all.iter().map(|event| event.kind.name()).collect();
        assert_eq!(kinds, ["START", "DDL", "RIGHTS", "SETTING", "SETTING", "RIGHTS", "KILL", "JOB"]);
        assert!(all.iter().all(|event| !event.text.contains("canary")), "{all:?}");
        assert_eq!((all[0].by.as_ref(), all[1].by.as_ref().map(|by| by.0.as_str())), (None, Some("u")));
    }

    #[test]
    fn the_newest_events_stay() {
        let events = Events::default();
        for number in 0..EVENTS_MAX + 5 {
            events.note(EventKind::Problem, &format!("{number} {}", "é".repeat(1000)));
        }
        let all = events.all();
        assert_eq!(all.len(), EVENTS_MAX);
        assert!(all[0].text.starts_with("5 é") && all[0].text.len() <= TEXT_BYTES_MAX);
    }
}
