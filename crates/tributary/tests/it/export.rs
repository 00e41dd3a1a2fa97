//! `EXPORT TABLE …` as jobs, with real files, a real S3 store, and crashes.

use crate::support::programs::python;
use crate::support::{Client, S3Store, Server, wait_until};
use std::net::TcpListener;
use std::path::Path;

fn server(files: &Path) -> Server {
    Server::with_settings(&[("mysql_load_server_secure_path", &files.display().to_string())])
}

fn names(directory: &Path) -> Vec<String> {
    let all = std::fs::read_dir(directory).expect("it is there");
    let mut names: Vec<String> =
        all.map(|entry| entry.expect("a file").file_name().into_string().expect("UTF-8")).collect();
    names.sort();
    names
}

/// A column of SHOW EXPORT.
fn shown(client: &mut Client, label: &str, column: &str) -> String {
    let rows = client.table(&format!("SHOW EXPORT WHERE LABEL = '{label}'"));
    let at = rows.columns.iter().position(|known| known == column).expect("SHOW EXPORT has it");
    rows.rows.last().and_then(|row| row[at].clone()).unwrap_or_else(|| "NULL".to_owned())
}

fn wait_for(client: &mut Client, label: &str, state: &str) {
    wait_until(&format!("{label} is {state}"), || {
        let now = shown(client, label, "State");
        let is_other_end = ["FINISHED", "CANCELLED"].contains(&now.as_str()) && now != state;
        assert!(!is_other_end, "{label} is {now}: {}", shown(client, label, "ErrorMsg"));
        now == state
    });
}

#[test]
fn a_table_is_exported_once_however_often_the_server_is_killed() {
    let directory = tempfile::tempdir().expect("a directory");
    let files = directory.path();
    assert_eq!(python("pyarrow_files.py", &[&files.display().to_string()]), "ok\n");
    let mut server = server(files);
    let mut db = server.database();
    let large = "LOCAL(\"file_path\" = \"large.parquet\", \"format\" = \"parquet\")";
    db.client.ok(&format!("CREATE TABLE t AS SELECT * FROM {large}"));
    for _ in 0..3 {
        db.client.ok(&format!("INSERT INTO t SELECT * FROM {large}"));
    }
    let out = files.join("out");
    std::fs::create_dir(&out).expect("made");
    std::fs::write(out.join("k_other.csv"), "not of the job").expect("written");
    let export = format!(
        "EXPORT TABLE t TO 'file://{}/k_' PROPERTIES ('label' = 'all_rows', 'max_file_size' = '5MB', 'parallelism' = '2')",
        out.display()
    );
    db.client.ok(&export);
    let used = db.client.error(&export).message;
    assert!(used.contains("Label [all_rows] has already been used"), "{used}");
    let mut client = server.connect_to(&db.name);
    for _ in 0..2 {
        // In the middle of the job, with complete files, or at its end if it is fast.
        wait_until("some files are written", || {
            let is_part = names(&out).iter().filter(|name| !name.contains('#')).count() >= 3;
            is_part || shown(&mut client, "all_rows", "State") == "FINISHED"
        });
        server.kill();
        server.start_again();
        client = server.connect_to(&db.name);
    }
    wait_for(&mut client, "all_rows", "FINISHED");
    let expected = client.rows("SELECT COUNT(*), SUM(id) FROM t");
    let is_of_job = |name: &&String| name.as_str() != "k_other.csv";
    let (written, count) = (names(&out), names(&out).iter().filter(is_of_job).count());
    assert!(written.contains(&"k_other.csv".to_owned()), "files of others stay");
    assert!(count >= 4 && !written.iter().any(|name| name.contains('#')), "{written:?}");
    std::fs::remove_file(out.join("k_other.csv")).expect("it is there");
    assert_eq!(client.rows("SELECT COUNT(*), SUM(c1) FROM LOCAL(\"file_path\" = \"out/k_*.csv\")"), expected);
    let info: serde_json::Value =
        serde_json::from_str(&shown(&mut client, "all_rows", "OutfileInfo")).expect("JSON");
    let sum = |key: &str| -> u64 {
        let writers = info.as_array().expect("a list").iter();
        let numbers =
            writers.map(|writer| writer[0][key].as_str().expect("a text").trim_end_matches("bytes"));
        numbers.map(|number| number.parse::<u64>().expect("a number")).sum()
    };
    let bytes: u64 =
        names(&out).iter().map(|name| std::fs::metadata(out.join(name)).expect("it is there").len()).sum();
    let rows: u64 = expected[0].split_once('|').expect("two").0.parse().expect("a number");
    assert_eq!((sum("fileNumber"), sum("totalRows"), sum("fileSize")), (count as u64, rows, bytes));
    assert_eq!(shown(&mut client, "all_rows", "Progress"), "100%");
    let used = client.error(&export).message;
    assert!(used.contains("Label [all_rows] has already been used"), "{used}");
    let before = names(&out);
    server.stop();
    server.start_again();
    client = server.connect_to(&db.name);
    assert_eq!(shown(&mut client, "all_rows", "State"), "FINISHED", "it is kept");
    assert_eq!(names(&out), before);
}

