use super::*;

fn csv(properties: &[(&str, &str)]) -> Result<CsvFormat, FormatError> {
    match LoadFormat::from_properties(properties.iter().copied())?.body {
        BodyFormat::Csv(format) => Ok(format),
        other => panic!("not CSV: {other:?}"),
    }
}

fn json(properties: &[(&str, &str)]) -> Result<JsonFormat, FormatError> {
    match LoadFormat::from_properties([("format", "Json")].iter().chain(properties).copied())?.body {
        BodyFormat::Json(format) => Ok(format),
        other => panic!("not JSON: {other:?}"),
    }
}

#[test]
fn without_flags_json_comes_by_line_and_with_one_the_other_is_false() {
    let layout = |properties: &[(&str, &str)]| {
        json(properties).map(|format| (format.read_by_line, format.strip_outer_array)).unwrap()
    };
    assert_eq!(json(&[]), Ok(JsonFormat::default()));
    assert_eq!(layout(&[("read_json_by_line", "")]), (true, false));
    assert_eq!(layout(&[("read_json_by_line", "true")]), (true, false));
    assert_eq!(layout(&[("read_json_by_line", "false")]), (false, false));
    assert_eq!(layout(&[("strip_outer_array", "TRUE")]), (false, true));
    assert_eq!(layout(&[("strip_outer_array", "false")]), (false, false));
    assert_eq!(layout(&[("strip_outer_array", "true"), ("read_json_by_line", "true")]), (true, true));
}

#[test]
fn every_property_of_json_reaches_its_field() {
    let format = json(&[
        ("read_json_by_line", "true"),
        ("line_delimiter", "\\x01"),
        ("json_root", "$.data"),
        ("jsonpaths", "[\"$.a.b\"]"),
        ("num_as_string", "true"),
        ("fuzzy_parse", "true"),
    ]);
    let expected = JsonFormat {
        read_by_line: true,
        strip_outer_array: false,
        line_delimiter: vec![1],
        root: Some(JsonPath::parse("$.data").unwrap()),
        paths: Some(JsonPaths::parse("[\"$.a.b\"]").unwrap()),
        num_as_string: true,
    };
    assert_eq!(format, Ok(expected));
    let packed = LoadFormat::from_properties([("format", "json"), ("compress_type", "gzip")]).unwrap();
    assert_eq!(packed.compression, Compression::Gzip);
}

#[test]
fn a_property_of_another_format_is_checked_and_refused_only_if_rows_would_differ() {
    let harmless =
        [("column_separator", ","), ("enclose", "\""), ("escape", "\\"), ("trim_double_quotes", "true")];
    assert_eq!(json(&harmless), Ok(JsonFormat::default()));
    assert_eq!(json(&[("skip_lines", "0"), ("empty_field_as_null", "false")]), Ok(JsonFormat::default()));
    let flags = [
        ("strip_outer_array", "true"),
        ("read_json_by_line", "true"),
        ("num_as_string", "true"),
        ("fuzzy_parse", "true"),
    ];
    assert_eq!(csv(&flags), Ok(CsvFormat::default()));
    let text = |error: Result<JsonFormat, FormatError>| error.unwrap_err().to_string();
    assert_eq!(text(json(&[("skip_lines", "1")])), "skip_lines has no effect with format=json; leave it out");
    assert_eq!(
        text(json(&[("empty_field_as_null", "true")])),
        "empty_field_as_null has no effect with format=json; leave it out"
    );
    assert_eq!(text(json(&[("enclose", "ab")])), "enclose must be single-char, actually is ab");
    assert!(text(json(&[("jsonpaths", "$.a")])).starts_with("It's invalid jsonpaths. $.a: "));
    assert!(
        text(json(&[("json_root", "a")])).starts_with("It's invalid jsonpaths. `a`: a path begins with $; ")
    );
    for (name, value) in [("jsonpaths", "[\"$.a\"]"), ("json_root", "$.a")] {
        let error = csv(&[(name, value)]).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("{name} has no effect with format=csv; send format=json if the data are JSON")
        );
    }
    assert_eq!(
        text(json(&[("compress_type", "rar")])),
        "unknown data format, format=json, compress_type=rar"
    );
}

