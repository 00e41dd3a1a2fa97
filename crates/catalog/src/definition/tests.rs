use super::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use tributary_types::partition::{PartitionRows, PartitionValue};
use tributary_types::privilege::{GrantScope, Grants, Right, Rights};
use tributary_types::table::{Buckets, Distribution};
use tributary_types::{
    ColumnDef, ColumnId, DataType, DbId, DefaultValue, DropMark, Generated, GroupCommitMode, KeyModel,
    PartitionMethod, Partitioning, Partitions, RejectPolicy, SchemaVersion, TableId, TableProperties,
    TableRole, TlsRequirement, UserProperty,
};

/// Definitions written by earlier versions and this one, by format. Never changed once a version is released.
const TABLES: [&str; 2] = [include_str!("golden/table-1.json"), include_str!("golden/table-2.json")];
const SCHEMAS: [&str; 2] = [include_str!("golden/schema-1.json"), include_str!("golden/schema-2.json")];

/// The table of the golden files.
fn orders() -> TableDef {
    let varchar = |bytes| DataType::Varchar { bytes };
    let literal = |text: &str| DefaultValue::Literal(text.to_owned());
    let columns = vec![
        ColumnDef::new(1, "id", DataType::Int).key().not_null(),
        ColumnDef::new(2, "place", varchar(20)).key().not_null(),
        ColumnDef::new(7, "pieces", DataType::Int).with_default(literal("1")),
        ColumnDef::new(3, "price", DataType::Decimal { precision: 10, scale: 2 })
            .with_default(literal("9.99")),
        ColumnDef {
            physical_name: "state".to_owned(),
            ..ColumnDef::new(4, "status", varchar(30)).with_default(literal("new"))
        },
        ColumnDef::new(6, "at", DataType::DateTime { scale: 3 })
            .with_default(DefaultValue::CurrentTimestamp { scale: 3 }),
        ColumnDef { physical_name: "note~8".to_owned(), ..ColumnDef::new(8, "note", DataType::Int) },
        ColumnDef { physical_name: "late~9".to_owned(), ..ColumnDef::new(9, "late", DataType::Boolean) },
    ];
    TableDef {
        id: TableId(2),
        db_id: DbId(1),
        db: "shop".to_owned(),
        name: "orders".to_owned(),
        schema: Arc::new(TableSchema {
            next_column_id: ColumnId(10),
            ..TableSchema::new(SchemaVersion(7), columns)
        }),
        keys: KeyModel::Duplicate { declared: true },
        partitioning: Partitioning::None,
        drop_mark: None,
        distribution: Distribution::Hash { columns: vec!["id".to_owned()], buckets: Buckets::Auto },
        properties: TableProperties {
            group_commit_interval_ms: 70,
            group_commit_data_bytes: 1_000_000,
            group_commit_mode: GroupCommitMode::Sync,
            light_schema_change: true,
            max_concurrent_loads: None,
            max_load_rows_per_second: None,
            max_load_bytes_per_second: None,
            rejected_rows: RejectPolicy::Fail,
            others: [("replication_allocation".to_owned(), "tag.location.default: 1".to_owned())].into(),
        },
        comment: String::new(),
        indexes: Vec::new(),
        rollups: Vec::new(),
        role: TableRole::Own,
        location: "tables/shop/orders-2".to_owned(),
    }
}

#[test]
fn every_format_that_was_ever_written_is_read() {
    for text in TABLES {
        assert_eq!(table(text).unwrap(), orders(), "{text}");
    }
    for text in SCHEMAS {
        assert_eq!(schema(text).unwrap(), *orders().schema, "{text}");
    }
}

#[test]
fn the_format_is_the_one_of_the_last_golden_file() {
    assert_eq!((TABLES.len() as u64, SCHEMAS.len() as u64), (FORMAT, FORMAT));
    assert_eq!(of_table(&orders()).unwrap(), TABLES[1].trim_end());
    assert_eq!(of_schema(&orders().schema).unwrap(), SCHEMAS[1].trim_end());
}

#[test]
fn a_role_is_kept_and_one_from_before_there_were_roles_is_that_of_the_name() {
    let beside = TableDef { role: TableRole::Beside(TableId(7)), ..orders() };
    assert_eq!(table(&of_table(&beside).unwrap()).unwrap(), beside);
    for (name, role) in [
        ("tributary.temporary.17", TableRole::Beside(TableId(17))),
        ("tributary.unfinished.17", TableRole::Unfinished),
        ("tributary_temporary_17", TableRole::Own),
    ] {
        let text = TABLES[1].replace("\"name\":\"orders\"", &format!("\"name\":\"{name}\""));
        let read = table(&text).unwrap();
        assert_eq!((read.name.as_str(), read.role), (name, role));
    }
}

#[test]
fn a_table_of_the_first_format_says_whether_its_keys_were_declared() {
    let text = TABLES[0].replace("\"has_key_clause\":true", "\"has_key_clause\":false");
    assert_eq!(table(&text).unwrap().keys, KeyModel::Duplicate { declared: false });
}

