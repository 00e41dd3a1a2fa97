//! Statements that drivers, tools and connectors send, with the names of columns and the numbers of errors that they read.

use crate::support::{Client, Server};

/// The values of the first row by the names of their columns.
fn first(client: &mut Client, sql: &str) -> Vec<(String, String)> {
    let columns = client.table(sql).columns;
    let row = client.rows(sql).into_iter().next().unwrap_or_else(|| panic!("no rows: {sql}"));
    let values: Vec<String> = row.split('|').map(str::to_owned).collect();
    assert_eq!(columns.len(), values.len(), "{sql}: {row}");
    columns.into_iter().zip(values).collect()
}

fn columns(client: &mut Client, sql: &str) -> Vec<String> {
    client.table(sql).columns
}

/// Drivers read them by the text that they wrote, or by the alias that they gave.
#[test]
fn variables_are_columns_of_the_name_that_the_client_wrote() {
    let server = Server::shared();
    let mut client = server.connect();
    // Connector/J, with two blanks and a comment.
    let names = [
        "auto_increment_increment",
        "character_set_client",
        "character_set_connection",
        "character_set_results",
        "character_set_server",
        "collation_server",
        "collation_connection",
        "init_connect",
        "interactive_timeout",
        "license",
        "lower_case_table_names",
        "max_allowed_packet",
        "net_write_timeout",
        "performance_schema",
        "query_cache_size",
        "query_cache_type",
        "sql_mode",
        "system_time_zone",
        "time_zone",
        "transaction_isolation",
        "wait_timeout",
    ];
    let list: Vec<String> = names.iter().map(|name| format!("@@{name} AS {name}")).collect();
    let sql = format!("/* mysql-connector-j */SELECT  @@session.{}", &list.join(", ")[2..]);
    let row = first(&mut client, &sql);
    assert_eq!(row.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), names);
    for name in ["auto_increment_increment", "max_allowed_packet", "net_write_timeout"] {
        let value = row.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str());
        assert!(value.is_some_and(|value| value.parse::<u32>().is_ok()), "{name}: {value:?}");
    }
    // Connector/NET cuts two letters off.
    let sql = "SELECT @@max_allowed_packet, @@character_set_client, @@license, @@sql_mode, @@lower_case_table_names;";
    let expected = [
        "@@max_allowed_packet",
        "@@character_set_client",
        "@@license",
        "@@sql_mode",
        "@@lower_case_table_names",
    ];
    assert_eq!(columns(&mut client, sql), expected);
    assert_eq!(columns(&mut client, "select @@version_comment limit 1"), ["@@version_comment"]);
    assert_eq!(
        columns(&mut client, "SELECT VERSION(), DATABASE(), USER(), CONNECTION_ID()"),
        ["VERSION()", "DATABASE()", "USER()", "CONNECTION_ID()"]
    );
    assert_eq!(columns(&mut client, "select DATABASE(), USER() limit 1"), ["DATABASE()", "USER()"]);
}

#[test]
fn lists_of_set_have_names_variables_and_expressions_in_any_mixture() {
    let server = Server::shared();
    let mut client = server.connect();
    for sql in [
        "SET NAMES utf8mb4",
        "SET NAMES 'utf8mb4' COLLATE 'utf8mb4_general_ci'",
        "SET NAMES utf8 COLLATE utf8_general_ci",
        "SET character_set_results = NULL",
        "set autocommit=1,sql_mode=CONCAT(@@sql_mode,',STRICT_TRANS_TABLES'),NAMES utf8mb4",
        "SET @@session.autocommit = OFF",
        "SET autocommit = 0",
        "SET autocommit=1",
        "SET time_zone = '+02:00', @a = 1, @b := 'x'",
        "SET net_write_timeout=600",
        "SET sql_select_limit=DEFAULT",
        "SET SESSION TRANSACTION READ ONLY",
        "SET SESSION TRANSACTION READ WRITE",
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "SET @@session.time_zone = 'UTC'",
        "SET SQL_AUTO_IS_NULL=0",
        "/*!40101 SET @@character_set_database=binary */;",
        "/*!40103 SET TIME_ZONE='+00:00' */",
        "/*M!100100 SET WAIT_TIMEOUT=DEFAULT */",
    ] {
        client.ok(sql);
    }
    assert_eq!(client.value("SELECT @a, @b, @@session.time_zone, @@autocommit"), "1|x|+00:00|1");
    assert_eq!(
        columns(&mut client, "SELECT @@session.transaction_isolation"),
        ["@@session.transaction_isolation"]
    );
    assert_eq!(client.value("SELECT @@session.tx_read_only, @@session.transaction_read_only"), "0|0");
}

