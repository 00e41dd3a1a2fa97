//! Several files as one table.

use super::format::FilesFormat;
use super::reader::FileReader;
use super::refused;
use crate::node::host::SpoolRoom;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::stream::{self, BoxStream};
use parking_lot::Mutex;
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::Arc;
use tributary_decode::LoadHost;
use tributary_files::{FoundFile, Place};
use tributary_query::FileTable;
use tributary_types::SqlError;

/// Files that one call names.
pub(super) struct Files {
    source: Arc<Source>,
    schema: SchemaRef,
    /// The files of each part.
    parts: Vec<Vec<FoundFile>>,
    /// The file whose columns were read, still open: its bytes need not be fetched twice.
    begun: Mutex<Option<(FoundFile, FileReader)>>,
}

/// The inputs for opening a file.
struct Source {
    place: Place,
    format: FilesFormat,
    host: Arc<dyn LoadHost>,
    room: SpoolRoom,
}

impl Source {
    fn open(&self, file: &FoundFile) -> Result<FileReader, SqlError> {
        FileReader::open(&self.place, file, &self.format, &self.host, &self.room)
    }
}

impl Files {
    /// Finds the files and their columns.
    ///
    /// # Errors
    /// There are no such files, the first one with a row can't be read, or none has a row.
    pub async fn open(
        place: Place,
        format: FilesFormat,
        host: Arc<dyn LoadHost>,
        room: &SpoolRoom,
        parallel: usize,
    ) -> Result<Self, SqlError> {
        let files = place.find().await?;
        let source = Source { place, format, host, room: room.clone() };
        let mut begun = None;
        let schema = match source.format.declared() {
            Some(schema) => Arc::clone(schema),
            None => {
                let (schema, file, reader) = first_columns(&source, &files).await?;
                begun = Some((file, reader));
                schema
            }
        };
        let parts = parts(files, parallel);
        Ok(Self { source: Arc::new(source), schema, parts, begun: Mutex::new(begun) })
    }

    /// The reader of a file: one that is open already, or a new one.
    fn reader(&self, file: &FoundFile) -> Option<FileReader> {
        let mut begun = self.begun.lock();
        begun.take_if(|(known, _)| known == file).map(|(_, reader)| reader)
    }
}

impl FileTable for Files {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn partitions(&self) -> usize {
        self.parts.len()
    }

    fn read(&self, partition: usize) -> BoxStream<'static, Result<RecordBatch, SqlError>> {
        let files: VecDeque<FoundFile> = self.parts.get(partition).cloned().unwrap_or_default().into();
        let part = Part {
            source: Arc::clone(&self.source),
            schema: Arc::clone(&self.schema),
            reader: files.front().and_then(|file| self.reader(file)),
            files,
            ready: VecDeque::new(),
        };
        Box::pin(stream::try_unfold(part, |mut part| async move {
            let batch = part.next().await?;
            Ok(batch.map(|batch| (batch, part)))
        }))
    }
}

/// Files of one part in progress.
struct Part {
    source: Arc<Source>,
    schema: SchemaRef,
    /// The file that is read, and those after it.
    files: VecDeque<FoundFile>,
    reader: Option<FileReader>,
    ready: VecDeque<RecordBatch>,
}

impl Part {
    async fn next(&mut self) -> Result<Option<RecordBatch>, SqlError> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            let reader = match &mut self.reader {
                Some(reader) => reader,
                None => {
                    let Some(file) = self.files.front() else { return Ok(None) };
                    self.reader.insert(self.source.open(file)?)
                }
            };
            match reader.next().await? {
                Some(batch) => {
                    let adapted = self.source.format.adapted(&batch, &self.schema);
                    self.ready.extend(adapted.map_err(|error| reader.named(&error))?);
                }
                None => {
                    self.reader = None;
                    self.files.pop_front();
                }
            }
        }
    }
}

/// The columns of the first file that has a row.
async fn first_columns(
    source: &Source,
    files: &[FoundFile],
) -> Result<(SchemaRef, FoundFile, FileReader), SqlError> {
    for file in files {
        let mut reader = source.open(file)?;
        if let Some(schema) = reader.schema().await? {
            return Ok((schema, file.clone(), reader));
        }
    }
    Err(refused("no file has a row, so their columns can't be told; csv_schema names those of CSV files"))
}

/// The files for each of at most `most` parts: the largest first, each to the part that has least.
fn parts(mut files: Vec<FoundFile>, most: usize) -> Vec<Vec<FoundFile>> {
    let count = files.len().clamp(1, most.max(1));
    let mut parts = vec![(0_u64, Vec::new()); count];
    files.sort_by_key(|file| Reverse(file.size_bytes));
    for file in files {
        let smallest = parts.iter_mut().min_by_key(|(bytes, files)| (*bytes, files.len()));
        if let Some((bytes, files)) = smallest {
            *bytes += file.size_bytes.unwrap_or(0);
            files.push(file);
        }
    }
    parts
        .into_iter()
        .map(|(_, mut files)| {
            files.sort_by(|left, right| left.name.cmp(&right.name));
            files
        })
        .collect()
}
