//! The server as its operators see it over time.
//!
//! Each second somebody looks at the counters and the queues: a sample is kept, and whatever is not well becomes a problem, with
//! its cause and the way out.
//!
//! | file | what happens there |
//! | --- | --- |
//! | `samples` | rates and sizes of the last 15 minutes and of the last day |
//! | `findings` | what is looked at, and what is found |
//! | `flood` | a user whose loads leave little for others |
//! | `problems` | findings that last, and since when |
//! | `process` | the process's file descriptors, the machine's processors |
//!
//! Not here: any reaction. Limits, back-pressure and readiness decide for themselves.

mod findings;
mod flood;
mod problems;
mod process;
mod samples;

pub(crate) use findings::{Looked, RoutineView, VerifyFailure, WrongTable};
pub(crate) use problems::Problem;
pub(crate) use samples::{Sample, Sizes};

use crate::access::events::Events;
use parking_lot::Mutex;
use problems::Problems;
use prometheus::Registry;
use samples::{Samples, Totals};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tributary_types::host::unix_ms;

/// The time between two looks.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);

/// Samples and problems of a server.
#[derive(Debug)]
pub(crate) struct Watch {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    samples: Samples,
    problems: Problems,
    memory: findings::Memory,
}

impl Watch {
    pub fn new(registry: &Registry, events: Arc<Events>) -> Result<Self, prometheus::Error> {
        let state = State {
            samples: Samples::default(),
            problems: Problems::new(registry, events)?,
            memory: findings::Memory::default(),
        };
        Ok(Self { state: Mutex::new(state) })
    }

    /// Looks at the server: once in each [`INTERVAL`].
    pub fn look(&self, looked: &Looked<'_>, sizes: Sizes) {
        let (now, now_ms) = (Instant::now(), unix_ms());
        let mut state = self.state.lock();
        state.samples.take(now, now_ms, Totals::of(looked), sizes);
        let found = state.memory.find(looked, (now, now_ms));
        state.problems.note(found, now, now_ms);
    }

    /// The problems of the last look, the gravest first.
    pub fn problems(&self) -> Vec<Problem> {
        self.state.lock().problems.current()
    }

    /// The samples: first those of ten seconds, oldest first, then those of one second.
    pub fn samples(&self) -> Vec<Sample> {
        self.state.lock().samples.all()
    }
}
