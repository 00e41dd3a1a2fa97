//! Tables with rows, and the statements that create them on each side.

use std::fmt::Write as _;

/// The SQL dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The server under test.
    Ours,
    /// MariaDB.
    MariaDb,
    /// DuckDB.
    DuckDb,
}

/// A value's kind: expressions are made so that their kinds fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    Int,
    Decimal,
    Double,
    Text,
    Date,
    DateTime,
    Bool,
}

impl Kind {
    /// Whether values are numbers, TRUE and FALSE left out.
    #[must_use]
    pub fn is_number(self) -> bool {
        matches!(self, Self::Int | Self::Decimal | Self::Double)
    }

    /// Whether values are days or moments.
    #[must_use]
    pub fn is_time(self) -> bool {
        matches!(self, Self::Date | Self::DateTime)
    }

    /// The kind's name in a shape and in the list of known differences.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::Decimal => "decimal",
            Self::Double => "double",
            Self::Text => "text",
            Self::Date => "date",
            Self::DateTime => "datetime",
            Self::Bool => "bool",
        }
    }
}

/// A column's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColumnType {
    Boolean,
    TinyInt,
    SmallInt,
    Int,
    BigInt,
    Decimal(u8, u8),
    Float,
    Double,
    Date,
    DateTime(u8),
    Char(u16),
    Varchar(u16),
}

impl ColumnType {
    /// The kind of the column's values.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            Self::Boolean => Kind::Bool,
            Self::TinyInt | Self::SmallInt | Self::Int | Self::BigInt => Kind::Int,
            Self::Decimal(..) => Kind::Decimal,
            Self::Float | Self::Double => Kind::Double,
            Self::Date => Kind::Date,
            Self::DateTime(_) => Kind::DateTime,
            Self::Char(_) | Self::Varchar(_) => Kind::Text,
        }
    }

    /// The type as a column definition writes it.
    #[must_use]
    pub fn sql(self, dialect: Dialect) -> String {
        match (self, dialect) {
            (Self::Boolean, _) => "BOOLEAN".to_owned(),
            (Self::TinyInt, _) => "TINYINT".to_owned(),
            (Self::SmallInt, _) => "SMALLINT".to_owned(),
            (Self::Int, _) => "INT".to_owned(),
            (Self::BigInt, _) => "BIGINT".to_owned(),
            (Self::Decimal(digits, scale), _) => format!("DECIMAL({digits},{scale})"),
            // DuckDB calculates with 24 bits where the others take a DOUBLE.
            (Self::Float, Dialect::DuckDb) => "DOUBLE".to_owned(),
            (Self::Float, _) => "FLOAT".to_owned(),
            (Self::Double, _) => "DOUBLE".to_owned(),
            (Self::Date, _) => "DATE".to_owned(),
            (Self::DateTime(_), Dialect::DuckDb) => "TIMESTAMP".to_owned(),
            (Self::DateTime(digits), _) => format!("DATETIME({digits})"),
            (Self::Char(length), _) => format!("CHAR({length})"),
            (Self::Varchar(length), _) => format!("VARCHAR({length})"),
        }
    }
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub column_type: ColumnType,
}

/// A value as all sides write it; NULL is `None`.
pub type Cell = Option<String>;

/// A table with its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
}

/// The tables that the queries of a seed read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    pub tables: Vec<Table>,
}

impl Table {
    /// The statements that recreate and fill the table.
    #[must_use]
    pub fn statements(&self, dialect: Dialect) -> Vec<String> {
        let columns: Vec<String> = self
            .columns
            .iter()
            .map(|column| format!("{} {} NULL", column.name, column.column_type.sql(dialect)))
            .collect();
        let mut create = format!("CREATE TABLE {} ({})", self.name, columns.join(", "));
        if dialect == Dialect::Ours {
            let key = &self.columns[0].name;
            let _ = write!(
                create,
                " DUPLICATE KEY({key}) DISTRIBUTED BY HASH({key}) BUCKETS 1 \
                 PROPERTIES(\"replication_num\" = \"1\")"
            );
        }
        let mut statements = vec![format!("DROP TABLE IF EXISTS {}", self.name), create];
        if !self.rows.is_empty() {
            let rows: Vec<String> = self
                .rows
                .iter()
                .map(|row| {
                    let cells: Vec<&str> = row.iter().map(|cell| cell.as_deref().unwrap_or("NULL")).collect();
                    format!("({})", cells.join(", "))
                })
                .collect();
            statements.push(format!("INSERT INTO {} VALUES {}", self.name, rows.join(", ")));
        }
        statements
    }
}

