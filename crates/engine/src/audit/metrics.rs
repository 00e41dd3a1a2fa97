//! Counters of the audit log: none of its losses is silent.
//!
//! Not here: counters of requests.

use prometheus::{IntCounter, IntCounterVec, Opts, Registry};

#[derive(Debug)]
pub(super) struct AuditMetrics {
    pub file_lines: IntCounter,
    pub table_rows: IntCounter,
    pub dropped_from_queue: IntCounter,
    pub dropped_from_file: IntCounter,
    pub dropped_from_table: IntCounter,
    pub refused: IntCounter,
}

impl AuditMetrics {
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let of_sinks = |name: &str, help: &str, label: &str| -> Result<IntCounterVec, prometheus::Error> {
            let all = IntCounterVec::new(Opts::new(name, help), &[label])?;
            registry.register(Box::new(all.clone()))?;
            Ok(all)
        };
        let written =
            of_sinks("tributary_audit_records_total", "Records of the audit log that were written", "sink")?;
        let dropped = of_sinks(
            "tributary_audit_dropped_total",
            "Records of the audit log that were lost: without a place in the queue, or not written",
            "at",
        )?;
        let refused = IntCounter::new(
            "tributary_audit_refused_total",
            "Requests that were refused because the audit log had no place for their records",
        )?;
        registry.register(Box::new(refused.clone()))?;
        Ok(Self {
            file_lines: written.with_label_values(&["file"]),
            table_rows: written.with_label_values(&["table"]),
            dropped_from_queue: dropped.with_label_values(&["queue"]),
            dropped_from_file: dropped.with_label_values(&["file"]),
            dropped_from_table: dropped.with_label_values(&["table"]),
            refused,
        })
    }
}
