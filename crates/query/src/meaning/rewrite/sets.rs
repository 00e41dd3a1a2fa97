//! Set operations as derived tables, which `set_operations` plans.

use crate::meaning::set_operations::{ANCHOR, RECURSION, derived, query_of};
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    GroupByExpr, Ident, Query, Select, SelectFlavor, SelectItem, SetExpr, SetOperator, TableAlias,
    TableFactor, TableWithJoins, WildcardAdditionalOptions, With, visit_relations,
};
use std::ops::ControlFlow;

/// `a UNION b` as `SELECT * FROM (a UNION b)`, and so with the others and VALUES. The two branches
/// of a recursive CTE are left where they are.
pub(super) fn bracket(query: &mut Query) {
    let is_set = match query.body.as_ref() {
        SetExpr::Values(_) => true,
        SetExpr::SetOperation { left, .. } => !is_anchor(left),
        _ => false,
    };
    if is_set {
        let body = std::mem::replace(query.body.as_mut(), empty());
        *query.body = all_of(derived(query_of(body)));
    }
}

/// Names the branches of the CTEs that read themselves, which are counted from `first` on. Gives
/// their number.
pub(super) fn mark_recursions(with: &mut With, first: usize) -> usize {
    if !with.recursive {
        return 0;
    }
    let mut found = 0;
    for cte in &mut with.cte_tables {
        let name = &cte.alias.name.value;
        let SetExpr::SetOperation { op: SetOperator::Union, left, right, .. } = cte.query.body.as_mut()
        else {
            continue;
        };
        if !reads(right, name) {
            continue;
        }
        let number = first + found;
        found += 1;
        for (part, branch) in [(ANCHOR, left), (RECURSION, right)] {
            let body = std::mem::replace(branch.as_mut(), empty());
            let mut table = derived(query_of(body));
            if let TableFactor::Derived { alias, .. } = &mut table {
                *alias = Some(named(&format!("{part}{number}")));
            }
            **branch = all_of(table);
        }
    }
    found
}

fn reads(body: &SetExpr, cte: &str) -> bool {
    let is_it = |name: &sqlparser::ast::ObjectName| match name.0.as_slice() {
        [only] if only.as_ident().is_some_and(|ident| ident.value == cte) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    visit_relations(body, is_it).is_break()
}

fn is_anchor(body: &SetExpr) -> bool {
    let SetExpr::Select(select) = body else { return false };
    matches!(select.from.as_slice(), [table] if matches!(
        &table.relation,
        TableFactor::Derived { alias: Some(alias), .. } if alias.name.value.starts_with(ANCHOR)
    ))
}

fn named(name: &str) -> TableAlias {
    TableAlias { explicit: true, name: Ident::with_quote('`', name), columns: Vec::new(), at: None }
}

fn empty() -> SetExpr {
    SetExpr::Values(sqlparser::ast::Values { explicit_row: false, value_keyword: false, rows: Vec::new() })
}

/// `SELECT * FROM table`.
fn all_of(table: TableFactor) -> SetExpr {
    SetExpr::Select(Box::new(Select {
        select_token: AttachedToken::empty(),
        optimizer_hints: Vec::new(),
        distinct: None,
        select_modifiers: None,
        top: None,
        top_before_distinct: false,
        projection: vec![SelectItem::Wildcard(WildcardAdditionalOptions::default())],
        exclude: None,
        into: None,
        from: vec![TableWithJoins { relation: table, joins: Vec::new() }],
        lateral_views: Vec::new(),
        prewhere: None,
        selection: None,
        connect_by: Vec::new(),
        group_by: GroupByExpr::Expressions(Vec::new(), Vec::new()),
        cluster_by: Vec::new(),
        distribute_by: Vec::new(),
        sort_by: Vec::new(),
        having: None,
        named_window: Vec::new(),
        qualify: None,
        window_before_qualify: false,
        value_table_mode: None,
        flavor: SelectFlavor::Standard,
    }))
}
