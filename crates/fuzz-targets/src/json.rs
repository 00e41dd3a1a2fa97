//! JSON: in one piece against in chunks, typed columns against text columns, and against `serde_json`.
//!
//! With `serde_json`: a line is an object there if and only if it is a row here or rejected for its values, and its values are
//! the same. Excluded are unpaired surrogate escapes, which its texts refuse and its scanner accepts, and nesting beyond our
//! limit.

use crate::rows;
use crate::tables;
use arrow::array::RecordBatch;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use tributary_decode::{
    BodyDecoder, Decoded, FieldDecoder, FieldNames, JsonDecoder, JsonFormat, JsonPath, JsonPaths,
    JsonStrings, LoadRules, Target,
};
use tributary_types::TableDef;

const DELIMITERS: [&[u8]; 4] = [b"\n", b"|", b"\r\n", b"aa"];
const PATHS: [&str; 4] =
    ["[\"$.c0\"]", "[\"$.c1\", \"$.c0.a\"]", "[\"$\", \"$.c0[1]\", \"$.c0\"]", "[\"$.x\", \"$.c0\"]"];
const ROOTS: [&str; 2] = ["$.c0", "$.a[0]"];

/// Two bytes choose options and chunks, the others are the body.
pub fn json(data: &[u8]) {
    let Some((&[choice, cuts], body)) = data.split_first_chunk::<2>() else { return };
    let format = format(choice);
    let rules = LoadRules { strict: choice & 1 != 0, ..LoadRules::default() };
    for table in [tables::of_strings(3), tables::pick(cuts)] {
        let whole = load(&table, &format, rules, body, usize::MAX);
        if let Ok(whole) = &whole {
            rows::check_decoded(&table, whole);
        }
        for step in [usize::from(cuts) + 1, 1] {
            match (&whole, load(&table, &format, rules, body, step)) {
                (Ok(whole), Ok(cut)) => rows::assert_same(&table, whole, &cut),
                (Err(whole), Err(cut)) => assert_eq!(*whole, cut),
                (whole, cut) => panic!("{whole:?} in one piece, {cut:?} in chunks of {step}"),
            }
        }
    }
    compare_texts(&format, body, usize::from(cuts) + 1);
    compare_serde(body);
}

fn format(choice: u8) -> JsonFormat {
    let (read_by_line, strip_outer_array) =
        [(true, false), (false, true), (true, true), (false, false)][usize::from(choice >> 1 & 3)];
    let path = usize::from(choice >> 4 & 7);
    JsonFormat {
        read_by_line,
        strip_outer_array,
        line_delimiter: DELIMITERS[usize::from(choice >> 6)].to_vec(),
        root: ROOTS.get(path.wrapping_sub(6)).map(|root| JsonPath::parse(root).expect("a path")),
        paths: PATHS.get(path.wrapping_sub(2)).map(|paths| JsonPaths::parse(paths).expect("paths")),
        num_as_string: choice & 8 != 0,
    }
}

fn load(
    table: &Arc<TableDef>,
    format: &JsonFormat,
    rules: LoadRules,
    body: &[u8],
    step: usize,
) -> Result<Decoded, String> {
    let target = Target::new(table, None).expect("all columns");
    let mut decoder = JsonDecoder::new(target, format, rules).expect("a legal format");
    let mut chunks = body.chunks(step);
    match chunks.try_for_each(|chunk| decoder.push(chunk)).and_then(|()| decoder.finish()) {
        Ok(()) => Ok(decoder.into_decoded()),
        Err(error) => Err(error.detail_text().to_owned()),
    }
}

/// Columns of text for the query engine hold what columns of STRING hold.
fn compare_texts(format: &JsonFormat, body: &[u8], step: usize) {
    let table = tables::of_strings(3);
    let Ok(blocks) = load(&table, format, LoadRules::default(), body, usize::MAX) else { return };
    let names: Vec<String> = (0..3).map(|column| format!("c{column}")).collect();
    let mut strings = JsonStrings::new(FieldNames::Given(&names), &[], format).expect("a legal format");
    let mut named = JsonStrings::new(FieldNames::OfBody, &[], format).expect("a legal format");
    for chunk in body.chunks(step) {
        strings.push(chunk).expect("the blocks were read");
        named.push(chunk).expect("the blocks were read");
    }
    strings.finish().expect("the blocks were read");
    named.finish().expect("the blocks were read");
    assert_eq!(strings.counts(), blocks.counts);
    assert_eq!(strings.rejects(), blocks.rejects);
    let expected: Vec<_> = rows::check_decoded(&table, &blocks).iter().flat_map(rows::texts).collect();
    let found: Vec<_> = strings.take_batches().iter().flat_map(rows::texts).collect();
    assert_eq!(found, expected);
    assert_eq!(named.counts().total, blocks.counts.total);
    for batch in named.take_batches() {
        assert_eq!(batch.schema(), named.schema().expect("there was a row"));
    }
}

/// A row is JSON for `serde_json`, and vice versa.
fn compare_serde(body: &[u8]) {
    let table = tables::of_strings(1);
    for line in body.split(|&byte| byte == b'\n') {
        let load = load(&table, &JsonFormat::default(), LoadRules::default(), line, usize::MAX);
        let decoded = load.expect("a line is no error");
        if check_legal(line, &decoded) && decoded.counts.loaded == 1 {
            compare_value(line, &rows::check_decoded(&table, &decoded));
        }
    }
}

/// Checks that `serde_json` agrees on the legality of a line and its decoding; returns whether it is legal and was compared.
pub(crate) fn check_legal(line: &[u8], decoded: &Decoded) -> bool {
    let Ok(text) = std::str::from_utf8(line) else { return false };
    let reason = decoded.rejects.first().map_or("", |reject| &reject.reason);
    if reason.contains("code: 4,") || reason.contains("other half") {
        return false;
    }
    let is_json = serde_json::from_str::<IgnoredAny>(behind_mark(text)).is_ok();
    assert_eq!(is_json, decoded.counts.total > 0 && !reason.starts_with("Parse json"), "{text}: {reason}");
    is_json
}

fn behind_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// The value of the key `c0` is the one that `serde_json` reads. Numbers are compared only if both preserve all of their digits,
/// as whole numbers.
fn compare_value(line: &[u8], batches: &[RecordBatch]) {
    let line = std::str::from_utf8(line).expect("serde_json has taken it");
    let Ok(Pairs(pairs)) = serde_json::from_str(behind_mark(line)) else { return };
    // The first of two counts.
    let value = pairs.into_iter().find(|(key, _)| key == "c0").map_or(Value::Null, |(_, value)| value);
    let found = batches.iter().flat_map(rows::texts).next().and_then(|mut row| row.pop()).flatten();
    let expected = match value {
        Value::Null => None,
        Value::Bool(value) => Some(u8::from(value).to_string()),
        Value::String(text) => Some(text),
        Value::Number(number) if number.is_i64() && number.as_i64() != Some(0) => Some(number.to_string()),
        Value::Number(_) => return,
        nested => {
            let found = found.expect("a nested value is its text");
            let again: Value = serde_json::from_str(&found).expect("the text of a nested value is JSON");
            assert_eq!(again, nested, "{line}");
            return;
        }
    };
    assert_eq!(found, expected, "{line}");
}

/// The pairs of an object in order, including duplicate keys.
struct Pairs(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Pairs;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}
