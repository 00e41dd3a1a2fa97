//! A job's record in the catalog, and the times of its runs.

use crate::background::record::Envelope;
use serde::{Deserialize, Serialize};
use tributary_sql::{CreateJob, Moment, Schedule};
use tributary_types::Principal;

/// Runs that are shown.
const RUNS_MAX: usize = 10;

/// A job's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum State {
    /// It waits for its next run, or runs.
    Running,
    Paused,
    /// It will not run any more.
    Finished,
}

impl State {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::Paused => "PAUSED",
            Self::Finished => "FINISHED",
        }
    }

    pub const fn is_final(self) -> bool {
        matches!(self, Self::Finished)
    }
}

/// The times of the runs, in ms since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the unit is part of each name")]
pub(crate) struct Times {
    pub first_ms: i64,
    /// `None`: once.
    pub every_ms: Option<i64>,
    /// The last moment at which a run may begin.
    pub last_ms: Option<i64>,
}

impl Times {
    /// The first time after a moment.
    fn after(self, ms: i64) -> Option<i64> {
        if self.first_ms > ms {
            return Some(self.first_ms);
        }
        let every = self.every_ms?;
        let next = self.first_ms.checked_add(((ms - self.first_ms) / every + 1).checked_mul(every)?)?;
        self.last_ms.is_none_or(|last| next <= last).then_some(next)
    }
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// Its rows.
    Loaded(u64),
    /// The error.
    Failed(String),
    /// By PAUSE JOB or DROP JOB.
    Cancelled,
}

/// A run that has ended. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub planned_ms: i64,
    pub begun_ms: i64,
    pub ended_ms: i64,
    pub outcome: Outcome,
}

/// A job's record in the catalog. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub name: String,
    /// The database of the session that has created it, in which its statement runs.
    pub db: String,
    /// The database of its labels: that of the table.
    pub label_db: String,
    pub table: String,
    pub user: String,
    pub host: String,
    pub account_host: String,
    pub zone: String,
    /// With the keys that it has, without which no file can be read.
    pub statement: String,
    pub comment: String,
    /// As SHOW has it.
    pub strategy: String,
    pub times: Times,
    pub created_ms: i64,
    pub state: State,
    /// The next run.
    #[serde(default)]
    pub next_ms: Option<i64>,
    /// The time that the run under way was planned for.
    #[serde(default)]
    pub current_ms: Option<i64>,
    #[serde(default)]
    pub succeeded: u64,
    #[serde(default)]
    pub failed: u64,
    #[serde(default)]
    pub cancelled: u64,
    /// The last ones, oldest first.
    #[serde(default)]
    pub runs: Vec<Run>,
}

impl Record {
    /// Distinguishes records of this kind from those of other jobs.
    pub const KIND: &'static str = "scheduled_insert";
    /// The newest format that is read, and the one that is written.
    pub const FORMAT: u32 = 1;

    pub fn new(
        principal: &Principal,
        (db, zone): (&str, &str),
        create: &CreateJob,
        times: Times,
        now_ms: i64,
    ) -> Self {
        let table = &create.insert.table;
        Self {
            name: create.name.clone(),
            db: db.to_owned(),
            label_db: table.db.as_deref().unwrap_or(db).to_owned(),
            table: table.table.clone(),
            user: principal.user().to_owned(),
            host: principal.host().to_owned(),
            account_host: principal.account_host().to_owned(),
            zone: zone.to_owned(),
            statement: create.text.0.clone(),
            comment: create.comment.clone(),
            strategy: strategy(&create.schedule),
            times,
            created_ms: now_ms,
            state: State::Running,
            next_ms: Some(times.first_ms),
            current_ms: None,
            succeeded: 0,
            failed: 0,
            cancelled: 0,
            runs: Vec::new(),
        }
    }

    pub fn written(&self) -> String {
        Envelope::written(Self::KIND, Self::FORMAT, self)
    }

    /// When the next run begins; `None`: not before the job is changed.
    pub fn due_ms(&self) -> Option<i64> {
        (self.state == State::Running).then_some(self.current_ms.or(self.next_ms)).flatten()
    }

    /// When it ended, if it has.
    pub fn ended_ms(&self) -> Option<i64> {
        let last = self.runs.last().map_or(self.created_ms, |run| run.ended_ms);
        self.state.is_final().then_some(last)
    }

    /// The next run begins, or the one that was interrupted.
    pub fn begin(&mut self) {
        if self.current_ms.is_none() {
            self.current_ms = self.next_ms.take();
        }
    }

    /// The run under way has ended.
    pub fn end(&mut self, run: Run, now_ms: i64) {
        match run.outcome {
            Outcome::Loaded(_) => self.succeeded += 1,
            Outcome::Failed(_) => self.failed += 1,
            Outcome::Cancelled => self.cancelled += 1,
        }
        self.current_ms = None;
        self.next_ms = match (run.outcome == Outcome::Cancelled, self.times.every_ms) {
            // A job that runs once and was paused runs when it is resumed.
            (true, None) => Some(run.planned_ms),
            _ => self.times.after(run.planned_ms.max(now_ms)),
        };
        if self.next_ms.is_none() {
            self.state = State::Finished;
        }
        self.runs.push(run);
        let surplus = self.runs.len().saturating_sub(RUNS_MAX);
        self.runs.drain(..surplus);
    }

