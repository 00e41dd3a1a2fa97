//! Rows of TPC-H, made as `dbgen` makes them: it ends a row with a separator.

use crate::suites::Rows;
use std::fmt::Display;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};

/// The rows of a table at this scale factor.
pub fn rows(table: &str, scale: f64) -> Rows {
    match table {
        "region" => texts(RegionGenerator::new(scale, 1, 1).iter()),
        "nation" => texts(NationGenerator::new(scale, 1, 1).iter()),
        "part" => texts(PartGenerator::new(scale, 1, 1).iter()),
        "supplier" => texts(SupplierGenerator::new(scale, 1, 1).iter()),
        "partsupp" => texts(PartSuppGenerator::new(scale, 1, 1).iter()),
        "customer" => texts(CustomerGenerator::new(scale, 1, 1).iter()),
        "orders" => texts(OrderGenerator::new(scale, 1, 1).iter()),
        _ => texts(LineItemGenerator::new(scale, 1, 1).iter()),
    }
}

fn texts(rows: impl Iterator<Item = impl Display> + 'static) -> Rows {
    Box::new(rows.map(|row| row.to_string()))
}
