//! Rows on their way into blocks: what every kind of load shares.
//!
//! Invariant: a row is either in the builder with a value for every column, or it left no trace
//! and is counted as filtered; only the first [`REJECTS_KEPT_MAX`] reasons are worded.
//!
//! Not its business: the source of cells.

use crate::blocks::block::Block;
use crate::blocks::builder::BlockBuilder;
use crate::cells::cell::{Cell, Fault};
use crate::cells::reject::{Counts, Place, REJECTS_KEPT_MAX, Reject, RejectCode, Source};
use crate::rows::partition;
use crate::rows::target::{Fill, Strictness, Target, TargetColumn, Wording};
use tributary_types::{HiddenColumn, SqlError};

/// A block is finished at this many rows …
pub const BLOCK_ROWS_TARGET: usize = 8192;
/// … or when its values take this many bytes.
pub const BLOCK_BYTES_TARGET: usize = 4 * 1024 * 1024;
/// The maximum bytes of a row's values, far below the capacity of a block.
const ROW_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The time and zone of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadClock {
    /// Wall-clock time in the session's zone, in µs since 1970-01-01 00:00:00: the value of
    /// `DEFAULT CURRENT_TIMESTAMP`.
    pub now_micros: i64,
    /// The session's zone in seconds ahead of UTC: times written with a zone are converted to it.
    pub utc_offset_seconds: i32,
}

/// How a load from a file treats values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadRules {
    /// `strict_mode`: see [`Strictness::strict`].
    pub strict: bool,
    pub clock: LoadClock,
}

impl LoadRules {
    pub(crate) fn worded(&self, wording: Wording) -> Strictness {
        Strictness { strict: self.strict, wording, utc_offset_seconds: self.clock.utc_offset_seconds }
    }
}

/// How an INSERT treats bad rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InsertOptions {
    /// `enable_insert_strict`: values that do not fit reject their row instead of becoming NULL.
    pub strict: bool,
    /// `insert_max_filter_ratio`: the share of rejected rows that is tolerated when not strict.
    pub max_filter_ratio: f64,
    pub clock: LoadClock,
}

impl Default for InsertOptions {
    /// The session defaults.
    fn default() -> Self {
        Self { strict: true, max_filter_ratio: 1.0, clock: LoadClock::default() }
    }
}

impl InsertOptions {
    pub(crate) fn rules(&self) -> Strictness {
        LoadRules { strict: self.strict, clock: self.clock }.worded(Wording::Insert)
    }

    /// Whether a load with these counts must fail: any rejected row if strict, else too many.
    #[must_use]
    pub fn refuses(&self, counts: Counts) -> bool {
        counts.exceed(if self.strict { 0.0 } else { self.max_filter_ratio })
    }
}

/// A decoded load.
#[derive(Clone, Debug, Default)]
pub struct Decoded {
    /// The loaded rows, in order.
    pub blocks: Vec<Block>,
    pub counts: Counts,
    /// The first [`REJECTS_KEPT_MAX`] rejected rows.
    pub rejects: Vec<Reject>,
}

impl Decoded {
    /// Why the first rejected row was rejected.
    #[must_use]
    pub fn first_reason(&self) -> Option<&str> {
        self.rejects.first().map(|reject| reject.reason.as_str())
    }
}

/// Takes cells row by row.
pub(crate) struct Loader<'a> {
    pub(crate) target: &'a Target,
    builder: &'a mut BlockBuilder,
    rules: Strictness,
    now_micros: i64,
    progress: &'a mut Progress,
}

/// The state of a load so far.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) decoded: Decoded,
    /// The rejected rows of the same body that other decoders keep.
    rejects_before: usize,
    fault: Option<RowFault>,
}

impl Progress {
    /// That of a decoder of later rows, after others have kept `rejects_before` rejected ones.
    pub(crate) fn after(rejects_before: usize) -> Self {
        Self { rejects_before, ..Self::default() }
    }

    /// The rejected rows of the body that are kept so far.
    fn rejects(&self) -> usize {
        self.rejects_before + self.decoded.rejects.len()
    }

    fn count_reject(&mut self, reject: impl FnOnce(Place) -> Reject) {
        let rejects = self.rejects();
        self.decoded.count_reject_after(rejects, reject);
    }
}

/// The first fault of the row under construction.
#[derive(Debug)]
struct RowFault {
    code: RejectCode,
    /// The column with the fault, where it is one's.
    column: Option<String>,
    /// Empty if enough reasons are stored already.
    reason: String,
    /// The reader found it (and shows the source), not the check on final values.
    is_conversion: bool,
}

