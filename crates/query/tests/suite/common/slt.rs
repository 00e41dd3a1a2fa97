//! Runs files of SQL and answers in sqllogictest's format; `suite/slt.rs` says what is in them.

use super::{Server, rows};
use std::path::Path;

/// Where rows lie while a file runs.
#[derive(Clone, Copy, PartialEq)]
pub enum Rows {
    InMemory,
    InDataFiles,
}

/// Runs a file and says what it gave that it must not give.
pub async fn failures(server: &mut Server, path: &Path, place: Rows) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut failures = Vec::new();
    for record in text.split("\n\n").map(str::trim).filter(|record| !record.is_empty()) {
        let record: Vec<&str> = record.lines().filter(|line| !line.starts_with('#')).collect();
        let Some((head, body)) = record.split_first() else { continue };
        let outcome = match head.split_once(' ') {
            Some(("statement", expected)) => statement(server, &body.join("\n"), expected, place).await,
            Some(("query", options)) => query(server, body, options).await,
            _ => Err(format!("'{head}' begins no record")),
        };
        if let Err(reason) = outcome {
            failures.push(format!("{}\n{reason}", body.join("\n")));
        }
    }
    failures
}

async fn statement(server: &mut Server, sql: &str, expected: &str, place: Rows) -> Result<(), String> {
    let outcome = server.run(sql).await;
    match (expected.strip_prefix("error"), outcome) {
        (None, Ok(_)) => {
            if place == Rows::InDataFiles
                && let Some(rest) = sql.strip_prefix("INSERT INTO ")
            {
                let name = rest.split_whitespace().next().unwrap_or_default();
                server.run(&format!("FLUSH {name}")).await.map_err(|error| error.to_string())?;
            }
            Ok(())
        }
        (None, Err(error)) => Err(error.to_string()),
        (Some(_), Ok(_)) => Err("it succeeded".to_owned()),
        (Some(part), Err(error)) if error.to_string().contains(part.trim()) => Ok(()),
        (Some(part), Err(error)) => Err(format!("the error is\n{error}\nand not\n{part}")),
    }
}

async fn query(server: &mut Server, body: &[&str], options: &str) -> Result<(), String> {
    let line = body.iter().position(|line| *line == "----").unwrap_or(body.len());
    let sql = body[..line].join("\n");
    let mut expected: Vec<String> = body.iter().skip(line + 1).map(|line| (*line).to_owned()).collect();
    let (_, batches) =
        server.run(&sql).await.map_err(|error| error.to_string())?.ok_or("it has no result")?;
    let mut actual: Vec<String> = rows(&batches).into_iter().map(|row| row.join(" ")).collect();
    if options.contains("rowsort") {
        actual.sort();
        expected.sort();
    }
    let columns = options.split_whitespace().next().unwrap_or_default().len();
    if batches.first().is_some_and(|batch| batch.num_columns() != columns) {
        return Err(format!("it has {} columns", batches[0].num_columns()));
    }
    if actual == expected {
        Ok(())
    } else {
        Err(format!("gave\n{}\nand not\n{}", actual.join("\n"), expected.join("\n")))
    }
}