/// The nearest number whose sums, and products of two, are exact in a DOUBLE: quarters below 2²⁰, or below 2⁹ if only few digits
/// before the point fit.
#[must_use]
pub fn exact(number: f64, is_small: bool) -> f64 {
    (number * 4.0).round() / 4.0 % if is_small { 512.0 } else { 1_048_576.0 }
}

impl Schema {
    /// The tables with [`exact`] numbers in their columns of DOUBLE and DECIMAL.
    #[must_use]
    pub fn exact(&self) -> Self {
        let mut schema = self.clone();
        for table in &mut schema.tables {
            for row in &mut table.rows {
                for (column, cell) in table.columns.iter().zip(row) {
                    let is_small = match column.column_type {
                        ColumnType::Decimal(digits, scale) => digits - scale < 7,
                        ColumnType::Float | ColumnType::Double => false,
                        _ => continue,
                    };
                    let number = cell.as_deref().and_then(|text| text.parse::<f64>().ok());
                    *cell = number.map(|number| format!("{:.2}", exact(number, is_small)));
                }
            }
        }
        schema
    }

    /// The statements that recreate and fill all tables.
    #[must_use]
    pub fn statements(&self, dialect: Dialect) -> Vec<String> {
        self.tables.iter().flat_map(|table| table.statements(dialect)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_made_and_filled_in_each_dialect() {
        let column = |name: &str, column_type| Column { name: name.to_owned(), column_type };
        let table = Table {
            name: "t0".to_owned(),
            columns: vec![column("k", ColumnType::Int), column("m", ColumnType::DateTime(3))],
            rows: vec![vec![Some("1".to_owned()), None]],
        };
        let ours = table.statements(Dialect::Ours);
        assert_eq!(ours.len(), 3);
        assert!(ours[1].starts_with("CREATE TABLE t0 (k INT NULL, m DATETIME(3) NULL) DUPLICATE KEY(k)"));
        assert_eq!(ours[2], "INSERT INTO t0 VALUES (1, NULL)");
        let duck = table.statements(Dialect::DuckDb);
        assert_eq!(duck[1], "CREATE TABLE t0 (k INT NULL, m TIMESTAMP NULL)");
        let empty = Table { rows: Vec::new(), ..table };
        assert_eq!(empty.statements(Dialect::MariaDb).len(), 2);
    }

    #[test]
    fn exact_numbers_are_near_and_add_up() {
        assert_eq!([0.1, -0.2, 522.762, 1e-6].map(|number| exact(number, false)), [0.0, -0.25, 522.75, 0.0]);
        assert_eq!(exact(1e15, false) + 0.25 + exact(-1e15, false), 0.25);
        let column = |column_type| Column { name: "x".to_owned(), column_type };
        let columns =
            vec![column(ColumnType::Int), column(ColumnType::Decimal(6, 3)), column(ColumnType::Double)];
        let row = |cells: [&str; 3]| cells.map(|cell| (cell != "NULL").then(|| cell.to_owned())).to_vec();
        let rows = vec![row(["7", "999.999", "0.9"]), row(["NULL", "NULL", "NULL"])];
        let schema = Schema { tables: vec![Table { name: "t0".to_owned(), columns, rows }] };
        let rows = vec![row(["7", "488.00", "1.00"]), row(["NULL", "NULL", "NULL"])];
        assert_eq!(schema.exact().tables[0].rows, rows);
    }
}
