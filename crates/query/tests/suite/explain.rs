//! Plans as people read them.

use crate::common::{Server, rows};

/// Tables with rows in files and in memory: `t` in both, `u` in memory.
async fn server() -> Server {
    let mut server = Server::new();
    for sql in [
        "CREATE TABLE t (id INT, k VARCHAR(10), v DOUBLE) DUPLICATE KEY(id) DISTRIBUTED BY RANDOM",
        "CREATE TABLE u (id INT, name VARCHAR(10)) DUPLICATE KEY(id) DISTRIBUTED BY RANDOM",
        "INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'b', 3)",
        "FLUSH t",
        "INSERT INTO t VALUES (4, 'a', 4)",
        "INSERT INTO u VALUES (1, 'x'), (4, 'y')",
    ] {
        server.run(sql).await.unwrap();
    }
    server
}

async fn lines(server: &mut Server, sql: &str) -> Vec<String> {
    let (_, batches) = server.run(sql).await.unwrap().unwrap();
    rows(&batches).concat()
}

/// The lines without the sizes of files.
fn without_sizes(lines: &[String]) -> Vec<String> {
    let cut = |line: &String| match line.split_once(" (").filter(|(before, _)| before.contains("data file")) {
        Some((before, after)) => format!("{before}{}", after.split_once(')').map_or("", |(_, rest)| rest)),
        None => line.clone(),
    };
    lines.iter().map(cut).collect()
}

#[tokio::test]
async fn a_plan_names_steps_tables_and_conditions_of_sql() {
    let mut server = server().await;
    for (sql, expected) in [
        (
            "SELECT k, SUM(v) FROM t JOIN u ON t.id = u.id WHERE t.id > 1 GROUP BY k ORDER BY 2 DESC LIMIT 3",
            &[
                "First 3 by sum(db.t.v) DESC",
                "  Aggregate by k: sum(db.t.v)",
                "    Hash join, inner: id = id",
                "      Filter: id > 1",
                "        Read db.u: 2 rows in memory",
                "      Filter: id > 1",
                "        Read db.t: 1 of 1 data file; 1 row in memory",
            ][..],
        ),
        (
            "SELECT k FROM t WHERE k = 'b' AND id = 7",
            &["Filter: k = b AND id = 7", "  Read db.t: 1 row in memory"],
        ),
        (
            "SELECT 1 + id AS n FROM u",
            &["Compute 1 + CAST(id AS Int64) AS n", "  Read db.u: 2 rows in memory"],
        ),
        ("SELECT * FROM u LIMIT 1 OFFSET 1", &["Limit 1 after 1", "  Read db.u: 2 rows in memory"]),
        ("SELECT DISTINCT id FROM u", &["Distinct id", "  Read db.u: 2 rows in memory"]),
        ("SELECT id FROM u ORDER BY id DESC", &["Sort by id DESC", "  Read db.u: 2 rows in memory"]),
        ("SELECT * FROM t WHERE 1 = 0", &["No rows"]),
    ] {
        let found = without_sizes(&lines(&mut server, &format!("EXPLAIN {sql}")).await);
        assert_eq!(found, expected, "{sql}\n{}", found.join("\n"));
    }
}

#[tokio::test]
async fn a_plan_that_was_run_has_rows_and_times_and_says_what_was_read() {
    let mut server = server().await;
    let sql = "EXPLAIN ANALYZE SELECT k, COUNT(*) FROM t WHERE id >= 2 GROUP BY k";
    let found = lines(&mut server, sql).await;
    assert_eq!(found.len(), 3, "{found:?}");
    for (line, begin, rows) in [
        (0, "Aggregate by k: count(*)", "[2 rows, "),
        (1, "  Filter: id >= 2", "[3 rows, "),
        (2, "    Read db.t: 1 of 1 data file (", "[4 rows, "),
    ] {
        let line = &found[line];
        assert!(line.starts_with(begin) && line.contains(rows) && line.ends_with(" ms]"), "{line}");
    }
    assert!(found[2].contains(" bytes read; 1 row in memory"), "{}", found[2]);
}

