//! The columns of a stripe, read batch by batch.
//!
//! A column has values only where it is not NULL, and only for rows in which its parent is not NULL.

use super::chunks::Chunks;
use super::runs::{Bits, ByteRuns, Form, Ints};
use super::tail::{StripeFooter, Tail, kind};
use super::{Damage, Outcome, text};
use crate::formats::columnar::memory::BodyMemory;
use crate::formats::host::{LoadHost, Spooled};
use arrow::array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, ListArray, MapArray, StructArray, TimestampMicrosecondArray,
    UInt32Array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::take;
use arrow::datatypes::{DataType, FieldRef, Fields};
use std::cell::Cell;
use std::sync::Arc;

/// The kinds of streams that are read.
mod stream {
    pub const PRESENT: u64 = 0;
    pub const DATA: u64 = 1;
    pub const LENGTH: u64 = 2;
    pub const DICTIONARY: u64 = 3;
    pub const SECONDARY: u64 = 5;
}

/// Seconds from 1970 to 2015, the epoch of ORC's times.
const BASE_SECONDS: i64 = 1_420_070_400;

/// The context for opening columns of a stripe.
pub(super) struct Opening<'a> {
    pub tail: &'a Tail,
    pub footer: &'a StripeFooter,
    pub file: &'a Arc<dyn Spooled>,
    pub memory: &'a Arc<BodyMemory>,
    pub host: &'a Arc<dyn LoadHost>,
}

/// A column of a stripe.
pub(super) struct Column {
    data_type: DataType,
    present: Option<Bits>,
    values: Values,
    memory: Arc<BodyMemory>,
}

enum Values {
    Booleans(Bits),
    Bytes(ByteRuns),
    Ints(Ints),
    /// Numbers of four or eight bytes.
    Floats(Chunks),
    Texts(text::Direct),
    Dictionary(text::Dictionary),
    Decimals {
        digits: Chunks,
        scales: Ints,
    },
    Times {
        seconds: Ints,
        nanos: Ints,
        zone: Zone,
    },
    Struct(Fields, Vec<Column>),
    List(FieldRef, Ints, Box<Column>),
    Map(FieldRef, Ints, Box<(Column, Column)>),
}

/// The zone in which times were written.
enum Zone {
    Utc,
    Named {
        name: String,
        host: Arc<dyn LoadHost>,
        /// The zone's offset in seconds, in the last queried quarter of an hour.
        known: Cell<Option<(i64, i64)>>,
    },
}

