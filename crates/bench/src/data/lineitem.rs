//! TPC-H's lineitem table: its columns and the distributions of their values, for text and prepared INSERTs. `L_ORDERKEY` is the
//! row's number, so that every row can be counted; in TPC-H an order has one to seven rows.

use super::{FIRST_ID, IdForm, Order, Request};
use arrow::array::{ArrayRef, Date32Array, Decimal128Array, Int32Array, RecordBatch, StringArray};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::io::Write;
use std::sync::Arc;
use tributary_client::{Statement, Value, command, packet};

/// Columns of the table.
pub const COLUMNS: usize = 16;

/// The manual's table, in database `bench`, with the given interval.
#[must_use]
pub fn table(interval_ms: u64) -> String {
    format!(
        "CREATE TABLE bench.lineitem (
    L_ORDERKEY INTEGER NOT NULL, L_PARTKEY INTEGER NOT NULL, L_SUPPKEY INTEGER NOT NULL,
    L_LINENUMBER INTEGER NOT NULL, L_QUANTITY DECIMAL(15,2) NOT NULL, L_EXTENDEDPRICE DECIMAL(15,2) NOT NULL,
    L_DISCOUNT DECIMAL(15,2) NOT NULL, L_TAX DECIMAL(15,2) NOT NULL, L_RETURNFLAG CHAR(1) NOT NULL,
    L_LINESTATUS CHAR(1) NOT NULL, L_SHIPDATE DATE NOT NULL, L_COMMITDATE DATE NOT NULL,
    L_RECEIPTDATE DATE NOT NULL, L_SHIPINSTRUCT CHAR(25) NOT NULL, L_SHIPMODE CHAR(10) NOT NULL,
    L_COMMENT VARCHAR(44) NOT NULL
) DUPLICATE KEY(L_ORDERKEY, L_PARTKEY, L_SUPPKEY, L_LINENUMBER)
DISTRIBUTED BY HASH(L_ORDERKEY) BUCKETS 32
PROPERTIES (\"replication_num\" = \"1\", \"group_commit_interval_ms\" = \"{interval_ms}\")"
    )
}

