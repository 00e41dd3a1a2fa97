//! Random tables: few rows, many equal values, NULLs and the ends of each type.

use crate::print::quoted;
use crate::schema::{Cell, Column, ColumnType, Schema, Table};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

const TABLES: usize = 3;
const ROWS_MAX: usize = 12;

const TYPES: [ColumnType; 17] = [
    ColumnType::Boolean,
    ColumnType::TinyInt,
    ColumnType::SmallInt,
    ColumnType::Int,
    ColumnType::BigInt,
    ColumnType::BigInt,
    ColumnType::Decimal(6, 3),
    ColumnType::Decimal(10, 2),
    ColumnType::Decimal(18, 4),
    ColumnType::Float,
    ColumnType::Double,
    ColumnType::Double,
    ColumnType::Date,
    ColumnType::DateTime(0),
    ColumnType::DateTime(3),
    ColumnType::Varchar(20),
    ColumnType::Char(10),
];

/// The tables of a seed.
#[must_use]
pub fn schema(seed: u64) -> Schema {
    let mut rng = SmallRng::seed_from_u64(seed ^ 0x7ab1e5);
    // In most schemas numbers stay where sums and products of them fit.
    let extremes = rng.random_range(0..100) < 15;
    let tables = (0..TABLES)
        .map(|number| {
            // Columns that joins with USING meet on.
            let mut columns = vec![
                Column { name: "k".to_owned(), column_type: ColumnType::Int },
                Column { name: "g".to_owned(), column_type: ColumnType::Varchar(10) },
            ];
            for place in 0..rng.random_range(3..7) {
                let column_type = *TYPES.choose(&mut rng).expect("there are types");
                columns.push(Column { name: format!("x{place}"), column_type });
            }
            let count = match rng.random_range(0..10) {
                0 => 0,
                1 => 1,
                _ => rng.random_range(2..=ROWS_MAX),
            };
            let mut rows: Vec<Vec<Cell>> = Vec::new();
            for _ in 0..count {
                if !rows.is_empty() && rng.random_range(0..100) < 15 {
                    rows.push(rows.choose(&mut rng).expect("not empty").clone());
                } else {
                    let row = columns.iter().map(|column| cell(&mut rng, column.column_type, extremes));
                    rows.push(row.collect());
                }
            }
            Table { name: format!("t{number}"), columns, rows }
        })
        .collect();
    Schema { tables }
}

fn cell(rng: &mut SmallRng, column_type: ColumnType, extremes: bool) -> Cell {
    (rng.random_range(0..100) >= 18).then(|| value(rng, column_type, extremes))
}

fn value(rng: &mut SmallRng, column_type: ColumnType, extremes: bool) -> String {
    let end = rng.random_range(0..100) < 12;
    let of = |rng: &mut SmallRng, texts: &[&str]| (*texts.choose(rng).expect("not empty")).to_owned();
    match column_type {
        ColumnType::Boolean => of(rng, &["TRUE", "FALSE"]),
        ColumnType::TinyInt if end => of(rng, &["127", "-128"]),
        ColumnType::SmallInt if end => of(rng, &["32767", "-32768"]),
        ColumnType::Int if end && extremes => of(rng, &["2147483647", "-2147483648"]),
        ColumnType::Int if end => of(rng, &["100000", "-99999"]),
        // Sums of the very ends do not fit, on which Doris and MariaDB differ.
        ColumnType::BigInt if end && extremes => of(rng, &["1000000000000000", "-999999999999999"]),
        ColumnType::BigInt if end => of(rng, &["3000000000", "-3000000000"]),
        ColumnType::TinyInt | ColumnType::SmallInt | ColumnType::Int | ColumnType::BigInt => {
            rng.random_range(-3..10).to_string()
        }
        ColumnType::Decimal(digits, scale) if end && extremes => {
            let whole = "9".repeat(usize::from(digits - scale));
            format!("{}{whole}.{}", of(rng, &["", "-"]), "9".repeat(usize::from(scale)))
        }
        ColumnType::Decimal(_, 3) => of(rng, &["0", "1.500", "-2.250", "0.005", "12.345", "-0.001", "3"]),
        ColumnType::Decimal(..) => of(rng, &["0", "1.50", "-2.25", "0.05", "1234.56", "-0.01", "2", "10"]),
        ColumnType::Float => of(rng, &["0", "0.5", "-1.25", "3", "1024.5", "-0.25"]),
        ColumnType::Double if end => of(rng, &["1e15", "-1e15", "1e-6", "123456789.125"]),
        ColumnType::Double => of(rng, &["0", "0.5", "-1.25", "3", "0.1", "-0.2", "522.762", "2.5", "10"]),
        ColumnType::Date if end => of(rng, &["'9999-12-31'", "'0100-01-01'", "'1969-12-31'"]),
        ColumnType::Date => {
            of(rng, &["'2020-01-31'", "'2020-02-29'", "'1999-12-31'", "'2000-06-15'", "'2024-01-01'"])
        }
        ColumnType::DateTime(digits) => {
            let moments = [
                "2020-01-31 00:00:00.000",
                "2020-02-29 12:30:45.500",
                "1999-12-31 23:59:59.999",
                "2000-06-15 06:07:08.125",
                "2024-01-01 00:00:00.001",
            ];
            let text = of(rng, &moments);
            let end = if digits == 0 { 19 } else { 20 + usize::from(digits) };
            quoted(&text[..end])
        }
        ColumnType::Char(_) => quoted(&of(rng, &["", "a", "A", "abc", "12", "-3", "1.5", "x1", "Zz"])),
        ColumnType::Varchar(_) => {
            let texts = [
                "", "a", "A", "abc", "ab", "b ", " b", "ä", "it's", "12", "-3", "1.5", "0", "a_b", "%", "x1",
            ];
            quoted(&of(rng, &texts))
        }
    }
}
