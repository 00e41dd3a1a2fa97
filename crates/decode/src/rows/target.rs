//! Maps the fields of a load to columns, and fills the other columns.
//!
//! Invariant: a [`Target`] that exists can always complete a row: every column has a field or a fill. It depends on the table and
//! the column list only, so a session may cache it for a prepared statement as long as the schema's version stays.
//!
//! Not its business: reading fields from a load.

use crate::blocks::builder::ColumnBuffer;
use crate::cells::cell::{self, Cell, Fault, cut, push_cell};
use crate::cells::convert::number::LARGEINT_LIMIT;
use crate::cells::convert::temporal;
use crate::rows::literal::stored_literal;
use crate::rows::partition::PartitionCheck;
use std::sync::Arc;
use tributary_types::data_type::LARGEINT_DIGITS_MAX;
use tributary_types::{
    ColumnDef, DataType, DefaultValue, ErrorCode, GivenColumns, HiddenColumn, NestedType, PartitionNames,
    SqlError, TableDef, TableSchema, state,
};

/// Doris's greatest length of a STRING, shown in a reason.
const STRING_SCHEMA_BYTES: usize = 2_147_483_643;

/// The treatment of values that a column cannot store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strictness {
    /// A value that cannot be converted or is too long rejects its row. Otherwise it becomes NULL (in a NOT NULL column the row
    /// is rejected all the same), a text is truncated, and a number beyond the range of FLOAT or DOUBLE is infinite. A LARGEINT
    /// with too many digits always rejects its row.
    pub strict: bool,
    /// Whose words the reasons are.
    pub wording: Wording,
    /// The zone of the load, in seconds ahead of UTC: times written with another zone are converted.
    pub utc_offset_seconds: i32,
}

/// Whose words the reasons for rejected rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wording {
    /// Reasons of a file's reader: they contain the row as it was read.
    File,
    /// The checks' on final values, as for INSERT.
    Insert,
}

/// A load's view of a table.
#[derive(Clone, Debug)]
pub struct Target {
    table: Arc<TableDef>,
    /// For each field of the load its column; `None` drops the field.
    fields: Vec<Option<TargetColumn>>,
    /// The load's names for its fields; empty if they have their columns' names.
    field_names: Vec<String>,
    /// The columns without a field and what fills them.
    filled: Vec<(TargetColumn, Fill)>,
    /// Checks which rows have a partition, in a partitioned table.
    partitions: Option<PartitionCheck>,
    /// The load named its columns.
    pub(crate) has_column_list: bool,
    /// If the load updates some columns: the other ones for which a row with a new key has no value.
    unfilled: Vec<usize>,
    /// Each row says which columns it gives.
    is_flexible: bool,
    /// The target of rows once generated values are computed. `None` if nothing is computed.
    computed: Option<Arc<Self>>,
    /// The first column with a field whose values are computed, by its place in the schema.
    computed_field: Option<usize>,
}

/// The treatment of columns that a load does not name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Others {
    /// They have their defaults.
    Filled,
    /// They stay unchanged in existing rows.
    Kept,
    /// They have their defaults in new rows, and existing rows take these columns alone.
    Upserted(GivenColumns),
    /// They have their defaults, and computed values are among the named ones: the rows were read from the table.
    Read,
}

/// The properties of a column for the hot loops.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TargetColumn {
    /// Its place in the schema.
    pub(crate) index: usize,
    pub(crate) data_type: DataType,
    /// Whether a decoded row may lack a value, which the server may generate later.
    pub(crate) nullable: bool,
}

/// A column's value if the load gives none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// There is none: the load must give the value.
    Missing,
    Null,
    /// A value in stored form.
    Stored(Box<[u8]>),
    Now {
        scale: u8,
    },
    Today,
}

impl Target {
    /// A target whose fields are the named columns in that order, or all columns of the table's definition.
    ///
    /// # Errors
    /// An unknown column (1054), a column named twice (1060), or an omitted column that is NOT
    /// NULL and has no default (1105), in Doris's words.
    pub fn new(table: &Arc<TableDef>, columns: Option<&[String]>) -> Result<Self, SqlError> {
        Self::of_columns(table, columns, Others::Filled)
    }

