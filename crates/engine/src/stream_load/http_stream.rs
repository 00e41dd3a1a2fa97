//! HTTP Stream: the statement in the header `sql` says where the rows of the body go.
//!
//! `INSERT INTO t [(cols)] SELECT … FROM http_stream(properties) [WHERE …]`. A plain `SELECT *` is
//! a Stream Load with the statement's column list. Anything else runs in the query engine, over
//! the fields of the body as the texts `c1`, `c2`, ….

use super::{LoadRequest, body_size, plan_error};
use crate::engine::Engine;
use crate::stream_load::reader::{MappedColumn, Mapping, RowReader};
use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, Query, Select, SelectItem, SetExpr, TableFactor,
    Value as SqlValue,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use tributary_decode::CsvOptions;
use tributary_http::{Compression, HttpStreamRequest, LoadAnswer, LoadBody};
use tributary_ingest::Source;
use tributary_sql::{Insert, InsertSource, Statement};
use tributary_types::{ErrorCode, Label, SqlError};

/// The statement of an HTTP Stream, understood.
struct StreamStatement {
    insert: Insert,
    properties: BTreeMap<String, String>,
    /// The select list; `None`: `SELECT *`.
    items: Option<Vec<Expr>>,
    where_expr: Option<Expr>,
}

impl Engine {
    pub(super) async fn load_http_stream(
        self: &Arc<Self>,
        request: HttpStreamRequest,
        body: LoadBody,
    ) -> LoadAnswer {
        let statement = match understand(&request.sql) {
            Ok(statement) => statement,
            Err(error) => return LoadAnswer::from_sql_error(&error),
        };
        let name = &statement.insert.table;
        let table = match self.table(None, name.db.as_deref(), &name.table) {
            Ok(table) => table,
            Err(error) => return LoadAnswer::from_sql_error(&error),
        };
        let label = match &statement.insert.label {
            Some(label) => match Label::new(label) {
                Ok(label) => Some(label),
                Err(error) => return LoadAnswer::from_sql_error(&error),
            },
            None => request.label.clone(),
        };
        let load = LoadRequest {
            source: Source::HttpStream,
            label,
            group_commit: request.group_commit,
            two_phase_commit: request.two_phase_commit,
            partial_update: request.partial_columns,
            partitions: request.partitions || statement.insert.partitions,
            max_filter_ratio: request.max_filter_ratio,
            timeout: request.timeout,
            body: body_size(request.content_length, request.chunked),
        };
        let options = match self
            .load_clock(request.timezone.as_deref())
            .and_then(|clock| csv_options(&statement.properties, request.strict_mode, clock))
        {
            Ok(options) => options,
            Err(error) => return LoadAnswer::from_sql_error(&error),
        };
        let body = match statement.properties.get("compress_type").map(String::as_str) {
            None | Some("") => body,
            Some(kind) if kind.eq_ignore_ascii_case("gz") => body.decompress(Compression::Gzip),
            Some(other) => {
                return LoadAnswer::from_sql_error(&refused(format!(
                    "compress_type '{other}' is not supported yet; send the body plain or as gz"
                )));
            }
        };
        let plan = |engine: &Arc<Self>, table: &Arc<tributary_table::Table>| {
            let columns = statement.mapping(&table.def())?;
            let mapping = Mapping {
                columns: columns.as_deref(),
                where_expr: None,
                source_where: statement.where_expr.as_ref(),
            };
            RowReader::new(engine, &table.def(), &mapping, options)
        };
        self.run_load(table, load, body, plan).await
    }
}

impl StreamStatement {
    /// The statement's select list as the header `columns` would say it: the body's fields `c1`,
    /// `c2`, … and one expression for each target column.
    fn mapping(&self, def: &tributary_types::TableDef) -> Result<Option<Vec<MappedColumn>>, SqlError> {
        let targets: Vec<String> = match &self.insert.columns {
            Some(names) => names.clone(),
            None => def.schema.columns.iter().map(|column| column.name.clone()).collect(),
        };
        let Some(items) = &self.items else {
            if self.insert.columns.is_none() && self.where_expr.is_none() {
                return Ok(None);
            }
            let plain = |name: &String| MappedColumn { name: name.clone(), expr: None };
            if self.where_expr.is_none() {
                return Ok(Some(targets.iter().map(plain).collect()));
            }
            let fields =
                (1..=targets.len()).map(|number| MappedColumn { name: format!("c{number}"), expr: None });
            let computed = targets.iter().enumerate().map(|(index, name)| MappedColumn {
                name: name.clone(),
                expr: Some(Expr::Identifier(Ident::new(format!("c{}", index + 1)))),
            });
            return Ok(Some(fields.chain(computed).collect()));
        };
        if items.len() != targets.len() {
            return Err(SqlError::detail(
                ErrorCode::ColumnCountMismatch,
                format!(
                    "Column count doesn't match value count: {} columns, {} values",
                    targets.len(),
                    items.len()
                ),
            ));
        }
        let computed = targets
            .iter()
            .zip(items)
            .map(|(name, expr)| MappedColumn { name: name.clone(), expr: Some(expr.clone()) });
        Ok(Some(computed.collect()))
    }
}

fn refused(text: impl AsRef<str>) -> SqlError {
    SqlError::detail(ErrorCode::NotSupported, text)
}

