//! A seed's decisions in advance: sizes, the frequency of each action, and the faults.

use crate::dice::Dice;

/// The shape of one simulation.
#[derive(Clone, Debug)]
pub struct Plan {
    pub tables: u64,
    /// The number of tables in 100 with unique keys.
    pub unique_tables: u64,
    /// The number in 100 of the other tables that fold the rows of a key.
    pub aggregate_tables: u64,
    /// The number of tables in 100 that are partitioned.
    pub partitioned_tables: u64,
    /// The number in 100 of tables of unique keys without a sequence that have partial updates.
    pub partial_tables: u64,
    /// The number in 100 of tables without a sequence that have no deletion vectors.
    pub copying_tables: u64,
    /// Whether there is a source whose messages are for all tables.
    pub shared_source: bool,
    /// Whether clients send loads with idempotency keys, and repeat them.
    pub keyed_loads: bool,
    /// Whether rows of loads are rejected.
    pub rejects: bool,
    /// Whether rights of users to load are revoked and granted.
    pub rights: bool,
    /// Whether the server has records of its own to load.
    pub records: bool,
    /// Whether backups are taken, and restored.
    pub backups: bool,
    /// Whether tables are compared with logs and Delta tables.
    pub audits: bool,
    /// Whether another server reads the tables.
    pub readers: bool,
    /// Whether another engine commits to the tables' logs.
    pub engines: bool,
    /// Whether another engine rewrites the files of tables with partitions while the server is away.
    pub rewrites: bool,
    /// Whether killed processes were only frozen, and wake while the next one runs.
    pub wakes: bool,
    /// Every third action changes a table, and the catalog fails often.
    pub changes_often: bool,
    /// The number of tables in 100 that give each row a value of AUTO_INCREMENT.
    pub increment_tables: u64,
    /// Lives of the server, from a recovery to the next crash.
    pub rounds: u64,
    pub clients: u64,
    /// The maximum actions of each client in a round.
    pub actions: u64,
    /// How long a client thinks between two actions, at most, in µs.
    pub think_us: u64,
    pub segment_bytes: u64,
    pub frame_bytes: u64,
    pub max_spares: usize,
    pub wal_dirs: u64,
    pub flush_bytes: u64,
    pub flush_age_ms: u64,
    pub compact_min_files: usize,
    pub checkpoint_every: u64,
    pub keep_removed_ms: u64,
    pub memory_bytes: u64,
    /// Chances out of 100.
    pub power_off: u64,
    pub power_off_in_recovery: u64,
    pub disk_errors: u64,
    pub sync_errors: u64,
    pub full_disk: u64,
    pub unreadable: u64,
    pub lost_answers: u64,
}

impl Plan {
    #[must_use]
    pub fn new(dice: &mut Dice) -> Self {
        let calm = dice.one_in(6);
        // Thrown beside the others, which are unchanged.
        let mut beside = dice.clone().split();
        let aggregate_tables = beside.pick(&[0, 0, 50, 100]);
        let partitioned_tables = beside.pick(&[0, 0, 50, 100]);
        let partial_tables = beside.pick(&[0, 50, 100]);
        let copying_tables = beside.pick(&[0, 50, 100]);
        let shared_source = beside.one_in(3);
        let increment_tables = beside.pick(&[0, 0, 0, 0, 0, 0, 100]);
        let keyed_loads = beside.one_in(3);
        let changes_often = beside.one_in(8);
        let rejects = beside.one_in(3);
        let rights = beside.one_in(3);
        let records = beside.one_in(3);
        let backups = beside.one_in(4);
        let audits = beside.one_in(3);
        // A restored backup is another server's.
        let wakes = beside.one_in(3) && !backups;
        let keeps_rows = beside.one_in(2);
        // A backup does not have what an engine has done since, and a log of ours has nothing of it to be compared with.
        let engines = beside.one_in(4) && !backups && !audits;
        let rewrites = beside.one_in(8) && !engines && !backups && !audits;
        // What it has shown is gone with a restored backup.
        let readers = beside.one_in(3) && !backups;
        let plan = Self {
            tables: dice.pick(&[1, 1, 1, 2, 2, 3]),
            unique_tables: dice.pick(&[0, 0, 50, 100]),
            aggregate_tables,
            partitioned_tables,
            partial_tables,
            copying_tables,
            shared_source,
            increment_tables,
            keyed_loads,
            changes_often,
            rejects,
            rights,
            records,
            backups,
            audits,
            readers,
            engines,
            rewrites,
            wakes,
            rounds: dice.between(2, 4),
            clients: dice.between(2, 6),
            actions: dice.between(3, 12),
            think_us: dice.pick(&[200, 2_000, 20_000, 100_000]),
            segment_bytes: dice.pick(&[8 << 10, 8 << 10, 10 << 10, 16 << 10]),
            frame_bytes: dice.pick(&[300, 1 << 10, 16 << 10]),
            max_spares: dice.pick(&[0, 1, 2, 4]),
            wal_dirs: dice.pick(&[1, 1, 1, 2]),
            flush_bytes: dice.pick(&[200, 2_000, 1 << 20]),
            flush_age_ms: dice.pick(&[1, 20, 300, 60_000]),
            compact_min_files: dice.pick(&[2, 3, 8]),
            checkpoint_every: dice.pick(&[3, 10, 100]),
            keep_removed_ms: dice.pick(&[100, 1_000, 3_600_000]),
            memory_bytes: dice.pick(&[2_000, 1 << 20, 1 << 20]),
            power_off: if calm { 0 } else { dice.pick(&[30, 60, 90]) },
            power_off_in_recovery: if calm { 0 } else { dice.pick(&[0, 15, 40]) },
            disk_errors: if calm { 0 } else { dice.pick(&[0, 0, 20]) },
            sync_errors: if calm { 0 } else { dice.pick(&[0, 0, 25]) },
            full_disk: if calm { 0 } else { dice.pick(&[0, 0, 30]) },
            unreadable: if calm { 0 } else { dice.pick(&[0, 0, 20]) },
            lost_answers: if calm { 0 } else { dice.pick(&[0, 0, 40]) },
        };
        let plan = if engines { plan.with_engines() } else { plan };
        let plan = if rewrites { plan.with_rewrites() } else { plan };
        if wakes { plan.with_sleepers(keeps_rows) } else { plan }
    }

    /// The plan in which all tables are such that another engine may write to them.
    fn with_engines(self) -> Self {
        Self { unique_tables: 0, aggregate_tables: 0, partitioned_tables: 0, ..self }
    }

    /// The plan in which all tables have partitions, which are dropped and added often, and the power goes off or the disk fails
    /// meanwhile.
    fn with_rewrites(self) -> Self {
        let (unique_tables, aggregate_tables, partitioned_tables) = (0, 0, 100);
        let disk_errors = if self.power_off > 0 { 60 } else { 0 };
        Self { unique_tables, aggregate_tables, partitioned_tables, disk_errors, changes_often: true, ..self }
    }

    /// The plan in which processes are frozen rather than lost with their machine, and, if they keep rows, have much to flush when
    /// they wake.
    fn with_sleepers(self, keeps_rows: bool) -> Self {
        let power_off = self.power_off.min(20);
        let rounds = self.rounds + 1;
        if keeps_rows {
            return Self { power_off, rounds, flush_bytes: 1 << 20, flush_age_ms: 60_000, ..self };
        }
        Self { rounds, power_off, ..self }
    }
}
