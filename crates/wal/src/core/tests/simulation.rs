//! The log against a model, on a disk that loses power, fails and fills up.

use crate::testing::{Dice, entry, open, read};
use crate::{Entry, Fault, LogCore, MemDisk, WalError};
use tributary_types::Lsn;

/// The expected contents of the log.
#[derive(Default)]
struct Model {
    /// All entries that were acknowledged, or read back.
    log: Vec<(Lsn, Entry)>,
    /// The entries of a batch whose write failed: all of them or none may come back.
    in_flight: Vec<Entry>,
    released: Lsn,
    next: u64,
}

impl Model {
    /// Opens the log and compares its contents. `None` if the disk failed meanwhile.
    fn recover(&mut self, disk: &MemDisk) -> Option<LogCore> {
        let mut recovered = unless_disk_failed(open(disk))?;
        let entries = unless_disk_failed(read(&mut recovered))?;
        let first = recovered.report().first_lsn;
        assert!(
            first <= self.released,
            "nothing above {} may be gone, but the log begins at {first}",
            self.released
        );
        let kept = self.log.partition_point(|(lsn, _)| *lsn < first);
        let expected = &self.log[kept..];
        assert!(entries.len() >= expected.len(), "{} of {} entries are left", entries.len(), expected.len());
        assert_eq!(&entries[..expected.len()], expected, "acknowledged entries");
        let rest: Vec<Entry> = entries[expected.len()..].iter().map(|(_, entry)| entry.clone()).collect();
        assert!(rest.is_empty() || rest == self.in_flight, "half of a batch, or entries from nowhere");
        let seen = recovered.report().header_value;
        assert!(self.log.iter().all(|(_, entry)| entry.txn.0 < seen), "transaction ids would come again");
        let (core, report) = unless_disk_failed(recovered.into_core())?;
        self.log.extend(entries[expected.len()..].iter().cloned());
        self.in_flight.clear();
        assert_eq!(core.end(), report.end_lsn);
        Some(core)
    }

    /// A step of work. `false` if the log has failed.
    fn step(&mut self, core: &mut LogCore, dice: &mut Dice) -> bool {
        match dice.below(10) {
            0 => self.release(core, dice),
            1 => !matches!(core.prepare_spare(), Err(WalError::Failed { .. })),
            _ => self.write(core, dice),
        }
    }

    fn release(&mut self, core: &mut LogCore, dice: &mut Dice) -> bool {
        if let Some((lsn, _)) = self.log.get(dice.below(self.log.len() as u64 + 1) as usize) {
            self.released = self.released.max(*lsn);
        }
        core.release(self.released).is_ok()
    }

    fn write(&mut self, core: &mut LogCore, dice: &mut Dice) -> bool {
        let batch: Vec<Vec<Entry>> = (0..=dice.below(3)).map(|_| self.submission(dice)).collect();
        match core.write_batch(&batch) {
            Ok(places) => {
                for (submission, place) in batch.into_iter().zip(places) {
                    let mut lsn = place.first;
                    for entry in submission {
                        let end = lsn.0 + 25 + entry.body.len() as u64;
                        self.log.push((lsn, entry));
                        lsn = Lsn(end);
                    }
                    assert_eq!(lsn, place.end);
                }
                true
            }
            Err(WalError::NoSpace { .. }) => true,
            Err(error) => {
                assert!(error.is_fatal(), "{error}");
                self.in_flight = batch.into_iter().flatten().collect();
                false
            }
        }
    }

    fn submission(&mut self, dice: &mut Dice) -> Vec<Entry> {
        let count = if dice.one_in(8) { 0 } else { 1 + dice.below(3) };
        (0..count)
            .map(|_| {
                self.next += 1;
                let bytes = match dice.below(12) {
                    0 => dice.below(20_000),
                    1..4 => dice.below(3000),
                    _ => dice.below(100),
                };
                entry(self.next - 1, bytes as usize)
            })
            .collect()
    }
}

/// Failures of the disk are part of the game; any other failure of opening a log is not.
fn unless_disk_failed<T>(result: Result<T, WalError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(WalError::Io { .. } | WalError::NoSpace { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

fn plan_trouble(disk: &MemDisk, dice: &mut Dice) {
    let operation = disk.operations() + dice.below(70);
    match dice.below(6) {
        0 => disk.fail_operation(operation, Fault::Io),
        1 => disk.fail_operation(operation, Fault::NoSpace),
        2 => disk.set_capacity(Some(40_000 + dice.below(60_000))),
        _ => disk.power_off_at(operation),
    }
}

fn live_through(seed: u64) {
    let mut dice = Dice(seed);
    let disk = MemDisk::new();
    let mut model = Model::default();
    for _ in 0..3 + dice.below(3) {
        plan_trouble(&disk, &mut dice);
        if let Some(mut core) = model.recover(&disk) {
            let steps = dice.below(25);
            let alive = (0..steps).all(|_| model.step(&mut core, &mut dice));
            drop(core);
            // Without a failure the process is killed in the middle of nothing.
            if alive && dice.one_in(2) {
                disk.kill_process();
                continue;
            }
        }
        disk.set_capacity(None);
        if dice.one_in(3) { disk.kill_process() } else { disk.crash(dice.next()) }
    }
    disk.set_capacity(None);
    disk.crash(dice.next());
    assert!(model.recover(&disk).is_some(), "a disk without faults gives the log back");
}

#[test]
fn every_acknowledged_entry_survives_once_and_in_order_whatever_the_disk_does() {
    for seed in 0..2000 {
        let run = std::panic::catch_unwind(|| live_through(seed));
        assert!(run.is_ok(), "seed {seed}");
    }
}

/// A life without chance: writes over several segments, releases, a restart.
fn fixed_life(disk: &MemDisk, model: &mut Model) {
    let mut dice = Dice(42);
    for _ in 0..2 {
        let Some(mut core) = model.recover(disk) else { return };
        for step in 0..12 {
            let alive = match step {
                5 | 9 => model.release(&mut core, &mut dice),
                _ => model.write(&mut core, &mut dice),
            };
            if !alive {
                return;
            }
        }
        drop(core);
        disk.kill_process();
    }
}

#[test]
fn the_power_may_go_off_at_any_write_sync_or_rename() {
    let disk = MemDisk::new();
    fixed_life(&disk, &mut Model::default());
    let operations = disk.operations();
    assert!(operations > 60, "{operations}");
    for operation in 0..operations {
        for seed in 0..8 {
            let disk = MemDisk::new();
            let mut model = Model::default();
            disk.power_off_at(operation);
            fixed_life(&disk, &mut model);
            disk.crash(seed);
            assert!(model.recover(&disk).is_some(), "operation {operation}, seed {seed}");
        }
    }
}
