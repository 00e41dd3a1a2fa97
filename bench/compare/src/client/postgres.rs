//! PostgreSQL's protocol.

use crate::load::{Form, Load, Table};
use crate::payload::days_since_1970;
use crate::peer::postgres;
use crate::servers::Server;
use crate::{Outcome, payload, rows};
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::SinkExt;
use std::error::Error;
use tokio_postgres::Statement;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

pub struct Client {
    connection: tokio_postgres::Client,
    request: Request,
}

enum Request {
    Prepared(Statement, Vec<Binary>),
    Text(String),
    Copy(String, Bytes),
}

/// A value in PostgreSQL's binary form.
#[derive(Debug)]
struct Binary(Vec<u8>);

impl ToSql for Binary {
    fn to_sql(&self, _type: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.put_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(_type: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl Client {
    pub async fn connect(server: &Server, load: &Load, index: usize) -> Outcome<Self> {
        let connection = postgres(server).await?;
        let name = load.table.name();
        let request = match load.form {
            Form::Prepared => {
                let width = load.table.width();
                let row = |row: usize| {
                    let params: Vec<String> =
                        (1..=width).map(|param| format!("${}", row * width + param)).collect();
                    format!("({})", params.join(","))
                };
                let values: Vec<String> = (0..load.rows as usize).map(row).collect();
                let sql = format!("INSERT INTO {name} VALUES {}", values.join(","));
                Request::Prepared(connection.prepare(&sql).await?, values_of(load, index))
            }
            Form::Text => Request::Text(payload::text_insert(index, load.rows)),
            Form::Csv => Request::Copy(
                format!("COPY {name} FROM STDIN WITH (FORMAT csv, DELIMITER '|')"),
                payload::csv(index, load.rows).into(),
            ),
        };
        Ok(Self { connection, request })
    }

    pub async fn send(&mut self) -> Outcome<()> {
        match &self.request {
            Request::Prepared(statement, values) => {
                let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
                self.connection.execute(statement, &values).await?;
            }
            Request::Text(sql) => self.connection.batch_execute(sql).await?,
            Request::Copy(sql, csv) => {
                let mut sink = std::pin::pin!(self.connection.copy_in::<_, Bytes>(sql.as_str()).await?);
                sink.send(csv.clone()).await?;
                sink.finish().await?;
            }
        }
        Ok(())
    }
}

fn values_of(load: &Load, index: usize) -> Vec<Binary> {
    match load.table {
        Table::Lineitem => {
            payload::lineitem_rows(index, load.rows).iter().flat_map(lineitem_values).collect()
        }
        _ => payload::small_rows(index, load.rows)
            .into_iter()
            .flat_map(|row| [long(row.id), Binary(row.name.into_bytes()), int(row.score)])
            .collect(),
    }
}

fn lineitem_values(item: &rows::Lineitem) -> [Binary; 16] {
    let [ship, commit, receipt] = item.dates.map(date);
    [
        long(item.orderkey as i64),
        int(item.partkey as i32),
        int(item.suppkey as i32),
        int(item.linenumber as i32),
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

fn long(value: i64) -> Binary {
    Binary(value.to_be_bytes().to_vec())
}

fn int(value: i32) -> Binary {
    Binary(value.to_be_bytes().to_vec())
}

fn text(value: &str) -> Binary {
    Binary(value.as_bytes().to_vec())
}

/// Days since 2000-01-01.
fn date(date: (u16, u8, u8)) -> Binary {
    int((days_since_1970(date) - days_since_1970((2000, 1, 1))) as i32)
}

/// NUMERIC with two digits after the point: groups of four digits, the weight of the first group, the sign,
/// the digits after the point.
fn money(cents: u64) -> Binary {
    let mut groups = vec![(cents % 100 * 100) as i16];
    let mut whole = cents / 100;
    while whole > 0 {
        groups.push((whole % 10_000) as i16);
        whole /= 10_000;
    }
    let weight = groups.len() as i16 - 2;
    let head = [groups.len() as i16, weight, 0, 2];
    Binary(head.iter().chain(groups.iter().rev()).flat_map(|number| number.to_be_bytes()).collect())
}