/// SQLAlchemy's pool sends ROLLBACK after every use, drivers COMMIT when `autocommit` is off.
#[test]
fn transactions_end_where_none_is_and_autocommit_hides_no_rows() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let mut other = server.connect_to(&db.name);
    for sql in
        ["ROLLBACK", "COMMIT", "START TRANSACTION READ ONLY", "ROLLBACK", "START TRANSACTION", "COMMIT"]
    {
        db.client.ok(sql);
    }
    db.client.ok("SET autocommit = 0");
    db.client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    assert_eq!(db.client.value("SELECT COUNT(*) FROM dt"), "1", "its own reads see it");
    db.client.ok("COMMIT");
    assert_eq!(other.value("SELECT COUNT(*) FROM dt"), "1");
}

#[test]
fn objects_are_listed_with_mysqls_columns() {
    let server = Server::shared();
    let mut db = server.database();
    let name = db.name.clone();
    let client = &mut db.client;
    client
        .ok("CREATE TABLE t (id INT NOT NULL, name VARCHAR(20) DEFAULT 'x' COMMENT 'a name') UNIQUE KEY(id)");
    client.ok("CREATE VIEW v AS SELECT id FROM t");
    assert!(client.rows("SHOW SCHEMAS").contains(&name) && client.rows("SHOW DATABASES").contains(&name));
    assert_eq!(client.rows(&format!("SHOW DATABASES LIKE '{name}'")), [name.as_str()]);
    let tables_in = format!("Tables_in_{name}");
    for sql in [
        format!("SHOW FULL TABLES FROM `{name}` LIKE 't%'"),
        format!("SHOW FULL TABLES FROM `{name}` WHERE `{tables_in}` LIKE 't%'"),
        format!("SHOW FULL TABLES IN {name} WHERE Table_type = 'BASE TABLE'"),
    ] {
        assert_eq!(columns(client, &sql)[..2], [tables_in.as_str(), "Table_type"], "{sql}");
        assert!(client.rows(&sql)[0].starts_with("t|BASE TABLE|"), "{sql}");
    }
    assert_eq!(client.rows("SHOW TABLES"), ["t", "v"]);
    for sql in ["SHOW COLUMNS FROM t", "SHOW FIELDS FROM t", "DESCRIBE t", "DESC t"] {
        assert_eq!(columns(client, sql), ["Field", "Type", "Null", "Key", "Default", "Extra"], "{sql}");
        assert!(client.rows(sql)[1].starts_with("name|varchar(20)|"), "{sql}");
    }
    let full = ["Field", "Type", "Collation", "Null", "Key", "Default", "Extra", "Privileges", "Comment"];
    let sql = format!("SHOW FULL COLUMNS FROM `t` FROM `{name}` LIKE 'n%'");
    assert_eq!(columns(client, &sql), full);
    let row = first(client, &sql);
    assert_eq!((row[0].1.as_str(), row[5].1.as_str(), row[8].1.as_str()), ("name", "x", "a name"));
    let keys = [
        "Table",
        "Non_unique",
        "Key_name",
        "Seq_in_index",
        "Column_name",
        "Collation",
        "Cardinality",
        "Sub_part",
        "Packed",
        "Null",
        "Index_type",
        "Comment",
    ];
    client.ok("SET mysql_ddl = compat");
    for sql in ["SHOW KEYS FROM `t`", "SHOW INDEX FROM t", "SHOW INDEXES FROM t"] {
        let sql = format!("{sql} FROM `{name}`");
        assert_eq!(columns(client, &sql)[..keys.len()], keys, "{sql}");
        let row = first(client, &sql);
        assert_eq!(
            (row[1].1.as_str(), row[2].1.as_str(), row[4].1.as_str()),
            ("0", "PRIMARY", "id"),
            "{sql}"
        );
    }
    client.ok("SET mysql_ddl = doris");
    let status = format!("SHOW TABLE STATUS FROM `{name}` LIKE 't'");
    let names = columns(client, &status);
    let expected = ["Name", "Engine", "Version", "Row_format", "Rows", "Avg_row_length", "Data_length"];
    assert_eq!(names[..expected.len()], expected);
    assert_eq!(names.last().map(String::as_str), Some("Comment"));
    assert_eq!(columns(client, &format!("SHOW CREATE TABLE `{name}`.`t`")), ["Table", "Create Table"]);
    assert_eq!(columns(client, "SHOW CREATE VIEW v")[..2], ["View", "Create View"]);
    for sql in
        [format!("SHOW CREATE DATABASE `{name}`"), format!("SHOW CREATE DATABASE IF NOT EXISTS `{name}`")]
    {
        assert_eq!(columns(client, &sql), ["Database", "Create Database"], "{sql}");
    }
}

