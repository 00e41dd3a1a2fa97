//! Folds rows of equal keys into one row, according to the columns' aggregations.
//!
//! Rows are taken batch by batch, each with the number of the row that it becomes part of: its *slot*. Numbers are summed and
//! compared immediately; of other values only the position of the decisive one is recorded, and they are copied once at the end,
//! into batches of bounded size: a text column of one batch is limited to 2 GiB.
//!
//! Invariant: a folder with several slots never copies more than [`Limits::bytes`]; its owner folds fewer slots at a time then.
//! Not the business of this module: finding equal keys, and the order of rows.

use crate::error::TableError;
use crate::view::evolve::assemble;
use crate::view::memtable::{batch_bytes, bytes_between};
use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, BinaryArray, PrimitiveArray,
    RecordBatch, StringArray, new_null_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::interleave;
use arrow::datatypes::{
    DataType as ArrowType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType,
};
use std::f64::consts::LOG2_10;
use std::ops::Range;
use std::sync::Arc;
use tributary_types::state::{self, State};
use tributary_types::{Aggregation, ColumnDef, DataType, TableSchema};

const DOING: &str = "folding rows of equal keys";
/// Rows from files are released once they have at least this many bytes.
const HELD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Limits of one step of folding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The total size of the rows of all slots.
    pub(crate) bytes: usize,
    /// The size of the rows of a batch, unless it has one row.
    pub(crate) batch_bytes: usize,
}

/// Folds rows of one schema.
pub(crate) struct Folder {
    schema: Arc<TableSchema>,
    slots: usize,
    columns: Vec<Column>,
    /// The first row of each slot, which has its key.
    first: Vec<Place>,
    /// The last row of each slot.
    last: Vec<Place>,
    /// The columns of batches that places are in. The first of them is one row of NULLs.
    batches: Vec<Vec<ArrayRef>>,
    /// For each set of columns that rows give, whether it has the column. None where all rows are folded.
    given: Arc<Vec<Vec<bool>>>,
    limits: Limits,
    held_bytes: usize,
    held_bytes_max: usize,
    /// The total size of the slots' rows is too large.
    is_overfull: bool,
}

/// A batch and a row in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    batch: u32,
    row: u32,
}

impl Place {
    /// The row of NULLs: no value was found yet.
    const NOWHERE: Self = Self { batch: 0, row: 0 };
}

/// How the values of a column are folded.
enum Column {
    /// The first row's, which is a key.
    First,
    /// The last row's.
    Last,
    /// The last one that is not NULL.
    LastGiven(Vec<Place>),
    /// The last one of a row that gives the column.
    LastNamed(Vec<Place>),
    /// The smallest or greatest text.
    Text {
        is_max: bool,
        best: Vec<Place>,
    },
    Numbers(Box<dyn Numbers>),
}

/// Numbers that are summed or compared, or states that are merged, NULLs left out.
trait Numbers: Send {
    fn add(&mut self, array: &ArrayRef, rows: &[u32], slots: &[u32]);
    /// An upper bound on the bytes held, for values of different sizes.
    fn held_bytes(&self) -> usize {
        0
    }
    /// Adds the bytes of each slot's result to those of its row.
    fn measure(&self, bytes: &mut [usize]);
    /// The results of the next slots.
    fn take(&mut self, slots: Range<usize>) -> ArrayRef;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Sum,
    Min,
    Max,
}

struct Primitives<T: ArrowPrimitiveType> {
    operation: Operation,
    data_type: ArrowType,
    values: Vec<T::Native>,
    is_valid: Vec<bool>,
}

impl Folder {
    /// Creates this number of rows of the schema.
    pub(crate) fn new(schema: &Arc<TableSchema>, slots: usize, limits: Limits) -> Self {
        let nulls = |column: &ColumnDef| new_null_array(&column.data_type.to_arrow(), 1);
        Self {
            schema: Arc::clone(schema),
            slots,
            columns: schema.columns.iter().map(|column| Column::new(column, slots)).collect(),
            first: vec![Place::NOWHERE; slots],
            last: vec![Place::NOWHERE; slots],
            batches: vec![schema.columns.iter().map(nulls).collect()],
            given: Arc::default(),
            limits,
            held_bytes: 0,
            held_bytes_max: HELD_BYTES_MAX.min(limits.bytes),
            is_overfull: false,
        }
    }

