//! The time and the size of planning: other work goes on meanwhile, KILL and time limits end it, and a short statement can't
//! become a plan that fills the memory.
//!
//! | file | what it limits |
//! | --- | --- |
//! | `stops` | time: between two rules, planning asks whether it should go on |
//! | `size` | the columns of a SELECT, and the nodes of a plan with its views and common table expressions put in |
//!
//! Not here: what a statement means.

mod size;
mod stops;

pub(crate) use size::{check_expansion, check_lists, check_nodes};
pub use stops::Stop;
pub(crate) use stops::{LastRule, StopRule, check, interleaved, is_optimizing, within};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// Runs work that keeps a processor busy, so that the runtime gives the other tasks of this thread to another one. In a runtime of
/// one thread they wait.
pub(crate) fn beside_the_runtime<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(work),
        _ => work(),
    }
}
