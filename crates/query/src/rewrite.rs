//! A MySQL query's tree → a tree that DataFusion's planner reads with MySQL's meaning.
//!
//! Column names and aliases become lower case (MySQL compares them without case), tables get their
//! database, functions DataFusion's names or ours, session values become literals. Types are not
//! known here; what depends on them is in `operators` and `coercion`. After the rewrite the
//! planner must not fold the case of names itself.

mod ast;
mod calls;
mod casts;
mod dates;
mod exprs;
mod having;
mod sets;
pub mod titles;

use crate::model::SessionView;
use datafusion::common::ScalarValue;
use sqlparser::ast::{
    Expr, GroupByExpr, GroupByWithModifier, Ident, JoinConstraint, JoinOperator, LimitClause, ObjectName,
    ObjectNamePart, Offset, OffsetRows, Query, Select, SelectItem, SelectItemQualifiedWildcardKind,
    TableAlias, TableFactor, Value, VisitorMut,
};
use sqlparser::tokenizer::Location;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use titles::Title;
use tributary_sql::visit::walk_query_mut;
use tributary_types::{ErrorCode, SqlError};

/// Subqueries in expressions and BETWEEN may nest this deep together: planning walks what is inside
/// of one more than once, so the work doubles with each level.
pub const SUBQUERY_DEPTH_MAX: usize = 8;
/// Expressions may nest this deep.
pub const EXPRESSION_DEPTH_MAX: usize = 200;

/// A rewritten query.
#[derive(Debug)]
pub struct Rewritten {
    pub query: Query,
    /// One for each item of the outermost SELECT list; none where there is no such list.
    pub titles: Vec<Title>,
    /// Aliases and columns of all selects by their lower-case name, as they were written.
    pub spellings: HashMap<String, String>,
    /// Whether a CTE reads itself.
    pub is_recursive: bool,
}

/// What a rewrite takes from outside of the query.
pub struct Environment<'a> {
    pub session: &'a SessionView,
    /// The value of a global variable.
    pub global: &'a dyn Fn(&str) -> Option<String>,
    /// Values of `?` in the order of the text; `None` takes NULL for all (0 in LIMIT).
    pub params: Option<&'a [ScalarValue]>,
    /// Whether CAST gives NULL for a number that does not fit, as in loads, and no error.
    pub lenient_casts: bool,
}

/// Rewrites a query; `text` is the statement that it was parsed from.
///
/// # Errors
/// Unknown variables, wrong counts of parameters, forms that have no meaning here, and expressions
/// that nest deeper than [`EXPRESSION_DEPTH_MAX`].
pub fn rewrite(query: &Query, text: &str, environment: &Environment<'_>) -> Result<Rewritten, SqlError> {
    let mut query = query.clone();
    let titles = titles::of(&query, text);
    let placeholders = tributary_sql::placeholders(&query);
    if let Some(params) = environment.params
        && params.len() != placeholders.len()
    {
        return Err(SqlError::detail(
            ErrorCode::Unknown,
            format!(
                "the statement has {} parameters but {} values were given",
                placeholders.len(),
                params.len()
            ),
        ));
    }
    let mut rewriter = Rewriter {
        environment,
        placeholders,
        ctes: HashSet::new(),
        spellings: HashMap::new(),
        depth: 0,
        subqueries: 0,
        recursions: 0,
    };
    match walk_query_mut(&mut query, &mut rewriter) {
        ControlFlow::Continue(()) => Ok(Rewritten {
            query,
            titles,
            spellings: rewriter.spellings,
            is_recursive: rewriter.recursions > 0,
        }),
        ControlFlow::Break(error) => Err(error),
    }
}

/// TRUE where the condition is true, FALSE where it is not or is NULL.
pub fn fulfilled(condition: Expr) -> Expr {
    let truth = |value| ast::value(Value::Boolean(value));
    ast::call("if", vec![condition, truth(true), truth(false)])
}

struct Rewriter<'a> {
    environment: &'a Environment<'a>,
    placeholders: Vec<Location>,
    ctes: HashSet<String>,
    spellings: HashMap<String, String>,
    depth: usize,
    subqueries: usize,
    recursions: usize,
}

