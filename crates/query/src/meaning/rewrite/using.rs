//! `JOIN … USING` and `NATURAL JOIN` as joins with ON, in MySQL's meaning.
//!
//! A common column is one column: that of the outer side, or for a FULL join the first of both that is not NULL. `SELECT *` shows
//! the common columns first and each of them once. For that the columns of all tables are known here; types and values are not
//! this module's business.

use super::{Rewriter, ast, constraint_of, generators};
use sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, Ident, JoinConstraint, JoinOperator, ObjectName, OrderBy, OrderByKind,
    Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableFactor, TableWithJoins,
    Visitor, VisitorMut, WildcardAdditionalOptions,
};
use std::collections::HashSet;
use std::ops::ControlFlow;
use tributary_sql::FILES_FUNCTION;
use tributary_sql::visit::{walk_expr_mut, walk_query};
use tributary_types::{ErrorCode, SqlError};

/// A column that `SELECT *` shows.
#[derive(Clone)]
struct Shown {
    /// As its table declares it.
    name: String,
    expr: Expr,
    /// One column for the equal columns of several tables.
    is_common: bool,
}

impl Shown {
    fn is(&self, name: &str) -> bool {
        self.name.to_lowercase() == name.to_lowercase()
    }
}

/// The side with all its rows in the result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeps {
    Left,
    Right,
    Both,
}

