//! Commands that talk to a running server by its public protocols: `tributary load`, `sql`, `status`, `verify`, `backup` and `generate`.
//!
//! They work with any server that speaks Doris's Stream Load and MySQL's protocol. This crate knows the server only by its ports, never
//! by its code.
//!
//! | file | what happens there |
//! | --- | --- |
//! | `load` | files → Stream Loads, resumable |
//! | `sql` | a shell, and statements from arguments and files |
//! | `status` | the server's problems |
//! | `verify` | the statement VERIFY |
//! | `asked` | the rows of a statement, over HTTP |
//! | `backup` | the statement BACKUP SERVER |
//! | `store` | the options that say how a store is reached |
//! | `generate` | completions and manual pages |
//! | `http`, `password` | requests, and who sends them |

mod asked;
mod backup;
mod generate;
mod http;
mod load;
mod password;
mod sql;
mod status;
mod store;
mod verify;

pub use backup::Backup;
pub use generate::Generate;
pub use load::{Format, Load, Progress};
pub use password::Login;
pub use sql::{Form, Sql};
pub use status::Status;
pub use store::StoreProperties;
pub use verify::Verify;

/// Ends the program after an error of its command line, or after help. `load` has an exit code of its own for errors, because its others
/// tell how a load ended.
#[must_use]
pub fn end_with(error: &clap::Error) -> std::process::ExitCode {
    // Where the text can't be written, the code still tells.
    drop(error.print());
    let is_load = std::env::args_os().nth(1).is_some_and(|command| command == "load");
    let code = if error.use_stderr() && is_load { load::USAGE.into() } else { error.exit_code() };
    std::process::ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, Command};

    #[test]
    fn options_do_not_contradict_each_other() {
        Load::augment_args(Command::new("load")).debug_assert();
        Sql::augment_args(Command::new("sql")).debug_assert();
        Backup::augment_args(Command::new("backup")).debug_assert();
        Status::augment_args(Command::new("status")).debug_assert();
        Verify::augment_args(Command::new("verify")).debug_assert();
        Generate::augment_args(Command::new("generate")).debug_assert();
    }
}
