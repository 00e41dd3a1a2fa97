//! MySQL's protocol: MariaDB and Tributary.

use crate::load::{Form, Load, Table};
use crate::peer::{Peer, mysql};
use crate::servers::Server;
use crate::{Outcome, payload, rows};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params, Statement, Value};
use std::io;

pub struct Client {
    connection: Conn,
    request: Request,
}

enum Request {
    Prepared(Statement, Vec<Value>),
    Text(String),
    Infile(String, Bytes),
}

impl Client {
    pub async fn connect(peer: Peer, server: &Server, load: &Load, index: usize) -> Outcome<Self> {
        let mut connection = mysql(peer, server).await?;
        let name = load.table.name();
        let request = match load.form {
            Form::Prepared => {
                let row = format!("({})", vec!["?"; load.table.width()].join(","));
                let values = vec![row; load.rows as usize].join(",");
                let statement = connection.prep(format!("INSERT INTO {name} VALUES {values}")).await?;
                Request::Prepared(statement, values_of(load, index))
            }
            Form::Text => Request::Text(payload::text_insert(index, load.rows)),
            Form::Csv => Request::Infile(
                format!("LOAD DATA LOCAL INFILE 'rows' INTO TABLE {name} FIELDS TERMINATED BY '|'"),
                payload::csv(index, load.rows).into(),
            ),
        };
        Ok(Self { connection, request })
    }

    pub async fn send(&mut self) -> Outcome<()> {
        match &self.request {
            Request::Prepared(statement, values) => {
                self.connection.exec_drop(statement, Params::Positional(values.clone())).await?;
            }
            Request::Text(sql) => self.connection.query_drop(sql.as_str()).await?,
            Request::Infile(sql, csv) => {
                let csv = csv.clone();
                let chunks = async move { Ok(stream::once(async move { io::Result::Ok(csv) }).boxed()) };
                self.connection.set_infile_handler(chunks);
                self.connection.query_drop(sql.as_str()).await?;
            }
        }
        Ok(())
    }
}

fn values_of(load: &Load, index: usize) -> Vec<Value> {
    match load.table {
        Table::Lineitem => {
            payload::lineitem_rows(index, load.rows).iter().flat_map(lineitem_values).collect()
        }
        _ => payload::small_rows(index, load.rows)
            .into_iter()
            .flat_map(|row| [row.id.into(), row.name.into(), row.score.into()])
            .collect(),
    }
}

/// DECIMALs as text, as JDBC's drivers send them.
fn lineitem_values(item: &rows::Lineitem) -> [Value; 16] {
    let date = |(year, month, day)| Value::Date(year, month, day, 0, 0, 0, 0);
    let [ship, commit, receipt] = item.dates.map(date);
    [
        item.orderkey.into(),
        item.partkey.into(),
        item.suppkey.into(),
        item.linenumber.into(),
        rows::money(item.quantity * 100).into(),
        rows::money(item.price_cents).into(),
        rows::money(item.discount_cents).into(),
        rows::money(item.tax_cents).into(),
        item.returnflag.into(),
        item.linestatus.into(),
        ship,
        commit,
        receipt,
        item.instruct.into(),
        item.mode.into(),
        item.comment.as_str().into(),
    ]
}
