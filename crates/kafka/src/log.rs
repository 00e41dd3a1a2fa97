//! The client's unsolicited reports: its log, errors without a position, and the lengths of partitions.

use crate::source::Offsets;
use parking_lot::Mutex;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::statistics::Statistics;

/// Collects it.
#[derive(Debug)]
pub(crate) struct Heard {
    topic: String,
    said: Mutex<Said>,
}

#[derive(Debug, Default)]
struct Said {
    /// The last reason for a failure: the errors that calls return have none.
    reason: Option<String>,
    ends: Offsets,
}

impl Heard {
    pub fn new(topic: &str) -> Self {
        Self { topic: topic.to_owned(), said: Mutex::default() }
    }

    /// The last reason for a failure.
    pub fn reason(&self) -> Option<String> {
        self.said.lock().reason.clone()
    }

    /// The ends of partitions that became known since the last call.
    pub fn take_ends(&self) -> Offsets {
        std::mem::take(&mut self.said.lock().ends)
    }
}

impl ClientContext for Heard {
    fn log(&self, level: RDKafkaLogLevel, fac: &str, message: &str) {
        tracing::debug!(?level, fac, message, "librdkafka");
        if (level as i32) <= RDKafkaLogLevel::Error as i32 {
            self.said.lock().reason = Some(message.to_owned());
        }
    }

    fn stats(&self, statistics: Statistics) {
        let Some(topic) = statistics.topics.get(&self.topic) else { return };
        let mut said = self.said.lock();
        // Below the last stable offset, because what open transactions have written can't be read yet.
        let known = topic.partitions.values().filter(|partition| partition.partition >= 0);
        said.ends.extend(
            known
                .map(|partition| (partition.partition, partition.ls_offset.max(0)))
                .filter(|(_, end)| *end > 0),
        );
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "librdkafka");
        let mut said = self.said.lock();
        // "All brokers are down" follows the individual causes, and says less.
        if said.reason.is_none() || error.rdkafka_error_code() != Some(RDKafkaErrorCode::AllBrokersDown) {
            said.reason = Some(reason.to_owned());
        }
    }
}

impl ConsumerContext for Heard {}
