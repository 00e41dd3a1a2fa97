//! Binary parameters of prepared INSERTs into blocks, per execution.

mod data;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use tributary_decode::{BlockBuilder, BoundParams, InsertOptions, ParamType, Target, prepare_values};
use tributary_types::TableDef;

const LONG: u8 = 3;
const LONGLONG: u8 = 8;
const DATE: u8 = 10;
const NEWDECIMAL: u8 = 246;
const VAR_STRING: u8 = 253;

/// The values of an execution in MySQL's binary protocol.
#[derive(Default)]
struct Packet {
    types: Vec<ParamType>,
    values: Vec<u8>,
}

impl Packet {
    fn put(&mut self, column_type: u8, value: &[u8]) {
        self.types.push(ParamType { column_type, unsigned: false });
        self.values.extend_from_slice(value);
    }

    fn int(&mut self, value: u64) {
        self.put(LONG, &(value as i32).to_le_bytes());
    }

    fn text(&mut self, column_type: u8, value: &str) {
        assert!(value.len() <= 250, "one byte holds the length");
        self.put(column_type, &[value.len() as u8]);
        self.values.extend_from_slice(value.as_bytes());
    }

    fn date(&mut self, (year, month, day): (u16, u8, u8)) {
        let [low, high] = year.to_le_bytes();
        self.put(DATE, &[4, low, high, month, day]);
    }
}

fn lineitem_packet(rows: u64) -> Packet {
    let mut packet = Packet::default();
    let mut dice = data::Dice(1);
    for row in 0..rows {
        let item = data::lineitem(&mut dice, row);
        packet.put(LONGLONG, &item.orderkey.to_le_bytes());
        [item.partkey, item.suppkey, item.linenumber].into_iter().for_each(|value| packet.int(value));
        for cents in [item.quantity * 100, item.price_cents, item.discount_cents, item.tax_cents] {
            packet.text(NEWDECIMAL, &data::money(cents));
        }
        packet.text(VAR_STRING, item.returnflag);
        packet.text(VAR_STRING, item.linestatus);
        item.dates.into_iter().for_each(|date| packet.date(date));
        [item.instruct, item.mode, &item.comment].into_iter().for_each(|text| packet.text(VAR_STRING, text));
    }
    packet
}

fn small_packet(rows: u64) -> Packet {
    let mut packet = Packet::default();
    for row in 0..rows {
        packet.int(row);
        packet.text(VAR_STRING, &format!("name{row}"));
        packet.int(row % 100);
    }
    packet
}

fn executes(table: &Arc<TableDef>, rows: u64, packet: &Packet, criterion: &mut Criterion) {
    let target = Target::new(table, None).expect("every column is there");
    let row = format!("({})", vec!["?"; table.schema.columns.len()].join(","));
    let sql = vec![row; rows as usize].join(",");
    let prepared = prepare_values(sql.as_bytes(), &target).expect("parameters only");
    let (nulls, long_data) = (vec![0; packet.types.len().div_ceil(8)], BTreeMap::new());
    let params = BoundParams {
        types: &packet.types,
        null_bitmap: &nulls,
        values: &packet.values,
        long_data: &long_data,
    };
    let options = InsertOptions::default();
    let mut builder = BlockBuilder::new(&table.schema);
    let mut decode = || prepared.decode(params, &target, &options, &mut builder).expect("a whole packet");
    let counts = decode().counts;
    assert_eq!((counts.loaded, counts.filtered), (rows, 0), "every row is legal");
    let mut group = criterion.benchmark_group("params");
    group.throughput(Throughput::Elements(rows));
    group.bench_function(format!("{}/{rows}", table.name), |bencher| bencher.iter(|| black_box(decode())));
    group.finish();
}

fn params(criterion: &mut Criterion) {
    let (small, lineitem) = (data::small_table(), data::lineitem_table());
    for rows in [1, 100] {
        executes(&small, rows, &small_packet(rows), criterion);
        executes(&lineitem, rows, &lineitem_packet(rows), criterion);
    }
}

criterion_group!(benches, params);
criterion_main!(benches);
