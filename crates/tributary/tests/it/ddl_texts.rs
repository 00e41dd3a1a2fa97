//! Refusals of statements about partitions and columns, in Doris's words, and the forms of partitions that no other test has.

use crate::support::{Client, Curl, Server};

/// A statement that is refused with errno 1105 and a text that has this one.
type Refused = (&'static str, &'static str);

fn refuse(client: &mut Client, refused: &[Refused]) {
    refused.iter().for_each(|(statement, text)| client.refused(statement, 1105, text));
}

/// Columns and a key of a table, and the PARTITION BY that it can't have.
const PARTITIONS: &[(&str, &str, &str)] = &[
    (
        "k INT, f FLOAT",
        "RANGE(f) (PARTITION p VALUES LESS THAN (1))",
        "Floating point type column can not be partition column",
    ),
    (
        "k INT, s STRING",
        "LIST(s) (PARTITION p VALUES IN ('a'))",
        "String Type should not be used in partition column[s].",
    ),
    (
        "k INT, a ARRAY<INT>",
        "LIST(a) (PARTITION p VALUES IN ('a'))",
        "Complex type column can't be partition column: ARRAY",
    ),
    (
        "k INT, b BITMAP",
        "LIST(b) (PARTITION p VALUES IN ('a'))",
        "Complex type column can't be partition column: BITMAP",
    ),
    ("k INT", "RANGE(x) (PARTITION p VALUES LESS THAN (1))", "partition key x is not exists"),
    ("k INT", "RANGE(k, k) (PARTITION p VALUES LESS THAN (1))", "Duplicated partition column k"),
    (
        "k INT",
        "RANGE(k) (PARTITION p VALUES LESS THAN (1), PARTITION p VALUES LESS THAN (2))",
        "Duplicated named partition: p",
    ),
    (
        "k INT, d DATE",
        "RANGE(d) (PARTITION p VALUES LESS THAN ('2020-01-01'), FROM ('2020-01-01') TO ('2021-01-01') INTERVAL 1 MONTH)",
        "partitions types is invalid, expected FIXED or LESS in range partitions and IN in list partitions",
    ),
    (
        "k INT",
        "LIST(k) (PARTITION p VALUES LESS THAN (1))",
        "partitions types is invalid, expected FIXED or LESS in range partitions and IN in list partitions",
    ),
    (
        "k INT, d DATE",
        "RANGE(d) (FROM ('2021-01-01') TO ('2020-01-01') INTERVAL 1 MONTH)",
        "Multi build partition start time should less than end time.",
    ),
    (
        "k INT",
        "RANGE(k) (FROM (10) TO (1) INTERVAL 1)",
        "Multi build partition start number should less than end number.",
    ),
    (
        "k INT",
        "RANGE(k) (FROM (1) TO (10) INTERVAL 0)",
        "Multi partition time interval must be larger than zero.",
    ),
    (
        "k INT, d DATE",
        "RANGE(k, d) (FROM (1, 2) TO (10, 2) INTERVAL 1)",
        "partition column number in multi partition clause must be one but start column size is 2, end column size is 2.",
    ),
    (
        "k INT, d DATE",
        "RANGE(d) (FROM ('x') TO ('2020-01-01') INTERVAL 1 DAY)",
        "Multi build partition start or end time style is illegal.",
    ),
    (
        "k INT",
        "RANGE(k) (FROM (1) TO (10000) INTERVAL 1)",
        "The number of Multi partitions too much, should not exceed:4096",
    ),
    (
        "k INT",
        "RANGE(k) (PARTITION a VALUES [(10), (20)), PARTITION b VALUES [(15), (30)))",
        "Range [types: [INT]; keys: [10]; ..types: [INT]; keys: [20]; ) is intersected with range: [types: [INT]; keys: [15]; ..types: [INT]; keys: [30]; )",
    ),
    (
        "k INT",
        "LIST(k) (PARTITION a VALUES IN (1, 2), PARTITION b VALUES IN (2, 3))",
        "The partition key[2] in partition item[2;3] is conflict with current partitionKeys",
    ),
    (
        "k INT, c CHAR(3)",
        "LIST(c) (PARTITION a VALUES IN ('abcdef'))",
        "Partition value abcdef's length exceeds type length: 6 > 3 for CHAR",
    ),
    ("k INT, d DATE", "RANGE(date_trunc(d, 'month')) ()", "AUTO RANGE PARTITION doesn't support NULL column"),
    ("k INT, d DATE NOT NULL", "RANGE(date_trunc(d, 'moon')) ()", "is illegal!"),
    ("k INT, d DATE NOT NULL", "RANGE(date_trunc(d, 'hour')) ()", "is illegal!"),
    ("k INT NOT NULL", "RANGE(date_trunc(k, 'month')) ()", "is illegal!"),
    (
        "k INT, d DATE NOT NULL",
        "LIST(date_trunc(d, 'month')) ()",
        "internal catalog does not support functions in 'LIST' partition",
    ),
];

