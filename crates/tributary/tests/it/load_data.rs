//! LOAD DATA: files of the client by the clients that people have, and files of the server.

use crate::support::programs::{java, python};
use crate::support::{Client, Database, MariaDb, Server};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

fn file(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, text).expect("the file is written");
    path
}

/// Runs statements by the command line client, which sends files.
fn shows(server: &Server, db: &Database, statements: &str) -> String {
    let client = MariaDb::new(server).option("--local-infile=1");
    client.shows(&format!("USE {};\n{statements}", db.name))
}

#[test]
fn the_command_line_client_loads_its_file_with_every_clause() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let scratch = server.scratch();
    let plain = file(scratch, &format!("{}.tsv", db.name), "1\ta\t10\n2\t\\N\t20\r\n");
    let statement = format!("LOAD DATA LOCAL INFILE '{}' INTO TABLE dt;", plain.display());
    let shown = shows(&server, &db, &statement);
    assert!(shown.contains("Query OK, 2 rows affected"), "{shown}");
    assert!(shown.contains("Records: 2  Deleted: 0  Skipped: 0  Warnings: 0"), "{shown}");
    let odd = file(
        scratch,
        &format!("{}.csv", db.name),
        "id,name,score,x\r\nskipped\r\n3,\"c, \\\"d\\\"\",7,x\r\n4,\"e\nf\",8,y\r\n",
    );
    let statement = format!(
        "LOAD DATA LOCAL INFILE '{}' IGNORE INTO TABLE {}.dt CHARACTER SET utf8mb4
         FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' ESCAPED BY '\\\\' LINES TERMINATED BY '\\r\\n'
         IGNORE 2 LINES (id, name, @score, @dummy) SET score = @score * 10 + length(name);",
        odd.display(),
        db.name
    );
    shows(&server, &db, &statement);
    assert_eq!(
        db.client.rows("SELECT * FROM dt ORDER BY id"),
        ["1|a|10", "2|NULL|20", "3|c, \"d\"|76", "4|e\nf|83"]
    );
}

#[test]
fn a_large_file_arrives_whole_and_the_connection_stays_open() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let rows: String = (0..200_000).map(|row| format!("{row},name {row},{}\n", row % 7)).collect();
    let path = file(server.scratch(), &format!("{}.csv", db.name), &rows);
    let load =
        format!("LOAD DATA LOCAL INFILE '{}' INTO TABLE dt COLUMNS TERMINATED BY ',';", path.display());
    let shown = shows(&server, &db, &format!("{load}\nSELECT 'between', 40 + 2;\n{load}\nSELECT 1;"));
    assert!(shown.contains("| between | "), "{shown}");
    assert_eq!(shown.matches("Records: 200000  Deleted: 0  Skipped: 0  Warnings: 0").count(), 2, "{shown}");
    let sum: u64 = (0..200_000_u64).map(|row| row % 7).sum();
    assert_eq!(db.client.rows("SELECT COUNT(*), SUM(score) FROM dt"), [format!("400000|{}", 2 * sum)]);
    let compressed = MariaDb::new(&server).option("--local-infile=1").option("--compress");
    compressed.shows(&format!("USE {};\n{load}\nSELECT 1;\n{load}", db.name));
    assert_eq!(db.client.value("SELECT COUNT(*) FROM dt"), "800000");
}

