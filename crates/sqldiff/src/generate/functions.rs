//! The functions and operators of expressions.

use crate::ast::{Form, Op};
use crate::schema::Kind;

/// The required kind of an argument.
#[derive(Clone, Copy, Debug)]
pub enum Arg {
    Of(Kind),
    /// An integer, a decimal or a double.
    Number,
    /// A number as a literal, within these bounds.
    Small(i64, i64),
    /// One of these texts as a literal.
    Text(&'static [&'static str]),
}

/// A function or operator.
#[derive(Debug)]
pub struct Function {
    pub result: Kind,
    pub args: &'static [Arg],
    pub form: &'static Form,
}

impl Function {
    /// The function's place in a tree.
    pub fn op(&self) -> Op {
        Op::Form(self.form)
    }
}

const fn f(
    result: Kind,
    name: &'static str,
    mysql: &'static str,
    duckdb: &'static str,
    args: &'static [Arg],
) -> Entry {
    Entry { form: Form { name, mysql, duckdb }, result, args }
}

struct Entry {
    form: Form,
    result: Kind,
    args: &'static [Arg],
}

/// All functions whose result is of a kind.
pub fn of(kind: Kind, duckdb: bool) -> Vec<Function> {
    let fits = |entry: &&'static Entry| entry.result == kind && !(duckdb && entry.form.duckdb.is_empty());
    let function =
        |entry: &'static Entry| Function { result: entry.result, args: entry.args, form: &entry.form };
    TABLE.iter().filter(fits).map(function).collect()
}

/// Comparisons: name, MySQL, DuckDB.
pub static COMPARISONS: [Form; 7] = [
    Form { name: "=", mysql: "{0} = {1}", duckdb: "{0} = {1}" },
    Form { name: "<>", mysql: "{0} <> {1}", duckdb: "{0} <> {1}" },
    Form { name: "<", mysql: "{0} < {1}", duckdb: "{0} < {1}" },
    Form { name: "<=", mysql: "{0} <= {1}", duckdb: "{0} <= {1}" },
    Form { name: ">", mysql: "{0} > {1}", duckdb: "{0} > {1}" },
    Form { name: ">=", mysql: "{0} >= {1}", duckdb: "{0} >= {1}" },
    Form { name: "<=>", mysql: "{0} <=> {1}", duckdb: "{0} IS NOT DISTINCT FROM {1}" },
];

pub static BETWEEN: [Form; 2] = [
    Form { name: "BETWEEN", mysql: "{0} BETWEEN {1} AND {2}", duckdb: "{0} BETWEEN {1} AND {2}" },
    Form { name: "NOT BETWEEN", mysql: "{0} NOT BETWEEN {1} AND {2}", duckdb: "{0} NOT BETWEEN {1} AND {2}" },
];

pub static NULLNESS: [Form; 2] = [
    Form { name: "IS NULL", mysql: "{0} IS NULL", duckdb: "{0} IS NULL" },
    Form { name: "IS NOT NULL", mysql: "{0} IS NOT NULL", duckdb: "{0} IS NOT NULL" },
];

pub static TRUTH: [Form; 4] = [
    Form { name: "IS TRUE", mysql: "{0} IS TRUE", duckdb: "{0} IS TRUE" },
    Form { name: "IS NOT TRUE", mysql: "{0} IS NOT TRUE", duckdb: "{0} IS NOT TRUE" },
    Form { name: "IS FALSE", mysql: "{0} IS FALSE", duckdb: "{0} IS FALSE" },
    Form { name: "NOT", mysql: "NOT {0}", duckdb: "NOT {0}" },
];

pub static JUNCTIONS: [Form; 3] = [
    Form { name: "AND", mysql: "{0} AND {1}", duckdb: "{0} AND {1}" },
    Form { name: "OR", mysql: "{0} OR {1}", duckdb: "{0} OR {1}" },
    Form { name: "XOR", mysql: "{0} XOR {1}", duckdb: "{0} <> {1}" },
];

pub static LIKES: [Form; 2] = [
    Form { name: "LIKE", mysql: "{0} LIKE {1}", duckdb: "{0} LIKE {1}" },
    Form { name: "NOT LIKE", mysql: "{0} NOT LIKE {1}", duckdb: "{0} NOT LIKE {1}" },
];

