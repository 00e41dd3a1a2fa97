//! Hidden columns in loads of tables with UNIQUE KEY: which rows delete, and their sequence; and loads that subtract from sums
//! what others have added.
//!
//! The rules and texts are Doris's. Which row of a key stays is the table's business.

use crate::load::body::reader::{MappedColumn, Value};
use sqlparser::ast::{Expr, Ident};
use tributary_http::{MergeHeaders, MergeType};
use tributary_types::{
    Aggregation, ColumnDef, DataType, DefaultValue, ErrorCode, HiddenColumn, Sealed, SqlError, TableDef,
};

/// Checks that a statement that names these columns gives the sequence of its rows.
///
/// # Errors
/// It does not, and the table has one.
pub(crate) fn check_named(def: &TableDef, columns: Option<&[String]>) -> Result<(), SqlError> {
    let Some(index) = def.schema.sequence_index() else { return Ok(()) };
    let column = &def.schema.columns[index];
    let is_named = match columns {
        Some(names) => names.iter().any(|name| name.eq_ignore_ascii_case(&column.name)),
        None => column.hidden.is_none(),
    };
    let has_time = matches!(column.default, Some(DefaultValue::CurrentTimestamp { .. }));
    if is_named || has_time || column.generated.is_some() {
        return Ok(());
    }
    Err(refused(format!("Table {} has sequence column, need to specify the sequence column", def.name)))
}

/// Checks that a load that names these columns gives the sequence of its rows; in a partial update a row may have that of the row with its key.
///
/// # Errors
/// As [`check_named`].
pub(crate) fn check_given(
    def: &TableDef,
    columns: Option<&[String]>,
    is_partial: bool,
) -> Result<(), SqlError> {
    let is_hidden = || {
        let sequence = def.schema.sequence_index().map(|index| &def.schema.columns[index]);
        sequence.is_some_and(|column| column.hidden.is_some())
    };
    if is_partial && !is_hidden() { Ok(()) } else { check_named(def, columns) }
}

/// The columns of a Stream Load, extended by its headers for hidden ones. `is_keyed`: the body's fields are matched by name.
///
/// # Errors
/// The headers do not fit the table, or an expression is malformed.
pub(crate) fn with_hidden(
    def: &TableDef,
    columns: Option<Vec<MappedColumn>>,
    merge: &MergeHeaders,
    is_keyed: bool,
) -> Result<Option<Vec<MappedColumn>>, SqlError> {
    let is_unique = def.keys.is_unique();
    if merge.negative && merge.merge_type != MergeType::Append {
        return Err(refused("not support MERGE or DELETE with NEGATIVE."));
    }
    if merge.merge_type != MergeType::Append && !is_unique {
        return Err(refused("load by MERGE or DELETE is only supported in unique tables."));
    }
    if merge.sequence_col.is_some() && def.schema.sequence.is_none() {
        return Err(refused(format!("There is no sequence column in the table {}", def.name)));
    }
    let mut mapped = Mapped { def, columns };
    if is_unique && mapped.columns.is_none() {
        mapped.append_hidden(&merge.hidden_columns);
    }
    if let Some(source) = &merge.sequence_col {
        mapped.take_sequence(source, is_keyed)?;
    }
    if let Some(condition) = &merge.delete {
        // Alone it is an expression; a comment at its end ends with the line.
        tributary_sql::parse_expression(condition)?;
        let sign = tributary_sql::parse_expression(&format!("CASE WHEN ({condition}\n) THEN 1 ELSE 0 END"))?;
        mapped.compute(HiddenColumn::DeleteSign, sign);
    }
    if merge.negative {
        mapped.negate()?;
    }
    Ok(mapped.columns)
}

/// The columns of a load under construction.
struct Mapped<'a> {
    def: &'a TableDef,
    /// `None`: those of the table's definition.
    columns: Option<Vec<MappedColumn>>,
}

