//! Parquet, ORC and Arrow: in one piece against in chunks, and damage of any kind.
//!
//! A library that panics on a damaged file is not a finding: decoders turn it into an error. Everything else is one, and so is
//! excessive memory for a small file. ORC is read by code of our own, which may not panic at all.

use crate::rows;
use crate::tables;
use std::sync::{Arc, Once};
use tributary_decode::{
    BlockBuilder, BodyFormat, ColumnarFormat, Decoded, FieldNames, LoadHost, LoadRules, PlainHost, Target,
};
use tributary_types::TableDef;

/// Two bytes choose the format, strictness, the table and the chunks, the others are the body.
pub fn columnar(data: &[u8]) {
    let Some((&[choice, cuts], body)) = data.split_first_chunk::<2>() else { return };
    expect_panics();
    let format = match choice {
        0x80.. => ColumnarFormat::Orc,
        _ if choice & 1 == 0 => ColumnarFormat::Parquet,
        _ => ColumnarFormat::Arrow,
    };
    let rules = LoadRules { strict: choice & 2 != 0, ..LoadRules::default() };
    for table in [tables::pick(choice >> 2), tables::of_strings(3)] {
        let whole = load(&table, format, rules, body, usize::MAX);
        if let Ok(whole) = &whole {
            rows::check_decoded(&table, whole);
        }
        // Which of two errors is first depends on the chunks.
        match (&whole, load(&table, format, rules, body, usize::from(cuts) + 1)) {
            (Ok(whole), Ok(cut)) => rows::assert_same(&table, whole, &cut),
            (Err(whole), Err(cut)) => [whole, &cut].into_iter().for_each(|error| check_error(format, error)),
            (whole, cut) => panic!("{whole:?} in one piece, {cut:?} in chunks"),
        }
    }
    fields(format, body);
}

/// The text for a caught panic.
fn check_error(format: ColumnarFormat, error: &str) {
    assert!(format != ColumnarFormat::Orc || !error.contains("the file is damaged ("), "{error}");
}

/// libFuzzer ends the process in the hook, before a panic can be caught. An uncaught one still ends it.
fn expect_panics() {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| std::panic::set_hook(Box::new(|panic| eprintln!("{panic}"))));
}

fn host() -> Arc<dyn LoadHost> {
    Arc::new(PlainHost::default())
}

fn load(
    table: &Arc<TableDef>,
    format: ColumnarFormat,
    rules: LoadRules,
    body: &[u8],
    step: usize,
) -> Result<Decoded, String> {
    let target = Target::new(table, None).expect("all columns");
    let builder = BlockBuilder::new(target.schema());
    let mut decoder =
        BodyFormat::Columnar(format).decoder(target, rules, builder, &host()).expect("a legal format");
    let mut blocks = Vec::new();
    let mut read = || {
        for chunk in body.chunks(step) {
            decoder.push(chunk)?;
            while decoder.resume()? {}
        }
        decoder.finish()?;
        while decoder.resume()? {}
        blocks.extend(decoder.take_blocks());
        Ok(())
    };
    read().map_err(|error: tributary_types::SqlError| error.detail_text().to_owned())?;
    Ok(Decoded { blocks, counts: decoder.counts(), rejects: decoder.rejects().into_owned() })
}

/// Columns for the query engine have the schema that they say.
fn fields(format: ColumnarFormat, body: &[u8]) {
    let fields = BodyFormat::Columnar(format).fields(FieldNames::OfBody, &[], &host());
    let mut fields = fields.expect("a legal format");
    if let Err(error) = fields.push(body).and_then(|()| fields.finish()) {
        return check_error(format, error.detail_text());
    }
    loop {
        match fields.resume() {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => return check_error(format, error.detail_text()),
        }
    }
    for batch in fields.take_batches() {
        assert_eq!(batch.schema(), fields.schema().expect("there was a batch"));
    }
}
