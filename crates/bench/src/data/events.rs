//! Events of devices: a list of readings, a list of tags and two objects, as CSV between tabs. The same bytes are for columns of
//! ARRAY, JSON and VARIANT and for columns of texts.

use super::{FIRST_ID, Request};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::io::Write;

/// Describes the format of rows in a Stream Load.
pub const FORMAT_HEADER: &str = "column_separator: \\t";

const TAGS: [&str; 8] =
    ["indoor", "outdoor", "battery low", "mains", "floor 3", "night, shift", "tested", "spare"];
const STATES: [&str; 4] = ["ok", "ok", "warm", "failed"];

/// The table that the rows are for, in database `bench`.
#[must_use]
pub fn table(are_texts: bool) -> String {
    let [numbers, texts, json, variant] = match are_texts {
        true => ["VARCHAR(4096)"; 4],
        false => ["ARRAY<INT>", "ARRAY<VARCHAR(64)>", "JSON", "VARIANT"],
    };
    format!(
        "CREATE TABLE bench.events (
            id INT NOT NULL,
            device VARCHAR(32) NOT NULL,
            readings {numbers},
            tags {texts},
            position {json},
            payload {variant}
        ) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 32"
    )
}

/// A stream of rows.
#[derive(Debug)]
pub struct Events {
    random: SmallRng,
}

impl Events {
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { random: SmallRng::seed_from_u64(seed) }
    }

    /// Appends one row, numbered from the run's first row, and returns the offset of its id.
    pub fn push_row(&mut self, out: &mut Vec<u8>) -> usize {
        let (at, random) = (out.len(), &mut self.random);
        let mut list = |count: std::ops::Range<usize>, item: &mut dyn FnMut(&mut SmallRng) -> String| {
            let items: Vec<String> = (0..random.random_range(count)).map(|_| item(random)).collect();
            format!("[{}]", items.join(","))
        };
        let readings = list(2..10, &mut |random| random.random_range(-500..5000).to_string());
        let tags = list(0..4, &mut |random| format!("\"{}\"", TAGS[random.random_range(0..TAGS.len())]));
        let device = random.random_range(0..20_000);
        let (lon, lat) = (random.random_range(-180.0..180.0), random.random_range(-90.0..90.0));
        let (state, code) = (STATES[random.random_range(0..STATES.len())], random.random_range(0..600));
        let is_on = random.random_bool(0.7);
        writeln!(
            out,
            "{FIRST_ID}\tdevice-{device}\t{readings}\t{tags}\t{{\"lon\":{lon:.5},\"lat\":{lat:.5}}}\t\
             {{\"state\":\"{state}\",\"code\":{code},\"on\":{is_on},\"net\":{{\"rssi\":-{},\"hops\":[{},{}]}}}}",
            code % 90,
            code % 7,
            code % 5,
        )
        .expect("a vector takes every write");
        at
    }

    /// A Stream Load request of about `bytes` bytes of rows, at least one.
    pub fn stream_load(&mut self, head: impl Fn(usize) -> String, bytes: usize) -> Request {
        Request::of_lines(head, bytes, |body| self.push_row(body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_lists_and_objects_in_the_places_of_the_table() {
        let (mut out, mut events) = (Vec::new(), Events::new(1));
        let ids: Vec<_> = (0..1000).map(|_| events.push_row(&mut out)).collect();
        assert!(ids.iter().all(|&at| out[at..].starts_with(b"1000000000\t")));
        for line in String::from_utf8(out).unwrap().lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let [_, _, readings, tags, position, payload] = fields[..] else { panic!("{line}") };
            let readings: Vec<i32> = serde_json::from_str(readings).unwrap();
            let tags: Vec<String> = serde_json::from_str(tags).unwrap();
            let objects = [position, payload]
                .map(|text| serde_json::from_str::<serde_json::Map<String, _>>(text).unwrap());
            assert!((2..10).contains(&readings.len()) && tags.len() < 4);
            assert_eq!(
                objects.map(|object: serde_json::Map<String, serde_json::Value>| object.len()),
                [2, 4]
            );
        }
    }
}
