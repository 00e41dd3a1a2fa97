use super::*;
use crate::data_type::DataType;
use crate::table::{ColumnDef, TableSchema};
use crate::{SchemaVersion, calendar};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::DataType::Int32;

fn int(value: i128) -> Bound {
    Bound::Value(PartitionValue::Int(value))
}

fn range(lower: Bound, upper: Bound) -> PartitionRows {
    PartitionRows::Range { lower: vec![lower], upper: vec![upper] }
}

fn partitions(method: PartitionMethod, columns: u32, rows: Vec<PartitionRows>) -> Partitions {
    let mut partitions = Partitions::new(method, (1..=columns).map(ColumnId).collect());
    for (number, rows) in rows.into_iter().enumerate() {
        partitions.add(&format!("p{number}"), rows, BTreeMap::new());
    }
    partitions
}

#[test]
fn a_row_is_in_the_range_that_its_value_is_in_and_null_only_below_all() {
    let with_min = partitions(
        PartitionMethod::Range,
        1,
        vec![range(int(20), int(30)), range(Bound::Min, int(10)), range(int(40), Bound::Max)],
    );
    let find = |value: i128| with_min.find(&[ValueRef::Int(value)]);
    assert_eq!(with_min.find(&[ValueRef::Null]), Some(1));
    assert_eq!([-5, 9, 10, 19, 20, 29, 30, 40, 1 << 100].map(find), {
        [Some(1), Some(1), None, None, Some(0), Some(0), None, Some(2), Some(2)]
    });
    let without = partitions(PartitionMethod::Range, 1, vec![range(int(-5), int(10))]);
    assert_eq!(without.find(&[ValueRef::Null]), None);
    assert_eq!(without.find(&[ValueRef::Int(-6)]), None);
}

#[test]
fn ranges_of_several_columns_compare_from_left_to_right() {
    let bounds = |left: i128, right: Bound| vec![int(left), right];
    let two = partitions(
        PartitionMethod::Range,
        2,
        vec![
            PartitionRows::Range { lower: bounds(1, Bound::Min), upper: bounds(2, int(5)) },
            PartitionRows::Range { lower: bounds(2, int(5)), upper: bounds(3, Bound::Max) },
        ],
    );
    let find = |left, right| two.find(&[ValueRef::Int(left), right]);
    assert_eq!(find(1, ValueRef::Null), Some(0));
    assert_eq!(find(2, ValueRef::Int(4)), Some(0));
    assert_eq!(find(2, ValueRef::Int(5)), Some(1));
    assert_eq!(find(3, ValueRef::Int(1_000)), Some(1));
    assert_eq!(find(4, ValueRef::Null), None);
    assert_eq!(find(0, ValueRef::Int(9)), None);
}

#[test]
fn a_row_is_in_the_list_that_has_its_values_or_in_that_of_all_others() {
    let text = |text: &str| PartitionValue::Text(text.to_owned());
    let mut lists = partitions(
        PartitionMethod::List,
        1,
        vec![
            PartitionRows::Values(vec![vec![text("b")], vec![text("a")]]),
            PartitionRows::Values(vec![vec![PartitionValue::Null]]),
        ],
    );
    assert_eq!(lists.find(&[ValueRef::Text("a")]), Some(0));
    assert_eq!(lists.find(&[ValueRef::Text("c")]), None);
    assert_eq!(lists.find(&[ValueRef::Null]), Some(1));
    lists.add("rest", PartitionRows::Others, BTreeMap::new());
    assert_eq!(lists.find(&[ValueRef::Text("c")]), Some(2));
    lists.remove(&[PartitionId(2)]);
    assert_eq!(lists.find(&[ValueRef::Null]), Some(1), "the partition of all others is the second now");
}

