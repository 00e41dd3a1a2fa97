use super::*;

/// One statement of every kind.
const STATEMENTS: [&str; 30] = [
    "SELECT a, count(*) AS n FROM d.t x JOIN u ON x.a = u.a WHERE a IN (1, 2) AND b LIKE 'x%' GROUP BY a HAVING n > 1 ORDER BY 1 DESC LIMIT 5, 10",
    "WITH x AS (SELECT 1 AS one) SELECT CASE WHEN one = 1 THEN 'a' ELSE \"b\" END FROM x UNION ALL (SELECT 2)",
    "INSERT INTO d.t PARTITION (p) WITH LABEL l (a, b) VALUES (1, DEFAULT), (-1.5e3, concat('a', \"b\", x'00'))",
    "INSERT OVERWRITE TABLE t SELECT * FROM http_stream(\"format\"=\"CSV\")",
    "CREATE DATABASE IF NOT EXISTS d PROPERTIES (\"a\" = \"b\")",
    "CREATE TABLE IF NOT EXISTS d.t (a INT(11) KEY NOT NULL DEFAULT '1' COMMENT 'x', b DECIMAL(10, 2), c DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3),) ENGINE=OLAP DUPLICATE KEY(a) COMMENT 'y' DISTRIBUTED BY HASH(a, b) BUCKETS AUTO PROPERTIES (\"replication_num\" = \"1\")",
    "DROP DATABASE IF EXISTS d FORCE",
    "DROP TABLE IF EXISTS internal.d.t FORCE",
    "TRUNCATE TABLE d.t",
    "ALTER TABLE d.t ADD COLUMN a INT DEFAULT 1 AFTER b, DROP COLUMN c, RENAME COLUMN d e, MODIFY COLUMN f VARCHAR(9) NOT NULL, SET (\"a\" = \"b\"), MODIFY COMMENT 'x'",
    "EXPLAIN VERBOSE SELECT 1",
    "DESC d.t ALL",
    "USE internal.d",
    "SET GLOBAL a = 1, @@session.b = 'x', @c := CONCAT(@@d, ',e'), NAMES utf8 COLLATE utf8_bin",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY",
    "SET PASSWORD FOR 'u'@'h' = PASSWORD('x')",
    "SHOW FULL COLUMNS FROM t FROM d LIKE 'a%'",
    "SHOW VARIABLES WHERE Variable_name IN ('a', 'b')",
    "SHOW TRANSACTION FROM d WHERE label = 'x'",
    "SHOW LOAD FROM d WHERE a = 1 ORDER BY b DESC LIMIT 1 OFFSET 2",
    "SHOW COUNT(*) WARNINGS",
    "SHOW GRANTS FOR 'u'@'h'",
    "ADMIN SHOW FRONTEND CONFIG LIKE 'a%'",
    "BEGIN WITH LABEL l",
    "COMMIT WORK AND NO CHAIN NO RELEASE",
    "CREATE USER IF NOT EXISTS 'u'@'h' IDENTIFIED BY PASSWORD '*81F5E21E35407D884A6CD4A731AEBFB6AF209E1B'",
    "ALTER USER u IDENTIFIED WITH mysql_native_password BY 'p'",
    "DROP USER IF EXISTS u@h.org",
    "KILL QUERY 5",
    "UNLOCK TABLES",
];

/// Parses, prints and drops on the stack of a default thread, and copies on a stack as recommended.
fn survive(sql: String) -> Result<(), SqlError> {
    let text = sql.clone();
    on_stack(2 * 1024 * 1024, move || {
        parse(&sql).map(|statement| {
            if let Statement::Query(query) = &statement {
                assert!(!query.ast.to_string().is_empty());
            }
        })
    })?;
    on_stack(crate::STACK_BYTES, move || parse(&text).map(|statement| drop(statement.clone())))
}

fn on_stack<T: Send + 'static>(bytes: usize, run: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::Builder::new().stack_size(bytes).spawn(run).unwrap().join().expect("no panic")
}

