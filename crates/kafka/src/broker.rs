//! Kafka, by librdkafka.
//!
//! Invariant: a partition is read from the requested offset. If the broker no longer has it, the client would silently continue
//! elsewhere or not at all; so the offset is compared with the partition's first one, and the client may not choose.

use crate::chunk::{Chunk, Shape};
use crate::log::Heard;
use crate::properties;
use crate::source::{Connect, Extent, Offsets, Reader, Settings, SourceError, Topic, check};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};
use std::collections::BTreeSet;
use std::net::ToSocketAddrs;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tributary_types::egress::{Egress, Forbidden};

/// How long a question to the broker may take.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// How long to wait for the client's reason for a failure, which may arrive in pieces.
const REASON_WAIT: Duration = Duration::from_millis(200);
/// Kafka's port.
const PORT: u16 = 9092;
/// A group is never joined, but the client wants its name.
const GROUP: &str = "tributary";
/// Memory for messages that were fetched ahead, in kilobytes.
const AHEAD_KB: &str = "8192";

/// Properties that a job sets itself, because exactly once depends on them.
const OWN: [(&str, &str); 5] = [
    ("enable.auto.commit", "false"),
    ("enable.auto.offset.store", "false"),
    ("enable.partition.eof", "true"),
    // The offsets are ours: neither the broker nor the client has others to fall back on.
    ("auto.offset.reset", "error"),
    ("statistics.interval.ms", "1000"),
];
/// Better values than the client's own defaults, unless the job overrides them. A consumer that was slower than the broker would
/// stall for a second at a time, and a new assignment waits for the fetch under way.
const DEFAULTS: [(&str, &str); 4] = [
    ("fetch.queue.backoff.ms", "10"),
    ("fetch.wait.max.ms", "100"),
    ("queued.max.messages.kbytes", AHEAD_KB),
    ("socket.keepalive.enable", "true"),
];
/// Connects to Kafka.
#[derive(Clone, Debug, Default)]
pub struct Broker {
    /// The addresses that it may connect to.
    pub egress: Arc<Egress>,
}

impl Connect for Broker {
    fn connect(&self, settings: &Settings) -> Result<Box<dyn Topic>, SourceError> {
        let mut config = ClientConfig::new();
        config.set("group.id", GROUP);
        for (name, value) in DEFAULTS {
            config.set(name, value);
        }
        for (name, value) in &settings.properties {
            check_property(name, value)?;
            config.set(name, value);
        }
        for broker in settings.brokers.split(',').filter(|broker| !broker.trim().is_empty()) {
            let (host, port) = host_and_port(broker);
            check_address(&self.egress, host, port)?;
        }
        config.set("bootstrap.servers", &settings.brokers);
        for (name, value) in OWN {
            config.set(name, value);
        }
        let consumer: BaseConsumer<Heard> = config
            .create_with_context(Heard::new(&settings.topic))
            .map_err(|error| SourceError::Wrong(format!("the settings of the source are wrong: {error}")))?;
        let (topic, egress) = (settings.topic.clone(), Arc::clone(&self.egress));
        Ok(Box::new(Connected { consumer, topic, egress, is_reading: false }))
    }
}

/// Checks a property that a job sets.
fn check_property(name: &str, value: &str) -> Result<(), SourceError> {
    if OWN.iter().any(|(known, _)| name.eq_ignore_ascii_case(known)) {
        let text = format!("property.{name} is the job's own: leave it out");
        return Err(SourceError::Wrong(text));
    }
    properties::check(name, value)
}

/// Checks the addresses that the client would connect to. It resolves names once more itself, so a name whose address changes in
/// between goes unnoticed.
fn check_address(egress: &Egress, host: &str, port: u16) -> Result<(), SourceError> {
    let wrong = |forbidden: Forbidden| SourceError::Wrong(format!("the broker {host}:{port}: {forbidden}"));
    egress.check_host(host).map_err(wrong)?;
    // A name that can't be resolved now can't be connected to either.
    let Ok(addresses) = (host.trim_matches(['[', ']']), port).to_socket_addrs() else { return Ok(()) };
    for address in addresses {
        egress.check(address.ip()).map_err(wrong)?;
    }
    Ok(())
}

/// The host and port of a broker; Kafka's own port if it names none.
fn host_and_port(broker: &str) -> (&str, u16) {
    let address = broker.rsplit_once("://").map_or(broker, |(_, address)| address).trim();
    let split = address.rsplit_once(':').filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
    let with_port = split.and_then(|(host, port)| Some((host, port.parse().ok()?)));
    with_port.unwrap_or((address, PORT))
}

