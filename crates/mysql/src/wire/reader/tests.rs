use super::*;
use crate::wire::out::frame;

async fn next<R: AsyncRead + Unpin>(reader: &mut PacketReader<R>) -> Result<Option<Vec<u8>>, ProtocolError> {
    loop {
        if let Some(packet) = reader.parse()? {
            return Ok(Some(reader.payload(packet).to_vec()));
        }
        if !reader.fill().await? {
            return Ok(None);
        }
    }
}

fn framed(payloads: &[&[u8]]) -> Vec<u8> {
    payloads.iter().flat_map(|payload| frame(payload, 0)).collect()
}

#[tokio::test]
async fn many_packets_in_one_read_come_out_one_by_one_in_order() {
    let bytes = framed(&[b"one", b"", b"three", &[7; 300]]);
    let mut reader = PacketReader::new(&bytes[..], 1000);
    assert_eq!(next(&mut reader).await.unwrap().unwrap(), b"one");
    assert_eq!(next(&mut reader).await.unwrap().unwrap(), b"");
    assert_eq!(next(&mut reader).await.unwrap().unwrap(), b"three");
    assert_eq!(next(&mut reader).await.unwrap().unwrap(), [7; 300]);
    assert_eq!(next(&mut reader).await.unwrap(), None);
}

#[tokio::test]
async fn packets_that_arrive_byte_by_byte_are_the_same_packets() {
    let bytes = framed(&[b"select 1", b"x", b""]);
    let io = bytes.chunks(1).fold(tokio_test_io::Builder::default(), tokio_test_io::Builder::read).build();
    let mut reader = PacketReader::new(io, 1000);
    assert_eq!(next(&mut reader).await.unwrap().unwrap(), b"select 1");
    assert_eq!(next(&mut reader).await.unwrap().unwrap(), b"x");
    assert_eq!(next(&mut reader).await.unwrap().unwrap(), b"");
}

#[tokio::test]
async fn a_payload_longer_than_a_chunk_is_joined_and_what_follows_it_stays() {
    for length in [CHUNK_MAX - 1, CHUNK_MAX, CHUNK_MAX + 1, 2 * CHUNK_MAX, 2 * CHUNK_MAX + 5] {
        let mut long = (0..251).collect::<Vec<u8>>().repeat(length.div_ceil(251));
        long.truncate(length);
        let bytes = framed(&[&long, b"after"]);
        let mut reader = PacketReader::new(&bytes[..], 64 << 20);
        let packet = next(&mut reader).await.unwrap().unwrap();
        assert!(packet == long, "{length} bytes came out as {} bytes or changed", packet.len());
        assert_eq!(next(&mut reader).await.unwrap().unwrap(), b"after");
        assert!(reader.buffer.capacity() <= RETAINED_BYTES);
    }
}

#[tokio::test]
async fn a_packet_over_the_limit_is_refused_by_its_header() {
    let bytes = framed(&[&[1; 101]]);
    let mut reader = PacketReader::new(&bytes[..4], 100);
    let error = next(&mut reader).await.unwrap_err();
    assert!(matches!(error, ProtocolError::PacketTooLarge { bytes: 101, limit: 100 }), "{error}");
    let bytes = framed(&[&vec![1; CHUNK_MAX + 10]]);
    let mut reader = PacketReader::new(&bytes[..], CHUNK_MAX + 9);
    assert!(matches!(next(&mut reader).await, Err(ProtocolError::PacketTooLarge { .. })));
}

#[tokio::test]
async fn a_packet_with_a_wrong_sequence_number_is_refused() {
    let bytes = frame(b"x", 3);
    let mut reader = PacketReader::new(&bytes[..], 100);
    assert!(matches!(next(&mut reader).await, Err(ProtocolError::OutOfOrder { expected: 0, got: 3 })));
    let mut reader = PacketReader::new(&bytes[..], 100);
    reader.expect_sequence(3);
    assert_eq!(next(&mut reader).await.unwrap().unwrap(), b"x");
}

/// A reader that gives the parts it was built from, one per read.
mod tokio_test_io {
    use std::collections::VecDeque;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use tokio::io::{AsyncRead, ReadBuf};

    #[derive(Default)]
    pub struct Builder(VecDeque<Vec<u8>>);

    impl Builder {
        pub fn read(mut self, part: &[u8]) -> Self {
            self.0.push_back(part.to_vec());
            self
        }

        pub fn build(self) -> Parts {
            Parts(self.0)
        }
    }

    pub struct Parts(VecDeque<Vec<u8>>);

    impl AsyncRead for Parts {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            out: &mut ReadBuf<'_>,
        ) -> Poll<std::io::Result<()>> {
            if let Some(part) = self.0.pop_front() {
                out.put_slice(&part);
            }
            Poll::Ready(Ok(()))
        }
    }
}
