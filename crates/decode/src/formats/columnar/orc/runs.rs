//! Values in runs: bytes, bits, and integers in both versions of ORC's encoding.
//!
//! Arithmetic wraps: the effect of a damaged file is a wrong number, and nothing worse.

use super::chunks::Chunks;
use super::{Damage, Outcome};

/// Bytes, with equal ones written once.
pub(super) struct ByteRuns {
    chunks: Chunks,
    /// Bytes that the run still has.
    left: usize,
    /// The byte of a run of equal ones.
    equal: Option<u8>,
}

impl ByteRuns {
    pub fn new(chunks: Chunks) -> Self {
        Self { chunks, left: 0, equal: None }
    }

    /// Appends this many bytes.
    ///
    /// # Errors
    /// The stream ends, or can't be unpacked.
    pub fn read(&mut self, mut count: usize, into: &mut Vec<u8>) -> Outcome<()> {
        while count > 0 {
            if self.left == 0 {
                let head = self.chunks.byte()?;
                (self.left, self.equal) = match head {
                    0..=127 => (usize::from(head) + 3, Some(self.chunks.byte()?)),
                    128..=255 => (256 - usize::from(head), None),
                };
            }
            let amount = self.left.min(count);
            match self.equal {
                Some(byte) => into.resize(into.len() + amount, byte),
                None => self.chunks.read(amount, into)?,
            }
            self.left -= amount;
            count -= amount;
        }
        Ok(())
    }
}

/// Bits, in bytes from the highest on.
pub(super) struct Bits {
    bytes: ByteRuns,
    byte: u8,
    left: usize,
}

impl Bits {
    pub fn new(chunks: Chunks) -> Self {
        Self { bytes: ByteRuns::new(chunks), byte: 0, left: 0 }
    }

    /// The next bits.
    ///
    /// # Errors
    /// See [`ByteRuns::read`].
    pub fn read(&mut self, count: usize) -> Outcome<Vec<bool>> {
        let mut bytes = Vec::new();
        self.bytes.read(count.saturating_sub(self.left).div_ceil(8), &mut bytes)?;
        let mut bytes = bytes.into_iter();
        let mut bits = Vec::with_capacity(count);
        for _ in 0..count {
            if self.left == 0 {
                self.byte = bytes.next().expect("as many were read as are needed");
                self.left = 8;
            }
            self.left -= 1;
            bits.push(self.byte >> self.left & 1 == 1);
        }
        Ok(bits)
    }
}

/// The kind of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Runs with a step of one byte, and single numbers.
    One,
    /// Four kinds of runs.
    Two,
}

/// Whole numbers.
pub(super) struct Ints {
    chunks: Chunks,
    form: Form,
    is_signed: bool,
    /// The numbers of the run.
    run: Vec<i64>,
    used: usize,
}

impl Ints {
    pub fn new(chunks: Chunks, form: Form, is_signed: bool) -> Self {
        Self { chunks, form, is_signed, run: Vec::new(), used: 0 }
    }

    /// The next numbers.
    ///
    /// # Errors
    /// The stream ends, can't be unpacked, or has a run of no known kind.
    pub fn read(&mut self, count: usize) -> Outcome<Vec<i64>> {
        let mut numbers = Vec::with_capacity(count);
        while numbers.len() < count {
            if self.used == self.run.len() {
                self.run.clear();
                self.used = 0;
                match self.form {
                    Form::One => self.simple_run()?,
                    Form::Two => self.packed_run()?,
                }
            }
            let amount = (self.run.len() - self.used).min(count - numbers.len());
            numbers.extend_from_slice(&self.run[self.used..self.used + amount]);
            self.used += amount;
        }
        Ok(numbers)
    }

    fn signed(&self, number: u64) -> i64 {
        if self.is_signed { unzigzag(number) } else { number as i64 }
    }

    fn varint(&mut self) -> Outcome<i64> {
        let number = self.chunks.varint()?;
        Ok(self.signed(number))
    }

    fn simple_run(&mut self) -> Outcome<()> {
        let head = self.chunks.byte()?;
        if head < 128 {
            let step = i64::from(self.chunks.byte()? as i8);
            let mut number = self.varint()?;
            for _ in 0..usize::from(head) + 3 {
                self.run.push(number);
                number = number.wrapping_add(step);
            }
        } else {
            for _ in 0..256 - usize::from(head) {
                let number = self.varint()?;
                self.run.push(number);
            }
        }
        Ok(())
    }

