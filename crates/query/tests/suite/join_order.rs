//! Joins in the cheapest order answer what they answer in the written one.

use crate::common::{Server, rows};
use std::sync::Arc;

/// Numbers that only depend on where they begin (`SplitMix64`).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

/// Tables whose columns can all be joined with each other: whole numbers of two widths, a number, a text and a date, each with
/// NULLs; their rows are in files, in memory, or in both.
const TABLES: [(&str, usize, usize); 5] =
    [("t0", 4, 3), ("t1", 9, 6), ("t2", 30, 12), ("t3", 60, 20), ("t4", 7, 4)];
const COLUMNS: [&str; 5] = ["i", "b", "x", "s", "d"];

fn value(numbers: &mut Numbers, column: &str, different: usize) -> String {
    let number = numbers.below(different + 1);
    if number == different {
        return "NULL".to_owned();
    }
    match column {
        "x" => format!("{number}.0"),
        "s" => format!("'{number}'"),
        "d" => format!("'2024-01-{:02}'", number + 1),
        _ => number.to_string(),
    }
}

async fn server() -> Server {
    let (mut server, mut numbers) = (Server::new(), Numbers(1));
    for (at, (table, count, different)) in TABLES.into_iter().enumerate() {
        let columns = "(id INT, i INT, b BIGINT, x DOUBLE, s VARCHAR(9), d DATE) DUPLICATE KEY(id) DISTRIBUTED BY RANDOM";
        server.run(&format!("CREATE TABLE {table} {columns}")).await.unwrap();
        for part in 0..2 {
            let row = |row: usize, numbers: &mut Numbers| {
                let cells = COLUMNS.map(|column| value(numbers, column, different));
                format!("({row}, {})", cells.join(", "))
            };
            let values: Vec<String> =
                (0..count).filter(|it| it % 2 == part).map(|it| row(it, &mut numbers)).collect();
            server.run(&format!("INSERT INTO {table} VALUES {}", values.join(", "))).await.unwrap();
            if at != 1 && part == at % 2 {
                server.run(&format!("FLUSH {table}")).await.unwrap();
            }
        }
    }
    server
}

fn as_written(server: &mut Server, is_on: bool) {
    let mut variables = server.session.variables.as_ref().clone();
    variables.insert("disable_join_reorder".to_owned(), is_on.to_string());
    server.session.variables = Arc::new(variables);
}

async fn asked(server: &mut Server, sql: &str) -> Vec<Vec<String>> {
    let found = server.run(sql).await.unwrap_or_else(|error| panic!("{error}: {sql}"));
    let mut found = rows(&found.unwrap().1);
    found.sort();
    found
}

/// A relation of FROM, with columns of all tables: a table, or a query.
fn relation(numbers: &mut Numbers) -> String {
    let table = TABLES[numbers.below(TABLES.len())].0;
    match numbers.below(8) {
        0 => format!("(SELECT DISTINCT id, i, b, x, s, d FROM {table} WHERE i > 1)"),
        1 => {
            format!("(SELECT MAX(id) id, i, MIN(b) b, MAX(x) x, MAX(s) s, MIN(d) d FROM {table} GROUP BY i)")
        }
        2 => format!("(SELECT l.id, l.i, r.b, l.x, r.s, l.d FROM {table} l JOIN t0 r ON l.i = r.i)"),
        _ => table.to_owned(),
    }
}

/// A key of a relation, or something of it: equal ones have comparable types.
fn key(numbers: &mut Numbers, relation: usize, kind: usize) -> String {
    let column = match kind {
        0 => numbers.one(&["i", "b"]),
        1 => numbers.one(&["i", "x", "b"]),
        2 => "s",
        _ => "d",
    };
    match (kind, numbers.below(8)) {
        (0, 0) => format!("r{relation}.{column} + 1"),
        (2, 0) => format!("CONCAT(r{relation}.{column}, '')"),
        _ => format!("r{relation}.{column}"),
    }
}

