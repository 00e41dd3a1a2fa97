//! Files of this machine below one directory.
//!
//! Links are followed before a name is checked, so that none leads out of the directory.

use crate::error::FileError;
use crate::pattern::Name;
use crate::place::{Chunks, FILES_MAX, FoundFile};
use bytes::BytesMut;
use futures::stream;
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};
use tokio::io::AsyncReadExt;
use tokio::task::spawn_blocking;

/// The size of one read, in bytes.
const READ_BYTES: usize = 256 * 1024;

/// Files of this machine.
#[derive(Debug)]
pub struct LocalFiles {
    directory: PathBuf,
    path: String,
    names: Vec<Name>,
}

impl LocalFiles {
    pub(crate) fn new(path: &str, directory: Option<&Path>) -> Result<Self, FileError> {
        let directory = directory.ok_or_else(not_allowed)?;
        Ok(Self { directory: directory.to_owned(), path: path.to_owned(), names: Name::all(path)? })
    }

    pub(crate) async fn find(&self) -> Result<Vec<FoundFile>, FileError> {
        let (directory, path, names) = (self.directory.clone(), self.path.clone(), self.names.clone());
        let found = spawn_blocking(move || find(&directory, &path, &names)).await;
        found.unwrap_or_else(|error| {
            Err(FileError::Unlistable { pattern: self.path.clone(), reason: error.to_string() })
        })
    }

    pub(crate) fn open_file(&self, file: &FoundFile) -> Result<File, FileError> {
        let failed = |error: io::Error| unreadable(&file.name, &error);
        // Whatever has become of the name since it was found.
        let path = std::fs::canonicalize(&file.key).map_err(failed)?;
        let directory = std::fs::canonicalize(&self.directory).map_err(failed)?;
        if !path.starts_with(&directory) {
            return Err(outside(&file.name, &directory));
        }
        File::open(path).map_err(failed)
    }

    pub(crate) fn open(&self, file: &FoundFile) -> Chunks {
        let name = file.name.clone();
        let opened = self.open_file(file).map(tokio::fs::File::from_std);
        Box::pin(stream::try_unfold(Some(opened), move |state| {
            let name = name.clone();
            async move {
                let Some(file) = state else { return Ok(None) };
                let mut file = file?;
                let mut bytes = BytesMut::with_capacity(READ_BYTES);
                let count = file.read_buf(&mut bytes).await.map_err(|error| unreadable(&name, &error))?;
                Ok((count > 0).then(|| (bytes.freeze(), Some(Ok(file)))))
            }
        }))
    }
}

/// Opens the file of that name below `directory`.
///
/// # Errors
/// [`FileError::NotSupported`] if it is elsewhere or is not a file, [`FileError::Unreadable`].
pub fn open_below(directory: &Path, name: &str) -> Result<(File, PathBuf), FileError> {
    let failed = |path: &Path| {
        let file = path.display().to_string();
        move |error: io::Error| unreadable(&file, &error)
    };
    let given = directory;
    let directory = std::fs::canonicalize(given).map_err(failed(given))?;
    let path = directory.join(name);
    check_name(&path, name, given, &directory)?;
    let path = std::fs::canonicalize(&path).map_err(failed(&path))?;
    if !path.starts_with(&directory) {
        return Err(outside(name, &directory));
    }
    // Checked before it is opened: opening a pipe waits for its writer.
    if !std::fs::metadata(&path).map_err(failed(&path))?.is_file() {
        return Err(FileError::NotSupported(format!("'{name}' is no file")));
    }
    let file = File::open(&path).map_err(failed(&path))?;
    Ok((file, path))
}

/// The directory of a path below `directory`, and the prefix of names in it; all of the path is the directory's if
/// `is_directory`.
///
/// # Errors
/// As [`open_below`].
pub(crate) fn parent_below(
    directory: Option<&Path>,
    path: &Path,
    is_directory: bool,
) -> Result<(PathBuf, String), FileError> {
    let given = directory.ok_or_else(not_allowed)?;
    let name = path.display().to_string();
    let failed = |error: io::Error| FileError::Unwritable { file: name.clone(), reason: error.to_string() };
    let directory = std::fs::canonicalize(given).map_err(failed)?;
    check_name(path, &name, given, &directory)?;
    let (parent, prefix) =
        match (is_directory, path.parent(), path.file_name().and_then(|name| name.to_str())) {
            (false, Some(parent), Some(prefix)) => (parent, prefix.to_owned()),
            _ => (path, String::new()),
        };
    let parent = std::fs::canonicalize(parent).map_err(failed)?;
    if parent.starts_with(&directory) { Ok((parent, prefix)) } else { Err(outside(&name, &directory)) }
}

