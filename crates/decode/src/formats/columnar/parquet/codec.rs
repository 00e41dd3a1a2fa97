//! Decompresses the pages of Parquet files, to exactly the number of bytes in their headers.
//!
//! The library's own codecs of GZIP, BROTLI and LZ4 continue as long as there is input, whatever a header says.

use parquet::basic::Compression;
use std::io::{self, Read};

/// The length of a frame header in Hadoop's LZ4, in bytes.
const HADOOP_HEAD_BYTES: usize = 8;

/// Decompresses the pages of one column.
pub(super) enum Codec {
    Plain,
    Snappy(snap::raw::Decoder),
    Gzip,
    Brotli,
    /// LZ4 in Hadoop's framing, in LZ4's own, or without one: writers of each kind exist.
    Lz4,
    Lz4Raw,
    Zstd(Box<zstd::bulk::Decompressor<'static>>),
}

impl Codec {
    /// # Errors
    /// If the codec is not supported.
    pub fn new(compression: Compression) -> io::Result<Self> {
        Ok(match compression {
            Compression::UNCOMPRESSED => Self::Plain,
            Compression::SNAPPY => Self::Snappy(snap::raw::Decoder::new()),
            Compression::GZIP(_) => Self::Gzip,
            Compression::BROTLI(_) => Self::Brotli,
            Compression::LZ4 => Self::Lz4,
            Compression::LZ4_RAW => Self::Lz4Raw,
            Compression::ZSTD(_) => Self::Zstd(Box::new(zstd::bulk::Decompressor::new()?)),
            Compression::LZO => {
                let text =
                    "pages packed by LZO are not read; write them with SNAPPY, GZIP, BROTLI, LZ4 or ZSTD";
                return Err(io::Error::new(io::ErrorKind::Unsupported, text));
            }
        })
    }

    pub fn is_plain(&self) -> bool {
        matches!(self, Self::Plain)
    }

    /// Appends `length` bytes.
    ///
    /// # Errors
    /// If they are fewer or more, or damaged.
    pub fn unpack(&mut self, packed: &[u8], length: usize, into: &mut Vec<u8>) -> io::Result<()> {
        let start = into.len();
        into.reserve_exact(length);
        match self {
            Self::Plain => into.extend_from_slice(packed),
            Self::Snappy(decoder) => {
                let claimed = snap::raw::decompress_len(packed).map_err(io::Error::other)?;
                if claimed != length {
                    return Err(other_length(claimed, length));
                }
                into.resize(start + length, 0);
                decoder.decompress(packed, &mut into[start..]).map_err(io::Error::other)?;
            }
            Self::Gzip => read(flate2::bufread::MultiGzDecoder::new(packed), length, into)?,
            Self::Brotli => read(brotli::Decompressor::new(packed, 4096), length, into)?,
            Self::Lz4 => {
                into.resize(start + length, 0);
                if !hadoop(packed, &mut into[start..]) {
                    into.truncate(start);
                    let framed = read(lz4_flex::frame::FrameDecoder::new(packed), length, into);
                    if framed.is_err() || into.len() != start + length {
                        into.truncate(start);
                        raw_lz4(packed, length, into)?;
                    }
                }
            }
            Self::Lz4Raw => raw_lz4(packed, length, into)?,
            Self::Zstd(decoder) => {
                // The library fills the whole capacity, which may be larger.
                let mut buffer = Vec::with_capacity(length);
                decoder.decompress_to_buffer(packed, &mut buffer)?;
                if start == 0 && buffer.len() == length {
                    *into = buffer;
                } else {
                    into.extend_from_slice(&buffer);
                }
            }
        }
        match into.len() - start {
            found if found == length => Ok(()),
            found => Err(other_length(found, length)),
        }
    }
}

fn other_length(found: usize, length: usize) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("it unpacks to {found} bytes, and should to {length}"))
}

/// Reads at most one byte more than expected.
fn read(reader: impl Read, length: usize, into: &mut Vec<u8>) -> io::Result<()> {
    reader.take(length as u64 + 1).read_to_end(into).map(drop)
}

