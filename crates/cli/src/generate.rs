//! `tributary generate`: completions of shells and manual pages, for packages.

use clap::{Args, Command, ValueEnum};
use clap_complete::Shell;
use std::io;
use std::path::PathBuf;

/// Writes completions of shells or manual pages into a directory
#[derive(Args, Clone, Debug)]
pub struct Generate {
    /// The kind of files
    kind: Kind,
    /// The directory, which must exist
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Completions for bash, zsh and fish
    Completions,
    /// Manual pages, one for each command
    Man,
}

impl Generate {
    /// Writes the files of a command.
    ///
    /// # Errors
    /// The directory can't be written.
    pub fn run(&self, mut command: Command) -> io::Result<()> {
        let name = command.get_name().to_owned();
        match self.kind {
            Kind::Completions => {
                for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
                    clap_complete::generate_to(shell, &mut command, &name, &self.directory)?;
                }
                Ok(())
            }
            Kind::Man => clap_mangen::generate_to(command, &self.directory),
        }
    }
}