impl Rewriter<'_> {
    /// Gives the joins of a SELECT their conditions, and its unqualified names and `*` their columns.
    pub(super) fn join_by_names(
        &self,
        select: &mut Select,
        order_by: Option<&mut OrderBy>,
    ) -> Result<(), SqlError> {
        let is_star = |item: &SelectItem| matches!(item, SelectItem::Wildcard(_));
        let by_names = select.from.iter().any(joins_by_names);
        if !by_names && select.projection.iter().filter(|item| is_star(item)).count() < 2 {
            return Ok(());
        }
        let mut shown = Vec::new();
        for table in &mut select.from {
            shown.extend(self.shown_by(table)?);
        }
        let once = |column: &Shown| shown.iter().filter(|other| other.is(&column.name)).count() == 1;
        let common: Vec<Shown> =
            shown.iter().filter(|column| column.is_common && once(column)).cloned().collect();
        let mut items = Vec::with_capacity(select.projection.len());
        for item in select.projection.drain(..) {
            match item {
                SelectItem::Wildcard(options) => {
                    items.extend(but_excepted(&shown, &options).map(|column| item_of(column, &column.name)));
                }
                SelectItem::UnnamedExpr(Expr::Identifier(name)) => {
                    match common.iter().find(|column| column.is(&name.value)) {
                        Some(column) => items.push(item_of(column, &name.value)),
                        None => items.push(SelectItem::UnnamedExpr(Expr::Identifier(name))),
                    }
                }
                other => items.push(other),
            }
        }
        let aliases: Vec<String> = items.iter().filter_map(alias_of).collect();
        select.projection = items;
        let is_alias = |column: &Shown| aliases.iter().any(|alias| column.is(alias));
        let columns_first: Vec<Shown> = common.iter().filter(|column| !is_alias(column)).cloned().collect();
        substitute(select.having.iter_mut(), &columns_first);
        substitute(own_exprs(select), &common);
        let shown_names: Vec<String> = select.projection.iter().filter_map(name_of).collect();
        let is_shown = |column: &Shown| shown_names.iter().any(|name| column.is(name));
        let hidden: Vec<Shown> = common.iter().filter(|column| !is_shown(column)).cloned().collect();
        if let Some(OrderBy { kind: OrderByKind::Expressions(by), .. }) = order_by {
            substitute(by.iter_mut().map(|by| &mut by.expr), &hidden);
        }
        Ok(())
    }

    /// Groups by the item of the list that a name in GROUP BY is an alias of, where several tables have a column of that name:
    /// else the name means the column.
    pub(super) fn group_by_aliases(&self, select: &mut Select) {
        let GroupByExpr::Expressions(groups, _) = &mut select.group_by else { return };
        let item = |name: &Ident| {
            select.projection.iter().find_map(|item| match item {
                SelectItem::ExprWithAlias { expr, alias } if same(&alias.value, &name.value) => Some(expr),
                _ => None,
            })
        };
        let is_alias = |group: &Expr| matches!(group, Expr::Identifier(name) if item(name).is_some());
        if !groups.iter().any(is_alias) {
            return;
        }
        let mut shown = Vec::new();
        for table in &select.from {
            // Columns that can't be told are left to the planner.
            let Ok(columns) = self.shown_by_each(&mut table.clone()) else { return };
            shown.extend(columns);
        }
        for group in groups {
            if let Expr::Identifier(name) = group
                && shown.iter().filter(|column| column.is(&name.value)).count() > 1
                && let Some(expr) = item(name)
            {
                *group = expr.clone();
            }
        }
    }

    /// The columns that `SELECT *` shows for a table and its joins; the joins get conditions.
    fn shown_by(&self, table: &mut TableWithJoins) -> Result<Vec<Shown>, SqlError> {
        let mut left = self.shown_by_factor(&mut table.relation)?;
        for join in &mut table.joins {
            let right = self.shown_by_factor(&mut join.relation)?;
            let keeps = keeps(&join.join_operator);
            let Some(constraint) = constraint_of(&mut join.join_operator) else {
                left.extend(right);
                continue;
            };
            let names: Vec<String> = match constraint {
                JoinConstraint::Using(names) => names.iter().filter_map(last_name).collect(),
                JoinConstraint::Natural => {
                    let is_common = |column: &&Shown| right.iter().any(|other| other.is(&column.name));
                    left.iter().filter(is_common).map(|column| column.name.clone()).collect()
                }
                JoinConstraint::On(condition) => {
                    let common: Vec<Shown> = left.iter().filter(|column| column.is_common).cloned().collect();
                    substitute(std::iter::once(condition), &common);
                    left.extend(right);
                    continue;
                }
                JoinConstraint::None => {
                    left.extend(right);
                    continue;
                }
            };
            let Some(keeps) = keeps else {
                return Err(SqlError::detail(
                    ErrorCode::NotSupported,
                    "USING and NATURAL are for INNER, LEFT, RIGHT and FULL joins; write ON",
                ));
            };
            let (condition, both) = common_columns(&names, left, right, keeps)?;
            let all = || ast::value(sqlparser::ast::Value::Boolean(true));
            *constraint = JoinConstraint::On(condition.unwrap_or_else(all));
            left = both;
        }
        Ok(left)
    }

    fn shown_by_factor(&self, factor: &mut TableFactor) -> Result<Vec<Shown>, SqlError> {
        let (qualifier, names) = match factor {
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                return self.shown_by(table_with_joins);
            }
            TableFactor::Table { name, alias, args: None, .. } => {
                let names = self.columns_of_table(name)?;
                match alias {
                    Some(alias) => (vec![alias.name.clone()], renamed(names, alias)),
                    None => (name.0.iter().filter_map(|part| part.as_ident()).cloned().collect(), names),
                }
            }
            TableFactor::Table { name, alias: Some(alias), args: Some(args), .. }
                if name.to_string() == FILES_FUNCTION =>
            {
                let place = args.args.first().map(ToString::to_string).unwrap_or_default();
                let names = (self.environment.columns)(FILES_FUNCTION, &place)?;
                (vec![alias.name.clone()], renamed(names, alias))
            }
            TableFactor::Derived { subquery, alias: Some(alias), .. } => {
                (vec![alias.name.clone()], renamed(self.columns_of_query(subquery)?, alias))
            }
            other => match generators::columns_of(other) {
                Some((name, names)) => (vec![name], names),
                None => {
                    return Err(SqlError::detail(
                        ErrorCode::NotSupported,
                        format!("USING and NATURAL need to know the columns of '{other}'; write ON"),
                    ));
                }
            },
        };
        let column = |name: String| {
            let mut parts: Vec<Ident> = qualifier.clone();
            parts.push(Ident::new(&name));
            Shown { name, expr: Expr::CompoundIdentifier(parts), is_common: false }
        };
        Ok(names.into_iter().map(column).collect())
    }

    fn columns_of_table(&self, name: &ObjectName) -> Result<Vec<String>, SqlError> {
        let mut name = name.clone();
        if let [part] = name.0.as_slice()
            && let Some(ident) = part.as_ident()
            && let Some(columns) = self.cte_columns.get(&ident.value)
        {
            return columns.clone().ok_or_else(|| {
                SqlError::detail(
                    ErrorCode::NotSupported,
                    format!(
                        "USING and NATURAL need to know the columns of '{name}'; name them in its SELECT"
                    ),
                )
            });
        }
        self.qualify(&mut name)?;
        let parts: Vec<&str> =
            name.0.iter().filter_map(|part| part.as_ident()).map(|part| part.value.as_str()).collect();
        match parts.as_slice() {
            [database, table] => (self.environment.columns)(database, table),
            _ => Ok(Vec::new()),
        }
    }

    /// The names of a query's columns.
    pub(super) fn columns_of_query(&self, query: &Query) -> Result<Vec<String>, SqlError> {
        let unknown = || {
            SqlError::detail(
                ErrorCode::NotSupported,
                "USING and NATURAL need to know the columns of all tables; write ON",
            )
        };
        if query.with.is_some() {
            return Err(unknown());
        }
        let mut body = query.body.as_ref();
        let select = loop {
            match body {
                SetExpr::Select(select) => break select,
                SetExpr::SetOperation { left, .. } => body = left,
                SetExpr::Query(inner) => return self.columns_of_query(inner),
                _ => return Err(unknown()),
            }
        };
        let mut names = Vec::new();
        for item in &select.projection {
            match self.columns_of_wildcard(item, &select.from)? {
                Some(columns) => names.extend(columns),
                None => names.push(name_of(item).unwrap_or_else(|| item.to_string())),
            }
        }
        Ok(names)
    }

    /// The names of the columns that `*` or `t.*` stands for; `None` for other items.
    fn columns_of_wildcard(
        &self,
        item: &SelectItem,
        from: &[TableWithJoins],
    ) -> Result<Option<Vec<String>>, SqlError> {
        let mut names = Vec::new();
        match item {
            SelectItem::Wildcard(options) => {
                for table in &mut from.to_vec() {
                    let shown = self.shown_by(table)?;
                    names.extend(but_excepted(&shown, options).map(|column| column.name.clone()));
                }
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(of), options) => {
                let of = last_name(of).unwrap_or_default();
                for table in &mut from.to_vec() {
                    let shown = self.shown_by_each(table)?;
                    let own: Vec<Shown> =
                        shown.into_iter().filter(|column| belongs_to(column, &of)).collect();
                    names.extend(but_excepted(&own, options).map(|column| column.name.clone()));
                }
            }
            _ => return Ok(None),
        }
        Ok(Some(names))
    }

    /// The names, in lower case, of the columns that the wildcards of a list with aliases stand for. Columns that can't be told
    /// are left to the planner.
    pub(super) fn starred(&self, select: &Select) -> HashSet<String> {
        if !stars_beside_aliases(select) {
            return HashSet::new();
        }
        let columns = |item| self.columns_of_wildcard(item, &select.from).ok().flatten();
        select.projection.iter().filter_map(columns).flatten().map(|name| name.to_lowercase()).collect()
    }

    /// The columns of each joined table, none of them common.
    fn shown_by_each(&self, table: &mut TableWithJoins) -> Result<Vec<Shown>, SqlError> {
        let mut shown = self.shown_by_factor(&mut table.relation)?;
        for join in &mut table.joins {
            shown.extend(self.shown_by_factor(&mut join.relation)?);
        }
        Ok(shown)
    }
}

