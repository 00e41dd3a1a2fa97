//! `tributary catalog`: moves of a server's catalog between its file and PostgreSQL.
//!
//! Not its business: the server, which must not run meanwhile.

use clap::{Args, Subcommand};
use std::error::Error;
use std::path::{Path, PathBuf};
use tributary_catalog::{Copied, PostgresOptions, PostgresUrl};
use tributary_types::Secret;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// The variable of the environment that has the password, as the server reads it.
const PASSWORD: &str = "TRIBUTARY_CATALOG_PASSWORD";

/// Works on the catalog of a server that does not run
#[derive(Subcommand)]
pub enum CatalogCommand {
    Move(Move),
}

/// Moves the catalog from the file `catalog.db` to PostgreSQL, or back
#[derive(Args)]
#[command(
    after_help = "The password of the database's user is read from the variable TRIBUTARY_CATALOG_PASSWORD."
)]
pub struct Move {
    /// Where the catalog is: the server's `storage_root_path`, or `postgres://user@host:port/database`
    #[arg(long, value_name = "DIR|URL")]
    from: String,
    /// Where it goes: the other of the two
    #[arg(long, value_name = "URL|DIR")]
    to: String,
}

impl CatalogCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// The server runs, its catalog is not there, or the database has that of another server. Then nothing has changed.
    pub fn run(self) -> Outcome<()> {
        let Self::Move(moved) = self;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(moved.work())
    }
}

/// An end of a move.
enum Place {
    Directory(PathBuf),
    Database(PostgresOptions),
}

impl Place {
    fn read(text: &str) -> Outcome<Self> {
        if !text.contains("://") {
            return Ok(Self::Directory(PathBuf::from(text)));
        }
        // Not the text, which may have a password.
        let url: PostgresUrl = text.parse().map_err(|error| format!("the URL can't be used: {error}"))?;
        let password = Secret::new(std::env::var(PASSWORD).unwrap_or_default());
        Ok(Self::Database(PostgresOptions { url, password }))
    }
}

impl Move {
    async fn work(self) -> Outcome<()> {
        match (Place::read(&self.from)?, Place::read(&self.to)?) {
            (Place::Directory(directory), Place::Database(database)) => {
                let copied = tributary_engine::move_to_postgres(&directory, &database).await?;
                told(&copied, &database.url.to_string());
                println!(
                    "start the server with catalog_url = \"{}\"; its old catalog is {}",
                    database.url,
                    directory.join("catalog.db.moved").display()
                );
            }
            (Place::Database(database), Place::Directory(directory)) => {
                let copied = tributary_engine::move_to_file(&database, &directory).await?;
                told(&copied, &file(&directory));
                println!("start the server without catalog_url; what is left in {} does not count any more", database.url);
            }
            _ => return Err("one end is a server's directory, and the other a URL like postgres://user@host:port/database".into()),
        }
        Ok(())
    }
}

fn file(directory: &Path) -> String {
    directory.join("catalog.db").display().to_string()
}

fn told(copied: &Copied, place: &str) {
    println!("moved the catalog of {} databases and {} tables to {place}", copied.databases, copied.tables);
}
