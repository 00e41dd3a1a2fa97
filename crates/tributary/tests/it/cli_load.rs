//! `tributary load`: each row once, whatever happens to the loader, the server or an answer.

use crate::support::server::program;
use crate::support::{Server, wait_until};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

const ROWS: u64 = 20_000;

/// Writes a file with a line of names and rows whose texts have quotes, separators and line ends.
fn write_rows(path: &Path) {
    let mut text = "id,name,score\n".to_owned();
    for id in 1..=ROWS {
        match id % 3 {
            0 => writeln!(text, "{id},\"a \"\"b\"\",\nc\",{id}"),
            _ => writeln!(text, "{id},plain,{id}"),
        }
        .expect("a string takes all");
    }
    std::fs::write(path, text).expect("written");
}

fn load(port: u16, file: &Path, options: &[&str]) -> Command {
    let mut command = program();
    command.args(["load", "--table", "db.dt", "--url", &format!("http://127.0.0.1:{port}")]);
    command.args(options).arg(file).stdin(Stdio::null());
    command
}

fn run(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = command.output().expect("the program runs");
    (status.code(), String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr))
}

fn assert_each_row_is_there_once(server: &Server) {
    let found =
        server.connect_to("db").rows("SELECT COUNT(*), COUNT(DISTINCT id), SUM(score), SUM(id) FROM dt");
    let sum = ROWS * (ROWS + 1) / 2;
    assert_eq!(found, [format!("{ROWS}|{ROWS}|{sum}|{sum}")]);
}

#[test]
fn a_file_is_loaded_once_however_often_the_command_runs() {
    let server = Server::start().with_manual_table();
    let file = server.scratch().join("rows.csv");
    write_rows(&file);
    for expected in [format!("{ROWS} rows loaded, 0 rejected"), "All of it was loaded before".to_owned()] {
        let (code, text) = run(&mut load(server.http_port(), &file, &["--chunk-size", "20k"]));
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains(&expected), "{text}");
        assert_each_row_is_there_once(&server);
    }
    std::fs::write(&file, "1,a,1\n").expect("written");
    let (code, text) = run(&mut load(server.http_port(), &file, &[]));
    assert_eq!(code, Some(4), "{text}");
    assert!(text.contains("has changed since the load began"), "{text}");
}

/// A loader, which is killed when it is dropped.
struct Loader(Child);

impl Drop for Loader {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn stored_chunks(journal: &Path) -> usize {
    let text = std::fs::read_to_string(journal).unwrap_or_default();
    text.lines().filter(|line| line.starts_with("{\"done\"")).count()
}

#[test]
fn a_load_goes_on_after_the_loader_and_the_server_were_killed() {
    for mode in ["off", "async"] {
        let mut server = Server::start().with_manual_table();
        let (file, journal) = (server.scratch().join("rows.csv"), server.scratch().join("journal"));
        write_rows(&file);
        let journal_option = journal.to_str().expect("a name in UTF-8").to_owned();
        let options = ["--chunk-size", "8k", "--group-commit", mode, "--journal", &journal_option];
        for turn in 1..=4 {
            let mut slow = load(server.http_port(), &file, &options);
            slow.args(["--rate", "80k", "--parallel", "2"]).stdout(Stdio::null()).stderr(Stdio::null());
            let loader = Loader(slow.spawn().expect("the program runs"));
            wait_until("chunks are stored", || stored_chunks(&journal) >= turn * 5);
            if turn % 2 == 0 {
                server.kill();
                drop(loader);
                server.start_again();
            }
        }
        let before = stored_chunks(&journal);
        let (code, text) = run(&mut load(server.http_port(), &file, &options));
        assert_eq!(code, Some(0), "{mode}: {text}");
        assert!(
            before >= 20 && stored_chunks(&journal) > before,
            "{mode}: {before} chunks were stored before"
        );
        server.connect().ok("SYNC");
        assert_each_row_is_there_once(&server);
    }
}

/// Passes bytes on to a server, and loses the first answers of loads.
fn lose_answers(port: u16, count: usize) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let own = listener.local_addr().expect("bound").port();
    let lost = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let lost = std::sync::Arc::clone(&lost);
            std::thread::spawn(move || {
                let Ok(server) = std::net::TcpStream::connect(("127.0.0.1", port)) else { return };
                let (mut from, mut to) =
                    (client.try_clone().expect("cloned"), server.try_clone().expect("cloned"));
                let up = std::thread::spawn(move || drop(std::io::copy(&mut from, &mut to)));
                let (mut from, mut to) = (server, client);
                let mut buffer = [0; 4096];
                while let Ok(read @ 1..) = from.read(&mut buffer) {
                    let text = String::from_utf8_lossy(&buffer[..read]);
                    let is_load = text.contains("\"Status\"");
                    if is_load && lost.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < count {
                        break;
                    }
                    if to.write_all(&buffer[..read]).is_err() {
                        break;
                    }
                }
                drop(to.shutdown(std::net::Shutdown::Both));
                drop(from.shutdown(std::net::Shutdown::Both));
                drop(up.join());
            });
        }
    });
    own
}

#[test]
fn a_chunk_whose_answer_is_lost_is_not_stored_twice() {
    let server = Server::start().with_manual_table();
    let file = server.scratch().join("rows.csv");
    write_rows(&file);
    let port = lose_answers(server.http_port(), 5);
    let (code, text) = run(&mut load(port, &file, &["--chunk-size", "30k"]));
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("The rows of 5 further chunks are stored"), "{text}");
    assert_each_row_is_there_once(&server);
}

