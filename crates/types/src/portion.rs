//! A limit on something whose size the machine determines.

/// A part of a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Portion {
    Percent(u8),
    Bytes(u64),
}

impl Portion {
    /// Reads `10%` (1 to 100) or a number of bytes; `None`: it is neither.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let trimmed = text.trim();
        match trimmed.strip_suffix('%') {
            Some(number) => {
                let percent = number.trim().parse().ok()?;
                (1..=100).contains(&percent).then_some(Self::Percent(percent))
            }
            None => trimmed.parse().ok().filter(|&bytes| bytes > 0).map(Self::Bytes),
        }
    }

    /// The part of that many bytes, at most all of them.
    #[must_use]
    pub fn of(self, whole: u64) -> u64 {
        match self {
            Self::Percent(percent) => whole / 100 * u64::from(percent),
            Self::Bytes(bytes) => bytes.min(whole),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_portion_is_a_percentage_or_bytes() {
        assert_eq!(Portion::parse("10%"), Some(Portion::Percent(10)));
        assert_eq!(Portion::parse(" 1048576 "), Some(Portion::Bytes(1_048_576)));
        for wrong in ["", "0%", "101%", "0", "-1", "10 GB", "%", "ten", "18446744073709551616"] {
            assert_eq!(Portion::parse(wrong), None, "{wrong}");
        }
        assert_eq!((Portion::Percent(90).of(1000), Portion::Bytes(10).of(1000)), (900, 10));
        assert_eq!(Portion::Bytes(2000).of(1000), 1000);
    }
}
