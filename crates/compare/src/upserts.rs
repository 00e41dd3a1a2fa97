//! Rows that replace others by their key, into tables that have many: `INSERT … ON DUPLICATE KEY UPDATE` of MariaDB,
//! `ON CONFLICT` of PostgreSQL, a plain INSERT into a table with UNIQUE KEY.
//!
//! Each server gets its table once, with rows in the order of the key. A load's keys are scattered over all of them, and none
//! occurs twice in a statement, which PostgreSQL refuses.

use crate::load::{Load, Table, UPSERTS};
use crate::measure::{self, Unwatched};
use crate::payload::small_rows;
use crate::peer::{self, PEERS, Peer};
use crate::report::Results;
use crate::servers::{self, Server};
use crate::{Options, Outcome, is_wanted, postgres};
use std::time::Instant;
use tributary_bench::closed_loop::{self, Connection, Limit, Reply};
use tributary_bench::{FIRST_ID, IdForm, Order, Request, mysql};
use tributary_client::{command, packet};

/// The score of rows that replaced others; the original ones have less.
const UPSERTED: u32 = 1000;
/// How many rows a statement of ours has when it fills the table, and how many connections do it.
const FILLED_AT_ONCE: u64 = 1000;
const FILLING: usize = 10;

/// Measures the upserts into tables with this many rows, server after server.
pub fn run(options: &Options, present: u32) -> Outcome<Results> {
    if u64::from(present) % FILLED_AT_ONCE != 0 {
        return Err(format!("--upserts {present}: use a multiple of {FILLED_AT_ONCE}").into());
    }
    let mut results = Results::default();
    for peer in PEERS
        .into_iter()
        .filter(|peer| *peer != Peer::QuestDb && is_wanted(options.peer.as_deref(), peer.name()))
    {
        let server = servers::start(peer, options)?;
        let begin = Instant::now();
        peer.create_table(&server, Table::Keyed)?;
        fill(peer, &server, present)?;
        eprintln!("{}: {present} rows in {:.0} s", peer.name(), begin.elapsed().as_secs_f64());
        for round in 0..options.rounds {
            for load in UPSERTS.iter().filter(|load| is_wanted(options.load.as_deref(), load.name)) {
                rustix::fs::sync();
                let order = Order::Scattered(present);
                let mut connections = connect(peer, &server, load, order)?;
                let sample = measure::measure(&server, &mut connections, options.times())?;
                check(peer, &server, present, sample.total_rows)?;
                eprintln!("round {}: {:<20} {:<26} {sample}", round + 1, peer.name(), load.name);
                results.add(load.name, peer, sample);
            }
        }
        server.stop()?;
    }
    Ok(results)
}

fn fill(peer: Peer, server: &Server, present: u32) -> Outcome<()> {
    let last = FIRST_ID + (present - 1);
    match peer {
        Peer::MariaDb => {
            let mut client = peer::mysql(peer, server)?;
            client.run("SET unique_checks = 0, foreign_key_checks = 0")?;
            client.run(&format!(
                "INSERT INTO keyed SELECT seq, CONCAT('name', seq % 100000), seq % 100 FROM seq_{FIRST_ID}_to_{last}"
            ))?;
        }
        Peer::PostgreSql => {
            let mut connection = postgres::Connection::open(server.sql)?;
            connection.query(&format!(
                "INSERT INTO keyed SELECT id, 'name' || id % 100000, id % 100 FROM generate_series({FIRST_ID}, {last}) id"
            ))?;
            connection.query("VACUUM ANALYZE keyed")?;
            connection.query("CHECKPOINT")?;
        }
        Peer::Tributary { .. } => {
            let load = Load { rows: FILLED_AT_ONCE, connections: FILLING, ..UPSERTS[0] };
            let mut connections = connect(peer, server, &load, Order::New)?;
            closed_loop::run(&mut connections, Limit::Rows(present.into()), &mut Unwatched)?;
            peer.number(server, "SELECT count(*) FROM keyed")?;
        }
        Peer::QuestDb => return Err("QuestDB is not asked".into()),
    }
    Ok(())
}

