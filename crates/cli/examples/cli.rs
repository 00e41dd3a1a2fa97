//! The commands of this crate as a program of their own, for trying them without building the server.

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

/// The commands that talk to a running server.
#[derive(Parser)]
#[command(name = "tributary")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Load(Box<tributary_cli::Load>),
    Sql(tributary_cli::Sql),
    Status(tributary_cli::Status),
    #[command(hide = true)]
    Generate(tributary_cli::Generate),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return tributary_cli::end_with(&error),
    };
    match cli.command {
        Command::Load(load) => load.run(),
        Command::Sql(sql) => sql.run(),
        Command::Status(status) => status.run(),
        Command::Generate(generate) => match generate.run(Cli::command()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("tributary: {error}");
                ExitCode::FAILURE
            }
        },
    }
}
