//! A tree → SQL of a dialect.

mod brackets;

use crate::ast::*;
use crate::schema::{Dialect, Kind};
use std::fmt::Write as _;
use tributary_client::Value;

/// The bounds of a frame that [`Frame::Rows`] numbers.
pub const BOUNDS: [&str; 6] = [
    "UNBOUNDED PRECEDING",
    "2 PRECEDING",
    "1 PRECEDING",
    "CURRENT ROW",
    "1 FOLLOWING",
    "UNBOUNDED FOLLOWING",
];

/// A query as text.
#[must_use]
pub fn query(query: &Query, dialect: Dialect) -> String {
    let mut printer = Printer::new(dialect);
    printer.query(query);
    printer.out
}

/// A query as text in which literals are `?`, and their values. Literals that determine the statement's meaning before it runs
/// (in GROUP BY, LIMIT, ORDER BY and in the SELECT list of grouped queries) stay as they are.
#[must_use]
pub fn prepared(query: &Query) -> (String, Vec<Value>) {
    let mut printer = Printer { parameters: Some(Vec::new()), ..Printer::new(Dialect::Ours) };
    printer.query(query);
    (printer.out, printer.parameters.unwrap_or_default())
}

/// A query as text for the server, with only the brackets that operator precedence requires.
#[must_use]
pub fn bare(query: &Query) -> String {
    let mut printer = Printer { bare: true, ..Printer::new(Dialect::Ours) };
    printer.query(query);
    printer.out
}

/// An expression as text.
#[must_use]
pub fn expr(expr: &Expr, dialect: Dialect) -> String {
    let mut printer = Printer::new(dialect);
    printer.expr(expr);
    printer.out
}

struct Printer {
    dialect: Dialect,
    parameters: Option<Vec<Value>>,
    /// How many clauses deep literals must stay as they are.
    fixed: u32,
    /// Whether needless brackets are left out.
    bare: bool,
    out: String,
}

impl Printer {
    fn new(dialect: Dialect) -> Self {
        Self { dialect, parameters: None, fixed: 0, bare: false, out: String::new() }
    }

    fn list(&mut self, exprs: &[Expr]) {
        for (index, expr) in exprs.iter().enumerate() {
            self.out.push_str(if index == 0 { "" } else { ", " });
            self.free(expr);
        }
    }

    fn query(&mut self, query: &Query) {
        match &query.body {
            Body::Select(select) => self.select(select),
            Body::Set { operator, all, left, right } => {
                self.branch(left);
                self.out.push_str(match operator {
                    SetOperator::Union => " UNION ",
                    SetOperator::Intersect => " INTERSECT ",
                    SetOperator::Except => " EXCEPT ",
                });
                self.out.push_str(if *all { "ALL " } else { "" });
                self.branch(right);
            }
        }
        for (index, sort) in query.order.iter().enumerate() {
            self.out.push_str(if index == 0 { " ORDER BY " } else { ", " });
            let _ = write!(self.out, "{}{}", sort.position, if sort.descending { " DESC" } else { "" });
        }
        if let Some(Limit { rows, offset }) = query.limit {
            let _ = write!(self.out, " LIMIT {rows}");
            if offset > 0 {
                let _ = write!(self.out, " OFFSET {offset}");
            }
        }
    }

    fn branch(&mut self, query: &Query) {
        self.out.push('(');
        self.query(query);
        self.out.push(')');
    }