#[test]
fn partitions_that_a_table_cannot_have_are_refused() {
    let server = Server::shared();
    let mut db = server.database();
    let create = |columns: &str, by: &str| {
        format!(
            "CREATE TABLE t ({columns}) DUPLICATE KEY(k) PARTITION BY {by} DISTRIBUTED BY HASH(k) BUCKETS 1"
        )
    };
    for (columns, by, text) in PARTITIONS {
        db.client.refused(&create(columns, by), 1105, text);
    }
    let of_column = "CREATE TABLE t (k INT, d DATE NOT NULL) DUPLICATE KEY(k) AUTO PARTITION BY RANGE(d) ()";
    db.client.refused(of_column, 1105, "Auto Range Partition need function expression");
    db.client.ok("SET create_table_partition_max_num = 11");
    let months = create("k INT, d DATE", "RANGE(d) (FROM ('2000-01-01') TO ('2001-01-01') INTERVAL 1 MONTH)");
    db.client.refused(
        &months,
        1105,
        "The number of partitions to be created is [12], exceeding the maximum value of [11]. Creating too many partitions \
         can be time-consuming. If necessary, You can set the session variable 'create_table_partition_max_num' to a larger value.",
    );
    db.client.refused(
        &months
            .replace("DISTRIBUTED BY HASH(k) BUCKETS 1", "AS SELECT 1 AS k, CAST('2000-01-01' AS DATE) AS d")
            .replace("(k INT, d DATE) ", ""),
        1105,
        "exceeding the maximum value of [11]",
    );
    db.client.ok("SET create_table_partition_max_num = 12");
    db.client.ok(&months);
    db.client.refused("SET allow_partition_column_nullable = false", 1231, "it accepts 'true'");
}

