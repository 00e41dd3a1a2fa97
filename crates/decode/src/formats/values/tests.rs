use super::*;
use crate::testing::{column, lines, table};
use crate::{Counts, RejectCode};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use sqlparser::ast::{Expr, SetExpr, Statement, UnaryOperator, Value};
use std::sync::Arc;
use tributary_types::{DataType, DefaultValue, Nested, TableDef};

fn pairs() -> Arc<TableDef> {
    table(vec![
        column(0, "n", DataType::Int).with_default(DefaultValue::Literal("5".into())),
        column(1, "s", DataType::String),
    ])
}

fn decode(sql: &str) -> Result<ValuesOutcome, SqlError> {
    let table = pairs();
    let target = Target::new(&table, None)?;
    decode_values(sql.as_bytes(), &target, &InsertOptions::default(), &mut BlockBuilder::new(&table.schema))
}

fn rows(sql: &str) -> Vec<String> {
    match decode(sql).unwrap() {
        ValuesOutcome::Rows(decoded) => {
            assert_eq!(decoded.rejects, [], "{sql}");
            lines(&pairs(), &decoded)
        }
        ValuesOutcome::General => panic!("general: {sql}"),
    }
}

fn head(sql: &str) -> Option<InsertHead<'_>> {
    scan_insert_head(sql.as_bytes())
}

#[test]
fn the_head_of_a_hot_insert_is_recognised() {
    let found = head("/* hi */ insert INTO -- x\n `my db` . t\n(`a``b`, c1 ,é) values (1)").unwrap();
    assert_eq!(found.db.as_deref(), Some("my db"));
    assert_eq!(found.table, "t");
    assert_eq!(found.columns, Some(vec!["a`b".to_owned(), "c1".to_owned(), "é".to_owned()]));
    let plain = head("INSERT INTO t VALUES(1)").unwrap();
    assert_eq!((plain.db, plain.columns, plain.values_offset), (None, None, 20));
    let catalog = head("INSERT INTO internal.db.t VALUES (1)").unwrap();
    assert_eq!((catalog.db.as_deref(), &*catalog.table), (Some("db"), "t"));
    assert!(head("# c\nINSERT /*+ SET_VAR(x=1) */ INTO t(a) VALUES (1)").is_some());
}

#[test]
fn every_other_statement_is_for_the_general_parser() {
    for sql in [
        "",
        "SELECT 1",
        "INSERT",
        "INSERT INTO",
        "INSERT INTO t",
        "INSERT INTO t SELECT 1",
        "INSERT INTO t (SELECT 1)",
        "INSERT INTO t (a SELECT",
        "INSERT INTO t WITH LABEL l VALUES (1)",
        "INSERT INTO t PARTITION (p) VALUES (1)",
        "INSERT OVERWRITE TABLE t VALUES (1)",
        "INSERT INTO hive.db.t VALUES (1)",
        "INSERT INTO INTERNAL.db.t VALUES (1)",
        "INSERT INTO 123 VALUES (1)",
        "INSERT INTO t (1) VALUES (1)",
        "INSERT INTO table VALUES (1)",
        "INSERT INTO t (select) VALUES (1)",
        "INSERT INTO \u{1f600} VALUES (1)",
        "INSERT INTO t@x VALUES (1)",
        "INSERT INTO t () VALUES ()",
        "INSERT INTO `t VALUES (1)",
        "INSERT INTO `` VALUES (1)",
        "INSERTINTO t VALUES (1)",
        "INSERT INTO t VALUESX (1)",
        "INSERT INTO t VALUES VALUES (1)",
        "INSERT INTO t VALUES",
        "/*!40000 INSERT INTO t VALUES (1) */",
        "/* INSERT INTO t VALUES (1)",
        "EXPLAIN INSERT INTO t VALUES (1)",
    ] {
        assert_eq!(head(sql), None, "{sql}");
    }
    assert_eq!(scan_insert_head(b"INSERT INTO \xff VALUES (1)"), None);
}

