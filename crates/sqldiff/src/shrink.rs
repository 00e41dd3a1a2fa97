//! Makes a query, and the tables that it reads, smaller as long as the difference stays.
//!
//! Every step leaves a query with one right answer: a LIMIT is removed before the ORDER BY that it depends on, and the sort keys
//! of window functions do not change.

use crate::ast::*;
use crate::features::{is_closed, plainest};
use crate::schema::{Kind, Schema, Table};
use std::collections::BTreeSet;

/// Shrinks a query. `still` says whether a smaller one shows the same difference; it is called at most `tries` times.
pub fn query(query: &Query, tries: usize, still: &mut dyn FnMut(&Query) -> bool) -> Query {
    let (mut current, mut left) = (query.clone(), tries);
    let mut seen = BTreeSet::new();
    'smaller: loop {
        for candidate in smaller(&current, true) {
            if !is_one_answer(&candidate) || !is_closed(&candidate) || !seen.insert(format!("{candidate:?}"))
            {
                continue;
            }
            if left == 0 {
                return current;
            }
            left -= 1;
            if still(&candidate) {
                current = candidate;
                continue 'smaller;
            }
        }
        return current;
    }
}

/// Shrinks the tables of a query. `still` must load them.
pub fn schema(
    schema: &Schema,
    query: &Query,
    tries: usize,
    still: &mut dyn FnMut(&Schema) -> bool,
) -> Schema {
    let mut current = schema.clone();
    let mut left = tries;
    let mut attempt = |current: &mut Schema, candidate: Schema| {
        if left == 0 || candidate == *current {
            return false;
        }
        left -= 1;
        let smaller = still(&candidate);
        if smaller {
            *current = candidate;
        }
        smaller
    };
    let used = used(schema, query);
    attempt(&mut current, used);
    for place in 0..current.tables.len() {
        let mut step = current.tables[place].rows.len();
        while step > 0 {
            let mut from = 0;
            while from < current.tables[place].rows.len() {
                let mut candidate = current.clone();
                let rows = &mut candidate.tables[place].rows;
                rows.drain(from..(from + step).min(rows.len()));
                if !attempt(&mut current, candidate) {
                    from += step;
                }
            }
            step /= 2;
        }
    }
    current
}

/// The selected elements.
fn some<T: Clone>(all: &[T], keep: &[bool]) -> Vec<T> {
    all.iter().zip(keep).filter(|(_, keep)| **keep).map(|(one, _)| one.clone()).collect()
}

/// The tables and columns that the query names.
fn used(schema: &Schema, query: &Query) -> Schema {
    let (mut tables, mut columns, mut stars) = (BTreeSet::new(), BTreeSet::new(), false);
    query.walk(&mut |node| match node {
        Node::Select(select) => {
            stars |= select.star;
            for source in select.from.iter().chain(select.joins.iter().map(|join| &join.source)) {
                if let What::Table(name) = &source.what {
                    tables.insert(name.clone());
                }
            }
        }
        Node::Join(join) => columns.extend(join.using.iter().cloned()),
        Node::Expr(Expr { op: Op::Column { name, .. }, .. }) => drop(columns.insert(name.clone())),
        _ => {}
    });
    let kept = |table: &Table| {
        // The first column is the key.
        let keep: Vec<bool> = table
            .columns
            .iter()
            .enumerate()
            .map(|(place, column)| stars || place == 0 || columns.contains(&column.name))
            .collect();
        Table {
            name: table.name.clone(),
            columns: some(&table.columns, &keep),
            rows: table.rows.iter().map(|row| some(row, &keep)).collect(),
        }
    };
    Schema { tables: schema.tables.iter().filter(|table| tables.contains(&table.name)).map(kept).collect() }
}

/// Whether the rows of the query, and of all in it, depend on no order that it leaves open.
#[must_use]
pub fn is_one_answer(query: &Query) -> bool {
    let mut one = true;
    query.walk(&mut |node| match node {
        Node::Query(query) => one &= query.limit.is_none() || query.is_ordered(),
        Node::Select(select) => one &= has_one_order(select),
        _ => {}
    });
    one
}

