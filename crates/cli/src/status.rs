//! `tributary status`: whether a server is well, and what is not.

use crate::http::{Address, Body, Pace, Server};
use crate::load::parse_time;
use crate::password::Login;
use clap::Args;
use serde_json::{Map, Value};
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
        let body = Body::Bytes(br#"{"stmt":"SELECT * FROM information_schema.problems"}"#.to_vec());
        let headers = [("Content-Type".to_owned(), "application/json".to_owned())];
        let path = "/api/query/default_cluster/information_schema";
        let answer = server
            .request("POST", path, &headers, Some(&body), &Pace::default(), &mut || Ok(()))
            .map_err(|failure| failure.to_string())?;
        let json = answer.json().ok_or_else(|| format!("HTTP {} without JSON", answer.status))?;
        let problems = rows(&json).ok_or_else(|| match json.get("data").and_then(Value::as_str) {
            Some(error) => error.to_owned(),
            None => format!(
                "HTTP {}: {}",
                answer.status,
                json.get("msg").and_then(Value::as_str).unwrap_or("no rows")
            ),
        })?;
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

/// The rows of an answer as objects.
fn rows(json: &Value) -> Option<Vec<Value>> {
    let data = json.get("data")?;
    let names: Vec<_> =
        data.get("meta")?.as_array()?.iter().filter_map(|column| column.get("name")?.as_str()).collect();
    let object = |row: &Value| {
        let values = row.as_array()?.iter().cloned();
        Some(Value::from(names.iter().map(|name| (*name).to_owned()).zip(values).collect::<Map<_, _>>()))
    };
    data.get("data")?.as_array()?.iter().map(object).collect()
}

/// A problem in a few lines.
fn shown(problem: &Value) -> String {
    let field = |name: &str| problem.get(name).and_then(Value::as_str).unwrap_or_default();
    let printable = |text: &str| text.chars().filter(|sign| !sign.is_control()).collect::<String>();
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
        let json = serde_json::json!({"data": {"meta": [{"name": "CODE"}, {"name": "SEVERITY"}, {"name": "SINCE"}, {"name": "PROBLEM"},
            {"name": "CAUSE"}, {"name": "WAY_OUT"}], "data": [["SLOW_LOG", "WARNING", "now", "It\u{1b} is slow.", "A disk.", ""]]}});
        let rows = rows(&json).expect("rows");
        assert_eq!(shown(&rows[0]), "WARNING SLOW_LOG since now\n  It is slow.\n  Cause: A disk.");
        assert!(super::rows(&serde_json::json!({"data": "Access denied"})).is_none());
    }
}
