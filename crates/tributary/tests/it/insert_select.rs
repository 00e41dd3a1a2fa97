//! INSERT INTO … SELECT of many rows: the query's parts write data files side by side, and are one transaction.

use crate::support::{HttpServer, Page, Server, wait_until};
use std::path::Path;
use walkdir::WalkDir;

const ROWS: u64 = 40_000;

/// A file of rows whose keys are spread over all of them.
fn rows(file: u64) -> String {
    let row = |number: u64| {
        let id = (file * ROWS + number) * 7919 % (4 * ROWS);
        format!("{id},name {id} of {file},{}\n", id % 1000)
    };
    (0..ROWS).map(row).collect()
}

/// Data files, finished or not.
fn data_files(server: &Server) -> usize {
    let all = WalkDir::new(server.data().join("tables")).into_iter();
    let without_logs = all.filter_entry(|entry| entry.file_name() != "_delta_log");
    without_logs.flatten().filter(|entry| entry.file_type().is_file()).count()
}

/// A server on which a load of a few hundred kilobytes is a large one, and four files for it to read.
fn server(files: &Path) -> Server {
    for file in 0..4 {
        std::fs::write(files.join(format!("{file}.csv")), rows(file)).expect("written");
    }
    let files = files.display().to_string();
    Server::with_settings(&[("mysql_load_server_secure_path", &files), ("large_load_bytes", "262144")])
}

fn local(files: &str) -> String {
    format!("LOCAL(\"file_path\" = \"{files}\", \"column_separator\" = \",\")")
}

#[test]
fn parts_of_a_large_query_are_one_transaction_in_sorted_files() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = server(directory.path());
    let mut db = server.database().with_dt("");
    let insert = format!("INSERT INTO dt WITH LABEL large SELECT * FROM {}", local("*.csv"));
    let answer = db.client.ok(&insert);
    assert_eq!((answer.affected_rows, answer.info_value("status")), (4 * ROWS, "VISIBLE"));
    assert!(data_files(&server) >= 2, "{}", data_files(&server));
    let sums = format!("{}|{}", 4 * ROWS, (0..4 * ROWS).sum::<u64>());
    assert_eq!(db.client.rows("SELECT COUNT(DISTINCT id), SUM(id) FROM dt"), std::slice::from_ref(&sums));
    let known = db.client.error(&insert).message;
    assert!(known.contains("large"), "{known}");

    // Again from the table itself, and after a restart.
    let answer = db.client.ok("INSERT INTO dt SELECT id + 1000000, name, score FROM dt");
    assert_eq!(answer.affected_rows, 4 * ROWS);
    let mut server = server;
    server.kill();
    server.start_again();
    let mut client = server.connect_to(&db.name);
    assert_eq!(client.rows("SELECT COUNT(*), SUM(id) FROM dt WHERE id < 1000000"), [sums]);
    assert_eq!(client.value("SELECT COUNT(*) FROM dt"), (8 * ROWS).to_string());
}

#[test]
fn a_table_with_unique_keys_has_one_row_for_each_key_of_all_parts() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = server(directory.path());
    let mut db = server.database();
    db.client.ok("CREATE TABLE u (id INT NOT NULL, name VARCHAR(30), score INT) UNIQUE KEY(id)
         DISTRIBUTED BY HASH(id) BUCKETS 1");
    for round in 1..=2 {
        let insert = format!("INSERT INTO u SELECT c1 % 1000, c2, {round} FROM {}", local("*.csv"));
        assert_eq!(db.client.ok(&insert).affected_rows, 4 * ROWS);
    }
    assert_eq!(db.client.rows("SELECT COUNT(*), COUNT(DISTINCT id), SUM(score) FROM u"), ["1000|1000|2000"]);
    // Ordered rows are loaded in their order.
    let insert =
        format!("INSERT INTO u SELECT c1 % 1000, c2, c1 FROM {} ORDER BY c1 + 0", local("{0,1,2,3}.csv"));
    db.client.ok(&insert);
    let last = (4 * ROWS - 1000..4 * ROWS).sum::<u64>();
    assert_eq!(db.client.rows("SELECT COUNT(*), SUM(score) FROM u"), [format!("1000|{last}")]);
}

#[test]
fn what_is_refused_or_killed_leaves_no_rows_and_no_files() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = server(directory.path());
    let mut db = server.database().with_dt("");
    std::fs::write(directory.path().join("bad.csv"), "1,a,10\n2,b,many\n").expect("written");
    let insert = format!("INSERT INTO dt WITH LABEL l SELECT * FROM {}", local("{0,1,2,bad}.csv"));
    let refused = db.client.error(&insert).message;
    assert!(refused.contains("Insert has filtered data in strict mode"), "{refused}");
    assert!(refused.contains("many"), "{refused}");
    assert_eq!(data_files(&server), 0);
    let broken = local("{0,1}.csv").replace(')', ", \"compress_type\" = \"gz\")");
    assert!(
        db.client.error(&format!("INSERT INTO dt SELECT * FROM {broken}")).message.contains("broken gzip")
    );
    db.client.ok("SET enable_insert_strict = false");
    db.client.ok("SET insert_max_filter_ratio = 0.1");
    let answer = db.client.ok(&format!("INSERT INTO dt SELECT * FROM {}", local("{3,bad}.csv")));
    assert_eq!(answer.affected_rows, ROWS + 2, "what is no number is NULL");
    let before = data_files(&server);

    let pages = [
        ("/a.csv", Page::Whole(rows(0).into_bytes())),
        ("/hanging.csv", Page::Hanging(rows(1).into_bytes())),
    ];
    let web = HttpServer::start(&pages);
    let url = format!("{}/{{a,hanging}}.csv", web.url);
    let id = db.client.value("SELECT connection_id()");
    db.client.send(&format!(
        "INSERT INTO dt WITH LABEL l SELECT * FROM HTTP(\"uri\" = \"{url}\", \"column_separator\" = \",\")"
    ));
    let mut other = server.connect_to(&db.name);
    wait_until("both files are read", || web.requests() >= 2);
    other.ok(&format!("KILL QUERY {id}"));
    assert_eq!(db.client.answered_error().number, 1317);
    // The parts that wrote them end one after the other.
    wait_until("its data files are deleted", || data_files(&server) == before);
    assert_eq!(db.client.value("SELECT COUNT(*) FROM dt"), (ROWS + 2).to_string());
    let answer = db.client.ok(&format!("INSERT INTO dt WITH LABEL l SELECT * FROM {}", local("0.csv")));
    assert_eq!((answer.affected_rows, answer.label()), (ROWS, "l"), "the label is free again");
}
