//! Loads that can't be loaded, beside a thousand that can: their neighbours lose nothing, and wait no longer.

use crate::support::{Client, Server, wait_until};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const STACK_BYTES: usize = 256 * 1024;

/// A load that is not like its neighbours: headers, and the body.
struct Poison {
    table: &'static str,
    headers: &'static str,
    body: Vec<u8>,
    /// The rows of it that are loaded.
    good: u64,
    /// The body ends before its announced length.
    is_cut: bool,
}

impl Poison {
    fn of(headers: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { table: "t", headers, body: body.into(), good: 0, is_cut: false }
    }
}

/// Every way in which a load can be wrong.
fn poisons() -> Vec<Poison> {
    vec![
        Poison::of("", "x,b\n"),
        Poison { good: 1, ..Poison::of("rejected_rows: keep\r\n", "7,good\nx,b\n") },
        Poison::of("", "1,b,c\n"),
        Poison::of("", b"1,\xff\n".to_vec()),
        Poison::of("format: json\r\n", "{\"id\": 1"),
        Poison::of("compress_type: gz\r\n", "this is no gzip"),
        Poison::of("max_filter_ratio: 7\r\n", "1,a\n"),
        Poison { table: "nowhere", ..Poison::of("", "1,a\n") },
        Poison { is_cut: true, ..Poison::of("", "1,a\n") },
        Poison::of("format: parquet\r\n", "PAR1 and nothing else PAR1"),
        Poison::of("columns: id, x, name = no_such_function(x)\r\n", "1,a\n"),
        Poison::of("strict_mode: true\r\n", [b"1,".to_vec(), vec![b'x'; 300_000], b"\n".to_vec()].concat()),
        Poison::of("where: no_such_column = 1\r\n", "1,a\n"),
        Poison::of("label: a label with blanks\r\n", "1,a\n"),
    ]
}

struct Connection {
    port: u16,
    stream: Option<TcpStream>,
}

impl Connection {
    /// Sends a load and gives its answer; `None` if the connection ended.
    fn send(&mut self, table: &str, headers: &str, body: &[u8], cut: bool) -> Option<String> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the server listens");
                stream.set_nodelay(true).expect("an option");
                stream.set_read_timeout(Some(Duration::from_secs(120))).expect("an option");
                none.insert(stream)
            }
        };
        let length = if cut { body.len() + 1000 } else { body.len() };
        let head = format!(
            "PUT /api/d/{table}/_stream_load HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic cm9vdDo=\r\n\
             column_separator: ,\r\ngroup_commit: sync_mode\r\n{headers}Content-Length: {length}\r\n\r\n"
        );
        let request = [head.as_bytes(), body].concat();
        let answer = stream.write_all(&request).ok().filter(|()| !cut).and_then(|()| answer(stream));
        if answer.is_none() {
            self.stream = None;
        }
        answer
    }
}

fn answer(stream: &mut TcpStream) -> Option<String> {
    let mut text = Vec::new();
    let mut piece = [0; 4096];
    loop {
        if let Some(end) = text.windows(4).position(|bytes: &[u8]| bytes == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&text[..end]).to_lowercase();
            let length = head.split_once("content-length: ")?.1;
            let length: usize = length.split(['\r', '\n']).next()?.parse().ok()?;
            if text.len() >= end + 4 + length {
                return Some(String::from_utf8_lossy(&text[end + 4..]).into_owned());
            }
        }
        match stream.read(&mut piece) {
            Ok(read) if read > 0 => text.extend_from_slice(&piece[..read]),
            _ => return None,
        }
    }
}

/// Loads as their clients saw them.
#[derive(Default)]
struct Seen {
    rows: AtomicU64,
    poisoned: AtomicU64,
    latencies: Mutex<Vec<Duration>>,
}

