//! A MySQL query's tree → a tree that DataFusion's planner reads with MySQL's meaning.
//!
//! Column names and aliases become lower case (MySQL compares them without case), tables get their
//! database, functions DataFusion's names or ours, session values become literals. Types are not
//! known here; what depends on them is in `operators` and `coercion`. After the rewrite the
//! planner must not fold the case of names itself.

mod ast;
mod calls;
mod casts;
mod collation;
mod dates;
mod distinct;
mod exprs;
mod generators;
mod grouping;
mod having;
mod limits;
mod row_values;
mod sets;
mod subscripts;
pub mod titles;
mod using;

use crate::model::SessionView;
use datafusion::common::ScalarValue;
use sqlparser::ast::{
    Cte, Expr, GroupByExpr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, OrderBy,
    Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableAlias, TableFactor,
    TableWithJoins, Value, VisitorMut,
};
use sqlparser::tokenizer::Location;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use titles::Title;
use tributary_sql::visit::walk_query_mut;
use tributary_types::{ErrorCode, SqlError};

/// The combined nesting limit of subqueries in expressions and BETWEEN: planning visits their contents more than once, so the
/// work doubles with each level.
pub const SUBQUERY_DEPTH_MAX: usize = 8;
/// Expressions may nest this deep.
pub const EXPRESSION_DEPTH_MAX: usize = 200;

/// A rewritten query.
#[derive(Debug)]
pub struct Rewritten {
    pub query: Query,
    /// One for each item of the outermost SELECT list; empty without such a list.
    pub titles: Vec<Title>,
    /// Aliases and columns of all selects by their lower-case name, as they were written.
    pub spellings: HashMap<String, String>,
    /// Whether a CTE reads itself.
    pub is_recursive: bool,
}

/// From a database and a table to the names of its columns.
pub type ColumnsOf<'a> = dyn Fn(&str, &str) -> Result<Vec<String>, SqlError> + 'a;

/// The external input of a rewrite.
pub struct Environment<'a> {
    pub session: &'a SessionView,
    /// The value of a global variable.
    pub global: &'a dyn Fn(&str) -> Option<String>,
    /// The columns of a table, as they were declared.
    pub columns: &'a ColumnsOf<'a>,
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
        cte_columns: HashMap::new(),
        needs_columns: using::needs_columns(&query),
        spellings: HashMap::new(),
        relations: Vec::new(),
        named_items: 0,
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
    /// The columns of CTEs, if they are known.
    cte_columns: HashMap<String, Option<Vec<String>>>,
    /// Whether tables are joined by the names of their columns.
    needs_columns: bool,
    spellings: HashMap<String, String>,
    /// The names of the tables of the queries and selects around, from the outermost on.
    relations: Vec<HashSet<String>>,
    /// How many items of lists have a name that the statement does not give them.
    named_items: usize,
    depth: usize,
    subqueries: usize,
    recursions: usize,
}