/// Whether windows that distinguish equal rows see them in one order.
fn has_one_order(select: &Select) -> bool {
    let mut orders = Vec::new();
    for item in &select.items {
        item.walk(&mut |node| {
            if let Node::Expr(Expr {
                op: Op::Window { name, arguments, descending, frame, .. }, args, ..
            }) = node
                && tells_equal_rows_apart(name, *frame)
            {
                orders.push((&args[*arguments..], descending));
            }
        });
    }
    orders.windows(2).all(|two| two[0] == two[1])
}

/// Whether a window function may give equal rows other values.
#[must_use]
pub fn tells_equal_rows_apart(name: &str, frame: Frame) -> bool {
    matches!(name, "ROW_NUMBER" | "NTILE" | "LAG" | "LEAD" | "FIRST_VALUE" | "LAST_VALUE")
        || matches!(frame, Frame::Rows(..))
}

/// Calls `change` with every expression of a query, those inside after those around them.
pub fn each_expr(query: &mut Query, change: &mut dyn FnMut(&mut Expr)) {
    fn within(expr: &mut Expr, change: &mut dyn FnMut(&mut Expr)) {
        change(expr);
        expr.args.iter_mut().for_each(|arg| within(arg, change));
        if let Some(query) = &mut expr.query {
            each_expr(query, change);
        }
    }
    match &mut query.body {
        Body::Set { left, right, .. } => {
            each_expr(left, change);
            each_expr(right, change);
        }
        Body::Select(select) => {
            for source in select.from.iter_mut().chain(select.joins.iter_mut().map(|join| &mut join.source)) {
                if let What::Derived(query) = &mut source.what {
                    each_expr(query, change);
                }
            }
            let on = select.joins.iter_mut().filter_map(|join| join.on.as_mut());
            let rest = select.items.iter_mut().chain(on).chain(&mut select.filter);
            let rest = rest.chain(&mut select.group).chain(&mut select.having);
            rest.for_each(|expr| within(expr, change));
        }
    }
}

/// Queries that are one step smaller; the largest steps first. Unless the query is `free`, its surroundings rely on the kinds of
/// its columns.
fn smaller(query: &Query, free: bool) -> Vec<Query> {
    let mut all = Vec::new();
    let with = |change: &dyn Fn(&mut Query)| {
        let mut query = query.clone();
        change(&mut query);
        query
    };
    all.extend(inner_queries(query));
    if let Body::Set { left, right, .. } = &query.body {
        all.push((**left).clone());
        all.push((**right).clone());
    }
    if query.limit.is_some() {
        all.push(with(&|query| query.limit = None));
    }
    if !query.order.is_empty() {
        all.push(with(&|query| (query.order.clear(), query.limit = None).1));
    }
    if query.limit.is_some_and(|limit| limit.offset > 0) {
        all.push(with(&|query| query.limit = query.limit.map(|limit| Limit { offset: 0, ..limit })));
    }
    let width = query.width().unwrap_or(0);
    // The surroundings of the query refer to its columns by index.
    if width > 1 && free {
        all.extend((0..width).map(|place| with(&|query| drop_column(query, place))));
    }
    match &query.body {
        Body::Select(select) => {
            let selects = smaller_selects(select, free);
            all.extend(
                selects
                    .into_iter()
                    .map(|select| Query { body: Body::Select(Box::new(select)), ..query.clone() }),
            );
        }
        Body::Set { operator, all: every, left, right } => {
            let set = |left: Query, right: Query| Query {
                body: Body::Set { operator: *operator, all: *every, left: left.into(), right: right.into() },
                ..query.clone()
            };
            all.extend(smaller(left, false).into_iter().map(|left| set(left, (**right).clone())));
            all.extend(smaller(right, false).into_iter().map(|right| set((**left).clone(), right)));
        }
    }
    all
}

