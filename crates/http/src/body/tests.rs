use super::*;

fn body(chunks: &[&'static [u8]]) -> LoadBody {
    LoadBody::from_chunks(chunks.iter().map(|chunk| Bytes::from_static(chunk)))
}

#[tokio::test]
async fn a_body_yields_its_chunks_without_empty_ones_and_then_ends_for_ever() {
    let mut body = body(&[b"ab", b"", b"c"]);
    let meter = body.meter();
    assert_eq!(body.next().await, Some(Ok(Bytes::from_static(b"ab"))));
    assert_eq!(body.next().await, Some(Ok(Bytes::from_static(b"c"))));
    assert_eq!(body.next().await, None);
    assert_eq!(body.next().await, None);
    drop(body);
    assert_eq!(meter.received_bytes(), 3);
}

#[tokio::test]
async fn after_an_error_a_body_ends_for_ever() {
    let mut body = body(&[b"no gzip at all", b"more"]).decompress(Compression::Gzip);
    let error = body.next().await.unwrap().unwrap_err();
    assert_eq!(error.code(), LoadCode::DataQuality);
    assert_eq!(
        error.to_string(),
        "broken gzip body after 14 bytes: invalid gzip header; send whole gzip members, or no compress_type and no \
         Content-Encoding"
    );
    assert_eq!(body.next().await, None);
}

#[tokio::test]
async fn asking_twice_for_decompression_decompresses_once() {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(b"1,2\n").unwrap();
    let compressed = Bytes::from(encoder.finish().unwrap());
    let wire_bytes = compressed.len() as u64;
    let body = LoadBody::from_chunks([compressed]);
    let mut body =
        body.decompress(Compression::Gzip).decompress(Compression::None).decompress(Compression::Gzip);
    let meter = body.meter();
    assert_eq!(body.next().await, Some(Ok(Bytes::from_static(b"1,2\n"))));
    assert_eq!(body.next().await, None);
    assert_eq!(meter.received_bytes(), wire_bytes);
}

#[tokio::test]
async fn a_dropped_body_comes_back_with_its_rest() {
    let chunks = [Bytes::from_static(b"a"), Bytes::from_static(b"b")];
    let wire = Wire::new(Source::Memory(chunks.into()), None, false, u64::MAX, Duration::MAX);
    let (mut body, back) = LoadBody::new(wire);
    body.next().await.unwrap().unwrap();
    drop(body);
    assert!(back.await.unwrap().drain(1, Duration::from_secs(60)).await);
}

#[tokio::test]
async fn a_body_beyond_the_limit_fails_compressed_or_not() {
    let wire = Wire::new(
        Source::Memory([Bytes::from_static(&[0; 8]), Bytes::from_static(&[0; 8])].into()),
        None,
        false,
        10,
        Duration::MAX,
    );
    let (mut body, _back) = LoadBody::new(wire);
    assert!(body.next().await.unwrap().is_ok());
    let error = body.next().await.unwrap().unwrap_err();
    assert_eq!(error, BodyError::TooLarge { bytes: 16, limit_mb: 0 });
    assert_eq!(error.code(), LoadCode::ExceededLimit);
}