impl Mapped<'_> {
    fn all(&mut self) -> &mut Vec<MappedColumn> {
        let visible = self.def.schema.visible();
        let field = |name: &str| MappedColumn { name: name.to_owned(), value: Value::Field };
        self.columns.get_or_insert_with(|| visible.map(|column| field(&column.name)).collect())
    }

    /// Appends fields of hidden columns; other names are ignored.
    fn append_hidden(&mut self, names: &[String]) {
        let is_hidden = |name: &&String| {
            let index = self.def.schema.index_of(name);
            index.is_some_and(|index| self.def.schema.columns[index].hidden.is_some())
        };
        let hidden: Vec<String> = names.iter().filter(is_hidden).cloned().collect();
        if !hidden.is_empty() {
            self.all().extend(hidden.into_iter().map(|name| MappedColumn { name, value: Value::Field }));
        }
    }

    fn compute(&mut self, column: HiddenColumn, expr: Expr) {
        let name = column.name().to_owned();
        self.all().push(MappedColumn { name, value: Value::Expr(Sealed::new(expr)) });
    }

    /// Lets the load take its values from sums. It has no other values.
    fn negate(&mut self) -> Result<(), SqlError> {
        let def = self.def;
        let columns = self.all();
        let is_computed = |column: &MappedColumn| matches!(column.value, Value::Expr(_));
        let computed: Vec<String> =
            columns.iter().filter(|column| is_computed(column)).map(|column| column.name.clone()).collect();
        let mut negated = Vec::new();
        for mapped in columns.iter_mut() {
            let Some(index) = def.schema.index_of(&mapped.name) else { continue };
            let column = &def.schema.columns[index];
            if column.is_key {
                continue;
            }
            if column.aggregation != Some(Aggregation::Sum) {
                return Err(refused(format!("Column is not SUM AggregateType. column:{}", column.name)));
            }
            match &mut mapped.value {
                Value::Expr(expr) => *expr = Sealed::new(negative(column, Expr::clone(expr))?),
                _ if computed.iter().any(|name| name.eq_ignore_ascii_case(&mapped.name)) => {}
                _ => {
                    let field = Expr::Identifier(Ident::with_quote('`', &mapped.name));
                    let value = Value::Expr(Sealed::new(negative(column, field)?));
                    negated.push(MappedColumn { name: mapped.name.clone(), value });
                }
            }
        }
        columns.extend(negated);
        Ok(())
    }

    /// Takes the sequence from the load's field or column `source`.
    fn take_sequence(&mut self, source: &str, is_keyed: bool) -> Result<(), SqlError> {
        let def = self.def;
        let index = def.schema.sequence_index().unwrap_or_default();
        let sequence = &def.schema.columns[index];
        if sequence.hidden.is_none() {
            if !sequence.name.eq_ignore_ascii_case(source) {
                return Err(refused(format!(
                    "header function_column.sequence_col: {source} is not the sequence column of table {}, which is {}",
                    def.name, sequence.name
                )));
            }
            return Ok(());
        }
        let is_of_table = def.schema.visible().any(|column| column.name.eq_ignore_ascii_case(source));
        let columns = self.all();
        let is_computed = columns.iter().any(|column| !matches!(column.value, Value::Field));
        let found = columns.iter_mut().find(|column| column.name.eq_ignore_ascii_case(source));
        let Some(found) = found else {
            return Err(refused(format!(
                "There is no sequence column {source} in the {} or the COLUMNS and SET clause",
                def.name
            )));
        };
        let expr = match &found.value {
            Value::Expr(expr) => Expr::clone(expr),
            // The body has no field of the column's name.
            _ if !is_of_table && !is_computed && !is_keyed => {
                HiddenColumn::Sequence.name().clone_into(&mut found.name);
                return Ok(());
            }
            _ => Expr::Identifier(Ident::with_quote('`', source)),
        };
        self.compute(HiddenColumn::Sequence, expr);
        Ok(())
    }
}

/// The value of a column with the other sign. What is too large for the column then is found when it is converted.
fn negative(column: &ColumnDef, value: Expr) -> Result<Expr, SqlError> {
    let wide = match column.data_type {
        DataType::Float | DataType::Double => "double".to_owned(),
        decimal @ DataType::Decimal { .. } => decimal.to_string(),
        _ => "largeint".to_owned(),
    };
    let mut expr = tributary_sql::parse_expression(&format!("-CAST(NULL AS {wide})"))?;
    if let Expr::UnaryOp { expr: cast, .. } = &mut expr
        && let Expr::Cast { expr: inner, .. } = &mut **cast
    {
        **inner = value;
    }
    Ok(expr)
}

fn refused(text: impl AsRef<str>) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, text)
}
