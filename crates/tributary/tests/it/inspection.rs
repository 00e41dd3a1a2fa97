//! Information about loads, and cleaning of labels.

use crate::support::{Client, Curl, Server, wait_until};

fn load(server: &Server, db: &str, label: &str, body: &str) -> Curl {
    Curl::stream_load(server, db, "dt")
        .header("column_separator:,")
        .header(&format!("label:{label}"))
        .header("strict_mode:true")
        .body(body)
}

/// Columns of the rows of a statement.
fn columns(client: &mut Client, sql: &str, names: &[&str]) -> Vec<String> {
    let table = client.table(sql);
    let at = |name: &&str| table.columns.iter().position(|known| known == *name).expect("it has the column");
    let places: Vec<usize> = names.iter().map(at).collect();
    let row = |row: &Vec<Option<String>>| {
        let cells = places.iter().map(|&at| row[at].clone().unwrap_or_else(|| "NULL".to_owned()));
        cells.collect::<Vec<_>>().join("|")
    };
    table.rows.iter().map(row).collect()
}

#[test]
fn stream_loads_are_shown_as_they_were_answered() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let good = load(&server, &db.name, "good", "1,a,1\n2,b,2\n").header("comment:ours").load();
    assert_eq!(good.status(), "Success", "{good:?}");
    let bad = load(&server, &db.name, "bad", "3,c,x\n4,d,4\n").load();
    assert_eq!(bad.status(), "Fail", "{bad:?}");
    let used = load(&server, &db.name, "good", "1,a,1\n").load();
    assert_eq!(used.status(), "Label Already Exists", "{used:?}");
    let refused = load(&server, &db.name, "refused", "1,a,1\n").header("merge_type:none").load();
    assert_eq!(refused.status(), "Fail", "{refused:?}");
    let (name, client) = (db.name.clone(), &mut db.client);
    let shown = client.table("SHOW STREAM LOAD");
    assert_eq!(
        shown.columns.join(" "),
        "Label Db Table ClientIp Status Message Url TotalRows LoadedRows FilteredRows UnselectedRows LoadBytes StartTime \
         FinishTime User Comment FirstErrorMsg"
    );
    let names = [
        "Label",
        "Db",
        "Table",
        "ClientIp",
        "Status",
        "TotalRows",
        "LoadedRows",
        "FilteredRows",
        "LoadBytes",
        "User",
        "Comment",
    ];
    assert_eq!(
        columns(client, "SHOW STREAM LOAD", &names),
        [
            format!("good|{name}|dt|127.0.0.1|Success|2|2|0|12|root|ours"),
            format!("bad|{name}|dt|127.0.0.1|Fail|2|0|1|12|root|"),
            format!("good|{name}|dt|127.0.0.1|Label Already Exists|0|0|0|0|root|"),
            format!("refused|{name}|dt|127.0.0.1|Fail|0|0|0|0|root|"),
        ]
    );
    let urls = columns(
        client,
        "SHOW STREAM LOAD WHERE STATUS = 'fail' ORDER BY Label LIMIT 1",
        &["Label", "Url", "FirstErrorMsg"],
    );
    let url = bad.get("ErrorURL");
    assert!(urls[0].starts_with(&format!("bad|{url}|")) && !urls[0].ends_with("|N/A"), "{urls:?}");
    assert_eq!(columns(client, "SHOW STREAM LOAD WHERE LABEL LIKE 'ref%'", &["Url"]), ["N/A"]);

    // The reasons for rejected rows, by label and by address.
    let by_label = client.rows("SHOW LOAD WARNINGS WHERE LABEL = 'bad'");
    assert!(by_label.len() == 1 && by_label[0].starts_with("-1|bad|Reason: "), "{by_label:?}");
    let by_url = client.rows(&format!("SHOW LOAD WARNINGS ON '{url}' LIMIT 1"));
    assert!(by_url[0].starts_with("-1|NULL|Reason: "), "{by_url:?}");
    client.ok("SET enable_insert_strict = false");
    client.ok("SET insert_max_filter_ratio = 1");
    client.ok(&format!("INSERT INTO {name}.dt WITH LABEL inserted VALUES (NULL, 'x', 1), (7, 'y', 2)"));
    let inserted = client.rows(&format!("SHOW LOAD WARNINGS FROM {name} WHERE LABEL = 'inserted'"));
    assert!(inserted.len() == 1 && inserted[0].starts_with("-1|inserted|Reason: "), "{inserted:?}");
    for (sql, text) in [
        ("SHOW LOAD WARNINGS WHERE LABEL = 'good'", "no row of it was rejected"),
        (
            "SHOW LOAD WARNINGS ON 'http://127.0.0.1/api/_load_error_log?file=__shard_0/error_log_insert_stmt_1-1_1_1'",
            "no error log",
        ),
        ("SHOW LOAD WARNINGS ON '/etc/passwd'", "is no ErrorURL"),
        ("SHOW LOAD WARNINGS", "LABEL"),
    ] {
        let error = client.error(sql).message;
        assert!(error.contains(text), "{sql}: {error}");
    }
    let info =
        Curl::get(&format!("http://127.0.0.1:{}/api/{name}/_load_info?label=bad", server.http_port())).text();
    assert!(info.contains(&url), "{info}");
}

