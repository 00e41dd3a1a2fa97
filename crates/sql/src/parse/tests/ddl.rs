use super::*;
use tributary_types::table::{Buckets, Distribution};
use tributary_types::{DataType, DefaultValue};

fn create_of(sql: &str) -> CreateTable {
    match ok(sql) {
        Statement::CreateTable(create) => *create,
        other => panic!("{other:?}"),
    }
}

fn column_of(text: &str) -> ColumnSpec {
    create_of(&format!("create table t (c {text})")).columns.remove(0)
}

#[test]
fn the_manuals_table_parses() {
    let create = create_of(
        r#"CREATE TABLE IF NOT EXISTS `db1`.`dt` (
            `id` int(11) NOT NULL,
            `name` varchar(50) NULL COMMENT "who",
            `score` int(11) NULL DEFAULT "0",
        ) ENGINE=OLAP
        DUPLICATE KEY(`id`)
        COMMENT 'people'
        DISTRIBUTED BY HASH(`id`) BUCKETS 1
        PROPERTIES ("replication_num" = "1", "group_commit_mode" = "async_mode");"#,
    );
    assert!(create.if_not_exists);
    assert_eq!(create.table, name(Some("db1"), "dt"));
    assert_eq!(create.columns.len(), 3);
    assert_eq!(create.columns[0].data_type, DataType::Int);
    assert_eq!(create.columns[0].nullable, Some(false));
    assert_eq!(create.columns[1].comment.as_deref(), Some("who"));
    assert_eq!(create.columns[2].default, Some(DefaultValue::Literal("0".into())));
    assert_eq!(create.keys.as_deref(), Some(&["id".to_owned()][..]));
    assert_eq!(create.comment, "people");
    let hash = Distribution::Hash { columns: vec!["id".into()], buckets: Buckets::Count(1) };
    assert_eq!(create.distribution, Some(hash));
    assert_eq!(create.properties[1], ("group_commit_mode".to_owned(), "async_mode".to_owned()));
}

#[test]
fn a_distribution_is_hash_or_random_with_buckets_or_auto() {
    let of = |text: &str| {
        create_of(&format!("create table t (a int) distributed by {text}")).distribution.unwrap()
    };
    assert_eq!(of("random"), Distribution::Random { buckets: Buckets::Count(10) });
    assert_eq!(of("random buckets auto"), Distribution::Random { buckets: Buckets::Auto });
    let hash = Distribution::Hash { columns: vec!["a".into(), "b".into()], buckets: Buckets::Count(7) };
    assert_eq!(of("hash(a, b) buckets 7"), hash);
    assert!(
        error("create table t (a int) distributed by random buckets 0").message.contains("greater than zero")
    );
}

#[test]
fn every_type_and_its_aliases_are_known() {
    use DataType::*;
    for (text, expected) in [
        ("boolean", Boolean),
        ("bool", Boolean),
        ("tinyint(1)", TinyInt),
        ("smallint", SmallInt),
        ("int(11)", Int),
        ("integer", Int),
        ("BIGINT(20) SIGNED", BigInt),
        ("largeint", LargeInt),
        ("float", Float),
        ("double", Double),
        ("decimal", Decimal { precision: 38, scale: 9 }),
        ("decimal(10)", Decimal { precision: 10, scale: 0 }),
        ("numeric(10, 2)", Decimal { precision: 10, scale: 2 }),
        ("decimalv3(38,38)", Decimal { precision: 38, scale: 38 }),
        ("date", Date),
        ("datev2", Date),
        ("datetime", DateTime { scale: 0 }),
        ("datetimev2(6)", DateTime { scale: 6 }),
        ("char", Char { bytes: 1 }),
        ("char(255)", Char { bytes: 255 }),
        ("varchar", Varchar { bytes: 65533 }),
        ("varchar(*)", Varchar { bytes: 65533 }),
        ("varchar(50)", Varchar { bytes: 50 }),
        ("string", String),
        ("text", String),
        ("json", Json),
        ("jsonb", Json),
    ] {
        assert_eq!(column_of(text).data_type, expected, "{text}");
    }
}

#[test]
fn types_that_do_not_exist_here_are_refused_with_the_one_to_use() {
    for (text, remedy) in [
        ("bigint unsigned", "use LARGEINT"),
        ("int(10) unsigned", "use BIGINT"),
        ("array<int unsigned>", "use BIGINT"),
        ("map<string,int not null>", "leave it out"),
        ("struct<a:int comment 'x'>", "into the comment of the column"),
        ("array<variant>", "use JSON"),
        ("array<bitmap>", "make it a column of its own"),
        ("map<int,ipv4>", "use VARCHAR"),
        ("timestamp", "use DATETIME"),
        ("longtext", "use STRING"),
        ("int as (a + 1) virtual", "leave VIRTUAL out"),
        ("bigint quantile_union", "aggregate in queries"),
    ] {
        let refused = error(&format!("create table t (c {text})"));
        assert_eq!(refused.code, ErrorCode::NotSupported, "{text}");
        assert!(
            refused.message.contains("column 'c'") && refused.message.contains(remedy),
            "{text}: {refused}"
        );
    }
    assert_eq!(error("create table t (c frob)").code, ErrorCode::Syntax);
}