/// SQLAlchemy takes 1146, 1049 and 1051 for "there is none", dbt 1049 for "create it".
#[test]
fn objects_that_are_missing_have_mysqls_numbers() {
    let server = Server::shared();
    let mut db = server.database();
    let name = db.name.clone();
    for sql in [
        format!("DESCRIBE `{name}`.`nothing`"),
        format!("SHOW FULL COLUMNS FROM nothing FROM {name}"),
        format!("SHOW CREATE TABLE {name}.nothing"),
        format!("SHOW INDEX FROM {name}.nothing"),
        "SELECT * FROM nothing".to_owned(),
        "TRUNCATE TABLE nothing".to_owned(),
    ] {
        db.client.refused(&sql, 1146, "nothing");
    }
    for sql in ["USE nothing", "SHOW TABLES FROM nothing", "SHOW TABLE STATUS FROM nothing", "DESC nothing.t"]
    {
        db.client.refused(sql, 1049, "nothing");
    }
    db.client.refused("DROP TABLE nothing", 1051, "nothing");
    let refused = Client::try_connect(server.mysql_port(), Some("nothing")).err().expect("there is none");
    assert_eq!(refused.number, 1049, "{refused}");
}

#[test]
fn facts_of_the_server_are_listed_with_mysqls_columns() {
    let server = Server::shared();
    let mut client = server.connect();
    let status = ["Db", "Name", "Type", "Definer", "Modified", "Created", "Security_type", "Comment"];
    for (sql, names) in [
        ("SHOW VARIABLES LIKE 'version_comment'", &["Variable_name", "Value"][..]),
        ("SHOW VARIABLES LIKE \"version_comment\";", &["Variable_name", "Value"]),
        ("show global variables like 'local_infile'", &["Variable_name", "Value"]),
        ("SHOW SESSION VARIABLES WHERE Variable_name = 'sql_mode'", &["Variable_name", "Value"]),
        ("SHOW ENGINES", &["Engine", "Support", "Comment"]),
        ("SHOW CHARSET", &["Charset", "Description"]),
        ("SHOW CHARACTER SET", &["Charset", "Default collation", "Maxlen"]),
        ("SHOW COLLATION", &["Collation", "Charset", "Id", "Default", "Compiled", "Sortlen"]),
        ("SHOW PLUGINS", &["Name", "Status", "Type", "Library", "License"]),
        ("SHOW PRIVILEGES", &["Privilege", "Context", "Comment"]),
        ("SHOW PROCESSLIST", &["Id", "User", "Host", "Db", "Command", "Time", "State", "Info"]),
        ("SHOW FULL PROCESSLIST", &["Id", "User", "Host", "Db", "Command", "Time", "State", "Info"]),
        ("SHOW WARNINGS", &["Level", "Code", "Message"]),
        ("SHOW FUNCTION STATUS WHERE Db = 'd' AND Name LIKE '%'", &status),
        ("SHOW PROCEDURE STATUS", &status),
        ("SHOW TRIGGERS FROM information_schema LIKE 't'", &["Trigger", "Event", "Table", "Timing"]),
        ("SHOW EVENTS FROM information_schema", &["Db", "Name", "Definer", "Type"]),
        ("SHOW CATALOGS", &["CatalogName", "IsCurrent"]),
        ("SHOW FRONTENDS", &["Host", "HttpPort", "QueryPort"]),
        ("show frontends", &["Host", "HttpPort", "QueryPort"]),
    ] {
        let found = columns(&mut client, sql);
        for name in names {
            assert!(found.iter().any(|column| column == name), "{sql}: no {name} in {found:?}");
        }
    }
    // Connector/NET looks the collation of the greeting up by its number, and an old one by 33.
    let ids: Vec<String> = client
        .rows("SHOW COLLATION")
        .iter()
        .filter_map(|row| row.split('|').nth(2).map(str::to_owned))
        .collect();
    assert!(ids.contains(&"45".to_owned()) && ids.contains(&"33".to_owned()), "{ids:?}");
    assert!(client.rows("SHOW CATALOGS")[0].contains("|internal|"), "pydoris and Superset go on with it");
    // Metabase looks into the first column for tables that it may write.
    client.ok("SET mysql_ddl = compat");
    for sql in ["SHOW GRANTS", "SHOW GRANTS FOR CURRENT_USER()"] {
        assert!(client.rows(sql)[0].starts_with("GRANT "), "{sql}");
    }
}