#[test]
fn transactions_are_found_by_patterns_of_labels_and_by_status() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    for label in ["conn_1", "conn_2", "other"] {
        assert_eq!(load(&server, &db.name, label, "1,a,1\n").load().status(), "Success");
    }
    assert_eq!(load(&server, &db.name, "bad", "x\n").load().status(), "Fail");
    let client = &mut db.client;
    let shown = |client: &mut Client, rest: &str| {
        columns(client, &format!("SHOW TRANSACTION WHERE {rest}"), &["Label", "TransactionStatus"])
    };
    assert_eq!(shown(client, "LABEL LIKE 'conn%'"), ["conn_2|VISIBLE", "conn_1|VISIBLE"]);
    assert_eq!(shown(client, "STATUS = 'visible'").len(), 3);
    assert_eq!(shown(client, "status = 'ABORTED'"), ["bad|ABORTED"]);
    assert_eq!(shown(client, "LABEL LIKE 'none%'"), Vec::<String>::new());
    for (rest, text) in
        [(" WHERE STATUS = 'done'", "status ="), ("", "WHERE"), (" WHERE LABEL = 'none'", "does not exist")]
    {
        let error = client.error(&format!("SHOW TRANSACTION{rest}")).message;
        assert!(error.contains(text), "{rest}: {error}");
    }
}

#[test]
fn labels_that_are_cleaned_are_free_also_after_a_crash() {
    for flushed in [false, true] {
        let mut server = Server::start();
        let mut db = server.database().with_dt("");
        let name = db.name.clone();
        for label in ["a", "b", "c"] {
            assert_eq!(load(&server, &name, label, "1,a,1\n").load().status(), "Success");
        }
        if flushed {
            // A stop flushes, and the log has nothing of the loads any more.
            server.stop();
            server.start_again();
            db.client = server.connect_to(&name);
        }
        let waiting = load(&server, &name, "waiting", "1,a,1\n").header("two_phase_commit:true").load();
        assert_eq!(waiting.status(), "Success");
        let client = &mut db.client;
        client.ok(&format!("CLEAN LABEL a FROM {name}"));
        client.ok(&format!("CLEAN LABEL a FROM {name}"));
        client.ok("CLEAN LABEL unknown");
        let error = client.error(&format!("CLEAN LABEL waiting FROM {name}")).message;
        assert!(error.contains("which is PRECOMMITTED and has not ended"), "{error}");
        let error = client.error("CLEAN LABEL a FROM nowhere").message;
        assert!(error.contains("nowhere"), "{error}");
        for again in [false, true] {
            if again {
                server.kill();
                server.start_again();
            }
            let used = load(&server, &name, "b", "1,a,1\n").load();
            assert_eq!(used.status(), "Label Already Exists", "{flushed} {again} {used:?}");
            if again {
                assert_eq!(load(&server, &name, "a", "2,b,2\n").load().status(), "Success", "{flushed}");
            }
        }
        let mut client = server.connect_to(&name);
        assert_eq!(client.value("SELECT COUNT(*) FROM dt"), "4");
        let used = load(&server, &name, "a", "2,b,2\n").load();
        assert_eq!(used.status(), "Label Already Exists", "it was used again: {used:?}");
        client.ok(&format!("CLEAN LABEL FROM {name}"));
        server.kill();
        server.start_again();
        for label in ["a", "b", "c"] {
            assert_eq!(load(&server, &name, label, "3,c,3\n").load().status(), "Success", "{label}");
        }
        let used = load(&server, &name, "waiting", "1,a,1\n").load();
        assert_eq!(used.status(), "Label Already Exists", "it waits still: {used:?}");
    }
}