#[test]
fn changes_of_partitions_and_their_lists_are_refused() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("CREATE TABLE cities (id INT, city VARCHAR(9)) DUPLICATE KEY(id) PARTITION BY LIST(city)
        (PARTITION p1 VALUES IN ('Ulm'), PARTITION none VALUES IN ((NULL))) DISTRIBUTED BY HASH(id) BUCKETS 2");
    client.ok("CREATE TABLE plain (id INT, v INT) DUPLICATE KEY(id)");
    client.ok("CREATE TABLE dyn (id INT, d DATE) DUPLICATE KEY(id) PARTITION BY RANGE(d) () DISTRIBUTED BY HASH(id) BUCKETS 1
        PROPERTIES ('dynamic_partition.enable' = 'true', 'dynamic_partition.time_unit' = 'DAY', 'dynamic_partition.start' = '-3',
        'dynamic_partition.end' = '3', 'dynamic_partition.prefix' = 'p', 'dynamic_partition.buckets' = '1')");
    let by_hand = "Cannot add/drop partition on a Dynamic Partition Table, Use command `ALTER TABLE tbl_name SET (\"dynamic_partition.enable\" = \"false\")` firstly.";
    let columns = "Only the columns of PartitionId/PartitionName/State/Buckets/ReplicationNum/LastConsistencyCheckTime are supported.";
    for (statement, text) in [
        (
            "ALTER TABLE cities ADD PARTITION p2 VALUES IN ('Ulm')",
            "The partition key[Ulm] in partition item[Ulm] is conflict with current partitionKeys",
        ),
        ("ALTER TABLE cities ADD PARTITION p2 VALUES LESS THAN ('x')", "partitions types is invalid"),
        (
            "ALTER TABLE cities ADD PARTITION p2 VALUES IN ('x') DISTRIBUTED BY HASH(city) BUCKETS 2",
            "Cannot assign hash distribution with different distribution cols. new is: [city] default is: [id]",
        ),
        (
            "ALTER TABLE cities ADD PARTITION p2 VALUES IN ('x') DISTRIBUTED BY RANDOM BUCKETS 2",
            "Cannot assign different distribution type. default is: HASH",
        ),
        (
            "ALTER TABLE cities ADD TEMPORARY PARTITION p2 VALUES IN ('x') DISTRIBUTED BY RANDOM",
            "Cannot assign different distribution type. default is: HASH",
        ),
        ("ALTER TABLE dyn ADD PARTITION x VALUES LESS THAN ('2000-01-01')", by_hand),
        ("ALTER TABLE dyn DROP PARTITION x", by_hand),
        ("SHOW PARTITIONS FROM cities WHERE DataSize = '0'", columns),
        ("SHOW PARTITIONS FROM cities WHERE PartitionName = 'p1' AND `Range` LIKE '%'", columns),
    ] {
        client.refused(statement, 1105, text);
    }
    client.ok(
        "ALTER TABLE cities ADD PARTITION p2 VALUES IN ('Bonn', 'Kiel') DISTRIBUTED BY HASH(ID) BUCKETS 5",
    );
    client.ok("ALTER TABLE cities ADD PARTITION others");
    client.ok("INSERT INTO cities VALUES (1, 'Ulm'), (2, NULL), (3, 'Kiel'), (4, 'Rome')");
    let names = |client: &mut Client, tail: &str| {
        let shown = client.table(&format!("SHOW PARTITIONS FROM cities {tail}")).rows;
        shown.into_iter().map(|row| row[1].clone().expect("a name")).collect::<Vec<_>>()
    };
    assert_eq!(names(client, ""), ["p1", "none", "p2", "others"]);
    assert_eq!(names(client, "WHERE PartitionName LIKE 'p%' ORDER BY PartitionName DESC LIMIT 1"), ["p2"]);
    assert_eq!(
        names(
            client,
            "WHERE State = 'NORMAL' AND PartitionId > 0 AND Buckets = 2 ORDER BY PartitionId LIMIT 2"
        ),
        ["p1", "none"]
    );
    for (partition, id) in [("p1", "1"), ("none", "2"), ("p2", "3"), ("others", "4")] {
        assert_eq!(
            client.rows(&format!("SELECT id FROM cities PARTITION ({partition})")),
            [id],
            "{partition}"
        );
    }
    let load = |table: &str| {
        let load = Curl::stream_load(&server, &db.name, table).header("load_to_single_tablet: true");
        load.header("column_separator:,").body("9,9\n").load()
    };
    assert!(
        load("cities").failure().contains(
            "if load_to_single_tablet set to true, the olap table must be with random distribution"
        )
    );
    load("plain").success();
    // The only partition of a table without is called as the table is.
    client.ok("INSERT INTO plain VALUES (1, 1)");
    client.ok("ALTER TABLE plain MODIFY PARTITION plain SET ('replication_num' = '1')");
    client.ok("TRUNCATE TABLE plain PARTITION (plain)");
    assert_eq!(client.value("SELECT COUNT(*) FROM plain"), "0");
}

#[test]
fn properties_of_dynamic_partitions_that_cannot_be_have_the_numbers_of_doris() {
    let server = Server::shared();
    let mut db = server.database();
    let given = |properties: &str| {
        format!(
            "CREATE TABLE t (id INT, d DATE) DUPLICATE KEY(id) PARTITION BY RANGE(d) () DISTRIBUTED BY HASH(id) BUCKETS 1
             PROPERTIES ('dynamic_partition.enable' = 'true', {properties})"
        )
    };
    let (unit, end, prefix) = (
        "'dynamic_partition.time_unit' = 'DAY'",
        "'dynamic_partition.end' = '3'",
        "'dynamic_partition.prefix' = 'p'",
    );
    for (properties, number, text) in [
        (
            format!("'dynamic_partition.time_unit' = 'MOON', {end}, {prefix}"),
            5065,
            "Unsupported time unit MOON. Expect HOUR/DAY/WEEK/MONTH/YEAR.",
        ),
        (
            format!("{unit}, {end}, {prefix}, 'dynamic_partition.start' = '3'"),
            5066,
            "Dynamic partition start must less than 0",
        ),
        (
            format!("{unit}, {end}, {prefix}, 'dynamic_partition.start' = 'x'"),
            5066,
            "Invalid dynamic partition start x",
        ),
        (
            format!("{unit}, {prefix}, 'dynamic_partition.end' = '-3'"),
            5066,
            "Dynamic partition end must greater than 0",
        ),
        (format!("{unit}, {prefix}, 'dynamic_partition.end' = 'x'"), 5066, "Invalid dynamic partition end x"),
        (format!("{unit}, {prefix}, 'dynamic_partition.end' = ''"), 5066, "Dynamic partition end is empty"),
        (
            format!("{unit}, {end}, {prefix}, 'dynamic_partition.buckets' = '0'"),
            5067,
            "Dynamic partition buckets must greater than 0",
        ),
        (
            format!("{unit}, {end}, {prefix}, 'dynamic_partition.buckets' = 'x'"),
            5067,
            "Invalid dynamic partition buckets x",
        ),
        (format!("{unit}, {prefix}"), 1105, "Must assign dynamic_partition.end properties"),
        (format!("{unit}, {end}"), 1105, "Must assign dynamic_partition.prefix properties"),
    ] {
        db.client.refused(&given(&properties), number, text);
    }
}

#[test]
fn a_load_that_would_make_more_partitions_than_a_table_may_have_fails() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok("CREATE TABLE t (id INT NOT NULL) DUPLICATE KEY(id) AUTO PARTITION BY LIST (id) () DISTRIBUTED BY HASH(id) BUCKETS 1");
    let ids: Vec<String> = (0..2001).map(|id| id.to_string()).collect();
    let text = "create partition failed. partition numbers will exceed limit variable max_auto_partition_num";
    let error = db.client.error(&format!("INSERT INTO t VALUES ({})", ids.join("), (")));
    assert!(error.message.contains(text), "{error}");
    let reply = Curl::stream_load(&server, &db.name, "t").body(&ids.join("\n")).load();
    assert!(reply.failure().contains(text), "{}", reply.text);
    db.client.ok("INSERT INTO t VALUES (7)");
    assert_eq!(db.client.rows("SELECT * FROM t"), ["7"]);
}

