use super::*;

const NO_LONG_DATA: &BTreeMap<u16, Vec<u8>> = &BTreeMap::new();

fn param(wire_type: ColumnType, unsigned: bool) -> ParamType {
    ParamType { type_code: wire_type as u8, unsigned }
}

fn params<'a>(types: &'a [ParamType], null_bitmap: &'a [u8], values: &'a [u8]) -> Params<'a> {
    Params { types, types_changed: true, null_bitmap, values, long_data: NO_LONG_DATA }
}

fn one(wire_type: ColumnType, unsigned: bool, values: &[u8]) -> Result<ParamValue<'_>, MalformedPacket> {
    read_value(&mut Cursor::new(values), param(wire_type, unsigned))
}

#[test]
fn integers_keep_their_sign_and_unsigned_ones_their_size() {
    use ColumnType::*;
    assert_eq!(one(MYSQL_TYPE_TINY, false, &[0xff]), Ok(ParamValue::Int(-1)));
    assert_eq!(one(MYSQL_TYPE_TINY, true, &[0xff]), Ok(ParamValue::UInt(255)));
    assert_eq!(one(MYSQL_TYPE_SHORT, true, &[0xff, 0xff]), Ok(ParamValue::UInt(0xffff)));
    assert_eq!(one(MYSQL_TYPE_LONG, false, &[0, 0, 0, 0x80]), Ok(ParamValue::Int(i32::MIN.into())));
    assert_eq!(one(MYSQL_TYPE_LONG, true, &[0, 0, 0, 0x80]), Ok(ParamValue::UInt(1 << 31)));
    assert_eq!(one(MYSQL_TYPE_LONGLONG, true, &[0xff; 8]), Ok(ParamValue::UInt(u64::MAX)));
    assert_eq!(one(MYSQL_TYPE_LONGLONG, false, &[0xff; 8]), Ok(ParamValue::Int(-1)));
    assert_eq!(one(MYSQL_TYPE_DOUBLE, false, &1.5_f64.to_le_bytes()), Ok(ParamValue::Double(1.5)));
}

#[test]
fn dates_and_times_have_several_lengths() {
    use ColumnType::*;
    let datetime = |hour, micros| ParamValue::DateTime {
        year: 2024,
        month: 2,
        day: 29,
        hour,
        minute: 0,
        second: 0,
        micros,
    };
    assert_eq!(one(MYSQL_TYPE_DATE, false, &[4, 0xe8, 7, 2, 29]), Ok(datetime(0, 0)));
    assert_eq!(one(MYSQL_TYPE_DATETIME, false, &[7, 0xe8, 7, 2, 29, 23, 0, 0]), Ok(datetime(23, 0)));
    let full = [11, 0xe8, 7, 2, 29, 23, 0, 0, 0x40, 0x42, 0x0f, 0];
    assert_eq!(one(MYSQL_TYPE_TIMESTAMP, false, &full), Ok(datetime(23, 1_000_000)));
    assert!(one(MYSQL_TYPE_DATETIME, false, &[5, 0, 0, 0, 0, 0]).is_err());
    assert!(one(MYSQL_TYPE_DATETIME, false, &[11, 0]).is_err());
    let time = ParamValue::Time { negative: true, days: 1, hours: 2, minutes: 3, seconds: 4, micros: 0 };
    assert_eq!(one(MYSQL_TYPE_TIME, false, &[8, 1, 1, 0, 0, 0, 2, 3, 4]), Ok(time));
}

#[test]
fn null_parameters_have_no_bytes_among_the_values() {
    let types = [param(ColumnType::MYSQL_TYPE_TINY, false); 9];
    let params = params(&types, &[0b0111_1111, 0], &[5, 6]);
    let values: Vec<_> = params.iter().map(Result::unwrap).collect();
    assert_eq!(values[..7], [ParamValue::Null; 7]);
    assert_eq!(values[7..], [ParamValue::Int(5), ParamValue::Int(6)]);
}

#[test]
fn a_value_that_came_in_pieces_takes_the_parameters_place_even_if_it_is_marked_null() {
    let long_data = BTreeMap::from([(0, b"long".to_vec())]);
    let types = [param(ColumnType::MYSQL_TYPE_BLOB, false), param(ColumnType::MYSQL_TYPE_STRING, false)];
    let params = Params { long_data: &long_data, ..params(&types, &[1], b"\x01x") };
    assert!(!params.is_null(0));
    let values: Vec<_> = params.iter().map(Result::unwrap).collect();
    assert_eq!(values, [ParamValue::Bytes(b"long"), ParamValue::Bytes(b"x")]);
}

#[test]
fn values_that_are_cut_off_are_an_error_and_end_the_parameters() {
    let types = [param(ColumnType::MYSQL_TYPE_STRING, false), param(ColumnType::MYSQL_TYPE_TINY, false)];
    let mut values = params(&types, &[0], b"\x09abc").iter().collect::<Vec<_>>();
    assert_eq!(values.len(), 1);
    let error = values.remove(0).unwrap_err();
    assert_eq!(error.code.number(), 1835);
    assert_eq!(error.message, "Malformed communication packet: a parameter's text is cut off.");
}

#[test]
fn random_parameters_never_panic() {
    let mut seed = 1_u64;
    let mut random = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize
    };
    for _ in 0..20_000 {
        let count = random() % 10;
        let types: Vec<_> = (0..count)
            .map(|_| ParamType { type_code: random() as u8, unsigned: random() % 2 == 0 })
            .collect();
        let bitmap: Vec<u8> = (0..count.div_ceil(8)).map(|_| random() as u8).collect();
        let values: Vec<u8> = (0..random() % 40).map(|_| random() as u8).collect();
        assert!(params(&types, &bitmap, &values).iter().count() <= count);
    }
}