    /// Creates this number of rows, each of layers that give some columns; `given` has the sets of such columns.
    pub(crate) fn of_layers(
        schema: &Arc<TableSchema>,
        slots: usize,
        given: &Arc<Vec<Vec<bool>>>,
        limits: Limits,
    ) -> Self {
        let columns = schema.columns.iter().map(|_| Column::LastNamed(vec![Place::NOWHERE; slots])).collect();
        Self { columns, given: Arc::clone(given), ..Self::new(schema, slots, limits) }
    }

    /// Whether the total size of the slots' rows is too large. Adding more is useless then.
    pub(crate) fn is_overfull(&self) -> bool {
        self.is_overfull
    }

    /// Adds rows of a batch of the schema, each for its slot, after those already added. If they are layers, `sets` has the set
    /// of columns of each.
    ///
    /// # Errors
    /// [`TableError::Arrow`].
    pub(crate) fn add(
        &mut self,
        batch: &RecordBatch,
        rows: &[u32],
        slots: &[u32],
        sets: &[u32],
    ) -> Result<(), TableError> {
        let number = u32::try_from(self.batches.len()).expect("memory would not hold so many batches");
        self.batches.push(batch.columns().to_vec());
        self.held_bytes += batch_bytes(batch);
        for (&row, &slot) in rows.iter().zip(slots) {
            let place = Place { batch: number, row };
            self.last[slot as usize] = place;
            let first = &mut self.first[slot as usize];
            if *first == Place::NOWHERE {
                *first = place;
            }
        }
        for (index, column) in self.columns.iter_mut().enumerate() {
            match column {
                Column::LastNamed(places) => {
                    for ((&row, &slot), &set) in rows.iter().zip(slots).zip(sets) {
                        if self.given[set as usize][index] {
                            places[slot as usize] = Place { batch: number, row };
                        }
                    }
                }
                column => column.add(&self.batches, index, number, rows, slots),
            }
        }
        let merged: usize = self.columns.iter().map(Column::held_bytes).sum();
        self.is_overfull |= self.slots > 1 && merged > self.limits.bytes;
        if self.held_bytes > self.held_bytes_max && !self.is_overfull {
            self.let_go()?;
        }
        Ok(())
    }

    /// Copies the values that count until now out of the batches, if they are not too large together.
    fn let_go(&mut self) -> Result<(), TableError> {
        let Some(chunks) = self.chunks() else { return Ok(()) };
        let mut batches = vec![self.batches[0].clone()];
        for slots in &chunks {
            let mut copied = Vec::with_capacity(self.columns.len());
            for (index, column) in self.columns.iter().enumerate() {
                copied.push(match column.places(&self.first, &self.last) {
                    Some(places) => self.gather(index, &places[slots.clone()])?,
                    // It is never looked up by its position.
                    None => Arc::clone(&self.batches[0][index]),
                });
            }
            batches.push(copied);
        }
        self.held_bytes = batches[1..].iter().flatten().map(crate::view::memtable::array_bytes).sum();
        self.held_bytes_max = HELD_BYTES_MAX.min(self.limits.bytes).max(self.held_bytes * 2);
        self.batches = batches;
        let lists = self.columns.iter_mut().filter_map(Column::own_places);
        for places in lists.chain([&mut self.first, &mut self.last]) {
            for (slots, batch) in chunks.iter().zip(1..) {
                let of_chunk = places[slots.clone()].iter_mut().zip(0..);
                of_chunk
                    .filter(|(place, _)| **place != Place::NOWHERE)
                    .for_each(|(place, row)| *place = Place { batch, row });
            }
        }
        Ok(())
    }

    /// The values of a column that are at those places.
    fn gather(&self, column: usize, places: &[Place]) -> Result<ArrayRef, TableError> {
        let arrays: Vec<&dyn Array> = self.batches.iter().map(|columns| columns[column].as_ref()).collect();
        let places: Vec<(usize, usize)> =
            places.iter().map(|place| (place.batch as usize, place.row as usize)).collect();
        interleave(&arrays, &places).map_err(TableError::arrow(DOING))
    }

