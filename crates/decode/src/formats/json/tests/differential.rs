//! Random bodies, legal and broken, against `serde_json`.

use super::*;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde::de::IgnoredAny;
use serde_json::{Deserializer, Value};
use std::collections::HashMap;

const PIECES: [&str; 34] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\\"",
    "\\u00e9",
    "\\ud83d\\ude00",
    "\\ud800",
    "é",
    "漢",
    " ",
    "\t",
    "null",
    "true",
    "false",
    "0",
    "-1",
    "1.50",
    "1e5",
    "12345678901234567890123",
    "\"a\":",
    "\"b\":1",
    "\"c\":\"x\"",
    "\"a\"",
    "{\"a\":1}",
    "[1,2]",
    "\u{1}",
    "01",
    "x",
    "\"\\u0061\":",
];

fn table_of_texts() -> Arc<TableDef> {
    table(["a", "b", "c"].iter().zip(0..).map(|(name, id)| column(id, name, DataType::String)).collect())
}

/// The text of a value in a STRING column.
fn stored(raw: &str) -> Option<String> {
    match raw.as_bytes()[0] {
        b'n' => None,
        b't' => Some("1".to_owned()),
        b'f' => Some("0".to_owned()),
        b'"' => Some(serde_json::from_str(raw).expect("checked before")),
        b'{' | b'[' => {
            let mut out = Vec::new();
            scan::compact(raw.as_bytes(), false, &mut out);
            Some(String::from_utf8(out).expect("UTF-8"))
        }
        _ => Some(raw.to_owned()),
    }
}

/// The value at the beginning of `text`, and the rest.
fn value(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let mut values = Deserializer::from_str(text).into_iter::<IgnoredAny>();
    values.next().expect("a value").expect("legal");
    text.split_at(values.byte_offset())
}

/// The keys and values of an object, as they are written.
fn pairs(line: &str) -> Option<Vec<(&str, &str)>> {
    serde_json::from_str::<IgnoredAny>(line).ok()?;
    let mut rest = line.trim_start().strip_prefix('{')?;
    let mut pairs = Vec::new();
    while rest.trim_start().starts_with('"') {
        let (key, behind) = value(rest);
        let (value, behind) = value(behind.trim_start().strip_prefix(':').expect("a colon"));
        pairs.push((key, value));
        rest = behind.trim_start().strip_prefix(',').unwrap_or(behind);
    }
    Some(pairs)
}

/// The row that `serde_json` finds in a line; `None` for a rejected one.
fn expected(line: &str) -> Option<Vec<Option<String>>> {
    let mut row = HashMap::new();
    for (key, raw) in pairs(line)? {
        // A key with an unpaired surrogate matches no column.
        let name: String = serde_json::from_str(key).unwrap_or_default();
        if ["a", "b", "c"].contains(&&name[..]) && !row.contains_key(&name) {
            if raw.starts_with('"') && serde_json::from_str::<String>(raw).is_err() {
                return None;
            }
            row.insert(name, stored(raw));
        }
    }
    (!row.is_empty()).then(|| ["a", "b", "c"].map(|name| row.remove(name).flatten()).to_vec())
}

fn random_value(random: &mut StdRng, depth: u32) -> String {
    match random.random_range(0..if depth == 0 { 6 } else { 8 }) {
        0 => "null".to_owned(),
        1 => random.random_bool(0.5).to_string(),
        2 => random.random::<i64>().to_string(),
        3 => format!("{:e}", random.random::<f64>()),
        4 | 5 => {
            let characters = ['a', '"', '\\', '\n', 'é', '漢', '😀', ' ', '/', '\u{7f}', '\0'];
            let length = random.random_range(0..30);
            let text: String = (0..length).map(|_| *characters.choose(random).expect("some")).collect();
            Value::String(text).to_string()
        }
        6 => {
            let values: Vec<_> =
                (0..random.random_range(0..4)).map(|_| random_value(random, depth - 1)).collect();
            format!("[{}]", values.join(if random.random_bool(0.5) { "," } else { " , " }))
        }
        _ => random_object(random, &["a", "x", "é"], depth - 1),
    }
}

fn random_object(random: &mut StdRng, keys: &[&str], depth: u32) -> String {
    let colon = if random.random_bool(0.5) { ":" } else { " :\t" };
    let pairs: Vec<_> = (0..random.random_range(0..6))
        .map(|_| format!("\"{}\"{colon}{}", keys.choose(random).expect("some"), random_value(random, depth)))
        .collect();
    format!("{{{}}}", pairs.join(","))
}

/// A line: an object, an object with some bytes changed, or pieces of JSON in any order.
fn random_line(random: &mut StdRng) -> String {
    let line = random_object(random, &["a", "b", "c", "d", "\\u0061", "aa", ""], 3);
    match random.random_range(0..4) {
        0 => (0..random.random_range(1..8)).map(|_| *PIECES.choose(random).expect("some")).collect(),
        1 => {
            let mut characters: Vec<char> = line.chars().collect();
            for _ in 0..random.random_range(1..3) {
                let at = random.random_range(0..characters.len());
                match random.random_range(0..3) {
                    0 => drop(characters.remove(at)),
                    1 => characters
                        .insert(at, *['"', '\\', '}', ']', ',', '0', 'e'].choose(random).expect("some")),
                    _ => characters.truncate(at + 1),
                }
                if characters.is_empty() {
                    break;
                }
            }
            characters.into_iter().collect()
        }
        _ => line,
    }
}

fn check_lines(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let table = table_of_texts();
    let all: Vec<String> = (0..random.random_range(1..12)).map(|_| random_line(&mut random)).collect();
    let rows: Vec<_> = all.iter().filter_map(|line| expected(line)).collect();
    let is_row = |line: &&String| line.bytes().any(|byte| !matches!(byte, b' ' | b'\t' | b'\r'));
    let total = all.iter().filter(is_row).count();
    let body = all.join("\n");
    let target = Target::new(&table, None).expect("all columns");
    let step = random.random_range(1..=body.len().max(1));
    for chunk_bytes in [body.len().max(1), step, 1] {
        let chunks = body.as_bytes().chunks(chunk_bytes);
        let decoded =
            load_chunks(&target, &by_line(), LoadRules::default(), chunks).expect("lines are short");
        let found: Vec<Vec<_>> = crate::testing::rows(&table.schema, &decoded.blocks);
        let shown = |row: &Vec<Option<String>>| {
            row.iter().map(|value| value.clone().unwrap_or_else(|| "NULL".to_owned())).collect::<Vec<_>>()
        };
        assert_eq!(found, rows.iter().map(shown).collect::<Vec<_>>(), "seed {seed}: {body:?}");
        assert_eq!(decoded.counts.total, total as u64, "seed {seed}: {body:?}");
    }
    // The same objects as one array.
    let objects: Vec<&str> = all
        .iter()
        .map(|line| &line[..])
        .filter(|line| serde_json::from_str::<IgnoredAny>(line).is_ok())
        .collect();
    let body = format!("[{}]", objects.join(" ,\n"));
    for chunk_bytes in [body.len(), step, 1] {
        let chunks = body.as_bytes().chunks(chunk_bytes);
        let decoded =
            load_chunks(&target, &array(), LoadRules::default(), chunks).expect("each element is legal");
        assert_eq!(decoded.counts.loaded, rows.len() as u64, "seed {seed}: {body:?}");
        assert_eq!(decoded.counts.total, objects.len() as u64, "seed {seed}: {body:?}");
    }
}

#[test]
fn lines_are_read_as_serde_json_reads_them() {
    for seed in 0..3_000 {
        check_lines(seed);
    }
}