impl Opening<'_> {
    /// Opens a column.
    ///
    /// # Errors
    /// [`Damage`] if it is written in an unknown way, or is not read.
    pub fn column(&self, at: usize) -> Outcome<Column> {
        let this = &self.tail.types[at];
        let data_type = self.tail.data_type(at)?;
        let encoding = self.footer.encoding(at)?;
        let form = if encoding.kind >= 2 { Form::Two } else { Form::One };
        let ints = |kind, is_signed| Ints::new(self.chunks(at, kind), form, is_signed);
        let data = || self.chunks(at, stream::DATA);
        let values = match this.kind {
            kind::BOOLEAN => Values::Booleans(Bits::new(data())),
            kind::BYTE => Values::Bytes(ByteRuns::new(data())),
            kind::SHORT | kind::INT | kind::LONG | kind::DATE => Values::Ints(ints(stream::DATA, true)),
            kind::FLOAT | kind::DOUBLE => Values::Floats(data()),
            kind::STRING | kind::VARCHAR | kind::CHAR | kind::BINARY => match encoding.kind {
                0 | 2 => Values::Texts(text::Direct::new(data(), ints(stream::LENGTH, false))),
                1 | 3 => Values::Dictionary(text::Dictionary::read(
                    encoding.dictionary_size,
                    ints(stream::LENGTH, false),
                    self.chunks(at, stream::DICTIONARY),
                    ints(stream::DATA, false),
                    &data_type,
                    self.memory,
                )?),
                other => return Err(Damage::new(format!("a column of text is written in the way {other}"))),
            },
            kind::DECIMAL => Values::Decimals { digits: data(), scales: ints(stream::SECONDARY, true) },
            kind::TIMESTAMP | kind::INSTANT => Values::Times {
                seconds: ints(stream::DATA, true),
                nanos: ints(stream::SECONDARY, false),
                zone: self.zone(this.kind)?,
            },
            kind::STRUCT => {
                let DataType::Struct(fields) = &data_type else { return Err(Damage::new("no struct")) };
                let children = this.children.iter().map(|&child| self.column(child));
                Values::Struct(fields.clone(), children.collect::<Outcome<_>>()?)
            }
            kind::LIST => {
                let DataType::List(item) = &data_type else { return Err(Damage::new("no list")) };
                let items = Box::new(self.column(this.children[0])?);
                Values::List(Arc::clone(item), ints(stream::LENGTH, false), items)
            }
            kind::MAP => {
                let DataType::Map(entries, _) = &data_type else { return Err(Damage::new("no map")) };
                let pair = (self.column(this.children[0])?, self.column(this.children[1])?);
                Values::Map(Arc::clone(entries), ints(stream::LENGTH, false), Box::new(pair))
            }
            _ => return Err(Damage::new("columns of UNION are not read; leave them out")),
        };
        let present = self.footer.stream(at, stream::PRESENT);
        let present = present.map(|_| Bits::new(self.chunks(at, stream::PRESENT)));
        Ok(Column { data_type, present, values, memory: Arc::clone(self.memory) })
    }

    fn chunks(&self, column: usize, kind: u64) -> Chunks {
        let (at, length) = self.footer.stream(column, kind).unwrap_or_default();
        Chunks::new(self.file, self.memory, self.tail.packing, at, length)
    }

    fn zone(&self, kind: u64) -> Outcome<Zone> {
        let name = self.footer.zone.as_str();
        if kind == kind::INSTANT || matches!(name, "" | "UTC" | "GMT" | "Etc/UTC" | "Etc/GMT") {
            return Ok(Zone::Utc);
        }
        match self.host.zone_offset_seconds(name, 0) {
            Some(_) => {
                let (name, host) = (name.to_owned(), Arc::clone(self.host));
                Ok(Zone::Named { name, host, known: Cell::new(None) })
            }
            None => Err(Damage::new(format!("its times are written in the zone '{name}', which is unknown"))),
        }
    }
}

impl Zone {
    /// Seconds that the clock is ahead of UTC.
    fn ahead(&self, unix_seconds: i64) -> i64 {
        match self {
            Self::Utc => 0,
            Self::Named { name, host, known } => {
                // Offsets change at quarters of an hour.
                let quarter = unix_seconds.div_euclid(15 * 60);
                match known.get() {
                    Some((at, ahead)) if at == quarter => ahead,
                    _ => {
                        let micros = quarter.saturating_mul(15 * 60 * 1_000_000);
                        let ahead = host.zone_offset_seconds(name, micros).map_or(0, i64::from);
                        known.set(Some((quarter, ahead)));
                        ahead
                    }
                }
            }
        }
    }

    /// The clock's reading this many seconds after its 2015 began, in seconds since its 1970 began.
    fn shown(&self, seconds: i64) -> i64 {
        let base = BASE_SECONDS - self.ahead(BASE_SECONDS);
        let instant = base.wrapping_add(seconds);
        instant.wrapping_add(self.ahead(instant))
    }
}

impl Column {
    /// Reads the next values, as many as there are rows in which the parent is not NULL.
    ///
    /// # Errors
    /// [`Damage`] if they are truncated, can't be decompressed, or are not of the type.
    pub fn read(&mut self, count: usize) -> Outcome<ArrayRef> {
        // Numbers have 64 bits before they have their type; lists and texts have a length in addition.
        let width = self.data_type.primitive_width().unwrap_or(8).max(8);
        self.memory.add_to_batch(count.saturating_mul(width))?;
        let present = self.present.as_mut().map(|bits| bits.read(count)).transpose()?;
        let there = present.as_ref().map_or(count, |bits| bits.iter().filter(|&&is_there| is_there).count());
        let array = self.values(there)?;
        if array.data_type() != &self.data_type || array.len() != there {
            return Err(Damage::new(format!("a column of {} has {}", self.data_type, array.data_type())));
        }
        match present {
            Some(present) if there < count => spread(&array, &present),
            _ => Ok(array),
        }
    }