    /// Neighbouring slots whose rows fit into a batch. `None`: all rows are too large together.
    fn chunks(&mut self) -> Option<Vec<Range<usize>>> {
        let mut bytes = vec![0; self.slots];
        for (index, column) in self.columns.iter().enumerate() {
            match column {
                Column::Numbers(numbers) => numbers.measure(&mut bytes),
                other => {
                    let arrays: Vec<&dyn Array> =
                        self.batches.iter().map(|columns| columns[index].as_ref()).collect();
                    let places = other.places(&self.first, &self.last).expect("all but numbers have places");
                    for (bytes, place) in bytes.iter_mut().zip(places) {
                        let row = place.row as usize;
                        *bytes += bytes_between(arrays[place.batch as usize], row..row + 1);
                    }
                }
            }
        }
        self.is_overfull = self.slots > 1 && bytes.iter().sum::<usize>() > self.limits.bytes;
        (!self.is_overfull).then(|| cut_by_bytes(&bytes, self.limits.batch_bytes))
    }

    /// One row for each slot, in batches. `None`: they are too large together.
    ///
    /// # Errors
    /// [`TableError::Arrow`].
    pub(crate) fn finish(mut self) -> Result<Option<Vec<RecordBatch>>, TableError> {
        let Some(chunks) = self.chunks() else { return Ok(None) };
        let schema = self.schema.arrow();
        let mut columns = std::mem::take(&mut self.columns);
        let mut batches = Vec::with_capacity(chunks.len());
        for slots in chunks {
            let mut folded = Vec::with_capacity(columns.len());
            for (index, column) in columns.iter_mut().enumerate() {
                folded.push(match column {
                    Column::Numbers(numbers) => numbers.take(slots.clone()),
                    other => {
                        let places = other.places(&self.first, &self.last);
                        let places = places.expect("all but numbers have places");
                        self.gather(index, &places[slots.clone()])?
                    }
                });
            }
            batches.push(assemble(&schema, folded, slots.len(), &self.schema)?);
        }
        Ok(Some(batches))
    }
}

/// Ranges of neighbouring rows of these sizes with at most `bytes_max` bytes, or one row.
fn cut_by_bytes(bytes: &[usize], bytes_max: usize) -> Vec<Range<usize>> {
    let mut chunks = Vec::new();
    let (mut start, mut sum) = (0, 0);
    for (row, &more) in bytes.iter().enumerate() {
        if row > start && sum + more > bytes_max {
            chunks.push(start..row);
            (start, sum) = (row, 0);
        }
        sum += more;
    }
    if start < bytes.len() {
        chunks.push(start..bytes.len());
    }
    chunks
}

impl Column {
    fn new(column: &ColumnDef, slots: usize) -> Self {
        let nowhere = || vec![Place::NOWHERE; slots];
        let operation = match column.aggregation {
            _ if column.is_key => return Self::First,
            None | Some(Aggregation::Replace) => return Self::Last,
            Some(Aggregation::ReplaceIfNotNull) => return Self::LastGiven(nowhere()),
            Some(Aggregation::BitmapUnion | Aggregation::HllUnion) => {
                return Self::Numbers(Box::new(States::new(column.data_type, slots)));
            }
            Some(Aggregation::Sum) => Operation::Sum,
            Some(Aggregation::Min) => Operation::Min,
            Some(Aggregation::Max) => Operation::Max,
        };
        if column.data_type.is_text() {
            return Self::Text { is_max: operation == Operation::Max, best: nowhere() };
        }
        Self::Numbers(numbers(operation, column.data_type.to_arrow(), slots))
    }

