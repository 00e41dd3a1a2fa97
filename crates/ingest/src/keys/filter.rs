//! A filter over keys: whether a file may have one, without reading it.
//!
//! A split-block Bloom filter, as Parquet has it: each key sets one bit in each of the eight words of one block, which is a cache
//! line's half. With 12 bits for each key, one look-up in 200 of a key that is not there says that it may be.

use tributary_types::LoadKeyId;

const BITS_PER_KEY: u64 = 12;
const WORDS: usize = 8;
/// Bytes of a block.
pub(super) const BLOCK_BYTES: usize = WORDS * 4;
/// Odd numbers that choose a bit of each word.
const SALTS: [u32; WORDS] =
    [0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31];

/// The filter of a file's keys.
#[derive(Debug)]
pub(super) struct Filter(Vec<[u32; WORDS]>);

impl Filter {
    /// A filter for about this many keys.
    pub fn for_keys(count: u64) -> Self {
        let blocks = (count * BITS_PER_KEY).div_ceil(8 * BLOCK_BYTES as u64).max(1);
        Self(vec![[0; WORDS]; blocks as usize])
    }

    pub fn add(&mut self, id: LoadKeyId) {
        let (block, mask) = self.place(id);
        for (word, bits) in self.0[block].iter_mut().zip(mask) {
            *word |= bits;
        }
    }

    /// Whether the key may have been added.
    pub fn may_have(&self, id: LoadKeyId) -> bool {
        let (block, mask) = self.place(id);
        self.0[block].iter().zip(mask).all(|(word, bits)| word & bits == bits)
    }

    /// The key is a hash: its second half is as good as another.
    fn place(&self, id: LoadKeyId) -> (usize, [u32; WORDS]) {
        let hash = u64::from_le_bytes(id.0[8..].try_into().expect("eight bytes"));
        let block = ((hash >> 32) * self.0.len() as u64) >> 32;
        (block as usize, SALTS.map(|salt| 1 << ((hash as u32).wrapping_mul(salt) >> 27)))
    }

    pub fn len_bytes(&self) -> usize {
        self.0.len() * BLOCK_BYTES
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flatten().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Reads a filter. `None`: these are no bytes of one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (blocks, rest) = bytes.as_chunks::<BLOCK_BYTES>();
        let block = |bytes: &[u8; BLOCK_BYTES]| {
            let mut words = [0; WORDS];
            for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
                *word = u32::from_le_bytes(*bytes);
            }
            words
        };
        (rest.is_empty() && !blocks.is_empty()).then(|| Self(blocks.iter().map(block).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_types::{LoadKey, TableId};

    #[test]
    fn it_forgets_no_key_and_takes_few_others_for_one() {
        let id = |number: u64| LoadKey::new(&format!("key {number}")).expect("legal").id(TableId(1));
        let mut filter = Filter::for_keys(10_000);
        (0..10_000).for_each(|number| filter.add(id(number)));
        let filter = Filter::from_bytes(&filter.to_bytes()).expect("it was written");
        assert!((0..10_000).all(|number| filter.may_have(id(number))));
        let wrong = (10_000..110_000).filter(|number| filter.may_have(id(*number))).count();
        assert!(wrong < 1_000, "{wrong} of 100,000");
        assert!(Filter::from_bytes(&[0; 33]).is_none() && Filter::from_bytes(&[]).is_none());
    }
}
