//! Tasks, waiting and limits, on tokio or in a simulation ([`tributary_types::host`]).

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tributary_types::{Live, host};

/// How often a pause looks whether its setting has changed.
const LOOK: Duration = Duration::from_secs(60);

/// Runs tasks independently of the callers.
#[derive(Clone, Debug)]
pub(crate) struct Tasks {
    runtime: Handle,
}

impl Tasks {
    /// Tasks of the runtime that this is called in.
    pub fn current() -> Self {
        Self { runtime: Handle::current() }
    }

    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        match host::simulated() {
            Some(host) => host.spawn(Box::pin(task)),
            None => drop(self.runtime.spawn(task)),
        }
    }

    /// Runs a task to its end, even if the caller is cancelled before. An error is the text of its panic.
    pub async fn run<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, String> {
        if !host::is_simulated() {
            return self.runtime.spawn(task).await.map_err(|panic| panic.to_string());
        }
        let (sender, answer) = oneshot::channel();
        self.spawn(async move { drop(sender.send(task.await)) });
        answer.await.map_err(|gone| gone.to_string())
    }
}

/// Runs work whose panic must not end its caller; the error is the panic's text. A simulation considers every panic a broken
/// promise, so there it propagates.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    if host::is_simulated() {
        return Ok(work());
    }
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic").to_owned()
    })
}

/// Runs work that blocks its thread.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    if host::is_simulated() {
        return work();
    }
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|panic| Err(std::io::Error::other(panic)))
}

pub(crate) async fn sleep(duration: Duration) {
    host::sleep(duration, || tokio::time::sleep(duration)).await;
}

/// Waits as long as a setting says, at most `max`. If the setting is lowered meanwhile, it ends soon.
pub(crate) async fn pause(time: &Live<Duration>, max: Duration) {
    let mut waited = Duration::ZERO;
    loop {
        let left = time.get().min(max).saturating_sub(waited);
        if left.is_zero() {
            return;
        }
        let step = left.min(LOOK);
        sleep(step).await;
        waited += step;
    }
}

/// `None` if the time was over first.
pub(crate) async fn timeout<F: Future>(duration: Duration, work: F) -> Option<F::Output> {
    if !host::is_simulated() {
        return tokio::time::timeout(duration, work).await.ok();
    }
    tokio::select! {
        biased;
        output = work => Some(output),
        () = sleep(duration) => None,
    }
}
