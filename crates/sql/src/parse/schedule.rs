//! Jobs that run an INSERT at given times: `CREATE JOB … ON SCHEDULE … DO INSERT …`, and what changes them.

use crate::ast::{Insert, Statement};
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::parse::{HiddenText, insert, unsupported};
use sqlparser::tokenizer::Token;
use tributary_types::{ErrorCode, SqlError};

/// A statement about jobs that run an INSERT at given times. A job has a name of its own among all of them.
#[derive(Clone, Debug, PartialEq)]
pub enum JobStatement {
    Create(Box<CreateJob>),
    Pause { name: String },
    Resume { name: String },
    Drop { name: String, if_exists: bool },
}

/// `CREATE JOB [IF NOT EXISTS] name ON SCHEDULE … [COMMENT '…'] DO INSERT …`
#[derive(Clone, Debug, PartialEq)]
pub struct CreateJob {
    pub name: String,
    pub if_not_exists: bool,
    pub schedule: Schedule,
    pub comment: String,
    /// The statement behind DO, read again for each run. It may have keys in it.
    pub text: HiddenText,
    pub insert: Box<Insert>,
}

/// The times of the runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Once.
    At(Moment),
    /// Again and again, from the moment of the statement on unless STARTS names another one.
    Every { count: u64, unit: JobUnit, starts: Option<Moment>, ends: Option<Moment> },
}

/// A moment, in the time zone of the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    Now,
    /// A text that is to be a DATETIME.
    Text(String),
}

/// A unit of the time between two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobUnit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
}

impl JobUnit {
    const ALL: [Self; 5] = [Self::Second, Self::Minute, Self::Hour, Self::Day, Self::Week];

    /// Its word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Second => "SECOND",
            Self::Minute => "MINUTE",
            Self::Hour => "HOUR",
            Self::Day => "DAY",
            Self::Week => "WEEK",
        }
    }

    /// Its length.
    #[must_use]
    pub const fn seconds(self) -> u64 {
        match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3600,
            Self::Day => 86_400,
            Self::Week => 7 * 86_400,
        }
    }
}

fn job(statement: JobStatement) -> Statement {
    Statement::Job(Box::new(statement))
}

/// Parses the rest after `CREATE JOB`.
pub(super) fn create(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    let if_not_exists = cursor.eat_all("IF NOT EXISTS");
    let name = name(cursor)?;
    cursor.expect("ON")?;
    if cursor.eat("STREAMING") {
        return Err(unsupported::refuse(
            "CREATE JOB … ON STREAMING",
            "use CREATE ROUTINE LOAD, or ON SCHEDULE",
        ));
    }
    cursor.expect("SCHEDULE")?;
    let schedule = schedule(cursor)?;
    let comment = if cursor.eat("COMMENT") { cursor.string("a comment in quotes")? } else { String::new() };
    cursor.expect("DO")?;
    let begin = cursor.offset();
    if !cursor.is("INSERT") {
        return Err(cursor.expected("INSERT, the only statement that a job can run"));
    }
    let Statement::Insert(insert) = insert::insert(cursor)? else {
        return Err(cursor.expected("INSERT INTO … SELECT or VALUES"));
    };
    if insert.label.is_some() {
        let text = "the INSERT of a job can't have a label, which only its first run could use: each run gets one of its own";
        return Err(SqlError::detail(ErrorCode::Unknown, text));
    }
    let end = cursor.offset();
    let text = HiddenText(cursor.sql()[begin..end].trim().trim_end_matches(';').trim_end().to_owned());
    Ok(job(JobStatement::Create(Box::new(CreateJob {
        name,
        if_not_exists,
        schedule,
        comment,
        text,
        insert,
    }))))
}

fn schedule(cursor: &mut Cursor<'_>) -> Parsed<Schedule> {
    if cursor.eat("AT") {
        return Ok(Schedule::At(moment(cursor)?));
    }
    if !cursor.eat("EVERY") {
        return Err(cursor.expected("AT or EVERY"));
    }
    let count: u64 = cursor.number("the number of units between two runs")?;
    let Some(unit) = JobUnit::ALL.into_iter().find(|unit| cursor.eat(unit.name())) else {
        return Err(cursor.expected("SECOND, MINUTE, HOUR, DAY or WEEK"));
    };
    if count == 0 || count.checked_mul(unit.seconds()).is_none_or(|seconds| seconds > MOST_SECONDS) {
        let text = format!(
            "EVERY {count} {}: the time between two runs must be from 1 second to 100 years",
            unit.name()
        );
        return Err(SqlError::detail(ErrorCode::Unknown, text));
    }
    let starts = if cursor.eat("STARTS") { Some(moment(cursor)?) } else { None };
    let ends = if cursor.eat("ENDS") { Some(moment(cursor)?) } else { None };
    Ok(Schedule::Every { count, unit, starts, ends })
}

/// The longest time between two runs.
const MOST_SECONDS: u64 = 100 * 366 * 86_400;

fn moment(cursor: &mut Cursor<'_>) -> Parsed<Moment> {
    if cursor.eat("CURRENT_TIMESTAMP") {
        if cursor.eat_token(&Token::LParen) {
            cursor.expect_token(&Token::RParen)?;
        }
        return Ok(Moment::Now);
    }
    cursor.eat("TIMESTAMP");
    Ok(Moment::Text(cursor.string("a time in quotes, such as '2030-01-31 12:00:00', or CURRENT_TIMESTAMP")?))
}

