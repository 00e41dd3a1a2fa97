//! The memory of request heads that are being read, of all connections together.
//!
//! Not its business: the length of one head, which the library limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a head that count nothing: the library's buffer has them anyway.
const FREE_BYTES: u64 = 8 * 1024;

/// The bytes of all heads.
#[derive(Debug)]
pub(crate) struct HeadBytes {
    limit: u64,
    used: AtomicU64,
}

/// The bytes of the head that one connection reads.
#[derive(Debug)]
pub(crate) struct HeadCharge {
    all: Arc<HeadBytes>,
    read: u64,
    charged: u64,
}

impl HeadBytes {
    pub fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicU64::new(0) })
    }
}

impl HeadCharge {
    pub fn new(all: &Arc<HeadBytes>) -> Self {
        Self { all: Arc::clone(all), read: 0, charged: 0 }
    }

    /// Whether nothing of the head was read.
    pub const fn is_empty(&self) -> bool {
        self.read == 0
    }

    /// Adds bytes of the head. Returns `false` if there is no memory for them.
    pub fn add(&mut self, bytes: usize) -> bool {
        self.read += bytes as u64;
        if self.read <= FREE_BYTES.max(self.charged) {
            return true;
        }
        // The library's buffer doubles.
        let needed = self.read.next_power_of_two();
        let more = needed - self.charged;
        let grown = |used: u64| used.checked_add(more).filter(|used| *used <= self.all.limit);
        if self.all.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).is_err() {
            return false;
        }
        self.charged = needed;
        true
    }

    /// The head is over.
    pub fn clear(&mut self) {
        self.read = 0;
        if self.charged > 0 {
            self.all.used.fetch_sub(std::mem::take(&mut self.charged), Ordering::Relaxed);
        }
    }
}

impl Drop for HeadCharge {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_heads_share_their_memory_and_short_ones_need_none() {
        let all = HeadBytes::new(64 * 1024);
        let mut long = HeadCharge::new(&all);
        assert!(long.is_empty() && long.add(20_000) && long.add(12_000));
        assert_eq!(all.used.load(Ordering::Relaxed), 32 * 1024);
        let (mut other, mut short) = (HeadCharge::new(&all), HeadCharge::new(&all));
        assert!(other.add(30_000) && !other.add(10_000));
        assert!(short.add(8 * 1024) && !short.add(1));
        long.clear();
        assert!(long.is_empty() && short.add(1));
        drop((other, short));
        assert_eq!(all.used.load(Ordering::Relaxed), 0);
    }
}