#[test]
fn bad_rows_and_statements_are_refused_by_name() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let path = file(server.scratch(), &format!("{}.csv", db.name), "1,a,10\n2,b\n3,c,x\n4,d,40\n");
    let load = format!("LOAD DATA LOCAL INFILE '{}' INTO TABLE dt FIELDS TERMINATED BY ','", path.display());
    let fails = |rest: &str| {
        let client = MariaDb::new(&server).option("--local-infile=1");
        client.run(&format!("USE {};\n{load} {rest};", db.name)).failure()
    };
    let filtered = fails("");
    assert!(filtered.contains("ERROR 1105 (HY000)"), "{filtered}");
    let text = "errCode = 2, detailMessage = [DATA_QUALITY_ERROR]too many filtered rows with load id ";
    assert!(filtered.contains(text), "{filtered}");
    assert!(filtered.contains("1 of 4") && filtered.contains("/api/_load_error_log?file="), "{filtered}");
    for (rest, text) in [
        ("(id, nickname, score)", "Unknown column 'nickname' in 'field list'"),
        ("(id, name, @s) SET points = @s", "Unknown column 'points' in 'field list'"),
        ("(id, name, @s) SET score = nofunction(@s)", "nofunction"),
        ("ESCAPED BY '\\\\'", "ESCAPED BY without ENCLOSED BY"),
        ("ENCLOSED BY 'ab'", "enclose must be single-char"),
        ("PROPERTIES (\"label\" = \"x\")", "Unknown properties: {label=x}"),
        ("PROPERTIES (\"timeout\" = \"0\")", "Invalid timeout: 0"),
    ] {
        let refused = fails(rest);
        assert!(refused.contains(text), "{rest}: {refused}");
    }
    assert_eq!(db.client.value("SELECT COUNT(*) FROM dt"), "0");
    let ratio = "PROPERTIES (\"max_filter_ratio\" = \"0.5\", \"strict_mode\" = \"true\")";
    let shown = shows(&server, &db, &format!("{load} {ratio};\nSHOW WARNINGS;"));
    assert!(shown.contains("Records: 4  Deleted: 0  Skipped: 2  Warnings: 2"), "{shown}");
    assert!(shown.contains("actual column number in csv file is"), "{shown}");
    assert_eq!(db.client.rows("SELECT * FROM dt ORDER BY id"), ["1|a|10", "4|d|40"]);
}

#[test]
fn rows_replace_those_with_their_unique_key_or_are_ignored() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok(
        "CREATE TABLE u (id INT NOT NULL, name VARCHAR(10)) UNIQUE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1",
    );
    db.client.ok("INSERT INTO u VALUES (1, 'old'), (2, 'kept')");
    let path = file(server.scratch(), &format!("{}.csv", db.name), "1,new\n3,first\n3,second\n");
    let load = |word: &str| {
        format!("LOAD DATA LOCAL INFILE '{}' {word} INTO TABLE u FIELDS TERMINATED BY ',';", path.display())
    };
    let ignoring = MariaDb::new(&server).option("--local-infile=1");
    let shown = ignoring.shows(&format!("USE {};\n{}\nSELECT ROW_COUNT();", db.name, load("IGNORE")));
    assert!(!shown.contains("ERROR"), "{shown}");
    assert_eq!(db.client.rows("SELECT * FROM u ORDER BY id"), ["1|old", "2|kept", "3|first"]);
    let to_columns = load("IGNORE").replace(';', " (id, @n) SET name = CONCAT(@n, '!');");
    ignoring.shows(&format!("DELETE FROM {}.u WHERE id = 1; USE {};\n{to_columns}", db.name, db.name));
    assert_eq!(db.client.rows("SELECT * FROM u ORDER BY id"), ["1|new!", "2|kept", "3|first"]);
    shows(&server, &db, &load(""));
    assert_eq!(db.client.rows("SELECT * FROM u ORDER BY id"), ["1|new", "2|kept", "3|second"]);
}

