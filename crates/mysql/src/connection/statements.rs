//! The protocol's own state of prepared statements: parameter types between executions, and long values that arrive in pieces
//! before an execution.

use crate::error::MalformedPacket;
use crate::params::{ParamType, Params};
use crate::wire::cursor::Cursor;
use mysql_common::constants::ColumnType;
use std::collections::{BTreeMap, HashMap};
use tributary_types::{ErrorCode, SqlError};

/// Memory of a value of long data beyond its bytes: a client may send very many empty ones.
const LONG_VALUE_OVERHEAD_BYTES: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Statements {
    last_id: u32,
    by_id: HashMap<u32, Statement>,
    /// The sum over all statements.
    long_data_bytes: usize,
}

#[derive(Debug, Default)]
pub(super) struct Statement {
    param_count: u16,
    /// The types that the client bound last; empty before the first execution.
    types: Vec<ParamType>,
    /// The types of an execution without types, all of whose values are NULL.
    null_types: Vec<ParamType>,
    long_data: BTreeMap<u16, Vec<u8>>,
    /// Memory of `long_data`.
    long_data_bytes: usize,
    /// An error of long data, which has no answer of its own: the next execution reports it.
    long_data_error: Option<SqlError>,
}

impl Statements {
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// An id that was never used in this connection.
    pub(super) fn next_id(&mut self) -> u32 {
        self.last_id = self.last_id.wrapping_add(1).max(1);
        self.last_id
    }

    pub(super) fn insert(&mut self, id: u32, param_count: u16) {
        self.by_id.insert(id, Statement { param_count, ..Statement::default() });
    }

    pub(super) fn remove(&mut self, id: u32) -> bool {
        self.reset(id);
        self.by_id.remove(&id).is_some()
    }

    /// Removes all statements; ids continue.
    pub(super) fn clear(&mut self) {
        self.by_id.clear();
        self.long_data_bytes = 0;
    }

    /// # Errors
    /// 1243 if there is no such statement; `command` is the intended operation.
    pub(super) fn get(&mut self, id: u32, command: &str) -> Result<&mut Statement, SqlError> {
        self.by_id.get_mut(&id).ok_or_else(|| {
            SqlError::new(
                ErrorCode::UnknownStatementHandle,
                format!("Unknown prepared statement handler ({id}) given to {command}"),
            )
        })
    }

    /// `COM_STMT_SEND_LONG_DATA`: adds a piece of a parameter's value. Never answered. All statements of the connection together
    /// may hold `max_bytes` of it.
    pub(super) fn add_long_data(&mut self, payload: &[u8], max_bytes: usize) {
        let mut fields = Cursor::new(payload);
        let (Ok(id), Ok(index)) = (fields.u32("statement id"), fields.u16("parameter")) else { return };
        if let Some(statement) = self.by_id.get_mut(&id) {
            let others = self.long_data_bytes - statement.long_data_bytes;
            statement.add_long_data(index, fields.rest(), others, max_bytes);
            self.long_data_bytes = others + statement.long_data_bytes;
        }
    }

    /// Forgets a statement's long data, after an execution or by `COM_STMT_RESET`.
    pub(super) fn reset(&mut self, id: u32) {
        if let Some(statement) = self.by_id.get_mut(&id) {
            self.long_data_bytes -= statement.long_data_bytes;
            statement.clear_long_data();
            statement.long_data_error = None;
        }
    }
}