    fn packed_run(&mut self) -> Outcome<()> {
        let head = self.chunks.byte()?;
        if head >> 6 == 0 {
            let mut bytes = Vec::with_capacity(8);
            self.chunks.read(usize::from(head >> 3 & 7) + 1, &mut bytes)?;
            let number = self.signed(big_endian(&bytes));
            self.run.resize(usize::from(head & 7) + 3, number);
            return Ok(());
        }
        let width = head >> 1 & 31;
        let length = (usize::from(head & 1) << 8 | usize::from(self.chunks.byte()?)) + 1;
        match head >> 6 {
            1 => {
                let is_signed = self.is_signed;
                self.bits(bit_width(width), length, |run, number| {
                    run.push(if is_signed { unzigzag(number) } else { number as i64 });
                })
            }
            2 => self.patched(bit_width(width), length),
            _ => self.steps(if width == 0 { 0 } else { bit_width(width) }, length),
        }
    }

    /// Calls `take` for `count` numbers of `width` bits, which end with a byte.
    fn bits(&mut self, width: u32, count: usize, mut take: impl FnMut(&mut Vec<i64>, u64)) -> Outcome<()> {
        let mut bytes = Vec::new();
        self.chunks.read((width as usize * count).div_ceil(8), &mut bytes)?;
        let mut bytes = bytes.into_iter();
        // At most 7 bits are left over, and a number has at most 64.
        let (mut window, mut have) = (0_u128, 0);
        for _ in 0..count {
            while have < width {
                window = window << 8 | u128::from(bytes.next().expect("as many were read as are needed"));
                have += 8;
            }
            have -= width;
            let number = (window >> have) as u64 & (u64::MAX >> (64 - width));
            take(&mut self.run, number);
        }
        Ok(())
    }

    /// Numbers above a base, some of which have additional bits in a patch list.
    fn patched(&mut self, width: u32, length: usize) -> Outcome<()> {
        let (third, fourth) = (self.chunks.byte()?, self.chunks.byte()?);
        let base_bytes = usize::from(third >> 5) + 1;
        let (patch_width, gap_width) = (bit_width(third & 31), u32::from(fourth >> 5) + 1);
        let patches = usize::from(fourth & 31);
        let mut bytes = Vec::with_capacity(8);
        self.chunks.read(base_bytes, &mut bytes)?;
        // The highest bit is the sign.
        let base = big_endian(&bytes);
        let sign = 1_u64 << (8 * base_bytes - 1);
        let base = if base & sign == 0 { base as i64 } else { ((base & !sign) as i64).wrapping_neg() };
        self.bits(width, length, |run, number| run.push(number as i64))?;
        let entry_width = closest_width(patch_width + gap_width);
        if entry_width > 64 {
            return Err(Damage::new(format!("a patch of {patch_width} and {gap_width} bits")));
        }
        let mut entries = Vec::with_capacity(patches);
        self.bits(entry_width, patches, |_, entry| entries.push(entry))?;
        let mut at = 0;
        for entry in entries {
            let patch = entry & (u64::MAX >> (64 - patch_width));
            at += entry.checked_shr(patch_width).unwrap_or(0) as usize;
            // A gap that is too long for its bits is several, with patches of 0.
            if let Some(number) = self.run.get_mut(at) {
                *number |= patch.checked_shl(width).unwrap_or(0) as i64;
            } else {
                return Err(Damage::new("a patch for a number that is not there"));
            }
        }
        self.run.iter_mut().for_each(|number| *number = number.wrapping_add(base));
        Ok(())
    }

    /// A first number, a first step with the direction, and further steps.
    fn steps(&mut self, width: u32, length: usize) -> Outcome<()> {
        let first = self.varint()?;
        let step = unzigzag(self.chunks.varint()?);
        self.run.push(first);
        let mut number = first;
        if width == 0 {
            for _ in 1..length {
                number = number.wrapping_add(step);
                self.run.push(number);
            }
            return Ok(());
        }
        if length < 2 {
            return Ok(());
        }
        number = number.wrapping_add(step);
        self.run.push(number);
        self.bits(width, length - 2, |run, more| {
            number =
                if step < 0 { number.wrapping_sub(more as i64) } else { number.wrapping_add(more as i64) };
            run.push(number);
        })
    }
}

fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// The bits of a number that has this code for its width.
fn bit_width(code: u8) -> u32 {
    match code {
        0..=23 => u32::from(code) + 1,
        24 => 26,
        25 => 28,
        26 => 30,
        27 => 32,
        28 => 40,
        29 => 48,
        30 => 56,
        _ => 64,
    }
}

