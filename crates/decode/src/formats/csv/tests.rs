use super::*;
use crate::formats::body::{FieldDecoder, FieldNames};
use crate::testing::{column, lines, load_forked, table};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use std::sync::Arc;
use tributary_types::{DataType, TableDef};

fn commas() -> CsvFormat {
    CsvFormat { column_separator: b",".to_vec(), ..CsvFormat::default() }
}

fn quoted() -> CsvFormat {
    CsvFormat { enclose: Some(b'"'), ..commas() }
}

fn texts(count: u32) -> Arc<TableDef> {
    table((0..count).map(|id| column(id, &format!("c{id}"), DataType::String)).collect())
}

fn people() -> Arc<TableDef> {
    table(vec![column(0, "id", DataType::Int).not_null(), column(1, "name", DataType::Varchar { bytes: 5 })])
}

fn decoder(table: &Arc<TableDef>, format: &CsvFormat, strict: bool) -> CsvDecoder {
    let rules = LoadRules { strict, ..LoadRules::default() };
    CsvDecoder::new(Target::new(table, None).unwrap(), format.clone(), rules).unwrap()
}

/// The load with the body given in these chunks.
fn load_chunks<'a>(
    table: &Arc<TableDef>,
    format: &CsvFormat,
    strict: bool,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> Decoded {
    let mut decoder = decoder(table, format, strict);
    for chunk in chunks {
        decoder.push(chunk).unwrap();
    }
    decoder.finish().unwrap();
    decoder.into_decoded()
}

/// The load with the body given in chunks of `chunk_bytes`.
fn load_in(table: &Arc<TableDef>, format: &CsvFormat, body: &[u8], chunk_bytes: usize) -> Decoded {
    load_chunks(table, format, false, body.chunks(chunk_bytes.max(1)))
}

/// The load, which must not depend on where the body is cut.
fn load(table: &Arc<TableDef>, format: &CsvFormat, body: &[u8]) -> Decoded {
    load_strict_or_not(table, format, false, body)
}

fn load_strict_or_not(table: &Arc<TableDef>, format: &CsvFormat, strict: bool, body: &[u8]) -> Decoded {
    let whole = load_chunks(table, format, strict, [body]);
    let same = |cut: &Decoded, place: &str| {
        assert_eq!(lines(table, cut), lines(table, &whole), "{place}");
        assert_eq!(cut.counts, whole.counts, "{place}");
        assert_eq!(cut.rejects, whole.rejects, "{place}");
    };
    for chunk_bytes in [1, 2, 3, 7, 64] {
        let cut = load_chunks(table, format, strict, body.chunks(chunk_bytes));
        same(&cut, &format!("chunks of {chunk_bytes}"));
    }
    for at in 1..body.len().min(200) {
        let (left, right) = body.split_at(at);
        same(&load_chunks(table, format, strict, [left, right]), &format!("cut at {at}"));
        if let Some(forked) = load_forked(decoder(table, format, strict), body, at) {
            same(&forked, &format!("forked at {at}"));
        }
    }
    whole
}

fn loaded(table: &Arc<TableDef>, options: &CsvFormat, body: &str) -> Vec<String> {
    let decoded = load(table, options, body.as_bytes());
    assert_eq!(decoded.rejects, [], "{body}");
    lines(table, &decoded)
}

#[test]
fn lines_are_rows_whatever_ends_them_and_empty_ones_are_not() {
    let expected = ["1|a", "2|b", "3|"];
    for body in ["1,a\n2,b\n3,", "1,a\r\n2,b\r\n3,\r\n", "\u{feff}1,a\n\n\r\n2,b\n3,\n\n"] {
        assert_eq!(loaded(&people(), &commas(), body), expected, "{body:?}");
        assert_eq!(loaded(&people(), &quoted(), body), expected, "{body:?} with enclose");
    }
}