impl Statement {
    /// `others`: memory of long data of the connection's other statements.
    fn add_long_data(&mut self, index: u16, piece: &[u8], others: usize, max_bytes: usize) {
        if self.long_data_error.is_some() {
            return;
        }
        if index >= self.param_count {
            self.long_data_error = Some(SqlError::new(
                ErrorCode::MalformedPacket,
                format!("Long data came for parameter {index}, the statement has {}", self.param_count),
            ));
            return;
        }
        let overhead = if self.long_data.contains_key(&index) { 0 } else { LONG_VALUE_OVERHEAD_BYTES };
        let bytes = self.long_data_bytes + overhead + piece.len();
        if others + bytes > max_bytes {
            // The next execution fails whatever it has.
            self.clear_long_data();
            self.long_data_error = Some(SqlError::new(
                ErrorCode::PacketTooLarge,
                format!(
                    "Parameter of prepared statement which is set through mysql_send_long_data() is longer than \
                     'max_allowed_packet' bytes: {bytes} bytes and {others} of other statements of this \
                     connection, the limit for all is {max_bytes}; execute, reset or close those first"
                ),
            ));
            return;
        }
        self.long_data.entry(index).or_default().extend_from_slice(piece);
        self.long_data_bytes = bytes;
    }

    fn clear_long_data(&mut self) {
        self.long_data.clear();
        self.long_data_bytes = 0;
    }

    /// The parameters of an execution, from what follows the fixed fields of its packet.
    ///
    /// # Errors
    /// The packet is malformed, no types were ever bound, or an earlier piece of long data failed.
    pub(super) fn params<'a>(&'a mut self, mut fields: Cursor<'a>) -> Result<Params<'a>, SqlError> {
        if let Some(error) = self.long_data_error.take() {
            return Err(error);
        }
        let mut types_changed = false;
        let mut null_bitmap: &[u8] = &[];
        if self.param_count > 0 {
            let count = usize::from(self.param_count);
            null_bitmap = fields.bytes(count.div_ceil(8), "the parameters' NULL bits are cut off")?;
            if fields.u8("it is not said whether parameter types follow")? == 1 {
                types_changed = self.bind(&mut fields)?;
            } else if self.types.len() != count {
                // A NULL needs no type, and Connector/J gives none if all are.
                let is_null = |index: usize| null_bitmap[index / 8] & (1 << (index % 8)) != 0;
                if !(0..count).all(is_null) || !self.long_data.is_empty() {
                    return Err(MalformedPacket { what: "parameters have no types" }.into());
                }
                self.null_types.resize(
                    count,
                    ParamType { type_code: ColumnType::MYSQL_TYPE_NULL as u8, unsigned: false },
                );
                let (types, values) = (&self.null_types, fields.rest());
                return Ok(Params {
                    types,
                    types_changed: true,
                    null_bitmap,
                    values,
                    long_data: &self.long_data,
                });
            }
        }
        let values = fields.rest();
        Ok(Params { types: &self.types, types_changed, null_bitmap, values, long_data: &self.long_data })
    }

