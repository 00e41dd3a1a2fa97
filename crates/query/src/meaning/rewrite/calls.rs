//! Function calls: MySQL's and Doris's names → DataFusion's or ours.
//!
//! The table of functions ([`functions::declared`]) says how a call is planned; forms of their own are here.

mod aggregates;
mod collected;
mod forms;
mod lambdas;

use super::exprs::{as_bytes, as_text, rounded};
use super::{Rewriter, ast, dates, generators};
use crate::functions::{self, Family, Means};
use sqlparser::ast::{
    BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    ObjectName,
};
use tributary_types::{ErrorCode, SqlError};

pub(super) use aggregates::is_aggregate;

impl Rewriter<'_> {
    pub(super) fn function(&self, mut function: Function) -> Result<Expr, SqlError> {
        let name = last_name(&function.name);
        let declared = functions::meant(&name);
        let name = declared.map_or(name, |declared| declared.name.to_owned());
        rename(&mut function, &name);
        if let Some(rewritten) = self.aggregate(&name, &mut function)? {
            return Ok(rewritten);
        }
        if function.over.is_some() || function.filter.is_some() {
            return known(function);
        }
        let Some(args) = plain_args(&function) else { return known(function) };
        let args = if forms::makes_document(&name) { forms::with_documents(args) } else { args };
        if let Some(constant) = self.constant(&name, &args)? {
            return Ok(constant);
        }
        let args = if name == "regexp_like" { forms::with_flags(args, self.ignores_case())? } else { args };
        match declared.map(|declared| declared.means) {
            Some(Means::OfTexts(to)) => Ok(ast::call(to, args.into_iter().map(as_text).collect())),
            Some(Means::OfBytes(to)) => Ok(ast::call(to, args.into_iter().map(as_bytes).collect())),
            Some(Means::OfReals(to)) => Ok(ast::call("__finite", vec![ast::call(to, doubles(args))])),
            Some(Means::Is(to)) => {
                rename(&mut function, to);
                Ok(Expr::Function(function))
            }
            _ => {
                if forms::makes_document(&name) {
                    set_args(&mut function, args.clone());
                }
                self.special(&name, args, function)
            }
        }
    }

    /// Functions with one value for a whole statement.
    fn constant(&self, name: &str, args: &[Expr]) -> Result<Option<Expr>, SqlError> {
        let session = self.environment.session;
        Ok(Some(match name {
            "database" | "schema" => session.database.as_ref().map_or_else(ast::null, ast::text),
            "user" | "current_user" | "session_user" | "system_user" => ast::text(&session.user),
            "current_catalog" => ast::text("internal"),
            "connection_id" => ast::number(session.connection_id),
            "last_insert_id" if args.is_empty() => ast::number(session.last_insert_id),
            "found_rows" => ast::number(0),
            "row_count" => ast::number(-1),
            "version" => {
                let version = session.variables.get("version").cloned();
                ast::text(
                    version
                        .or_else(|| (self.environment.global)("version"))
                        .unwrap_or_else(|| tributary_types::SERVER_VERSION.to_owned()),
                )
            }
            _ => return self.clock(name, args),
        }))
    }

    /// Calls that become another shape.
    fn special(&self, name: &str, mut args: Vec<Expr>, function: Function) -> Result<Expr, SqlError> {
        Ok(match (name, args.len()) {
            ("if", 3) => {
                let (otherwise, then) = (args.remove(2), args.remove(1));
                ast::call("__case", vec![ast::truth(args.remove(0)), then, otherwise])
            }
            ("ifnull" | "nvl", 2) | ("coalesce", 1..) => ast::call("__coalesce", args),
            ("isnull", 1) => Expr::IsNull(Box::new(args.remove(0))),
            ("mod", 2) => infix(args, BinaryOperator::Modulo),
            ("xor", 2) => {
                let right = ast::truth(args.remove(1));
                ast::binary(ast::truth(args.remove(0)), BinaryOperator::Xor, right)
            }
            ("row", 2..) => Expr::Tuple(args),
            ("negative", 1) => ast::call("__negate", args),
            ("positive", 1) => args.remove(0),
            ("uniform", 3) => forms::uniform(args)?,
            ("random_bytes", 1) => {
                // The other argument is random for each row.
                args.push(ast::call("uuid", Vec::new()));
                ast::call("__random_bytes", args)
            }
            ("array_shuffle", 1) => {
                args.push(ast::call("random", Vec::new()));
                ast::call("__array_shuffle", args)
            }
            ("array_shuffle", 2) => {
                let seed = ast::call("__double", vec![args.remove(1)]);
                ast::call("__array_shuffle", vec![args.remove(0), seed])
            }
            ("position", 2 | 3) => ast::call("locate", args),
            ("log", 1) => ast::call("ln", args),
            ("atan", 1) => ast::call("__finite", vec![ast::call("atan", doubles(args))]),
            ("atan", 2) => ast::call("__finite", vec![ast::call("atan2", doubles(args))]),
            ("ceiling", 1) => rounded("ceil", args.remove(0), ast::number(0)),
            ("ceil" | "floor" | "round" | "round_bankers" | "truncate", 1) => {
                rounded(name, args.remove(0), ast::number(0))
            }
            ("ceil" | "floor" | "round" | "round_bankers" | "truncate", 2) => {
                let digits = args.remove(1);
                rounded(name, args.remove(0), digits)
            }
            ("sign", 1) => ast::try_cast(ast::call("signum", vec![ast::call("__double", args)]), tiny()),
            ("rand" | "random", 0) => ast::call("random", Vec::new()),
            ("rand" | "random", 1) => {
                return Err(SqlError::detail(
                    ErrorCode::NotSupported,
                    format!(
                        "{name} with a seed, which gives the same numbers each time, is not supported; leave the seed out"
                    ),
                ));
            }
            ("rand" | "random", 2) => forms::random_between(&args)?,
            ("instr", 2) => ast::call("locate", vec![args.remove(1), args.remove(0)]),
            ("lpad" | "rpad", 2) => {
                args.push(ast::text(" "));
                ast::call(name, args)
            }
            ("sha2", 2) => sha2(args)?,
            ("md5sum", 1..) => ast::call("md5", vec![ast::call("concat", args)]),
            ("regexp_replace", 3) => {
                let mut args: Vec<Expr> = args.into_iter().map(as_text).collect();
                args.push(ast::text("g"));
                ast::call("regexp_replace", args)
            }
            ("regexp_extract", 3) => ast::call("__regexp_extract", args),
            _ => return self.of_times(name, args, function),
        })
    }

    /// Calls over dates and times that become another shape.
    fn of_times(&self, name: &str, mut args: Vec<Expr>, function: Function) -> Result<Expr, SqlError> {
        let zone = || ast::text(self.environment.session.zone());
        Ok(match (name, args.len()) {
            ("date_add" | "adddate" | "date_sub" | "subdate" | "days_add" | "days_sub", 2) => {
                let (count, base) = (args.remove(1), args.remove(0));
                let negative = name.contains("sub");
                match count {
                    Expr::Interval(interval) => dates::add(base, interval, negative)?,
                    days => dates::add_unit(base, days, "DAY", negative)?,
                }
            }
            ("timestampadd", 3) => {
                let (base, count) = (args.remove(2), args.remove(1));
                dates::add_unit(base, count, &word(&args[0]), false)?
            }
            ("timestampdiff", 3) => {
                args[0] = ast::text(word(&args[0]));
                ast::call("__timestampdiff", args)
            }
            ("from_unixtime", 1) => ast::call("__from_unixtime", vec![args.remove(0), zone()]),
            ("from_unixtime", 2) => {
                let (format, seconds) = (args.remove(1), args.remove(0));
                ast::call("date_format", vec![ast::call("__from_unixtime", vec![seconds, zone()]), format])
            }
            ("unix_timestamp", 1) => forms::unix_timestamp(args.remove(0), zone()),
            ("unix_timestamp", 2) => {
                args.push(zone());
                ast::call("__unix_timestamp_of_text", args)
            }
            ("date_trunc", 2) => forms::date_trunc(args)?,
            ("date_floor" | "date_ceil", 2 | 3) => forms::rounded_date(name, args)?,
            ("timestamp", 1) => ast::call("__datetime", args),
            ("timestamp", 2) => {
                let at = ast::call("__datetime", vec![args.remove(0)]);
                ast::call("add_time", vec![at, args.remove(0)])
            }
            ("get_format", 2) => forms::get_format(&word(&args[0]), &args[1])?,
            ("from_second" | "from_millisecond" | "from_microsecond", 1) => {
                ast::call(&format!("__{name}"), vec![args.remove(0), zone()])
            }
            ("second_timestamp" | "millisecond_timestamp" | "microsecond_timestamp", 1) => {
                ast::call(&format!("__{name}"), vec![args.remove(0), zone()])
            }
            ("convert_tz", 3) => ast::call("__convert_tz", args),
            ("str_to_date", 2) => {
                let is_date = ast::as_text(&args[1]).is_some_and(dates::is_date_format);
                let parsed = ast::call("str_to_date", args);
                if is_date { ast::call("__date", vec![parsed]) } else { parsed }
            }
            (part, 1) if is_part(part) => dates::part(part, args.remove(0))?,
            (shift, 2) if is_shift(shift) => {
                let (unit, direction) = shift.rsplit_once('_').unwrap_or((shift, "add"));
                let (count, base) = (args.remove(1), args.remove(0));
                dates::add_unit(base, count, unit, direction == "sub")?
            }
            (difference, 2) if is_difference(difference) => {
                let unit = difference.trim_end_matches("_diff").trim_end_matches('s').to_owned();
                let (from, to) = (args.remove(1), args.remove(0));
                ast::call("__timestampdiff", vec![ast::text(unit), from, to])
            }
            _ => return nested(name, args, function),
        })
    }
}

