//! The journal: a file of JSON lines from which a load is resumed.
//!
//! *Invariant:* a chunk's place and name are on disk before its first byte is sent, and never change. So whatever the chunk size of a
//! later run, the same rows have the same name, by which the server knows them.

use crate::load::shape::Shape;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use xxhash_rust::xxh3::xxh3_64;

const VERSION: u32 = 1;
/// Bytes at each end of a file that tell it from others.
const END_BYTES: u64 = 64 << 10;

/// How the server knows a chunk again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Naming {
    /// By its label: the chunk is a transaction of its own.
    Label,
    /// By its idempotency key: the chunk shares a group.
    Key,
}

/// A file of the load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Input {
    pub path: PathBuf,
    pub bytes: u64,
    modified_ms: u64,
    ends: String,
    pub shape: Shape,
}

impl Input {
    /// Describes a file by its size, its time and the hash of its ends.
    pub fn of(path: &Path, shape: Shape) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let about = file.metadata()?;
        let mut ends = Vec::new();
        (&mut file).take(END_BYTES).read_to_end(&mut ends)?;
        file.seek(SeekFrom::Start(about.len().saturating_sub(END_BYTES)))?;
        file.take(END_BYTES).read_to_end(&mut ends)?;
        let modified = about.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (bytes, modified_ms) = (about.len(), modified.as_millis() as u64);
        Ok(Self { path: path.to_owned(), bytes, modified_ms, ends: hash(&ends), shape })
    }

    pub fn is_same_file(&self, other: &Self) -> bool {
        (self.bytes, self.modified_ms, &self.ends) == (other.bytes, other.modified_ms, &other.ends)
    }
}

/// The journal's first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    journal: u32,
    pub id: String,
    pub table: String,
    pub naming: Naming,
    pub files: Vec<Input>,
}

/// A chunk: its place in its file's unpacked bytes, and its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Chunk {
    #[serde(rename = "chunk")]
    pub number: u64,
    pub file: usize,
    pub offset: u64,
    pub bytes: u64,
    /// Bytes of the file as it is that end with the chunk, for the progress.
    pub source_end: u64,
    pub hash: String,
    pub name: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Record {
    Chunk(Chunk),
    /// Its first byte is about to be sent.
    Sent {
        sent: u64,
        at: u64,
    },
    /// Its rows are stored. The counts are unknown if only the name told so.
    Done {
        done: u64,
        rows: Option<u64>,
        filtered: Option<u64>,
    },
    /// The server has stored nothing of it.
    Failed {
        failed: u64,
        message: String,
    },
    /// The file has no further chunks.
    End {
        end: usize,
    },
}

/// A chunk's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// When it was sent for the first time, in seconds since 1970.
    pub sent_at: Option<u64>,
    pub is_done: bool,
    pub rows: Option<u64>,
    pub filtered: Option<u64>,
}

/// A load's journal. Each change is on disk when its method returns.
#[derive(Debug)]
pub(crate) struct Journal {
    /// None for standard input, which can't be read again.
    file: Option<File>,
    pub head: Head,
    pub chunks: Vec<(Chunk, State)>,
    pub ended: Vec<bool>,
}

impl Journal {
    /// Begins a journal. Nothing may be at its path.
    pub fn create(path: Option<&Path>, table: &str, naming: Naming, files: Vec<Input>) -> io::Result<Self> {
        let id = new_id()?;
        // Standard input has no entry, and chunks all the same.
        let ended = vec![false; files.len().max(1)];
        let head = Head { journal: VERSION, id, table: table.to_owned(), naming, files };
        let mut journal = Self { file: None, head, chunks: Vec::new(), ended };
        if let Some(path) = path {
            let mut file =
                OpenOptions::new().create_new(true).read(true).write(true).mode(0o600).open(path)?;
            lock(&file)?;
            file.write_all(&line(&journal.head)?)?;
            file.sync_all()?;
            // The file's name is to survive as well.
            let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            File::open(directory.unwrap_or(Path::new(".")))?.sync_all()?;
            journal.file = Some(file);
        }
        Ok(journal)
    }

