//! Settings that may change while the server runs.
//!
//! A [`Live`] is a cell that its clones share: the configuration keeps one clone and sets it, the parts that obey the setting keep
//! others and read them each time they decide. A read is one relaxed load of an atomic, so it costs as much as a plain field.
//!
//! Not here: which settings there are, and what is legal.

use crate::portion::Portion;
use parking_lot::RwLock;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A value that a [`Live`] can have.
pub trait LiveValue: fmt::Debug + Sized + 'static {
    /// The form in which it is kept.
    type Cell: Send + Sync;

    fn cell(self) -> Self::Cell;
    fn read(cell: &Self::Cell) -> Self;
    fn write(self, cell: &Self::Cell);
}

/// A value that may change. Clones share it: what one sets, all read.
pub struct Live<T: LiveValue>(Arc<T::Cell>);

impl<T: LiveValue> Live<T> {
    #[must_use]
    pub fn new(value: T) -> Self {
        Self(Arc::new(value.cell()))
    }

    /// The value of this moment.
    #[must_use]
    #[inline]
    pub fn get(&self) -> T {
        T::read(&self.0)
    }

    /// Changes the value for all clones.
    pub fn set(&self, value: T) {
        value.write(&self.0);
    }
}

impl Live<Duration> {
    /// The same value as a number of milliseconds: it changes with this one.
    #[must_use]
    pub fn in_ms(&self) -> Live<u64> {
        Live(Arc::clone(&self.0))
    }
}

impl<T: LiveValue> Clone for Live<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: LiveValue> fmt::Debug for Live<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl<T: LiveValue + PartialEq> PartialEq for Live<T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: LiveValue + Eq> Eq for Live<T> {}

/// Keeps a type as the 64 bits that `to_bits` makes of it.
macro_rules! in_64_bits {
    ($type:ty, $to_bits:expr, $of_bits:expr) => {
        impl LiveValue for $type {
            type Cell = AtomicU64;

            fn cell(self) -> AtomicU64 {
                let to_bits: fn(Self) -> u64 = $to_bits;
                AtomicU64::new(to_bits(self))
            }

            #[inline]
            fn read(cell: &AtomicU64) -> Self {
                let of_bits: fn(u64) -> Self = $of_bits;
                of_bits(cell.load(Ordering::Relaxed))
            }

            fn write(self, cell: &AtomicU64) {
                let to_bits: fn(Self) -> u64 = $to_bits;
                cell.store(to_bits(self), Ordering::Relaxed);
            }
        }
    };
}

/// Set in the bits of a percentage. Bytes are fewer than this.
const PERCENT: u64 = 1 << 63;

in_64_bits!(u64, |number| number, |bits| bits);
in_64_bits!(bool, u64::from, |bits| bits != 0);
// In ms, which `Live::in_ms` relies on.
in_64_bits!(Duration, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX), Duration::from_millis);
in_64_bits!(
    Portion,
    |portion| match portion {
        Portion::Percent(percent) => PERCENT | u64::from(percent),
        Portion::Bytes(bytes) => bytes.min(PERCENT - 1),
    },
    |bits| match bits & PERCENT {
        0 => Portion::Bytes(bits),
        _ => Portion::Percent((bits & 0xff) as u8),
    }
);

impl LiveValue for String {
    type Cell = RwLock<String>;

    fn cell(self) -> RwLock<String> {
        RwLock::new(self)
    }

    fn read(cell: &RwLock<String>) -> Self {
        cell.read().clone()
    }

    fn write(self, cell: &RwLock<String>) {
        *cell.write() = self;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept<T: LiveValue + Clone + PartialEq>(first: T, second: T) {
        let one = Live::new(first.clone());
        let other = one.clone();
        assert_eq!(other.get(), first);
        one.set(second.clone());
        assert_eq!((other.get(), format!("{other:?}")), (second.clone(), format!("{second:?}")));
    }

    #[test]
    fn clones_share_a_value() {
        kept(0, u64::MAX);
        kept(false, true);
        kept(Duration::from_millis(1), Duration::from_secs(u64::from(u32::MAX) * 3600));
        kept(Portion::Percent(100), Portion::Bytes(1));
        kept(Portion::Bytes(PERCENT - 1), Portion::Percent(1));
        kept("a".to_owned(), String::new());
        let time = Live::new(Duration::from_secs(2));
        let ms = time.in_ms();
        time.set(Duration::from_millis(1500));
        assert_eq!(ms.get(), 1500);
        assert_eq!(
            Live::new(Portion::Bytes(u64::MAX)).get(),
            Portion::Bytes(PERCENT - 1),
            "more than any disk"
        );
        assert!(Live::new(1_u64) == Live::new(1) && Live::new(1_u64) != Live::new(2));
    }
}
