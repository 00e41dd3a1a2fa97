//! Protocol buffers, as much of them as an ORC file's own descriptions have: fields of numbers and of bytes.

use super::{Damage, Outcome};

/// The fields of a message, in sequence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message<'a>(&'a [u8]);

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Message<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next field, its number first; `None` at the end.
    ///
    /// # Errors
    /// [`Damage`] if it is cut off, or of no known form.
    pub fn next(&mut self) -> Outcome<Option<(u64, Value<'a>)>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Value::Number(self.varint()?),
            1 => Value::Bytes(self.take(8)?),
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Bytes(self.take(4)?),
            form => return Err(Damage::new(format!("its description has a field of the form {form}"))),
        };
        Ok(Some((tag >> 3, value)))
    }

    fn take(&mut self, length: u64) -> Outcome<&'a [u8]> {
        let split = usize::try_from(length).ok().and_then(|length| self.0.split_at_checked(length));
        let (taken, rest) = split.ok_or_else(|| Damage::new("its description is cut off"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Outcome<u64> {
        let mut value = 0;
        for (at, &byte) in self.0.iter().enumerate().take(10) {
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                self.0 = &self.0[at + 1..];
                return Ok(value);
            }
        }
        Err(Damage::new("its description has a number without an end"))
    }
}

impl<'a> Value<'a> {
    /// # Errors
    /// [`Damage`] if it is not a number.
    pub fn number(self) -> Outcome<u64> {
        match self {
            Self::Number(number) => Ok(number),
            Self::Bytes(_) => Err(Damage::new("its description has bytes where a number should be")),
        }
    }

    /// # Errors
    /// [`Damage`] if it is a number.
    pub fn bytes(self) -> Outcome<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Number(_) => Err(Damage::new("its description has a number where bytes should be")),
        }
    }

    /// # Errors
    /// [`Damage`] if it is a number.
    pub fn message(self) -> Outcome<Message<'a>> {
        Ok(Message(self.bytes()?))
    }

    /// Adds the numbers of a repeated field, which is one number or a row of them.
    ///
    /// # Errors
    /// [`Damage`] if they are cut off.
    pub fn add_numbers(self, to: &mut Vec<u64>) -> Outcome<()> {
        match self {
            Self::Number(number) => to.push(number),
            Self::Bytes(bytes) => {
                let mut rest = Message(bytes);
                while !rest.0.is_empty() {
                    to.push(rest.varint()?);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_numbers_and_bytes_until_they_are_cut_off() {
        let bytes = [0x08, 0x96, 0x01, 0x12, 2, b'a', b'b', 0x1a, 2, 3, 4];
        let mut message = Message::new(&bytes);
        assert_eq!(message.next().unwrap(), Some((1, Value::Number(150))));
        assert_eq!(message.next().unwrap(), Some((2, Value::Bytes(b"ab"))));
        let (number, packed) = message.next().unwrap().unwrap();
        let mut numbers = Vec::new();
        packed.add_numbers(&mut numbers).unwrap();
        assert_eq!((number, numbers), (3, vec![3, 4]));
        assert_eq!(message.next().unwrap(), None);
        for bad in [&[0x08][..], &[0x12, 5, 1], &[0x0b], &[0xff; 12], &[0x12, 0xff, 0xff, 0xff, 0xff, 0x7f]] {
            assert!(Message::new(bad).next().is_err(), "{bad:?}");
        }
    }
}
