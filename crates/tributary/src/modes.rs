//! Modes of the files and directories that this process creates, and of the directories that it finds.
//!
//! Not here: directories that are private whatever the setting `umask` says.

use rustix::fs::Mode;
use rustix::process::umask;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The bits of group and others.
const NOT_OF_OWNER: u32 = 0o077;

/// From here on nobody else may read what this process creates.
pub fn keep_private() {
    set_umask(NOT_OF_OWNER);
}

/// Sets the bits that no created file and directory has.
pub fn set_umask(bits: u32) {
    umask(Mode::from_raw_mode(bits));
}

/// A directory that others may read although the setting `umask` excludes them.
#[derive(Debug, PartialEq, Eq)]
pub struct Open {
    path: PathBuf,
    mode: u32,
    /// Its bits that the setting excludes.
    excess: u32,
}

impl Open {
    /// Finds the existing directories that are too open, without the ones below such a directory.
    pub fn of(directories: &[&Path], umask: u32) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        for path in directories {
            let Ok(metadata) = std::fs::metadata(path) else { continue };
            let mode = metadata.permissions().mode() & 0o7777;
            let excess = mode & umask & NOT_OF_OWNER;
            if excess != 0 && !found.iter().any(|above| path.starts_with(&above.path)) {
                found.push(Self { path: path.to_path_buf(), mode, excess });
            }
        }
        found
    }

    /// Warns of it.
    pub fn warn(&self) {
        let path = self.path.display();
        let who = match (self.excess & 0o070 != 0, self.excess & 0o007 != 0) {
            (true, true) => "go",
            (true, false) => "g",
            _ => "o",
        };
        tracing::warn!(
            "other users of this machine may get at rows and keys in {path}, whose mode is {:04o}: run chmod -R {who}-rwx {path}, or \
             let them by the setting umask",
            self.mode
        );
    }
}