/// A query that joins several relations by several kinds of joins.
fn query(numbers: &mut Numbers) -> String {
    let count = 3 + numbers.below(4);
    let mut from = format!("{} r0", relation(numbers));
    for at in 1..count {
        let mut on = Vec::new();
        for _ in 0..=usize::from(numbers.below(4) == 0) {
            let (other, kind) = (numbers.below(at), numbers.below(5).saturating_sub(1));
            on.push(format!("{} = {}", key(numbers, other, kind), key(numbers, at, kind)));
        }
        if numbers.below(4) == 0 {
            on.push(format!("r{}.i <= r{at}.i + {}", numbers.below(at), numbers.below(5)));
        }
        if numbers.below(10) == 0 {
            on.push(format!("r{}.s <=> r{at}.s", numbers.below(at)));
        }
        let kind = numbers.one(&["JOIN", "JOIN", "JOIN", "JOIN", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN"]);
        from += &format!(" {kind} {} r{at} ON {}", relation(numbers), on.join(" AND "));
    }
    let mut conditions = vec!["1 = 1".to_owned()];
    for _ in 0..numbers.below(2) {
        let at = numbers.below(count);
        conditions.push(match numbers.below(7) {
            0 => format!("r{at}.i = {}", numbers.below(4)),
            1 => format!("r{at}.d BETWEEN '2024-01-02' AND '2024-01-0{}'", 3 + numbers.below(6)),
            2 => format!("r{at}.s IN ('1', '2', '{}')", numbers.below(9)),
            3 => format!("r{at}.i IN (SELECT b FROM t{} WHERE x < 5)", numbers.below(5)),
            4 => format!(
                "NOT EXISTS (SELECT * FROM t{} q WHERE q.s = r{at}.s AND q.i < r{at}.i)",
                numbers.below(5)
            ),
            5 => format!("r{at}.x > (SELECT AVG(x) - 4 FROM t{} q WHERE q.i = r{at}.i)", numbers.below(5)),
            _ => format!("(r{at}.i = 1 AND r0.b > 0 OR r{at}.b = 2)"),
        });
    }
    let columns: Vec<String> = (0..count).map(|at| format!("r{at}.id, r{at}.s, r{at}.b")).collect();
    let what = match numbers.below(3) {
        0 => "COUNT(*), SUM(r0.id), MAX(r1.s)".to_owned(),
        1 => columns.join(", "),
        _ => format!("DISTINCT {}", columns[numbers.below(count)]),
    };
    format!("SELECT {what} FROM {from} WHERE {}", conditions.join(" AND "))
}

#[tokio::test]
async fn joins_answer_the_same_in_whatever_order_they_run() {
    let mut server = server().await;
    let (mut numbers, mut reordered, mut with_rows) = (Numbers(42), 0, 0);
    for _ in 0..60 {
        let sql = query(&mut numbers);
        let mut found = Vec::new();
        for is_on in [true, false] {
            as_written(&mut server, is_on);
            let plan = server.run(&format!("EXPLAIN PHYSICAL PLAN {sql}")).await.unwrap();
            found.push((rows(&plan.unwrap().1), asked(&mut server, &sql).await));
        }
        assert_eq!(found[1].1, found[0].1, "{sql}");
        reordered += usize::from(found[0].0 != found[1].0);
        with_rows += usize::from(found[0].1.first().is_some_and(|row| row[0] != "0"));
    }
    assert!(reordered > 10 && with_rows > 10, "{reordered} of 60 had another order, {with_rows} had rows");
}

#[tokio::test]
async fn a_plan_shows_the_order_and_a_variable_keeps_the_written_one() {
    let mut server = Server::new();
    let values =
        |count: usize| (0..count).map(|row| format!("({row}, {})", row % 7)).collect::<Vec<_>>().join(", ");
    for (name, count) in [("large", 3000), ("middle", 300), ("small", 10)] {
        let columns = "(id INT, kind INT) DUPLICATE KEY(id) DISTRIBUTED BY RANDOM";
        server.run(&format!("CREATE TABLE {name} {columns}")).await.unwrap();
        server.run(&format!("INSERT INTO {name} VALUES {}", values(count))).await.unwrap();
        server.run(&format!("FLUSH {name}")).await.unwrap();
    }
    let sql = "SELECT COUNT(*) FROM large JOIN middle ON large.id = middle.id JOIN small ON middle.kind = small.id \
         WHERE small.kind = 3";
    // The table below the join that is the deepest, beside the others.
    let mut depths = Vec::new();
    for is_on in [true, false] {
        as_written(&mut server, is_on);
        let lines = asked_in_order(&mut server, &format!("EXPLAIN {sql}")).await;
        let depth = |table: &str| {
            let read = format!("Read db.{table}:");
            let line = lines.iter().find(|line| line.contains(&read)).unwrap_or_else(|| panic!("{lines:#?}"));
            let filters = lines.iter().any(|line| line.contains("Filter") && table == "small");
            line.len() - line.trim_start().len() - 2 * usize::from(filters)
        };
        depths.push([depth("large"), depth("middle"), depth("small")]);
    }
    let [written, cheapest] = depths.as_slice() else { panic!("two plans: {depths:?}") };
    assert!(written[0] == written[1] && written[2] < written[1], "{written:?}");
    assert!(cheapest[2] == cheapest[1] && cheapest[0] < cheapest[1], "{cheapest:?}");
}

async fn asked_in_order(server: &mut Server, sql: &str) -> Vec<String> {
    rows(&server.run(sql).await.unwrap().unwrap().1).concat()
}
