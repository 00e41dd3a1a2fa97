//! Distances on the earth, which is a sphere as in Doris: `ST_DISTANCE_SPHERE` and `ST_ANGLE_SPHERE`.

use crate::functions::{MySqlFunction, Param};
use arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use arrow::datatypes::Float64Type;
use std::sync::Arc;

/// The radius of the earth in metres.
const RADIUS_METRES: f64 = 6_371_010.0;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::Real;
    let real = crate::functions::float64;
    let points = &[Real, Real, Real, Real];
    vec![
        MySqlFunction::new("st_distance_sphere", points, real, |args| {
            Ok(each(args, |angle| angle * RADIUS_METRES))
        }),
        MySqlFunction::new("st_angle_sphere", points, real, |args| Ok(each(args, f64::to_degrees))),
    ]
}

/// Computes a number of the angle between two points; NULL for points that are not on the earth.
fn each(args: &[ArrayRef], of: impl Fn(f64) -> f64) -> ArrayRef {
    let columns: Vec<&Float64Array> = args.iter().map(AsArray::as_primitive::<Float64Type>).collect();
    let values = (0..columns[0].len()).map(|row| {
        let mut numbers = [0.0; 4];
        for (number, column) in numbers.iter_mut().zip(&columns) {
            *number = column.is_valid(row).then(|| column.value(row))?;
        }
        angle(numbers).map(&of)
    });
    Arc::new(values.collect::<Float64Array>())
}

/// The angle between two points, each a longitude and a latitude in degrees.
fn angle([from_lng, from_lat, to_lng, to_lat]: [f64; 4]) -> Option<f64> {
    let is_on_earth = |lng: f64, lat: f64| lng.abs() <= 180.0 && lat.abs() <= 90.0;
    if !is_on_earth(from_lng, from_lat) || !is_on_earth(to_lng, to_lat) {
        return None;
    }
    let [from_lng, from_lat, to_lng, to_lat] = [from_lng, from_lat, to_lng, to_lat].map(f64::to_radians);
    let half = |from: f64, to: f64| (0.5 * (to - from)).sin();
    let (lat, lng) = (half(from_lat, to_lat), half(from_lng, to_lng));
    let square = lat * lat + lng * lng * from_lat.cos() * to_lat.cos();
    Some(2.0 * square.min(1.0).sqrt().asin())
}
