//! Findings that last: one row per thing that is not well.
//!
//! Invariant: a finding becomes a problem once it has been found at each look for its kind's patience, and ends with the first look
//! that does not find it. Its beginning is that of the first of these looks.
//!
//! Not here: what is looked at.

use super::findings::{Finding, Identity};
use crate::access::events::{EventKind, Events};
use prometheus::{IntGauge, IntGaugeVec, Opts, Registry};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tributary_types::TableId;

/// How soon somebody should look after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// Loads are refused, or will be; or work has ended for good.
    Critical,
    /// Something is slow, lost or refused; the rest goes on.
    Warning,
}

impl Severity {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Critical => "CRITICAL",
            Self::Warning => "WARNING",
        }
    }
}

/// Kinds of problems: a documented contract, as the metric's label and the column `CODE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ProblemKind {
    WorkEnded,
    NotReady,
    TakenOver,
    ReaderBehind,
    CatalogAway,
    GroupStranded,
    TableWrong,
    VerifyFails,
    SlowLog,
    LogFull,
    TableLags,
    TableInTrouble,
    FlushStuck,
    LoadsWaitForMemory,
    MemoryFull,
    UserFloods,
    LoadsFail,
    RowsRejected,
    LimitReached,
    LoginsFail,
    JobPaused,
    JobBehind,
    ClockWentBack,
    FewFileDescriptors,
    LinesDropped,
    StoreThrottles,
    CollectorFails,
}

impl ProblemKind {
    const ALL: [Self; 27] = [
        Self::WorkEnded,
        Self::NotReady,
        Self::TakenOver,
        Self::ReaderBehind,
        Self::CatalogAway,
        Self::GroupStranded,
        Self::TableWrong,
        Self::VerifyFails,
        Self::SlowLog,
        Self::LogFull,
        Self::TableLags,
        Self::TableInTrouble,
        Self::FlushStuck,
        Self::LoadsWaitForMemory,
        Self::MemoryFull,
        Self::UserFloods,
        Self::LoadsFail,
        Self::RowsRejected,
        Self::LimitReached,
        Self::LoginsFail,
        Self::JobPaused,
        Self::JobBehind,
        Self::ClockWentBack,
        Self::FewFileDescriptors,
        Self::LinesDropped,
        Self::StoreThrottles,
        Self::CollectorFails,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::WorkEnded => "WORK_ENDED",
            Self::NotReady => "NOT_READY",
            Self::TakenOver => "TAKEN_OVER",
            Self::ReaderBehind => "READER_BEHIND",
            Self::CatalogAway => "CATALOG_AWAY",
            Self::GroupStranded => "GROUP_STRANDED",
            Self::TableWrong => "TABLE_WRONG",
            Self::VerifyFails => "VERIFY_FAILS",
            Self::SlowLog => "SLOW_LOG",
            Self::LogFull => "LOG_FULL",
            Self::TableLags => "TABLE_LAGS",
            Self::TableInTrouble => "TABLE_IN_TROUBLE",
            Self::FlushStuck => "FLUSH_STUCK",
            Self::LoadsWaitForMemory => "LOADS_WAIT_FOR_MEMORY",
            Self::MemoryFull => "MEMORY_FULL",
            Self::UserFloods => "USER_FLOODS",
            Self::LoadsFail => "LOADS_FAIL",
            Self::RowsRejected => "ROWS_REJECTED",
            Self::LimitReached => "LIMIT_REACHED",
            Self::LoginsFail => "LOGINS_FAIL",
            Self::JobPaused => "JOB_PAUSED",
            Self::JobBehind => "JOB_BEHIND",
            Self::ClockWentBack => "CLOCK_WENT_BACK",
            Self::FewFileDescriptors => "FEW_FILE_DESCRIPTORS",
            Self::LinesDropped => "LINES_DROPPED",
            Self::StoreThrottles => "STORE_THROTTLES",
            Self::CollectorFails => "COLLECTOR_FAILS",
        }
    }

    const fn severity(self) -> Severity {
        match self {
            Self::WorkEnded
            | Self::NotReady
            | Self::TakenOver
            | Self::GroupStranded
            | Self::TableWrong
            | Self::VerifyFails => Severity::Critical,
            _ => Severity::Warning,
        }
    }

    /// How long it must be found before it is a problem: healthy servers have each of these for a moment.
    const fn patience(self) -> Duration {
        match self {
            Self::SlowLog | Self::UserFloods => Duration::from_secs(3),
            Self::TableLags | Self::LoadsWaitForMemory | Self::JobBehind | Self::ReaderBehind => {
                Duration::from_secs(5)
            }
            Self::FlushStuck => Duration::from_secs(6),
            _ => Duration::ZERO,
        }
    }
}

/// A thing that is not well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub kind: ProblemKind,
    /// `None`: it is the server's.
    pub table: Option<TableId>,
    /// The client, job or directory.
    pub subject: Option<String>,
    /// Milliseconds since 1970.
    pub since_ms: i64,
    /// The trouble in a sentence.
    pub text: String,
    pub cause: Option<String>,
    pub way_out: Option<String>,
}