/// The next width with a code; more than 64 if there is none.
fn closest_width(bits: u32) -> u32 {
    (0..32).map(bit_width).find(|&width| width >= bits).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::chunks::Packing;
    use super::*;
    use crate::formats::host::Spooled;
    use bytes::Bytes;
    use std::sync::Arc;

    fn chunks(bytes: &[u8]) -> Chunks {
        let file: Arc<dyn Spooled> = Arc::new(Bytes::copy_from_slice(bytes));
        let packing = Packing::of_file(0, 0).unwrap();
        Chunks::new(&file, &Arc::default(), packing, 0, bytes.len() as u64)
    }

    fn ints(bytes: &[u8], form: Form, is_signed: bool, count: usize) -> Vec<i64> {
        let mut ints = Ints::new(chunks(bytes), form, is_signed);
        // In two pieces, so that a run is left in its middle.
        let mut read = ints.read(count / 2).unwrap();
        read.extend(ints.read(count - count / 2).unwrap());
        assert!(ints.read(1).is_err(), "nothing is left");
        read
    }

    // The examples of ORC's specification.

    #[test]
    fn bytes_and_bits_are_the_examples_of_the_specification() {
        let mut read = Vec::new();
        ByteRuns::new(chunks(&[0x61, 0x00])).read(100, &mut read).unwrap();
        assert_eq!(read, [0; 100]);
        read.clear();
        ByteRuns::new(chunks(&[0xfe, 0x44, 0x45])).read(2, &mut read).unwrap();
        assert_eq!(read, [0x44, 0x45]);
        let mut bits = Bits::new(chunks(&[0xff, 0x80]));
        assert_eq!(bits.read(3).unwrap(), [true, false, false]);
        assert_eq!(bits.read(5).unwrap(), [false; 5]);
        assert!(bits.read(1).is_err());
    }

    #[test]
    fn simple_runs_are_the_examples_of_the_specification() {
        assert_eq!(ints(&[0x61, 0x00, 0x07], Form::One, false, 100), [7; 100]);
        let down: Vec<i64> = (1..=100).rev().collect();
        assert_eq!(ints(&[0x61, 0xff, 0x64], Form::One, false, 100), down);
        assert_eq!(ints(&[0xfb, 0x02, 0x03, 0x06, 0x07, 0x0b], Form::One, false, 5), [2, 3, 6, 7, 11]);
        assert_eq!(ints(&[0xfe, 0x03, 0x04], Form::One, true, 2), [-2, 2]);
    }

    #[test]
    fn packed_runs_are_the_examples_of_the_specification() {
        assert_eq!(ints(&[0x0a, 0x27, 0x10], Form::Two, false, 5), [10_000; 5]);
        let direct = [0x5e, 0x03, 0x5c, 0xa1, 0xab, 0x1e, 0xde, 0xad, 0xbe, 0xef];
        assert_eq!(ints(&direct, Form::Two, false, 4), [23_713, 43_806, 57_005, 48_879]);
        let patched = [
            0x8e, 0x13, 0x2b, 0x21, 0x07, 0xd0, 0x1e, 0x00, 0x14, 0x70, 0x28, 0x32, 0x3c, 0x46, 0x50, 0x5a,
            0x64, 0x6e, 0x78, 0x82, 0x8c, 0x96, 0xa0, 0xaa, 0xb4, 0xbe, 0xfc, 0xe8,
        ];
        let expected = [
            2030, 2000, 2020, 1_000_000, 2040, 2050, 2060, 2070, 2080, 2090, 2100, 2110, 2120, 2130, 2140,
            2150, 2160, 2170, 2180, 2190,
        ];
        assert_eq!(ints(&patched, Form::Two, false, 20), expected);
        let delta = [0xc6, 0x09, 0x02, 0x02, 0x22, 0x42, 0x42, 0x46];
        assert_eq!(ints(&delta, Form::Two, false, 10), [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]);
        // A step without further ones, downwards.
        assert_eq!(ints(&[0xc0, 0x04, 0x06, 0x01], Form::Two, true, 5), [3, 2, 1, 0, -1]);
    }

    #[test]
    fn runs_that_are_cut_off_or_impossible_are_errors() {
        for bytes in [&[0x5e, 0x03, 0x5c][..], &[0x8e, 0x13, 0x2b], &[0x61], &[0xc0, 0x04, 0x06], &[]] {
            assert!(Ints::new(chunks(bytes), Form::Two, false).read(1).is_err(), "{bytes:?}");
        }
        // A patch behind the run's end.
        let bad = [0x80, 0x00, 0x00, 0xe1, 0x00, 0x00, 0xff, 0xff];
        assert!(Ints::new(chunks(&bad), Form::Two, false).read(1).is_err());
    }
}
