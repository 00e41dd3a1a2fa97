//! Stack for deep trees.
//!
//! Statements are trees, and most operations on them are recursive. The parser and the rewrite bound a tree's depth; the code
//! here gives planning a stack that is large enough for this bound, even in unoptimized builds.

use crate::planning::{Stop, beside_the_runtime, within};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Stack of planning, in bytes. Pages that are not touched cost nothing.
const PLANNING_STACK_BYTES: usize = 4 * tributary_sql::STACK_BYTES;

/// Runs `f` on a stack of [`PLANNING_STACK_BYTES`].
pub(crate) fn on_deep_stack<R>(f: impl FnOnce() -> R) -> R {
    stacker::grow(PLANNING_STACK_BYTES, f)
}

/// A future that is polled on such a stack, beside the runtime.
pub(crate) struct OnDeepStack<F> {
    future: Pin<Box<F>>,
    stop: Option<Arc<dyn Stop>>,
}

impl<F: Future> OnDeepStack<F> {
    /// `stop` ends the planning that the future is.
    pub(crate) fn new(future: F, stop: Option<&Arc<dyn Stop>>) -> Self {
        Self { future: Box::pin(future), stop: stop.cloned() }
    }
}

impl<F: Future> Future for OnDeepStack<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Self { future, stop } = &mut *self;
        let future = future.as_mut();
        planned(stop.as_ref(), || future.poll(context))
    }
}

/// Runs a part of planning: on a deep stack, beside the runtime, and until `stop` ends it.
pub(crate) fn planned<R>(stop: Option<&Arc<dyn Stop>>, part: impl FnOnce() -> R) -> R {
    beside_the_runtime(|| within(stop, || on_deep_stack(part)))
}