#[test]
fn an_empty_body_is_no_rows() {
    assert_eq!(load(&people(), &commas(), b"").counts, Counts::default());
    assert_eq!(load(&people(), &quoted(), b"").counts, Counts::default());
    assert_eq!(load(&people(), &commas(), b"\xef\xbb\xbf").counts, Counts::default());
    assert_eq!(load(&people(), &quoted(), b"\xef\xbb\xbf").counts, Counts::default());
}

#[test]
fn null_is_the_bare_backslash_n_only() {
    let body = "1,\\N\n2,NULL\n3,\n";
    assert_eq!(loaded(&people(), &commas(), body), ["1|NULL", "2|NULL", "3|"]);
    let decoded = load(&people(), &commas(), b"2,NULL\n");
    let batch = crate::blocks_to_batches(&people().schema, &decoded.blocks).unwrap().remove(0);
    assert_eq!(batch.column(1).null_count(), 0);
    let empty = CsvFormat { empty_field_as_null: true, ..commas() };
    assert_eq!(loaded(&people(), &empty, "1,\n"), ["1|NULL"]);
    let trimmed = CsvFormat { trim_double_quotes: true, ..commas() };
    assert_eq!(loaded(&people(), &trimmed, "\"1\",\"\\N\"\n2,\"\n3,\"x\n"), ["1|\\N", "2|\"", "3|\"x"]);
    assert_eq!(loaded(&people(), &quoted(), "1,\"\\N\"\n"), ["1|\\N"]);
}

#[test]
fn separators_and_delimiters_may_be_long_and_invisible() {
    let options = CsvFormat {
        column_separator: b"||".to_vec(),
        line_delimiter: b"\x01\x02\n".to_vec(),
        ..CsvFormat::default()
    };
    let body = "1||a|b\x01\x02\n2||x\x01\n\x01\x02\n3||z";
    assert_eq!(loaded(&people(), &options, body), ["1|a|b", "2|x\u{1}\n", "3|z"]);
    let with_enclose = CsvFormat { enclose: Some(b'\''), ..options };
    assert_eq!(loaded(&people(), &with_enclose, body), ["1|a|b", "2|x\u{1}\n", "3|z"]);
    let overlapping = CsvFormat { line_delimiter: b"aa".to_vec(), ..commas() };
    assert_eq!(loaded(&people(), &overlapping, "1,xaaaa2,yaa3,b"), ["1|x", "2|y", "3|b"]);
}

#[test]
fn the_first_lines_can_be_skipped() {
    let skipping = CsvFormat { skip_lines: 2, ..commas() };
    assert_eq!(loaded(&people(), &skipping, "id,name\nint,text\n1,a\n"), ["1|a"]);
    let enclosed = CsvFormat { skip_lines: 1, ..quoted() };
    assert_eq!(loaded(&people(), &enclosed, "\"a\nb\",x\n1,a\n"), ["1|a"]);
}

#[test]
fn enclosed_fields_hold_separators_delimiters_and_escapes() {
    let table = texts(3);
    let options = CsvFormat { enclose: Some(b'\''), escape: Some(b'\\'), ..commas() };
    assert_eq!(loaded(&table, &options, "a,'b,\\'c',d\n"), ["a|b,'c|d"]);
    assert_eq!(loaded(&table, &options, "'x\ny','','\\\\'\r\n"), ["x\ny||\\"]);
    assert_eq!(loaded(&table, &options, "'it''s',a'b,'c'd\n"), ["it's|a'b|'c'd"]);
    assert_eq!(loaded(&table, &options, "a,b,'never closed\n1,2"), ["a|b|never closed\n1,2"]);
    assert_eq!(loaded(&table, &options, "a\\,b,c\n"), ["a\\|b|c"]);
}