const COLUMNS: &[Refused] = &[
    ("ALTER TABLE t ADD COLUMN v INT", "Can not add column which already exists in base table: v"),
    (
        "ALTER TABLE t ADD COLUMN x INT, ADD COLUMN X INT NOT NULL DEFAULT '1'",
        "Repeatedly add same column with different definition: X",
    ),
    ("ALTER TABLE t ADD COLUMN x INT, ADD COLUMN x INT", "Repeatedly add column: x"),
    ("ALTER TABLE t ADD COLUMN (x INT, x INT)", "Repeatedly add column: x"),
    ("ALTER TABLE t ADD COLUMN x INT AFTER zz", "Column[zz] does not found"),
    ("ALTER TABLE t ADD COLUMN x BIGINT NOT NULL AUTO_INCREMENT", "Can not add auto-increment column x"),
    ("ALTER TABLE t ADD COLUMN x HLL", "HLL type column can only be in Aggregation data model table: x"),
    ("ALTER TABLE t ADD COLUMN x BITMAP BITMAP_UNION", "BITMAP_UNION must be used in AGG_KEYS"),
    (
        "ALTER TABLE t ADD COLUMN x INT SUM",
        "Can not assign aggregation method on column in Duplicate data model table: x",
    ),
    (
        "ALTER TABLE u ADD COLUMN x INT SUM",
        "Can not assign aggregation method on column in Unique data model table: x",
    ),
    ("ALTER TABLE none ADD COLUMN x INT KEY", "Duplicate table without keys do not support add key column!"),
    ("ALTER TABLE t ADD COLUMN x INT FIRST", "Invalid column order. value should be after key. index[t]"),
    ("ALTER TABLE t ADD COLUMN x INT AFTER k", "Invalid column order. value should be after key. index[t]"),
    (
        "ALTER TABLE t ADD COLUMN x INT KEY AFTER v",
        "Invalid column order. value should be after key. index[t]",
    ),
    (
        "ALTER TABLE a ADD COLUMN x INT SUM DEFAULT '1'",
        "The default value of 'x' with SUM aggregation function must be zero",
    ),
    ("ALTER TABLE a ADD COLUMN x INT KEY SUM", "Can not assign aggregation method on key column: x"),
    ("ALTER TABLE t DROP COLUMN zz", "Column does not exists: zz"),
    ("ALTER TABLE t DROP COLUMN d", "Partition column[d] cannot be dropped. index[t]"),
    ("ALTER TABLE t DROP COLUMN k", "Distribution column[k] cannot be dropped. index[t]"),
    ("ALTER TABLE one DROP COLUMN k", "No key column left. index[one]"),
    ("ALTER TABLE u DROP COLUMN k", "Can not drop key column in Unique data model table"),
    (
        "ALTER TABLE a DROP COLUMN k2",
        "Can not drop key column when table has value column with REPLACE aggregation method",
    ),
    ("ALTER TABLE t MODIFY COLUMN zz INT", "Column[zz] does not exists"),
    ("ALTER TABLE t MODIFY COLUMN d DATETIME", "Can not modify partition column[d]. index[t]"),
    ("ALTER TABLE t MODIFY COLUMN k BIGINT KEY", "Can not modify distribution column[k]. index[t]"),
    ("ALTER TABLE t MODIFY COLUMN v DATETIME", "Can not change INT to DATETIME"),
    (
        "ALTER TABLE t MODIFY COLUMN v VARCHAR(2)",
        "Can not change from wider type int to narrower type varchar(2)",
    ),
    (
        "ALTER TABLE t MODIFY COLUMN s VARCHAR(5)",
        "Shorten type length is prohibited, srcType=varchar(10), dstType=varchar(5)",
    ),
    ("ALTER TABLE t MODIFY COLUMN s VARCHAR(20) NOT NULL", "Can not change from nullable to non-nullable"),
    ("ALTER TABLE t MODIFY COLUMN v BIGINT DEFAULT '1'", "Can not change default value"),
    ("ALTER TABLE t MODIFY COLUMN df BIGINT", "Can not change default value"),
    ("ALTER TABLE a MODIFY COLUMN v BIGINT", "Can not change aggregation type"),
    ("ALTER TABLE a MODIFY COLUMN v BIGINT MAX", "Can not change aggregation type"),
    ("ALTER TABLE t MODIFY COLUMN v INT KEY", "Can not change aggregation type"),
    ("ALTER TABLE a MODIFY COLUMN k2 INT KEY SUM", "Can not assign aggregation method on key column: k2"),
    ("ALTER TABLE t MODIFY COLUMN v INT", "Nothing is changed. please check your alter stmt"),
    ("ALTER TABLE t MODIFY COLUMN k2 INT KEY AFTER v", "Can not modify key column k2 after value column"),
    (
        "ALTER TABLE t MODIFY COLUMN st STRUCT<a:INT>",
        "Cannot reduce struct fields from struct<a:int,b:varchar(5)> to struct<a:int>",
    ),
    (
        "ALTER TABLE t MODIFY COLUMN st STRUCT<a:INT, x:VARCHAR(5)>",
        "Cannot rename struct field from 'b' to 'x'",
    ),
    (
        "ALTER TABLE t MODIFY COLUMN st STRUCT<a:BIGINT, b:VARCHAR(5)>",
        "Cannot change int to bigint in nested types",
    ),
    ("ALTER TABLE t MODIFY COLUMN ar ARRAY<INT>", "Cannot change varchar(5) to int in nested types"),
    (
        "ALTER TABLE t MODIFY COLUMN ar ARRAY<VARCHAR(3)>",
        "Shorten type length is prohibited, srcType=varchar(5), dstType=varchar(3)",
    ),
    ("ALTER TABLE t MODIFY COLUMN st STRUCT<a:INT, b:VARCHAR(5), a:INT>", "Duplicate field name a in struct"),
    ("ALTER TABLE t MODIFY COLUMN ar MAP<INT, INT>", "Can not change ARRAY to MAP"),
    ("ALTER TABLE t ORDER BY (k2, v, k, d, s, st, ar, df)", "Cannot add key column k after value column"),
    ("ALTER TABLE t ORDER BY (k, k2)", "Reorder stmt should contains all columns"),
    ("ALTER TABLE t ORDER BY (k, k2, v, d, s, st, ar, zz)", "Column[zz] not exists"),
    ("ALTER TABLE t ORDER BY (k, k2, v, d, s, st, ar, ar)", "Reduplicative column[ar]"),
    ("CANCEL ALTER TABLE COLUMN FROM t", "Table[t] is not under SCHEMA_CHANGE."),
];

