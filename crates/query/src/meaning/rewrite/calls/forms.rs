//! Calls that are replaced by another function according to their constant arguments.

use super::super::{ast, dates};
use super::{last_name, plain_args};
use crate::functions::dates::datetime;
use sqlparser::ast::{BinaryOperator, DataType, ExactNumberInfo, Expr, UnaryOperator};
use tributary_types::{ErrorCode, SqlError};

/// The span of `random(a, b)`: a random DOUBLE leads to each number of a smaller one.
const SPAN_MAX: i64 = 1 << 53;

/// `random(a, b)`: a whole number from `a` to `b`, both constants.
pub(super) fn random_between(args: &[Expr]) -> Result<Expr, SqlError> {
    let bounds = [constant_integer(&args[0]), constant_integer(&args[1])];
    let [Some(low), Some(high)] = bounds else {
        return Err(SqlError::detail(
            ErrorCode::Unknown,
            "the bounds of random must be constant whole numbers",
        ));
    };
    let Some(span) = high.checked_sub(low).filter(|span| (1..SPAN_MAX).contains(span)) else {
        return Err(SqlError::detail(
            ErrorCode::Unknown,
            format!(
                "random needs a lower bound below its upper bound, 2^53 apart at most; it has {low} and {high}"
            ),
        ));
    };
    let scaled =
        ast::binary(ast::call("random", Vec::new()), BinaryOperator::Multiply, ast::number(span + 1));
    let steps = ast::call("__integer", vec![ast::call("floor", vec![scaled])]);
    Ok(ast::binary(steps, BinaryOperator::Plus, ast::number(low)))
}

fn constant_integer(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Nested(inner) => constant_integer(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => constant_integer(expr).map(|value| -value),
        other => ast::as_number(other)?.parse().ok(),
    }
}

/// `UNIX_TIMESTAMP(x)`; of a constant with as many digits behind the point as that has.
pub(super) fn unix_timestamp(value: Expr, zone: Expr) -> Expr {
    let text = match &value {
        Expr::Function(function) if last_name(&function.name) == "__datetime" => {
            plain_args(function).and_then(|args| args.first().and_then(ast::as_text).map(str::to_owned))
        }
        other => ast::as_text(other).map(str::to_owned),
    };
    let seconds = ast::call("__unix_timestamp", vec![value, zone]);
    let Some(text) = text else { return seconds };
    let digits = text.split_once('.').map_or(0, |(_, fraction)| fraction.trim_end().len().min(6));
    let shown = match digits {
        0 => DataType::BigInt(None),
        digits => DataType::Decimal(ExactNumberInfo::PrecisionAndScale(18, digits as i64)),
    };
    ast::try_cast(seconds, shown)
}

/// `date_trunc(x, 'day')` and `date_trunc('day', x)`; a constant text that names a day alone is a DATE.
pub(super) fn date_trunc(mut args: Vec<Expr>) -> Result<Expr, SqlError> {
    const UNITS: [&str; 8] = ["year", "quarter", "month", "week", "day", "hour", "minute", "second"];
    let unit =
        |expr: &Expr| ast::as_text(expr).map(str::to_lowercase).filter(|text| UNITS.contains(&text.as_str()));
    let (at, unit) = match (unit(&args[1]), unit(&args[0])) {
        (Some(unit), _) => (0, unit),
        (None, Some(unit)) => (1, unit),
        (None, None) => {
            return Err(SqlError::detail(
                ErrorCode::Unknown,
                format!(
                    "date_trunc function time unit param only support argument is year|quarter|month|week|day|hour|\
                     minute|second, and neither '{}' nor '{}' is one",
                    args[0], args[1]
                ),
            ));
        }
    };
    let value = args.swap_remove(at);
    let is_date = ast::as_text(&value).is_some_and(datetime::is_date_only);
    let value = if is_date { ast::call("__date", vec![value]) } else { value };
    Ok(ast::call("__date_trunc", vec![value, ast::text(unit)]))
}

/// `date_floor(x, INTERVAL 5 MINUTE[, origin])` and `date_ceil`: the function of the unit.
pub(super) fn rounded_date(name: &str, mut args: Vec<Expr>) -> Result<Expr, SqlError> {
    const UNITS: [&str; 8] = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"];
    let (count, unit) = match args.remove(1) {
        Expr::Interval(interval) => dates::count_and_unit(interval)?,
        other => {
            return Err(SqlError::detail(
                ErrorCode::Unknown,
                format!(
                    "{name} takes a period such as INTERVAL 5 MINUTE as its second argument and not {other}"
                ),
            ));
        }
    };
    let unit = unit.to_lowercase();
    let unit = unit.strip_suffix('s').unwrap_or(&unit);
    if !UNITS.contains(&unit) {
        let text = format!(
            "{name} does not know the unit '{unit}'; use SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, QUARTER or YEAR"
        );
        return Err(SqlError::detail(ErrorCode::Unknown, text));
    }
    args.insert(1, ast::call("__integer", vec![count]));
    let kind = if name == "date_floor" { "floor" } else { "ceil" };
    // A text that names a day alone is a DATE.
    if ast::as_text(&args[0]).is_some_and(datetime::is_date_only) {
        let day = args.remove(0);
        args.insert(0, ast::call("__date", vec![day]));
    }
    Ok(ast::call(&format!("{unit}_{kind}"), args))
}