#[test]
fn rows_and_columns_are_chosen_and_go_to_an_s3_store() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok(
        "CREATE TABLE t (id INT NOT NULL, name VARCHAR(20), score INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1",
    );
    client.ok("INSERT INTO t VALUES (1, 'a', 10), (2, NULL, 20), (3, 'c', 30), (4, 'd', NULL)");
    client.ok("SYNC");
    let store = S3Store::shared();
    let bucket = format!("export-{}", db.name.replace('_', "-"));
    store.make_bucket(&bucket);
    let place = format!(
        "'s3.endpoint' = '{}', 's3.access_key' = 'key', 's3.secret_key' = 'hush', 'use_path_style' = 'true'",
        store.endpoint
    );
    let export = |name: &str, filter: &str, properties: &str| {
        format!(
            "EXPORT TABLE {}.t {filter} TO 's3://{bucket}/{name}/p_' PROPERTIES ('label' = '{name}', {properties}) WITH S3 ({place})",
            db.name
        )
    };
    let client = &mut db.client;
    client.ok(&export(
        "some",
        "WHERE score >= 20 -- not all",
        "'columns' = 'score, id', 'format' = 'parquet'",
    )
    .replace("-- not all", "-- not all\n"));
    wait_for(client, "some", "FINISHED");
    let read = format!("S3('uri' = 's3://{bucket}/some/*', {place}, 'format' = 'parquet')");
    assert_eq!(client.rows(&format!("SELECT * FROM {read} ORDER BY id")), ["20|2", "30|3"]);
    client.ok(&export(
        "marked",
        "",
        "'with_bom' = 'true', 'format' = 'csv_with_names', 'column_separator' = ','",
    ));
    wait_for(client, "marked", "FINISHED");
    let read =
        format!("S3('uri' = 's3://{bucket}/marked/*', {place}, 'format' = 'csv', 'column_separator' = '|')");
    // Readers of files interpret the byte order mark, so it shows only in the byte count: 43 without it.
    assert_eq!(client.rows(&format!("SELECT c1 FROM {read} LIMIT 1")), ["id,name,score"]);
    let info = shown(client, "marked", "OutfileInfo");
    assert!(info.contains("\"fileSize\":\"46bytes\""), "{info}");
    client.ok(&export("none", "WHERE id > 100", "'format' = 'csv'"));
    wait_for(client, "none", "FINISHED");
    let info = shown(client, "none", "OutfileInfo");
    assert!(info.contains("\"fileNumber\":\"1\"") && info.contains("\"totalRows\":\"0\""), "{info}");
    // A failure leaves a reason, and its label is free.
    let nowhere = export("lost", "", "'format' = 'csv'").replace(&bucket, "no-such-bucket");
    for _ in 0..2 {
        client.ok(&nowhere);
        wait_for(client, "lost", "CANCELLED");
        let message = shown(client, "lost", "ErrorMsg");
        assert!(
            message.starts_with("type:RUN_FAIL; msg:") && message.contains("no-such-bucket"),
            "{message}"
        );
    }
    let all = client.table("SHOW EXPORT ORDER BY JobId DESC LIMIT 2");
    assert_eq!(
        all.columns.join(" "),
        "JobId Label State Progress TaskInfo Path CreateTime StartTime FinishTime Timeout ErrorMsg OutfileInfo"
    );
    assert_eq!(all.rows.len(), 2);
    let id = shown(client, "some", "JobId");
    assert_eq!(client.rows(&format!("SHOW EXPORT FROM {} WHERE ID = {id}", db.name)).len(), 1);
    assert_eq!(db.client.rows("SHOW EXPORT WHERE STATE = 'FINISHED'").len(), 3);
    let all = db.client.rows("SHOW EXPORT");
    assert!(all.iter().all(|row| !row.contains("hush")) && !server.log().contains("hush"), "{all:?}");
}