/// Lets clients load until `wait` returns. One load in `poisoned_one_in` is poisoned, in each way in turn; `None`: none is.
fn load_until(
    server: &Server,
    connections: usize,
    poisoned_one_in: Option<u64>,
    seen: &Arc<Seen>,
    wait: impl FnOnce(),
) {
    let is_over = Arc::new(AtomicBool::new(false));
    let poisons = Arc::new(poisons());
    let port = server.http_port();
    let work = |number: usize| {
        let (seen, is_over, poisons) = (Arc::clone(seen), Arc::clone(&is_over), Arc::clone(&poisons));
        let work = move || {
            let mut connection = Connection { port, stream: None };
            let mut latencies = Vec::new();
            let mut count = number as u64;
            while !is_over.load(Ordering::Relaxed) {
                count += 1;
                if poisoned_one_in.is_some_and(|one_in| count.is_multiple_of(one_in)) {
                    let number = seen.poisoned.fetch_add(1, Ordering::Relaxed);
                    let poison = &poisons[number as usize % poisons.len()];
                    let answer = connection.send(poison.table, poison.headers, &poison.body, poison.is_cut);
                    if let Some(answer) = answer {
                        let is_good = answer.contains("\"Status\": \"Success\"");
                        assert_eq!(is_good, poison.good > 0, "{}: {answer}", poison.headers);
                    }
                    seen.rows.fetch_add(poison.good, Ordering::Relaxed);
                    continue;
                }
                let begun = Instant::now();
                let answer = connection.send("t", "", b"1,a\n", false).expect("a good load is answered");
                latencies.push(begun.elapsed());
                assert!(answer.contains("\"Status\": \"Success\""), "{answer}");
                seen.rows.fetch_add(1, Ordering::Relaxed);
            }
            seen.latencies.lock().unwrap_or_else(PoisonError::into_inner).extend(latencies);
        };
        thread::Builder::new().stack_size(STACK_BYTES).spawn(work).expect("a thread")
    };
    let threads: Vec<_> = (0..connections).map(work).collect();
    wait();
    is_over.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().expect("the client saw nothing wrong"));
}

fn server(settings: &[(&str, &str)]) -> (Server, Client) {
    let server = Server::with_settings(settings);
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("USE d");
    client.ok(
        "CREATE TABLE t (id INT NOT NULL, name VARCHAR(20)) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1 \
         PROPERTIES ('group_commit_interval_ms' = '20')",
    );
    (server, client)
}

/// Good and rejected rows are all that was sent.
fn check(client: &mut Client, seen: &Seen) {
    client.ok("SYNC");
    let rows = seen.rows.load(Ordering::Relaxed);
    assert_eq!(client.value("SELECT COUNT(*) FROM t"), rows.to_string());
    let kept = client.value("SELECT COUNT(*) FROM t WHERE name = 'good'");
    let rejected = client.value("SELECT COUNT(*) FROM information_schema.rejected_rows");
    assert_eq!(kept, rejected, "each load that went on has a row of either kind");
}

#[test]
fn neighbours_of_poisoned_loads_lose_nothing() {
    let (server, mut client) = server(&[]);
    let seen = Arc::new(Seen::default());
    let wanted = 3 * poisons().len() as u64;
    load_until(&server, 60, Some(10), &seen, || {
        wait_until("each way was tried", || seen.poisoned.load(Ordering::Relaxed) >= wanted);
    });
    check(&mut client, &seen);
}

#[test]
#[ignore = "a measurement of minutes: run it alone, on a machine that is not loaded, with --nocapture"]
fn the_p99_of_a_thousand_loads_of_which_a_hundredth_is_poisoned_stays_within_a_tenth() {
    const LOADS: u64 = 10_000;
    let (server, mut client) = server(&[]);
    let all = Arc::new(Seen::default());
    let mut ratios = Vec::new();
    let measured = |seen: &Seen| {
        wait_until("enough loads were answered", || seen.rows.load(Ordering::Relaxed) >= LOADS);
    };
    load_until(&server, 1000, None, &all, || measured(&all));
    for round in 0..9 {
        let mut p99 = [None, Some(100)].map(|poisoned_one_in| {
            let seen = Arc::new(Seen::default());
            load_until(&server, 1000, poisoned_one_in, &seen, || measured(&seen));
            all.rows.fetch_add(seen.rows.load(Ordering::Relaxed), Ordering::Relaxed);
            let mut latencies = seen.latencies.lock().unwrap_or_else(PoisonError::into_inner);
            latencies.sort_unstable();
            (latencies.len(), latencies[latencies.len() * 99 / 100], seen.poisoned.load(Ordering::Relaxed))
        });
        println!("round {round}: (loads, p99, poisoned) alone {:?}, beside {:?}", p99[0], p99[1]);
        p99[0].1 = p99[0].1.max(Duration::from_millis(1));
        ratios.push(p99[1].1.as_secs_f64() / p99[0].1.as_secs_f64());
    }
    check(&mut client, &all);
    ratios.sort_by(f64::total_cmp);
    println!("ratios of p99: {ratios:?}, the median {:.3}", ratios[ratios.len() / 2]);
    assert!(ratios[ratios.len() / 2] <= 1.1);
}