#[test]
fn changes_of_columns_are_refused() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok("CREATE TABLE t (k INT, k2 INT, v INT, d DATE, s VARCHAR(10), st STRUCT<a:INT, b:VARCHAR(5)>, ar ARRAY<VARCHAR(5)>,
        df INT DEFAULT '7') DUPLICATE KEY(k, k2) PARTITION BY RANGE(d) (FROM ('2000-01-01') TO ('2001-01-01') INTERVAL 1 MONTH)
        DISTRIBUTED BY HASH(k) BUCKETS 1");
    db.client.ok("CREATE TABLE u (k INT, v INT) UNIQUE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1");
    db.client.ok("CREATE TABLE a (k INT, k2 INT, v INT SUM, r INT REPLACE) AGGREGATE KEY(k, k2) DISTRIBUTED BY HASH(k) BUCKETS 1");
    db.client.ok("CREATE TABLE one (k INT, v INT) DUPLICATE KEY(k) DISTRIBUTED BY RANDOM");
    db.client.ok("CREATE TABLE none (k INT, v INT) DISTRIBUTED BY HASH(k) BUCKETS 1
        PROPERTIES ('enable_duplicate_without_keys_by_default' = 'true')");
    let before = db.client.rows("DESC t");
    refuse(&mut db.client, COLUMNS);
    assert_eq!(db.client.rows("DESC t"), before);
}