impl VisitorMut for Rewriter<'_> {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        query.locks.clear();
        self.relations.push(relations_of(&query.body));
        query.for_clause = None;
        if let Some(with) = &mut query.with {
            self.recursions += sets::mark_recursions(with, self.recursions);
            for cte in &mut with.cte_tables {
                self.note_cte(cte);
                self.lower_alias_columns(&mut cte.alias);
            }
        }
        let outcome = self.limit(query).and_then(|()| match self.needs_columns {
            true => self.join_all_by_names(query),
            false => Ok(()),
        });
        outcome.map_or_else(ControlFlow::Break, ControlFlow::Continue)
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        self.relations.pop();
        distinct::order_by_items(query);
        sets::bracket(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        self.relations.push(names_of_relations(&select.from));
        having::move_to_where(select);
        if let Err(error) = grouping::sets(select) {
            return ControlFlow::Break(error);
        }
        select.select_modifiers = None;
        select.optimizer_hints.clear();
        if is_dual(select) {
            select.from.clear();
        }
        self.group_by_aliases(select);
        if !self.groups_in_full() {
            grouping::any_values(select);
        }
        let starred = self.starred(select);
        self.name_items(&mut select.projection, starred);
        each_join(&mut select.from, &mut |join| {
            // A hint, and a cross join that has a condition.
            if let JoinOperator::StraightJoin(constraint)
            | JoinOperator::CrossJoin(constraint @ JoinConstraint::On(_)) = &mut join.join_operator
            {
                let constraint = std::mem::replace(constraint, JoinConstraint::None);
                join.join_operator = JoinOperator::Inner(constraint);
            }
            if let Some(JoinConstraint::Using(columns)) = constraint_of(&mut join.join_operator) {
                columns.iter_mut().for_each(lower_last);
            }
        });
        generators::nest(select).map_or_else(ControlFlow::Break, ControlFlow::Continue)
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        self.relations.pop();
        select.selection = select.selection.take().map(ast::truth);
        select.having = select.having.take().map(ast::truth);
        grouping::without_repetitions(select);
        full_wildcards(select);
        each_join(&mut select.from, &mut |join| {
            if let Some(JoinConstraint::On(condition)) = constraint_of(&mut join.join_operator) {
                let taken = std::mem::replace(condition, ast::null());
                *condition = ast::truth(taken);
            }
        });
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<SqlError> {
        if let Err(error) = self.call_in_from(factor) {
            return ControlFlow::Break(error);
        }
        match factor {
            TableFactor::Table { name, alias, index_hints, with_hints, args, partitions, .. } => {
                partitions_in_alias(alias, partitions);
                index_hints.clear();
                with_hints.clear();
                if args.is_none()
                    && let Err(error) = self.qualify(name)
                {
                    return ControlFlow::Break(error);
                }
                if let Err(error) = read_partitions(name, alias, partitions) {
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
        exprs::numbers_of_hex(expr);
        if let Err(error) = collation::without_case(expr, self.ignores_case()) {
            return ControlFlow::Break(error);
        }
        let is_relation = |name: &str| self.relations.iter().any(|names| names.contains(name));
        subscripts::qualify(expr, &is_relation);
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
    /// Whether patterns match without case unless a collation says otherwise.
    fn ignores_case(&self) -> bool {
        let value = self.environment.session.variables.get("like_ignores_case");
        value.is_some_and(|value| value.eq_ignore_ascii_case("ON"))
    }

    /// Whether columns that are not grouped are errors.
    fn groups_in_full(&self) -> bool {
        let mode = self.environment.session.variables.get("sql_mode");
        mode.is_none_or(|mode| {
            mode.split(',').any(|mode| mode.trim().eq_ignore_ascii_case("ONLY_FULL_GROUP_BY"))
        })
    }

    fn note_cte(&mut self, cte: &Cte) {
        let name = &cte.alias.name.value;
        if self.needs_columns {
            let given = cte.alias.columns.iter().map(|column| column.name.value.clone());
            let columns = match cte.alias.columns.is_empty() {
                true => self.columns_of_query(&cte.query).ok(),
                false => Some(given.collect()),
            };
            self.cte_columns.insert(name.clone(), columns);
        }
        self.ctes.insert(name.clone());
    }

    /// Joins by names in the SELECTs of a query.
    fn join_all_by_names(&self, query: &mut Query) -> Result<(), SqlError> {
        fn each(
            rewriter: &Rewriter<'_>,
            body: &mut SetExpr,
            order_by: Option<&mut OrderBy>,
        ) -> Result<(), SqlError> {
            match body {
                SetExpr::Select(select) => rewriter.join_by_names(select, order_by),
                SetExpr::SetOperation { left, right, .. } => {
                    each(rewriter, left, None)?;
                    each(rewriter, right, None)
                }
                _ => Ok(()),
            }
        }
        each(self, &mut query.body, query.order_by.as_mut())
    }

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

    /// Gives each item a name that is unique in its list, because DataFusion insists on it. A number in it is unique in the
    /// statement, because `*` brings those of a query below into the list. `used`: the names that wildcards of the list bring.
    fn name_items(&mut self, items: &mut [SelectItem], mut used: HashSet<String>) {
        let has_wildcard = items
            .iter()
            .any(|item| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)));
        for item in items {
            self.named_items += 1;
            let number = self.named_items;
            match item {
                SelectItem::ExprWithAlias { alias, .. } => {
                    self.lower(alias);
                    if !used.insert(alias.value.clone()) {
                        alias.value = format!("{}#{number}", alias.value);
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
                    let alias = if fresh { lower } else { format!("{lower}#{number}") };
                    let expr = std::mem::replace(expr, ast::null());
                    *item = SelectItem::ExprWithAlias { expr, alias: Ident::new(alias) };
                }
                SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) => {
                    if let Some(except) = &mut options.opt_except {
                        self.lower(&mut except.first_element);
                        except.additional_elements.iter_mut().for_each(|name| self.lower(name));
                    }
                }
                SelectItem::ExprWithAliases { .. } => {}
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
}

/// The names of the tables that a body's own columns can be of: none for a set operation.
fn relations_of(body: &SetExpr) -> HashSet<String> {
    match body {
        SetExpr::Select(select) => names_of_relations(&select.from),
        _ => HashSet::new(),
    }
}

/// The names by which a SELECT calls its tables.
fn names_of_relations(from: &[TableWithJoins]) -> HashSet<String> {
    fn add(factor: &TableFactor, names: &mut HashSet<String>) {
        match factor {
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                add(&table_with_joins.relation, names);
                table_with_joins.joins.iter().for_each(|join| add(&join.relation, names));
            }
            TableFactor::Table { alias: Some(alias), .. }
            | TableFactor::Derived { alias: Some(alias), .. }
            | TableFactor::NestedJoin { alias: Some(alias), .. }
            | TableFactor::UNNEST { alias: Some(alias), .. } => {
                names.insert(alias.name.value.clone());
            }
            TableFactor::Table { name, alias: None, .. } => {
                let last = name.0.last().and_then(ObjectNamePart::as_ident);
                names.extend(last.map(|name| name.value.clone()));
            }
            _ => {}
        }
    }
    let mut names = HashSet::new();
    for table in from {
        add(&table.relation, &mut names);
        table.joins.iter().for_each(|join| add(&join.relation, &mut names));
    }
    names
}

/// `t PARTITIONS (p, …)`, which the parser takes for an alias with columns.
fn partitions_in_alias(alias: &mut Option<TableAlias>, partitions: &mut Vec<Ident>) {
    let is_word = |alias: &TableAlias| {
        alias.name.quote_style.is_none() && alias.name.value.eq_ignore_ascii_case("PARTITIONS")
    };
    if let Some(taken) = alias.take_if(|alias| is_word(alias) && !alias.columns.is_empty()) {
        partitions.extend(taken.columns.into_iter().map(|column| column.name));
    }
}

/// Puts the partitions that are read into the name of the table, which the statement calls as before.
fn read_partitions(
    name: &mut ObjectName,
    alias: &mut Option<TableAlias>,
    partitions: &mut Vec<Ident>,
) -> Result<(), SqlError> {
    if partitions.is_empty() {
        return Ok(());
    }
    let named = std::mem::take(partitions);
    let Some(ObjectNamePart::Identifier(table)) = name.0.last_mut() else {
        let text = format!("'{name}' is no table, which PARTITION could name parts of");
        return Err(SqlError::detail(ErrorCode::Unknown, text));
    };
    alias.get_or_insert_with(|| TableAlias {
        explicit: false,
        name: table.clone(),
        columns: Vec::new(),
        at: None,
    });
    let names = named.iter().map(|ident| ident.value.as_str());
    table.value = tributary_sql::names::with_partitions(&table.value, names);
    Ok(())
}

const fn doubles_work(expr: &Expr) -> bool {
    matches!(expr, Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } | Expr::Between { .. })
}

/// `t.*` of a table without alias as `db.t.*`: the planner knows the table by its full name only.
fn full_wildcards(select: &mut Select) {
    fn add<'a>(table: &'a TableWithJoins, relations: &mut Vec<&'a TableFactor>) {
        let joined = table.joins.iter().map(|join| &join.relation);
        for relation in std::iter::once(&table.relation).chain(joined) {
            match relation {
                TableFactor::NestedJoin { table_with_joins, alias: None } => add(table_with_joins, relations),
                other => relations.push(other),
            }
        }
    }
    let Select { projection, from, .. } = select;
    if !projection.iter().any(|item| matches!(item, SelectItem::QualifiedWildcard(..))) {
        return;
    }
    let mut relations = Vec::new();
    from.iter().for_each(|table| add(table, &mut relations));
    for item in projection {
        let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(wanted), _) = item
        else {
            continue;
        };
        if wanted.0.len() != 1 {
            continue;
        }
        let full = relations.iter().find_map(|relation| match relation {
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

fn is_dual(select: &Select) -> bool {
    let [table] = select.from.as_slice() else { return false };
    matches!(&table.relation, TableFactor::Table { name, .. }
        if table.joins.is_empty() && name.0.len() == 1 && name.to_string().eq_ignore_ascii_case("dual"))
        && matches!(&select.group_by, GroupByExpr::Expressions(exprs, _) if exprs.is_empty())
}

/// Calls `change` for the joins of tables, those in parentheses included.
fn each_join(tables: &mut [TableWithJoins], change: &mut dyn FnMut(&mut Join)) {
    for table in tables {
        let joined = table.joins.iter_mut().map(|join| &mut join.relation);
        for relation in std::iter::once(&mut table.relation).chain(joined) {
            if let TableFactor::NestedJoin { table_with_joins, .. } = relation {
                each_join(std::slice::from_mut(table_with_joins), change);
            }
        }
        table.joins.iter_mut().for_each(&mut *change);
    }
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
