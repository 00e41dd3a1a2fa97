mod common;
use common::Server;
#[tokio::test]
async fn times() {
    let mut server = Server::new();
    server.run("CREATE TABLE t (Id INT NOT NULL) DUPLICATE KEY(Id) DISTRIBUTED BY RANDOM").await.unwrap();
    server.run("INSERT INTO t VALUES (1)").await.unwrap();
    let mut all: Vec<(String, String)> = Vec::new();
    for depth in [5, 6, 10, 20, 45] {
        for (open, close) in [
            ("CONCAT(", ", 'x')"),
            ("IF(id = 1, ", ", 2)"),
            ("(SELECT ", ")"),
            ("UPPER(", ")"),
            ("NOT ", ""),
            ("- ", ""),
            ("!", ""),
            ("GREATEST(", ", 1)"),
            ("NULLIF(", ",7)"),
            ("CASE ", " WHEN 1 THEN 2 WHEN 3 THEN 4 END"),
        ] {
            all.push((
                format!("{depth} {open}"),
                format!("SELECT {} id {} FROM t", open.repeat(depth), close.repeat(depth)),
            ));
        }
        all.push((
            format!("{depth} between"),
            format!("SELECT id {} FROM t", " BETWEEN 0 AND '1'".repeat(depth)),
        ));
        all.push((format!("{depth} in"), format!("SELECT id {} FROM t", " IN (0, '1')".repeat(depth))));
        all.push((format!("{depth} union"), vec!["SELECT id FROM t"; depth * 4].join(" UNION ALL ")));
        all.push((
            format!("{depth} from"),
            format!("SELECT * FROM {} t {}", "(SELECT * FROM ".repeat(depth), ") x".repeat(depth)),
        ));
    }
    for (name, sql) in all {
        let start = std::time::Instant::now();
        eprintln!("{name} start");
        let r = tokio::time::timeout(std::time::Duration::from_secs(20), server.query(&sql, &[])).await;
        eprintln!("{name}: {:?} {:?}", start.elapsed(), r.map(|r| r.map_err(|e| e.message)).map(|r| r.err()));
    }
}