    fn select(&mut self, select: &Select) {
        self.out.push_str(if select.distinct { "SELECT DISTINCT " } else { "SELECT " });
        let grouped = !select.group.is_empty();
        self.fixed += u32::from(grouped || select.from.is_none());
        if select.star {
            self.out.push_str(if select.items.is_empty() { "*" } else { "*, " });
        }
        for (index, item) in select.items.iter().enumerate() {
            self.out.push_str(if index == 0 { "" } else { ", " });
            self.free(item);
            let _ = write!(self.out, " AS c{index}");
        }
        self.fixed -= u32::from(grouped || select.from.is_none());
        if let Some(from) = &select.from {
            self.out.push_str(" FROM ");
            self.source(from);
        }
        for join in &select.joins {
            self.out.push_str(match join.kind {
                JoinKind::Inner => " JOIN ",
                JoinKind::Left => " LEFT JOIN ",
                JoinKind::Right => " RIGHT JOIN ",
                JoinKind::Full => " FULL JOIN ",
                JoinKind::Cross => " CROSS JOIN ",
            });
            self.source(&join.source);
            if let Some(on) = &join.on {
                self.out.push_str(" ON ");
                self.free(on);
            }
            if !join.using.is_empty() {
                let _ = write!(self.out, " USING ({})", join.using.join(", "));
            }
        }
        if let Some(filter) = &select.filter {
            self.out.push_str(" WHERE ");
            self.free(filter);
        }
        self.fixed += 1;
        self.group(select);
        if let Some(having) = &select.having {
            self.out.push_str(" HAVING ");
            self.free(having);
        }
        self.fixed -= 1;
    }

    fn group(&mut self, select: &Select) {
        if select.group.is_empty() {
            return;
        }
        self.out.push_str(" GROUP BY ");
        match (&select.grouping, self.dialect) {
            (Grouping::Plain, _) => self.list(&select.group),
            (Grouping::Rollup, Dialect::MariaDb) => {
                self.list(&select.group);
                self.out.push_str(" WITH ROLLUP");
            }
            (Grouping::Rollup, _) => self.wrapped("ROLLUP(", &select.group),
            (Grouping::Cube, _) => self.wrapped("CUBE(", &select.group),
            (Grouping::Sets(sets), _) => {
                self.out.push_str("GROUPING SETS (");
                for (index, set) in sets.iter().enumerate() {
                    self.out.push_str(if index == 0 { "(" } else { ", (" });
                    let exprs: Vec<Expr> =
                        set.iter().filter_map(|&place| select.group.get(place).cloned()).collect();
                    self.list(&exprs);
                    self.out.push(')');
                }
                self.out.push(')');
            }
        }
    }

    fn wrapped(&mut self, head: &str, exprs: &[Expr]) {
        self.out.push_str(head);
        self.list(exprs);
        self.out.push(')');
    }

    fn source(&mut self, source: &Source) {
        match &source.what {
            What::Table(name) => {
                let _ = write!(self.out, "{name} {}", source.alias);
            }
            What::Derived(query) => {
                self.branch(query);
                let _ = write!(self.out, " {}", source.alias);
            }
        }
    }

    /// An expression in a position where anything may occur.
    fn free(&mut self, expr: &Expr) {
        self.operand(expr, brackets::ANYTHING);
    }

    /// An expression in a position where operators of at least this precedence need no brackets.
    fn operand(&mut self, expr: &Expr, needed: u8) {
        if self.bare && brackets::level(expr) >= needed { self.inner(expr) } else { self.expr(expr) }
    }

    /// An expression in a place where it needs brackets unless it is one piece.
    fn expr(&mut self, expr: &Expr) {
        let one_piece = !matches!(
            expr.op,
            Op::Form(_)
                | Op::In { .. }
                | Op::Case { .. }
                | Op::Exists { .. }
                | Op::InQuery { .. }
                | Op::Quantified { .. }
        );
        if one_piece {
            self.inner(expr);
        } else {
            self.out.push('(');
            self.inner(expr);
            self.out.push(')');
        }
    }

