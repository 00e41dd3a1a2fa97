use crate::{Statement, parse, show_create_table};
use tributary_types::{DbId, SqlError, TableDef, TableId};

fn table(sql: &str) -> Result<TableDef, SqlError> {
    match parse(sql)? {
        Statement::CreateTable(create) => create.to_def("d", DbId(1), TableId(7)),
        other => panic!("{other:?}"),
    }
}

fn by(clause: &str) -> Result<TableDef, SqlError> {
    table(&format!(
        "CREATE TABLE t (d DATE, i INT, v VARCHAR(10), at DATETIME(3), f DOUBLE, s STRING, b BOOLEAN NOT NULL) \
         DUPLICATE KEY(d) {clause} DISTRIBUTED BY HASH(d) BUCKETS 1"
    ))
}

/// The lines of the clause printed by SHOW CREATE TABLE, which creates the same table again.
fn shown(clause: &str) -> Vec<String> {
    let def = by(clause).unwrap_or_else(|error| panic!("{clause}: {error}"));
    let text = show_create_table(&def);
    let again = table(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let names = |def: &TableDef| {
        let partitions = def.partitioning.partitions().unwrap();
        partitions.list.iter().map(|it| (it.name.clone(), it.rows.clone())).collect::<Vec<_>>()
    };
    assert_eq!(names(&again), names(&def), "{text}");
    let lines = text.lines().skip_while(|line| !line.starts_with("PARTITION BY"));
    lines.take_while(|line| !line.starts_with("DISTRIBUTED")).map(str::to_owned).collect()
}

fn refusal(clause: &str) -> String {
    match by(clause) {
        Ok(def) => panic!("{clause} was taken: {}", show_create_table(&def)),
        Err(error) => error.to_string(),
    }
}

#[test]
fn ranges_are_written_in_three_forms() {
    let less = "PARTITION BY RANGE(d) (PARTITION p1 VALUES LESS THAN ('2020-01-01'), \
                PARTITION p2 VALUES [('2021-01-01'), ('2022-01-01')), \
                PARTITION p3 VALUES LESS THAN ('20210601'), PARTITION `p-4` VALUES LESS THAN MAXVALUE)";
    assert!(refusal(less).contains("is intersected with range"), "{}", refusal(less));
    let less = "PARTITION BY RANGE(d) (PARTITION p1 VALUES LESS THAN ('2020-01-01'), \
                PARTITION p2 VALUES [('2021-01-01'), ('2022-01-01')), \
                PARTITION p3 VALUES LESS THAN ('20210101') ('replication_num' = '1'), \
                PARTITION `p-4` VALUES LESS THAN MAXVALUE)";
    assert_eq!(
        shown(less),
        [
            "PARTITION BY RANGE(`d`)",
            "(PARTITION p1 VALUES [('0000-01-01'), ('2020-01-01')),",
            "PARTITION p2 VALUES [('2021-01-01'), ('2022-01-01')),",
            "PARTITION p3 VALUES [('2020-01-01'), ('2021-01-01')),",
            "PARTITION `p-4` VALUES [('2022-01-01'), (MAXVALUE)))",
        ]
    );
    assert_eq!(
        shown("PARTITION BY RANGE(i) (FROM (-10) TO (15) INTERVAL 10)"),
        [
            "PARTITION BY RANGE(`i`)",
            "(PARTITION p__10_0 VALUES [('-10'), ('0')),",
            "PARTITION p_0_10 VALUES [('0'), ('10')),",
            "PARTITION p_10_15 VALUES [('10'), ('15')))",
        ]
    );
    assert_eq!(
        shown("PARTITION BY RANGE(d) (FROM ('2000-11-14') TO ('2002-03-01') INTERVAL 1 YEAR)"),
        [
            "PARTITION BY RANGE(`d`)",
            "(PARTITION p_2000 VALUES [('2000-11-14'), ('2001-01-01')),",
            "PARTITION p_2001 VALUES [('2001-01-01'), ('2002-01-01')),",
            "PARTITION p_2002 VALUES [('2002-01-01'), ('2002-03-01')))",
        ]
    );
    assert_eq!(
        shown(
            "PARTITION BY RANGE(at) (FROM ('2024-02-28 22:00:00') TO ('2024-02-29 01:00:00') INTERVAL 2 HOUR)"
        ),
        [
            "PARTITION BY RANGE(`at`)",
            "(PARTITION p_2024022822 VALUES [('2024-02-28 22:00:00.000'), ('2024-02-29 00:00:00.000')),",
            "PARTITION p_2024022900 VALUES [('2024-02-29 00:00:00.000'), ('2024-02-29 01:00:00.000')))",
        ]
    );
    let weeks = shown("PARTITION BY RANGE(d) (FROM ('2023-12-27') TO ('2024-01-09') INTERVAL 1 WEEK)");
    assert_eq!(
        weeks[1..],
        [
            "(PARTITION p_2023_52 VALUES [('2023-12-27'), ('2024-01-01')),",
            "PARTITION p_2024_01 VALUES [('2024-01-01'), ('2024-01-08')),",
            "PARTITION p_2024_02 VALUES [('2024-01-08'), ('2024-01-09')))",
        ]
    );
    assert_eq!(
        shown(
            "PARTITION BY RANGE(i, d) (PARTITION a VALUES LESS THAN (5), PARTITION b VALUES LESS THAN (5, '2020-01-01'))"
        ),
        [
            "PARTITION BY RANGE(`i`, `d`)",
            "(PARTITION a VALUES [('-2147483648', '0000-01-01'), ('5', '0000-01-01')),",
            "PARTITION b VALUES [('5', '0000-01-01'), ('5', '2020-01-01')))",
        ]
    );
}

#[test]
fn lists_have_values_of_one_column_or_several() {
    assert_eq!(
        shown(
            "PARTITION BY LIST(v) (PARTITION p1 VALUES IN ('Beijing', \"a\\\"b\"), PARTITION p2 VALUES IN ((NULL)), PARTITION rest)"
        ),
        [
            "PARTITION BY LIST(`v`)",
            "(PARTITION p1 VALUES IN (\"Beijing\",\"a\\\"b\"),",
            "PARTITION p2 VALUES IN ((NULL)),",
            "PARTITION rest)",
        ]
    );
    assert_eq!(
        shown("PARTITION BY LIST(i, b) (PARTITION p1 VALUES IN ((1, true), (-2, 'false')))"),
        ["PARTITION BY LIST(`i`, `b`)", "(PARTITION p1 VALUES IN ((\"1\",\"true\"),(\"-2\",\"false\")))"]
    );
}

#[test]
fn partitions_that_loads_make_are_declared_by_function_or_list() {
    for (written, shown) in [
        (
            "PARTITION BY RANGE (DATE_TRUNC(`at`, 'Month')) ()",
            "AUTO PARTITION BY RANGE (date_trunc(`at`, 'month'))\n()\n",
        ),
        (
            "AUTO PARTITION BY RANGE (date_trunc('hour', at))",
            "AUTO PARTITION BY RANGE (date_trunc(`at`, 'hour'))\n()\n",
        ),
        ("AUTO PARTITION BY LIST (v, at) ()", "AUTO PARTITION BY LIST (`v`, `at`)\n()\n"),
        (
            "AUTO PARTITION BY LIST (v) (PARTITION p VALUES IN ('a'))",
            "AUTO PARTITION BY LIST (`v`)\n(PARTITION p VALUES IN (\"a\"))\n",
        ),
    ] {
        let sql = format!("CREATE TABLE t (at DATETIME NOT NULL, v VARCHAR(10)) DUPLICATE KEY(at) {written}");
        let text = show_create_table(&table(&sql).unwrap_or_else(|error| panic!("{sql}: {error}")));
        assert!(text.contains(shown), "{text}");
        assert_eq!(show_create_table(&table(&text).unwrap()), text);
    }
}

#[test]
fn what_cannot_be_a_partition_is_refused_in_the_words_of_doris() {
    let cases = [
        ("RANGE(x) ()", "partition key x is not exists"),
        ("RANGE(d, D) ()", "Duplicated partition column D"),
        ("RANGE(f) ()", "Floating point type column can not be partition column"),
        ("LIST(s) ()", "String Type should not be used in partition column[s]."),
        ("RANGE(v) ()", "cannot be a range partition key"),
        (
            "RANGE(i) (PARTITION p VALUES LESS THAN (1), PARTITION P VALUES LESS THAN (2))",
            "Duplicated named partition: P",
        ),
        (
            "RANGE(i) (PARTITION p VALUES [(10), (20)), PARTITION q VALUES [(15), (30)))",
            "Range [types: [INT]; keys: [10]; ..types: [INT]; keys: [20]; ) is intersected with range: \
             [types: [INT]; keys: [15]; ..types: [INT]; keys: [30]; )",
        ),
        ("RANGE(i) (PARTITION p VALUES [(10), (10)))", "The lower values must smaller than upper values"),
        ("RANGE(i) (PARTITION p VALUES IN (1))", "partitions types is invalid"),
        ("LIST(i) (PARTITION p VALUES LESS THAN (1))", "partitions types is invalid"),
        ("LIST(i) (FROM (1) TO (2) INTERVAL 1)", "partitions types is invalid"),
        (
            "RANGE(i) (PARTITION p VALUES LESS THAN (1), FROM (1) TO (2) INTERVAL 1)",
            "partitions types is invalid",
        ),
        (
            "LIST(i) (PARTITION p VALUES IN (1, 2), PARTITION q VALUES IN (3, 1))",
            "The partition key[1] in partition item[3;1]",
        ),
        ("LIST(b) (PARTITION p VALUES IN ((NULL)))", "column 'b' is NOT NULL"),
        (
            "LIST(v) (PARTITION p VALUES IN ('12345678901'))",
            "length exceeds type length: 11 > 10 for VARCHAR",
        ),
        ("RANGE(i) (PARTITION p VALUES LESS THAN (3000000000))", "it is no int"),
        ("RANGE(d) (PARTITION p VALUES LESS THAN ('2021-02-30'))", "it is no date"),
        ("RANGE(i) (PARTITION p VALUES LESS THAN (1, 2))", "more than partition column number"),
        ("RANGE(i) (FROM (5) TO (5) INTERVAL 1)", "start number should less than end number."),
        (
            "RANGE(d) (FROM ('2021-01-01') TO ('2020-01-01') INTERVAL 1 DAY)",
            "start time should less than end time.",
        ),
        ("RANGE(d) (FROM ('2021-01-01') TO ('2022-01-01') INTERVAL 0 DAY)", "must be larger than zero."),
        ("RANGE(d) (FROM ('2021-01-01') TO ('2022-01-01') INTERVAL 1)", "time style is illegal."),
        ("RANGE(d) (FROM ('1000-01-01') TO ('2022-01-01') INTERVAL 1 DAY)", "should not exceed:4096"),
        (
            "RANGE(d, i) (FROM ('2021-01-01') TO ('2022-01-01') INTERVAL 1 DAY)",
            "must be one but start column size",
        ),
        ("RANGE(i) (PARTITION `1p` VALUES LESS THAN (1))", "Incorrect partition name '1p'"),
        ("RANGE(date_trunc(d, 'day')) ()", "AUTO RANGE PARTITION doesn't support NULL column"),
        ("RANGE(date_trunc(d, 'age')) ()", "partition expr date_trunc(d, 'age') is illegal!"),
        ("RANGE(floor(d, 'day')) ()", "partition expr floor(d, 'day') is illegal!"),
        ("LIST(date_trunc(d, 'day')) ()", "internal catalog does not support functions in 'LIST' partition"),
    ];
    for (clause, text) in cases {
        let refused = refusal(&format!("PARTITION BY {clause}"));
        assert!(refused.contains(text), "{clause}: {refused}");
    }
    let bare = table("CREATE TABLE t (d DATE NOT NULL) AUTO PARTITION BY RANGE(d) ()").unwrap_err();
    assert!(bare.to_string().contains("Auto Range Partition need function expression"), "{bare}");
    let hours =
        table("CREATE TABLE t (d DATE NOT NULL) PARTITION BY RANGE(date_trunc(d, 'hour')) ()").unwrap_err();
    assert!(hours.to_string().contains("is illegal!"), "{hours}");
    let unique = table("CREATE TABLE t (k INT, d DATE) UNIQUE KEY(k) PARTITION BY RANGE(d) ()").unwrap_err();
    assert!(unique.to_string().contains("partition column must be KEY column: d"), "{unique}");
}
