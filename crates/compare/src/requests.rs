//! Connections with the one request that each sends again and again, made before the clock runs so that it costs the
//! client little, and the same for each server.

use crate::load::{Form, Load, Table};
use crate::payload::{self, days_since_1970};
use crate::peer::{self, Peer};
use crate::servers::Server;
use crate::{Outcome, http, postgres, rows};
use std::net::TcpStream;
use tributary_bench::closed_loop::{Connection, Dialogue, Reply};
use tributary_bench::{Request, mysql, stream_load};
use tributary_client::{Value, command, packet};

/// Opens the connections of a load. Each sends rows of its own.
pub fn connect(peer: Peer, server: &Server, load: &Load) -> Outcome<Vec<Connection>> {
    (0..load.connections)
        .map(|index| match (peer, load.form) {
            (Peer::Tributary { .. }, Form::Csv) => stream_load_of(peer, server, load, index),
            (Peer::Tributary { .. } | Peer::MariaDb, _) => mysql_of(peer, server, load, index),
            (Peer::PostgreSql, _) => postgres_of(server, load, index),
            (Peer::QuestDb, _) => questdb_of(server, load, index),
        })
        .collect()
}

fn connection(
    stream: TcpStream,
    dialogue: Dialogue,
    first: Option<Vec<u8>>,
    bytes: Vec<u8>,
    load: &Load,
) -> Outcome<Connection> {
    let request = |bytes| Request::unnumbered(bytes, load.rows as usize);
    stream.set_nodelay(true)?;
    Ok(Connection::new(stream, dialogue, first.map(request), vec![request(bytes)])?)
}

/// MySQL's protocol: MariaDB and Tributary.
fn mysql_of(peer: Peer, server: &Server, load: &Load, index: usize) -> Outcome<Connection> {
    let mut client = peer::mysql(peer, server)?;
    let name = load.table.name();
    let text = |sql: &str| packet::framed(&command::query(sql.as_bytes()), 0);
    let (dialogue, first, bytes): (Dialogue, _, _) = match load.form {
        Form::Prepared => {
            let row = format!("({})", vec!["?"; load.table.width()].join(","));
            let values = vec![row; load.rows as usize].join(",");
            let statement = client.prepare(&format!("INSERT INTO {name} VALUES {values}"))?;
            let values = mysql_values(load, index);
            let framed = |with_types| packet::framed(&command::execute(statement, &values, with_types).0, 0);
            (mysql::reply, Some(framed(true)), framed(false))
        }
        Form::Text => (mysql::reply, None, text(&payload::text_insert(index, load.rows))),
        Form::Csv => {
            let sql = format!("LOAD DATA LOCAL INFILE 'rows' INTO TABLE {name} FIELDS TERMINATED BY '|'");
            (infile_reply, None, with_file(text(&sql), &payload::csv(index, load.rows)))
        }
    };
    connection(client.into_stream(), dialogue, first, bytes, load)
}

/// Sent by the server before it reads a file of the client.
const WANTS_FILE: u8 = 0xfb;
/// The file's packets follow the server's request, which follows the statement.
const FILE_SEQUENCE: u8 = 2;

/// A statement and the file that it will ask for. The server finds the file when it has sent its request.
fn with_file(statement: Vec<u8>, file: &[u8]) -> Vec<u8> {
    let content = packet::framed(file, FILE_SEQUENCE);
    let packets = file.len() / packet::PAYLOAD_BYTES_MAX + 1;
    let end = packet::framed(&[], FILE_SEQUENCE.wrapping_add(packets as u8));
    [statement, content, end].concat()
}

/// The answer to a statement with a file: the server's request for it, and then the statement's own.
fn infile_reply(received: &[u8]) -> Option<Reply> {
    let (_, payload) = packet::first(received)?;
    let request = if payload.first() == Some(&WANTS_FILE) { packet::HEAD_BYTES + payload.len() } else { 0 };
    mysql::reply(&received[request..])
}

fn mysql_values(load: &Load, index: usize) -> Vec<Value> {
    match load.table {
        Table::Lineitem => payload::lineitem_rows(index, load.rows).iter().flat_map(mysql_lineitem).collect(),
        _ => payload::small_rows(index, load.rows)
            .into_iter()
            .flat_map(|row| {
                [Value::BigInt(row.id as u64), Value::Text(row.name), Value::Int(row.score as u32)]
            })
            .collect(),
    }
}

/// DECIMALs as text, as JDBC's drivers send them.
fn mysql_lineitem(item: &rows::Lineitem) -> [Value; 16] {
    let text = |text: &str| Value::Text(text.to_owned());
    let money = |cents| Value::Decimal(rows::money(cents));
    let [ship, commit, receipt] = item.dates.map(|(year, month, day)| Value::Date { year, month, day });
    [
        Value::BigInt(item.orderkey),
        Value::BigInt(item.partkey),
        Value::BigInt(item.suppkey),
        Value::BigInt(item.linenumber),
        money(item.quantity * 100),
        money(item.price_cents),
        money(item.discount_cents),
        money(item.tax_cents),
        text(item.returnflag),
        text(item.linestatus),
        ship,
        commit,
        receipt,
        text(item.instruct),
        text(item.mode),
        text(&item.comment),
    ]
}