/// The queries in a query, one level down: derived tables, and those in expressions.
fn inner_queries(query: &Query) -> Vec<Query> {
    let Body::Select(select) = &query.body else { return Vec::new() };
    let sources = select.from.iter().chain(select.joins.iter().map(|join| &join.source));
    let derived = sources.filter_map(|source| match &source.what {
        What::Derived(query) => Some((**query).clone()),
        What::Table(_) => None,
    });
    let exprs = select.items.iter().chain(&select.filter).chain(&select.having);
    let mut all: Vec<Query> = derived.collect();
    for expr in exprs {
        expr.walk(&mut |node| {
            if let Node::Expr(Expr { query: Some(query), .. }) = node {
                all.push((**query).clone());
            }
        });
    }
    all
}

/// The first table of a query.
fn first_table(query: &Query) -> Option<What> {
    let mut first = None;
    query.walk(&mut |node| {
        if let Node::Select(Select { from: Some(Source { what: table @ What::Table(_), .. }), .. }) = node
            && first.is_none()
        {
            first = Some(table.clone());
        }
    });
    first
}

fn drop_column(query: &mut Query, place: usize) {
    query.order.retain(|sort| sort.position != place + 1);
    for sort in &mut query.order {
        sort.position -= usize::from(sort.position > place + 1);
    }
    match &mut query.body {
        Body::Set { left, right, .. } => {
            drop_column(left, place);
            drop_column(right, place);
        }
        Body::Select(select) if place < select.items.len() => drop(select.items.remove(place)),
        Body::Select(_) => {}
    }
}

fn smaller_selects(select: &Select, free: bool) -> Vec<Select> {
    let mut all = without_clauses(select, free);
    all.extend(with_smaller_sources(select));
    all.extend(with_smaller_exprs(select, free));
    all
}

fn without_clauses(select: &Select, free: bool) -> Vec<Select> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut Select)| {
        let mut select = select.clone();
        change(&mut select);
        all.push(select);
    };
    for place in (0..select.joins.len()).rev() {
        with(&|select| drop(select.joins.remove(place)));
    }
    if let Some(filter) = &select.filter {
        with(&|select| select.filter = None);
        if free && select.group.is_empty() {
            // The condition as a column: then its parts can be extracted.
            with(&|select| {
                select.filter = None;
                (select.star, select.distinct, select.having) = (false, false, None);
                select.items = vec![filter.clone()];
            });
        }
    }
    // A HAVING over ROLLUP excludes the total of no rows, on which MariaDB differs.
    let rolled_up = select.grouping == Grouping::Rollup;
    if select.having.is_some() && !rolled_up {
        with(&|select| select.having = None);
    }
    if select.distinct {
        with(&|select| select.distinct = false);
    }
    if select.grouping != Grouping::Plain {
        with(&|select| (select.grouping, select.having) = (Grouping::Plain, None));
        with(&|select| select.grouping = Grouping::Plain);
    }
    for place in 0..select.group.len() {
        with(&|select| {
            let key = select.group.remove(place);
            if select.group.is_empty() {
                select.grouping = Grouping::Plain;
            }
            if let Some(item) = select.items.iter().position(|item| *item == key)
                && select.items.len() > 1
            {
                select.items.remove(item);
            }
        });
    }
    all
}