#[test]
fn without_properties_a_body_is_plain_csv_with_tabs() {
    assert_eq!(LoadFormat::from_properties([]), Ok(LoadFormat::default()));
    assert_eq!(csv(&[]), Ok(CsvFormat::default()));
    for name in LoadFormat::PROPERTIES
        .iter()
        .filter(|name| !name.contains("separator") && !name.contains("delimiter"))
    {
        assert_eq!(csv(&[(name, "")]), Ok(CsvFormat::default()), "{name}");
    }
}

#[test]
fn every_property_reaches_its_field() {
    let properties = [
        ("format", "CSV_with_names"),
        ("compress_type", "GZ"),
        ("column_separator", "\\x01"),
        ("line_delimiter", "\\r\\n"),
        ("enclose", "\""),
        ("escape", "\\"),
        ("trim_double_quotes", "True"),
        ("skip_lines", "3"),
        ("empty_field_as_null", "true"),
    ];
    assert_eq!(properties.map(|(name, _)| name), LoadFormat::PROPERTIES[..9]);
    let format = CsvFormat {
        header: CsvHeader::Names,
        column_separator: vec![1],
        line_delimiter: b"\r\n".to_vec(),
        enclose: Some(b'"'),
        escape: Some(b'\\'),
        trim_double_quotes: true,
        skip_lines: 3,
        empty_field_as_null: true,
    };
    assert_eq!(format.lines_to_skip(), 1, "names win over skip_lines");
    let expected = LoadFormat { body: BodyFormat::Csv(format), compression: Compression::Gzip };
    assert_eq!(LoadFormat::from_properties(properties), Ok(expected));
}

#[test]
fn what_cannot_be_obeyed_is_refused_with_the_value() {
    let invalid = |text: &str| FormatError::Invalid(text.to_owned());
    let cases: [(&[(&str, &str)], FormatError); 9] = [
        (&[("format", "xml")], FormatError::Unknown("unknown data format, format=xml".into())),
        (
            &[("compress_type", "rar")],
            FormatError::Unknown("unknown data format, format=csv, compress_type=rar".into()),
        ),
        (
            &[("compress_type", "lzo")],
            FormatError::NotSupported(
                "compress_type=lzo is not supported, since no library that is kept up reads it; use one of gz, bz2, \
                 deflate, zstd, lz4, lz4_block, snappy_block"
                    .into(),
            ),
        ),
        (&[("enclose", "ab")], invalid("enclose must be single-char, actually is ab")),
        (&[("escape", "é")], invalid("escape must be single-char, actually is é")),
        (&[("skip_lines", "-1")], invalid("Invalid 'skip_lines': -1")),
        (&[("skip_lines", "1e3")], invalid("Invalid 'skip_lines': 1e3")),
        (&[("column_separator", "")], invalid("Column separator or line delimiter is empty")),
        (
            &[("line_delimiter", "\\x0")],
            invalid(
                "Invalid separator '\\x0': hex length must be a even number; write bytes as \\x01 or \\x0102",
            ),
        ),
    ];
    for (properties, error) in cases {
        assert_eq!(csv(properties), Err(error), "{properties:?}");
    }
    let avro = csv(&[("enclose", "ab"), ("format", "AVRO")]).unwrap_err();
    assert!(matches!(&avro, FormatError::NotSupported(text) if text.starts_with("format=AVRO ")), "{avro:?}");
    let unknown = csv(&[("csv_schema", "k1:int")]).unwrap_err().to_string();
    assert!(unknown.starts_with("Unknown properties: {csv_schema=k1:int}; "), "{unknown}");
}
