//! Rows of prepared statements: values in binary form → the texts that the same statement without
//! preparation answers.

use crate::answer::{ColumnKind, Row};
use crate::error::broken;
use crate::fields::Fields;
use std::io;

/// The values of a row as texts.
pub(crate) fn row(packet: &[u8], kinds: &[ColumnKind]) -> io::Result<Row> {
    let mut fields = Fields(packet);
    let [_always_0] = fields.array()?;
    // One bit per column, from the third bit on, marks NULL.
    let nulls = fields.bytes((kinds.len() + 9) / 8)?;
    let is_null = |column: usize| nulls[(column + 2) / 8] >> ((column + 2) % 8) & 1 == 1;
    let values = kinds.iter().enumerate();
    values
        .map(|(column, kind)| if is_null(column) { Ok(None) } else { value(&mut fields, *kind).map(Some) })
        .collect()
}

fn value(fields: &mut Fields<'_>, kind: ColumnKind) -> io::Result<String> {
    Ok(match (kind.code, kind.unsigned) {
        (1, false) => i8::from_le_bytes(fields.array()?).to_string(),
        (1, true) => u8::from_le_bytes(fields.array()?).to_string(),
        (2 | 13, false) => i16::from_le_bytes(fields.array()?).to_string(),
        (2 | 13, true) => u16::from_le_bytes(fields.array()?).to_string(),
        (3 | 9, false) => i32::from_le_bytes(fields.array()?).to_string(),
        (3 | 9, true) => u32::from_le_bytes(fields.array()?).to_string(),
        (8, false) => i64::from_le_bytes(fields.array()?).to_string(),
        (8, true) => u64::from_le_bytes(fields.array()?).to_string(),
        (4, _) => f32::from_le_bytes(fields.array()?).to_string(),
        (5, _) => f64::from_le_bytes(fields.array()?).to_string(),
        (10, _) => moment(fields)?[..10].to_owned(),
        (7 | 12, _) => {
            let digits = usize::from(kind.decimals.min(6));
            let end = if digits == 0 { 19 } else { 20 + digits };
            moment(fields)?[..end].to_owned()
        }
        (11, _) => clock(fields)?,
        _ => fields.text()?.ok_or_else(|| broken("a NULL that the row's bits do not tell"))?,
    })
}

/// A date and time with six digits after the point.
fn moment(fields: &mut Fields<'_>) -> io::Result<String> {
    let [length] = fields.array()?;
    let mut bytes = [0; 11];
    let given = fields.bytes(length.into())?;
    bytes
        .get_mut(..given.len())
        .ok_or_else(|| broken("a date of more than 11 bytes"))?
        .copy_from_slice(given);
    let [y0, y1, month, day, hour, minute, second, micros @ ..] = bytes;
    let (year, micros) = (u16::from_le_bytes([y0, y1]), u32::from_le_bytes(micros));
    Ok(format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micros:06}"))
}

/// A TIME, with six digits after the point if it has any.
fn clock(fields: &mut Fields<'_>) -> io::Result<String> {
    let [length] = fields.array()?;
    let mut bytes = [0; 12];
    let given = fields.bytes(length.into())?;
    bytes
        .get_mut(..given.len())
        .ok_or_else(|| broken("a time of more than 12 bytes"))?
        .copy_from_slice(given);
    let [is_negative, d0, d1, d2, d3, hour, minute, second, micros @ ..] = bytes;
    let hours = u64::from(u32::from_le_bytes([d0, d1, d2, d3])) * 24 + u64::from(hour);
    let sign = if is_negative == 0 { "" } else { "-" };
    let text = format!("{sign}{hours:02}:{minute:02}:{second:02}");
    Ok(match u32::from_le_bytes(micros) {
        0 => text,
        micros => format!("{text}.{micros:06}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(code: u8, decimals: u8) -> ColumnKind {
        ColumnKind { code, unsigned: false, decimals }
    }

    #[test]
    fn binary_values_become_the_texts_of_a_result() {
        let kinds = [kind(1, 0), kind(8, 0), kind(5, 31), kind(10, 0), kind(12, 3), kind(253, 0), kind(3, 0)];
        let mut packet = vec![0, 0, 1, 0xff];
        packet.extend(7_i64.to_le_bytes());
        packet.extend(0.5_f64.to_le_bytes());
        packet.extend([4, 0xe4, 7, 2, 3]);
        packet.extend([11, 0xe4, 7, 2, 3, 4, 5, 6, 0x60, 0xea, 0, 0]);
        packet.extend(b"\x02ab");
        let found = row(&packet, &kinds).expect("a row");
        let texts: Vec<_> = found.iter().map(|value| value.as_deref().unwrap_or("NULL")).collect();
        assert_eq!(texts, ["-1", "7", "0.5", "2020-02-03", "2020-02-03 04:05:06.060", "ab", "NULL"]);
    }

    #[test]
    fn a_short_row_is_an_error() {
        assert!(row(&[0, 0, 1], &[kind(8, 0)]).is_err());
    }
}