#[tokio::test]
async fn rows_of_a_key_that_others_have_superseded_belong_to_their_table() {
    let mut server = server().await;
    for sql in [
        "CREATE TABLE w (id INT, name VARCHAR(10), other INT) UNIQUE KEY(id) DISTRIBUTED BY HASH(id)",
        "INSERT INTO w VALUES (1, 'x', 0), (4, 'y', 0)",
        "INSERT INTO w VALUES (1, 'z', 0)",
    ] {
        server.run(sql).await.unwrap();
    }
    let sql = "EXPLAIN ANALYZE SELECT w.name, other FROM w JOIN u ON w.id = u.id";
    let found = lines(&mut server, sql).await;
    assert!(found.iter().any(|line| line.contains("Read db.w: 2 rows in memory")), "{found:#?}");
    assert!(found.iter().any(|line| line.contains("Read db.u: 2 rows in memory")), "{found:#?}");
}

#[tokio::test]
async fn rows_that_no_key_of_a_small_side_has_are_not_decoded() {
    let mut server = server().await;
    let all =
        "SELECT number, number * 7919 % 20000, CONCAT('row ', number) FROM numbers(\"number\" = \"20000\")";
    for sql in [
        "CREATE TABLE few (k INT, name VARCHAR(10)) DUPLICATE KEY(k) DISTRIBUTED BY RANDOM",
        "CREATE TABLE many (id INT, k INT, name VARCHAR(20)) DUPLICATE KEY(id) DISTRIBUTED BY RANDOM",
        // A tenth of its rows is superseded by later ones.
        "CREATE TABLE live (id INT, k INT, name VARCHAR(20)) UNIQUE KEY(id) DISTRIBUTED BY HASH(id)",
        "INSERT INTO few VALUES (7, 'a'), (5000, 'b'), (15000, 'c'), (100000, 'd')",
        &format!("INSERT INTO many {all}"),
        &format!("INSERT INTO live {all}"),
        "FLUSH many",
        "FLUSH live",
        "INSERT INTO live SELECT id, k, 'later' FROM many WHERE id % 10 = 3",
        "INSERT INTO live VALUES (15000, 1, 'gone')",
        "FLUSH live",
    ] {
        server.run(sql).await.unwrap();
    }
    for (table, names) in
        [("many", ["row 15000", "row 3753", "row 5000"]), ("live", ["later", "row 5000", ""])]
    {
        let sql = format!("SELECT m.name, m.id FROM few JOIN {table} m ON few.k = m.k ORDER BY 1, 2");
        let (_, batches) = server.run(&sql).await.unwrap().unwrap();
        let found: Vec<_> = rows(&batches).into_iter().map(|row| row[0].clone()).collect();
        let names: Vec<_> = names.into_iter().filter(|name| !name.is_empty()).collect();
        assert_eq!(found, names, "{table}");
        let found = lines(&mut server, &format!("EXPLAIN ANALYZE {sql}")).await;
        let read = found.iter().find(|line| line.contains(&format!("Read db.{table}:"))).unwrap();
        assert!(read.contains(" rows skipped by filters, "), "{found:#?}");
    }
    // No other column is left to skip, or only one for that of the filter.
    for shown in ["COUNT(*)", "COUNT(m.name)"] {
        let sql = format!("EXPLAIN ANALYZE SELECT {shown} FROM few JOIN many m ON few.k = m.k");
        let found = lines(&mut server, &sql).await;
        assert!(!found.iter().any(|line| line.contains("skipped by filters")), "{found:#?}");
    }
}