    fn values(&mut self, count: usize) -> Outcome<ArrayRef> {
        Ok(match &mut self.values {
            Values::Booleans(bits) => Arc::new(BooleanArray::from(bits.read(count)?)),
            Values::Bytes(runs) => {
                let mut bytes = Vec::with_capacity(count);
                runs.read(count, &mut bytes)?;
                Arc::new(bytes.into_iter().map(|byte| Some(byte as i8)).collect::<Int8Array>())
            }
            Values::Ints(ints) => whole_numbers(ints.read(count)?, &self.data_type)?,
            Values::Floats(chunks) => {
                let mut bytes = Vec::new();
                if self.data_type == DataType::Float32 {
                    chunks.read(4 * count, &mut bytes)?;
                    let (numbers, _) = bytes.as_chunks::<4>();
                    Arc::new(Float32Array::from_iter_values(
                        numbers.iter().map(|four| f32::from_le_bytes(*four)),
                    ))
                } else {
                    chunks.read(8 * count, &mut bytes)?;
                    let (numbers, _) = bytes.as_chunks::<8>();
                    let numbers = numbers.iter().map(|eight| f64::from_le_bytes(*eight));
                    Arc::new(Float64Array::from_iter_values(numbers))
                }
            }
            Values::Texts(texts) => texts.read(count, &self.data_type, &self.memory)?,
            Values::Dictionary(dictionary) => dictionary.next(count, &self.memory)?,
            Values::Decimals { digits, scales } => decimals(digits, scales, count, &self.data_type)?,
            Values::Times { seconds, nanos, zone } => {
                let (seconds, nanos) = (seconds.read(count)?, nanos.read(count)?);
                let times = seconds.iter().zip(&nanos).map(|(&second, &nano)| micros(zone, second, nano));
                let times = times.collect::<Outcome<Vec<i64>>>()?;
                let array = TimestampMicrosecondArray::from(times);
                match &self.data_type {
                    DataType::Timestamp(_, Some(zone)) => Arc::new(array.with_timezone(Arc::clone(zone))),
                    _ => Arc::new(array),
                }
            }
            Values::Struct(fields, children) => {
                let arrays =
                    children.iter_mut().map(|child| child.read(count)).collect::<Outcome<Vec<_>>>()?;
                let array = StructArray::try_new_with_length(fields.clone(), arrays, None, count);
                Arc::new(array.map_err(|error| Damage::new(error.to_string()))?)
            }
            Values::List(item, lengths, items) => {
                let offsets = offsets(&lengths.read(count)?)?;
                let items = items.read(offsets.last().map_or(0, |&last| last as usize))?;
                let array = ListArray::try_new(Arc::clone(item), offsets, items, None);
                Arc::new(array.map_err(|error| Damage::new(error.to_string()))?)
            }
            Values::Map(entries, lengths, pair) => {
                let offsets = offsets(&lengths.read(count)?)?;
                let length = offsets.last().map_or(0, |&last| last as usize);
                let arrays = vec![pair.0.read(length)?, pair.1.read(length)?];
                let DataType::Struct(fields) = entries.data_type() else {
                    return Err(Damage::new("a map without entries"));
                };
                let pairs = StructArray::try_new(fields.clone(), arrays, None);
                let array = pairs
                    .and_then(|pairs| MapArray::try_new(Arc::clone(entries), offsets, pairs, None, false));
                Arc::new(array.map_err(|error| Damage::new(error.to_string()))?)
            }
        })
    }
}

