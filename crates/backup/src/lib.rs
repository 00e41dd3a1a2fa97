//! Backups: copies of a running server as it was at one moment, and servers made of them.
//!
//! | file | what happens there |
//! | --- | --- |
//! | `repository` | a directory or object store with backups: their names, their objects, checksums |
//! | `manifest` | the list of a backup's files, which is written last |
//! | `take` | a server → a backup |
//! | `keep` | old backups go, and with them what no other backup needs |
//! | `pace` | how fast a backup is written, and how far it is |
//! | `restore` | a backup → the files of a server; and the check of a backup |
//!
//! Invariant: a backup exists once its manifest does, and is complete then. What it restores is what a server that was killed at the
//! backup's moment would have left, so the start that follows is an ordinary recovery.
//!
//! Not its business: who may take one, where a repository may be, and the contents of the catalog.

mod error;
mod keep;
mod manifest;
mod pace;
mod repository;
mod restore;
mod take;

pub use error::BackupError;
pub use keep::{Announcement, Removed};
pub use manifest::{Manifest, ManifestTable, SavedFile};
pub use pace::Pace;
pub use repository::{Repository, Summary};
pub use restore::Restored;
pub use take::{CatalogSource, FrozenCatalog, Layout, SavedCatalog, SavedTable, Server, Taken, take};
