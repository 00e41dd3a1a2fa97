//! BITMAP: a set of numbers from 0 to 2^64-1.
//!
//! Its bytes are the portable format of Roaring bitmaps of 64 bits (<https://github.com/RoaringBitmap/RoaringFormatSpec>, "extension for
//! 64-bit implementations"), which libraries of other languages read, too. Doris's own format differs.

use roaring::RoaringTreemap;

/// A set of numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bitmap(RoaringTreemap);

impl Bitmap {
    /// Parses a set. `None` if the bytes are not one.
    #[must_use]
    pub fn read(mut bytes: &[u8]) -> Option<Self> {
        let set = RoaringTreemap::deserialize_from(&mut bytes).ok()?;
        bytes.is_empty().then_some(Self(set))
    }

    /// # Panics
    /// Never: memory takes all bytes.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.0.serialized_size());
        self.0.serialize_into(&mut bytes).expect("memory takes all bytes");
        bytes
    }

    pub fn insert(&mut self, value: u64) {
        self.0.insert(value);
    }

    #[must_use]
    pub fn contains(&self, value: u64) -> bool {
        self.0.contains(value)
    }

    /// How many numbers it has.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    pub fn union(&mut self, other: Self) {
        self.0 |= other.0;
    }

    pub fn intersect(&mut self, other: &Self) {
        self.0 &= &other.0;
    }

    /// Keeps the numbers that one of both has, and not the other.
    pub fn symmetric_difference(&mut self, other: &Self) {
        self.0 ^= &other.0;
    }

    pub fn subtract(&mut self, other: &Self) {
        self.0 -= &other.0;
    }

    /// The numbers in ascending order, with commas: `1,2,3`.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut digits = itoa::Buffer::new();
        for value in &self.0 {
            if !text.is_empty() {
                text.push(',');
            }
            text.push_str(digits.format(value));
        }
        text
    }

    /// The set of the numbers in a text like `1,2,3`. `None`: the text is not one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut set = RoaringTreemap::new();
        if text.trim().is_empty() {
            return Some(Self(set));
        }
        for number in text.split(',') {
            set.insert(number.trim().parse().ok()?);
        }
        Some(Self(set))
    }
}

impl FromIterator<u64> for Bitmap {
    fn from_iter<I: IntoIterator<Item = u64>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_comes_back_from_its_bytes_and_its_text_and_from_nothing_else() {
        for values in [vec![], vec![0], vec![1, 2, 3, 70_000, 1 << 40, u64::MAX]] {
            let set: Bitmap = values.iter().copied().collect();
            assert_eq!(Bitmap::read(&set.bytes()), Some(set.clone()));
            assert_eq!(Bitmap::parse(&set.text()), Some(set.clone()));
            assert_eq!(set.count(), values.len() as u64);
            let mut longer = set.bytes();
            longer.push(0);
            assert_eq!(Bitmap::read(&longer), None);
            assert_eq!(Bitmap::read(&set.bytes()[1..]), None);
        }
        assert_eq!(Bitmap::read(b""), None);
        assert_eq!(Bitmap::parse(" 3, 1 ").map(|set| set.text()), Some("1,3".to_owned()));
        for text in ["a", "1,", "-1", "18446744073709551616", "1.5"] {
            assert_eq!(Bitmap::parse(text), None, "{text}");
        }
    }

    #[test]
    fn its_bytes_are_those_of_the_portable_format() {
        let set: Bitmap = [1, 2, 1 << 32].into_iter().collect();
        let expected = [
            2, 0, 0, 0, 0, 0, 0, 0, // two halves
            0, 0, 0, 0, 58, 48, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 16, 0, 0, 0, 1, 0, 2, 0, // 1 and 2
            1, 0, 0, 0, 58, 48, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, // 2^32
        ];
        assert_eq!(set.bytes(), expected);
    }
}
