//! Reads the fields of a payload, checked: garbage is an error, never a panic.

use crate::error::MalformedPacket;

/// The rest of a payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) const fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload }
    }

    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `count` bytes; `what` names them when they are not there.
    pub(crate) fn bytes(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], MalformedPacket> {
        let (head, rest) = self.rest.split_at_checked(count).ok_or(MalformedPacket { what })?;
        self.rest = rest;
        Ok(head)
    }

    pub(crate) fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], MalformedPacket> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(MalformedPacket { what })?;
        self.rest = rest;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self, what: &'static str) -> Result<u8, MalformedPacket> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self, what: &'static str) -> Result<u16, MalformedPacket> {
        self.array(what).map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32, MalformedPacket> {
        self.array(what).map(u32::from_le_bytes)
    }

    /// A length-encoded integer.
    pub(crate) fn lenenc_int(&mut self, what: &'static str) -> Result<u64, MalformedPacket> {
        match self.u8(what)? {
            short @ 0..=0xfa => Ok(u64::from(short)),
            0xfc => self.u16(what).map(u64::from),
            0xfd => self.array::<3>(what).map(|[a, b, c]| u64::from(u32::from_le_bytes([a, b, c, 0]))),
            0xfe => self.array(what).map(u64::from_le_bytes),
            0xfb | 0xff => Err(MalformedPacket { what }),
        }
    }

    /// Bytes after their length-encoded length.
    pub(crate) fn lenenc_bytes(&mut self, what: &'static str) -> Result<&'a [u8], MalformedPacket> {
        let length = self.lenenc_int(what)?;
        self.bytes(usize::try_from(length).map_err(|_| MalformedPacket { what })?, what)
    }

    /// Bytes up to a zero byte, which is consumed and not returned.
    pub(crate) fn null_terminated(&mut self, what: &'static str) -> Result<&'a [u8], MalformedPacket> {
        let length = self.rest.iter().position(|byte| *byte == 0).ok_or(MalformedPacket { what })?;
        let text = self.bytes(length, what)?;
        self.rest = &self.rest[1..];
        Ok(text)
    }

    /// Like [`Cursor::null_terminated`], for the last field, which some clients do not terminate.
    pub(crate) fn null_terminated_or_rest(&mut self) -> &'a [u8] {
        self.null_terminated("").unwrap_or_else(|_| std::mem::take(&mut self.rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_encoded_integer_has_one_three_four_or_nine_bytes() {
        let read = |bytes: &[u8]| Cursor::new(bytes).lenenc_int("n");
        assert_eq!(read(&[250]), Ok(250));
        assert_eq!(read(&[0xfc, 0x01, 0x02]), Ok(0x201));
        assert_eq!(read(&[0xfd, 1, 2, 3]), Ok(0x30201));
        assert_eq!(read(&[0xfe, 1, 0, 0, 0, 0, 0, 0, 0x80]), Ok(0x8000_0000_0000_0001));
        assert!(read(&[0xfb]).is_err());
        assert!(read(&[0xff]).is_err());
        assert!(read(&[0xfe, 1]).is_err());
        assert!(read(&[]).is_err());
    }

    #[test]
    fn a_text_longer_than_the_packet_is_an_error() {
        assert!(Cursor::new(&[5, b'a']).lenenc_bytes("text").is_err());
        assert!(Cursor::new(&[0xfe, 255, 255, 255, 255, 255, 255, 255, 255]).lenenc_bytes("text").is_err());
        assert!(Cursor::new(b"abc").null_terminated("text").is_err());
        assert_eq!(Cursor::new(b"abc").null_terminated_or_rest(), b"abc");
        assert_eq!(Cursor::new(b"a\0bc").null_terminated_or_rest(), b"a");
    }
}
