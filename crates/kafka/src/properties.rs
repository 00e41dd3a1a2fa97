//! The properties of Kafka's client that a job may set.
//!
//! Invariant: only the properties listed here reach the client. It has some 190 properties, some of which open files of this
//! machine, run programs, contact other servers, take uncounted memory, or break exactly-once. Certificates and keys are texts.

use crate::source::SourceError;

/// Rule for the text of a property, as far as the client does not check it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accepts {
    /// Any text: names, words and passwords.
    Text,
    /// A certificate or key, in its own letters.
    Pem,
    /// A number of this range.
    Number(u64, u64),
}

use Accepts::{Number, Pem, Text};

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const MIB: u64 = 1024 * 1024;
/// Memory for prefetched messages, in kilobytes: as much as a job is charged for.
pub(crate) const AHEAD_KB_MAX: u64 = 8192;

/// The properties that a job may set.
const ALLOWED: [(&str, Accepts); 38] = [
    ("security.protocol", Text),
    ("sasl.mechanism", Text),
    ("sasl.mechanisms", Text),
    ("sasl.username", Text),
    ("sasl.password", Text),
    ("ssl.ca.pem", Pem),
    ("ssl.certificate.pem", Pem),
    ("ssl.key.pem", Pem),
    ("ssl.key.password", Text),
    ("ssl.cipher.suites", Text),
    ("ssl.curves.list", Text),
    ("ssl.sigalgs.list", Text),
    ("ssl.endpoint.identification.algorithm", Text),
    ("enable.ssl.certificate.verification", Text),
    ("client.id", Text),
    ("client.rack", Text),
    ("group.id", Text),
    ("isolation.level", Text),
    ("check.crcs", Text),
    ("broker.address.family", Text),
    ("socket.keepalive.enable", Text),
    ("socket.nagle.disable", Text),
    ("socket.timeout.ms", Number(SECOND, 5 * MINUTE)),
    ("socket.connection.setup.timeout.ms", Number(SECOND, 5 * MINUTE)),
    ("socket.receive.buffer.bytes", Number(0, 16 * MIB)),
    ("connections.max.idle.ms", Number(0, 60 * MINUTE)),
    ("reconnect.backoff.ms", Number(10, MINUTE)),
    ("reconnect.backoff.max.ms", Number(100, 10 * MINUTE)),
    ("retry.backoff.ms", Number(10, MINUTE)),
    ("metadata.max.age.ms", Number(10 * SECOND, 60 * MINUTE)),
    ("topic.metadata.refresh.interval.ms", Number(10 * SECOND, 60 * MINUTE)),
    ("fetch.wait.max.ms", Number(0, 10 * SECOND)),
    ("fetch.queue.backoff.ms", Number(0, 10 * SECOND)),
    ("fetch.error.backoff.ms", Number(10, MINUTE)),
    ("fetch.min.bytes", Number(1, MIB)),
    ("max.partition.fetch.bytes", Number(1024, 64 * MIB)),
    ("queued.min.messages", Number(1, 100_000)),
    ("queued.max.messages.kbytes", Number(1, AHEAD_KB_MAX)),
];

/// Checks a property that a job sets.
///
/// # Errors
/// [`SourceError::Wrong`] if no job may set it, or not to this value.
pub(crate) fn check(name: &str, value: &str) -> Result<(), SourceError> {
    let Some((_, accepts)) = ALLOWED.iter().find(|(known, _)| name.eq_ignore_ascii_case(known)) else {
        return Err(SourceError::Wrong(refusal(name)));
    };
    let is_legal = match accepts {
        Text => true,
        Pem => value.trim_start().starts_with("-----BEGIN "),
        Number(min, max) => value.trim().parse().is_ok_and(|number: u64| (*min..=*max).contains(&number)),
    };
    if is_legal {
        return Ok(());
    }
    Err(SourceError::Wrong(match accepts {
        Number(min, max) => format!("property.{name} must be a number of {min} to {max}, and is '{value}'"),
        // It may be secret.
        Pem | Text => format!("property.{name} must be the text of a PEM file, which begins with -----BEGIN"),
    }))
}