const INSTRUCTIONS: [&str; 4] = ["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"];
const MODES: [&str; 7] = ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"];
const WORDS: [&str; 24] = [
    "furiously",
    "quickly",
    "carefully",
    "blithely",
    "slyly",
    "deposits",
    "packages",
    "requests",
    "accounts",
    "theodolites",
    "pinto beans",
    "foxes",
    "ideas",
    "sleep",
    "haggle",
    "nag",
    "wake",
    "among the",
    "above the",
    "final",
    "regular",
    "express",
    "bold",
    "even",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Date {
    year: u16,
    month: u8,
    day: u8,
}

/// Days from 1970-01-01 to 1992-01-01.
const DAYS_TO_1992: i32 = 8035;

/// Days since 1992-01-01 as a date.
fn date(days: u32) -> Date {
    let (mut year, mut days) = (1992_u16, days);
    loop {
        let leap = year % 4 == 0;
        let of_year = 365 + u32::from(leap);
        if days >= of_year {
            (year, days) = (year + 1, days - of_year);
            continue;
        }
        let lengths = [31, 28 + u32::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let mut month = 0;
        while days >= lengths[month] {
            days -= lengths[month];
            month += 1;
        }
        return Date { year, month: month as u8 + 1, day: days as u8 + 1 };
    }
}

/// One row; money in hundredths.
#[derive(Debug)]
struct Row {
    part: u32,
    supplier: u32,
    line: u32,
    quantity: u32,
    price: u64,
    discount: u32,
    tax: u32,
    return_flag: &'static str,
    line_status: &'static str,
    /// Days since 1992-01-01.
    shipped: u32,
    committed: u32,
    received: u32,
    instruction: &'static str,
    mode: &'static str,
    comment: String,
}

/// A stream of rows.
#[derive(Debug)]
pub struct Lineitem {
    random: SmallRng,
}

impl Lineitem {
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { random: SmallRng::seed_from_u64(seed) }
    }

    fn row(&mut self) -> Row {
        let random = &mut self.random;
        let part = random.random_range(1..=2_000_000_u32);
        let quantity = random.random_range(1..=50);
        let retail = 90_000 + u64::from((part / 10) % 20_001) + 100 * u64::from(part % 1_000);
        // Orders are of 1992-01-01 to 1998-08-02; the current date of the data is 1995-06-17.
        let ordered = random.random_range(0..2_406_u32);
        let shipped = ordered + random.random_range(1..=121);
        let received = shipped + random.random_range(1..=30);
        let today = 1_263;
        let mut comment = String::with_capacity(44);
        let length = random.random_range(10..=43_usize);
        while comment.len() < length {
            comment.push_str(WORDS[random.random_range(0..WORDS.len())]);
            comment.push(' ');
        }
        comment.truncate(length);
        Row {
            part,
            supplier: random.random_range(1..=100_000),
            line: random.random_range(1..=7),
            quantity,
            price: u64::from(quantity) * retail,
            discount: random.random_range(0..=10),
            tax: random.random_range(0..=8),
            return_flag: if received > today { "N" } else { ["R", "A"][random.random_range(0..2)] },
            line_status: if shipped > today { "O" } else { "F" },
            shipped,
            committed: ordered + random.random_range(30..=90),
            received,
            instruction: INSTRUCTIONS[random.random_range(0..4)],
            mode: MODES[random.random_range(0..7)],
            comment,
        }
    }

    /// Rows with these order keys as columns, under the table's names.
    pub fn batch(&mut self, keys: &[i32]) -> RecordBatch {
        let rows: Vec<Row> = keys.iter().map(|_| self.row()).collect();
        let ints = |of: fn(&Row) -> u32| {
            Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| of(row) as i32))) as ArrayRef
        };
        let cents = |of: fn(&Row) -> u64| {
            let cents = Decimal128Array::from_iter_values(rows.iter().map(|row| i128::from(of(row))));
            Arc::new(cents.with_precision_and_scale(15, 2).expect("15 digits are enough")) as ArrayRef
        };
        let dates = |of: fn(&Row) -> u32| {
            let days = rows.iter().map(|row| of(row) as i32 + DAYS_TO_1992);
            Arc::new(Date32Array::from_iter_values(days)) as ArrayRef
        };
        let texts =
            |of: fn(&Row) -> &str| Arc::new(StringArray::from_iter_values(rows.iter().map(of))) as ArrayRef;
        let columns = [
            ("L_ORDERKEY", Arc::new(Int32Array::from(keys.to_vec())) as ArrayRef),
            ("L_PARTKEY", ints(|row| row.part)),
            ("L_SUPPKEY", ints(|row| row.supplier)),
            ("L_LINENUMBER", ints(|row| row.line)),
            ("L_QUANTITY", cents(|row| u64::from(row.quantity) * 100)),
            ("L_EXTENDEDPRICE", cents(|row| row.price)),
            ("L_DISCOUNT", cents(|row| row.discount.into())),
            ("L_TAX", cents(|row| row.tax.into())),
            ("L_RETURNFLAG", texts(|row| row.return_flag)),
            ("L_LINESTATUS", texts(|row| row.line_status)),
            ("L_SHIPDATE", dates(|row| row.shipped)),
            ("L_COMMITDATE", dates(|row| row.committed)),
            ("L_RECEIPTDATE", dates(|row| row.received)),
            ("L_SHIPINSTRUCT", texts(|row| row.instruction)),
            ("L_SHIPMODE", texts(|row| row.mode)),
            ("L_COMMENT", texts(|row| &row.comment)),
        ];
        RecordBatch::try_from_iter(columns).expect("the columns have a value for each key")
    }

    /// Appends a row as a line of CSV, whose columns are separated by tabs. The id begins the line.
    pub fn push_line(&mut self, out: &mut Vec<u8>) {
        self.push_values(out, "\t", "");
        out.push(b'\n');
    }

    fn push_text(&mut self, out: &mut Vec<u8>) -> usize {
        out.push(b'(');
        let at = out.len();
        self.push_values(out, ",", "'");
        out.push(b')');
        at
    }

    /// Appends the values of a row, with a separator between them and quotes around texts.
    fn push_values(&mut self, out: &mut Vec<u8>, s: &str, q: &str) {
        let row = self.row();
        let day = |days| {
            let date = date(days);
            format!("{q}{}-{:02}-{:02}{q}", date.year, date.month, date.day)
        };
        let cents = |value: u64| format!("{}.{:02}", value / 100, value % 100);
        write!(
            out,
            "{FIRST_ID}{s}{}{s}{}{s}{}{s}{}.00{s}{}{s}{}{s}{}{s}{q}{}{q}{s}{q}{}{q}{s}{}{s}{}{s}{}{s}{q}{}{q}{s}{q}{}{q}{s}{q}{}{q}",
            row.part,
            row.supplier,
            row.line,
            row.quantity,
            cents(row.price),
            cents(row.discount.into()),
            cents(row.tax.into()),
            row.return_flag,
            row.line_status,
            day(row.shipped),
            day(row.committed),
            day(row.received),
            row.instruction,
            row.mode,
            row.comment
        )
        .expect("a vector takes every write");
    }

    /// `INSERT INTO lineitem VALUES (…), …` as a `COM_QUERY` packet.
    pub fn text_insert(&mut self, rows: usize) -> Request {
        let mut sql = b"INSERT INTO lineitem VALUES ".to_vec();
        let ids: Vec<_> = (0..rows)
            .map(|row| {
                if row > 0 {
                    sql.push(b',');
                }
                self.push_text(&mut sql) as u32
            })
            .collect();
        let payload_bytes = sql.len() as u64;
        let bytes = one_packet(&command::query(&sql));
        let head = (bytes.len() - sql.len()) as u32;
        let ids = ids.into_iter().map(|at| at + head).collect();
        Request { bytes, form: IdForm::Text, ids, key: None, payload_bytes, order: Order::New }
    }

    /// An execution of the prepared INSERT of `rows` rows. The first of a connection includes the parameters' types, as drivers
    /// do it.
    pub fn execute(&mut self, statement: Statement, rows: usize, with_types: bool) -> Request {
        let mut values = Vec::with_capacity(rows * COLUMNS);
        for _ in 0..rows {
            let row = self.row();
            let day = |days| {
                let date = date(days);
                Value::Date { year: date.year, month: date.month, day: date.day }
            };
            let cents = |value: u64| Value::Decimal(format!("{}.{:02}", value / 100, value % 100));
            values.extend([
                Value::Int(FIRST_ID),
                Value::Int(row.part),
                Value::Int(row.supplier),
                Value::Int(row.line),
                Value::Decimal(format!("{}.00", row.quantity)),
                cents(row.price),
                cents(row.discount.into()),
                cents(row.tax.into()),
                Value::Text(row.return_flag.into()),
                Value::Text(row.line_status.into()),
                day(row.shipped),
                day(row.committed),
                day(row.received),
                Value::Text(row.instruction.into()),
                Value::Text(row.mode.into()),
                Value::Text(row.comment),
            ]);
        }
        let (payload, places) = command::execute(statement, &values, with_types);
        let payload_bytes = (payload.len() - places[0]) as u64;
        let bytes = one_packet(&payload);
        let head = bytes.len() - payload.len();
        let ids = places.iter().step_by(COLUMNS).map(|at| (at + head) as u32).collect();
        Request { bytes, form: IdForm::Binary, ids, key: None, payload_bytes, order: Order::New }
    }
}

