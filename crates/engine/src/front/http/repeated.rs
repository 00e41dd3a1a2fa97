//! The answers to loads that were loaded before, and to those whose name is refused.

use super::{HttpLoads, LoadRequest, failed, late};
use crate::access::interrupt::Interrupt;
use std::sync::Arc;
use tributary_http::{AskedName, LoadAnswer, LoadBody, LoadCode, LoadStatus, NamedState, StoredLoad};
use tributary_ingest::{AnsweredAs, FirstAnswer, Ingest, IngestError, NamedLoad, TransactionStatus};
use tributary_table::Table;
use tributary_types::{ChannelOffset, LoadName, TableDef, TxnId, Version};

impl HttpLoads {
    /// The answer to a load whose name is known, or refused, before its body was read. `None`: it is to be loaded.
    pub(super) async fn known(
        &self,
        table: &Arc<Table>,
        request: &LoadRequest,
        body: &mut LoadBody,
        deadline: Interrupt<'_>,
    ) -> Option<LoadAnswer> {
        let name = request.name.as_ref()?;
        if request.label.is_some() {
            return Some(LoadAnswer::fail(LoadCode::InvalidArgument, name.beside("the statement's label")));
        }
        match self.0.ingest.first_answer(table.id(), name) {
            Ok(first) => first?,
            Err(error) => return Some(refused(&error)),
        };
        let mut fingerprint = request.fingerprinter();
        loop {
            match deadline.wait(body.next()).await {
                Ok(Some(Ok(chunk))) => fingerprint.update(&chunk),
                Ok(Some(Err(error))) => return Some(LoadAnswer::from_body_error(&error)),
                Ok(None) => break,
                Err(interrupted) => return Some(late(interrupted)),
            }
        }
        let named = NamedLoad { name: name.clone(), fingerprint: fingerprint.finish() };
        let traits = request.traits();
        let first = match deadline.wait(self.0.loads.first_answer(table, &named, &traits)).await {
            Ok(Ok(Some(first))) => first,
            // Its time has just ended. The body is read, so that the client has to send it again.
            Ok(Ok(None)) => {
                let text = format!("{name} has just been forgotten; nothing of this load was kept, retry it");
                return Some(LoadAnswer::fail(LoadCode::ServiceUnavailable, text));
            }
            Ok(Err(error)) => return Some(refused(&error)),
            Err(interrupted) => return Some(late(interrupted)),
        };
        let mut answer = again(first);
        answer.table = Some(table.with_def(TableDef::table_ref));
        add_next_offset(&mut answer, Some(name));
        Some(answer)
    }
}

/// The first answer again.
fn again(first: FirstAnswer) -> LoadAnswer {
    let counts = first.counts;
    LoadAnswer {
        group_commit: first.answered_as != AnsweredAs::Own,
        repeated: true,
        total_rows: counts.total,
        loaded_rows: counts.loaded,
        filtered_rows: counts.filtered,
        unselected_rows: counts.unselected,
        ..LoadAnswer::success(first.txn, first.label.as_str().to_owned())
    }
}

/// Adds where the next load of the channel begins.
pub(super) fn add_next_offset(answer: &mut LoadAnswer, name: Option<&LoadName>) {
    if let Some(LoadName::Channel(at)) = name
        && answer.is_loaded()
    {
        answer.channel_next_offset = Some(at.next);
    }
}

/// Whether an error says that a load's name is not free for it.
pub(super) const fn is_about_names(error: &IngestError) -> bool {
    matches!(
        error,
        IngestError::NameOfOtherBytes { .. }
            | IngestError::NameRunning { .. }
            | IngestError::NameUnknown { .. }
            | IngestError::OffsetExists { .. }
            | IngestError::OffsetOutOfRange { .. }
            | IngestError::TooManyKeys { .. }
            | IngestError::TooManyChannels { .. }
            | IngestError::KeysUnreadable(_)
            | IngestError::NotVisible { .. }
    )
}

/// The refusal of a load whose name is not free for it.
pub(super) fn refused(error: &IngestError) -> LoadAnswer {
    let code = match error {
        IngestError::NameOfOtherBytes { .. } => LoadCode::KeyConflict,
        IngestError::OffsetExists { .. } => LoadCode::OffsetAlreadyExists,
        IngestError::OffsetOutOfRange { .. } => LoadCode::OffsetOutOfRange,
        IngestError::TooManyKeys { .. } | IngestError::TooManyChannels { .. } => LoadCode::ExceededLimit,
        _ => LoadCode::ServiceUnavailable,
    };
    let mut answer = failed(code, error);
    match error {
        IngestError::OffsetExists { next, .. } => {
            answer.status = LoadStatus::OffsetAlreadyExists;
            answer.channel_next_offset = Some(*next);
        }
        IngestError::OffsetOutOfRange { next, .. } => answer.channel_next_offset = Some(*next),
        _ => {}
    }
    answer
}

/// The state of a key or a channel.
pub(super) fn state_of(ingest: &Ingest, table: &Table, asked: &AskedName) -> Result<NamedState, IngestError> {
    let id = table.id();
    let (found, next_offset, is_running) = match asked {
        AskedName::Key(key) => {
            let name = LoadName::Key(key.clone());
            let found = ingest.first_answer(id, &name)?;
            (found.map(|first| (first.txn, first.label, first.counts)), 0, ingest.is_running(id, &name))
        }
        AskedName::Channel(channel) => {
            let found = ingest.channels(Some(id)).into_iter().find(|state| state.channel == *channel);
            let next = found.as_ref().map_or(0, |state| state.next_offset);
            let at = ChannelOffset { channel: channel.clone(), offset: next, next: u64::MAX };
            let is_running = ingest.is_running(id, &LoadName::Channel(at));
            (found.map(|state| (state.txn, state.label, state.counts)), next, is_running)
        }
    };
    // One that is forgotten has been visible for long.
    let visible_since = |txn: TxnId| match ingest.transactions().by_id(txn) {
        None => Some(Version(0)),
        Some(info) => (info.status == TransactionStatus::Visible).then_some(info.version),
    };
    let version = found.as_ref().and_then(|(txn, ..)| visible_since(*txn));
    let state = match (&found, version) {
        _ if is_running => "RUNNING",
        (None, _) => "NONE",
        (Some(_), Some(_)) => "VISIBLE",
        (Some(_), None) => "DURABLE",
    };
    let delta_version = version.and_then(|version| table.delta_version_of(version));
    let load = found.map(|(txn, label, counts)| StoredLoad {
        txn_id: txn,
        label: label.to_string(),
        loaded_rows: counts.loaded,
        filtered_rows: counts.filtered,
        unselected_rows: counts.unselected,
    });
    Ok(NamedState { state, load, delta_version, next_offset })
}
