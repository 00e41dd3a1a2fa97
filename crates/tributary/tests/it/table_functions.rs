//! `S3()`, `HTTP()` and `LOCAL()` in FROM, with a real S3 store, an HTTP server and files.

use crate::support::programs::python;
use crate::support::{Client, Curl, HttpServer, Page, S3Store, Server, wait_until};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::Path;

fn gzip(text: &str) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(text.as_bytes()).expect("memory takes it");
    gzip.finish().expect("memory takes it")
}

fn write(directory: &Path, name: &str, bytes: impl AsRef<[u8]>) -> std::path::PathBuf {
    let path = directory.join(name);
    std::fs::create_dir_all(path.parent().expect("it has one")).expect("made");
    std::fs::write(&path, bytes).expect("written");
    path
}

fn message(client: &mut Client, sql: &str) -> String {
    client.error(sql).message
}

#[test]
fn objects_of_an_s3_store_are_found_by_pattern_and_loaded() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let store = S3Store::shared();
    let bucket = format!("loads-{}", db.name.replace('_', "-"));
    store.make_bucket(&bucket);
    let scratch = server.scratch();
    let rows =
        |from: u32| (from..from + 1000).map(|id| format!("{id},name {id},{}\n", id % 7)).collect::<String>();
    store.put(&bucket, "in/a.csv", &write(scratch, &format!("{bucket}/a.csv"), rows(0)));
    store.put(&bucket, "in/b.csv.gz", &write(scratch, &format!("{bucket}/b.csv.gz"), gzip(&rows(1000))));
    store.put(&bucket, "in/c.csv", &write(scratch, &format!("{bucket}/c.csv"), rows(2000)));
    store.put(&bucket, "in/deep/d.csv", &write(scratch, &format!("{bucket}/d.csv"), rows(3000)));
    let from = |pattern: &str, rest: &str| {
        let properties = store.properties(&format!("s3://{bucket}/{pattern}"));
        format!("FROM S3({properties}, \"format\" = \"csv\", \"column_separator\" = \",\"{rest})")
    };
    let all = from("in/*.csv*", "");
    assert_eq!(db.client.rows(&format!("SELECT COUNT(*), SUM(c3), MIN(c2) {all}")), ["3000|8994|name 0"]);
    assert_eq!(db.client.value(&format!("SELECT COUNT(*) {}", from("in/{a.csv,deep/d.csv}", ""))), "2000");
    let answer = db.client.ok(&format!("INSERT INTO dt WITH LABEL from_s3 SELECT * {all}"));
    assert_eq!((answer.affected_rows, answer.label()), (3000, "from_s3"));
    assert_eq!(db.client.rows("SELECT COUNT(*), SUM(id), SUM(score) FROM dt"), ["3000|4498500|8994"]);
    let again = message(&mut db.client, &format!("INSERT INTO dt WITH LABEL from_s3 SELECT * {all}"));
    assert!(again.contains("from_s3"), "{again}");
    let typed =
        from("in/a.csv", ", \"csv_schema\" = \"id:int;name:varchar(10);score:decimal(9,2);more:date\"");
    assert_eq!(
        db.client.rows(&format!("DESC FUNCTION {}", typed.trim_start_matches("FROM "))),
        [
            "id|int|Yes|false|NULL|NONE",
            "name|varchar(10)|Yes|false|NULL|NONE",
            "score|decimal(9,2)|Yes|false|NULL|NONE",
            "more|date|Yes|false|NULL|NONE"
        ]
    );
    assert_eq!(
        db.client.rows(&format!("SELECT *, score * 2 {typed} WHERE id = 13")),
        ["13|name 13|6.00|NULL|12.00"]
    );
    let old_names = all
        .replace("s3.endpoint", "AWS_ENDPOINT")
        .replace("s3.access_key", "AWS_ACCESS_KEY")
        .replace("s3.secret_key", "AWS_SECRET_KEY")
        .replace("s3.region", "AWS_REGION");
    assert_eq!(db.client.value(&format!("SELECT COUNT(*) {old_names}")), "3000");
    let by_host = all.replace(&format!("s3://{bucket}"), &format!("{}/{bucket}", store.endpoint));
    assert_eq!(db.client.value(&format!("SELECT COUNT(*) {by_host}")), "3000");

    for (sql, text) in [
        (format!("SELECT * {}", from("none/*", "")), format!("no file is called 's3://{bucket}/none/*'")),
        (
            format!("SELECT * {}", from("in/a.csv", ", \"s3.secretkey\" = \"hush\"")),
            "Unknown properties: s3.secretkey;".to_owned(),
        ),
        (
            format!("SELECT * {}", from("in/a.csv", ", \"path_partition_keys\" = \"day\"")),
            "path_partition_keys=day is not supported".to_owned(),
        ),
        (
            format!("SELECT * {}", from("in/a.csv", "").replace("\"csv\"", "\"avro\"")),
            "format=avro is not supported".to_owned(),
        ),
        (
            format!("SELECT * {}", from("in/a.csv", "").replace("\"csv\"", "\"parquet\"")),
            format!("the file 's3://{bucket}/in/a.csv'"),
        ),
        (
            format!("SELECT * {}", from("in/b.csv.gz", ", \"compress_type\" = \"bz2\"")),
            format!("the file 's3://{bucket}/in/b.csv.gz': broken bzip2"),
        ),
        (
            format!("SELECT * {}", from("in/a.csv", "").replace(&bucket, "no-such-bucket")),
            "no-such-bucket".to_owned(),
        ),
        ("SELECT * FROM S3(\"format\" = \"csv\")".to_owned(), "the property 'uri' is missing".to_owned()),
        ("SELECT * FROM HDFS(\"uri\" = \"hdfs://h/x\")".to_owned(), "HDFS() is not supported".to_owned()),
    ] {
        let refused = message(&mut db.client, &sql);
        assert!(refused.contains(&text) && !refused.contains("hush"), "{sql}: {refused}");
    }
    let closed = store.properties("s3://b/x").replace(&store.endpoint, "http://127.0.0.1:1");
    let refused = message(&mut db.client, &format!("SELECT * FROM s3({closed})"));
    assert!(refused.contains("'s3://b/x' can't be listed") && !refused.contains("hush"), "{refused}");
}

