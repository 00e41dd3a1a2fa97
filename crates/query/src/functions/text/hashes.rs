//! Doris's hashes of texts: `MURMUR_HASH3_32`, `XXHASH_64` and so on. Each further argument is hashed with the result so far as
//! its seed.

use crate::functions::{MySqlFunction, Param};
use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Int64Array, StringArray};
use arrow::datatypes::DataType;
use std::sync::Arc;
use twox_hash::XxHash32;

/// The seed of `MURMUR_HASH3_32`.
const SEED: u32 = 104_729;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::Text;
    let int = crate::functions::int64;
    vec![
        MySqlFunction::new("murmur_hash3_32", &[Text], int, |args| {
            Ok(signed(args, |row| chained(args, row, SEED, murmur32).map(|hash| i64::from(hash as i32))))
        })
        .variadic(),
        MySqlFunction::new("murmur_hash3_64", &[Text], int, |args| {
            Ok(signed(args, |row| chained(args, row, 0, murmur64).map(|hash| hash as i64)))
        })
        .variadic(),
        MySqlFunction::new("murmur_hash3_64_v2", &[Text], int, |args| {
            Ok(signed(args, |row| chained(args, row, 0, murmur128_half).map(|hash| hash as i64)))
        })
        .variadic(),
        MySqlFunction::new(
            "murmur_hash3_u64_v2",
            &[Text],
            || DataType::Decimal128(38, 0),
            |args| {
                let hashes =
                    (0..args[0].len()).map(|row| chained(args, row, 0, murmur128_half).map(i128::from));
                Ok(Arc::new(hashes.collect::<Decimal128Array>().with_precision_and_scale(38, 0)?))
            },
        )
        .variadic(),
        MySqlFunction::new("xxhash_32", &[Text], int, |args| {
            let hash = |bytes: &[u8], seed| XxHash32::oneshot(seed, bytes);
            Ok(signed(args, |row| chained(args, row, 0, hash).map(|hash| i64::from(hash as i32))))
        })
        .variadic(),
        MySqlFunction::new("xxhash_64", &[Text], int, |args| {
            let hash = xxhash_rust::xxh3::xxh3_64_with_seed;
            Ok(signed(args, |row| chained(args, row, 0, hash).map(|hash| hash as i64)))
        })
        .variadic(),
    ]
}

fn signed(args: &[ArrayRef], of: impl Fn(usize) -> Option<i64>) -> ArrayRef {
    Arc::new((0..args[0].len()).map(of).collect::<Int64Array>())
}

fn chained<T>(args: &[ArrayRef], row: usize, seed: T, hash: impl Fn(&[u8], T) -> T) -> Option<T> {
    args.iter().try_fold(seed, |seed, column| {
        let column: &StringArray = column.as_string::<i32>();
        column.is_valid(row).then(|| hash(column.value(row).as_bytes(), seed))
    })
}

/// The bytes as little-endian words, and the bytes that are left.
fn words<const N: usize>(bytes: &[u8]) -> (impl Iterator<Item = [u8; N]>, &[u8]) {
    let (words, rest) = bytes.as_chunks::<N>();
    (words.iter().copied(), rest)
}

/// Up to eight bytes as a little-endian number.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Murmur3 for 32 bits.
fn murmur32(bytes: &[u8], seed: u32) -> u32 {
    let mix = |word: u32| word.wrapping_mul(0xCC9E_2D51).rotate_left(15).wrapping_mul(0x1B87_3593);
    let (words, rest) = words::<4>(bytes);
    let mut hash = words.fold(seed, |hash, word| {
        (hash ^ mix(u32::from_le_bytes(word))).rotate_left(13).wrapping_mul(5).wrapping_add(0xE654_6B64)
    });
    hash ^= mix(number(rest) as u32) ^ bytes.len() as u32;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85EB_CA6B);
    hash = (hash ^ hash >> 13).wrapping_mul(0xC2B2_AE35);
    hash ^ hash >> 16
}

const FIRST: u64 = 0x87C3_7B91_1142_53D5;
const SECOND: u64 = 0x4CF5_AD43_2745_937F;

fn first_word(word: u64) -> u64 {
    word.wrapping_mul(FIRST).rotate_left(31).wrapping_mul(SECOND)
}

fn second_word(word: u64) -> u64 {
    word.wrapping_mul(SECOND).rotate_left(33).wrapping_mul(FIRST)
}

/// Spreads each bit over all bits.
fn finished(mut hash: u64) -> u64 {
    hash = (hash ^ hash >> 33).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    hash = (hash ^ hash >> 33).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    hash ^ hash >> 33
}

/// Doris's hash of 64 bits, which has one of the two lanes of Murmur3 for 128.
fn murmur64(bytes: &[u8], seed: u64) -> u64 {
    let (words, rest) = words::<8>(bytes);
    let hash = words.fold(seed, |hash, word| {
        let hash = (hash ^ first_word(u64::from_le_bytes(word))).rotate_left(27);
        hash.wrapping_mul(5).wrapping_add(0x52DC_E729)
    });
    finished(hash ^ first_word(number(rest)) ^ bytes.len() as u64)
}

/// The first half of Murmur3 for 128 bits.
fn murmur128_half(bytes: &[u8], seed: u64) -> u64 {
    let (words, rest) = words::<16>(bytes);
    let (mut one, mut two) = words.fold((seed, seed), |(one, two), word| {
        let one = (one ^ first_word(number(&word[..8]))).rotate_left(27).wrapping_add(two);
        let one = one.wrapping_mul(5).wrapping_add(0x52DC_E729);
        let two = (two ^ second_word(number(&word[8..]))).rotate_left(31).wrapping_add(one);
        (one, two.wrapping_mul(5).wrapping_add(0x3849_5AB5))
    });
    two ^= second_word(number(rest.get(8..).unwrap_or_default())) ^ bytes.len() as u64;
    one ^= first_word(number(&rest[..rest.len().min(8)])) ^ bytes.len() as u64;
    one = one.wrapping_add(two);
    two = two.wrapping_add(one);
    finished(one).wrapping_add(finished(two))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_doris() {
        assert_eq!(murmur32(b"hello", SEED), 1_321_743_225);
        assert_eq!(murmur32(b"world", murmur32(b"hello", SEED)), 984_713_481);
        assert_eq!(murmur64(b"hello", 0) as i64, -3_215_607_508_166_160_593);
        assert_eq!(murmur64(b"world", murmur64(b"hello", 0)) as i64, 3_583_109_472_027_628_045);
        assert_eq!(murmur128_half(b"hello world", 0), 5_998_619_086_395_760_910);
        assert_eq!(murmur128_half(b"", 0), 0);
        // Of 16 bytes and more, by the published hash of the sentence.
        assert_eq!(murmur128_half(b"The quick brown fox jumps over the lazy dog", 0), 0xE34B_BC7B_BC07_1B6C);
    }
}
