//! Texts with quotes and backslashes arrive unchanged, by every path of a statement.

use crate::support::{Client, Curl, Database, Server};
use std::io::{Read, Write};
use std::net::TcpStream;

fn database(server: &Server) -> Database {
    let mut db = server.database();
    db.client.ok(r"CREATE TABLE texts (
        id INT NOT NULL,
        name VARCHAR(50) NULL DEFAULT 'D:\\it''s',
        note VARCHAR(50) NULL
    ) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1 PROPERTIES ('replication_num' = '1')");
    db
}

fn rows(db: &mut Database) -> Vec<String> {
    db.client.rows("SELECT * FROM texts ORDER BY id")
}

#[test]
fn an_insert_with_a_label_a_partition_a_default_or_an_expression_keeps_texts() {
    let server = Server::shared();
    let mut db = database(&server);
    for insert in [
        r"INSERT INTO texts VALUES (1, 'C:\\new', 'it''''s')",
        r"INSERT INTO texts WITH LABEL texts_2 VALUES (2, 'C:\\new', 'it''''s')",
        r"INSERT INTO texts PARTITION (*) VALUES (3, 'C:\\new', 'it''''s')",
        r#"INSERT INTO texts VALUES (2 + 2, N'C:\\new', "it''s")"#,
        r#"INSERT INTO texts VALUES (5, DEFAULT, "\\'""\"")"#,
        r"INSERT INTO texts (note, id) VALUES (CONCAT('\\', '\\n'), 6)",
        r"INSERT INTO texts VALUES (7, '\%\_', DEFAULT)",
    ] {
        assert_eq!(db.client.ok(insert).affected_rows, 1, "{insert}");
    }
    assert_eq!(
        rows(&mut db),
        [
            r"1|C:\new|it''s",
            r"2|C:\new|it''s",
            r"3|C:\new|it''s",
            r"4|C:\new|it''s",
            r#"5|D:\it's|\'"""#,
            r"6|D:\it's|\\n",
            r"7|\%\_|NULL",
        ]
    );
}

#[test]
fn a_text_of_an_insert_never_becomes_sql() {
    let server = Server::shared();
    let mut db = database(&server);
    db.client.ok(r"INSERT INTO texts WITH LABEL never_sql VALUES (1, 'x\\', ' , (SELECT version()) -- ')");
    db.client.ok(r"INSERT INTO texts VALUES (1 + 1, 'x\\', ' UNION ALL SELECT 3, 4, 5 -- ')");
    assert_eq!(rows(&mut db), [r"1|x\| , (SELECT version()) -- ", r"2|x\| UNION ALL SELECT 3, 4, 5 -- "]);
}

#[test]
fn set_statements_keep_texts() {
    let server = Server::shared();
    let mut client = server.connect();
    client.ok(r"SET @path = CONCAT('C:\\new', '\\'), @other = UPPER('it''''s')");
    assert_eq!(client.rows("SELECT @path, @other"), [r"C:\new\|IT''S"]);
}

#[test]
fn an_http_stream_that_inserts_keeps_the_texts_of_its_select() {
    let server = Server::shared();
    let mut db = database(&server);
    let sql = format!(
        r"INSERT INTO {}.texts (id, name) SELECT c1, CONCAT(c2, '\\') FROM http_stream('format' = 'csv', 'column_separator' = ',') WHERE c2 <> 'x\\'",
        db.name
    );
    let reply = Curl::put(&format!("http://127.0.0.1:{}/api/_http_stream", server.http_port()))
        .header(&format!("sql:{sql}"))
        .body("1,C:\n2,x\\\n")
        .load()
        .success();
    assert_eq!(reply.get("NumberLoadedRows"), "1", "{}", reply.text);
    assert_eq!(rows(&mut db), [r"1|C:\|NULL"]);
}

#[test]
fn an_insert_of_a_thousand_rows_may_have_a_label_and_expressions() {
    let server = Server::shared();
    let mut db = database(&server);
    let values: Vec<String> = (0..1000).map(|id| format!("({id} + 1, DEFAULT, 'note {id}')")).collect();
    let insert = format!("INSERT INTO texts WITH LABEL thousand VALUES {}", values.join(", "));
    assert_eq!(db.client.ok(&insert).affected_rows, 1000);
    assert_eq!(
        db.client.rows("SELECT COUNT(*), SUM(id), COUNT(DISTINCT note), MAX(name) FROM texts"),
        [r"1000|500500|1000|D:\it's"]
    );
}

/// A packet of a connection that is logged in.
fn read_packet(stream: &mut TcpStream) -> Vec<u8> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).expect("the server answers");
    let length = u32::from_le_bytes([header[0], header[1], header[2], 0]);
    let mut packet = vec![0; length as usize];
    stream.read_exact(&mut packet).expect("the server answers");
    packet
}

fn write_command(stream: &mut TcpStream, command: &[u8]) {
    let length = u32::try_from(command.len()).expect("a short command").to_le_bytes();
    stream.write_all(&[&length[..3], &[0], command].concat()).expect("the server reads");
}