fn with_smaller_sources(select: &Select) -> Vec<Select> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut Select)| {
        let mut select = select.clone();
        change(&mut select);
        all.push(select);
    };
    if let Some(Join { source, .. }) = select.joins.first() {
        // Without the first source, the next one is the first.
        let source = source.clone();
        with(&|select| {
            select.from = Some(source.clone());
            select.joins.remove(0);
        });
    }
    for (place, join) in select.joins.iter().enumerate() {
        if matches!(join.kind, JoinKind::Left | JoinKind::Right | JoinKind::Full) {
            with(&|select| select.joins[place].kind = JoinKind::Inner);
        }
        if let Some(on) = &join.on {
            for smaller in smaller_exprs(on) {
                with(&|select| select.joins[place].on = Some(smaller.clone()));
            }
        }
        if let What::Derived(query) = &join.source.what {
            if let Some(table) = first_table(query) {
                with(&|select| select.joins[place].source.what = table.clone());
            }
            for query in smaller(query, false) {
                with(&|select| select.joins[place].source.what = What::Derived(Box::new(query.clone())));
            }
        }
    }
    if let Some(Source { what: What::Derived(query), .. }) = &select.from {
        if let Some(table) = first_table(query) {
            with(&|select| {
                if let Some(from) = &mut select.from {
                    from.what = table.clone();
                }
            });
        }
        for query in smaller(query, false) {
            with(&|select| {
                if let Some(from) = &mut select.from {
                    from.what = What::Derived(Box::new(query.clone()));
                }
            });
        }
    }
    all
}

fn with_smaller_exprs(select: &Select, free: bool) -> Vec<Select> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut Select)| {
        let mut select = select.clone();
        change(&mut select);
        all.push(select);
    };
    let rolled_up = select.grouping == Grouping::Rollup;
    if let Some(filter) = &select.filter {
        smaller_exprs(filter)
            .into_iter()
            .for_each(|filter| with(&|select| select.filter = Some(filter.clone())));
    }
    if let Some(having) = select.having.as_ref().filter(|_| !rolled_up) {
        smaller_exprs(having)
            .into_iter()
            .for_each(|having| with(&|select| select.having = Some(having.clone())));
    }
    for (place, item) in select.items.iter().enumerate() {
        if !select.group.contains(item) {
            // A column of the answer may change its kind.
            for arg in item.args[..touchable(item)].iter().filter(|arg| free || arg.kind == item.kind) {
                with(&|select| select.items[place] = arg.clone());
            }
            smaller_exprs(item)
                .into_iter()
                .for_each(|item| with(&|select| select.items[place] = item.clone()));
        }
    }
    for (place, key) in select.group.iter().enumerate() {
        // The key and the items that are the same stay the same.
        for smaller in smaller_exprs(key).into_iter().filter(|smaller| !matches!(smaller.op, Op::Literal(_)))
        {
            with(&|select| {
                let same = select.items.iter_mut().filter(|item| *item == key);
                same.for_each(|item| *item = smaller.clone());
                select.group[place] = smaller.clone();
            });
        }
    }
    all
}

/// Number of arguments that may change: not the sort keys of window functions.
fn touchable(expr: &Expr) -> usize {
    match &expr.op {
        Op::Window { arguments, partitions, .. } => arguments + partitions,
        _ => expr.args.len(),
    }
}

