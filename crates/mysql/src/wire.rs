//! Bytes and packets: reading fields, framing packets in and out.
//!
//! A packet is 3 bytes of length, 1 byte of sequence number and the payload; a payload of [`CHUNK_MAX`] bytes continues in the
//! next packet. With compression, the stream of these packets is cut into compressed ones (`inflate`, `deflate`). Nothing here
//! interprets payloads.

pub(crate) mod cursor;
pub(crate) mod deflate;
pub(crate) mod inflate;
pub(crate) mod out;
pub(crate) mod put;
pub(crate) mod reader;
pub(crate) mod stream;

/// The longest payload of one packet; a longer one is continued in further packets.
pub(crate) const CHUNK_MAX: usize = 0xff_ffff;
/// Length and sequence number before each payload.
pub(crate) const HEADER_BYTES: usize = 4;
/// Compressed length, sequence number and decompressed length before each compressed payload.
pub(crate) const COMPRESSED_HEADER_BYTES: usize = 7;