impl Problem {
    pub const fn severity(&self) -> Severity {
        self.kind.severity()
    }
}

/// The problems of the last look, and the findings that may become some.
#[derive(Debug)]
pub(super) struct Problems {
    /// The first look of an unbroken row of looks that found it, for each finding.
    begun: HashMap<Identity, (Instant, i64)>,
    current: Vec<Problem>,
    /// The number of problems, in the order of [`ProblemKind::ALL`].
    gauges: Vec<IntGauge>,
    events: Arc<Events>,
}

impl Problems {
    pub fn new(registry: &Registry, events: Arc<Events>) -> Result<Self, prometheus::Error> {
        let help = "Things that are not well, by their code: information_schema.problems names them";
        let gauges = IntGaugeVec::new(Opts::new("tributary_problems", help), &["code"])?;
        registry.register(Box::new(gauges.clone()))?;
        let gauges = ProblemKind::ALL.iter().map(|kind| gauges.with_label_values(&[kind.name()])).collect();
        Ok(Self { begun: HashMap::new(), current: Vec::new(), gauges, events })
    }

    /// Takes the findings of a look.
    pub fn note(&mut self, found: Vec<Finding>, now: Instant, now_ms: i64) {
        let mut begun = HashMap::with_capacity(found.len());
        let mut current = Vec::new();
        for finding in found {
            let first = self.begun.get(&finding.identity).copied().unwrap_or((now, now_ms));
            let kind = finding.identity.kind;
            begun.insert(finding.identity.clone(), first);
            if now.saturating_duration_since(first.0) >= kind.patience() {
                current.push(Problem {
                    kind,
                    table: finding.identity.table,
                    subject: finding.identity.subject,
                    since_ms: finding.since_ms.unwrap_or(first.1),
                    text: finding.problem,
                    cause: finding.cause,
                    way_out: finding.way_out,
                });
            }
        }
        current.sort_by_key(|problem| (problem.severity(), problem.kind, problem.since_ms));
        let is_same = |one: &Problem, other: &Problem| {
            (one.kind, one.table, &one.subject) == (other.kind, other.table, &other.subject)
        };
        for old in &self.current {
            if !current.iter().any(|problem| is_same(old, problem)) {
                self.events.note(EventKind::ProblemOver, &format!("{}: {}", old.kind.name(), old.text));
            }
        }
        for problem in &current {
            if !self.current.iter().any(|old| is_same(old, problem)) {
                let text = format!("{}: {}", problem.kind.name(), problem.text);
                self.events.note(EventKind::Problem, &text);
                let (code, cause) = (problem.kind.name(), problem.cause.as_deref().unwrap_or_default());
                tracing::warn!(code, cause, "problem: {}", problem.text);
            }
        }
        for (gauge, kind) in self.gauges.iter().zip(ProblemKind::ALL) {
            gauge.set(current.iter().filter(|problem| problem.kind == kind).count() as i64);
        }
        (self.begun, self.current) = (begun, current);
    }

    pub fn current(&self) -> Vec<Problem> {
        self.current.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(kind: ProblemKind, progress: u64) -> Finding {
        Finding { identity: Identity { progress, ..Identity::of(kind) }, ..Finding::new(kind, "it is slow") }
    }

    #[test]
    fn a_finding_becomes_a_problem_when_it_lasts_and_ends_with_it() {
        let mut problems = Problems::new(&Registry::new(), Arc::default()).expect("a fresh registry");
        let start = Instant::now();
        let mut look = |second: u64, found: Vec<Finding>| {
            problems.note(found, start + Duration::from_secs(second), second as i64 * 1000);
            problems.current().iter().map(|problem| (problem.kind, problem.since_ms)).collect::<Vec<_>>()
        };
        let lags = |progress| vec![finding(ProblemKind::TableLags, progress)];
        assert!(look(0, lags(1)).is_empty() && look(4, lags(1)).is_empty());
        assert!(look(5, lags(2)).is_empty(), "a group became visible meanwhile");
        assert!(look(9, lags(2)).is_empty());
        assert_eq!(look(10, lags(2)), [(ProblemKind::TableLags, 5000)]);
        let both = vec![finding(ProblemKind::TableLags, 2), finding(ProblemKind::NotReady, 0)];
        assert_eq!(look(11, both), [(ProblemKind::NotReady, 11_000), (ProblemKind::TableLags, 5000)]);
        assert!(look(12, Vec::new()).is_empty());
        assert!(look(13, lags(2)).is_empty(), "it begins again");
    }

    #[test]
    fn the_metric_counts_the_problems_of_each_kind() {
        let registry = Registry::new();
        let mut problems = Problems::new(&registry, Arc::default()).expect("a fresh registry");
        problems.note(vec![finding(ProblemKind::NotReady, 0)], Instant::now(), 0);
        let families = registry.gather();
        let counts = families[0].get_metric();
        assert_eq!(counts.len(), ProblemKind::ALL.len());
        assert_eq!(counts.iter().map(|count| count.get_gauge().get_value()).sum::<f64>(), 1.0);
    }
}