fn postgres_of(server: &Server, load: &Load, index: usize) -> Outcome<Connection> {
    let mut client = postgres::Connection::open(server.sql)?;
    let name = load.table.name();
    let bytes = match load.form {
        Form::Prepared => {
            let width = load.table.width();
            let row = |row: usize| {
                let params: Vec<String> =
                    (1..=width).map(|param| format!("${}", row * width + param)).collect();
                format!("({})", params.join(","))
            };
            let values: Vec<String> = (0..load.rows as usize).map(row).collect();
            client.prepare(&format!("INSERT INTO {name} VALUES {}", values.join(",")))?;
            postgres::execution(&postgres_values(load, index))
        }
        Form::Text => postgres::query(&payload::text_insert(index, load.rows)),
        Form::Csv => {
            let sql = format!("COPY {name} FROM STDIN WITH (FORMAT csv, DELIMITER '|')");
            postgres::copy(&sql, &payload::csv(index, load.rows))
        }
    };
    connection(client.into_stream(), postgres::reply, None, bytes, load)
}

fn postgres_values(load: &Load, index: usize) -> Vec<Vec<u8>> {
    match load.table {
        Table::Lineitem => {
            payload::lineitem_rows(index, load.rows).iter().flat_map(postgres_lineitem).collect()
        }
        _ => payload::small_rows(index, load.rows)
            .into_iter()
            .flat_map(|row| [long(row.id), row.name.into_bytes(), int(row.score)])
            .collect(),
    }
}

fn postgres_lineitem(item: &rows::Lineitem) -> [Vec<u8>; 16] {
    let text = |text: &str| text.as_bytes().to_vec();
    let [ship, commit, receipt] = item.dates.map(date);
    [
        long(item.orderkey as i64),
        int(item.partkey as i32),
        int(item.suppkey as i32),
        int(item.linenumber as i32),
        numeric(item.quantity * 100),
        numeric(item.price_cents),
        numeric(item.discount_cents),
        numeric(item.tax_cents),
        text(item.returnflag),
        text(item.linestatus),
        ship,
        commit,
        receipt,
        text(item.instruct),
        text(item.mode),
        text(&item.comment),
    ]
}

fn long(value: i64) -> Vec<u8> {
    value.to_be_bytes().to_vec()
}

fn int(value: i32) -> Vec<u8> {
    value.to_be_bytes().to_vec()
}

/// Days since 2000-01-01.
fn date(date: (u16, u8, u8)) -> Vec<u8> {
    int((days_since_1970(date) - days_since_1970((2000, 1, 1))) as i32)
}

/// NUMERIC with two digits after the point: groups of four digits, the weight of the first group, the sign,
/// the digits after the point.
fn numeric(cents: u64) -> Vec<u8> {
    let mut groups = vec![(cents % 100 * 100) as i16];
    let mut whole = cents / 100;
    while whole > 0 {
        groups.push((whole % 10_000) as i16);
        whole /= 10_000;
    }
    let weight = groups.len() as i16 - 2;
    let head = [groups.len() as i16, weight, 0, 2];
    head.iter().chain(groups.iter().rev()).flat_map(|number| number.to_be_bytes()).collect()
}

/// Lines over HTTP, which QuestDB answers when they are committed.
fn questdb_of(server: &Server, load: &Load, index: usize) -> Outcome<Connection> {
    let bytes = http::request("POST /write", "", &payload::lines(load, index));
    connection(TcpStream::connect(server.http)?, questdb_reply, None, bytes, load)
}

/// A success has a head and nothing else, and does not say how many lines there were.
fn questdb_reply(received: &[u8]) -> Option<Reply> {
    const END: &[u8] = b"\r\n\r\n";
    let is_whole = received.windows(END.len()).any(|bytes| bytes == END);
    let is_success = received.starts_with(b"HTTP/1.1 204");
    is_whole.then(|| match is_success {
        true => Reply::Accepted,
        false => Reply::Refused(String::from_utf8_lossy(received).into_owned()),
    })
}

/// CSV by Stream Load, as `root` without a password.
fn stream_load_of(peer: Peer, server: &Server, load: &Load, index: usize) -> Outcome<Connection> {
    let line = format!("PUT /api/bench/{}/_stream_load", load.table.name());
    let headers =
        format!("Authorization: Basic cm9vdDo=\r\ncolumn_separator: |\r\ngroup_commit: {}\r\n", peer.mode());
    let bytes = http::request(&line, &headers, &payload::csv(index, load.rows));
    connection(TcpStream::connect(server.http)?, stream_load::reply, None, bytes, load)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_groups_of_four_digits() {
        let groups = |cents| -> Vec<i16> {
            numeric(cents).chunks(2).map(|pair| i16::from_be_bytes([pair[0], pair[1]])).collect()
        };
        assert_eq!(groups(5), [1, -1, 0, 2, 500]);
        assert_eq!(groups(1_234_567), [3, 1, 0, 2, 1, 2345, 6700]);
    }

    #[test]
    fn the_answer_to_a_file_is_behind_the_request_for_it() {
        let (request, ok) = (packet::framed(b"\xfbrows", 1), packet::framed(b"\0\x07\0\x02\0\0\0", 4));
        let both = [request, ok.clone()].concat();
        assert_eq!(infile_reply(&both), Some(Reply::Loaded(7)));
        assert!((0..both.len()).all(|end| infile_reply(&both[..end]).is_none()));
        assert_eq!(infile_reply(&ok), Some(Reply::Loaded(7)));
        assert_eq!(with_file(Vec::new(), b"ab"), b"\x02\0\0\x02ab\0\0\0\x03");
    }

    #[test]
    fn questdb_answers_success_with_a_head() {
        assert_eq!(questdb_reply(b"HTTP/1.1 204 OK\r\n"), None);
        assert_eq!(questdb_reply(b"HTTP/1.1 204 OK\r\nA: b\r\n\r\n"), Some(Reply::Accepted));
        assert!(matches!(questdb_reply(b"HTTP/1.1 400 Bad\r\n\r\n"), Some(Reply::Refused(_))));
    }
}
