//! Packed bodies: in one piece against in pieces, in bounded steps.

use tributary_http::fuzzing::unpack as unpacked;

/// Limit on the decompressed size, in bytes: the rest of a bomb is not awaited.
const UNPACKED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Two bytes choose the codec and the pieces, the others are the body.
pub fn unpack(data: &[u8]) {
    let Some((&[codec, cuts], body)) = data.split_first_chunk::<2>() else { return };
    let whole = unpacked(codec, body, usize::MAX, UNPACKED_BYTES_MAX);
    let cut = unpacked(codec, body, usize::from(cuts) + 1, UNPACKED_BYTES_MAX);
    match (whole, cut) {
        (Ok(whole), Ok(cut)) => {
            assert!(whole == cut, "{} bytes in one piece, {} in pieces", whole.len(), cut.len());
        }
        (Err(_), Err(_)) => {}
        (whole, cut) => {
            panic!("{:?} in one piece, {:?} in pieces", whole.map(|w| w.len()), cut.map(|c| c.len()))
        }
    }
}
