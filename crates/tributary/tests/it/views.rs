//! Views: made, read, changed, dropped, and still there after a restart.

use crate::support::{MariaDb, Server};

#[test]
fn a_view_is_made_read_changed_and_dropped() {
    let mut server = Server::start();
    let mut db = server.database().with_dt("");
    let client = &mut db.client;
    client.ok("INSERT INTO dt VALUES (1, 'Bob', 90), (2, 'Alice', 99), (3, 'Eve', 70)");
    client.ok("CREATE VIEW good (who, points COMMENT 'of 100') COMMENT 'the good ones' AS SELECT name, score FROM dt WHERE score >= 90 /* 90 is good */;");
    assert_eq!(client.rows("SELECT * FROM good ORDER BY who"), ["Alice|99", "Bob|90"]);
    assert_eq!(client.value("SELECT MAX(g.points) FROM good g JOIN dt ON dt.name = g.who"), "99");
    assert_eq!(
        client.rows("DESC good"),
        ["who|varchar(50)|Yes|false|NULL|NONE", "points|int|Yes|false|NULL|NONE"]
    );

    let shown = client.table("SHOW CREATE VIEW good");
    assert_eq!(shown.columns, ["View", "Create View", "character_set_client", "collation_connection"]);
    let statement = shown.rows[0][1].clone().expect("a text");
    assert_eq!(
        statement,
        format!(
            "CREATE VIEW `good` (`who`, `points` COMMENT 'of 100') COMMENT 'the good ones' AS SELECT name, score FROM `{}`.dt \
             WHERE score >= 90 /* 90 is good */",
            db.name
        )
    );
    assert_eq!(client.rows("SHOW CREATE TABLE good"), client.rows("SHOW CREATE VIEW good"));
    assert_eq!(
        client.rows("SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY 1"),
        ["dt|BASE TABLE", "good|VIEW"]
    );
    assert_eq!(
        client.rows(
            "SELECT table_name, is_updatable FROM information_schema.views WHERE table_schema = DATABASE()"
        ),
        ["good|NO"]
    );
    assert_eq!(client.rows("SHOW TABLES"), ["dt", "good"]);

    // A view is not a table, and vice versa.
    for (sql, number) in [
        ("CREATE VIEW good AS SELECT 1 a", 1050),
        ("CREATE VIEW dt AS SELECT 1 a", 1050),
        ("CREATE OR REPLACE VIEW dt AS SELECT 1 a", 1050),
        ("CREATE TABLE good (a INT)", 1050),
        ("CREATE TABLE copy LIKE good", 1347),
        ("ALTER TABLE dt RENAME good", 1050),
        ("DROP TABLE good", 1347),
        ("DROP VIEW dt", 1347),
        ("SHOW CREATE VIEW dt", 1347),
        ("ALTER VIEW dt AS SELECT 1 a", 1347),
        ("INSERT INTO good VALUES ('x', 1)", 1347),
        ("INSERT INTO good SELECT 'x', 1", 1347),
        ("DELETE FROM good WHERE points = 1", 1347),
        ("TRUNCATE TABLE good", 1347),
        ("ALTER TABLE good ADD COLUMN x INT", 1347),
        ("DROP VIEW nope", 1051),
        ("SHOW CREATE VIEW nope", 1146),
        ("CREATE VIEW twice AS SELECT 1 a, 2 A", 1060),
        ("CREATE VIEW uneven (a) AS SELECT 1, 2", 1353),
        ("CREATE VIEW of_nothing AS SELECT * FROM nope", 1146),
    ] {
        let error = client.error(sql);
        assert_eq!(error.number, number, "{sql}: {}", error.message);
    }
    client.ok("DROP VIEW IF EXISTS nope");
    client.ok("CREATE VIEW IF NOT EXISTS good AS SELECT 1 a");

    // A session of another database reads the same tables.
    client.ok("ALTER VIEW good AS SELECT name, score + 1 AS more FROM dt WHERE id = 1");
    client.ok("ALTER VIEW good MODIFY COMMENT 'changed'");
    client.ok("CREATE OR REPLACE VIEW over AS SELECT more FROM good");
    let seen = MariaDb::new(&server).shows(&format!("SELECT * FROM {}.over", db.name));
    assert!(seen.contains("91"), "{seen}");

    server.kill();
    server.start_again();
    let mut client = server.connect_to(&db.name);
    assert_eq!(client.rows("SELECT * FROM good"), ["Bob|91"]);
    assert!(client.rows("SHOW CREATE VIEW good")[0].contains("COMMENT 'changed' AS SELECT name"));
    client.ok("DROP VIEW good");
    let error = client.error("SELECT * FROM over");
    assert_eq!(error.number, 1356, "{}", error.message);
    assert!(
        error.message.contains(&format!("View '{}.over' references invalid table(s)", db.name)),
        "{}",
        error.message
    );
    client.ok("CREATE VIEW good AS SELECT 7 AS more");
    assert_eq!(client.rows("SELECT * FROM over"), ["7"]);
    assert_eq!(client.error("ALTER VIEW good AS SELECT * FROM over").number, 1462);
    client.ok(&format!("DROP DATABASE {}", db.name));
    client.ok(&format!("CREATE DATABASE {}", db.name));
    assert_eq!(client.error(&format!("SELECT * FROM {}.good", db.name)).number, 1146);
}
