//! `SELECT … INTO OUTFILE`: the rows of a query become files of others.
//!
//! Invariant: a statement that fails or is killed leaves no file.
//!
//! Not its business: where files go, how they are encoded.

use super::EngineSession;
use super::select::columns_of;
use crate::access::{Object, Privilege};
use crate::interrupt::Interrupt;
use arrow::array::RecordBatch;
use arrow::datatypes::{Field, SchemaRef};
use bytes::Bytes;
use futures::StreamExt;
use std::sync::Arc;
use tributary_files::{Output, OutputFile, PageCompression, Properties};
use tributary_mysql::{Column, ResultWriter, TextRows};
use tributary_query::{Grid, QueryResult, ResultColumn, ScalarValue};
use tributary_sql::Outfile;
use tributary_types::{ErrorCode, SqlError};

const FILE_BYTES_DEFAULT: u64 = 1 << 30;
const FILE_BYTES_MIN: u64 = 5 << 20;
const FILE_BYTES_MAX: u64 = 2 << 30;
/// Doris's properties of the result besides those of the place.
const PROPERTIES: [&str; 6] = [
    "column_separator",
    "line_delimiter",
    "max_file_size",
    "success_file_name",
    "compress_type",
    "parquet.compression",
];

/// How the files are written.
enum Form {
    Csv { texts: TextRows, has_names: bool, has_types: bool },
    Parquet(PageCompression),
}

impl Form {
    const fn ending(&self) -> &'static str {
        match self {
            Self::Csv { .. } => "csv",
            Self::Parquet(_) => "parquet",
        }
    }
}

impl EngineSession {
    pub(super) async fn run_outfile(
        &mut self,
        outfile: &Outfile,
        params: &[ScalarValue],
        out: &mut ResultWriter<'_>,
    ) -> Result<(), SqlError> {
        let is_local = outfile.path.starts_with("file://");
        let privilege = if is_local { Privilege::Admin } else { Privilege::Load };
        self.engine.check(&self.principal, privilege, Object::Server)?;
        let given = outfile.properties.0.iter().cloned();
        let mut properties: Properties = given.collect();
        let form = form(outfile.format.as_deref(), &mut properties)?;
        let file_bytes_max = file_bytes_max(properties.take_any(["max_file_size"]))?;
        let success = properties.take_any(["success_file_name"]);
        let local_dir = self.engine.options.secure_load_dir.clone();
        let output = Output::open(&outfile.path, &mut properties, local_dir.as_deref())?;
        if let Some((name, _)) = properties.rest().next() {
            return Err(wrong(&format!(
                "Unknown properties: {name}; besides those of the place there are {}",
                PROPERTIES.join(", ")
            )));
        }
        let process = Arc::clone(&self.process);
        let interrupt = Interrupt::by_kill(&process.stop).or_after(self.query_timeout());
        let view = self.view();
        let result = interrupt.wait(self.queries.query(&view, &outfile.query, params)).await??;
        let mut writing = Writing::new(output.clone(), form, file_bytes_max, &result);
        let written = async {
            writing.write_all(result, interrupt).await?;
            if let Some(name) = &success {
                output.directory().bytes_file(name)?.finish().await?;
            }
            Ok::<_, SqlError>(())
        };
        if let Err(error) = written.await {
            writing.give_up().await;
            return Err(error);
        }
        let grid = Grid::new(&["FileNumber#", "TotalRows#", "FileSize#", "URL"]).with_row(vec![
            (writing.done.len() as u64).into(),
            writing.rows.into(),
            writing.bytes.into(),
            output.shown(&format!("{}_*", writing.id)).into(),
        ]);
        super::select::send(QueryResult::from_rows(&grid)?, out).await
    }
}

/// The files of one result.
struct Writing {
    output: Output,
    form: Form,
    columns: Vec<Column>,
    /// The columns' types, as people write them.
    types: Vec<String>,
    schema: SchemaRef,
    file_bytes_max: u64,
    /// A part of all files' names that no other result has.
    id: String,
    open: Option<OutputFile>,
    /// The names of files that are complete.
    done: Vec<String>,
    rows: u64,
    bytes: u64,
}

impl Writing {
    fn new(output: Output, form: Form, file_bytes_max: u64, result: &QueryResult) -> Self {
        let schema = result.stream.schema();
        let type_of = |(column, field): (&ResultColumn, &Arc<Field>)| match column.declared {
            Some(declared) => declared.to_string(),
            None => tributary_query::type_text(field),
        };
        let types = result.columns.iter().zip(schema.fields()).map(type_of).collect();
        Self {
            output,
            form,
            types,
            columns: columns_of(&result.columns),
            schema,
            file_bytes_max,
            id: format!("{:016x}-{:016x}", rand::random::<u64>(), rand::random::<u64>()),
            open: None,
            done: Vec::new(),
            rows: 0,
            bytes: 0,
        }
    }

    fn name(&self) -> String {
        format!("{}_{}.{}", self.id, self.done.len(), self.form.ending())
    }

    async fn write_all(&mut self, mut result: QueryResult, interrupt: Interrupt<'_>) -> Result<(), SqlError> {
        while let Some(batch) = interrupt.wait(result.stream.next()).await? {
            interrupt.check()?;
            let batch = batch.map_err(|error| tributary_query::stream_error(&error))?;
            self.write(&batch).await?;
        }
        // A result without rows is a file, too.
        if self.open.is_none() && self.done.is_empty() {
            self.open = Some(self.begin().await?);
        }
        self.close().await
    }

