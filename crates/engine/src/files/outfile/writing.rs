//! The rows of a query become files.

use super::{Form, RowLines, wrong};
use crate::access::interrupt::Interrupt;
use arrow::array::RecordBatch;
use arrow::datatypes::{Field, SchemaRef};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;
use tributary_files::{Output, OutputFile};
use tributary_query::{QueryResult, ResultColumn};
use tributary_types::SqlError;

/// Batches that wait for each writer.
const WAITING_MAX: usize = 2;
/// How long writers of an abandoned result may take to finish their current step.
const GIVE_UP_MAX: Duration = Duration::from_secs(5);
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The destination of a result's files.
pub(crate) struct Target {
    output: Output,
    form: Form,
    /// The size at which the next file begins.
    file_bytes_max: u64,
    /// A part of all files' names that no other result has.
    id: String,
    /// Files that were begun.
    begun: AtomicU64,
    /// The names of files that are complete.
    done: parking_lot::Mutex<Vec<String>>,
}

impl Target {
    pub fn new(output: Output, form: Form, file_bytes_max: u64, id: String) -> Self {
        Self {
            output,
            form,
            file_bytes_max,
            id,
            begun: AtomicU64::new(0),
            done: parking_lot::Mutex::default(),
        }
    }

    /// A name that no other result has.
    pub fn random_id() -> String {
        format!("{:016x}-{:016x}", rand::random::<u64>(), rand::random::<u64>())
    }

    /// The files' name for users.
    pub fn shown(&self) -> String {
        self.output.shown(&format!("{}_*", self.id))
    }

    fn next_name(&self) -> String {
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        format!("{}_{number}.{}", self.id, self.form.ending())
    }

    async fn delete_done(&self) {
        let names = std::mem::take(&mut *self.done.lock());
        for name in &names {
            if let Err(error) = self.output.delete(name).await {
                tracing::warn!(%error, "a file of a result that failed is left");
            }
        }
    }
}

/// The output of one writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    pub files: u64,
    pub rows: u64,
    pub bytes: u64,
}

/// A writer's next step. The end of all messages without [`Next::End`] means that the result is abandoned.
enum Next {
    Rows(RecordBatch),
    End,
}

/// Writes a result with this number of parallel writers, and an empty file of the name `success` when everything is written. Adds
/// the written rows to `progress`. Every file is complete when this returns.
///
/// # Errors
/// The errors of the query, of the destination, and of the interrupt; then no file is left, unless the destination does not
/// respond any more.
pub(crate) async fn write(
    target: &Arc<Target>,
    mut result: QueryResult,
    writers: usize,
    success: Option<&str>,
    interrupt: Interrupt<'_>,
    progress: &AtomicU64,
) -> Result<Vec<Written>, SqlError> {
    let (sender, receiver) = mpsc::channel(writers * WAITING_MAX);
    let receiver = Arc::new(Mutex::new(receiver));
    let begin = |_| {
        let writer = Writer::new(Arc::clone(target), &result);
        // Unwatched: awaited below.
        tokio::spawn(writer.run(Arc::clone(&receiver)))
    };
    let tasks: FuturesUnordered<_> = (0..writers).map(begin).collect();
    drop(receiver);
    let last = Writer::new(Arc::clone(target), &result);
    let fed = feed(&mut result, sender, writers, interrupt, progress).await;
    let outcome = match ended(tasks, fed, interrupt).await {
        Ok(written) => complete(last, written, success).await,
        Err(error) => Err(error),
    };
    if outcome.is_err() {
        target.delete_done().await;
    }
    outcome
}

/// Waits until the writers have ended.
async fn ended(
    mut tasks: FuturesUnordered<JoinHandle<(Written, Result<(), SqlError>)>>,
    mut outcome: Result<(), SqlError>,
    interrupt: Interrupt<'_>,
) -> Result<Vec<Written>, SqlError> {
    let mut all = Vec::with_capacity(tasks.len());
    let mut patience = Interrupt::after(GIVE_UP_MAX);
    loop {
        let next = match &outcome {
            Ok(()) => interrupt.wait(tasks.next()).await,
            Err(_) => patience.wait(tasks.next()).await,
        };
        let had_failed = outcome.is_err();
        match next {
            Ok(None) => return outcome.map(|()| all),
            Ok(Some(Ok((written, ended)))) => {
                all.push(written);
                outcome = outcome.and(ended);
            }
            Ok(Some(Err(error))) => outcome = outcome.and(Err(wrong(&format!("internal error: {error}")))),
            Err(interrupted) if !had_failed => outcome = Err(interrupted.into()),
            Err(_) => {
                tracing::warn!(
                    "a place of files does not answer; a file of a result that was given up may be left there"
                );
                tasks.iter().for_each(JoinHandle::abort);
                return outcome.map(|()| all);
            }
        }
        if !had_failed && outcome.is_err() {
            patience = Interrupt::after(GIVE_UP_MAX);
        }
    }
}

