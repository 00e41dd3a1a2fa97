//! Floods by clients that have not logged in: others are served, and the log stays small.

use crate::support::{Client, Curl, Server};
use std::io::Write;
use std::net::TcpStream;
use std::time::Instant;

#[test]
fn clients_that_only_begin_a_request_keep_nobody_from_loading_or_probing() {
    let settings = [("http_max_connections", "50"), ("http_max_connections_per_address", "50")];
    let server = Server::with_settings(&settings).with_manual_table();
    let halves: Vec<TcpStream> = (0..300)
        .map(|_| {
            let mut half = TcpStream::connect(("127.0.0.1", server.http_port())).expect("it listens");
            half.write_all(b"GET / HTTP/1.1\r\n").expect("sent");
            half
        })
        .collect();
    for path in ["/api/health", "/api/ready", "/metrics"] {
        let url = format!("http://127.0.0.1:{}{path}", server.http_port());
        assert_eq!(Curl::anonymous(&url).status_and_text().0, 200, "{path}");
    }
    Curl::stream_load(&server, "db", "dt").header("column_separator:,").body("1,a,1\n").load().success();
    assert_eq!(server.connect_to("db").value("SELECT count(*) FROM dt"), "1");
    assert!(server.metric("tributary_clients_refused_total{kind=\"http_made_room\"}") >= 200.0);
    drop(halves);
}

#[test]
fn wrong_passwords_are_counted_and_ten_lines_a_second_are_logged() {
    const TRIES: usize = 150;
    let server = Server::start();
    server.connect().ok("CREATE USER ann IDENTIFIED BY 'secret'");
    let url = format!("http://127.0.0.1:{}/api/backends", server.http_port());
    let began = Instant::now();
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let (url, port) = (url.clone(), server.mysql_port());
            std::thread::spawn(move || {
                for _ in 0..TRIES / 3 {
                    assert!(Client::connect_as("ann", port).is_err(), "she has a password");
                }
                let urls = vec![url; TRIES / 3];
                let more = urls[1..]
                    .iter()
                    .fold(Curl::as_user("ann:wrong", &urls[0]), |curl, url| curl.argument(url));
                assert!(more.text().contains("Access denied for user 'ann'"));
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    let seconds = began.elapsed().as_secs() as usize + 1;
    let refused =
        |kind: &str| server.metric(&format!("tributary_clients_refused_total{{kind=\"{kind}\"}}")) as usize;
    assert_eq!((refused("mysql_login"), refused("http_login")), (TRIES, TRIES));
    let log = server.log();
    for line in ["a client was refused", "an HTTP client was refused"] {
        let lines = log.lines().filter(|logged| logged.contains(line)).count();
        assert!((1..=10 * (seconds + 1)).contains(&lines), "{lines} lines in {seconds} s");
    }
}