    async fn write(&mut self, batch: &RecordBatch) -> Result<(), SqlError> {
        let mut file = match self.open.take() {
            Some(file) => file,
            None => self.begin().await?,
        };
        let written = match &self.form {
            Form::Csv { texts, .. } => {
                let mut bytes = Vec::new();
                match texts.write(&self.columns, batch, &mut bytes) {
                    Ok(()) => file.append(Bytes::from(bytes)).await.map_err(SqlError::from),
                    Err(error) => Err(error),
                }
            }
            Form::Parquet(_) => file.append_rows(batch).await.map_err(SqlError::from),
        };
        let is_full = file.len_bytes() >= self.file_bytes_max;
        self.open = Some(file);
        written?;
        self.rows += batch.num_rows() as u64;
        if is_full { self.close().await } else { Ok(()) }
    }

    /// Alone in its use of `self`: what encodes Parquet can't be looked at from two threads.
    async fn begin(&mut self) -> Result<OutputFile, SqlError> {
        let Form::Csv { texts, has_names, has_types } = &self.form else {
            let Form::Parquet(compression) = &self.form else {
                return Err(wrong("internal error: no format"));
            };
            return Ok(self.output.parquet_file(&self.name(), &self.schema, *compression)?);
        };
        let mut file = self.output.bytes_file(&self.name())?;
        let mut head = Vec::new();
        if *has_names {
            texts.write_line(self.columns.iter().map(|column| column.name.as_str()), &mut head);
        }
        if *has_types {
            texts.write_line(self.types.iter().map(String::as_str), &mut head);
        }
        if !head.is_empty() {
            file.append(Bytes::from(head)).await?;
        }
        Ok(file)
    }

    async fn close(&mut self) -> Result<(), SqlError> {
        let Some(file) = self.open.take() else { return Ok(()) };
        let name = self.name();
        self.bytes += file.finish().await?;
        self.done.push(name);
        Ok(())
    }

    async fn give_up(mut self) {
        if let Some(file) = self.open.take() {
            file.abort().await;
        }
        for name in &self.done {
            if let Err(error) = self.output.delete(name).await {
                tracing::warn!(%error, "a file of a result that failed is left");
            }
        }
    }
}

fn form(format: Option<&str>, properties: &mut Properties) -> Result<Form, SqlError> {
    let separator = properties.take("column_separator");
    let line_end = properties.take("line_delimiter");
    let packed =
        properties.take_any(["compress_type", "parquet.compression"]).map(|text| text.to_ascii_lowercase());
    let format = format.unwrap_or("csv").to_ascii_lowercase();
    if format == "parquet" {
        if separator.is_some() || line_end.is_some() {
            return Err(wrong(
                "column_separator and line_delimiter have no effect with FORMAT AS parquet; leave them out",
            ));
        }
        return Ok(Form::Parquet(match packed.as_deref() {
            None => PageCompression::default(),
            Some("plain" | "uncompressed" | "none") => PageCompression::None,
            Some("snappy") => PageCompression::Snappy,
            Some("zstd") => PageCompression::Zstd,
            Some(other) => {
                return Err(wrong(&format!(
                    "compress_type={other} of parquet is not supported; use plain, snappy or zstd"
                )));
            }
        }));
    }
    let (has_names, has_types) = match format.as_str() {
        "csv" => (false, false),
        "csv_with_names" => (true, false),
        "csv_with_names_and_types" => (true, true),
        "orc" => {
            let text = "FORMAT AS orc is not supported; use parquet or csv";
            return Err(SqlError::detail(ErrorCode::NotSupported, text));
        }
        other => {
            return Err(wrong(&format!(
                "format:{other} is not supported; use csv, csv_with_names, csv_with_names_and_types or parquet"
            )));
        }
    };
    if packed.is_some_and(|packed| !matches!(packed.as_str(), "plain" | "none")) {
        let text = "compress_type of csv is not supported; leave it out";
        return Err(SqlError::detail(ErrorCode::NotSupported, text));
    }
    // Marks as a load would read them.
    let mark = |text: Option<String>, default: &[u8]| match text {
        None => Ok(default.to_vec()),
        Some(text) => tributary_decode::decode_separator(&text).map_err(SqlError::from),
    };
    let texts = TextRows { separator: mark(separator, b"\t")?, line_end: mark(line_end, b"\n")? };
    Ok(Form::Csv { texts, has_names, has_types })
}

/// `max_file_size`: a number of bytes, or with KB, MB or GB.
fn file_bytes_max(text: Option<String>) -> Result<u64, SqlError> {
    let Some(text) = text else { return Ok(FILE_BYTES_DEFAULT) };
    let upper = text.trim().to_ascii_uppercase();
    let (digits, factor) = [("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10), ("B", 1)]
        .into_iter()
        .find_map(|(unit, factor)| Some((upper.strip_suffix(unit)?, factor)))
        .unwrap_or((&upper, 1_u64));
    let bytes = digits.trim().parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    let legal = bytes.filter(|bytes| (FILE_BYTES_MIN..=FILE_BYTES_MAX).contains(bytes));
    legal.ok_or_else(|| wrong(&format!("max file size should between 5MB and 2GB. Given: {text}")))
}

fn wrong(text: &str) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, text)
}
