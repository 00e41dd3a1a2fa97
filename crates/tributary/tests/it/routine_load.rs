//! `ROUTINE LOAD` from a real broker: every message is loaded exactly once, whatever is killed.

use crate::support::kafka::{Kafka, create_table, shown};
use crate::support::{Client, Server, wait_until};

fn count(client: &mut Client) -> String {
    client.rows("SELECT count(*), count(DISTINCT id), coalesce(sum(id), 0) FROM t")[0].clone()
}

/// The result of [`count`] if the ids below `rows` exist exactly once.
fn exactly(rows: u64) -> String {
    format!("{rows}|{rows}|{}", rows * rows.saturating_sub(1) / 2)
}

/// Waits until the ids below `rows` exist, and fails at once if there are more rows.
fn wait_for(client: &mut Client, rows: u64) {
    let mut last = String::new();
    wait_until(&format!("there are {rows} rows"), || {
        last = count(client);
        let found: u64 = last.split('|').next().and_then(|count| count.parse().ok()).unwrap_or_default();
        assert!(found <= rows, "{found} rows of {rows}: {last}");
        found == rows
    });
    assert_eq!(last, exactly(rows));
}

#[test]
fn every_message_is_loaded_once_over_kills_restarts_and_new_partitions() {
    let mut kafka = Kafka::start();
    kafka.run("create events 2");
    let mut server = Server::start();
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("USE d");
    client.ok(
        "CREATE TABLE t (id BIGINT NOT NULL, twice BIGINT AS (id * 2) NOT NULL, text VARCHAR(100)) DUPLICATE KEY(id)
         DISTRIBUTED BY HASH(id) BUCKETS 1",
    );
    let refused = client.error(&format!("CREATE ROUTINE LOAD j ON t {}", kafka.source("nothing")));
    assert!(refused.message.contains("no topic 'nothing'"), "{refused:?}");
    kafka.run("json events 0 1000 2");
    client.ok(&format!(
        "CREATE ROUTINE LOAD j ON t PROPERTIES (\"format\" = \"json\", \"max_batch_interval\" = \"1\") {}",
        kafka.source("events")
    ));
    let again = client.error(&format!("CREATE ROUTINE LOAD j ON t {}", kafka.source("events")));
    assert!(again.message.contains("Name j already used in db d"), "{again:?}");
    wait_for(&mut client, 1000);
    assert_eq!(shown(&mut client, "j", "State"), "RUNNING");
    assert_eq!(shown(&mut client, "j", "Progress"), "{\"0\":\"499\",\"1\":\"499\"}");
    wait_until("the lag is known", || shown(&mut client, "j", "Lag") == "{\"0\":0,\"1\":0}");

    // Tributary is killed while messages arrive.
    for round in 0..3 {
        let from = 1000 + round * 2000;
        kafka.begin(&format!("json events {from} {} 2 lz4", from + 2000));
        wait_until("some of them are there", || {
            client
                .value("SELECT count(*) FROM t")
                .parse::<u64>()
                .is_ok_and(|count| count > from || round == 2)
        });
        server.kill();
        server.start_again();
        kafka.ended();
        client = server.connect_to("d");
    }
    wait_for(&mut client, 7000);

    // The broker is killed.
    kafka.kill();
    kafka.start_again();
    kafka.run("json events 7000 8000 2 zstd");
    wait_for(&mut client, 8000);
    assert_eq!(shown(&mut client, "j", "State"), "RUNNING");

    // A partition is added.
    kafka.run("partitions events 3");
    kafka.run("json events 8000 9000 3");
    wait_for(&mut client, 9000);
    assert!(shown(&mut client, "j", "Progress").contains("\"2\":\"3"));

    // A paused job stays paused over a restart, and resumes where it was.
    client.ok("PAUSE ROUTINE LOAD FOR j");
    kafka.run("json events 9000 9500 3");
    assert!(shown(&mut client, "j", "ReasonOfStateChanged").contains("errCode = 100"));
    server.stop();
    server.start_again();
    client = server.connect_to("d");
    assert_eq!(shown(&mut client, "j", "State"), "PAUSED");
    assert_eq!(count(&mut client), exactly(9000));
    client.ok("ALTER ROUTINE LOAD FOR j PROPERTIES (\"max_error_number\" = \"1\")");
    client.ok("RESUME ROUTINE LOAD FOR j");
    assert!(
        client
            .error("ALTER ROUTINE LOAD FOR j PROPERTIES (\"max_error_number\" = \"2\")")
            .message
            .contains("PAUSED jobs")
    );
    wait_for(&mut client, 9500);

    // Bad rows use up their budget; the good ones around them are loaded.
    kafka.run("say events 0 {\"id\": 9500, \"text\": \"x\"}");
    kafka.run("say events 0 {\"id\": nothing}");
    kafka.run("say events 0 {\"id\": \"x\"}");
    kafka.run("say events 0 {\"id\": 9501, \"text\": \"y\"}");
    wait_until("the job is paused", || shown(&mut client, "j", "State") == "PAUSED");
    assert!(shown(&mut client, "j", "ReasonOfStateChanged").contains("errCode = 102"));
    assert!(shown(&mut client, "j", "ErrorLogUrls").starts_with("http://"));
    assert!(shown(&mut client, "j", "Statistic").contains("\"errorRows\":2"));
    client.ok("RESUME ROUTINE LOAD FOR j");
    wait_for(&mut client, 9502);
    assert_eq!(client.value("SELECT COUNT(*) FROM t WHERE twice = id * 2"), "9502");

    client.ok("STOP ROUTINE LOAD FOR j");
    assert!(client.error("RESUME ROUTINE LOAD FOR j").message.contains("Could not transform STOPPED"));
    assert!(
        client.error("SHOW ROUTINE LOAD FOR j").message.contains("There is no running job named j in db d")
    );
    assert_eq!(shown(&mut client, "j", "State"), "STOPPED");
    assert_eq!(count(&mut client), exactly(9502));
}

