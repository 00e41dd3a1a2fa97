//! Rows of the Star Schema Benchmark, derived from those of TPC-H.

use crate::suites::Rows;
use tpchgen::dates::{MIN_GENERATE_DATE, TOTAL_DATE_RANGE, TPCHDate};
use tpchgen::generators::{
    CustomerGenerator, LineItem, LineItemGenerator, NationGenerator, Order, OrderGenerator, PartGenerator,
    RegionGenerator, SupplierGenerator,
};

/// Customers and suppliers of TPC-H for one here.
const TAKEN: i64 = 5;
/// Brands of a category.
const BRANDS: i64 = 40;
/// Cities of a nation.
const CITIES: i64 = 10;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
/// The day of the week of 1992-01-01, the first one.
const FIRST_DAY: i32 = 3;
const SEASONS: [&str; 12] = [
    "Winter",
    "Winter",
    "Spring",
    "Spring",
    "Spring",
    "Summer",
    "Summer",
    "Summer",
    "Fall",
    "Fall",
    "Christmas",
    "Christmas",
];

/// The rows of a table at this scale factor, with a separator behind each value.
pub fn rows(table: &str, scale: f64) -> Rows {
    match table {
        "dates" => Box::new((0..TOTAL_DATE_RANGE).map(date)),
        "customer" => Box::new(customers(scale)),
        "supplier" => Box::new(suppliers(scale)),
        "part" => Box::new(parts(scale)),
        _ => Box::new(line_orders(scale)),
    }
}

/// The names of each nation and of its region.
fn nations() -> Vec<(&'static str, &'static str)> {
    let regions: Vec<&str> = RegionGenerator::new(1.0, 1, 1).iter().map(|region| region.r_name).collect();
    let nations = NationGenerator::new(1.0, 1, 1).iter();
    nations.map(|nation| (nation.n_name, regions[nation.n_regionkey as usize])).collect()
}

/// A city of a nation: the first nine letters of its name, and a digit.
fn city(nation: &str, key: i64) -> String {
    format!("{nation:<9.9}{}", spread(key) % CITIES)
}

/// A number that depends on a key, and not in its order.
fn spread(key: i64) -> i64 {
    (key.wrapping_mul(2_654_435_761) >> 16) & 0xffff
}

/// The number of customers or suppliers, from that of TPC-H at scale factor 1.
fn count(scale: f64, of: f64) -> i64 {
    ((of * scale) as i64 / TAKEN).max(1)
}

fn customers(scale: f64) -> impl Iterator<Item = String> {
    let nations = nations();
    let all = CustomerGenerator::new(scale, 1, 1).iter();
    all.take(count(scale, 150_000.0) as usize).map(move |it| {
        let (nation, region) = nations[it.c_nationkey as usize];
        format!(
            "{}|{}|{}|{}|{nation}|{region}|{}|{}|",
            it.c_custkey,
            it.c_name,
            it.c_address,
            city(nation, it.c_custkey),
            it.c_phone,
            it.c_mktsegment
        )
    })
}

fn suppliers(scale: f64) -> impl Iterator<Item = String> {
    let nations = nations();
    let all = SupplierGenerator::new(scale, 1, 1).iter();
    all.take(count(scale, 10_000.0) as usize).map(move |it| {
        let (nation, region) = nations[it.s_nationkey as usize];
        format!(
            "{}|{}|{}|{}|{nation}|{region}|{}|",
            it.s_suppkey,
            it.s_name,
            it.s_address,
            city(nation, it.s_suppkey),
            it.s_phone
        )
    })
}

fn parts(scale: f64) -> impl Iterator<Item = String> {
    PartGenerator::new(scale, 1, 1).iter().map(|it| {
        // `Manufacturer#1` and `Brand#13`, which has two digits.
        let (maker, brand, name) = (it.p_mfgr.to_string(), it.p_brand.to_string(), it.p_name.to_string());
        let digits = |text: &str| text.rsplit('#').next().unwrap_or_default().to_owned();
        let category = format!("MFGR#{}", digits(&brand));
        format!(
            "{}|{name}|MFGR#{}|{category}|{category}{}|{}|{}|{}|{}|",
            it.p_partkey,
            digits(&maker),
            1 + spread(it.p_partkey) % BRANDS,
            name.split(' ').next().unwrap_or_default(),
            it.p_type,
            it.p_size,
            it.p_container
        )
    })
}

fn line_orders(scale: f64) -> impl Iterator<Item = String> {
    let (customers, suppliers) = (count(scale, 150_000.0), count(scale, 10_000.0));
    let mut orders = OrderGenerator::new(scale, 1, 1).iter();
    let mut order: Option<Order<'static>> = orders.next();
    LineItemGenerator::new(scale, 1, 1).iter().map_while(move |item| {
        // Both are in the order of their keys, and no order has no item.
        while order.as_ref().is_some_and(|order| order.o_orderkey < item.l_orderkey) {
            order = orders.next();
        }
        order.as_ref().map(|order| line_order(order, &item, customers, suppliers))
    })
}