/// Whether a list has both `*` or `t.*` and an item with an alias.
fn stars_beside_aliases(select: &Select) -> bool {
    let is_star =
        |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
    let has_alias = |item: &SelectItem| matches!(item, SelectItem::ExprWithAlias { .. });
    select.projection.iter().any(is_star) && select.projection.iter().any(has_alias)
}

/// Whether a query has a join that needs to know the columns of its tables, more than one `*` in a list, or one beside an alias.
pub(super) fn needs_columns(query: &Query) -> bool {
    struct Find;
    impl Visitor for Find {
        type Break = ();
        fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
            let stars =
                select.projection.iter().filter(|item| matches!(item, SelectItem::Wildcard(_))).count();
            match stars > 1 || stars_beside_aliases(select) || select.from.iter().any(joins_by_names) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }
    walk_query(query, &mut Find).is_break()
}

fn joins_by_names(table: &TableWithJoins) -> bool {
    let nested = |factor: &TableFactor| matches!(factor, TableFactor::NestedJoin { table_with_joins, .. } if joins_by_names(table_with_joins));
    nested(&table.relation)
        || table.joins.iter().any(|join| {
            let constraint = constraint_of(&mut join.join_operator.clone()).cloned();
            matches!(constraint, Some(JoinConstraint::Using(_) | JoinConstraint::Natural))
                || nested(&join.relation)
        })
}

const fn keeps(operator: &JoinOperator) -> Option<Keeps> {
    use JoinOperator as J;
    match operator {
        J::Join(_) | J::Inner(_) | J::CrossJoin(_) | J::StraightJoin(_) | J::Left(_) | J::LeftOuter(_) => {
            Some(Keeps::Left)
        }
        J::Right(_) | J::RightOuter(_) => Some(Keeps::Right),
        J::FullOuter(_) => Some(Keeps::Both),
        _ => None,
    }
}

