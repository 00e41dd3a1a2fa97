//! The records of jobs in the catalog: each has the kind of its job, the format of its body, and the body.
//!
//! Records of older servers have no envelope: their kind, and sometimes their format, are fields of the body.
//!
//! Not its business: the contents of the bodies, and which kinds exist.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tributary_catalog::JobRecord;
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
    pub format: u32,
    pub body: Value,
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

    /// Reads a record of any kind and format. The start has checked that this program knows them.
    ///
    /// # Errors
    /// If it is not a record.
    pub fn read(record: &JobRecord) -> Result<Self, Unreadable> {
        #[derive(Deserialize)]
        struct Head {
            kind: String,
            #[serde(default)]
            format: u32,
        }
        let broken = |error: serde_json::Error| Unreadable {
            id: record.id.0,
            kind: "?".to_owned(),
            reason: error.to_string(),
        };
        let mut fields: Map<String, Value> = serde_json::from_str(&record.definition).map_err(broken)?;
        let Head { kind, format } = serde_json::from_value(Value::Object(fields.clone())).map_err(broken)?;
        let body = fields.remove("body").unwrap_or(Value::Object(fields));
        Ok(Self { kind, format, body })
    }

    /// The body, which is one of `T`.
    ///
    /// # Errors
    /// It is not.
    pub fn body_of<T: DeserializeOwned>(self, id: SourceId) -> Result<T, Unreadable> {
        let Self { kind, body, .. } = self;
        serde_json::from_value(body).map_err(|error| Unreadable { id: id.0, kind, reason: error.to_string() })
    }
}
