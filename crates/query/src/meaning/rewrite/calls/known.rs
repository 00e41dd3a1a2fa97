//! The functions of DataFusion that a query may call by their own names, because they mean what Doris or MySQL mean by
//! those. All others of its functions would answer otherwise than the user of MySQL expects, so they are not found.

use crate::functions;

const SCALARS: [&str; 29] = [
    "array_avg",
    "array_concat",
    "array_distinct",
    "array_except",
    "array_max",
    "array_min",
    "array_product",
    "array_repeat",
    "array_union",
    "arrays_overlap",
    "coalesce",
    "cosine_distance",
    "gcd",
    "inner_product",
    "isnan",
    "lcm",
    "map_entries",
    "map_keys",
    "map_values",
    "named_struct",
    "nullif",
    "pi",
    "regexp_count",
    "unnest",
    "uuid",
    // The clock's, as the planner names them.
    "current_date",
    "current_timestamp",
    // GROUP BY keywords that the parser reads as calls.
    "cube",
    "rollup",
];

const AGGREGATES: [&str; 11] = [
    "any_value",
    "array_agg",
    "count",
    "grouping",
    "max",
    "min",
    "approx_distinct",
    "sum",
    "avg",
    "first_value",
    "last_value",
];

const WINDOWS: [&str; 9] =
    ["row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead", "nth_value"];

/// Whether the planner may look up a function of that name, in lower case.
pub(super) fn is_known(name: &str) -> bool {
    SCALARS.contains(&name)
        || AGGREGATES.contains(&name)
        || WINDOWS.contains(&name)
        || functions::states::aggregates::NAMES.contains(&name)
        || functions::is_ours(name)
}
