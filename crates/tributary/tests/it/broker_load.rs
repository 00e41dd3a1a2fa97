//! `LOAD LABEL …` as jobs, with real files, a real S3 store, and crashes.

use crate::support::programs::python;
use crate::support::{Client, Database, S3Store, Server, wait_until};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;

const ROWS: u64 = 4000;

fn rows(file: u64) -> String {
    (file * ROWS..(file + 1) * ROWS).map(|id| format!("{id},name {id},{}\n", id % 10)).collect()
}

fn gzip(text: &str) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(text.as_bytes()).expect("memory takes it");
    gzip.finish().expect("memory takes it")
}

fn server(files: &Path) -> Server {
    let files = files.display().to_string();
    Server::with_settings(&[("mysql_load_server_secure_path", &files), ("large_load_bytes", "1000000")])
}

fn table(server: &Server) -> Database {
    let mut db = server.database();
    db.client.ok("CREATE TABLE t (id BIGINT NOT NULL, name VARCHAR(30), score INT) DUPLICATE KEY(id)
         DISTRIBUTED BY HASH(id) BUCKETS 1");
    db
}

/// A column of SHOW LOAD.
fn shown(client: &mut Client, label: &str, column: &str) -> String {
    let rows = client.table(&format!("SHOW LOAD WHERE LABEL = '{label}'"));
    let at = rows.columns.iter().position(|known| known == column).expect("SHOW LOAD has it");
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
fn a_hundred_files_are_loaded_once_however_often_the_server_is_killed() {
    let directory = tempfile::tempdir().expect("a directory");
    let files = directory.path();
    assert_eq!(python("pyarrow_files.py", &[&files.display().to_string()]), "ok\n");
    for file in 0..90 {
        match file % 2 {
            0 => std::fs::write(files.join(format!("{file}.csv")), rows(file)),
            _ => std::fs::write(files.join(format!("{file}.csv.gz")), gzip(&rows(file))),
        }
        .expect("written");
    }
    for file in 0..10 {
        std::fs::copy(files.join("SNAPPY.parquet"), files.join(format!("copy{file}.parquet")))
            .expect("copied");
    }
    let mut server = server(files);
    let mut db = table(&server);
    db.client.ok("DROP TABLE t");
    db.client.ok(
        "CREATE TABLE t (id BIGINT NOT NULL, name VARCHAR(30), score INT, twice BIGINT AS (id * 2) NOT NULL)
         DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1",
    );
    let load = "LOAD LABEL all_files (
            DATA INFILE('*.csv', '*.csv.gz') INTO TABLE t COLUMNS TERMINATED BY ',' (id, name, s)
                SET (score = s * 2) WHERE score < 18,
            DATA INFILE('copy*.parquet') INTO TABLE t FORMAT AS 'parquet' (id, name) SET (id = id + 10000000),
            DATA INFILE('zlib.orc') INTO TABLE t (id, name) SET (id = id + 20000000)
        ) WITH LOCAL PROPERTIES ('timeout' = '1000') COMMENT 'ours'";
    db.client.ok(load);
    let used = db.client.error(load).message;
    assert!(used.contains("Label [all_files] has already been used"), "{used}");
    let given = load.replace("(score = s * 2)", "(twice = s * 2)").replace("all_files", "given");
    db.client.ok(&given);
    wait_for(&mut db.client, "given", "CANCELLED");
    let reason = shown(&mut db.client, "given", "ErrorMsg");
    assert!(
        reason.contains("The value specified for generated column 'twice' in table 't' is not allowed."),
        "{reason}"
    );
    let mut client = server.connect_to(&db.name);
    for _ in 0..2 {
        // In the middle of the job, or at its end if it is fast.
        wait_until("some files are read", || {
            let progress = shown(&mut client, "all_files", "Progress");
            let percent = progress.trim_start_matches("ETL:100%; LOAD:").trim_end_matches('%').parse::<u64>();
            percent.is_ok_and(|percent| percent >= 10)
        });
        server.kill();
        server.start_again();
        client = server.connect_to(&db.name);
    }
    wait_for(&mut client, "all_files", "FINISHED");
    let csv = 90 * ROWS;
    let expected = csv / 10 * 9;
    let ids: u64 = (0..csv).filter(|id| id % 10 != 9).sum();
    assert_eq!(
        client.rows("SELECT COUNT(*), COUNT(DISTINCT id), SUM(id), MAX(score) FROM t WHERE id < 10000000"),
        [format!("{expected}|{expected}|{ids}|16")]
    );
    assert_eq!(
        client.rows("SELECT COUNT(*), SUM(id - 10000000) FROM t WHERE id > 10000000"),
        ["33|30000066"]
    );
    assert_eq!(client.value("SELECT COUNT(*) FROM t WHERE NOT (twice <=> id * 2)"), "0");
    assert_eq!(shown(&mut client, "all_files", "Progress"), "ETL:100%; LOAD:100%");
    assert_eq!(shown(&mut client, "all_files", "Type"), "BROKER");
    assert_eq!(shown(&mut client, "all_files", "Comment"), "ours");
    assert!(shown(&mut client, "all_files", "EtlInfo").contains(&format!("dpp.norm.ALL={}", expected + 33)));
    let transaction = client.rows("SHOW TRANSACTION WHERE LABEL = 'all_files'");
    assert!(transaction[0].contains("|VISIBLE|BATCH_LOAD_JOB|"), "{transaction:?}");
    let used = client.error(load).message;
    assert!(used.contains("Label [all_files] has already been used"), "{used}");
    server.stop();
    server.start_again();
    assert_eq!(shown(&mut server.connect_to(&db.name), "all_files", "State"), "FINISHED", "it is kept");
}

#[test]
fn objects_of_an_s3_store_are_loaded_and_what_is_bad_is_named() {
    let server = Server::shared();
    let mut db = table(&server);
    let store = S3Store::shared();
    let bucket = format!("jobs-{}", db.name.replace('_', "-"));
    store.make_bucket(&bucket);
    let scratch = server.scratch();
    let put = |key: &str, bytes: Vec<u8>| {
        let path = scratch.join(format!("{bucket}-{}", key.replace('/', "-")));
        std::fs::write(&path, bytes).expect("written");
        store.put(&bucket, key, &path);
    };
    put("a.csv", rows(0).into_bytes());
    put("b.csv.gz", gzip(&rows(1)));
    put("bad/c.csv", b"1,a,2\n2,b\n".to_vec());
    put("broken/d.csv.gz", gzip(&rows(2))[..2000].to_vec());
    let load = |label: &str, files: &str, rest: &str| {
        format!(
            "LOAD LABEL {label} (DATA INFILE('s3://{bucket}/{files}') INTO TABLE t COLUMNS TERMINATED BY ',')
             WITH S3 ('AWS_ENDPOINT' = '{}', 'AWS_ACCESS_KEY' = 'key', 'AWS_SECRET_KEY' = 'hush', 'use_path_style' = 'true')
             PROPERTIES ({rest})",
            store.endpoint
        )
    };
    let strict = "'strict_mode' = 'true'";
    let client = &mut db.client;
    client.ok(&load("good", "*.csv*", strict));
    wait_for(client, "good", "FINISHED");
    assert_eq!(
        client.rows("SELECT COUNT(*), SUM(id) FROM t"),
        [format!("{}|{}", 2 * ROWS, ROWS * (2 * ROWS - 1))]
    );
    let details = shown(client, "good", "JobDetails");
    assert!(details.contains("\"FileNumber\":2") && details.contains("\"ScannedRows\":8000"), "{details}");

    client.ok(&load("bad", "bad/*", strict));
    wait_for(client, "bad", "CANCELLED");
    let message = shown(client, "bad", "ErrorMsg");
    assert_eq!(message, "type:ETL_QUALITY_UNSATISFIED; msg:quality not good enough to cancel");
    let first = shown(client, "bad", "FirstErrorMsg");
    assert!(first.contains(&format!("file=s3://{bucket}/bad/c.csv")), "{first}");
    assert!(shown(client, "bad", "URL").contains("/api/_load_error_log?file="));
    // The label is free again, and more may be bad now.
    client.ok(&load("bad", "bad/*", "'max_filter_ratio' = '0.5'"));
    wait_for(client, "bad", "FINISHED");
    assert_eq!(client.value("SELECT COUNT(*) FROM t"), (2 * ROWS + 1).to_string());

    client.ok(&load("broken", "broken/*", strict));
    wait_for(client, "broken", "CANCELLED");
    let message = shown(client, "broken", "ErrorMsg");
    assert!(
        message.starts_with(&format!("type:LOAD_RUN_FAIL; msg:the file 's3://{bucket}/broken/d.csv.gz': ")),
        "{message}"
    );
    client.ok(&load("none", "none*", strict));
    wait_for(client, "none", "CANCELLED");
    let message = shown(client, "none", "ErrorMsg");
    assert!(message.contains(&format!("no file is called 's3://{bucket}/none*'")), "{message}");
    assert_eq!(
        client.value("SELECT COUNT(*) FROM t"),
        (2 * ROWS + 1).to_string(),
        "what failed left nothing"
    );
    let all = client.rows("SHOW LOAD ORDER BY JobId DESC LIMIT 2");
    assert!(all.len() == 2 && all.iter().all(|row| !row.contains("hush")), "{all:?}");
    assert_eq!(client.rows("SHOW LOAD WHERE STATE = 'FINISHED'").len(), 2);
    assert!(!server.log().contains("hush"));
}

#[test]
fn jobs_are_cancelled_and_statements_that_can_not_be_run_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = server(directory.path());
    let mut db = table(&server);
    // A store that takes connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = silent.local_addr().expect("an address");
    let load = |label: &str| {
        format!(
            "LOAD LABEL {label} (DATA INFILE('s3://b/x*') INTO TABLE t) WITH S3 ('s3.endpoint' = 'http://{endpoint}')"
        )
    };
    let client = &mut db.client;
    for label in ["one", "two", "three"] {
        client.ok(&load(label));
    }
    wait_for(client, "one", "ETL");
    assert_eq!(shown(client, "three", "State"), "PENDING", "two run at a time");
    client.ok("CANCEL LOAD WHERE STATE = 'PENDING'");
    assert_eq!(shown(client, "three", "State"), "CANCELLED");
    assert_eq!(shown(client, "three", "ErrorMsg"), "type:USER_CANCEL; msg:user cancel");
    client.ok(&format!("CANCEL LOAD FROM {} WHERE LABEL LIKE '%o%'", db.name));
    assert_eq!(shown(client, "one", "State"), "CANCELLED");
    assert_eq!(shown(client, "two", "State"), "CANCELLED");
    for (sql, text) in [
        ("CANCEL LOAD WHERE LABEL = 'none'", "Load job does not exist"),
        ("CANCEL LOAD WHERE LABEL = 'one'", "There is no uncompleted job"),
    ] {
        let refused = client.error(sql).message;
        assert!(refused.contains(text), "{sql}: {refused}");
    }
    // A label whose load was cancelled is free.
    client.ok(&load("one"));
    client.ok("CANCEL LOAD WHERE LABEL = 'one'");

    client.ok("CREATE TABLE u (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    let plain = "DATA INFILE('a.csv') INTO TABLE t";
    for (parts, rest, text) in [
        (format!("{plain}, DATA INFILE('b.csv') INTO TABLE u"), "LOCAL", "LOAD LABEL loads into one table"),
        (plain.replace(" t", " nowhere"), "LOCAL", "nowhere"),
        (format!("{plain} SET (points = 1)"), "LOCAL", "Unknown column 'points' in SET"),
        (format!("{plain} FORMAT AS 'avro'"), "LOCAL", "format=avro is not supported"),
        (
            plain.to_owned(),
            "LOCAL ('s3.secretkey' = 'hush')",
            "Unknown properties: s3.secretkey of WITH local",
        ),
        (plain.to_owned(), "LOCAL PROPERTIES ('timeout' = '0')", "Invalid timeout: 0"),
        (plain.to_owned(), "LOCAL PROPERTIES ('jsonpaths' = 'x')", "Unknown properties: jsonpaths"),
        (plain.to_owned(), "HDFS ('a' = 'b')", "WITH HDFS is not supported"),
        (plain.to_owned(), "BROKER 'b' ('a' = 'b')", "WITH BROKER is not supported"),
    ] {
        let sql = format!("LOAD LABEL refused ({parts}) WITH {rest}");
        let refused = client.error(&sql).message;
        assert!(refused.contains(text) && !refused.contains("hush"), "{sql}: {refused}");
    }
    assert!(client.rows("SHOW LOAD WHERE LABEL = 'refused'").is_empty());
}

#[test]
fn columns_that_a_job_does_not_name_stay_as_they_are() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("scores.csv"), "1,11\n2,22\n").expect("written");
    let server = server(directory.path());
    let mut db = server.database();
    db.client.ok("CREATE TABLE p (id BIGINT NOT NULL, name VARCHAR(30), score INT) UNIQUE KEY(id)
         DISTRIBUTED BY HASH(id) BUCKETS 1");
    db.client.ok(
        "CREATE TABLE t (id BIGINT NOT NULL, score INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1",
    );
    db.client.ok("INSERT INTO p VALUES (1, 'a', 1)");
    let load = |label: &str, table: &str| {
        format!(
            "LOAD LABEL {label} (DATA INFILE('scores.csv') INTO TABLE {table} COLUMNS TERMINATED BY ',' (id, score))
             WITH LOCAL PROPERTIES ('partial_columns' = 'true')"
        )
    };
    db.client.ok(&load("partial", "p"));
    wait_for(&mut db.client, "partial", "FINISHED");
    assert_eq!(db.client.rows("SELECT * FROM p ORDER BY id"), ["1|a|11", "2|NULL|22"]);
    let error = db.client.error(&load("whole", "t"));
    assert!(error.message.contains("Only unique key merge on write support partial update"), "{error}");
}

