//! Parameters of a prepared INSERT: binary values against the same values as text.
//!
//! The first byte chooses. *Values*: rows of typed values are made of the bytes, sent once as parameters and once as literals;
//! both must give the same blocks. *Packet*: template, types, NULL bits and values are the raw bytes; nothing may panic, and the
//! decoder must read as many values as the protocol's own reader.

use crate::literals::push_text;
use crate::rows;
use crate::tables;
use arbitrary::{Result, Unstructured};
use std::collections::BTreeMap;
use std::sync::Arc;
use tributary_decode::{
    BlockBuilder, BoundParams, Decoded, InsertOptions, ParamType, Target, ValuesOutcome, decode_values,
    prepare_values,
};
use tributary_types::{DataType, TableDef};

/// MySQL's numbers of the types that are made here.
mod wire_type {
    pub(super) const TINY: u8 = 1;
    pub(super) const SHORT: u8 = 2;
    pub(super) const LONG: u8 = 3;
    pub(super) const FLOAT: u8 = 4;
    pub(super) const DOUBLE: u8 = 5;
    pub(super) const LONGLONG: u8 = 8;
    pub(super) const DATE: u8 = 10;
    pub(super) const DATETIME: u8 = 12;
    pub(super) const NEWDECIMAL: u8 = 246;
    pub(super) const VAR_STRING: u8 = 253;
}

/// Rows both ways.
#[derive(Default)]
struct Both {
    /// With `?` and literals.
    template: String,
    /// With literals only.
    text: String,
    types: Vec<ParamType>,
    nulls: Vec<bool>,
    values: Vec<u8>,
    long_data: BTreeMap<u16, Vec<u8>>,
}

/// See the module.
pub fn params(data: &[u8]) {
    let Some((&choice, rest)) = data.split_first() else { return };
    let table = tables::pick(choice & 0x3f);
    let options = InsertOptions { strict: choice & 0x80 == 0, ..InsertOptions::default() };
    if choice & 0x40 == 0 {
        let mut both = Both::default();
        if both.build(&table, &mut Unstructured::new(rest)).is_ok() && !both.template.is_empty() {
            both.compare(&table, &options);
        }
    } else {
        let _ = raw(&table, &options, &mut Unstructured::new(rest));
    }
}

impl Both {
    fn build(&mut self, table: &TableDef, bytes: &mut Unstructured<'_>) -> Result<()> {
        for row in 0..bytes.int_in_range(1..=4)? {
            if row > 0 {
                self.push(",");
            }
            self.push("(");
            for (index, column) in table.schema.columns.iter().enumerate() {
                if index > 0 {
                    self.push(",");
                }
                self.cell(column.data_type, bytes)?;
            }
            self.push(")");
        }
        Ok(())
    }

    fn push(&mut self, text: &str) {
        self.template.push_str(text);
        self.text.push_str(text);
    }

    /// A parameter; `literal` is the same as text.
    fn param(&mut self, column_type: u8, unsigned: bool, value: &[u8], literal: &str) {
        self.types.push(ParamType { column_type, unsigned });
        self.nulls.push(false);
        self.values.extend_from_slice(value);
        self.template.push('?');
        self.text.push_str(literal);
    }

