//! The bytes of one file become batches.

use super::format::FilesFormat;
use super::refused;
use crate::node::host::{BodyFile, SpoolRoom, memory_full};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::StreamExt;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use tributary_decode::{Compression, FieldDecoder, LoadHost, MemoryAccount, Spool, Spooled};
use tributary_files::{FoundFile, Place};
use tributary_http::{BodyError, LoadBody};
use tributary_ingest::memory::InFlight;
use tributary_types::SqlError;

/// Reads one file.
pub(super) struct FileReader {
    name: String,
    decoder: Box<dyn FieldDecoder>,
    /// `None` after its end.
    body: Option<LoadBody>,
    ready: VecDeque<RecordBatch>,
    /// The decoder's memory.
    held: InFlight,
}

impl FileReader {
    /// Opens a file. Unreadable contents are reported when they are read.
    ///
    /// # Errors
    /// A file of this machine can't be opened.
    pub fn open(
        place: &Place,
        file: &FoundFile,
        format: &FilesFormat,
        host: &Arc<dyn LoadHost>,
        room: &SpoolRoom,
    ) -> Result<Self, SqlError> {
        let compression = format.compression(&file.name);
        // A format that is read from its end waits for all of its bytes, unless they are at hand.
        let at_hand = match format.body.has_types() && compression == Compression::None {
            true => place.open_local(file)?,
            false => None,
        };
        let (host, body) = match at_hand.and_then(|opened| BodyFile::new(opened).ok()) {
            Some(opened) => {
                let host = AtHand { host: Arc::clone(host), file: Mutex::new(Some(Arc::new(opened))) };
                (Arc::new(host) as Arc<dyn LoadHost>, LoadBody::from_chunks([]))
            }
            None => {
                let chunks = place.open(file).map(|chunk| chunk.map_err(|error| error.to_string()));
                let limit_bytes = room.limit_of(&format.body);
                (Arc::clone(host), LoadBody::from_stream(chunks.boxed(), limit_bytes).decompress(compression))
            }
        };
        let decoder = format.body.fields(format.names(), &[], &host)?;
        Ok(Self {
            name: file.name.clone(),
            decoder,
            body: Some(body),
            ready: VecDeque::new(),
            held: InFlight::new(&room.memory),
        })
    }

    /// The file's columns; `None` for a file without a row.
    ///
    /// # Errors
    /// The file can't be read.
    pub async fn schema(&mut self) -> Result<Option<SchemaRef>, SqlError> {
        loop {
            if let Ok(schema) = self.decoder.schema() {
                return Ok(Some(schema));
            }
            if !self.read().await? {
                return Ok(self.decoder.schema().ok());
            }
        }
    }

    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// The file can't be read, or a row can't.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>, SqlError> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            let is_more = self.decoder.resume().map_err(|error| self.named(&error))?;
            if is_more {
                self.take()?;
            } else if !self.read().await? {
                return Ok(None);
            }
        }
    }

    /// An error of this file's rows.
    pub fn named(&self, error: &SqlError) -> SqlError {
        let text = format!("the file '{}': {}", self.name, error.detail_text());
        SqlError::detail(error.code, text)
    }

    /// Decodes the next bytes; whether there were some.
    async fn read(&mut self) -> Result<bool, SqlError> {
        let Some(body) = &mut self.body else { return Ok(false) };
        let decoded = match body.next().await {
            Some(Ok(chunk)) => self.decoder.push(&chunk),
            // It names the file.
            Some(Err(BodyError::Unreadable { what })) => return Err(refused(what)),
            Some(Err(error)) => Err(refused(error.to_string())),
            None => {
                self.body = None;
                self.decoder.finish()
            }
        };
        decoded.map_err(|error| self.named(&error))?;
        self.take()?;
        Ok(true)
    }

    /// Takes the batches that are complete.
    fn take(&mut self) -> Result<(), SqlError> {
        self.ready.extend(self.decoder.take_batches());
        if !self.held.try_set(self.decoder.held_bytes() as u64) {
            return Err(self.named(&memory_full()));
        }
        match self.decoder.rejects().first() {
            None => Ok(()),
            Some(reject) => {
                let text =
                    format!("{reject}a query reads all rows of a file or none; mend or remove this one");
                Err(self.named(&refused(text)))
            }
        }
    }
}

/// A host of a body that is in a file already.
struct AtHand {
    host: Arc<dyn LoadHost>,
    file: Mutex<Option<Arc<dyn Spooled>>>,
}

impl LoadHost for AtHand {
    fn spool(&self) -> Box<dyn Spool> {
        match self.file.lock().take() {
            Some(file) => Box::new(Whole(file)),
            None => self.host.spool(),
        }
    }

    fn offset_seconds(&self, unix_micros: i64) -> i32 {
        self.host.offset_seconds(unix_micros)
    }

    fn zone_offset_seconds(&self, zone: &str, unix_micros: i64) -> Option<i32> {
        self.host.zone_offset_seconds(zone, unix_micros)
    }

    fn memory(&self) -> Box<dyn MemoryAccount> {
        self.host.memory()
    }
}

/// A body that was gathered before.
struct Whole(Arc<dyn Spooled>);

impl Spool for Whole {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "the body is complete"))
    }

    fn held_bytes(&self) -> usize {
        self.0.held_bytes()
    }

    fn finish(self: Box<Self>) -> io::Result<Arc<dyn Spooled>> {
        Ok(self.0)
    }
}
