//! Other uses of the command line client: inspecting, changing tables, several statements at once.

use crate::support::{MariaDb, Server};

#[test]
fn the_greeting_names_the_version_that_drivers_know() {
    let server = Server::shared();
    let mut client = server.connect();
    assert_eq!(client.value("SELECT version()"), "5.7.99");
    assert_eq!(client.value("SELECT @@version"), "5.7.99");
    let shown = client.table("SHOW VARIABLES LIKE 'version'");
    assert_eq!(shown.columns[..2], ["Variable_name", "Value"]);
    assert_eq!(shown.rows[0][..2], ["version", "5.7.99"].map(|text| Some(text.to_owned())));
    let status = MariaDb::new(&server).shows("status\n");
    assert!(status.contains("5.7.99"), "{status}");
}

#[test]
fn databases_tables_and_columns_can_be_listed() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    assert!(db.client.rows("SHOW DATABASES").contains(&db.name));
    let tables = db.client.table("SHOW TABLES");
    assert_eq!(tables.columns, [format!("Tables_in_{}", db.name)]);
    assert_eq!(tables.rows, [[Some("dt".to_owned())]]);
    let described = db.client.table("DESC dt");
    assert_eq!(described.columns, ["Field", "Type", "Null", "Key", "Default", "Extra"]);
    let expected =
        ["id|int|No|true|NULL|", "name|varchar(50)|Yes|false|NULL|NONE", "score|int|Yes|false|NULL|NONE"];
    assert_eq!(db.client.rows("DESC dt"), expected);
    let expected = ["id|int|NO|YES|NULL|", "name|varchar(50)|YES|NO|NULL|NONE", "score|int|YES|NO|NULL|NONE"];
    assert_eq!(db.client.rows("SHOW COLUMNS FROM dt"), expected);
    assert_eq!(
        db.client.rows(&format!(
            "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = '{}'",
            db.name
        )),
        ["dt|BASE TABLE"]
    );
}

#[test]
fn a_table_can_be_changed_lightly_between_loads() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    db.client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    db.client.ok("ALTER TABLE dt ADD COLUMN city VARCHAR(10) DEFAULT \"Ulm\"");
    db.client.ok("INSERT INTO dt VALUES (2, 'b', 2, 'Bonn')");
    db.client.ok("ALTER TABLE dt RENAME COLUMN score points");
    db.client.ok("ALTER TABLE dt MODIFY COLUMN city VARCHAR(100) DEFAULT \"Ulm\"");
    db.client.ok("INSERT INTO dt (id, points, city) VALUES (3, 3, 'Llanfairpwllgwyngyll')");
    assert_eq!(
        db.client.rows("SELECT id, name, points, city FROM dt ORDER BY id"),
        ["1|a|1|Ulm", "2|b|2|Bonn", "3|NULL|3|Llanfairpwllgwyngyll"]
    );
    db.client.ok("ALTER TABLE dt DROP COLUMN name");
    assert_eq!(
        db.client.rows("SELECT * FROM dt ORDER BY id"),
        ["1|1|Ulm", "2|2|Bonn", "3|3|Llanfairpwllgwyngyll"]
    );
    let shorter = db.client.error("ALTER TABLE dt MODIFY COLUMN city VARCHAR(5) DEFAULT \"Ulm\"");
    assert!(shorter.message.contains("Shorten type length is prohibited"), "{shorter}");
}

#[test]
fn every_type_keeps_its_values() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok("CREATE TABLE types (
        k INT NOT NULL, b BOOLEAN, t TINYINT, s SMALLINT, i INT, l BIGINT, ll LARGEINT, f FLOAT, d DOUBLE,
        n DECIMAL(38,10), day DATE, at DATETIME, at6 DATETIME(6), c CHAR(3), v VARCHAR(20), txt STRING, j JSON
    ) DUPLICATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1 PROPERTIES (\"replication_num\" = \"1\")");
    db.client.ok("INSERT INTO types VALUES
        (1, true, 127, 32767, 2147483647, 9223372036854775807, 99999999999999999999999999999999999999, 1.5, -2.25e10,
         1234567890123456789012345678.0123456789, '2023-12-31', '2023-12-31 23:59:59', '2023-12-31 23:59:59.123456',
         'abc', 'Grüße', 'it''s \\\"text\\\"', '{\"a\": [1, 2]}'),
        (2, false, -128, -32768, -2147483648, -9223372036854775808, -1, -0.5, 0,
         -0.0000000001, '0000-01-01', '9999-12-31 00:00:00', '1970-01-01 00:00:00.000001', '', '', '', 'null'),
        (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)");
    let rows = db.client.rows("SELECT * FROM types ORDER BY k");
    assert_eq!(
        rows[0],
        "1|1|127|32767|2147483647|9223372036854775807|99999999999999999999999999999999999999|1.5|-22500000000|1234567890123456789012345678.0123456789|2023-12-31|2023-12-31 23:59:59|2023-12-31 23:59:59.123456|abc|Grüße|it's \"text\"|{\"a\": [1, 2]}"
    );
    assert_eq!(
        rows[1],
        "2|0|-128|-32768|-2147483648|-9223372036854775808|-1|-0.5|0|-0.0000000001|0000-01-01|9999-12-31 00:00:00|1970-01-01 00:00:00.000001||||null"
    );
    assert_eq!(rows[2], format!("3{}", "|NULL".repeat(16)));
}

#[test]
fn a_script_runs_until_its_first_error() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let finished = MariaDb::new(&server)
        .option(&db.name)
        .run("insert into dt values (1, 'a', 1);\ninsert into nowhere values (2);\ninsert into dt values (3, 'c', 3);\n");
    let error = finished.failure();
    assert!(error.contains("ERROR 1146 (42S02) at line 2"), "{error}");
    assert_eq!(db.client.rows("SELECT id FROM dt"), ["1"]);
}

#[test]
fn transactions_can_be_looked_up_by_label() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let insert = db.client.ok("INSERT INTO dt WITH LABEL looked_up VALUES (1, 'a', 1)");
    let shown = db.client.table("SHOW TRANSACTION WHERE LABEL = 'looked_up'");
    assert_eq!(shown.columns[..4], ["TransactionId", "Label", "Coordinator", "TransactionStatus"]);
    assert_eq!(shown.rows[0][0].as_deref(), Some(insert.info_value("txnId")));
    assert_eq!(shown.rows[0][3].as_deref(), Some("VISIBLE"));
}

#[test]
fn the_command_line_client_compresses() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let rows: Vec<String> = (0..3000).map(|id| format!("({id}, 'name {id}', 1)")).collect();
    let script = format!("INSERT INTO dt VALUES {};\nSELECT count(*), sum(id) FROM dt;\n", rows.join(", "));
    let shown = MariaDb::new(&server).option("--compress").option(&db.name).shows(&script);
    assert!(shown.contains("4498500"), "{shown}");
    let all = MariaDb::new(&server).option("--compress").option(&db.name).shows("SELECT * FROM dt;\n");
    assert!(all.contains("name 2999"), "{all}");
    assert_eq!(db.client.value("SELECT count(*) FROM dt"), "3000");
}
