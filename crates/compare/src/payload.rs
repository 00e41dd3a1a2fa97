//! The rows of a request in each protocol.

use crate::load::{Load, Table};
use crate::rows::{self, Dice};
use std::fmt::Write;

/// Every connection has rows of its own.
fn dice_of(connection: usize) -> Dice {
    Dice(connection as u64 + 1)
}

/// A row of the small table.
pub struct SmallRow {
    pub id: i64,
    pub name: String,
    pub score: i32,
}

pub fn small_rows(connection: usize, count: u64) -> Vec<SmallRow> {
    let mut dice = dice_of(connection);
    let first = connection as i64 * 1_000_000;
    let row = |index| SmallRow {
        id: first + index,
        name: format!("name{}", dice.range(0, 100_000)),
        score: dice.range(0, 100) as i32,
    };
    (0..count as i64).map(row).collect()
}

pub fn lineitem_rows(connection: usize, count: u64) -> Vec<rows::Lineitem> {
    let mut dice = dice_of(connection);
    (0..count).map(|row| rows::lineitem(&mut dice, row)).collect()
}

/// An INSERT of small rows as text.
pub fn text_insert(connection: usize, count: u64) -> String {
    let values: Vec<String> = small_rows(connection, count)
        .iter()
        .map(|row| format!("({},'{}',{})", row.id, row.name, row.score))
        .collect();
    format!("INSERT INTO small VALUES {}", values.join(","))
}

/// Lines of the access log.
pub fn csv(connection: usize, count: u64) -> Vec<u8> {
    rows::access_log_csv(connection as u64 * count, count)
}

/// The same rows in QuestDB's line protocol; the server gives the time.
pub fn lines(load: &Load, connection: usize) -> Vec<u8> {
    let mut text = String::new();
    match load.table {
        Table::Small | Table::Keyed => {
            small_rows(connection, load.rows).iter().for_each(|row| small_line(&mut text, row));
        }
        Table::Lineitem => {
            lineitem_rows(connection, load.rows).iter().for_each(|row| lineitem_line(&mut text, row));
        }
        Table::AccessLog => {
            let first = connection as u64 * load.rows;
            let mut dice = Dice(3 + first);
            for row in first..first + load.rows {
                access_log_line(&mut text, &rows::access_log(&mut dice, row));
            }
        }
    }
    text.into_bytes()
}

const IN_MEMORY: &str = "writing to a String does not fail";

fn small_line(out: &mut String, row: &SmallRow) {
    writeln!(out, "small id={}i,name=\"{}\",score={}i", row.id, row.name, row.score).expect(IN_MEMORY);
}

fn lineitem_line(out: &mut String, row: &rows::Lineitem) {
    let escaped = |text: &str| text.replace(' ', "\\ ");
    let [ship, commit, receipt] = row.dates.map(|date| days_since_1970(date) * 86_400_000_000);
    writeln!(
        out,
        "lineitem,l_returnflag={},l_linestatus={},l_shipinstruct={},l_shipmode={} l_orderkey={}i,\
         l_partkey={}i,l_suppkey={}i,l_linenumber={}i,l_quantity={}.0,l_extendedprice={},l_discount={},\
         l_tax={},l_shipdate={ship}t,l_commitdate={commit}t,l_receiptdate={receipt}t,l_comment=\"{}\"",
        row.returnflag,
        row.linestatus,
        escaped(row.instruct),
        escaped(row.mode),
        row.orderkey,
        row.partkey,
        row.suppkey,
        row.linenumber,
        row.quantity,
        rows::money(row.price_cents),
        rows::money(row.discount_cents),
        rows::money(row.tax_cents),
        row.comment
    )
    .expect(IN_MEMORY);
}

fn access_log_line(out: &mut String, log: &rows::AccessLog) {
    let [a, b, c, d] = log.client;
    writeln!(
        out,
        "access_log,method={} id={}i,ts={}t,client=\"{a}.{b}.{c}.{d}\",url=\"{}\",status={}i,size={}i",
        log.method,
        log.id,
        log.micros(),
        log.url,
        log.status,
        log.size
    )
    .expect(IN_MEMORY);
}

/// Days since 1970-01-01 of a day after it.
pub fn days_since_1970((year, month, day): (u16, u8, u8)) -> i64 {
    const BEFORE_MONTH: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let (year, month) = (i64::from(year), usize::from(month));
    // 1972 to 2096 have a leap day every four years.
    let leap_days = (year - 1969) / 4 + i64::from(year % 4 == 0 && month > 2);
    (year - 1970) * 365 + leap_days + BEFORE_MONTH[month - 1] + i64::from(day) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(days_since_1970((1970, 1, 1)), 0);
        assert_eq!(days_since_1970((1992, 2, 29)), 8094);
        assert_eq!(days_since_1970((1996, 3, 1)), 9556);
        assert_eq!(days_since_1970((1998, 12, 28)), 10_588);
    }
}
