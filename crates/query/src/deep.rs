//! Stack for deep trees.
//!
//! Statements are trees, and most operations on them are recursive. The parser and the rewrite bound a tree's depth; the code
//! here gives planning a stack that is large enough for this bound, even in unoptimized builds.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Stack of planning, in bytes. Pages that are not touched cost nothing.
const PLANNING_STACK_BYTES: usize = 4 * tributary_sql::STACK_BYTES;

/// Runs `f` on a stack of [`PLANNING_STACK_BYTES`].
pub(crate) fn on_deep_stack<R>(f: impl FnOnce() -> R) -> R {
    stacker::grow(PLANNING_STACK_BYTES, f)
}

/// A future that is polled on such a stack.
pub(crate) struct OnDeepStack<F>(Pin<Box<F>>);

impl<F: Future> OnDeepStack<F> {
    pub(crate) fn new(future: F) -> Self {
        Self(Box::pin(future))
    }
}

impl<F: Future> Future for OnDeepStack<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let future = self.0.as_mut();
        on_deep_stack(|| future.poll(context))
    }
}
