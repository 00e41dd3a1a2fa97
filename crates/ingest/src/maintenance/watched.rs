//! Background work that must not end silently.
//!
//! Invariant: a panic in watched work is logged and counted, and the work starts again; if it keeps panicking, the process ends,
//! because a server that no longer flushes or releases its logs must not look healthy.
//!
//! Not its business: panics on the threads of a blocking pool, which are errors where they are awaited, and awaited work. A
//! simulation treats every panic as a violation, so there all panics pass.

use futures::FutureExt;
use parking_lot::Mutex;
use prometheus::{IntCounterVec, Opts, Registry};
use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;
use tributary_types::host;

/// The pause before work that panicked starts again.
const RESTART_PAUSE: Duration = Duration::from_secs(1);
/// Panics of one kind of work within [`PANICS_WINDOW`] that end the process.
const PANICS_MAX: usize = 5;
const PANICS_WINDOW: Duration = Duration::from_secs(60);

/// Ends the process; gets the name of the panicking work and the text of its last panic.
type GiveUp = dyn Fn(&str, &str) + Send + Sync;

/// Starts background work and watches it. Clones share their counters.
#[derive(Clone)]
pub struct Watcher {
    runtime: Handle,
    panics: IntCounterVec,
    pause: Duration,
    give_up: Arc<GiveUp>,
    /// Watched work that has returned.
    ended: Arc<Mutex<Vec<&'static str>>>,
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher").finish_non_exhaustive()
    }
}

/// Panics caught in background work, by task; registered once.
pub(crate) fn panic_counter(registry: &Registry) -> Result<IntCounterVec, prometheus::Error> {
    let opts =
        Opts::new("tributary_background_panics_total", "Panics that were caught in background work, by task");
    let counter = IntCounterVec::new(opts, &["task"])?;
    registry.register(Box::new(counter.clone()))?;
    Ok(counter)
}

impl Watcher {
    /// Creates a watcher of work on the current runtime.
    pub(crate) fn new(panics: IntCounterVec) -> Self {
        let ended = Arc::default();
        Self {
            runtime: Handle::current(),
            panics,
            pause: RESTART_PAUSE,
            give_up: Arc::new(end_process),
            ended,
        }
    }

    /// Watched work that has returned although the server still needs it.
    #[must_use]
    pub fn ended(&self) -> Vec<&'static str> {
        self.ended.lock().clone()
    }

    /// Panics of that task caught since the start.
    #[must_use]
    pub fn panics(&self, name: &str) -> u64 {
        self.panics.with_label_values(&[name]).get()
    }

    /// Runs the work that `make` creates until it returns. After a panic it is created again; after [`PANICS_MAX`] panics within
    /// [`PANICS_WINDOW`] the process ends. `None` in a simulation, whose tasks end with their machine.
    pub fn spawn_watched<W>(
        &self,
        name: &'static str,
        mut make: impl FnMut() -> W + Send + 'static,
    ) -> Option<JoinHandle<()>>
    where
        W: Future<Output = ()> + Send + 'static,
    {
        if let Some(host) = host::simulated() {
            host.spawn(Box::pin(make()));
            return None;
        }
        let watcher = self.clone();
        Some(self.runtime.spawn(async move {
            let mut panics = VecDeque::new();
            while let Err(text) = watcher.catch(name, async { make().await }).await {
                let now = Instant::now();
                panics.push_back(now);
                panics.retain(|at| now - *at < PANICS_WINDOW);
                if panics.len() >= PANICS_MAX {
                    (watcher.give_up)(name, &text);
                    break;
                }
                tokio::time::sleep(watcher.pause).await;
            }
            watcher.ended.lock().push(name);
        }))
    }

    /// Runs work once. A panic is logged and counted, and has no further effect.
    pub fn spawn_once(&self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        let watcher = self.clone();
        self.runtime.spawn(async move { drop(watcher.catch(name, work).await) });
    }

    /// Runs work to its end.
    ///
    /// # Errors
    /// The text of its panic, which is logged and counted.
    pub async fn catch<T>(&self, name: &'static str, work: impl Future<Output = T>) -> Result<T, String> {
        if host::is_simulated() {
            return Ok(work.await);
        }
        AssertUnwindSafe(work).catch_unwind().await.map_err(|panic| {
            let text = panic_text(&*panic);
            self.panics.with_label_values(&[name]).inc();
            tracing::error!(task = name, panic = text, "background work panicked");
            text
        })
    }

    /// [`Watcher::catch`] in a task of its own, which ends when the result is dropped. A simulation polls the work in place.
    pub(crate) async fn run_owned<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, String> {
        if host::is_simulated() {
            return Ok(work.await);
        }
        let watcher = self.clone();
        let mut task = JoinSet::new();
        task.spawn_on(async move { watcher.catch(name, work).await }, &self.runtime);
        let ended = task.join_next().await.expect("the task was spawned");
        ended.unwrap_or_else(|stopped| Err(stopped.to_string()))
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a text").to_owned()
}

