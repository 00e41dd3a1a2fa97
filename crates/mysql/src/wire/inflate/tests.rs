use super::*;
use crate::wire::deflate::Deflater;
use flate2::{Compress, Compression, FlushCompress};
use std::collections::VecDeque;
use tokio::io::AsyncReadExt;

fn incoming(pieces: impl IntoIterator<Item = Vec<u8>>) -> Incoming {
    let mut incoming = Incoming::new(ReadHalf::Memory(pieces.into_iter().collect::<VecDeque<_>>()));
    incoming.begin_inflating(&[]);
    incoming
}

async fn inflated(bytes: &[u8]) -> Result<Vec<u8>, BadCompression> {
    let mut out = Vec::new();
    match incoming([bytes.to_vec()]).read_to_end(&mut out).await {
        Ok(_) => Ok(out),
        Err(error) => Err(error.downcast().expect("what was wrong with the packet")),
    }
}

/// One compressed packet, with the lengths that its header announces.
fn packet(sequence: u8, inflated_length: usize, payload: &[u8]) -> Vec<u8> {
    let mut out = (payload.len() as u32).to_le_bytes()[..3].to_vec();
    out.push(sequence);
    out.extend_from_slice(&(inflated_length as u32).to_le_bytes()[..3]);
    out.extend_from_slice(payload);
    out
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 1000);
    Compress::new(Compression::default(), true).compress_vec(bytes, &mut out, FlushCompress::Finish).unwrap();
    out
}

#[tokio::test]
async fn stored_and_deflated_packets_make_one_stream_wherever_reads_end() {
    let text = b"many words, many words, many words; ".repeat(4000);
    let bytes = [
        packet(0, 0, b"tiny"),
        packet(1, text.len(), &zlib(&text)),
        packet(2, 0, b""),
        packet(3, 1, &zlib(b"x")),
        packet(0, 0, b"next command"),
    ]
    .concat();
    let expected = [&b"tiny"[..], &text, b"x", b"next command"].concat();
    assert_eq!(inflated(&bytes).await.unwrap(), expected);
    for size in [1, 2, 7, 100] {
        let mut out = Vec::new();
        incoming(bytes.chunks(size).map(<[u8]>::to_vec)).read_to_end(&mut out).await.unwrap();
        assert!(out == expected, "pieces of {size}: {} bytes", out.len());
    }
}

#[tokio::test]
async fn what_the_server_deflates_is_read_back() {
    let packets = [&b"\x01\0\0\0a"[..], b"\0\0\x01\x01", &vec![5; 0x1_0000], b"\x02\0\0\x02bc"].concat();
    let mut wire = Vec::new();
    Deflater::new().deflate(&packets, &mut wire);
    assert!(wire.len() < packets.len() / 50);
    assert!(inflated(&wire).await.unwrap() == packets);
}

#[tokio::test]
async fn a_packet_that_lies_about_its_length_is_corrupt() {
    let payload = zlib(&vec![0; 100_000]);
    for announced in [1, 99_999, 100_001] {
        let error = inflated(&packet(0, announced, &payload)).await.unwrap_err();
        assert!(matches!(error, BadCompression::Corrupt(_)), "{announced}: {error}");
    }
    let with_rest = [&payload[..], b"rest"].concat();
    assert!(matches!(inflated(&packet(0, 100_000, &with_rest)).await, Err(BadCompression::Corrupt(_))));
    let cut = &payload[..payload.len() - 1];
    assert!(matches!(inflated(&packet(0, 100_000, cut)).await, Err(BadCompression::Corrupt(_))));
    assert!(matches!(inflated(&packet(0, 5, b"no zlib")).await, Err(BadCompression::Corrupt(_))));
}

#[tokio::test]
async fn the_last_bytes_wait_for_the_checksum() {
    for length in [10, STEP_BYTES, STEP_BYTES + 1, 3 * STEP_BYTES] {
        let text = vec![1; length];
        let mut bytes = packet(0, length, &zlib(&text));
        let mut out = Vec::new();
        incoming([bytes.clone()]).read_to_end(&mut out).await.unwrap();
        assert!(out == text);
        *bytes.last_mut().unwrap() ^= 1;
        let mut out = Vec::new();
        incoming([bytes]).read_to_end(&mut out).await.unwrap_err();
        assert!(out.len() < length, "{} of {length} bytes were handed out", out.len());
    }
}

#[tokio::test]
async fn a_stream_that_ends_amid_a_packet_is_no_end() {
    let bytes = packet(0, 1000, &zlib(&[1; 1000]));
    for length in [1, 6, 7, bytes.len() - 1] {
        let error = incoming([bytes[..length].to_vec()]).read_to_end(&mut Vec::new()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{length} bytes");
    }
}

#[tokio::test]
async fn sequence_numbers_continue_or_restart() {
    let stored = |sequence| packet(sequence, 0, b"x");
    assert!(inflated(&[stored(0), stored(1), stored(2), stored(0), stored(1)].concat()).await.is_ok());
    let error = inflated(&[stored(0), stored(2)].concat()).await.unwrap_err();
    assert_eq!(error, BadCompression::OutOfOrder { expected: 1, got: 2 });
    let mut answering = incoming([stored(5)]);
    answering.expect_sequence(5);
    assert_eq!(answering.read_u8().await.unwrap(), b'x');
    assert_eq!(answering.sequence(), 5);
}

#[tokio::test]
async fn a_bomb_is_inflated_no_further_than_it_is_read() {
    let bomb = packet(0, 1 << 20, &zlib(&vec![0; 1 << 20]));
    assert!(bomb.len() < 2000);
    let mut incoming = incoming([bomb]);
    let mut some = [1; 10];
    incoming.read_exact(&mut some).await.unwrap();
    assert_eq!(some, [0; 10]);
    let inflater = incoming.inflater.as_ref().unwrap();
    assert!(inflater.raw.capacity() <= 2 * RAW_BYTES);
    assert_eq!(inflater.zlib.total_out(), STEP_BYTES as u64);
}
