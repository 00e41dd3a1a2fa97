//! `node.json` in the state directory: who the server is, and which logs it has.

use crate::damage::refusal;
use crate::support::Server;
use std::path::{Path, PathBuf};

/// A stopped server with one row, and the path of its file.
fn stopped() -> (Server, PathBuf) {
    let mut server = Server::start();
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("CREATE TABLE d.t (id INT NOT NULL) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    client.ok("INSERT INTO d.t WITH LABEL once VALUES (1)");
    assert!(server.stop().success());
    let file = server.data().join("node.json");
    (server, file)
}

/// The server starts, has its row and knows its label.
fn assert_whole(server: &mut Server) {
    server.start_again();
    let mut client = server.connect_to("d");
    assert_eq!(client.value("SELECT count(*) FROM t"), "1");
    let error = client.error("INSERT INTO t WITH LABEL once VALUES (1)");
    assert!(error.message.contains("has already been used"), "{error}");
    drop(client);
    assert!(server.stop().success());
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("the file")
}

#[test]
fn a_node_file_that_is_missing_is_refused_and_written_anew_as_the_error_says() {
    let (mut server, file) = stopped();
    let whole = read(&file);
    std::fs::remove_file(&file).expect("removed");
    let error = refusal(&server.data());
    assert!(error.contains(&format!("the file {} is missing", file.display())), "{error}");
    assert!(!file.exists(), "nothing was changed");
    let line = error.split('`').nth(1).expect("the line to write").to_owned();
    std::fs::write(&file, &line).expect("written");
    assert_whole(&mut server);
    let id = |text: &str| text.split('"').find(|part| part.len() == 32).map(str::to_owned);
    assert_eq!(id(&read(&file)), id(&whole), "it is the same server");
    std::fs::write(&file, &whole).expect("restored");
    assert_whole(&mut server);
}

#[test]
fn a_node_file_that_is_broken_is_refused_and_not_touched() {
    let (mut server, file) = stopped();
    let whole = read(&file);
    for broken in ["", &whole[..whole.len() / 2], "no JSON"] {
        std::fs::write(&file, broken).expect("written");
        let error = refusal(&server.data());
        assert!(error.contains(&file.display().to_string()) && error.contains("can't be read"), "{error}");
        assert_eq!(read(&file), broken);
    }
    std::fs::write(&file, &whole).expect("restored");
    assert_whole(&mut server);
}

#[test]
fn a_node_file_of_another_server_is_refused() {
    let (mut server, file) = stopped();
    let (_other, foreign) = stopped();
    let whole = read(&file);
    std::fs::copy(&foreign, &file).expect("copied");
    let error = refusal(&server.data());
    assert!(error.contains("comes from another storage root"), "{error}");
    std::fs::write(&file, &whole).expect("restored");
    assert_whole(&mut server);
}

#[test]
fn a_new_data_directory_whose_first_start_ended_before_the_catalog_opens() {
    let (_first, file) = stopped();
    let text = read(&file);
    let begin = text.find("\"wal_dirs\"").expect("the list");
    let new = format!("{}\"wal_dirs\": []}}", &text[..begin]);
    let server = Server::on(&[], |directory| {
        let data = directory.join("data");
        std::fs::create_dir(&data).expect("a directory");
        std::fs::write(data.join("node.json"), &new).expect("written");
    });
    assert_eq!(server.connect().value("SELECT 1"), "1");
    assert!(read(&server.data().join("node.json")).starts_with(&text[..begin]), "the identity stays");
}

#[test]
fn a_start_without_its_log_is_refused_and_creates_no_directory_for_one() {
    let (mut server, _) = stopped();
    let (log, aside) = (server.data().join("wal"), server.data().join("aside"));
    std::fs::rename(&log, &aside).expect("moved");
    let error = refusal(&server.data());
    assert!(error.contains("is gone"), "{error}");
    assert!(!log.exists(), "nothing was changed");
    std::fs::rename(&aside, &log).expect("moved back");
    assert_whole(&mut server);
}