    fn cell(&mut self, data_type: DataType, bytes: &mut Unstructured<'_>) -> Result<()> {
        use wire_type::*;
        let unsigned = bytes.arbitrary()?;
        match bytes.int_in_range(0..=12)? {
            0 => {
                self.param(VAR_STRING, unsigned, &[], "NULL");
                *self.nulls.last_mut().expect("just pushed") = true;
            }
            1 => self.push("-12.50"),
            2 => self.push("'a''b\\n'"),
            3 => {
                let value: i8 = bytes.arbitrary()?;
                let text = if unsigned { (value as u8).to_string() } else { value.to_string() };
                self.param(TINY, unsigned, &value.to_le_bytes(), &text);
            }
            4 => {
                let value: i16 = bytes.arbitrary()?;
                let text = if unsigned { (value as u16).to_string() } else { value.to_string() };
                self.param(SHORT, unsigned, &value.to_le_bytes(), &text);
            }
            5 => {
                let value: i32 = bytes.arbitrary()?;
                let text = if unsigned { (value as u32).to_string() } else { value.to_string() };
                self.param(LONG, unsigned, &value.to_le_bytes(), &text);
            }
            6 => {
                let value: i64 = bytes.arbitrary()?;
                let text = if unsigned { (value as u64).to_string() } else { value.to_string() };
                self.param(LONGLONG, unsigned, &value.to_le_bytes(), &text);
            }
            // The decimal text of a FLOAT differs from the FLOAT wherever more digits are stored.
            7 if data_type == DataType::Float || data_type.is_text() => {
                let value = bytes.arbitrary::<f32>()?;
                let value = if value.is_finite() { value } else { 0.5 };
                self.param(FLOAT, unsigned, &value.to_le_bytes(), &format!("{value:e}"));
            }
            8 => {
                let value = bytes.arbitrary::<f64>()?;
                let value = if value.is_finite() { value } else { 0.5 };
                self.param(DOUBLE, unsigned, &value.to_le_bytes(), &format!("{value:e}"));
            }
            // Only where a date as text is a date: elsewhere it is a number or a text of its own form.
            9 if is_time(data_type) => self.date(bytes)?,
            10 if is_time(data_type) => self.datetime(bytes)?,
            11 => self.decimal(bytes)?,
            _ => self.string(unsigned, bytes)?,
        }
        Ok(())
    }

    fn date(&mut self, bytes: &mut Unstructured<'_>) -> Result<()> {
        let (year, month, day) = (bytes.int_in_range(0..=10_000u16)?, bytes.arbitrary()?, bytes.arbitrary()?);
        let (month, day): (u8, u8) = (month, day);
        let [low, high] = year.to_le_bytes();
        let text = format!("'{year:04}-{month:02}-{day:02}'");
        if (1..=12).contains(&month) && (1..=28).contains(&day) && (1..=9999).contains(&year) {
            self.param(wire_type::DATE, false, &[4, low, high, month, day], &text);
        } else {
            self.push("NULL");
        }
        Ok(())
    }

    fn datetime(&mut self, bytes: &mut Unstructured<'_>) -> Result<()> {
        let year = bytes.int_in_range(1..=9999u16)?;
        let (month, day) = (bytes.int_in_range(1..=12u8)?, bytes.int_in_range(1..=28u8)?);
        let (hour, minute) = (bytes.int_in_range(0..=23u8)?, bytes.int_in_range(0..=59u8)?);
        let (second, micros) = (bytes.int_in_range(0..=59u8)?, bytes.int_in_range(0..=999_999u32)?);
        let [low, high] = year.to_le_bytes();
        let mut packet = vec![11, low, high, month, day, hour, minute, second];
        packet.extend_from_slice(&micros.to_le_bytes());
        let text = format!("'{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micros:06}'");
        self.param(wire_type::DATETIME, false, &packet, &text);
        Ok(())
    }

    fn decimal(&mut self, bytes: &mut Unstructured<'_>) -> Result<()> {
        let (whole, fraction): (i64, u16) = (bytes.arbitrary()?, bytes.arbitrary()?);
        let digits = format!("{whole}.{fraction}");
        let mut packet = vec![digits.len() as u8];
        packet.extend_from_slice(digits.as_bytes());
        self.param(wire_type::NEWDECIMAL, false, &packet, &format!("'{digits}'"));
        Ok(())
    }

    fn string(&mut self, unsigned: bool, bytes: &mut Unstructured<'_>) -> Result<()> {
        let text: String = bytes.arbitrary()?;
        let mut literal = String::new();
        push_text(&mut literal, &text);
        if bytes.ratio(1u8, 4u8)? {
            self.long_data.insert(self.types.len() as u16, text.into_bytes());
            self.param(wire_type::VAR_STRING, unsigned, &[], &literal);
            return Ok(());
        }
        let mut packet = Vec::new();
        match (text.len(), bytes.int_in_range(0..=2u8)?) {
            (length @ 0..=250, 0) => packet.push(length as u8),
            (length @ 0..=0xffff, 0 | 1) => {
                packet.push(0xfc);
                packet.extend_from_slice(&(length as u16).to_le_bytes());
            }
            (length, _) => {
                packet.push(0xfe);
                packet.extend_from_slice(&(length as u64).to_le_bytes());
            }
        }
        packet.extend_from_slice(text.as_bytes());
        self.param(wire_type::VAR_STRING, unsigned, &packet, &literal);
        Ok(())
    }

