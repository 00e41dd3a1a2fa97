//! Neighbouring inner joins as relations and conditions, and joins of them in another order.
//!
//! Keys that are equal by some of the conditions are a class: `a = b AND b = c` says also `a = c`, so each of the three can be joined
//! with each other, and two of the three conditions are enough. Each relation has one key in a class; then a join of two sets of
//! relations needs one equality for each class that has keys in both, and all keys of a class are equal in the end.

use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, DFSchema, DFSchemaRef, JoinConstraint, JoinType, NullEquality, Result};
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{
    Expr, ExprSchemable, Filter, Join, LogicalPlan, Operator, Projection, binary_expr,
};
use std::sync::Arc;

/// Relations of a region, at most; they are bits of a number.
const RELATIONS_MAX: usize = 40;

/// Relations by their numbers, as bits.
pub(super) type Set = u64;

/// An order of joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Relation(usize),
    Join(Box<Order>, Box<Order>),
}

impl Order {
    pub fn join(left: Self, right: Self) -> Self {
        Self::Join(Box::new(left), Box::new(right))
    }
}

/// Keys that are equal, each of another relation.
#[derive(Debug)]
pub(super) struct Class {
    pub keys: Vec<(usize, Expr)>,
}

impl Class {
    pub fn relations(&self) -> Set {
        self.keys.iter().fold(0, |set, (relation, _)| set | 1 << *relation)
    }

    /// The key of one of these relations, if any has one: a column if possible.
    fn key_of(&self, relations: Set) -> Option<&Expr> {
        let mut keys = self.keys.iter().filter(|(relation, _)| relations & 1 << *relation != 0);
        let is_column = |(_, key): &&(usize, Expr)| matches!(key, Expr::Column(_));
        keys.clone().find(is_column).or_else(|| keys.next()).map(|(_, key)| key)
    }
}

/// A condition that is no equality of two relations' keys.
#[derive(Debug)]
pub(super) struct Condition {
    /// The relations that it asks.
    pub relations: Set,
    expr: Expr,
}

/// Inner joins next to each other.
#[derive(Debug)]
pub(super) struct Region {
    pub relations: Vec<LogicalPlan>,
    pub classes: Vec<Class>,
    pub conditions: Vec<Condition>,
    pub written: Order,
}

impl Region {
    /// The region whose last join this is; `None` if its order can't or need not change.
    pub fn of(plan: &LogicalPlan) -> Option<Self> {
        let mut parts = Parts::default();
        let written = parts.take_apart(plan);
        if parts.relations.len() < 3 {
            return None;
        }
        let schema = all_columns(&parts.relations)?;
        let mut pairs: Vec<[(usize, &Expr); 2]> = Vec::new();
        let mut conditions = Vec::new();
        let mut asked = |expr: Expr| -> Option<()> {
            let relations = relations_of(&expr, &parts.relations)?;
            conditions.push(Condition { relations, expr });
            Some(())
        };
        for (left, right) in &parts.keys {
            let of = |key| relations_of(key, &parts.relations);
            match (single(of(left)?), single(of(right)?)) {
                (Some(one), Some(other)) if one != other => pairs.push([(one, left), (other, right)]),
                _ => asked(binary_expr(left.clone(), Operator::Eq, right.clone()))?,
            }
        }
        parts.conditions.iter().try_for_each(|condition| asked(condition.clone()))?;
        let classes = classes(&pairs, &schema);
        Some(Self { relations: parts.relations, classes, conditions, written })
    }

    /// The joins in this order, with the columns in the order of `schema`.
    pub fn plan(&self, order: &Order, schema: &DFSchemaRef) -> Result<LogicalPlan> {
        let (plan, _) = self.joined(order)?;
        if plan.schema().columns() == schema.columns() {
            return Ok(plan);
        }
        Ok(LogicalPlan::Projection(Projection::new_from_schema(Arc::new(plan), Arc::clone(schema))))
    }

    fn joined(&self, order: &Order) -> Result<(LogicalPlan, Set)> {
        let (left, right) = match order {
            Order::Relation(number) => return Ok((self.relation(*number)?, 1 << *number)),
            Order::Join(left, right) => (self.joined(left)?, self.joined(right)?),
        };
        let all = left.1 | right.1;
        let equal = |class: &Class| Some((class.key_of(left.1)?.clone(), class.key_of(right.1)?.clone()));
        let is_here = |condition: &&Condition| {
            let of = condition.relations;
            of & !all == 0 && of & !left.1 != 0 && of & !right.1 != 0
        };
        let conditions = self.conditions.iter().filter(is_here).map(|condition| condition.expr.clone());
        let join = Join::try_new(
            Arc::new(left.0),
            Arc::new(right.0),
            self.classes.iter().filter_map(equal).collect(),
            conjunction(conditions),
            JoinType::Inner,
            JoinConstraint::On,
            NullEquality::NullEqualsNothing,
            false,
        )?;
        Ok((LogicalPlan::Join(join), all))
    }

