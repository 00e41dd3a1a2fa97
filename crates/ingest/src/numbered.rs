//! A directory of files that are written once and become few again by merges.
//!
//! A file is named after the numbers of what it holds, `<first>-<last><suffix>`: a new one holds one number, a merged one those of
//! its parts. A start removes files whose numbers another one has, too, and files that were not written to their end.
//!
//! Invariant: a file that has its name is whole and durable. Not its business: what is in the files.

use std::cmp::Reverse;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tributary_wal::Disk;

const UNFINISHED: &str = "unfinished";

/// The numbers that a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub first: u64,
    pub last: u64,
}

impl Numbers {
    /// The number after those of the newest file.
    pub fn after(newest: Option<Self>) -> Self {
        let number = newest.map_or(1, |newest| newest.last + 1);
        Self { first: number, last: number }
    }
}

/// The directory.
#[derive(Debug)]
pub(crate) struct NumberedFiles {
    pub disk: Arc<dyn Disk>,
    dir: PathBuf,
    suffix: &'static str,
}

impl NumberedFiles {
    /// Opens the directory, which is created if it is not there, and gives its files, oldest first. A file called `other` stays.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: PathBuf,
        suffix: &'static str,
        other: Option<&str>,
    ) -> io::Result<(Self, Vec<Numbers>)> {
        disk.create_dir_all(&dir)?;
        let files = Self { disk, dir, suffix };
        let names: Vec<String> = files.disk.list(&files.dir)?.into_iter().map(|(name, _)| name).collect();
        let mut found: Vec<Numbers> = names.iter().filter_map(|name| files.numbers_of(name)).collect();
        // Of files with the same first number, the one that holds most comes first.
        found.sort_unstable_by_key(|numbers| (numbers.first, Reverse(numbers.last)));
        let mut kept: Vec<Numbers> = Vec::new();
        for numbers in found {
            if kept.last().is_some_and(|merged| numbers.last <= merged.last) {
                files.remove(numbers)?;
            } else {
                kept.push(numbers);
            }
        }
        for name in names.iter().filter(|name| files.numbers_of(name).is_none() && other != Some(name)) {
            files.disk.remove(&files.dir.join(name))?;
        }
        // A killed process may have left names in the page cache only.
        files.sync()?;
        Ok((files, kept))
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn path(&self, Numbers { first, last }: Numbers) -> PathBuf {
        self.dir.join(format!("{first:016x}-{last:016x}{}", self.suffix))
    }

    fn numbers_of(&self, name: &str) -> Option<Numbers> {
        let (first, last) = name.strip_suffix(self.suffix)?.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some(Numbers { first: number(first)?, last: number(last)? })
    }

    /// A path for a file that is being written. Free on return.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn unfinished(&self) -> io::Result<PathBuf> {
        let unfinished = self.dir.join(UNFINISHED);
        match self.disk.remove(&unfinished) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(unfinished),
        }
    }

    /// Gives a file that is written and durable its name. Gives its path.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn finish(&self, unfinished: &Path, numbers: Numbers) -> io::Result<PathBuf> {
        let path = self.path(numbers);
        self.disk.rename(unfinished, &path)?;
        self.sync()?;
        Ok(path)
    }

    /// Removes a file. Durable only after [`NumberedFiles::sync`].
    ///
    /// # Errors
    /// Those of the disk.
    pub fn remove(&self, numbers: Numbers) -> io::Result<()> {
        self.disk.remove(&self.path(numbers))
    }

    /// Makes the names durable.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn sync(&self) -> io::Result<()> {
        self.disk.sync_dir(&self.dir)
    }
}
