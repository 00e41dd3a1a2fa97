//! The identity of this node: the file `node.json` in its state directory.
//!
//! It contains the node's identity and the list of its write-ahead logs. Both are facts of one machine, so they are not in the
//! catalog, which nodes may share. Earlier versions stored them there; the first start takes them over.
//!
//! Invariant: the file is replaced as a whole and durably, and the catalog is updated only afterwards. So after a crash at any
//! moment a start finds the old or the new contents, and a missing file did exist. Not its business: which logs there should be.

#[cfg(test)]
mod tests;

use crate::node::start_error::StartError;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tributary_catalog::{NodeEntry, OldNode};
use tributary_types::host;
use tributary_wal::{Disk, LogId, OpenMode};

const FILE: &str = "node.json";
/// The name of a new version of [`FILE`] before it is renamed.
const STAGED: &str = "node.json.new";
/// The newest format that is read. A field that is added has a default and leaves it as it is, unless a server that does not know the
/// field would do harm.
const FORMAT: u64 = 2;
/// The format without a `catalog`: a server that does not know it would go on with the file that was the catalog before.
const FORMAT_WITHOUT_CATALOG: u64 = 1;

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Node {
    format: u64,
    /// 32 hexadecimal digits, random.
    pub id: String,
    /// Milliseconds since 1970; 0 if that is not known.
    pub created_at_ms: i64,
    pub wal_dirs: Vec<KeptLog>,
    /// The URL of the store that has the tables. `None`: the state directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table_storage: Option<String>,
    /// The id of the catalog in PostgreSQL. `None`: it is a file in the state directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<String>,
}

/// A write-ahead log that has rows or may get some.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptLog {
    /// Relative to the state directory if it is below it, so that both can be moved and copied together.
    pub dir: String,
    /// `None`: not known.
    #[serde(default, with = "log_id", skip_serializing_if = "Option::is_none")]
    pub log: Option<LogId>,
    /// A start is creating the log, which is not missed before that start has completed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_new: bool,
}

impl Node {
    fn new() -> Self {
        let id = host::random(rand::random::<u128>);
        Self {
            format: FORMAT_WITHOUT_CATALOG,
            id: format!("{id:032x}"),
            created_at_ms: host::unix_ms(),
            wal_dirs: Vec::new(),
            table_storage: None,
            catalog: None,
        }
    }

    fn of_catalog(old: &OldNode) -> Self {
        let kept = |dir: &String| KeptLog { dir: dir.clone(), log: None, is_new: false };
        Self {
            format: FORMAT_WITHOUT_CATALOG,
            id: old.id.clone(),
            created_at_ms: old.created_at_ms,
            wal_dirs: old.wal_dirs.iter().map(kept).collect(),
            table_storage: None,
            catalog: None,
        }
    }

    fn with_catalog(self, catalog: Option<String>) -> Self {
        let format = if catalog.is_some() { FORMAT } else { FORMAT_WITHOUT_CATALOG };
        Self { format, catalog, ..self }
    }

    /// The template for an owner without a copy of the file.
    fn to_fill_in(id: &str) -> Self {
        let wal_dirs = vec!["wal".to_owned()];
        Self::of_catalog(&OldNode { id: id.to_owned(), created_at_ms: 0, wal_dirs })
    }

    fn line(&self) -> String {
        serde_json::to_string(self).expect("a struct of numbers and texts")
    }

    fn text(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("a struct of numbers and texts");
        text + "\n"
    }
}

/// The file and its contents.
#[derive(Debug)]
pub(crate) struct NodeFile {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    node: Mutex<Node>,
}

impl NodeFile {
    /// Reads the node's file in the state directory; `None` if there is none.
    ///
    /// # Errors
    /// [`StartError::NodeBroken`] if it cannot be read, [`StartError::NodeNewer`] if a newer server wrote it.
    pub fn read(disk: Arc<dyn Disk>, dir: &Path) -> Result<Option<Self>, StartError> {
        /// The fields common to all formats.
        #[derive(Deserialize)]
        struct Head {
            format: u64,
        }
        let path = dir.join(FILE);
        let broken =
            |reason: &dyn ToString| StartError::NodeBroken { path: path.clone(), reason: reason.to_string() };
        let bytes = match contents(&*disk, &path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(broken(&error)),
        };
        let head: Head = serde_json::from_slice(&bytes).map_err(|error| broken(&error))?;
        if head.format > FORMAT {
            return Err(StartError::NodeNewer { path, found: head.format, known: FORMAT });
        }
        let node: Node = serde_json::from_slice(&bytes).map_err(|error| broken(&error))?;
        Ok(Some(Self { disk, dir: dir.to_owned(), node: Mutex::new(node) }))
    }

    /// The file of a node that is new. Durable on return.
    ///
    /// # Errors
    /// [`StartError::Io`].
    pub fn create(disk: Arc<dyn Disk>, dir: &Path) -> Result<Self, StartError> {
        Self::written(disk, dir, Node::new())
    }

    /// Returns the file of the node to which the catalog belongs: the one that was found, or else one with the values from the
    /// catalog. Durable on return.
    ///
    /// # Errors
    /// [`StartError::NodeGone`] if there was one, [`StartError::NodeDiffers`] if it is another node's,
    /// [`StartError::Io`].
    pub fn settle(
        found: Option<Self>,
        entry: &NodeEntry,
        disk: Arc<dyn Disk>,
        dir: &Path,
    ) -> Result<Self, StartError> {
        match (found, entry) {
            (Some(file), NodeEntry::InFile(known)) => file.expect_id(known),
            (Some(file), NodeEntry::Here(old)) => file.expect_id(&old.id)?.confirmed(),
            (Some(file), NodeEntry::Nowhere) => file.confirmed(),
            (None, NodeEntry::InFile(known)) => {
                let (path, line) = (dir.join(FILE), Node::to_fill_in(known).line());
                Err(StartError::NodeGone { path, known: known.clone(), line })
            }
            (None, NodeEntry::Here(old)) => Self::written(disk, dir, Node::of_catalog(old)),
            (None, NodeEntry::Nowhere) => Self::create(disk, dir),
        }
    }