/// Names are taken in any case, and what only other servers have is empty.
#[test]
fn information_schema_has_the_tables_that_tools_join() {
    let server = Server::shared();
    let mut db = server.database();
    let name = db.name.clone();
    let client = &mut db.client;
    client.ok("CREATE TABLE t (id INT) UNIQUE KEY(id)");
    for (table, needed) in [
        ("schemata", "SCHEMA_NAME"),
        ("tables", "TABLE_NAME"),
        ("columns", "COLUMN_NAME"),
        ("statistics", "INDEX_NAME"),
        ("key_column_usage", "REFERENCED_COLUMN_NAME"),
        ("table_constraints", "CONSTRAINT_TYPE"),
        ("referential_constraints", "UPDATE_RULE"),
        ("check_constraints", "CHECK_CLAUSE"),
        ("routines", "ROUTINE_NAME"),
        ("triggers", "TRIGGER_NAME"),
        ("events", "EVENT_NAME"),
        ("partitions", "PARTITION_NAME"),
        ("files", "FILE_NAME"),
        ("views", "VIEW_DEFINITION"),
        ("keywords", "WORD"),
        ("table_privileges", "PRIVILEGE_TYPE"),
        ("column_statistics", "HISTOGRAM"),
    ] {
        for written in [
            format!("information_schema.{table}"),
            format!("`INFORMATION_SCHEMA`.`{}`", table.to_uppercase()),
        ] {
            let found = columns(client, &format!("SELECT * FROM {written}"));
            assert!(found.iter().any(|column| column.eq_ignore_ascii_case(needed)), "{written}: {found:?}");
        }
    }
    // SeaTunnel, Flink and pydoris tell tables by the catalog's name.
    let sql = format!(
        "SELECT table_name, table_type FROM information_schema.tables WHERE TABLE_CATALOG = 'internal' AND table_schema = '{name}'"
    );
    assert_eq!(client.rows(&sql), ["t|BASE TABLE"]);
    let sql = format!(
        "SELECT SCHEMA_NAME FROM information_schema.schemata WHERE CATALOG_NAME = 'internal' AND SCHEMA_NAME = '{name}'"
    );
    assert_eq!(client.rows(&sql), [name.as_str()]);
    // Flink's catalog tells BOOLEAN from TINYINT by the size.
    client.ok("CREATE TABLE sizes (t TINYINT, b BOOLEAN, n DECIMAL(10, 2), s STRING, v VARCHAR(9)) DUPLICATE KEY(t)");
    let sql = format!(
        "SELECT COLUMN_NAME,DATA_TYPE,COLUMN_SIZE,DECIMAL_DIGITS FROM `information_schema`.`COLUMNS` WHERE TABLE_SCHEMA = '{name}' \
         AND TABLE_NAME = 'sizes' ORDER BY ORDINAL_POSITION"
    );
    let sizes = [
        "t|tinyint|3|0",
        "b|tinyint|NULL|0",
        "n|decimal|10|2",
        "s|varchar|2147483643|NULL",
        "v|varchar|9|NULL",
    ];
    assert_eq!(client.rows(&sql), sizes);
    client.ok("DROP TABLE sizes");
    // Grafana leaves system views out by their kind.
    let sql =
        "SELECT DISTINCT TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'information_schema'";
    assert_eq!(client.rows(sql), ["SYSTEM VIEW"]);
    let sql = "SELECT COLUMN_NAME, JSON_EXTRACT(HISTOGRAM, '$.\"number-of-buckets-specified\"') FROM information_schema.COLUMN_STATISTICS";
    assert!(client.rows(sql).is_empty(), "mysqldump of MySQL 8 asks for it");
}

/// OTel's exporter connects to it, DBeaver, DataGrip and JDBC read some of its tables.
#[test]
fn the_database_mysql_is_there() {
    let server = Server::shared();
    let mut client = server.connect_to("mysql");
    assert_eq!(client.value("SELECT DATABASE()"), "mysql");
    assert!(client.rows("SELECT User FROM mysql.user ORDER BY user").contains(&"root".to_owned()));
    for table in ["procs_priv", "tables_priv", "proc"] {
        assert!(client.rows(&format!("SELECT * FROM mysql.{table}")).is_empty(), "{table}");
    }
}