    fn inner(&mut self, expr: &Expr) {
        match &expr.op {
            Op::Column { table: Some(table), name } => {
                let _ = write!(self.out, "{table}.{name}");
            }
            Op::Column { table: None, name } => self.out.push_str(name),
            Op::Literal(literal) => self.literal(literal),
            Op::Form(form) => self.form(form, &expr.args),
            Op::Call(name) => self.wrapped(&format!("{name}("), &expr.args),
            Op::Cast(to) => {
                self.out.push_str("CAST(");
                self.list(&expr.args);
                let name = self.cast_name(*to);
                let _ = write!(self.out, " AS {name})");
            }
            Op::In { negated } => {
                self.operand(&expr.args[0], brackets::BESIDE_IN);
                self.out.push_str(if *negated { " NOT IN (" } else { " IN (" });
                self.list(&expr.args[1..]);
                self.out.push(')');
            }
            Op::Case { operand, otherwise } => self.case(*operand, *otherwise, &expr.args),
            Op::Scalar => self.subquery("", expr),
            Op::Exists { negated } => {
                self.subquery(if *negated { "NOT EXISTS " } else { "EXISTS " }, expr);
            }
            Op::InQuery { negated } => {
                self.operand(&expr.args[0], brackets::BESIDE_IN);
                self.subquery(if *negated { " NOT IN " } else { " IN " }, expr);
            }
            Op::Quantified { operator, all } => {
                self.operand(&expr.args[0], brackets::BESIDE_ANY);
                let _ = write!(self.out, " {operator} {} ", if *all { "ALL" } else { "ANY" });
                self.subquery("", expr);
            }
            Op::Aggregate { name, distinct } => {
                let _ = write!(self.out, "{name}({}", if *distinct { "DISTINCT " } else { "" });
                self.out.push_str(if expr.args.is_empty() { "*" } else { "" });
                self.list(&expr.args);
                self.out.push(')');
            }
            Op::GroupConcat { distinct, descending } => self.group_concat(*distinct, *descending, &expr.args),
            Op::Window { .. } => self.window(expr),
        }
    }

    fn subquery(&mut self, head: &str, expr: &Expr) {
        self.out.push_str(head);
        if let Some(query) = &expr.query {
            self.branch(query);
        }
    }

    fn group_concat(&mut self, distinct: bool, descending: bool, args: &[Expr]) {
        let distinct = if distinct { "DISTINCT " } else { "" };
        let descending = if descending { " DESC" } else { "" };
        let text = args.first().map(|arg| expr(arg, self.dialect)).unwrap_or_default();
        let _ = match self.dialect {
            Dialect::DuckDb => {
                write!(self.out, "STRING_AGG({distinct}{text}, ',' ORDER BY {text}{descending})")
            }
            _ => write!(self.out, "GROUP_CONCAT({distinct}{text} ORDER BY {text}{descending} SEPARATOR ',')"),
        };
    }

    fn form(&mut self, form: &Form, args: &[Expr]) {
        let typed = if self.dialect == Dialect::MariaDb { typed(form, args) } else { None };
        let args = typed.as_deref().unwrap_or(args);
        let template = if self.dialect == Dialect::DuckDb { form.duckdb } else { form.mysql };
        self.template(template, form, args);
        if self.dialect == Dialect::MariaDb && is_plain_as_a_sum(form, args) {
            self.out.push_str(" + 0");
        }
    }