const INT: Arg = Arg::Of(Kind::Int);
const DECIMAL: Arg = Arg::Of(Kind::Decimal);
const DOUBLE: Arg = Arg::Of(Kind::Double);
const TEXT: Arg = Arg::Of(Kind::Text);
const DATE: Arg = Arg::Of(Kind::Date);
const MOMENT: Arg = Arg::Of(Kind::DateTime);
const NUMBER: Arg = Arg::Number;
const FORMATS: Arg =
    Arg::Text(&["%Y-%m-%d", "%d.%m.%y", "%H:%i:%s", "%M %e", "%j", "%a %W", "%Y%m%d%H", "%b %c", "%p %h"]);

static TABLE: &[Entry] = &[
    f(Kind::Int, "+", "{0} + {1}", "{0} + {1}", &[INT, INT]),
    f(Kind::Int, "-", "{0} - {1}", "{0} - {1}", &[INT, INT]),
    f(Kind::Int, "*", "{0} * {1}", "", &[INT, INT]),
    f(Kind::Int, "*", "{0} * {1}", "{0} * {1}", &[INT, Arg::Small(-3, 3)]),
    f(Kind::Int, "negative", "-{0}", "-{0}", &[INT]),
    f(Kind::Int, "DIV", "{0} DIV {1}", "", &[INT, INT]),
    f(Kind::Int, "%", "{0} % {1}", "{0} % NULLIF({1}, 0)", &[INT, INT]),
    f(Kind::Int, "MOD", "MOD({0}, {1})", "", &[INT, INT]),
    f(Kind::Int, "ABS", "ABS({0})", "ABS({0})", &[INT]),
    f(Kind::Int, "SIGN", "SIGN({0})", "SIGN({0})", &[NUMBER]),
    f(Kind::Int, "LENGTH", "LENGTH({0})", "STRLEN({0})", &[TEXT]),
    f(Kind::Int, "CHAR_LENGTH", "CHAR_LENGTH({0})", "LENGTH({0})", &[TEXT]),
    f(Kind::Int, "ASCII", "ASCII({0})", "", &[TEXT]),
    f(Kind::Int, "INSTR", "INSTR({0}, {1})", "INSTR({0}, {1})", &[TEXT, TEXT]),
    f(Kind::Int, "LOCATE", "LOCATE(CONCAT({0}, 'a'), {1}, {2})", "", &[TEXT, TEXT, Arg::Small(1, 3)]),
    f(Kind::Int, "STRCMP", "STRCMP({0}, {1})", "", &[TEXT, TEXT]),
    f(Kind::Int, "FIELD", "FIELD({0}, {1}, {2})", "", &[TEXT, TEXT, TEXT]),
    f(Kind::Int, "FIELD", "FIELD({0}, {1}, {2})", "", &[NUMBER, NUMBER, NUMBER]),
    f(Kind::Int, "FIND_IN_SET", "FIND_IN_SET({0}, {1})", "", &[TEXT, Arg::Text(&["a,b,A", "12,abc", "a"])]),
    f(Kind::Int, "YEAR", "YEAR({0})", "YEAR({0})", &[DATE]),
    f(Kind::Int, "MONTH", "MONTH({0})", "MONTH({0})", &[DATE]),
    f(Kind::Int, "DAY", "DAY({0})", "DAY({0})", &[MOMENT]),
    f(Kind::Int, "QUARTER", "QUARTER({0})", "QUARTER({0})", &[DATE]),
    f(Kind::Int, "DAYOFYEAR", "DAYOFYEAR({0})", "DAYOFYEAR({0})", &[DATE]),
    f(Kind::Int, "DAYOFWEEK", "DAYOFWEEK({0})", "DAYOFWEEK({0}) + 1", &[DATE]),
    f(Kind::Int, "WEEKDAY", "WEEKDAY({0})", "ISODOW({0}) - 1", &[MOMENT]),
    f(Kind::Int, "WEEK", "WEEK({0})", "", &[DATE]),
    f(Kind::Int, "WEEK", "WEEK({0}, {1})", "", &[DATE, Arg::Small(0, 7)]),
    f(Kind::Int, "YEARWEEK", "YEARWEEK({0}, {1})", "", &[DATE, Arg::Small(0, 7)]),
    f(Kind::Int, "WEEKOFYEAR", "WEEKOFYEAR({0})", "WEEKOFYEAR({0})", &[DATE]),
    f(Kind::Int, "HOUR", "HOUR({0})", "HOUR({0})", &[MOMENT]),
    f(Kind::Int, "MINUTE", "MINUTE({0})", "MINUTE({0})", &[MOMENT]),
    f(Kind::Int, "SECOND", "SECOND({0})", "SECOND({0})", &[MOMENT]),
    f(Kind::Int, "MICROSECOND", "MICROSECOND({0})", "", &[MOMENT]),
    f(Kind::Int, "EXTRACT", "EXTRACT(YEAR FROM {0})", "EXTRACT(YEAR FROM {0})", &[MOMENT]),
    f(Kind::Int, "DATEDIFF", "DATEDIFF({0}, {1})", "DATE_DIFF('day', {1}, {0})", &[DATE, DATE]),
    f(Kind::Int, "DATEDIFF", "DATEDIFF({0}, {1})", "", &[MOMENT, DATE]),
    f(Kind::Int, "TO_DAYS", "TO_DAYS({0})", "", &[DATE]),
    f(Kind::Int, "TO_SECONDS", "TO_SECONDS({0})", "", &[MOMENT]),
    f(Kind::Int, "PERIOD_ADD", "PERIOD_ADD(202311, {0})", "", &[Arg::Small(-30, 30)]),
    f(Kind::Int, "PERIOD_DIFF", "PERIOD_DIFF(PERIOD_ADD(202311, {0}), 9907)", "", &[Arg::Small(-30, 30)]),
    // It is -1 for NULL in MariaDB.
    f(Kind::Int, "INTERVAL", "INTERVAL(COALESCE({0}, 0), -7, 0, 3, 100)", "", &[INT]),
    f(Kind::Int, "CRC32", "CRC32({0})", "", &[TEXT]),
    f(Kind::Int, "TIMESTAMPDIFF", "TIMESTAMPDIFF(MONTH, {0}, {1})", "", &[DATE, DATE]),
    f(Kind::Int, "TIMESTAMPDIFF", "TIMESTAMPDIFF(HOUR, {0}, {1})", "", &[MOMENT, MOMENT]),
    f(Kind::Int, "TIMESTAMPDIFF", "TIMESTAMPDIFF(YEAR, {0}, {1})", "", &[MOMENT, DATE]),
    f(Kind::Decimal, "+", "{0} + {1}", "{0} + {1}", &[DECIMAL, DECIMAL]),
    f(Kind::Decimal, "+", "{0} + {1}", "{0} + {1}", &[DECIMAL, INT]),
    f(Kind::Decimal, "-", "{0} - {1}", "{0} - {1}", &[DECIMAL, DECIMAL]),
    f(Kind::Decimal, "-", "{0} - {1}", "{0} - {1}", &[INT, DECIMAL]),
    f(Kind::Decimal, "*", "{0} * {1}", "{0} * {1}", &[DECIMAL, INT]),
    f(Kind::Decimal, "*", "{0} * {1}", "", &[DECIMAL, DECIMAL]),
    f(Kind::Decimal, "negative", "-{0}", "-{0}", &[DECIMAL]),
    f(Kind::Decimal, "ABS", "ABS({0})", "ABS({0})", &[DECIMAL]),
    f(Kind::Decimal, "FLOOR", "FLOOR({0})", "FLOOR({0})", &[DECIMAL]),
    f(Kind::Decimal, "CEIL", "CEIL({0})", "CEIL({0})", &[DECIMAL]),
    f(Kind::Decimal, "ROUND", "ROUND({0})", "ROUND({0})", &[DECIMAL]),
    f(Kind::Decimal, "ROUND", "ROUND({0}, {1})", "ROUND({0}, {1})", &[DECIMAL, Arg::Small(-2, 3)]),
    f(Kind::Decimal, "TRUNCATE", "TRUNCATE({0}, {1})", "", &[DECIMAL, Arg::Small(-2, 3)]),
    f(Kind::Decimal, "%", "{0} % {1}", "{0} % NULLIF({1}, 0)", &[DECIMAL, DECIMAL]),
    f(Kind::Decimal, "%", "{0} % {1}", "", &[DECIMAL, INT]),
    f(Kind::Double, "+", "{0} + {1}", "{0} + {1}", &[DOUBLE, NUMBER]),
    f(Kind::Double, "-", "{0} - {1}", "{0} - {1}", &[NUMBER, DOUBLE]),
    f(Kind::Double, "*", "{0} * {1}", "{0} * {1}", &[DOUBLE, NUMBER]),
    f(Kind::Double, "negative", "-{0}", "-{0}", &[DOUBLE]),
    f(Kind::Double, "/", "{0} / {1}", "{0} / NULLIF({1}, 0)", &[DOUBLE, NUMBER]),
    f(Kind::Double, "/", "{0} / {1}", "{0} / NULLIF({1}, 0)", &[INT, INT]),
    // The last digit of a quotient of decimals is cut off here and rounded in MariaDB.
    f(Kind::Double, "/", "ROUND({0} / {1}, 2)", "", &[DECIMAL, DECIMAL]),
    f(Kind::Double, "/", "ROUND({0} / {1}, 2)", "", &[INT, DECIMAL]),
    f(Kind::Double, "ABS", "ABS({0})", "ABS({0})", &[DOUBLE]),
    f(Kind::Double, "FLOOR", "FLOOR({0})", "FLOOR({0})", &[DOUBLE]),
    f(Kind::Double, "CEIL", "CEIL({0})", "CEIL({0})", &[DOUBLE]),
    f(Kind::Double, "SQRT", "SQRT({0})", "", &[NUMBER]),
    f(Kind::Double, "POW", "POW({0}, {1})", "POW({0}, {1})", &[NUMBER, Arg::Small(0, 3)]),
    f(Kind::Double, "EXP", "EXP({0})", "", &[Arg::Small(-3, 10)]),
    f(Kind::Double, "LN", "LN({0})", "", &[NUMBER]),
    f(Kind::Text, "CONCAT", "CONCAT({0}, {1})", "{0} || {1}", &[TEXT, TEXT]),
    f(Kind::Text, "CONCAT", "CONCAT({0}, {1}, '/', {2})", "", &[TEXT, INT, TEXT]),
    f(Kind::Text, "CONCAT", "CONCAT({0}, '/', {1})", "", &[DECIMAL, DATE]),
    f(Kind::Text, "CONCAT", "CONCAT({0}, '/', {1})", "", &[MOMENT, TEXT]),
    f(
        Kind::Text,
        "CONCAT_WS",
        "CONCAT_WS({0}, {1}, {2}, {3})",
        "CONCAT_WS({0}, {1}, {2}, {3})",
        &[Arg::Text(&[",", "", "--"]), TEXT, INT, TEXT],
    ),
    f(Kind::Text, "UPPER", "UPPER({0})", "UPPER({0})", &[TEXT]),
    f(Kind::Text, "LOWER", "LOWER({0})", "LOWER({0})", &[TEXT]),
    f(Kind::Text, "SUBSTRING", "SUBSTRING({0}, {1})", "", &[TEXT, Arg::Small(-2, 3)]),
    f(Kind::Text, "SUBSTRING", "SUBSTRING({0}, {1}, {2})", "", &[TEXT, Arg::Small(-3, 3), Arg::Small(-1, 3)]),
    f(
        Kind::Text,
        "SUBSTRING",
        "SUBSTRING({0}, {1}, {2})",
        "SUBSTRING({0}, {1}, {2})",
        &[TEXT, Arg::Small(1, 3), Arg::Small(0, 3)],
    ),
    f(Kind::Text, "LEFT", "LEFT({0}, {1})", "LEFT({0}, {1})", &[TEXT, Arg::Small(0, 3)]),
    f(Kind::Text, "RIGHT", "RIGHT({0}, {1})", "RIGHT({0}, {1})", &[TEXT, Arg::Small(0, 3)]),
    f(
        Kind::Text,
        "REPLACE",
        "REPLACE({0}, CONCAT({1}, 'a'), {2})",
        "",
        &[TEXT, TEXT, Arg::Text(&["*", "xy", ""])],
    ),
    f(Kind::Text, "TRIM", "TRIM({0})", "TRIM({0})", &[TEXT]),
    f(Kind::Text, "LTRIM", "LTRIM({0})", "LTRIM({0})", &[TEXT]),
    f(Kind::Text, "RTRIM", "RTRIM({0})", "RTRIM({0})", &[TEXT]),
    f(Kind::Text, "LPAD", "LPAD({0}, {1}, {2})", "", &[TEXT, Arg::Small(0, 6), Arg::Text(&["*", "xy", " "])]),
    f(Kind::Text, "RPAD", "RPAD({0}, {1}, {2})", "", &[TEXT, Arg::Small(0, 6), Arg::Text(&["*", "xy", " "])]),
    f(Kind::Text, "REVERSE", "REVERSE({0})", "REVERSE({0})", &[TEXT]),
    f(Kind::Text, "REPEAT", "REPEAT({0}, {1})", "REPEAT({0}, {1})", &[TEXT, Arg::Small(0, 3)]),
    f(
        Kind::Text,
        "SUBSTRING_INDEX",
        "SUBSTRING_INDEX({0}, {1}, {2})",
        "",
        &[TEXT, Arg::Text(&["_", "b", "."]), Arg::Small(-2, 2)],
    ),
    f(
        Kind::Text,
        "INSERT",
        "INSERT({0}, {1}, {2}, {3})",
        "",
        &[TEXT, Arg::Small(-1, 4), Arg::Small(-1, 3), TEXT],
    ),
    f(Kind::Text, "MAKE_SET", "MAKE_SET({0}, {1}, 'm', {2})", "", &[Arg::Small(0, 7), TEXT, TEXT]),
    f(Kind::Text, "EXPORT_SET", "EXPORT_SET({0}, {1}, 'n', '', 4)", "", &[Arg::Small(0, 15), TEXT]),
    f(Kind::Text, "HEX", "HEX({0})", "", &[TEXT]),
    f(Kind::Text, "MD5", "MD5({0})", "MD5({0})", &[TEXT]),
    f(Kind::Text, "DATE_FORMAT", "DATE_FORMAT({0}, {1})", "", &[MOMENT, FORMATS]),
    f(Kind::Text, "DATE_FORMAT", "DATE_FORMAT({0}, {1})", "", &[DATE, FORMATS]),
    f(Kind::Text, "DAYNAME", "DAYNAME({0})", "DAYNAME({0})", &[DATE]),
    f(Kind::Text, "MONTHNAME", "MONTHNAME({0})", "MONTHNAME({0})", &[DATE]),
    f(Kind::Date, "LAST_DAY", "LAST_DAY({0})", "", &[DATE]),
    f(Kind::Date, "DATE", "DATE({0})", "CAST({0} AS DATE)", &[MOMENT]),
    f(Kind::Date, "DATE_ADD", "DATE_ADD({0}, INTERVAL {1} DAY)", "", &[DATE, Arg::Small(-40, 40)]),
    f(Kind::Date, "DATE_ADD", "DATE_ADD({0}, INTERVAL {1} DAY)", "", &[DATE, INT]),
    f(Kind::Date, "DATE_ADD", "DATE_ADD({0}, INTERVAL {1} MONTH)", "", &[DATE, Arg::Small(-14, 14)]),
    f(Kind::Date, "DATE_SUB", "DATE_SUB({0}, INTERVAL {1} YEAR)", "", &[DATE, Arg::Small(-4, 4)]),
    f(Kind::Date, "DATE_SUB", "{0} - INTERVAL {1} WEEK", "", &[DATE, Arg::Small(0, 4)]),
    f(Kind::DateTime, "DATE_ADD", "DATE_ADD({0}, INTERVAL {1} HOUR)", "", &[MOMENT, Arg::Small(-40, 40)]),
    f(Kind::DateTime, "DATE_ADD", "DATE_ADD({0}, INTERVAL {1} SECOND)", "", &[MOMENT, Arg::Small(-90, 90)]),
    f(Kind::DateTime, "DATE_ADD", "DATE_ADD({0}, INTERVAL {1} MONTH)", "", &[MOMENT, Arg::Small(-14, 14)]),
    f(Kind::DateTime, "DATE_ADD", "DATE_ADD({0}, INTERVAL {1} MINUTE)", "", &[DATE, Arg::Small(-90, 90)]),
    f(Kind::DateTime, "DATE_SUB", "{0} + INTERVAL {1} DAY", "", &[MOMENT, Arg::Small(-5, 5)]),
];
