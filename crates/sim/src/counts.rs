//! How much a simulation held.

use std::fmt;
use tributary_wal::disk::DiskCounts;

macro_rules! counts {
    ($($field:ident: $what:literal,)*) => {
        /// Events of one simulation or of many.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counts { $(pub $field: u64,)* }

        impl Counts {
            pub fn add(&mut self, other: &Self) {
                $(self.$field += other.$field;)*
            }
        }

        impl fmt::Display for Counts {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                $(writeln!(f, "{:>14}  {}", self.$field, $what)?;)*
                Ok(())
            }
        }
    };
}

counts! {
    seeds: "seeds",
    events: "events",
    acknowledged_async: "loads acknowledged, async",
    acknowledged_sync: "loads acknowledged, sync",
    acknowledged_off: "loads acknowledged, off",
    fed: "loads of sources acknowledged",
    shared: "loads of the source of several tables acknowledged",
    prepared: "two-phase loads prepared",
    committed_two_phase: "two-phase loads committed",
    aborted_two_phase: "two-phase loads aborted",
    together: "transactions of two tables committed",
    repeated: "repetitions of loads with keys answered",
    rejected: "loads with rejected rows checked",
    refused: "loads refused",
    revoked: "loads refused because a right was revoked",
    backups: "backups",
    restored: "backups restored",
    verified: "tables compared with their logs",
    foreign: "loads of another engine",
    foreign_removals: "files removed by another engine",
    foreign_rewrites: "tables rewritten by another engine",
    records: "records of the server stored",
    unanswered: "loads without an answer",
    rows: "rows acknowledged",
    queries: "queries checked",
    read: "queries checked at a server that only reads",
    syncs: "SYNCs",
    receipts: "reads after receipts",
    truncations: "truncations",
    dropped_partitions: "partitions dropped",
    recycled_partitions: "partitions dropped and kept",
    recovered_partitions: "partitions recovered",
    added_partitions: "partitions added",
    replacements: "loads that replaced others",
    switched_partitions: "temporary partitions that replaced others",
    deletions: "deletions",
    deleted_rows: "rows deleted",
    updates: "updates",
    updated_rows: "rows updated",
    dropped_tables: "tables dropped",
    added_columns: "columns added",
    increments: "values of AUTO_INCREMENT given",
    heavy_changes: "changes of types and keys",
    flushes: "flushes",
    compactions: "compactions",
    sweeps: "files swept",
    recoveries: "recoveries checked",
    failed_recoveries: "recoveries cut off or refused",
    shutdowns: "orderly stops",
    kills: "processes killed",
    woken: "tables flushed by processes that others had taken over from",
    power_cuts: "power cuts",
    groups_finished: "open groups that recovery committed",
    commits_replayed: "commits replayed",
    commits_skipped: "commits found in data files already",
    torn_tails: "torn tails cut",
    disk_operations: "writes, changes of names and syncs",
    torn_writes: "writes torn",
    lost_writes: "writes lost",
    lost_names: "changes of names lost",
    write_errors: "EIO on a write or a change of names",
    sync_errors: "EIO on a sync",
    full_errors: "ENOSPC",
    read_errors: "EIO on a read",
    answers_lost: "answers of the object store lost",
    catalog_faults: "steps of changes that the catalog refused, or whose answers were lost",
}

impl Counts {
    /// Adds the disk's counts.
    pub const fn take_disk(&mut self, disk: &DiskCounts) {
        self.power_cuts = disk.power_cuts;
        self.disk_operations = disk.operations;
        self.torn_writes = disk.torn_writes;
        self.lost_writes = disk.lost_writes;
        self.lost_names = disk.lost_names;
        self.write_errors = disk.write_errors;
        self.sync_errors = disk.sync_errors;
        self.full_errors = disk.full_errors;
        self.read_errors = disk.read_errors;
    }

    /// Loads that a client got an answer about.
    #[must_use]
    pub fn answers(&self) -> u64 {
        self.acknowledged_async
            + self.acknowledged_sync
            + self.acknowledged_off
            + self.repeated
            + self.prepared
            + self.refused
    }
}