#[test]
fn a_prepared_insert_with_a_label_finds_the_values_of_many_rows() {
    const ROWS: usize = 600;
    let server = Server::shared();
    let mut db = database(&server);
    let mut stream = Client::connect(server.mysql_port(), Some(&db.name)).into_stream();
    let values: Vec<String> = (0..ROWS).map(|id| format!("({id}, ?, DEFAULT)")).collect();
    let text = format!("INSERT INTO texts WITH LABEL prepared_rows VALUES {}", values.join(", "));
    write_command(&mut stream, &[&[0x16][..], text.as_bytes()].concat());
    let prepared = read_packet(&mut stream);
    assert_eq!(prepared[0], 0, "{}", String::from_utf8_lossy(&prepared));
    for _parameter_and_end in 0..=ROWS {
        read_packet(&mut stream);
    }
    let mut execute = [&[0x17][..], &prepared[1..5], &[0, 1, 0, 0, 0], &[0; ROWS.div_ceil(8)], &[1]].concat();
    execute.extend([0xfd, 0].repeat(ROWS));
    for id in 0..ROWS {
        let value = format!(r"{id}\");
        execute.push(value.len() as u8);
        execute.extend_from_slice(value.as_bytes());
    }
    write_command(&mut stream, &execute);
    let answer = read_packet(&mut stream);
    assert_eq!(answer[0], 0, "{}", String::from_utf8_lossy(&answer));
    assert_eq!(
        db.client.rows(r"SELECT COUNT(*), SUM(name = CONCAT(id, '\\')) FROM texts"),
        [format!("{ROWS}|{ROWS}")]
    );
}

/// The types of columns, and texts of numbers, truth values, moments and addresses.
const TYPES: [&str; 13] = [
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "LARGEINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL(10,2)",
    "DATE",
    "DATETIME(3)",
    "IPV4",
    "IPV6",
];
const TEXTS: [&str; 34] = [
    "1",
    "0",
    "-7",
    "+5",
    " 12 ",
    "1.5",
    "-0.25",
    ".5",
    "5.",
    "1e3",
    "1E-1",
    "128",
    "32768",
    "2147483648",
    "9223372036854775808",
    "99999999999999999999999999999999999999",
    "inf",
    "1e39",
    "true",
    "F",
    "yes",
    "off",
    "abc",
    "20240101",
    "240101",
    "2024/1/5 3:4:5",
    "2024-01-01 19:04:05.1237",
    "2024-01-01T19:04:05Z",
    "2024-12-31 23:59:59.5 -0530",
    "2024-02-30",
    "1.2.3.4",
    " 010.1.1.1 ",
    "::1",
    "1.2.3",
];

#[test]
fn a_text_is_the_same_value_in_loads_casts_comparisons_and_generated_columns() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok("SET time_zone = '+08:00'");
    db.client.ok("SET enable_insert_strict = false");
    let csv: Vec<String> = TEXTS.iter().zip(100..).map(|(text, k)| format!("{k}|{text}|{text}")).collect();
    let json =
        TEXTS.iter().zip(200..).map(|(text, k)| format!("{{\"k\":{k},\"t\":\"{text}\",\"v\":\"{text}\"}}"));
    let json: Vec<String> = json.collect();
    let values: Vec<String> =
        TEXTS.iter().zip(300..).map(|(text, k)| format!("({k}, '{text}', '{text}')")).collect();
    for (at, data_type) in TYPES.into_iter().enumerate() {
        let table = format!("of_{at}");
        db.client.ok(&format!(
            "CREATE TABLE {table} (k INT, t VARCHAR(64), v {data_type}, g {data_type} AS (CAST(t AS {data_type})))
             DUPLICATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1"
        ));
        for (format, body) in [("column_separator:|", csv.join("\n")), ("format:json", json.join("\n"))] {
            let load = Curl::stream_load(&server, &db.name, &table).header(format).header("timezone:+08:00");
            load.header("columns:k,t,v").header("read_json_by_line:true").body(&body).load().success();
        }
        db.client.ok(&format!("INSERT INTO {table} (k, t, v) VALUES {}", values.join(", ")));
        db.client
            .ok(&format!("INSERT INTO {table} (k, t, v) SELECT k + 300, t, t FROM {table} WHERE k < 200"));
        let rows = (4 * TEXTS.len()).to_string();
        assert_eq!(db.client.value(&format!("SELECT COUNT(*) FROM {table}")), rows, "{data_type}");
        let others = format!(
            "SELECT k, t, v, g, CAST(t AS {data_type}) FROM {table}
             WHERE NOT (v <=> CAST(t AS {data_type}) AND g <=> v) ORDER BY k"
        );
        assert_eq!(db.client.rows(&others), [""; 0], "{data_type}");
        // A FLOAT next to a text is compared as a DOUBLE, in MySQL and Doris too.
        if data_type != "FLOAT" {
            let unequal = format!("SELECT k, t, v FROM {table} WHERE NOT v = t ORDER BY k");
            let unequal = db.client.rows(&unequal);
            let is_cut = |row: &String| {
                // The column has less of the text: a whole number, two digits, a day, three digits of a second.
                let (text, value) =
                    row.split_once('|').and_then(|(_, rest)| rest.split_once('|')).unwrap_or_default();
                text.trim() != value && text.contains(['.', 'E', 'e', ':'])
            };
            assert!(unequal.iter().all(is_cut), "{data_type}: {unequal:?}");
        }
    }
}