/// Kafka's connector with exactly once looks for its labels.
#[test]
fn transactions_are_found_by_a_pattern_of_their_labels() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    db.client.ok("INSERT INTO dt WITH LABEL topic__KC_0__KC_9 VALUES (1, 'a', 1)");
    db.client.ok("INSERT INTO dt WITH LABEL other VALUES (2, 'b', 2)");
    let sql = format!("SHOW TRANSACTION FROM {} WHERE LABEL LIKE 'topic__KC_0%'", db.name);
    let row = first(&mut db.client, &sql);
    let value = |name: &str| row.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str());
    assert_eq!((value("Label"), value("TransactionStatus")), (Some("topic__KC_0__KC_9"), Some("VISIBLE")));
    assert_eq!(db.client.rows(&sql).len(), 1);
    let address = ("127.0.0.1", server.mysql_port());
    let mut prepared = tributary_client::Client::connect(address, Some(&db.name), None).expect("connected");
    let statement = prepared.prepare(&sql).expect("prepared");
    match prepared.execute_query(statement, &[]).expect("executed") {
        tributary_client::Answer::Rows(rows) => assert_eq!(rows.rows.len(), 1),
        tributary_client::Answer::Ok(answer) => panic!("no rows: {answer:?}"),
    }
}

/// Superset and pydoris.
#[test]
fn a_database_is_named_with_its_catalog() {
    let server = Server::shared();
    let mut db = server.database();
    let name = db.name.clone();
    let mut client = server.connect_to(&format!("internal.{name}"));
    assert_eq!(client.value("SELECT DATABASE()"), name);
    db.client.ok("USE mysql");
    db.client.ok(&format!("USE internal.{name}"));
    assert_eq!(db.client.value("SELECT DATABASE()"), name);
    db.client.refused("USE other.d", 1105, "Unknown catalog 'other'");
}

#[test]
fn texts_of_dbt_jdbc_and_dumps_are_read() {
    let server = Server::shared();
    let mut db = server.database();
    let name = db.name.clone();
    let client = &mut db.client;
    client.ok("CREATE TABLE t (id INT, name VARCHAR(20)) UNIQUE KEY(id)");
    client.ok("CREATE TABLE u (id INT, name VARCHAR(20)) UNIQUE KEY(id)");
    let sql = format!(
        "select null as \"database\", table_name as name, table_schema as \"schema\", case when table_type = 'BASE TABLE' then \
         'table' else table_type end as table_type from information_schema.tables where table_schema = '{name}' order by 2"
    );
    assert_eq!(columns(client, &sql), ["database", "name", "schema", "table_type"]);
    assert_eq!(client.rows(&sql)[0], format!("NULL|t|{name}|table"));
    let sql = "with tables as (select 1 a), columns as (select 1 a, 2 b) select columns.b from tables join columns using (a);";
    assert_eq!(client.rows(sql), ["2"]);
    let sql = "SELECT '' TABLE_SCHEM, '' TABLE_CATALOG FROM DUAL WHERE 1=0";
    assert_eq!(columns(client, sql), ["TABLE_SCHEM", "TABLE_CATALOG"]);
    client.ok("insert into t (id, name) ( select 1, 'TABLE' )");
    client.ok("insert into t (id, name) (select id + 1, 'VIEW' from t)");
    let sql = "SELECT name AS kind FROM t HAVING kind IN ('TABLE', 'x', null)";
    assert_eq!(client.rows(sql), ["TABLE"]);
    assert_eq!(client.rows("SELECT /*!40001 SQL_NO_CACHE */ `id` FROM `t` ORDER BY id;"), ["1", "2"]);
    client.ok(&format!("ALTER TABLE {name}.t REPLACE WITH TABLE `u` PROPERTIES('swap' = 'True');"));
    assert_eq!(client.value("SELECT COUNT(*) FROM u"), "2");
    client.ok(&format!("ALTER TABLE {name}.t REPLACE WITH TABLE `u` PROPERTIES('swap' = 'False');"));
    assert_eq!(client.value("SELECT COUNT(*) FROM t"), "2");
    client.ok(
        "CREATE TABLE p (d DATE, n INT) DUPLICATE KEY(d) PARTITION BY RANGE(d) (PARTITION p1 VALUES LESS THAN ('2024-01-01'), \
         PARTITION p2 VALUES LESS THAN ('2025-01-01'))",
    );
    client.ok("alter table p add temporary partition tp VALUES [('2024-01-01'), ('2025-01-01'))");
    client.ok("insert into p temporary partition (tp) select '2024-05-05', 3");
    client.ok("alter table p replace partition (p2) with temporary partition (tp) properties (\"strict_range\" = \"false\")");
    assert_eq!(client.rows("SELECT * FROM p"), ["2024-05-05|3"]);
}