#[tokio::test]
async fn means_share_sums_and_counts_and_constants_have_the_scale_of_decimals() {
    let mut server = server().await;
    let columns = "g INT, d DECIMAL(15,2) NOT NULL, n DECIMAL(15,2), w DECIMAL(38,10), f DOUBLE";
    server.run(&format!("CREATE TABLE m ({columns}) DUPLICATE KEY(g) DISTRIBUTED BY RANDOM")).await.unwrap();
    for (values, is_shared) in [
        ("AVG(d), SUM(d)", true),
        ("AVG(d), COUNT(*)", true),
        ("AVG(n), COUNT(n)", true),
        ("AVG(f), SUM(f)", true),
        ("AVG(d)", false),
        ("AVG(n), COUNT(*)", false),
        ("AVG(d), SUM(n)", false),
        ("AVG(w), SUM(w), COUNT(w)", false),
        ("AVG(DISTINCT d), SUM(d)", false),
    ] {
        let sql = format!("EXPLAIN PHYSICAL PLAN SELECT g, {values} FROM m GROUP BY g");
        let plan = lines(&mut server, &sql).await.join("\n");
        assert_eq!(plan.contains("__mean("), is_shared, "{values}: {plan}");
    }
    for (sum, planned) in [
        ("1 - d", "1.00 - d@"),
        ("d + 0.5", " + 0.50 as "),
        ("2.345 - d", "2.345 - d@"),
        ("d * 2", " * 2 as "),
    ] {
        let plan = lines(&mut server, &format!("EXPLAIN PHYSICAL PLAN SELECT {sum} FROM m")).await.join("\n");
        assert!(plan.contains(planned), "{sum}: {plan}");
    }
}

#[tokio::test]
async fn the_query_engine_s_own_plan_can_be_asked_for() {
    let mut server = server().await;
    let physical = lines(&mut server, "EXPLAIN PHYSICAL PLAN SELECT id FROM u WHERE id = 1").await.join("\n");
    assert!(physical.contains("FilterExec: id@0 = 1") && !physical.contains("LOGICAL PLAN"), "{physical}");
    let verbose = lines(&mut server, "EXPLAIN VERBOSE SELECT id FROM u WHERE id = 1").await.join("\n");
    assert!(verbose.contains("LOGICAL PLAN") && verbose.contains("FilterExec"), "{verbose}");
}

#[tokio::test]
async fn a_join_is_built_from_the_side_that_a_filter_leaves_smaller() {
    let mut server = server().await;
    let values = |count: i64| (0..count).map(|row| format!("({row}, {row})")).collect::<Vec<_>>().join(", ");
    for (name, rows) in [("few", 50), ("many", 1000)] {
        let columns = "(id INT, day INT) DUPLICATE KEY(id) DISTRIBUTED BY RANDOM";
        server.run(&format!("CREATE TABLE {name} {columns}")).await.unwrap();
        server.run(&format!("INSERT INTO {name} VALUES {}", values(rows))).await.unwrap();
        server.run(&format!("FLUSH {name}")).await.unwrap();
    }
    for (filter, built, asked) in [("many.day <= 10", "many", "few"), ("many.day <= 900", "few", "many")] {
        let sql =
            format!("EXPLAIN SELECT few.day, many.day FROM few JOIN many ON few.id = many.id WHERE {filter}");
        let found = lines(&mut server, &sql).await;
        let place = |table: &str| {
            let read = format!("Read db.{table}:");
            found.iter().position(|line| line.contains(&read)).unwrap_or_else(|| panic!("{found:#?}"))
        };
        assert!(place(built) < place(asked), "{filter}: {found:#?}");
    }
}

#[tokio::test]
async fn sums_of_the_same_values_plus_constants_share_a_sum_and_a_count() {
    let mut server = server().await;
    let plan =
        lines(&mut server, "EXPLAIN SELECT SUM(id + 1), SUM(id + 2), SUM(id), SUM(id - 3) FROM u").await;
    let aggregates: Vec<&String> = plan.iter().filter(|line| line.contains("Aggregate")).collect();
    let sums: usize = aggregates.iter().map(|line| line.matches("sum(").count()).sum();
    let counts: usize = aggregates.iter().map(|line| line.matches("count(").count()).sum();
    assert_eq!((aggregates.len(), sums, counts), (1, 1, 1), "{plan:#?}");
}