#[test]
fn many_rows_are_found_as_single_ones_are() {
    let columns = |data_type| TableSchema::new(SchemaVersion(1), vec![ColumnDef::new(1, "k", data_type)]);
    let ranges = vec![range(Bound::Min, int(-5)), range(int(0), int(300)), range(int(300), int(1000))];
    let ranges = partitions(PartitionMethod::Range, 1, ranges);
    let values = vec![PartitionValue::Int(7), PartitionValue::Int(263), PartitionValue::Null];
    let list = PartitionRows::Values(values.into_iter().map(|value| vec![value]).collect());
    let lists = partitions(PartitionMethod::List, 1, vec![list, PartitionRows::Others]);
    // The order of the values makes many that share a cache entry follow one another.
    let rows = (0..4_000_i64).map(|row| (row % 13 != 0).then_some(row * 256 % 1_531 - 50));
    let large: ArrayRef = Arc::new(rows.clone().collect::<Int64Array>());
    for data_type in
        [DataType::BigInt, DataType::Int, DataType::Date, DataType::DateTime { scale: 0 }, DataType::LargeInt]
    {
        let schema = columns(data_type);
        let arrow = schema.arrow();
        let column = arrow::compute::cast(&large, arrow.field(0).data_type())
            .or_else(|_| {
                arrow::compute::cast(&arrow::compute::cast(&large, &Int32)?, arrow.field(0).data_type())
            })
            .unwrap();
        let batch = RecordBatch::try_new(arrow, vec![column]).unwrap();
        for partitions in [&ranges, &lists] {
            let one_by_one: Vec<Option<usize>> = (0..batch.num_rows())
                .map(|row| partitions.find(&partitions.values_of(&batch, &schema, row)))
                .collect();
            assert_eq!(partitions.of_rows(&batch, &schema), one_by_one, "{data_type:?}");
            assert!(one_by_one.iter().any(Option::is_some));
        }
    }
}

#[test]
fn partitions_are_printed_as_doris_prints_them() {
    let schema = TableSchema::new(SchemaVersion(1), vec![ColumnDef::new(1, "d", DataType::Date)]);
    let day = |year| int(calendar::days_of(year, 1, 1).into());
    let years = partitions(
        PartitionMethod::Range,
        1,
        vec![range(Bound::Min, day(2008)), range(day(2008), day(2009))],
    );
    assert_eq!(
        years.clause(&schema),
        "PARTITION BY RANGE(`d`)\n(PARTITION p0 VALUES [('0000-01-01'), ('2008-01-01')),\n\
         PARTITION p1 VALUES [('2008-01-01'), ('2009-01-01')))"
    );
    assert_eq!(
        years.list[1].range_text(&years.columns_of(&schema)),
        "[types: [DATEV2]; keys: [2008-01-01]; ..types: [DATEV2]; keys: [2009-01-01]; )"
    );
}

#[test]
fn loads_make_the_partitions_that_doris_makes() {
    let column = |name: &str, data_type| ColumnDef::new(1, name, data_type);
    let made = |auto, data_type, value: ValueRef<'_>| {
        let mut partitions = Partitions::new(PartitionMethod::Range, vec![ColumnId(1)]);
        partitions.auto = Some(auto);
        let column = column("c", data_type);
        let (name, rows) = partitions.made_for(&[value], &[&column]).unwrap();
        partitions.add(&name, rows, BTreeMap::new());
        assert_eq!(partitions.find(&[value]), Some(0), "{name}");
        (name, partitions.list[0].clause(&[&column]))
    };
    let day = |year, month, day| ValueRef::Int(calendar::days_of(year, month, day).into());
    for (unit, name, range) in [
        (TimeUnit::Year, "p20240101000000", "[('2024-01-01'), ('2025-01-01'))"),
        (TimeUnit::Quarter, "p20241001000000", "[('2024-10-01'), ('2025-01-01'))"),
        (TimeUnit::Month, "p20241201000000", "[('2024-12-01'), ('2025-01-01'))"),
        (TimeUnit::Week, "p20241230000000", "[('2024-12-30'), ('2025-01-06'))"),
        (TimeUnit::Day, "p20241231000000", "[('2024-12-31'), ('2025-01-01'))"),
    ] {
        let (made, clause) = made(AutoPartition::Range(unit), DataType::Date, day(2024, 12, 31));
        assert_eq!(made, name);
        assert!(clause.ends_with(range), "{clause}");
    }
    let micros = ValueRef::Int(-1);
    let (name, clause) = made(AutoPartition::Range(TimeUnit::Hour), DataType::DateTime { scale: 0 }, micros);
    assert_eq!(name, "p19691231230000");
    assert!(clause.ends_with("[('1969-12-31 23:00:00'), ('1970-01-01 00:00:00'))"), "{clause}");
    let list = |data_type, value| made(AutoPartition::List, data_type, value).0;
    let varchar = DataType::Varchar { bytes: 100 };
    assert_eq!(list(varchar, ValueRef::Text("Beijing")), "pBeijing7");
    assert_eq!(list(DataType::Int, ValueRef::Int(-5)), "p_2d52");
    assert_eq!(list(varchar, ValueRef::Null), "pX");
    let long = list(varchar, ValueRef::Text(&"ab".repeat(40)));
    assert!(long.starts_with(&format!("p{}_", &"ab".repeat(40)[..49])), "{long}");
}