    fn of_columns(
        table: &Arc<TableDef>,
        columns: Option<&[String]>,
        others: Others,
    ) -> Result<Self, SqlError> {
        let schema = &table.schema;
        let fields = match columns {
            None => (0..schema.visible_count()).map(Some).collect(),
            Some(names) => names
                .iter()
                .map(|name| schema.index_of(name).map(Some).ok_or_else(|| unknown_column(name)))
                .collect::<Result<Vec<_>, _>>()?,
        };
        Self::of_fields(table, fields, columns.is_some(), others)
    }

    /// A target for a file whose fields have these names; a field whose name the table does not
    /// know is dropped.
    ///
    /// # Errors
    /// See [`Target::new`], except for unknown columns.
    pub fn with_ignored_fields(table: &Arc<TableDef>, names: &[String]) -> Result<Self, SqlError> {
        let fields = names.iter().map(|name| table.schema.index_of(name)).collect();
        let target = Self::of_fields(table, fields, true, Others::Filled)?;
        Ok(Self { field_names: names.to_vec(), ..target })
    }

    /// A target of a partial update: its fields are the named columns in that order, and existing rows keep the values of all
    /// other columns. If all columns of the table's definition are named, it is the target of a load of whole rows.
    ///
    /// # Errors
    /// See [`Target::new`]; a key column that is not named (1105, in Doris's words), or a table that is not ready for partial
    /// updates.
    pub fn partial(table: &Arc<TableDef>, names: &[String]) -> Result<Self, SqlError> {
        let fields = names
            .iter()
            .map(|name| table.schema.index_of(name).map(Some).ok_or_else(|| unknown_column(name)))
            .collect::<Result<_, _>>()?;
        Self::of_fields(table, fields, true, Others::Kept)
    }

    /// A target of whole rows, like [`Target::new`], of which existing rows of their keys take the `updated` columns alone, and
    /// columns that follow from these. Without any they stay as they are.
    ///
    /// # Errors
    /// See [`Target::new`]; or the table is not ready for partial updates.
    pub fn upserting(
        table: &Arc<TableDef>,
        columns: Option<&[String]>,
        updated: &[String],
    ) -> Result<Self, SqlError> {
        if table.schema.index_of_hidden(HiddenColumn::Given).is_none() {
            return Err(not_ready(table));
        }
        let is_hidden = |name: &&String| {
            let index = table.schema.index_of(name);
            index.is_some_and(|index| table.schema.columns[index].hidden.is_some())
        };
        if let Some(name) = columns.unwrap_or_default().iter().find(is_hidden) {
            // A row that deletes would not leave an existing one as it is.
            return Err(unknown_column(name));
        }
        let follows = |column: &ColumnDef| !updated.is_empty() && (column.on_update || is_computed(column));
        let is_updated = |column: &&ColumnDef| {
            follows(column) || updated.iter().any(|name| name.eq_ignore_ascii_case(&column.name))
        };
        let given = table.schema.columns.iter().filter(is_updated).map(|column| column.id);
        Self::of_columns(table, columns, Others::Upserted(GivenColumns::new(given)))
    }

    /// [`Target::partial`] for a file whose fields have these names; a field whose name the table does not know is dropped.
    ///
    /// # Errors
    /// See [`Target::partial`], except for unknown columns.
    pub fn partial_with_ignored_fields(table: &Arc<TableDef>, names: &[String]) -> Result<Self, SqlError> {
        let fields = names.iter().map(|name| table.schema.index_of(name)).collect();
        let target = Self::of_fields(table, fields, true, Others::Kept)?;
        Ok(Self { field_names: names.to_vec(), ..target })
    }

