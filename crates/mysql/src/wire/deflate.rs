//! Compresses the server's packets for a client that requested it.
//!
//! Each compressed packet holds whole packets wherever they fit: some drivers read no further than
//! the compressed packet in which a packet began, and the one after it. Its form is in `inflate`.

use super::{CHUNK_MAX, COMPRESSED_HEADER_BYTES, HEADER_BYTES};
use flate2::{Compress, Compression, FlushCompress, Status};

/// Less is sent as it is, in bytes; MySQL's limit.
const COMPRESSED_MIN: usize = 50;

#[derive(Debug)]
pub(crate) struct Deflater {
    zlib: Compress,
    /// The next compressed packet's sequence number.
    sequence: u8,
}

impl Deflater {
    pub(crate) fn new() -> Self {
        // The fastest level: answers are compressed by the thread that serves the connection.
        Self { zlib: Compress::new(Compression::fast(), true), sequence: 0 }
    }

    pub(crate) fn sequence(&self) -> u8 {
        self.sequence
    }

    /// The next compressed packet gets this sequence number.
    pub(crate) fn set_sequence(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    /// Appends whole packets to `wire`, compressed.
    pub(crate) fn deflate(&mut self, packets: &[u8], wire: &mut Vec<u8>) {
        pieces(packets).for_each(|piece| self.packet(piece, wire));
    }

    fn packet(&mut self, piece: &[u8], wire: &mut Vec<u8>) {
        let header = wire.len();
        wire.extend_from_slice(&[0; COMPRESSED_HEADER_BYTES]);
        let inflated_length = if piece.len() >= COMPRESSED_MIN && self.shrinks(piece, wire) {
            piece.len()
        } else {
            wire.extend_from_slice(piece);
            0
        };
        let length = wire.len() - header - COMPRESSED_HEADER_BYTES;
        wire[header..header + 3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
        wire[header + 3] = self.sequence;
        wire[header + 4..header + 7].copy_from_slice(&(inflated_length as u32).to_le_bytes()[..3]);
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Appends `piece` compressed; appends nothing and returns false if that would not make it smaller.
    fn shrinks(&mut self, piece: &[u8], wire: &mut Vec<u8>) -> bool {
        let begin = wire.len();
        wire.reserve(piece.len());
        self.zlib.reset();
        let status = self.zlib.compress_vec(piece, wire, FlushCompress::Finish);
        let shrinks = matches!(status, Ok(Status::StreamEnd)) && wire.len() - begin < piece.len();
        if !shrinks {
            wire.truncate(begin);
        }
        shrinks
    }
}

/// The contents of one compressed packet each.
fn pieces(mut packets: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (run, rest) = packets.split_at(run_of_packets(packets));
        packets = rest;
        (!run.is_empty()).then_some(run)
    })
    .flat_map(|run| run.chunks(CHUNK_MAX))
}

/// The length of as many whole packets as fit into one compressed packet; of one at least.
fn run_of_packets(packets: &[u8]) -> usize {
    let mut end = 0;
    while let Some(&[a, b, c, _]) = packets[end..].first_chunk::<HEADER_BYTES>() {
        let next = end + HEADER_BYTES + u32::from_le_bytes([a, b, c, 0]) as usize;
        if end > 0 && next > CHUNK_MAX {
            return end;
        }
        end = next.min(packets.len());
    }
    // A header is never cut off; if it were, its bytes would still be sent.
    if end == 0 { packets.len() } else { end }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deflated(packets: &[u8]) -> Vec<u8> {
        let mut wire = Vec::new();
        Deflater::new().deflate(packets, &mut wire);
        wire
    }

    /// The compressed packets: sequence number, inflated length, payload.
    fn packets(mut wire: &[u8]) -> Vec<(u8, usize, &[u8])> {
        let mut found = Vec::new();
        while !wire.is_empty() {
            let length = |at: usize| u32::from_le_bytes([wire[at], wire[at + 1], wire[at + 2], 0]) as usize;
            let end = COMPRESSED_HEADER_BYTES + length(0);
            found.push((wire[3], length(4), &wire[COMPRESSED_HEADER_BYTES..end]));
            wire = &wire[end..];
        }
        found
    }

    fn framed(length: usize, byte: u8) -> Vec<u8> {
        let mut packet = (length as u32).to_le_bytes()[..3].to_vec();
        packet.push(0);
        packet.resize(HEADER_BYTES + length, byte);
        packet
    }

    #[test]
    fn tiny_packets_and_what_does_not_shrink_are_stored() {
        let tiny = framed(45, 7);
        assert_eq!(packets(&deflated(&tiny)), [(0, 0, &tiny[..])]);
        let mut noise = framed(300, 0);
        let mut random = 1_u32;
        for byte in &mut noise[HEADER_BYTES..] {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *byte = (random >> 24) as u8;
        }
        let wire = deflated(&noise);
        assert_eq!((packets(&wire)[0].1, packets(&wire)[0].2), (0, &noise[..]));
        let dull = deflated(&framed(300, 7));
        assert_eq!(packets(&dull)[0].1, 304);
        assert!(dull.len() < 50);
    }

    #[test]
    fn packets_stay_whole_unless_one_alone_is_too_long() {
        let half = framed(CHUNK_MAX / 2, 1);
        let full = framed(CHUNK_MAX, 2);
        let tiny = framed(1, 3);
        let packets = [&half[..], &tiny, &half, &full, &half].concat();
        let lengths: Vec<_> = pieces(&packets).map(<[u8]>::len).collect();
        let half = half.len();
        assert_eq!(lengths, [half + tiny.len(), half, CHUNK_MAX, HEADER_BYTES, half]);
    }
}
