//! Runs a session's futures so that they can harm neither the process nor earlier answers.

use crate::wire::out::Out;
use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// Runs `future` to its end; `Err` is the text of its panic. While it waits, unsent answers to earlier commands are sent: they do
/// not wait with it.
pub(super) async fn guarded<F: Future>(future: F, out: &Out) -> Result<F::Output, String> {
    let mut future = pin!(future);
    let mut first_wait = true;
    poll_fn(|context| {
        // The session is not used again after a panic, so its locks may stay poisoned.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
            Ok(Poll::Pending) => {
                if std::mem::take(&mut first_wait) {
                    out.flush_some();
                }
                Poll::Pending
            }
            Err(panic) => Poll::Ready(Err(panic_text(panic.as_ref()))),
        }
    })
    .await
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown panic").to_owned()
}
