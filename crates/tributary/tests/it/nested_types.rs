//! Columns of ARRAY, MAP, STRUCT, VARIANT, IPV4 and IPV6 through every door of the real server.

use crate::delta::delta_table;
use crate::support::programs::python;
use crate::support::{Curl, Server};
use tributary_client::Value;

const TABLE: &str = "CREATE TABLE n (
    id INT, a ARRAY<BIGINT>, m MAP<VARCHAR(9), ARRAY<DECIMAL(9,2)>>, s STRUCT<f:TINYINT, at:ARRAY<DATETIME>>
) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1 PROPERTIES (\"group_commit_interval_ms\" = \"100\")";
const SHOWN: &str = "[1, null, 3]|{\"k\":[1.50], \"l\":null}|{\"f\":7, \"at\":[\"2024-02-29 01:02:03\"]}";
const TEXTS: [&str; 3] = ["[1,null,3]", "{k:[1.5],l:null}", "{7,['2024-02-29 01:02:03']}"];

#[test]
fn nested_values_come_by_every_door_and_are_there_after_a_crash() {
    let mut server = Server::start();
    let mut db = server.database();
    db.client.ok(TABLE);
    let create = db.client.rows("SHOW CREATE TABLE n").remove(0);
    assert!(create.contains("`m` map<varchar(9),array<decimal(9,2)>> NULL"), "{create}");
    for (id, mode) in ["off_mode", "sync_mode", "async_mode"].into_iter().enumerate() {
        db.client.ok(&format!("SET group_commit = {mode}"));
        let [a, m, s] = TEXTS.map(|text| text.replace('\'', "\\'"));
        db.client.ok(&format!("INSERT INTO n VALUES ({id}, '{a}', '{m}', '{s}')"));
    }
    db.client.ok("INSERT INTO n VALUES (3, [1, NULL, 3], {'k': [1.5], 'l': NULL},
        named_struct('f', 7, 'at', ['2024-02-29 01:02:03']))");
    db.client.ok("INSERT INTO n SELECT 4, a, m, s FROM n WHERE id = 0");
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], server.mysql_port()));
    let mut prepared = tributary_client::Client::connect(address, Some(&db.name), None).expect("connected");
    let insert = prepared.prepare("INSERT INTO n VALUES (?, ?, ?, ?)").expect("prepared");
    let texts = TEXTS.map(|text| Value::Text(text.to_owned()));
    let values = [&[Value::BigInt(5)][..], &texts].concat();
    assert_eq!(prepared.execute(insert, &values).expect("executed").affected_rows, 1);

    let load = |header: &str, body: &str| {
        let load = Curl::stream_load(&server, &db.name, "n").header(header).header("group_commit: sync_mode");
        load.body(body).load().success();
    };
    load("column_separator: |", &format!("6|{}\n", TEXTS.join("|")));
    let json = "{\"id\":7,\"a\":[1,null,3],\"m\":{\"k\":[1.5],\"l\":null},\"s\":{\"at\":[\"2024-02-29 01:02:03\"],\"f\":7}}";
    load("format: json", json);
    db.client.ok("SYNC");
    server.kill();
    server.start_again();
    let mut client = server.connect_to(&db.name);
    let rows = client.rows("SELECT * FROM n ORDER BY id");
    let expected: Vec<String> = (0..8).map(|id| format!("{id}|{SHOWN}")).collect();
    assert_eq!(rows, expected);
    let found = python("connector_checks.py", &["nested", &server.mysql_port().to_string(), &db.name]);
    assert_eq!(found, "ok\n");
}