#[test]
fn a_job_that_falls_behind_its_topic_is_named_with_its_cause() {
    let mut kafka = Kafka::start();
    kafka.run("create events 1");
    kafka.run("json events 0 30000 1");
    let server = Server::start();
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("USE d");
    create_table(&mut client, "t");
    client.ok("ALTER TABLE t SET (\"max_load_rows_per_second\" = \"10\")");
    client.ok(&format!(
        "CREATE ROUTINE LOAD j ON t PROPERTIES (\"format\" = \"json\", \"max_batch_interval\" = \"1\") {}",
        kafka.source("events")
    ));
    // Its first batch is more than it may bring in half an hour.
    wait_for(&mut client, 30_000);
    kafka.run("json events 30000 60000 1");
    let named = "SELECT SUBJECT, PROBLEM LIKE '%messages behind its topic.', CAUSE LIKE '%messages a second%', WAY_OUT LIKE '%limit%' FROM \
                 information_schema.problems WHERE CODE = 'JOB_BEHIND'";
    wait_until("the job is named", || client.rows(named) == ["d.j|1|1|1"]);
    client.ok("ALTER TABLE t SET (\"max_load_rows_per_second\" = \"1000000\")");
    wait_until("it is over", || client.rows(named).is_empty());
}

#[test]
fn csv_is_mapped_computed_and_filtered_and_jobs_begin_where_they_are_told_to() {
    let mut kafka = Kafka::start();
    kafka.run("create lines 1");
    kafka.run("csv lines 0 1000 1");
    let server = Server::start();
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("USE d");
    create_table(&mut client, "t");
    client.ok(&format!(
        "CREATE ROUTINE LOAD d.j ON t COLUMNS TERMINATED BY \",\", COLUMNS(number, words, id = number * 2, text = concat(words, '!')), \
         PRECEDING FILTER number >= 100, WHERE id < 1000 PROPERTIES (\"max_batch_interval\" = \"1\") \
         FROM KAFKA (\"kafka_broker_list\" = \"{}\", \"kafka_topic\" = \"lines\", \"kafka_partitions\" = \"0\", \"kafka_offsets\" = \"50\") \
         COMMENT \"why\"",
        kafka.address()
    ));
    wait_until("400 rows are there", || client.value("SELECT count(*) FROM t") == "400");
    assert_eq!(client.rows("SELECT min(id), max(id), min(text) FROM t"), ["200|998|row 100!"]);
    let statistic = shown(&mut client, "j", "Statistic");
    assert!(
        statistic.contains("\"totalRows\":950") && statistic.contains("\"unselectedRows\":550"),
        "{statistic}"
    );
    assert_eq!(shown(&mut client, "j", "Comment"), "why");
    let statement = client.rows("SHOW CREATE ROUTINE LOAD FOR j")[0].clone();
    for part in [
        "COLUMNS TERMINATED BY \",\"",
        "`id` = number * 2",
        "\"kafka_offsets\" = \"1000\"",
        "WHERE id < 1000",
    ] {
        assert!(statement.contains(part), "{part} in {statement}");
    }

    // From somewhere else, and from where there is nothing.
    client.ok("PAUSE ROUTINE LOAD FOR j");
    client.ok(
        "ALTER ROUTINE LOAD FOR j FROM KAFKA (\"kafka_partitions\" = \"0\", \"kafka_offsets\" = \"200\")",
    );
    client.ok("RESUME ROUTINE LOAD FOR j");
    wait_until("300 rows came again", || client.value("SELECT count(*) FROM t") == "700");
    client.ok("PAUSE ROUTINE LOAD FOR j");
    client.ok(
        "ALTER ROUTINE LOAD FOR j FROM KAFKA (\"kafka_partitions\" = \"0\", \"kafka_offsets\" = \"5000\")",
    );
    client.ok("RESUME ROUTINE LOAD FOR j");
    wait_until("the job is paused", || shown(&mut client, "j", "State") == "PAUSED");
    let reason = shown(&mut client, "j", "ReasonOfStateChanged");
    assert!(reason.contains("has the offsets 0 to 1000 and not 5000"), "{reason}");

    // Without its table a job ends.
    client.ok(
        "ALTER ROUTINE LOAD FOR j FROM KAFKA (\"kafka_partitions\" = \"0\", \"kafka_offsets\" = \"1000\")",
    );
    client.ok("DROP TABLE t");
    client.ok("RESUME ROUTINE LOAD FOR j");
    wait_until("the job is cancelled", || shown(&mut client, "j", "State") == "CANCELLED");
}