#[test]
fn rows_delete_and_have_values_of_paths() {
    let directory = tempfile::tempdir().expect("a directory");
    let files = directory.path();
    let server = server(files);
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("CREATE TABLE u (id INT NOT NULL, city VARCHAR(20), day DATE, score INT) UNIQUE KEY(id)
         DISTRIBUTED BY HASH(id) BUCKETS 1");
    for (path, text) in [
        ("in/city=New%20York/day=2024-02-29", "1,10\n2,20\n"),
        ("in/city=__HIVE_DEFAULT_PARTITION__/day=2024-03-01", "3,30\n"),
    ] {
        std::fs::create_dir_all(files.join(path)).expect("made");
        std::fs::write(files.join(path).join("a.csv"), text).expect("written");
    }
    let load = |label: &str, rest: &str| {
        format!("LOAD LABEL {label} ({rest}) WITH LOCAL PROPERTIES ('strict_mode' = 'true')")
    };
    let all = "SELECT id, city, day, score FROM u ORDER BY id";
    client.ok(&load(
        "paths",
        "DATA INFILE('in/*/*/*.csv') INTO TABLE u COLUMNS TERMINATED BY ',' (id, score) COLUMNS FROM PATH AS (city, day)
         SET (score = score + dayofmonth(day))",
    ));
    wait_for(client, "paths", "FINISHED");
    assert_eq!(
        client.rows(all),
        ["1|New York|2024-02-29|39", "2|New York|2024-02-29|49", "3|NULL|2024-03-01|31"]
    );
    // Rows for which the condition holds, which may use values of paths, delete the rows with their keys.
    client.ok(&load(
        "merged",
        "MERGE DATA INFILE('in/*/*/*.csv') INTO TABLE u COLUMNS TERMINATED BY ',' (id, score)
         COLUMNS FROM PATH AS (city, day) DELETE ON score = 20 OR city IS NULL",
    ));
    wait_for(client, "merged", "FINISHED");
    assert_eq!(client.rows(all), ["1|New York|2024-02-29|10"]);
    client.ok(&load(
        "deleted",
        "DELETE DATA INFILE('in/*/day=2024-02-29/a.csv') INTO TABLE u COLUMNS TERMINATED BY ',' (id, score)",
    ));
    wait_for(client, "deleted", "FINISHED");
    assert_eq!(client.rows(all), Vec::<String>::new());

    std::fs::write(files.join("plain.csv"), "1,10\n").expect("written");
    let plain = "DATA INFILE('plain.csv') INTO TABLE u COLUMNS TERMINATED BY ',' (id, score)";
    client.ok(&load("pathless", &format!("{plain} COLUMNS FROM PATH AS (city)")));
    wait_for(client, "pathless", "CANCELLED");
    let message = shown(client, "pathless", "ErrorMsg");
    assert!(message.contains("Fail to parse columnsFromPath, expected: [city]"), "{message}");
    client.ok("CREATE TABLE t (id INT, score INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    for (rest, text) in [
        (format!("{plain} COLUMNS FROM PATH AS (score)"), "Duplicate column 'score'"),
        (format!("{plain} COLUMNS FROM PATH AS (hour)"), "Unknown column 'hour' in COLUMNS FROM PATH"),
        (format!("MERGE {plain}"), "Excepted DELETE ON clause when merge type is MERGE."),
        (format!("{plain} DELETE ON id = 1"), "Not support DELETE ON clause when merge type is not MERGE."),
        (format!("DELETE {plain}").replace("TABLE u", "TABLE t"), "only supported in unique tables"),
        (format!("{plain} ORDER BY score"), "There is no sequence column in the table u"),
    ] {
        let refused = client.error(&load("refused", &rest)).message;
        assert!(refused.contains(text), "{rest}: {refused}");
    }
}

#[test]
fn every_property_of_a_job_works_or_is_refused_by_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let files = directory.path();
    std::fs::write(files.join("a.csv"), "1,a,10\n2,b,x\n").expect("written");
    let server = server(files);
    let mut db = table(&server);
    let client = &mut db.client;
    let load = |label: &str, name: &str, value: &str| {
        format!(
            "LOAD LABEL {label} (DATA INFILE('a.csv') INTO TABLE t COLUMNS TERMINATED BY ',' (id, n, score)
             SET (name = concat(n, from_unixtime(0)))) WITH LOCAL PROPERTIES ('{name}' = '{value}')"
        )
    };
    for (number, (name, value, time)) in [
        ("timeout", "100", "00"),
        ("max_filter_ratio", "0.5", "00"),
        ("strict_mode", "false", "00"),
        ("timezone", "+08:00", "08"),
        ("load_parallelism", "1", "00"),
        ("exec_mem_limit", "2147483648", "00"),
        ("priority", "HIGH", "00"),
        ("send_batch_parallelism", "4", "00"),
        ("load_to_single_tablet", "false", "00"),
        ("partial_columns", "false", "00"),
    ]
    .into_iter()
    .enumerate()
    {
        client.ok("TRUNCATE TABLE t");
        client.ok("SET time_zone = 'UTC'");
        let label = format!("property{number}");
        client.ok(&load(&label, name, value));
        wait_for(client, &label, "FINISHED");
        let rows = [format!("1|a1970-01-01 {time}:00:00|10"), format!("2|b1970-01-01 {time}:00:00|NULL")];
        assert_eq!(client.rows("SELECT * FROM t ORDER BY id"), rows, "{name} = {value}");
    }
    for (name, value, text) in [
        ("timeout", "0", "Invalid timeout: 0"),
        ("max_filter_ratio", "2", "Invalid max_filter_ratio: 2"),
        ("strict_mode", "yes", "Invalid strict_mode: yes"),
        ("timezone", "Nowhere", "Nowhere"),
        ("load_parallelism", "0", "Invalid load_parallelism: 0"),
        ("partial_columns", "true", "Only unique key merge on write support partial update"),
        ("fast", "true", "Unknown properties: fast"),
    ] {
        let refused = client.error(&load("refused", name, value)).message;
        assert!(refused.contains(text), "{name} = {value}: {refused}");
    }
}
