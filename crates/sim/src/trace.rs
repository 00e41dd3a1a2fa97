//! The events, in order: a hash of all of them, and their text on request.

use parking_lot::Mutex;
use std::fmt::Arguments;
use std::sync::Arc;
use tributary_wal::disk::Watcher;

/// The events of one simulation. Clones are the same trace.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    hash: u64,
    events: u64,
    now_ns: u64,
    lines: Option<Vec<String>>,
}

impl Trace {
    /// Creates a trace with text, or only with the hash.
    #[must_use]
    pub fn new(keeps_text: bool) -> Self {
        let trace = Self::default();
        trace.inner.lock().lines = keeps_text.then(Vec::new);
        trace
    }

    /// Sets the simulated time of the following events.
    pub fn at(&self, now_ns: u64) {
        self.inner.lock().now_ns = now_ns;
    }

    /// Records an event: its kind and two numbers are hashed, `text` is only built if it is stored.
    pub fn note(&self, kind: &'static str, a: u64, b: u64, text: Arguments<'_>) {
        let mut inner = self.inner.lock();
        inner.events += 1;
        let mut hash = inner.hash ^ inner.now_ns;
        for byte in kind.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
        for number in [a, b] {
            hash = (hash ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            hash ^= hash >> 29;
        }
        inner.hash = hash;
        let now_us = inner.now_ns / 1000;
        if let Some(lines) = &mut inner.lines {
            lines.push(format!("{:>7}.{:03} ms  {kind:<9} {text}", now_us / 1000, now_us % 1000));
        }
    }

    #[must_use]
    pub fn hash(&self) -> u64 {
        self.inner.lock().hash
    }

    #[must_use]
    pub fn events(&self) -> u64 {
        self.inner.lock().events
    }

    /// The events as text, if they were stored.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.inner.lock().lines.clone().unwrap_or_default()
    }
}

impl Watcher for Trace {
    fn note(&self, kind: &'static str, a: u64, b: u64, text: Arguments<'_>) {
        Self::note(self, kind, a, b, text);
    }
}

/// Notes an event with text that is only made if somebody reads it.
macro_rules! note {
    ($trace:expr, $kind:literal, $a:expr, $b:expr, $($text:tt)*) => {
        $trace.note($kind, $a as u64, $b as u64, format_args!($($text)*))
    };
}
pub(crate) use note;
