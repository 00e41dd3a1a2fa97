//! Arrays as vectors: `L1_DISTANCE`, `L2_DISTANCE`, `COSINE_SIMILARITY`, `ARRAY_CROSS_PRODUCT`.

use crate::functions::conversion::convert::to_real;
use crate::functions::nested::arrays::{Lists, list_of};
use crate::functions::{MySqlFunction, Param};
use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Float64Builder, ListBuilder};
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{Result, exec_err};
use std::sync::Arc;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::Any;
    let real = crate::functions::float64;
    vec![
        MySqlFunction::new("l1_distance", &[Any, Any], real, |args| {
            measured(args, "l1_distance", |a, b| Some(pairs(a, b).map(|(a, b)| (a - b).abs()).sum()))
        }),
        MySqlFunction::new("l2_distance", &[Any, Any], real, |args| {
            measured(args, "l2_distance", |a, b| {
                Some(pairs(a, b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt())
            })
        }),
        MySqlFunction::new("cosine_similarity", &[Any, Any], real, |args| {
            measured(args, "cosine_similarity", |a, b| {
                let length = |of: &[f64]| of.iter().map(|x| x * x).sum::<f64>().sqrt();
                let product: f64 = pairs(a, b).map(|(a, b)| a * b).sum();
                // A vector without length has no direction.
                Some(product / (length(a) * length(b))).filter(|likeness| likeness.is_finite())
            })
        }),
        MySqlFunction::new("array_cross_product", &[Any, Any], || list_of(DataType::Float64), cross_product),
    ]
}

fn pairs<'a>(a: &'a [f64], b: &'a [f64]) -> impl Iterator<Item = (f64, f64)> {
    a.iter().copied().zip(b.iter().copied())
}

/// The vectors of each row; `None` if one is NULL or has a NULL.
fn vectors(args: &[ArrayRef], function: &str) -> Result<Vec<Option<[Vec<f64>; 2]>>> {
    let lists = [Lists::of(&args[0], function)?, Lists::of(&args[1], function)?];
    let values = [to_real(&lists[0].values)?, to_real(&lists[1].values)?];
    let vector = |side: usize, row: usize| -> Option<Vec<f64>> {
        let values = values[side].as_primitive::<Float64Type>();
        lists[side].row(row)?.map(|at| values.is_valid(at).then(|| values.value(at))).collect()
    };
    let mut all = Vec::with_capacity(args[0].len());
    for row in 0..args[0].len() {
        let both = vector(0, row).zip(vector(1, row));
        if let Some((a, b)) = both.as_ref().filter(|(a, b)| a.len() != b.len()) {
            return exec_err!(
                "{} takes vectors of one length and not of {} and {}",
                function.to_uppercase(),
                a.len(),
                b.len()
            );
        }
        all.push(both.map(|(a, b)| [a, b]));
    }
    Ok(all)
}

fn measured(
    args: &[ArrayRef],
    function: &str,
    measure: impl Fn(&[f64], &[f64]) -> Option<f64>,
) -> Result<ArrayRef> {
    let vectors = vectors(args, function)?.into_iter();
    Ok(Arc::new(vectors.map(|both| both.and_then(|[a, b]| measure(&a, &b))).collect::<Float64Array>()))
}

fn cross_product(args: &[ArrayRef]) -> Result<ArrayRef> {
    let mut lists = ListBuilder::new(Float64Builder::new());
    for both in vectors(args, "array_cross_product")? {
        let Some([a, b]) = both else {
            lists.append_null();
            continue;
        };
        let ([a1, a2, a3], [b1, b2, b3]) = (a.as_slice(), b.as_slice()) else {
            return exec_err!("ARRAY_CROSS_PRODUCT takes vectors of three numbers and not of {}", a.len());
        };
        lists.append_value([a2 * b3 - a3 * b2, a3 * b1 - a1 * b3, a1 * b2 - a2 * b1].map(Some));
    }
    Ok(Arc::new(lists.finish()))
}
