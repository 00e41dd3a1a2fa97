//! Parameters of an execution, in MySQL's binary form.

/// A parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Four bytes, which the server reads as a signed INT.
    Int(u32),
    /// Eight bytes, which the server reads as a signed BIGINT.
    BigInt(u64),
    /// A decimal number as text.
    Decimal(String),
    /// A text.
    Text(String),
    /// A day.
    Date {
        /// Such as 1992.
        year: u16,
        /// From 1 on.
        month: u8,
        /// From 1 on.
        day: u8,
    },
}

impl Value {
    pub(crate) fn type_code(&self) -> u8 {
        match self {
            Self::Int(_) => 3,
            Self::BigInt(_) => 8,
            Self::Date { .. } => 10,
            Self::Decimal(_) => 246,
            Self::Text(_) => 253,
        }
    }

    pub(crate) fn push(&self, out: &mut Vec<u8>) {
        match self {
            Self::Int(number) => out.extend(number.to_le_bytes()),
            Self::BigInt(number) => out.extend(number.to_le_bytes()),
            Self::Decimal(text) | Self::Text(text) => {
                push_number(text.len(), out);
                out.extend(text.as_bytes());
            }
            Self::Date { year, month, day } => {
                out.push(4);
                out.extend(year.to_le_bytes());
                out.extend([*month, *day]);
            }
        }
    }
}

/// A number in MySQL's variable length.
fn push_number(number: usize, out: &mut Vec<u8>) {
    match number {
        0..0xfb => out.push(number as u8),
        0xfb..0x1_0000 => {
            out.push(0xfc);
            out.extend((number as u16).to_le_bytes());
        }
        _ => {
            out.push(0xfe);
            out.extend((number as u64).to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Fields;

    #[test]
    fn texts_of_all_lengths_come_back() {
        for length in [0, 250, 251, 0xffff, 0x1_0000] {
            let (text, mut out) = ("x".repeat(length), Vec::new());
            Value::Text(text.clone()).push(&mut out);
            assert!(Fields(&out).text().expect("a whole text") == Some(text), "{length} bytes");
        }
    }
}
