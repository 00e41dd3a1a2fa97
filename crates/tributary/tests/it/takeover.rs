//! A server that is frozen, and another process of it that takes over its catalog and tables.

use crate::object_storage::{csv, stream_load, sums};
use crate::readers::Cluster;
use crate::support::{Curl, Server, wait_until};

/// Rows from 0 on, and their sums.
fn expected(rows: u64) -> String {
    format!("{rows}|{rows}|{}", rows * (rows - 1) / 2)
}

/// Freezes a writer, and starts another process with a copy of its directory as soon as it may take over.
pub fn successor(cluster: &Cluster, former: &Server, more: &[(&str, &str)]) -> Server {
    former.signal("STOP");
    let alive = "SELECT expires > clock_timestamp() FROM tributary.catalog";
    wait_until("the owner was not heard of for long", || {
        cluster.postgres.run(&cluster.database, alive) == "f"
    });
    let settings = cluster.settings(more);
    let settings: Vec<(&str, &str)> =
        settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    Server::on(&settings, |directory| {
        let mut cp = std::process::Command::new("cp");
        let copied = cp.arg("-r").arg(former.data()).arg(directory.join("data")).status();
        assert!(copied.expect("cp starts").success());
    })
}

#[test]
fn a_writer_that_was_frozen_while_another_took_over_stores_nothing_more() {
    let cluster = Cluster::new();
    // Rows are in the log only for long enough to be frozen there.
    let more = [("flush_age_ms", "4000")];
    let former = cluster.server(&more).with_manual_table();
    let mut client = former.connect_to("db");
    stream_load(&former, "dt", "sync_mode", &csv(0, 100));
    wait_until("rows are in the store", || former.metric("tributary_flushes_total ") > 0.0);
    stream_load(&former, "dt", "async_mode", &csv(100, 100));
    client.ok("SYNC");
    let mut later = successor(&cluster, &former, &more);
    let mut its_client = later.connect_to("db");
    assert_eq!(sums(&mut its_client, "dt"), expected(200), "it has the rows of the log");
    stream_load(&later, "dt", "sync_mode", &csv(200, 100));

    former.signal("CONT");
    for (mode, id) in [("async_mode", 1000), ("sync_mode", 1001), ("off_mode", 1002)] {
        client.ok(&format!("SET group_commit = {mode}"));
        let refused = client.error(&format!("INSERT INTO dt VALUES ({id}, 'late', {id})"));
        assert!(refused.message.contains("has taken over its catalog and tables"), "{refused}");
    }
    let load = Curl::stream_load(&former, "db", "dt").header("column_separator:,").body("1003,late,0");
    let (status, refused) = load.status_and_text();
    assert!(status == 429 && refused.contains("has taken over its catalog and tables"), "{status} {refused}");
    let refused = client.error("CREATE DATABASE late");
    assert!(refused.message.contains("was taken by server"), "{refused}");
    let problems = "SELECT CODE, CAUSE FROM information_schema.problems WHERE CODE = 'TAKEN_OVER'";
    wait_until("the problem is named", || !client.rows(problems).is_empty());
    let (status, _) =
        Curl::anonymous(&format!("http://127.0.0.1:{}/api/ready", former.http_port())).status_and_text();
    assert_eq!(status, 503);
    wait_until("its flush has found the seal", || {
        client.ok("SYNC");
        former.log().contains("its Delta log is sealed for epoch 2, and this process has epoch 1")
    });
    assert!(former.log().contains("another process has taken over"), "{}", former.log());

    stream_load(&later, "dt", "off_mode", &csv(300, 100));
    assert_eq!(sums(&mut its_client, "dt"), expected(400));
    assert!(later.stop().success());
    later.start_again();
    assert_eq!(sums(&mut later.connect_to("db"), "dt"), expected(400), "what is in the store is all of it");
    assert!(later.connect().rows("SHOW DATABASES LIKE 'late'").is_empty());
}

#[test]
fn a_reader_shows_what_the_successor_shows_and_nothing_of_a_writer_that_wakes() {
    let cluster = Cluster::new();
    let more = [("flush_age_ms", "4000")];
    let former = cluster.server(&more).with_manual_table();
    stream_load(&former, "dt", "sync_mode", &csv(0, 100));
    let reader = cluster.reader(&[]);
    let mut client = reader.connect_to("db");
    client.ok("SYNC");
    assert_eq!(sums(&mut client, "dt"), expected(100));
    // They are in the log of the writer only, where the successor finds them.
    stream_load(&former, "dt", "async_mode", &csv(100, 100));

    let later = successor(&cluster, &former, &more);
    client.ok("SYNC");
    assert_eq!(sums(&mut client, "dt"), expected(200));
    let is_new = "SELECT AGE_MS < 8000 FROM information_schema.followed_tables";
    wait_until("the age is that of the successor's rows", || client.value(is_new) == "1");

    former.signal("CONT");
    let refused = former.connect_to("db").error("INSERT INTO dt VALUES (1000, 'late', 0)");
    assert!(refused.message.contains("has taken over its catalog and tables"), "{refused}");
    for rows in [300, 400] {
        stream_load(&later, "dt", "sync_mode", &csv(rows - 100, 100));
        client.ok("SYNC");
        assert_eq!(sums(&mut client, "dt"), expected(rows));
    }
    wait_until("the age is that of the successor's rows still", || client.value(is_new) == "1");
}