fn end_process(name: &str, text: &str) {
    tracing::error!(task = name, panic = text, "background work panicked again and again; the process ends");
    tributary_types::process::abort(&format!(
        "the background task '{name}' has panicked {PANICS_MAX} times within {} s ({text}). Every acknowledged row is in the \
         write-ahead log; start the server again, and report this",
        PANICS_WINDOW.as_secs()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn watcher() -> (Watcher, Arc<Mutex<Vec<String>>>) {
        let given_up: Arc<Mutex<Vec<String>>> = Arc::default();
        let told = Arc::clone(&given_up);
        let give_up = Arc::new(move |name: &str, text: &str| told.lock().push(format!("{name}: {text}")));
        let panics = panic_counter(&Registry::new()).expect("a new registry");
        (Watcher { pause: Duration::ZERO, give_up, ..Watcher::new(panics) }, given_up)
    }

    #[tokio::test]
    async fn work_that_panics_is_counted_and_begins_again() {
        let (watcher, given_up) = watcher();
        let begun = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&begun);
        let work = move || {
            let number = count.fetch_add(1, Ordering::SeqCst);
            async move { assert!(number >= 3, "number {number}") }
        };
        watcher.spawn_watched("work", work).expect("no simulation").await.expect("it ends");
        assert_eq!(begun.load(Ordering::SeqCst), 4);
        assert_eq!(watcher.panics("work"), 3);
        assert!(given_up.lock().is_empty());
        assert_eq!(watcher.ended(), ["work"]);
    }

    #[tokio::test]
    async fn work_that_panics_five_times_in_a_minute_ends_the_process() {
        let (watcher, given_up) = watcher();
        let work = || async { panic!("again") };
        watcher.spawn_watched("work", work).expect("no simulation").await.expect("it ends");
        assert_eq!(*given_up.lock(), ["work: again"]);
        assert_eq!(watcher.panics("work"), PANICS_MAX as u64);
    }

    #[tokio::test]
    async fn work_that_cannot_even_be_made_is_watched_too() {
        let (watcher, given_up) = watcher();
        let work = || -> std::future::Ready<()> { panic!("not made") };
        watcher.spawn_watched("work", work).expect("no simulation").await.expect("it ends");
        assert_eq!(*given_up.lock(), ["work: not made"]);
    }

    #[tokio::test]
    async fn owned_work_ends_with_its_owner() {
        let (watcher, _) = watcher();
        let alive = Arc::new(());
        let held = Arc::clone(&alive);
        let mut owner = Box::pin(watcher.run_owned("work", async move {
            std::future::pending::<()>().await;
            drop(held);
        }));
        assert!(futures::poll!(owner.as_mut()).is_pending());
        drop(owner);
        while Arc::strong_count(&alive) > 1 {
            tokio::task::yield_now().await;
        }
        let failed = watcher.run_owned("work", async { panic!("once") }).await;
        assert_eq!(failed, Err::<(), _>("once".to_owned()));
    }
}
