//! Sums of the text lengths in the encodings `DELTA_LENGTH_BYTE_ARRAY` and `DELTA_BYTE_ARRAY`.
//!
//! The library allocates memory for as many lengths as the encoded bytes claim, and texts of `DELTA_BYTE_ARRAY` repeat the prefix
//! of the previous one, so that a page of a megabyte may contain texts of terabytes.

/// The number of encoded lengths, their sum, and their end.
#[derive(Debug, PartialEq, Eq)]
struct Lengths {
    count: usize,
    sum: u64,
    end: usize,
}

/// The memory of the texts of a page with `DELTA_LENGTH_BYTE_ARRAY` beside the page, for at most `values` of them.
pub(super) fn of_lengths(page: &[u8], values: usize) -> Option<usize> {
    let count = count(page)?;
    (count <= values).then_some(count * size_of::<i32>())
}

/// The same for `DELTA_BYTE_ARRAY`, whose texts are assembled.
pub(super) fn of_prefixes(page: &[u8], values: usize) -> Option<usize> {
    let prefixes = lengths(page, values)?;
    let suffixes = lengths(page.get(prefixes.end..)?, values)?;
    if prefixes.count != suffixes.count {
        return None;
    }
    let texts = usize::try_from(prefixes.sum.checked_add(suffixes.sum)?).ok()?;
    Some(texts.saturating_add(2 * prefixes.count * size_of::<i32>()))
}

/// The number of values that the header of encoded numbers claims.
fn count(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    varint(bytes, &mut at)?;
    varint(bytes, &mut at)?;
    usize::try_from(varint(bytes, &mut at)?).ok()
}

/// Adds up numbers of `DELTA_BINARY_PACKED`, of 32 bits and not negative, at most `values` of them.
fn lengths(bytes: &[u8], values: usize) -> Option<Lengths> {
    let mut at = 0;
    let mut number = || usize::try_from(varint(bytes, &mut at)?).ok();
    let (block, parts, count) = (number()?, number()?, number()?);
    let mut last = i32::try_from(zigzag(bytes, &mut at)?).ok()?;
    let is_block = parts > 0 && block.is_multiple_of(128) && block.is_multiple_of(parts);
    let part = block.checked_div(parts)?;
    if !is_block || !part.is_multiple_of(32) || count > values {
        return None;
    }
    if count == 0 {
        return Some(Lengths { count, sum: 0, end: at });
    }
    let mut sum = u64::try_from(last).ok()?;
    let mut left = count - 1;
    while left > 0 {
        let least = i32::try_from(zigzag(bytes, &mut at)?).ok()?;
        let widths = bytes.get(at..at.checked_add(parts)?)?;
        at += parts;
        for &width in widths {
            if left == 0 {
                break;
            }
            let width = u32::from(width);
            if width > 32 {
                return None;
            }
            let packed_bytes = (width as usize).checked_mul(part)? / 8;
            let packed = bytes.get(at..at.checked_add(packed_bytes)?)?;
            at += packed_bytes;
            for place in 0..part.min(left) {
                let delta = bits(packed, place * width as usize, width) as i32;
                last = last.wrapping_add(least).wrapping_add(delta);
                sum = sum.checked_add(u64::try_from(last).ok()?)?;
            }
            left -= part.min(left);
        }
    }
    Some(Lengths { count, sum, end: at })
}

/// A number of `width` bits, the lowest first.
fn bits(packed: &[u8], start: usize, width: u32) -> u32 {
    let bytes = &packed[start / 8..(start + width as usize).div_ceil(8)];
    let value = bytes.iter().rev().fold(0_u64, |value, &byte| value << 8 | u64::from(byte));
    ((value >> (start % 8)) & ((1_u64 << width) - 1)) as u32
}

fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0;
    for shift in (0..63).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn zigzag(bytes: &[u8], at: &mut usize) -> Option<i64> {
    let value = varint(bytes, at)?;
    Some((value >> 1) as i64 ^ -((value & 1) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of 128 numbers in four parts, each of 17 bits.
    fn encode(numbers: &[i32]) -> Vec<u8> {
        let mut out = Vec::new();
        let varint = |mut value: u64, out: &mut Vec<u8>| {
            while value >= 0x80 {
                out.push(value as u8 | 0x80);
                value >>= 7;
            }
            out.push(value as u8);
        };
        let zigzag = |value: i32| (i64::from(value) << 1 ^ i64::from(value) >> 63) as u64;
        [128, 4, numbers.len() as u64].into_iter().for_each(|number| varint(number, &mut out));
        varint(zigzag(numbers.first().copied().unwrap_or(0)), &mut out);
        let deltas: Vec<i32> = numbers.windows(2).map(|pair| pair[1] - pair[0]).collect();
        for block in deltas.chunks(128) {
            let least = *block.iter().min().unwrap();
            varint(zigzag(least), &mut out);
            out.extend([17; 4]);
            for part in block.chunks(32) {
                let mut packed = vec![0_u8; 17 * 4];
                for (place, delta) in part.iter().enumerate() {
                    let value = (delta - least) as u64;
                    for bit in (0..17).filter(|bit| value >> bit & 1 == 1) {
                        packed[(place * 17 + bit) / 8] |= 1 << ((place * 17 + bit) % 8);
                    }
                }
                out.extend(packed);
            }
        }
        out
    }

    #[test]
    fn lengths_are_added_up_to_where_they_end() {
        for count in [0, 1, 2, 33, 128, 129, 130, 700] {
            let numbers: Vec<i32> = (0..count).map(|at| (at * 7919) % 60_000).collect();
            let bytes = encode(&numbers);
            let sum = numbers.iter().map(|&number| number as u64).sum();
            let expected = Lengths { count: numbers.len(), sum, end: bytes.len() };
            assert_eq!(lengths(&[&bytes[..], b"texts"].concat(), 1000), Some(expected), "{count}");
        }
    }

    #[test]
    fn more_values_than_the_page_has_and_negative_lengths_are_refused() {
        let bytes = encode(&[1; 100]);
        assert_eq!(of_lengths(&bytes, 100), Some(400));
        assert_eq!(of_lengths(&bytes, 99), None);
        assert_eq!(lengths(&bytes, 99), None);
        assert_eq!(lengths(&encode(&[5, -1]), 10), None);
        // 2^40 of them.
        let claim = [0x80, 1, 4, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20, 0];
        assert_eq!(of_lengths(&claim, 1 << 30), None);
    }

    #[test]
    fn texts_that_begin_like_the_one_before_count_in_full() {
        let page = [encode(&[0, 1000, 1000]), encode(&[1000, 0, 0]), vec![b'a'; 1000]].concat();
        assert_eq!(of_prefixes(&page, 3), Some(3000 + 24));
        let uneven = [encode(&[0, 1000]), encode(&[1000, 0, 0])].concat();
        assert_eq!(of_prefixes(&uneven, 3), None);
    }
}