    fn compare(&self, table: &Arc<TableDef>, options: &InsertOptions) {
        let target = Target::new(table, None).expect("all columns");
        let prepared = prepare_values(self.template.as_bytes(), &target).expect("a template of literals");
        assert_eq!(prepared.param_count(), self.types.len());
        let mut null_bitmap = vec![0; self.nulls.len().div_ceil(8)];
        for (index, _) in self.nulls.iter().enumerate().filter(|(_, is_null)| **is_null) {
            null_bitmap[index / 8] |= 1 << (index % 8);
        }
        let bound = BoundParams {
            types: &self.types,
            null_bitmap: &null_bitmap,
            values: &self.values,
            long_data: &self.long_data,
        };
        let mut builder = BlockBuilder::new(&table.schema);
        let binary = prepared.decode(bound, &target, options, &mut builder).expect("well formed parameters");
        let text = decode_values(self.text.as_bytes(), &target, options, &mut builder);
        let Ok(ValuesOutcome::Rows(text)) = text else { panic!("not taken: {}", self.text) };
        rows::check_decoded(table, &binary);
        assert_alike(table, &binary, &text);
    }
}

/// Checks that the same rows were loaded and the same rows rejected. Reasons repeat values as they arrived, possibly in another
/// notation.
fn assert_alike(table: &TableDef, binary: &Decoded, text: &Decoded) {
    let reasonless = |decoded: &Decoded| Decoded { rejects: Vec::new(), ..decoded.clone() };
    assert_eq!(binary.rejects.len(), text.rejects.len(), "{:?}, as text {:?}", binary.rejects, text.rejects);
    rows::assert_same(table, &reasonless(binary), &reasonless(text));
}

fn is_time(data_type: DataType) -> bool {
    matches!(data_type, DataType::Date | DataType::DateTime { .. })
}

/// Raw template, types, bits and values.
fn raw(table: &Arc<TableDef>, options: &InsertOptions, bytes: &mut Unstructured<'_>) -> Result<()> {
    const TEMPLATES: [&str; 4] = ["(?,?)", "VALUES (?,'x'),(NULL,?),()", "(?)", ""];
    let target = Target::new(table, None).expect("all columns");
    let marks = vec!["?"; target.field_count()].join(",");
    let template = match *bytes.choose(&TEMPLATES)? {
        "" => format!("({marks}),({marks})"),
        template => template.to_owned(),
    };
    let Some(prepared) = prepare_values(template.as_bytes(), &target) else { return Ok(()) };
    let count =
        if bytes.ratio(15u8, 16u8)? { prepared.param_count() } else { bytes.arbitrary_len::<u16>()? };
    let types = (0..count)
        .map(|_| Ok(ParamType { column_type: bytes.arbitrary()?, unsigned: bytes.arbitrary()? }))
        .collect::<Result<Vec<_>>>()?;
    let null_bitmap = bytes.bytes(count.div_ceil(8).min(bytes.len()))?;
    let mut long_data = BTreeMap::new();
    if bytes.ratio(1u8, 8u8)? {
        long_data.insert(bytes.int_in_range(0..=3u16)?, bytes.arbitrary::<Vec<u8>>()?);
    }
    let values = bytes.bytes(bytes.len())?;
    let bound = BoundParams { types: &types, null_bitmap, values, long_data: &long_data };
    let mut builder = BlockBuilder::new(&table.schema);
    if let Ok(decoded) = prepared.decode(bound, &target, options, &mut builder) {
        rows::check_decoded(table, &decoded);
    }
    Ok(())
}