#[test]
fn a_broker_that_asks_for_a_password_is_read_with_and_without_tls_and_no_secret_is_shown() {
    let password = "hush-of-reader";
    let mut kafka = Kafka::start_secured(password);
    kafka.run("create events 2");
    kafka.run("json events 0 500 2");
    let mut server = Server::start();
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("USE d");
    create_table(&mut client, "t");
    let (plain, tls) = kafka.secured_addresses();
    let source = |broker: &str, protocol: &str, password: &str, more: &str| {
        format!(
            "FROM KAFKA (\"kafka_broker_list\" = \"{broker}\", \"kafka_topic\" = \"events\", \
             \"property.kafka_default_offsets\" = \"OFFSET_BEGINNING\", \
             \"property.security.protocol\" = \"{protocol}\", \"property.sasl.mechanism\" = \"PLAIN\", \
             \"property.sasl.username\" = \"reader\", \"property.sasl.password\" = \"{password}\"{more})"
        )
    };
    let create = |source: &str| {
        format!(
            "CREATE ROUTINE LOAD j ON t PROPERTIES (\"format\" = \"json\", \"max_batch_interval\" = \"1\") {source}"
        )
    };
    // Missing or wrong credentials are reported, but not repeated.
    let wrong = client.error(&create(&source(&plain, "SASL_PLAINTEXT", "hush-of-nobody", ""))).message;
    assert!(wrong.contains("Authentication failed") && !wrong.contains("hush"), "{wrong}");
    let unknown = client.error(&create(&source(&plain, "SASL_NOTHING", password, ""))).message;
    assert!(unknown.contains("security.protocol") && !unknown.contains("hush"), "{unknown}");
    let untrusted = client.error(&create(&source(&tls, "SASL_SSL", password, ""))).message;
    assert!(untrusted.contains("certificate verify failed") && !untrusted.contains("hush"), "{untrusted}");

    client.ok(&create(&source(&plain, "SASL_PLAINTEXT", password, "")));
    wait_for(&mut client, 500);
    // The job continues with its new settings, through a crash, and then over TLS.
    server.kill();
    server.start_again();
    client = server.connect_to("d");
    kafka.run("json events 500 1000 2");
    wait_for(&mut client, 1000);
    client.ok("PAUSE ROUTINE LOAD FOR j");
    client.ok(&format!(
        "ALTER ROUTINE LOAD FOR j FROM KAFKA (\"kafka_broker_list\" = \"{tls}\", \
         \"property.security.protocol\" = \"SASL_SSL\", \"property.ssl.ca.pem\" = \"{}\", \
         \"property.ssl.key.password\" = \"hush-of-key\")",
        std::fs::read_to_string(kafka.certificate()).unwrap()
    ));
    client.ok("RESUME ROUTINE LOAD FOR j");
    kafka.run("json events 1000 1500 2");
    wait_for(&mut client, 1500);

    let statement = client.rows("SHOW CREATE ROUTINE LOAD FOR j")[0].clone();
    assert!(
        statement.contains("\"property.security.protocol\" = \"SASL_SSL\"")
            && statement.contains("\"property.sasl.username\" = \"reader\"")
            && statement.contains("property.ssl.ca.pem"),
        "{statement}"
    );
    let custom = shown(&mut client, "j", "CustomProperties");
    assert!(custom.contains("\"sasl.password\":\"******\""), "{custom}");
    let in_schema = client.rows("SELECT * FROM information_schema.routine_load_jobs");
    assert!(in_schema.len() == 1 && in_schema[0].contains("|RUNNING|"), "{in_schema:?}");
    for shown in [
        statement,
        custom,
        in_schema[0].clone(),
        client.rows("SHOW ALL ROUTINE LOAD")[0].clone(),
        server.log(),
    ] {
        assert!(!shown.contains("hush"), "{shown}");
    }
}