/// `GET_FORMAT(DATE, 'usa')`: the pattern of that name, in MySQL's words.
pub(super) fn get_format(kind: &str, region: &Expr) -> Result<Expr, SqlError> {
    let kind = kind.to_uppercase();
    let Some(region) = ast::as_text(region) else {
        return Err(SqlError::detail(
            ErrorCode::Unknown,
            "the second argument of get_format is a constant text",
        ));
    };
    let pattern = match (kind.as_str(), region.to_uppercase().as_str()) {
        ("DATE", "USA") => "%m.%d.%Y",
        ("DATE", "JIS" | "ISO") => "%Y-%m-%d",
        ("DATE", "EUR") => "%d.%m.%Y",
        ("DATE", "INTERNAL") => "%Y%m%d",
        ("DATETIME" | "TIMESTAMP", "USA" | "EUR") => "%Y-%m-%d %H.%i.%s",
        ("DATETIME" | "TIMESTAMP", "JIS" | "ISO") => "%Y-%m-%d %H:%i:%s",
        ("DATETIME" | "TIMESTAMP", "INTERNAL") => "%Y%m%d%H%i%s",
        ("TIME", "USA") => "%h:%i:%s %p",
        ("TIME", "JIS" | "ISO") => "%H:%i:%s",
        ("TIME", "EUR") => "%H.%i.%s",
        ("TIME", "INTERNAL") => "%H%i%s",
        ("DATE" | "DATETIME" | "TIMESTAMP" | "TIME", _) => return Ok(ast::null()),
        _ => {
            let text =
                format!("get_format takes DATE, TIME or DATETIME as its first argument and not {kind}");
            return Err(SqlError::detail(ErrorCode::Unknown, text));
        }
    };
    Ok(ast::text(pattern))
}

/// `uniform(min, max, gen)`: whole numbers between whole numbers, else DOUBLEs; equal for equal values of `gen`.
pub(super) fn uniform(mut args: Vec<Expr>) -> Result<Expr, SqlError> {
    let is_constant = |expr: &Expr| match expr {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => ast::as_number(expr).is_some(),
        other => ast::as_number(other).is_some(),
    };
    if !args[..2].iter().all(is_constant) {
        return Err(SqlError::detail(ErrorCode::Unknown, "the bounds of uniform must be constant numbers"));
    }
    let is_whole = args[..2].iter().all(|bound| constant_integer(bound).is_some());
    let seed = ast::call("__integer", vec![args.remove(2)]);
    args.push(seed);
    Ok(ast::call(if is_whole { "__uniform_integer" } else { "__uniform" }, args))
}

/// Whether a function makes a document of its arguments.
pub(super) fn makes_document(name: &str) -> bool {
    const NAMES: [&str; 8] = [
        "json_array",
        "json_array_ignore_null",
        "json_insert",
        "json_object",
        "json_remove",
        "json_replace",
        "json_set",
        "to_json",
    ];
    NAMES.contains(&name)
}

/// Marks the arguments that are calls whose results are documents and not texts.
pub(super) fn with_documents(args: Vec<Expr>) -> Vec<Expr> {
    const NAMES: [&str; 9] = [
        "json_extract",
        "json_object_flatten",
        "json_parse",
        "json_parse_error_to_null",
        "json_parse_error_to_value",
        "json_quote",
        "normalize_json_numbers_to_double",
        "sort_json_object_keys",
        "strip_null_value",
    ];
    let is_document = |expr: &Expr| match expr {
        Expr::Function(function) => NAMES.contains(&last_name(&function.name).as_str()),
        _ => false,
    };
    let mark = |arg: Expr| if is_document(&arg) { ast::call("__document", vec![arg]) } else { arg };
    args.into_iter().map(mark).collect()
}

/// The arguments of `REGEXP_LIKE` with the flags of the planner's function in place of MySQL's match types.
pub(super) fn with_flags(mut args: Vec<Expr>, ignores_case: bool) -> Result<Vec<Expr>, SqlError> {
    if args.len() == 2 && ignores_case {
        args.push(ast::text("i"));
    }
    if args.len() != 3 {
        return Ok(args);
    }
    let refused = |text: &str| Err(SqlError::detail(ErrorCode::WrongArguments, text));
    let types = args.pop().unwrap_or_else(ast::null);
    let Some(types) = ast::as_text(&types) else {
        return refused("Incorrect arguments to regexp_like: the match type has to be a text such as 'i'");
    };
    let mut flags = String::from(if ignores_case { "i" } else { "" });
    for letter in types.chars() {
        match letter {
            // The last one of these counts.
            'c' => flags.retain(|flag| flag != 'i'),
            'i' | 'm' if !flags.contains(letter) => flags.push(letter),
            'n' if !flags.contains('s') => flags.push('s'),
            // Lines end with a line feed alone, as always here.
            'i' | 'm' | 'n' | 'u' => {}
            _ => return refused("Incorrect arguments to regexp_like: match types are c, i, m, n and u"),
        }
    }
    if !flags.is_empty() {
        args.push(ast::text(flags));
    }
    Ok(args)
}