impl VisitorMut for Rewriter<'_> {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        query.locks.clear();
        query.for_clause = None;
        if let Some(with) = &mut query.with {
            self.recursions += sets::mark_recursions(with, self.recursions);
            for cte in &mut with.cte_tables {
                self.ctes.insert(cte.alias.name.value.clone());
                self.lower_alias_columns(&mut cte.alias);
            }
        }
        query.limit_clause = query.limit_clause.take().map(plain_limit);
        if let Some(limit) = &mut query.limit_clause {
            self.bind_limit(limit);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        sets::bracket(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        having::move_to_where(select);
        select.select_modifiers = None;
        select.optimizer_hints.clear();
        if is_dual(select) {
            select.from.clear();
        }
        self.name_items(&mut select.projection);
        for join in select.from.iter_mut().flat_map(|table| &mut table.joins) {
            if let Some(JoinConstraint::Using(columns)) = constraint_of(&mut join.join_operator) {
                columns.iter_mut().for_each(lower_last);
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        select.selection = select.selection.take().map(ast::truth);
        select.having = select.having.take().map(ast::truth);
        with_rollup(&mut select.group_by);
        full_wildcards(select);
        for join in select.from.iter_mut().flat_map(|table| &mut table.joins) {
            if let Some(JoinConstraint::On(condition)) = constraint_of(&mut join.join_operator) {
                let taken = std::mem::replace(condition, ast::null());
                *condition = ast::truth(taken);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<SqlError> {
        match factor {
            TableFactor::Table { name, alias, index_hints, with_hints, args, .. } => {
                index_hints.clear();
                with_hints.clear();
                if args.is_none()
                    && let Err(error) = self.qualify(name)
                {
                    return ControlFlow::Break(error);
                }
                if let Some(alias) = alias {
                    self.lower_alias_columns(alias);
                }
            }
            TableFactor::Derived { alias: Some(alias), .. } => self.lower_alias_columns(alias),
            TableFactor::Derived { alias: None, .. } => {
                return ControlFlow::Break(SqlError::detail(
                    ErrorCode::Unknown,
                    "Every derived table must have its own alias",
                ));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        exprs::balance(expr);
        self.depth += 1;
        self.subqueries += usize::from(doubles_work(expr));
        if self.subqueries > SUBQUERY_DEPTH_MAX {
            return ControlFlow::Break(SqlError::detail(
                ErrorCode::Unknown,
                format!(
                    "subqueries and BETWEEN nest deeper than {SUBQUERY_DEPTH_MAX} levels; \
                     write BETWEEN as >= and <=, and subqueries as WITH or joins"
                ),
            ));
        }
        if self.depth > EXPRESSION_DEPTH_MAX {
            return ControlFlow::Break(SqlError::detail(
                ErrorCode::Unknown,
                format!(
                    "expressions nest deeper than {EXPRESSION_DEPTH_MAX} levels; split the statement or use IN (…)"
                ),
            ));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        self.depth -= 1;
        self.subqueries -= usize::from(doubles_work(expr));
        let taken = std::mem::replace(expr, ast::null());
        match self.expression(taken) {
            Ok(rewritten) => {
                *expr = rewritten;
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }
}

impl Rewriter<'_> {
    fn lower(&mut self, name: &mut Ident) {
        let lower = name.value.to_lowercase();
        self.spellings.entry(lower.clone()).or_insert_with(|| std::mem::take(&mut name.value));
        name.value = lower;
        name.quote_style = None;
    }

    fn lower_alias_columns(&mut self, alias: &mut TableAlias) {
        for column in &mut alias.columns {
            self.lower(&mut column.name);
        }
    }

    /// Gives each item a name that is unique in its list, because DataFusion insists on it.
    fn name_items(&mut self, items: &mut [SelectItem]) {
        let has_wildcard = items
            .iter()
            .any(|item| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)));
        let mut used = HashSet::new();
        for (index, item) in items.iter_mut().enumerate() {
            match item {
                SelectItem::ExprWithAlias { alias, .. } => {
                    self.lower(alias);
                    if !used.insert(alias.value.clone()) {
                        alias.value = format!("{}#{index}", alias.value);
                    }
                }
                SelectItem::UnnamedExpr(expr) => {
                    let (name, is_column) = match &*expr {
                        Expr::Identifier(name) => (name.value.clone(), !name.value.starts_with('@')),
                        Expr::CompoundIdentifier(parts) => (
                            parts.last().map(|part| part.value.clone()).unwrap_or_default(),
                            !parts[0].value.starts_with('@'),
                        ),
                        other => (other.to_string(), false),
                    };
                    let lower = name.to_lowercase();
                    self.spellings.entry(lower.clone()).or_insert(name);
                    let fresh = used.insert(lower.clone()) && !has_wildcard;
                    if fresh && is_column {
                        continue;
                    }
                    let alias = if fresh { lower } else { format!("{lower}#{index}") };
                    let expr = std::mem::replace(expr, ast::null());
                    *item = SelectItem::ExprWithAlias { expr, alias: Ident::new(alias) };
                }
                _ => {}
            }
        }
    }

    /// Puts the session's database before a table's name; CTEs stay as they are.
    fn qualify(&self, name: &mut ObjectName) -> Result<(), SqlError> {
        let mut parts: Vec<Ident> = Vec::with_capacity(2);
        for part in &name.0 {
            match part {
                ObjectNamePart::Identifier(ident) => parts.push(ident.clone()),
                ObjectNamePart::Function(_) => return Ok(()),
            }
        }
        if parts.len() == 3 && parts[0].value.eq_ignore_ascii_case("internal") {
            parts.remove(0);
        }
        match parts.as_slice() {
            [table] if self.ctes.contains(&table.value) => return Ok(()),
            [_] => {
                let Some(database) = &self.environment.session.database else {
                    return Err(SqlError::new(ErrorCode::NoDbSelected, "No database selected"));
                };
                parts.insert(0, Ident::new(database));
            }
            [_, _] => {}
            _ => {
                return Err(SqlError::detail(
                    ErrorCode::Unknown,
                    format!(
                        "'{name}' is not a table's name; write table, database.table or internal.database.table"
                    ),
                ));
            }
        }
        *name = ObjectName::from(parts);
        Ok(())
    }

    /// LIMIT takes numbers only; a parameter without a value is 0 there, not NULL.
    fn bind_limit(&self, limit: &mut LimitClause) {
        let LimitClause::LimitOffset { limit, offset, .. } = limit else { return };
        let exprs = limit.iter_mut().chain(offset.iter_mut().map(|offset| &mut offset.value));
        for expr in exprs {
            if let Expr::Value(value) = expr
                && matches!(value.value, Value::Placeholder(_))
                && self.environment.params.is_none()
            {
                *expr = ast::number(0);
            }
        }
    }
}

const fn doubles_work(expr: &Expr) -> bool {
    matches!(expr, Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } | Expr::Between { .. })
}

/// `LIMIT a, b` as `LIMIT b OFFSET a`.
fn plain_limit(limit: LimitClause) -> LimitClause {
    match limit {
        LimitClause::OffsetCommaLimit { offset, limit } => LimitClause::LimitOffset {
            limit: Some(limit),
            offset: Some(Offset { value: offset, rows: OffsetRows::None }),
            limit_by: Vec::new(),
        },
        LimitClause::LimitOffset { .. } => limit,
    }
}

/// `t.*` of a table without alias as `db.t.*`: the planner knows the table by its full name only.
fn full_wildcards(select: &mut Select) {
    let Select { projection, from, .. } = select;
    let relations = || {
        from.iter().flat_map(|table| {
            std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation))
        })
    };
    for item in projection {
        let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(wanted), _) = item
        else {
            continue;
        };
        if wanted.0.len() != 1 {
            continue;
        }
        let full = relations().find_map(|relation| match relation {
            TableFactor::Table { name, alias: None, .. } if name.0.last() == wanted.0.last() => {
                Some(name.clone())
            }
            _ => None,
        });
        if let Some(full) = full {
            *wanted = full;
        }
    }
}

/// `GROUP BY a, b WITH ROLLUP` as `GROUP BY ROLLUP (a, b)`, which the parser takes for a call.
fn with_rollup(group_by: &mut GroupByExpr) {
    let GroupByExpr::Expressions(exprs, modifiers) = group_by else { return };
    if modifiers.contains(&GroupByWithModifier::Rollup) {
        modifiers.clear();
        let sets = exprs.drain(..).map(|expr| vec![expr]).collect();
        exprs.push(Expr::Rollup(sets));
    }
    for expr in exprs {
        if let Some((name, args)) = calls::plain_call(expr) {
            let sets = args.into_iter().map(|arg| vec![arg]).collect();
            match name.as_str() {
                "rollup" => *expr = Expr::Rollup(sets),
                "cube" => *expr = Expr::Cube(sets),
                _ => {}
            }
        }
    }
}

fn is_dual(select: &Select) -> bool {
    let [table] = select.from.as_slice() else { return false };
    matches!(&table.relation, TableFactor::Table { name, .. }
        if table.joins.is_empty() && name.0.len() == 1 && name.to_string().eq_ignore_ascii_case("dual"))
        && matches!(&select.group_by, GroupByExpr::Expressions(exprs, _) if exprs.is_empty())
}

fn constraint_of(join: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    use JoinOperator as J;
    match join {
        J::Join(constraint)
        | J::Inner(constraint)
        | J::Left(constraint)
        | J::LeftOuter(constraint)
        | J::Right(constraint)
        | J::RightOuter(constraint)
        | J::FullOuter(constraint)
        | J::CrossJoin(constraint)
        | J::Semi(constraint)
        | J::LeftSemi(constraint)
        | J::RightSemi(constraint)
        | J::Anti(constraint)
        | J::LeftAnti(constraint)
        | J::RightAnti(constraint)
        | J::StraightJoin(constraint) => Some(constraint),
        _ => None,
    }
}

fn lower_last(name: &mut ObjectName) {
    if let Some(ObjectNamePart::Identifier(ident)) = name.0.last_mut() {
        ident.value = ident.value.to_lowercase();
        ident.quote_style = None;
    }
}
