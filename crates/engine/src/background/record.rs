//! The records of jobs in the catalog: each has the kind of its job, the format of its body, and the body.
//!
//! Invariant: no record is skipped because this program does not know it. A record of an unknown kind or a newer format ends the
//! start with its name: its job may be half done, and only the program that wrote it can complete it.
//!
//! Records of older servers have no envelope: their kind, and sometimes their format, are fields of the body.
//!
//! Not its business: the contents of the bodies.

use crate::background::Record as _;
use crate::ddl::change::schema as schema_change;
use crate::jobs::routine_load::Definition;
use crate::jobs::{broker_load, export};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tributary_catalog::JobRecord;
use tributary_ddl::Change;
use tributary_types::{ErrorCode, SourceId, SqlError};

/// A record that this program can't read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "job {id} of the catalog, of the kind '{kind}', can't be read: {reason}. Nothing was changed. Start the newer program that wrote it; \
     if there is none, restore the catalog from a copy"
)]
pub struct Unreadable {
    pub id: u64,
    pub kind: String,
    pub reason: String,
}

impl From<Unreadable> for SqlError {
    fn from(error: Unreadable) -> Self {
        Self::detail(ErrorCode::Unknown, error.to_string())
    }
}

/// A record with its body.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Envelope {
    pub kind: String,
    pub body: Value,
}

/// The newest format of bodies of a kind that this program reads; `None`: it does not know the kind.
fn newest_format(kind: &str) -> Option<u32> {
    match kind {
        broker_load::Record::KIND => Some(broker_load::Record::FORMAT),
        export::Record::KIND => Some(export::Record::FORMAT),
        schema_change::Record::KIND => Some(schema_change::Record::FORMAT),
        Definition::KIND => Some(Definition::FORMAT),
        kind => Change::has_kind(kind).then_some(Change::FORMAT),
    }
}

impl Envelope {
    pub fn written(kind: &str, format: u32, body: impl Serialize) -> String {
        #[derive(Serialize)]
        struct Written<'a, B> {
            kind: &'a str,
            format: u32,
            body: B,
        }
        serde_json::to_string(&Written { kind, format, body }).expect("records have only texts and numbers")
    }

    /// Reads a record of any kind and any format that this program knows.
    ///
    /// # Errors
    /// If it does not know its kind or format, or if it is not a record.
    pub fn read(record: &JobRecord) -> Result<Self, Unreadable> {
        #[derive(Deserialize)]
        struct Head {
            kind: String,
            #[serde(default)]
            format: u32,
        }
        let unreadable =
            |kind: &str, reason: String| Unreadable { id: record.id.0, kind: kind.to_owned(), reason };
        let broken = |error: serde_json::Error| unreadable("?", error.to_string());
        let mut fields: Map<String, Value> = serde_json::from_str(&record.definition).map_err(broken)?;
        let Head { kind, format } = serde_json::from_value(Value::Object(fields.clone())).map_err(broken)?;
        let Some(known) = newest_format(&kind) else {
            return Err(unreadable(&kind, "this program does not know the kind".to_owned()));
        };
        if format > known {
            let reason = format!("it has format {format}, and this program knows formats up to {known}");
            return Err(unreadable(&kind, reason));
        }
        let body = fields.remove("body").unwrap_or(Value::Object(fields));
        Ok(Self { kind, body })
    }

    /// The body, which is one of `T`.
    ///
    /// # Errors
    /// It is not.
    pub fn body_of<T: DeserializeOwned>(self, id: SourceId) -> Result<T, Unreadable> {
        let Self { kind, body } = self;
        serde_json::from_value(body).map_err(|error| Unreadable { id: id.0, kind, reason: error.to_string() })
    }
}

/// Checks that all records can be read.
///
/// # Errors
/// Names the first unreadable one.
pub(crate) fn check(records: &[JobRecord]) -> Result<(), Unreadable> {
    for record in records {
        let (id, envelope) = (record.id, Envelope::read(record)?);
        match envelope.kind.as_str() {
            broker_load::Record::KIND => drop(envelope.body_of::<broker_load::Record>(id)?),
            export::Record::KIND => drop(envelope.body_of::<export::Record>(id)?),
            schema_change::Record::KIND => drop(envelope.body_of::<schema_change::Record>(id)?),
            Definition::KIND => drop(envelope.body_of::<Definition>(id)?),
            kind => {
                let unreadable = |reason| Unreadable { id: id.0, kind: kind.to_owned(), reason };
                Change::read(id, kind, envelope.body.clone()).map_err(unreadable)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