    /// A target of rows that were read in the table: its fields are the named columns in that order, and nothing is computed.
    ///
    /// # Errors
    /// See [`Target::new`].
    pub fn of_read_rows(table: &Arc<TableDef>, names: &[String]) -> Result<Self, SqlError> {
        let fields = names
            .iter()
            .map(|name| table.schema.index_of(name).map(Some).ok_or_else(|| unknown_column(name)))
            .collect::<Result<_, _>>()?;
        Self::of_fields(table, fields, true, Others::Read)
    }

    fn of_fields(
        table: &Arc<TableDef>,
        mut fields: Vec<Option<usize>>,
        has_column_list: bool,
        others: Others,
    ) -> Result<Self, SqlError> {
        let columns = &table.schema.columns;
        let mut is_mapped = vec![false; columns.len()];
        for &index in fields.iter().flatten() {
            if columns[index].hidden == Some(HiddenColumn::Given) {
                return Err(unknown_column(&columns[index].name));
            }
            if std::mem::replace(&mut is_mapped[index], true) {
                return Err(SqlError::detail(
                    ErrorCode::DuplicateColumn,
                    format!("Column '{}' specified twice", columns[index].name),
                ));
            }
        }
        let computes = others != Others::Read && table.schema.generated().next().is_some();
        let computed_field =
            if computes { leave_out_computed(&table.schema, &mut fields, &mut is_mapped) } else { None };
        let given = match &others {
            Others::Filled | Others::Read => None,
            Others::Upserted(given) => Some(given.clone()),
            Others::Kept => given(table, &is_mapped)?,
        };
        let mut unfilled = Vec::new();
        let mut fill = |column: &ColumnDef| match &given {
            None => fill_of(column),
            Some(given) if column.hidden == Some(HiddenColumn::Given) => {
                Ok(Fill::Stored(given.text().into_bytes().into()))
            }
            Some(_) if matches!(others, Others::Upserted(_)) => fill_of(column),
            // A row that gives no sequence has that of the row before it.
            Some(_) if table.schema.sequence == Some(column.id) && column.nullable => Ok(Fill::Null),
            Some(_) => {
                if is_unfilled(column) {
                    unfilled.extend(table.schema.index_of_id(column.id));
                }
                kept(column)
            }
        };
        let filled = (0..columns.len())
            .filter(|&index| !is_mapped[index])
            .map(|index| Ok((TargetColumn::of(&columns[index], index), fill(&columns[index])?)))
            .collect::<Result<_, SqlError>>()?;
        let column_of = |index: usize| TargetColumn::of(&columns[index], index);
        let fields = fields.into_iter().map(|field| field.map(column_of)).collect();
        Ok(Self {
            table: Arc::clone(table),
            fields,
            field_names: Vec::new(),
            filled,
            partitions: if computes { None } else { PartitionCheck::of(table) },
            has_column_list,
            unfilled,
            is_flexible: false,
            computed: computes.then(|| Arc::new(Self::of_computed(table))),
            computed_field,
        })
    }

    /// The target of rows that have all values except those of AUTO_INCREMENT.
    fn of_computed(table: &Arc<TableDef>) -> Self {
        let field = |(index, column): (usize, &ColumnDef)| {
            let nullable = column.nullable || column.auto_increment.is_some();
            Some(TargetColumn { nullable, ..TargetColumn::of(column, index) })
        };
        Self {
            table: Arc::clone(table),
            fields: table.schema.columns.iter().enumerate().map(field).collect(),
            field_names: Vec::new(),
            filled: Vec::new(),
            partitions: PartitionCheck::of(table),
            has_column_list: false,
            unfilled: Vec::new(),
            is_flexible: false,
            computed: None,
            computed_field: None,
        }
    }

    /// The target of the rows once values that the load does not give are computed; until then they are NULL. `None` if nothing
    /// is computed, and the rows are complete.
    #[inline]
    #[must_use]
    pub fn computed(&self) -> Option<&Arc<Self>> {
        self.computed.as_ref()
    }

    /// The first column with a field whose values are computed: whatever the field gives is left out.
    #[inline]
    #[must_use]
    pub fn computed_field(&self) -> Option<&ColumnDef> {
        self.computed_field.map(|index| &self.table.schema.columns[index])
    }

