//! Events of the server: starts, statements that change tables, rights, settings and jobs, and problems that begin and end.
//!
//! Invariant: memory is bounded: the last [`EVENTS_MAX`] events stay, each with the beginning of its text. No text has a secret.
//!
//! Not here: failed requests, and requests that read or load.

use parking_lot::Mutex;
use std::collections::VecDeque;
use tributary_sql::redacted;
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

    /// The kind of a statement that succeeded, from its own kind and its text; `None`: it is no event.
    fn of_statement(kind: &str, text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace().skip(1).map(str::to_ascii_uppercase);
        let mut second = || words.next().unwrap_or_default();
        Some(match kind {
            "GRANT" | "REVOKE" => Self::Rights,
            "PAUSE" | "RESUME" | "STOP" | "CANCEL" => Self::Job,
            "KILL" => Self::Kill,
            "RECOVER" | "TRUNCATE" | "RENAME" => Self::Ddl,
            "CREATE" | "DROP" | "ALTER" => match second().as_str() {
                "USER" | "ROLE" | "TOKEN" => Self::Rights,
                "ROUTINE" => Self::Job,
                _ => Self::Ddl,
            },
            "SET" => match second().as_str() {
                "GLOBAL" | "PROPERTY" => Self::Setting,
                "PASSWORD" => Self::Rights,
                word if word.starts_with("@@GLOBAL.") => Self::Setting,
                _ => return None,
            },
            _ => return None,
        })
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

    /// Notes a statement that succeeded, if it is an event.
    pub fn statement(&self, (user, host): (&str, &str), kind: &str, text: &str) {
        if let Some(kind) = EventKind::of_statement(kind, text) {
            self.push(kind, Some((user.to_owned(), host.to_owned())), &redacted(text).text);
        }
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
        for (kind, text) in [
            ("SELECT", "SELECT 1"),
            ("CREATE", "create table t (a INT)"),
            ("CREATE", "CREATE USER u IDENTIFIED BY 'canary'"),
            ("SET", "SET x = 1"),
            ("SET", "set global x = 1"),
            ("SET", "SET @@GLOBAL.x = 1"),
            ("KILL", "KILL 7"),
            ("PAUSE", "PAUSE ROUTINE LOAD FOR j"),
        ] {
            events.statement(("u", "h"), kind, text);
        }
        let all = events.all();
        let kinds: Vec<_> = all.iter().map(|event| event.kind.name()).collect();
        assert_eq!(kinds, ["START", "DDL", "RIGHTS", "SETTING", "SETTING", "KILL", "JOB"]);
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
