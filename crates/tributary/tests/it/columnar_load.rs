//! `format: parquet`, `format: orc` and `format: arrow`, with files that pyarrow wrote, through the real server.

use crate::support::programs::python;
use crate::support::{Curl, Database, LoadReply, Server, wait_until};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use walkdir::WalkDir;

const COLUMNS: &str =
    "id BIGINT NOT NULL, small TINYINT, name VARCHAR(20), kind CHAR(1), price DECIMAL(10,2),
    ratio DOUBLE, day DATE, at DATETIME(3), seen DATETIME, ok BOOLEAN, doc JSON, extra INT DEFAULT '7'";
const ROWS: [&str; 3] = [
    "1|-128|Amy|a|1.50|0.5|2024-02-29|2024-02-29 23:59:59.123|2024-07-01 00:00:00|1|{\"a\": 1}|7",
    "2|NULL|NULL|b|NULL|NULL|NULL|NULL|NULL|NULL|NULL|7",
    "3|127|é漢|a|-99999999.99|-1e300|1969-12-31|0001-01-01 00:00:00.000|2024-01-01 00:00:00|0|[]|7",
];

/// The files of all tests, which one of them writes.
fn files() -> &'static Path {
    static FILES: OnceLock<tempfile::TempDir> = OnceLock::new();
    let directory = FILES.get_or_init(|| {
        let directory = tempfile::tempdir().expect("a temporary directory");
        assert_eq!(python("pyarrow_files.py", &[&directory.path().display().to_string()]), "ok\n");
        directory
    });
    directory.path()
}

/// The files with all types, and their formats.
fn all_types() -> Vec<(PathBuf, &'static str)> {
    let kind = |path: &PathBuf| match path.extension()?.to_str()? {
        "parquet" => Some("parquet"),
        "orc" => Some("ORC"),
        "arrow" | "arrows" => Some("Arrow"),
        _ => None,
    };
    let is_small =
        |path: &PathBuf| path.file_stem().is_some_and(|stem| stem != "large" && stem != "large_old");
    let files =
        std::fs::read_dir(files()).expect("they were written").map(|file| file.expect("a file").path());
    files.filter(is_small).filter_map(|path| kind(&path).map(|kind| (path, kind))).collect()
}