    /// The error for a value that a statement gives to such a column.
    #[must_use]
    pub fn not_to_be_given(table: &TableDef, column: &ColumnDef) -> SqlError {
        SqlError::detail(
            ErrorCode::Unknown,
            format!(
                "The value specified for generated column '{}' in table '{}' is not allowed.",
                column.name, table.name
            ),
        )
    }

    /// A target of rows that each give some columns, including all keys: those of the table's definition, whether it deletes, and
    /// its sequence. Loads with [`Target::is_flexible`] record for each row which ones.
    ///
    /// # Errors
    /// The table is not ready for partial updates.
    pub fn flexible(table: &Arc<TableDef>) -> Result<Self, SqlError> {
        let columns = &table.schema.columns;
        let fields: Vec<usize> =
            (0..columns.len()).filter(|&index| columns[index].hidden != Some(HiddenColumn::Given)).collect();
        if fields.len() == columns.len() {
            return Err(not_ready(table));
        }
        let unfilled = fields.iter().copied().filter(|&index| is_unfilled(&columns[index])).collect();
        let field = |index: usize| Some(TargetColumn::of(&columns[index], index));
        Ok(Self {
            table: Arc::clone(table),
            fields: fields.into_iter().map(field).collect(),
            field_names: Vec::new(),
            filled: Vec::new(),
            partitions: PartitionCheck::of(table),
            has_column_list: false,
            unfilled,
            is_flexible: true,
            computed: None,
            computed_field: None,
        })
    }

    /// Checks that no field of text or numbers goes into a column whose values only functions create.
    ///
    /// # Errors
    /// One does (1105, in Doris's words).
    pub fn check_no_states(&self) -> Result<(), SqlError> {
        let columns = self.fields.iter().flatten();
        match columns.into_iter().find(|column| column.data_type.is_state()) {
            Some(column) => Err(self.not_a_state(column)),
            None => Ok(()),
        }
    }

    /// The error for a value that is not of the type of the column, whose values only functions create.
    pub(crate) fn not_a_state(&self, column: &TargetColumn) -> SqlError {
        let name = self.name_of(column);
        let text = match column.data_type {
            DataType::Hll => {
                format!(
                    "HLL column must use hll_hash function, like {name}=hll_hash(xxx) or {name}=hll_empty()"
                )
            }
            _ => format!("bitmap column require the function return type is BITMAP (column '{name}')"),
        };
        SqlError::detail(ErrorCode::Unknown, text)
    }

    /// Whether each row says which columns it gives.
    #[must_use]
    pub const fn is_flexible(&self) -> bool {
        self.is_flexible
    }

    /// The list of given columns of a row without these fields. `None` if it gives all.
    pub(crate) fn given_without(&self, is_absent: &[bool]) -> Option<GivenColumns> {
        let columns = &self.table.schema.columns;
        let is_given = |(field, is_absent): (&Option<TargetColumn>, &bool)| {
            let column = &columns[field.as_ref()?.index];
            // A row without it does not delete.
            let is_given = !is_absent || column.hidden == Some(HiddenColumn::DeleteSign) || column.on_update;
            is_given.then_some(column.id)
        };
        let given: Vec<_> = self.fields.iter().zip(is_absent).filter_map(is_given).collect();
        (given.len() < self.fields.len()).then(|| GivenColumns::new(given))
    }