#[test]
fn every_example_parses() {
    STATEMENTS.iter().for_each(|sql| drop(ok(sql)));
}

#[test]
fn every_beginning_of_a_statement_is_answered() {
    for sql in STATEMENTS {
        for end in (0..=sql.len()).filter(|&end| sql.is_char_boundary(end)) {
            let _ = parse(&sql[..end]);
            let _ = crate::split(&sql[..end]);
        }
    }
}

#[test]
fn every_statement_with_a_token_missing_doubled_or_replaced_is_answered() {
    for sql in STATEMENTS {
        let words: Vec<&str> = sql.split(' ').collect();
        for at in 0..words.len() {
            for replacement in
                ["", "(", ")", ",", "'", "`", "@@", "NULL", "99999999999999999999999", "é", "\0"]
            {
                let mut changed = words.clone();
                changed[at] = replacement;
                let _ = parse(&changed.join(" "));
            }
            let mut doubled = words.clone();
            doubled.insert(at, words[at]);
            let _ = parse(&doubled.join(" "));
        }
    }
}

#[test]
fn deep_nesting_is_an_error_and_not_a_crash() {
    const DEEP: usize = 5_000;
    for (open, middle, close) in [
        ("(", "1", ")"),
        ("f(", "1", ")"),
        ("- ", "1", ""),
        ("-(", "1", ")"),
        ("NOT ", "1", ""),
        ("! ", "1", ""),
        ("(SELECT ", "1", ")"),
        ("EXISTS (SELECT ", "1", ")"),
        ("CASE WHEN ", "1", " THEN 1 END"),
        ("CASE ", "1", " WHEN 1 THEN 1 END"),
        ("CAST(", "1", " AS CHAR)"),
        ("a IN (", "1", ")"),
        ("INTERVAL ", "1", " DAY"),
        ("BINARY ", "1", ""),
        ("[", "1", "]"),
        ("{", "1", "}"),
        ("CAST(1 AS ARRAY<", "INT", ">)"),
        ("a BETWEEN ", "1", " AND 2"),
    ] {
        let sql = format!("SELECT {}{middle}{}", open.repeat(DEEP), close.repeat(DEEP));
        assert!(survive(sql).is_err(), "{open}");
    }
    for (open, close) in [("(", ")"), ("(SELECT * FROM ", ") x")] {
        let sql = format!("SELECT * FROM {}t{}", open.repeat(DEEP), close.repeat(DEEP));
        assert!(survive(sql).is_err(), "{open}");
    }
    let with = format!("{} SELECT 1 {}", "WITH x AS (".repeat(DEEP), ") SELECT 1".repeat(DEEP));
    assert!(survive(with).is_err());
}

#[test]
fn long_chains_are_an_error_and_not_a_crash() {
    const LONG: usize = 10_000;
    for link in [
        " + 1",
        " AND a",
        " OR a = 1",
        " || 1",
        " && 1",
        " DIV 2",
        " MOD 2",
        " IS NULL",
        " IS NOT TRUE",
        " LIKE 'a'",
        " COLLATE x",
        "::int",
        " -> '$.a'",
        " BETWEEN 1 AND 2",
        " IN (1)",
        " NOT IN (1)",
        " XOR 1",
        " <=> 1",
        " RLIKE 'a'",
        " REGEXP 'a'",
        " AT TIME ZONE 'x'",
        " MEMBER OF (1)",
        " SIMILAR TO 'a'",
        " = ANY (1)",
        ":a",
        " NOTNULL",
        " OVERLAPS 1",
        " UNION SELECT 1",
        " EXCEPT ALL SELECT 1",
        " INTERSECT SELECT 1",
    ] {
        let sql = format!("SELECT 1{}", link.repeat(LONG));
        assert!(survive(sql).is_err(), "{link}");
    }
    // Chains inside of nesting add up.
    let inner = format!("({}", "1 + ".repeat(900));
    assert!(survive(format!("SELECT {}1{}", inner.repeat(50), ")".repeat(50))).is_err());
    // END and WHEN as names must not hide a chain.
    assert!(survive(format!("SELECT CASE{}", " + 1 + when".repeat(LONG))).is_err());
    assert!(survive(format!("SELECT CASE WHEN 1{} THEN 1 END", " + 1 + t.when".repeat(LONG))).is_err());
}

