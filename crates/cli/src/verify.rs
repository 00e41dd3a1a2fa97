//! `tributary verify`: the statement VERIFY.

use crate::asked::{ask, printable};
use crate::http::{Address, Server};
use crate::load::parse_time;
use crate::password::Login;
use clap::Args;
use serde_json::Value;
use std::process::ExitCode;
use std::time::Duration;

/// Compares what a server has acknowledged with what queries see and with the Delta tables
#[derive(Args, Clone, Debug)]
pub struct Verify {
    /// The server's HTTP port
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8030")]
    url: String,
    #[command(flatten)]
    login: Login,
    /// A table, as `db.table`; can be repeated. By default all
    #[arg(long = "table", value_name = "TABLE", value_parser = table)]
    tables: Vec<Table>,
    /// Also reads all pages of the data files, and looks for keys that are there twice
    #[arg(long)]
    full: bool,
    /// Prints the tables as a JSON array
    #[arg(long)]
    json: bool,
    /// Prints tables that are wrong, and no others
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// How long the comparison may take
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_time)]
    timeout: Duration,
}

/// Tables are wrong.
const WRONG: u8 = 1;
/// The server gave no answer that says how they are.
const UNKNOWN: u8 = 2;

/// A table and its database.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Table {
    db: String,
    name: String,
}

fn table(text: &str) -> Result<Table, String> {
    match text.split_once('.') {
        Some((db, name)) if !db.is_empty() && !name.is_empty() => {
            Ok(Table { db: db.to_owned(), name: name.to_owned() })
        }
        _ => Err("a table is named with its database, like db.table".to_owned()),
    }
}

impl Verify {
    /// Has the server compare. The exit code is 0 if all tables are well, 1 if one is not, 2 if the server does not say.
    #[must_use]
    pub fn run(&self) -> ExitCode {
        match self.compare() {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::from(WRONG),
            Err(text) => {
                eprintln!("tributary verify: {text}");
                ExitCode::from(UNKNOWN)
            }
        }
    }

    fn compare(&self) -> Result<bool, String> {
        let address = Address::parse(&self.url)?;
        let (user, password) = self.login.resolve(address.user.as_deref())?;
        let server = Server { address, user, password, patience: self.timeout.max(Duration::from_secs(1)) };
        let tables = ask(&server, &self.statement())?;
        let is_well = |table: &Value| table.get("Result").and_then(Value::as_str) == Some("OK");
        let wrong = tables.iter().filter(|table| !is_well(table)).count();
        if self.json {
            println!("{}", Value::from(tables));
            return Ok(wrong == 0);
        }
        for table in &tables {
            if !(self.quiet && is_well(table)) {
                println!("{}", shown(table));
            }
        }
        if !self.quiet {
            println!("{} tables, {wrong} wrong.", tables.len());
        }
        Ok(wrong == 0)
    }

    fn statement(&self) -> String {
        let quoted = |text: &str| format!("`{}`", text.replace('`', "``"));
        let names = self.tables.iter().map(|table| format!("{}.{}", quoted(&table.db), quoted(&table.name)));
        let mut text = "VERIFY".to_owned();
        if !self.tables.is_empty() {
            text += &format!(" TABLE {}", names.collect::<Vec<_>>().join(", "));
        }
        if self.full {
            text += " FULL";
        }
        text
    }
}

/// A verdict in a line, with another one for its faults.
fn shown(table: &Value) -> String {
    let field = |name: &str| match table.get(name) {
        Some(Value::String(text)) => printable(text),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let mut text = format!(
        "{} {}: {} rows visible at version {}; {} in the Delta table at its version {}, {} in the log, {} wait for their group",
        field("Result"),
        field("Table"),
        field("VisibleRows"),
        field("Version"),
        field("DeltaRows"),
        field("DeltaVersion"),
        field("LogRows"),
        field("WaitingRows"),
    );
    let faults = field("Faults");
    if !faults.is_empty() {
        text.push_str(&format!("\n  {faults}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        verify: Verify,
    }

    fn statement(arguments: &[&str]) -> Result<String, clap::Error> {
        let arguments = std::iter::once(&"verify").chain(arguments);
        Cli::try_parse_from(arguments).map(|cli| cli.verify.statement())
    }

    #[test]
    fn the_statement_names_the_tables() {
        assert_eq!(statement(&[]).expect("legal"), "VERIFY");
        let some = statement(&["--table", "d.t", "--table", "d.a`b", "--full"]).expect("legal");
        assert_eq!(some, "VERIFY TABLE `d`.`t`, `d`.`a``b` FULL");
        statement(&["--table", "t"]).expect_err("no database");
    }

    #[test]
    fn a_wrong_table_is_shown_with_its_faults() {
        let verdict = serde_json::json!({"Table": "d.t", "Result": "WRONG", "Version": 3, "VisibleRows": 5, "DeltaVersion": 1,
            "DeltaRows": 2, "LogRows": 2, "WaitingRows": 0, "Faults": "the data file x\u{1b} is missing"});
        let text = shown(&verdict);
        assert!(text.starts_with("WRONG d.t: 5 rows visible at version 3"), "{text}");
        assert!(text.ends_with("\n  the data file x is missing"), "{text}");
    }
}
