//! Messages of a topic: combined into chunks versus one by one, and JSON versus `serde_json`.
//!
//! A message consists of whole rows, whatever it contains: none extends into the next. Enclosed fields of CSV may do so, as in
//! Doris, so they are excluded here.

use crate::json::check_legal;
use crate::rows;
use crate::tables;
use std::sync::Arc;
use tributary_decode::{
    BlockBuilder, BodyFormat, CsvFormat, Decoded, JsonFormat, LoadRules, PlainHost, Target,
};
use tributary_kafka::{Chunk, Framing};

/// Ends a message in the input.
const END: u8 = 0xff;

/// A byte chooses the format, another the chunks; the others are messages, each with an end.
pub fn messages(data: &[u8]) {
    let Some((&[choice, cuts], bytes)) = data.split_first_chunk::<2>() else { return };
    let messages: Vec<&[u8]> = bytes.split(|&byte| byte == END).collect();
    // A byte order mark is skipped at the beginning of a body.
    if messages.iter().any(|message| message.starts_with("\u{feff}".as_bytes())) {
        return;
    }
    let (framing, format) = match choice & 1 {
        0 => (
            Framing::Lines,
            BodyFormat::Csv(CsvFormat { column_separator: b",".to_vec(), ..CsvFormat::default() }),
        ),
        _ => (Framing::OneLine, BodyFormat::Json(JsonFormat::default())),
    };
    let rules = LoadRules { strict: choice & 2 != 0, ..LoadRules::default() };
    let together = load(&chunk(&messages, framing), &format, rules, usize::from(cuts) + 1);
    let (mut rows, mut rejects) = (Vec::new(), Vec::new());
    for message in &messages {
        let one = chunk(&[message], framing);
        let lines = one.bytes.iter().filter(|&&byte| byte == b'\n').count();
        assert!(framing == Framing::Lines || lines == 1, "{lines} lines of one message");
        let decoded = load(&one, &format, rules, usize::MAX);
        if framing == Framing::OneLine {
            check_legal(message, &decoded);
        }
        rows.extend(texts(&decoded));
        rejects.extend(decoded.rejects.into_iter().map(|reject| reject.reason));
    }
    assert_eq!(texts(&together), rows);
    let together: Vec<String> = together.rejects.into_iter().map(|reject| reject.reason).collect();
    // Only the first ones are stored.
    assert_eq!(together[..], rejects[..together.len()]);
}

fn chunk(messages: &[&[u8]], framing: Framing) -> Chunk {
    let mut chunk = Chunk::default();
    messages.iter().for_each(|message| chunk.push(message, framing));
    assert_eq!(chunk.messages, messages.len() as u64);
    assert_eq!(chunk.bytes.last(), Some(&b'\n'));
    chunk
}

fn load(chunk: &Chunk, format: &BodyFormat, rules: LoadRules, step: usize) -> Decoded {
    let target = Target::new(&tables::of_strings(2), None).expect("all columns");
    let builder = BlockBuilder::new(target.schema());
    let mut decoder = format
        .decoder(target, rules, builder, &(Arc::new(PlainHost::default()) as _))
        .expect("a legal format");
    for piece in chunk.bytes.chunks(step) {
        decoder.push(piece).expect("a bad row is no error");
    }
    decoder.finish().expect("a bad row is no error");
    Decoded {
        blocks: decoder.take_blocks(),
        counts: decoder.counts(),
        rejects: decoder.rejects().into_owned(),
    }
}

fn texts(decoded: &Decoded) -> Vec<Vec<Option<String>>> {
    rows::check_decoded(&tables::of_strings(2), decoded).iter().flat_map(rows::texts).collect()
}
