//! Loads generated access logs by Stream Load in async mode and prints the cost.
//!
//! `cargo run --release --example access_logs -- HTTP_ADDRESS [ROWS] [CONNECTIONS] [REQUEST_BYTES]`
//!
//! The table is `logs.access` (create it first, see `TABLE`). Rows are deterministic: row `n` is always
//! the same, so a query can check them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The table that the rows are for.
const TABLE: &str = "CREATE DATABASE IF NOT EXISTS logs; \
CREATE TABLE logs.access (id BIGINT NOT NULL, ts DATETIME NOT NULL, client VARCHAR(20), method VARCHAR(8), \
url VARCHAR(200), status SMALLINT, size INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS AUTO";

/// Row `number` as CSV.
fn push_row(number: u64, out: &mut Vec<u8>) {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (number >> 7);
    let second = 893_964_000 + number / 40;
    let (day, rest) = ((second / 86_400) % 28 + 1, second % 86_400);
    let page =
        ["images/hm_bg.jpg", "english/index.html", "french/competition/match.htm", "history/past_cups.html"];
    let status = [200, 200, 200, 304, 200, 404, 200, 206][(mixed >> 3) as usize % 8];
    let line = writeln!(
        out,
        "{number},1998-05-{day:02} {:02}:{:02}:{:02},{}.{}.{}.0,GET,/{}?{},{status},{}",
        rest / 3600,
        rest / 60 % 60,
        rest % 60,
        mixed % 223 + 1,
        (mixed >> 8) % 256,
        (mixed >> 16) % 256,
        page[(mixed >> 24) as usize % page.len()],
        mixed % 100_000,
        mixed % 60_000,
    );
    line.expect("a vector takes every write");
}

/// Sends one request on a keep-alive connection; returns the number of loaded rows according to the server.
fn load(stream: &mut BufReader<TcpStream>, body: &[u8]) -> u64 {
    let head = format!(
        "PUT /api/logs/access/_stream_load HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic cm9vdDo=\r\n\
         group_commit: async_mode\r\ncolumn_separator: ,\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.get_mut().write_all(head.as_bytes()).expect("the server reads");
    stream.get_mut().write_all(body).expect("the server reads");
    let mut length = 0;
    let mut line = String::new();
    while stream.read_line(&mut line).expect("the server answers") > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length is a number");
        }
        line.clear();
    }
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer).expect("the answer arrives whole");
    let answer = String::from_utf8(answer).expect("the answer is UTF-8");
    assert!(answer.contains("\"Status\": \"Success\""), "{answer}");
    let loaded = answer.split("\"NumberLoadedRows\": ").nth(1).expect("the key is always there");
    loaded.split(',').next().and_then(|number| number.trim().parse().ok()).expect("it is a number")
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(address) = arguments.next() else {
        eprintln!("usage: access_logs HTTP_ADDRESS [ROWS] [CONNECTIONS] [REQUEST_BYTES]\ntable: {TABLE}");
        std::process::exit(2);
    };
    let mut number = |default: u64| arguments.next().map_or(default, |text| text.parse().expect("a number"));
    let (rows, connections, request_bytes) = (number(1_000_000), number(10), number(100_000) as usize);
    let next = Arc::new(AtomicU64::new(0));
    let rows_per_request = (request_bytes / 90) as u64;
    let started = Instant::now();
    let workers: Vec<_> = (0..connections)
        .map(|_| {
            let (next, address) = (Arc::clone(&next), address.clone());
            std::thread::spawn(move || {
                let mut stream = BufReader::new(TcpStream::connect(&address).expect("the server listens"));
                stream.get_ref().set_nodelay(true).expect("a TCP stream has the option");
                let (mut body, mut loaded, mut bytes, mut times) = (Vec::new(), 0, 0, Vec::new());
                loop {
                    let first = next.fetch_add(rows_per_request, Ordering::Relaxed);
                    if first >= rows {
                        return (loaded, bytes, times);
                    }
                    body.clear();
                    (first..rows.min(first + rows_per_request)).for_each(|row| push_row(row, &mut body));
                    let sent = Instant::now();
                    loaded += load(&mut stream, &body);
                    times.push(sent.elapsed());
                    bytes += body.len() as u64;
                }
            })
        })
        .collect();
    let (mut loaded, mut bytes, mut times) = (0, 0, Vec::<Duration>::new());
    for worker in workers {
        let (of_worker, bytes_of_worker, times_of_worker) = worker.join().expect("no worker panics");
        loaded += of_worker;
        bytes += bytes_of_worker;
        times.extend(times_of_worker);
    }
    let seconds = started.elapsed().as_secs_f64();
    times.sort_unstable();
    let percentile = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1000.0;
    println!(
        "{loaded} rows acknowledged, {:.1} MB in {} requests, {seconds:.2} s: {:.0} rows/s, {:.1} MB/s; \
         request p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms",
        bytes as f64 / 1e6,
        times.len(),
        loaded as f64 / seconds,
        bytes as f64 / 1e6 / seconds,
        percentile(50),
        percentile(99),
        percentile(100)
    );
}
