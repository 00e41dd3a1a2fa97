use super::*;
use crate::formats::body::{FieldDecoder, FieldNames};
use crate::rows::loader::LoadClock;
use crate::testing::{all_types_table, batch_rows, column, lines, load_forked, table};
use std::sync::Arc;
use tributary_types::{DefaultValue, TableDef};

mod differential;
mod differential_types;

/// Runs the load with the body in these chunks: returns the decoded rows, or the error.
fn load_chunks<'a>(
    target: &Target,
    format: &JsonFormat,
    rules: LoadRules,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Decoded, String> {
    let mut decoder = JsonDecoder::new(target.clone(), format, rules).unwrap();
    let outcome =
        chunks.into_iter().try_for_each(|chunk| decoder.push(chunk)).and_then(|()| decoder.finish());
    match outcome {
        Ok(()) => Ok(decoder.into_decoded()),
        Err(error) => Err(error.detail_text().to_owned()),
    }
}

/// The load, which must not depend on where the body is cut.
fn load_target(
    target: &Target,
    format: &JsonFormat,
    rules: LoadRules,
    body: &[u8],
) -> Result<Decoded, String> {
    let whole = load_chunks(target, format, rules, [body]);
    let table = target.table();
    let same = |cut: Result<Decoded, String>, place: String| match (&cut, &whole) {
        (Ok(cut), Ok(whole)) => {
            assert_eq!(lines(table, cut), lines(table, whole), "{place}");
            assert_eq!(cut.counts, whole.counts, "{place}");
            assert_eq!(cut.rejects, whole.rejects, "{place}");
        }
        (cut, whole) => assert_eq!(cut.as_ref().err(), whole.as_ref().err(), "{place}"),
    };
    for chunk_bytes in [1, 2, 3, 7, 64] {
        same(
            load_chunks(target, format, rules, body.chunks(chunk_bytes)),
            format!("chunks of {chunk_bytes}"),
        );
    }
    for at in 1..body.len().min(400) {
        let (left, right) = body.split_at(at);
        same(load_chunks(target, format, rules, [left, right]), format!("cut at {at}"));
        let decoder = JsonDecoder::new(target.clone(), format, rules).unwrap();
        if let Some(forked) = load_forked(decoder, body, at) {
            same(Ok(forked), format!("forked at {at}"));
        }
    }
    whole
}

fn load(table: &Arc<TableDef>, format: &JsonFormat, body: &str) -> Decoded {
    load_target(&Target::new(table, None).unwrap(), format, LoadRules::default(), body.as_bytes()).unwrap()
}

fn loaded(table: &Arc<TableDef>, format: &JsonFormat, body: &str) -> Vec<String> {
    let decoded = load(table, format, body);
    assert_eq!(decoded.rejects, [], "{body}");
    lines(table, &decoded)
}

/// Reasons and source lines of the rejected rows, and the rows that were loaded.
fn rejected(format: &JsonFormat, body: &str) -> (Vec<(String, String)>, Vec<String>) {
    let decoded = load(&people(), format, body);
    let rows = lines(&people(), &decoded);
    (decoded.rejects.into_iter().map(|reject| (reject.reason, reject.source_line)).collect(), rows)
}

fn broken(format: &JsonFormat, body: &str) -> String {
    let target = Target::new(&people(), None).unwrap();
    load_target(&target, format, LoadRules::default(), body.as_bytes()).unwrap_err()
}

fn people() -> Arc<TableDef> {
    table(vec![
        column(0, "id", DataType::Int).not_null(),
        column(1, "name", DataType::Varchar { bytes: 5 }),
        column(2, "info", DataType::String),
    ])
}

fn by_line() -> JsonFormat {
    JsonFormat::default()
}

fn array() -> JsonFormat {
    JsonFormat { read_by_line: false, strip_outer_array: true, ..by_line() }
}

