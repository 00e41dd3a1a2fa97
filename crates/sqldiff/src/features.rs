//! The features of a query, as words: the list of known differences names them, and findings with the same words are the same
//! finding.

use crate::ast::*;
use crate::kinds;
use crate::schema::Kind;
use std::collections::BTreeSet;

/// The words of a query.
#[must_use]
pub fn of(query: &Query) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    query.walk(&mut |node| match node {
        Node::Expr(expr) => of_expr(expr, &mut words),
        Node::Select(select) => of_select(select, &mut words),
        Node::Join(join) => of_join(join, &mut words),
        Node::Query(query) => {
            if query.limit.is_some() {
                words.insert("limit".to_owned());
            }
            if !query.order.is_empty() {
                words.insert("order".to_owned());
            }
            if let Body::Set { operator, all, left, right } = &query.body {
                words.insert(format!("set:{}", format!("{operator:?}").to_lowercase()));
                for (left, right) in kinds::of(left).into_iter().zip(kinds::of(right)) {
                    words.insert(format!("set({},{})", left.min(right).name(), left.max(right).name()));
                }
                words.extend(all.then(|| "set:all".to_owned()));
            }
        }
    });
    words
}

fn kinds(exprs: &[Expr]) -> String {
    exprs.iter().map(kind_name).collect::<Vec<_>>().join(",")
}

fn kind_name(expr: &Expr) -> &'static str {
    if expr.op == Op::Literal(Literal::Null) { "null" } else { expr.kind.name() }
}

/// The class of an expression in comparisons: TRUE and FALSE are numbers, dates and datetimes are times, and a literal text that
/// spells a number is a numeral.
fn class(expr: &Expr) -> &'static str {
    match &expr.op {
        Op::Literal(Literal::Text(text)) if text.parse::<f64>().is_ok() => "numeral",
        _ => class_of(expr.kind),
    }
}

fn class_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "text",
        Kind::Date | Kind::DateTime => "time",
        Kind::Int | Kind::Decimal | Kind::Double | Kind::Bool => "number",
    }
}

/// The values that an expression compares with each other, as places in its list.
fn compared(expr: &Expr) -> Vec<&Expr> {
    let args = &expr.args;
    match &expr.op {
        Op::Form(form) => match form.name {
            "=" | "<>" | "<" | "<=" | ">" | ">=" | "<=>" | "BETWEEN" | "NOT BETWEEN" | "FIELD" => {
                args.iter().collect()
            }
            _ => Vec::new(),
        },
        Op::In { .. } | Op::InQuery { .. } | Op::Quantified { .. } => args.iter().collect(),
        Op::Call("NULLIF" | "GREATEST" | "LEAST") => args.iter().collect(),
        Op::Case { operand: true, .. } => {
            let whens = args.iter().skip(1).step_by(2).take((args.len() - 1) / 2);
            args.iter().take(1).chain(whens).collect()
        }
        _ => Vec::new(),
    }
}

/// `compares:number,text` where a number and a text are compared, and so on; `number-of:text` where a text is
/// calculated with; `truth-of:text` where it is a condition; `text-of:double` where a double becomes a text.
fn of_classes(expr: &Expr, words: &mut BTreeSet<String>) {
    let is_null = |expr: &&Expr| expr.op == Op::Literal(Literal::Null);
    let mut classes: BTreeSet<&str> =
        compared(expr).into_iter().filter(|expr| !is_null(expr)).map(class).collect();
    if let (Op::InQuery { .. } | Op::Quantified { .. }, Some(query)) = (&expr.op, &expr.query) {
        classes.extend(kinds::of(query).into_iter().map(class_of));
    }
    let classes: Vec<&str> = classes.into_iter().collect();
    for (place, left) in classes.iter().enumerate() {
        words.extend(classes[place + 1..].iter().map(|right| format!("compares:{left},{right}")));
    }
    let calculates = match &expr.op {
        Op::Form(form) => {
            let names = [
                "+", "-", "*", "/", "%", "MOD", "DIV", "negative", "ABS", "SIGN", "FLOOR", "CEIL", "ROUND",
                "TRUNCATE", "SQRT", "POW", "EXP", "LN",
            ];
            names.contains(&form.name)
        }
        Op::Aggregate { name, .. } | Op::Window { name, .. } => {
            ["SUM", "AVG", "STDDEV_POP", "VAR_POP", "VAR_SAMP", "STDDEV_SAMP"].contains(name)
        }
        _ => false,
    };
    let decides = match &expr.op {
        Op::Form(form) => {
            ["AND", "OR", "XOR", "NOT", "IS TRUE", "IS NOT TRUE", "IS FALSE"].contains(&form.name)
        }
        _ => false,
    };
    let own = match &expr.op {
        Op::Window { arguments, .. } => *arguments,
        _ => expr.args.len(),
    };
    let spells = match &expr.op {
        Op::Cast(CastTo::Char) | Op::GroupConcat { .. } => true,
        Op::Form(Form { name, .. }) => {
            let names = [
                "LENGTH",
                "CHAR_LENGTH",
                "ASCII",
                "INSTR",
                "LOCATE",
                "STRCMP",
                "FIND_IN_SET",
                "CONCAT",
                "CONCAT_WS",
                "UPPER",
                "LOWER",
                "SUBSTRING",
                "LEFT",
                "RIGHT",
                "REPLACE",
                "TRIM",
                "LTRIM",
                "RTRIM",
                "LPAD",
                "RPAD",
                "REVERSE",
                "REPEAT",
                "SUBSTRING_INDEX",
                "HEX",
                "MD5",
                "LIKE",
                "NOT LIKE",
            ];
            names.contains(name)
        }
        Op::Call(_) | Op::Case { .. } => expr.kind == Kind::Text,
        _ => false,
    };
    for arg in expr.args[..own].iter().filter(|arg| !is_null(arg)) {
        if calculates && class(arg) != "number" {
            words.insert(format!("number-of:{}", class(arg)));
        }
        if decides && class(arg) != "number" {
            words.insert(format!("truth-of:{}", class(arg)));
        }
        if spells && arg.kind != Kind::Text {
            words.insert(format!("text-of:{}", arg.kind.name()));
        }
    }
}

