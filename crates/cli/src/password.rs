//! Who asks the server: a user, and a password that is never an argument, because other users of the machine see those.

use clap::Args;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

/// The variable of the environment that has the password.
const VARIABLE: &str = "TRIBUTARY_PASSWORD";

/// The user who asks.
#[derive(Args, Clone, Debug, Default)]
pub struct Login {
    /// The user; that of the URL, or else root, if it is not given
    #[arg(short, long, value_name = "NAME")]
    user: Option<String>,
    /// A file whose first line is the password. Without it, `TRIBUTARY_PASSWORD` is used if it is set
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Asks for the password at the terminal
    #[arg(short = 'p', long)]
    ask_password: bool,
}

impl Login {
    /// The user and the password. The user of the URL may not have a password there.
    pub(crate) fn resolve(&self, of_url: Option<&str>) -> Result<(String, String), String> {
        if of_url.is_some_and(|user| user.contains(':')) {
            return Err(format!(
                "a password in the URL is seen by others: use --password-file, {VARIABLE} or -p"
            ));
        }
        let user = self.user.as_deref().or(of_url).unwrap_or("root").to_owned();
        let password = match (&self.password_file, self.ask_password) {
            (Some(path), _) => {
                let text =
                    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
                text.lines().next().unwrap_or_default().to_owned()
            }
            (None, true) => ask(&user)?,
            (None, false) => std::env::var(VARIABLE).unwrap_or_default(),
        };
        Ok((user, password))
    }
}

/// Reads a line from the terminal without showing it.
fn ask(user: &str) -> Result<String, String> {
    let input = io::stdin();
    if !input.is_terminal() {
        return Err("-p needs a terminal".to_owned());
    }
    let shown = |error: rustix::io::Errno| format!("the terminal: {error}");
    let before = tcgetattr(&input).map_err(shown)?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    eprint!("Password of {user}: ");
    io::stderr().flush().map_err(|error| error.to_string())?;
    tcsetattr(&input, OptionalActions::Flush, &silent).map_err(shown)?;
    let mut line = String::new();
    let read = input.read_line(&mut line);
    tcsetattr(&input, OptionalActions::Flush, &before).map_err(shown)?;
    eprintln!();
    read.map_err(|error| error.to_string())?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
