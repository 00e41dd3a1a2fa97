//! The columns that rows of partial updates give.
//!
//! Rows say it in a hidden column, as a text; few texts are different. Each set has a number here, and that of all columns is
//! [`GivenSets::ALL`].

use crate::error::TableError;
use arrow::array::{Array, AsArray, RecordBatch, StringArray};
use std::collections::HashMap;
use tributary_types::{GivenColumns, HiddenColumn, TableSchema};

/// The sets of columns that rows of a schema give.
pub(crate) struct GivenSets {
    schema: TableSchema,
    numbers: HashMap<String, u32>,
    /// For each set, by the positions of the schema's columns, whether it has the column.
    masks: Vec<Vec<bool>>,
}

impl GivenSets {
    /// The set of all columns.
    pub(crate) const ALL: u32 = 0;

    pub(crate) fn new(schema: &TableSchema) -> Self {
        let is_kept = |column: &tributary_types::ColumnDef| column.hidden != Some(HiddenColumn::Given);
        let all = schema.columns.iter().map(is_kept).collect();
        Self { schema: schema.clone(), numbers: HashMap::new(), masks: vec![all] }
    }

    /// The sets of the rows of a batch of the schema. `None`: all rows give all columns.
    ///
    /// # Errors
    /// [`TableError::DamagedFile`] if a row says what no load wrote.
    pub(crate) fn of_batch(&mut self, batch: &RecordBatch) -> Result<Option<Vec<u32>>, TableError> {
        let Some(index) = self.schema.index_of_hidden(HiddenColumn::Given) else { return Ok(None) };
        let texts = batch.column(index).as_string::<i32>();
        if texts.null_count() == texts.len() { Ok(None) } else { self.of_texts(texts).map(Some) }
    }

    /// The sets that have these texts.
    pub(crate) fn of_texts(&mut self, texts: &StringArray) -> Result<Vec<u32>, TableError> {
        let mut sets = Vec::with_capacity(texts.len());
        let mut last: Option<(&str, u32)> = None;
        for text in texts {
            let Some(text) = text else {
                sets.push(Self::ALL);
                continue;
            };
            let set = match last {
                Some((known, set)) if known == text => set,
                _ => self.number(text)?,
            };
            last = Some((text, set));
            sets.push(set);
        }
        Ok(sets)
    }

    fn number(&mut self, text: &str) -> Result<u32, TableError> {
        if let Some(number) = self.numbers.get(text) {
            return Ok(*number);
        }
        let given = GivenColumns::parse(text).ok_or_else(|| {
            TableError::damaged_file(HiddenColumn::Given.name())(format!("'{text}' is no set of columns"))
        })?;
        // A row always says whether it deletes, and has a key.
        let has = |column: &tributary_types::ColumnDef| match column.hidden {
            Some(HiddenColumn::DeleteSign) => true,
            Some(HiddenColumn::Given) => false,
            Some(HiddenColumn::Sequence) | None => column.is_key || given.contains(column.id),
        };
        self.masks.push(self.schema.columns.iter().map(has).collect());
        let number = (self.masks.len() - 1) as u32;
        self.numbers.insert(text.to_owned(), number);
        Ok(number)
    }

    /// The set of the other columns than that one, as a new set.
    pub(crate) fn all_but(&mut self, column: usize) -> u32 {
        let mut mask = self.masks[Self::ALL as usize].clone();
        mask[column] = false;
        self.masks.push(mask);
        (self.masks.len() - 1) as u32
    }

    /// The set of that column alone, as a new set.
    pub(crate) fn only(&mut self, column: usize) -> u32 {
        let mut mask = vec![false; self.schema.columns.len()];
        mask[column] = true;
        self.masks.push(mask);
        (self.masks.len() - 1) as u32
    }

    /// Whether the set has the column at that position.
    pub(crate) fn has(&self, set: u32, column: usize) -> bool {
        self.masks[set as usize][column]
    }

    /// Whether a row of the set leaves an existing one as it is.
    pub(crate) fn changes_nothing(&self, set: u32) -> bool {
        let is_value = |column: &tributary_types::ColumnDef| {
            !column.is_key && column.hidden != Some(HiddenColumn::DeleteSign)
        };
        let mut columns = self.schema.columns.iter().zip(&self.masks[set as usize]);
        !columns.any(|(column, has)| *has && is_value(column))
    }

    /// For each set, by the positions of the schema's columns, whether it has the column.
    pub(crate) fn into_masks(self) -> Vec<Vec<bool>> {
        self.masks
    }
}