#[test]
fn a_mark_with_text_behind_it_closes_nothing_and_is_data() {
    let table = texts(3);
    let cases = [
        ("\"g\"hi,x,y\n", "\"g\"hi|x|y"),
        ("x,y,\"g\"hi\n", "x|y|\"g\"hi"),
        ("x,y,\"g\"hi", "x|y|\"g\"hi"),
        ("x,y,\"g\"hi\r\n", "x|y|\"g\"hi"),
        ("\"aaa\"bbb\"ccc\",\"\"aa\"bb\",\"aa\"bb\"\"\n", "aaa\"bbb\"ccc|\"aa\"bb|aa\"bb\""),
        ("\"aaa\"bbb\"ccc\",\"\"aa\"bb\",\"aa\"bb\"\"", "aaa\"bbb\"ccc|\"aa\"bb|aa\"bb\""),
        ("1,\"aa,\"bbb\",cc\"\n", "1|aa,\"bbb|cc\""),
        ("1,\"{\"a\":\"\"}\",\"[\"\"]\"\n", "1|{\"a\":\"\"}|[\"]"),
        ("1,\"[\"\"x\"]\",\"\"\"\"\n", "1|[\"\"x\"]|\""),
        ("\"say \"\"hi\"\", he\",\"a\nb\",\"\"\n", "say \"hi\", he|a\nb|"),
        ("1,\"x\ny\"z\",\"u\n\"v\nw,,", "1|x\ny\"z|\"u\n\"v"),
    ];
    for (body, expected) in cases {
        let decoded = load(&table, &quoted(), body.as_bytes());
        assert_eq!(lines(&table, &decoded).first().map(String::as_str), Some(expected), "{body:?}");
    }
    let escaped = CsvFormat { escape: Some(b'\\'), ..quoted() };
    assert_eq!(loaded(&table, &escaped, "\"a\\\"b\"c\",\"\\\"d\",\"e\\\\\"\n"), ["a\"b\"c|\"d|e\\"]);
    let wide = CsvFormat { column_separator: b"||".to_vec(), ..quoted() };
    assert_eq!(loaded(&table, &wide, "\"a\"|b\"||\"c\"||\"d\"|\n"), ["a\"|b|c|\"d\"|"]);
}

