//! The places of two bytes in a text, found together, 64 bytes at a time: most fields are too short for a search each.

/// Bytes that are looked at in one step: a number has a bit for each.
pub(super) const BLOCK: usize = 64;

/// The bytes that are looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    pub(super) one: u8,
    pub(super) other: u8,
}

impl Marks {
    /// Calls `found` with each place in `text` at which one of the bytes is, in order.
    #[inline]
    pub(super) fn each(self, text: &[u8], mut found: impl FnMut(usize)) {
        let (blocks, rest) = text.as_chunks();
        let mut all = |start: usize, mut places: u64| {
            while places != 0 {
                found(start + places.trailing_zeros() as usize);
                places &= places - 1;
            }
        };
        for (number, block) in blocks.iter().enumerate() {
            all(number * BLOCK, self.places(block));
        }
        let mut last = [0; BLOCK];
        last[..rest.len()].copy_from_slice(rest);
        // The filling may be one of the bytes.
        all(text.len() - rest.len(), self.places(&last) & ((1 << rest.len()) - 1));
    }

    /// A bit for each byte of a block, the lowest for the first: whether it is one of the two.
    #[inline]
    fn places(self, block: &[u8; BLOCK]) -> u64 {
        // The compiler makes vectors of this loop.
        let mut equal = [0; BLOCK];
        for (equal, byte) in equal.iter_mut().zip(block) {
            *equal = u8::from(*byte == self.one) | u8::from(*byte == self.other);
        }
        let (words, _) = equal.as_chunks();
        words.iter().enumerate().fold(0, |places, (number, word)| {
            // Moves the lowest bits of eight bytes together.
            let bits = u64::from_le_bytes(*word).wrapping_mul(0x0102_0408_1020_4080) >> 56;
            places | bits << (8 * number)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes without an order.
    fn mixed(count: usize) -> impl Iterator<Item = u8> {
        (0..count as u64).map(|number| {
            let mixed = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            ((mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 56) as u8
        })
    }

    #[test]
    fn every_place_is_found_whatever_the_bytes_and_the_length() {
        // Few values, so that each is often there: pairs that differ in one bit, and the filling, are among them.
        let few = [0, 1, b'\t', b'\n', 0x7f, 0x80, 0x8a, 0xff];
        let text: Vec<u8> = mixed(3 * BLOCK + 7).map(|byte| few[usize::from(byte % 8)]).collect();
        for length in 0..text.len() {
            let text = &text[..length];
            for (one, other) in [(b'\t', b'\n'), (0, 0xff), (0x80, 0x7f), (1, 1), (b'\n', 0x8a)] {
                let mut found = Vec::new();
                Marks { one, other }.each(text, |place| found.push(place));
                let is_mark = |place: &usize| text[*place] == one || text[*place] == other;
                assert_eq!(found, (0..length).filter(is_mark).collect::<Vec<_>>(), "{one} {other} {length}");
            }
        }
    }
}
