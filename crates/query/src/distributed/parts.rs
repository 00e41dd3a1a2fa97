//! The parts of other nodes' queries that this node computes at the moment.
//!
//! A part is counted from its call until its rows are out or nobody takes them any more: the body of the answer is dropped then, and
//! with it the plan that computes them.

use hyper::body::{Body as HttpBody, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Bytes;

/// The number of parts.
#[derive(Debug, Default)]
pub(super) struct Running(Arc<AtomicUsize>);

impl Running {
    pub fn one_more(&self) -> Part {
        self.0.fetch_add(1, Ordering::Relaxed);
        Part(Arc::clone(&self.0))
    }

    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// A part, until it is dropped.
pub(super) struct Part(Arc<AtomicUsize>);

impl Drop for Part {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The rows of a part on their way.
pub(super) struct Counted {
    rows: Body,
    _part: Part,
}

impl Counted {
    pub const fn new(rows: Body, part: Part) -> Self {
        Self { rows, _part: part }
    }
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(&mut self.rows).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.rows.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.rows.size_hint()
    }
}
