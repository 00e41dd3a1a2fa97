//! Payloads ↔ packets. A packet is 3 bytes of length, a sequence number and a payload; a payload
//! that fills its packet is continued by the next one.

use std::io::{self, ErrorKind, Read};

/// The most bytes of one packet's payload.
pub const PAYLOAD_BYTES_MAX: usize = 0xff_ffff;
/// Bytes before each payload.
pub const HEAD_BYTES: usize = 4;

/// A payload in as many packets as it needs, the first with the given sequence number.
#[must_use]
pub fn framed(payload: &[u8], mut sequence: u8) -> Vec<u8> {
    let mut out = Vec::with_capacity(payload.len() + 2 * HEAD_BYTES);
    let mut rest = payload;
    loop {
        let (now, later) = rest.split_at(rest.len().min(PAYLOAD_BYTES_MAX));
        out.extend(&(now.len() as u32).to_le_bytes()[..3]);
        out.push(sequence);
        out.extend(now);
        if now.len() < PAYLOAD_BYTES_MAX {
            return out;
        }
        sequence = sequence.wrapping_add(1);
        rest = later;
    }
}

/// The first whole packet of some bytes: its sequence number and payload.
#[must_use]
pub fn first(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let (&head, rest) = bytes.split_first_chunk()?;
    let (length, sequence) = length_and_sequence(head);
    Some((sequence, rest.get(..length)?))
}

/// Reads a payload, from as many packets as it has, and the last one's sequence number.
///
/// # Errors
/// The stream's; its end is one too.
pub fn read(stream: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut payload = Vec::new();
    loop {
        let mut head = [0; HEAD_BYTES];
        stream.read_exact(&mut head).map_err(end)?;
        let (length, sequence) = length_and_sequence(head);
        let start = payload.len();
        payload.resize(start + length, 0);
        stream.read_exact(&mut payload[start..]).map_err(end)?;
        if length < PAYLOAD_BYTES_MAX {
            return Ok((sequence, payload));
        }
    }
}

fn length_and_sequence([low, middle, high, sequence]: [u8; HEAD_BYTES]) -> (usize, u8) {
    (u32::from_le_bytes([low, middle, high, 0]) as usize, sequence)
}

/// The end of a stream in words.
fn end(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::UnexpectedEof => io::Error::new(error.kind(), "the server closed the connection"),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_comes_back_from_as_many_packets_as_it_needs() {
        for (bytes, packets) in
            [(0, 1), (5, 1), (PAYLOAD_BYTES_MAX - 1, 1), (PAYLOAD_BYTES_MAX, 2), (PAYLOAD_BYTES_MAX + 1, 2)]
        {
            let payload = vec![7; bytes];
            let framed = framed(&payload, 255);
            assert_eq!(framed.len(), bytes + packets * HEAD_BYTES);
            let (sequence, read) = read(&mut framed.as_slice()).expect("whole packets");
            assert_eq!(sequence, 255_u8.wrapping_add(packets as u8 - 1));
            assert!(read == payload, "{bytes} bytes");
        }
    }

    #[test]
    fn a_packet_is_found_when_it_is_whole() {
        let mut bytes = framed(b"one", 3);
        assert!((0..bytes.len()).all(|end| first(&bytes[..end]).is_none()));
        bytes.extend(framed(b"two", 4));
        assert_eq!(first(&bytes), Some((3, &b"one"[..])));
    }

    #[test]
    fn a_closed_connection_is_an_error_that_says_so() {
        let half = &framed(b"one", 0)[..5];
        let error = read(&mut &half[..]).expect_err("half a packet");
        assert_eq!(error.to_string(), "the server closed the connection");
    }
}