/// A payload of one packet: the head of a second one would move the rows' places.
fn one_packet(payload: &[u8]) -> Vec<u8> {
    assert!(payload.len() < packet::PAYLOAD_BYTES_MAX, "a request of the benchmarks fits one packet");
    packet::framed(payload, 0)
}

/// The prepared INSERT of `rows` rows.
#[must_use]
pub fn prepared_insert(rows: usize) -> String {
    let row = format!("({})", vec!["?"; COLUMNS].join(","));
    format!("INSERT INTO lineitem VALUES {}", vec![row; rows].join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        let text = |days| {
            let date = date(days);
            format!("{}-{:02}-{:02}", date.year, date.month, date.day)
        };
        assert_eq!(text(0), "1992-01-01");
        assert_eq!(text(59), "1992-02-29");
        assert_eq!(text(1_263), "1995-06-17");
        assert_eq!(text(2_405), "1998-08-02");
    }

    #[test]
    fn columns_have_the_keys_and_the_dates_that_texts_have() {
        let batch = Lineitem::new(7).batch(&[3, 1, 2]);
        let keys = batch.column(0).as_any().downcast_ref::<Int32Array>().expect("integers");
        assert_eq!((batch.num_columns(), keys.values().as_ref()), (COLUMNS, &[3, 1, 2][..]));
        let text = Lineitem::new(7).text_insert(1);
        let shipped = batch.column(10).as_any().downcast_ref::<Date32Array>().expect("dates");
        let shipped = date((shipped.value(0) - DAYS_TO_1992) as u32);
        let shipped = format!("'{}-{:02}-{:02}'", shipped.year, shipped.month, shipped.day);
        assert!(String::from_utf8_lossy(&text.bytes).contains(&shipped), "{shipped}");
    }

    #[test]
    fn text_and_prepared_rows_have_their_ids_where_they_say() {
        let text = Lineitem::new(7).text_insert(3);
        assert!(text.ids.iter().all(|&at| text.bytes[at as usize..].starts_with(b"1000000000,")));
        let mut line = Vec::new();
        Lineitem::new(7).push_line(&mut line);
        let line = String::from_utf8(line).unwrap();
        assert!(line.starts_with("1000000000\t") && line.ends_with('\n'), "{line}");
        assert_eq!((line.split('\t').count(), line.contains('\'')), (COLUMNS, false), "{line}");
        let mut prepared = Lineitem::new(7).execute(Statement(1), 3, true);
        prepared.number(FIRST_ID);
        for (row, &at) in prepared.ids.iter().enumerate() {
            let at = at as usize;
            let id = u32::from_le_bytes(prepared.bytes[at..at + 4].try_into().unwrap());
            assert_eq!(id, FIRST_ID + row as u32);
        }
    }
}
