//! `tributary restore`: a backup → the directory of a server; and the check of backups.
//!
//! Not its business: starting the server. Its start is a recovery like any other.

use clap::Args;
use std::error::Error;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tributary_backup::{Repository, Restored};
use tributary_cli::StoreProperties;
use tributary_files::{Properties, store_at};
use tributary_types::Egress;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Restores a backup that BACKUP SERVER has taken into an empty directory
#[derive(Args)]
pub struct Restore {
    /// The place of the backups: a directory, or `s3://bucket/path`
    #[arg(long, value_name = "PLACE")]
    from: String,
    /// The directory of the restored server, empty or to be made
    #[arg(long, value_name = "DIR", required_unless_present_any = ["list", "check"])]
    to: Option<PathBuf>,
    /// The name of the backup; by default the newest
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Lists the backups, oldest first
    #[arg(long, conflicts_with_all = ["to", "name"])]
    list: bool,
    /// Reads a whole backup and compares it with what was written, and restores nothing
    #[arg(long, conflicts_with_all = ["to", "list"])]
    check: bool,
    #[command(flatten)]
    properties: StoreProperties,
}

impl Restore {
    /// Runs the command.
    ///
    /// # Errors
    /// There is no such backup, it is damaged, or the directory is not empty.
    pub fn run(self) -> Outcome<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on(self.work())
    }

    async fn work(self) -> Outcome<()> {
        let repository = self.repository()?;
        if self.list {
            return list(&repository).await;
        }
        let name = self.name.as_deref();
        let Some(to) = &self.to else {
            say("checked", &repository.check(name).await?);
            return Ok(());
        };
        make_empty(to)?;
        let to = to.canonicalize()?;
        let restored = repository.restore_to(name, &to, progress()).await?;
        say("restored", &restored);
        println!("start it by: tributary serve --storage-root-path {}", to.display());
        Ok(())
    }

    fn repository(&self) -> Outcome<Repository> {
        let properties = self.properties.resolve()?;
        if !self.from.contains("://") {
            if let Some((name, _)) = properties.first() {
                return Err(
                    format!("the property {name} is of a store, and {} is a directory", self.from).into()
                );
            }
            let directory = Path::new(&self.from);
            let real = directory.canonicalize().map_err(|error| format!("{}: {error}", self.from))?;
            return Ok(Repository::in_directory(&real)?);
        }
        let mut properties: Properties = properties.into_iter().collect();
        let anywhere = Arc::new(Egress::parse("0.0.0.0/0;::/0").ok_or("all networks")?);
        let (store, prefix, shown) = store_at(&self.from, &mut properties, &anywhere)?;
        match properties.rest().next() {
            Some((name, _)) => Err(format!("{name} is no property of a store").into()),
            None => Ok(Repository::new(store, prefix, shown)),
        }
    }
}

/// Makes the directory, which must not have anything in it.
fn make_empty(directory: &Path) -> Outcome<()> {
    std::fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    match directory.read_dir()?.next() {
        Some(_) => Err(format!("{} is not empty; restore into a new directory", directory.display()).into()),
        None => Ok(()),
    }
}

async fn list(repository: &Repository) -> Outcome<()> {
    let backups = repository.list().await?;
    println!("{:<24} {:<27} {:>8} {:>8} {:>16}", "name", "moment", "tables", "files", "bytes");
    for one in backups {
        println!(
            "{:<24} {:<27} {:>8} {:>8} {:>16}",
            one.name,
            one.moment(),
            one.tables,
            one.files,
            one.bytes
        );
    }
    Ok(())
}

fn say(done: &str, restored: &Restored) {
    let manifest = &restored.manifest;
    println!(
        "{done} the backup {} of {} tables: {} files, {} bytes, as of {}",
        manifest.name,
        manifest.tables.len(),
        restored.files,
        restored.bytes,
        manifest.moment()
    );
}

/// Shows on a terminal how far it is.
fn progress() -> impl FnMut(u64, u64) {
    let is_shown = std::io::stderr().is_terminal();
    move |done, all| {
        if is_shown {
            let mut out = std::io::stderr();
            let end = if done == all { "\n" } else { "" };
            // Where it can't be written, nobody looks.
            drop(write!(out, "\r{done} of {all} bytes{end}"));
        }
    }
}
