//! A tree → SQL of a dialect.

use crate::ast::*;
use crate::schema::Dialect;
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
    let mut printer = Printer { dialect, parameters: None, fixed: 0, out: String::new() };
    printer.query(query);
    printer.out
}

/// A query as text in which literals are `?`, and the values for them. Literals that the statement's
/// meaning depends on before it is run (in GROUP BY, LIMIT, ORDER BY and in the SELECT list of what
/// is grouped) stay as they are.
#[must_use]
pub fn prepared(query: &Query) -> (String, Vec<Value>) {
    let parameters = Some(Vec::new());
    let mut printer = Printer { dialect: Dialect::Ours, parameters, fixed: 0, out: String::new() };
    printer.query(query);
    (printer.out, printer.parameters.unwrap_or_default())
}

/// An expression as text.
#[must_use]
pub fn expr(expr: &Expr, dialect: Dialect) -> String {
    let mut printer = Printer { dialect, parameters: None, fixed: 0, out: String::new() };
    printer.expr(expr);
    printer.out
}

struct Printer {
    dialect: Dialect,
    parameters: Option<Vec<Value>>,
    /// How many clauses deep literals must stay as they are.
    fixed: u32,
    out: String,
}

impl Printer {
    fn list(&mut self, exprs: &[Expr]) {
        for (index, expr) in exprs.iter().enumerate() {
            self.out.push_str(if index == 0 { "" } else { ", " });
            self.expr(expr);
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
            self.expr(item);
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
                self.expr(on);
            }
            if !join.using.is_empty() {
                let _ = write!(self.out, " USING ({})", join.using.join(", "));
            }
        }
        if let Some(filter) = &select.filter {
            self.out.push_str(" WHERE ");
            self.expr(filter);
        }
        self.fixed += 1;
        self.group(select);
        if let Some(having) = &select.having {
            self.out.push_str(" HAVING ");
            self.expr(having);
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

    /// An expression in a place where it needs parentheses unless it is one piece.
    fn expr(&mut self, expr: &Expr) {
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
                self.out.push('(');
                self.list(&expr.args[..1]);
                self.out.push_str(if *negated { " NOT IN (" } else { " IN (" });
                self.list(&expr.args[1..]);
                self.out.push_str("))");
            }
            Op::Case { operand, otherwise } => self.case(*operand, *otherwise, &expr.args),
            Op::Scalar => self.subquery("", expr),
            // In brackets: NOT binds less than a comparison.
            Op::Exists { negated } => {
                self.out.push('(');
                self.subquery(if *negated { "NOT EXISTS " } else { "EXISTS " }, expr);
                self.out.push(')');
            }
            Op::InQuery { negated } => {
                self.out.push('(');
                self.list(&expr.args);
                self.subquery(if *negated { " NOT IN " } else { " IN " }, expr);
                self.out.push(')');
            }
            Op::Quantified { operator, all } => {
                self.out.push('(');
                self.list(&expr.args);
                let _ = write!(self.out, " {operator} {} ", if *all { "ALL" } else { "ANY" });
                self.subquery("", expr);
                self.out.push(')');
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
        let template = if self.dialect == Dialect::DuckDb { form.duckdb } else { form.mysql };
        let mut rest = template;
        self.out.push('(');
        while let Some((before, after)) = rest.split_once('{') {
            self.out.push_str(before);
            let Some((number, after)) = after.split_once('}') else { break };
            if let Some(arg) = number.parse::<usize>().ok().and_then(|place| args.get(place)) {
                self.expr(arg);
            }
            rest = after;
        }
        self.out.push_str(rest);
        self.out.push(')');
    }

    fn case(&mut self, operand: bool, otherwise: bool, args: &[Expr]) {
        let mut args = args.iter();
        self.out.push_str("(CASE");
        if operand && let Some(arg) = args.next() {
            self.out.push(' ');
            self.expr(arg);
        }
        while args.len() >= 2 {
            for (head, arg) in [" WHEN ", " THEN "].into_iter().zip(args.by_ref()) {
                self.out.push_str(head);
                self.expr(arg);
            }
        }
        if otherwise && let Some(arg) = args.next() {
            self.out.push_str(" ELSE ");
            self.expr(arg);
        }
        self.out.push_str(" END)");
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

/// A text in quotes. There is no backslash in texts that are made here.
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
