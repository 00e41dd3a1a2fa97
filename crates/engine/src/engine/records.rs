//! The kinds of records of jobs that this program knows, with their formats.
//!
//! Invariant: no record is skipped because this program does not know it. A record of an unknown kind or a newer format ends the
//! start with its name: its job may be half done, and only the program that wrote it can complete it.

use crate::background::Record as _;
use crate::background::record::{Envelope, Unreadable};
use crate::ddl::change::schema as schema_change;
use crate::jobs::routine_load::Definition;
use crate::jobs::{broker_load, export, scheduled};
use tributary_catalog::JobRecord;
use tributary_ddl::Change;

/// The newest format of bodies of a kind that this program reads; `None`: it does not know the kind.
fn newest_format(kind: &str) -> Option<u32> {
    match kind {
        broker_load::Record::KIND => Some(broker_load::Record::FORMAT),
        export::Record::KIND => Some(export::Record::FORMAT),
        schema_change::Record::KIND => Some(schema_change::Record::FORMAT),
        Definition::KIND => Some(Definition::FORMAT),
        scheduled::Record::KIND => Some(scheduled::Record::FORMAT),
        kind => Change::has_kind(kind).then_some(Change::FORMAT),
    }
}

/// Checks that all records can be read.
///
/// # Errors
/// Names the first unreadable one.
pub(crate) fn check(records: &[JobRecord]) -> Result<(), Unreadable> {
    for record in records {
        let (id, envelope) = (record.id, Envelope::read(record)?);
        let unreadable = |reason| Unreadable { id: id.0, kind: envelope.kind.clone(), reason };
        let Some(known) = newest_format(&envelope.kind) else {
            return Err(unreadable("this program does not know the kind".to_owned()));
        };
        if envelope.format > known {
            let format = envelope.format;
            return Err(unreadable(format!(
                "it has format {format}, and this program knows formats up to {known}"
            )));
        }
        match envelope.kind.as_str() {
            broker_load::Record::KIND => drop(envelope.body_of::<broker_load::Record>(id)?),
            export::Record::KIND => drop(envelope.body_of::<export::Record>(id)?),
            schema_change::Record::KIND => drop(envelope.body_of::<schema_change::Record>(id)?),
            Definition::KIND => drop(envelope.body_of::<Definition>(id)?),
            scheduled::Record::KIND => drop(envelope.body_of::<scheduled::Record>(id)?),
            kind => drop(Change::read(id, kind, envelope.body.clone()).map_err(unreadable)?),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