#[test]
fn jobs_are_in_information_schema_and_are_cancelled_over_http() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("a.csv"), "1,a,1\n2,b\n").expect("written");
    let files = directory.path().display().to_string();
    let server = Server::with_settings(&[("mysql_load_server_secure_path", &files)]);
    let mut db = server.database().with_dt("");
    let (name, client) = (db.name.clone(), &mut db.client);
    client.ok("LOAD LABEL files (DATA INFILE('a.csv') INTO TABLE dt COLUMNS TERMINATED BY ',') WITH LOCAL
         PROPERTIES ('max_filter_ratio' = '1', 'strict_mode' = 'true')");
    let of_label = |label: &str| {
        format!("SELECT state, db_name, user FROM information_schema.loads WHERE label = '{label}'")
    };
    wait_until("the job has ended", || client.rows(&of_label("files")) == [format!("FINISHED|{name}|root")]);
    assert_eq!(client.rows("SELECT label, type FROM information_schema.load_jobs"), ["files|BROKER"]);
    let reasons = client.rows("SHOW LOAD WARNINGS WHERE LABEL = 'files'");
    assert!(reasons.len() == 1 && reasons[0].contains("a.csv"), "{reasons:?}");
    // A store that takes connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = silent.local_addr().expect("an address");
    client.ok(&format!(
        "LOAD LABEL silent (DATA INFILE('s3://b/x*') INTO TABLE dt) WITH S3 ('s3.endpoint' = 'http://{endpoint}', \
         's3.access_key' = 'key', 's3.secret_key' = 'hush')"
    ));
    let create = client.rows("SHOW CREATE LOAD FOR silent");
    assert!(create[0].starts_with("silent|LOAD LABEL silent (DATA INFILE('s3://b/x*')"), "{create:?}");
    assert!(create[0].contains("'s3.secret_key' = '***'") && !create[0].contains("hush"), "{create:?}");
    let error = client.error("SHOW CREATE LOAD FOR none").message;
    assert!(error.contains("there is no job of LOAD LABEL [none]"), "{error}");
    let cancel = |label: &str| {
        let url = format!("http://127.0.0.1:{}/api/{name}/_cancel?label={label}", server.http_port());
        Curl::get(&url).argument("-X").argument("POST").text()
    };
    assert!(cancel("silent").contains("\"code\":0"));
    assert_eq!(client.rows(&of_label("silent")), [format!("CANCELLED|{name}|root")]);
    let waiting = load(&server, &name, "waiting", "1,a,1\n").header("two_phase_commit:true").load();
    assert_eq!(waiting.status(), "Success");
    assert!(cancel("waiting").contains("\"code\":0"));
    let aborted =
        columns(client, "SHOW TRANSACTION WHERE LABEL = 'waiting'", &["TransactionStatus", "Reason"]);
    assert_eq!(aborted, ["ABORTED|user cancel"]);
    for (label, text) in
        [("files", "is already visible"), ("none", "does not exist"), ("waiting", "is already aborted")]
    {
        let refused = cancel(label);
        assert!(refused.contains(text) && refused.contains("\"code\":1"), "{label}: {refused}");
    }
    assert!(client.rows("SELECT * FROM information_schema.routine_load_jobs").is_empty());
}