    /// Reads the parameters' types; true when they differ from the ones before.
    fn bind(&mut self, fields: &mut Cursor<'_>) -> Result<bool, MalformedPacket> {
        let count = usize::from(self.param_count);
        let bytes = fields.bytes(2 * count, "the parameters' types are cut off")?;
        let types =
            bytes.chunks_exact(2).map(|pair| ParamType { type_code: pair[0], unsigned: pair[1] & 0x80 != 0 });
        if self.types.len() == count && types.clone().eq(self.types.iter().copied()) {
            return Ok(false);
        }
        self.types.clear();
        self.types.extend(types);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(param_count: u16) -> Statements {
        let mut statements = Statements::default();
        assert_eq!(statements.next_id(), 1);
        statements.insert(1, param_count);
        statements
    }

    #[test]
    fn types_of_the_execution_before_hold_when_none_are_sent() {
        let mut statements = statement(1);
        let statement = statements.get(1, "EXECUTE").unwrap();
        let unbound = statement.params(Cursor::new(&[0, 0, 5])).unwrap_err();
        assert_eq!(unbound.code, ErrorCode::MalformedPacket);
        let bound = statement.params(Cursor::new(&[0, 1, 8, 0x80, 5])).unwrap();
        assert!(bound.types_changed());
        assert_eq!(bound.types(), [ParamType { type_code: 8, unsigned: true }]);
        let again = statement.params(Cursor::new(&[0, 0, 6])).unwrap();
        assert_eq!(
            (again.types()[0].type_code, again.types_changed(), again.values()),
            (8, false, &[6_u8][..])
        );
        assert!(!statement.params(Cursor::new(&[0, 1, 8, 0x80, 5])).unwrap().types_changed());
    }

    #[test]
    fn pieces_of_long_data_are_joined_until_the_statement_is_reset() {
        let mut statements = statement(2);
        statements.add_long_data(b"\x01\0\0\0\x01\0abc", 100);
        statements.add_long_data(b"\x01\0\0\0\x01\0def", 100);
        let statement = statements.get(1, "EXECUTE").unwrap();
        let params = statement.params(Cursor::new(&[0, 1, 3, 0, 252, 0, 7, 0, 0, 0])).unwrap();
        assert_eq!(params.long_data()[&1], b"abcdef");
        statements.reset(1);
        let statement = statements.get(1, "EXECUTE").unwrap();
        assert!(statement.params(Cursor::new(&[0, 0])).unwrap().long_data().is_empty());
    }

    #[test]
    fn all_statements_of_a_connection_share_one_limit_of_long_data() {
        let mut statements = statement(1);
        assert_eq!(statements.next_id(), 2);
        statements.insert(2, 2);
        let limit = 1000;
        statements.add_long_data(&[&b"\x01\0\0\0\0\0"[..], &[b'x'; 700]].concat(), limit);
        statements.add_long_data(&[&b"\x02\0\0\0\0\0"[..], &[b'x'; 100]].concat(), limit);
        statements.add_long_data(&[&b"\x02\0\0\0\x01\0"[..], &[b'x'; 100]].concat(), limit);
        let error = statements.get(2, "EXECUTE").unwrap().params(Cursor::new(&[])).unwrap_err();
        assert_eq!(error.code, ErrorCode::PacketTooLarge);
        assert!(error.message.contains("328 bytes and 764 of other statements"), "{error}");
        // Failed, executed, reset and closed statements hold no memory.
        assert_eq!(statements.long_data_bytes, 764);
        statements.add_long_data(&[&b"\x02\0\0\0\0\0"[..], &[b'x'; 100]].concat(), limit);
        assert_eq!(statements.long_data_bytes, 928);
        statements.reset(1);
        assert_eq!(statements.long_data_bytes, 164);
        statements.remove(2);
        assert_eq!(statements.long_data_bytes, 0);
        statements.add_long_data(b"\x01\0\0\0\0\0abc", limit);
        statements.clear();
        assert_eq!(statements.long_data_bytes, 0);
    }

    #[test]
    fn empty_values_of_long_data_count_too() {
        let mut statements = statement(u16::MAX);
        for index in 0..1000_u16 {
            statements.add_long_data(&[&b"\x01\0\0\0"[..], &index.to_le_bytes()].concat(), 10_000);
        }
        let error = statements.get(1, "EXECUTE").unwrap().params(Cursor::new(&[])).unwrap_err();
        assert_eq!(error.code, ErrorCode::PacketTooLarge);
    }

    #[test]
    fn too_much_long_data_is_told_by_the_next_execution_and_by_that_only() {
        let mut statements = statement(1);
        statements.add_long_data(b"\x01\0\0\0\0\0abcdef", 5);
        statements.add_long_data(b"\x01\0\0\0\x07\0x", 5);
        statements.add_long_data(b"\x09\0\0\0", 5);
        let statement = statements.get(1, "EXECUTE").unwrap();
        assert!(statement.params(Cursor::new(&[0, 1, 8, 0])).is_err());
        assert!(statement.params(Cursor::new(&[1, 1, 8, 0])).is_ok());
    }

    #[test]
    fn an_unknown_statement_is_named_in_the_error() {
        let error = Statements::default().get(5, "EXECUTE").unwrap_err();
        assert_eq!(error.message, "Unknown prepared statement handler (5) given to EXECUTE");
    }
}