    /// Whether rows take values from existing rows with their keys.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        let given = self.table.schema.index_of_hidden(HiddenColumn::Given);
        let is_filled =
            |(column, fill): &(TargetColumn, Fill)| Some(column.index) == given && *fill != Fill::Null;
        self.is_flexible || self.filled.iter().any(is_filled)
    }

    /// Columns, by their indexes in the schema, for which a row with a new key has no value unless it gives it.
    #[must_use]
    pub fn unfilled(&self) -> &[usize] {
        &self.unfilled
    }

    /// The target with rows that delete the rows of their keys, unless they say themselves whether they do.
    #[must_use]
    pub fn deleting(mut self) -> Self {
        if let Some(sign) = self.table.schema.index_of_hidden(HiddenColumn::DeleteSign) {
            let fills = self.filled.iter_mut().filter(|(column, _)| column.index == sign);
            fills.for_each(|(_, fill)| *fill = Fill::Stored(Box::new([1])));
        }
        self
    }

    /// The target restricted to the partitions that the load names; rows of others are rejected.
    ///
    /// # Errors
    /// [`PartitionNames::resolve`].
    pub fn into_partitions(mut self, names: &PartitionNames) -> Result<Self, SqlError> {
        if let (Some(allowed), Some(check)) = (names.resolve(&self.table)?, self.partitions_mut()) {
            check.only(allowed);
        }
        Ok(self)
    }

    /// The check for partitions, before or after values are computed.
    fn partitions_mut(&mut self) -> Option<&mut PartitionCheck> {
        match &mut self.computed {
            Some(computed) => Arc::make_mut(computed).partitions.as_mut(),
            None => self.partitions.as_mut(),
        }
    }

    /// The target restricted to existing partitions: the load creates none.
    #[must_use]
    pub fn without_new_partitions(mut self) -> Self {
        let partitions = self.table.partitioning.partitions().filter(|partitions| partitions.auto.is_some());
        let count = partitions.map(|partitions| partitions.list.len());
        if let (Some(count), Some(check)) = (count, self.partitions_mut()) {
            check.only(vec![true; count]);
        }
        self
    }

    /// The check for partitions; `None` in a table without partitions.
    #[inline]
    pub(crate) const fn partitions(&self) -> Option<&PartitionCheck> {
        self.partitions.as_ref()
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &Arc<TableDef> {
        &self.table
    }

    /// The schema of the blocks.
    #[must_use]
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.table.schema
    }

    /// The number of fields that a row of the load has.
    #[must_use]
    pub fn field_count(&self) -> usize {
        self.fields.len()
    }

    /// The load's names for its fields.
    pub(crate) fn field_names(&self) -> Vec<String> {
        if !self.field_names.is_empty() {
            return self.field_names.clone();
        }
        let name = |column: &Option<TargetColumn>| {
            column.as_ref().map_or_else(String::new, |column| self.name_of(column).to_owned())
        };
        self.fields.iter().map(name).collect()
    }

    /// The column that takes field `field`.
    #[inline]
    pub(crate) fn column_of(&self, field: usize) -> Option<&TargetColumn> {
        self.fields[field].as_ref()
    }

    /// The column's name.
    pub(crate) fn name_of(&self, column: &TargetColumn) -> &str {
        &self.table.schema.columns[column.index].name
    }

    /// The fill of a column for which a row requests the default.
    ///
    /// # Errors
    /// If it has none.
    pub(crate) fn default_of(&self, column: &TargetColumn) -> Result<Fill, SqlError> {
        fill_of(&self.table.schema.columns[column.index])
    }

    /// The value of a column in a row without its field: [`Fill::Missing`] rejects the row.
    ///
    /// # Errors
    /// If the column's default is not a value of its type.
    pub(crate) fn fill_if_absent(&self, column: &TargetColumn) -> Result<Fill, SqlError> {
        let (schema, column) = (&self.table.schema, &self.table.schema.columns[column.index]);
        if self.is_flexible {
            return match column {
                key if key.is_key => Ok(Fill::Missing),
                sequence if schema.sequence == Some(sequence.id) && sequence.nullable => Ok(Fill::Null),
                column => kept(column),
            };
        }
        Fill::of(column).map_err(|reason| bad_default(column, &reason))
    }

    #[inline]
    pub(crate) fn filled(&self) -> &[(TargetColumn, Fill)] {
        &self.filled
    }
}

