//! Values of text and of bytes: consecutive, or as indexes into a stripe's dictionary.

use super::chunks::Chunks;
use super::column::offsets;
use super::runs::Ints;
use super::{Damage, Outcome};
use crate::formats::columnar::memory::{BodyMemory, Charge};
use arrow::array::{Array, ArrayRef, BinaryArray, StringArray, UInt32Array};
use arrow::buffer::OffsetBuffer;
use arrow::compute::take;
use arrow::datatypes::DataType;
use std::sync::Arc;

/// Values that follow one another.
pub(super) struct Direct {
    bytes: Chunks,
    lengths: Ints,
}

impl Direct {
    pub fn new(bytes: Chunks, lengths: Ints) -> Self {
        Self { bytes, lengths }
    }

    /// # Errors
    /// [`Damage`] if they are cut off, too many, or text that is not UTF-8.
    pub fn read(&mut self, count: usize, data_type: &DataType, memory: &BodyMemory) -> Outcome<ArrayRef> {
        let offsets = offsets(&self.lengths.read(count)?)?;
        let length = offsets.last().map_or(0, |&last| last as usize);
        memory.add_to_batch(length)?;
        let mut bytes = Vec::new();
        self.bytes.read(length, &mut bytes)?;
        array(offsets, bytes, data_type)
    }
}

fn array(offsets: OffsetBuffer<i32>, bytes: Vec<u8>, data_type: &DataType) -> Outcome<ArrayRef> {
    if *data_type == DataType::Binary {
        let array = BinaryArray::try_new(offsets, bytes.into(), None);
        return Ok(Arc::new(array.map_err(|error| Damage::new(error.to_string()))?));
    }
    let array = StringArray::try_new(offsets, bytes.into(), None);
    Ok(Arc::new(array.map_err(|error| Damage::new(format!("a text is not UTF-8: {error}")))?))
}

/// Values that a dictionary has.
pub(super) struct Dictionary {
    values: ArrayRef,
    lengths: Vec<usize>,
    numbers: Ints,
    charge: Charge,
}

impl Dictionary {
    /// Reads the dictionary.
    ///
    /// # Errors
    /// See [`Direct::read`].
    pub fn read(
        size: u64,
        mut lengths: Ints,
        mut bytes: Chunks,
        numbers: Ints,
        data_type: &DataType,
        memory: &Arc<BodyMemory>,
    ) -> Outcome<Self> {
        // Lengths as read, as offsets, and in bytes.
        const BYTES_OF_A_VALUE: usize = 20;
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let mut this = Self {
            values: Arc::new(StringArray::new_null(0)),
            lengths: Vec::new(),
            numbers,
            charge: Charge::none(memory),
        };
        this.charge.grow(size.saturating_mul(BYTES_OF_A_VALUE))?;
        let lengths = lengths.read(size)?;
        let offsets = offsets(&lengths)?;
        let length = offsets.last().map_or(0, |&last| last as usize);
        this.charge.grow(length)?;
        let mut all = Vec::new();
        bytes.read(length, &mut all)?;
        this.values = array(offsets, all, data_type)?;
        this.lengths = lengths.into_iter().map(|length| length as usize).collect();
        Ok(this)
    }

    /// The next values.
    ///
    /// # Errors
    /// [`Damage`] if the dictionary does not have one, or they are too many.
    pub fn next(&mut self, count: usize, memory: &BodyMemory) -> Outcome<ArrayRef> {
        let mut places = Vec::with_capacity(count);
        let mut bytes = 0;
        for number in self.numbers.read(count)? {
            let place = usize::try_from(number).ok().filter(|&place| place < self.lengths.len());
            let place = place.ok_or_else(|| {
                Damage::new(format!(
                    "a value has the number {number} of {} in a dictionary",
                    self.values.len()
                ))
            })?;
            bytes += self.lengths[place];
            places.push(place as u32);
        }
        memory.add_to_batch(bytes)?;
        take(&self.values, &UInt32Array::from(places), None).map_err(|error| Damage::new(error.to_string()))
    }
}
