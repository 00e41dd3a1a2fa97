//! A client's commands, as payloads.

use crate::value::Value;

const COM_QUERY: u8 = 3;
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;
const COM_STMT_CLOSE: u8 = 0x19;

/// The number of a prepared statement, which its connection knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement(pub u32);

/// A statement as text. The text is the payload's end.
#[must_use]
pub fn query(sql: &[u8]) -> Vec<u8> {
    [&[COM_QUERY], sql].concat()
}

/// A request to prepare a statement.
#[must_use]
pub fn prepare(sql: &str) -> Vec<u8> {
    [&[COM_STMT_PREPARE], sql.as_bytes()].concat()
}

/// A request to forget a prepared statement.
#[must_use]
pub fn close(statement: Statement) -> Vec<u8> {
    [&[COM_STMT_CLOSE], &statement.0.to_le_bytes()[..]].concat()
}

/// An execution, and the offset in the payload of each parameter's value. The first execution of a statement must include the
/// parameters' types; the server remembers them for later ones.
#[must_use]
pub fn execute(statement: Statement, values: &[Value], with_types: bool) -> (Vec<u8>, Vec<usize>) {
    let mut payload = vec![COM_STMT_EXECUTE];
    payload.extend(statement.0.to_le_bytes());
    payload.push(0); // no cursor
    payload.extend(1_u32.to_le_bytes());
    payload.resize(payload.len() + values.len().div_ceil(8), 0); // none is NULL
    payload.push(u8::from(with_types));
    if with_types {
        values.iter().for_each(|value| payload.extend([value.type_code(), 0]));
    }
    let mut places = Vec::with_capacity(values.len());
    for value in values {
        places.push(payload.len());
        value.push(&mut payload);
    }
    (payload, places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_an_execution_begin_where_it_says() {
        let values = [
            Value::Int(7),
            Value::BigInt(8),
            Value::Decimal("1.50".to_owned()),
            Value::Text("ab".to_owned()),
            Value::Date { year: 1995, month: 6, day: 17 },
        ];
        let expected =
            [&[7, 0, 0, 0][..], &[8, 0, 0, 0, 0, 0, 0, 0], b"\x041.50", b"\x02ab", &[4, 0xcb, 7, 6, 17]];
        for (with_types, first) in [(false, 12), (true, 22)] {
            let (payload, places) = execute(Statement(1), &values, with_types);
            assert_eq!(places[0], first);
            let ends = places[1..].iter().copied().chain([payload.len()]);
            let found: Vec<_> = places.iter().zip(ends).map(|(&begin, end)| &payload[begin..end]).collect();
            assert_eq!(found, expected);
        }
    }
}