/// A client that sends its file for a long time holds nobody up: the rows take their turn when they are complete.
#[test]
fn rows_of_a_table_change_while_a_client_sends_rows_that_ignore() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok("CREATE TABLE u (id INT, name VARCHAR(10)) UNIQUE KEY(id)");
    db.client.ok("INSERT INTO u VALUES (1, 'old')");
    let path = server.scratch().join(format!("{}.pipe", db.name));
    assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo runs").success());
    let statement = format!(
        "LOAD DATA LOCAL INFILE '{}' IGNORE INTO TABLE {}.u FIELDS TERMINATED BY ',';",
        path.display(),
        db.name
    );
    std::thread::scope(|scope| {
        let sends = scope.spawn(|| MariaDb::new(&server).option("--local-infile=1").shows(&statement));
        // It opens once the client was asked for its file.
        let mut pipe = std::fs::File::options().write(true).open(&path).expect("the client reads it");
        pipe.write_all(b"1,new\n2,first\n").expect("the client reads it");
        db.client.ok("SET insert_timeout = 20");
        assert_eq!(db.client.ok("UPDATE u SET name = 'changed' WHERE id = 1").affected_rows, 1);
        assert_eq!(db.client.ok("INSERT IGNORE INTO u VALUES (3, 'third')").affected_rows, 1);
        pipe.write_all(b"3,late\n").expect("the client reads it");
        drop(pipe);
        let shown = sends.join().expect("the client ends");
        assert!(shown.contains("Query OK, 1 row affected"), "{shown}");
        assert!(shown.contains("Records: 3  Deleted: 0  Skipped: 2  Warnings: 0"), "{shown}");
    });
    assert_eq!(db.client.rows("SELECT * FROM u ORDER BY id"), ["1|changed", "2|first", "3|third"]);
}

#[test]
fn a_client_without_files_and_a_transaction_are_refused() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let closed = MariaDb::new(&server).option("--local-infile=0");
    let statement = format!("LOAD DATA LOCAL INFILE 'f' INTO TABLE {}.dt;", db.name);
    let refused = closed.run(&statement).failure();
    assert!(refused.contains("ERROR 1148 (42000)") && refused.contains("--local-infile"), "{refused}");
    db.client.ok("BEGIN");
    let error = db.client.error("LOAD DATA LOCAL INFILE 'f' INTO TABLE dt");
    assert!(error.message.contains("This is in a transaction"), "{}", error.message);
    db.client.ok("ROLLBACK");
}

#[test]
fn files_of_the_server_are_read_below_the_directory_that_the_setting_names() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let allowed = directory.path().join("allowed");
    std::fs::create_dir_all(allowed.join("sub")).expect("it is made");
    file(&allowed, "sub/f.csv", "1,a,10\n2,b,20\n");
    file(directory.path(), "secret.csv", "3,c,30\n");
    std::os::unix::fs::symlink(directory.path().join("secret.csv"), allowed.join("link.csv"))
        .expect("a link");
    let server = Server::with_settings(&[("mysql_load_server_secure_path", &allowed.display().to_string())]);
    let mut db = server.database().with_dt("");
    let load = |name: &str| format!("LOAD DATA INFILE '{name}' INTO TABLE dt FIELDS TERMINATED BY ','");
    let refused = |client: &mut Client, name: &str| client.error(&load(name)).message;
    let whole = allowed.join("sub/f.csv").display().to_string();
    for name in ["sub/f.csv", &whole] {
        db.client.ok(&load(name));
    }
    assert_eq!(db.client.value("SELECT COUNT(*) FROM dt"), "4");
    let secret = directory.path().join("secret.csv").display().to_string();
    for name in ["../secret.csv", "link.csv", &secret, "/etc/passwd"] {
        let refused = refused(&mut db.client, name);
        assert!(refused.contains("Local file should be under the secure path of FE"), "{name}: {refused}");
    }
    assert!(refused(&mut db.client, "missing.csv").contains("can't be read: No such file"));
    assert!(refused(&mut db.client, "sub").contains("'sub' is no file"));
    assert_eq!(db.client.value("SELECT COUNT(*) FROM dt"), "4");
    let closed = Server::shared();
    let mut db = closed.database().with_dt("");
    let text = refused(&mut db.client, "/etc/passwd");
    assert!(text.contains("`mysql_load_server_secure_path`"), "{text}");
}

#[test]
fn pymysql_sends_files() {
    let server = Server::shared();
    let db = server.database();
    let arguments = ["load_data", &server.mysql_port().to_string(), &db.name];
    assert_eq!(python("pymysql_checks.py", &arguments), "ok\n");
}

#[test]
fn connector_j_sends_files() {
    let server = Server::shared();
    let db = server.database();
    assert_eq!(java("JdbcChecks", &[&server.mysql_port().to_string(), &db.name, "load_data"]), "ok\n");
}
