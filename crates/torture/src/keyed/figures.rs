//! The figures of loads with names.

use crate::report::grouped;
use serde::Serialize;
use std::collections::BTreeMap;

/// The figures of a run with keys.
#[derive(Clone, Debug, Default, Serialize)]
pub struct KeyedFigures {
    /// Acknowledged loads, each counted once.
    pub loads: u64,
    pub rows: u64,
    /// Loads among them that belong to channels.
    pub channel_loads: u64,
    pub channels: u64,
    /// Loads of 300 KB.
    pub large_loads: u64,
    pub loads_per_second: u64,
    /// Times a load was sent again, by the reason: no answer in time, a cut, a kill, a refusal.
    pub repeats: BTreeMap<&'static str, u64>,
    /// Acknowledged loads that were sent again later.
    pub late_repeats: u64,
    /// Answers that said that the load was stored before.
    pub answered_repeated: u64,
    /// Refusals of other bytes with a key that was used.
    pub other_bytes_refused: u64,
    /// Refusals of offsets that a channel is beyond, or not yet at.
    pub offsets_refused: u64,
    /// States of keys that were asked for.
    pub states_asked: u64,
    /// Loads that another connection looked for by their receipts.
    pub pairs: u64,
    /// Loads that another connection looked for without them, because they were answered as visible.
    pub visible_pairs: u64,
    /// Looks that found less than the whole load.
    pub stale_reads: u64,
    pub longest_wait_ms: u64,
    /// The longest wait for a receipt, less the interval of the table's groups.
    pub longest_wait_beyond_interval_ms: u64,
    /// Waits for receipts that took a second more than the interval of the table's groups.
    pub pairs_a_second_beyond_interval: u64,
    /// Answers to a load that were not equal to its first one.
    pub differing_answers: u64,
    /// Loads compared after kills.
    pub loads_sampled: u64,
    /// Loads compared at the end, twice.
    pub loads_compared: u64,
    pub lost_loads: u64,
    pub doubled_loads: u64,
    pub half_loads: u64,
    pub changed_loads: u64,
    /// Channels whose last offset is not the one that their client sent.
    pub wrong_channels: u64,
}

impl KeyedFigures {
    pub(super) fn repeated(&mut self, reason: &'static str) {
        *self.repeats.entry(reason).or_default() += 1;
    }

    /// Names and values for people.
    pub(crate) fn lines(&self) -> Vec<(String, String)> {
        let mut lines = Vec::new();
        let mut line = |name: &str, value: u64| lines.push((name.to_owned(), grouped(value)));
        line("loads with names acknowledged", self.loads);
        line("rows of them", self.rows);
        line("loads of channels among them", self.channel_loads);
        line("channels", self.channels);
        line("loads of 300 KB", self.large_loads);
        line("loads per second", self.loads_per_second);
        for (reason, times) in &self.repeats {
            line(&format!("sent again, {}", reason.replace('_', " ")), *times);
        }
        line("sent again, later", self.late_repeats);
        line("answers marked as repeated", self.answered_repeated);
        line("other bytes refused", self.other_bytes_refused);
        line("other offsets refused", self.offsets_refused);
        line("states of keys asked", self.states_asked);
        line("pairs of a write and a read", self.pairs);
        line("pairs that need no receipt", self.visible_pairs);
        line("stale reads", self.stale_reads);
        line("longest wait for a receipt (ms)", self.longest_wait_ms);
        line("longest beyond its group's interval (ms)", self.longest_wait_beyond_interval_ms);
        line("pairs a second beyond it", self.pairs_a_second_beyond_interval);
        line("differing answers", self.differing_answers);
        line("loads compared after kills", self.loads_sampled);
        line("loads compared at the end", self.loads_compared);
        line("lost loads", self.lost_loads);
        line("doubled loads", self.doubled_loads);
        line("half loads", self.half_loads);
        line("changed loads", self.changed_loads);
        line("wrong channels", self.wrong_channels);
        lines
    }
}