/// Expressions that are one step smaller and may take the same place.
fn smaller_exprs(expr: &Expr) -> Vec<Expr> {
    let mut all = Vec::new();
    if expr.is_leaf() {
        return all;
    }
    let fits = |arg: &&Expr| {
        arg.kind == expr.kind
            || arg.kind.is_number() && expr.kind.is_number()
            || arg.kind.is_time() && expr.kind.is_time()
    };
    let touched = touchable(expr);
    all.extend(expr.args[..touched].iter().filter(fits).cloned());
    all.push(Expr::literal(plainest(expr.kind), expr.kind));
    if expr.kind == Kind::Int {
        // Preserves differences at zero only.
        all.push(Expr::literal(Literal::Int(0), Kind::Int));
    }
    all.push(Expr::null(expr.kind));
    let mut with = |change: &dyn Fn(&mut Expr)| {
        let mut expr = expr.clone();
        change(&mut expr);
        all.push(expr);
    };
    match &expr.op {
        Op::In { .. } if expr.args.len() > 2 => {
            (1..expr.args.len()).for_each(|place| with(&|expr| drop(expr.args.remove(place))));
        }
        Op::Case { operand, otherwise: true } if expr.args.len() > 2 => {
            let operand = *operand;
            with(&|expr| {
                expr.args.pop();
                expr.op = Op::Case { operand, otherwise: false };
            });
        }
        Op::Aggregate { name, distinct: true } => {
            let op = Op::Aggregate { name, distinct: false };
            with(&|expr| expr.op = op.clone());
        }
        Op::GroupConcat { distinct, descending } if *distinct || *descending => {
            with(&|expr| expr.op = Op::GroupConcat { distinct: false, descending: false });
        }
        Op::Window { arguments, partitions: 1, .. } => {
            let place = *arguments;
            with(&|expr| {
                expr.args.remove(place);
                if let Op::Window { partitions, .. } = &mut expr.op {
                    *partitions = 0;
                }
            });
        }
        _ => {}
    }
    if let Some(query) = &expr.query {
        let free = matches!(expr.op, Op::Exists { .. });
        let queries = smaller(query, free).into_iter();
        queries.for_each(|query| with(&|expr| expr.query = Some(Box::new(query.clone()))));
    }
    for place in 0..touched {
        for smaller in smaller_exprs(&expr.args[place]) {
            with(&|expr| expr.args[place] = smaller.clone());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features;
    use crate::generate::{self, Audience, Generator};
    use crate::print;
    use crate::schema::Dialect;

    #[test]
    fn what_a_query_is_shrunk_to_is_what_the_difference_needs() {
        let mut shrunk = 0;
        for seed in 0..30 {
            let schema = generate::schema(seed);
            let mut generator = Generator::new(seed, &schema, Audience::MariaDb);
            for _ in 0..40 {
                let query = generator.query();
                if !features::of(&query).contains("fn:COALESCE") {
                    continue;
                }
                let small =
                    super::query(&query, 5000, &mut |query| features::of(query).contains("fn:COALESCE"));
                let text = print::query(&small, Dialect::Ours);
                // A branch of a set operation, a condition of a join, a HAVING and what names a column of
                // the query around it stay where they are.
                let correlated = features::of(&small).contains("query:correlated");
                let plain = !correlated && !text.contains(" JOIN ") && !text.contains(" HAVING ");
                if plain && small.select().is_some_and(|select| select.group.is_empty()) {
                    assert!(text.starts_with("SELECT COALESCE("), "{text}");
                    assert_eq!(text.matches("SELECT").count(), 1, "{text}");
                    shrunk += 1;
                }
            }
        }
        assert!(shrunk > 20, "{shrunk} queries have the function");
    }

    #[test]
    fn no_step_leaves_a_limit_without_an_order() {
        for seed in 0..30 {
            let schema = generate::schema(seed);
            let mut generator = Generator::new(seed, &schema, Audience::MariaDb);
            for _ in 0..20 {
                let query = generator.query();
                assert!(is_one_answer(&query));
                super::query(&query, 200, &mut |smaller| {
                    assert!(is_one_answer(smaller), "{}", print::query(smaller, Dialect::Ours));
                    false
                });
            }
        }
    }

    #[test]
    fn tables_are_shrunk_to_the_rows_that_the_difference_needs() {
        let whole = (0..50).map(generate::schema).find(|schema| schema.tables[0].rows.len() > 8);
        let whole = whole.expect("a table of many rows");
        let mut select = Select { star: false, ..Select::default() };
        let column = Op::Column { table: Some("r1".to_owned()), name: "k".to_owned() };
        select.items.push(Expr::new(column, crate::schema::Kind::Int, Vec::new()));
        select.from = Some(Source { what: What::Table("t0".to_owned()), alias: "r1".to_owned() });
        let needed = whole.tables[0].rows[5][0].clone();
        let small = super::schema(&whole, &Query::of(select), 200, &mut |schema| {
            schema.tables[0].rows.iter().any(|row| row[0] == needed)
        });
        assert_eq!(small.tables.len(), 1);
        assert_eq!(small.tables[0].columns.len(), 1);
        assert_eq!(small.tables[0].rows, [[needed]]);
    }
}