/// Offsets of values that have these lengths.
pub(super) fn offsets(lengths: &[i64]) -> Outcome<OffsetBuffer<i32>> {
    let mut offsets = Vec::with_capacity(lengths.len() + 1);
    offsets.push(0_i32);
    let mut end = 0_i32;
    for &length in lengths {
        let next = i32::try_from(length).ok().filter(|&length| length >= 0);
        let next = next.and_then(|length| end.checked_add(length));
        end = next.ok_or_else(|| Damage::new(format!("a value has a length of {length}")))?;
        offsets.push(end);
    }
    Ok(OffsetBuffer::new(offsets.into()))
}

/// The values with NULL in between.
fn spread(array: &ArrayRef, present: &[bool]) -> Outcome<ArrayRef> {
    let mut next = 0;
    let places = present.iter().map(|&is_there| {
        let place = next;
        next += u32::from(is_there);
        if is_there { place } else { 0 }
    });
    let places = UInt32Array::new(places.collect(), Some(NullBuffer::from(present)));
    take(array, &places, None).map_err(|error| Damage::new(error.to_string()))
}

fn whole_numbers(numbers: Vec<i64>, data_type: &DataType) -> Outcome<ArrayRef> {
    fn narrow<T: TryFrom<i64>>(numbers: &[i64]) -> Outcome<Vec<T>> {
        let one = |&number: &i64| {
            T::try_from(number).map_err(|_| Damage::new(format!("{number} is beyond its column's type")))
        };
        numbers.iter().map(one).collect()
    }
    Ok(match data_type {
        DataType::Int16 => Arc::new(Int16Array::from(narrow::<i16>(&numbers)?)),
        DataType::Int32 => Arc::new(Int32Array::from(narrow::<i32>(&numbers)?)),
        DataType::Date32 => Arc::new(Date32Array::from(narrow::<i32>(&numbers)?)),
        _ => Arc::new(Int64Array::from(numbers)),
    })
}

/// A time in µs. The number of nanoseconds has, in its lowest three bits, how many zeros were left out.
fn micros(zone: &Zone, second: i64, nano: i64) -> Outcome<i64> {
    let (digits, zeros) = (nano >> 3, nano & 7);
    let nanos = if zeros == 0 { digits } else { digits.saturating_mul(10_i64.pow(zeros as u32 + 1)) };
    // pyarrow writes the times before 1970 with negative ones.
    if nanos.unsigned_abs() > 999_999_999 {
        return Err(Damage::new(format!("a time has {nanos} nanoseconds")));
    }
    let mut seconds = zone.shown(second);
    // All writers round seconds before 1970 up and leave it to the readers to take that back, where there are milliseconds.
    if seconds < 0 && nanos > 999_999 {
        seconds -= 1;
    }
    let micros = seconds.checked_mul(1_000_000).and_then(|micros| micros.checked_add(nanos.div_euclid(1000)));
    micros.ok_or_else(|| Damage::new(format!("a time is {second} seconds from 2015")))
}

fn decimals(digits: &mut Chunks, scales: &mut Ints, count: usize, to: &DataType) -> Outcome<ArrayRef> {
    let DataType::Decimal128(precision, scale) = *to else { return Err(Damage::new("no decimal")) };
    let mut values = Vec::with_capacity(count);
    for from in scales.read(count)? {
        let value = digits.wide_varint()?;
        let shift = i64::from(scale).checked_sub(from).filter(|shift| shift.abs() <= 38);
        let shifted = shift.and_then(|shift| {
            let factor = 10_i128.pow(shift.unsigned_abs() as u32);
            if shift < 0 { Some(value / factor) } else { value.checked_mul(factor) }
        });
        let wrong =
            || Damage::new(format!("{value} with {from} places is beyond DECIMAL({precision}, {scale})"));
        values.push(shifted.ok_or_else(wrong)?);
    }
    let array = Decimal128Array::from(values).with_precision_and_scale(precision, scale);
    let array = array.and_then(|array| array.validate_decimal_precision(precision).map(|()| array));
    Ok(Arc::new(array.map_err(|error| Damage::new(error.to_string()))?))
}