impl<'a> Loader<'a> {
    /// Prepares the builder for the target's schema and continues from `progress`.
    pub(crate) fn new(
        target: &'a Target,
        builder: &'a mut BlockBuilder,
        rules: Strictness,
        now_micros: i64,
        progress: &'a mut Progress,
    ) -> Self {
        Self { target, builder, rules, now_micros, progress }
    }

    /// Puts the cell of field `field`, which must be the next one.
    #[inline]
    pub(crate) fn put(&mut self, field: usize, cell: Cell<'_>) {
        let Some(column) = self.target.column_of(field) else { return };
        if let Err(fault) = column.push(self.builder.column_mut(column.index), cell, self.rules) {
            self.fail(column, fault, &cell);
        }
    }

    /// [`Loader::put`] for a text. Valid UTF-8.
    #[inline]
    pub(crate) fn put_text(&mut self, field: usize, text: &[u8]) {
        let Some(column) = self.target.column_of(field) else { return };
        if let Err(fault) = column.push_text(self.builder.column_mut(column.index), text, self.rules) {
            self.fail(column, fault, &Cell::Text(text));
        }
    }

    /// [`Loader::put`] for a number's SQL literal.
    #[inline]
    pub(crate) fn put_number(&mut self, field: usize, literal: &[u8]) {
        let Some(column) = self.target.column_of(field) else { return };
        if let Err(fault) = column.push_number(self.builder.column_mut(column.index), literal, self.rules) {
            self.fail(column, fault, &Cell::Number(literal));
        }
    }

    /// [`Loader::put`] for an integer.
    #[inline]
    pub(crate) fn put_int(&mut self, field: usize, value: i64) {
        let Some(column) = self.target.column_of(field) else { return };
        if let Err(fault) = column.push_int(self.builder.column_mut(column.index), value, self.rules) {
            self.fail(column, fault, &Cell::Int(value));
        }
    }

    /// Puts the column's default for field `field`.
    ///
    /// # Errors
    /// If the column has none.
    pub(crate) fn put_default(&mut self, field: usize) -> Result<(), SqlError> {
        if let Some(column) = self.target.column_of(field) {
            let fill = self.target.default_of(column)?;
            fill.push(self.builder.column_mut(column.index), column.data_type, self.now_micros);
        }
        Ok(())
    }

    /// Puts NULL for field `field`; `reason` explains the rejection of the row if the column, whose name it gets, does not allow
    /// NULL.
    #[inline]
    pub(crate) fn put_null(&mut self, field: usize, reason: impl FnOnce(&str) -> String) {
        self.put_fill(field, &Fill::Null, reason);
    }

    /// Puts the value of a field that the row lacks; `reason` as for [`Loader::put_null`].
    #[inline]
    pub(crate) fn put_fill(&mut self, field: usize, fill: &Fill, reason: impl FnOnce(&str) -> String) {
        let Some(column) = self.target.column_of(field) else { return };
        if *fill != Fill::Missing && (column.nullable || *fill != Fill::Null) {
            return fill.push(self.builder.column_mut(column.index), column.data_type, self.now_micros);
        }
        let code = if *fill == Fill::Null { RejectCode::NullValue } else { RejectCode::MissingField };
        self.fail_with(code, column, reason);
    }

    /// Puts a row's own list of the columns that it gives.
    pub(crate) fn put_given(&mut self, text: Option<&[u8]>) {
        let Some(index) = self.target.schema().index_of_hidden(HiddenColumn::Given) else { return };
        let column = self.builder.column_mut(index);
        match text {
            Some(text) => column.push_text(text),
            None => column.push_null(),
        }
    }

    #[cold]
    fn fail_with_row(&mut self, code: RejectCode, reason: impl FnOnce(&BlockBuilder, &Target) -> String) {
        let is_worded = self.progress.rejects() < REJECTS_KEPT_MAX;
        let reason = if is_worded { reason(self.builder, self.target) } else { String::new() };
        self.progress.fault = Some(RowFault { code, column: None, reason, is_conversion: false });
    }

    #[cold]
    fn fail_with(&mut self, code: RejectCode, column: &TargetColumn, reason: impl FnOnce(&str) -> String) {
        if self.progress.fault.is_some() {
            return;
        }
        let is_worded = self.progress.rejects() < REJECTS_KEPT_MAX;
        let name = is_worded.then(|| self.target.name_of(column));
        let reason = name.map(reason).unwrap_or_default();
        self.progress.fault =
            Some(RowFault { code, column: name.map(str::to_owned), reason, is_conversion: true });
    }

