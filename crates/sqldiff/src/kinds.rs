//! The kinds of a query's expressions, recomputed from its tables and literals.
//!
//! The generator makes expressions of a given kind. The shrinker replaces them by others, and then the enclosing expressions
//! change their kinds.

use crate::ast::*;
use crate::schema::Kind;
use std::collections::BTreeMap;

/// The kinds of the columns of the derived tables in reach, by the table's alias.
type Reach = BTreeMap<String, Vec<Kind>>;

/// The kind that values of these kinds have in common.
#[must_use]
pub fn common(kinds: impl Iterator<Item = Kind>) -> Kind {
    kinds
        .reduce(|left, right| match (left, right) {
            (left, right) if left == right => left,
            (left, right) if left.is_number() && right.is_number() => left.max(right),
            (left, right) if left.is_time() && right.is_time() => Kind::DateTime,
            (Kind::Bool, number) | (number, Kind::Bool) if number.is_number() => number,
            _ => Kind::Text,
        })
        .unwrap_or(Kind::Int)
}

/// The kinds of a query's columns.
#[must_use]
pub fn of(query: &Query) -> Vec<Kind> {
    match &query.body {
        Body::Select(select) => select.items.iter().map(|item| item.kind).collect(),
        Body::Set { left, right, .. } => {
            let both = of(left).into_iter().zip(of(right));
            both.map(|(left, right)| common([left, right].into_iter())).collect()
        }
    }
}

/// Recomputes the kinds of all expressions of a query.
pub fn tell(query: &mut Query) {
    in_query(query, &Reach::new());
}

fn in_query(query: &mut Query, around: &Reach) {
    match &mut query.body {
        Body::Set { left, right, .. } => {
            in_query(left, around);
            in_query(right, around);
        }
        Body::Select(select) => in_select(select, around),
    }
}

fn in_select(select: &mut Select, around: &Reach) {
    let mut reach = around.clone();
    for source in select.from.iter_mut().chain(select.joins.iter_mut().map(|join| &mut join.source)) {
        if let What::Derived(query) = &mut source.what {
            in_query(query, around);
            reach.insert(source.alias.clone(), of(query));
        }
    }
    let on = select.joins.iter_mut().filter_map(|join| join.on.as_mut());
    let rest = select.items.iter_mut().chain(on).chain(&mut select.filter);
    let rest = rest.chain(&mut select.group).chain(&mut select.having);
    rest.for_each(|expr| in_expr(expr, &reach));
}

fn in_expr(expr: &mut Expr, reach: &Reach) {
    expr.args.iter_mut().for_each(|arg| in_expr(arg, reach));
    if let Some(query) = &mut expr.query {
        in_query(query, reach);
    }
    if let Some(kind) = told(expr, reach) {
        expr.kind = kind;
    }
}

/// The kind of an expression whose arguments have theirs; `None` if it has one whatever they are.
fn told(expr: &Expr, reach: &Reach) -> Option<Kind> {
    let args = &expr.args;
    let first = args.first().map(|arg| arg.kind);
    Some(match &expr.op {
        Op::Column { table: Some(table), name } => {
            let place: usize = name.strip_prefix('c')?.parse().ok()?;
            *reach.get(table)?.get(place)?
        }
        Op::Form(form) => match form.name {
            "+" | "-" | "*" | "%" | "MOD" => number(of_all(args)),
            "/" => match of_all(args) {
                Kind::Decimal => Kind::Decimal,
                _ => Kind::Double,
            },
            "negative" | "ABS" | "ROUND" | "TRUNCATE" | "FLOOR" | "CEIL" => number(first?),
            _ => return None,
        },
        Op::Call("IF") => of_all(args.get(1..)?),
        Op::Call("NULLIF" | "ROUND") => first?,
        Op::Call(_) => of_all(args),
        Op::Case { operand, otherwise } => {
            let count = args.len();
            let results = args.iter().enumerate().skip(usize::from(*operand)).filter(|(place, _)| {
                *otherwise && place + 1 == count || (place - usize::from(*operand)) % 2 == 1
            });
            of_some(results.map(|(_, arg)| arg))
        }
        Op::Scalar => *of(expr.query.as_ref()?).first()?,
        Op::Aggregate { name, .. } | Op::Window { name, .. } => match *name {
            "MIN" | "MAX" | "LAG" | "LEAD" | "FIRST_VALUE" | "LAST_VALUE" => first?,
            "SUM" => number(first?),
            "AVG" if first == Some(Kind::Decimal) => Kind::Decimal,
            "AVG" => Kind::Double,
            _ => return None,
        },
        _ => return None,
    })
}

/// The common kind, ignoring NULLs.
fn of_all(args: &[Expr]) -> Kind {
    of_some(args.iter())
}

fn of_some<'a>(args: impl Iterator<Item = &'a Expr>) -> Kind {
    common(args.filter(|arg| arg.op != Op::Literal(Literal::Null)).map(|arg| arg.kind))
}

/// The kind of arithmetic on values of this kind.
fn number(kind: Kind) -> Kind {
    match kind {
        Kind::Bool => Kind::Int,
        Kind::Text | Kind::Date | Kind::DateTime => Kind::Double,
        kind => kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features;
    use crate::generate::{self, Audience, Generator};

    fn literal(kind: Kind) -> Expr {
        Expr::literal(features::plainest(kind), kind)
    }

    fn column(table: &str, kind: Kind) -> Expr {
        let op = Op::Column { table: Some(table.to_owned()), name: "c0".to_owned() };
        Expr::new(op, kind, Vec::new())
    }

    #[test]
    fn a_column_of_a_derived_table_has_the_kind_of_what_was_put_there() {
        let inner = Select { items: vec![literal(Kind::Text)], ..Select::default() };
        let coalesce = |args| Expr::new(Op::Call("COALESCE"), Kind::Double, args);
        let outer = Select {
            items: vec![
                column("r1", Kind::Int),
                coalesce(vec![literal(Kind::Int), literal(Kind::Decimal), Expr::null(Kind::Text)]),
                coalesce(vec![column("r1", Kind::Int), literal(Kind::Decimal)]),
            ],
            from: Some(Source { what: What::Derived(Box::new(Query::of(inner))), alias: "r1".to_owned() }),
            ..Select::default()
        };
        let mut query = Query::of(outer);
        tell(&mut query);
        assert_eq!(of(&query), [Kind::Text, Kind::Decimal, Kind::Text]);
    }

    #[test]
    fn recomputed_kinds_equal_those_of_the_generator() {
        let (mut same, mut all) = (0, 0);
        for seed in 0..30 {
            let schema = generate::schema(seed);
            let mut generator = Generator::new(seed, &schema, Audience::MariaDb);
            for _ in 0..20 {
                let query = generator.query();
                let mut again = query.clone();
                tell(&mut again);
                let (before, after) = (of(&query), of(&again));
                assert_eq!(before.len(), after.len());
                all += before.len();
                same += before.iter().zip(&after).filter(|(before, after)| before == after).count();
            }
        }
        assert!(same * 100 > all * 90, "{same} of {all}");
    }
}