/// The condition of a join by `names`, and its columns in `SELECT *`: the common columns in the order of the side that comes
/// first, then the rest of that side and of the other.
fn common_columns(
    names: &[String],
    left: Vec<Shown>,
    right: Vec<Shown>,
    keeps: Keeps,
) -> Result<(Option<Expr>, Vec<Shown>), SqlError> {
    let mut condition: Option<Expr> = None;
    let mut pairs: Vec<(Shown, Shown)> = Vec::new();
    for name in names {
        if pairs.iter().any(|(known, _)| known.is(name)) {
            continue;
        }
        let pair = (one(name, &left)?, one(name, &right)?);
        let same = ast::binary(pair.0.expr.clone(), BinaryOperator::Eq, pair.1.expr.clone());
        condition = Some(match condition {
            Some(condition) => {
                Expr::BinaryOp { left: Box::new(condition), op: BinaryOperator::And, right: Box::new(same) }
            }
            None => same,
        });
        pairs.push(pair);
    }
    let (first, second) = if keeps == Keeps::Right { (right, left) } else { (left, right) };
    let is_common = |column: &Shown| pairs.iter().find(|(known, _)| known.is(&column.name));
    let mut shown = Vec::with_capacity(first.len() + second.len());
    for column in &first {
        let Some((left, right)) = is_common(column) else { continue };
        let expr = match keeps {
            Keeps::Left => left.expr.clone(),
            Keeps::Right => right.expr.clone(),
            Keeps::Both => ast::call("coalesce", vec![left.expr.clone(), right.expr.clone()]),
        };
        shown.push(Shown { name: column.name.clone(), expr, is_common: true });
    }
    shown.extend(first.iter().chain(&second).filter(|column| is_common(column).is_none()).cloned());
    Ok((condition, shown))
}

/// The only column of that name.
fn one(name: &str, of: &[Shown]) -> Result<Shown, SqlError> {
    let mut found = of.iter().filter(|column| column.is(name));
    match (found.next(), found.next()) {
        (Some(column), None) => Ok(column.clone()),
        (None, _) => Err(SqlError::detail(
            ErrorCode::UnknownColumn,
            format!("Unknown column '{name}' in 'from clause'"),
        )),
        _ => Err(SqlError::detail(
            ErrorCode::NonUnique,
            format!("Column '{name}' in from clause is ambiguous"),
        )),
    }
}

fn renamed(mut names: Vec<String>, alias: &sqlparser::ast::TableAlias) -> Vec<String> {
    for (name, given) in names.iter_mut().zip(&alias.columns) {
        name.clone_from(&given.name.value);
    }
    names
}

/// Whether two names of columns are one.
fn same(left: &str, right: &str) -> bool {
    left.to_lowercase() == right.to_lowercase()
}

fn last_name(name: &ObjectName) -> Option<String> {
    name.0.last().and_then(|part| part.as_ident()).map(|ident| ident.value.clone())
}

fn belongs_to(column: &Shown, table: &str) -> bool {
    matches!(&column.expr, Expr::CompoundIdentifier(parts)
        if parts.len() > 1 && parts[parts.len() - 2].value == table)
}

/// An item that shows `column` under `name`.
fn item_of(column: &Shown, name: &str) -> SelectItem {
    match &column.expr {
        Expr::CompoundIdentifier(_) => SelectItem::UnnamedExpr(column.expr.clone()),
        expr => SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::new(name) },
    }
}

fn alias_of(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
        _ => None,
    }
}

/// The name of an item that has one.
fn name_of(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(name.value.clone()),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => {
            parts.last().map(|name| name.value.clone())
        }
        _ => None,
    }
}

/// The columns except those of `* EXCEPT (…)`.
fn but_excepted<'a>(
    shown: &'a [Shown],
    options: &'a WildcardAdditionalOptions,
) -> impl Iterator<Item = &'a Shown> {
    let excepted = options.opt_except.iter();
    let excepted: Vec<&str> = excepted
        .flat_map(|except| std::iter::once(&except.first_element).chain(&except.additional_elements))
        .map(|name| name.value.as_str())
        .collect();
    shown.iter().filter(move |column| !excepted.iter().any(|name| column.is(name)))
}

/// Puts common columns in the place of their unqualified names, outside of subqueries.
struct Substitute<'a> {
    columns: &'a [Shown],
    subqueries: usize,
}

/// The expressions of a SELECT between its list and HAVING.
fn own_exprs(select: &mut Select) -> impl Iterator<Item = &mut Expr> {
    let items = select.projection.iter_mut().filter_map(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    });
    let groups = match &mut select.group_by {
        GroupByExpr::Expressions(exprs, _) => Some(exprs),
        GroupByExpr::All(_) => None,
    };
    items.chain(&mut select.selection).chain(groups.into_iter().flatten())
}

fn substitute<'a>(exprs: impl Iterator<Item = &'a mut Expr>, columns: &[Shown]) {
    for expr in exprs {
        let _ = walk_expr_mut(expr, &mut Substitute { columns, subqueries: 0 });
    }
}

impl VisitorMut for Substitute<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.subqueries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.subqueries -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.subqueries == 0
            && let Expr::Identifier(name) = expr
            && let Some(column) = self.columns.iter().find(|column| column.is(&name.value))
        {
            *expr = column.expr.clone();
        }
        ControlFlow::Continue(())
    }
}
