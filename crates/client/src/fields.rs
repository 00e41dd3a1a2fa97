//! The fields of a payload, read one after the other.

use crate::error::broken;
use std::io;

/// The rest of a payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn bytes(&mut self, count: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(|| broken("a packet ends early"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    pub fn short(&mut self) -> io::Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// A number of MySQL's variable length; `None` is NULL.
    pub fn number(&mut self) -> io::Result<Option<u64>> {
        let [first] = self.array()?;
        let width = match first {
            0xfb => return Ok(None),
            0xfc => 2,
            0xfd => 3,
            0xfe => 8,
            0xff => return Err(broken("a number begins with 255")),
            small => return Ok(Some(small.into())),
        };
        let mut number = [0; 8];
        number[..width].copy_from_slice(self.bytes(width)?);
        Ok(Some(u64::from_le_bytes(number)))
    }

    /// A text behind its length; `None` is NULL. Bytes that are no UTF-8 are shown as `0xFF00`, as MySQL's own client shows them.
    pub fn text(&mut self) -> io::Result<Option<String>> {
        let Some(length) = self.number()? else { return Ok(None) };
        let bytes = self.bytes(usize::try_from(length).unwrap_or(usize::MAX))?;
        Ok(Some(String::from_utf8(bytes.to_vec()).unwrap_or_else(|error| {
            let digits = error.as_bytes().iter().map(|byte| format!("{byte:02X}"));
            format!("0x{}", digits.collect::<String>())
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_to_nine_bytes() {
        let number = |bytes| Fields(bytes).number().map_err(|error| error.to_string());
        assert_eq!(number(&[250]), Ok(Some(250)));
        assert_eq!(number(&[0xfb]), Ok(None));
        assert_eq!(number(&[0xfc, 1, 2]), Ok(Some(0x201)));
        assert_eq!(number(&[0xfd, 1, 2, 3]), Ok(Some(0x3_0201)));
        assert_eq!(number(&[0xfe, 1, 0, 0, 0, 0, 0, 0, 0x80]), Ok(Some(0x8000_0000_0000_0001)));
        assert_eq!(number(&[0xfc, 1]), Err("a packet ends early".to_owned()));
        assert_eq!(number(&[]), Err("a packet ends early".to_owned()));
    }

    #[test]
    fn texts_are_whole_and_other_bytes_are_shown_by_their_digits() {
        let text = |bytes| Fields(bytes).text().map_err(|error| error.to_string());
        assert_eq!(text(b"\x02ab"), Ok(Some("ab".to_owned())));
        assert_eq!(text(b"\xfb"), Ok(None));
        assert_eq!(text(b"\x03ab"), Err("a packet ends early".to_owned()));
        assert_eq!(text(b"\x03\xff\x00a"), Ok(Some("0xFF0061".to_owned())));
    }
}