#[test]
fn exit_codes_tell_how_a_load_ended() {
    let server = Server::start().with_manual_table();
    let directory = server.scratch();
    let (bad, reasons) = (directory.join("bad.csv"), directory.join("reasons"));
    std::fs::write(&bad, "1,a,1\nx,b,2\n").expect("written");
    let reasons_option = reasons.to_str().expect("a name in UTF-8").to_owned();
    let strict = ["-H", "strict_mode:true", "--first-line", "row", "--rejected", &reasons_option];
    let (code, text) = run(&mut load(server.http_port(), &bad, &strict));
    assert_eq!(code, Some(2), "{text}");
    let reason = std::fs::read_to_string(&reasons).expect("reasons");
    assert!(reason.contains("column(id)"), "{reason}");
    let more = [&strict[..], &["--max-filter-ratio", "0.5"]].concat();
    let (code, text) = run(&mut load(server.http_port(), &bad, &more));
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("1 rows loaded, 1 rejected"), "{text}");

    let away = TcpListener::bind(("127.0.0.1", 0)).expect("a free port").local_addr().expect("bound").port();
    let (code, text) = run(&mut load(away, &bad, &["--restart", "--give-up-after", "1s"]));
    assert_eq!(code, Some(3), "{text}");
    let mut other = load(server.http_port(), &bad, &["--restart", "--first-line", "row", "--user", "nobody"]);
    assert_eq!(run(&mut other).0, Some(4));
    assert_eq!(run(&mut load(server.http_port(), &directory.join("none.csv"), &[])).0, Some(5));
    assert_eq!(run(&mut load(server.http_port(), &bad, &["--rate", "fast"])).0, Some(1));
}

#[test]
fn formats_and_packings_are_found() {
    let server = Server::start().with_manual_table();
    let directory = server.scratch();
    let packed = |text: &str| zstd::encode_all(text.as_bytes(), 1).expect("packed");
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(b"{\"id\":2,\"name\":\"jsonl.gz\"}\n").expect("packed");
    let files = [
        ("1.json", b"[ {\"id\":1, \"name\":\"array\"} ]\n".to_vec()),
        ("2.jsonl.gz", gz.finish().expect("packed")),
        ("3.tsv.zst", packed("score\tid\tname\n3\t3\ttsv.zst\n")),
        ("4.csv", b"\xef\xbb\xbfid;name;score\n4;\"bom;\";4\n".to_vec()),
    ];
    for (name, bytes) in files {
        let path = directory.join(name);
        std::fs::write(&path, bytes).expect("written");
        let (code, text) = run(&mut load(server.http_port(), &path, &[]));
        assert_eq!(code, Some(0), "{name}: {text}");
    }
    let mut from_input = load(server.http_port(), Path::new("-"), &["--separator", "|"]);
    let mut child = from_input.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the program runs");
    child.stdin.take().expect("piped").write_all(b"5|input|5\n").expect("it reads");
    assert!(child.wait().expect("it ends").success());
    assert_eq!(
        server.connect_to("db").rows("SELECT id, name, score FROM dt ORDER BY id"),
        ["1|array|NULL", "2|jsonl.gz|NULL", "3|tsv.zst|3", "4|bom;|4", "5|input|5"]
    );
}

#[test]
fn a_dry_run_shows_the_guess_and_loads_nothing() {
    let server = Server::start().with_manual_table();
    let file = server.scratch().join("rows.csv");
    write_rows(&file);
    let (code, text) = run(&mut load(server.http_port(), &file, &["--dry-run", "--chunk-size", "100k"]));
    assert_eq!(code, Some(0), "{text}");
    for part in ["--separator ','", "--first-line names", "columns: id, name, score", "| 1 | plain | 1"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(server.connect_to("db").value("SELECT COUNT(*) FROM dt"), "0");
}

#[test]
fn a_chunk_that_the_server_may_have_forgotten_is_sent_again_only_by_force() {
    let server = Server::start().with_manual_table();
    let (file, journal) = (server.scratch().join("rows.csv"), server.scratch().join("journal"));
    write_rows(&file);
    let options = ["--journal", journal.to_str().expect("a name in UTF-8")];
    assert_eq!(run(&mut load(server.http_port(), &file, &options)).0, Some(0));
    // A journal of long ago: the chunk was sent, its answer never came, and the server knows nothing of its name.
    let text = std::fs::read_to_string(&journal).expect("a journal");
    let lines = text.lines().filter(|line| !line.starts_with("{\"done\""));
    let old: Vec<_> = lines
        .map(|line| match line.starts_with("{\"sent\"") {
            true => "{\"sent\":0,\"at\":1}".to_owned(),
            false => line.replace("\"name\":\"tributary_", "\"name\":\"forgotten_"),
        })
        .collect();
    std::fs::write(&journal, old.join("\n") + "\n").expect("written");
    let (code, text) = run(&mut load(server.http_port(), &file, &options));
    assert_eq!(code, Some(4), "{text}");
    assert!(text.contains("no longer remembers its name forgotten_"), "{text}");
    assert_each_row_is_there_once(&server);
    let (code, text) = run(&mut load(server.http_port(), &file, &[&options[..], &["--force"]].concat()));
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(server.connect_to("db").value("SELECT COUNT(*) FROM dt"), (2 * ROWS).to_string());
}