/// Calls over arrays and structs that become another shape.
fn nested(name: &str, mut args: Vec<Expr>, function: Function) -> Result<Expr, SqlError> {
    if let Some(rewritten) = lambdas::call(name, &args)? {
        return Ok(rewritten);
    }
    Ok(match (name, args.len()) {
        ("struct", 1..) => {
            let named = args.into_iter().zip(1..);
            let fields = named.flat_map(|(value, at)| [ast::text(format!("col{at}")), value]).collect();
            ast::call("named_struct", fields)
        }
        // Names of fields are in lower case.
        ("named_struct", 2..) => {
            for name in args.iter_mut().step_by(2) {
                if let Some(text) = ast::as_text(name) {
                    *name = ast::text(text.to_lowercase());
                }
            }
            ast::call("named_struct", args)
        }
        ("struct_element", 2) => match ast::as_text(&args[1]).map(str::to_lowercase) {
            Some(name) => ast::call("get_field", vec![args.swap_remove(0), ast::text(name)]),
            None => {
                return Err(SqlError::detail(
                    ErrorCode::NotSupported,
                    "struct_element takes the name of a field as a constant text: struct_element(s, 'f')",
                ));
            }
        },
        ("array_range", 3) if matches!(args[2], Expr::Interval(_)) => {
            if let Expr::Interval(interval) = args.remove(2) {
                let (count, unit) = dates::count_and_unit(interval)?;
                args.extend([count, ast::text(unit)]);
            }
            ast::call("__array_range_of_times", args)
        }
        ("array_reverse_sort", 1) => {
            args.extend([ast::text("DESC"), ast::text("NULLS LAST")]);
            ast::call("array_sort", args)
        }
        _ => match generators::in_list(name, args)? {
            Some(rows) => rows,
            None => return known(function),
        },
    })
}