#[test]
fn exports_are_cancelled_and_statements_that_can_not_be_run_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let files = directory.path();
    let server = server(files);
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("CREATE TABLE t (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    client.ok("INSERT INTO t VALUES (1)");
    // A store that takes connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = silent.local_addr().expect("an address");
    let export = |label: &str| {
        format!(
            "EXPORT TABLE t TO 's3://b/x_' PROPERTIES ('label' = '{label}') WITH S3 ('s3.endpoint' = 'http://{endpoint}')"
        )
    };
    for label in ["one", "two", "three"] {
        client.ok(&export(label));
    }
    wait_for(client, "one", "EXPORTING");
    assert_eq!(shown(client, "three", "State"), "PENDING", "two run at a time");
    client.ok("CANCEL EXPORT WHERE STATE = 'PENDING'");
    assert_eq!(shown(client, "three", "State"), "CANCELLED");
    assert_eq!(shown(client, "three", "ErrorMsg"), "type:USER_CANCEL; msg:user cancel");
    client.ok(&format!("CANCEL EXPORT FROM {} WHERE LABEL LIKE '%o%'", db.name));
    assert_eq!(shown(client, "one", "State"), "CANCELLED");
    assert_eq!(shown(client, "two", "State"), "CANCELLED");
    for (sql, text) in [
        ("CANCEL EXPORT WHERE LABEL = 'none'", "Export job(s) do not exist"),
        ("CANCEL EXPORT WHERE LABEL = 'one'", "All export job(s) are at final state (CANCELLED/FINISHED)"),
    ] {
        let refused = client.error(sql).message;
        assert!(refused.contains(text), "{sql}: {refused}");
    }
    let into = format!("'file://{}/x_'", files.display());
    for (sql, text) in [
        (format!("EXPORT TABLE nowhere TO {into}"), "nowhere"),
        (format!("EXPORT TABLE t WHERE points > 1 TO {into}"), "points"),
        (format!("EXPORT TABLE t PARTITION (p) TO {into}"), "PARTITION () clause on non partitioned table"),
        ("EXPORT TABLE t TO 'file:///tmp/x_'".to_owned(), "should be under the secure path"),
        ("EXPORT TABLE t TO 'hdfs://h/x_'".to_owned(), "has the scheme 'hdfs'"),
        (format!("EXPORT TABLE t TO {into} PROPERTIES ('columns' = 'id,points')"), "points"),
        (format!("EXPORT TABLE t TO {into} PROPERTIES ('format' = 'orc')"), "FORMAT AS orc is not supported"),
        (format!("EXPORT TABLE t TO {into} PROPERTIES ('timeout' = '0')"), "Invalid timeout: 0"),
        (format!("EXPORT TABLE t TO {into} PROPERTIES ('parallelism' = '0')"), "Invalid parallelism: 0"),
        (format!("EXPORT TABLE t TO {into} PROPERTIES ('data_consistency' = 'all')"), "data_consistency"),
        (
            format!("EXPORT TABLE t TO {into} PROPERTIES ('delete_existing_files' = 'true')"),
            "Unknown properties: delete_existing_files",
        ),
        (
            "EXPORT TABLE t TO 's3://b/x_' WITH S3 ('s3.secretkey' = 'hush')".to_owned(),
            "Unknown properties: s3.secretkey",
        ),
        (format!("EXPORT TABLE t TO {into} PROPERTIES ('label' = 'a b')"), "a b"),
    ] {
        let refused = client.error(&sql).message;
        assert!(refused.contains(text) && !refused.contains("hush"), "{sql}: {refused}");
    }
    assert_eq!(client.rows("SHOW EXPORT").len(), 3);
    assert_eq!(names(files), Vec::<String>::new(), "nothing is left");
}