fn line_order(order: &Order<'_>, item: &LineItem<'_>, customers: i64, suppliers: i64) -> String {
    let (price, discount) = (item.l_extendedprice.into_inner(), item.l_discount.into_inner());
    format!(
        "{}|{}|{}|{}|{}|{}|{}|{}|{}|{price}|{}|{discount}|{}|{}|{}|{}|{}|",
        item.l_orderkey,
        item.l_linenumber,
        1 + (order.o_custkey - 1) % customers,
        item.l_partkey,
        1 + (item.l_suppkey - 1) % suppliers,
        day_key(order.o_orderdate),
        order.o_orderpriority,
        order.o_shippriority,
        item.l_quantity,
        order.o_totalprice.into_inner(),
        price * (100 - discount) / 100,
        // Six tenths of the part's price.
        6 * price / item.l_quantity / 10,
        item.l_tax.into_inner(),
        day_key(item.l_commitdate),
        item.l_shipmode
    )
}

/// A day as a number such as 19920101.
fn day_key(date: TPCHDate) -> i32 {
    let (year, month, day) = date.to_ymd();
    (1900 + year) * 10_000 + month * 100 + day
}

/// A row of `dates`, by the number of days since the first one.
fn date(number: i32) -> String {
    let of = |number| TPCHDate::new(MIN_GENERATE_DATE + number).to_ymd();
    let (year, month, day) = of(number);
    let year_number = 1900 + year;
    // From 1 on; the year's first day is that many days back.
    let day_of_year = (0..).take_while(|back| number >= *back && of(number - back).0 == year).count();
    let day_of_week = (number + FIRST_DAY) % 7;
    let is_last_of_month = number + 1 == TOTAL_DATE_RANGE || of(number + 1).1 != month;
    let month_name = MONTHS[month as usize - 1];
    let day_name = DAYS[day_of_week as usize];
    format!(
        "{}|{month_name} {day}, {year_number}|{day_name}|{month_name}|{year_number}|{}|{}{year_number}|{}|{day}|{day_of_year}|{month}|{}|{}|\
{}|{}|{}|{}|",
        year_number * 10_000 + month * 100 + day,
        year_number * 100 + month,
        &month_name[..3],
        day_of_week + 1,
        1 + (day_of_year - 1) / 7,
        SEASONS[month as usize - 1],
        u8::from(day_of_week == 6),
        u8::from(is_last_of_month),
        u8::from((month, day) == (12, 25) || (month, day) == (1, 1)),
        u8::from(!matches!(day_of_week, 0 | 6)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const SCALE: f64 = 0.01;

    fn cells(table: &str) -> Vec<Vec<String>> {
        let cells = |row: String| row.trim_end_matches('|').split('|').map(str::to_owned).collect();
        rows(table, SCALE).map(cells).collect()
    }

    fn column(table: &str, at: usize) -> HashSet<String> {
        cells(table).into_iter().map(|mut row| row.swap_remove(at)).collect()
    }

    #[test]
    fn rows_have_all_columns() {
        for table in &super::super::queries::TABLES {
            // Each column says that it is not NULL.
            let columns = table.columns.matches("NOT NULL").count();
            let wrong = cells(table.name).into_iter().find(|row| row.len() != columns);
            assert_eq!(wrong, None, "{} has {columns} columns", table.name);
        }
    }

    #[test]
    fn line_orders_refer_to_rows_of_the_other_tables() {
        for (at, table) in [(2, "customer"), (3, "part"), (4, "supplier"), (5, "dates"), (15, "dates")] {
            let (keys, referred) = (column(table, 0), column("lineorder", at));
            assert!(referred.is_subset(&keys), "{table}");
            assert!(referred.len() > keys.len() / 3, "{table}: {} of {}", referred.len(), keys.len());
        }
    }

    #[test]
    fn what_queries_ask_for_is_there() {
        assert!(column("part", 3).contains("MFGR#12") && column("part", 4).contains("MFGR#2221"));
        assert!(column("supplier", 5).contains("AMERICA") && column("customer", 4).contains("UNITED STATES"));
        let cities = column("customer", 3);
        assert!(cities.len() > 100 && cities.iter().all(|city| city.len() == 10), "{cities:?}");
        assert!(cities.iter().any(|city| city.starts_with("UNITED KI")), "{cities:?}");
        let dates = cells("dates");
        let row = |key: &str| dates.iter().find(|row| row[0] == key).expect("a day").join("|");
        assert_eq!(
            row("19971225"),
            "19971225|December 25, 1997|Thursday|December|1997|199712|Dec1997|5|25|359|12|52|Christmas|0|0|1|1"
        );
        assert_eq!(
            row("19960229"),
            "19960229|February 29, 1996|Thursday|February|1996|199602|Feb1996|5|29|60|2|9|Winter|0|1|0|1"
        );
        assert_eq!(dates.len(), 2557);
    }
}
