//! The files behind `ErrorURL`: one line of reason per rejected row.
//!
//! Files have Doris's names, `__shard_<n>/error_log_insert_stmt_<hi>-<lo>_<hi>_<lo>`, and are forgotten after a time. Invariant:
//! only files of that form are ever opened or deleted, whatever name is requested.
//!
//! These are notes for people, not data: they are not made durable. All calls block on the disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Rows written per load; the last line says when there were more.
const ERROR_LOG_ROWS_MAX: u64 = 10_000;
/// Bytes of a row's source written; longer rows are cut.
const ERROR_LOG_SOURCE_BYTES_MAX: usize = 4_096;

const SHARDS: u128 = 16;
const SHARD_PREFIX: &str = "__shard_";
const FILE_PREFIX: &str = "error_log_insert_stmt_";

/// The error logs of one node, in a folder of their own.
#[derive(Clone, Debug)]
pub(crate) struct ErrorLog {
    dir: PathBuf,
}

impl ErrorLog {
    /// Error logs in `dir`, which is made with the first file.
    pub(crate) fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// Begins the log of the load with this (random) id.
    ///
    /// # Errors
    /// The file cannot be made, or a load with that id has one.
    pub(crate) fn create(&self, load_id: u128) -> io::Result<ErrorLogWriter> {
        let (high, low) = ((load_id >> 64) as u64, load_id as u64);
        let name =
            format!("{SHARD_PREFIX}{}/{FILE_PREFIX}{high:x}-{low:x}_{high:x}_{low:x}", load_id % SHARDS);
        let path = self.dir.join(&name);
        if let Some(shard) = path.parent() {
            fs::create_dir_all(shard)?;
        }
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        Ok(ErrorLogWriter { name, file: BufWriter::new(file), rows: 0 })
    }

    /// Writes the whole log of a load: pairs of reason and source text. Returns the file's name.
    ///
    /// # Errors
    /// The file cannot be made or written.
    pub(crate) fn write<R: AsRef<str>, S: AsRef<str>>(
        &self,
        load_id: u128,
        rejects: impl IntoIterator<Item = (R, S)>,
    ) -> io::Result<String> {
        let mut writer = self.create(load_id)?;
        for (reason, source) in rejects {
            writer.push(reason.as_ref(), source.as_ref())?;
        }
        writer.finish()
    }

