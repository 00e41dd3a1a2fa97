//! `SELECT … INTO OUTFILE`: the table functions read the files back.

use crate::support::programs::python;
use crate::support::{Client, Curl, S3Store, Server, wait_until};
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

#[test]
fn rows_come_back_from_files_of_every_format() {
    let directory = tempfile::tempdir().expect("a directory");
    let files = directory.path();
    let server = server(files);
    let mut db = server.database();
    db.client.ok(
        "CREATE TABLE t (id INT NOT NULL, Name VARCHAR(20), price DECIMAL(10,2), ratio DOUBLE, day DATE, at DATETIME(3), ok BOOLEAN)
         DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1",
    );
    db.client.ok(
        "INSERT INTO t VALUES (1, 'a', 1.50, 0.5, '2024-02-29', '2024-02-29 23:59:59.123', TRUE),
         (2, NULL, NULL, NULL, NULL, NULL, FALSE), (3, '', -1.00, -1e300, '1969-12-31', '2024-01-01 00:00:00', NULL)",
    );
    db.client.ok("SYNC");
    let all = db.client.rows("SELECT * FROM t ORDER BY id");
    let out = files.join("out");
    std::fs::create_dir(&out).expect("made");
    let columns =
        "id:int;name:varchar(20);price:decimal(10,2);ratio:double;day:date;at:datetime(3);ok:boolean";
    for (format, properties, read) in [
        (
            "csv",
            "\"column_separator\" = \",\"",
            format!("\"format\" = \"csv\", \"column_separator\" = \",\", \"csv_schema\" = \"{columns}\""),
        ),
        (
            "csv_with_names",
            "\"column_separator\" = \"\\x01\"",
            "\"format\" = \"csv_with_names\", \"column_separator\" = \"\\x01\"".to_owned(),
        ),
        (
            "csv_with_names_and_types",
            "\"line_delimiter\" = \"\\r\\n\"",
            "\"format\" = \"csv_with_names_and_types\", \"line_delimiter\" = \"\\r\\n\"".to_owned(),
        ),
        ("parquet", "\"compress_type\" = \"zstd\"", "\"format\" = \"parquet\"".to_owned()),
    ] {
        let answer = db.client.table(&format!(
            "SELECT * FROM t ORDER BY id INTO OUTFILE \"file://{}/{format}_\" FORMAT AS {format}
             PROPERTIES ({properties}, \"success_file_name\" = \"DONE_{format}\")",
            out.display()
        ));
        assert_eq!(answer.columns, ["FileNumber", "TotalRows", "FileSize", "URL"]);
        let row: Vec<&str> = answer.rows[0].iter().map(|value| value.as_deref().unwrap_or("NULL")).collect();
        let (file, size) = {
            let name = names(&out)
                .into_iter()
                .find(|name| name.starts_with(&format!("{format}_")))
                .expect("it was written");
            let size = std::fs::metadata(out.join(&name)).expect("it is there").len();
            (name, size)
        };
        assert_eq!(row[..3], ["1", "3", &size.to_string()], "{format}");
        let url = row[3].trim_end_matches('*');
        assert!(
            url.starts_with("file://")
                && url.ends_with('_')
                && file.starts_with(url.rsplit('/').next().expect("a name")),
            "{url} {file}"
        );
        assert!(names(&out).contains(&format!("DONE_{format}")), "{:?}", names(&out));
        // Parquet's times have no number of digits.
        let shown = match format {
            "parquet" => "id, name, price, ratio, day, CAST(`at` AS DATETIME(3)), ok",
            _ => "*",
        };
        let back = db.client.rows(&format!(
            "SELECT {shown} FROM LOCAL(\"file_path\" = \"out/{file}\", {read}) ORDER BY id + 0"
        ));
        assert_eq!(back, all, "{format}");
    }
    let head = std::fs::read_to_string(out.join(
        names(&out).into_iter().find(|name| name.starts_with("csv_with_names_and_types_")).expect("there"),
    ))
    .expect("read");
    assert!(head.starts_with("id\tName\tprice\tratio\tday\tat\tok\r\nint\tvarchar(20)\tdecimal(10,2)\tdouble\tdate\tdatetime(3)\tboolean\r\n"), "{head}");
    let none = db
        .client
        .rows(&format!("SELECT id FROM t WHERE id > 9 INTO OUTFILE 'file://{}/none_'", out.display()));
    assert!(none[0].starts_with("1|0|0|"), "{none:?}");
}

#[test]
fn large_results_are_several_files_and_failed_ones_none() {
    let directory = tempfile::tempdir().expect("a directory");
    let files = directory.path();
    assert_eq!(python("pyarrow_files.py", &[&files.display().to_string()]), "ok\n");
    let server = server(files);
    let mut client = server.connect();
    let out = files.join("out");
    std::fs::create_dir(&out).expect("made");
    let large = "LOCAL(\"file_path\" = \"large.parquet\", \"format\" = \"parquet\")";
    let sums = client.rows(&format!("SELECT COUNT(*), SUM(id) FROM {large}"));
    let into = format!("INTO OUTFILE 'file://{}/' PROPERTIES ('max_file_size' = '5MB')", out.display());
    let answer = client.rows(&format!("SELECT * FROM {large} {into}"));
    let count = names(&out).len();
    assert!(count >= 2 && answer[0].starts_with(&format!("{count}|400000|")), "{answer:?}");
    assert_eq!(client.rows("SELECT COUNT(*), SUM(c1) FROM LOCAL(\"file_path\" = \"out/*.csv\")"), sums);
    let before = names(&out);
    // The last of the files that it reads is broken.
    std::fs::write(files.join("zz.csv"), b"1\t2\t\xff\n").expect("written");
    let failing = format!("SELECT * FROM LOCAL(\"file_path\" = \"{{out/*,zz}}.csv\") {into}");
    let error = client.error(&failing).message;
    assert!(error.contains("zz.csv"), "{error}");
    assert_eq!(names(&out), before, "nothing of it is left");
    for (into, text) in [
        ("'file:///tmp/x_'".to_owned(), "should be under the secure path"),
        (format!("'file://{}/../../x_'", out.display()), "should be under the secure path"),
        (format!("'file://{}/nowhere/x_'", out.display()), "can't be written"),
        ("'hdfs://h/x_'".to_owned(), "has the scheme 'hdfs'"),
        (format!("'file://{}/x_' FORMAT AS orc", out.display()), "FORMAT AS orc is not supported"),
        (
            format!("'file://{}/x_' PROPERTIES ('max_file_size' = '1MB')", out.display()),
            "max file size should between 5MB and 2GB",
        ),
        (
            format!("'file://{}/x_' PROPERTIES ('s3.secretkey' = 'hush')", out.display()),
            "Unknown properties: s3.secretkey",
        ),
    ] {
        let refused = client.error(&format!("SELECT 1 INTO OUTFILE {into}")).message;
        assert!(refused.contains(text) && !refused.contains("hush"), "{into}: {refused}");
    }
    let refused = Server::shared().connect().error("SELECT 1 INTO OUTFILE 'file:///tmp/x_'").message;
    assert!(refused.contains("`mysql_load_server_secure_path`"), "{refused}");
}

#[test]
fn results_are_written_to_an_s3_store() {
    let server = Server::shared();
    let db = server.database();
    let mut client = server.connect();
    let store = S3Store::shared();
    let bucket = format!("out-{}", db.name.replace('_', "-"));
    store.make_bucket(&bucket);
    let place = format!(
        "'s3.endpoint' = '{}', 's3.access_key' = 'key', 's3.secret_key' = 'hush', 'use_path_style' = 'true'",
        store.endpoint
    );
    let answer = client.rows(&format!(
        "SELECT 1 AS a, 'x' AS b UNION ALL SELECT 2, NULL INTO OUTFILE 's3://{bucket}/dir/r_' FORMAT AS parquet PROPERTIES ({place})"
    ));
    assert!(
        answer[0].starts_with("1|2|") && answer[0].contains(&format!("s3://{bucket}/dir/r_")),
        "{answer:?}"
    );
    let read = format!("S3('uri' = 's3://{bucket}/dir/*.parquet', {place}, 'format' = 'parquet')");
    assert_eq!(client.rows(&format!("SELECT * FROM {read} ORDER BY a")), ["1|x", "2|NULL"]);
    let refused =
        client.error(&format!("SELECT 1 INTO OUTFILE 's3://no-such-bucket/r_' PROPERTIES ({place})")).message;
    assert!(refused.contains("no-such-bucket") && !refused.contains("hush"), "{refused}");
}

const NESTED: &str = "CREATE TABLE n (
    id INT, a ARRAY<BIGINT>, m MAP<VARCHAR(9), ARRAY<DECIMAL(9,2)>>, s STRUCT<f:TINYINT, at:ARRAY<DATETIME>>, t ARRAY<VARCHAR(30)>,
    j ARRAY<JSON>, v VARIANT, i4 IPV4, i6 IPV6, large LARGEINT, part DECIMAL(38,5), doc JSON, times MAP<DATE, BOOLEAN>, x ARRAY<STRUCT<k:STRING>>
) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1";