/// As Doris reads them: a field loses a mark at either end if it has both, and is taken literally otherwise. `trim_double_quotes`
/// changes nothing, because enclosed fields have lost their marks.
#[test]
fn a_field_loses_its_marks_if_they_are_at_both_of_its_ends() {
    let cases = [
        (r#""aaa""#, "aaa"),
        (r#""""#, ""),
        (r#"""aaa"#, r#"""aaa"#),
        (r#"aaa"""#, r#"aaa"""#),
        (r#"""aaa"""#, r#""aaa""#),
        (r#""""aaa""""#, r#""aaa""#),
        (r#""a""b""#, r#"a"b"#),
        (r#""a"b""#, r#"a"b"#),
        (r#""a"b"#, r#""a"b"#),
    ];
    for (field, value) in cases {
        for escape in [None, Some(b'\\')] {
            for trim_double_quotes in [false, true] {
                let format = CsvFormat { escape, trim_double_quotes, ..quoted() };
                for body in [format!("1,{field},x\n"), format!("1,x,{field}")] {
                    let expected =
                        if body.ends_with('\n') { format!("1|{value}|x") } else { format!("1|x|{value}") };
                    assert_eq!(loaded(&texts(3), &format, &body), [expected], "{format:?} {body:?}");
                }
            }
        }
    }
}

#[test]
fn an_enclosed_field_loses_one_pair_of_marks_and_no_second() {
    let options = CsvFormat { trim_double_quotes: true, escape: Some(b'\\'), ..quoted() };
    let body = "\"\\\"abc\\\"def\\\"\",\"\"\"x\"\"\"\n";
    assert_eq!(loaded(&texts(2), &options, body), ["\"abc\"def\"|\"x\""]);
}

#[test]
fn a_row_with_another_number_of_fields_is_filtered_with_doriss_reason() {
    let decoded = load(&people(), &commas(), b"1,a,x\n2,b\n3\n");
    assert_eq!(lines(&people(), &decoded), ["2|b"]);
    assert_eq!(decoded.counts, Counts { total: 3, loaded: 1, filtered: 2, unselected: 0 });
    assert_eq!(
        decoded.rejects[0].to_string(),
        "Reason: actual column number in csv file is  more than  schema column number.actual number: 3, schema \
         column number: 2; line delimiter: [\n], column separator: [,], result values:[1, a, x, ]. src line [1,a,x]; "
    );
    assert!(decoded.rejects[1].reason.contains("is  less than  schema column number.actual number: 1"));
    let enclosed = load(&people(), &quoted(), b"3\n");
    assert!(enclosed.rejects[0].reason.contains("column separator: [,], enclose:[\"] result values:[3, ]"));
}

#[test]
fn strict_filters_what_lenient_makes_null_or_cuts() {
    let table = table(vec![column(0, "n", DataType::Int), column(1, "s", DataType::Varchar { bytes: 5 })]);
    let body = b"x,a\n1,ab\xc3\xa9\xc3\xa9\n2,b\n";
    let lenient = load(&table, &commas(), body);
    assert_eq!(lines(&table, &lenient), ["NULL|a", "1|abé", "2|b"]);
    assert_eq!(lenient.counts.filtered, 0);
    let strict = load_strict_or_not(&table, &commas(), true, body);
    assert_eq!(lines(&table, &strict), ["2|b"]);
    assert_eq!(
        strict.rejects[0].to_string(),
        "Reason: column(n) value is incorrect while strict mode is true, src value is x. src line [x a]; "
    );
    assert_eq!(
        strict.rejects[1].to_string(),
        "Reason: column_name[s], the length of input is too long than schema. first 32 bytes of input str: \
         [abéé] schema length: 5; actual length: 6; . src line []; "
    );
}

#[test]
fn a_null_in_a_not_null_column_is_filtered_in_both_modes() {
    for strict in [false, true] {
        let decoded = load_strict_or_not(&people(), &commas(), strict, b"\\N,a\n");
        assert_eq!(
            decoded.rejects[0].to_string(),
            "Reason: column(id) values is null while columns is not nullable. src line [NULL a]; "
        );
    }
    let lenient = load(&people(), &commas(), b"x,a\n");
    assert_eq!(lenient.first_reason(), Some("column(id) values is null while columns is not nullable"));
    let strict = load_strict_or_not(&people(), &commas(), true, b"x,a\n");
    let reason = "column(id) value is incorrect while strict mode is true, src value is x";
    assert_eq!(strict.first_reason(), Some(reason));
}

#[test]
fn a_line_that_is_not_utf8_is_filtered_alone() {
    for options in [commas(), quoted()] {
        let decoded = load(&people(), &options, b"1,a\n2,\xff\n3,c\n");
        assert_eq!(lines(&people(), &decoded), ["1|a", "3|c"]);
        assert!(
            decoded.first_reason().unwrap().starts_with("Unable to display, only support csv data in utf8")
        );
    }
}

#[test]
fn a_carriage_return_of_a_field_or_separator_stays() {
    assert_eq!(loaded(&people(), &quoted(), "1,a\n2,\"x\r"), ["1|a", "2|x\r"]);
    let options = CsvFormat { column_separator: b"\r".to_vec(), ..quoted() };
    assert_eq!(loaded(&people(), &options, "1\r\n2\rb\n"), ["1|", "2|b"]);
}

#[test]
fn a_separator_that_is_not_utf8_cuts_no_character_into_a_loaded_row() {
    let latin = CsvFormat { column_separator: b"\xa9".to_vec(), ..CsvFormat::default() };
    for options in [latin.clone(), CsvFormat { enclose: Some(b'"'), ..latin }] {
        let decoded = load(&people(), &options, b"1\xa9a\n2\xc3\xa9b\n\xc3\xa9\n3\xa9c\n");
        assert_eq!(lines(&people(), &decoded), ["1|a", "3|c"]);
        assert_eq!(decoded.counts.filtered, 2);
    }
    let latin = CsvFormat { line_delimiter: b"\xa9".to_vec(), ..commas() };
    for options in [latin.clone(), CsvFormat { enclose: Some(b'"'), ..latin }] {
        let decoded = load(&people(), &options, b"1,a\xa92,\xc3\xa93,c");
        assert_eq!(lines(&people(), &decoded), ["1|a", "3|c"]);
    }
}

#[test]
fn a_separator_that_begins_with_the_delimiter_is_found_across_chunks() {
    let options = CsvFormat { column_separator: b"\n,".to_vec(), ..quoted() };
    assert_eq!(loaded(&people(), &options, "1\n,a\n2\n,\"b\"\n"), ["1|a", "2|b"]);
    let options = CsvFormat { column_separator: b"|".to_vec(), line_delimiter: b"|||".to_vec(), ..quoted() };
    assert_eq!(loaded(&people(), &options, "1|a|||2|\"b\"|||3|c"), ["1|a", "2|b", "3|c"]);
}

#[test]
fn fields_can_be_mapped_by_name_and_dropped() {
    let names: Vec<String> = ["name", "junk", "ID"].map(str::to_owned).to_vec();
    let target = Target::with_ignored_fields(&people(), &names).unwrap();
    let mut decoder = CsvDecoder::new(target, commas(), LoadRules::default()).unwrap();
    decoder.push(b"a,zzz,1\nb,,2").unwrap();
    decoder.finish().unwrap();
    assert_eq!(lines(&people(), &decoder.into_decoded()), ["1|a", "2|b"]);
}

#[test]
fn blocks_can_be_taken_while_the_body_still_comes() {
    let mut decoder =
        CsvDecoder::new(Target::new(&people(), None).unwrap(), commas(), LoadRules::default()).unwrap();
    let mut rows = 0;
    let mut largest = 0;
    for number in 0..30_000 {
        decoder.push(format!("{number},n\n").as_bytes()).unwrap();
        for block in decoder.take_blocks() {
            rows += block.row_count();
            largest = largest.max(block.row_count());
        }
    }
    assert_eq!((rows, largest), (3 * 8192, 8192));
    decoder.finish().unwrap();
    assert_eq!(decoder.take_blocks().iter().map(Block::row_count).collect::<Vec<_>>(), [30_000 - 3 * 8192]);
    assert_eq!(decoder.counts().loaded, 30_000);
}

#[test]
fn wide_rows_end_a_block_by_their_bytes() {
    let table = texts(1);
    let body = ("x".repeat(100_000) + "\n").repeat(100);
    let decoded = load_in(&table, &commas(), body.as_bytes(), 64 * 1024);
    assert_eq!(decoded.blocks.iter().map(Block::row_count).collect::<Vec<_>>(), [42, 42, 16]);
}

#[test]
fn an_empty_separator_is_refused() {
    let options = CsvFormat { column_separator: Vec::new(), ..CsvFormat::default() };
    let error =
        CsvDecoder::new(Target::new(&people(), None).unwrap(), options, LoadRules::default()).unwrap_err();
    assert!(error.message.contains("column_separator is empty"), "{error}");
}

#[test]
fn the_decoder_and_the_csv_crate_read_the_same_from_generated_bodies() {
    let table = texts(3);
    let mut random = StdRng::seed_from_u64(11);
    let pieces = ["a", "é", "漢", "1", " ", ",", "\n", "\"\"", "x,y", "\\"];
    let bare = ["a", "é", "漢", "1", " ", "x\"y", "\\"];
    for _ in 0..300 {
        let mut body = String::new();
        for _ in 0..random.random_range(1..20) {
            for field in 0..3 {
                let count = random.random_range(0..6);
                if random.random() {
                    let text: String = (0..count).map(|_| *pieces.choose(&mut random).unwrap()).collect();
                    body += &format!("\"{text}\"");
                } else {
                    let text: String = (0..count).map(|_| *bare.choose(&mut random).unwrap()).collect();
                    body += &text;
                }
                body += if field < 2 { "," } else { ["\n", "\r\n"][random.random_range(0..2)] };
            }
        }
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(body.as_bytes());
        let expected: Vec<String> =
            reader.records().map(|record| record.unwrap().iter().collect::<Vec<_>>().join("|")).collect();
        let decoded = load_in(&table, &quoted(), body.as_bytes(), random.random_range(1..50));
        assert_eq!(lines(&table, &decoded), expected, "{body:?}");
    }
}

#[test]
fn lines_without_quotes_are_read_as_the_csv_crate_reads_them() {
    let table = texts(3);
    let mut random = StdRng::seed_from_u64(12);
    let pieces = ["a", "é", "漢", "1", " ", "\"", "a text of many bytes"];
    for ends in [b"\n", b"\x02"] {
        for _ in 0..200 {
            let mut body = Vec::new();
            for _ in 0..random.random_range(1..40) {
                for field in 0..3 {
                    for _ in 0..random.random_range(0..6) {
                        body.extend_from_slice(pieces.choose(&mut random).unwrap().as_bytes());
                    }
                    let end: &[u8] = match (field, ends) {
                        (0 | 1, _) => b",",
                        (_, b"\n") if random.random() => b"\r\n",
                        _ => ends,
                    };
                    body.extend_from_slice(end);
                }
            }
            let mut reader = csv::ReaderBuilder::new();
            if ends != b"\n" {
                reader.terminator(csv::Terminator::Any(ends[0]));
            }
            let mut reader = reader.has_headers(false).quoting(false).from_reader(&body[..]);
            let expected: Vec<String> =
                reader.records().map(|record| record.unwrap().iter().collect::<Vec<_>>().join("|")).collect();
            let format = CsvFormat { line_delimiter: ends.to_vec(), ..commas() };
            for chunk_bytes in [random.random_range(1..200), body.len()] {
                let decoded = load_in(&table, &format, &body, chunk_bytes);
                assert_eq!(lines(&table, &decoded), expected, "{:?}", String::from_utf8_lossy(&body));
            }
        }
    }
}

/// The fields of a body as texts, with their names first.
fn strings(names: FieldNames<'_>, format: &CsvFormat, body: &[u8]) -> (Vec<Vec<String>>, CsvStrings) {
    let read = |chunks: Vec<&[u8]>| {
        let mut strings = CsvStrings::new(names, format.clone()).unwrap();
        chunks.into_iter().for_each(|chunk| strings.push(chunk).unwrap());
        strings.finish().unwrap();
        let schema = strings.schema().unwrap();
        let mut rows = vec![schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>()];
        rows.extend(strings.take_batches().iter().flat_map(crate::testing::batch_rows));
        (rows, strings)
    };
    let whole = read(vec![body]);
    for at in 1..body.len() {
        let (left, right) = body.split_at(at);
        assert_eq!(read(vec![left, right]).0, whole.0, "cut at {at}");
    }
    whole
}

#[test]
fn texts_for_the_query_engine_have_the_names_given_or_numbers() {
    let names = ["k1".to_owned(), "tmp".to_owned()];
    let (rows, given) = strings(FieldNames::Given(&names), &commas(), b"1,a\n2,\\N\n3\n");
    assert_eq!(rows, [["k1", "tmp"], ["1", "a"], ["2", "NULL"]]);
    assert_eq!(given.counts(), Counts { total: 3, loaded: 2, filtered: 1, unselected: 0 });
    assert!(given.rejects()[0].reason.contains("less than"));

    let nothing = CsvStrings::new(FieldNames::Numbered, commas()).unwrap();
    assert!(nothing.schema().unwrap_err().message.contains("The first line is empty"));
    for names in [FieldNames::Numbered, FieldNames::OfBody] {
        let (rows, numbered) = strings(names, &commas(), b"1,a\n2\n3,b,c");
        assert_eq!(rows, [["c1", "c2"], ["1", "a"], ["2", "NULL"], ["3", "b"]]);
        assert_eq!(numbered.counts().loaded, 3);
    }
}

#[test]
fn texts_for_the_query_engine_have_the_names_that_the_body_gives_them() {
    let expected = [["id", "the name"], ["1", "a"], ["2", "b"]];
    let named = |header| CsvFormat { header, skip_lines: 7, ..quoted() };
    let names = named(CsvHeader::Names);
    let body = b"\xef\xbb\xbfid,\"the name \"\r\n1,a\n\n2,b";
    let (rows, read) = strings(FieldNames::OfBody, &names, body);
    assert_eq!(rows, expected);
    assert_eq!(read.counts(), Counts { total: 2, loaded: 2, filtered: 0, unselected: 0 });
    let types = named(CsvHeader::NamesAndTypes);
    let (rows, _) = strings(FieldNames::OfBody, &types, b"id,the name\nint,\xff\n1,a\n2,b\n");
    assert_eq!(rows, expected);
    let (rows, _) = strings(FieldNames::Numbered, &types, b"id,name\nint,string\n1,a\n");
    assert_eq!(rows, [["c1", "c2"], ["1", "a"]]);
    let mut garbled = CsvStrings::new(FieldNames::OfBody, names).unwrap();
    garbled.push(b"id,\xff\n1,a\n").unwrap();
    assert!(garbled.finish().unwrap_err().message.contains("names of the fields is not UTF-8"));
}

#[test]
fn a_first_line_of_nothing_but_separators_is_no_table() {
    let mut strings = CsvStrings::new(FieldNames::Numbered, CsvFormat::default()).unwrap();
    let line = [vec![b'\t'; 1_000_000], b"\n".to_vec()].concat();
    let error = strings.push(&line).unwrap_err();
    assert!(error.detail_text().contains("the first row has 1000001 fields, the limit is 16384"), "{error}");
}

#[test]
fn a_long_line_that_is_not_complete_counts_as_memory() {
    let mut strings = CsvStrings::new(FieldNames::Numbered, CsvFormat::default()).unwrap();
    strings.push(&[b'a'; 1000]).unwrap();
    assert_eq!(strings.held_bytes(), 0);
    strings.push(&vec![b'a'; 1_000_000]).unwrap();
    assert!(strings.held_bytes() >= 1_001_000);
    strings.push(b"\n").unwrap();
}

#[test]
fn a_body_is_forked_wherever_its_first_lines_are_over() {
    let table = people();
    let format = CsvFormat { skip_lines: 1, ..commas() };
    let body = "\u{feff}head\r\n1,a\r\n\n\u{feff}2,b\nx\n3,ccccccc\n\\N,d\r\n\r\n5,é\n6,last".as_bytes();
    // Which compares the rows of all forks with these.
    let whole = load(&table, &format, body);
    assert_eq!((whole.counts.total, whole.counts.loaded), (7, 4), "{:?}", whole.rejects);
    let forks = (0..=body.len()).filter_map(|at| load_forked(decoder(&table, &format, false), body, at));
    assert_eq!(forks.count(), body.len() + 1 - "\u{feff}head\r\n".len());
}

#[test]
fn a_body_whose_lines_can_not_be_told_apart_is_not_forked() {
    let table = people();
    let formats = [
        quoted(),
        CsvFormat { line_delimiter: b"||".to_vec(), ..commas() },
        CsvFormat { skip_lines: 100, ..commas() },
    ];
    for format in formats {
        let decoder = decoder(&table, &format, false);
        assert!(load_forked(decoder, b"1,a\n2,b||3,c\n", 6).is_none(), "{format:?}");
    }
}

#[test]
fn later_decoders_keep_no_more_rejected_rows_than_one() {
    let table = people();
    let body = b"x\n".repeat(crate::REJECTS_KEPT_MAX + 10);
    let whole = load_chunks(&table, &commas(), false, [&body[..]]);
    let mut decoder = decoder(&table, &commas(), false);
    decoder.push(&body[..2]).unwrap();
    let fork = decoder.fork().unwrap();
    let mut later = fork.decoder(BlockBuilder::new(&table.schema), 1).unwrap();
    later.push(&body[2..]).unwrap();
    assert_eq!(later.rejects().len(), crate::REJECTS_KEPT_MAX - 1);
    assert_eq!(later.rejects()[500].raw, whole.rejects[501].raw);
    assert_eq!(later.counts().filtered + 1, whole.counts.filtered);
}
