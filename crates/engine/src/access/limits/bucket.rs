//! Token buckets, filled at a rate and with a capacity of one second of it.
//!
//! A bucket may be in debt: what a load brings is known when it has ended. So nothing is refused that was admitted, and the rate
//! holds over time. Written here, because the crates for it have no debts, and locks of their own.
//!
//! Not here: clocks; callers say what time it is.

use std::time::{Duration, Instant};

/// Tokens of one limit.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    /// The tokens at a time; `None`: it is full.
    level: Option<(f64, Instant)>,
}

impl Bucket {
    /// The time until there is a token, at `rate` tokens per second; `None` if there is one.
    pub fn wait(&mut self, rate: u64, now: Instant) -> Option<Duration> {
        let tokens = self.filled(rate, now);
        // Less than a nanosecond is none.
        let missing = (1.0 - tokens) / rate as f64;
        (missing > 1e-9).then(|| Duration::try_from_secs_f64(missing).unwrap_or(Duration::MAX))
    }

    /// Takes tokens, even if there are fewer.
    pub fn take(&mut self, tokens: u64, rate: u64, now: Instant) {
        let left = self.filled(rate, now) - tokens as f64;
        self.level = Some((left, now));
    }

    /// Returns tokens that were taken.
    pub fn give_back(&mut self, tokens: u64, rate: u64, now: Instant) {
        let left = self.filled(rate, now) + tokens as f64;
        self.level = Some((left.min(rate as f64), now));
    }

    /// Whether the bucket is as if it had never been used.
    pub fn is_full(&mut self, rate: u64, now: Instant) -> bool {
        self.filled(rate, now) >= rate as f64
    }

    fn filled(&mut self, rate: u64, now: Instant) -> f64 {
        let capacity = rate as f64;
        let tokens = match self.level {
            None => capacity,
            Some((tokens, at)) => {
                let since = now.saturating_duration_since(at).as_secs_f64();
                since.mul_add(rate as f64, tokens).min(capacity)
            }
        };
        self.level = Some((tokens, now));
        tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(start: Instant, milliseconds: u64) -> Instant {
        start + Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_second_of_the_rate_may_be_taken_at_once_and_then_the_rate() {
        let (mut bucket, start) = (Bucket::default(), Instant::now());
        for taken in 0..10 {
            assert_eq!(bucket.wait(10, start), None, "{taken}");
            bucket.take(1, 10, start);
        }
        assert_eq!(bucket.wait(10, start), Some(Duration::from_millis(100)));
        assert_eq!(bucket.wait(10, after(start, 99)), Some(Duration::from_millis(1)));
        let mut taken = 0;
        for step in 100..10_100 {
            if bucket.wait(10, after(start, step)).is_none() {
                bucket.take(1, 10, after(start, step));
                taken += 1;
            }
        }
        assert_eq!(taken, 100, "ten a second, for ten seconds");
    }

    #[test]
    fn a_debt_is_paid_before_anything_else_and_idle_time_saves_one_second_only() {
        let (mut bucket, start) = (Bucket::default(), Instant::now());
        bucket.take(350, 100, start);
        assert_eq!(bucket.wait(100, start), Some(Duration::from_millis(2510)));
        assert_eq!(bucket.wait(100, after(start, 2510)), None);
        let later = after(start, 60_000);
        assert!(bucket.is_full(100, later));
        bucket.take(100, 100, later);
        assert!(bucket.wait(100, later).is_some());
    }

    #[test]
    fn a_changed_rate_applies_at_once() {
        let (mut bucket, start) = (Bucket::default(), Instant::now());
        bucket.take(101, 1, start);
        assert_eq!(bucket.wait(1, start), Some(Duration::from_secs(101)));
        assert_eq!(bucket.wait(101, start), Some(Duration::from_secs(1)));
        assert_eq!(bucket.wait(101, after(start, 1000)), None);
    }

    #[test]
    fn what_is_given_back_can_be_taken_again_and_never_overfills() {
        let (mut bucket, start) = (Bucket::default(), Instant::now());
        bucket.take(5, 5, start);
        bucket.give_back(3, 5, start);
        assert_eq!(bucket.wait(5, start), None);
        bucket.give_back(30, 5, start);
        bucket.take(5, 5, start);
        assert!(bucket.wait(5, start).is_some());
    }
}