    fn template(&mut self, template: &str, form: &Form, args: &[Expr]) {
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            self.out.push_str(before);
            let Some((number, after)) = after.split_once('}') else { break };
            if let Ok(place) = number.parse::<usize>()
                && let Some(arg) = args.get(place)
            {
                self.operand(arg, brackets::needed(form, place));
            }
            rest = after;
        }
        self.out.push_str(rest);
    }

    fn case(&mut self, operand: bool, otherwise: bool, args: &[Expr]) {
        let mut args = args.iter();
        self.out.push_str("CASE");
        if operand && let Some(arg) = args.next() {
            self.out.push(' ');
            self.free(arg);
        }
        while args.len() >= 2 {
            for (head, arg) in [" WHEN ", " THEN "].into_iter().zip(args.by_ref()) {
                self.out.push_str(head);
                self.free(arg);
            }
        }
        if otherwise && let Some(arg) = args.next() {
            self.out.push_str(" ELSE ");
            self.free(arg);
        }
        self.out.push_str(" END");
    }

    fn window(&mut self, expr: &Expr) {
        let Op::Window { name, arguments, partitions, descending, frame } = &expr.op else { return };
        let (args, rest) = expr.args.split_at(*arguments);
        let (parts, keys) = rest.split_at(*partitions);
        self.out.push_str(name);
        self.out.push('(');
        self.out.push_str(if args.is_empty() && *name == "COUNT" { "*" } else { "" });
        // LAG's distance and NTILE's count are numbers that the server must know beforehand.
        self.fixed += 1;
        self.list(args);
        self.fixed -= 1;
        self.out.push_str(") OVER (");
        if !parts.is_empty() {
            self.out.push_str("PARTITION BY ");
            self.list(parts);
        }
        for (index, (key, descending)) in keys.iter().zip(descending).enumerate() {
            self.out.push_str(if index == 0 { " ORDER BY " } else { ", " });
            self.expr(key);
            self.out.push_str(if *descending { " DESC" } else { "" });
        }
        match *frame {
            Frame::None => {}
            Frame::Rows(from, to) => {
                let _ =
                    write!(self.out, " ROWS BETWEEN {} AND {}", BOUNDS[from as usize], BOUNDS[to as usize]);
            }
            Frame::RangeToCurrent => self.out.push_str(" RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"),
            Frame::RangeAll => {
                self.out.push_str(" RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING");
            }
        }
        self.out.push(')');
    }

    fn cast_name(&self, to: CastTo) -> String {
        let duckdb = self.dialect == Dialect::DuckDb;
        match to {
            CastTo::Signed => if duckdb { "BIGINT" } else { "SIGNED" }.to_owned(),
            CastTo::Decimal(digits, scale) => format!("DECIMAL({digits},{scale})"),
            CastTo::Double => "DOUBLE".to_owned(),
            CastTo::Char => if duckdb { "VARCHAR" } else { "CHAR" }.to_owned(),
            CastTo::Date => "DATE".to_owned(),
            CastTo::DateTime(_) if duckdb => "TIMESTAMP".to_owned(),
            CastTo::DateTime(digits) => format!("DATETIME({digits})"),
        }
    }

    fn literal(&mut self, literal: &Literal) {
        if self.fixed == 0
            && let Some(parameters) = &mut self.parameters
            && let Some(value) = parameter(literal)
        {
            parameters.push(value);
            self.out.push('?');
            return;
        }
        let _ = match literal {
            Literal::Null => write!(self.out, "NULL"),
            Literal::Int(number) if *number < 0 => write!(self.out, "({number})"),
            Literal::Int(number) => write!(self.out, "{number}"),
            Literal::Decimal(text) | Literal::Double(text) if text.starts_with('-') => {
                write!(self.out, "({text})")
            }
            // DuckDB reads 1.5e0 as a decimal where MySQL has a double.
            Literal::Double(text) if self.dialect == Dialect::DuckDb => {
                write!(self.out, "CAST({text} AS DOUBLE)")
            }
            Literal::Decimal(text) | Literal::Double(text) => write!(self.out, "{text}"),
            Literal::Text(text) => write!(self.out, "{}", quoted(text)),
            Literal::Date { text, bare: true } | Literal::DateTime { text, bare: true } => {
                write!(self.out, "'{text}'")
            }
            Literal::Date { text, .. } => write!(self.out, "DATE '{text}'"),
            Literal::DateTime { text, .. } => write!(self.out, "TIMESTAMP '{text}'"),
            Literal::Bool(truth) => write!(self.out, "{}", if *truth { "TRUE" } else { "FALSE" }),
        };
    }
}

static DOUBLED: Form = Form { name: "+", mysql: "{0} + 0e0", duckdb: "" };

/// The arguments with which MariaDB calculates in the type of Doris and the server, where its own differs. Whole numbers divide
/// as DOUBLE, not as DECIMAL; a NULL in arithmetic is a whole number, not a DOUBLE; and the sum of a NULL and an interval is a
/// DATETIME, not of the type of its neighbour.
fn typed(form: &Form, args: &[Expr]) -> Option<Vec<Expr>> {
    let is_whole = |arg: &Expr| is_null(arg) || matches!(arg.kind, Kind::Int | Kind::Bool);
    let nulls_are = match form.name {
        "/" if args.iter().all(is_whole) => {
            let mut args = args.to_vec();
            args[0] = Expr::new(Op::Form(&DOUBLED), Kind::Double, vec![args[0].clone()]);
            return Some(args);
        }
        "+" | "-" | "*" | "/" | "%" | "MOD" => CastTo::Signed,
        "DATE_ADD" | "DATE_SUB" => CastTo::DateTime(0),
        _ => return None,
    };
    let cast = |arg: &Expr| Expr::new(Op::Cast(nulls_are), arg.kind, vec![arg.clone()]);
    let (values, count) = match nulls_are {
        CastTo::DateTime(_) => args.split_at(1),
        _ => (args, &args[..0]),
    };
    let typed = values.iter().map(|arg| if is_null(arg) { cast(arg) } else { arg.clone() });
    values.iter().any(is_null).then(|| typed.chain(count.iter().cloned()).collect())
}

