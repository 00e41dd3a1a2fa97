//! Tables with AGGREGATE KEY, by all ways in.

use crate::support::programs::python;
use crate::support::{Curl, Server};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const TABLE: &str =
    "CREATE TABLE a (id INT NOT NULL, total BIGINT SUM DEFAULT \"0\", low INT MIN, high VARCHAR(20) MAX,
        name VARCHAR(20) REPLACE, city VARCHAR(20) REPLACE_IF_NOT_NULL)
    AGGREGATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1
    PROPERTIES (\"replication_num\" = \"1\", \"group_commit_interval_ms\" = \"50\")";
const SHOWN: &str = "SELECT id, total, low, high, name, city FROM a ORDER BY id";

/// Values that others were folded into: total, low, high, name and city.
type Folded = (i64, i64, String, String, Option<String>);

/// The folded row of each key.
#[derive(Default)]
struct Expected(BTreeMap<i64, Folded>);

impl Expected {
    /// Notes a row and returns its fields.
    fn add(&mut self, id: i64, number: i64, name: &str) -> [String; 6] {
        let (high, city) = (format!("h{}", number * 7 % 10), (number % 3 == 0).then(|| format!("c{number}")));
        let folded = self.0.entry(id).or_insert((0, i64::MAX, String::new(), String::new(), None));
        folded.0 += number;
        folded.1 = folded.1.min(number);
        folded.2 = folded.2.clone().max(high.clone());
        name.clone_into(&mut folded.3);
        folded.4 = city.clone().or(folded.4.take());
        let null = || "\\N".to_owned();
        [
            id.to_string(),
            number.to_string(),
            number.to_string(),
            high,
            name.to_owned(),
            city.unwrap_or_else(null),
        ]
    }

    fn rows(&self) -> Vec<String> {
        let row = |(id, (total, low, high, name, city)): (&i64, &Folded)| {
            format!("{id}|{total}|{low}|{high}|{name}|{}", city.as_deref().unwrap_or("NULL"))
        };
        self.0.iter().map(row).collect()
    }
}

fn values(fields: &[String; 6]) -> String {
    let [id, total, low, high, name, city] = fields;
    let city = if city == "\\N" { "NULL".to_owned() } else { format!("'{city}'") };
    format!("({id}, {total}, {low}, '{high}', '{name}', {city})")
}

#[test]
fn rows_of_a_key_are_folded_whichever_way_they_came_and_after_a_kill() {
    let mut server = Server::with_settings(&[("flush_age_ms", "300"), ("large_load_bytes", "20000")]);
    let mut db = server.database();
    db.client.ok(TABLE);
    let mut expected = Expected::default();
    let mut body = String::new();
    for row in 0..3000 {
        // Large enough for data files of its own, with duplicate keys.
        writeln!(body, "{}", expected.add(row % 2000, row, "large").join(",")).expect("a String takes all");
    }
    let load = |server: &Server, name: &str, mode: &str, body: &str| {
        let request = Curl::stream_load(server, name, "a").header("column_separator:,");
        request.header(&format!("group_commit:{mode}")).body(body).load().success();
    };
    load(&server, &db.name, "off_mode", &body);
    assert_eq!(db.client.rows(SHOWN), expected.rows());
    for (round, mode) in ["async_mode", "sync_mode", "off_mode"].into_iter().enumerate() {
        let mut body = String::new();
        for id in (0..2000).filter(|id| id % (round as i64 + 2) == 0) {
            for number in [id + 1, id - 5] {
                writeln!(body, "{}", expected.add(id, number, mode).join(",")).expect("a String takes all");
            }
        }
        load(&server, &db.name, mode, &body);
        db.client.ok("SYNC");
        db.client.ok(&format!("SET group_commit = {mode}"));
        for id in (round as i64..2100).step_by(300) {
            let rows = [expected.add(id, 7, "insert"), expected.add(id, 8, "insert again")];
            db.client.ok(&format!("INSERT INTO a VALUES {}, {}", values(&rows[0]), values(&rows[1])));
        }
        db.client.ok("SYNC");
        assert_eq!(db.client.rows(SHOWN), expected.rows(), "{mode}");
    }
    server.kill();
    server.start_again();
    let mut client = server.connect_to(&db.name);
    assert_eq!(client.rows(SHOWN), expected.rows());
    client.ok("INSERT INTO a (id, city) VALUES (1, 'last')");
    let first = client.value("SELECT total, name, city FROM a WHERE id = 1");
    assert_eq!(
        first,
        format!("{}|NULL|last", expected.0[&1].0),
        "REPLACE takes NULL, the others leave it out"
    );
    client.ok("INSERT INTO a SELECT id, total, low, high, name, city FROM a WHERE id = 1");
    assert_eq!(client.value("SELECT total FROM a WHERE id = 1"), (expected.0[&1].0 * 2).to_string());
    assert_eq!(client.value("SELECT COUNT(*) FROM a"), expected.0.len().to_string());
    assert_eq!(server.stop().code(), Some(0), "{}", server.log());
    let directory = crate::delta::delta_table(&server);
    let ids: Vec<String> = expected.0.keys().map(ToString::to_string).collect();
    python("delta_checks.py", &["deleted", &directory, &ids.join(",")]);
}

#[test]
fn such_a_table_is_described_as_it_was_written() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok(TABLE);
    let create = db.client.rows("SHOW CREATE TABLE a").join("\n");
    for line in [
        "`total` bigint SUM NULL DEFAULT \"0\"",
        "AGGREGATE KEY(`id`)",
        "`city` varchar(20) REPLACE_IF_NOT_NULL NULL DEFAULT NULL",
    ] {
        assert!(create.contains(line), "{line}\n{create}");
    }
    let described = db.client.rows("DESC a");
    assert_eq!(described[..2], ["id|int|No|true|NULL|", "total|bigint|Yes|false|0|SUM"]);
    assert_eq!(described[5], "city|varchar(20)|Yes|false|NULL|REPLACE_IF_NOT_NULL");
    let keys = "SELECT COLUMN_KEY FROM information_schema.columns WHERE TABLE_NAME = 'a' AND TABLE_SCHEMA = DATABASE() ORDER BY ORDINAL_POSITION LIMIT 2";
    assert_eq!(db.client.rows(keys), ["AGG", ""]);
    db.client.ok("INSERT INTO a (id, total) VALUES (1, 5), (1, 6)");
    db.client.ok("ALTER TABLE a ADD COLUMN visits INT SUM DEFAULT \"0\"");
    db.client.ok("INSERT INTO a (id, visits) VALUES (1, 2), (2, 3)");
    db.client.ok("INSERT INTO a (id, visits) VALUES (1, 1)");
    assert_eq!(db.client.rows("SELECT id, total, visits FROM a ORDER BY id"), ["1|11|3", "2|0|3"]);
    for (statement, text) in [
        ("UPDATE a SET total = 1", "Only unique table could be updated."),
        ("DELETE FROM a WHERE total = 1", "delete predicate on value column only supports"),
        (
            "CREATE TABLE b (k INT, v INT) AGGREGATE KEY(k)",
            "should set aggregation type to non-key column in aggregate key table",
        ),
    ] {
        let error = db.client.error(statement);
        assert!(error.message.contains(text), "{statement}: {error}");
    }
    let reply = Curl::stream_load(&server, &db.name, "a").header("merge_type:delete").body("1\n").load();
    assert!(reply.message().contains("only supported in unique tables"), "{}", reply.message());
}