    fn written(disk: Arc<dyn Disk>, dir: &Path, node: Node) -> Result<Self, StartError> {
        let file = Self { disk, dir: dir.to_owned(), node: Mutex::new(node.clone()) };
        file.write(&node)?;
        Ok(file)
    }

    fn expect_id(self, known: &str) -> Result<Self, StartError> {
        let found = self.id();
        if found == known {
            return Ok(self);
        }
        Err(StartError::NodeDiffers { path: self.path(), found, known: known.to_owned() })
    }

    /// Makes the name durable: a process that ended before it could may have left the file there.
    fn confirmed(self) -> Result<Self, StartError> {
        self.sync_dir()?;
        Ok(self)
    }

    pub fn id(&self) -> String {
        self.node.lock().id.clone()
    }

    pub fn path(&self) -> PathBuf {
        self.dir.join(FILE)
    }

    pub fn wal_dirs(&self) -> Vec<KeptLog> {
        self.node.lock().wal_dirs.clone()
    }

    /// The text of the file for a copy of this node whose logs, of these directories, are in directories of the copy.
    pub fn text_for_copy(&self, logs: &[(PathBuf, String)]) -> String {
        let kept = |(dir, name): &(PathBuf, String)| KeptLog {
            dir: name.clone(),
            log: tributary_wal::identify(dir),
            is_new: false,
        };
        // Tables and catalog of a copy are in its own directory.
        let wal_dirs = logs.iter().map(kept).collect();
        Node { wal_dirs, table_storage: None, ..self.node.lock().clone() }.with_catalog(None).text()
    }

    /// Replaces the list of logs. Durable on return.
    ///
    /// # Errors
    /// [`StartError::Io`]; the file has the earlier list or the new one.
    pub fn keep_wal_dirs(&self, wal_dirs: Vec<KeptLog>) -> Result<(), StartError> {
        let mut node = self.node.lock();
        if node.wal_dirs == wal_dirs {
            return Ok(());
        }
        let changed = Node { wal_dirs, ..node.clone() };
        self.write(&changed)?;
        *node = changed;
        Ok(())
    }

    pub fn table_storage(&self) -> Option<String> {
        self.node.lock().table_storage.clone()
    }

    /// Records the store that has the tables. Durable on return.
    ///
    /// # Errors
    /// [`StartError::Io`].
    pub fn keep_table_storage(&self, url: &str) -> Result<(), StartError> {
        let mut node = self.node.lock();
        if node.table_storage.as_deref() == Some(url) {
            return Ok(());
        }
        let changed = Node { table_storage: Some(url.to_owned()), ..node.clone() };
        self.write(&changed)?;
        *node = changed;
        Ok(())
    }

    /// The id of the catalog in PostgreSQL. `None`: it is a file.
    pub fn catalog(&self) -> Option<String> {
        self.node.lock().catalog.clone()
    }

    /// Records the catalog in PostgreSQL, or that it is a file. Durable on return.
    ///
    /// # Errors
    /// [`StartError::Io`].
    pub fn keep_catalog(&self, id: Option<&str>) -> Result<(), StartError> {
        let mut node = self.node.lock();
        if node.catalog.as_deref() == id {
            return Ok(());
        }
        let changed = node.clone().with_catalog(id.map(str::to_owned));
        self.write(&changed)?;
        *node = changed;
        Ok(())
    }

    fn write(&self, node: &Node) -> Result<(), StartError> {
        let (staged, path) = (self.dir.join(STAGED), self.path());
        let failed = |action, path: &Path| {
            let path = path.to_owned();
            move |source| StartError::Io { action, path, source }
        };
        stage(&*self.disk, &staged, node.text().as_bytes()).map_err(failed("write", &staged))?;
        self.disk.rename(&staged, &path).map_err(failed("replace", &path))?;
        self.sync_dir()
    }

    fn sync_dir(&self) -> Result<(), StartError> {
        let failed = |source| StartError::Io { action: "sync the directory", path: self.dir.clone(), source };
        self.disk.sync_dir(&self.dir).map_err(failed)
    }
}

/// Writes a file whose contents are durable on return, its name not.
fn stage(disk: &dyn Disk, path: &Path, contents: &[u8]) -> io::Result<()> {
    match disk.remove(path) {
        // Left there by a process that ended in between.
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = disk.open(path, OpenMode::CreateNew)?;
    file.write_all_at(contents, 0)?;
    file.sync_data()
}

fn contents(disk: &dyn Disk, path: &Path) -> io::Result<Vec<u8>> {
    let file = disk.open(path, OpenMode::Existing)?;
    let mut bytes = vec![0; file.len()? as usize];
    let read = file.read_at(&mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// The id of a log as text.
mod log_id {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use tributary_wal::LogId;

    #[expect(clippy::ref_option, reason = "the form that serde asks for")]
    pub(super) fn serialize<S: Serializer>(id: &Option<LogId>, to: S) -> Result<S::Ok, S::Error> {
        match id {
            Some(id) => to.collect_str(id),
            None => to.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<LogId>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}
