//! `GET_LOCK`, `SLEEP` and the like: calls that wait, or change something, before their query is planned.
//!
//! They are run once, in the order of the text, and only where no table is read: `SELECT GET_LOCK('x', 10)`, and among the values of an
//! INSERT.

use super::EngineSession;
use crate::session::compat::Warning;
use sqlparser::ast as sp;
use std::ops::ControlFlow;
use std::time::Duration;
use tributary_query::ScalarValue;
use tributary_sql::{SelectQuery, placeholders, visit};
use tributary_types::{ErrorCode, SqlError};

/// The functions, with the least and the most arguments.
const FUNCTIONS: [(&str, usize); 6] = [
    ("get_lock", 2),
    ("release_lock", 1),
    ("release_all_locks", 0),
    ("is_free_lock", 1),
    ("is_used_lock", 1),
    ("sleep", 1),
];

/// A call in a query.
struct Call {
    name: &'static str,
    args: Vec<sp::Expr>,
}

/// The function of an expression, if it is one of [`FUNCTIONS`].
fn waiting(expr: &sp::Expr) -> Option<(&sp::Function, &'static str, usize)> {
    let sp::Expr::Function(function) = expr else { return None };
    let written = function.name.to_string();
    let found = FUNCTIONS.iter().find(|(name, _)| written.eq_ignore_ascii_case(name));
    found.map(|(name, count)| (function, *name, *count))
}

/// Puts values in the places of calls, in the order of the text.
struct Replace<'v>(std::slice::Iter<'v, Option<i64>>);

impl sp::VisitorMut for Replace<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut sp::Expr) -> ControlFlow<()> {
        if waiting(expr).is_some() {
            let value = self.0.next().copied().flatten();
            let value = value.map_or(sp::Value::Null, |value| sp::Value::Number(value.to_string(), false));
            *expr = sp::Expr::value(value);
        }
        ControlFlow::Continue(())
    }
}

/// Finds the calls.
#[derive(Default)]
struct Find(Vec<Call>);

impl sp::Visitor for Find {
    type Break = SqlError;