/// A table of nested, large and uncommon values, whose texts are hard to parse.
fn nested(client: &mut Client) {
    client.ok(NESTED);
    client.ok(r#"INSERT INTO n VALUES (1, [1, NULL, -3], {'k': [1.5], 'l': NULL}, named_struct('f', 7, 'at', ['2024-02-29 01:02:03']),
         ['a,b', 'q"x', 'b\\s', 'two\nlines', '', 'null', '[}', NULL, 'it''s'], ['{"a": "\\"q\\""}', '"text"', '1'],
         '{"x":[1,{"y":"t"}]}', '10.0.0.9', '::1', -99999999999999999999999999999999999999,
         123456789012345678901234567890123.12345, '{"a":["1"]}', {'2024-01-01': TRUE}, [named_struct('k', 'a":"b'), NULL])"#);
    client.ok("INSERT INTO n (id) VALUES (2)");
    client.ok(r#"INSERT INTO n VALUES (3, '[]', '{}', '{null, []}', '[""]', '[]', '"text"', '255.255.255.255', 'ffff::1.2.3.4', 0, -0.00001,
         'null', '{}', '[{"k":null}]')"#);
    client.ok("SYNC");
}

/// Every value as the table compares it: `n` and `table` have the same rows.
fn assert_same(client: &mut Client, table: &str, how: &str) {
    let rows = |client: &mut Client, table: &str| client.rows(&format!("SELECT * FROM {table} ORDER BY id"));
    let (found, expected) = (rows(client, table), rows(client, "n"));
    assert_eq!(found, expected, "{how}");
    // The shown form of texts with quotes is ambiguous, so the texts themselves are compared.
    let texts = |client: &mut Client, table: &str| {
        let text = (1..=9).map(|at| format!("t[{at}], HEX(t[{at}])")).collect::<Vec<_>>().join(", ");
        client.rows(&format!("SELECT ARRAY_SIZE(t), {text}, x[1].k FROM {table} ORDER BY id"))
    };
    assert_eq!(texts(client, table), texts(client, "n"), "{how}");
}