/// A client.
struct Connected {
    consumer: BaseConsumer<Heard>,
    topic: String,
    egress: Arc<Egress>,
    /// Whether messages are being read. Then only [`Reading`] may poll: a polled message is never delivered again.
    is_reading: bool,
}

impl Connected {
    /// The error of a request with its reason, which the client reports separately.
    fn error(&self, doing: &str, error: &KafkaError) -> SourceError {
        // The client's reports arrive by polling, one at a time.
        let until = Instant::now() + REASON_WAIT;
        while !self.is_reading && Instant::now() < until {
            drop(self.consumer.poll(REASON_WAIT / 10));
        }
        let reason = self.consumer.context().reason().map(|reason| format!(": {reason}")).unwrap_or_default();
        let text = format!("{doing} topic '{}' failed: {error}{reason}", self.topic);
        match error.rdkafka_error_code() {
            Some(
                Code::UnknownTopic
                | Code::UnknownTopicOrPartition
                | Code::UnknownPartition
                | Code::InvalidTopic
                | Code::TopicAuthorizationFailed
                | Code::GroupAuthorizationFailed,
            ) => SourceError::Wrong(text),
            _ => SourceError::Unreachable(text),
        }
    }
}

impl Connected {
    fn reading(mut self, from: &Offsets, shape: Shape) -> Result<Reading, SourceError> {
        let mut assignment = TopicPartitionList::with_capacity(from.len());
        for (&partition, &offset) in from {
            check(&self.topic, partition, offset, self.extent(partition)?)?;
            assignment
                .add_partition_offset(&self.topic, partition, Offset::Offset(offset))
                .map_err(|error| self.error("naming an offset of", &error))?;
        }
        self.is_reading = true;
        self.consumer.assign(&assignment).map_err(|error| self.error("reading", &error))?;
        let partitions: Vec<i32> = from.keys().copied().collect();
        let behind = partitions.iter().copied().collect();
        Ok(Reading { connected: self, shape, partitions, behind })
    }
}

impl Topic for Connected {
    fn partitions(&self) -> Result<Vec<i32>, SourceError> {
        let metadata = self
            .consumer
            .fetch_metadata(Some(&self.topic), ANSWER_MAX)
            .map_err(|error| self.error("asking for the partitions of", &error))?;
        // Brokers that the job does not name may be the leaders of its partitions.
        for broker in metadata.brokers() {
            let port = u16::try_from(broker.port()).unwrap_or(PORT);
            check_address(&self.egress, broker.host(), port)?;
        }
        let topic = metadata.topics().iter().find(|topic| topic.name() == self.topic);
        let unknown = || SourceError::Wrong(format!("the brokers have no topic '{}'", self.topic));
        let topic = topic.ok_or_else(unknown)?;
        if let Some(error) = topic.error() {
            return Err(match Code::from(error) {
                Code::UnknownTopic | Code::UnknownTopicOrPartition | Code::InvalidTopic => unknown(),
                code => self.error("asking for the partitions of", &KafkaError::MetadataFetch(code)),
            });
        }
        let mut ids: Vec<i32> =
            topic.partitions().iter().map(rdkafka::metadata::MetadataPartition::id).collect();
        if ids.is_empty() {
            return Err(unknown());
        }
        ids.sort_unstable();
        Ok(ids)
    }

    fn extent(&self, partition: i32) -> Result<Extent, SourceError> {
        let doing = || format!("asking for the offsets of partition {partition} of");
        let (first, end) = self
            .consumer
            .fetch_watermarks(&self.topic, partition, ANSWER_MAX)
            .map_err(|error| self.error(&doing(), &error))?;
        Ok(Extent { first, end })
    }

    fn offset_at(&self, partition: i32, unix_ms: i64) -> Result<i64, SourceError> {
        let doing = || format!("asking for the time of partition {partition} of");
        let mut times = TopicPartitionList::new();
        let asked = times
            .add_partition_offset(&self.topic, partition, Offset::Offset(unix_ms))
            .and_then(|()| self.consumer.offsets_for_times(times, ANSWER_MAX))
            .map_err(|error| self.error(&doing(), &error))?;
        match asked.find_partition(&self.topic, partition).map(|found| found.offset()) {
            Some(Offset::Offset(offset)) => Ok(offset),
            _ => Ok(self.extent(partition)?.end),
        }
    }

    fn read(self: Box<Self>, from: &Offsets, shape: Shape) -> Result<Box<dyn Reader>, SourceError> {
        Ok(Box::new((*self).reading(from, shape)?))
    }
}