fn not_allowed() -> FileError {
    FileError::NotSupported(
        "files of the server are read and written below the directory of the setting \
         `mysql_load_server_secure_path`, which names none"
            .to_owned(),
    )
}

fn find(directory: &Path, path: &str, names: &[Name]) -> Result<Vec<FoundFile>, FileError> {
    let unlistable =
        |error: io::Error| FileError::Unlistable { pattern: path.to_owned(), reason: error.to_string() };
    let given = directory;
    let directory = std::fs::canonicalize(given).map_err(unlistable)?;
    let mut all = Vec::new();
    let mut is_there = false;
    for name in names {
        let candidates = match name.plain() {
            Some(plain) => vec![directory.join(plain)],
            None => below(given, &directory, name, path)?,
        };
        for candidate in candidates {
            check_name(&candidate, path, given, &directory)?;
            let found = match std::fs::canonicalize(&candidate) {
                Ok(found) => found,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(unlistable(error)),
            };
            if !found.starts_with(&directory) {
                return Err(outside(&candidate.display().to_string(), &directory));
            }
            let metadata = std::fs::metadata(&found).map_err(unlistable)?;
            if !metadata.is_file() {
                continue;
            }
            is_there = true;
            if metadata.len() > 0 {
                all.push(FoundFile {
                    name: candidate.display().to_string(),
                    key: candidate.display().to_string(),
                    size_bytes: Some(metadata.len()),
                });
            }
        }
        if all.len() > FILES_MAX {
            return Err(FileError::TooMany { pattern: path.to_owned(), limit: FILES_MAX });
        }
    }
    if !is_there {
        return Err(FileError::NoFile { pattern: path.to_owned() });
    }
    all.sort_by(|left, right| left.name.cmp(&right.name));
    all.dedup_by(|left, right| left.key == right.key);
    Ok(all)
}

/// The paths below the directory that match a pattern, which may start with the directory's own name.
fn below(given: &Path, directory: &Path, name: &Name, path: &str) -> Result<Vec<PathBuf>, FileError> {
    let start = directory.join(name.directory());
    check_name(&start, path, given, directory)?;
    let is_absolute = Path::new(name.directory()).is_absolute();
    // `..` before the pattern: the resolved directories are checked.
    match std::fs::canonicalize(&start) {
        Ok(found) if found.starts_with(directory) => {}
        Ok(_) => return Err(outside(path, directory)),
        Err(_) => return Ok(Vec::new()),
    }
    let unlistable =
        |error: io::Error| FileError::Unlistable { pattern: path.to_owned(), reason: error.to_string() };
    let mut found = Vec::new();
    let mut open = vec![start];
    while let Some(directory_below) = open.pop() {
        for entry in std::fs::read_dir(&directory_below).map_err(unlistable)? {
            let entry = entry.map_err(unlistable)?;
            let path = entry.path();
            // A link to a directory is not walked into: it may lead back.
            if entry.file_type().map_err(unlistable)?.is_dir() {
                open.push(path);
                continue;
            }
            let shown = if is_absolute { Some(path.as_path()) } else { path.strip_prefix(directory).ok() };
            if shown.and_then(Path::to_str).is_some_and(|text| name.matches(text)) {
                found.push(path);
            }
        }
        if found.len() > FILES_MAX {
            return Err(FileError::TooMany { pattern: path.to_owned(), limit: FILES_MAX });
        }
    }
    Ok(found)
}

/// Refuses a path that leads out of the directory, which may have been given through a link, by its parts alone, so that the
/// existence of other files is not revealed.
fn check_name(path: &Path, name: &str, given: &Path, directory: &Path) -> Result<(), FileError> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    if plain.starts_with(directory) || plain.starts_with(given) {
        Ok(())
    } else {
        Err(outside(name, directory))
    }
}

fn outside(name: &str, directory: &Path) -> FileError {
    // Doris's words.
    FileError::NotSupported(format!(
        "Local file should be under the secure path of FE: '{name}' is not below {}",
        directory.display()
    ))
}