fn refusal(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let instead =
        |pem: &str| format!(": the server opens no file for it; give the text of the file in property.{pem}");
    let why = match lower.as_str() {
        "ssl.ca.location" => instead("ssl.ca.pem"),
        "ssl.certificate.location" | "ssl.keystore.location" => instead("ssl.certificate.pem"),
        "ssl.key.location" => instead("ssl.key.pem"),
        "bootstrap.servers" | "metadata.broker.list" => ": kafka_broker_list names the brokers".to_owned(),
        _ => {
            let all: Vec<&str> = ALLOWED.iter().map(|(known, _)| *known).collect();
            format!("; jobs can set {}", all.join(", "))
        }
    };
    format!("property.{name} is not allowed{why}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::process::Command;

    /// The properties of librdkafka for which a decision was made.
    const KNOWN: &str = include_str!("librdkafka-properties.txt");

    fn known() -> BTreeSet<&'static str> {
        KNOWN.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect()
    }

    /// The table of properties in the sources of the built-in librdkafka.
    fn table() -> String {
        let cargo = Command::new(env!("CARGO")).arg("-vV").output().expect("cargo starts");
        let cargo = String::from_utf8(cargo.stdout).expect("text");
        let host = cargo.lines().find_map(|line| line.strip_prefix("host: ")).expect("cargo names it");
        // Packages of other platforms may never have been downloaded.
        let metadata = Command::new(env!("CARGO"))
            .args(["metadata", "--format-version=1", "--offline", "--locked", "--filter-platform", host])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("cargo starts");
        let metadata = String::from_utf8(metadata.stdout).expect("JSON");
        let manifest = metadata
            .split('"')
            .find(|text| text.contains("/rdkafka-sys-") && text.ends_with("/Cargo.toml"))
            .expect("the client has a manifest");
        let table = manifest.replace("Cargo.toml", "librdkafka/CONFIGURATION.md");
        std::fs::read_to_string(&table).unwrap_or_else(|error| panic!("{table}: {error}"))
    }

    #[test]
    fn every_property_of_the_client_was_looked_at() {
        let table = table();
        let names = table.lines().filter_map(|line| Some(line.split_once('|')?.0.trim()));
        let there: BTreeSet<&str> =
            names.filter(|name| !name.is_empty() && *name != "Property" && !name.starts_with("--")).collect();
        assert!(there.len() > 150, "{}", there.len());
        assert_eq!(there, known(), "decide whether a new property may be set, then add it to the list");
    }

    #[test]
    fn a_property_is_allowed_by_its_name_or_refused_by_it() {
        let known = known();
        let allowed: BTreeSet<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
        assert_eq!(allowed.len(), ALLOWED.len(), "each once");
        assert!(allowed.is_subset(&known), "{:?}", allowed.difference(&known).collect::<Vec<_>>());
        for name in &known {
            let checked = check(name, "1000");
            match ALLOWED.iter().find(|(known, _)| known == name) {
                None => {
                    let text = checked.expect_err(name).to_string();
                    assert!(text.contains(&format!("property.{name} is not allowed")), "{text}");
                }
                Some((_, Pem)) => assert!(checked.is_err(), "{name}"),
                Some((_, Text)) => assert_eq!(checked, Ok(()), "{name}"),
                Some((_, Number(min, max))) => {
                    assert!(min < max, "{name}");
                    for wrong in [format!("{}", max + 1), "-1".to_owned(), "much".to_owned(), String::new()] {
                        assert!(check(name, &wrong).is_err(), "{name}={wrong}");
                    }
                    assert_eq!(check(name, &max.to_string()), Ok(()), "{name}");
                }
            }
        }
    }

    #[test]
    fn nothing_that_opens_a_file_runs_code_or_asks_another_server_is_allowed() {
        let dangers = [
            "location",
            "file",
            "keytab",
            "cmd",
            "url",
            "plugin",
            "cb",
            "debug",
            "broker.list",
            "bootstrap",
            "stores",
            "providers",
            "engine",
        ];
        for (name, _) in ALLOWED {
            let last = name.rsplit('.').next().expect("a part");
            assert!(!dangers.contains(&last) && !name.contains("oauthbearer"), "{name}");
        }
        for (name, text) in [
            ("ssl.ca.location", "property.ssl.ca.pem"),
            ("SSL.Key.Location", "property.ssl.key.pem"),
            ("metadata.broker.list", "kafka_broker_list"),
            ("debug", "jobs can set security.protocol"),
        ] {
            let refused = check(name, "x").expect_err(name).to_string();
            assert!(refused.contains(text), "{refused}");
        }
        let hidden = check("ssl.key.pem", "hush").unwrap_err().to_string();
        assert!(!hidden.contains("hush") && hidden.contains("-----BEGIN"), "{hidden}");
        assert_eq!(check("ssl.ca.pem", "\n-----BEGIN CERTIFICATE-----\nx"), Ok(()));
    }
}
