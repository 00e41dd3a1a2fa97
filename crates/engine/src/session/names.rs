//! The name of a statement's load, by which it is known when it is sent again.
//!
//! It is in a comment before the statement, as `/* idempotency_key='…' */` or `/* channel='…', channel_offset='…' */`, or in the
//! session's variables of these names, which the next INSERT or LOAD DATA uses up.
//!
//! Not here: which loads were stored.

use super::EngineSession;
use crate::access::interrupt::Interrupt;
use crate::answer::Answer;
use crate::load::{Load, LoadCommitted};
use crate::session::rows::insert::InsertAnswer;
use std::sync::Arc;
use tributary_ingest::NamedLoad;
use tributary_table::Table;
use tributary_types::{ChannelOffset, ErrorCode, Fingerprinter, Label, LoadKey, LoadName, SqlError};

const KEY: &str = "idempotency_key";
const CHANNEL: &str = "channel";
const OFFSET: &str = "channel_offset";
const NEXT_OFFSET: &str = "channel_next_offset";

/// The name of the running statement's load.
#[derive(Debug)]
pub(super) struct Named {
    /// An illegal one is an error of the load only.
    name: Result<LoadName, SqlError>,
    /// Of the statement, and of what else of it the client sends.
    fingerprint: Fingerprinter,
    /// Its variables are to be forgotten.
    is_of_variables: bool,
}

impl Named {
    /// Adds bytes of the load that are not in the statement's text.
    pub fn add(&mut self, bytes: &[u8]) {
        self.fingerprint.update(bytes);
    }
}

/// The parts of a name, as texts.
#[derive(Debug, Default, PartialEq, Eq)]
struct Parts<'a> {
    key: Option<&'a str>,
    channel: Option<&'a str>,
    offset: Option<u64>,
    next: Option<u64>,
}

impl<'a> Parts<'a> {
    /// Reads the comment before a statement; the rest is the statement. `None`: there is no comment that names a load.
    fn of_comment(text: &'a str) -> Result<Option<(Self, &'a str)>, SqlError> {
        let Some(comment) = text.trim_ascii_start().strip_prefix("/*") else { return Ok(None) };
        let Some((comment, statement)) = comment.split_once("*/") else { return Ok(None) };
        let mut parts = Self::default();
        for pair in comment.split(',') {
            let Some((name, value)) = pair.split_once('=') else { return Ok(None) };
            let value = value.trim();
            let Some(value) = value.strip_prefix('\'').and_then(|value| value.strip_suffix('\'')) else {
                return Ok(None);
            };
            match name.trim() {
                KEY => parts.key = Some(value),
                CHANNEL => parts.channel = Some(value),
                OFFSET => parts.offset = Some(number(OFFSET, value)?),
                NEXT_OFFSET => parts.next = Some(number(NEXT_OFFSET, value)?),
                // Of a tracer, say.
                _ => {}
            }
        }
        Ok((parts != Self::default()).then_some((parts, statement)))
    }

    fn name(self) -> Result<LoadName, SqlError> {
        match self {
            Self { key: Some(key), channel: None, offset: None, next: None } => {
                LoadKey::new(key).map(LoadName::Key)
            }
            Self { key: None, channel: Some(channel), offset: Some(offset), next } => {
                ChannelOffset::new(LoadKey::new(channel)?, offset, next).map(LoadName::Channel)
            }
            _ => Err(SqlError::detail(
                ErrorCode::WrongArguments,
                format!(
                    "a load is known by {KEY}, or by {CHANNEL} and {OFFSET} (and {NEXT_OFFSET}, if it is not one more): give all of one, \
                     and nothing of the other"
                ),
            )),
        }
    }
}

fn number(name: &str, text: &str) -> Result<u64, SqlError> {
    text.parse().map_err(|_| {
        SqlError::detail(
            ErrorCode::WrongArguments,
            format!("{name} is a whole number of at most {}, and not {text}", u64::MAX),
        )
    })
}

impl EngineSession {
    /// Reads the name of a statement's load.
    pub(super) fn read_name(&self, text: &str) -> Option<Box<Named>> {
        let variables = self.variables.values();
        let is_commented = text.trim_ascii_start().starts_with("/*");
        let has_variables = !variables.idempotency_key.is_empty() || !variables.channel.is_empty();
        if !is_commented && !has_variables {
            return None;
        }
        let of_comment = Parts::of_comment(text).transpose();
        let is_of_variables = of_comment.is_none();
        let (name, statement) = match of_comment {
            Some(found) => match found {
                Ok((parts, statement)) => (parts.name(), statement),
                Err(error) => (Err(error), text),
            },
            None if !has_variables => return None,
            None => {
                let whole = |number: i64| u64::try_from(number).ok();
                let parts = Parts {
                    key: Some(variables.idempotency_key.as_str()).filter(|key| !key.is_empty()),
                    channel: Some(variables.channel.as_str()).filter(|channel| !channel.is_empty()),
                    offset: whole(variables.channel_offset),
                    next: whole(variables.channel_next_offset),
                };
                (parts.name(), text)
            }
        };
        let mut fingerprint = Fingerprinter::default();
        fingerprint.update(statement.trim_ascii().as_bytes());
        Some(Box::new(Named { name, fingerprint, is_of_variables }))
    }