    /// A relation with the conditions that ask nothing else.
    fn relation(&self, number: usize) -> Result<LogicalPlan> {
        let plan = self.relations[number].clone();
        let own = self.conditions.iter().filter(|condition| condition.relations == 1 << number);
        match conjunction(own.map(|condition| condition.expr.clone())) {
            Some(condition) => Ok(LogicalPlan::Filter(Filter::try_new(condition, Arc::new(plan))?)),
            None => Ok(plan),
        }
    }
}

/// The parts that joins consist of.
#[derive(Default)]
struct Parts {
    relations: Vec<LogicalPlan>,
    keys: Vec<(Expr, Expr)>,
    conditions: Vec<Expr>,
    joins: usize,
}

impl Parts {
    fn take_apart(&mut self, plan: &LogicalPlan) -> Order {
        match movable(plan) {
            // There is one relation more than joins.
            Some(join) if self.joins + 1 < RELATIONS_MAX => {
                self.joins += 1;
                self.keys.extend(join.on.iter().cloned());
                let conditions = join.filter.iter().flat_map(split_conjunction);
                self.conditions.extend(conditions.cloned());
                let left = self.take_apart(&join.left);
                Order::join(left, self.take_apart(&join.right))
            }
            _ => {
                self.relations.push(plan.clone());
                Order::Relation(self.relations.len() - 1)
            }
        }
    }
}

/// The inner join that a plan is, below projections that only leave out columns, if its sides may be joined with others first.
fn movable(plan: &LogicalPlan) -> Option<&Join> {
    match plan {
        LogicalPlan::Join(join) => {
            let mut exprs = join.on.iter().flat_map(|(left, right)| [left, right]).chain(&join.filter);
            let is_movable = join.join_type == JoinType::Inner
                && !join.on.is_empty()
                && join.null_equality == NullEquality::NullEqualsNothing
                && exprs.all(is_plain);
            is_movable.then_some(join)
        }
        LogicalPlan::Projection(projection) if leaves_out_only(projection) => movable(&projection.input),
        _ => None,
    }
}

/// Whether an expression has the same value for the same row wherever it is computed, and asks nothing but the row.
fn is_plain(expr: &Expr) -> bool {
    let asks_more = expr.exists(|expr| {
        Ok(expr.is_volatile_node()
            || matches!(
                expr,
                Expr::ScalarSubquery(_)
                    | Expr::InSubquery(_)
                    | Expr::Exists(_)
                    | Expr::SetComparison(_)
                    | Expr::OuterReferenceColumn(..)
                    | Expr::Placeholder(_)
            ))
    });
    matches!(asks_more, Ok(false))
}

/// Whether the columns of a projection are columns of its input with their names.
fn leaves_out_only(projection: &Projection) -> bool {
    let input = projection.input.schema();
    projection.expr.iter().enumerate().all(|(at, expr)| {
        let Expr::Column(column) = expr else { return false };
        let Some(from) = input.maybe_index_of_column(column) else { return false };
        let (table, field) = input.qualified_field(from);
        let (shown_table, shown) = projection.schema.qualified_field(at);
        table == shown_table && field.name() == shown.name()
    })
}

/// The columns of all relations; `None` if two have one name.
fn all_columns(relations: &[LogicalPlan]) -> Option<DFSchema> {
    let (first, others) = relations.split_first()?;
    let first = first.schema().as_ref().clone();
    let all = others.iter().try_fold(first, |all, relation| all.join(relation.schema())).ok()?;
    all.check_names().ok()?;
    Some(all)
}

/// The relations that an expression asks; `None` if it asks none, or a column can't be told.
fn relations_of(expr: &Expr, relations: &[LogicalPlan]) -> Option<Set> {
    let mut set = 0;
    for column in expr.column_refs() {
        let mut having = (0..relations.len()).filter(|at| relations[*at].schema().has_column(column));
        set |= 1 << having.next()?;
        if having.next().is_some() {
            return None;
        }
    }
    (set != 0).then_some(set)
}

fn single(set: Set) -> Option<usize> {
    set.is_power_of_two().then(|| set.trailing_zeros() as usize)
}

