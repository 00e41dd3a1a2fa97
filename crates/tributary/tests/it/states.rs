//! Tables with BITMAP and HLL columns, by all ways in.

use crate::support::programs::python;
use crate::support::{Curl, Server};

const TABLE: &str =
    "CREATE TABLE visits (day INT NOT NULL, users BITMAP BITMAP_UNION, pages HLL HLL_UNION, total BIGINT SUM)
    AGGREGATE KEY(day) DISTRIBUTED BY HASH(day) BUCKETS 1 PROPERTIES (\"group_commit_interval_ms\" = \"20\")";
const SHOWN: &str = "SELECT day, bitmap_to_string(users), bitmap_count(users), hll_cardinality(pages), total FROM visits ORDER BY day";

#[test]
fn sets_and_estimates_are_merged_whichever_way_they_came_and_after_a_kill() {
    let mut server = Server::with_settings(&[("flush_age_ms", "200"), ("large_load_bytes", "20000")]);
    let mut db = server.database();
    db.client.ok(TABLE);
    db.client.ok(
        "INSERT INTO visits VALUES (1, to_bitmap(7), hll_hash('a'), 1), (1, to_bitmap(3), hll_hash('b'), 1)",
    );
    db.client
        .ok("INSERT INTO visits (day, users) VALUES (1, bitmap_from_string('7,8')), (2, bitmap_empty())");
    let load = |server: &Server, headers: &[&str], body: &str| {
        let request = Curl::stream_load(server, &db.name, "visits").header("column_separator:,");
        request.headers(headers).body(body).load()
    };
    let columns = "columns:day,user,page,total,users=to_bitmap(user),pages=hll_hash(page)";
    for mode in ["async_mode", "sync_mode", "off_mode"] {
        load(&server, &[columns, &format!("group_commit:{mode}")], "2,5,x,1\n2,6,y,1\n1,9,a,1\n").success();
        db.client.ok("SYNC");
    }
    load(
        &server,
        &["format:json", "columns:day,users,users=to_bitmap(users)"],
        "{\"day\":3,\"users\":18446744073709551615}\n",
    )
    .success();
    let expected = ["1|3,7,8,9|4|2|5", "2|5,6|2|2|6", "3|18446744073709551615|1|0|NULL"];
    assert_eq!(db.client.rows(SHOWN), expected);
    let mut body = String::new();
    for user in 0..5000 {
        body += &format!("4,{},p{user},1\n", user % 3000);
    }
    // Large enough for data files of its own.
    load(&server, &[columns], &body).success();
    let counted = "SELECT bitmap_union_count(users), SUM(total), ABS(hll_union_agg(pages) - 5000) < 150 FROM visits WHERE day = 4";
    assert_eq!(db.client.rows(counted), ["3000|5000|1"]);
    db.client.ok("INSERT INTO visits SELECT 5, users, pages, total FROM visits WHERE day IN (1, 2)");
    assert_eq!(db.client.value("SELECT bitmap_to_string(users) FROM visits WHERE day = 5"), "3,5,6,7,8,9");
    assert_eq!(
        db.client.rows("SELECT bitmap_union_count(users), hll_union_agg(pages) FROM visits WHERE day < 4"),
        ["7|4"]
    );
    server.kill();
    server.start_again();
    let mut client = server.connect_to(&db.name);
    assert_eq!(client.rows(SHOWN)[..3], expected);
    assert_eq!(client.rows(counted), ["3000|5000|1"]);
    // Values themselves are shown as Doris shows them.
    assert_eq!(client.rows("SELECT day, users, pages FROM visits WHERE day = 1"), ["1|NULL|NULL"]);
    assert_eq!(
        client.rows("SELECT bitmap_union(users), to_bitmap(1), hll_hash('a') FROM visits"),
        ["NULL|NULL|NULL"]
    );
    client.ok("SET return_object_data_as_binary = true");
    assert_eq!(client.rows("SELECT HEX(hll_empty()), LENGTH(bitmap_empty())"), ["01|8"]);
    assert_ne!(client.value("SELECT users FROM visits WHERE day = 1"), "NULL");
    client.ok("ALTER TABLE visits ADD COLUMN more BITMAP BITMAP_UNION");
    client.ok("INSERT INTO visits (day, more) VALUES (1, to_bitmap(1))");
    assert_eq!(
        client.rows(
            "SELECT day, bitmap_count(more), bitmap_count(users) FROM visits WHERE day < 3 ORDER BY day"
        ),
        ["1|1|4", "2|0|2"]
    );
    assert_eq!(server.stop().code(), Some(0), "{}", server.log());
    python("delta_checks.py", &["states", &crate::delta::delta_table(&server), "1,2,3,4,5"]);
}

#[test]
fn such_columns_are_described_and_refused_as_in_doris() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok(TABLE);
    let create = db.client.rows("SHOW CREATE TABLE visits").join("\n");
    for line in ["`users` bitmap BITMAP_UNION NOT NULL", "`pages` hll HLL_UNION NOT NULL"] {
        assert!(create.contains(line), "{line}\n{create}");
    }
    db.client
        .ok("CREATE TABLE e (k INT, b BITMAP BITMAP_UNION NOT NULL DEFAULT BITMAP_EMPTY) AGGREGATE KEY(k)");
    let create = db.client.rows("SHOW CREATE TABLE e").join("\n");
    assert!(create.contains("`b` bitmap BITMAP_UNION NOT NULL DEFAULT BITMAP_EMPTY"), "{create}");
    assert_eq!(db.client.rows("DESC visits")[1], "users|bitmap|No|false|NULL|BITMAP_UNION");
    for (columns, text) in [
        (
            "k INT, b BITMAP BITMAP_UNION NULL) AGGREGATE KEY(k)",
            "complex type column must be not nullable, column:b",
        ),
        ("k BITMAP, v INT SUM) AGGREGATE KEY(k)", "Key column can not set complex type:k"),
        ("k INT, h HLL) AGGREGATE KEY(k)", "complex type have to use aggregate function: h"),
        (
            "k INT, b BITMAP SUM) AGGREGATE KEY(k)",
            "Aggregate type SUM is not compatible with primitive type bitmap",
        ),
        (
            "k INT, b BITMAP REPLACE) AGGREGATE KEY(k)",
            "Aggregate type REPLACE is not compatible with primitive type bitmap",
        ),
        (
            "k INT, v INT BITMAP_UNION) AGGREGATE KEY(k)",
            "Aggregate type BITMAP_UNION is not compatible with primitive type int",
        ),
        (
            "k INT, h HLL HLL_UNION DEFAULT HLL_EMPTY) AGGREGATE KEY(k)",
            "Hll type column can not set default value",
        ),
        (
            "k INT, b BITMAP BITMAP_UNION DEFAULT '1') AGGREGATE KEY(k)",
            "Bitmap type column default value only support",
        ),
        (
            "k INT, q QUANTILE_STATE QUANTILE_UNION) AGGREGATE KEY(k)",
            "the type QUANTILE_STATE is not supported",
        ),
    ] {
        let error = db.client.error(&format!("CREATE TABLE x ({columns}"));
        assert!(error.message.contains(text), "{columns}: {error}");
    }
    for (statement, text) in [
        (
            "INSERT INTO visits SELECT 1, 5, hll_empty(), 1",
            "bitmap column require the function return type is BITMAP",
        ),
        (
            "INSERT INTO visits SELECT 1, to_bitmap(1), 'a', 1",
            "HLL column must use hll_hash function, like pages=hll_hash(xxx)",
        ),
    ] {
        let error = db.client.error(statement);
        assert!(error.message.contains(text), "{statement}: {error}");
    }
    // A value of the other kind, or no value.
    db.client.error("INSERT INTO visits SELECT 1, hll_hash(1), hll_empty(), 1");
    db.client.error("INSERT INTO visits VALUES (1, '5', 'a', 1)");
    db.client.error("INSERT INTO visits VALUES (1, UNHEX('00'), hll_empty(), 1)");
    for (headers, body, text) in [
        ("columns:day,users", "1,2\n", "bitmap column require the function return type is BITMAP"),
        ("columns:day,pages", "1,2\n", "HLL column must use hll_hash function"),
        ("columns:day,x,users=x+1", "1,2\n", "bitmap column require the function return type is BITMAP"),
    ] {
        let reply = Curl::stream_load(&server, &db.name, "visits")
            .header("column_separator:,")
            .header(headers)
            .body(body)
            .load();
        assert!(reply.failure().contains(text), "{headers}: {}", reply.text);
    }
    assert_eq!(db.client.value("SELECT COUNT(*) FROM visits"), "0");
}