#[test]
fn the_deepest_accepted_statements_are_safe_to_walk() {
    for (link, fitting) in
        [(" + 1", 1000), (" OR a = 1", 500), (" IS NULL", 1000), (" UNION ALL SELECT 1", 250)]
    {
        survive(format!("SELECT 1{}", link.repeat(fitting))).unwrap();
        assert!(survive(format!("SELECT 1{}", link.repeat(fitting + 1))).is_err(), "{link}");
    }
    let ors = " OR a = 1".repeat(490);
    for (open, close) in
        [("(", ")"), ("f(", ")"), ("(SELECT ", ")"), ("CASE WHEN ", " THEN 1 END"), ("EXISTS (SELECT ", ")")]
    {
        // The deepest that is accepted, with a long chain in it.
        let sql = |depth| format!("SELECT {}1{ors}{}", open.repeat(depth), close.repeat(depth));
        let deepest = (1..=140).rev().find(|&depth| {
            on_stack(1 << 21, {
                let sql = sql(depth);
                move || parse(&sql).is_ok()
            })
        });
        survive(sql(deepest.expect("some depth is accepted"))).unwrap();
        assert!(deepest >= Some(40), "{open} nests {deepest:?} levels");
    }
}

#[test]
fn long_lists_are_fine() {
    let list = vec!["1 + 1"; 20_000].join(", ");
    survive(format!("SELECT a FROM t WHERE a IN ({list})")).unwrap();
    survive(format!("INSERT INTO t VALUES {}", vec!["(1, -2, now())"; 5_000].join(", "))).unwrap();
    survive(format!("SELECT CASE a {} END", "WHEN 1 = 1 THEN 2 + 2 ".repeat(2_000))).unwrap();
}

#[test]
fn nested_alternatives_do_not_take_exponential_time() {
    const OPENINGS: [&str; 20] = [
        "NOT (",
        "CASE (",
        "EXISTS (",
        "INTERVAL (",
        "a IN (",
        "(SELECT * FROM (",
        "CAST(",
        "f((",
        "POSITION(",
        "ARRAY[",
        "TRIM(",
        "DATE (",
        "x'",
        "STRUCT<",
        "((SELECT * FROM (",
        "(((SELECT 1 WHERE a IN (",
        "LATERAL ((SELECT * FROM ",
        "(a JOIN (",
        "((a JOIN ((",
        "((WITH x AS (",
    ];
    for open in OPENINGS {
        for depth in [20, 60] {
            for begin in ["SELECT", "SELECT * FROM", "INSERT INTO t VALUES (", "SET x ="] {
                let _ = survive(format!("{begin} {} x y z", open.repeat(depth)));
            }
        }
    }
}

#[test]
fn subqueries_in_a_few_parentheses_are_fine() {
    for sql in [
        "SELECT * FROM ((SELECT 1) a JOIN (SELECT 2) b)",
        "SELECT * FROM ((((SELECT 1)))) a",
        "SELECT * FROM ((SELECT * FROM ((SELECT * FROM ((SELECT 1) a JOIN t)) b JOIN u)) c JOIN v)",
        "SELECT * FROM ((a JOIN b) JOIN (c JOIN d))",
        "((SELECT 1) UNION ALL ((SELECT 2)))",
    ] {
        survive(sql.to_owned()).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

#[test]
fn a_statement_above_the_limit_is_refused_with_the_limit() {
    let sql = format!("SELECT '{}'", "x".repeat(crate::STATEMENT_BYTES_MAX));
    let refused = error(&sql);
    assert_eq!(refused.code, ErrorCode::PacketTooLarge);
    assert!(refused.message.contains("16777216 bytes"), "{refused}");
}
