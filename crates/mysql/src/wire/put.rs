//! Appends the protocol's field encodings to a buffer.

pub(crate) fn u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

pub(crate) fn u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// A length-encoded integer.
pub(crate) fn lenenc_int(out: &mut Vec<u8>, value: u64) {
    let bytes = value.to_le_bytes();
    match value {
        0..=0xfa => out.push(bytes[0]),
        0xfb..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&bytes[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&bytes);
        }
    }
}

/// Bytes after their length-encoded length.
pub fn lenenc_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    lenenc_int(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A text of at most 250 bytes that `write` appends, after its length.
pub(crate) fn short_text(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.push(0);
    write(out);
    let length = out.len() - at - 1;
    assert!(length <= 250, "a short text has {length} bytes");
    out[at] = length as u8;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::cursor::Cursor;

    #[test]
    fn a_length_encoded_integer_is_read_back_at_every_edge() {
        for value in [0, 250, 251, 0xffff, 0x1_0000, 0xff_ffff, 0x100_0000, u64::MAX] {
            let mut out = Vec::new();
            lenenc_int(&mut out, value);
            assert_eq!(Cursor::new(&out).lenenc_int("n"), Ok(value));
        }
    }
}
