//! Plain DataFusion with its defaults over Parquet files: what `tributary bench query` is held against.
//!
//! A crate of its own for the sake of build time: DataFusion's asynchronous functions are compiled into their callers, and here
//! that may be done with less optimisation than in `bench`, whose client has to be fast. The operators that the query runs are
//! DataFusion's own, fully optimised.

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::compute::{cast, sum};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::DataFusionError;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// A table of Parquet files, and the threads that queries run on.
#[derive(Debug)]
pub struct Yardstick {
    runtime: Runtime,
    context: Context,
}

struct Context(SessionContext);

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionContext").finish_non_exhaustive()
    }
}

impl Yardstick {
    /// Registers the rows of all files as one table of this name, case-sensitively.
    ///
    /// # Errors
    /// The files can't be read, or the threads can't be started, in DataFusion's words.
    pub fn over(table: &str, files: &[PathBuf]) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let context = runtime.block_on(register(table, files)).map_err(|error| error.to_string())?;
        Ok(Self { runtime, context: Context(context) })
    }

    /// Registers the rows of each table's files under its name, case-sensitively.
    ///
    /// # Errors
    /// As [`Self::over`].
    pub fn with_tables(tables: &BTreeMap<String, Vec<PathBuf>>) -> Result<Self, String> {
        let mut tables = tables.iter();
        let (first, files) = tables.next().ok_or("there are no tables")?;
        let all = Self::over(first, files)?;
        for (name, files) in tables {
            all.runtime.block_on(add(&all.context.0, name, files)).map_err(|error| error.to_string())?;
        }
        Ok(all)
    }

    /// How long the query took, and how many rows it has.
    ///
    /// # Errors
    /// The query fails, in DataFusion's words.
    pub fn rows_of(&self, sql: &str) -> Result<(Duration, usize), String> {
        let begin = Instant::now();
        let batches = self.runtime.block_on(async { self.context.0.sql(sql).await?.collect().await });
        let batches = batches.map_err(|error: DataFusionError| error.to_string())?;
        Ok((begin.elapsed(), batches.iter().map(RecordBatch::num_rows).sum()))
    }

    /// How long the query took, and the sum of its last column, which is a count.
    ///
    /// # Errors
    /// The query fails, in DataFusion's words.
    pub fn ask(&self, sql: &str) -> Result<(Duration, u64), String> {
        self.runtime.block_on(ask(&self.context.0, sql)).map_err(|error| error.to_string())
    }

    /// How long it took to write all rows to Parquet files in the directory, and how many there are.
    ///
    /// # Errors
    /// They can't be written, in DataFusion's words.
    pub fn copy(&self, table: &str, directory: &Path, compression: &str) -> Result<(Duration, u64), String> {
        let sql = format!(
            "COPY (SELECT * FROM {table}) TO '{}/' STORED AS PARQUET OPTIONS ('format.compression' '{compression}')",
            directory.display()
        );
        self.runtime.block_on(ask(&self.context.0, &sql)).map_err(|error| error.to_string())
    }
}

async fn register(table: &str, files: &[PathBuf]) -> Result<SessionContext, DataFusionError> {
    let config = SessionConfig::new().set_bool("datafusion.sql_parser.enable_ident_normalization", false);
    let context = SessionContext::new_with_config(config);
    add(&context, table, files).await?;
    Ok(context)
}

async fn add(context: &SessionContext, table: &str, files: &[PathBuf]) -> Result<(), DataFusionError> {
    let paths: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    let frame = context.read_parquet(paths, ParquetReadOptions::default()).await?;
    context.register_table(table, frame.into_view()).map(drop)
}

async fn ask(context: &SessionContext, sql: &str) -> Result<(Duration, u64), DataFusionError> {
    let begin = Instant::now();
    let batches = context.sql(sql).await?.collect().await?;
    let took = begin.elapsed();
    let counts = batches.iter().filter_map(|batch| cast(batch.columns().last()?, &DataType::Int64).ok());
    let count = |counts: ArrayRef| sum(counts.as_primitive::<Int64Type>()).unwrap_or_default();
    Ok((took, counts.map(count).sum::<i64>().unsigned_abs()))
}
