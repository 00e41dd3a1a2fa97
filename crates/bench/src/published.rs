//! Doris's own figures, in rows per second, from the group commit page of its manual (version 4.1):
//! measured by its makers on clusters of 1 FE with 1, 3 or 5 BEs of 16 cores and a client of 16 cores.

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
