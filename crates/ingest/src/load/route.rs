//! The one rule that says how a load is committed: in a group (and how it is answered), or as a
//! transaction of its own, and why.
//!
//! The order of the checks is the order of Doris's manual ("Group Commit Fallback Scenarios" and "WAL Limitations"); the name of
//! a condition that prevents Group Commit goes into the answer.

use crate::error::IngestError;
use tributary_types::{GroupCommitMode, Requirement, TableProperties};

/// An async load must be smaller than this share of a WAL directory's space, in percent.
pub const WAL_SPACE_PERCENT_MAX: u64 = 80;

/// The origin of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Insert,
    StreamLoad,
    HttpStream,
    BrokerLoad,
    /// A task of a job.
    RoutineLoad,
}

impl Source {
    /// The name for users.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::StreamLoad => "stream_load",
            Self::HttpStream => "http_stream",
            Self::BrokerLoad => "broker_load",
            Self::RoutineLoad => "routine_load",
        }
    }
}

/// The known size of the load before its rows are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// This many bytes.
    Known(u64),
    /// A chunked HTTP body.
    Unknown,
}

/// Everything about a load that decides how it is committed.
#[derive(Clone, Copy, Debug)]
pub struct LoadTraits {
    pub source: Source,
    /// The session variable or the HTTP header; `None` if the client never set it.
    pub requested: Option<GroupCommitMode>,
    /// Between BEGIN and COMMIT.
    pub in_transaction: bool,
    pub two_phase_commit: bool,
    /// The client chose a label.
    pub has_label: bool,
    /// VALUES holds something that is not a literal.
    pub has_expression: bool,
    /// INSERT … SELECT from tables.
    pub from_query: bool,
    pub partial_update: bool,
    pub partitions: bool,
    /// The least that the client wants; otherwise the load is refused.
    pub required: Option<Requirement>,
    pub body: Body,
}

impl LoadTraits {
    /// A plain load of literals from `source`.
    #[must_use]
    pub const fn plain(source: Source, requested: Option<GroupCommitMode>, body: Body) -> Self {
        Self {
            source,
            requested,
            in_transaction: false,
            two_phase_commit: false,
            has_label: false,
            has_expression: false,
            from_query: false,
            partial_update: false,
            partitions: false,
            required: None,
            body,
        }
    }
}

/// Why a load that requested Group Commit is a transaction of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fallback {
    Transaction,
    TwoPhaseCommit,
    Label,
    Expression,
    Query,
    PartialUpdate,
    Partitions,
    HeavySchema,
    EmptyBody,
}

impl Fallback {
    pub const ALL: [Self; 9] = [
        Self::Transaction,
        Self::TwoPhaseCommit,
        Self::Label,
        Self::Expression,
        Self::Query,
        Self::PartialUpdate,
        Self::Partitions,
        Self::HeavySchema,
        Self::EmptyBody,
    ];

    /// A short name, for metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transaction => "transaction",
            Self::TwoPhaseCommit => "two_phase_commit",
            Self::Label => "label",
            Self::Expression => "expression",
            Self::Query => "query",
            Self::PartialUpdate => "partial_update",
            Self::Partitions => "partitions",
            Self::HeavySchema => "no_light_schema_change",
            Self::EmptyBody => "empty_body",
        }
    }

    /// The reason as a user reads it.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Transaction => "the statement is part of an explicit transaction",
            Self::TwoPhaseCommit => "two_phase_commit is set",
            Self::Label => "a label is specified",
            Self::Expression => "VALUES contains an expression",
            Self::Query => "the rows come from a query",
            Self::PartialUpdate => "it is a column update",
            Self::Partitions => "partitions are specified",
            Self::HeavySchema => "the table has light_schema_change = false",
            Self::EmptyBody => "the body is empty",
        }
    }
}

/// Why an async load is answered like a sync one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Switch {
    /// Over 80 % of a WAL directory's space.
    TooLarge,
    /// A chunked body.
    UnknownSize,
    /// The disk is short of space.
    DiskShort,
    /// Its rows went to data files, which the log knows of only when the group has committed.
    DataFiles,
}

impl Switch {
    pub const ALL: [Self; 4] = [Self::TooLarge, Self::UnknownSize, Self::DiskShort, Self::DataFiles];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooLarge => "too_large",
            Self::UnknownSize => "unknown_size",
            Self::DiskShort => "disk_short",
            Self::DataFiles => "data_files",
        }
    }

    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::TooLarge => "switched to sync_mode: the load is over 80 % of a WAL directory's space",
            Self::UnknownSize => "switched to sync_mode: the size of a chunked body is not known",
            Self::DiskShort => "switched to sync_mode: the WAL directories have no space left",
            Self::DataFiles => "switched to sync_mode: the load is larger than large_load_bytes",
        }
    }
}