    /// The positions of the slots' values.
    fn places<'a>(&'a self, first: &'a [Place], last: &'a [Place]) -> Option<&'a [Place]> {
        match self {
            Self::First => Some(first),
            Self::Last => Some(last),
            Self::LastGiven(places) | Self::LastNamed(places) | Self::Text { best: places, .. } => {
                Some(places)
            }
            Self::Numbers(_) => None,
        }
    }

    /// An upper bound on the bytes of values held beside the batches.
    fn held_bytes(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.held_bytes(),
            _ => 0,
        }
    }

    fn own_places(&mut self) -> Option<&mut Vec<Place>> {
        match self {
            Self::LastGiven(places) | Self::LastNamed(places) | Self::Text { best: places, .. } => {
                Some(places)
            }
            Self::First | Self::Last | Self::Numbers(_) => None,
        }
    }

    /// Adds rows of the last of `batches`, whose column `index` this is.
    fn add(&mut self, batches: &[Vec<ArrayRef>], index: usize, number: u32, rows: &[u32], slots: &[u32]) {
        let array = &batches[number as usize][index];
        match self {
            Self::First | Self::Last | Self::LastNamed(_) => {}
            Self::LastGiven(places) => {
                for (&row, &slot) in rows.iter().zip(slots).filter(|(row, _)| array.is_valid(**row as usize))
                {
                    places[slot as usize] = Place { batch: number, row };
                }
            }
            Self::Text { is_max, best } => {
                let texts: Vec<&StringArray> =
                    batches.iter().map(|columns| columns[index].as_string::<i32>()).collect();
                let new = texts[number as usize];
                for (&row, &slot) in rows.iter().zip(slots).filter(|(row, _)| new.is_valid(**row as usize)) {
                    let best = &mut best[slot as usize];
                    let known = || texts[best.batch as usize].value(best.row as usize);
                    let text = new.value(row as usize);
                    let is_better =
                        *best == Place::NOWHERE || if *is_max { text > known() } else { text < known() };
                    if is_better {
                        *best = Place { batch: number, row };
                    }
                }
            }
            Self::Numbers(numbers) => numbers.add(array, rows, slots),
        }
    }
}

/// # Panics
/// If the type is not one of numbers or times: `CREATE TABLE` refuses others.
fn numbers(operation: Operation, data_type: ArrowType, slots: usize) -> Box<dyn Numbers> {
    match data_type {
        ArrowType::Int8 => primitives::<Int8Type>(operation, data_type, slots),
        ArrowType::Int16 => primitives::<Int16Type>(operation, data_type, slots),
        ArrowType::Int32 => primitives::<Int32Type>(operation, data_type, slots),
        ArrowType::Int64 => primitives::<Int64Type>(operation, data_type, slots),
        ArrowType::Float32 => primitives::<Float32Type>(operation, data_type, slots),
        ArrowType::Float64 => primitives::<Float64Type>(operation, data_type, slots),
        ArrowType::Decimal128(..) => primitives::<Decimal128Type>(operation, data_type, slots),
        ArrowType::Date32 => primitives::<Date32Type>(operation, data_type, slots),
        ArrowType::Timestamp(TimeUnit::Microsecond, None) => {
            primitives::<TimestampMicrosecondType>(operation, data_type, slots)
        }
        other => unreachable!("{other} is no type of numbers or times"),
    }
}

fn primitives<T: ArrowPrimitiveType>(
    operation: Operation,
    data_type: ArrowType,
    slots: usize,
) -> Box<dyn Numbers>
where
    T::Native: Wrap,
{
    Box::new(Primitives::<T> {
        operation,
        data_type,
        values: vec![T::Native::ZERO; slots],
        is_valid: vec![false; slots],
    })
}

impl<T: ArrowPrimitiveType> Primitives<T> {
    fn fold(
        &mut self,
        array: &PrimitiveArray<T>,
        rows: &[u32],
        slots: &[u32],
        better: impl Fn(T::Native, T::Native) -> T::Native,
    ) {
        let values = array.values();
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        for (&row, &slot) in rows.iter().zip(slots) {
            let (row, slot) = (row as usize, slot as usize);
            if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                continue;
            }
            let value = values[row];
            self.values[slot] = if self.is_valid[slot] { better(self.values[slot], value) } else { value };
            self.is_valid[slot] = true;
        }
    }
}