fn of_expr(expr: &Expr, words: &mut BTreeSet<String>) {
    of_classes(expr, words);
    let mut add = |word: String| _ = words.insert(word);
    let arguments = kinds(&expr.args);
    match &expr.op {
        Op::Column { .. } => {}
        Op::Literal(Literal::Date { bare: true, .. } | Literal::DateTime { bare: true, .. }) => {
            add("literal:bare".to_owned());
        }
        Op::Literal(_) => {}
        Op::Form(Form { name, .. }) | Op::Call(name) => {
            add(format!("fn:{name}"));
            add(format!("fn:{name}({arguments})"));
            if matches!(&expr.op, Op::Form(form) if form.mysql.starts_with("ROUND({0} /")) {
                add("fn:ROUND".to_owned());
                add(format!("fn:ROUND({},int)", expr.kind.name()));
            }
        }
        Op::Cast(to) => {
            let to = match to {
                CastTo::Signed => "signed",
                CastTo::Decimal(..) => "decimal",
                CastTo::Double => "double",
                CastTo::Char => "char",
                CastTo::Date => "date",
                CastTo::DateTime(_) => "datetime",
            };
            add(format!("cast:{arguments}>{to}"));
        }
        Op::In { negated } => {
            add(if *negated { "not-in" } else { "in" }.to_owned());
            add(format!("in({arguments})"));
        }
        Op::Case { .. } => {
            add("case".to_owned());
            add(format!("case({arguments})"));
        }
        Op::Scalar => add("query:scalar".to_owned()),
        Op::InQuery { negated } => add(if *negated { "query:not-in" } else { "query:in" }.to_owned()),
        Op::Exists { .. } => add("query:exists".to_owned()),
        Op::Quantified { all, .. } => add(if *all { "query:all" } else { "query:any" }.to_owned()),
        Op::Aggregate { name, distinct } => {
            add(format!("aggregate:{name}"));
            add(format!("aggregate:{name}({arguments})"));
            if *distinct {
                add("aggregate:distinct".to_owned());
            }
        }
        Op::GroupConcat { .. } => add("aggregate:GROUP_CONCAT".to_owned()),
        Op::Window { name, frame, arguments, .. } => {
            add(format!("window:{name}"));
            add(format!("window:{name}({})", kinds(&expr.args[..*arguments])));
            if *frame != Frame::None {
                add("window:frame".to_owned());
            }
        }
    }
    if let Some(query) = &expr.query
        && !is_closed(query)
    {
        words.insert("query:correlated".to_owned());
    }
}

/// Whether a query names no table that it does not have.
#[must_use]
pub fn is_closed(query: &Query) -> bool {
    let (mut has, mut names) = (BTreeSet::new(), BTreeSet::new());
    query.walk(&mut |node| match node {
        Node::Select(select) => {
            let joined = select.joins.iter().map(|join| &join.source);
            has.extend(select.from.iter().chain(joined).map(|source| source.alias.as_str()));
        }
        Node::Expr(Expr { op: Op::Column { table: Some(table), .. }, .. }) => {
            names.insert(table.as_str());
        }
        _ => {}
    });
    names.is_subset(&has)
}

fn of_select(select: &Select, words: &mut BTreeSet<String>) {
    let mut add = |there: bool, word: &str| {
        if there {
            words.insert(word.to_owned());
        }
    };
    let sources = select.from.iter().chain(select.joins.iter().map(|join| &join.source));
    add(sources.clone().any(|source| matches!(source.what, What::Derived(_))), "derived");
    add(select.from.is_none(), "constants");
    add(select.distinct, "distinct");
    add(select.star, "star");
    add(select.filter.is_some(), "where");
    add(!select.group.is_empty(), "group");
    add(select.group.iter().any(|key| !key.is_leaf()), "group:expression");
    add(select.having.is_some(), "having");
    let is_window = |item: &&Expr| matches!(item.op, Op::Window { .. });
    add(select.items.iter().filter(is_window).count() > 1, "window:several");
    match &select.grouping {
        Grouping::Plain => {}
        Grouping::Rollup => add(true, "group:rollup"),
        Grouping::Cube => add(true, "group:cube"),
        Grouping::Sets(_) => add(true, "group:sets"),
    }
}

