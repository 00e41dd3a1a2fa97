//! Views in queries: a view's query is planned where the view is read, and used like a table.
//!
//! Invariant: a view shows the columns that it had when it was created, under its own names. Columns that were added to its
//! tables later are invisible to it, so its `*` does not change.
//!
//! Tables behind a view are read without a check of this user's privileges: they were checked when the view was created.

use super::{StatementContext, names_hidden};
use crate::error::plan_error;
use crate::meaning::lateral_views::LateralViews;
use crate::meaning::set_operations::SetOperations;
use crate::model::SessionView;
use crate::scan::table_functions::TableFunctions;
use crate::types::metadata;
use datafusion::common::{Column, TableReference};
use datafusion::datasource::{TableProvider, ViewTable, provider_as_source};
use datafusion::logical_expr::planner::RelationPlanner;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tributary_types::{ErrorCode, SqlError, ViewDef};

/// Views may read views this deep.
const VIEWS_NESTED_MAX: usize = 32;

/// The context in which a query is planned.
#[derive(Default)]
pub struct Within {
    /// The views that are being planned, from the outermost on.
    pub views: Vec<(String, String)>,
    /// The columns that the innermost one's tables had.
    columns: HashMap<(String, String), Vec<String>>,
}

impl Within {
    /// Whether the query is a view's.
    pub fn is_view(&self) -> bool {
        !self.columns.is_empty() || !self.views.is_empty()
    }
}

impl StatementContext<'_> {
    /// A view as a table.
    pub(crate) fn view(&self, view: &ViewDef) -> Result<Arc<dyn TableProvider>, SqlError> {
        let name = (view.db.clone(), view.name.clone());
        if self.within.views.contains(&name) || self.forbidden.as_ref() == Some(&name) {
            return Err(SqlError::new(
                ErrorCode::ViewRecursive,
                format!("`{}`.`{}` contains view recursion", view.db, view.name),
            ));
        }
        if self.within.views.len() >= VIEWS_NESTED_MAX {
            let text =
                format!("views read views more than {VIEWS_NESTED_MAX} levels deep: join some of them");
            return Err(SqlError::detail(ErrorCode::Unknown, text));
        }
        let plan = self.plan_of_view(view, name).map_err(|error| match error.code {
            ErrorCode::ViewInvalid | ErrorCode::ViewRecursive => error,
            _ => invalid(view, error.detail_text()),
        })?;
        Ok(Arc::new(ViewTable::new(plan, Some(view.query.clone()))))
    }

    fn plan_of_view(&self, view: &ViewDef, name: (String, String)) -> Result<LogicalPlan, SqlError> {
        let query = tributary_sql::parse_query(&view.query)?;
        let session = SessionView { database: view.session_db.clone(), ..self.session.clone() };
        let functions = TableFunctions::default();
        let sets = Arc::new(SetOperations::default());
        let mut views = self.within.views.clone();
        views.push(name);
        let sources = view.sources.iter();
        let columns =
            sources.map(|source| ((source.db.clone(), source.name.clone()), source.columns.clone()));
        let context = StatementContext {
            state: self.state,
            namespace: self.namespace,
            session: &session,
            store_url: self.store_url.clone(),
            with_hidden: names_hidden(&view.query),
            with_deletions: self.with_deletions,
            functions: &functions,
            settled: self.settled,
            read: Arc::clone(&self.read),
            tables: Mutex::default(),
            relation_planners: [Arc::clone(&sets) as Arc<dyn RelationPlanner>, Arc::new(LateralViews)],
            sets,
            within: Within { views, columns: columns.collect() },
            forbidden: self.forbidden.clone(),
        };
        let (plan, _) = context.plan(&query, Some(&[]), false)?;
        let found = plan.schema().fields().len();
        if found != view.columns.len() {
            let expected = view.columns.len();
            return Err(invalid(view, &format!("its query has {found} columns and had {expected}")));
        }
        let columns: Vec<Expr> = plan
            .schema()
            .iter()
            .zip(&view.columns)
            .map(|(field, column)| {
                let metadata = metadata::of_view(view, &column.name).into();
                Expr::Column(Column::from(field))
                    .alias_with_metadata(column.name.to_lowercase(), Some(metadata))
            })
            .collect();
        let plan = LogicalPlanBuilder::from(plan).project(columns).and_then(LogicalPlanBuilder::build);
        plan.map_err(|error| plan_error(&error))
    }

    /// A table as the view being planned sees it: with the columns of its creation.
    pub(crate) fn as_it_was(
        &self,
        key: &(String, String),
        provider: Arc<dyn TableProvider>,
    ) -> Result<Arc<dyn TableProvider>, SqlError> {
        let Some(columns) = self.within.columns.get(key) else { return Ok(provider) };
        part_of(key, provider, |name| columns.iter().any(|column| column.to_lowercase() == *name))
    }

    /// A table or view as the user may read it: without the columns that it may not. A view reads all that its creator could.
    pub(crate) fn readable_part(
        &self,
        key: &(String, String),
        provider: Arc<dyn TableProvider>,
    ) -> Result<Arc<dyn TableProvider>, SqlError> {
        if self.within.is_view() || self.temporary(&key.0, &key.1).is_some() {
            return Ok(provider);
        }
        match self.namespace.readable_columns(&key.0, &key.1) {
            Some(columns) => part_of(key, provider, |name| columns.contains(name)),
            None => Ok(provider),
        }
    }
}

/// The table with the columns whose names are kept.
fn part_of(
    key: &(String, String),
    provider: Arc<dyn TableProvider>,
    is_kept: impl Fn(&str) -> bool,
) -> Result<Arc<dyn TableProvider>, SqlError> {
    let schema = provider.schema();
    if schema.fields().iter().all(|field| is_kept(field.name())) {
        return Ok(provider);
    }
    let table = TableReference::partial(key.0.as_str(), key.1.as_str());
    let kept = schema.fields().iter().filter(|field| is_kept(field.name()));
    let kept: Vec<Expr> =
        kept.map(|field| Expr::Column(Column::new(Some(table.clone()), field.name().as_str()))).collect();
    let plan = LogicalPlanBuilder::scan(table, provider_as_source(provider), None)
        .and_then(|scan| scan.project(kept))
        .and_then(LogicalPlanBuilder::build)
        .map_err(|error| plan_error(&error))?;
    Ok(Arc::new(ViewTable::new(plan, None)))
}

/// MySQL's error for a view whose query can't be planned any more.
fn invalid(view: &ViewDef, cause: &str) -> SqlError {
    SqlError::new(
        ErrorCode::ViewInvalid,
        format!(
            "View '{}.{}' references invalid table(s) or column(s) or function(s) or definer/invoker of view lack \
             rights to use them: {cause}",
            view.db, view.name
        ),
    )
}