#[test]
fn rows_of_a_job_update_some_columns_and_leave_the_others() {
    let mut kafka = Kafka::start();
    kafka.run("create some 1");
    kafka.run("create each 1");
    let server = Server::start();
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("USE d");
    client.ok("CREATE TABLE p (id BIGINT NOT NULL, name VARCHAR(20), score INT DEFAULT \"7\") UNIQUE KEY(id)
        DISTRIBUTED BY HASH(id) BUCKETS 1 PROPERTIES (\"enable_unique_key_skip_bitmap_column\" = \"true\")");
    client.ok("CREATE TABLE plain (id BIGINT NOT NULL, name VARCHAR(20), score INT) UNIQUE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    client.ok("INSERT INTO p VALUES (1, 'a', 10), (2, 'b', 20)");
    let address = kafka.address();
    let create = |job: &str, columns: &str, properties: &str, topic: &str| {
        format!(
            "CREATE ROUTINE LOAD {job} {columns} PROPERTIES (\"format\" = \"json\", \"max_batch_interval\" = \"1\", {properties}) \
             FROM KAFKA (\"kafka_broker_list\" = \"{address}\", \"kafka_topic\" = \"{topic}\", \
             \"property.kafka_default_offsets\" = \"OFFSET_BEGINNING\")"
        )
    };
    for (job, columns, properties, text) in [
        (
            "x ON p",
            "COLUMNS(score)",
            "\"partial_columns\" = \"true\"",
            "Partial update should include all key columns, missing: id",
        ),
        (
            "x ON p",
            "",
            "\"unique_key_update_mode\" = \"some\"",
            "Invalid unique_key_partial_mode SOME, must be one of",
        ),
        (
            "x ON p",
            "COLUMNS(id, name)",
            "\"unique_key_update_mode\" = \"UPDATE_FLEXIBLE_COLUMNS\"",
            "Don't support flexible partial update when 'columns' is specified",
        ),
        (
            "x ON plain",
            "",
            "\"unique_key_update_mode\" = \"UPDATE_FLEXIBLE_COLUMNS\"",
            "Flexible partial update can only support table with skip bitmap hidden column",
        ),
    ] {
        let error = client.error(&create(job, columns, properties, "some"));
        assert!(error.message.contains(text), "{properties}: {error}");
    }
    client.ok(&create("some ON p", "COLUMNS(id, score)", "\"partial_columns\" = \"true\"", "some"));
    kafka.run("say some 0 {\"id\": 1, \"score\": 11}");
    kafka.run("say some 0 {\"id\": 3, \"score\": 31}");
    let rows = "SELECT id, name, score FROM p ORDER BY id";
    wait_until("both rows are there", || client.rows(rows) == ["1|a|11", "2|b|20", "3|NULL|31"]);
    client.ok("STOP ROUTINE LOAD FOR some");
    client.ok(&create("each ON p", "", "\"unique_key_update_mode\" = \"UPDATE_FLEXIBLE_COLUMNS\"", "each"));
    kafka.run("say each 0 {\"id\": 1, \"name\": \"aa\"}");
    kafka.run("say each 0 {\"id\": 2, \"__DORIS_DELETE_SIGN__\": 1}");
    kafka.run("say each 0 {\"id\": 3, \"score\": 33}");
    wait_until("each row has changed", || client.rows(rows) == ["1|aa|11", "3|NULL|33"]);
    client.ok("STOP ROUTINE LOAD FOR each");
    kafka.run("create strict 1");
    client.ok(&create(
        "strict ON p",
        "COLUMNS(id, score)",
        "\"partial_columns\" = \"true\", \"partial_update_new_key_behavior\" = \"ERROR\"",
        "strict",
    ));
    kafka.run("say strict 0 {\"id\": 9, \"score\": 1}");
    wait_until("the job is paused", || shown(&mut client, "strict", "State") == "PAUSED");
    let reason = shown(&mut client, "strict", "ReasonOfStateChanged");
    assert!(reason.contains("Row with key=[9] is not in table."), "{reason}");
}

#[test]
fn messages_delete_and_order_rows_of_partitions() {
    let mut kafka = Kafka::start();
    kafka.run("create changes 1");
    let server = Server::start();
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("USE d");
    client.ok("CREATE TABLE t (id INT NOT NULL, day DATE NOT NULL, text VARCHAR(20)) UNIQUE KEY(id, day)
         PARTITION BY RANGE(day) (FROM ('2024-01-01') TO ('2024-04-01') INTERVAL 1 MONTH)
         DISTRIBUTED BY HASH(id) BUCKETS 1 PROPERTIES (\"function_column.sequence_type\" = \"bigint\")");
    let create = |rest: &str| {
        format!(
            "CREATE ROUTINE LOAD j ON t {rest} PROPERTIES (\"format\" = \"json\", \"max_batch_interval\" = \"1\",
             \"max_error_number\" = \"1\") {}",
            kafka.source("changes")
        )
    };
    for (rest, text) in [
        ("WITH MERGE", "Excepted DELETE ON clause when merge type is MERGE."),
        ("PARTITION(p9), ORDER BY n", "partition p9 is not found in table t"),
        ("COLUMNS(id, day, text)", "need to specify the sequence column"),
    ] {
        let refused = client.error(&create(rest)).message;
        assert!(refused.contains(text), "{rest}: {refused}");
    }
    client.ok(&create(
        "WITH MERGE COLUMNS(id, day, text, op, n), PARTITION(p_202401, p_202402), DELETE ON op = 'd', ORDER BY n",
    ));
    for message in [
        "{\"id\":1,\"day\":\"2024-01-01\",\"text\":\"new\",\"op\":\"u\",\"n\":5}",
        // Older, although it arrives later.
        "{\"id\":1,\"day\":\"2024-01-01\",\"text\":\"old\",\"op\":\"u\",\"n\":4}",
        "{\"id\":2,\"day\":\"2024-02-01\",\"text\":\"gone\",\"op\":\"u\",\"n\":1}",
        "{\"id\":2,\"day\":\"2024-02-01\",\"text\":\"gone\",\"op\":\"d\",\"n\":2}",
        // In no partition that the job names.
        "{\"id\":3,\"day\":\"2024-03-01\",\"text\":\"march\",\"op\":\"u\",\"n\":1}",
        "{\"id\":4,\"day\":\"2024-02-02\",\"text\":\"last\",\"op\":\"u\",\"n\":1}",
    ] {
        kafka.run(&format!("say changes 0 {message}"));
    }
    wait_until("all are read", || shown(&mut client, "j", "Progress") == "{\"0\":\"5\"}");
    assert_eq!(
        client.rows("SELECT id, day, text FROM t ORDER BY id"),
        ["1|2024-01-01|new", "4|2024-02-02|last"]
    );
    assert!(shown(&mut client, "j", "Statistic").contains("\"errorRows\":1"));
    let properties = shown(&mut client, "j", "JobProperties");
    for part in ["\"merge_type\":\"MERGE\"", "\"partitions\":\"p_202401,p_202402\"", "\"sequence_col\":\"n\""]
    {
        assert!(properties.contains(part), "{part} in {properties}");
    }
    let statement = client.rows("SHOW CREATE ROUTINE LOAD FOR j")[0].clone();
    for part in ["WITH MERGE", "PARTITION(`p_202401`, `p_202402`)", "DELETE ON op = 'd'", "ORDER BY `n`"] {
        assert!(statement.contains(part), "{part} in {statement}");
    }
}