fn understand(sql: &str) -> Result<StreamStatement, SqlError> {
    let shape = || {
        plan_error(format!(
            "parse db and tb with wrong sql:{sql}; \
             the statement must be INSERT INTO db.table [(columns)] SELECT … FROM http_stream(…) [WHERE …]"
        ))
    };
    let Statement::Insert(insert) = tributary_sql::parse(sql)? else { return Err(shape()) };
    let InsertSource::Query(query) = &insert.source else { return Err(shape()) };
    let select = select_of(&query.ast).ok_or_else(|| {
        refused("only SELECT … FROM http_stream(…) WHERE … is supported here, without GROUP BY, ORDER BY, LIMIT or joins")
    })?;
    let properties = stream_properties(select).ok_or_else(shape)??;
    let is_star = matches!(select.projection.as_slice(), [SelectItem::Wildcard(_)]);
    let items = if is_star {
        None
    } else {
        Some(
            select
                .projection
                .iter()
                .map(|item| match item {
                    SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                        Ok(expr.clone())
                    }
                    other => Err(refused(format!(
                        "`{other}` is not supported in the select list of an HTTP Stream"
                    ))),
                })
                .collect::<Result<Vec<_>, _>>()?,
        )
    };
    let where_expr = select.selection.clone();
    Ok(StreamStatement { properties, items, where_expr, insert: *insert })
}

/// The query's SELECT if it has nothing but a list, one table and a filter.
fn select_of(query: &Query) -> Option<&Select> {
    let SetExpr::Select(select) = &*query.body else { return None };
    let no_groups = match &select.group_by {
        sqlparser::ast::GroupByExpr::Expressions(exprs, modifiers) => {
            exprs.is_empty() && modifiers.is_empty()
        }
        sqlparser::ast::GroupByExpr::All(_) => false,
    };
    let is_plain = query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && select.distinct.is_none()
        && select.having.is_none()
        && no_groups;
    is_plain.then_some(select)
}

/// The properties of `FROM http_stream(…)`; `None` if the FROM is anything else.
fn stream_properties(select: &Select) -> Option<Result<BTreeMap<String, String>, SqlError>> {
    let [from] = select.from.as_slice() else { return None };
    if !from.joins.is_empty() {
        return None;
    }
    let args = match &from.relation {
        TableFactor::Table { name, args: Some(args), .. } if is_http_stream(&name.to_string()) => &args.args,
        TableFactor::Function { name, args, .. } if is_http_stream(&name.to_string()) => args,
        _ => return None,
    };
    Some(args.iter().map(property).collect())
}

fn is_http_stream(name: &str) -> bool {
    name.trim_matches('`').eq_ignore_ascii_case("http_stream")
}

/// `"key" = "value"`.
fn property(arg: &FunctionArg) -> Result<(String, String), SqlError> {
    let wrong = || refused(format!("`{arg}` is not a property of http_stream; write \"key\" = \"value\""));
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::BinaryOp { left, right, .. })) => {
            Ok((text(left).ok_or_else(wrong)?.to_ascii_lowercase(), text(right).ok_or_else(wrong)?))
        }
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => {
            Ok((name.value.to_ascii_lowercase(), text(value).ok_or_else(wrong)?))
        }
        FunctionArg::ExprNamed { name, arg: FunctionArgExpr::Expr(value), .. } => {
            Ok((text(name).ok_or_else(wrong)?.to_ascii_lowercase(), text(value).ok_or_else(wrong)?))
        }
        _ => Err(wrong()),
    }
}

fn text(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(value) => match &value.value {
            SqlValue::SingleQuotedString(text) | SqlValue::DoubleQuotedString(text) => Some(text.clone()),
            SqlValue::Number(number, _) => Some(number.to_string()),
            SqlValue::Boolean(flag) => Some(flag.to_string()),
            _ => None,
        },
        Expr::Identifier(ident) => Some(ident.value.clone()),
        _ => None,
    }
}

fn csv_options(
    properties: &BTreeMap<String, String>,
    strict: bool,
    clock: tributary_decode::LoadClock,
) -> Result<CsvOptions, SqlError> {
    let mut options = CsvOptions { strict, clock, ..CsvOptions::default() };
    for (key, value) in properties {
        let one_byte = || match value.as_bytes() {
            [] => Ok(None),
            [byte] => Ok(Some(*byte)),
            _ => Err(plan_error(format!("{key} must be single-char, actually is {value}"))),
        };
        match key.as_str() {
            "format" => match value.to_ascii_lowercase().as_str() {
                "csv" => {}
                "csv_with_names" => options.skip_lines = 1,
                "csv_with_names_and_types" => options.skip_lines = 2,
                other => return Err(refused(format!("format '{other}' is not supported yet; use CSV"))),
            },
            "column_separator" => options.column_separator = tributary_http::separator(value)?,
            "line_delimiter" => options.line_delimiter = tributary_http::separator(value)?,
            "enclose" => options.enclose = one_byte()?,
            "escape" => options.escape = one_byte()?,
            "trim_double_quotes" => options.trim_double_quotes = value.eq_ignore_ascii_case("true"),
            "empty_field_as_null" => options.empty_field_as_null = value.eq_ignore_ascii_case("true"),
            "skip_lines" => {
                options.skip_lines =
                    value.parse().map_err(|_| plan_error(format!("Invalid 'skip_lines': {value}")))?;
            }
            "compress_type" => {}
            _ => return Err(plan_error(format!("Unknown properties: {{{key}={value}}} of http_stream"))),
        }
    }
    Ok(options)
}
