//! The memory budget of one body's decoder.
//!
//! Invariant: every size that a body claims is counted before it is allocated, against one limit for everything that its decoder
//! holds: pages, dictionaries, blocks of streams, messages, and the rows of a batch. The process's budget is charged for it in
//! large steps.
//!
//! Not its business: bytes of the body itself that wait to be decoded ([`crate::Spool`]).

use crate::formats::host::{LoadHost, MemoryAccount};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The maximum bytes that the decoder of a body may hold, and the maximum of one batch of its rows beside it.
const LIMIT_BYTES: usize = 512 * 1024 * 1024;
/// The budget is charged in multiples of this, in bytes; a decoder that holds less is not charged.
const CHARGED_STEP_BYTES: usize = 8 * 1024 * 1024;

/// The reason why memory is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MemoryRefused {
    #[error(
        "it unpacks to {bytes} bytes at a time, the limit is {LIMIT_BYTES}; write smaller pages, blocks or batches, or load \
         fewer columns"
    )]
    TooMuch { bytes: usize },
    #[error(
        "loads hold all the memory that there is for them, and it needs {bytes} bytes more; load it again later"
    )]
    Full { bytes: usize },
}

/// Counts the memory of the decoder of one body, or of a part of it.
pub(crate) struct BodyMemory {
    /// `None` charges no account.
    account: Option<Box<dyn MemoryAccount>>,
    /// Bytes held until they are returned.
    held: AtomicUsize,
    /// Bytes of the current batch.
    batch: AtomicUsize,
    /// Bytes charged to the account.
    charged: AtomicUsize,
    /// The maximum of `held` and of `batch`.
    limit_bytes: usize,
    /// Whether memory was refused to this decoder or to one of its parts.
    was_refused: Arc<AtomicBool>,
}

impl Default for BodyMemory {
    fn default() -> Self {
        Self {
            account: None,
            held: AtomicUsize::new(0),
            batch: AtomicUsize::new(0),
            charged: AtomicUsize::new(0),
            limit_bytes: LIMIT_BYTES,
            was_refused: Arc::default(),
        }
    }
}

impl std::fmt::Debug for BodyMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BodyMemory")
            .field("held", &self.held)
            .field("batch", &self.batch)
            .finish_non_exhaustive()
    }
}

impl BodyMemory {
    pub fn new(host: &dyn LoadHost) -> Arc<Self> {
        Arc::new(Self { account: Some(host.memory()), ..Self::default() })
    }

    /// The memory of one of `count` decoders that share the body, each with its share of the limit.
    pub fn of_part(&self, host: &dyn LoadHost, count: usize) -> Arc<Self> {
        Arc::new(Self {
            account: Some(host.memory()),
            limit_bytes: self.limit_bytes / count.max(1),
            was_refused: Arc::clone(&self.was_refused),
            ..Self::default()
        })
    }

    /// Whether memory was refused to this decoder or to one of its parts.
    pub fn was_refused(&self) -> bool {
        self.was_refused.load(Ordering::Relaxed)
    }

    /// Counts bytes until the charge is dropped.
    ///
    /// # Errors
    /// [`MemoryRefused`] above the limit.
    pub fn hold(self: &Arc<Self>, bytes: usize) -> Result<Charge, MemoryRefused> {
        let mut charge = Charge::none(self);
        charge.grow(bytes)?;
        Ok(charge)
    }

    /// Begins a batch: the previous one is dropped.
    pub fn begin_batch(&self) {
        self.batch.store(0, Ordering::Relaxed);
    }

    /// Counts the bytes of a batch.
    ///
    /// # Errors
    /// [`MemoryRefused`] above the limit.
    pub fn add_to_batch(&self, bytes: usize) -> Result<(), MemoryRefused> {
        self.add(&self.batch, bytes)
    }

    /// The bytes held.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.total()
    }

    fn total(&self) -> usize {
        self.held.load(Ordering::Relaxed) + self.batch.load(Ordering::Relaxed)
    }

    fn add(&self, to: &AtomicUsize, bytes: usize) -> Result<(), MemoryRefused> {
        let now = to.load(Ordering::Relaxed).saturating_add(bytes);
        let checked = match now > self.limit_bytes {
            true => Err(MemoryRefused::TooMuch { bytes: now }),
            false => self.charge(self.total() + bytes),
        };
        if checked.is_err() {
            self.was_refused.store(true, Ordering::Relaxed);
        }
        checked?;
        to.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn charge(&self, total: usize) -> Result<(), MemoryRefused> {
        let Some(account) = &self.account else { return Ok(()) };
        let charged = self.charged.load(Ordering::Relaxed);
        let wanted = total / CHARGED_STEP_BYTES * CHARGED_STEP_BYTES;
        // One more step than is held remains charged, so that fluctuations are not charged each time.
        if (wanted..=wanted + CHARGED_STEP_BYTES).contains(&charged) {
            return Ok(());
        }
        if !account.resize(wanted) {
            return Err(MemoryRefused::Full { bytes: wanted - charged });
        }
        self.charged.store(wanted, Ordering::Relaxed);
        Ok(())
    }
}

