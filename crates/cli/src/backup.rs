//! `tributary backup`: the statement BACKUP SERVER.

use crate::password::Login;
use crate::sql::Sql;
use crate::store::StoreProperties;
use clap::Args;
use std::num::NonZero;
use std::process::ExitCode;

/// Takes a backup of a running server, as it is at one moment
#[derive(Args, Clone, Debug)]
pub struct Backup {
    /// The server's MySQL port, as `mysql://user@host:9030`
    #[arg(long, value_name = "URL", default_value = "mysql://127.0.0.1:9030")]
    url: String,
    #[command(flatten)]
    login: Login,
    /// The name of the backup; by default the time
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The place of the backups, `s3://bucket/path`; by default the directory of the server's setting `backup_path`
    #[arg(long, value_name = "PLACE")]
    to: Option<String>,
    /// Afterwards removes all but the newest N backups of this server, and the files that no other backup needs
    #[arg(long, value_name = "N")]
    keep: Option<NonZero<u32>>,
    #[command(flatten)]
    properties: StoreProperties,
}

impl Backup {
    /// Takes the backup and prints what it has. The exit codes are those of `tributary sql`.
    #[must_use]
    pub fn run(self) -> ExitCode {
        let properties = match self.properties.resolve() {
            Ok(properties) => properties,
            Err(error) => {
                eprintln!("tributary backup: {error}");
                return ExitCode::from(crate::sql::USAGE);
            }
        };
        let statement = statement(self.name.as_deref(), self.to.as_deref(), self.keep, &properties);
        Sql::of(self.url, self.login, statement).run()
    }
}

fn statement(
    name: Option<&str>,
    to: Option<&str>,
    keep: Option<NonZero<u32>>,
    properties: &[(String, String)],
) -> String {
    let mut text = "BACKUP SERVER".to_owned();
    if let Some(name) = name {
        text += &format!(" AS {}", quoted(name));
    }
    if let Some(to) = to {
        text += &format!(" TO {}", quoted(to));
    }
    if let Some(keep) = keep {
        text += &format!(" KEEP {keep}");
    }
    if !properties.is_empty() {
        let pairs: Vec<String> =
            properties.iter().map(|(name, value)| format!("{} = {}", quoted(name), quoted(value))).collect();
        text += &format!(" PROPERTIES ({})", pairs.join(", "));
    }
    text
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_in_the_statement() {
        assert_eq!(statement(None, None, None, &[]), "BACKUP SERVER");
        let properties = [("s3.secret_key".to_owned(), r"a'b\c".to_owned())];
        assert_eq!(
            statement(Some("monday"), Some("s3://b/p"), NonZero::new(7), &properties),
            r"BACKUP SERVER AS 'monday' TO 's3://b/p' KEEP 7 PROPERTIES ('s3.secret_key' = 'a''b\\c')"
        );
    }
}
