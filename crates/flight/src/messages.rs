//! The memory of messages while they arrive.
//!
//! tonic gathers a message whole, in a buffer as long as its frame says. So the frame of a large one is withheld until there is
//! memory for it: many clients then wait, and none takes what others need.
//!
//! Invariant: a body holds memory for one message at a time, so no two bodies wait for each other.

use bytes::{Buf, Bytes};
use futures::FutureExt;
use futures::future::BoxFuture;
use hyper::body::{Body, Frame};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The unit of memory, in bytes: a semaphore counts to less than 2³².
const UNIT_BYTES: usize = 1024;
/// Messages up to this length are as good as what is on the way anyway.
const FREE_BYTES: usize = 64 << 10;
/// A frame: whether the message is compressed, and its length.
const FRAME_BYTES: usize = 5;

/// The memory of all messages.
#[derive(Debug)]
pub(crate) struct MessageMemory {
    units: Arc<Semaphore>,
    all: usize,
    /// The longest message; of a longer one only the frame is read.
    message_max: usize,
}

impl MessageMemory {
    pub fn new(bytes: usize, message_max: usize) -> Arc<Self> {
        let all = (bytes / UNIT_BYTES).clamp(1, Semaphore::MAX_PERMITS);
        Arc::new(Self { units: Arc::new(Semaphore::new(all)), all, message_max })
    }

    /// Waits for the memory of a message.
    fn get(&self, length: usize) -> BoxFuture<'static, Option<OwnedSemaphorePermit>> {
        let units = length.div_ceil(UNIT_BYTES).min(self.all);
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        // It is never closed.
        Arc::clone(&self.units).acquire_many_owned(units).map(Result::ok).boxed()
    }
}

/// A body whose large messages wait for memory.
pub(crate) struct Weighed<B> {
    body: B,
    memory: Arc<MessageMemory>,
    /// The frame of the next message, as far as it has passed.
    frame: [u8; FRAME_BYTES],
    frame_bytes: usize,
    /// Bytes of the current message that have not passed.
    left: usize,
    /// Bytes that have arrived and not passed.
    arrived: Bytes,
    waiting: Option<BoxFuture<'static, Option<OwnedSemaphorePermit>>>,
    held: Option<OwnedSemaphorePermit>,
}

impl<B> Weighed<B> {
    pub fn new(body: B, memory: &Arc<MessageMemory>) -> Self {
        Self {
            body,
            memory: Arc::clone(memory),
            frame: [0; FRAME_BYTES],
            frame_bytes: 0,
            left: 0,
            arrived: Bytes::new(),
            waiting: None,
            held: None,
        }
    }

    /// The number of bytes that may pass now. Behind them is the end of a frame whose message has to wait.
    fn passing(&mut self) -> usize {
        let mut at = 0;
        while at < self.arrived.len() {
            if self.left > 0 {
                let passing = self.left.min(self.arrived.len() - at);
                (self.left, at) = (self.left - passing, at + passing);
                continue;
            }
            let byte = self.arrived[at];
            if self.frame_bytes + 1 < FRAME_BYTES {
                self.frame[self.frame_bytes] = byte;
                (self.frame_bytes, at) = (self.frame_bytes + 1, at + 1);
                continue;
            }
            let [_, high, upper, lower, _] = self.frame;
            let length = u32::from_be_bytes([high, upper, lower, byte]) as usize;
            let is_large = length > FREE_BYTES && length <= self.memory.message_max;
            if is_large && self.held.is_none() {
                self.waiting = Some(self.memory.get(length));
                return at;
            }
            (self.frame_bytes, self.left, at) = (0, length, at + 1);
            if is_large {
                // The next one gets its own when this one is over.
                break;
            }
        }
        at
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Weighed<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = &mut *self;
        loop {
            if let Some(waiting) = &mut this.waiting {
                this.held = ready!(waiting.as_mut().poll(context));
                this.waiting = None;
            } else if this.left == 0 {
                // The message was taken: the next one is asked for.
                this.held = None;
            }
            let passing = this.passing();
            if passing > 0 {
                return Poll::Ready(Some(Ok(Frame::data(this.arrived.split_to(passing)))));
            }
            if this.waiting.is_some() {
                continue;
            }
            match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if data.has_remaining() => this.arrived = data,
                    Ok(_) => {}
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                end => return Poll::Ready(end),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.arrived.is_empty() && self.body.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::future::poll_fn;

    struct Pieces(VecDeque<Bytes>);

    impl Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
        }
    }

    fn message(length: usize) -> Vec<u8> {
        let frame = [&[0][..], &u32::try_from(length).expect("short").to_be_bytes()].concat();
        [frame, (0..length).map(|byte| byte as u8).collect()].concat()
    }

    async fn next(body: &mut Weighed<Pieces>) -> Option<Bytes> {
        let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
        frame.map(|frame| frame.expect("no errors").into_data().expect("no trailers"))
    }

    #[tokio::test]
    async fn all_bytes_pass_however_they_are_cut() {
        let memory = MessageMemory::new(1 << 20, 1 << 20);
        let all = [message(0), message(100_000), message(3), message(70_000), message(2 << 20)].concat();
        for cut in [1, 3, 7, 4096, all.len()] {
            let pieces = all.chunks(cut).map(Bytes::copy_from_slice).collect();
            let mut body = Weighed::new(Pieces(pieces), &memory);
            let mut passed = Vec::new();
            while let Some(piece) = next(&mut body).await {
                passed.extend_from_slice(&piece);
            }
            assert!(passed == all, "{cut}");
            assert_eq!(memory.units.available_permits(), 1024, "{cut}");
        }
    }

    #[tokio::test]
    async fn a_large_message_waits_for_memory_and_gives_it_back() {
        let memory = MessageMemory::new(300 << 10, 1 << 20);
        let body = || Weighed::new(Pieces([Bytes::from(message(200_000))].into()), &memory);
        let (mut first, mut second) = (body(), body());
        assert_eq!(next(&mut first).await.map(|piece| piece.len()), Some(4));
        assert_eq!(next(&mut first).await.map(|piece| piece.len()), Some(1));
        assert_eq!(next(&mut second).await.map(|piece| piece.len()), Some(4));
        assert!(next(&mut second).now_or_never().is_none(), "the first one has the memory");
        assert_eq!(next(&mut first).await.map(|piece| piece.len()), Some(200_000));
        assert!(next(&mut second).now_or_never().is_none(), "it has not been taken yet");
        assert_eq!(next(&mut first).await, None);
        assert_eq!(next(&mut second).await.map(|piece| piece.len()), Some(1));
        drop(second);
        assert_eq!(memory.units.available_permits(), 300);
    }
}