fn raw_lz4(packed: &[u8], length: usize, into: &mut Vec<u8>) -> io::Result<()> {
    let start = into.len();
    into.resize(start + length, 0);
    let found = lz4_flex::block::decompress_into(packed, &mut into[start..]).map_err(io::Error::other)?;
    into.truncate(start + found);
    Ok(())
}

/// Decompresses frames, each preceded by its decompressed and its compressed length, if they fill `into`.
fn hadoop(mut packed: &[u8], mut into: &mut [u8]) -> bool {
    while !packed.is_empty() {
        let Some((head, rest)) = packed.split_at_checked(HADOOP_HEAD_BYTES) else { return false };
        let number =
            |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().expect("four bytes")) as usize;
        let (unpacked, length) = (number(0), number(4));
        let Some((frame, after)) = rest.split_at_checked(length) else { return false };
        let Some((block, left)) = into.split_at_mut_checked(unpacked) else { return false };
        if !lz4_flex::block::decompress_into(frame, block).is_ok_and(|found| found == unpacked) {
            return false;
        }
        (packed, into) = (after, left);
    }
    into.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::basic::{BrotliLevel, GzipLevel, ZstdLevel};
    use std::io::Write;

    /// `bytes`, compressed with each codec.
    fn packed(bytes: &[u8]) -> Vec<(Compression, Vec<u8>)> {
        let gzip = {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        };
        let brotli = {
            let mut out = Vec::new();
            brotli::CompressorWriter::new(&mut out, 4096, 5, 22).write_all(bytes).unwrap();
            out
        };
        let lz4_frame = {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        };
        let lz4 = lz4_flex::block::compress(bytes);
        let hadoop = {
            let mut out = Vec::new();
            for half in bytes.chunks(bytes.len() / 2 + 1) {
                let frame = lz4_flex::block::compress(half);
                out.extend((half.len() as u32).to_be_bytes());
                out.extend((frame.len() as u32).to_be_bytes());
                out.extend(frame);
            }
            out
        };
        vec![
            (Compression::UNCOMPRESSED, bytes.to_vec()),
            (Compression::SNAPPY, snap::raw::Encoder::new().compress_vec(bytes).unwrap()),
            (Compression::GZIP(GzipLevel::default()), gzip),
            (Compression::BROTLI(BrotliLevel::default()), brotli),
            (Compression::LZ4, hadoop),
            (Compression::LZ4, lz4_frame),
            (Compression::LZ4, lz4.clone()),
            (Compression::LZ4_RAW, lz4),
            (Compression::ZSTD(ZstdLevel::default()), zstd::bulk::compress(bytes, 1).unwrap()),
        ]
    }

    #[test]
    fn pages_of_every_codec_are_unpacked_behind_what_is_there() {
        let page: Vec<u8> = (0..100_000_u32).map(|at| (at / 7) as u8).collect();
        for (compression, packed) in packed(&page) {
            let mut into = b"levels".to_vec();
            Codec::new(compression).unwrap().unpack(&packed, page.len(), &mut into).unwrap();
            assert_eq!(into, [b"levels", &page[..]].concat(), "{compression:?}");
        }
    }

    #[test]
    fn a_page_that_unpacks_to_another_length_than_it_says_takes_no_more_memory_than_it_says() {
        for (compression, packed) in packed(&vec![0; 8 << 20]) {
            for length in [1000, 16 << 20] {
                let mut into = Vec::new();
                let unpacked = Codec::new(compression).unwrap().unpack(&packed, length, &mut into);
                assert!(unpacked.is_err(), "{compression:?} {length}");
                let is_small = into.capacity() <= 2 * length + 64 * 1024;
                assert!(is_small || compression == Compression::UNCOMPRESSED, "{compression:?} {length}");
            }
        }
    }

    #[test]
    fn damage_is_an_error() {
        let page = b"a page of some bytes, a page of some bytes";
        for (compression, packed) in packed(page) {
            let mut codec = Codec::new(compression).unwrap();
            for length in 0..packed.len() {
                let mut into = Vec::new();
                // Only end markers may be missing.
                let is_whole = codec.unpack(&packed[..length], page.len(), &mut into).is_ok();
                assert!(
                    !is_whole || (into == page && length + 4 >= packed.len()),
                    "{compression:?} {length}"
                );
            }
        }
        assert!(Codec::new(Compression::LZO).is_err());
    }
}