/// A part of a body's memory, returned when it is dropped.
#[derive(Debug)]
#[must_use = "dropped, the memory counts as free"]
pub(crate) struct Charge {
    memory: Arc<BodyMemory>,
    bytes: usize,
}

impl Charge {
    /// An empty charge, which may grow.
    pub fn none(memory: &Arc<BodyMemory>) -> Self {
        Self { memory: Arc::clone(memory), bytes: 0 }
    }

    /// Counts more.
    ///
    /// # Errors
    /// [`MemoryRefused`] above the limit; the charge is unchanged.
    pub fn grow(&mut self, bytes: usize) -> Result<(), MemoryRefused> {
        self.memory.add(&self.memory.held, bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Raises the charge to at least `bytes`.
    ///
    /// # Errors
    /// See [`Charge::grow`].
    pub fn grow_to(&mut self, bytes: usize) -> Result<(), MemoryRefused> {
        self.grow(bytes.saturating_sub(self.bytes))
    }

    /// Moves all of it to the current batch, which may still refer to the memory.
    ///
    /// # Errors
    /// [`MemoryRefused`] if the batch exceeds the limit.
    pub fn leave_to_batch(&mut self) -> Result<(), MemoryRefused> {
        self.memory.held.fetch_sub(self.bytes, Ordering::Relaxed);
        self.memory.add_to_batch(std::mem::take(&mut self.bytes))
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.memory.held.fetch_sub(self.bytes, Ordering::Relaxed);
        // It is less, which no account refuses.
        let _ = self.memory.charge(self.memory.total());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn what_is_held_together_is_bounded() {
        let memory = Arc::new(BodyMemory::default());
        let mut all = memory.hold(LIMIT_BYTES - 1).unwrap();
        assert!(memory.hold(2).unwrap_err().to_string().contains("the limit is 536870912"));
        all.grow_to(LIMIT_BYTES).unwrap();
        assert_eq!(all.grow(1), Err(MemoryRefused::TooMuch { bytes: LIMIT_BYTES + 1 }));
        memory.add_to_batch(LIMIT_BYTES).unwrap();
        assert!(memory.add_to_batch(1).is_err());
        memory.begin_batch();
        all.leave_to_batch().unwrap();
        assert!(memory.add_to_batch(1).is_err());
        drop(memory.hold(LIMIT_BYTES).unwrap());
        memory.begin_batch();
        drop(all);
        assert_eq!(memory.bytes(), 0);
    }

    #[test]
    fn parts_share_the_limit_and_their_whole_learns_of_a_refusal() {
        let whole = BodyMemory::new(&crate::formats::host::PlainHost::default());
        let parts: Vec<_> =
            (0..4).map(|_| whole.of_part(&crate::formats::host::PlainHost::default(), 4)).collect();
        let held: Vec<_> = parts.iter().map(|part| part.hold(LIMIT_BYTES / 4).unwrap()).collect();
        assert!(!whole.was_refused());
        assert!(parts[2].hold(1).is_err());
        assert!(whole.was_refused());
        drop(held);
        assert!(parts.iter().all(|part| part.bytes() == 0));
    }

    /// Counts its resizes, and grants up to a limit.
    #[derive(Clone, Default)]
    struct Account {
        bytes: Arc<AtomicUsize>,
        resized: Arc<AtomicU32>,
    }

    const GRANTED: usize = 64 * 1024 * 1024;

    impl MemoryAccount for Account {
        fn resize(&self, bytes: usize) -> bool {
            self.resized.fetch_add(1, Ordering::Relaxed);
            let is_granted = bytes <= GRANTED;
            if is_granted {
                self.bytes.store(bytes, Ordering::Relaxed);
            }
            is_granted
        }
    }

    #[test]
    fn the_budget_is_charged_in_large_steps_and_may_refuse() {
        let account = Account::default();
        let memory =
            Arc::new(BodyMemory { account: Some(Box::new(account.clone())), ..BodyMemory::default() });
        let charges: Vec<_> = (0..1000).map(|_| memory.hold(GRANTED / 1000).unwrap()).collect();
        let charged = account.bytes.load(Ordering::Relaxed);
        assert!((GRANTED - CHARGED_STEP_BYTES..=GRANTED).contains(&charged), "{charged}");
        assert!(account.resized.load(Ordering::Relaxed) < 10);
        let before = memory.bytes();
        let refused = memory.hold(2 * CHARGED_STEP_BYTES).unwrap_err();
        assert!(matches!(refused, MemoryRefused::Full { .. }), "{refused}");
        assert_eq!(memory.bytes(), before);
        drop(charges);
        assert!(account.bytes.load(Ordering::Relaxed) <= CHARGED_STEP_BYTES);
    }
}
