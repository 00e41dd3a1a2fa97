//! Bugs that are planted on purpose, to prove that the simulation finds such bugs.
//!
//! They exist only in builds with the feature `planted-bugs`, which nothing but `tributary-sim` can ask for,
//! and only on a thread that has called [`plant`]. Without the feature [`is`] is the constant `false` and the
//! wrong branch is not compiled into anything.

#[cfg(all(feature = "planted-bugs", not(debug_assertions)))]
compile_error!("planted bugs cannot be built without debug assertions: no release may have them");

macro_rules! bugs {
    ($($(#[$doc:meta])* $bug:ident = $name:literal,)*) => {
        /// What can be wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Bug { $($(#[$doc])* $bug,)* }

        impl Bug {
            pub const ALL: &'static [Self] = &[$(Self::$bug,)*];

            /// Its name on the command line.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$bug => $name,)* }
            }
        }
    };
}

bugs! {
    /// An async load is answered before the log has it.
    AsyncAnsweredBeforeLog = "async-answered-before-log",
    /// A group is published before its commit is durable.
    PublishedBeforeCommit = "published-before-commit",
    /// Replay does not compare with the application transaction of the Delta log.
    ReplayIgnoresAppTxn = "replay-ignores-app-txn",
    /// A load whose client was told that it failed stays in its group.
    FailedLoadNotExcluded = "failed-load-not-excluded",
    /// Loads become columns of their group before the log has them.
    GatheredBeforeLog = "gathered-before-log",
    /// A group's rows are published in the order of arrival, also of loads that the log is given with the commit.
    GroupOrderDiffers = "group-order-differs",
    /// Recovery passes over acknowledged async loads whose group has no commit.
    OpenGroupsDropped = "open-groups-dropped",
    /// The log is released without regard to memtables.
    ReleaseIgnoresMemtables = "release-ignores-memtables",
    /// The log is released without regard to prepared loads.
    ReleaseIgnoresPrepared = "release-ignores-prepared",
    /// Labels are released from the log before the label store has them.
    LabelsReleasedEarly = "labels-released-early",
    /// Recovery frees the labels of committed loads.
    LabelsFreedByRecovery = "labels-freed-by-recovery",
    /// Transaction ids begin anew after recovery.
    TxnIdsReused = "txn-ids-reused",
    /// Versions begin anew after recovery behind what the Delta log has.
    VersionsReused = "versions-reused",
    /// An abort of a prepared load is answered and never logged.
    AbortNotLogged = "abort-not-logged",
    /// A flush is committed to the Delta log without its application transaction.
    FlushWithoutAppTxn = "flush-without-app-txn",
    /// A flush lets the log go before its Delta entry is written.
    FlushSettlesEarly = "flush-settles-early",
    /// A compaction deletes its inputs before its Delta entry is written.
    CompactionDeletesEarly = "compaction-deletes-early",
    /// A commit whose answer was lost takes its own entry for another writer's and deletes the files that it refers to.
    LostAnswerDeletesOutputs = "lost-answer-deletes-outputs",
    /// A compaction that a truncation overtook shows its rows again.
    CompactionForgetsTruncation = "compaction-forgets-truncation",
}

#[cfg(feature = "planted-bugs")]
mod planted {
    use super::Bug;
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Plants a bug on this thread, or removes it.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.set(bug);
    }

    /// Whether this thread has the bug.
    #[must_use]
    pub fn is(bug: Bug) -> bool {
        PLANTED.get() == Some(bug)
    }
}

#[cfg(feature = "planted-bugs")]
pub use planted::{is, plant};

/// Whether this thread has the bug: never, in a build without them.
#[cfg(not(feature = "planted-bugs"))]
#[inline(always)]
#[must_use]
pub const fn is(_: Bug) -> bool {
    false
}