fn unreadable(file: &str, error: &io::Error) -> FileError {
    FileError::Unreadable { file: file.to_owned(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::TryStreamExt;
    use std::fs;

    fn files() -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        for (name, text) in [
            ("in/a.csv", "1"),
            ("in/b.csv", "22"),
            ("in/empty.csv", ""),
            ("in/deep/c.csv", "3"),
            ("out.csv", "x"),
        ] {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().expect("it has one")).expect("made");
            fs::write(path, text).expect("written");
        }
        std::os::unix::fs::symlink(root.path().join("out.csv"), root.path().join("in/link.csv"))
            .expect("a link");
        root
    }

    async fn found(root: &Path, path: &str) -> Result<Vec<String>, String> {
        let place = LocalFiles::new(path, Some(&root.join("in"))).map_err(|error| error.to_string())?;
        let base = root.join("in").canonicalize().expect("it is there");
        let found = place.find().await.map_err(|error| error.to_string())?;
        let names = found.iter().map(|file| {
            let path = Path::new(&file.name);
            path.strip_prefix(&base).unwrap_or(path).display().to_string()
        });
        Ok(names.collect())
    }

    #[tokio::test]
    async fn patterns_find_files_below_the_directory_and_nowhere_else() {
        let root = files();
        let root = root.path();
        assert_eq!(found(root, "[ab].csv").await, Ok(vec!["a.csv".to_owned(), "b.csv".to_owned()]));
        assert_eq!(found(root, "{a,empty}.csv").await, Ok(vec!["a.csv".to_owned()]));
        assert_eq!(found(root, "*/?.csv").await, Ok(vec!["deep/c.csv".to_owned()]));
        assert_eq!(found(root, "empty.csv").await, Ok(vec![]), "a file without bytes is there");
        let absolute = format!("{}/in/a.*", root.canonicalize().expect("there").display());
        assert_eq!(found(root, &absolute).await, Ok(vec!["a.csv".to_owned()]));
        std::os::unix::fs::symlink(root.join("in"), root.join("alias")).expect("a link");
        let (alias, path) = (root.join("alias"), root.join("alias/a.csv").display().to_string());
        assert!(open_below(&alias, &path).is_ok(), "the directory's name may be a link");
        for none in ["z.csv", "z*", "nowhere/*", "deep"] {
            assert!(found(root, none).await.unwrap_err().contains("no file is called"), "{none}");
        }
        for outside in [
            "../out.csv",
            "../*.csv",
            "../none",
            "/none/*",
            "a/../../in/../none",
            "link.csv",
            "*.csv",
            "/etc/hosts",
        ] {
            let refused = found(root, outside).await.unwrap_err();
            assert!(refused.contains("should be under the secure path"), "{outside}: {refused}");
        }
        let refused = LocalFiles::new("a.csv", None).unwrap_err().to_string();
        assert!(refused.contains("mysql_load_server_secure_path"), "{refused}");
        assert!(open_below(&root.join("in"), "deep").unwrap_err().to_string().contains("is no file"));
        assert!(open_below(&root.join("in"), "link.csv").unwrap_err().to_string().contains("secure path"));
    }

    #[tokio::test]
    async fn a_pipe_is_no_file_and_nobody_waits_for_its_writer() {
        let root = files();
        let pipe = root.path().join("in/pipe.csv");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo is there");
        assert!(made.success());
        let directory = root.path().join("in");
        let opened = spawn_blocking(move || open_below(&directory, "pipe.csv").map(|_| ()));
        let opened = tokio::time::timeout(std::time::Duration::from_secs(20), opened).await;
        // A reader that waits for a writer gets one, so that the test can end.
        let late = opened.is_err().then(|| fs::OpenOptions::new().write(true).open(&pipe));
        let refused = opened.expect("it does not wait").expect("no panic").unwrap_err().to_string();
        drop(late);
        assert!(refused.contains("'pipe.csv' is no file"), "{refused}");
    }

    #[tokio::test]
    async fn a_file_comes_whole() {
        let root = files();
        let long = "0123456789".repeat(100_000);
        fs::write(root.path().join("in/long.csv"), &long).expect("written");
        let place = LocalFiles::new("long.csv", Some(&root.path().join("in"))).expect("legal");
        let file = place.find().await.expect("found").remove(0);
        assert_eq!(file.size_bytes, Some(long.len() as u64));
        let chunks: Vec<bytes::Bytes> = place.open(&file).try_collect().await.expect("read");
        assert_eq!(chunks.concat(), long.as_bytes());
        fs::remove_file(root.path().join("in/long.csv")).expect("removed");
        let gone = place.open(&file).try_collect::<Vec<_>>().await.unwrap_err().to_string();
        assert!(gone.contains("long.csv' can't be read: No such file"), "{gone}");
    }
}
