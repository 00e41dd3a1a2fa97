//! The meaning of statements, by example.

mod ddl;
mod grants;
mod load;
mod robustness;
mod sessions;

use super::*;
use crate::ast::*;
use tributary_types::{ErrorCode, PartitionNames};

fn ok(sql: &str) -> Statement {
    parse(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn error(sql: &str) -> SqlError {
    match parse(sql) {
        Ok(statement) => panic!("{sql} is {statement:?}"),
        Err(error) => error,
    }
}

fn insert_of(sql: &str) -> Insert {
    match ok(sql) {
        Statement::Insert(insert) => *insert,
        other => panic!("{other:?}"),
    }
}

fn show_of(sql: &str) -> Show {
    match ok(sql) {
        Statement::Show(show) => *show,
        other => panic!("{other:?}"),
    }
}

fn set_of(sql: &str) -> Vec<SetItem> {
    match ok(sql) {
        Statement::Set(items) => items,
        other => panic!("{other:?}"),
    }
}

fn name(db: Option<&str>, table: &str) -> Name {
    Name { db: db.map(str::to_owned), table: table.to_owned() }
}

#[test]
fn a_query_keeps_its_text_without_the_final_semicolon() {
    let Statement::Query(query) = ok(" select a, `b`+1 from t ; ") else { panic!() };
    assert_eq!(query.text, " select a, `b`+1 from t");
    for sql in ["(select 1) union all select 2", "with x as (select 1) select * from x", "values (1), (2)"] {
        assert!(matches!(ok(sql), Statement::Query(_)), "{sql}");
    }
}

#[test]
fn blanks_and_comments_alone_are_an_empty_statement() {
    for sql in ["", " ;; ", "-- x", "/* x */", "# x\n", "; --"] {
        assert_eq!(ok(sql), Statement::Empty, "{sql}");
    }
}

#[test]
fn operators_bind_as_in_mysql() {
    for (sql, grouped) in [
        ("a || b && c", "a || (b && c)"),
        ("a = 1 && b = 2", "(a = 1) && (b = 2)"),
        ("a = 1 || b = 2", "(a = 1) || (b = 2)"),
        ("a DIV 2 + 1", "(a DIV 2) + 1"),
        ("a DIV 2 = 1", "(a DIV 2) = 1"),
        ("a MOD 2 = 1", "(a % 2) = 1"),
        ("a + b MOD 3", "a + (b % 3)"),
    ] {
        let strip = |text: &str| parse_expression(text).unwrap().to_string().replace(['(', ')'], "");
        assert_eq!(strip(sql), strip(grouped), "{sql}");
        assert_eq!(
            shape(&parse_expression(sql).unwrap()),
            shape(&parse_expression(grouped).unwrap()),
            "{sql}"
        );
    }
    parse_expression("!a").unwrap();
    parse_query("select 1 as mod from t where mod = 2").unwrap();
}

#[test]
fn words_are_looked_for_by_operators() {
    for (sql, meant) in [
        ("a MATCH_ANY 'x y'", "match_any(a, 'x y')"),
        ("a match_all 'x' AND b MATCH 'y'", "match_all(a, 'x') AND match_any(b, 'y')"),
        ("a.b MATCH_PHRASE ? OR c", "match_phrase(a.b, ?) OR c"),
        ("a NOT MATCH_PHRASE_PREFIX 'x'", "NOT match_phrase_prefix(a, 'x')"),
        ("NOT a MATCH_ANY 'x'", "NOT match_any(a, 'x')"),
        ("match_any(a, 'x')", "match_any(a, 'x')"),
    ] {
        assert_eq!(parse_expression(sql).unwrap().to_string(), meant, "{sql}");
    }
    for sql in [
        "SELECT a match_any, b match_all FROM t match_phrase",
        "SELECT a match FROM t",
        "SELECT match_any FROM t WHERE match_any = 1",
    ] {
        parse_query(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
}

/// Prints the expression fully parenthesized, ignoring its own parentheses.
fn shape(expr: &Expr) -> String {
    match expr {
        Expr::BinaryOp { left, op, right } => format!("[{} {op} {}]", shape(left), shape(right)),
        Expr::Nested(inner) => shape(inner),
        other => other.to_string(),
    }
}

#[test]
fn texts_may_be_in_either_quotes_and_names_in_backticks() {
    let expr = parse_expression(r#"`a` = "x" and b = 'it\'s'"#).unwrap();
    assert_eq!(expr.to_string(), r#"`a` = "x" AND b = 'it''s'"#);
}

#[test]
fn an_expression_ends_with_its_text_and_not_with_a_semicolon() {
    for text in ["a + 1;", "f(a, 2); -- last", "a; b", "a b"] {
        let error = parse_expression(text).unwrap_err().to_string();
        assert!(error.contains("the end of the expression"), "{text}: {error}");
    }
    parse_expression("a + 1 -- last").unwrap();
}

#[test]
fn an_insert_of_values_takes_literals_expressions_and_defaults() {
    let insert = insert_of("INSERT INTO d.t (a, `b`) VALUES (1, DEFAULT), (1+1, now()), ()");
    assert_eq!(insert.table, name(Some("d"), "t"));
    assert_eq!(insert.columns, Some(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!((insert.label, insert.partitions.is_any(), insert.overwrite), (None, true, false));
    let InsertSource::Values(rows) = insert.source else { panic!() };
    assert_eq!(rows.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 0]);
    assert_eq!(rows[0][1], Value::Default);
    assert!(matches!(&rows[1][0], Value::Expr(Expr::BinaryOp { .. })));
}

#[test]
fn an_insert_takes_its_label_on_either_side_of_the_columns() {
    for sql in [
        "insert into t with label l1 (a) values (1)",
        "insert into t (a) with label `l1` values (1)",
        "insert into t (a) with label 'l1' select 1",
    ] {
        let insert = insert_of(sql);
        assert_eq!(insert.label.as_deref(), Some("l1"), "{sql}");
        assert_eq!(insert.columns.as_deref(), Some(&["a".to_owned()][..]), "{sql}");
    }
}

#[test]
fn an_insert_of_a_query_knows_a_cte_from_a_label() {
    for sql in [
        "insert into t select 1, 2",
        "insert into t (select 1)",
        "insert into t ((select 1) union all (select 2))",
        "insert into t (a) with x as (select 1) select * from x",
        "insert into t with label as (select 1) select * from label",
        "insert into t [shuffle] select 1",
    ] {
        let insert = insert_of(sql);
        assert!(matches!(insert.source, InsertSource::Query(_)), "{sql}");
        assert_eq!(insert.label, None, "{sql}");
    }
}

#[test]
fn an_insert_says_whether_it_names_partitions_or_overwrites() {
    let names = |sql: &str| insert_of(sql).partitions;
    let both = PartitionNames::Named(vec!["p1".to_owned(), "p2".to_owned()]);
    assert_eq!(names("insert into t partition (p1, p2) values (1)"), both);
    let temporary = PartitionNames::Temporary(vec!["p1".to_owned()]);
    assert_eq!(names("insert into t temporary partition (p1) (a) values (1)"), temporary);
    let overwrite = insert_of("insert overwrite table internal.d.t partition(*) select 1");
    assert!(overwrite.overwrite && overwrite.partitions.is_any(), "a star names none");
    assert!(overwrite.overwrites_touched);
    assert!(!insert_of("insert overwrite table t partition(p) select 1").overwrites_touched);
    assert!(!insert_of("insert into t partition(*) select 1").overwrites_touched);
    assert_eq!(overwrite.table, name(Some("d"), "t"));
}

#[test]
fn the_http_stream_function_parses() {
    let sql = r#"insert into d.t (c1, c2) select c1, c2*2 from http_stream("format"="CSV", "column_separator"=",") where c1 > 1"#;
    let InsertSource::Query(query) = insert_of(sql).source else { panic!() };
    assert!(query.ast.to_string().contains("http_stream"), "{}", *query.ast);
}

#[test]
fn explain_takes_queries_inserts_and_tables() {
    let Statement::Explain(explain) = ok("EXPLAIN VERBOSE select 1") else { panic!() };
    assert!(explain.form == ExplainForm::Verbose && !explain.analyze);
    let Statement::Explain(explain) = ok("explain physical plan select 1") else { panic!() };
    assert_eq!(explain.form, ExplainForm::Physical);
    let Statement::Explain(explain) = ok("explain analyze insert into t values (1)") else { panic!() };
    assert!(explain.analyze && matches!(*explain.statement, Statement::Insert(_)));
    assert!(matches!(ok("explain format=tree select 1"), Statement::Explain(_)));
    assert!(matches!(ok("desc shape plan select 1"), Statement::Explain(_)));
    assert_eq!(ok("DESC d.t ALL"), Statement::Describe { table: name(Some("d"), "t"), all: true });
    assert_eq!(ok("describe `t`"), Statement::Describe { table: name(None, "t"), all: false });
    assert_eq!(ok("explain t"), Statement::Describe { table: name(None, "t"), all: false });
}

#[test]
fn a_syntax_error_names_the_token_the_line_and_the_position() {
    let wrong = error("select 1\nfrm t where");
    assert_eq!(wrong.code, ErrorCode::Syntax);
    assert_eq!(
        wrong.message,
        "errCode = 2, detailMessage = syntax error: expected the end of the statement, found 't' (line 2, pos 4)"
    );
    assert_eq!(
        error("create tabel t").message,
        "errCode = 2, detailMessage = CREATE TABEL is not supported yet"
    );
    assert_eq!(
        error("insert into t values (1,").detail_text(),
        "syntax error: expected an expression, found the end of the statement (line 1, pos 24)"
    );
    assert_eq!(
        error("frobnicate").detail_text(),
        "syntax error: expected a statement, found 'frobnicate' (line 1, pos 0)"
    );
    let unfinished = error("select 'abc");
    assert_eq!(unfinished.code, ErrorCode::Syntax);
    assert!(unfinished.detail_text().contains("Unterminated string literal (line 1, pos 7)"), "{unfinished}");
}

#[test]
fn statements_that_are_not_built_are_refused_by_name() {
    for (sql, what) in [
        ("update t set a = 1 limit 1", "UPDATE with LIMIT"),
        ("update t left join u on t.a = u.a set a = 1", "UPDATE with an outer join of its table"),
        ("update t join u using (a) set b = 1", "UPDATE with JOIN … USING"),
        ("delete u from t join u on t.a = u.a", "DELETE of tables named before FROM"),
        ("delete from t join u on t.a = u.a", "DELETE of tables named before FROM"),
        ("delete from t where a = 1 limit 5", "DELETE with LIMIT"),
        ("create materialized view v as select 1", "CREATE MATERIALIZED VIEW"),
        ("create table t (a int) as select 1", "CREATE TABLE … AS SELECT with types of columns"),
        ("alter database d rename e", "ALTER DATABASE … RENAME"),
        ("alter system add backend 'h:1'", "ALTER SYSTEM"),
        (
            "load label l (data infile('s3://b/f') into table t) with hdfs ('a' = 'b')",
            "LOAD LABEL … WITH HDFS",
        ),
        ("with x as (select 1) delete from t", "DELETE after WITH"),
        ("with x as (select 1) insert into t select 1", "INSERT after WITH"),
        ("explain update t set a = 1", "EXPLAIN UPDATE"),
        ("show routine", "SHOW ROUTINE"),
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
fn inserts_of_mysql_are_inserts() {
    let expected = insert_of("insert into t (a, b) values (1, default)");
    for sql in [
        "replace into t (a, b) values (1, default)",
        "REPLACE t SET a = 1, b = DEFAULT",
        "insert low_priority into t set a=1, b=default;",
        "insert into t (`d`.`t`.`a`, t.b) values (1, default)",
        "insert high_priority t (a, b) value (1, default)",
    ] {
        let replaces = sql.to_ascii_lowercase().starts_with("replace");
        assert_eq!(insert_of(sql), Insert { replaces, ..expected.clone() }, "{sql}");
    }
}

#[test]
fn an_upsert_names_the_columns_that_change() {
    let clause_of =
        |clause: &str| insert_of(&format!("insert into t (k, a, b) values (1, 2, 3) {clause}")).on_duplicate;
    let of = |clause: &str| clause_of(clause).map(|clause| clause.updated);
    assert_eq!(of(""), None);
    for clause in [
        "ON DUPLICATE KEY UPDATE a = VALUES(a), `b` = values(`b`), k = k",
        "as new on duplicate key update a = new.a, t.b = `new`.`b`, k = t.k;",
    ] {
        assert_eq!(of(clause), Some(vec!["a".to_owned(), "b".to_owned()]), "{clause}");
    }
    assert_eq!(of("on duplicate key update k = k"), Some(Vec::new()));
    let clause = clause_of("as new on duplicate key update a = a + new.a, b = values(b), k = t.k").unwrap();
    assert_eq!(
        (clause.updated, clause.alias),
        (vec!["a".to_owned(), "b".to_owned()], Some("new".to_owned()))
    );
    let computed: Vec<String> =
        clause.computed.iter().map(|(name, expr)| format!("{name} = {expr}")).collect();
    assert_eq!(computed, ["a = a + new.a"]);
}

#[test]
fn an_insert_may_leave_out_rows_that_exist() {
    for sql in [
        "insert ignore into t values (1)",
        "INSERT LOW_PRIORITY IGNORE t SELECT 1",
        "insert ignore t set a = 1",
    ] {
        assert!(insert_of(sql).ignores, "{sql}");
    }
    assert!(!insert_of("insert into `ignore` values (1)").ignores);
    assert!(parse("INSERT IGNORE OVERWRITE TABLE t VALUES (1)").is_err());
    assert!(parse("REPLACE IGNORE INTO t VALUES (1)").is_err());
}

#[test]
fn clauses_that_lock_rows_change_nothing() {
    let SelectQuery { ast, .. } = parse_query("SELECT a FROM t WHERE a = 1").unwrap();
    for lock in ["FOR UPDATE", "for update of t nowait", "FOR SHARE SKIP LOCKED", "LOCK IN SHARE MODE"] {
        let sql = format!("SELECT a FROM t WHERE a = 1 {lock}");
        assert_eq!(parse_query(&sql).unwrap_or_else(|error| panic!("{sql}: {error}")).ast, ast, "{sql}");
    }
    assert!(parse("SELECT a FROM t LOCK IN SHARE MODE").is_ok());
}

#[test]
fn a_compatible_parse_maps_what_only_mysql_has() {
    let sql = "CREATE TABLE `t` (id INT(10) UNSIGNED NOT NULL AUTO_INCREMENT, `name` varchar(20) CHARACTER SET utf8mb4 COLLATE \
               utf8mb4_bin DEFAULT NULL, body longtext, raw VARBINARY(16), kind ENUM('a','bcd') DEFAULT 'a', at timestamp(3) NOT NULL \
               DEFAULT CURRENT_TIMESTAMP(3), share FLOAT(53), f float(24), flag bit(1), n MEDIUMINT UNSIGNED, PRIMARY KEY (`id`), \
               UNIQUE KEY u (name), KEY k (body(10) DESC) USING BTREE COMMENT 'x', CONSTRAINT fk FOREIGN KEY (n) REFERENCES o (id) ON DELETE \
               CASCADE ON UPDATE NO ACTION, CHECK (n > 0)) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin \
               ROW_FORMAT=DYNAMIC COMMENT='c'";
    assert_eq!(error(sql).code, ErrorCode::NotSupported);
    let (parsed, notes) = parse_compatible(sql).unwrap();
    let expected = "CREATE TABLE t (id BIGINT NOT NULL AUTO_INCREMENT, name varchar(20) DEFAULT NULL, body text, raw varbinary(16), kind varchar(3) \
                    DEFAULT 'a', at datetime(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3), share double, f float, flag boolean, n int) \
                    UNIQUE KEY (id) COMMENT 'c'";
    assert_eq!(parsed, ok(expected));
    for note in [
        "column 'id': INT UNSIGNED is bigint",
        "column 'body': LONGTEXT is text",
        "column 'share': FLOAT(53…) is double",
        "PRIMARY KEY (id) is UNIQUE KEY: a row replaces the one of its key",
        "UNIQUE (name) is not checked: a table has one key",
        "a constraint among the columns is left out: it is not checked",
        "ENGINE=InnoDB is left out: all tables are of one engine",
        "the table option AUTO_INCREMENT is left out: it changes nothing here",
    ] {
        assert!(notes.iter().any(|found| found == note), "{note} is not in {notes:?}");
    }
}

#[test]
fn the_columns_of_a_key_become_the_first() {
    let (parsed, notes) =
        parse_compatible("create table t (a int, id int, b int, k int, primary key (k, id))").unwrap();
    let Statement::CreateTable(create) = parsed else { panic!() };
    let names: Vec<&str> = create.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["id", "k", "a", "b"]);
    assert!(notes.iter().any(|note| note.contains("an INSERT has to name its columns")), "{notes:?}");
    let twice = parse_compatible("create table t (a int primary key, b int, primary key (b))").unwrap_err();
    assert_eq!(twice.code, ErrorCode::MultiplePrimaryKey);
    let missing = parse_compatible("create table t (a int, primary key (b))").unwrap_err();
    assert_eq!(missing.code, ErrorCode::KeyColumnMissing);
    for sql in ["alter table t add primary key (a)", "alter table t add column b int primary key"] {
        assert_eq!(parse_compatible(sql).unwrap_err().code, ErrorCode::NotSupported, "{sql}");
    }
}

#[test]
fn texts_and_names_are_unescaped_as_mysql_does() {
    let texts = |sql: &str| {
        let InsertSource::Values(rows) = insert_of(sql).source else { panic!("{sql}") };
        let text = |value: &Value| match value {
            Value::Expr(Expr::Value(found)) => found.value.clone().into_string(),
            _ => None,
        };
        rows[0].iter().map(|value| text(value).unwrap()).collect::<Vec<_>>()
    };
    let sql = r#"INSERT INTO t VALUES ('a\'b\\c\nd\te\0f\Zg\qh\%i\_j''k', 'bell \a feed \f', "a""b'c\"d", "\é''", '')"#;
    let expected =
        ["a'b\\c\nd\te\0f\u{1a}gqh\\%i\\_j'k", "bell a feed f", "a\"b'c\"d", "é''", ""].map(str::to_owned);
    assert_eq!(texts(sql), expected);
    let insert = insert_of("INSERT INTO `a``b`.`c\\d` (`e'f`) VALUES (1)");
    assert_eq!(insert.table, name(Some("a`b"), "c\\d"));
    assert_eq!(insert.columns, Some(vec!["e'f".to_owned()]));
}

#[test]
fn statements_about_views_keep_the_text_of_their_query() {
    let of = |sql: &str| match parse(sql) {
        Ok(Statement::View(view)) => *view,
        other => panic!("{sql}: {other:?}"),
    };
    let sql = "create or replace view d.v (a comment 'x', `b`) comment 'c' as\n select 1, 'é;' from t ; ";
    assert_eq!(
        of(sql),
        ViewStatement::Create(CreateView {
            view: name(Some("d"), "v"),
            or_replace: true,
            if_not_exists: false,
            body: ViewBody {
                columns: Some(vec![("a".to_owned(), "x".to_owned()), ("b".to_owned(), String::new())]),
                comment: Some("c".to_owned()),
                query: "select 1, 'é;' from t".to_owned(),
            },
        })
    );
    let ViewStatement::Alter { view, body } = of("ALTER VIEW v AS (SELECT 1) UNION SELECT 2") else {
        panic!()
    };
    assert_eq!((view, body.query.as_str()), (name(None, "v"), "(SELECT 1) UNION SELECT 2"));
    assert!(
        matches!(of("alter view v modify comment 'x'"), ViewStatement::Comment { comment, .. } if comment == "x")
    );
    assert!(matches!(of("drop view if exists v"), ViewStatement::Drop { if_exists: true, .. }));
    assert!(
        matches!(of("create view if not exists v as with x as (select 1) select * from x"), ViewStatement::Create(create) if create.if_not_exists)
    );
    for bad in [
        "create view v",
        "create view v as insert into t values (1)",
        "create or replace view if not exists v as select 1",
        "create view v$ as select 1",
        "create view v as select 1 select 2",
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn forms_that_are_not_built_are_refused_by_name() {
    for (sql, what) in [
        ("SELECT a FROM t TABLESAMPLE(1 ROWS)", "TABLESAMPLE is not supported yet"),
        ("SELECT 1 WHERE 1 IN (SELECT a FROM t SAMPLE 0.1)", "TABLESAMPLE is not supported yet"),
    ] {
        let refused = parse(sql).expect_err(sql);
        assert_eq!(refused.code, tributary_types::ErrorCode::NotSupported, "{sql}: {refused}");
        assert!(refused.detail_text().starts_with(what), "{sql}: {refused}");
    }
}

#[test]
fn spans_in_units_of_parts_and_casts_to_nested_types_are_read() {
    for (sql, expected) in [
        ("SELECT a + INTERVAL '1-2' YEAR_MONTH, b FROM t", "SELECT a + INTERVAL '1-2' YEAR_MONTH, b FROM t"),
        (
            "SELECT DATE_ADD(a, INTERVAL CONCAT('1 ', b) day_hour) + INTERVAL 1 DAY",
            "SELECT DATE_ADD(a, INTERVAL CONCAT('1 ', b) DAY_HOUR) + INTERVAL 1 DAY",
        ),
        (
            "SELECT a + INTERVAL 1 DAY + INTERVAL 2 MINUTE_SECOND",
            "SELECT a + INTERVAL 1 DAY + INTERVAL 2 MINUTE_SECOND",
        ),
        ("SELECT extract(Hour_Minute from a)", "SELECT EXTRACT(HOUR_MINUTE FROM a)"),
        (
            "SELECT CAST(a AS MAP<INT, ARRAY<TEXT>>), TRY_CAST(b AS INT) FROM t",
            "SELECT CAST(a AS tributary nested(MAP < INT , ARRAY < TEXT >>)), TRY_CAST(b AS INT) FROM t",
        ),
        ("SELECT count(*) FILTER (WHERE a > 1) FROM t", "SELECT count(*) FILTER (WHERE a > 1) FROM t"),
        ("SELECT count(*) filter FROM t", "SELECT count(*) AS filter FROM t"),
        ("SELECT hour_minute, a FROM t", "SELECT hour_minute, a FROM t"),
        (
            "SELECT c FROM t LATERAL VIEW explode(a) x AS c JOIN u ON u.k = c",
            "SELECT c FROM t CROSS APPLY explode(a) AS x (c) JOIN u ON u.k = c",
        ),
    ] {
        let query = super::parse_query(sql).expect(sql);
        assert_eq!(query.ast.to_string(), expected, "{sql}");
    }
    for bad in ["SELECT CAST(a AS MAP<INT, TEXT", "SELECT CAST(a AS MAP<INT, TEXT)"] {
        assert!(super::parse_query(bad).is_err(), "{bad}");
    }
    for (text, expected) in
        [("MAP < INT , ARRAY < TEXT >>", "map<int,array<text>>"), ("struct<A:int>", "struct<a:int>")]
    {
        assert_eq!(super::parse_type(text).expect(text).to_string(), expected);
    }
    for bad in ["ARRAY<NOTHING>", "ARRAY < INT >>", "INT INT"] {
        assert!(super::parse_type(bad).is_err(), "{bad}");
    }
}