fn of_join(join: &Join, words: &mut BTreeSet<String>) {
    words.insert(format!("join:{}", format!("{:?}", join.kind).to_lowercase()));
    if !join.using.is_empty() {
        words.insert("join:using".to_owned());
    }
}

/// The query with the kinds of its literals and columns in place of them: findings of one shape are one.
#[must_use]
pub fn shape(query: &Query) -> String {
    let mut query = query.clone();
    crate::shrink::each_expr(&mut query, &mut |expr| {
        if expr.is_leaf() && expr.op != Op::Literal(Literal::Null) {
            let name = expr.kind.name().to_owned();
            expr.op = Op::Column { table: None, name };
        }
    });
    let text = crate::print::query(&query, crate::schema::Dialect::Ours);
    let alias = |word: &str| {
        let word = word.trim_matches(|letter: char| !letter.is_alphanumeric());
        let digits = word.strip_prefix(['r', 't']).unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    text.split(' ').filter(|word| !alias(word)).collect::<Vec<_>>().join(" ")
}

/// A literal that represents all of its kind; used by the shrinker.
#[must_use]
pub fn plainest(kind: Kind) -> Literal {
    match kind {
        Kind::Int => Literal::Int(1),
        Kind::Decimal => Literal::Decimal("1.5".to_owned()),
        Kind::Double => Literal::Double("1.5e0".to_owned()),
        Kind::Text => Literal::Text("a".to_owned()),
        Kind::Date => Literal::Date { text: "2020-01-31".to_owned(), bare: false },
        Kind::DateTime => Literal::DateTime { text: "2020-01-31 12:30:45".to_owned(), bare: false },
        Kind::Bool => Literal::Bool(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(kind: Kind) -> Expr {
        Expr::literal(plainest(kind), kind)
    }

    fn words(expr: &Expr) -> BTreeSet<String> {
        let mut words = BTreeSet::new();
        of_expr(expr, &mut words);
        words
    }

    #[test]
    fn several_windows_are_distinguished_from_one() {
        let window = || {
            let op = Op::Window {
                name: "RANK",
                arguments: 0,
                partitions: 0,
                descending: vec![false],
                frame: Frame::None,
            };
            Expr::new(op, Kind::Int, vec![literal(Kind::Int)])
        };
        let has = |items| of(&Query::of(Select { items, ..Select::default() })).contains("window:several");
        assert!(has(vec![window(), literal(Kind::Int), window()]));
        assert!(!has(vec![window(), literal(Kind::Int)]));
    }

    #[test]
    fn what_is_compared_is_told_by_class() {
        let list = |kinds: &[Kind]| kinds.iter().map(|&kind| literal(kind)).collect();
        let within =
            Expr::new(Op::In { negated: true }, Kind::Bool, list(&[Kind::Int, Kind::Decimal, Kind::Text]));
        assert!(words(&within).contains("compares:number,text"));
        let case = Op::Case { operand: true, otherwise: true };
        let args = list(&[Kind::Date, Kind::Text, Kind::Int, Kind::Int]);
        let found = words(&Expr::new(case, Kind::Int, args));
        assert!(found.contains("compares:text,time") && !found.contains("compares:number,text"), "{found:?}");
        let alike = Expr::new(Op::Call("NULLIF"), Kind::Int, list(&[Kind::Int, Kind::Bool]));
        assert!(!words(&alike).iter().any(|word| word.starts_with("compares:")));
        let null = Expr::new(Op::Call("NULLIF"), Kind::Int, vec![literal(Kind::Int), Expr::null(Kind::Text)]);
        assert!(!words(&null).iter().any(|word| word.starts_with("compares:")));
        let of = Select { items: vec![literal(Kind::Text)], ..Select::default() };
        let any = Op::Quantified { operator: "=", all: false };
        let any = Expr::with_query(any, Kind::Bool, vec![literal(Kind::Double)], Query::of(of));
        assert!(words(&any).contains("compares:number,text"));
        let sum = Op::Aggregate { name: "SUM", distinct: false };
        assert!(words(&Expr::new(sum, Kind::Double, list(&[Kind::Text]))).contains("number-of:text"));
        let numeral = Expr::literal(Literal::Text("-1.5".to_owned()), Kind::Text);
        let beside = Expr::new(Op::In { negated: false }, Kind::Bool, vec![literal(Kind::Int), numeral]);
        assert!(words(&beside).contains("compares:number,numeral"));
        assert!(!words(&beside).contains("compares:number,text"));
        let spelled = Expr::new(Op::Cast(CastTo::Char), Kind::Text, list(&[Kind::Double]));
        assert!(words(&spelled).contains("text-of:double"));
    }
}
