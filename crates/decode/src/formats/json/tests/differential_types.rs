//! Random values of nested types, VARIANT, IPV4 and IPV6 in JSON bodies, against `serde_json`'s reading of the same lines.

use super::*;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use tributary_types::{DataType, Nested, NestedType, StructField};

/// A value with all its keys, in their order.
#[derive(Clone, Debug, PartialEq)]
enum Json {
    Null,
    Bool,
    Number(i64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Json;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }

            fn visit_unit<E>(self) -> Result<Json, E> {
                Ok(Json::Null)
            }

            fn visit_bool<E>(self, _: bool) -> Result<Json, E> {
                Ok(Json::Bool)
            }

            fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
                Ok(Json::Number(value))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
                Ok(Json::Number(value as i64))
            }

            fn visit_str<E>(self, text: &str) -> Result<Json, E> {
                Ok(Json::Text(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    list.push(item);
                }
                Ok(Json::List(list))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
                let mut object = Vec::new();
                while let Some(entry) = entries.next_entry()? {
                    object.push(entry);
                }
                Ok(Json::Object(object))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

fn field(name: &str, data_type: DataType) -> StructField {
    StructField { name: name.to_owned(), data_type }
}

fn table_of_types() -> Arc<TableDef> {
    let texts = DataType::array(DataType::String);
    let pair = vec![field("n", DataType::Int), field("t", texts)];
    let types = [
        ("ints", DataType::array(DataType::Int)),
        ("lists", DataType::array(texts)),
        ("map", DataType::map(DataType::String, DataType::BigInt)),
        ("pair", DataType::Nested(Nested::new(NestedType::Struct(pair)))),
        ("v", DataType::Variant),
        ("four", DataType::Ipv4),
        ("six", DataType::Ipv6),
        ("fours", DataType::array(DataType::Ipv4)),
    ];
    table(types.iter().zip(0..).map(|((name, data_type), id)| column(id, name, *data_type)).collect())
}

/// As Arrow prints it; `None` is NULL.
type Shown = Option<String>;

fn int(value: &Json) -> Shown {
    let number = match value {
        Json::Number(number) => Some(*number),
        Json::Text(text) => text.parse().ok(),
        _ => None,
    };
    number.and_then(|number| i32::try_from(number).ok()).map(|number| number.to_string())
}

fn big(value: &Json) -> Shown {
    match value {
        Json::Number(number) => Some(number.to_string()),
        Json::Text(text) => text.parse::<i64>().ok().map(|number| number.to_string()),
        _ => None,
    }
}

fn text(value: &Json) -> Shown {
    match value {
        Json::Text(text) => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn four(value: &Json) -> Shown {
    let Json::Text(text) = value else { return None };
    text.parse::<Ipv4Addr>().ok().map(|address| u32::from(address).to_string())
}

fn six(value: &Json) -> Shown {
    let Json::Text(text) = value else { return None };
    let four = |text: &str| text.parse::<Ipv4Addr>().ok().map(|four| four.to_ipv6_mapped());
    let address = text.parse::<Ipv6Addr>().ok().or_else(|| four(text))?;
    Some(address.octets().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn list(value: &Json, item: impl Fn(&Json) -> Shown) -> Shown {
    let Json::List(items) = value else { return None };
    // NULL is printed as nothing.
    let items: Vec<String> = items.iter().map(|value| item(value).unwrap_or_default()).collect();
    Some(format!("[{}]", items.join(", ")))
}

/// The last of equal keys wins.
fn map(value: &Json) -> Shown {
    let Json::Object(entries) = value else { return None };
    let is_last = |at: usize| entries[at + 1..].iter().all(|(key, _)| *key != entries[at].0);
    let entries: Vec<String> = (0..entries.len())
        .filter(|&at| is_last(at))
        .map(|at| format!("{}: {}", entries[at].0, big(&entries[at].1).unwrap_or_default()))
        .collect();
    Some(format!("{{{}}}", entries.join(", ")))
}

fn pair(value: &Json) -> Shown {
    let Json::Object(entries) = value else { return None };
    let last = |name: &str| {
        let entry = entries.iter().rev().find(|(key, _)| key.eq_ignore_ascii_case(name));
        entry.map_or(&Json::Null, |(_, value)| value)
    };
    let texts = list(last("t"), text).unwrap_or_default();
    Some(format!("{{n: {}, t: {texts}}}", int(last("n")).unwrap_or_default()))
}

/// Checks a VARIANT by its meaning: it is stored as it was written.
fn check_variant(found: &str, value: &Json, line: &str) {
    let written: Value = serde_json::from_str(line).expect("it is JSON");
    match (value, &written["v"]) {
        (Json::Null, _) => assert_eq!(found, "NULL", "{line}"),
        (_, Value::String(text)) => {
            // A text that is a document is that document.
            let expected = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()));
            assert_eq!(serde_json::from_str::<Value>(found).expect(found), expected, "{line}");
        }
        (_, written) => assert_eq!(serde_json::from_str::<Value>(found).expect(found), *written, "{line}"),
    }
}

fn random_text(random: &mut StdRng) -> String {
    let characters =
        ['a', 'Z', '"', '\\', '\n', '\'', 'é', '漢', '😀', ' ', '/', ',', ':', '[', '}', '\u{7f}'];
    let length = random.random_range(0..8);
    let text: String = (0..length).map(|_| *characters.choose(random).expect("some")).collect();
    // Escaped or as it is, where it may be.
    let escaped = |text: &str| text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect::<String>();
    if random.random_bool(0.2) { format!("\"{}\"", escaped(&text)) } else { Value::String(text).to_string() }
}

/// A value that is not a list, an object or an address.
fn random_scalar(random: &mut StdRng) -> String {
    match random.random_range(0..6) {
        0 => "null".to_owned(),
        1 => random.random::<i64>().to_string(),
        2 | 3 => random.random_range(-9..99).to_string(),
        4 => format!("\"{}\"", random.random_range(-9..99)),
        _ => "\"abc\"".to_owned(),
    }
}

fn spaced(random: &mut StdRng, open: char, parts: &[String], close: char) -> String {
    let (comma, blank) = if random.random_bool(0.5) { (",", "") } else { (" ,\t", " ") };
    format!("{open}{blank}{}{blank}{close}", parts.join(comma))
}

fn some(random: &mut StdRng, mut make: impl FnMut(&mut StdRng) -> String) -> Vec<String> {
    (0..random.random_range(0..5)).map(|_| make(random)).collect()
}

fn random_texts(random: &mut StdRng) -> String {
    let parts = some(random, |random| match random.random_range(0..5) {
        0 => "null".to_owned(),
        1 => random.random_range(-9..99).to_string(),
        _ => random_text(random),
    });
    spaced(random, '[', &parts, ']')
}

fn random_address(random: &mut StdRng) -> String {
    let four = Ipv4Addr::from(random.random::<u32>());
    let text = match random.random_range(0..8) {
        0 => "1.2.3".to_owned(),
        1 => "256.1.1.1".to_owned(),
        2 => format!("::ffff:{four}"),
        3 => "::1".to_owned(),
        4 => Ipv6Addr::from(random.random::<u128>()).to_string(),
        5 => "12345::".to_owned(),
        _ => four.to_string(),
    };
    format!("\"{text}\"")
}

fn random_object(random: &mut StdRng, keys: &[&str], value: impl Fn(&mut StdRng) -> String) -> String {
    let parts = some(random, |random| {
        let colon = if random.random_bool(0.5) { ":" } else { " : " };
        format!("\"{}\"{colon}{}", keys.choose(random).expect("some"), value(random))
    });
    spaced(random, '{', &parts, '}')
}

fn random_any(random: &mut StdRng, depth: u32) -> String {
    match random.random_range(0..if depth == 0 { 3 } else { 5 }) {
        0 => random_scalar(random),
        1 => random.random_bool(0.5).to_string(),
        2 => random_text(random),
        3 => {
            let parts = some(random, |random| random_any(random, depth - 1));
            spaced(random, '[', &parts, ']')
        }
        _ => random_object(random, &["a", "b", "é", "\\u0061"], |random| random_any(random, depth - 1)),
    }
}

/// A line with a value for some of the columns; some are of another kind.
fn random_line(random: &mut StdRng) -> String {
    let mut pairs = Vec::new();
    for name in ["ints", "lists", "map", "pair", "v", "four", "six", "fours"] {
        if random.random_bool(0.2) {
            continue;
        }
        let is_other = random.random_bool(0.1);
        let value = match name {
            _ if is_other => random_scalar(random),
            "ints" => {
                let parts = some(random, |random| match random.random_range(0..8) {
                    0 => random_texts(random),
                    _ => random_scalar(random),
                });
                spaced(random, '[', &parts, ']')
            }
            "lists" => {
                let parts = some(random, |random| match random.random_range(0..5) {
                    0 => random_scalar(random),
                    _ => random_texts(random),
                });
                spaced(random, '[', &parts, ']')
            }
            "map" => random_object(random, &["a", "b c", "é", "\\u0061", "x\\\"y", ":"], random_scalar),
            "pair" => random_object(random, &["n", "N", "t", "\\u0074", "other"], |random| {
                if random.random_bool(0.5) { random_texts(random) } else { random_scalar(random) }
            }),
            "v" => random_any(random, 3),
            "fours" => {
                let parts = some(random, random_address);
                spaced(random, '[', &parts, ']')
            }
            _ => random_address(random),
        };
        pairs.push(format!("\"{name}\":{value}"));
    }
    pairs.push("\"z\":{}".to_owned());
    format!("{{{}}}", pairs.join(", "))
}

fn check_lines(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let table = table_of_types();
    let all: Vec<String> = (0..random.random_range(1..8)).map(|_| random_line(&mut random)).collect();
    let has_column = |line: &&String| line.len() > "{\"z\":{}}".len();
    let lines: Vec<&String> = all.iter().filter(has_column).collect();
    let body = all.join("\n");
    let target = Target::new(&table, None).expect("all columns");
    for chunk_bytes in [body.len(), random.random_range(1..=body.len()), 1] {
        let chunks = body.as_bytes().chunks(chunk_bytes);
        let decoded =
            load_chunks(&target, &by_line(), LoadRules::default(), chunks).expect("lines are short");
        let found = crate::testing::rows(&table.schema, &decoded.blocks);
        assert_eq!(found.len(), lines.len(), "seed {seed}: {:?}", decoded.rejects);
        for (line, row) in lines.iter().zip(&found) {
            let Json::Object(pairs) = serde_json::from_str(line).expect("legal") else { panic!("{line}") };
            for (column, found) in table.schema.visible().zip(row) {
                let value = pairs.iter().find(|(key, _)| *key == column.name);
                let value = value.map_or(&Json::Null, |(_, value)| value);
                let expected = match &column.name[..] {
                    "ints" => list(value, int),
                    "lists" => list(value, |value| list(value, text)),
                    "map" => map(value),
                    "pair" => pair(value),
                    "four" => four(value),
                    "six" => six(value),
                    "fours" => list(value, four),
                    _ => {
                        check_variant(found, value, line);
                        continue;
                    }
                };
                let expected = expected.unwrap_or_else(|| "NULL".to_owned());
                assert_eq!(*found, expected, "seed {seed}, {}: {line}", column.name);
            }
        }
    }
}

#[test]
fn values_of_nested_types_variants_and_addresses_are_read_as_serde_json_reads_them() {
    for seed in 0..1_500 {
        check_lines(seed);
    }
}
