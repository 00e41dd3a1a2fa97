//! CSV: in one piece against in chunks, typed columns against text columns, against a reader of a few lines,
//! and against the `csv` crate.
//!
//! The two other readers support one dialect: column separator `,`, line delimiter `\n` (or `\r\n` throughout), enclose `"`, no
//! escape, every other option at its default. Doris's rules differ from the `csv` crate's in these ways, so bodies with them are
//! not compared with it:
//! - a mark with text behind it closes nothing (the crate drops the mark; the small reader knows the rule);
//! - a bare `\N` is NULL (bodies with `\N` are left out);
//! - a `\r` is data unless it ends a line's text before `\n` (bodies with `\r` are left out; those with
//!   `\n` are compared a second time with `\r\n` in its place);
//! - a line that is not UTF-8 is rejected alone (bodies must be UTF-8);
//! - a row with another number of fields than the table is rejected alone (such records of the crate are skipped, and their
//!   number must be that of the rejected rows).

mod simple;

use crate::rows;
use crate::tables;
use tributary_decode::{
    CsvDecoder, CsvFormat, CsvHeader, CsvStrings, Decoded, FieldDecoder, FieldNames, LoadRules, Target,
};
use tributary_types::TableDef;

const SEPARATORS: [&[u8]; 12] =
    [b",", b"\t", b"|", b"||", b"\x01", b"ab", b"aa", b"\n", b"\n,", b"\xa9", b"\xc3\xa9", b"\r"];
const DELIMITERS: [&[u8]; 10] =
    [b"\n", b"\r\n", b"\x01\x02", b"aa", b"a", b"|", b"|||", b"\xa9", b"\n\n", b",\n"];

/// Three bytes choose options and chunks, the others are the body.
pub fn csv(data: &[u8]) {
    let Some((&[choice, marks, cuts], body)) = data.split_first_chunk::<3>() else { return };
    let options = Options::of(choice, marks);
    for table in [tables::of_strings(1 + usize::from(choice % 3)), tables::pick(choice)] {
        let whole = load(&table, &options, body, usize::MAX);
        rows::check_decoded(&table, &whole);
        for step in [usize::from(cuts) + 1, 1] {
            let cut = load(&table, &options, body, step);
            rows::assert_same(&table, &whole, &cut);
        }
    }
    compare_texts(&options, body, 1 + usize::from(choice % 3), usize::from(cuts) + 1);
    if let Ok(text) = std::str::from_utf8(body)
        && !text.contains('\r')
        && !text.contains("\\N")
    {
        let columns = 1 + usize::from(choice % 3);
        let records = simple::records(text);
        compare(text, columns, records.texts.into_iter(), "a simple reader's");
        if !records.has_text_behind_mark {
            compare_crate(text, columns, b"\n");
            compare_crate(&text.replace('\n', "\r\n"), columns, b"\r\n");
        }
    }
}

struct Options {
    format: CsvFormat,
    rules: LoadRules,
}

impl Options {
    fn of(choice: u8, marks: u8) -> Self {
        let rules = LoadRules { strict: choice & 8 != 0, ..LoadRules::default() };
        Self { format: format(choice, marks), rules }
    }

    /// Commas and quotes.
    fn plain() -> Self {
        let format =
            CsvFormat { column_separator: b",".to_vec(), enclose: Some(b'"'), ..CsvFormat::default() };
        Self { format, rules: LoadRules::default() }
    }
}

fn format(choice: u8, marks: u8) -> CsvFormat {
    let enclose = [None, Some(b'"'), Some(b'\''), Some(b'"')][usize::from(marks >> 6)];
    CsvFormat {
        header: CsvHeader::None,
        column_separator: SEPARATORS[usize::from(marks & 0x3f) % SEPARATORS.len()].to_vec(),
        line_delimiter: DELIMITERS[usize::from(choice >> 4) % DELIMITERS.len()].to_vec(),
        enclose,
        escape: (marks & 0x20 != 0).then_some(b'\\'),
        trim_double_quotes: choice & 1 != 0,
        skip_lines: u64::from(choice & 2 != 0),
        empty_field_as_null: choice & 4 != 0,
    }
}

fn load(table: &std::sync::Arc<TableDef>, options: &Options, body: &[u8], step: usize) -> Decoded {
    let target = Target::new(table, None).expect("all columns");
    let mut decoder =
        CsvDecoder::new(target, options.format.clone(), options.rules).expect("separators are not empty");
    for chunk in body.chunks(step) {
        decoder.push(chunk).expect("lines are short");
    }
    decoder.finish().expect("lines are short");
    decoder.into_decoded()
}

/// Columns of text for the query engine hold what columns of STRING hold.
fn compare_texts(options: &Options, body: &[u8], columns: usize, step: usize) {
    let table = tables::of_strings(columns);
    let blocks = load(&table, options, body, usize::MAX);
    let names: Vec<String> = (0..columns).map(|column| format!("c{column}")).collect();
    let mut strings =
        CsvStrings::new(FieldNames::Given(&names), options.format.clone()).expect("a legal format");
    let mut inferred = CsvStrings::new(FieldNames::Numbered, options.format.clone()).expect("a legal format");
    for chunk in body.chunks(step) {
        strings.push(chunk).expect("lines are short");
        inferred.push(chunk).expect("lines are short");
    }
    strings.finish().expect("lines are short");
    inferred.finish().expect("lines are short");
    assert_eq!(strings.counts(), blocks.counts);
    assert_eq!(strings.rejects(), blocks.rejects);
    let expected: Vec<_> = rows::check_decoded(&table, &blocks).iter().flat_map(rows::texts).collect();
    let found: Vec<_> = strings.take_batches().iter().flat_map(rows::texts).collect();
    assert_eq!(found, expected);
    assert_eq!(inferred.counts().total, blocks.counts.total);
}

fn compare_crate(body: &str, columns: usize, line_end: &[u8]) {
    let terminator = match line_end {
        b"\n" => ::csv::Terminator::Any(b'\n'),
        _ => ::csv::Terminator::CRLF,
    };
    let mut reader = ::csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .terminator(terminator)
        .from_reader(body.as_bytes());
    let records = reader.records().map(|record| {
        let record = record.expect("the body is UTF-8");
        record.iter().map(ToOwned::to_owned).collect()
    });
    compare(body, columns, records, "the csv crate's");
}

/// Our rows of a body are another reader's records of the table's width, the others are rejected.
fn compare(body: &str, columns: usize, records: impl Iterator<Item = Vec<String>>, whose: &str) {
    let table = tables::of_strings(columns);
    let ours = load(&table, &Options::plain(), body.as_bytes(), usize::MAX);
    let mut expected = Vec::new();
    let mut others = 0;
    for record in records {
        if record.len() == columns {
            expected.push(record.into_iter().map(Some).collect::<Vec<_>>());
        } else {
            others += 1;
        }
    }
    let found: Vec<_> = rows::check_decoded(&table, &ours).iter().flat_map(rows::texts).collect();
    assert_eq!(found, expected, "ours, and {whose}");
    assert_eq!(ours.counts.filtered, others, "rows of another width, and {whose}");
}