impl<T: ArrowPrimitiveType> Numbers for Primitives<T>
where
    T::Native: Wrap,
{
    fn add(&mut self, array: &ArrayRef, rows: &[u32], slots: &[u32]) {
        let array = array.as_primitive::<T>();
        match self.operation {
            Operation::Sum => self.fold(array, rows, slots, T::Native::add_wrapping),
            Operation::Min => {
                self.fold(array, rows, slots, |known, new| if new.is_lt(known) { new } else { known });
            }
            Operation::Max => {
                self.fold(array, rows, slots, |known, new| if new.is_gt(known) { new } else { known });
            }
        }
    }

    fn measure(&self, bytes: &mut [usize]) {
        bytes.iter_mut().for_each(|bytes| *bytes += size_of::<T::Native>());
    }

    fn take(&mut self, slots: Range<usize>) -> ArrayRef {
        let mut values = self.values[slots.clone()].to_vec();
        if self.operation == Operation::Sum {
            values.iter_mut().for_each(|value| *value = value.wrapped(&self.data_type));
        }
        let is_valid = NullBuffer::from(self.is_valid[slots].to_vec());
        let values = PrimitiveArray::<T>::new(values.into(), Some(is_valid));
        Arc::new(values.with_data_type(self.data_type.clone()))
    }
}

/// States of sets, merged into one per slot. A slot with one value has its original bytes.
struct States {
    data_type: DataType,
    slots: Vec<Merged>,
    /// Bytes of all values so far: the merged states take no more.
    bytes: usize,
}

enum Merged {
    Nothing,
    One(Vec<u8>),
    Several(Box<State>),
}

impl States {
    fn new(data_type: DataType, slots: usize) -> Self {
        Self { data_type, slots: (0..slots).map(|_| Merged::Nothing).collect(), bytes: 0 }
    }
}

impl Numbers for States {
    fn add(&mut self, array: &ArrayRef, rows: &[u32], slots: &[u32]) {
        let array = array.as_binary::<i32>();
        for (&row, &slot) in rows.iter().zip(slots).filter(|(row, _)| array.is_valid(**row as usize)) {
            let bytes = array.value(row as usize);
            self.bytes += bytes.len();
            let merged = &mut self.slots[slot as usize];
            if let Merged::One(first) = merged {
                let mut state = State::new(self.data_type).expect("such a column has states");
                assert!(state.merge(first), "a column has values of its type");
                *merged = Merged::Several(Box::new(state));
            }
            match merged {
                Merged::Several(state) => {
                    assert!(state.merge(bytes), "a column has values of its type");
                }
                Merged::Nothing | Merged::One(_) => *merged = Merged::One(bytes.to_vec()),
            }
        }
    }

    fn held_bytes(&self) -> usize {
        self.bytes
    }

    fn measure(&self, bytes: &mut [usize]) {
        for (bytes, merged) in bytes.iter_mut().zip(&self.slots) {
            *bytes += match merged {
                Merged::Nothing => 0,
                Merged::One(value) => value.len(),
                Merged::Several(state) => state.bytes().len(),
            };
        }
    }

    fn take(&mut self, slots: Range<usize>) -> ArrayRef {
        let empty = state::empty(self.data_type).expect("such a column has states");
        let bytes =
            self.slots[slots].iter_mut().map(|merged| match std::mem::replace(merged, Merged::Nothing) {
                Merged::Nothing => empty.clone(),
                Merged::One(bytes) => bytes,
                Merged::Several(state) => state.bytes(),
            });
        Arc::new(BinaryArray::from_iter_values(bytes))
    }
}

/// A sum that is too large for its column wraps around at the width of the column's type.
trait Wrap: Copy {
    fn wrapped(self, data_type: &ArrowType) -> Self;
}

macro_rules! wraps_by_itself {
    ($($native:ty),*) => {
        $(impl Wrap for $native {
            fn wrapped(self, _: &ArrowType) -> Self {
                self
            }
        })*
    };
}

wraps_by_itself!(i8, i16, i32, i64, f32, f64);

impl Wrap for i128 {
    /// Data files store a decimal in as many bytes as its digits need.
    fn wrapped(self, data_type: &ArrowType) -> Self {
        let bits = match data_type {
            ArrowType::Decimal128(..=9, _) => 32,
            ArrowType::Decimal128(..=18, _) => 64,
            ArrowType::Decimal128(digits, _) => {
                let bytes = (f64::from(*digits) * LOG2_10 + 1.0) / 8.0;
                (bytes.ceil() as u32 * 8).min(i128::BITS)
            }
            _ => i128::BITS,
        };
        let unused = i128::BITS - bits;
        (self << unused) >> unused
    }
}

#[cfg(test)]
mod tests;