#[test]
fn arguments_of_types_have_limits() {
    for (text, limits) in [
        ("char(256)", "1 to 255 bytes, not 256"),
        ("char(0)", "1 to 255 bytes, not 0"),
        ("varchar(65534)", "1 to 65533 bytes, not 65534"),
        ("decimal(39)", "1 to 38 digits, not 39"),
        ("decimal(5,6)", "0 to 5 digits after the point, not 6"),
        ("datetime(7)", "0 to 6 digits of a second's fraction, not 7"),
    ] {
        assert!(error(&format!("create table t (c {text})")).message.contains(limits), "{text}");
    }
}

#[test]
fn defaults_are_literals_null_or_the_present_time() {
    let of = |text: &str| column_of(&format!("int default {text}")).default.unwrap();
    for (text, literal) in
        [("'1'", "1"), ("\"1\"", "1"), ("1", "1"), ("-1", "-1"), ("+1.5", "1.5"), ("TRUE", "true")]
    {
        assert_eq!(of(text), DefaultValue::Literal(literal.into()), "{text}");
    }
    assert_eq!(of("null"), DefaultValue::Null);
    assert_eq!(of("current_timestamp"), DefaultValue::CurrentTimestamp { scale: 0 });
    assert_eq!(of("CURRENT_TIMESTAMP(3)"), DefaultValue::CurrentTimestamp { scale: 3 });
    assert_eq!(of("current_date"), DefaultValue::CurrentDate);
    assert_eq!(error("create table t (c double default pi)").code, ErrorCode::NotSupported);
}

#[test]
fn the_options_of_a_column_come_in_any_order() {
    let column = column_of("varchar(10) KEY NOT NULL DEFAULT 'x' COMMENT 'y'");
    assert!(column.is_key);
    assert_eq!(column.nullable, Some(false));
    assert_eq!(column_of("varchar(10) comment 'y' default 'x' not null key"), column);
}

#[test]
fn a_key_of_one_whole_column_is_kept_by_its_name() {
    let sql = "create table t (a int, b varchar(9), key by_a (a) using btree comment 'x', index by_b (b(4)), key (a), \
               key both (a, b), key down (a desc), fulltext key words (b), primary key (a))";
    let (Statement::CreateTable(create), notes) = parse_compatible(sql).unwrap() else { panic!("{sql}") };
    let kept: Vec<(&str, &[String])> =
        create.indexes.iter().map(|index| (index.name.as_str(), index.columns.as_slice())).collect();
    assert_eq!(kept, [("by_a", &["a".to_owned()][..])]);
    assert!(notes.iter().any(|note| note.starts_with("KEY by_a is kept by its name")), "{notes:?}");
    let left_out = notes.iter().filter(|note| note.starts_with("a KEY among the columns is left out"));
    assert_eq!(left_out.count(), 5, "{notes:?}");
}

#[test]
fn clauses_of_other_kinds_of_tables_are_refused_by_name() {
    for (sql, what) in [
        ("create materialized view v as select 1", "CREATE MATERIALIZED VIEW"),
        ("create table t (a int, index i (a) using ann)", "an index USING ANN"),
        ("create table t (a int, key (a))", "a KEY among the columns"),
        ("create table t (a int, primary key (a))", "PRIMARY KEY among the columns"),
        ("create table t (a int primary key)", "column 'a': PRIMARY KEY or UNIQUE on a column"),
        ("create table t (a int) engine=mysql", "ENGINE=mysql"),
        ("create external table t (a int)", "CREATE EXTERNAL"),
    ] {
        let refused = error(sql);
        assert_eq!(refused.code, ErrorCode::NotSupported, "{sql}: {refused}");
        assert!(
            refused.detail_text().starts_with(&format!("{what} is not supported yet")),
            "{sql}: {refused}"
        );
    }
}