    /// Adds bytes of the statement's load that are not in its text.
    pub(super) fn add_to_name(&mut self, bytes: impl FnOnce() -> Vec<u8>) {
        if let Some(named) = &mut self.running.named {
            named.add(&bytes());
        }
    }

    /// The name of the load that the statement makes. It has one such load.
    ///
    /// # Errors
    /// The name is illegal.
    fn take_name(&mut self) -> Result<Option<Box<NamedLoad>>, SqlError> {
        let Some(named) = self.running.named.take() else { return Ok(None) };
        self.running.uses_up_name |= named.is_of_variables;
        Ok(Some(Box::new(NamedLoad { name: named.name?, fingerprint: named.fingerprint.finish() })))
    }

    /// Gives a load the statement's name, if that has one.
    ///
    /// # Errors
    /// The name is illegal; nothing of the load is left.
    pub(super) async fn name_load(&mut self, mut load: Load) -> Result<Load, SqlError> {
        match self.take_name() {
            Ok(None) => Ok(load),
            Ok(Some(named)) => {
                load.set_name(named);
                Ok(load)
            }
            Err(error) => {
                Box::pin(load.abort(error.detail_text())).await;
                Err(error)
            }
        }
    }

    /// Forgets the variables that have named the load of a statement.
    pub(super) fn use_up_name(&mut self) {
        for name in [KEY, CHANNEL, OFFSET, NEXT_OFFSET] {
            // All of them are declared.
            let _ = self.variables.reset(name);
        }
    }

    /// The answer to a statement whose load was loaded before. `None`: it is to be loaded.
    ///
    /// # Errors
    /// The name is illegal, was used for another statement, or the channel can't have it next; it has a label, too, or is within BEGIN.
    pub(super) async fn loaded_before(
        &mut self,
        table: &Arc<Table>,
        label: Option<&Label>,
    ) -> Result<Option<Answer>, SqlError> {
        let Some(named) = &self.running.named else { return Ok(None) };
        let name = named.name.clone()?;
        if let Some(label) = label {
            return Err(SqlError::detail(ErrorCode::WrongArguments, name.beside(&format!("label {label}"))));
        }
        if self.transaction.is_some() {
            return Err(SqlError::detail(
                ErrorCode::NotSupported,
                format!(
                    "an INSERT within BEGIN can't have {name}: the transaction is one load, which is known by its label; use BEGIN \
                     WITH LABEL"
                ),
            ));
        }
        let load = NamedLoad { name, fingerprint: named.fingerprint.finish() };
        let (traits, loads, process) =
            (self.traits(0), Arc::clone(&self.engine.loads), Arc::clone(&self.process));
        let interrupt = Interrupt::by_kill(&process.stop).or_after(self.insert_timeout());
        let Some(first) = interrupt.wait(loads.first_answer(table, &load, &traits)).await?? else {
            return Ok(None);
        };
        drop(self.take_name());
        let counts = first.counts;
        let LoadCommitted { label, txn, status, .. } = first.into();
        let answer = InsertAnswer { is_repeated: true, ..InsertAnswer::of(label, txn, status) };
        Ok(Some(self.answer_insert(table, counts, answer, None, false)))
    }

    /// Whether the statement that ended has used up its variables, or was a load that failed.
    pub(super) fn has_used_name(&self, kind: Option<&'static str>) -> bool {
        let is_of_variables = self.running.named.as_ref().is_some_and(|named| named.is_of_variables);
        self.running.uses_up_name || is_of_variables && matches!(kind, Some("INSERT" | "LOAD"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Result<Option<(LoadName, &str)>, String> {
        let of_comment = Parts::of_comment(text).map_err(|error| error.message)?;
        let named = of_comment.map(|(parts, rest)| parts.name().map(|name| (name, rest)));
        named.transpose().map_err(|error| error.message)
    }

    #[test]
    fn a_comment_before_a_statement_names_its_load() {
        let key = |text: &str| LoadKey::new(text).expect("legal");
        let found = named(" /* idempotency_key='a=b' */ INSERT").expect("legal");
        assert_eq!(found, Some((LoadName::Key(key("a=b")), " INSERT")));
        let found = named("/*channel='c',channel_offset='4',traceparent='x'*/INSERT").expect("legal");
        let at = ChannelOffset { channel: key("c"), offset: 4, next: 5 };
        assert_eq!(found, Some((LoadName::Channel(at), "INSERT")));
        for other in [
            "INSERT",
            "/* hello */ INSERT",
            "/* a=1 */ INSERT",
            "/*traceparent='x'*/ INSERT",
            "/* idempotency_key='",
        ] {
            assert_eq!(named(other), Ok(None), "{other}");
        }
    }

    #[test]
    fn a_name_that_is_not_whole_is_refused() {
        for wrong in [
            "/*channel='c'*/",
            "/*channel_offset='1'*/",
            "/*idempotency_key='k',channel='c',channel_offset='1'*/",
        ] {
            assert!(named(wrong).expect_err(wrong).contains("give all of one"));
        }
        assert!(named("/*channel='c',channel_offset='x'*/").expect_err("no number").contains("and not x"));
        assert!(named("/*idempotency_key=''*/").expect_err("empty").contains("1 to 255 bytes"));
    }
}