#[test]
fn rows_of_literals_are_decoded() {
    assert_eq!(rows("VALUES (1,'a'),(2,\"b\")"), ["1|a", "2|b"]);
    assert_eq!(rows(" ( -1 , NULL ) , (+2,null) ; "), ["-1|NULL", "2|NULL"]);
    assert_eq!(rows("(- 3, ''), (4, 5.50) /* end */ -- bye"), ["-3|", "4|5.50"]);
    assert_eq!(
        rows("(TRUE, false), ('7', DATE '2024-01-02'), (0x10, x'4142')"),
        ["1|0", "7|2024-01-02", "16|AB"]
    );
    assert_eq!(rows("(1.9, timestamp\"2024-01-02 03:04:05\");;"), ["1|2024-01-02 03:04:05"]);
}

#[test]
fn escapes_are_those_of_mysql() {
    assert_eq!(rows(r"(1,'a\'b\\c\nd\te\0f\Zg\qh\%i\_j''k')"), ["1|a'b\\c\nd\te\0f\u{1a}gqh\\%i\\_j'k"]);
    assert_eq!(rows(r#"(1,"a""b'c\"d")"#), ["1|a\"b'c\"d"]);
    assert_eq!(rows(r"(1,'''')"), ["1|'"]);
    assert_eq!(rows(r"(1,'\é\\')"), ["1|é\\"]);
}

#[test]
fn a_text_ends_at_its_quote_wherever_that_is() {
    for length in 0..80 {
        let text = "x".repeat(length);
        assert_eq!(rows(&format!("VALUES (1,'{text}')")), [format!("1|{text}")]);
        assert_eq!(rows(&format!("VALUES (1, '{text}''y\\\'z')")), [format!("1|{text}'y'z")]);
        assert_eq!(rows(&format!("VALUES (-12 ,'{text}&\\n')")), [format!("-12|{text}&\n")]);
        assert!(matches!(decode(&format!("VALUES (1,'{text}")), Ok(ValuesOutcome::General)));
    }
}

#[test]
fn an_empty_row_is_all_defaults() {
    assert_eq!(rows("VALUES (), (1,'x'), ( )"), ["5|NULL", "1|x", "5|NULL"]);
    let table = pairs();
    let target = Target::new(&table, Some(&["n".to_owned()])).unwrap();
    let mut builder = BlockBuilder::new(&table.schema);
    let error = decode_values(b"VALUES ()", &target, &InsertOptions::default(), &mut builder).unwrap_err();
    assert_eq!(error.detail_text(), "value list should not be empty if columns are specified");
}

#[test]
fn anything_but_literals_is_for_the_general_parser() {
    for sql in [
        "VALUES",
        "VALUES (1,'a'",
        "VALUES (1,'a')(2,'b')",
        "VALUES (1,'a'),",
        "VALUES (1+1,'a')",
        "VALUES (now(),'a')",
        "VALUES (DEFAULT,'a')",
        "VALUES (1,'a' 'b')",
        "VALUES (1,_utf8'a')",
        "VALUES (1,'a)",
        "VALUES (1,'a\\",
        "VALUES (1,'a') ON DUPLICATE KEY UPDATE n=1",
        "VALUES (1,'a'); SELECT 1",
        "VALUES (--1,'a')",
        "VALUES (-'1','a')",
        "VALUES (1,/*!1*/'a')",
        "VALUES (1,/* 'a')",
        "VALUES ROW(1,'a')",
        "VALUES (1e,'a')",
        "VALUES (1a,'a')",
        "VALUES (.,'a')",
        "VALUES (x'4','a')",
        "VALUES (0x,'a')",
        "VALUES (?,'a')",
        "VALUES (n,'a')",
        "VALUES (,'a')",
        "VALUES ((1),'a')",
    ] {
        assert!(matches!(decode(sql), Ok(ValuesOutcome::General)), "{sql}");
    }
}

#[test]
fn a_row_with_more_or_fewer_values_than_columns_is_1058_and_names_the_row() {
    for (sql, row) in [("VALUES (1)", 1), ("VALUES (1,'a'),(1,'a',2)", 2)] {
        let error = decode(sql).unwrap_err();
        assert_eq!(error.code.number(), 1058);
        assert_eq!(error.detail_text(), format!("Column count doesn't match value count at row {row}"));
    }
}

#[test]
fn a_statement_that_is_not_utf8_says_where() {
    let table = pairs();
    let target = Target::new(&table, None).unwrap();
    let mut builder = BlockBuilder::new(&table.schema);
    let error = decode_values(b"(1,'\xff')", &target, &InsertOptions::default(), &mut builder).unwrap_err();
    assert!(error.message.contains("not valid UTF-8 at byte 4"), "{error}");
}

#[test]
fn what_was_given_up_leaves_nothing_for_the_next_statement() {
    let table = pairs();
    let target = Target::new(&table, None).unwrap();
    let mut builder = BlockBuilder::new(&table.schema);
    let mut next =
        |sql: &str| decode_values(sql.as_bytes(), &target, &InsertOptions::default(), &mut builder);
    assert!(matches!(next("(1,'a'),(2,now())"), Ok(ValuesOutcome::General)));
    assert!(next("(1,'a'),(2,'b',3)").is_err());
    assert!(next("(1,'a'),('bad','b')").is_ok());
    let Ok(ValuesOutcome::Rows(decoded)) = next("(9,'z')") else { panic!("rows expected") };
    assert_eq!(lines(&table, &decoded), ["9|z"]);
}

#[test]
fn a_builder_of_another_table_is_made_fit() {
    let other = table(vec![column(0, "x", DataType::Date)]);
    let mut builder = BlockBuilder::new(&other.schema);
    builder.push_i32(0, 1);
    let target = Target::new(&pairs(), None).unwrap();
    let outcome = decode_values(b"(1,'a')", &target, &InsertOptions::default(), &mut builder).unwrap();
    let ValuesOutcome::Rows(decoded) = outcome else { panic!("rows expected") };
    assert_eq!(decoded.counts.loaded, 1);
}

#[test]
fn a_large_statement_is_cut_into_blocks_and_each_bad_row_keeps_its_reason() {
    let mut sql = String::from("VALUES ");
    for row in 0..20_000 {
        let number = if row % 100 == 99 { "'bad'".to_owned() } else { row.to_string() };
        sql += &format!("{}({number},'text {row}')", if row == 0 { "" } else { "," });
    }
    let ValuesOutcome::Rows(decoded) = decode(&sql).unwrap() else { panic!("rows expected") };
    assert_eq!(decoded.counts, Counts { total: 20_000, loaded: 19_800, filtered: 200, unselected: 0 });
    assert_eq!(decoded.blocks.iter().map(crate::Block::row_count).collect::<Vec<_>>(), [8192, 8192, 3416]);
    assert_eq!(decoded.rejects.len(), 200);
    let reason = "column(n) value is incorrect while strict mode is true, src value is bad".to_owned();
    let rejected = &decoded.rejects[49];
    assert_eq!((&rejected.reason, rejected.source_line.as_str()), (&reason, ""));
    assert_eq!((rejected.code, rejected.column.as_deref()), (RejectCode::WrongValue, Some("n")));
    assert_eq!((rejected.row, rejected.raw.as_str()), (Some(5_000), "('bad','text 4999')"));
    let expected: Vec<String> =
        (0..20_000).filter(|row| row % 100 != 99).map(|row| format!("{row}|text {row}")).collect();
    assert_eq!(lines(&pairs(), &decoded), expected);
}

/// The general parser's value of a literal: `None` for NULL.
fn literal_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => Some(format!("-{}", literal_of(expr)?)),
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } => literal_of(expr),
        Expr::Value(value) => match &value.value {
            Value::Null => None,
            Value::Number(text, _) => Some(text.clone()),
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => Some(text.clone()),
            Value::Boolean(value) => Some(u8::from(*value).to_string()),
            other => panic!("{other}"),
        },
        other => panic!("{other}"),
    }
}