/// Whether MariaDB answers with the plain number only where 0 is added. It has a remainder of -0.00, which it shows so, and
/// which is not equal to 0; and it allows codes, counts of days and whole quotients fewer digits than they have, and cuts the others
/// off.
fn is_plain_as_a_sum(form: &Form, args: &[Expr]) -> bool {
    let has = |kind| args.iter().any(|arg| arg.kind == kind);
    match form.name {
        "%" | "MOD" => has(Kind::Decimal) && !has(Kind::Double),
        name => matches!(name, "ASCII" | "TO_DAYS" | "YEARWEEK" | "DIV"),
    }
}

fn is_null(expr: &Expr) -> bool {
    expr.op == Op::Literal(Literal::Null)
}

/// A text in quotes. Generated texts contain no backslash.
#[must_use]
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The value of a parameter that means the same as the literal.
fn parameter(literal: &Literal) -> Option<Value> {
    match literal {
        Literal::Int(number) => Some(Value::BigInt(*number as u64)),
        Literal::Decimal(text) => Some(Value::Decimal(text.clone())),
        Literal::Text(text) => Some(Value::Text(text.clone())),
        Literal::Null
        | Literal::Double(_)
        | Literal::Date { .. }
        | Literal::DateTime { .. }
        | Literal::Bool(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static NOT: Form = Form { name: "NOT", mysql: "NOT {0}", duckdb: "" };
    static OR: Form = Form { name: "OR", mysql: "{0} OR {1}", duckdb: "" };
    static XOR: Form = Form { name: "XOR", mysql: "{0} XOR {1}", duckdb: "" };
    static AND: Form = Form { name: "AND", mysql: "{0} AND {1}", duckdb: "" };
    static LESS: Form = Form { name: "<", mysql: "{0} < {1}", duckdb: "" };
    static MINUS: Form = Form { name: "-", mysql: "{0} - {1}", duckdb: "" };
    static TIMES: Form = Form { name: "*", mysql: "{0} * {1}", duckdb: "" };
    static ROUNDED: Form = Form { name: "/", mysql: "ROUND({0} / {1}, 2)", duckdb: "" };
    static ABS: Form = Form { name: "ABS", mysql: "ABS({0})", duckdb: "" };
    static IS_NULL: Form = Form { name: "IS NULL", mysql: "{0} IS NULL", duckdb: "" };
    static NEGATIVE: Form = Form { name: "negative", mysql: "-{0}", duckdb: "" };

    fn form(form: &'static Form, args: Vec<Expr>) -> Expr {
        Expr::new(Op::Form(form), Kind::Int, args)
    }

    static REMAINDER: Form = Form { name: "%", mysql: "{0} % {1}", duckdb: "" };
    static DIVIDED: Form = Form { name: "/", mysql: "{0} / {1}", duckdb: "" };
    static CODE: Form = Form { name: "ASCII", mysql: "ASCII({0})", duckdb: "" };
    static NEXT: Form = Form { name: "DATE_ADD", mysql: "DATE_ADD({0}, INTERVAL {1} DAY)", duckdb: "" };

    #[test]
    fn mariadb_calculates_in_the_types_of_the_server() {
        let null = || Expr::null(Kind::Int);
        let decimal = || Expr::literal(Literal::Decimal("1.5".to_owned()), Kind::Decimal);
        let cases = [
            (form(&DIVIDED, vec![number(1), number(2)]), "((1 + 0e0) / 2)"),
            (form(&DIVIDED, vec![number(1), decimal()]), "(1 / 1.5)"),
            (form(&MINUS, vec![number(1), null()]), "(1 - CAST(NULL AS SIGNED))"),
            (form(&MINUS, vec![number(1), number(2)]), "(1 - 2)"),
            (form(&REMAINDER, vec![decimal(), number(2)]), "(1.5 % 2 + 0)"),
            (form(&REMAINDER, vec![number(3), number(2)]), "(3 % 2)"),
            (form(&NEXT, vec![null(), null()]), "(DATE_ADD(CAST(NULL AS DATETIME(0)), INTERVAL NULL DAY))"),
            (form(&ABS, vec![null()]), "(ABS(NULL))"),
            (form(&CODE, vec![number(1)]), "(ASCII(1) + 0)"),
        ];
        for (made, written) in cases {
            assert_eq!(expr(&made, Dialect::MariaDb), written);
            let ours = expr(&made, Dialect::Ours);
            assert!(!ours.contains("CAST") && !ours.contains(" + 0"), "{ours}");
        }
    }

    fn number(value: i64) -> Expr {
        Expr::literal(Literal::Int(value), Kind::Int)
    }

    /// Both ways to write an expression.
    fn written(expr: Expr) -> (String, String) {
        let query = Query::of(Select { items: vec![expr], ..Select::default() });
        let text = |text: String| text.replace("SELECT ", "").replace(" AS c0", "");
        (text(super::query(&query, Dialect::Ours)), text(bare(&query)))
    }

    #[test]
    fn brackets_that_precedence_makes_needless_are_left_out() {
        let cases = [
            (
                form(&OR, vec![number(1), form(&XOR, vec![number(2), number(3)])]),
                "(1 OR (2 XOR 3))",
                "1 OR 2 XOR 3",
            ),
            (
                form(&AND, vec![form(&OR, vec![number(1), number(2)]), number(3)]),
                "((1 OR 2) AND 3)",
                "(1 OR 2) AND 3",
            ),
            (
                form(&XOR, vec![form(&LESS, vec![number(1), number(2)]), number(3)]),
                "((1 < 2) XOR 3)",
                "1 < 2 XOR 3",
            ),
            (
                form(&LESS, vec![number(1), form(&LESS, vec![number(2), number(3)])]),
                "(1 < (2 < 3))",
                "1 < (2 < 3)",
            ),
            (
                form(&LESS, vec![form(&LESS, vec![number(1), number(2)]), number(3)]),
                "((1 < 2) < 3)",
                "1 < 2 < 3",
            ),
            (form(&NOT, vec![form(&LESS, vec![number(1), number(2)])]), "(NOT (1 < 2))", "NOT 1 < 2"),
            (form(&LESS, vec![form(&NOT, vec![number(1)]), number(2)]), "((NOT 1) < 2)", "(NOT 1) < 2"),
            (
                form(&MINUS, vec![number(1), form(&MINUS, vec![number(2), number(3)])]),
                "(1 - (2 - 3))",
                "1 - (2 - 3)",
            ),
            (
                form(&MINUS, vec![number(1), form(&TIMES, vec![number(2), number(3)])]),
                "(1 - (2 * 3))",
                "1 - 2 * 3",
            ),
            (
                form(&IS_NULL, vec![form(&LESS, vec![number(1), number(2)])]),
                "((1 < 2) IS NULL)",
                "1 < 2 IS NULL",
            ),
            (
                form(&LESS, vec![form(&IS_NULL, vec![number(1)]), number(2)]),
                "((1 IS NULL) < 2)",
                "(1 IS NULL) < 2",
            ),
            (
                form(&ROUNDED, vec![number(1), form(&TIMES, vec![number(2), number(3)])]),
                "(ROUND(1 / (2 * 3), 2))",
                "ROUND(1 / (2 * 3), 2)",
            ),
            (form(&ABS, vec![form(&OR, vec![number(1), number(2)])]), "(ABS((1 OR 2)))", "ABS(1 OR 2)"),
            (form(&NEGATIVE, vec![form(&NEGATIVE, vec![number(1)])]), "(-(-1))", "-(-1)"),
            (
                Expr::new(
                    Op::In { negated: true },
                    Kind::Bool,
                    vec![form(&MINUS, vec![number(1), number(2)]), number(3)],
                ),
                "((1 - 2) NOT IN (3))",
                "1 - 2 NOT IN (3)",
            ),
        ];
        for (expr, all, few) in cases {
            assert_eq!(written(expr), (all.to_owned(), few.to_owned()));
        }
    }
}