/// The columns that a partial update gives. `None`: it gives whole rows.
fn given(table: &TableDef, is_mapped: &[bool]) -> Result<Option<GivenColumns>, SqlError> {
    let refused = |text: String| Err(SqlError::detail(ErrorCode::Unknown, text));
    // Computed columns go with the columns they are computed from.
    let is_named = |(column, is_mapped): (_, &bool)| (column, *is_mapped || is_computed(column));
    let columns = || table.schema.columns.iter().zip(is_mapped).map(is_named);
    // Rows whose keys the server gives are new ones.
    if columns().all(|(column, is_mapped)| {
        column.hidden.is_some() || is_mapped || (column.is_key && column.is_filled())
    }) {
        return Ok(None);
    }
    if let Some((key, _)) = columns().find(|(column, is_mapped)| column.is_key && !is_mapped) {
        return refused(format!("Partial update should include all key columns, missing: {}", key.name));
    }
    let is_needed = |column: &ColumnDef| !table.schema.computed_from(column.id).is_empty();
    if let Some((column, _)) = columns().find(|(column, is_mapped)| !is_mapped && is_needed(column)) {
        return refused(format!(
            "Partial update should include all ordinary columns referenced by generated columns, missing: {}",
            column.name
        ));
    }
    if table.schema.index_of_hidden(HiddenColumn::Given).is_none() {
        return Err(not_ready(table));
    }
    let named = columns().filter(|(column, is_mapped)| *is_mapped || column.on_update);
    Ok(Some(GivenColumns::new(named.map(|(column, _)| column.id))))
}

fn is_computed(column: &ColumnDef) -> bool {
    column.generated.is_some()
}

/// Takes the fields of computed columns for such that the table does not have. The first of these columns.
fn leave_out_computed(
    schema: &TableSchema,
    fields: &mut [Option<usize>],
    is_mapped: &mut [bool],
) -> Option<usize> {
    let mut first = None;
    for field in fields {
        if let Some(index) = field.take_if(|index| is_computed(&schema.columns[*index])) {
            is_mapped[index] = false;
            first = first.or(Some(index));
        }
    }
    first
}

fn not_ready(table: &TableDef) -> SqlError {
    let text = format!("table {} has just been changed, run the partial update again", table.name);
    SqlError::detail(ErrorCode::Unknown, text)
}

/// Whether a row that does not give the column must find one that does.
fn is_unfilled(column: &ColumnDef) -> bool {
    !column.is_key && Fill::of(column) == Ok(Fill::Missing)
}

/// The value of a column that a row does not give: that of a new row, or a placeholder.
fn kept(column: &ColumnDef) -> Result<Fill, SqlError> {
    match Fill::of(column).map_err(|reason| bad_default(column, &reason))? {
        Fill::Missing => placeholder(column),
        fill => Ok(fill),
    }
}

/// Any value of the column, for rows that keep the existing one.
fn placeholder(column: &ColumnDef) -> Result<Fill, SqlError> {
    let text = match column.data_type {
        DataType::Char { .. } | DataType::Varchar { .. } | DataType::String | DataType::Varbinary { .. } => {
            ""
        }
        DataType::Date | DataType::DateTime { .. } => "1970-01-01",
        DataType::Time { .. } => "00:00:00",
        DataType::Json | DataType::Variant => "null",
        DataType::Ipv4 => "0.0.0.0",
        DataType::Ipv6 => "::",
        DataType::Nested(nested) if matches!(*nested, NestedType::Array(_)) => "[]",
        DataType::Nested(_) => "{}",
        _ => "0",
    };
    let stored = stored_literal(text, column.data_type);
    stored.map(Fill::Stored).map_err(|reason| bad_default(column, &reason))
}

/// The fill of a column that the load omits.
fn fill_of(column: &ColumnDef) -> Result<Fill, SqlError> {
    let refused = |text: String| SqlError::detail(ErrorCode::Unknown, text);
    match Fill::of(column) {
        Ok(Fill::Missing) => Err(refused(format!("Column has no default value, column={}", column.name))),
        Ok(fill) => Ok(fill),
        Err(reason) => Err(bad_default(column, &reason)),
    }
}

fn bad_default(column: &ColumnDef, reason: &str) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, format!("default of column '{}': {reason}", column.name))
}