/// A call that the planner gets as it is.
fn known(function: Function) -> Result<Expr, SqlError> {
    let name = last_name(&function.name);
    let declared = functions::declared(&name);
    let is_planned = match declared.map(|declared| declared.means) {
        Some(Means::Ours | Means::DataFusion) => true,
        _ => functions::is_ours(&name),
    };
    match declared {
        _ if is_planned => Ok(Expr::Function(function)),
        Some(declared) if declared.family == Family::Tables => Err(SqlError::detail(
            ErrorCode::Unknown,
            format!("{name} is a table function: call it in FROM or LATERAL VIEW"),
        )),
        Some(declared) => Err(SqlError::detail(
            ErrorCode::Unknown,
            format!(
                "Incorrect parameters in the call to function '{name}', which takes {}",
                declared.signature
            ),
        )),
        None => Err(match functions::refused(&name) {
            Some(why) => SqlError::detail(
                ErrorCode::NotSupported,
                format!("function '{name}' is not supported; {why}"),
            ),
            None => SqlError::detail(ErrorCode::UnknownFunction, format!("Can not found function '{name}'")),
        }),
    }
}

fn doubles(args: Vec<Expr>) -> Vec<Expr> {
    args.into_iter().map(|arg| ast::call("__double", vec![arg])).collect()
}

