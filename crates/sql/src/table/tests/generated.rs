//! Generated columns in CREATE and ALTER TABLE.

use super::*;

const REST: &str = "duplicate key(a) distributed by hash(a) buckets 1";

/// A column of the table with that id refers to these ones.
fn refers(def: &TableDef, name: &str) -> (String, Vec<u32>) {
    let column = &def.schema.columns[def.schema.index_of(name).expect("it is there")];
    let generated = column.generated.as_ref().expect("it is generated");
    (generated.expr.clone(), generated.columns.iter().map(|id| id.0).collect())
}

#[test]
fn a_generated_column_keeps_its_expression_and_the_columns_in_it() {
    let written = format!(
        "create table t (a int, c double generated always as (abs(a + `B`)) not null, b int, d int as (c+1) stored null comment 'x',
         e bigint as (timestampdiff(day, f, '2024-01-01')), f datetime, g json, h string as (json_extract(g, '$.a'))) {REST}"
    );
    let table = def(&written);
    assert_eq!(refers(&table, "c"), ("abs(a + `B`)".to_owned(), vec![1, 3]));
    assert_eq!(refers(&table, "d"), ("c+1".to_owned(), vec![2]));
    assert_eq!(refers(&table, "e").1, [6]);
    assert_eq!(refers(&table, "h").1, [7]);
    let columns: Vec<(bool, bool)> =
        table.schema.columns.iter().map(|column| (column.nullable, column.is_filled())).collect();
    assert_eq!(columns[..4], [(true, false), (false, true), (true, false), (true, true)]);
    let printed = show_create_table(&table);
    assert!(printed.contains("  `c` double AS (abs(a + `B`)) NOT NULL,"), "{printed}");
    assert_eq!(def(&printed).schema, table.schema);
    let commented =
        def(&format!("create table t (a int, b int as (a + 1 -- more\n), c int as (a # two\n + 2)) {REST}"));
    assert_eq!(def(&show_create_table(&commented)).schema, commented.schema);
    let copy = like(
        &table,
        &tributary_types::TableRef { db: "d".into(), table: "u".into() },
        DbId(1),
        TableId(9),
        None,
    );
    assert_eq!(refers(&copy.expect("a good name"), "c").1, [1, 3]);
}

#[test]
fn what_a_generated_column_cannot_be_is_refused_in_doriss_words() {
    let table = |columns: &str| format!("create table t (a int, {columns}) {REST}");
    let named = [
        ("b int as (x)", "Unknown column 'x' in 'generated column function'"),
        ("b int as (t.a)", "Unknown column 't.a' in 'generated column function'"),
        (
            "b int as (c), c int as (a)",
            "Generated column can refer only to generated columns defined prior to it.",
        ),
        ("b int as (b + 1)", "Generated column can refer only to generated columns defined prior to it."),
        ("b int as (a + @x)", "Generated column expression cannot contain variable."),
        ("b int as (@@version_comment)", "Generated column expression cannot contain variable."),
        ("b int as (a + (select 1))", "Generated column does not support subquery."),
        ("b int as (a in (select 1))", "Generated column does not support subquery."),
        ("b int as (array_count(x -> x, [1]))", "Generated column does not support lambda."),
        ("b datetime as (now())", "Expression of generated column 'b' contains a disallowed function:'now'"),
        ("b datetime as (CURRENT_TIMESTAMP)", "contains a disallowed function:'current_timestamp'"),
        ("b double as (abs(rand()))", "contains a disallowed function:'rand'"),
        ("b array<int> as (array_shuffle([a, 1]))", "contains a disallowed function:'array_shuffle'"),
        ("b bigint as (unix_timestamp())", "contains a disallowed function:'unix_timestamp'"),
        ("b int as (rank() over ())", "contains a disallowed function:'rank'"),
        ("b int as (grouping(a))", "contains a disallowed function:'grouping'"),
        ("b int as (a) default '1'", "Generated columns cannot have default value."),
        ("b bigint not null as (a) auto_increment", "Generated columns cannot be auto_increment."),
        ("b int as (a) virtual", "leave VIRTUAL out"),
        (
            "i bigint not null auto_increment, b int as (i)",
            "Generated column 'b' cannot refer to auto-increment column.",
        ),
    ];
    for (columns, text) in named {
        let error = wrong(&table(columns));
        assert!(error.message.contains(text), "{columns}: {error}");
    }
    assert_eq!(wrong(&table("b int as (")).code, ErrorCode::Syntax);
    assert_eq!(wrong(&table("b int as (a, a)")).code, ErrorCode::Syntax);
    assert_eq!(wrong(&table("b int generated as (a)")).code, ErrorCode::Syntax);
    def(&table("b bigint as (unix_timestamp(c)), c datetime"));
}

#[test]
fn keys_partitions_and_values_that_replace_may_be_generated() {
    let folds = |column: &str| {
        format!(
            "create table t (a int, k int as (a + 1), {column}) aggregate key(a, k) distributed by hash(a) buckets 1"
        )
    };
    def(&folds("v int replace as (a + 1)"));
    def(&folds("v int replace_if_not_null as (k + 1), s int sum"));
    let error = wrong(&folds("v int sum as (a + 1)"));
    assert!(
        error.message.contains("value columns of replace and replace_if_not_null aggregation type."),
        "{error}"
    );
    def(
        "create table t (a int, k int as (abs(a)) not null, v int) unique key(a, k) distributed by hash(k) buckets 1",
    );
    let parted = def("create table t (a datetime, d date as (date(a)) not null) duplicate key(a)
         auto partition by range (date_trunc(d, 'month')) () distributed by hash(a) buckets 1");
    assert!(parted.partitioning.partitions().is_some_and(|partitions| partitions.auto.is_some()));
}

#[test]
fn what_others_are_computed_from_stays_as_it_is() {
    let table = def(&format!(
        "create table t (a int, b int, c int as (a + b), d int as (c + 1), e varchar(5), f string as (upper(e))) {REST}"
    ));
    for (clause, text) in [
        ("add column g int as (a + 1)", "Not supporting alter table add generated columns."),
        ("add column (g int as (a + 1), h int)", "Not supporting alter table add generated columns."),
        ("modify column d int as (a + 1)", "Not supporting alter table modify generated columns."),
        ("modify column d int", "Not supporting alter table modify generated columns."),
        ("modify column b int as (a)", "Not supporting alter table modify generated columns."),
        ("modify column b bigint", "column 'b' has a generated column dependency on :[c]"),
        ("drop column b", "Column 'b' has a generated column dependency on :[c]"),
        ("drop column c", "Column 'c' has a generated column dependency on :[d]"),
        (
            "rename column c x",
            "Cannot rename column, because column 'c' has a generated column dependency on :[d]",
        ),
        (
            "order by (a, d, b, c, e, f)",
            "The specified column order is incorrect, `d` should come after `c`, because both of them are generated columns, \
             and `d` refers to `c`.",
        ),
    ] {
        let error = try_alter(&table, clause).unwrap_err();
        assert!(error.message.contains(text), "{clause}: {error}");
    }
    let changed = altered(
        &table,
        "modify column e varchar(9), rename column d x, drop column x, drop column c, rename column b y, drop column y",
    );
    assert_eq!(names(&changed), ["a", "e", "f"]);
    assert_eq!(names(&altered(&table, "order by (a, c, d, b, f, e)"))[1..4], ["c", "d", "b"]);
}