#[test]
fn values_that_consist_of_values_come_back_from_files_as_they_were() {
    let directory = tempfile::tempdir().expect("a directory");
    let files = directory.path();
    let server = server(files);
    let mut db = server.database();
    nested(&mut db.client);
    for (format, properties) in [
        ("csv", "\"column_separator\" = \"|\""),
        ("csv_with_names", "\"column_separator\" = \"|\""),
        ("csv_with_names_and_types", "\"column_separator\" = \"|\""),
        ("parquet", "\"compress_type\" = \"zstd\""),
    ] {
        let out = files.join(format);
        std::fs::create_dir(&out).expect("made");
        db.client.table(&format!(
            "SELECT * FROM n INTO OUTFILE \"file://{}/o_\" FORMAT AS {format} PROPERTIES ({properties})",
            out.display()
        ));
        db.client.ok(&format!(
            "EXPORT TABLE n TO 'file://{}/e_' PROPERTIES ('label' = '{format}', 'format' = '{format}', {properties})",
            out.display()
        ));
        wait_until("it is exported", || {
            let job = db.client.rows(&format!("SHOW EXPORT WHERE LABEL = '{format}'")).remove(0);
            assert!(!job.contains("CANCELLED"), "{job}");
            job.contains("FINISHED")
        });
        let read = if format == "parquet" { "" } else { ", \"column_separator\" = \"|\"" };
        for file in names(&out) {
            let how = format!("{format}, {file}");
            db.client.ok("CREATE TABLE back LIKE n");
            db.client.ok(&format!(
                "INSERT INTO back SELECT * FROM LOCAL(\"file_path\" = \"{format}/{file}\", \"format\" = \"{format}\"{read})"
            ));
            assert_same(&mut db.client, "back", &format!("LOCAL() of {how}"));
            db.client.ok("TRUNCATE TABLE back");
            let load = Curl::stream_load(&server, &db.name, "back").header(&format!("format:{format}"));
            let load = load.header("strict_mode:true");
            let load = if format == "parquet" { load } else { load.header("column_separator:|") };
            load.file(&out.join(&file)).load().success();
            assert_same(&mut db.client, "back", &format!("Stream Load of {how}"));
            db.client.ok("DROP TABLE back");
        }
    }
    let parquet = names(&files.join("parquet")).remove(0);
    let described = db.client.rows(&format!(
        "DESC FUNCTION LOCAL(\"file_path\" = \"parquet/{parquet}\", \"format\" = \"parquet\")"
    ));
    assert!(described[1].starts_with("a|array<bigint>|"), "they are Parquet's own: {described:?}");
    let found =
        python("outfile_checks.py", &["nested", &files.join("parquet").join(parquet).display().to_string()]);
    assert_eq!(found, "ok\n");
}

