//! Random queries.

use super::expr::Room;
use super::{Generator, Scope, Visible};
use crate::ast::*;
use crate::kinds;
use crate::print::BOUNDS;
use crate::schema::Kind;

/// How deep expressions of a SELECT list and of a WHERE are.
const DEPTH: u32 = 3;

impl Generator<'_> {
    /// A query for all sides.
    pub fn query(&mut self) -> Query {
        let mut query = match self.below(10) {
            0 | 1 => self.set_operation(),
            2..=4 => self.grouped(None, 2),
            5 | 6 => self.windowed(),
            _ => self.plain(),
        };
        self.sort(&mut query);
        query
    }

    /// A query whose rows can be split by a condition: its select without a filter, and the condition.
    pub fn split(&mut self) -> (Select, Expr) {
        let (mut select, scope) = self.from(2, true);
        for _ in 0..=self.below(2) {
            let kind = self.any_kind();
            select.items.push(self.expr(&scope, kind, Room::flat(1)));
        }
        let condition = self.expr(&scope, Kind::Bool, Room { depth: DEPTH + 1, queries: 1 });
        (select, condition)
    }

    /// A query without grouping or windows, for its alternative forms.
    pub fn simple(&mut self) -> Query {
        let mut query = self.plain();
        self.sort(&mut query);
        query
    }

    fn sort(&mut self, query: &mut Query) {
        let rolled_up = query.select().is_some_and(|select| select.grouping != Grouping::Plain);
        let Some(width) = query.width() else { return };
        // MariaDB does not sort the result of ROLLUP.
        if rolled_up && self.is_mariadb() || !self.chance(35) {
            return;
        }
        query.order = (1..=width).map(|position| Sort { position, descending: self.chance(40) }).collect();
        // Any column may be first.
        let first = self.below(width);
        query.order.swap(0, first);
        if self.chance(50) {
            let offset = if self.chance(30) { self.below(3) as u64 } else { 0 };
            query.limit = Some(Limit { rows: self.below(5) as u64, offset });
        }
    }

    fn table(&mut self) -> (Source, Vec<Visible>) {
        let schema = self.schema;
        let table = self.pick(&schema.tables);
        let alias = self.alias();
        let visible = table.columns.iter().map(|column| Visible {
            table: Some(alias.clone()),
            name: column.name.clone(),
            kind: column.column_type.kind(),
        });
        let visible = visible.collect();
        (Source { what: What::Table(table.name.clone()), alias }, visible)
    }

    fn source(&mut self, nesting: u32) -> (Source, Vec<Visible>) {
        if nesting == 0 || !self.chance(15) {
            return self.table();
        }
        let mut query = match self.below(4) {
            0 => self.set_operation(),
            1 => self.grouped(None, 0),
            _ => self.selected(0),
        };
        self.sort(&mut query);
        let alias = self.alias();
        let kinds = kinds::of(&query);
        let visible = kinds.into_iter().enumerate().map(|(place, kind)| Visible {
            table: Some(alias.clone()),
            name: format!("c{place}"),
            kind,
        });
        let visible = visible.collect();
        (Source { what: What::Derived(Box::new(query)), alias }, visible)
    }

    /// A select with sources only, and what can be named in it.
    fn from(&mut self, joins: usize, windows: bool) -> (Select, Scope) {
        let (first, mut columns) = self.source(u32::from(windows));
        let mut select = Select { from: Some(first), ..Select::default() };
        let count = if self.chance(45) { self.below(joins + 1) } else { 0 };
        for _ in 0..count {
            self.join(&mut select, &mut columns);
        }
        (select, Scope { columns, outer: Vec::new() })
    }

    fn join(&mut self, select: &mut Select, columns: &mut Vec<Visible>) {
        let (source, added) = self.source(0);
        let kinds: &[JoinKind] = if self.is_mariadb() {
            &[
                JoinKind::Inner,
                JoinKind::Inner,
                JoinKind::Left,
                JoinKind::Left,
                JoinKind::Right,
                JoinKind::Cross,
            ]
        } else {
            &[
                JoinKind::Inner,
                JoinKind::Left,
                JoinKind::Right,
                JoinKind::Full,
                JoinKind::Full,
                JoinKind::Cross,
            ]
        };
        let kind = *self.pick(kinds);
        let mut join = Join { kind, source, on: None, using: Vec::new() };
        let is_table = |source: &Source| matches!(source.what, What::Table(_));
        let using = select.joins.is_empty() && select.from.as_ref().is_some_and(is_table);
        // The name of an earlier USING that the new table has, too, is ambiguous from here on.
        columns.retain(|column| column.table.is_some() || added.iter().all(|new| new.name != column.name));
        if kind != JoinKind::Cross && using && self.chance(30) {
            join.using =
                if self.chance(70) { vec!["k".to_owned()] } else { vec!["k".to_owned(), "g".to_owned()] };
            columns.extend(added);
            for name in &join.using {
                let kind = if name == "k" { Kind::Int } else { Kind::Text };
                columns.push(Visible { table: None, name: name.clone(), kind });
                // The merged column is the one that counts; each side's own has other meanings elsewhere.
                columns.retain(|column| column.table.is_none() || column.name != *name);
            }
        } else if kind != JoinKind::Cross {
            join.on = Some(self.join_condition(columns, &added, kind));
            columns.extend(added);
        } else {
            columns.extend(added);
        }
        select.joins.push(join);
    }

    fn join_condition(&mut self, left: &[Visible], right: &[Visible], kind: JoinKind) -> Expr {
        let pairs: Vec<(&Visible, &Visible)> = left
            .iter()
            .flat_map(|left| right.iter().map(move |right| (left, right)))
            .filter(|(left, right)| {
                left.kind == right.kind || left.kind.is_number() && right.kind.is_number()
            })
            .collect();
        let equality = |(left, right): (&Visible, &Visible)| {
            let form = &super::functions::COMPARISONS[0];
            Expr::new(Op::Form(form), Kind::Bool, vec![left.expr(), right.expr()])
        };
        let scope = Scope { columns: [left, right].concat(), outer: Vec::new() };
        let free = |this: &mut Self| this.expr(&scope, Kind::Bool, Room::flat(2));
        if pairs.is_empty() || self.chance(15) && kind != JoinKind::Full {
            return if pairs.is_empty() && kind == JoinKind::Full { always() } else { free(self) };
        }
        let pair = pairs[self.below(pairs.len())];
        if self.chance(70) {
            return equality(pair);
        }
        let junction = &super::functions::JUNCTIONS[0];
        let rest = free(self);
        Expr::new(Op::Form(junction), Kind::Bool, vec![equality(pair), rest])
    }

    /// SELECT … FROM … WHERE, nothing else.
    fn selected(&mut self, queries: u32) -> Query {
        let (mut select, scope) = self.from(2, queries > 0);
        let room = Room { depth: DEPTH, queries };
        for _ in 0..=self.below(3) {
            let kind = self.any_kind();
            select.items.push(self.expr(&scope, kind, room));
        }
        if self.chance(60) {
            select.filter = Some(self.expr(&scope, Kind::Bool, room));
        }
        select.distinct = self.chance(15);
        Query::of(select)
    }

    fn plain(&mut self) -> Query {
        if self.chance(6) {
            // Constants alone.
            let scope = Scope::default();
            let mut select = Select::default();
            for _ in 0..=self.below(4) {
                let kind = self.any_kind();
                select.items.push(self.expr(&scope, kind, Room::flat(DEPTH)));
            }
            return Query::of(select);
        }
        let mut query = self.selected(2);
        if self.chance(8)
            && let Body::Select(select) = &mut query.body
            && !select.distinct
        {
            select.star = true;
            select.items.clear();
        }
        query
    }

    /// A query of one column for IN, ANY, ALL and EXISTS.
    pub(super) fn column_query(&mut self, around: &Scope, kind: Kind, room: Room) -> Query {
        let (mut select, mut scope) = self.from(1, false);
        let flat = Room { depth: room.depth.min(1), queries: room.queries.saturating_sub(1) };
        select.items.push(self.expr(&scope, kind, flat));
        if self.chance(60) {
            if self.chance(40) {
                scope.outer = around.with_tables();
            }
            select.filter = Some(self.expr(&scope, Kind::Bool, Room { depth: 2, ..flat }));
        }
        Query::of(select)
    }

    /// A query of one row and one column.
    pub(super) fn scalar_query(&mut self, around: &Scope, kind: Kind, room: Room) -> Expr {
        let (mut select, mut scope) = self.from(1, false);
        let inner = self.expr(&scope, kind, Room::flat(1));
        let (name, kind) = match kind {
            Kind::Int if self.chance(40) => ("COUNT", Kind::Int),
            Kind::Int | Kind::Decimal | Kind::Double if self.chance(40) => ("SUM", kind),
            _ => (*self.pick(&["MIN", "MAX"]), kind),
        };
        select.items.push(Expr::new(Op::Aggregate { name, distinct: false }, kind, vec![inner]));
        if self.chance(60) {
            if self.chance(50) {
                scope.outer = around.with_tables();
            }
            let flat = Room { depth: 2, queries: room.queries.saturating_sub(1) };
            select.filter = Some(self.expr(&scope, Kind::Bool, flat));
        }
        Expr::with_query(Op::Scalar, kind, Vec::new(), Query::of(select))
    }

    fn set_operation(&mut self) -> Query {
        let width = 1 + self.below(3);
        let kinds: Vec<Kind> = (0..width).map(|_| self.any_kind()).collect();
        let mut query = self.branch(&kinds);
        for _ in 0..=self.below(2) {
            let right = self.branch(&kinds);
            let operator = *self.pick(&[
                SetOperator::Union,
                SetOperator::Union,
                SetOperator::Intersect,
                SetOperator::Except,
            ]);
            // ALL of the others is refused.
            let all = self.chance(if operator == SetOperator::Union { 45 } else { 2 });
            let (left, right) = (Box::new(query), Box::new(right));
            query = Query { body: Body::Set { operator, all, left, right }, order: Vec::new(), limit: None };
        }
        query
    }

    fn branch(&mut self, kinds: &[Kind]) -> Query {
        if self.chance(20) && (self.is_mariadb() || !kinds.contains(&Kind::Bool)) {
            return self.grouped(Some(kinds), 0);
        }
        let (mut select, scope) = self.from(1, false);
        for &kind in kinds {
            let kind = match kind {
                kind if kind.is_number() && self.chance(40) => self.number_kind(),
                Kind::Date if self.is_mariadb() && self.chance(20) => Kind::DateTime,
                kind => kind,
            };
            select.items.push(self.expr(&scope, kind, Room::flat(1)));
        }
        if self.chance(40) {
            select.filter = Some(self.expr(&scope, Kind::Bool, Room::flat(2)));
        }
        Query::of(select)
    }

    fn aggregate(&mut self, scope: &Scope, kind: Kind) -> Expr {
        let room = Room::flat(2);
        let op = |name, distinct| Op::Aggregate { name, distinct };
        match self.below(10) {
            0 => Expr::new(op("COUNT", false), Kind::Int, Vec::new()),
            1 | 2 => {
                let of = self.any_kind();
                let distinct = self.chance(50);
                Expr::new(op("COUNT", distinct), Kind::Int, vec![self.expr(scope, of, room)])
            }
            3 | 4 => {
                let of = self.number_kind();
                let distinct = of != Kind::Double && self.chance(25);
                Expr::new(op("SUM", distinct), of, vec![self.expr(scope, of, room)])
            }
            5 => {
                let of = self.number_kind();
                let names = ["AVG", "AVG", "AVG", "STDDEV_POP", "VAR_POP", "VAR_SAMP", "STDDEV_SAMP"];
                let name = *self.pick(&names);
                let of =
                    if name == "AVG" && of == Kind::Decimal && !self.is_mariadb() { Kind::Int } else { of };
                let aggregate = Expr::new(op(name, false), Kind::Double, vec![self.expr(scope, of, room)]);
                if name == "AVG" && aggregate.args[0].kind == Kind::Decimal {
                    // The mean of decimals is a decimal, of as many digits as each side likes.
                    let digits = Expr::literal(Literal::Int(2), Kind::Int);
                    return Expr::new(Op::Call("ROUND"), Kind::Double, vec![aggregate, digits]);
                }
                aggregate
            }
            6 => {
                let op = Op::GroupConcat { distinct: self.chance(40), descending: self.chance(40) };
                Expr::new(op, Kind::Text, vec![self.expr(scope, Kind::Text, room)])
            }
            _ => {
                // DuckDB orders booleans, and so does MariaDB; MIN and MAX of them are numbers there.
                let of = if kind == Kind::Bool { Kind::Int } else { kind };
                let name = *self.pick(&["MIN", "MAX"]);
                Expr::new(op(name, false), of, vec![self.expr(scope, of, room)])
            }
        }
    }

    /// A query with GROUP BY, or with aggregates over all rows.
    fn grouped(&mut self, kinds: Option<&[Kind]>, queries: u32) -> Query {
        let (mut select, scope) = self.from(2, queries > 0);
        if self.chance(40) {
            select.filter = Some(self.expr(&scope, Kind::Bool, Room { depth: 2, queries: queries.min(1) }));
        }
        if let Some(kinds) = kinds {
            // For a branch of a set operation: one aggregate of each kind.
            for &kind in kinds {
                let kind = if kind == Kind::Bool { Kind::Int } else { kind };
                let name = *self.pick(&["MIN", "MAX"]);
                let arg = self.expr(&scope, kind, Room::flat(1));
                select.items.push(Expr::new(Op::Aggregate { name, distinct: false }, kind, vec![arg]));
            }
            return Query::of(select);
        }
        let keys = if self.chance(20) { 0 } else { 1 + self.below(2) };
        for _ in 0..keys {
            let kind = self.any_kind();
            let depth = u32::from(self.chance(35));
            let key = self.expr(&scope, kind, Room::flat(depth));
            // A constant in GROUP BY is a position.
            if matches!(key.op, Op::Column { .. }) || has_column(&key) {
                select.group.push(key);
            }
        }
        select.group.dedup();
        select.items.extend(select.group.iter().cloned());
        for _ in 0..=self.below(3) {
            let kind = self.any_kind();
            select.items.push(self.aggregate(&scope, kind));
        }
        if !select.group.is_empty() {
            select.grouping = match self.below(10) {
                0 | 1 if queries > 0 => Grouping::Rollup,
                2 if queries > 0 && !self.is_mariadb() => Grouping::Cube,
                3 | 4 if queries > 0 && !self.is_mariadb() => {
                    let all: Vec<usize> = (0..select.group.len()).collect();
                    let mut sets = vec![all, Vec::new()];
                    sets.push(vec![self.below(select.group.len())]);
                    Grouping::Sets(sets)
                }
                _ => Grouping::Plain,
            };
        }
        if self.chance(30) {
            let form = &super::functions::COMPARISONS[self.below(6)];
            let kind = self.number_kind();
            let left = self.aggregate(&scope, kind);
            let right = self.literal(if left.kind == Kind::Bool { Kind::Int } else { left.kind });
            select.having = Some(Expr::new(Op::Form(form), Kind::Bool, vec![left, right]));
        }
        if select.grouping == Grouping::Rollup && self.is_mariadb() {
            select.having = Some(not_of_nothing(select.having.take()));
        }
        Query::of(select)
    }

    fn windowed(&mut self) -> Query {
        let (mut select, scope) = self.from(1, true);
        for _ in 0..=self.below(2) {
            let kind = self.any_kind();
            select.items.push(self.expr(&scope, kind, Room::flat(1)));
        }
        let mut order = None;
        for _ in 0..=self.below(2) {
            select.items.push(self.window(&scope, &mut order));
        }
        if self.chance(40) {
            select.filter = Some(self.expr(&scope, Kind::Bool, Room::flat(2)));
        }
        select.distinct = self.chance(8);
        Query::of(select)
    }

    fn order(&mut self, scope: &Scope) -> Order {
        let partition = self.chance(55) && !scope.columns.is_empty();
        let partition = partition.then(|| self.pick(&scope.columns).expr());
        let mut keys: Vec<&Visible> = scope.columns.iter().collect();
        if !keys.is_empty() {
            let first = self.below(keys.len());
            keys.swap(0, first);
        }
        Order { partition, keys: keys.into_iter().map(|key| (key.expr(), self.chance(35))).collect() }
    }

    /// A window function. All those of a query that distinguish equal rows sort them alike, by `order`: otherwise each could take
    /// another of them for the first.
    fn window(&mut self, scope: &Scope, order: &mut Option<Order>) -> Expr {
        let kind = self.any_kind();
        let kind = if kind == Kind::Bool { Kind::Int } else { kind };
        let number = self.number_kind();
        let value = self.expr(scope, kind, Room::flat(1));
        let summand = self.expr(scope, number, Room::flat(1));
        // As above, the mean of decimals is left out.
        let mean = self.pick(&[Kind::Int, Kind::Double]);
        let averaged = self.expr(scope, *mean, Room::flat(1));
        let count = |this: &mut Self| Expr::literal(Literal::Int(1 + this.below(3) as i64), Kind::Int);
        let steps = *self.pick(&["LAG", "LEAD"]);
        let ends = *self.pick(&["FIRST_VALUE", "LAST_VALUE"]);
        let ranks = *self.pick(&["RANK", "DENSE_RANK"]);
        let shares = *self.pick(&["PERCENT_RANK", "CUME_DIST"]);
        // The name, its arguments, the result's kind, whether it must see one order, whether it has a frame.
        let (name, args, result, total, framed) = match self.below(12) {
            0 => ("ROW_NUMBER", Vec::new(), Kind::Int, true, false),
            1 | 2 => (ranks, Vec::new(), Kind::Int, false, false),
            3 => (shares, Vec::new(), Kind::Double, false, false),
            4 => ("NTILE", vec![count(self)], Kind::Int, true, false),
            5 => (steps, vec![value, count(self)], kind, true, false),
            6 => (ends, vec![value], kind, true, true),
            7 | 8 => ("SUM", vec![summand], number, false, true),
            9 => ("AVG", vec![averaged], Kind::Double, false, true),
            10 => ("COUNT", if self.chance(50) { Vec::new() } else { vec![value] }, Kind::Int, false, true),
            _ => (*self.pick(&["MIN", "MAX"]), vec![value], kind, false, true),
        };
        let mut frame = Frame::None;
        if framed && self.chance(60) {
            frame = match self.below(4) {
                0 => Frame::RangeToCurrent,
                1 => Frame::RangeAll,
                _ => {
                    let from = self.below(BOUNDS.len() - 1);
                    let to = from.max(1) + self.below(BOUNDS.len() - from.max(1));
                    Frame::Rows(from as u8, to as u8)
                }
            };
        }
        let total = total || matches!(frame, Frame::Rows(..));
        let own = self.order(scope);
        let mut order = if total { order.get_or_insert(own).clone() } else { own };
        let ranked = matches!(name, "RANK" | "DENSE_RANK" | "PERCENT_RANK" | "CUME_DIST");
        if !total {
            let some = ranked || frame == Frame::RangeToCurrent || self.chance(60);
            order.keys.truncate(usize::from(some));
        }
        let arguments = args.len();
        let partitions = usize::from(order.partition.is_some());
        let descending = order.keys.iter().map(|(_, descending)| *descending).collect();
        let mut all = args;
        all.extend(order.partition);
        all.extend(order.keys.into_iter().map(|(key, _)| key));
        Expr::new(Op::Window { name, arguments, partitions, descending, frame }, result, all)
    }
}

/// The partition keys of a window, and all columns as sort keys.
#[derive(Clone, Debug)]
struct Order {
    partition: Option<Expr>,
    /// With whether it is descending.
    keys: Vec<(Expr, bool)>,
}

/// A HAVING that excludes the total of no rows, which MariaDB does not produce.
fn not_of_nothing(having: Option<Expr>) -> Expr {
    let boolean = |form, args| Expr::new(Op::Form(form), Kind::Bool, args);
    let count = Op::Aggregate { name: "COUNT", distinct: false };
    let count = Expr::new(count, Kind::Int, Vec::new());
    let zero = Expr::literal(Literal::Int(0), Kind::Int);
    let some = boolean(&super::functions::COMPARISONS[4], vec![count, zero]);
    match having {
        None => some,
        Some(having) => boolean(&super::functions::JUNCTIONS[0], vec![some, having]),
    }
}

fn always() -> Expr {
    Expr::literal(Literal::Bool(true), Kind::Bool)
}

fn has_column(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |node| {
        found |= matches!(node, Node::Expr(Expr { op: Op::Column { .. }, .. }));
    });
    found
}