fn last_name(name: &ObjectName) -> String {
    name.0.last().and_then(|part| part.as_ident()).map(|name| name.value.to_lowercase()).unwrap_or_default()
}

fn rename(function: &mut Function, name: &str) {
    function.name = ObjectName::from(vec![Ident::new(name)]);
}

/// The arguments if they are nothing but expressions.
fn plain_args(function: &Function) -> Option<Vec<Expr>> {
    match &function.args {
        FunctionArguments::None => Some(Vec::new()),
        FunctionArguments::Subquery(_) => None,
        FunctionArguments::List(list) => list
            .args
            .iter()
            .map(|arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
                _ => None,
            })
            .collect(),
    }
}

/// The name and arguments of a call of nothing but expressions.
pub(super) fn plain_call(expr: &Expr) -> Option<(String, Vec<Expr>)> {
    let Expr::Function(function) = expr else { return None };
    Some((last_name(&function.name), plain_args(function)?))
}

fn set_args(function: &mut Function, args: Vec<Expr>) {
    if let FunctionArguments::List(list) = &mut function.args {
        list.args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).collect();
    }
}

fn infix(mut args: Vec<Expr>, op: BinaryOperator) -> Expr {
    let right = args.remove(1);
    ast::binary(args.remove(0), op, right)
}

fn tiny() -> DataType {
    DataType::TinyInt(None)
}

/// The digest in hex by its length in bits.
fn sha2(mut args: Vec<Expr>) -> Result<Expr, SqlError> {
    let bits = ast::as_number(&args[1]).unwrap_or_default();
    let name = match bits {
        "224" => "sha224",
        "0" | "256" => "sha256",
        "384" => "sha384",
        "512" => "sha512",
        _ => return Err(SqlError::detail(ErrorCode::Unknown, "SHA2 takes 224, 256, 384 or 512 bits")),
    };
    let digest = ast::call(name, vec![as_bytes(args.remove(0))]);
    Ok(ast::call("encode", vec![digest, ast::text("hex")]))
}

/// A unit that is written as a name.
fn word(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(name) => name.value.clone(),
        other => ast::as_text(other).map_or_else(|| other.to_string(), str::to_owned),
    }
}

fn is_part(name: &str) -> bool {
    const PARTS: [&str; 16] = [
        "year",
        "quarter",
        "month",
        "week",
        "weekofyear",
        "yearweek",
        "day",
        "dayofmonth",
        "dayofweek",
        "weekday",
        "dayofyear",
        "hour",
        "minute",
        "second",
        "microsecond",
        "to_days",
    ];
    PARTS.contains(&name)
}

/// Doris's `months_add(d, n)`, `hours_sub(d, n)` and so on.
fn is_shift(name: &str) -> bool {
    name.rsplit_once('_').is_some_and(|(unit, direction)| {
        matches!(direction, "add" | "sub")
            && unit.ends_with('s')
            && crate::functions::dates::datetime::unit(unit).is_some()
    })
}

/// Doris's `days_diff(to, from)` and so on.
fn is_difference(name: &str) -> bool {
    name.strip_suffix("_diff").is_some_and(|unit| crate::functions::dates::datetime::unit(unit).is_some())
}
