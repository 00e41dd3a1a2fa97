//! Turns small loads into columns while their group is open.
//!
//! Invariant: only runs are gathered, loads that are neighbours in the log; so the columns of a run take the loads' place in the
//! order of the log. Not its business: when, and on which thread.

use crate::error::IngestError;
use crate::group::appends::{Appends, Run};
use crate::group::columns::{Built, add_part, columns};
use crate::group::member::Member;
use std::ops::RangeInclusive;
use std::sync::Arc;
use tributary_types::{TableSchema, host};

/// Shorter runs are left unchanged: building a batch of few rows takes about as long as one of many.
const RUN_LOADS_MIN: usize = 16;

/// Small loads that are durable and leave their group's members, to be turned into columns while it is open.
/// The group is not answered before [`Gathering::done`], or before this is dropped, which fails the group.
#[derive(Debug)]
#[must_use]
pub(crate) struct Gathering {
    appends: Option<Arc<Appends>>,
    /// In the order of the log.
    runs: Vec<Vec<Member>>,
    spared_bytes: u64,
}

impl Gathering {
    /// Takes the loads of the runs out of a group's members, if there are any.
    pub fn take(
        appends: &Arc<Appends>,
        members: &mut Vec<Member>,
        may_go: impl Fn(&Member) -> Option<u64>,
    ) -> Option<Self> {
        let ranges = runs_of(members, &may_go);
        if ranges.is_empty() {
            return None;
        }
        appends.begin_gathering();
        let mut runs: Vec<Vec<Member>> = Vec::with_capacity(ranges.len());
        let mut spared_bytes = 0;
        let mut left = ranges.iter().peekable();
        let is_of_run = |member: &mut Member| {
            while left.next_if(|run| *run.end() < member.load).is_some() {}
            member.is_logged && left.peek().is_some_and(|run| run.contains(&member.load))
        };
        let mut starts = ranges.iter().map(RangeInclusive::start).peekable();
        for member in members.extract_if(.., is_of_run) {
            spared_bytes += may_go(&member).unwrap_or_default();
            if starts.next_if(|start| **start == member.load).is_some() {
                runs.push(Vec::new());
            }
            runs.last_mut().expect("a run begins with its first load").push(member);
        }
        Some(Self { appends: Some(Arc::clone(appends)), runs, spared_bytes })
    }

    /// Bytes of the budget that the loads no longer take.
    pub fn spared_bytes(&self) -> u64 {
        self.spared_bytes
    }

    /// How many loads there are.
    pub fn loads(&self) -> usize {
        self.runs.iter().map(Vec::len).sum()
    }

    /// The runs as columns of `schema`.
    pub fn build(&self, schema: &Arc<TableSchema>, now_micros: i64) -> Result<Vec<Run>, IngestError> {
        self.runs.iter().map(|members| build_run(members, schema, now_micros)).collect()
    }

    pub fn done(mut self, runs: Result<Vec<Run>, IngestError>) {
        if let Some(appends) = self.appends.take() {
            appends.gathered(runs);
        }
    }
}

impl Drop for Gathering {
    fn drop(&mut self) {
        if let Some(appends) = self.appends.take() {
            appends.gathered(Err(IngestError::Bug("loads were taken out of a group and not built".into())));
        }
    }
}

/// The loads that are neighbours in the log and may all go, if they are enough. Members that the log is given with
/// the commit lie behind all others there, so they part no neighbours.
fn runs_of(members: &[Member], may_go: impl Fn(&Member) -> Option<u64>) -> Vec<RangeInclusive<u32>> {
    let mut runs = Vec::new();
    let mut open: Option<(RangeInclusive<u32>, usize)> = None;
    let logged = members.iter().filter(|member| member.is_logged);
    for member in logged.map(Some).chain([None]) {
        match member.filter(|member| may_go(member).is_some()) {
            Some(member) => {
                let (first, loads) = open.map_or((member.load, 0), |(run, loads)| (*run.start(), loads));
                open = Some((first..=member.load, loads + 1));
            }
            None => runs.extend(open.take().filter(|(_, loads)| is_enough(*loads)).map(|(run, _)| run)),
        }
    }
    runs
}

fn is_enough(loads: usize) -> bool {
    loads as u64 >= host::limit(RUN_LOADS_MIN as u64, 1)
}

fn build_run(members: &[Member], schema: &Arc<TableSchema>, now_micros: i64) -> Result<Run, IngestError> {
    let mut parts = Vec::new();
    members.iter().for_each(|member| add_part(&mut parts, &member.rows));
    let ends = |member: Option<&Member>| member.map(|member| member.load).unwrap_or_default();
    let built = Built { batches: columns(&parts, schema, now_micros)?, schema: Arc::clone(schema) };
    Ok(Run { first: ends(members.first()), last: ends(members.last()), built })
}