/// A client that reads.
struct Reading {
    connected: Connected,
    shape: Shape,
    /// The partitions that are read.
    partitions: Vec<i32>,
    /// Partitions whose ends were not seen yet, or that have moved on since.
    behind: BTreeSet<i32>,
}

impl Reading {
    /// The end of a partition is reached.
    fn ended(&mut self, partition: i32, chunk: &mut Chunk) {
        self.behind.remove(&partition);
        // Behind the last message there may be others that are not shown, of aborted transactions.
        let Ok(positions) = self.connected.consumer.position() else { return };
        let found = positions.find_partition(&self.connected.topic, partition);
        if let Some(Offset::Offset(offset)) = found.map(|found| found.offset()) {
            chunk.next.insert(partition, offset);
            chunk.ends.insert(partition, offset);
        }
    }

    /// Whether an error ends the reader.
    fn fatal(&self, error: &KafkaError) -> Option<SourceError> {
        let code = error.rdkafka_error_code()?;
        match code {
            Code::AutoOffsetReset | Code::OffsetOutOfRange => Some(SourceError::OutOfRange(format!(
                "topic '{}' has no longer the offset that is next: {error}",
                self.connected.topic
            ))),
            Code::UnknownTopic
            | Code::UnknownTopicOrPartition
            | Code::UnknownPartition
            | Code::TopicAuthorizationFailed
            | Code::Fatal => Some(self.connected.error("reading", error)),
            // A message that can't be read, as if it was damaged or packed by something that is not built in.
            Code::BadMessage | Code::BadCompression | Code::InvalidMessage | Code::NotImplemented => {
                let topic = &self.connected.topic;
                Some(SourceError::Wrong(format!("a message of topic '{topic}' can't be read: {error}")))
            }
            // The client continues by itself when the broker is back.
            _ => None,
        }
    }
}

impl Reader for Reading {
    fn next(&mut self, wait: Duration) -> Result<Chunk, SourceError> {
        let until = Instant::now() + wait;
        let mut chunk = Chunk::default();
        while !chunk.is_full() {
            // After the first message, only messages that have already arrived are added.
            let patience = if chunk.messages > 0 || !chunk.ends.is_empty() {
                Duration::ZERO
            } else {
                until.saturating_duration_since(Instant::now())
            };
            let polled = self.connected.consumer.poll(patience).map(|polled| {
                polled.map(|message| {
                    // A message without a value (a deletion, in a compacted topic) is not a row.
                    if let Some(payload) = message.payload() {
                        chunk.push_from(message.partition(), message.offset(), payload, self.shape);
                    }
                    (message.partition(), message.offset() + 1)
                })
            });
            match polled {
                Some(Ok((partition, next))) => {
                    chunk.next.insert(partition, next);
                    self.behind.insert(partition);
                }
                Some(Err(KafkaError::PartitionEOF(partition))) => self.ended(partition, &mut chunk),
                Some(Err(error)) => {
                    if let Some(fatal) = self.fatal(&error) {
                        return Err(fatal);
                    }
                    tracing::debug!(%error, topic = self.connected.topic, "the source is away");
                }
                None if chunk.messages > 0 || Instant::now() >= until => break,
                None => {}
            }
            if self.behind.is_empty() {
                break;
            }
        }
        let mut ends = self.connected.consumer.context().take_ends();
        ends.append(&mut chunk.ends);
        chunk.ends = ends;
        chunk.is_caught_up = self.behind.is_empty();
        Ok(chunk)
    }

    fn partitions(&self) -> Result<Vec<i32>, SourceError> {
        self.connected.partitions()
    }