#[test]
fn databases_are_created_and_dropped() {
    let create = |name: &str, if_not_exists| Statement::CreateDatabase { name: name.into(), if_not_exists };
    assert_eq!(ok("create database d"), create("d", false));
    assert_eq!(ok("CREATE SCHEMA IF NOT EXISTS internal.d"), create("d", true));
    assert_eq!(
        ok(r#"create database d properties ("replication_allocation"="tag.location.default:1")"#),
        create("d", false)
    );
    assert_eq!(
        ok("create database d default character set = utf8mb4 collate utf8mb4_bin"),
        create("d", false)
    );
    assert_eq!(error("create database `1d`").code, ErrorCode::WrongDbName);
    assert_eq!(
        error("create database hive.d").detail_text(),
        "Unknown catalog 'hive': there is one catalog, 'internal'"
    );
    let dropped = Statement::DropDatabase { name: "d".into(), if_exists: true, force: true };
    assert_eq!(ok("drop database if exists d force"), dropped);
}

#[test]
fn tables_are_dropped_and_truncated() {
    let dropped = Statement::DropTable { table: name(Some("d"), "t"), if_exists: true, force: false };
    assert_eq!(ok("drop table if exists d.t"), dropped);
    assert_eq!(
        ok("truncate table t force"),
        Statement::TruncateTable { table: name(None, "t"), partitions: PartitionNames::Any, force: true }
    );
    let partitions = PartitionNames::Named(vec!["p".to_owned(), "q".to_owned()]);
    assert_eq!(
        ok("truncate table t partition (p, q)"),
        Statement::TruncateTable { table: name(None, "t"), partitions, force: false }
    );
}

#[test]
fn alter_table_takes_several_clauses() {
    let ops = |text: &str| match ok(&format!("alter table d.t {text}")) {
        Statement::AlterTable { table, ops } => {
            assert_eq!(table, name(Some("d"), "t"));
            ops
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(
        ops(r#"set ("group_commit_interval_ms" = "2000", "group_commit_data_bytes" = 5)"#),
        [AlterOp::SetProperties(vec![
            ("group_commit_interval_ms".into(), "2000".into()),
            ("group_commit_data_bytes".into(), "5".into()),
        ])]
    );
    let several = ops(
        "add column a int default 1 after b, add column c string first, drop column e, rename column f g",
    );
    assert!(matches!(&several[0], AlterOp::AddColumn { position: Some(Position::After(b)), .. } if b == "b"));
    assert!(matches!(&several[1], AlterOp::AddColumn { position: Some(Position::First), .. }));
    assert_eq!(several[2], AlterOp::DropColumn { name: "e".into() });
    assert_eq!(several[3], AlterOp::RenameColumn { from: "f".into(), to: "g".into() });
    assert!(
        matches!(&ops("add column (a int, b int)")[0], AlterOp::AddColumns(columns) if columns.len() == 2)
    );
    assert_eq!(ops("rename u"), [AlterOp::RenameTable { to: "u".into() }]);
    assert_eq!(ops("modify comment 'x'"), [AlterOp::ModifyComment { comment: "x".into() }]);
    assert_eq!(
        ops("modify column a comment 'x'"),
        [AlterOp::ModifyColumnComment { name: "a".into(), comment: "x".into() }]
    );
    assert!(matches!(
        &ops("modify column a varchar(99) not null")[0],
        AlterOp::ModifyColumn { position: None, .. }
    ));
    assert_eq!(
        ops("enable feature 'sequence_load'"),
        [AlterOp::EnableFeature { name: "SEQUENCE_LOAD".into() }]
    );
    assert_eq!(ops("order by (b, a)"), [AlterOp::OrderBy { columns: vec!["b".into(), "a".into()] }]);
    assert_eq!(
        ops("replace with table u properties('swap' = 'False')"),
        [AlterOp::ReplaceTable { with: "u".into(), properties: vec![("swap".into(), "False".into())] }]
    );
    assert_eq!(ops("comment = 'x'"), [AlterOp::ModifyComment { comment: "x".into() }]);
    assert!(matches!(
        &ops("change a b bigint not null after c")[0],
        AlterOp::ChangeColumn { from, column, position: Some(Position::After(_)) } if from == "a" && column.name == "b"
    ));
    for refused in [
        "enable feature 'update_flexible_columns' with properties ('a' = 'b')",
        "add column b int to r",
        "modify distribution distributed by random",
    ] {
        assert_eq!(error(&format!("alter table t {refused}")).code, ErrorCode::NotSupported, "{refused}");
    }
}

#[test]
fn temporary_partitions_are_added_dropped_replace_others_and_are_read() {
    let op = |sql: &str| match parse(&format!("alter table t {sql}")) {
        Ok(Statement::AlterTable { ops, .. }) if ops.len() == 1 => ops[0].clone(),
        other => panic!("{sql}: {other:?}"),
    };
    for added in [
        "add temporary partition p values less than (1) distributed by hash(a) buckets 3",
        "add temporary partition if not exists p values in (1, 2)",
        "add temporary partitions from (1) to (10) interval 2",
    ] {
        assert!(matches!(op(added), AlterOp::AddTemporaryPartitions { .. }), "{added}");
    }
    assert_eq!(
        op("drop temporary partition if exists p force"),
        AlterOp::DropTemporaryPartition { name: "p".into(), if_exists: true }
    );
    let AlterOp::ReplacePartitions(replace) = op(
        "replace partition (p, q) with temporary partition tp force properties ('strict_range' = 'false')",
    ) else {
        panic!("it replaces");
    };
    assert_eq!((replace.names.len(), replace.with), (2, vec!["tp".to_owned()]));
    assert_eq!(replace.properties, [("strict_range".to_owned(), "false".to_owned())]);
    for bad in
        ["replace partition p with partition q", "replace temporary partition p with temporary partition q"]
    {
        let error = error(&format!("alter table t {bad}"));
        assert!(
            error.message.contains("Only support replace partitions with temp partitions"),
            "{bad}: {error}"
        );
    }
    for query in [
        "select * from t temporary partition (p, q) as x where a = 1",
        "select * from d.t temporary partitions (p) join u temporary partition q on true",
        "insert into t temporary partition (a) select * from t temporary partition (b)",
        "select temporary from temporary",
    ] {
        parse(query).unwrap_or_else(|error| panic!("{query}: {error}"));
    }
    assert!(parse("select * from t temporary partition").is_err());
}

#[test]
fn a_table_may_take_its_columns_from_a_query_or_another_table() {
    let of = |sql: &str| match parse(sql) {
        Ok(Statement::CreateTableAs(create)) => *create,
        other => panic!("{sql}: {other:?}"),
    };
    for (sql, names) in [
        ("create table if not exists t as select 1", None),
        ("create table if not exists t select 1", None),
        ("create table if not exists t (select 1) union select 2", None),
        (
            "create table if not exists t (a, `b c`) duplicate key(a) properties ('x' = 'y') as with x as (select 1) select * from x",
            Some(2),
        ),
        ("create table if not exists t comment 'x' distributed by hash(a) buckets 2 as (select 1)", None),
    ] {
        let create = of(sql);
        assert_eq!(create.names.map(|names| names.len()), names, "{sql}");
        assert!(create.create.if_not_exists && create.create.columns.is_empty(), "{sql}");
    }
    let like = parse("create table a.t like b.u").expect("legal");
    let name = |db: &str, table: &str| Name { db: Some(db.to_owned()), table: table.to_owned() };
    assert_eq!(
        like,
        Statement::CreateTableLike {
            is_temporary: false,
            table: name("a", "t"),
            if_not_exists: false,
            source: name("b", "u"),
            rollups: None
        }
    );
    for bad in [
        "create table t",
        "create table t ()",
        "create table t comment 'x'",
        "create table t (a)",
        "create table t like u with rollup (",
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn what_was_dropped_is_recovered_by_name_or_id_and_thrown_away() {
    let table = |id, new_name: Option<&str>| {
        let new_name = new_name.map(str::to_owned);
        Statement::Recover(Recover::Table(Recovered { name: name(Some("d"), "t"), id, new_name }))
    };
    assert_eq!(ok("recover table d.t"), table(None, None));
    assert_eq!(ok("recover table d.t 12 as u"), table(Some(12), Some("u")));
    let database = Recovered { name: "d".to_owned(), id: Some(3), new_name: None };
    assert_eq!(ok("RECOVER DATABASE d 3"), Statement::Recover(Recover::Database(database)));
    let partition = Recovered { name: "p".to_owned(), id: Some(3), new_name: Some("q".to_owned()) };
    let recovered = Recover::Partition { partition, table: name(Some("d"), "t") };
    assert_eq!(ok("recover partition p 3 as q from d.t"), Statement::Recover(recovered));
    for (condition, id) in [
        ("'DbId' = 1", RecycledId::Database(1)),
        ("'tableid' = 2", RecycledId::Table(2)),
        ("\"PartitionId\" = 3", RecycledId::Partition { table: None, id: 3 }),
        ("'TableId' = 2 AND 'PartitionId' = 3", RecycledId::Partition { table: Some(2), id: 3 }),
    ] {
        let sql = format!("drop catalog recycle bin where {condition}");
        assert_eq!(ok(&sql), Statement::DropRecycled(id), "{sql}");
    }
    for wrong in [
        "recover view v",
        "recover partition p",
        "drop catalog recycle bin where 'DbId' = 1 and 'TableId' = 2",
    ] {
        assert_eq!(error(wrong).code, ErrorCode::Syntax, "{wrong}");
    }
}
