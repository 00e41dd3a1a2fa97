//! DuckDB, in a Python process of its own, over the server's data files.

use crate::error::BenchError;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Reads a request per line and answers each with a line. Times are taken there: the pipe is not DuckDB's.
const PROGRAM: &str = r"
import duckdb, json, sys, time
connection = duckdb.connect()
connection.execute(f'SET threads = {int(sys.argv[1])}')
print(json.dumps({'version': duckdb.__version__}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    try:
        if 'table' in request:
            files = ', '.join(repr(file) for file in request['files'])
            name = request['table']
            connection.execute(f'CREATE VIEW {name} AS SELECT * FROM read_parquet([{files}])')
            answer = {}
        else:
            begin = time.perf_counter()
            rows = connection.execute(request['query']).fetchall()
            answer = {'seconds': time.perf_counter() - begin, 'rows': len(rows)}
    except Exception as error:
        answer = {'error': str(error)}
    print(json.dumps(answer), flush=True)
";

/// A running DuckDB.
pub struct DuckDb {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pub version: String,
}

impl DuckDb {
    /// Starts the Python interpreter at this path, which has the package `duckdb`.
    ///
    /// # Errors
    /// It does not start, or has no such package.
    pub fn start(python: &Path, threads: usize) -> Result<Self, BenchError> {
        let failed = |reason: String| {
            let python = python.display();
            BenchError::Server(format!(
                "`{python}` does not run DuckDB: {reason}; install it (pip install duckdb) or leave out --duckdb"
            ))
        };
        let mut process = Command::new(python)
            .args(["-c", PROGRAM, &threads.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(failed("it has no input or output".into()));
        };
        let mut duckdb = Self { process, input, output: BufReader::new(output), version: String::new() };
        let answer = duckdb.answer().map_err(|error| failed(error.to_string()))?;
        duckdb.version = answer["version"].as_str().unwrap_or_default().to_owned();
        Ok(duckdb)
    }

    /// Makes a table of these files.
    ///
    /// # Errors
    /// DuckDB's.
    pub fn table(&mut self, name: &str, files: &[PathBuf]) -> Result<(), BenchError> {
        let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        self.ask(&json!({ "table": name, "files": files })).map(drop)
    }

    /// How long the query took, its rows as Python has them, and how many rows there are.
    ///
    /// # Errors
    /// DuckDB's.
    pub fn query(&mut self, sql: &str) -> Result<(Duration, usize), BenchError> {
        let answer = self.ask(&json!({ "query": sql }))?;
        let seconds = answer["seconds"].as_f64().unwrap_or_default();
        let rows = answer["rows"].as_u64().unwrap_or_default();
        Ok((Duration::from_secs_f64(seconds), usize::try_from(rows).unwrap_or(usize::MAX)))
    }

    fn ask(&mut self, request: &Value) -> Result<Value, BenchError> {
        writeln!(self.input, "{request}")?;
        self.input.flush()?;
        self.answer()
    }

    fn answer(&mut self) -> Result<Value, BenchError> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err(BenchError::Server("DuckDB has ended".into()));
        }
        let answer: Value = serde_json::from_str(&line)
            .map_err(|error| BenchError::Server(format!("DuckDB answered {line:?}: {error}")))?;
        match answer["error"].as_str() {
            Some(error) => Err(BenchError::Server(format!("DuckDB: {error}"))),
            None => Ok(answer),
        }
    }
}

impl Drop for DuckDb {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