/// How a load is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// It joins a group and is answered when the group is visible.
    GroupSync(Option<Switch>),
    /// It joins a group and is answered when the log has it.
    GroupAsync,
    /// It is a transaction of its own; with a reason if Group Commit was requested.
    Own(Option<Fallback>),
}

impl Route {
    /// The route once the load's rows are decoded: whether they went to data files is known only then.
    #[must_use]
    pub const fn with_data_files(self, has_data_files: bool) -> Self {
        match (self, switch_of_rows(has_data_files)) {
            (Self::GroupAsync, Some(switch)) => Self::GroupSync(Some(switch)),
            (route, _) => route,
        }
    }

    /// Refuses a load that would get less than its client requires.
    ///
    /// # Errors
    /// [`IngestError::NotAsRequired`].
    pub fn check(self, required: Option<Requirement>) -> Result<(), IngestError> {
        let refused = |required: Requirement, because: &'static str| {
            Err(IngestError::NotAsRequired { required: required.as_str(), because })
        };
        match (required, self) {
            (Some(grouped @ Requirement::Grouped), Self::Own(fallback)) => {
                refused(grouped, fallback.map_or("the mode is off_mode", Fallback::reason))
            }
            (Some(visible @ Requirement::Visible), Self::GroupAsync) => {
                refused(visible, "the mode is async_mode, which answers before its group is committed")
            }
            _ => Ok(()),
        }
    }

    /// A remark for the answer if the client did not get the requested mode.
    #[must_use]
    pub const fn remark(self) -> Option<&'static str> {
        match self {
            Self::GroupSync(Some(switch)) => Some(switch.reason()),
            Self::Own(Some(fallback)) => Some(fallback.reason()),
            _ => None,
        }
    }
}

/// The mode in effect: the client's, else the table's.
#[must_use]
pub fn effective_mode(requested: Option<GroupCommitMode>, table: &TableProperties) -> GroupCommitMode {
    requested.unwrap_or(table.group_commit_mode)
}

/// Decides how the load is committed. `wal_available_bytes` returns the largest space in one WAL directory; it is called only
/// where that matters.
#[must_use]
pub fn route(load: &LoadTraits, table: &TableProperties, wal_available_bytes: impl FnOnce() -> u64) -> Route {
    let mode = effective_mode(load.requested, table);
    if mode == GroupCommitMode::Off {
        return Route::Own(None);
    }
    if let Some(fallback) = fallback(load, table) {
        return Route::Own(Some(fallback));
    }
    if mode == GroupCommitMode::Sync {
        return Route::GroupSync(None);
    }
    match switch(load.body, wal_available_bytes()) {
        Some(switch) => Route::GroupSync(Some(switch)),
        None => Route::GroupAsync,
    }
}

fn fallback(load: &LoadTraits, table: &TableProperties) -> Option<Fallback> {
    let checks = [
        (load.in_transaction, Fallback::Transaction),
        (load.two_phase_commit, Fallback::TwoPhaseCommit),
        (load.has_label, Fallback::Label),
        (load.from_query, Fallback::Query),
        (load.has_expression, Fallback::Expression),
        (load.partial_update, Fallback::PartialUpdate),
        (load.partitions, Fallback::Partitions),
        (!table.light_schema_change, Fallback::HeavySchema),
        (load.source != Source::Insert && load.body == Body::Known(0), Fallback::EmptyBody),
    ];
    checks.into_iter().find_map(|(holds, reason)| holds.then_some(reason))
}

fn switch(body: Body, available: u64) -> Option<Switch> {
    match body {
        _ if available == 0 => Some(Switch::DiskShort),
        Body::Unknown => Some(Switch::UnknownSize),
        Body::Known(bytes)
            if bytes.saturating_mul(100) >= available.saturating_mul(WAL_SPACE_PERCENT_MAX) =>
        {
            Some(Switch::TooLarge)
        }
        Body::Known(_) => None,
    }
}

/// Why an async load with these rows is answered like a sync one: the log names data files in the commit of their
/// group and nowhere before.
pub(crate) const fn switch_of_rows(has_data_files: bool) -> Option<Switch> {
    if has_data_files { Some(Switch::DataFiles) } else { None }
}

#[cfg(test)]
mod tests;
