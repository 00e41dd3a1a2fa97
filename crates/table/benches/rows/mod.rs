//! Access-log rows as Arrow batches, for the benches of this crate.

#[path = "../../../decode/benches/data/mod.rs"]
mod data;

use arrow::array::{
    ArrayRef, Int16Array, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use std::sync::Arc;
use tributary_types::TableDef;

pub fn table() -> Arc<TableDef> {
    data::access_log_table()
}

/// `count` rows with the ids of `place × count …`, in the order in which ten clients that take turns would send them: nearly
/// sorted by key, but not quite.
pub fn batch(place: usize, count: usize) -> RecordBatch {
    let mut dice = data::Dice(place as u64);
    let ids: Vec<i64> =
        (0..count).map(|row| (place * count + row) as i64 * 10 + dice.range(0, 10_000) as i64).collect();
    let client = |_: &i64| {
        let mut part = || dice.range(0, 256);
        Some(format!("{}.{}.{}.{}", part(), part(), part(), part()))
    };
    let clients: StringArray = ids.iter().map(client).collect();
    let methods: StringArray =
        ids.iter().map(|_| Some(dice.pick(&["GET", "GET", "GET", "GET", "HEAD", "POST"]))).collect();
    let url = |_: &i64| {
        let part = dice.pick(&["images", "news", "history", "teams", "playing", "competition"]);
        Some(format!("/english/{part}/match{}.html", dice.range(1, 9000)))
    };
    let urls: StringArray = ids.iter().map(url).collect();
    let status: Int16Array =
        ids.iter().map(|_| Some([200, 200, 200, 304, 404][dice.range(0, 5) as usize])).collect();
    let sizes: Int32Array = ids.iter().map(|_| Some(dice.range(0, 60_000) as i32)).collect();
    let times = TimestampMicrosecondArray::from_iter_values(
        ids.iter().map(|id| 894_000_000_000_000 + id / 500 * 1_000_000),
    );
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(ids)),
        Arc::new(times),
        Arc::new(clients),
        Arc::new(methods),
        Arc::new(urls),
        Arc::new(status),
        Arc::new(sizes),
    ];
    RecordBatch::try_new(table().schema.arrow(), columns).expect("the table's columns")
}