fn general_rows(sql: &str) -> Vec<String> {
    let dialect = sqlparser::dialect::MySqlDialect {};
    let statements = sqlparser::parser::Parser::parse_sql(&dialect, sql).unwrap();
    let Statement::Insert(insert) = &statements[0] else { panic!("{sql}") };
    let SetExpr::Values(values) = insert.source.as_ref().unwrap().body.as_ref() else { panic!("{sql}") };
    let cell = |expr: &Expr| literal_of(expr).unwrap_or_else(|| "NULL".to_owned());
    values.rows.iter().map(|row| row.content.iter().map(cell).collect::<Vec<_>>().join("|")).collect()
}

#[test]
fn the_scanner_and_the_general_parser_read_the_same_from_generated_statements() {
    let mut random = StdRng::seed_from_u64(20);
    let pieces = [
        "a", "é", "漢", "''", "\\'", "\\\\", "\\n", "\\t", "\\0", "\\Z", "\\%", "\\_", "\"", ",", ")", "(",
        ";", "--", "/*", " ", "x1",
    ];
    let double_pieces = ["a", "é", "\"\"", "\\\"", "\\\\", "'", "\\r", "\\b", ",", "#", " "];
    let blanks = ["", " ", "\n", "\t ", " /* c */ ", " -- x\n"];
    for _ in 0..400 {
        let mut sql = String::from("INSERT INTO t VALUES");
        for row in 0..random.random_range(1..5) {
            let mut blank = || *blanks.choose(&mut StdRng::seed_from_u64(random.random())).unwrap();
            let (b1, b2, b3) = (blank(), blank(), blank());
            let number = match random.random_range(0..4) {
                0 => "NULL".to_owned(),
                1 => format!("-{}", random.random_range(1..1000)),
                2 => random.random_range(0..1_000_000).to_string(),
                _ => "TRUE".to_owned(),
            };
            let count = random.random_range(0..8);
            let text = if random.random() {
                format!("'{}'", (0..count).map(|_| *pieces.choose(&mut random).unwrap()).collect::<String>())
            } else {
                format!(
                    "\"{}\"",
                    (0..count).map(|_| *double_pieces.choose(&mut random).unwrap()).collect::<String>()
                )
            };
            let comma = if row == 0 { "" } else { "," };
            sql += &format!("{comma}{b1}({b2}{number}{b3},{b1}{text}{b2})");
        }
        let head = scan_insert_head(sql.as_bytes()).unwrap();
        assert_eq!(rows(&sql[head.values_offset..]), general_rows(&sql), "{sql}");
    }
}

