use super::*;

fn csv(properties: &[(&str, &str)]) -> Result<CsvFormat, FormatError> {
    let BodyFormat::Csv(format) = LoadFormat::from_properties(properties.iter().copied())?.body;
    Ok(format)
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
    assert_eq!(properties.map(|(name, _)| name), LoadFormat::PROPERTIES);
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
            &[("compress_type", "lz4")],
            FormatError::NotSupported(
                "compress_type=lz4 is not supported yet; use gz or send the body uncompressed".into(),
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
    let json = csv(&[("enclose", "ab"), ("format", "JSON")]).unwrap_err();
    assert!(matches!(&json, FormatError::NotSupported(text) if text.starts_with("format=JSON ")), "{json:?}");
    let unknown = csv(&[("jsonpaths", "[]")]).unwrap_err().to_string();
    assert!(unknown.starts_with("Unknown properties: {jsonpaths=[]}; "), "{unknown}");
}
