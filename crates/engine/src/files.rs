//! Files that a query reads with `S3()`, `HTTP()` and `LOCAL()`: finds them, and decodes them like the bodies of loads.
//!
//! | file | purpose |
//! | --- | --- |
//! | `format` | turns properties into a format, and the columns of files into those of one table |
//! | `reader` | the bytes of one file become batches |
//! | `table` | several files become one table, whose parts are read in parallel |
//!
//! Invariant: memory is bounded, however large the files are: each part has one file open, with a chunk and a batch of it, and
//! the memory of its decoder, which is counted like a load's. An error names the file, and no secrets.
//!
//! Not here: the places of files and the access to them, which is the crate `files`.

mod format;
pub(crate) mod outfile;
mod reader;
mod table;

use crate::node::host::{Host, SpoolRoom};
use crate::variables::time_zone::Zone;
use format::FilesFormat;
use std::path::PathBuf;
use std::sync::Arc;
use table::Files;
use tributary_decode::LoadHost;
use tributary_files::{Place, Properties};
use tributary_query::{FileTable, SessionView};
use tributary_sql::{FileCall, FileFunction};
use tributary_types::{Egress, ErrorCode, SqlError};

/// The server's resources for reading files.
pub(crate) struct FileReading {
    pub room: SpoolRoom,
    /// The directory of files of this machine that statements may name.
    pub local_dir: Option<PathBuf>,
    /// The servers that statements may name.
    pub egress: Arc<Egress>,
    /// How many files one statement reads side by side.
    pub parallel: usize,
}

impl FileReading {
    /// Opens the table of a call.
    ///
    /// # Errors
    /// Properties that are missing, wrong or unknown; files that can't be found, or whose columns can't be determined.
    pub async fn open(&self, call: &FileCall, session: &SessionView) -> Result<Arc<dyn FileTable>, SqlError> {
        let properties = call.properties.iter().map(|(name, text)| (name.clone(), text.clone()));
        let mut properties: Properties = properties.collect();
        let place = match call.function {
            FileFunction::S3 => Place::s3(&mut properties, &self.egress),
            FileFunction::Http => Place::http(&mut properties, &self.egress),
            FileFunction::Local => {
                // There is one node, whichever a statement means.
                properties.take_any(["backend_id"]);
                properties.take_flag(["shared_storage"])?;
                Place::local(&mut properties, self.local_dir.as_deref())
            }
        };
        let (place, zone) = (place?, Zone::named(&session.time_zone));
        let utc_offset_seconds = zone.offset_seconds(session.now_unix_micros);
        let format = FilesFormat::take(call.function.name(), &mut properties, utc_offset_seconds)?;
        let host: Arc<dyn LoadHost> = Arc::new(Host { room: self.room.clone(), zone });
        let files = Files::open(place, format, host, &self.room, self.parallel).await?;
        Ok(Arc::new(files))
    }
}

fn refused(text: impl AsRef<str>) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, text)
}