#[test]
fn the_least_value_of_a_type_is_the_bound_below_all() {
    let zero = PartitionValue::Int(calendar::days_of(0, 1, 1).into());
    assert_eq!(Bound::of(zero, DataType::Date), Bound::Min);
    assert_eq!(Bound::of(PartitionValue::Int(-128), DataType::TinyInt), Bound::Min);
    assert_eq!(Bound::of(PartitionValue::Int(-128), DataType::Int), int(-128));
}

#[test]
fn ranges_that_are_narrow_wide_or_far_apart_have_their_values() {
    let ranges = vec![
        range(Bound::Min, int(-1_000_000)),
        range(int(-999_000), int(-999_000 + 1)),
        range(int(-998_999), int(0)),
        range(int(0), int(86_400_000_000)),
        range(int(86_400_000_000), int(2 * 86_400_000_000)),
        range(int(i128::from(i64::MAX) - 5), int(i128::from(i64::MAX))),
    ];
    let with_end = |end: Bound| {
        let mut ranges = ranges.clone();
        ranges.push(range(int(i128::from(i64::MAX)), end));
        ranges
    };
    let sets = [
        ranges.clone(),
        ranges[1..].to_vec(),
        ranges[3..4].to_vec(),
        with_end(Bound::Max),
        with_end(int(i128::MAX)),
        (0..300).map(|day| range(int(day * 7), int(day * 7 + 6))).collect(),
        vec![range(Bound::Min, Bound::Max)],
    ];
    for list in sets {
        let set = partitions(PartitionMethod::Range, 1, list.clone());
        let ends = list.iter().flat_map(|rows| match rows {
            PartitionRows::Range { lower, upper } => [lower[0].clone(), upper[0].clone()],
            _ => unreachable!("ranges only"),
        });
        let ends = ends.map(|end| match end {
            Bound::Value(PartitionValue::Int(value)) => value,
            Bound::Min => i128::MIN,
            _ => i128::MAX - 1,
        });
        for value in ends.chain([0, 1, -1, i64::MIN.into(), i128::MIN + 1]) {
            for value in
                [value.saturating_sub(1), value, value.saturating_add(1)].map(|it| it.min(i128::MAX - 1))
            {
                let expected = list.iter().position(|rows| match rows {
                    PartitionRows::Range { lower, upper } => {
                        let is_above = match &lower[0] {
                            Bound::Value(PartitionValue::Int(lower)) => *lower <= value,
                            _ => true,
                        };
                        let is_below = match &upper[0] {
                            Bound::Value(PartitionValue::Int(upper)) => value < *upper,
                            _ => true,
                        };
                        is_above && is_below
                    }
                    _ => false,
                });
                assert_eq!(set.find(&[ValueRef::Int(value)]), expected, "{value} in {list:?}");
            }
        }
        let has_null = matches!(&list[0], PartitionRows::Range { lower, .. } if lower[0] == Bound::Min);
        assert_eq!(set.find(&[ValueRef::Null]), has_null.then_some(0));
    }
}