#[test]
fn sets_and_estimates_are_written_by_their_functions_only() {
    let directory = tempfile::tempdir().expect("a directory");
    let files = directory.path();
    let server = server(files);
    let mut db = server.database();
    db.client.ok("CREATE TABLE s (id INT, users BITMAP BITMAP_UNION, pages HLL HLL_UNION) AGGREGATE KEY(id)
         DISTRIBUTED BY HASH(id) BUCKETS 1");
    db.client.ok("INSERT INTO s VALUES (1, to_bitmap(7), hll_hash('a')), (1, to_bitmap(3), hll_hash('b'))");
    db.client.ok("SYNC");
    for format in ["csv", "parquet"] {
        let into = format!("INTO OUTFILE 'file://{}/x_' FORMAT AS {format}", files.display());
        for (query, text) in [
            (
                "SELECT * FROM s",
                "column 'users' is of type BITMAP, which no file holds: write bitmap_to_string(…)",
            ),
            (
                "SELECT id, pages FROM s",
                "column 'pages' is of type HLL, which no file holds: write hll_cardinality(…)",
            ),
            ("SELECT bitmap_union(users) AS u FROM s", "column 'u' is of type BITMAP, which no file holds"),
        ] {
            db.client.refused(&format!("{query} {into}"), 1235, text);
        }
        let export =
            format!("EXPORT TABLE s TO 'file://{}/x_' PROPERTIES ('format' = '{format}')", files.display());
        db.client.refused(&export, 1235, "column 'users' is of type BITMAP, which no file holds");
    }
    assert!(names(files).is_empty(), "{:?}", names(files));
    db.client.table(&format!(
        "SELECT id, bitmap_to_string(users), hll_cardinality(pages) FROM s INTO OUTFILE 'file://{}/s_' PROPERTIES ('column_separator' = '|')",
        files.display()
    ));
    db.client.ok("CREATE TABLE back LIKE s");
    db.client.ok(
        "INSERT INTO back (id, users) SELECT c1, bitmap_from_string(c2) FROM LOCAL('file_path' = 's_*.csv', 'format' = 'csv', 'column_separator' = '|')",
    );
    assert_eq!(db.client.rows("SELECT id, bitmap_to_string(users) FROM back"), ["1|3,7"]);
}