/// Outcomes of the loads of an overload.
#[derive(Default)]
struct Outcomes {
    loaded: Mutex<Vec<Duration>>,
    refused: Mutex<Vec<(Duration, String)>>,
}

/// Offers loads of `rows` rows from many connections, each at its times, or as fast as they are answered.
fn offer(
    server: &Server,
    connections: usize,
    time: Duration,
    rows: usize,
    every: Option<Duration>,
) -> Outcomes {
    let outcomes = Arc::new(Outcomes::default());
    let body: Arc<String> = Arc::new(format!("1,{}\n", "x".repeat(17)).repeat(rows));
    let begin = Instant::now();
    let work = |number: usize| {
        let (outcomes, body) = (Arc::clone(&outcomes), Arc::clone(&body));
        let port = server.http_port();
        let work = move || {
            let mut connection = Connection { port, stream: None };
            let mut at = begin + every.unwrap_or_default().mul_f64(number as f64 / connections as f64);
            while at < begin + time {
                thread::sleep(at.saturating_duration_since(Instant::now()));
                let sent = Instant::now();
                let answer = connection.send("t", "", body.as_bytes(), false);
                let took = sent.elapsed();
                match answer {
                    Some(answer) if answer.contains("\"Status\": \"Success\"") => {
                        outcomes.loaded.lock().unwrap_or_else(PoisonError::into_inner).push(took);
                    }
                    answer => {
                        let text = answer.unwrap_or_else(|| "the connection ended".to_owned());
                        outcomes.refused.lock().unwrap_or_else(PoisonError::into_inner).push((took, text));
                    }
                }
                // Who is late sends at once.
                at = every.map_or_else(Instant::now, |every| at + every);
            }
        };
        thread::Builder::new().stack_size(STACK_BYTES).spawn(work).expect("a thread")
    };
    let threads: Vec<_> = (0..connections).map(work).collect();
    threads.into_iter().for_each(|thread| thread.join().expect("the client saw nothing wrong"));
    Arc::into_inner(outcomes).expect("all threads have ended")
}

#[test]
#[ignore = "a measurement of minutes: run it alone, on a machine that is not loaded, with --nocapture"]
fn four_times_the_load_that_a_server_takes_is_refused_in_part_and_nothing_hangs_or_is_lost() {
    const ROWS: usize = 5_000;
    let (server, mut client) =
        server(&[("group_commit_queue_mem_limit", "67108864"), ("max_concurrent_loads", "512")]);
    let time = Duration::from_secs(20);
    let alone = offer(&server, 32, time, ROWS, None).loaded.into_inner().expect("not poisoned").len();
    // Four times as many, from 2,000 connections.
    let every = time.mul_f64(2_000.0 / (4.0 * alone as f64));
    let begun = Instant::now();
    let over = offer(&server, 2_000, time, ROWS, Some(every));
    let took = begun.elapsed();
    let mut loaded = over.loaded.into_inner().expect("not poisoned");
    let refused = over.refused.into_inner().expect("not poisoned");
    loaded.sort_unstable();
    println!(
        "alone {alone} loads of {ROWS} rows in {time:?}; at four times as many: {} loaded in {took:?}, p50 {:?}, p99 {:?}, longest {:?}; \
         {} refused, after {:?} at most",
        loaded.len(),
        loaded[loaded.len() / 2],
        loaded[loaded.len() * 99 / 100],
        loaded[loaded.len() - 1],
        refused.len(),
        refused.iter().map(|(took, _)| *took).max(),
    );
    let mut kinds = std::collections::BTreeMap::<String, usize>::new();
    for (_, text) in &refused {
        assert!(text.contains("\"Retry\": \"after_ms\"") || text.contains("\"Retry\": \"safe\""), "{text}");
        let message = text.lines().find(|line| line.contains("\"Message\"")).unwrap_or(text);
        let message: String = message.chars().filter(|char| !char.is_ascii_digit()).collect();
        *kinds.entry(message).or_default() += 1;
    }
    println!("{kinds:#?}");
    client.ok("SYNC");
    let rows: usize = client.value("SELECT COUNT(*) FROM t").parse().expect("a number");
    assert_eq!(rows, (alone + loaded.len()) * ROWS);
}
