use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

fn gzipped(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// Feeds `input` in pieces of `piece` bytes.
fn gunzip(input: &[u8], piece: usize) -> io::Result<Vec<u8>> {
    let mut gunzip = Gunzip::new();
    let mut pieces = input.chunks(piece);
    let mut output = Vec::new();
    loop {
        match gunzip.step()? {
            Step::Piece(bytes) => {
                assert!(!bytes.is_empty() && bytes.len() <= GZIP_PIECE_BYTES);
                output.extend_from_slice(&bytes);
            }
            Step::NeedInput => match pieces.next() {
                Some(bytes) => gunzip.feed(Bytes::copy_from_slice(bytes)),
                None => gunzip.end_input(),
            },
            Step::End => return Ok(output),
        }
    }
}

#[test]
fn members_are_joined_however_the_input_is_cut() {
    let input = [gzipped(b"1,2\n"), gzipped(b""), gzipped(&vec![b'x'; 150_000])].concat();
    let expected = [&b"1,2\n"[..], &vec![b'x'; 150_000]].concat();
    for piece in [1, 2, 3, 7, 64, 10_000] {
        assert_eq!(gunzip(&input, piece).unwrap(), expected, "pieces of {piece}");
    }
}

#[test]
fn every_truncation_of_a_member_is_an_error() {
    let input = gzipped(b"some rows, and some more rows");
    for length in 0..input.len() {
        assert!(gunzip(&input[..length], 5).is_err(), "{length} of {}", input.len());
    }
}

#[test]
fn a_flipped_bit_or_a_tail_of_garbage_is_an_error() {
    let mut input = gzipped(b"some rows, and some more rows");
    let checksum = input.len() - 8;
    input[checksum] ^= 1;
    assert!(gunzip(&input, 9).unwrap_err().to_string().contains("checksum"));
    input[checksum] ^= 1;
    input.extend_from_slice(b"garbage garbage");
    assert!(gunzip(&input, 9).is_err());
    assert!(gunzip(b"1,2\n3,4\n5,6\n", 4).is_err());
}

#[test]
fn a_bomb_comes_out_in_small_pieces() {
    let inflated = 16 * GZIP_PIECE_BYTES;
    let bomb = gzipped(&vec![0; inflated]);
    assert!(bomb.len() < inflated / 20);
    assert_eq!(gunzip(&bomb, bomb.len()).unwrap().len(), inflated);
}