fn name(cursor: &mut Cursor<'_>) -> Parsed<String> {
    let name = cursor.identifier("the name of a job")?;
    // Doris has jobs in databases; their names are unique in all of them.
    if cursor.eat_token(&Token::Period) {
        return cursor.identifier("the name of a job");
    }
    Ok(name)
}

/// `WHERE jobName = 'name'`, or the name alone.
fn named(cursor: &mut Cursor<'_>) -> Parsed<String> {
    if !cursor.eat("WHERE") {
        return name(cursor);
    }
    cursor.expect("jobName")?;
    cursor.expect_token(&Token::Eq)?;
    cursor.string("the name of a job in quotes")
}

/// Parses the rest after `PAUSE JOB`, `RESUME JOB` or `STOP JOB`; `None` if another object follows the verb.
pub(super) fn control(cursor: &mut Cursor<'_>, verb: &str) -> Parsed<Option<Statement>> {
    if !cursor.is_nth(1, "JOB") {
        return Ok(None);
    }
    cursor.advance();
    cursor.advance();
    let name = named(cursor)?;
    Ok(Some(job(match verb {
        "PAUSE" => JobStatement::Pause { name },
        "RESUME" => JobStatement::Resume { name },
        _ => JobStatement::Drop { name, if_exists: false },
    })))
}

/// Parses the rest after `DROP JOB`.
pub(super) fn drop(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    let if_exists = cursor.eat_all("IF EXISTS");
    Ok(job(JobStatement::Drop { name: named(cursor)?, if_exists }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    fn created(sql: &str) -> CreateJob {
        match parse(sql) {
            Ok(Statement::Job(job)) => match *job {
                JobStatement::Create(create) => *create,
                other => panic!("{sql}: {other:?}"),
            },
            other => panic!("{sql}: {other:?}"),
        }
    }

    #[test]
    fn schedules_are_read() {
        let job = created(
            "CREATE JOB IF NOT EXISTS j ON SCHEDULE EVERY 5 minute STARTS '2030-01-01 00:00:00' ENDS CURRENT_TIMESTAMP() COMMENT 'c' \
             DO INSERT INTO d.t SELECT id, ';' FROM s ;",
        );
        assert_eq!((job.name.as_str(), job.if_not_exists, job.comment.as_str()), ("j", true, "c"));
        assert_eq!(job.text.0, "INSERT INTO d.t SELECT id, ';' FROM s");
        assert_eq!(
            job.schedule,
            Schedule::Every {
                count: 5,
                unit: JobUnit::Minute,
                starts: Some(Moment::Text("2030-01-01 00:00:00".to_owned())),
                ends: Some(Moment::Now),
            }
        );
        let once =
            created("create job db.once on schedule at timestamp '2030-01-01' do insert into t values (1)");
        assert_eq!(
            (once.name.as_str(), once.schedule),
            ("once", Schedule::At(Moment::Text("2030-01-01".to_owned())))
        );
        assert_eq!(once.text.0, "insert into t values (1)");
        let every = created("CREATE JOB j ON SCHEDULE EVERY 1 WEEK DO INSERT OVERWRITE TABLE t SELECT 1");
        assert!(every.insert.overwrite);
    }

    #[test]
    fn jobs_are_named() {
        let name = || "n".to_owned();
        for (sql, expected) in [
            ("PAUSE JOB WHERE jobName = 'n'", JobStatement::Pause { name: name() }),
            ("resume job where jobname='n';", JobStatement::Resume { name: name() }),
            ("DROP JOB IF EXISTS WHERE JobName = 'n'", JobStatement::Drop { name: name(), if_exists: true }),
            ("DROP JOB n", JobStatement::Drop { name: name(), if_exists: false }),
            ("STOP JOB WHERE jobName = 'n'", JobStatement::Drop { name: name(), if_exists: false }),
        ] {
            assert_eq!(parse(sql), Ok(job(expected)), "{sql}");
        }
    }

    #[test]
    fn bad_jobs_are_refused() {
        for (sql, text) in [
            ("CREATE JOB j ON SCHEDULE EVERY 0 MINUTE DO INSERT INTO t SELECT 1", "from 1 second"),
            ("CREATE JOB j ON SCHEDULE EVERY 99999999999 WEEK DO INSERT INTO t SELECT 1", "100 years"),
            ("CREATE JOB j ON SCHEDULE EVERY 1 MONTH DO INSERT INTO t SELECT 1", "SECOND, MINUTE"),
            (
                "CREATE JOB j ON SCHEDULE EVERY 1 DAY DO DELETE FROM t",
                "the only statement that a job can run",
            ),
            (
                "CREATE JOB j ON SCHEDULE EVERY 1 DAY DO INSERT INTO t WITH LABEL l SELECT 1",
                "can't have a label",
            ),
            ("CREATE JOB j ON STREAMING DO INSERT INTO t SELECT 1", "ROUTINE LOAD"),
            ("CREATE JOB j EVERY 1 DAY DO INSERT INTO t SELECT 1", "ON"),
            ("PAUSE JOB WHERE id = 1", "jobName"),
        ] {
            let error = parse(sql).expect_err(sql);
            assert!(error.to_string().contains(text), "{sql}: {error}");
        }
    }
}