#[test]
fn nested_columns_of_parquet_and_arrow_bodies_become_nested_columns() {
    let directory = tempfile::tempdir().expect("a directory");
    assert_eq!(python("pyarrow_files.py", &[&directory.path().display().to_string()]), "ok\n");
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok("CREATE TABLE n (id INT, a ARRAY<INT>, m MAP<STRING, DECIMAL(9,1)>, s STRUCT<f:INT, g:ARRAY<VARCHAR(3)>>)
        DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    db.client.ok("CREATE TABLE flat (id INT, a INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    for (file, format) in [("of_nested.pq", "parquet"), ("of_nested.ipc", "arrow")] {
        let load = |table: &str| {
            let load = Curl::stream_load(&server, &db.name, table).header(&format!("format: {format}"));
            load.file(&directory.path().join(file)).load()
        };
        load("n").success();
        assert!(load("flat").failure().contains("doesn't support complex types"));
    }
    let rows = db.client.rows("SELECT DISTINCT CAST(id AS STRING), CAST(a AS STRING), CAST(m AS STRING), CAST(s AS STRING) FROM n ORDER BY 1");
    assert_eq!(rows, ["1|[1, null, 3]|{\"k\":1.5, \"l\":null}|{\"f\":7, \"g\":[\"x\"]}", "2|NULL|{}|NULL",]);
}

#[test]
fn bad_nested_values_reject_rows_or_are_null_as_loads_say() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok("CREATE TABLE n (id INT, a ARRAY<INT> NOT NULL, m MAP<INT, INT>) DUPLICATE KEY(id)
        DISTRIBUTED BY HASH(id) BUCKETS 1");
    let error = db.client.error("INSERT INTO n VALUES (1, '[1,x]', NULL)");
    assert!(error.message.contains("Insert has filtered data in strict mode"), "{}", error.message);
    let body = "1|[1,x]|{1:2}\n2|x|{}\n3|[]|{x:1}\n";
    let load = |strict: &str| {
        let load = Curl::stream_load(&server, &db.name, "n").header("column_separator: |");
        load.header("max_filter_ratio: 1").header(strict).body(body).load().success().rows()
    };
    assert_eq!(load("strict_mode: false"), [3, 2, 1, 0]);
    assert_eq!(load("strict_mode: true"), [3, 0, 3, 0]);
    assert_eq!(db.client.rows("SELECT * FROM n ORDER BY id"), ["1|[1, null]|{1:2}", "3|[]|NULL"]);
}

#[test]
fn another_delta_reader_sees_nested_values() {
    let server = Server::with_settings(&[("flush_age_ms", "300")]);
    let mut db = server.database();
    db.client.ok(TABLE);
    let [a, m, s] = TEXTS.map(|text| text.replace('\'', "\\'"));
    db.client.ok(&format!("INSERT INTO n VALUES (1, '{a}', '{m}', '{s}')"));
    db.client.ok("INSERT INTO n VALUES (2, NULL, NULL, NULL)");
    python("delta_checks.py", &["nested", &delta_table(&server)]);
    db.client.ok("ALTER TABLE n RENAME COLUMN s t");
    db.client.ok("CREATE TABLE copy AS SELECT id, a, t.at AS at FROM n");
    let shown = db.client.rows("DESC copy");
    assert!(shown[1].starts_with("a|array<bigint>|"), "{shown:?}");
    let rows = db.client.rows("SELECT * FROM copy ORDER BY id");
    assert_eq!(rows, ["1|[1, null, 3]|[\"2024-02-29 01:02:03\"]", "2|NULL|NULL"]);
}

#[test]
fn addresses_and_variants_come_by_every_door_and_are_there_after_a_crash() {
    let mut server = Server::with_settings(&[("flush_age_ms", "300")]);
    let mut db = server.database();
    db.client
        .ok("CREATE TABLE p (a IPV4, b IPV6, v VARIANT) UNIQUE KEY(a, b) DISTRIBUTED BY HASH(a) BUCKETS 1
         PROPERTIES (\"group_commit_interval_ms\" = \"100\")");
    db.client.ok(
        "INSERT INTO p VALUES ('10.0.0.9', '::1', 'old'), ('10.0.0.10', '::1', '{\"k\": [1, {\"m\": 2}]}')",
    );
    db.client.ok("INSERT INTO p SELECT '010.0.0.9', '0:0::1', 'new'");
    db.client.ok("INSERT INTO p SELECT a, '::2', v FROM p WHERE v['k'] IS NOT NULL");
    let address = ("127.0.0.1", server.mysql_port());
    let mut prepared = tributary_client::Client::connect(address, Some(&db.name), None).expect("connected");
    let insert = prepared.prepare("INSERT INTO p VALUES (?, ?, ?)").expect("prepared");
    let texts = ["9.9.9.9", "2001:DB8::0001", "{\"n\":1}"].map(|text| Value::Text(text.to_owned()));
    assert_eq!(prepared.execute(insert, &texts).expect("executed").affected_rows, 1);
    let load = |header: &str, body: &str| {
        let load = Curl::stream_load(&server, &db.name, "p").header(header).header("group_commit: sync_mode");
        load.body(body).load().success();
    };
    load("column_separator: |", "255.1.1.1|1.2.3.4|{\"x\":\"y\"}\n");
    load("format: json", "{\"a\":\"0.0.0.0\",\"b\":\"ffff::\",\"v\":{\"x\":{\"deep\":[true]}}}");
    let error = db.client.error("INSERT INTO p VALUES ('1.2.3', '::1', NULL)");
    assert!(error.message.contains("filtered data"), "{}", error.message);
    db.client.ok("SYNC");
    server.kill();
    server.start_again();
    let mut client = server.connect_to(&db.name);
    let expected = [
        "0.0.0.0|ffff::|{\"x\":{\"deep\":[true]}}",
        "9.9.9.9|2001:db8::1|{\"n\":1}",
        "10.0.0.9|::1|\"new\"",
        "10.0.0.10|::1|{\"k\": [1, {\"m\": 2}]}",
        "10.0.0.10|::2|{\"k\": [1, {\"m\": 2}]}",
        "255.1.1.1|::ffff:1.2.3.4|{\"x\":\"y\"}",
    ];
    assert_eq!(client.rows("SELECT * FROM p ORDER BY a, b"), expected);
    assert_eq!(
        client.rows("SELECT a FROM p WHERE v['x'] = 'y' OR a < '9.9.9.10' ORDER BY a"),
        ["0.0.0.0", "9.9.9.9", "255.1.1.1"]
    );
    assert_eq!(client.value("SELECT count(*) FROM p WHERE b = '::1'"), "2");
    python("delta_checks.py", &["addresses", &delta_table(&server)]);
    assert_eq!(client.rows("SELECT * FROM p ORDER BY a, b"), expected, "of data files, too");
    client.ok("CREATE TABLE copy AS SELECT a, b, v FROM p");
    assert_eq!(client.rows("SELECT b, v['n'] FROM copy WHERE a = '9.9.9.9'"), ["2001:db8::1|1"]);
    assert!(client.rows("DESC copy")[1].starts_with("b|ipv6|"));
}

#[test]
fn rows_of_arrays_maps_and_their_texts_stand_beside_rows_of_expressions() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok("CREATE TABLE n (id INT, a ARRAY<INT>, m MAP<VARCHAR(10), INT>) DUPLICATE KEY(id)
        DISTRIBUTED BY HASH(id) BUCKETS 1");
    let insert =
        "INSERT INTO n VALUES (1, [1], {'a': 1}), (1 + 1, '[2]', '{\"b\":2}'), (3, [3, 4], map('c', 3)),
        (4, NULL, DEFAULT), (5, [1 + 4, NULL], {'d': 2 + 2, 'e': NULL}), (2 * 3, '[6]', {'f': 6})";
    assert_eq!(db.client.ok(insert).affected_rows, 6);
    assert_eq!(
        db.client.rows("SELECT * FROM n ORDER BY id"),
        [
            "1|[1]|{\"a\":1}",
            "2|[2]|{\"b\":2}",
            "3|[3, 4]|{\"c\":3}",
            "4|NULL|NULL",
            "5|[5, null]|{\"d\":4, \"e\":null}",
            "6|[6]|{\"f\":6}",
        ]
    );
    let error = db.client.error("INSERT INTO n VALUES (1 + 6, ['x'], NULL)");
    assert!(error.message.contains("Insert has filtered data in strict mode"), "{}", error.message);
}