/// Verifies that the number of rows has not changed, and that as many as were acknowledged are new: keys do not repeat until all
/// have occurred.
fn check(peer: Peer, server: &Server, present: u32, upserted: u64) -> Outcome<()> {
    let rows = peer.number(server, "SELECT count(*) FROM keyed")?;
    let new = peer.number(server, &format!("SELECT count(*) FROM keyed WHERE score >= {UPSERTED}"))?;
    // Rows of earlier loads have the same keys: each load starts with the first.
    if rows != u64::from(present) || new < upserted.min(present.into()) {
        return Err(
            format!("{upserted} upserts of {present} rows left {rows} rows, {new} of them new").into()
        );
    }
    Ok(())
}

fn connect(peer: Peer, server: &Server, load: &Load, order: Order) -> Outcome<Vec<Connection>> {
    let one = |index| {
        let sql = statement(peer, load, index, order);
        let (stream, dialogue, bytes): (_, closed_loop::Dialogue, _) = match peer {
            Peer::PostgreSql => {
                let stream = postgres::Connection::open(server.sql)?.into_stream();
                (stream, postgres::reply, postgres::query(&sql))
            }
            _ => {
                let bytes = packet::framed(&command::query(sql.as_bytes()), 0);
                let reply = if peer == Peer::MariaDb { mariadb_reply } else { mysql::reply };
                (peer::mysql(peer, server)?.into_stream(), reply, bytes)
            }
        };
        stream.set_nodelay(true)?;
        let id = FIRST_ID.to_string();
        let places = bytes.windows(id.len()).enumerate().filter(|(_, text)| *text == id.as_bytes());
        let ids: Vec<u32> = places.map(|(at, _)| at as u32).collect();
        assert_eq!(ids.len() as u64, load.rows, "a row has one id");
        let payload_bytes = sql.len() as u64;
        let request = Request { bytes, form: IdForm::Text, ids, key: None, payload_bytes, order };
        Ok(Connection::new(stream, dialogue, None, vec![request])?)
    };
    (0..load.connections).map(one).collect()
}

/// Precedes, in MariaDB's messages, the number of rows given by a statement with several.
const RECORDS: &[u8] = b"Records: ";

/// MariaDB counts two rows for each replaced one, and none for an identical one; the number of given rows is only in its message,
/// which a statement with one row does not get.
fn mariadb_reply(received: &[u8]) -> Option<Reply> {
    let (_, payload) = packet::first(received)?;
    let reply = mysql::reply(received)?;
    if !matches!(reply, Reply::Loaded(_)) {
        return Some(reply);
    }
    let at = payload.windows(RECORDS.len()).position(|text| text == RECORDS);
    let digits = at.map(|at| payload[at + RECORDS.len()..].iter().take_while(|byte| byte.is_ascii_digit()));
    let number = digits.map(|digits| digits.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')));
    Some(Reply::Loaded(number.unwrap_or(1)))
}

/// The rows as text, each with the first id in the place of its own.
fn statement(peer: Peer, load: &Load, index: usize, order: Order) -> String {
    let is_new = order == Order::New;
    let values: Vec<String> = small_rows(index, load.rows)
        .iter()
        .map(|row| {
            let score = if is_new { row.score } else { UPSERTED as i32 + row.score };
            format!("({FIRST_ID},'{}',{score})", row.name)
        })
        .collect();
    let upsert = match peer {
        Peer::MariaDb => " ON DUPLICATE KEY UPDATE name = VALUES(name), score = VALUES(score)",
        Peer::PostgreSql => " ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name, score = EXCLUDED.score",
        _ => "",
    };
    format!("INSERT INTO keyed VALUES {}{upsert}", values.join(","))
}
