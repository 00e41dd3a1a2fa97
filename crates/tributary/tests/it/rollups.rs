//! Rollups: declared, shown and stored; answers are those of the table.

use crate::support::Server;

#[test]
fn rollups_are_shown_everywhere_and_answers_are_those_of_the_table() {
    let mut server = Server::start();
    let mut db = server.database();
    let create = "CREATE TABLE visits (site INT, city VARCHAR(20), pv BIGINT SUM DEFAULT '0') AGGREGATE KEY(site, city) \
                  DISTRIBUTED BY HASH(site) BUCKETS 1 ROLLUP (by_site (site, pv)) PROPERTIES ('group_commit_interval_ms' = '100')";
    db.client.ok(create);
    db.client.ok("INSERT INTO visits VALUES (1, 'Oslo', 2), (1, 'Rome', 3), (2, 'Rome', 4)");
    db.client.ok("ALTER TABLE visits ADD ROLLUP by_city (city, site), others (city, pv)");
    db.client.ok("ALTER TABLE visits RENAME ROLLUP others by_city_pv");
    db.client.ok("ALTER TABLE visits DROP ROLLUP by_city");
    db.client.ok("INSERT INTO visits VALUES (1, 'Oslo', 10)");
    let name = db.name.clone();
    for _ in 0..2 {
        assert_eq!(
            db.client.rows("SELECT city, SUM(pv) FROM visits GROUP BY city ORDER BY city"),
            ["Oslo|12", "Rome|7"]
        );
        let jobs = db.client.table(&format!("SHOW ALTER TABLE ROLLUP FROM {name}"));
        assert_eq!(
            jobs.columns,
            [
                "JobId",
                "TableName",
                "CreateTime",
                "FinishTime",
                "BaseIndexName",
                "RollupIndexName",
                "RollupId",
                "TransactionId",
                "State",
                "Msg",
                "Progress",
                "Timeout"
            ]
        );
        let shown: Vec<_> = [1, 4, 5, 8].iter().map(|at| jobs.rows[0][*at].clone().unwrap()).collect();
        assert_eq!(
            (jobs.rows.len(), shown),
            (1, ["visits", "visits", "by_city_pv", "FINISHED"].map(String::from).to_vec())
        );
        assert!(db.client.rows("SHOW ALTER TABLE MATERIALIZED VIEW WHERE TableName = 'x'").is_empty());
        let all: Vec<String> = db
            .client
            .table("DESC visits ALL")
            .rows
            .into_iter()
            .map(|row| [0, 1, 2, 6, 8].map(|at| row[at].clone().unwrap_or_default()).join("|"))
            .collect();
        assert_eq!(
            all,
            [
                "visits|AGG_KEYS|site|true|",
                "||city|true|",
                "||pv|false|SUM",
                "||||",
                "by_site|AGG_KEYS|site|true|",
                "||pv|false|SUM",
                "||||",
                "by_city_pv|AGG_KEYS|city|true|",
                "||pv|false|SUM"
            ]
        );
        let statement = db.client.table("SHOW CREATE TABLE visits").rows[0][1].clone().unwrap();
        assert!(
            statement.contains("ROLLUP (\n`by_site` (`site`, `pv`),\n`by_city_pv` (`city`, `pv`)\n)\n"),
            "{statement}"
        );
        server.kill();
        server.start_again();
        db.client = server.connect_to(&name);
    }
    db.client.ok("CREATE TABLE with_one LIKE visits WITH ROLLUP (by_site)");
    db.client.ok("CREATE TABLE without LIKE visits");
    let statement = |client: &mut crate::support::Client, table: &str| {
        client.table(&format!("SHOW CREATE TABLE {table}")).rows[0][1].clone().unwrap()
    };
    assert!(statement(&mut db.client, "with_one").contains("ROLLUP (\n`by_site` (`site`, `pv`)\n)\n"));
    assert!(!statement(&mut db.client, "without").contains("ROLLUP"));
    let error = db.client.error("CANCEL ALTER TABLE ROLLUP FROM visits (1, 2)");
    assert!(error.message.contains("Table[visits] is not under ROLLUP."), "{error}");
    let error = db.client.error("CREATE MATERIALIZED VIEW mv AS SELECT site FROM visits");
    assert!(error.message.contains("Use a view") && error.message.contains("CREATE JOB"), "{error}");
}
