//! Calls of table functions that read files: `S3(…)`, `HTTP(…)`, `LOCAL(…)`.
//!
//! A call's properties are texts; nothing here interprets them.

use crate::ast::SelectQuery;
use crate::properties;
use crate::visit::walk_query_mut;
use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, ObjectNamePart, TableAlias, TableFactor,
    TableFunctionArgs, Value, VisitorMut,
};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;
use tributary_types::{ErrorCode, SqlError};

/// The table function that replaces calls in the query of [`SelectQuery::take_file_calls`]; its argument is the call's index.
/// Clients can't call it by this name.
pub const FILES_FUNCTION: &str = "tributary.files";

/// Functions that read files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFunction {
    S3,
    Http,
    Local,
}

impl FileFunction {
    /// The name in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Http => "http",
            Self::Local => "local",
        }
    }

    /// The function of that name, in any case.
    pub(crate) fn named(name: &str) -> Result<Option<Self>, SqlError> {
        Ok(Some(match name.to_ascii_lowercase().as_str() {
            "s3" => Self::S3,
            "http" => Self::Http,
            "local" => Self::Local,
            "hdfs" => {
                let text = "HDFS() is not supported; read the files by WebHDFS and HTTP(), or copy them to a store that S3() \
                            reads";
                return Err(SqlError::detail(ErrorCode::NotSupported, text));
            }
            _ => return Ok(None),
        }))
    }
}

/// A call of such a function.
#[derive(Clone, PartialEq, Eq)]
pub struct FileCall {
    pub function: FileFunction,
    /// By their names in lower case.
    pub properties: BTreeMap<String, String>,
}

/// Omits the texts, some of which are secret.
impl fmt::Debug for FileCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.function.name())?;
        f.debug_set().entries(self.properties.keys()).finish()
    }
}

impl FileCall {
    /// The call of a table factor; `None` for any other.
    pub(crate) fn of(factor: &TableFactor) -> Result<Option<Self>, SqlError> {
        let Some((function, args)) = called(factor)? else { return Ok(None) };
        Ok(Some(Self { function, properties: properties::of_call(function.name(), args)? }))
    }
}

impl SelectQuery {
    /// Returns the query with [`FILES_FUNCTION`] in place of each call, and the calls; `None` if there is no call.
    ///
    /// # Errors
    /// [`ErrorCode::NotSupported`] for arguments that are not properties, and for functions that exist in Doris only.
    pub fn take_file_calls(&self) -> Result<Option<(Self, Vec<FileCall>)>, SqlError> {
        if !has_calls(self)? {
            return Ok(None);
        }
        let mut query = self.clone();
        let mut take = Take(Vec::new());
        match walk_query_mut(&mut query.ast, &mut take) {
            ControlFlow::Continue(()) => Ok(Some((query, take.0))),
            ControlFlow::Break(error) => Err(error),
        }
    }
}

fn has_calls(query: &SelectQuery) -> Result<bool, SqlError> {
    struct Find;
    impl sqlparser::ast::Visitor for Find {
        type Break = Result<(), SqlError>;
        fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Self::Break> {
            match called(factor) {
                Ok(None) => ControlFlow::Continue(()),
                Ok(Some(_)) => ControlFlow::Break(Ok(())),
                Err(error) => ControlFlow::Break(Err(error)),
            }
        }
    }
    match crate::visit::walk_query(&query.ast, &mut Find) {
        ControlFlow::Continue(()) => Ok(false),
        ControlFlow::Break(found) => found.map(|()| true),
    }
}

/// The function that a table factor calls, and its arguments.
fn called(factor: &TableFactor) -> Result<Option<(FileFunction, &[FunctionArg])>, SqlError> {
    let (name, args) = match factor {
        TableFactor::Table { name, args: Some(args), .. } => (name, &args.args),
        TableFactor::Function { name, args, .. } => (name, args),
        _ => return Ok(None),
    };
    let [ObjectNamePart::Identifier(name)] = name.0.as_slice() else { return Ok(None) };
    Ok(FileFunction::named(&name.value)?.map(|function| (function, args.as_slice())))
}

/// Takes calls out of a query.
struct Take(Vec<FileCall>);

impl VisitorMut for Take {
    type Break = SqlError;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<SqlError> {
        let call = match FileCall::of(factor) {
            Ok(None) => return ControlFlow::Continue(()),
            Ok(Some(call)) => call,
            Err(error) => return ControlFlow::Break(error),
        };
        let place = Expr::value(Value::Number(self.0.len().to_string(), false));
        let stands_for_it = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(place))];
        match factor {
            TableFactor::Table { name, args: Some(args), alias, .. } => {
                *name = ObjectName::from(vec![Ident::new(FILES_FUNCTION)]);
                *args = TableFunctionArgs { args: stands_for_it, settings: None };
                alias.get_or_insert_with(|| named(call.function));
            }
            TableFactor::Function { name, args, alias, .. } => {
                *name = ObjectName::from(vec![Ident::new(FILES_FUNCTION)]);
                *args = stands_for_it;
                alias.get_or_insert_with(|| named(call.function));
            }
            _ => {}
        }
        self.0.push(call);
        ControlFlow::Continue(())
    }
}

/// A table without another name is called as its function.
fn named(function: FileFunction) -> TableAlias {
    TableAlias {
        explicit: true,
        name: Ident::with_quote('`', function.name()),
        columns: Vec::new(),
        at: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_query;

    fn taken(sql: &str) -> Option<(String, Vec<FileCall>)> {
        let taken = parse_query(sql).expect(sql).take_file_calls().expect(sql);
        taken.map(|(query, calls)| (query.ast.to_string(), calls))
    }

    #[test]
    fn calls_are_taken_wherever_a_table_may_be() {
        assert_eq!(taken("SELECT s3, hdfs FROM s3 WHERE local = http(1)"), None);
        let sql = r#"WITH f AS (SELECT * FROM S3("URI" = "s3://b/x", "use_path_style" = true)) SELECT * FROM f, local(file_path = 'a') AS l
                     WHERE EXISTS (SELECT 1 FROM `http`("uri" = "http://h/x") WHERE c1 = f.c1)"#;
        let (text, calls) = taken(sql).expect("there are three");
        assert!(text.contains("FROM tributary.files(0) AS `s3`"), "{text}");
        assert!(
            text.contains("tributary.files(1) AS l") && text.contains("tributary.files(2) AS `http`"),
            "{text}"
        );
        let functions: Vec<_> = calls.iter().map(|call| call.function.name()).collect();
        assert_eq!(functions, ["s3", "local", "http"]);
        assert_eq!(calls[0].properties["uri"], "s3://b/x");
        assert_eq!(calls[0].properties["use_path_style"], "true");
        assert_eq!(calls[1].properties["file_path"], "a");
    }

    #[test]
    fn what_is_no_property_is_refused_without_being_shown() {
        for (sql, text) in [
            (r#"SELECT * FROM s3("hush")"#, "argument 1 of s3 is not a property of s3"),
            (r#"SELECT * FROM s3("uri" = "u", "s3.secret_key" = concat("hush"))"#, "argument 2 of s3"),
            (r#"SELECT * FROM hdfs("uri" = "hush")"#, "HDFS() is not supported; read"),
        ] {
            let error = parse_query(sql).expect(sql).take_file_calls().unwrap_err().to_string();
            assert!(error.contains(text) && !error.contains("hush"), "{error}");
        }
        let call = taken(r#"SELECT * FROM s3("s3.secret_key" = "hush")"#).expect("a call").1;
        assert_eq!(format!("{call:?}"), r#"[s3{"s3.secret_key"}]"#);
    }
}