/// Classes of keys that pairs of them make equal.
fn classes(pairs: &[[(usize, &Expr); 2]], schema: &DFSchema) -> Vec<Class> {
    let mut classes: Vec<(Class, Vec<usize>)> = Vec::new();
    for (number, pair) in pairs.iter().enumerate() {
        let mut joined = (Class { keys: Vec::new() }, vec![number]);
        if is_transitive(pair, schema) {
            let is_shared = |(class, of): &(Class, Vec<usize>)| {
                of.iter().all(|pair| is_transitive(&pairs[*pair], schema))
                    && class
                        .keys
                        .iter()
                        .any(|(at, key)| pair.iter().any(|(of, expr)| at == of && key == *expr))
            };
            let (shared, others): (Vec<_>, Vec<_>) = classes.into_iter().partition(is_shared);
            classes = others;
            for (class, of) in shared {
                joined.0.keys.extend(class.keys);
                joined.1.extend(of);
            }
        }
        for (relation, key) in pair {
            if !joined.0.keys.iter().any(|(at, known)| at == relation && known == *key) {
                joined.0.keys.push((*relation, (*key).clone()));
            }
        }
        classes.push(joined);
    }
    let single = |pair: &[(usize, &Expr); 2]| Class { keys: pair.map(|(at, key)| (at, key.clone())).into() };
    let split = |(class, of): (Class, Vec<usize>)| {
        // Two keys of one relation are equal because of others: that a join of these two sets can't say.
        match class.relations().count_ones() as usize == class.keys.len() {
            true => vec![class],
            false => of.into_iter().map(|pair| single(&pairs[pair])).collect(),
        }
    };
    classes.into_iter().flat_map(split).collect()
}

/// Whether equality of these keys says that what equals one equals the other: not of floating-point numbers, and not of types that
/// are compared as something else.
fn is_transitive(pair: &[(usize, &Expr); 2], schema: &DFSchema) -> bool {
    let [one, other] = pair.map(|(_, key)| key.get_type(schema));
    matches!((one, other), (Ok(one), Ok(other)) if one == other && !one.is_floating() && !one.is_nested())
}

/// The relation of the inner joins on the left of a semi-join or anti-join that has all columns it asks there.
pub(super) fn place_below(join: &Join) -> Option<&LogicalPlan> {
    let columns = asked_left(join)?;
    let mut place = movable(&join.left).and_then(|inner| side_with(inner, &columns))?;
    while let Some(next) = movable(place).and_then(|inner| side_with(inner, &columns)) {
        place = next;
    }
    // Between two relations, it is not known which of them has fewer rows.
    movable(place).is_none().then_some(place)
}

/// The columns of its left side that a semi-join asks; `None` if it does not filter row by row.
fn asked_left(join: &Join) -> Option<Vec<Column>> {
    let is_filter = !join.null_aware
        && !join.on.is_empty()
        && join.on.iter().flat_map(|(left, right)| [left, right]).chain(&join.filter).all(is_plain);
    let mut columns: Vec<&Column> = join.on.iter().flat_map(|(left, _)| left.column_refs()).collect();
    for column in join.filter.iter().flat_map(Expr::column_refs) {
        match (join.left.schema().has_column(column), join.right.schema().has_column(column)) {
            (true, false) => columns.push(column),
            (false, true) => {}
            _ => return None,
        }
    }
    (is_filter && !columns.is_empty()).then(|| columns.into_iter().cloned().collect())
}

fn side_with<'a>(join: &'a Join, columns: &[Column]) -> Option<&'a LogicalPlan> {
    let has_all = |side: &&LogicalPlan| columns.iter().all(|column| side.schema().has_column(column));
    let [left, right] = [join.left.as_ref(), join.right.as_ref()];
    let has_some = |side: &LogicalPlan| columns.iter().any(|column| side.schema().has_column(column));
    match has_some(left) && has_some(right) {
        true => None,
        false => [left, right].into_iter().find(has_all),
    }
}

/// The inner joins on the left of a semi-join, with the semi-join where [`place_below`] is.
pub(super) fn put_below(join: Join) -> Result<LogicalPlan> {
    let columns = asked_left(&join).unwrap_or_default();
    let left = Arc::clone(&join.left);
    put(left, &columns, join)
}

fn put(plan: Arc<LogicalPlan>, columns: &[Column], semi: Join) -> Result<LogicalPlan> {
    let side = movable(&plan).and_then(|inner| Some((inner, side_with(inner, columns)?)));
    let is_left = side.map(|(inner, side)| std::ptr::eq(side, inner.left.as_ref()));
    let Some(is_left) = is_left else {
        return over(plan, semi);
    };
    match Arc::unwrap_or_clone(plan) {
        LogicalPlan::Projection(mut projection) => {
            projection.input = Arc::new(put(projection.input, columns, semi)?);
            Ok(LogicalPlan::Projection(projection))
        }
        LogicalPlan::Join(mut inner) => {
            let side = if is_left { &mut inner.left } else { &mut inner.right };
            let below = put(Arc::clone(side), columns, semi)?;
            *side = Arc::new(below);
            Ok(LogicalPlan::Join(inner))
        }
        other => over(Arc::new(other), semi),
    }
}

/// The semi-join with another left side.
fn over(left: Arc<LogicalPlan>, semi: Join) -> Result<LogicalPlan> {
    let Join { right, on, filter, join_type, join_constraint, null_equality, null_aware, .. } = semi;
    Join::try_new(left, right, on, filter, join_type, join_constraint, null_equality, null_aware)
        .map(LogicalPlan::Join)
}
