//! Tables of a suite, created and loaded by Stream Load.

use super::Suite;
use crate::client::closed_loop::Reply;
use crate::client::http;
use crate::error::BenchError;
use crate::server::Server;
use std::io::{Read, Write};
use std::net::TcpStream;

/// Bytes of a load.
const LOAD_BYTES: usize = 64 << 20;

/// Creates the tables and loads all rows of this scale factor. Returns the number of rows.
///
/// # Errors
/// A statement or a load failed.
pub fn load(server: &Server, suite: &Suite, scale: f64) -> Result<u64, BenchError> {
    let mut client = server.connect("")?;
    client.query("CREATE DATABASE IF NOT EXISTS bench")?;
    let mut rows = 0;
    for table in suite.tables {
        client.query(&format!("DROP TABLE IF EXISTS bench.{} FORCE", table.name))?;
        client.query(&format!(
            "CREATE TABLE bench.{} ({}) DUPLICATE KEY({key}) DISTRIBUTED BY HASH({key}) BUCKETS 1",
            table.name,
            table.columns,
            key = table.key
        ))?;
        let mut loads = Loads { server, table: table.name, text: String::new(), rows: 0 };
        loads.all((suite.rows)(table.name, scale))?;
        eprintln!("loaded {}: {} rows", table.name, loads.rows);
        rows += loads.rows;
    }
    client.query("SYNC")?;
    Ok(rows)
}

/// The loads of a table.
struct Loads<'a> {
    server: &'a Server,
    table: &'static str,
    text: String,
    rows: u64,
}

impl Loads<'_> {
    fn all(&mut self, rows: impl Iterator<Item = String>) -> Result<(), BenchError> {
        let mut given = 0;
        for row in rows {
            given += 1;
            self.text.push_str(row.strip_suffix('|').unwrap_or(&row));
            self.text.push('\n');
            if self.text.len() >= LOAD_BYTES {
                self.send()?;
            }
        }
        self.send()?;
        if self.rows != given {
            let (table, rows) = (self.table, self.rows);
            return Err(BenchError::Verification(format!("{rows} of {given} rows of {table} were loaded")));
        }
        Ok(())
    }

    fn send(&mut self) -> Result<(), BenchError> {
        if self.text.is_empty() {
            return Ok(());
        }
        let address = self.server.http;
        let head = http::stream_load_head(self.table, "column_separator: |", "off_mode", self.text.len());
        let mut stream = TcpStream::connect(address).map_err(|error| BenchError::connect(address, &error))?;
        stream.write_all(head.as_bytes())?;
        stream.write_all(self.text.as_bytes())?;
        self.text.clear();
        let (mut received, mut part) = (Vec::new(), [0; 4096]);
        loop {
            let length = stream.read(&mut part)?;
            if length == 0 {
                return Err(BenchError::Load("the server closed the connection".into()));
            }
            received.extend_from_slice(&part[..length]);
            match http::reply(&received) {
                Some(Reply::Loaded(rows)) => {
                    self.rows += rows;
                    return Ok(());
                }
                Some(Reply::Refused(text)) => return Err(BenchError::Load(text)),
                Some(Reply::Accepted) => {
                    return Err(BenchError::Load("its answer does not count rows".into()));
                }
                None => {}
            }
        }
    }
}