fn unknown_column(name: &str) -> SqlError {
    SqlError::detail(ErrorCode::UnknownColumn, format!("Unknown column '{name}' in target table."))
}

/// Whether a cell is bytes that spell no text.
const fn is_no_text(cell: &Cell<'_>) -> bool {
    matches!(cell, Cell::Hex(bytes) if std::str::from_utf8(bytes).is_err())
}

impl TargetColumn {
    pub(crate) fn of(column: &ColumnDef, index: usize) -> Self {
        Self { index, data_type: column.data_type, nullable: column.takes_null() }
    }

    /// Converts and pushes a cell. A fault rejects the row; nothing was pushed then.
    #[inline]
    pub(crate) fn push(
        &self,
        buffer: &mut ColumnBuffer,
        cell: Cell<'_>,
        rules: Strictness,
    ) -> Result<(), Fault> {
        match push_cell(buffer, self.data_type, cell, rules.strict, rules.utc_offset_seconds) {
            Ok(()) => Ok(()),
            Err(fault) => self.settle(buffer, fault, rules),
        }
    }

    /// [`TargetColumn::push`] of a text.
    #[inline]
    pub(crate) fn push_text(
        &self,
        buffer: &mut ColumnBuffer,
        text: &[u8],
        rules: Strictness,
    ) -> Result<(), Fault> {
        cell::push_text(buffer, self.data_type, text, rules.strict, rules.utc_offset_seconds)
            .or_else(|fault| self.settle(buffer, fault, rules))
    }

    /// [`TargetColumn::push`] of a number's SQL literal.
    #[inline]
    pub(crate) fn push_number(
        &self,
        buffer: &mut ColumnBuffer,
        literal: &[u8],
        rules: Strictness,
    ) -> Result<(), Fault> {
        cell::push_number(buffer, self.data_type, literal, rules.strict, rules.utc_offset_seconds)
            .or_else(|fault| self.settle(buffer, fault, rules))
    }

    /// [`TargetColumn::push`] of an integer.
    #[inline]
    pub(crate) fn push_int(
        &self,
        buffer: &mut ColumnBuffer,
        value: i64,
        rules: Strictness,
    ) -> Result<(), Fault> {
        cell::push_int(buffer, self.data_type, value, rules.strict, rules.utc_offset_seconds)
            .or_else(|fault| self.settle(buffer, fault, rules))
    }

    /// NULL where the column and the rules allow it.
    #[cold]
    fn settle(&self, buffer: &mut ColumnBuffer, fault: Fault, rules: Strictness) -> Result<(), Fault> {
        let always_rejects = matches!(fault, Fault::TooLongString { .. } | Fault::LargeIntRange);
        if always_rejects || (rules.strict && fault != Fault::Null) {
            return Err(fault);
        }
        if !self.nullable {
            return Err(Fault::Null);
        }
        buffer.push_null();
        Ok(())
    }

    /// The reason for a rejected row, in Doris's words.
    pub(crate) fn reason(&self, column: &str, fault: Fault, cell: &Cell<'_>, rules: Strictness) -> String {
        let is_insert = rules.wording == Wording::Insert;
        match fault {
            Fault::Null if is_insert => {
                let type_name = self.data_type.base_name();
                format!("column_name[{column}], null value for not null column, type={type_name}")
            }
            Fault::Null => format!("column({column}) values is null while columns is not nullable"),
            Fault::DecimalRange if is_insert => self.decimal_reason(column, cell),
            Fault::Bad if self.data_type.is_text() && is_no_text(cell) => {
                format!(
                    "column({column}) value is incorrect while strict mode is true, src value has bytes that are no UTF-8, which \
                     all text is; keep them in a VARBINARY"
                )
            }
            Fault::Bad | Fault::IntRange | Fault::DecimalRange => {
                let text = cell::shown(cell);
                format!("column({column}) value is incorrect while strict mode is true, src value is {text}")
            }
            Fault::LargeIntRange => {
                let max = LARGEINT_LIMIT - 1;
                format!(
                    "column_name[{column}], a largeint of this table keeps {LARGEINT_DIGITS_MAX} digits, value={}, \
                     min=-{max}, max={max}; use a column of STRING for longer numbers",
                    cell::shown(cell)
                )
            }
            Fault::TooLong { limit, actual } => format!(
                "column_name[{column}], the length of input is too long than schema. first 32 bytes of \
                 input str: [{}] schema length: {limit}; actual length: {actual}; ",
                first_bytes(cell)
            ),
            Fault::TooLongString { limit, actual } => format!(
                "column_name[{column}], the length of input string is too long than vec schema. first 32 \
                 bytes of input str: [{}] schema length: {STRING_SCHEMA_BYTES}; limit length: {limit}; \
                 actual length: {actual}; ",
                first_bytes(cell)
            ),
        }
    }