#[test]
fn a_negative_load_takes_back_what_another_has_added() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok("CREATE TABLE n (k INT, small TINYINT SUM, whole BIGINT SUM, large LARGEINT SUM, part DECIMAL(10,2) SUM, real DOUBLE SUM)
        AGGREGATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1");
    let load = |headers: &[&str], body: &str| {
        let request = Curl::stream_load(&server, &db.name, "n").header("column_separator:,");
        request.headers(headers).body(body).load()
    };
    let rows = "1,100,9223372036854775807,99999999999999999999999999999999999999,1.25,0.5\n2,1,2,3,4,5\n";
    let mut expect = |expected: &[&str]| {
        db.client.ok("SYNC");
        assert_eq!(db.client.rows("SELECT * FROM n ORDER BY k"), expected);
    };
    load(&[], rows).success();
    load(&["negative:true"], rows).success();
    expect(&["1|0|0|0|0.00|0", "2|0|0|0|0.00|0"]);
    load(&["negative:true", "columns:k,small,x,whole=x*2"], "2,3,50\n").success();
    expect(&["1|0|0|0|0.00|0", "2|-3|-100|0|0.00|0"]);
    load(&["negative:true", "format:json"], "{\"k\":2,\"small\":-3,\"whole\":-100}\n").success();
    expect(&["1|0|0|0|0.00|0", "2|0|0|0|0.00|0"]);
    let reply = load(&["negative:true", "strict_mode:true"], "1,-128,1,1,1,1\n");
    assert_eq!(reply.status(), "Fail", "128 is no TINYINT: {}", reply.text);
    db.client
        .ok("CREATE TABLE m (k INT, s INT SUM, x INT MAX) AGGREGATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1");
    let load = |headers: &[&str], body: &str| {
        let request =
            Curl::stream_load(&server, &db.name, "m").header("column_separator:,").header("negative:true");
        request.headers(headers).body(body).load()
    };
    let reply = load(&[], "1,2,3\n");
    assert!(reply.failure().contains("Column is not SUM AggregateType. column:x"), "{}", reply.text);
    load(&["columns:k,s"], "1,2\n").success();
    assert_eq!(db.client.rows("SELECT * FROM m"), ["1|-2|NULL"]);
}
