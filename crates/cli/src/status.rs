//! `tributary status`: whether a server is well, and what is not.

use crate::asked::{ask, printable};
use crate::http::{Address, Server};
use crate::load::parse_time;
use crate::password::Login;
use clap::Args;
use serde_json::Value;
use std::process::ExitCode;
use std::time::Duration;

/// Shows what is not well at a server
#[derive(Args, Clone, Debug)]
pub struct Status {
    /// The server's HTTP port
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8030")]
    url: String,
    #[command(flatten)]
    login: Login,
    /// Only asks whether the server is ready, without a login, and prints nothing if it is
    #[arg(short, long)]
    quiet: bool,
    /// Prints the problems as a JSON array
    #[arg(long, conflicts_with = "quiet")]
    json: bool,
    /// How long an answer may take
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_time)]
    timeout: Duration,
}

/// There are problems.
const PROBLEMS: u8 = 1;
/// The server gave no answer that says how it is.
const AWAY: u8 = 2;

impl Status {
    /// Asks the server. The exit code is 0 if it is well, 1 if it is not, 2 if it does not say.
    #[must_use]
    pub fn run(&self) -> ExitCode {
        match if self.quiet { self.ready() } else { self.problems() } {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::from(PROBLEMS),
            Err(text) => {
                eprintln!("tributary status: {text}");
                ExitCode::from(AWAY)
            }
        }
    }

    fn server(&self, login: &Login) -> Result<Server, String> {
        let address = Address::parse(&self.url)?;
        let (user, password) = login.resolve(address.user.as_deref())?;
        Ok(Server { address, user, password, patience: self.timeout.max(Duration::from_secs(1)) })
    }

    fn ready(&self) -> Result<bool, String> {
        let server = self.server(&self.login)?;
        let answer = server.get_without_login("/api/ready").map_err(|failure| failure.to_string())?;
        let reasons = answer.json().and_then(|json| json.get("data")?.get("reasons").cloned());
        match answer.status {
            200 => Ok(true),
            503 => {
                eprintln!("not ready: {}", reasons.unwrap_or_default());
                Ok(false)
            }
            other => Err(format!("HTTP {other} instead of an answer about readiness")),
        }
    }

    fn problems(&self) -> Result<bool, String> {
        let server = self.server(&self.login)?;
        let problems = ask(&server, "SELECT * FROM information_schema.problems")?;
        let is_well = problems.is_empty();
        if self.json {
            println!("{}", Value::from(problems));
            return Ok(is_well);
        }
        for problem in &problems {
            println!("{}", shown(problem));
        }
        if is_well {
            println!("No problems.");
        }
        Ok(is_well)
    }
}

/// A problem in a few lines.
fn shown(problem: &Value) -> String {
    let field = |name: &str| problem.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut text = format!(
        "{} {} since {}\n  {}",
        field("SEVERITY"),
        field("CODE"),
        field("SINCE"),
        printable(field("PROBLEM"))
    );
    for (name, title) in [("CAUSE", "Cause"), ("WAY_OUT", "Way out")] {
        if !field(name).is_empty() {
            text.push_str(&format!("\n  {title}: {}", printable(field(name))));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_shown_with_its_cause_and_the_way_out() {
        let problem = serde_json::json!({"CODE": "SLOW_LOG", "SEVERITY": "WARNING", "SINCE": "now", "PROBLEM": "It\u{1b} is slow.",
            "CAUSE": "A disk.", "WAY_OUT": ""});
        assert_eq!(shown(&problem), "WARNING SLOW_LOG since now\n  It is slow.\n  Cause: A disk.");
    }
}