#[test]
fn files_of_the_server_are_read_in_all_formats() {
    let directory = tempfile::tempdir().expect("a directory");
    let files = directory.path();
    let server = Server::with_settings(&[("mysql_load_server_secure_path", &files.display().to_string())]);
    let mut db = server.database().with_dt("");
    assert_eq!(python("pyarrow_files.py", &[&files.display().to_string()]), "ok\n");
    write(
        files,
        "a.json",
        "{\"id\": 1, \"name\": \"Amy\", \"more\": {\"x\": [1]}}\n{\"id\": 2, \"score\": 7, \"name\": null}\n",
    );
    write(files, "array.json", "[{\"a\": {\"b\": 1}}, {\"a\": {\"b\": \"two\"}}]");
    write(files, "quoted.csv", "Id,Name\n1,\"a, \"\"b\"\"\nc\"\n2,\\N\n");
    write(files, "wide.csv", "1\t2\t3\n4\n5\t6\t7\t8\n");
    let local = |path: &str, rest: &str| {
        format!("FROM LOCAL(\"file_path\" = \"{path}\", \"backend_id\" = \"1\"{rest})")
    };

    // The columns of the first row; values that a row lacks are NULL.
    assert_eq!(
        db.client.rows(&format!("SELECT * {}", local("wide.csv", ""))),
        ["1|2|3", "4|NULL|NULL", "5|6|7"]
    );
    let quoted = local(
        "quoted.csv",
        ", \"format\" = \"csv_with_names\", \"column_separator\" = \",\", \"enclose\" = \"\\\"\"",
    );
    assert_eq!(
        db.client.rows(&format!("SELECT id, q.NAME {quoted} AS q ORDER BY id")),
        ["1|a, \"b\"\nc", "2|NULL"]
    );
    let json = local("a.json", ", \"format\" = \"json\"");
    assert_eq!(db.client.rows(&format!("SELECT * {json}")), ["1|Amy|{\"x\":[1]}", "2|NULL|NULL"]);
    let array = local(
        "array.json",
        ", \"format\" = \"json\", \"strip_outer_array\" = \"true\", \"read_json_by_line\" = \"false\", \"jsonpaths\" = \"[\\\"$.a.b\\\"]\"",
    );
    assert_eq!(db.client.rows(&format!("SELECT * {array}")), ["1", "two"]);

    // Parquet has types, and several files are one table.
    let parquet = local("{SNAPPY,ZSTD,v2}.parquet", ", \"format\" = \"parquet\"");
    assert_eq!(db.client.rows(&format!("SELECT COUNT(*), COUNT(name), MAX(id) {parquet}")), ["9|6|3"]);
    let large = local("large.parquet", ", \"format\" = \"parquet\"");
    let described = db.client.rows(&format!("DESC FUNCTION {}", large.trim_start_matches("FROM ")));
    assert!(described[0].starts_with("id|bigint|Yes"), "{described:?}");
    let rows: u64 = db.client.value(&format!("SELECT COUNT(*) {large}")).parse().expect("a number");
    let answer = db.client.ok(&format!("INSERT INTO dt (id) SELECT id {large}"));
    assert_eq!((rows > 100_000, answer.affected_rows), (true, rows));

    // ORC, too, whose nested values are read where no load needs them.
    let orc = local("{lz4,old}.orc", ", \"format\" = \"orc\"");
    let described = db.client.rows(&format!("DESC FUNCTION {}", orc.trim_start_matches("FROM ")));
    assert!(described[5].starts_with("price|decimal(10,2)|Yes"), "{described:?}");
    assert_eq!(
        db.client.rows(&format!("SELECT COUNT(*), COUNT(name), SUM(price), MAX(at) {orc}")),
        ["6|4|-199999996.98|2024-02-29 23:59:59.123456"]
    );
    let large = local("large.orc", ", \"format\" = \"orc\"");
    assert_eq!(db.client.value(&format!("SELECT COUNT(*) {large}")).parse(), Ok(rows));

    // A text that is not a number is treated as in every INSERT.
    write(files, "bad.csv", "1,a,10\n2,b,x\n");
    let bad = local("bad.csv", ", \"column_separator\" = \",\"");
    let refused = message(&mut db.client, &format!("INSERT INTO dt SELECT * {bad}"));
    assert!(refused.contains("Insert has filtered data in strict mode"), "{refused}");
    db.client.ok("SET enable_insert_strict = false");
    let answer = db.client.ok(&format!("INSERT INTO dt SELECT c1 + 10000000, c2, c3 {bad}"));
    assert_eq!(answer.affected_rows, 2);
    assert_eq!(db.client.rows("SELECT score FROM dt WHERE id > 10000000 ORDER BY id"), ["10", "NULL"]);

    for (name, bytes, format, text) in [
        ("binary.csv", &b"1\t\xff\n"[..], "csv", "binary.csv'"),
        ("cut.json", &b"{\"a\": 1}\n{\"a\":"[..], "json", "cut.json'"),
        ("cut.parquet", &b"PAR1"[..], "parquet", "cut.parquet'"),
        ("cut.orc", &b"ORC"[..], "orc", "cut.orc'"),
    ] {
        write(files, name, bytes);
        let rest = format!(", \"format\" = \"{format}\"");
        let refused = message(&mut db.client, &format!("SELECT * {}", local(name, &rest)));
        assert!(refused.contains(text), "{name}: {refused}");
    }
    for (path, text) in [
        ("../x.csv", "should be under the secure path"),
        ("/etc/*", "should be under the secure path"),
        ("z*.csv", "no file is called"),
    ] {
        let refused = message(&mut db.client, &format!("SELECT * {}", local(path, "")));
        assert!(refused.contains(text), "{path}: {refused}");
    }
    let none = Server::shared();
    let refused = message(&mut none.connect(), &format!("SELECT * {}", local("a.csv", "")));
    assert!(refused.contains("`mysql_load_server_secure_path`"), "{refused}");
}