    /// Times that passed while the job was paused are left out, but for that of a job that runs once.
    pub fn resume(&mut self, now_ms: i64) {
        self.state = State::Running;
        self.skip_missed(now_ms);
    }

    /// Times that passed while the server did not run are left out, but for that of a job that runs once.
    pub fn skip_missed(&mut self, now_ms: i64) {
        let missed = self.next_ms.is_some_and(|next| next < now_ms);
        if self.state == State::Running
            && missed
            && self.times.every_ms.is_some()
            && self.current_ms.is_none()
        {
            self.next_ms = self.times.after(now_ms);
            if self.next_ms.is_none() {
                self.state = State::Finished;
            }
        }
    }
}

/// A schedule as SHOW has it.
fn strategy(schedule: &Schedule) -> String {
    let moment = |moment: &Moment| match moment {
        Moment::Now => "CURRENT_TIMESTAMP".to_owned(),
        Moment::Text(text) => text.clone(),
    };
    match schedule {
        Schedule::At(at) => format!("AT {}", moment(at)),
        Schedule::Every { count, unit, starts, ends } => {
            let mut text = format!("EVERY {count} {}", unit.name());
            for (word, at) in [("STARTS", starts), ("ENDS", ends)] {
                if let Some(at) = at {
                    text = format!("{text} {word} {}", moment(at));
                }
            }
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(first_ms: i64, every_ms: Option<i64>, last_ms: Option<i64>) -> Times {
        Times { first_ms, every_ms, last_ms }
    }

    fn record(times: Times) -> Record {
        let principal = Principal::new("amy", "%", 0);
        let sql = "CREATE JOB j ON SCHEDULE EVERY 1 SECOND DO INSERT INTO d.t SELECT 1";
        let Ok(tributary_sql::Statement::Job(job)) = tributary_sql::parse(sql) else { panic!("{sql}") };
        let tributary_sql::JobStatement::Create(create) = *job else { panic!("{sql}") };
        Record::new(&principal, ("e", "+00:00"), &create, times, 0)
    }

    fn run(planned_ms: i64, outcome: Outcome) -> Run {
        Run { planned_ms, begun_ms: planned_ms, ended_ms: planned_ms + 1, outcome }
    }

    #[test]
    fn times_follow_each_other() {
        let every = times(1000, Some(100), Some(1250));
        assert_eq!(
            [0, 1000, 1001, 1100, 1199, 1200].map(|now| every.after(now)),
            [Some(1000), Some(1100), Some(1100), Some(1200), Some(1200), None]
        );
        assert_eq!([999, 1000].map(|now| times(1000, None, None).after(now)), [Some(1000), None]);
        assert_eq!(times(0, Some(i64::MAX), None).after(1), Some(i64::MAX));
        assert_eq!(times(5, Some(i64::MAX), None).after(6), None);
    }

    #[test]
    fn a_long_run_is_followed_by_the_next_time_and_not_by_all_that_passed() {
        let mut job = record(times(1000, Some(100), None));
        assert_eq!((job.due_ms(), job.label_db.as_str(), job.db.as_str()), (Some(1000), "d", "e"));
        job.begin();
        assert_eq!((job.current_ms, job.next_ms), (Some(1000), None));
        job.end(run(1000, Outcome::Failed("x".to_owned())), 1530);
        assert_eq!((job.due_ms(), job.failed, job.state), (Some(1600), 1, State::Running));
        // A run that was interrupted is due at once, with its own time.
        job.begin();
        job.skip_missed(9_999);
        assert_eq!(job.due_ms(), Some(1600));
        job.end(run(1600, Outcome::Loaded(7)), 1601);
        assert_eq!((job.due_ms(), job.succeeded), (Some(1700), 1));
        for at in 0..20 {
            job.begin();
            job.end(run(1700 + at * 100, Outcome::Cancelled), 1701 + at * 100);
        }
        assert_eq!((job.runs.len(), job.cancelled), (RUNS_MAX, 20));
    }

    #[test]
    fn missed_times_are_left_out_unless_there_is_only_one() {
        let mut every = record(times(1000, Some(100), None));
        every.skip_missed(5050);
        assert_eq!(every.due_ms(), Some(5100));
        every.state = State::Paused;
        assert_eq!(every.due_ms(), None);
        every.resume(7777);
        assert_eq!(every.due_ms(), Some(7800));
        let mut once = record(times(1000, None, None));
        once.skip_missed(5050);
        assert_eq!(once.due_ms(), Some(1000));
        once.begin();
        once.end(run(1000, Outcome::Loaded(1)), 5051);
        assert_eq!((once.due_ms(), once.state, once.ended_ms()), (None, State::Finished, Some(1001)));
        let mut over = record(times(1000, Some(100), Some(1500)));
        over.skip_missed(2000);
        assert_eq!(over.state, State::Finished);
    }
}