    /// Opens a log by the `file` of its address. `None` if there is none, or if the name is not that of a log.
    ///
    /// # Errors
    /// The file exists and cannot be opened.
    pub(crate) fn open(&self, file: &str) -> io::Result<Option<File>> {
        let Some((shard, name)) = file.split_once('/') else { return Ok(None) };
        if !is_shard(shard) || !is_log(name) {
            return Ok(None);
        }
        match File::open(self.dir.join(shard).join(name)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Deletes the logs that are older than `keep` at `now`. Returns how many.
    ///
    /// # Errors
    /// A folder cannot be read or a file cannot be deleted; later files are tried next time.
    pub(crate) fn purge(&self, now: SystemTime, keep: Duration) -> io::Result<usize> {
        let mut purged = 0;
        for shard in children(&self.dir, is_shard)? {
            for file in children(&shard, is_log)? {
                if is_old(&file, now, keep)? {
                    purged += usize::from(remove(&file)?);
                }
            }
        }
        Ok(purged)
    }
}

/// One load's log being written. Without [`ErrorLogWriter::finish`] its end may be missing.
#[derive(Debug)]
pub(crate) struct ErrorLogWriter {
    name: String,
    file: BufWriter<File>,
    rows: u64,
}

impl ErrorLogWriter {
    /// Notes one rejected row: `Reason: <reason>. src line [<source>]; `.
    ///
    /// # Errors
    /// The disk refuses.
    pub(crate) fn push(&mut self, reason: &str, source: &str) -> io::Result<()> {
        self.rows += 1;
        if self.rows > ERROR_LOG_ROWS_MAX {
            return Ok(());
        }
        let source = &source[..source.floor_char_boundary(ERROR_LOG_SOURCE_BYTES_MAX)];
        writeln!(self.file, "Reason: {reason}. src line [{source}]; ")
    }

    /// Completes the log. Returns the file's name for [`error_url`].
    ///
    /// # Errors
    /// The disk refuses.
    pub(crate) fn finish(mut self) -> io::Result<String> {
        if self.rows > ERROR_LOG_ROWS_MAX {
            let more = self.rows - ERROR_LOG_ROWS_MAX;
            writeln!(
                self.file,
                "TOO MUCH ERROR! already reach {ERROR_LOG_ROWS_MAX}. show no more next error. ({more} more)"
            )?;
        }
        self.file.flush()?;
        Ok(self.name)
    }
}

fn is_shard(name: &str) -> bool {
    name.strip_prefix(SHARD_PREFIX)
        .is_some_and(|number| number.parse::<u8>().is_ok_and(|shard| u128::from(shard) < SHARDS))
}

/// `error_log_insert_stmt_<hex>-<hex>_<hex>_<hex>`
fn is_log(name: &str) -> bool {
    let Some(ids) = name.strip_prefix(FILE_PREFIX) else { return false };
    let parts: Vec<&str> = ids.split(['-', '_']).collect();
    parts.len() == 4 && parts.iter().all(|part| is_hex(part)) && ids.find('-') < ids.find('_')
}

fn is_hex(part: &str) -> bool {
    (1..=16).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The paths in `dir` whose names are `wanted`; empty if there is no such folder.
fn children(dir: &Path, wanted: fn(&str) -> bool) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(wanted) {
            paths.push(entry.path());
        }
    }
    Ok(paths)
}

fn is_old(file: &Path, now: SystemTime, keep: Duration) -> io::Result<bool> {
    match fs::metadata(file).and_then(|metadata| metadata.modified()) {
        Ok(modified) => Ok(now.duration_since(modified).is_ok_and(|age| age > keep)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns whether the file existed.
fn remove(file: &Path) -> io::Result<bool> {
    match fs::remove_file(file) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEEP: Duration = Duration::from_secs(48 * 60 * 60);
    use std::io::Read;

    const ID: u128 = 0x4140_0000_0000_00a1_0000_0000_0000_00b2;

    fn text(log: &ErrorLog, file: &str) -> String {
        let mut text = String::new();
        log.open(file).unwrap().unwrap().read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_log_has_one_line_per_row_with_a_blank_after_the_semicolon() {
        let dir = tempfile::tempdir().unwrap();
        let log = ErrorLog::new(dir.path().join("error_log"));
        let file = log
            .write(
                ID,
                [("column_name[user_id], null value for not null column, type=BIGINT", ""), ("b", "1,x")],
            )
            .unwrap();
        assert_eq!(file, "__shard_2/error_log_insert_stmt_41400000000000a1-b2_41400000000000a1_b2");
        assert_eq!(
            text(&log, &file),
            "Reason: column_name[user_id], null value for not null column, type=BIGINT. src line []; \n\
             Reason: b. src line [1,x]; \n"
        );
        assert_eq!(
            tributary_http::error_url("127.0.0.1", 8040, &file),
            format!("http://127.0.0.1:8040/api/_load_error_log?file={file}")
        );
    }

    #[test]
    fn beyond_the_limit_one_line_says_how_many_more_there_were() {
        let dir = tempfile::tempdir().unwrap();
        let log = ErrorLog::new(dir.path());
        let long = "é".repeat(ERROR_LOG_SOURCE_BYTES_MAX);
        let file = log.write(1, (0..ERROR_LOG_ROWS_MAX + 3).map(|_| ("r", long.as_str()))).unwrap();
        let text = text(&log, &file);
        assert_eq!(text.lines().count() as u64, ERROR_LOG_ROWS_MAX + 1);
        assert!(text.ends_with("TOO MUCH ERROR! already reach 10000. show no more next error. (3 more)\n"));
        assert!(text.lines().all(|line| line.len() <= ERROR_LOG_SOURCE_BYTES_MAX + 64));
    }

    #[test]
    fn only_names_of_logs_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("secret"), "x").unwrap();
        let log = ErrorLog::new(dir.path().join("logs"));
        let file = log.write(ID, [("r", "s")]).unwrap();
        let name = file.split_once('/').unwrap().1;
        for asked in [
            "../secret",
            "/etc/passwd",
            "__shard_2/../../secret",
            "__shard_2/error_log_insert_stmt_../secret",
            "__shard_99/error_log_insert_stmt_1-2_3_4",
            "__shard_/x",
            "",
            name,
            &format!("__shard_2/x/../{name}"),
            &format!("{file}\0"),
            "__shard_2/error_log_insert_stmt_1_2-3_4",
        ] {
            assert!(log.open(asked).unwrap().is_none(), "{asked}");
        }
        assert!(log.open(&file).unwrap().is_some());
    }

    #[test]
    fn a_purge_deletes_logs_older_than_two_days_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let log = ErrorLog::new(dir.path());
        assert_eq!(log.purge(SystemTime::now(), KEEP).unwrap(), 0);
        let file = log.write(ID, [("r", "s")]).unwrap();
        std::fs::write(dir.path().join("__shard_2/notes"), "x").unwrap();
        assert_eq!(log.purge(SystemTime::now(), KEEP).unwrap(), 0);
        let later = SystemTime::now() + KEEP + Duration::from_secs(60);
        assert_eq!(log.purge(later, KEEP).unwrap(), 1);
        assert!(log.open(&file).unwrap().is_none());
        assert!(dir.path().join("__shard_2/notes").exists());
    }
}