#[test]
fn http_servers_files_are_read_and_a_query_over_them_ends_by_kill() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let rows: String = (0..5000).map(|id| format!("{id}|name {id}|1\n")).collect();
    let web = HttpServer::start(&[
        ("/a.csv", Page::Whole(rows.clone().into_bytes())),
        ("/b.csv.gz", Page::Chunked(gzip(&rows))),
        ("/broken.csv", Page::Broken(rows.clone().into_bytes())),
        ("/hanging.csv", Page::Hanging(rows.into_bytes())),
    ]);
    let http = |path: &str| {
        format!(
            "FROM HTTP(\"uri\" = \"{}{path}\", \"column_separator\" = \"|\", \"http.header.Authorization\" = \"Bearer hush\")",
            web.url
        )
    };
    let count = |path: &str| format!("SELECT COUNT(*), SUM(c1) {}", http(path));
    assert_eq!(db.client.rows(&count("/a.csv?signature=s")), ["5000|12497500"]);
    assert_eq!(web.requests(), 1, "the bytes that the columns were read of come once");
    assert!(web.heads().to_lowercase().contains("authorization: bearer hush"), "{}", web.heads());
    assert_eq!(db.client.rows(&count("/{a.csv,b.csv.gz}")), ["10000|24995000"]);
    let answer = db.client.ok(&format!("INSERT INTO dt SELECT * {}", http("/b.csv.gz")));
    assert_eq!(answer.affected_rows, 5000);
    for (path, text) in [
        ("/none.csv?signature=hush", "/none.csv' can't be read: the server answers 404 Not Found"),
        ("/broken.csv", "/broken.csv' can't be read"),
        ("/*.csv", "a server has no listing"),
    ] {
        let refused = message(&mut db.client, &format!("INSERT INTO dt SELECT * {}", http(path)));
        assert!(refused.contains(text) && !refused.contains("hush"), "{path}: {refused}");
    }
    assert_eq!(db.client.value("SELECT COUNT(*) FROM dt"), "5000", "what failed left nothing");

    let id = db.client.value("SELECT connection_id()");
    db.client.send(&count("/hanging.csv"));
    let mut other = server.connect();
    let mut shown = String::new();
    wait_until("the query runs", || {
        let all = other.rows("SHOW FULL PROCESSLIST");
        shown = all.into_iter().find(|row| row.contains(&format!("|{id}|"))).unwrap_or_default();
        shown.contains("hanging.csv")
    });
    assert!(shown.contains("\"http.header.Authorization\" = \"***\"") && !shown.contains("hush"), "{shown}");
    other.ok(&format!("KILL QUERY {id}"));
    assert_eq!(db.client.answered_error().number, 1317);
    assert!(
        !Curl::anonymous(&format!("http://127.0.0.1:{}/metrics", server.webserver_port()))
            .text()
            .contains("hush")
    );
    assert!(!server.log().contains("hush"));
}

#[test]
fn a_file_without_end_of_an_http_server_takes_no_more_disk_than_the_setting_says() {
    const MIB: usize = 1 << 20;
    let server = Server::with_settings(&[("spool_limit_bytes", "16777216")]);
    let mut client = server.connect();
    let body = |bytes: usize| Page::Chunked([b"PAR1".as_slice(), &vec![0; bytes]].concat());
    let web = HttpServer::start(&[("/large.parquet", body(24 * MIB)), ("/small.parquet", body(12 * MIB))]);
    let select =
        |path: &str| format!("SELECT * FROM HTTP(\"uri\" = \"{}{path}\", \"format\" = \"parquet\")", web.url);
    for _ in 0..2 {
        let refused = message(&mut client, &select("/large.parquet"));
        assert!(refused.contains("raise spool_limit_bytes"), "{refused}");
        // It finds the disk free again, and is no Parquet file.
        let refused = message(&mut client, &select("/small.parquet"));
        assert!(refused.contains("Parquet") && !refused.contains("spool_limit_bytes"), "{refused}");
    }
    let left = std::fs::read_dir(server.data().join("spool")).expect("a directory").count();
    assert_eq!(left, 0);
}