#[test]
fn no_prefix_and_no_damage_of_a_statement_makes_the_scanner_panic() {
    let sql = br#"INSERT INTO `a`.b (n, `s`) VALUES (-1.5e3, 'a\'b'), (0x1F, "c""d"), (NULL, DATE '2024-01-01') -- x"#;
    let table = pairs();
    let target = Target::new(&table, None).unwrap();
    let mut builder = BlockBuilder::new(&table.schema);
    let mut random = StdRng::seed_from_u64(7);
    for round in 0..5000 {
        let mut damaged = sql[..random.random_range(0..=sql.len())].to_vec();
        if round % 2 == 0 && !damaged.is_empty() {
            let at = random.random_range(0..damaged.len());
            damaged[at] = random.random();
        }
        let offset = scan_insert_head(&damaged).map_or(0, |head| head.values_offset);
        let _ = decode_values(&damaged[offset..], &target, &InsertOptions::default(), &mut builder);
    }
}

#[test]
fn arrays_and_maps_of_literals_are_taken_beside_their_texts() {
    let map = DataType::Nested(Nested::new(NestedType::Map(DataType::String, DataType::Int)));
    let table = table(vec![column(0, "a", DataType::array(DataType::Int)), column(1, "m", map)]);
    let taken = |sql: &str| {
        let target = Target::new(&table, None).unwrap();
        let mut builder = BlockBuilder::new(target.schema());
        match decode_values(sql.as_bytes(), &target, &InsertOptions::default(), &mut builder).unwrap() {
            ValuesOutcome::Rows(decoded) => Some((lines(&table, &decoded), decoded.counts.filtered)),
            ValuesOutcome::General => None,
        }
    };
    let (rows, filtered) = taken("VALUES ([1, -2,NULL], {'it''s': 7}), ('[3]', '{}'), ( [ ] , {} )").unwrap();
    assert_eq!((rows.len(), filtered), (3, 0), "{rows:?}");
    assert!(rows[0].contains("[1, -2, ]") && rows[0].contains("it's") && rows[1].contains("[3]"), "{rows:?}");
    // A row that does not fit is rejected here, with the others of the load.
    assert_eq!(taken("VALUES (['x'], {}), ([1], {})").unwrap().1, 1);
    for other in [
        "VALUES ([1 + 1], {})",
        "VALUES ([1.5], {})",
        "VALUES ({1}, {})",
        "VALUES ([1, {})",
        "VALUES ([x'41'], {})",
    ] {
        assert!(taken(other).is_none(), "{other}");
    }
}