fn table(server: &Server, columns: &str) -> Database {
    let mut db = server.database();
    db.client.ok(&format!(
        "CREATE TABLE t ({columns}) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1
         PROPERTIES (\"group_commit_interval_ms\" = \"300\")"
    ));
    db
}

fn load(server: &Server, db: &Database, headers: &[&str], file: &Path) -> LoadReply {
    let load = Curl::stream_load(server, &db.name, "t");
    load.headers(headers).file(file).load()
}

fn reasons(reply: &LoadReply) -> String {
    Curl::get(&reply.get("ErrorURL")).text()
}

#[test]
fn files_of_every_kind_become_the_same_rows() {
    let server = Server::shared();
    let kinds = all_types();
    assert_eq!(kinds.len(), 22, "{kinds:?}");
    for (number, (file, format)) in kinds.iter().enumerate() {
        let mut db = table(&server, COLUMNS);
        let mode = ["off_mode", "sync_mode", "async_mode"][number % 3];
        let headers =
            [format!("format: {format}"), format!("group_commit: {mode}"), "timezone: UTC".to_owned()];
        let reply = load(&server, &db, &headers.each_ref().map(String::as_str), file).success();
        assert_eq!(reply.rows(), [3, 3, 0, 0], "{}: {}", file.display(), reply.text);
        assert_eq!(reply.has("GroupCommit"), mode != "off_mode", "{}", reply.text);
        db.client.ok("SYNC");
        // pyarrow's INT96 is limited to the years that nanoseconds cover.
        let is_int96 = file.ends_with("int96.parquet");
        let rows = db
            .client
            .rows(&format!("SELECT * FROM t WHERE {} ORDER BY id", if is_int96 { "id < 3" } else { "1" }));
        assert_eq!(rows, ROWS[..rows.len()], "{}", file.display());
        assert_eq!(rows.len(), if is_int96 { 2 } else { 3 });
    }
}

#[test]
fn generated_columns_are_computed_from_the_columns_of_files() {
    let server = Server::shared();
    for (file, format) in [
        ("SNAPPY.parquet", "format: parquet"),
        ("dictionary.orc", "format: orc"),
        ("uncompressed.arrows", "format: arrow"),
    ] {
        let mut db = table(
            &server,
            "id BIGINT NOT NULL, price DECIMAL(10,2), name VARCHAR(20) AS (concat('#', id)) NOT NULL, twice INT AS (price * 2)",
        );
        // The files have a column `name`, too.
        for headers in
            [&[format, "strict_mode: true", "max_filter_ratio: 0.5"][..], &[format, "columns: id, price"]]
        {
            load(&server, &db, headers, &files().join(file)).success();
        }
        assert_eq!(
            db.client.rows("SELECT * FROM t ORDER BY id, twice"),
            [
                "1|1.50|#1|3",
                "1|1.50|#1|3",
                "2|NULL|#2|NULL",
                "2|NULL|#2|NULL",
                "3|-99999999.99|#3|-199999999",
                "3|-99999999.99|#3|-199999999"
            ],
            "{file}"
        );
    }
}

#[test]
fn instants_are_shown_in_the_zone_of_the_load_with_its_summer_time() {
    let server = Server::shared();
    for (zone, summer, winter) in [
        ("America/New_York", "2024-06-30 20:00:00", "2023-12-31 19:00:00"),
        ("+08:00", "2024-07-01 08:00:00", "2024-01-01 08:00:00"),
    ] {
        for (file, format) in [("ZSTD.parquet", "parquet"), ("zlib.orc", "orc"), ("lz4.arrow", "arrow")] {
            let mut db = table(&server, "id BIGINT, seen DATETIME, at DATETIME");
            let headers = [format!("format: {format}"), format!("timezone: {zone}")];
            let headers = headers.each_ref().map(String::as_str);
            load(&server, &db, &headers, &files().join(file)).success();
            let computed = [headers[0], headers[1], "columns: id, seen, at = seen"];
            load(&server, &db, &computed, &files().join(file)).success();
            let seen = db.client.rows("SELECT seen FROM t WHERE id <> 2 ORDER BY id");
            assert_eq!(
                seen,
                [summer, summer, winter, winter].map(str::to_owned).to_vec(),
                "{file} in {zone}"
            );
        }
    }
}

#[test]
fn columns_where_and_expressions_are_over_the_files_types() {
    let server = Server::shared();
    for (file, format) in [
        ("SNAPPY.parquet", "format: parquet"),
        ("dictionary.orc", "format: orc"),
        ("uncompressed.arrows", "format: arrow"),
    ] {
        let file = files().join(file);
        let mut db = table(&server, "id BIGINT, name STRING, price DECIMAL(12,3), at DATETIME");
        let mapped = [
            format,
            "columns: id, price, x = 1, day, name = concat(id, '-', day), price = price * 2, at = day",
        ];
        let refused = load(&server, &db, &mapped, &file);
        assert!(refused.failure().contains("Unknown column 'x'"), "{}", refused.text);
        let mapped =
            [format, "columns: id, price, day, name = concat(id, '-', day), price = price * 2, at = day"];
        let reply = load(&server, &db, &mapped, &file).success();
        assert_eq!(reply.rows(), [3, 3, 0, 0]);
        assert_eq!(
            db.client.rows("SELECT * FROM t ORDER BY id"),
            [
                "1|1-2024-02-29|3.000|2024-02-29 00:00:00",
                "2|NULL|NULL|NULL",
                "3|3-1969-12-31|-199999999.980|1969-12-31 00:00:00"
            ]
        );
        let kept = load(&server, &db, &[format, "columns: id", "where: id >= 2"], &file).success();
        assert_eq!(kept.rows(), [3, 2, 0, 1], "{}", kept.text);
        let named = load(&server, &db, &[format, "columns: id, nom"], &file).failure();
        assert!(
            named.contains("column 'nom' is not in the file, which has ID, unused, small, name"),
            "{named}"
        );
        // A nested column may be used in expressions, but does not load into a column of another type.
        db.client.ok(
            "CREATE TABLE n (id BIGINT, unused STRING) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1",
        );
        let whole = Curl::stream_load(&server, &db.name, "n").header(format).file(&file).load().failure();
        assert!(whole.contains("doesn't support complex types in broker/stream load"), "{whole}");
        db.client.ok("TRUNCATE TABLE t");
        load(&server, &db, &[format, "columns: id, unused, name = unused"], &file).success();
        let text = db.client.value("SELECT name FROM t WHERE id = 1");
        assert!(text.starts_with("[1"), "{text}");
    }
}

#[test]
fn rows_that_do_not_fit_are_rejected_with_their_place_and_values() {
    let server = Server::shared();
    for (file, format) in
        [("GZIP.parquet", "format: parquet"), ("old.orc", "format: orc"), ("zstd.arrows", "format: arrow")]
    {
        let file = files().join(file);
        let mut db = table(&server, "id TINYINT, name VARCHAR(4) NOT NULL, price DECIMAL(5,1)");
        let strict = [format, "strict_mode: true", "max_filter_ratio: 0.7"];
        let reply = load(&server, &db, &strict, &file).success();
        assert_eq!(reply.rows(), [3, 1, 2, 0], "{}", reply.text);
        let log = reasons(&reply);
        assert!(log.contains("Reason: column(name) values is null while columns is not nullable. src line [row 2: 2 NULL NULL]; "), "{log}");
        assert!(log.contains("column_name[name], the length of input is too long than schema. first 32 bytes of input str: [é漢]"), "{log}");
        let reply = load(&server, &db, &[format, "max_filter_ratio: 0.4"], &file).success();
        assert_eq!(reply.rows(), [3, 2, 1, 0], "{}", reply.text);
        assert_eq!(
            db.client.rows("SELECT * FROM t ORDER BY id, price"),
            ["1|Amy|1.5", "1|Amy|1.5", "3|é|NULL"]
        );
        let refused = load(&server, &db, &[format], &file);
        assert_eq!(refused.failure(), "[DATA_QUALITY_ERROR]too many filtered rows");
    }
}

#[test]
fn http_stream_selects_columns_of_files() {
    let server = Server::shared();
    let url = format!("http://127.0.0.1:{}/api/_http_stream", server.http_port());
    for (file, format) in [("BROTLI.parquet", "parquet"), ("snappy.orc", "orc"), ("lz4.arrows", "arrow")] {
        let mut db = table(&server, "id BIGINT, name STRING, price DECIMAL(12,3)");
        let source = format!("http_stream('format' = '{format}')");
        for select in [
            format!("select ID, upper(name), price + 1 from {source} where small > 0"),
            format!("select `ID`, day, ratio from {source}"),
        ] {
            let sql = format!("sql: insert into {}.t {select}", db.name);
            Curl::put(&url).header(&sql).file(&files().join(file)).load().success();
        }
        let rows = db.client.rows("SELECT * FROM t ORDER BY id, name");
        assert_eq!(rows, ["1|2024-02-29|0.500", "2|NULL|NULL", "3|1969-12-31|NULL", "3|É漢|-99999998.990"]);
    }
}

#[test]
fn large_files_are_read_whole_and_packed_ones_too() {
    let server = Server::shared();
    let mut db = table(&server, "id BIGINT, name VARCHAR(20), ratio DOUBLE");
    let parquet = files().join("large.parquet");
    assert!(
        std::fs::metadata(&parquet).expect("it was written").len() > 10_000_000,
        "it does not stay in memory"
    );
    let packed = files().join("large.arrows.gz");
    let gzip = format!("gzip -1 < {} > {}", files().join("large.arrows").display(), packed.display());
    crate::support::curl::shell(files(), &gzip).success();
    for (headers, file) in [
        (&["format: parquet"][..], &parquet),
        (&["format: parquet", "Transfer-Encoding: chunked"], &parquet),
        (&["format: arrow", "compress_type: gz"], &packed),
        (&["format: arrow"], &files().join("large.arrows")),
        (&["format: orc"], &files().join("large.orc")),
        (&["format: orc", "Transfer-Encoding: chunked"], &files().join("large_old.orc")),
    ] {
        let reply = load(&server, &db, headers, file).success();
        assert_eq!(reply.rows(), [400_000, 400_000, 0, 0], "{headers:?}");
    }
    let sums = db.client.rows("SELECT COUNT(*), SUM(id), COUNT(DISTINCT name), MAX(ratio) FROM t");
    assert_eq!(sums, ["2400000|479998800000|400000|147999.63"]);
    let cut = server.scratch().join(format!("{}.cut", db.name));
    let bytes = std::fs::read(&parquet).expect("it was written");
    std::fs::write(&cut, &bytes[..bytes.len() - 1000]).expect("the file is written");
    let refused = load(&server, &db, &["format: parquet"], &cut).failure();
    assert!(refused.starts_with("[DATA_QUALITY_ERROR]the parquet body can't be read: "), "{refused}");
    assert_eq!(db.client.value("SELECT COUNT(*) FROM t"), "2400000");
}

/// Data files, finished or not.
fn data_files(server: &Server) -> usize {
    let all = WalkDir::new(server.data().join("tables")).into_iter();
    let without_logs = all.filter_entry(|entry| entry.file_name() != "_delta_log");
    without_logs.flatten().filter(|entry| entry.file_type().is_file()).count()
}

/// The parts of a large file are decoded in parallel; a row of a key in a later one supersedes the rows before it.
#[test]
fn rows_of_large_files_keep_their_order_and_their_numbers() {
    const ROWS: u64 = 300_000;
    let server = Server::with_settings(&[("large_load_bytes", "1000000"), ("flush_age_ms", "600000")]);
    let mut db = server.database();
    let columns = "id INT NOT NULL, value BIGINT, text VARCHAR(20), list ARRAY<BIGINT>";
    // The last row of a key has its own number, and the one before it if that was rejected.
    let is_rejected = |row: u64| row % 50_000 == 49_999;
    let last = |id: u64| (0..ROWS).rev().find(|row| row % 1000 == id && !is_rejected(*row)).expect("many");
    for (number, file) in ["one_group.pq", "many_groups.pq"].into_iter().enumerate() {
        for (name, keys) in [("u", "UNIQUE KEY(id)"), ("d", "DUPLICATE KEY(id)")] {
            db.client.ok(&format!(
                "CREATE TABLE {name}{number} ({columns}) {keys} DISTRIBUTED BY HASH(id) BUCKETS 1"
            ));
        }
        let load = |table: &str, headers: &[&str]| {
            let load = Curl::stream_load(&server, &db.name, &format!("{table}{number}"));
            load.header("format: parquet").headers(headers).file(&files().join(file)).load()
        };
        let before = data_files(&server);
        let reply = load("d", &["max_filter_ratio: 0.1"]).success();
        assert_eq!(reply.rows(), [ROWS, ROWS - 6, 6, 0], "{file}: {}", reply.text);
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        assert!(data_files(&server) - before >= processors.min(2), "{file}");
        let log = reasons(&reply);
        assert_eq!(log.lines().count(), 6, "{log}");
        let rows: Vec<String> =
            (1..=6).map(|part| format!("src line [row {}: NULL", part * 50_000)).collect();
        assert!(log.lines().zip(&rows).all(|(line, row)| line.contains(row)), "{log}");
        let sums = db.client.rows(&format!(
            "SELECT COUNT(*), SUM(value), COUNT(text), COUNT(list), SUM(SIZE(list)) FROM d{number}"
        ));
        let kept = || (0..ROWS).filter(|row| !is_rejected(*row));
        let count = |holds: fn(u64) -> bool| kept().filter(|row| holds(*row)).count();
        let sizes: u64 = kept().filter(|row| !row.is_multiple_of(7)).map(|row| row % 3).sum();
        let expected = format!(
            "{}|{}|{}|{}|{sizes}",
            kept().count(),
            kept().sum::<u64>(),
            count(|row| !row.is_multiple_of(13)),
            count(|row| !row.is_multiple_of(7))
        );
        assert_eq!(sums, [expected], "{file}");

        load("u", &["max_filter_ratio: 0.1"]).success();
        let expected: Vec<String> = (0..1000).map(|id| format!("{id}|{}", last(id))).collect();
        assert_eq!(
            db.client.rows(&format!("SELECT id, value FROM u{number} ORDER BY id")),
            expected,
            "{file}"
        );
        // With expressions and conditions, whose rows are decoded in parallel, too.
        let computed =
            ["columns: id, value, value = value * 2 + 1", "where: id < 500", "max_filter_ratio: 0.1"];
        let reply = load("u", &computed).success();
        assert_eq!(reply.rows(), [ROWS, ROWS / 2, 6, ROWS / 2 - 6], "{file}: {}", reply.text);
        let expected: Vec<String> = (0..500).map(|id| format!("{id}|{}", last(id) * 2 + 1)).collect();
        assert_eq!(
            db.client.rows(&format!("SELECT id, value FROM u{number} WHERE id < 500 ORDER BY id")),
            expected,
            "{file}"
        );
    }
    let mut damaged = std::fs::read(files().join("many_groups.pq")).expect("it was written");
    let footer: [u8; 4] = damaged[damaged.len() - 8..damaged.len() - 4].try_into().expect("four bytes");
    let end = damaged.len() - 8 - u32::from_le_bytes(footer) as usize;
    damaged[end - 500..end].fill(0xff);
    let file = server.scratch().join(format!("{}.pq", db.name));
    std::fs::write(&file, damaged).expect("the file is written");
    let before = data_files(&server);
    let load = Curl::stream_load(&server, &db.name, "d0").header("format: parquet").file(&file).load();
    let refused = load.failure();
    assert!(refused.starts_with("[DATA_QUALITY_ERROR]the parquet body can't be read: "), "{refused}");
    wait_until("nothing of the load is left", || data_files(&server) == before);
    assert_eq!(db.client.value("SELECT COUNT(*) FROM d0"), (ROWS - 6).to_string());
}

#[test]
fn what_is_no_such_file_is_refused_and_an_empty_body_has_no_rows() {
    let server = Server::shared();
    let mut db = table(&server, "id BIGINT");
    for format in ["parquet", "orc", "arrow"] {
        let header = format!("format: {format}");
        let text =
            Curl::stream_load(&server, &db.name, "t").header(&header).body("1\n2\n3\n4\n5\n6\n").load();
        let start = format!("[DATA_QUALITY_ERROR]the {format} body can't be read: ");
        assert!(text.failure().starts_with(&start), "{}", text.text);
        let empty = Curl::stream_load(&server, &db.name, "t").header(&header).body("").load().success();
        assert_eq!(empty.rows(), [0; 4]);
    }
    let avro = Curl::stream_load(&server, &db.name, "t").header("format: avro").body("Obj").load().failure();
    assert!(
        avro.starts_with(
            "[NOT_IMPLEMENTED_ERROR]format=avro is not supported; send the data as parquet, orc, "
        ),
        "{avro}"
    );
    assert_eq!(db.client.value("SELECT COUNT(*) FROM t"), "0");
}
