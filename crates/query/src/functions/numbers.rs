//! Numbers: operators, sums, rounding, and functions over the reals.

pub mod arithmetic;
mod bases;
mod bits;
mod buckets;
pub mod exact;
pub mod misc;
pub mod more;
pub mod rounding;
mod sphere;
pub mod sum;

use super::MySqlFunction;

pub(super) fn functions() -> Vec<MySqlFunction> {
    [
        arithmetic::functions(),
        bases::functions(),
        bits::functions(),
        buckets::functions(),
        exact::functions(),
        misc::functions(),
        more::functions(),
        rounding::functions(),
        sphere::functions(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
