use super::*;
use crate::blocks::builder::BlockBuilder;
use crate::testing::{all_types_table, rows, sample};
use crate::{CsvDecoder, CsvFormat, LoadRules, Target};

/// A block of `count` rows of all types; every seventh value is NULL.
fn block_of(count: u64) -> (std::sync::Arc<tributary_types::TableDef>, Block, Vec<Vec<String>>) {
    let table = all_types_table();
    let rules = LoadRules { strict: true, ..LoadRules::default() };
    let target = Target::new(&table, None).unwrap();
    let mut decoder = CsvDecoder::new(target, CsvFormat::default(), rules).unwrap();
    let mut texts = Vec::new();
    for row in 0..count {
        let value = |(index, column): (usize, &tributary_types::ColumnDef)| match (row + index as u64) % 7 {
            3 => "\\N".to_owned(),
            _ => sample(column.data_type, row + 1),
        };
        let fields: Vec<String> = table.schema.columns.iter().enumerate().map(value).collect();
        decoder.push((fields.join("\t") + "\n").as_bytes()).unwrap();
        texts.push(fields);
    }
    decoder.finish().unwrap();
    assert_eq!(decoder.counts().filtered, 0, "{:?}", decoder.rejects());
    let mut blocks = decoder.take_blocks();
    assert_eq!(blocks.len(), 1);
    (table, blocks.remove(0), texts)
}

#[test]
fn a_block_read_back_from_its_bytes_has_the_same_rows_packed_and_aligned() {
    for count in [1, 2, 7, 8, 9, 100, 1023, 1024, 1025, 3000] {
        let (table, block, texts) = block_of(count);
        assert_eq!(block.is_aligned(), count >= 1024);
        assert_eq!(block.row_count(), count as usize);
        assert_eq!(block.schema_version(), table.schema.version);
        let again = Block::from_bytes(block.bytes().clone()).unwrap();
        let values = rows(&table.schema, std::slice::from_ref(&again));
        assert_eq!(values, rows(&table.schema, &[block]));
        for (row, fields) in texts.iter().enumerate() {
            for (index, field) in fields.iter().enumerate() {
                assert_eq!(field == "\\N", values[row][index] == "NULL", "row {row}, column {index}");
            }
            let texts_of =
                |index: usize| if fields[index] == "\\N" { "NULL" } else { fields[index].as_str() };
            for index in [1, 2, 3, 4, 5, 8, 9, 11, 12, 13, 14] {
                assert_eq!(values[row][index], texts_of(index), "row {row}, column {index}");
            }
        }
    }
}

#[test]
fn a_block_at_an_odd_address_is_read_all_the_same() {
    let (table, block, _) = block_of(2000);
    let mut shifted = vec![0u8; 3];
    shifted.extend_from_slice(block.bytes());
    let again = Block::from_bytes(Bytes::from(shifted).slice(3..)).unwrap();
    assert_eq!(rows(&table.schema, &[again]), rows(&table.schema, &[block]));
}

#[test]
fn one_row_of_sixteen_columns_costs_its_data_and_two_bytes_per_column_at_most() {
    let table = crate::testing::table(
        (0..16)
            .map(|id| {
                let data_type = if id % 2 == 0 { DataType::BigInt } else { DataType::Varchar { bytes: 50 } };
                crate::testing::column(id, &format!("c{id}"), data_type)
            })
            .collect(),
    );
    let mut builder = BlockBuilder::new(&table.schema);
    for index in 0..16 {
        if index % 2 == 0 { builder.push_i64(index, 1) } else { builder.push_text(index, "ten bytes!") }
    }
    builder.finish_row();
    let block = builder.finish().unwrap();
    assert!(block.len_bytes() <= 8 * (8 + 10) + 16 * 2, "{} bytes", block.len_bytes());
}

#[test]
fn a_block_cut_anywhere_or_with_bytes_behind_it_is_refused() {
    for count in [3, 1030] {
        let (_, block, _) = block_of(count);
        let step = if count < 1024 { 1 } else { 997 };
        for length in (0..block.len_bytes()).step_by(step) {
            assert!(
                Block::from_bytes(block.bytes().slice(..length)).is_err(),
                "{length} of {}",
                block.len_bytes()
            );
        }
        let longer: Vec<u8> = block.bytes().iter().copied().chain([0]).collect();
        assert!(Block::from_bytes(Bytes::from(longer)).is_err());
    }
}

#[test]
fn no_damage_of_one_byte_makes_a_reader_panic() {
    let (table, block, _) = block_of(5);
    for at in 0..block.len_bytes() {
        for flip in [0x01, 0x40, 0x80, 0xff] {
            let mut bytes = block.bytes().to_vec();
            bytes[at] ^= flip;
            if let Ok(damaged) = Block::from_bytes(Bytes::from(bytes)) {
                let _ = crate::blocks_to_batches(&table.schema, &[damaged]);
            }
        }
    }
}

#[test]
fn text_that_is_not_utf8_is_refused() {
    let table = crate::testing::table(vec![crate::testing::column(0, "c", DataType::String)]);
    for count in [1, 1500] {
        let mut builder = BlockBuilder::new(&table.schema);
        for _ in 0..count {
            builder.push_text(0, "é");
            builder.finish_row();
        }
        let mut bytes = builder.finish().unwrap().bytes().to_vec();
        let last = bytes.len() - 1;
        bytes[last] = b'x';
        let error = Block::from_bytes(Bytes::from(bytes)).unwrap_err();
        assert_eq!(error.to_string(), "block is damaged: text is not valid UTF-8");
    }
}

#[test]
fn an_unknown_format_is_named() {
    let error = Block::from_bytes(Bytes::from_static(&[9, 0, 0])).unwrap_err();
    assert!(error.to_string().contains("unknown format 9"), "{error}");
}

#[test]
fn numbers_of_all_lengths_survive_the_variable_length_form() {
    for number in [0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, 268_435_455, 268_435_456, u32::MAX] {
        let mut bytes = Vec::new();
        write_varint(&mut bytes, number);
        assert_eq!(bytes.len(), varint_len(number));
        let mut at = 0;
        assert_eq!(read_varint(&bytes, &mut at), Some(number));
        assert_eq!(at, bytes.len());
    }
}
