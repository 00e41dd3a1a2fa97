//! The verdict of an error on the retry of its request.

use std::fmt;
use std::time::Duration;

/// Whether a request that failed may be sent again, as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retry {
    /// Nothing of it was done, or doing it again does nothing twice.
    Safe,
    /// The same, and it can't succeed before about this time.
    After(Duration),
    /// It would fail again, or it may have been done.
    #[default]
    Never,
}

impl Retry {
    /// `safe`, `after_ms` or `never`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::After(_) => "after_ms",
            Self::Never => "never",
        }
    }

    /// The time to wait, in milliseconds, at least 1.
    #[must_use]
    pub fn after_ms(self) -> Option<u64> {
        match self {
            Self::After(time) => {
                Some(u64::try_from(time.as_micros().div_ceil(1000)).unwrap_or(u64::MAX).max(1))
            }
            Self::Safe | Self::Never => None,
        }
    }
}

/// `safe`, `after_ms=500` or `never`.
impl fmt::Display for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        self.after_ms().map_or(Ok(()), |ms| write!(f, "={ms}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_to_wait_are_never_zero() {
        assert_eq!(Retry::After(Duration::from_micros(1)).to_string(), "after_ms=1");
        assert_eq!(Retry::After(Duration::ZERO).after_ms(), Some(1));
        assert_eq!(Retry::After(Duration::from_micros(1500)).after_ms(), Some(2));
        assert_eq!(Retry::Safe.to_string(), "safe");
    }
}