fn document() -> JsonFormat {
    JsonFormat { read_by_line: false, ..by_line() }
}

fn with_paths(format: JsonFormat, paths: &str) -> JsonFormat {
    JsonFormat { paths: Some(JsonPaths::parse(paths).unwrap()), ..format }
}

fn with_root(format: JsonFormat, root: &str) -> JsonFormat {
    JsonFormat { root: Some(JsonPath::parse(root).unwrap()), ..format }
}

#[test]
fn lines_elements_and_a_document_are_rows() {
    let rows = ["1|a|x", "2|b|NULL", "3|NULL|é漢"];
    let objects = [
        r#"{"id":1,"name":"a","info":"x"}"#,
        r#" { "info" : null , "name":"b",	"id" : 2 } "#,
        r#"{"id":3,"info":"\u00e9漢","name":null}"#,
    ];
    let joined = |between: &str| objects.join(between);
    for body in [joined("\n"), joined("\r\n") + "\r\n", format!("\u{feff}{}\n\n  \n", joined("\n\n"))] {
        assert_eq!(loaded(&people(), &by_line(), &body), rows, "{body:?}");
    }
    for body in [format!("[{}]", joined(",")), format!("\u{feff} \n[\n {} \n] \n", joined(" ,\n"))] {
        assert_eq!(loaded(&people(), &array(), &body), rows, "{body:?}");
    }
    for (object, row) in objects.iter().zip(rows) {
        assert_eq!(loaded(&people(), &document(), &format!("\u{feff}\n{object}\n")), [row]);
    }
    let pretty = "{\n  \"id\": 1,\n  \"name\": \"a\"\n}\n";
    assert_eq!(loaded(&people(), &document(), pretty), ["1|a|NULL"]);
    let arrays = JsonFormat { read_by_line: true, ..array() };
    let body = format!("[{},{}]\n[]\n[{}]", objects[0], objects[1], objects[2]);
    assert_eq!(loaded(&people(), &arrays, &body), rows);
}

#[test]
fn lines_may_end_with_other_bytes() {
    let delimited = |delimiter: &[u8]| JsonFormat { line_delimiter: delimiter.to_vec(), ..by_line() };
    for delimiter in ["|", "||", "\u{1}\u{2}", "aa"] {
        let body = ["{\"id\":1}", "{\n\"id\":\n2}", "", "{\"id\":3}"].join(delimiter);
        assert_eq!(
            loaded(&people(), &delimited(delimiter.as_bytes()), &body),
            ["1|NULL|NULL", "2|NULL|NULL", "3|NULL|NULL"]
        );
    }
    let overlapping = loaded(&people(), &delimited(b"aa"), "{\"id\":1}aaaa{\"id\":2}aa");
    assert_eq!(overlapping, ["1|NULL|NULL", "2|NULL|NULL"]);
}

#[test]
fn a_body_without_rows_is_no_rows() {
    for format in [by_line(), array(), document()] {
        for body in ["", "\n \r\n", "\u{feff}", "\u{feff}\n"] {
            assert_eq!(load(&people(), &format, body).counts, Counts::default(), "{format:?} {body:?}");
        }
    }
    assert_eq!(load(&people(), &array(), " [ ] ").counts, Counts::default());
}

#[test]
fn fields_are_found_by_their_whole_names() {
    let body = [
        r#"{"ID":9,"id":1,"idx":{"id":5},"name":"a"}"#,
        r#"{"name":"b","x":[1,{"y":null}],"id":2,"x":"again"}"#,
        r#"{"\u0069d":3,"na\u006de":"c"}"#,
        r#"{"id":4,"id":40,"name":"d","name":null,"id":"x"}"#,
    ]
    .join("\n");
    let rows = ["1|a|NULL", "2|b|NULL", "3|c|NULL", "4|d|NULL"];
    assert_eq!(loaded(&people(), &by_line(), &body), rows, "the first of equal keys counts");
    let odd = table(vec![column(0, "a\"b", DataType::Int), column(1, "c\\d", DataType::Int)]);
    assert_eq!(loaded(&odd, &by_line(), "{\"a\\\"b\":1,\"c\\\\d\":2}\n{\"c\\\\d\":3}"), ["1|2", "NULL|3"]);
}