    /// Takes the cells of the row under construction back. It is not counted.
    #[cold]
    pub(crate) fn undo_row(&mut self) {
        self.progress.fault = None;
        self.builder.rollback_row();
    }

    #[cold]
    fn fail(&mut self, column: &TargetColumn, fault: Fault, cell: &Cell<'_>) {
        if self.progress.fault.is_some() {
            return;
        }
        let is_worded = self.progress.rejects() < REJECTS_KEPT_MAX;
        let name = is_worded.then(|| self.target.name_of(column));
        let reason = name.map(|name| column.reason(name, fault, cell, self.rules)).unwrap_or_default();
        let is_final = matches!(fault, Fault::TooLong { .. } | Fault::TooLongString { .. });
        let is_conversion = self.rules.wording == Wording::File && !is_final;
        let (code, column) = (RejectCode::from(fault), name.map(str::to_owned));
        self.progress.fault = Some(RowFault { code, column, reason, is_conversion });
    }

    /// Ends a row. `source` is the original one.
    #[inline]
    pub(crate) fn end_row(&mut self, source: impl Source) {
        self.progress.decoded.counts.total += 1;
        if let Some(fault) = self.progress.fault.take() {
            return self.drop_row(fault, source);
        }
        for (column, fill) in self.target.filled() {
            fill.push(self.builder.column_mut(column.index), column.data_type, self.now_micros);
        }
        if let Some(partitions) = self.target.partitions()
            && !partitions.takes_row(self.builder)
        {
            return self.drop_homeless_row(source);
        }
        let stored_bytes = self.builder.stored_bytes();
        if stored_bytes > ROW_BYTES_MAX {
            return self.drop_long_row(stored_bytes, source);
        }
        self.builder.finish_row();
        self.progress.decoded.counts.loaded += 1;
        if self.builder.row_count() >= BLOCK_ROWS_TARGET || stored_bytes >= BLOCK_BYTES_TARGET {
            self.end_block();
        }
    }

    /// Drops a row that does not fit into a block; all rows before it have less than [`BLOCK_BYTES_TARGET`].
    #[cold]
    fn drop_long_row(&mut self, bytes: usize, source: impl Source) {
        self.fail_with_row(RejectCode::RowTooLong, |_, _| {
            format!("the values of the row take {bytes} bytes, the limit is {ROW_BYTES_MAX}; shorten them")
        });
        if let Some(fault) = self.progress.fault.take() {
            self.drop_row(fault, source);
        }
    }

    /// Drops a row that has no partition.
    #[cold]
    fn drop_homeless_row(&mut self, source: impl Source) {
        self.fail_with_row(RejectCode::NoPartition, |builder, target| {
            partition::reason(builder, target.schema())
        });
        if let Some(fault) = self.progress.fault.take() {
            self.drop_row(fault, source);
        }
    }

    #[cold]
    fn drop_row(&mut self, fault: RowFault, source: impl Source) {
        self.builder.rollback_row();
        self.progress.count_reject(|place| Reject {
            code: fault.code,
            column: fault.column,
            row: Some(place.row()),
            reason: fault.reason,
            source_line: if fault.is_conversion { source.line() } else { String::new() },
            raw: place.raw_of(&source),
        });
    }

    /// Counts a row that never became cells.
    pub(crate) fn reject_row(&mut self, reject: impl FnOnce(Place) -> Reject) {
        self.progress.decoded.counts.total += 1;
        self.progress.count_reject(reject);
    }

    /// Makes a block of the rows so far.
    pub(crate) fn end_block(&mut self) {
        if self.builder.row_count() > 0 {
            let block = self.builder.finish().expect("a row that makes it too large was dropped");
            self.progress.decoded.blocks.push(block);
        }
    }

    /// Drops everything: the load is not for this crate or is refused as a whole.
    pub(crate) fn abandon(&mut self) {
        self.builder.clear();
    }
}

impl Decoded {
    /// Counts a filtered row (its total is counted already) and stores its reason if there is space.
    pub(crate) fn count_reject(&mut self, reject: impl FnOnce(Place) -> Reject) {
        self.count_reject_after(self.rejects.len(), reject);
    }

    /// [`Decoded::count_reject`] where `rejects` rejected rows of the body are kept already.
    fn count_reject_after(&mut self, rejects: usize, reject: impl FnOnce(Place) -> Reject) {
        self.counts.filtered += 1;
        if rejects < REJECTS_KEPT_MAX {
            self.rejects.push(reject(Place::of(self.counts.total, rejects)));
        }
    }
}
