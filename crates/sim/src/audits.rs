//! An operator who compares what was acknowledged with what queries see and with the Delta tables, while the server works.
//!
//! The comparison is that of the server ([`tributary_ingest::Ingest::verify`]). A sound server must never be called wrong, whatever
//! happens at that moment.

use crate::trace::note;
use crate::world::World;
use std::rc::Rc;

/// The most time between two comparisons, in µs.
const AFTER_US_MAX: u64 = 30_000;

/// Compares now and then, until the server dies.
pub async fn auditor(world: Rc<World>) {
    for number in 0..6_u32 {
        world.think(AFTER_US_MAX).await;
        let process = world.process();
        match process.ingest.verify(&process.store, |_| true).await {
            Ok(verified) => {
                world.count(|counts| counts.verified += verified.len() as u64);
                for of_table in verified {
                    note!(world.trace, "verified", number, of_table.table.0, "{of_table:?}");
                    if !of_table.faults.is_empty() {
                        let faults = of_table.faults.join("; ");
                        world.violated(format!("table {} was verified: {faults}", of_table.table));
                    }
                }
            }
            Err(error) if world.is_alive() && world.plan.power_off == 0 && !world.reads_may_fail.get() => {
                world.violated(format!("tables can't be verified: {error}"));
            }
            Err(error) => note!(world.trace, "not verified", number, 0, "{error}"),
        }
    }
}