#[test]
fn every_type_default_and_distribution_is_read_back() {
    let columns = DataType::EXAMPLES
        .iter()
        .zip(1..)
        .map(|(&data_type, id)| ColumnDef::new(id, &format!("c{id}"), data_type));
    let mut columns: Vec<ColumnDef> = columns.collect();
    columns[0].default = Some(DefaultValue::Null);
    columns[1].default = Some(DefaultValue::CurrentDate);
    let generated = Generated { expr: "c1 + c2".to_owned(), columns: vec![ColumnId(1), ColumnId(2)] };
    columns[2].generated = Some(Box::new(generated));
    let def = TableDef {
        distribution: Distribution::Random { buckets: Buckets::Count(3) },
        ..TableDef::new(TableId(1), "d", "t", TableSchema::new(SchemaVersion(1), columns))
    };
    let text = of_table(&def).unwrap();
    assert!(text.contains(r#","generated":{"expr":"c1 + c2","columns":[1,2]}}"#), "{text}");
    assert_eq!(table(&text).unwrap(), def);
}

/// The last golden file as fields.
fn fields() -> Value {
    serde_json::from_str(TABLES[1]).unwrap()
}

#[test]
fn what_has_a_default_may_be_missing_and_what_is_unknown_is_ignored() {
    let mut fields = fields();
    for (place, field) in [
        ("", "comment"),
        ("", "partitioning"),
        ("/properties", "group_commit_interval_ms"),
        ("/properties", "group_commit_data_bytes"),
        ("/properties", "group_commit_mode"),
        ("/properties", "light_schema_change"),
        ("/properties", "others"),
        ("/schema/columns/0", "comment"),
        ("/schema/columns/0", "default"),
    ] {
        let removed = fields.pointer_mut(place).unwrap().as_object_mut().unwrap().shift_remove(field);
        assert!(removed.is_some(), "{field}");
    }
    fields["of_a_later_version"] = json!(1);
    fields["schema"]["columns"][1]["of_a_later_version"] = json!(1);
    let expected = TableDef { properties: TableProperties::default(), ..orders() };
    assert_eq!(table(&fields.to_string()).unwrap(), expected);
}

#[test]
fn what_makes_a_table_that_table_may_not_be_missing() {
    for field in ["id", "db_id", "db", "name", "schema", "keys", "distribution", "location"] {
        let mut fields = fields();
        fields.as_object_mut().unwrap().shift_remove(field);
        let error = table(&fields.to_string()).unwrap_err().to_string();
        assert!(error.contains(&format!("missing field `{field}`")), "{error}");
    }
}

#[test]
fn a_later_format_is_refused_by_its_number_before_its_fields_are_read() {
    let later = json!({ "format": 3, "keys": { "Unique": {} } }).to_string();
    for error in [table(&later).unwrap_err(), schema(&later).unwrap_err()] {
        let text = error.to_string();
        assert!(text.contains("it has format 3, but this program knows formats up to 2"), "{text}");
    }
}

#[test]
fn rights_are_stored_by_their_names() {
    let mut grants = Grants::default();
    grants.grant(GrantScope::Global, Rights::of(&[Right::Select, Right::Load]));
    grants.grant(
        GrantScope::Table { db: "d".to_owned(), table: "t".to_owned() },
        Rights::of(&[Right::ShowView]),
    );
    grants.grant(GrantScope::Resource("s3".to_owned()), Rights::of(&[Right::Usage]));
    let comment = "c".to_owned();
    let account = Account {
        roles: ["r".to_owned()].into(),
        grants,
        comment,
        require: TlsRequirement::X509,
        ..Account::default()
    };
    let text = r#"{"format":2,"roles":["r"],"grants":[["Global",["SELECT","LOAD"]],[{"Table":{"db":"d","table":"t"}},["SHOW_VIEW"]],[{"Resource":"s3"},["USAGE"]]],"comment":"c","require":"x509","policy":{"history":null,"expiry":"Default","failed_logins":0,"lock":null},"password_set_at_ms":0}"#;
    assert_eq!(of_account(&account).unwrap(), text);
    let before = text.split(r#","policy""#).next().unwrap().to_owned() + "}";
    assert_eq!(super::account(&before).unwrap(), account, "of a program without rules for passwords");
    assert_eq!(super::account(text).unwrap(), account);
    let unknown = text.replace("USAGE", "FLY");
    assert!(super::account(&unknown).unwrap_err().to_string().contains("unknown right 'FLY'"));
}

#[test]
fn limits_are_stored_by_their_names() {
    let mut account = Account::default();
    for (property, value) in UserProperty::ALL.into_iter().zip(1..) {
        account.limits.set(property, Some(value));
    }
    let text = of_account(&account).unwrap();
    for (property, value) in UserProperty::ALL.into_iter().zip(1..) {
        assert!(text.contains(&format!("\"{}\":{value}", property.name())), "{text}");
    }
    assert_eq!(super::account(&text).unwrap(), account);
    let unknown = text.replace("max_user_connections", "max_flights");
    assert!(super::account(&unknown).unwrap_err().to_string().contains("unknown variant `max_flights`"));
    assert!(!of_account(&Account::default()).unwrap().contains("limits"));
}

#[test]
fn limits_of_a_table_are_stored_if_it_has_any() {
    let mut def = orders();
    assert!(!of_table(&def).unwrap().contains("max_load"));
    def.properties.max_load_rows_per_second = Some(7);
    let text = of_table(&def).unwrap();
    assert!(text.contains(r#""max_load_rows_per_second":7"#), "{text}");
    assert_eq!(table(&text).unwrap(), def);
}

#[test]
fn the_mark_of_a_drop_is_stored_if_there_is_one() {
    let mut def = orders();
    assert!(!of_table(&def).unwrap().contains("drop_mark"));
    let mut partitions = Partitions::new(PartitionMethod::List, vec![ColumnId(2)]);
    let values = PartitionRows::Values(vec![vec![PartitionValue::Text("x".to_owned())]]);
    partitions.add("p", values, BTreeMap::new());
    def.drop_mark = Some(Arc::new(DropMark { log_version: 7, partitions: partitions.list }));
    let text = of_table(&def).unwrap();
    let mark = r#""drop_mark":{"log_version":7,"partitions":[{"id":1,"name":"p","rows":{"Values":[[{"Text":"x"}]]}}]}"#;
    assert!(text.contains(mark), "{text}");
    assert_eq!(table(&text).unwrap(), def);
}
