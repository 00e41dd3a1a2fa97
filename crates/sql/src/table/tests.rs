mod generated;
mod rollups;

use super::*;
use crate::ast::{AlterOp, Statement};
use crate::parse;
use tributary_types::{GroupCommitMode, KeyModel};

fn try_def(sql: &str) -> Result<TableDef, SqlError> {
    match parse(sql)? {
        Statement::CreateTable(create) => create.to_def("d", DbId(3), TableId(7)),
        other => panic!("{other:?}"),
    }
}

fn def(sql: &str) -> TableDef {
    try_def(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn wrong(sql: &str) -> SqlError {
    try_def(sql).err().unwrap_or_else(|| panic!("{sql} is a table"))
}

/// Applies all clauses of an ALTER TABLE.
fn try_alter(def: &TableDef, clauses: &str) -> Result<TableDef, SqlError> {
    match parse(&format!("alter table t {clauses}"))? {
        Statement::AlterTable { ops, .. } => {
            ops.iter().try_fold(def.clone(), |def: TableDef, op: &AlterOp| apply_alter(&def, op))
        }
        other => panic!("{other:?}"),
    }
}

fn altered(def: &TableDef, clauses: &str) -> TableDef {
    try_alter(def, clauses).unwrap_or_else(|error| panic!("{clauses}: {error}"))
}

fn keys(def: &TableDef) -> Vec<&str> {
    def.schema.columns.iter().filter(|column| column.is_key).map(|column| column.name.as_str()).collect()
}

fn names(def: &TableDef) -> Vec<&str> {
    def.schema.columns.iter().map(|column| column.name.as_str()).collect()
}

const MANUAL: &str = r#"CREATE TABLE `dt` (`id` int(11) NOT NULL, `name` varchar(50) NULL, `score` int(11) NULL) ENGINE=OLAP
    DUPLICATE KEY(`id`) DISTRIBUTED BY HASH(`id`) BUCKETS 1
    PROPERTIES ("replication_num" = "1", "group_commit_mode" = "async_mode")"#;

#[test]
fn the_manuals_table_becomes_a_definition() {
    let def = def(MANUAL);
    assert_eq!((def.db.as_str(), def.name.as_str(), def.id, def.db_id), ("d", "dt", TableId(7), DbId(3)));
    assert_eq!(def.location, "tables/d/dt-7");
    assert_eq!(def.schema.version, SchemaVersion(1));
    assert_eq!(def.schema.next_column_id, ColumnId(4));
    assert_eq!(def.schema.columns[2].id, ColumnId(3));
    assert_eq!(keys(&def), ["id"]);
    assert_eq!(def.properties.group_commit_mode, GroupCommitMode::Async);
    assert_eq!(
        (def.properties.group_commit_interval_ms, def.properties.group_commit_data_bytes),
        (10_000, 64 << 20)
    );
    assert_eq!(def.keys, KeyModel::Duplicate { declared: true });
    assert!(def.schema.columns[1].nullable && !def.schema.columns[0].nullable);
}

#[test]
fn show_create_table_prints_doriss_layout() {
    assert_eq!(
        show_create_table(&def(MANUAL)),
        "CREATE TABLE `dt` (\n  `id` int NOT NULL,\n  `name` varchar(50) NULL,\n  `score` int NULL\n) ENGINE=OLAP\n\
         DUPLICATE KEY(`id`)\nDISTRIBUTED BY HASH(`id`) BUCKETS 1\nPROPERTIES (\n\
         \"replication_allocation\" = \"tag.location.default: 1\",\n\"light_schema_change\" = \"true\",\n\
         \"group_commit_interval_ms\" = \"10000\",\n\"group_commit_data_bytes\" = \"67108864\",\n\
         \"group_commit_mode\" = \"async_mode\"\n);"
    );
    let off = altered(&def(MANUAL), r#"set ("group_commit_mode" = "OFF_MODE")"#);
    assert!(!show_create_table(&off).contains("group_commit_mode"));
}

#[test]
fn limits_of_loads_are_properties_of_a_table() {
    let limited = altered(
        &def(MANUAL),
        r#"set ("max_load_rows_per_second" = "1000", "max_load_bytes_per_second" = "9")"#,
    );
    assert_eq!(limited.properties.max_load_rows_per_second, Some(1000));
    let printed = show_create_table(&limited);
    assert!(
        printed
            .contains("\"max_load_rows_per_second\" = \"1000\",\n\"max_load_bytes_per_second\" = \"9\"\n);")
    );
    assert_eq!(def(&printed).properties, limited.properties);
    let free =
        altered(&limited, r#"set ("max_load_rows_per_second" = "-1", "max_load_bytes_per_second" = "-1")"#);
    assert_eq!(free.properties, def(MANUAL).properties);
}

#[test]
fn a_printed_table_parses_to_the_same_table() {
    for sql in [
        MANUAL,
        r#"create table t (a int key, b string) comment 'it''s a \\ "comment"'"#,
        "create table t (a date default current_date, b datetime(3) default current_timestamp(3), c datetime default current_timestamp)
           duplicate key(a, b) distributed by random",
        r#"create table t (k varchar(10) not null default "a\"'\\b" comment 'x''y\n', v decimal(10,2) default 1.5, w json default null)
           duplicate key(k) distributed by hash(v, k) buckets auto
           properties ("compression" = "zstd", "bloom_filter_columns" = "k", "binlog.enable" = "false", "light_schema_change" = "false",
                       "time_series_compaction_goal_size_mbytes" = "1", "group_commit_interval_ms" = "0", "group_commit_data_bytes" = "1")"#,
        "create table t (a boolean default true, b tinyint default -1, c largeint, d float, e double default 1e3, f char(3), g `text`)
           duplicate key(a)",
    ] {
        let sql = sql.replace("`text`", "text");
        let first = def(&sql);
        let printed = show_create_table(&first);
        assert_eq!(def(&printed), first, "{printed}");
    }
}

#[test]
fn keys_are_derived_from_the_first_columns() {
    for (columns, expected) in [
        ("a int, b int, c int, d int", &["a", "b", "c"][..]),
        ("a bigint, b largeint, c largeint, d int", &["a", "b"]),
        ("a int, b varchar(10), c int", &["a", "b"]),
        ("a varchar(10), b int", &["a"]),
        ("a int, b double, c int", &["a"]),
        ("a int, b string, c int", &["a"]),
        ("a int, b json", &["a"]),
        ("a char(100), b int", &["a"]),
        ("a int, b char(100)", &["a"]),
    ] {
        let def = def(&format!("create table t ({columns})"));
        assert_eq!(keys(&def), expected, "{columns}");
        assert_eq!(def.keys, KeyModel::Duplicate { declared: false });
    }
    for columns in ["a double, b int", "a string", "a json"] {
        let error = wrong(&format!("create table t ({columns})"));
        assert!(error.message.contains("put another column first"), "{error}");
    }
    let keyless =
        def(r#"create table t (a string) properties ("enable_duplicate_without_keys_by_default" = "true")"#);
    assert!(keys(&keyless).is_empty());
    assert!(!show_create_table(&keyless).contains("DUPLICATE KEY"));
}

#[test]
fn key_columns_come_first_in_their_order_and_have_key_types() {
    assert_eq!(keys(&def("create table t (a int, B int, c int) duplicate key(A, b)")), ["a", "B"]);
    assert_eq!(keys(&def("create table t (a int key, b int key, c int)")), ["a", "b"]);
    for (sql, text) in [
        ("create table t (a int, b int) duplicate key(b)", "ordered prefix"),
        ("create table t (a int, b int) duplicate key(b, a)", "ordered prefix"),
        ("create table t (a int, b int key)", "ordered prefix"),
        ("create table t (a int key, b int key) duplicate key(a)", "column 'b' is marked KEY"),
        ("create table t (a int) duplicate key(x)", "column 'x'"),
        ("create table t (a int) duplicate key(a, a)", "Duplicate key column 'a'"),
        ("create table t (a double) duplicate key(a)", "use DECIMAL"),
        ("create table t (a string) duplicate key(a)", "use VARCHAR"),
    ] {
        assert!(wrong(sql).message.contains(text), "{sql}: {}", wrong(sql));
    }
}

#[test]
fn names_and_columns_are_checked_with_mysqls_numbers() {
    for (sql, number) in [
        ("create table `t$` (a int)", 1103),
        ("create table t (`a b` int)", 1166),
        ("create table t (a int, A int)", 1060),
        ("create table t (a int) distributed by hash(b)", 1105),
        ("create table t (a int, b double) distributed by hash(b)", 1105),
        ("create table t (a int) distributed by hash(a, A)", 1105),
    ] {
        assert_eq!(wrong(sql).code.number(), number, "{sql}: {}", wrong(sql));
    }
    let hash = def("create table t (Abc int) distributed by hash(aBC)").distribution;
    assert_eq!(hash, Distribution::Hash { columns: vec!["Abc".into()], buckets: Buckets::Count(10) });
    let random = def("create table t (a int)").distribution;
    assert_eq!(random, Distribution::Random { buckets: Buckets::Auto });
}

#[test]
fn a_default_must_fit_its_column() {
    for good in [
        "boolean default true",
        "boolean default 0",
        "tinyint default -128",
        "largeint default '99999999999999999999999999999999999999'",
        "float default 1.5",
        "double default '1e10'",
        "decimal(5,2) default 999.99",
        "decimal(5,2) default '1.500'",
        "decimal(2,2) default .25",
        "date default '2024-02-29'",
        "datetime default '2024-02-29 12:00:00'",
        "datetime(3) default '2024-02-29 12:00:00.123'",
        "datetime(1) default '9999-12-31 23:59:59.9'",
        "datetime default '2024-02-29'",
        "largeint default '+5.0'",
        "char(3) default 'abc'",
        "varchar(6) default 'éàü'",
        "string default 'x'",
        "json default '{}'",
        "int default null",
        "datetime(6) default current_timestamp(3)",
        "varchar(3) not null default ''",
    ] {
        def(&format!("create table t (k int, c {good})"));
    }
    for bad in [
        "boolean default 2",
        "tinyint default 128",
        "int default 'x'",
        "int default 1.5",
        "largeint default '999999999999999999999999999999999999999'",
        "float default 'inf'",
        "decimal(5,2) default 1000",
        "decimal(5,2) default 1.234",
        "decimal(5,2) default '.'",
        "date default '2023-02-29'",
        "datetime default 'noon'",
        "date default '+12345-01-01'",
        "date default '-0005-01-01'",
        "date default '2024- 05-01'",
        "date default '24-05-01'",
        "datetime default '2024-05-01 23:59:60'",
        "datetime default '2024-05-0110:11:12'",
        "datetime default '2024-05-01 10:11:12.'",
        "datetime default '9999-12-31 23:59:59.5'",
        "largeint default '.0'",
        "char(3) default 'abcd'",
        "varchar(5) default 'éàü'",
        "json default '{'",
        "int not null default null",
        "datetime(3) default current_timestamp(6)",
        "date default current_timestamp",
        "datetime default current_date",
        "int default current_timestamp",
    ] {
        let error = wrong(&format!("create table t (k int, c {bad})"));
        assert_eq!(error.code.number(), 1105, "{bad}");
    }
}

#[test]
fn group_commits_properties_have_doriss_limits_and_texts() {
    for (property, text) in [
        (r#""group_commit_interval_ms" = "x""#, "parse group_commit_interval_ms format error"),
        (r#""group_commit_interval_ms" = "99999999999""#, "parse group_commit_interval_ms format error"),
        (r#""group_commit_interval_ms" = "-1""#, "group_commit_interval_ms can not be less than 0:-1"),
        (r#""group_commit_data_bytes" = "1.5""#, "parse group_commit_data_bytes format error"),
        (r#""group_commit_data_bytes" = "0""#, "group_commit_data_bytes must be greater than 0"),
        (
            r#""max_load_rows_per_second" = "0""#,
            "max_load_rows_per_second must be a number from 1 to 9223372036854775807, or -1 for no limit, not '0'",
        ),
        (
            r#""max_load_bytes_per_second" = "1KB""#,
            "max_load_bytes_per_second must be a number from 1 to 9223372036854775807, or -1 for no limit, not '1KB'",
        ),
        (
            r#""group_commit_mode" = "on""#,
            "Invalid group_commit_mode: on. Valid values: off_mode, async_mode, sync_mode",
        ),
        (r#""b" = "2", "a" = "1""#, "Unknown properties: {a=1, b=2}"),
        (r#""replication_num" = "0""#, "replication_num must be a number from 1 to 32767, not '0'"),
        (r#""light_schema_change" = "maybe""#, "light_schema_change must be 'true' or 'false', not 'maybe'"),
        (
            r#""bloom_filter_columns" = "a,x""#,
            "Bloom filter column does not exist in table. invalid column: x",
        ),
    ] {
        assert_eq!(wrong(&format!("create table t (a int) properties ({property})")).detail_text(), text);
    }
    for property in ["delete_bitmap_x", "sequence_mapping.a"] {
        let error = wrong(&format!(r#"create table t (a int) properties ("{property}" = "true")"#));
        assert_eq!(error.code, ErrorCode::NotSupported, "{error}");
    }
}

#[test]
fn a_table_with_unique_keys_is_printed_as_it_was_written() {
    let sql = r#"create table t (a int, b varchar(5), v int) unique key(a, b) properties ("replication_num" = "1")"#;
    let table = def(sql);
    assert_eq!(table.keys, KeyModel::Unique);
    let printed = show_create_table(&table);
    for line in [
        "UNIQUE KEY(`a`, `b`)\n",
        "DISTRIBUTED BY HASH(`a`, `b`) BUCKETS AUTO\n",
        "\"enable_unique_key_merge_on_write\" = \"true\"",
    ] {
        assert!(printed.contains(line), "{line} in {printed}");
    }
    assert_eq!(show_create_table(&def(&printed)), printed);
    let error = try_alter(&table, r#"set ("enable_unique_key_merge_on_write" = "false")"#).unwrap_err();
    assert!(error.detail_text().contains("cannot be changed after CREATE TABLE"), "{error}");
}

const FOLDED: &str = r#"create table t (a int, b varchar(5), s bigint sum default "0", lo date min, hi varchar(5) max,
    r json replace, g int replace_if_not_null comment 'given') aggregate key(a, b)
    distributed by hash(a) buckets 1 properties ("replication_num" = "1")"#;

#[test]
fn a_table_with_aggregate_keys_is_printed_as_it_was_written() {
    let table = def(FOLDED);
    assert_eq!(table.keys, KeyModel::Aggregate);
    assert_eq!(table.keys.name(), "AGG_KEYS");
    let printed = show_create_table(&table);
    for line in [
        "  `b` varchar(5) NULL,\n",
        "  `s` bigint SUM NULL DEFAULT \"0\",\n",
        "  `lo` date MIN NULL,\n",
        "  `hi` varchar(5) MAX NULL,\n",
        "  `r` json REPLACE NULL,\n",
        "  `g` int REPLACE_IF_NOT_NULL NULL DEFAULT NULL COMMENT 'given'\n",
        "AGGREGATE KEY(`a`, `b`)\n",
    ] {
        assert!(printed.contains(line), "{line} in {printed}");
    }
    assert_eq!(show_create_table(&def(&printed)), printed);
    let by_columns = def("create table t (a int, b int, s int sum)");
    assert_eq!(by_columns.keys, KeyModel::Aggregate);
    assert_eq!(by_columns.schema.key_indices(), [0, 1]);
    let unique = def("create table t (a int, s int sum) unique key(a)");
    assert_eq!((unique.keys, unique.schema.columns[1].aggregation), (KeyModel::Unique, None));
}

#[test]
fn aggregations_that_do_not_fit_are_refused_in_doriss_words() {
    for (columns, text) in [
        (
            "a int, v int) aggregate key(a)",
            "should set aggregation type to non-key column in aggregate key table",
        ),
        ("a int sum, v int sum) aggregate key(a)", "Key column a can not set aggregation type"),
        (
            "a int, v varchar(5) sum) aggregate key(a)",
            "Aggregate type SUM is not compatible with primitive type varchar(5)",
        ),
        (
            "a int, v datetime sum) aggregate key(a)",
            "Aggregate type SUM is not compatible with primitive type datetime",
        ),
        (
            "a int, v boolean max) aggregate key(a)",
            "Aggregate type MAX is not compatible with primitive type boolean",
        ),
        (
            "a int, v json min) aggregate key(a)",
            "Aggregate type MIN is not compatible with primitive type json",
        ),
        (
            "a int, v int replace_if_not_null not null) aggregate key(a)",
            "REPLACE_IF_NOT_NULL column must be nullable, maybe should use REPLACE, column:v",
        ),
        (
            "a int, v int replace) aggregate key(a) distributed by random",
            "Should not be distributed by random when keys type is aggand column is in replace, [v] is invalid",
        ),
        (
            "a int, v int sum) aggregate key(a) distributed by hash(v) buckets 1",
            "Distribution column[v] is not key column",
        ),
        (
            "a double, v int sum) aggregate key(a)",
            "Float or double can not used as a key, use decimal instead. (column 'a')",
        ),
        (
            "a int, v int sum) duplicate key(a)",
            "column 'v': the aggregation SUM needs a table with AGGREGATE KEY",
        ),
        (
            r#"a int, v int sum) aggregate key(a) properties ("enable_unique_key_merge_on_write" = "true")"#,
            "enable_unique_key_merge_on_write property only support unique key table",
        ),
        (
            r#"a int, v int sum) aggregate key(a) properties ("function_column.sequence_col" = "v")"#,
            "sequence column only support UNIQUE_KEYS",
        ),
    ] {
        assert_eq!(wrong(&format!("create table t ({columns}")).detail_text(), text);
    }
    def("create table t (a int, v int sum) aggregate key(a) distributed by random buckets 2");
}

#[test]
fn columns_of_a_table_with_aggregate_keys_are_added_with_their_aggregation() {
    let table = def(FOLDED);
    let new = altered(&table, "add column n int max default '5' after s");
    assert!(show_create_table(&new).contains("  `n` int MAX NULL DEFAULT \"5\",\n"));
    altered(&table, "modify column hi varchar(9) max");
    altered(&table, "modify column g int replace_if_not_null comment 'x'");
    let unique = def("create table t (a int, s int) unique key(a)");
    let duplicate = def("create table t (a int, s int) duplicate key(a)");
    for (table, change, text) in [
        (&table, "drop column a", "Can not drop key column when table has value column with REPLACE"),
        (&table, "add column n int key sum", "Can not assign aggregation method on key column: n"),
        (
            &table,
            "add column n int sum default '1'",
            "The default value of 'n' with SUM aggregation function must be zero",
        ),
        (&table, "add column n json sum", "Aggregate type SUM is not compatible with primitive type json"),
        (&table, "modify column s bigint max default '0'", "Can not change aggregation type"),
        (
            &table,
            "drop column b",
            "Can not drop key column when table has value column with REPLACE aggregation method",
        ),
        (
            &unique,
            "add column n int sum",
            "Can not assign aggregation method on column in Unique data model table: n",
        ),
        (
            &duplicate,
            "add column n int sum",
            "Can not assign aggregation method on column in Duplicate data model table: n",
        ),
    ] {
        let error = try_alter(table, change).unwrap_err();
        assert!(error.detail_text().contains(text), "{change}: {error}");
    }
}

#[test]
fn the_number_of_replicas_is_kept_as_an_allocation() {
    let table = def(r#"create table t (a int) properties ("replication_num" = "3")"#);
    assert_eq!(table.properties.others["replication_allocation"], "tag.location.default: 3");
    let table = altered(&table, r#"set ("default.replication_num" = "2")"#);
    assert_eq!(table.properties.others["replication_allocation"], "tag.location.default: 2");
}

#[test]
fn properties_are_altered_without_a_new_schema() {
    let old = def(MANUAL);
    let new =
        altered(&old, r#"set ("group_commit_interval_ms" = "2000", "group_commit_mode" = "Sync_Mode")"#);
    assert_eq!(new.properties.group_commit_interval_ms, 2000);
    assert_eq!(new.properties.group_commit_mode, GroupCommitMode::Sync);
    assert_eq!(new.schema, old.schema);
    assert_eq!(
        try_alter(&old, r#"set ("no_such" = "1")"#).unwrap_err().detail_text(),
        "Unknown table property: [no_such]"
    );
    assert!(try_alter(&old, r#"set ("light_schema_change" = "false")"#).is_err());
    altered(&old, r#"set ("light_schema_change" = "true")"#);
}

#[test]
fn columns_are_added_behind_the_keys_as_a_new_schema() {
    let old = def(MANUAL);
    let new =
        altered(&old, "add column a int default 1, add column b string after id, add column (c int, d json)");
    assert_eq!(names(&new), ["id", "b", "name", "score", "a", "c", "d"]);
    assert_eq!(new.schema.version, SchemaVersion(4));
    assert_eq!(new.schema.next_column_id, ColumnId(8));
    assert_eq!(new.schema.columns[1].id, ColumnId(5));
    assert!(new.schema.columns.iter().all(|column| column.physical_name == column.name));
    for (clauses, number) in [
        ("add column NAME int", 1105),
        ("add column k double key", 1105),
        ("add column k int key after name", 1105),
        ("add column n int not null", 1105),
        ("add column f int first", 1105),
        ("add column f int after nowhere", 1105),
        ("add column (x int, x int)", 1105),
        ("add column n int default 'x'", 1105),
    ] {
        let error = try_alter(&old, clauses).unwrap_err();
        assert_eq!(error.code.number(), number, "{clauses}: {error}");
    }
    altered(&old, "add column n int not null default 5");
}

#[test]
fn a_name_that_comes_back_is_another_column_in_the_files() {
    let old = def(MANUAL);
    let again = altered(&old, "drop column name, add column name string");
    assert_eq!(again.schema.columns[2].physical_name, "name~4");
    let renamed = altered(&old, "rename column name title, add column name string");
    assert_eq!(renamed.schema.columns[1].physical_name, "name");
    assert_eq!(renamed.schema.columns[3].physical_name, "name~4");
}

#[test]
fn value_columns_can_be_dropped() {
    let old = def(
        r#"create table t (k int, a int, b int) duplicate key(k) distributed by hash(a) properties ("bloom_filter_columns" = "b")"#,
    );
    let new = altered(&old, "drop column B");
    assert_eq!(names(&new), ["k", "a"]);
    assert!(!new.properties.others.contains_key("bloom_filter_columns"));
    assert_eq!(new.schema.next_column_id, old.schema.next_column_id);
    for (clauses, number) in [("drop column k", 1105), ("drop column a", 1105), ("drop column x", 1105)] {
        assert_eq!(try_alter(&old, clauses).unwrap_err().code.number(), number, "{clauses}");
    }
}

#[test]
fn a_renamed_column_is_renamed_everywhere_but_in_files() {
    let old = def(
        r#"create table t (k int, a int) duplicate key(k) distributed by hash(k) properties ("bloom_filter_columns" = "a,K")"#,
    );
    let new = altered(&old, "rename column k key2");
    assert_eq!(names(&new), ["key2", "a"]);
    assert_eq!(new.schema.columns[0].physical_name, "k");
    assert_eq!(
        new.distribution,
        Distribution::Hash { columns: vec!["key2".into()], buckets: Buckets::Count(10) }
    );
    assert_eq!(new.properties.others["bloom_filter_columns"], "a,key2");
    assert_eq!(names(&altered(&old, "rename column a A")), ["k", "A"]);
    assert_eq!(try_alter(&old, "rename column k a").unwrap_err().code.number(), 1060);
    assert_eq!(try_alter(&old, "rename column k `x y`").unwrap_err().code.number(), 1166);
}

#[test]
fn only_a_longer_varchar_and_a_comment_are_light_modifications() {
    let old =
        def("create table t (k int, v varchar(10) not null default 'x' comment 'old') duplicate key(k)");
    let longer = altered(&old, "modify column v varchar(20) not null default 'x'");
    assert_eq!(longer.schema.columns[1].data_type, DataType::Varchar { bytes: 20 });
    assert_eq!(longer.schema.columns[1].comment, "old");
    assert_eq!(longer.schema.version, SchemaVersion(2));
    assert!(!is_heavy(&old, &longer));
    let commented = altered(&old, "modify column v comment 'new'");
    assert_eq!(commented.schema.columns[1].comment, "new");
    for light in ["add column a int", "add column a int after k", "drop column v", "rename column k l"] {
        assert!(!is_heavy(&old, &altered(&old, light)), "{light}");
    }
    for heavy in [
        "modify column v string not null default 'x'",
        "modify column v varchar(10) default 'x'",
        "modify column k bigint",
        "add column l int key",
        "add column a int, modify column k bigint",
    ] {
        assert!(is_heavy(&old, &altered(&old, heavy)), "{heavy}");
    }
    for (clauses, text) in [
        (
            "modify column v varchar(5) not null default 'x'",
            "Shorten type length is prohibited, srcType=varchar(10), dstType=varchar(5) (column 'v')",
        ),
        ("modify column v varchar(20) not null", "Can not change default value"),
        ("modify column v varchar(20) key not null default 'x'", "Can not change aggregation type"),
        (
            "modify column v varchar(20) not null default 'x' first",
            "Invalid column order. value should be after key. index[t]",
        ),
        (
            "modify column v varchar(10) not null default 'x'",
            "Nothing is changed. please check your alter stmt",
        ),
        ("modify column k int not null", "Can not change from nullable to non-nullable"),
        ("modify column v int not null default 'x'", "Invalid default value"),
        ("drop column k", "No key column left. index[t]"),
    ] {
        let error = try_alter(&old, clauses).unwrap_err();
        assert!(error.detail_text().contains(text), "{clauses}: {error}");
    }
}

#[test]
fn types_change_as_the_matrix_allows() {
    let allowed = "tinyint int|smallint bigint|int largeint|bigint float|largeint double|tinyint varchar(4)|\
        bigint string|int date|float double|float varchar(12)|double text|decimal(5,2) decimal(9,4)|\
        decimal(5,2) varchar(7)|char(3) char(4)|char(3) varchar(3)|char(3) string|char(3) int|char(3) date|\
        varchar(3) varchar(4)|varchar(3) string|varchar(3) tinyint|varchar(3) largeint|varchar(3) double|\
        varchar(3) date|varchar(3) json|string json|json string|json varchar(9)|date datetime|datetime date|\
        datetime(6) datetime(0)|datetime datetime(3)";
    let refused = "int smallint|bigint int|largeint bigint|float int|double float|int decimal(9,2)|int boolean|\
        boolean int|string varchar(9)|string int|date int|date varchar(10)|datetime string|json int|\
        decimal(5,2) int|decimal(5,2) double|bigint date|varchar(3) datetime|varchar(3) decimal(9,2)";
    for (pairs, is_allowed) in [(allowed, true), (refused, false)] {
        for pair in pairs.split('|') {
            let (from, to) = pair.split_once(' ').unwrap();
            let old = def(&format!("create table t (k int, v {from}) duplicate key(k)"));
            match try_alter(&old, &format!("modify column v {to}")) {
                Ok(new) => {
                    assert!(is_allowed && new.schema.columns[1].id == old.schema.columns[1].id, "{pair}");
                }
                Err(error) => {
                    assert!(!is_allowed, "{pair}: {error}");
                    assert!(error.detail_text().starts_with("Can not change "), "{pair}: {error}");
                }
            }
        }
    }
    for (from, to, text) in [
        (
            "int",
            "varchar(10)",
            "Can not change from wider type int to narrower type varchar(10) (column 'v')",
        ),
        (
            "decimal(9,4)",
            "decimal(9,5)",
            "Can not change from wider type decimal(9,4) to narrower type decimal(9,5) (column 'v')",
        ),
        (
            "char(4)",
            "varchar(3)",
            "Shorten type length is prohibited, srcType=char(4), dstType=varchar(3) (column 'v')",
        ),
        ("double", "int", "Can not change DOUBLE to INT (column 'v')"),
    ] {
        let old = def(&format!("create table t (k int, v {from}) duplicate key(k)"));
        let error = try_alter(&old, &format!("modify column v {to}")).unwrap_err();
        assert_eq!(error.detail_text(), text);
    }
}

#[test]
fn nested_types_grow_as_light_changes() {
    let old = def("create table t (k int, s struct<a:int, b:varchar(5), c:array<struct<d:date>>>, \
         m map<varchar(5), struct<x:array<varchar(3)>>> not null, a array<int> default '[]') duplicate key(k)");
    for (clause, place, data_type) in [
        (
            "modify column s struct<A:int, b:varchar(9), c:array<struct<d:date, e:map<int,int>>>, f:text>",
            1,
            "struct<a:int,b:varchar(9),c:array<struct<d:date,e:map<int,int>>>,f:text>",
        ),
        (
            "modify column m map<varchar(6), struct<x:array<varchar(3)>, y:int>> not null comment 'new'",
            2,
            "map<varchar(6),struct<x:array<varchar(3)>,y:int>>",
        ),
    ] {
        let new = altered(&old, clause);
        assert!(!is_heavy(&old, &new), "{clause}");
        assert_eq!(new.schema.columns[place].data_type.to_string(), data_type);
        assert_eq!(new.schema.columns[place].id, old.schema.columns[place].id);
        assert_eq!(new.schema.version, old.schema.version.next());
        assert!(is_heavy(&old, &altered(&old, &format!("{clause}, modify column k bigint"))), "{clause}");
    }
    let moved =
        altered(&old, "modify column s struct<a:int, b:varchar(5), c:array<struct<d:date>>, f:int> after a");
    assert!(is_heavy(&old, &moved) && names(&moved) == ["k", "m", "a", "s"]);
    let (s, m) = (
        "struct<a:int, b:varchar(5), c:array<struct<d:date>>",
        "map<varchar(5), struct<x:array<varchar(3)>>>",
    );
    for (clause, text) in [
        (
            "s struct<a:int, b:varchar(5)>".to_owned(),
            "Cannot reduce struct fields from struct<a:int,b:varchar(5),c:array<struct<d:date>>> to struct<a:int,b:varchar(5)>",
        ),
        (
            "s struct<a:int, z:varchar(5), c:array<struct<d:date>>>".to_owned(),
            "Cannot rename struct field from 'b' to 'z'",
        ),
        (
            "s struct<b:varchar(5), a:int, c:array<struct<d:date>>>".to_owned(),
            "Cannot rename struct field from 'a' to 'b'",
        ),
        (
            "s struct<a:bigint, b:varchar(5), c:array<struct<d:date>>>".to_owned(),
            "Cannot change int to bigint in nested types",
        ),
        (
            "s struct<a:int, b:string, c:array<struct<d:date>>>".to_owned(),
            "Cannot change varchar(5) to text in nested types",
        ),
        (
            "s struct<a:int, b:varchar(4), c:array<struct<d:date>>, f:int>".to_owned(),
            "Shorten type length is prohibited, srcType=varchar(5), dstType=varchar(4)",
        ),
        (
            "s struct<a:int, b:varchar(5), c:array<int>>".to_owned(),
            "Cannot change struct<d:date> to int in nested types",
        ),
        (format!("s {s}, a:int>"), "Duplicate field name a in struct"),
        (format!("s {s}, f:int> not null"), "Can not change from nullable to non-nullable"),
        (
            "m map<varchar(4), struct<x:array<varchar(3)>>> not null".to_owned(),
            "Shorten type length is prohibited",
        ),
        (
            "m map<varchar(5), array<int>> not null".to_owned(),
            "Cannot change struct<x:array<varchar(3)>> to array<int> in nested types",
        ),
        (format!("m {m} not null"), "Nothing is changed. please check your alter stmt"),
        ("a array<bigint> default '[]'".to_owned(), "Cannot change int to bigint in nested types"),
        ("a map<int, int> default '[]'".to_owned(), "Can not change ARRAY to MAP"),
        ("a string".to_owned(), "Can not change ARRAY to STRING"),
    ] {
        let error = try_alter(&old, &format!("modify column {clause}")).unwrap_err();
        assert!(error.detail_text().contains(text), "{clause}: {error}");
    }
    let error = try_alter(
        &def("create table t (k int, a array<varchar(3)> default '[]') duplicate key(k)"),
        "modify column a array<varchar(4)>",
    );
    assert!(error.unwrap_err().detail_text().contains("Can not change default value"));
}

#[test]
fn keys_change_where_rows_can_follow() {
    let duplicate =
        def("create table t (a int, b varchar(9), v int) duplicate key(a, b) distributed by hash(b)");
    assert_eq!(names(&altered(&duplicate, "add column c int key")), ["a", "b", "c", "v"]);
    assert_eq!(names(&altered(&duplicate, "add column c int key first")), ["c", "a", "b", "v"]);
    assert_eq!(names(&altered(&duplicate, "drop column a")), ["b", "v"]);
    assert_eq!(names(&altered(&duplicate, "order by (b, a, v)")), ["b", "a", "v"]);
    assert_eq!(names(&altered(&duplicate, "modify column a bigint after b")), ["b", "a", "v"]);
    let unique = def("create table t (a int, b varchar(9), v int) unique key(a, b) distributed by hash(a)");
    assert!(is_heavy(&unique, &altered(&unique, "add column c int key default '1'")));
    let folded = def("create table t (a int, b int, s int sum) aggregate key(a, b) distributed by hash(a)");
    assert_eq!(names(&altered(&folded, "add column c int")), ["a", "b", "c", "s"]);
    altered(&folded, "modify column s bigint sum");
    for (table, clauses, text) in [
        (&duplicate, "modify column b varchar(10)", "Can not modify distribution column[b]. index[t]"),
        (&duplicate, "modify column a double", "column 'a' of type DOUBLE cannot be a key column"),
        (&duplicate, "modify column a int after v", "Can not modify key column a after value column"),
        (&duplicate, "order by (a, b)", "Reorder stmt should contains all columns"),
        (&duplicate, "order by (a, b, v, x)", "Column[x] not exists"),
        (&duplicate, "order by (a, b, b, v)", "Reduplicative column[b]"),
        (&duplicate, "order by (a, v, b)", "Cannot add key column b after value column"),
        (&unique, "drop column b", "Can not drop key column in Unique data model table"),
        (&unique, "modify column b int", "which of a table with UNIQUE KEY might make two keys one"),
        (&folded, "drop column b", "would have to be folded anew"),
        (&folded, "modify column s varchar(20) sum", "Aggregate type SUM is not compatible"),
    ] {
        let error = try_alter(table, clauses).unwrap_err();
        assert!(error.detail_text().contains(text), "{clauses}: {error}");
    }
    let without = def(
        r#"create table t (a int) distributed by random properties ("enable_duplicate_without_keys_by_default" = "true")"#,
    );
    assert_eq!(
        try_alter(&without, "add column k int key").unwrap_err().detail_text(),
        "Duplicate table without keys do not support add key column!"
    );
}

#[test]
fn a_table_can_be_renamed_and_commented_without_moving() {
    let old = def(MANUAL);
    let new = altered(&old, "rename u, modify comment 'new'");
    assert_eq!((new.name.as_str(), new.comment.as_str(), &new.location), ("u", "new", &old.location));
    assert_eq!(new.schema, old.schema);
    assert!(try_alter(&old, "rename dt").is_err());
    assert_eq!(try_alter(&old, "rename `u$`").unwrap_err().code.number(), 1103);
}

#[test]
fn every_change_of_columns_is_heavy_in_a_table_without_light_schema_change() {
    let old = def(r#"create table t (k int, v int) properties ("light_schema_change" = "false")"#);
    assert!(is_heavy(&old, &altered(&old, "add column a int")));
    assert!(!is_heavy(&old, &altered(&old, r#"set ("group_commit_interval_ms" = "1")"#)));
}

#[test]
fn indexes_are_printed_as_they_were_declared_and_follow_their_columns() {
    let old = def(
        "create table t (k int, `a-b` string, index `i-1` (`a-b`) using inverted properties('parser' = 'unicode') \
         comment 'it''s', index k_idx (K) using bitmap) duplicate key(k)",
    );
    let shown = show_create_table(&old);
    assert!(
        shown.contains(
            "  INDEX `i-1` (`a-b`) USING INVERTED PROPERTIES(\"parser\" = \"unicode\") COMMENT 'it\\'s',\n  \
             INDEX `k_idx` (`k`) USING BITMAP\n) ENGINE=OLAP"
        ),
        "{shown}"
    );
    assert_eq!(def(&shown).indexes, old.indexes);
    let renamed = altered(&old, "rename column `a-b` c");
    assert!(show_create_table(&renamed).contains("INDEX `i-1` (`c`)"));
    assert_eq!(altered(&renamed, "drop column c").indexes, old.indexes[1..]);
    assert_eq!(altered(&old, "drop index K_IDX").indexes, old.indexes[..1]);
    assert_eq!(altered(&old, "add index if not exists K_IDX (`a-b`)").schema, old.schema);
}

#[test]
fn an_auto_increment_column_is_the_only_one_and_bigint_and_not_null() {
    let table = |column: &str| {
        format!("create table t ({column}, v int) duplicate key(id) distributed by hash(id) buckets 1")
    };
    let unique = "create table t (k int, id bigint not null auto_increment(100), v int) unique key(k) distributed by hash(k) buckets 1";
    let def_of = def(unique);
    assert_eq!(def_of.schema.columns[1].auto_increment, Some(100));
    let printed = show_create_table(&def_of);
    assert!(printed.contains("  `id` bigint NOT NULL AUTO_INCREMENT(100),"), "{printed}");
    assert_eq!(def(&printed).schema, def_of.schema);
    assert_eq!(def(&table("id bigint not null auto_increment")).schema.columns[0].auto_increment, Some(1));
    assert_eq!(
        def(&table("id bigint not null auto_increment(0) comment 'x'")).schema.columns[0].auto_increment,
        Some(0)
    );
    for (column, number, text) in [
        ("id bigint not null auto_increment, other bigint not null auto_increment", 5092, "at most one"),
        ("id bigint auto_increment", 5093, "the auto increment column should be NOT NULL."),
        ("id bigint not null auto_increment default '1'", 5094, "can't have default value."),
        ("id int not null auto_increment", 5095, "the auto increment must be BIGINT type."),
        ("id bigint not null auto_increment(-1)", 1105, "start value can not be negative"),
        ("id bigint not null auto_increment(x)", 1064, ""),
    ] {
        let error = wrong(&table(column));
        assert!(error.code.number() == number && error.message.contains(text), "{column}: {error}");
    }
    let folds = wrong(
        "create table t (id bigint not null auto_increment, v int sum) aggregate key(id) distributed by hash(id) buckets 1",
    );
    assert_eq!(folds.code.number(), 5096);
    let parted = wrong(
        "create table t (id bigint not null auto_increment) duplicate key(id) partition by range(id) () distributed by hash(id) buckets 1",
    );
    assert_eq!(parted.code, ErrorCode::NotSupported);
    for (clause, text) in [
        ("add column n bigint not null auto_increment", "Can not add auto-increment column n"),
        (
            "modify column v int not null auto_increment",
            "Can't modify the column[v]'s auto-increment attribute.",
        ),
        ("modify column id bigint not null", "Can't modify the column[id]'s auto-increment attribute."),
        ("modify column id largeint not null auto_increment", "must be BIGINT"),
        ("modify column id bigint null auto_increment", "should be NOT NULL"),
    ] {
        let error = try_alter(&def_of, clause).unwrap_err();
        assert!(error.message.contains(text), "{clause}: {error}");
    }
    let renamed = altered(
        &def_of,
        "modify column id bigint not null auto_increment comment 'n', rename column id number",
    );
    assert_eq!(renamed.schema.columns[1].auto_increment, Some(100));
    assert!(try_alter(&def_of, "drop column id").is_ok());
}
