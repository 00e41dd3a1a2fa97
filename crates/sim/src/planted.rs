//! Bugs that are planted on purpose, to show that the simulation finds such bugs.
//!
//! There are two kinds. A disk or a store that lies is a decorator of the simulated one ([`crate::lying`]). A wrong decision is a
//! patch, `crates/sim/planted/<name>.patch`, which adds the bug under a switch of its name; the hunt applies all patches to a
//! copy of the workspace, so that one build has every bug and none until it is switched on.
//!
//! Invariant: nothing outside this crate knows of planted bugs, except in that copy.

pub mod patch;
pub mod workspace;

use crate::lying::Lie;
use crate::run::{Outcome, run_with};
use std::sync::Arc;
use tokio::runtime::Runtime;

/// The number of seeds within which every planted bug is found.
pub const SEEDS_MAX: u64 = 2_000;

/// Whether this is a build of the patched copy.
pub const IS_PATCHED: bool = false;

/// A bug that can be planted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bug {
    pub name: String,
    /// The bug, in a sentence.
    pub about: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Lie(Lie),
    Patch,
}

impl Bug {
    /// All bugs: those of the disk, then those of the patches in the order of their names.
    ///
    /// # Errors
    /// A patch that cannot be read.
    pub fn all() -> Result<Vec<Self>, String> {
        let lie = |lie: &Lie| {
            let (name, about) = lie.describe();
            Self { name: name.to_owned(), about: about.to_owned(), kind: Kind::Lie(*lie) }
        };
        let patches = workspace::patches(&workspace::root())?.into_iter();
        let patches = patches.filter(|patch| patch.name != workspace::SWITCH);
        let patches = patches.map(|patch| Self { name: patch.name, about: patch.about, kind: Kind::Patch });
        Ok(Lie::ALL.iter().map(lie).chain(patches).collect())
    }

    /// Whether this build has the bug.
    #[must_use]
    pub fn is_built_in(&self) -> bool {
        IS_PATCHED || matches!(self.kind, Kind::Lie(_))
    }

    pub(crate) fn lie(&self) -> Option<Lie> {
        if let Kind::Lie(lie) = self.kind { Some(lie) } else { None }
    }
}

/// Keeps a bug planted on this thread.
pub(crate) struct Planted;

/// Plants the bug on this thread until the result is dropped. At most one is planted at a time.
pub(crate) fn plant(bug: Option<&Bug>) -> Planted {
    switch(bug.filter(|bug| bug.kind == Kind::Patch).map(|bug| bug.name.as_str()));
    Planted
}

impl Drop for Planted {
    fn drop(&mut self) {
        switch(None);
    }
}

/// Switches the bugs of patches. In the patched copy this reaches the crates that have them.
fn switch(_bug: Option<&str>) {}

/// Plays seeds with the bug until one shows it: after how many, and how.
#[must_use]
pub fn hunt(bug: &Bug, from: u64, libraries: &Arc<Runtime>) -> Option<(u64, Outcome)> {
    (from..from + SEEDS_MAX)
        .map(|seed| (seed - from + 1, run_with(seed, libraries, false, Some(bug))))
        .find(|(_, outcome)| outcome.violation.is_some())
}
