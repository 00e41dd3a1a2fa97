//! The one source of chance: all randomness of a simulation is derived from its seed here.

/// A small generator (SplitMix64), always the same, so that a seed that failed fails again after an update.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed ^ 0x5DEE_CE66_D1CE_4E5B)
    }

    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Creates an independent generator, so that the throws of one part do not shift the others.
    #[must_use]
    pub const fn split(&mut self) -> Self {
        Self(self.next())
    }

    /// 0 to `bound` - 1.
    pub const fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// `from` to `to`, both included.
    pub const fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    pub const fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub const fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of `choices`, which must not be empty.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}