async fn feed(
    result: &mut QueryResult,
    sender: mpsc::Sender<Next>,
    writers: usize,
    interrupt: Interrupt<'_>,
    progress: &AtomicU64,
) -> Result<(), SqlError> {
    while let Some(batch) = interrupt.wait(result.stream.next()).await? {
        interrupt.check()?;
        let batch = batch.map_err(|error| tributary_query::stream_error(&error))?;
        let rows = batch.num_rows() as u64;
        if interrupt.wait(sender.send(Next::Rows(batch))).await?.is_err() {
            // A writer has failed and says why.
            return Ok(());
        }
        progress.fetch_add(rows, Ordering::Relaxed);
    }
    for _ in 0..writers {
        // As above.
        drop(interrupt.wait(sender.send(Next::End)).await?);
    }
    Ok(())
}

async fn complete(
    mut writer: Writer,
    mut written: Vec<Written>,
    success: Option<&str>,
) -> Result<Vec<Written>, SqlError> {
    // A result without rows is a file, too.
    if written.iter().all(|by| by.files == 0) {
        writer.open = Some(writer.begin().await?);
        writer.close().await?;
        written = vec![writer.written];
    }
    if let Some(name) = success {
        writer.target.output.directory().bytes_file(name)?.finish().await?;
    }
    Ok(written)
}

/// Writes a share of the rows into files of its own.
struct Writer {
    target: Arc<Target>,
    /// The writer of a text file's rows.
    lines: Option<Box<dyn RowLines>>,
    /// The names of the columns.
    names: Vec<String>,
    /// The columns' types, as shown to users.
    types: Vec<String>,
    schema: SchemaRef,
    /// With its name.
    open: Option<(String, OutputFile)>,
    written: Written,
}

impl Writer {
    fn new(target: Arc<Target>, result: &QueryResult) -> Self {
        let schema = result.stream.schema();
        let type_of = |(column, field): (&ResultColumn, &Arc<Field>)| match column.declared {
            Some(declared) => declared.to_string(),
            None => tributary_query::type_text(field),
        };
        let types = result.columns.iter().zip(schema.fields()).map(type_of).collect();
        let lines = match &target.form {
            Form::Csv { marks, lines, .. } => Some(lines(marks, &result.columns)),
            Form::Parquet(_) => None,
        };
        let names = result.columns.iter().map(|column| column.name.clone()).collect();
        Self { target, lines, names, types, schema, open: None, written: Written::default() }
    }

    /// Writes until the end, or gives up.
    async fn run(mut self, next: Arc<Mutex<mpsc::Receiver<Next>>>) -> (Written, Result<(), SqlError>) {
        let written = loop {
            let message = next.lock().await.recv().await;
            let written = match message {
                Some(Next::Rows(batch)) => self.write(&batch).await,
                Some(Next::End) => break self.close().await,
                None => {
                    self.give_up().await;
                    return (self.written, Ok(()));
                }
            };
            if written.is_err() {
                break written;
            }
        };
        if written.is_err() {
            // The others give up, too.
            next.lock().await.close();
            self.give_up().await;
        }
        (self.written, written)
    }

    async fn write(&mut self, batch: &RecordBatch) -> Result<(), SqlError> {
        let (name, mut file) = match self.open.take() {
            Some(open) => open,
            None => self.begin().await?,
        };
        let written = match &self.lines {
            Some(lines) => {
                let mut bytes = Vec::new();
                match lines.write(batch, &mut bytes) {
                    Ok(()) => file.append(Bytes::from(bytes)).await.map_err(SqlError::from),
                    Err(error) => Err(error),
                }
            }
            None => file.append_rows(batch).await.map_err(SqlError::from),
        };
        let is_full = file.len_bytes() >= self.target.file_bytes_max;
        self.open = Some((name, file));
        written?;
        self.written.rows += batch.num_rows() as u64;
        if is_full { self.close().await } else { Ok(()) }
    }

    /// Alone in its use of `self`: what encodes Parquet can't be looked at from two threads.
    async fn begin(&mut self) -> Result<(String, OutputFile), SqlError> {
        let Target { output, form, .. } = &*self.target;
        let name = self.target.next_name();
        let (marks, has_bom, has_names, has_types) = match form {
            Form::Csv { marks, has_bom, has_names, has_types, .. } => {
                (marks, *has_bom, *has_names, *has_types)
            }
            Form::Parquet(compression) => {
                let file = output.parquet_file(&name, &self.schema, *compression)?;
                return Ok((name, file));
            }
        };
        let mut file = output.bytes_file(&name)?;
        let mut head = Vec::new();
        if has_bom {
            head.extend_from_slice(BYTE_ORDER_MARK);
        }
        if has_names {
            marks.write_line(self.names.iter().map(String::as_str), &mut head);
        }
        if has_types {
            marks.write_line(self.types.iter().map(String::as_str), &mut head);
        }
        if !head.is_empty() {
            file.append(Bytes::from(head)).await?;
        }
        Ok((name, file))
    }

    async fn close(&mut self) -> Result<(), SqlError> {
        let Some((name, file)) = self.open.take() else { return Ok(()) };
        self.written.bytes += file.finish().await?;
        self.written.files += 1;
        self.target.done.lock().push(name);
        Ok(())
    }

    async fn give_up(&mut self) {
        if let Some((_, file)) = self.open.take() {
            file.abort().await;
        }
        self.target.delete_done().await;
    }
}
