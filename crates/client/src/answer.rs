//! Answers to statements.

use crate::error::{ClientError, broken, refusal};
use crate::fields::Fields;
use std::io;

/// The answer of a statement that succeeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The statement returns no rows.
    Ok(OkAnswer),
    /// Rows, possibly zero.
    Rows(Rows),
}

/// The answer of a statement that returns no rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OkAnswer {
    /// How many rows it has loaded or changed.
    pub affected_rows: u64,
    /// The first value that AUTO_INCREMENT gave; 0 for none.
    pub last_insert_id: u64,
    /// How many warnings there are.
    pub warnings: u16,
    /// The server's info text.
    pub info: String,
}

/// The answer of a statement that returns rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// The columns' names.
    pub columns: Vec<String>,
    /// The columns' types.
    pub kinds: Vec<ColumnKind>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A column's type, as MySQL's protocol numbers it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColumnKind {
    /// Such as 3 for INT and 253 for VARCHAR.
    pub code: u8,
    /// Whether its numbers have no sign.
    pub unsigned: bool,
    /// Digits after the point that its values show.
    pub decimals: u8,
}

/// How the rows of an answer are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Binary,
}

/// The values of a row as texts; NULL is `None`.
pub type Row = Vec<Option<String>>;

/// How many rows a statement without rows has loaded, by its answer's payload. Nothing else of the
/// answer is read.
///
/// # Errors
/// The server's error, or the payload is not an answer to such a statement.
pub fn affected_rows(packet: &[u8]) -> Result<u64, ClientError> {
    refusal(packet)?;
    let [0, rest @ ..] = packet else { return Err(broken("rows where none belong").into()) };
    Ok(Fields(rest).number()?.unwrap_or_default())
}

pub(crate) fn ok(packet: &[u8]) -> Result<OkAnswer, ClientError> {
    let affected_rows = affected_rows(packet)?;
    let mut fields = Fields(&packet[1..]);
    let _affected_rows = fields.number()?;
    let last_insert_id = fields.number()?.unwrap_or_default();
    let _status = fields.short()?;
    let warnings = fields.short()?;
    // MySQL's servers send the text with its length, and its clients read it so.
    let info = if fields.is_empty() { None } else { fields.text()? };
    Ok(OkAnswer { affected_rows, last_insert_id, warnings, info: info.unwrap_or_default() })
}

/// Whether a packet ends column definitions or rows.
pub(crate) fn is_eof(packet: &[u8]) -> bool {
    packet.len() < 9 && packet.first() == Some(&0xfe)
}

/// A column's name and type.
pub(crate) fn column(packet: &[u8]) -> io::Result<(String, ColumnKind)> {
    const UNSIGNED: u16 = 0x20;
    let mut fields = Fields(packet);
    for _catalog_schema_and_two_tables in 0..4 {
        fields.text()?;
    }
    let name = fields.text()?.ok_or_else(|| broken("a column without a name"))?;
    fields.text()?; // its name in the table
    let _length_of_the_rest = fields.number()?;
    let _character_set_and_width: [u8; 6] = fields.array()?;
    let [code] = fields.array()?;
    let unsigned = fields.short()? & UNSIGNED != 0;
    let [decimals] = fields.array()?;
    Ok((name, ColumnKind { code, unsigned, decimals }))
}

pub(crate) fn row(packet: &[u8], columns: usize) -> io::Result<Row> {
    let mut fields = Fields(packet);
    (0..columns).map(|_| fields.text()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ok_packet_may_end_before_its_info_text() {
        let packet = b"\0\xfc\xe8\x03\0\x02\0\x01\0\x03abc";
        assert_eq!(affected_rows(packet).ok(), Some(1000));
        let whole = ok(packet).expect("an OK packet");
        assert_eq!(
            whole,
            OkAnswer { affected_rows: 1000, last_insert_id: 0, warnings: 1, info: "abc".to_owned() }
        );
        let short = ok(&packet[..9]).expect("an OK packet");
        assert_eq!(short, OkAnswer { info: String::new(), ..whole });
    }

    #[test]
    fn what_is_no_ok_packet_is_an_error() {
        assert!(matches!(affected_rows(b"\xff\x51\x04#HY000no"), Err(ClientError::Refused(_))));
        assert!(matches!(affected_rows(b"\x01"), Err(ClientError::Gone(_))));
        assert!(matches!(ok(b"\0\0\0"), Err(ClientError::Gone(_))));
    }
}
