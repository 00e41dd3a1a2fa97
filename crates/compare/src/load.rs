//! The loads: the contents of one request, and the number of connections.

/// One of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    Small,
    Lineitem,
    AccessLog,
    /// With a key and one row per key.
    Keyed,
}

/// The format of a request. QuestDB receives all of them in its line protocol over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A prepared INSERT with parameters.
    Prepared,
    /// An INSERT as text.
    Text,
    /// CSV in bulk: Stream Load, LOAD DATA LOCAL INFILE, COPY.
    Csv,
}

#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub name: &'static str,
    pub table: Table,
    pub form: Form,
    /// Rows of a request.
    pub rows: u64,
    pub connections: usize,
}

const fn load(name: &'static str, table: Table, form: Form, rows: u64, connections: usize) -> Load {
    Load { name, table, form, rows, connections }
}

pub const LOADS: &[Load] = &[
    load("1 row prepared, 30 conns", Table::Small, Form::Prepared, 1, 30),
    load("1 row prepared, 500 conns", Table::Small, Form::Prepared, 1, 500),
    load("100 rows prepared, 10 conns", Table::Lineitem, Form::Prepared, 100, 10),
    load("100 rows prepared, 30 conns", Table::Lineitem, Form::Prepared, 100, 30),
    load("1,000 rows text, 30 conns", Table::Small, Form::Text, 1000, 30),
    load("CSV 8 MB, 4 conns", Table::AccessLog, Form::Csv, 100_000, 4),
];

/// The loads of `--upserts`, all as text.
pub const UPSERTS: &[Load] = &[
    load("1 row upserted, 30 conns", Table::Keyed, Form::Text, 1, 30),
    load("1 row upserted, 500 conns", Table::Keyed, Form::Text, 1, 500),
    load("1,000 rows upserted, 30 conns", Table::Keyed, Form::Text, 1000, 30),
];