    /// Opens a journal, or `None` if there is none. A last line that a crash has torn is cut off.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        lock(&file)?;
        let mut reader = BufReader::new(file);
        let mut bytes = Vec::new();
        let mut length = reader.read_until(b'\n', &mut bytes)? as u64;
        if !bytes.ends_with(b"\n") {
            // Killed before the journal's first line was whole: nothing was sent.
            drop(reader);
            std::fs::remove_file(path)?;
            return Ok(None);
        }
        let head: Head = serde_json::from_slice(&bytes).map_err(|error| damaged(1, &error.to_string()))?;
        if head.journal != VERSION {
            return Err(damaged(1, &format!("version {} is not {VERSION}", head.journal)));
        }
        let ended = vec![false; head.files.len()];
        let mut journal = Self { file: None, head, chunks: Vec::new(), ended };
        for number in 2.. {
            bytes.clear();
            let read = reader.read_until(b'\n', &mut bytes)? as u64;
            if !bytes.ends_with(b"\n") {
                break;
            }
            length += read;
            let record =
                serde_json::from_slice(&bytes).map_err(|error| damaged(number, &error.to_string()))?;
            journal.apply(record).ok_or_else(|| damaged(number, "an unknown chunk"))?;
        }
        let mut file = reader.into_inner();
        file.set_len(length)?;
        file.seek(SeekFrom::End(0))?;
        journal.file = Some(file);
        Ok(Some(journal))
    }

    /// A journal of nothing, to take the place of another.
    pub fn nothing() -> Self {
        let (id, table) = (String::new(), String::new());
        let head = Head { journal: VERSION, id, table, naming: Naming::Label, files: Vec::new() };
        Self { file: None, head, chunks: Vec::new(), ended: Vec::new() }
    }

    /// Stores the next chunk of a file.
    pub fn plan(
        &mut self,
        file: usize,
        offset: u64,
        source_end: u64,
        bytes: u64,
        hash: String,
    ) -> io::Result<Chunk> {
        let number = self.chunks.len() as u64;
        let name = format!("tributary_{}_{number}", self.head.id);
        let chunk = Chunk { number, file, offset, bytes, source_end, hash, name };
        self.write(Record::Chunk(chunk.clone()))?;
        Ok(chunk)
    }

    /// Stores that a chunk is about to be sent. Only the first time matters: the server's memory of the name begins then.
    pub fn sent(&mut self, chunk: u64) -> io::Result<()> {
        match self.state(chunk).sent_at {
            Some(_) => Ok(()),
            None => self.write(Record::Sent { sent: chunk, at: now() }),
        }
    }

    pub fn done(&mut self, chunk: u64, rows: Option<u64>, filtered: Option<u64>) -> io::Result<()> {
        self.write(Record::Done { done: chunk, rows, filtered })
    }

    pub fn failed(&mut self, chunk: u64, message: &str) -> io::Result<()> {
        self.write(Record::Failed { failed: chunk, message: message.to_owned() })
    }

    pub fn end(&mut self, file: usize) -> io::Result<()> {
        self.write(Record::End { end: file })
    }

    pub fn state(&self, chunk: u64) -> State {
        self.chunks.get(chunk as usize).map(|(_, state)| *state).unwrap_or_default()
    }

    pub fn is_complete(&self) -> bool {
        self.ended.iter().all(|ended| *ended) && self.chunks.iter().all(|(_, state)| state.is_done)
    }

    fn write(&mut self, record: Record) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            file.write_all(&line(&record)?)?;
            file.sync_data()?;
        }
        self.apply(record).ok_or_else(|| io::Error::other("an unknown chunk"))
    }

    fn apply(&mut self, record: Record) -> Option<()> {
        match record {
            Record::Chunk(chunk) => {
                let is_next = chunk.number == self.chunks.len() as u64 && chunk.file < self.ended.len();
                is_next.then(|| self.chunks.push((chunk, State::default())))?;
            }
            Record::Sent { sent, at } => {
                let state = &mut self.chunks.get_mut(sent as usize)?.1;
                state.sent_at = state.sent_at.or(Some(at));
            }
            Record::Done { done, rows, filtered } => {
                let state = &mut self.chunks.get_mut(done as usize)?.1;
                *state = State { is_done: true, rows, filtered, ..*state };
            }
            // Its name is free again: nothing of it is unknown.
            Record::Failed { failed, .. } => self.chunks.get_mut(failed as usize)?.1.sent_at = None,
            Record::End { end } => *self.ended.get_mut(end)? = true,
        }
        Some(())
    }
}

fn line(record: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(record)?;
    line.push(b'\n');
    Ok(line)
}

fn lock(file: &File) -> io::Result<()> {
    file.try_lock().map_err(|_| io::Error::other("another load uses this journal"))
}

fn damaged(line: usize, what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("line {line} is damaged: {what}"))
}

/// 16 hexadecimal digits that no other journal has.
fn new_id() -> io::Result<String> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{:016x}", u64::from_ne_bytes(bytes)))
}

pub(crate) fn hash(bytes: &[u8]) -> String {
    format!("{:016x}", xxh3_64(bytes))
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::shape::Format;

    #[test]
    fn a_journal_is_read_as_it_was_written_without_a_torn_end() {
        let directory = tempfile::tempdir().expect("a directory");
        let (data, path) = (directory.path().join("data"), directory.path().join("journal"));
        std::fs::write(&data, "1\n2\n").expect("written");
        let input = Input::of(&data, Shape::of(Format::Csv)).expect("a file");
        let mut journal = Journal::create(Some(&path), "d.t", Naming::Label, vec![input]).expect("created");
        journal.plan(0, 0, 2, 2, hash(b"1\n")).expect("stored");
        journal.plan(0, 2, 4, 2, hash(b"2\n")).expect("stored");
        journal.sent(0).expect("stored");
        journal.sent(1).expect("stored");
        journal.done(0, Some(1), Some(0)).expect("stored");
        journal.failed(1, "no").expect("stored");
        journal.end(0).expect("stored");
        assert!(Journal::open(&path).is_err_and(|error| error.to_string().contains("another load")));
        let (head, chunks) = (journal.head.clone(), journal.chunks.clone());
        drop(journal);
        let whole = std::fs::read(&path).expect("read");
        std::fs::write(&path, [&whole[..], b"{\"done\":1,"].concat()).expect("written");
        let read = Journal::open(&path).expect("read").expect("it is there");
        assert_eq!((&read.head, &read.chunks, &read.ended), (&head, &chunks, &vec![true]));
        assert!(read.chunks[0].1.is_done && !read.chunks[1].1.is_done && !read.is_complete());
        assert_eq!(read.chunks[1].1.sent_at, None);
        drop(read);
        assert_eq!(std::fs::read(&path).expect("read"), whole);
    }

    #[test]
    fn a_journal_without_a_whole_first_line_is_none() {
        let path = tempfile::tempdir().expect("a directory").keep().join("journal");
        std::fs::write(&path, "{\"journal\":1").expect("written");
        assert!(Journal::open(&path).expect("read").is_none());
        assert!(!path.exists());
        std::fs::remove_dir(path.parent().expect("the directory")).expect("it is empty");
    }
}
