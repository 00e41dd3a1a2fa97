use super::*;
use std::io::Write;

const CODECS: [Compression; 7] = [
    Compression::Gzip,
    Compression::Deflate,
    Compression::Bzip2,
    Compression::Zstd,
    Compression::Lz4Frame,
    Compression::Lz4Block,
    Compression::SnappyBlock,
];

fn packed(compression: Compression, data: &[u8]) -> Vec<u8> {
    match compression {
        Compression::None => data.to_vec(),
        Compression::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(data).unwrap();
            encoder.finish().unwrap()
        }
        Compression::Deflate => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(data).unwrap();
            encoder.finish().unwrap()
        }
        Compression::Bzip2 => {
            let mut encoder = ::bzip2::write::BzEncoder::new(Vec::new(), ::bzip2::Compression::fast());
            encoder.write_all(data).unwrap();
            encoder.finish().unwrap()
        }
        Compression::Zstd => {
            let mut encoder = ::zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
            encoder.include_checksum(true).unwrap();
            encoder.write_all(data).unwrap();
            encoder.finish().unwrap()
        }
        Compression::Lz4Frame => lz4_frame(data, lz4_flex::frame::FrameInfo::new().content_checksum(true)),
        Compression::Lz4Block => hadoop(data, lz4_flex::block::compress),
        Compression::SnappyBlock => {
            hadoop(data, |part| snap::raw::Encoder::new().compress_vec(part).unwrap())
        }
    }
}

fn lz4_frame(data: &[u8], info: lz4_flex::frame::FrameInfo) -> Vec<u8> {
    let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// Blocks of at most 100,000 bytes in parts of at most 30,000.
fn hadoop(data: &[u8], pack: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut out = Vec::new();
    for block in data.chunks(100_000) {
        out.extend_from_slice(&(block.len() as u32).to_be_bytes());
        for part in block.chunks(30_000) {
            let part = pack(part);
            out.extend_from_slice(&(part.len() as u32).to_be_bytes());
            out.extend_from_slice(&part);
        }
    }
    out
}

/// Feeds `input` in pieces of `piece` bytes.
fn unpacked(compression: Compression, input: &[u8], piece: usize) -> io::Result<Vec<u8>> {
    let mut unpack = Unpack::new(compression).unwrap();
    let mut pieces = input.chunks(piece);
    let mut output = Vec::new();
    loop {
        match unpack.step()? {
            Step::Piece(bytes) => {
                assert!(!bytes.is_empty() && bytes.len() <= PIECE_BYTES);
                output.extend_from_slice(&bytes);
            }
            Step::NeedInput => match pieces.next() {
                Some(bytes) => unpack.feed(Bytes::copy_from_slice(bytes)),
                None => unpack.end_input(),
            },
            Step::End => return Ok(output),
        }
    }
}

/// Text that packs well and is not the same everywhere.
fn text(bytes: usize) -> Vec<u8> {
    (0..).flat_map(|row: u64| format!("{row},name{},x\n", row * row % 977).into_bytes()).take(bytes).collect()
}

#[test]
fn streams_are_joined_however_the_input_is_cut() {
    let text = text(300_000);
    for compression in CODECS {
        let input = [packed(compression, b"1,2\n"), packed(compression, &text)].concat();
        let expected = [b"1,2\n", &text[..]].concat();
        for piece in [1, 2, 3, 7, 64, 10_000, input.len()] {
            assert!(
                unpacked(compression, &input, piece).unwrap() == expected,
                "{compression:?} in pieces of {piece}"
            );
        }
    }
}

#[test]
fn every_truncation_of_a_stream_is_an_error() {
    for compression in CODECS {
        let input = packed(compression, b"some rows, and some more rows");
        for length in 0..input.len() {
            let error = unpacked(compression, &input[..length], 5).unwrap_err();
            assert_eq!(
                error.kind(),
                ErrorKind::UnexpectedEof,
                "{compression:?}: {length} of {}",
                input.len()
            );
        }
    }
}

#[test]
fn a_flipped_bit_is_an_error_where_there_are_checksums() {
    for compression in &CODECS[..5] {
        let good = packed(*compression, b"some rows, and some more rows");
        let mut bad = good.clone();
        let checksum = bad.len() - if *compression == Compression::Gzip { 8 } else { 2 };
        bad[checksum] ^= 1;
        assert!(unpacked(*compression, &bad, 9).is_err(), "{compression:?}");
    }
}

#[test]
fn what_is_not_packed_so_is_an_error() {
    for compression in CODECS {
        for text in [&b"1,2\n3,4\n5,6\n7,8\n9,10\n"[..], &[0xff; 40]] {
            let error = unpacked(compression, text, 4).unwrap_err();
            assert_ne!(error.kind(), ErrorKind::WouldBlock, "{compression:?}: {error}");
        }
        let behind = [packed(compression, b"1,2\n"), b"garbage garbage".to_vec()].concat();
        assert!(unpacked(compression, &behind, 9).is_err(), "{compression:?}");
    }
}

#[test]
fn a_bomb_comes_out_in_small_pieces() {
    let inflated = 16 * PIECE_BYTES;
    for compression in CODECS {
        let bomb = packed(compression, &vec![0; inflated]);
        assert!(bomb.len() < inflated / 15, "{compression:?}: {}", bomb.len());
        assert_eq!(unpacked(compression, &bomb, bomb.len()).unwrap().len(), inflated, "{compression:?}");
    }
}

#[test]
fn sizes_that_bodies_claim_are_bounded() {
    for compression in [Compression::Lz4Block, Compression::SnappyBlock] {
        for claim in [&[0x7f, 0xff, 0xff, 0xff][..], &[0, 0, 1, 0, 0x7f, 0xff, 0xff, 0xff]] {
            let error = unpacked(compression, claim, 8).unwrap_err().to_string();
            assert!(error.contains("2147483647 bytes, the limit is 16777216"), "{error}");
        }
    }
    let mut encoder = ::zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(27).unwrap();
    encoder.write_all(&text(1000)).unwrap();
    let wide = encoder.finish().unwrap();
    let error = unpacked(Compression::Zstd, &wide, 100).unwrap_err().to_string();
    assert!(error.contains("too much memory"), "{error}");
}

#[test]
fn lz4_frames_of_all_kinds_are_read() {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameInfo};
    let text = text(1_000_000);
    for mode in [BlockMode::Independent, BlockMode::Linked] {
        for size in [BlockSize::Max64KB, BlockSize::Max256KB, BlockSize::Max4MB] {
            let info = FrameInfo::new()
                .block_mode(mode)
                .block_size(size)
                .block_checksums(true)
                .content_size(Some(text.len() as u64));
            let frame = lz4_frame(&text, info);
            assert!(unpacked(Compression::Lz4Frame, &frame, 5000).unwrap() == text, "{mode:?}");
        }
    }
    let skipped = [&0x184D_2A53_u32.to_le_bytes()[..], &5_u32.to_le_bytes(), b"notes"].concat();
    let both = [&skipped[..], &packed(Compression::Lz4Frame, b"1,2\n"), &skipped].concat();
    assert_eq!(unpacked(Compression::Lz4Frame, &both, 3).unwrap(), b"1,2\n");
    let legacy = unpacked(Compression::Lz4Frame, &LEGACY, 3).unwrap_err().to_string();
    assert!(legacy.contains("legacy format"), "{legacy}");
}

const LEGACY: [u8; 8] = [0x02, 0x21, 0x4c, 0x18, 1, 0, 0, 0];