#[test]
fn the_header_columns_names_the_keys() {
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let target = Target::with_ignored_fields(&people(), &names(&["NAME", "skipped", "id"])).unwrap();
    let body = br#"{"id":1,"name":"no","NAME":"yes","info":"not asked for","skipped":[1]}"#;
    let decoded = load_target(&target, &by_line(), LoadRules::default(), body).unwrap();
    assert_eq!((lines(&people(), &decoded), decoded.rejects), (vec!["1|yes|NULL".to_owned()], vec![]));
}

#[test]
fn every_type_takes_numbers_texts_and_words_as_csv_takes_their_text() {
    let table = all_types_table();
    let body = concat!(
        r#"{"c0":true,"c1":-128,"c2":32767,"c3":-2147483648,"c4":9223372036854775807,"#,
        r#""c5":-99999999999999999999999999999999999999,"c6":1.5,"c7":1e400,"c8":12345678.995,"c9":20240501,"#,
        r#""c10":20240501101112,"c11":-0.10,"c12":1.10,"c13":123456789012345678901234567890123456789.5e-7,"c14":1e400,"c15":1e400,"c16":16909060,"c18":-0.10,"c19":101112.25}"#,
        "\n",
        r#"{"c0":"false","c1":" 7 ","c2":"7.9","c3":"1","c4":"2","c5":"3","c6":"1e3","c7":"-inf","c8":".5","#,
        r#""c9":"2024/5/1","c10":"2024-05-01T10:11:12.5","c11":"","c12":"null","c13":"\\N","c14":"{\"a\": [1]}","c15":"x","c16":"1.2.3.4","c17":"::1","c18":"\u0000é","c19":"9:5"}"#,
        "\n",
        r#"{"c0":0,"c1":true,"c2":false,"c3":null,"c8":true,"c11":true,"c12":false,"c13":true,"c14":true,"c18":true,"c19":true}"#,
    );
    assert_eq!(
        loaded(&table, &by_line(), body),
        [
            "true|-128|32767|-2147483648|9223372036854775807|-99999999999999999999999999999999999999|1.5|inf|12345679.00|\
         2024-05-01|2024-05-01T10:11:12|-0.10|1.10|123456789012345678901234567890123456789.5e-7|1e400|1e400|NULL|NULL|2d302e3130|10:11:12.250",
            "false|7|7|1|2|3|1000.0|-inf|0.50|2024-05-01|2024-05-01T10:11:12.500||null|\\N|{\"a\": [1]}|\"x\"|16909060|00000000000000000000000000000001|00c3a9|09:05:00.000",
            "false|1|0|NULL|NULL|NULL|NULL|NULL|1.00|NULL|NULL|1|0|1|true|NULL|NULL|NULL|31|00:00:01.000",
        ]
    );
    let target = Target::new(&table, None).unwrap();
    let strict = LoadRules { strict: true, ..LoadRules::default() };
    for (body, reason) in [
        (
            r#"{"c3":2147483648}"#,
            "column(c3) value is incorrect while strict mode is true, src value is 2147483648",
        ),
        (r#"{"c3":1e3}"#, "column(c3) value is incorrect while strict mode is true, src value is 1e3"),
        (r#"{"c3":[1, 2]}"#, "column(c3) value is incorrect while strict mode is true, src value is [1,2]"),
        (r#"{"c9":true}"#, "column(c9) value is incorrect while strict mode is true, src value is 1"),
        (
            r#"{"c11":"123456789"}"#,
            "column_name[c11], the length of input is too long than schema. first 32 bytes of input str: [123456789] \
             schema length: 8; actual length: 9; ",
        ),
    ] {
        let decoded = load_target(&target, &by_line(), strict, body.as_bytes()).unwrap();
        assert_eq!(decoded.first_reason(), Some(reason), "{body}");
        let lenient = load_target(&target, &by_line(), LoadRules::default(), body.as_bytes()).unwrap();
        assert_eq!(lenient.counts.loaded, 1, "{body}");
    }
}

#[test]
fn nested_values_become_json_text() {
    let table = table(vec![
        column(0, "s", DataType::String),
        column(1, "j", DataType::Json),
        column(2, "v", DataType::Varchar { bytes: 4 }),
    ]);
    let body = concat!(
        r#"{"s":{ "a" : [ 1.50 , "x y\n" ] },"j":[ {"k" : 1e2}, null ],"v":[1,2,3]}"#,
        "\n",
        r#"{"s":[],"j":"plain \"text\"","v":{}}"#,
        "\n",
        r#"{"s":{"\ud800":"\ud800"},"j":"[1, 2]"}"#,
        "\n",
        r#"{"j":"7","s":null}"#,
        "\n",
        r#"{"j":7.10,"s":7.10}"#,
    );
    assert_eq!(
        loaded(&table, &by_line(), body),
        [
            r#"{"a":[1.50,"x y\n"]}|[{"k":1e2},null]|[1,2"#,
            r#"[]|"plain \"text\""|{}"#,
            r#"{"\ud800":"\ud800"}|[1, 2]|NULL"#,
            "NULL|7|NULL",
            "7.10|7.10|NULL",
        ]
    );
    let as_strings = JsonFormat { num_as_string: true, ..by_line() };
    assert_eq!(
        loaded(&table, &as_strings, "{\"s\":{\"a\":[1, -2e3,true]},\"j\":1.0,\"v\":2}"),
        [r#"{"a":["1","-2e3",true]}|"1.0"|2"#]
    );
}

#[test]
fn a_missing_field_is_the_default_and_null_never_is() {
    let table = table(vec![
        column(0, "k", DataType::Int).not_null(),
        column(1, "d", DataType::Int).not_null().with_default(DefaultValue::Literal("7".into())),
        column(2, "t", DataType::DateTime { scale: 0 })
            .with_default(DefaultValue::CurrentTimestamp { scale: 0 }),
        column(3, "n", DataType::String),
    ]);
    let target = Target::new(&table, None).unwrap();
    let clock = LoadClock { now_micros: 86_400_000_000 + 1_500_000, ..LoadClock::default() };
    let rules = LoadRules { strict: false, clock };
    let body = concat!(
        "{\"k\":1}\n{\"k\":2,\"t\":null,\"d\":8}\n{\"d\":1}\n{\"k\":null}\n{\"k\":3,\"d\":null}\n",
        "{\"k\":\"x\"}\n{}\n{\"other\":1}\n"
    );
    let decoded = load_target(&target, &by_line(), rules, body.as_bytes()).unwrap();
    assert_eq!(lines(&table, &decoded), ["1|7|1970-01-02T00:00:01|NULL", "2|8|NULL|NULL"]);
    let nothing = "All fields is null, this is a invalid row.";
    let reasons: Vec<_> =
        decoded.rejects.iter().map(|reject| (&reject.reason[..], &reject.source_line[..])).collect();
    assert_eq!(
        reasons,
        [
            ("The column `k` is not nullable, but it's not found in jsondata.", "{\"d\":1}"),
            ("Json value is null, but the column `k` is not nullable.", "{\"k\":null}"),
            ("Json value is null, but the column `d` is not nullable.", "{\"k\":3,\"d\":null}"),
            ("column(k) values is null while columns is not nullable", "{\"k\":\"x\"}"),
            (nothing, "{}"),
            (nothing, "{\"other\":1}"),
        ]
    );
}

#[test]
fn a_broken_line_is_one_rejected_row() {
    let body = concat!(
        "{\"id\":1}\n",
        "  {\"id\":2,\"name\":\"a\"\n",
        "{\"id\":3} x\n",
        "{\"id\":4}{\"id\":4}\n",
        "abc\n",
        "7\n",
        "[{\"id\":5}]\n",
        "{\"id\":6,\"info\":\"\\ud83d\"}\n",
        "{\"id\":7,\"info\":\"\\q\"}\n",
        "{\"id\":8,\n\"name\":\"b\"}\n",
        "{\"id\":9,\"x\":01}\n",
        "{\"id\":10,\"x\":\"\\ud83d\"}\n",
        "{\"id\":11,\"info\":\"a\tb\"}",
    );
    let (rejects, rows) = rejected(&by_line(), body);
    assert_eq!(rows, ["1|NULL|NULL", "10|NULL|NULL"]);
    let parse = |code: u8, info: &str, source: &str| {
        (
            format!("Parse json data for JsonDoc failed. code: {code}, error info: {info} of the row"),
            source.to_owned(),
        )
    };
    let trailing = "something follows the value (several objects are one to a line with read_json_by_line, or one array \
                    with strip_outer_array), at byte";
    assert_eq!(
        rejects,
        [
            parse(3, "the text ends inside a value, at byte 18", "{\"id\":2,\"name\":\"a\""),
            parse(3, &format!("{trailing} 9"), "{\"id\":3} x"),
            parse(3, &format!("{trailing} 8"), "{\"id\":4}{\"id\":4}"),
            parse(3, "a value is expected, at byte 0", "abc"),
            ("Not an json object or json array".into(), "7".into()),
            ("JSON data is array-object, `strip_outer_array` must be TRUE.".into(), "[{\"id\":5}]".into()),
            parse(
                5,
                "an escaped surrogate without its other half, at byte 16",
                "{\"id\":6,\"info\":\"\\ud83d\"}"
            ),
            parse(5, "an escape that JSON does not have, at byte 16", "{\"id\":7,\"info\":\"\\q\"}"),
            parse(3, "the text ends inside a value, at byte 8", "{\"id\":8,"),
            parse(3, &format!("{trailing} 6"), "\"name\":\"b\"}"),
            parse(3, "',' or '}' behind a value is expected, at byte 13", "{\"id\":9,\"x\":01}"),
            parse(
                13,
                "a control character in a string is not escaped, at byte 18",
                "{\"id\":11,\"info\":\"a\tb\"}"
            ),
        ]
    );
}

#[test]
fn bytes_that_are_not_utf8_reject_their_row_alone() {
    let target = Target::new(&people(), None).unwrap();
    let reason = "Parse json data for JsonDoc failed. code: 10, error info: the text is not UTF-8, at byte";
    let lines_body =
        b"{\"id\":1}\n  {\"id\":2,\"x\":\"\xff\"}\n{\"id\":3,\"name\":\"\xc3\xa9\"}\n{\"\xc3\":1,\"id\":4}";
    let array_body =
        b"[{\"id\":1},\n{\"id\":2,\"x\":\"\xff\"},{\"id\":3,\"name\":\"\xc3\xa9\"},{\"\xc3\":1,\"id\":4}]";
    for (format, body) in [(by_line(), &lines_body[..]), (array(), &array_body[..])] {
        let decoded = load_target(&target, &format, LoadRules::default(), body).unwrap();
        assert_eq!(lines(&people(), &decoded), ["1|NULL|NULL", "3|é|NULL"]);
        let reasons: Vec<_> = decoded.rejects.iter().map(|reject| &reject.reason[..]).collect();
        assert_eq!(reasons, [format!("{reason} 13 of the row"), format!("{reason} 2 of the row")]);
    }
}

#[test]
fn an_array_that_is_broken_fails_the_load_with_the_place() {
    let parse = "Parse json data for JsonDoc failed. code:";
    let end = "; what follows can't be read, so no row is loaded";
    for (body, text) in [
        (
            "[{\"id\":1},{\"id\":2,}]",
            "3, error info: a key in double quotes is expected, at byte 18 of the body, in element 2 of the array",
        ),
        (
            "\u{feff} [{\"id\":1} {\"id\":2}]",
            "3, error info: ',' or ']' behind an element is expected, at byte 14 of the body",
        ),
        ("[{\"id\":1},", "3, error info: the text ends inside a value, at byte 10 of the body"),
        ("[{\"id\":1},{\"id\"", "3, error info: the text ends inside a value, at byte 15 of the body"),
        ("[12", "3, error info: the text ends inside a value, at byte 3 of the body"),
        ("[", "3, error info: the text ends inside a value, at byte 1 of the body"),
        (
            "[{\"id\":1},]",
            "3, error info: a value is expected, at byte 10 of the body, in element 2 of the array",
        ),
        ("[,]", "3, error info: a value is expected, at byte 1 of the body, in element 1 of the array"),
        (
            "[{\"id\":1}]\n[]",
            "3, error info: something follows the value (several objects are one to a line with read_json_by_line, or \
             one array with strip_outer_array), at byte 11 of the body",
        ),
        (
            "[{\"id\":1},{\"id\" {7}}, {\"id\":3}]",
            "3, error info: ':' behind a key is expected, at byte 16 of the body, in element 2 of the array",
        ),
        (
            "[{\"id\":1]}]",
            "3, error info: ',' or '}' behind a value is expected, at byte 8 of the body, in element 1 of the array",
        ),
    ] {
        assert_eq!(broken(&array(), body), format!("{parse} {text}{end}"), "{body}");
    }
}

#[test]
fn elements_that_are_no_objects_are_rejected_alone() {
    let (rejects, rows) = rejected(&array(), "[1, {\"id\":1},\"a\\\"]\",[{}],null,-1.5e3 ,{\"id\":2}]");
    assert_eq!(rows, ["1|NULL|NULL", "2|NULL|NULL"]);
    let item = |source: &str| ("Not object item".to_owned(), source.to_owned());
    assert_eq!(rejects, [item("1"), item("\"a\\\"]\""), item("[{}]"), item("null"), item("-1.5e3")]);
    let (rejects, rows) = rejected(&array(), "[{\"id\":1,\"info\":\"\\ude00\"},{\"id\":2}]");
    assert_eq!((rejects.len(), rows.len()), (1, 1), "half a character rejects its row alone");
}

#[test]
fn a_body_of_another_shape_is_one_rejected_row() {
    let strip = "JSON data is array-object, `strip_outer_array` must be TRUE.";
    let no_strip = "JSON data is not an array-object, `strip_outer_array` must be FALSE.";
    let (one, many) = ("{\"id\":1}", "[{\"id\":1},{\"id\":2}]");
    assert_eq!(rejected(&document(), many), (vec![(strip.into(), many.into())], vec![]));
    assert_eq!(rejected(&array(), one), (vec![(no_strip.into(), one.into())], vec![]));
    let arrays = JsonFormat { read_by_line: true, ..array() };
    let (rejects, rows) = rejected(&arrays, "{\"id\":1}\n[{\"id\":2},3]\n[{\"id\":4},\n");
    assert_eq!(rows, ["2|NULL|NULL"]);
    assert_eq!(rejects.len(), 3);
    assert_eq!(rejects[0], (no_strip.to_owned(), one.to_owned()));
    let long = format!("[{}]", vec!["{\"id\":1}"; 1000].join(","));
    let (rejects, _) = rejected(&document(), &long);
    assert_eq!((rejects[0].1.len(), rejects[0].1.ends_with("...")), (1027, true));
    let (rejects, rows) = rejected(&document(), "{\"id\":1}\n{\"id\":2}\n");
    assert_eq!((rejects.len(), rows.len()), (1, 0), "no object is loaded if there is more than one");
}

#[test]
fn paths_feed_the_fields_in_order() {
    let deep = with_paths(by_line(), r#"["$.key.id", "$.tags[1]", "$.key", "$.more.than.fields"]"#);
    let body = concat!(
        r#"{"key":{"id":1},"tags":["a","b"]}"#,
        "\n",
        r#"{"tags":["a"],"key":{"x":0, "id":"2"}}"#,
        "\n",
        r#"{"id":3}"#,
        "\n",
        r#"{"tags":[0,1]}"#,
    );
    let (rejects, rows) = rejected(&deep, body);
    assert_eq!(rows, [r#"1|b|{"id":1}"#, r#"2|NULL|{"x":0,"id":"2"}"#]);
    assert_eq!(rejects, [
        (
            "There is no column matching jsonpaths in the json file, columns:[id, name, info, ], please check columns and \
             jsonpaths:[\"$.key.id\", \"$.tags[1]\", \"$.key\", \"$.more.than.fields\"]"
                .to_owned(),
            "{\"id\":3}".to_owned()
        ),
        ("The column `id` is not nullable, but it's not found in jsondata.".into(), "{\"tags\":[0,1]}".into()),
    ]);
    let renamed = with_paths(by_line(), r#"["$.number", "$.\"the name\""]"#);
    assert_eq!(loaded(&people(), &renamed, "{\"the name\":\"a\",\"id\":2,\"number\":1}"), ["1|a|NULL"]);
    let twice = with_paths(array(), r#"["$.a", "$.a", "$"]"#);
    assert_eq!(
        loaded(&people(), &twice, "[{\"a\":1} , {\"b\":3, \"a\": 2}]"),
        ["1|1|{\"a\":1}", "2|2|{\"b\":3,\"a\":2}"]
    );
}

#[test]
fn the_root_is_applied_to_the_text_or_to_each_element() {
    let rooted = |format| with_root(format, "$.data.row");
    let row = |id: u32| format!("{{\"data\":{{\"row\":{{\"id\":{id}}}}}}}");
    let rows = ["1|NULL|NULL", "2|NULL|NULL"];
    assert_eq!(loaded(&people(), &rooted(by_line()), &[row(1), row(2)].join("\n")), rows);
    assert_eq!(loaded(&people(), &rooted(array()), &format!("[{}, {}]", row(1), row(2))), rows);
    assert_eq!(loaded(&people(), &rooted(document()), &row(1)), rows[..1]);
    let inside = "{\"n\":2,\"data\":{\"row\":[{\"id\":1}, {\"id\":2}]}}";
    assert_eq!(loaded(&people(), &rooted(array()), inside), rows);
    let both = with_paths(rooted(array()), "[\"$.a.b\"]");
    assert_eq!(loaded(&people(), &both, "[{\"data\":{\"row\":{\"a\":{\"b\":1}}}}]"), rows[..1]);
    let (rejects, loaded) =
        rejected(&rooted(array()), &format!("[{}, {{}}, {{\"data\":{{\"row\":1}}}}]", row(1)));
    assert_eq!(loaded, rows[..1]);
    assert_eq!(
        rejects,
        [
            ("JSON Root not found.".into(), "{}".into()),
            ("Not object item".into(), "{\"data\":{\"row\":1}}".into())
        ]
    );
    let (rejects, _) = rejected(&rooted(by_line()), "{\"data\":1}\n{\"data\":{\"row\":\"x\"}}");
    assert_eq!(rejects[0].0, "JSON Root not found.");
    assert_eq!(rejects[1].0, "Not an json object or json array");
}

#[test]
fn levels_have_a_limit_in_a_value_and_none_of_the_stack() {
    let nested =
        |levels: usize| format!("{{\"id\":1,\"info\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    let levels = scan::DEPTH_MAX;
    let target = Target::new(&people(), None).unwrap();
    for format in [by_line(), document()] {
        let load = |levels| {
            let chunk = nested(levels);
            load_chunks(&target, &format, LoadRules::default(), [chunk.as_bytes()]).unwrap()
        };
        assert_eq!(load(levels).counts.loaded, 1);
        let reason = load(levels + 1).first_reason().unwrap().to_owned();
        assert!(reason.contains("code: 4, error info: objects and arrays stand more than 512"), "{reason}");
        assert_eq!(load(200_000).counts.filtered, 1);
    }
}

#[test]
fn a_row_that_never_ends_is_an_error_and_not_memory() {
    for (format, body) in
        [(by_line(), "{\"id\":1}\n{\"id\":"), (array(), "[{\"id\":1},{\"x\":\""), (document(), "{\"id\":1,")]
    {
        let target = Target::new(&people(), None).unwrap();
        let mut decoder = JsonDecoder::new(target, &format, LoadRules::default()).unwrap();
        decoder.reader.row_bytes_max = 1000;
        decoder.push(body.as_bytes()).unwrap();
        let error = (0..100).find_map(|_| decoder.push(&[b'1'; 100]).err()).expect("it is refused");
        assert_eq!(
            error.detail_text(),
            "a row of the json data has more than 1000 bytes; check line_delimiter, read_json_by_line and strip_outer_array"
        );
    }
}

/// The texts that a load with computed columns reads.
fn texts(names: FieldNames<'_>, absent: &[Option<String>], format: &JsonFormat, body: &str) -> Vec<String> {
    let read = |step: usize| {
        let mut strings = JsonStrings::new(names, absent, format).unwrap();
        body.as_bytes().chunks(step).for_each(|chunk| strings.push(chunk).unwrap());
        strings.finish().unwrap();
        let schema = strings.schema().unwrap();
        let names: Vec<_> = schema.fields().iter().map(|field| field.name().clone()).collect();
        let rows =
            strings.take_batches().iter().flat_map(batch_rows).map(|row| row.join("|")).collect::<Vec<_>>();
        [vec![names.join("|")], rows].concat()
    };
    let whole = read(body.len());
    for step in [1, 3, 10] {
        assert_eq!(read(step), whole, "chunks of {step}");
    }
    whole
}

#[test]
fn texts_for_computed_columns_have_the_names_of_the_load_or_of_the_first_row() {
    let body = "{\"b\":true,\"a\":1.10,\"c\":{\"x\": [1]}}\nbroken\n{\"a\":\"\\u00e9\",\"d\":1}\n{\"c\":null,\"a\":null}\n";
    assert_eq!(
        texts(FieldNames::OfBody, &[], &by_line(), body),
        ["b|a|c", "1|1.10|{\"x\":[1]}", "NULL|é|NULL", "NULL|NULL|NULL"]
    );
    let names = ["a".to_owned(), "c".to_owned()];
    let absent = [None, Some("7".to_owned())];
    assert_eq!(
        texts(FieldNames::Given(&names), &absent, &by_line(), body),
        ["a|c", "1.10|{\"x\":[1]}", "é|7", "NULL|NULL"]
    );
    let paths = with_paths(array(), "[\"$.p.q\", \"$.r[0]\"]");
    let body = "[{\"p\":{\"q\":1},\"r\":[2]},{\"r\":[3]}]";
    assert_eq!(texts(FieldNames::OfBody, &[], &paths, body), ["q|r", "1|2", "NULL|3"]);
    assert_eq!(texts(FieldNames::OfBody, &[], &array(), body), ["p|r", "{\"q\":1}|[2]", "NULL|[3]"]);
    let mut empty = JsonStrings::new(FieldNames::OfBody, &[], &by_line()).unwrap();
    empty.finish().unwrap();
    assert_eq!(empty.schema().unwrap_err().detail_text(), "Empty first json line");
}