    fn pre_visit_expr(&mut self, expr: &sp::Expr) -> ControlFlow<SqlError> {
        let Some((function, name, count)) = waiting(expr) else { return ControlFlow::Continue(()) };
        let args: Vec<sp::Expr> = match &function.args {
            sp::FunctionArguments::List(list) => list
                .args
                .iter()
                .filter_map(|arg| match arg {
                    sp::FunctionArg::Unnamed(sp::FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        };
        if args.len() != count {
            let text =
                format!("Incorrect parameter count in the call to native function '{}'", function.name);
            return ControlFlow::Break(SqlError::new(ErrorCode::WrongParameterCount, text));
        }
        self.0.push(Call { name, args });
        ControlFlow::Continue(())
    }
}

/// Whether a query has rows of expressions alone, like those of an INSERT.
fn reads_nothing(body: &sp::SetExpr) -> bool {
    let mut parts = vec![body];
    while let Some(part) = parts.pop() {
        match part {
            sp::SetExpr::Select(select) if select.from.is_empty() => {}
            sp::SetExpr::Values(_) => {}
            sp::SetExpr::SetOperation { left, right, .. } => parts.extend([left.as_ref(), right.as_ref()]),
            _ => return false,
        }
    }
    true
}

/// Whether the text may have such a call; a cheap look that most queries fail.
fn may_call(text: &str) -> bool {
    let has = |word: &[u8]| text.as_bytes().windows(word.len()).any(|found| found.eq_ignore_ascii_case(word));
    has(b"_lock") || has(b"sleep")
}

/// The query with numbers in the places of its calls, whose rows have the same columns; `None` if there are no calls.
///
/// # Errors
/// A call has too few or too many arguments.
pub(super) fn with_numbers(query: &SelectQuery) -> Result<Option<SelectQuery>, SqlError> {
    let calls = calls(query)?.len();
    Ok((calls > 0).then(|| with_values(query, &vec![Some(0); calls])))
}

/// The calls of a query.
fn calls(query: &SelectQuery) -> Result<Vec<Call>, SqlError> {
    if !(query.text.is_empty() || may_call(&query.text)) {
        return Ok(Vec::new());
    }
    let mut find = Find::default();
    match visit::walk_query(&query.ast, &mut find) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(find.0),
    }
}

/// The query with these values in the places of its calls.
fn with_values(query: &SelectQuery, values: &[Option<i64>]) -> SelectQuery {
    let mut called = query.clone();
    let mut ast = called.ast.into_inner();
    let _ = visit::walk_query_mut(&mut ast, &mut Replace(values.iter()));
    called.ast = Box::new(ast).into();
    called
}

impl EngineSession {
    /// Runs the calls of a query that wait. Returns the query with their values in their places, and the parameters that are left;
    /// `None` if there are no calls.
    pub(super) async fn run_waiting_calls(
        &mut self,
        query: &SelectQuery,
        params: &[ScalarValue],
    ) -> Result<Option<(SelectQuery, Vec<ScalarValue>)>, SqlError> {
        let calls = calls(query)?;
        let Some(first) = calls.first() else { return Ok(None) };
        if !reads_nothing(&query.ast.body) {
            let name = first.name.to_ascii_uppercase();
            return Err(SqlError::detail(
                ErrorCode::NotSupported,
                format!("{name} in a query of tables is not supported: write SELECT {name}(…) without FROM"),
            ));
        }
        let places = placeholders(&query.ast);
        let mut done = Vec::with_capacity(calls.len());
        for Call { name, args } in calls {
            let mut values = Vec::with_capacity(args.len());
            for arg in args {
                values.push(self.argument(arg, &places, params).await?);
            }
            done.push(self.run_waiting_call(name, &values).await?);
        }
        let called = with_values(query, &done);
        let left = placeholders(&called.ast);
        let is_left = |index: &usize| left.contains(&places[*index]);
        let params =
            (0..places.len().min(params.len())).filter(is_left).map(|index| params[index].clone()).collect();
        Ok(Some((called, params)))
    }

    /// The text of an argument; `None` is NULL.
    async fn argument(
        &mut self,
        arg: sp::Expr,
        places: &[sqlparser::tokenizer::Location],
        params: &[ScalarValue],
    ) -> Result<Option<String>, SqlError> {
        if let sp::Expr::Value(sp::ValueWithSpan { value: sp::Value::Placeholder(_), span }) = &arg {
            let index = places.iter().position(|place| *place == span.start);
            let value = index.and_then(|index| params.get(index));
            return Ok(value.filter(|value| !value.is_null()).map(ToString::to_string));
        }
        match SelectQuery::of_rows(vec![vec![arg]]) {
            Some(query) => self.first_value(&query, params).await,
            None => Ok(None),
        }
    }

    async fn run_waiting_call(
        &mut self,
        name: &str,
        args: &[Option<String>],
    ) -> Result<Option<i64>, SqlError> {
        let seconds = |text: Option<&String>| text.and_then(|text| text.trim().parse::<f64>().ok());
        if name == "sleep" {
            let Some(time) = seconds(args[0].as_ref()).filter(|time| *time >= 0.0) else {
                let text = "Incorrect arguments to sleep: a number of seconds, 0 or more";
                return Err(SqlError::new(ErrorCode::WrongArguments, text));
            };
            let time = Duration::try_from_secs_f64(time).unwrap_or(Duration::MAX);
            let interrupt = self.interrupt().or_after(self.query_timeout());
            interrupt.wait(tokio::time::sleep(time)).await?;
            return Ok(Some(0));
        }
        let locks = std::sync::Arc::clone(&self.engine.user_locks);
        if name == "release_all_locks" {
            return Ok(Some(locks.release_all(self.id)));
        }
        let lock = crate::access::user_locks::name(args[0].as_deref())?;
        Ok(match name {
            "get_lock" => {
                let Some(patience) = seconds(args[1].as_ref()) else {
                    self.warnings
                        .push(Warning::of("GET_LOCK without a time to wait does not wait".to_owned()));
                    return Ok(Some(i64::from(locks.try_get(&lock, self.id)?)));
                };
                // As in MySQL, a negative time has no end.
                let patience = Duration::try_from_secs_f64(patience).unwrap_or(Duration::MAX);
                let interrupt = self.interrupt().or_after(self.query_timeout());
                let got = interrupt.wait(locks.get(&lock, self.id, patience)).await??;
                Some(i64::from(got))
            }
            "release_lock" => locks.release(&lock, self.id).map(i64::from),
            "is_free_lock" => Some(i64::from(locks.holder(&lock).is_none())),
            _ => locks.holder(&lock).map(i64::from),
        })
    }

    /// `SELECT … INTO @x`: the values of the only row. Without a row the variables stay as they are.
    pub(super) async fn run_select_into(
        &mut self,
        query: &SelectQuery,
        variables: Vec<String>,
        params: &[ScalarValue],
    ) -> Result<crate::answer::Answer, SqlError> {
        use crate::answer::{Answer, Done};
        use arrow::util::display::array_value_to_string;
        let mut answer = self.run_query(query, params).await?;
        let Answer::Rows(rows) = &mut answer else { return Ok(answer) };
        if rows.columns().len() != variables.len() {
            let text = "The used SELECT statements have a different number of columns";
            return Err(SqlError::new(ErrorCode::DifferentColumnCount, text));
        }
        let mut found: Option<Vec<Option<String>>> = None;
        while let Some(batch) = rows.next().await? {
            if batch.num_rows() == 0 {
                continue;
            }
            if found.is_some() || batch.num_rows() > 1 {
                return Err(SqlError::new(ErrorCode::TooManyRows, "Result consisted of more than one row"));
            }
            let text = |column: &arrow::array::ArrayRef| match column.is_null(0) {
                true => Ok(None),
                false => array_value_to_string(column, 0).map(Some),
            };
            let values = batch.columns().iter().map(text).collect::<Result<Vec<_>, _>>();
            found = Some(values.map_err(|error| SqlError::detail(ErrorCode::Unknown, error.to_string()))?);
        }
        drop(answer);
        let Some(values) = found else {
            let note = "No data - zero rows fetched, selected, or processed".to_owned();
            self.warnings.push(Warning::of(note));
            return Ok(Answer::Done(Done { warnings: 1, ..Done::default() }));
        };
        for (name, value) in variables.into_iter().zip(values) {
            self.set_user_variable(name, value)?;
        }
        Ok(Answer::Done(Done { affected_rows: 1, ..Done::default() }))
    }
}
