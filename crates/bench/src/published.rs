//! Doris's own figures, in rows per second, from the group commit page of its manual (version 4.1):
//! measured by its makers on clusters of 1 FE with 1, 3 or 5 BEs of 16 cores and a client of 16 cores. Those of Flink are from
//! the page on ways to load: 1 FE of 8 cores, 3 BEs of 16 cores.

use serde::Serialize;

/// `group_commit` by Stream Load of http logs: bytes of a request, connections, rows per second.
const STREAM_LOAD: &[(usize, usize, f64)] = &[
    (10_000, 10, 112_181.0),
    (10_000, 30, 113_625.0),
    (100_000, 10, 873_671.0),
    (100_000, 30, 1_013_315.0),
    (500_000, 10, 1_977_992.0),
    (500_000, 30, 2_026_631.0),
    (1_000_000, 10, 2_077_723.0),
    (1_000_000, 30, 2_077_723.0),
    (10_000_000, 10, 2_095_331.0),
];
/// The same without `group_commit`.
const STREAM_LOAD_OFF: &[(usize, usize, f64)] =
    &[(1_000_000, 10, 131_305.0), (10_000_000, 10, 840_983.0), (10_000_000, 30, 2_095_331.0)];
/// 100 rows of lineitem per INSERT: connections, rows per second.
const JDBC: &[(usize, f64)] = &[(10, 160_758.0), (20, 210_476.0), (30, 214_323.0)];
/// Intervals of the sync tests, in ms.
pub const INTERVALS: [u64; 4] = [10, 20, 50, 100];
/// 1 row per INSERT: connections, rows per second at each interval (the better planner setting).
const SYNC_SMALL: &[(usize, [f64; 4])] = &[
    (30, [891.8, 701.1, 400.0, 237.5]),
    (100, [2427.8, 2068.9, 1259.4, 764.9]),
    (500, [5567.5, 5713.2, 4932.2, 3641.1]),
];
/// 1,000 rows per INSERT, likewise.
const SYNC_LARGE: &[(usize, [f64; 4])] = &[
    (30, [157_800.0, 159_900.0, 154_100.0, 120_400.0]),
    (100, [130_400.0, 131_000.0, 130_400.0, 124_100.0]),
    (500, [94_200.0, 95_100.0, 94_400.0, 94_800.0]),
];

/// Figures from a row's way through Flink's connector until a query sees it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EndToEnd {
    pub rows_per_second: f64,
    pub mean_seconds: f64,
    pub p99_seconds: f64,
}

/// lineitem by Flink's connector in batch mode: interval in ms, tasks, buckets; rows per second, mean and 99th percentile in s.
const FLINK: &[(u64, usize, usize, [f64; 3])] = &[
    (200, 1, 32, [6_073.0, 0.211, 0.517]),
    (1_000, 1, 32, [31_586.0, 0.71, 1.39]),
    (10_000, 1, 32, [67_437.0, 5.65, 10.90]),
    (20_000, 1, 32, [93_769.0, 10.962, 20.682]),
    (60_000, 1, 32, [125_000.0, 32.46, 62.17]),
    (200, 10, 32, [9_300.0, 0.38, 0.704]),
    (1_000, 10, 32, [34_633.0, 0.75, 1.47]),
    (10_000, 10, 32, [82_023.0, 5.44, 10.43]),
    (20_000, 10, 32, [139_731.0, 11.12, 22.68]),
    (60_000, 10, 32, [171_642.0, 32.37, 61.93]),
    (1_000, 10, 4, [34_722.0, 0.86, 2.28]),
    (1_000, 10, 16, [34_526.0, 0.8, 1.52]),
    (1_000, 10, 64, [34_829.0, 0.81, 1.51]),
    (1_000, 10, 128, [34_722.0, 0.83, 1.55]),
];

/// Flink's figures.
#[must_use]
pub fn flink(interval_ms: u64, tasks: usize, buckets: usize) -> Option<EndToEnd> {
    let row = FLINK.iter().find(|row| (row.0, row.1, row.2) == (interval_ms, tasks, buckets))?;
    let [rows_per_second, mean_seconds, p99_seconds] = row.3;
    Some(EndToEnd { rows_per_second, mean_seconds, p99_seconds })
}

/// Flink's rows per second with this interval, or with the next longer one that was measured, whatever the buckets are.
#[must_use]
pub fn flink_speed(interval_ms: u64, tasks: usize) -> Option<f64> {
    let rows = FLINK.iter().filter(|row| row.1 == tasks && row.0 >= interval_ms);
    rows.min_by_key(|row| (row.0, row.2 != 32)).map(|row| row.3[0])
}

/// Stream Load's figure.
#[must_use]
pub fn stream_load(is_off: bool, bytes: usize, connections: usize) -> Option<f64> {
    let all = if is_off { STREAM_LOAD_OFF } else { STREAM_LOAD };
    all.iter().find(|row| (row.0, row.1) == (bytes, connections)).map(|row| row.2)
}

/// JDBC's figure.
#[must_use]
pub fn jdbc(connections: usize) -> Option<f64> {
    JDBC.iter().find(|row| row.0 == connections).map(|row| row.1)
}

/// The figure of the sync tests, for 1 row or 1,000 per INSERT.
#[must_use]
pub fn sync(rows: usize, connections: usize, interval_ms: u64) -> Option<f64> {
    let all = match rows {
        1 => SYNC_SMALL,
        1000 => SYNC_LARGE,
        _ => return None,
    };
    let at = INTERVALS.iter().position(|&interval| interval == interval_ms)?;
    all.iter().find(|row| row.0 == connections).map(|row| row.1[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_interval_takes_the_speed_of_the_next_one() {
        assert_eq!(flink_speed(100, 10), Some(9_300.0));
        assert_eq!(flink_speed(1_000, 10), Some(34_633.0));
        assert_eq!(flink_speed(60_001, 10), None);
        assert_eq!(flink_speed(100, 3), None);
        assert_eq!(flink(1_000, 10, 128).map(|row| row.p99_seconds), Some(1.55));
        assert_eq!(flink(100, 10, 32), None);
    }
}