#[test]
fn partitions_are_exported_and_loaded_by_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let files = directory.path();
    let server = server(files);
    let mut db = server.database();
    let client = &mut db.client;
    let table = |name: &str| {
        format!(
            "CREATE TABLE {name} (id INT, day DATE) DUPLICATE KEY(id)
             PARTITION BY RANGE(day) (FROM ('2024-01-01') TO ('2024-04-01') INTERVAL 1 MONTH)
             DISTRIBUTED BY HASH(id) BUCKETS 1"
        )
    };
    client.ok(&table("orders"));
    client.ok(&table("copy"));
    client.ok("INSERT INTO orders VALUES (1, '2024-01-31'), (2, '2024-02-01'), (3, '2024-03-31'), (4, '2024-03-01')");
    client.ok(&format!(
        "EXPORT TABLE orders PARTITION (p_202401, p_202403) WHERE id <> 4 TO 'file://{}/x_'
         PROPERTIES ('label' = 'two', 'format' = 'csv', 'column_separator' = ',')",
        files.display()
    ));
    wait_for(client, "two", "FINISHED");
    assert!(shown(client, "two", "TaskInfo").contains("\"partitions\":[\"p_202401\",\"p_202403\"]"));
    let load = |label: &str, partition: &str, ratio: &str| {
        format!(
            "LOAD LABEL {label} (DATA INFILE('x_*.csv') INTO TABLE copy PARTITION ({partition}) COLUMNS TERMINATED BY ',')
             WITH LOCAL PROPERTIES ('max_filter_ratio' = '{ratio}')"
        )
    };
    client.ok(&load("both", "p_202401, p_202403", "0"));
    wait_until("both rows are there", || client.value("SELECT COUNT(*) FROM copy") == "2");
    // Rows of others are rejected.
    client.ok(&load("one", "p_202403", "0.5"));
    wait_until("the row of March is there twice", || client.value("SELECT COUNT(*) FROM copy") == "3");
    assert_eq!(client.rows("SELECT id, COUNT(*) FROM copy GROUP BY id ORDER BY id"), ["1|1", "3|2"]);
    client.ok(&load("none", "p_202402", "0.5"));
    wait_until("the job has failed", || {
        client.rows("SHOW LOAD WHERE LABEL = 'none'").iter().any(|row| row.contains("CANCELLED"))
    });
    for (label, properties, read) in [
        (
            "ends",
            "'format' = 'csv', 'line_delimiter' = ';'",
            "\"format\" = \"csv\", \"line_delimiter\" = \";\"",
        ),
        ("packed", "'format' = 'parquet', 'compress_type' = 'zstd'", "\"format\" = \"parquet\""),
    ] {
        client.ok(&format!(
            "EXPORT TABLE copy TO 'file://{}/{label}_' PROPERTIES ('label' = '{label}', {properties})",
            files.display()
        ));
        wait_for(client, label, "FINISHED");
        assert_eq!(
            client.value(&format!("SELECT COUNT(*) FROM LOCAL(\"file_path\" = \"{label}_*\", {read})")),
            "3",
            "{label}"
        );
    }
    for (sql, text) in [
        (load("unknown", "p9", "0"), "partition p9 is not found in table copy"),
        (
            load("temporary", "p_202401", "0").replace("PARTITION (", "TEMPORARY PARTITION ("),
            "partition p_202401 is not found in table copy",
        ),
        (
            format!("EXPORT TABLE orders PARTITION (p9) TO 'file://{}/y_'", files.display()),
            "partition p9 is not found in table orders",
        ),
    ] {
        let refused = client.error(&sql).message;
        assert!(refused.contains(text), "{sql}: {refused}");
    }
}