    fn decimal_reason(&self, column: &str, cell: &Cell<'_>) -> String {
        let (precision, scale) = match self.data_type {
            DataType::Decimal { precision, scale } => (precision, scale),
            _ => (LARGEINT_DIGITS_MAX, 0),
        };
        let max =
            cell::show_decimal(crate::cells::convert::decimal::pow10(u32::from(precision)) - 1, scale as i8);
        format!(
            "column_name[{column}], decimal value is not valid for definition, value={}, \
             precision={precision}, scale={scale}, min=-{max}, max={max}; ",
            cell::shown(cell)
        )
    }
}

/// The beginning of a text, whole characters only.
fn first_bytes(cell: &Cell<'_>) -> String {
    let text = cell::text(cell).unwrap_or_default();
    String::from_utf8_lossy(cut(&text, 32)).into_owned()
}

impl Fill {
    /// The fill of `column`.
    ///
    /// # Errors
    /// Why the column's default is not a value of its type.
    pub(crate) fn of(column: &ColumnDef) -> Result<Self, String> {
        let none = if column.takes_null() { Self::Null } else { Self::Missing };
        if let Some(empty) = state::empty(column.data_type) {
            return Ok(Self::Stored(empty.into()));
        }
        match &column.default {
            None | Some(DefaultValue::Null) => Ok(none),
            Some(DefaultValue::Literal(text)) => stored_literal(text, column.data_type).map(Self::Stored),
            Some(DefaultValue::CurrentTimestamp { scale }) => {
                timed(column.data_type, Self::Now { scale: *scale }, "CURRENT_TIMESTAMP")
            }
            Some(DefaultValue::CurrentDate) => timed(column.data_type, Self::Today, "CURRENT_DATE"),
        }
    }

    /// Pushes the value. `now_micros` is the load's wall-clock time in µs.
    ///
    /// # Panics
    /// For [`Fill::Missing`], which targets and `adapt` refuse before.
    pub(crate) fn push(&self, buffer: &mut ColumnBuffer, data_type: DataType, now_micros: i64) {
        let moment = match self {
            Self::Missing => unreachable!("a column without a value is refused before rows are read"),
            Self::Null => return buffer.push_null(),
            Self::Stored(value) => return buffer.push_stored(value),
            Self::Now { scale } => temporal::truncated(now_micros, *scale),
            Self::Today => now_micros - now_micros.rem_euclid(temporal::DAY_MICROS),
        };
        match data_type {
            DataType::Date => {
                let days = moment.div_euclid(temporal::DAY_MICROS) as i32;
                buffer.push_fixed(days.to_le_bytes());
            }
            DataType::DateTime { scale } => {
                buffer.push_fixed(temporal::truncated(moment, scale).to_le_bytes());
            }
            _ => buffer.push_text(temporal::show_datetime(moment).as_bytes()),
        }
    }
}

fn timed(data_type: DataType, fill: Fill, name: &str) -> Result<Fill, String> {
    match data_type {
        DataType::Date | DataType::DateTime { .. } => Ok(fill),
        other => Err(format!("{name} is not a value of type {other}; use DATE or DATETIME")),
    }
}

#[cfg(test)]
mod tests;
