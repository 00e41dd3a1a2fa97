//! The shell: lines → statements, with history and completion.

use crate::sql::Sql;
use crate::sql::output::Form;
use crate::sql::session::Session;
use crate::sql::statements;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use std::collections::BTreeSet;
use std::path::PathBuf;
use tributary_client::Answer;

const KEYWORDS: &str = "ADD ALTER AND AS ASC BEGIN BETWEEN BY CASE COLUMN COMMIT COUNT CREATE CROSS DATABASE DELETE DESC DESCRIBE \
    DISTINCT DISTRIBUTED DROP DUPLICATE ELSE END EXISTS EXPLAIN FROM FULL GRANT GROUP HASH HAVING IF IN INNER INSERT INTO IS JOIN KEY KILL \
    LEFT LIKE LIMIT LOAD NOT NULL OFFSET ON OR ORDER OUTER PARTITION PROCESSLIST PROPERTIES RENAME REVOKE RIGHT ROLLBACK ROUTINE SELECT \
    SET SHOW STATUS SYNC TABLE TABLES THEN TO TRUNCATE UNION UNIQUE UPDATE USE USING VALUES VARIABLES VIEW WHEN WHERE WITH";
/// Names that completion knows at most.
const NAMES_MAX: usize = 20_000;
const HISTORY_MAX: usize = 5_000;

/// The words that Tab completes.
#[derive(Default)]
struct Words {
    names: BTreeSet<String>,
}

impl Completer for Words {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = &line[..at];
        let start = before
            .rfind(|sign: char| !sign.is_alphanumeric() && sign != '_')
            .map_or(0, |place| place + before[place..].chars().next().map_or(0, char::len_utf8));
        Ok((start, self.beginning(&before[start..])))
    }
}

impl Words {
    fn beginning(&self, part: &str) -> Vec<Pair> {
        if part.is_empty() {
            return Vec::new();
        }
        let is_lower = part.chars().all(|sign| !sign.is_uppercase());
        let begins =
            |word: &str| word.get(..part.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(part));
        let names = self.names.iter().filter(|name| begins(name)).cloned();
        let keywords = KEYWORDS.split_whitespace().filter(|word| begins(word));
        let keywords =
            keywords.map(|word| if is_lower { word.to_ascii_lowercase() } else { word.to_owned() });
        names.chain(keywords).map(|word| Pair { display: word.clone(), replacement: word }).collect()
    }

    /// Reads the names of tables and columns again.
    fn learn(&mut self, session: &mut Session) {
        let sql = format!(
            "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME FROM information_schema.columns LIMIT {NAMES_MAX}"
        );
        if let Ok(Answer::Rows(rows)) = session.run(&sql) {
            self.names = rows.rows.into_iter().flatten().flatten().collect();
        }
    }
}

impl Helper for Words {}
impl Highlighter for Words {}
impl Validator for Words {}
impl Hinter for Words {
    type Hint = String;
}

/// Runs the shell until its end.
pub(crate) fn run(sql: &Sql, session: &mut Session) -> Result<(), String> {
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .max_history_size(HISTORY_MAX)
        .map_err(|error| error.to_string())?
        .build();
    let mut editor: Editor<Words, FileHistory> =
        Editor::with_config(config).map_err(|error| error.to_string())?;
    let mut words = Words::default();
    words.learn(session);
    editor.set_helper(Some(words));
    let history = history_path();
    if let Some(path) = &history {
        // There is none before the first time.
        drop(editor.load_history(path));
    }
    println!(
        "Statements end with ; or \\G. Ctrl-C ends a running one. \\f FORM changes the output, \\q leaves."
    );
    let mut form = sql.output;
    let mut text = String::new();
    loop {
        let prompt = if text.is_empty() { "tributary> " } else { "        -> " };
        match editor.readline(prompt) {
            Ok(line) if text.is_empty() && line.trim_start().starts_with('\\') => {
                match command(line.trim()) {
                    Some(Command::Leave) => break,
                    Some(Command::Form(other)) => form = other,
                    None => eprintln!("Unknown command: \\f table|csv|json|vertical, \\q"),
                }
            }
            Ok(line) if text.is_empty() && matches!(line.trim(), "exit" | "quit") => break,
            Ok(line) => {
                text.push_str(&line);
                text.push('\n');
            }
            Err(ReadlineError::Interrupted) => {
                text.clear();
                continue;
            }
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error.to_string()),
        }
        let (whole, rest) = statements::split(&text);
        if whole.is_empty() && !rest.trim().is_empty() {
            continue;
        }
        let done = text.trim().to_owned();
        text = if rest.trim().is_empty() { String::new() } else { rest.to_owned() };
        if !done.is_empty() && !is_secret(&done) {
            drop(editor.add_history_entry(&done));
        }
        for statement in whole {
            // An error is shown; the shell goes on.
            drop(sql.run_one(session, &statement, form, true));
            if changes_names(&statement.text)
                && let Some(words) = editor.helper_mut()
            {
                words.learn(session);
            }
        }
    }
    if let Some(path) = &history {
        editor.save_history(path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

enum Command {
    Leave,
    Form(Form),
}

fn command(line: &str) -> Option<Command> {
    match line.split_whitespace().collect::<Vec<_>>()[..] {
        ["\\q"] => Some(Command::Leave),
        ["\\f", name] => <Form as clap::ValueEnum>::from_str(name, true).ok().map(Command::Form),
        _ => None,
    }
}

/// The history's file, which only its user may read.
fn history_path() -> Option<PathBuf> {
    let given = std::env::var_os("TRIBUTARY_HISTORY").map(PathBuf::from);
    given.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".tributary_history")))
}

/// Statements with passwords and keys stay out of the history.
fn is_secret(text: &str) -> bool {
    let text = text.to_ascii_uppercase();
    ["PASSWORD", "IDENTIFIED", "TOKEN", "SECRET", "ACCESS_KEY"].iter().any(|sign| text.contains(sign))
}

fn changes_names(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
    matches!(first.as_str(), "CREATE" | "ALTER" | "DROP" | "RENAME" | "RECOVER")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_completed_in_the_case_that_was_begun() {
        let words = Words { names: BTreeSet::from(["Selected".to_owned(), "übung".to_owned()]) };
        let found = |part| words.beginning(part).into_iter().map(|pair| pair.replacement).collect::<Vec<_>>();
        assert_eq!(found("sel"), ["Selected", "select"]);
        assert_eq!(found("SELECT"), ["Selected", "SELECT"]);
        assert_eq!(found("üb"), ["übung"]);
        assert!(found("").is_empty() && found("xyz").is_empty());
    }

    #[test]
    fn secrets_are_no_history() {
        assert!(is_secret("set password = password('x')") && is_secret("CREATE USER u IDENTIFIED BY 'x'"));
        assert!(!is_secret("SELECT 1"));
    }
}
