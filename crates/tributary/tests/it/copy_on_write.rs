//! Tables without deletion vectors, for Delta readers that lack them.

use crate::support::Server;
use crate::support::programs::python;
use std::collections::BTreeSet;

const PROPERTIES: &str = "DISTRIBUTED BY HASH(id) BUCKETS 1
    PROPERTIES (\"group_commit_interval_ms\" = \"20\", \"delta.enableDeletionVectors\" = \"false\")";

/// The rows of ids, as `SELECT id` shows them.
fn ids(ids: impl Iterator<Item = i64>) -> Vec<String> {
    ids.map(|id| id.to_string()).collect()
}

#[test]
fn every_version_can_be_read_by_a_reader_that_knows_no_deletion_vectors() {
    for (columns, is_keyed) in [
        ("(id INT NOT NULL, v BIGINT) UNIQUE KEY(id)", true),
        ("(id INT NOT NULL, v BIGINT SUM) AGGREGATE KEY(id)", true),
        ("(id INT NOT NULL, v BIGINT) DUPLICATE KEY(id)", false),
    ] {
        let mut server = Server::with_settings(&[("flush_age_ms", "100"), ("large_load_bytes", "20000")]);
        let mut db = server.database();
        db.client.ok(&format!("CREATE TABLE t {columns} {PROPERTIES}"));
        let create = db.client.rows("SHOW CREATE TABLE t").join("\n");
        assert!(create.contains("\"delta.enableDeletionVectors\" = \"false\""), "{create}");
        let rows = |from: i64, to: i64, v: i64| {
            (from..to).map(|id| format!("({id}, {v})")).collect::<Vec<_>>().join(",")
        };
        db.client.ok(&format!("INSERT INTO t VALUES {}", rows(0, 3000, 1)));
        for round in 0..5 {
            let (from, to) =
                if is_keyed { (round * 200, round * 200 + 500) } else { (3000 + round, 3001 + round) };
            db.client.ok(&format!("INSERT INTO t VALUES {}", rows(from, to, 2)));
            db.client.ok(&format!("DELETE FROM t WHERE id >= {} AND id < {}", round * 100, round * 100 + 10));
        }
        let mut expected: BTreeSet<i64> = (0..if is_keyed { 3000 } else { 3005 }).collect();
        for round in 0..5 {
            if is_keyed {
                expected.extend(round * 200..round * 200 + 500);
            }
            expected.retain(|id| !(round * 100..round * 100 + 10).contains(id));
        }
        assert_eq!(
            db.client.rows("SELECT id FROM t ORDER BY id"),
            ids(expected.iter().copied()),
            "{columns}"
        );
        server.kill();
        server.start_again();
        let mut client = server.connect_to(&db.name);
        assert_eq!(client.rows("SELECT id FROM t ORDER BY id"), ids(expected.iter().copied()), "{columns}");
        client.ok("INSERT INTO t VALUES (5000, 1)");
        assert_eq!(server.stop().code(), Some(0), "{}", server.log());
        let directory = crate::delta::delta_table(&server);
        let all = ids(expected.into_iter().chain([5000])).join(",");
        python("delta_checks.py", &["copied", &directory, &all]);
    }
}

#[test]
fn what_needs_deletion_vectors_is_refused_without_them() {
    let server = Server::shared();
    let mut db = server.database();
    let error = db.client.error(
        "CREATE TABLE t (id INT, s INT) UNIQUE KEY(id) PROPERTIES (\"delta.enableDeletionVectors\" = \"false\", \"function_column.sequence_col\" = \"s\")",
    );
    assert!(error.message.contains("does not go with a sequence"), "{error}");
    let error =
        db.client.error("CREATE TABLE t (id INT) PROPERTIES (\"delta.enableDeletionVectors\" = \"no\")");
    assert!(error.message.contains("must be 'true' or 'false', not 'no'"), "{error}");
    db.client.ok("CREATE TABLE t (id INT)");
    let error = db.client.error("ALTER TABLE t SET (\"delta.enableDeletionVectors\" = \"false\")");
    assert!(error.message.contains("cannot be changed after CREATE TABLE"), "{error}");
}