    fn ends(&self) -> Result<Offsets, SourceError> {
        let end = |&partition: &i32| Ok((partition, self.connected.extent(partition)?.end));
        self.partitions.iter().map(end).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::Framing;
    use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

    fn loopback() -> Arc<Egress> {
        Arc::new(Egress::parse("127.0.0.0/8;::1/128").unwrap())
    }

    fn connect(properties: &[(&str, &str)]) -> Result<Box<dyn Topic>, SourceError> {
        let properties =
            properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Broker { egress: loopback() }.connect(&Settings {
            brokers: "127.0.0.1:1".to_owned(),
            topic: "t".to_owned(),
            properties,
        })
    }

    fn refusal(properties: &[(&str, &str)]) -> String {
        match connect(properties) {
            Err(SourceError::Wrong(text)) => text,
            Err(other) => panic!("{properties:?}: {other:?}"),
            Ok(_) => panic!("{properties:?} is taken"),
        }
    }

    #[test]
    fn settings_reach_the_client_and_it_names_those_that_it_does_not_know() {
        let scram = [
            ("security.protocol", "sasl_ssl"),
            ("sasl.mechanism", "SCRAM-SHA-256"),
            ("sasl.username", "me"),
            ("sasl.password", "x"),
        ];
        assert!(connect(&scram).is_ok());
        assert!(refusal(&[("no.such.property", "1")]).contains("no.such.property"));
    }

    #[test]
    fn an_error_takes_no_message_away() {
        const MESSAGES: i64 = 50;
        let cluster = rdkafka::mocking::MockCluster::new(1).unwrap();
        cluster.create_topic("t", 1, 1).unwrap();
        let brokers = cluster.bootstrap_servers();
        let producer: BaseProducer = ClientConfig::new().set("bootstrap.servers", &brokers).create().unwrap();
        for number in 0..MESSAGES {
            let text = number.to_string();
            producer.send(BaseRecord::<(), str>::to("t").payload(&text).partition(0)).unwrap();
        }
        producer.flush(ANSWER_MAX).unwrap();
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &brokers).set("group.id", GROUP);
        for (name, value) in DEFAULTS.into_iter().chain(OWN) {
            config.set(name, value);
        }
        let consumer: BaseConsumer<Heard> = config.create_with_context(Heard::new("t")).unwrap();
        let connected = Connected { consumer, topic: "t".to_owned(), egress: loopback(), is_reading: false };
        let shape = Shape { framing: Framing::OneLine, has_places: true };
        let mut reader = connected.reading(&Offsets::from([(0, 0)]), shape).unwrap();
        let (mut next, mut messages, mut places) = (0, 0, Vec::new());
        let until = Instant::now() + ANSWER_MAX;
        while next < MESSAGES && Instant::now() < until {
            drop(reader.connected.error("asking", &KafkaError::MetadataFetch(Code::BrokerTransportFailure)));
            let chunk = reader.next(Duration::from_millis(100)).unwrap();
            messages += chunk.messages;
            places.extend(chunk.places.iter().map(|place| (place.partition, place.offset)));
            next = chunk.next.get(&0).copied().unwrap_or(next);
        }
        assert_eq!((next, messages), (MESSAGES, MESSAGES as u64));
        assert_eq!(places, (0..MESSAGES).map(|offset| (0, offset)).collect::<Vec<_>>());
    }

    #[test]
    fn properties_that_would_break_exactly_once_or_run_code_are_refused_by_name() {
        assert!(
            refusal(&[("enable.auto.commit", "true")])
                .contains("property.enable.auto.commit is the job's own")
        );
        for name in
            ["Plugin.Library.Paths", "sasl.kerberos.kinit.cmd", "metadata.broker.list", "ssl.ca.location"]
        {
            let refused = refusal(&[(name, "/x")]);
            assert!(refused.contains(&format!("property.{name} is not allowed")), "{refused}");
        }
        assert!(refusal(&[("queued.max.messages.kbytes", "2097151")]).contains("1 to 8192"));
    }

    #[test]
    fn brokers_that_a_setting_forbids_are_refused_by_their_addresses() {
        for (brokers, address) in [
            ("127.0.0.1:9092", "127.0.0.1"),
            ("8.8.8.8:9092, PLAINTEXT://169.254.169.254:80", "169.254.169.254"),
            ("[::1]:9092", "::1"),
            ("localhost", "1"),
        ] {
            let settings =
                Settings { brokers: brokers.to_owned(), topic: "t".to_owned(), properties: Vec::new() };
            let Err(SourceError::Wrong(text)) = Broker::default().connect(&settings) else {
                panic!("{brokers} is taken")
            };
            assert!(text.contains("may not reach the address") && text.contains(address), "{text}");
        }
        assert_eq!(host_and_port("SASL_SSL://host:1"), ("host", 1));
        assert_eq!(host_and_port("[::1]"), ("[::1]", PORT));
        assert_eq!(host_and_port("::1"), ("::1", PORT));
    }

    #[test]
    fn a_broker_that_others_name_is_checked_too() {
        let cluster = rdkafka::mocking::MockCluster::new(1).unwrap();
        cluster.create_topic("t", 1, 1).unwrap();
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", cluster.bootstrap_servers()).set("group.id", GROUP);
        let consumer: BaseConsumer<Heard> = config.create_with_context(Heard::new("t")).unwrap();
        let egress = Arc::new(Egress::default());
        let connected = Connected { consumer, topic: "t".to_owned(), egress, is_reading: false };
        let Err(SourceError::Wrong(text)) = connected.partitions() else {
            panic!("its leader is on loopback")
        };
        assert!(text.contains("127.0.0.1, which is of this machine itself"), "{text}");
    }
}
