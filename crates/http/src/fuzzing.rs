//! The parser of request heads without a server, for the fuzzers. Not part of the crate's interface.

use crate::headers::{self, Early, Headers};
use crate::request::{HttpStreamRequest, StreamLoadRequest, TwoPhaseOp, TwoPhaseTarget};
use crate::unpack::{Step, Unpack};
use bytes::Bytes;
use hyper::HeaderMap;
use tributary_decode::Compression;

pub use hyper::header;

/// Parses a Stream Load with these headers.
///
/// # Errors
/// The text that the client is answered.
pub fn stream_load(headers: &HeaderMap, max_bytes: u64) -> Result<StreamLoadRequest, String> {
    let headers = Headers(headers);
    Early::of_stream_load(headers, max_bytes)
        .and_then(|early| {
            headers::stream_load(headers, early, ("db".to_owned(), "t".to_owned()), "root".to_owned())
        })
        .map_err(|error| error.to_string())
}

/// Parses an HTTP Stream with these headers.
///
/// # Errors
/// The text that the client is answered.
pub fn http_stream(headers: &HeaderMap, max_bytes: u64) -> Result<HttpStreamRequest, String> {
    let headers = Headers(headers);
    Early::of_http_stream(headers, max_bytes)
        .and_then(|early| headers::http_stream(headers, early, "root".to_owned()))
        .map_err(|error| error.to_string())
}

/// Parses a second phase with these headers.
///
/// # Errors
/// The text that the client is answered.
pub fn two_phase(headers: &HeaderMap) -> Result<(TwoPhaseOp, TwoPhaseTarget), String> {
    headers::two_phase(Headers(headers)).map_err(|error| error.to_string())
}

/// Whether the head's credentials can be read.
#[must_use]
pub fn has_credentials(headers: &HeaderMap) -> bool {
    crate::auth::credentials(headers).is_some()
}

/// Whether a method and path lead somewhere.
#[must_use]
pub fn has_route(method: &hyper::Method, path: &str) -> bool {
    crate::route::Route::of(method, path).is_ok()
}

/// Decompresses a body that arrives in pieces of `piece` bytes: all of it, or somewhat more than its first `limit` bytes.
///
/// # Errors
/// The body is damaged.
pub fn unpack(codec: u8, body: &[u8], piece: usize, limit: usize) -> std::io::Result<Vec<u8>> {
    const CODECS: [Compression; 7] = [
        Compression::Gzip,
        Compression::Deflate,
        Compression::Bzip2,
        Compression::Zstd,
        Compression::Lz4Frame,
        Compression::Lz4Block,
        Compression::SnappyBlock,
    ];
    let codec = CODECS[usize::from(codec) % CODECS.len()];
    let mut unpack = Unpack::new(codec).expect("each of them packs");
    let (mut pieces, mut output) = (body.chunks(piece), Vec::new());
    loop {
        match unpack.step()? {
            Step::Piece(bytes) => output.extend_from_slice(&bytes),
            Step::NeedInput => match pieces.next() {
                Some(bytes) => unpack.feed(Bytes::copy_from_slice(bytes)),
                None => unpack.end_input(),
            },
            Step::End => return Ok(output),
        }
        if output.len() > limit {
            output.truncate(limit);
            return Ok(output);
        }
    }
}
