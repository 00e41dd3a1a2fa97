//! Queries that load rejected rows again: which rows such a query reads, and the query over just these.
//!
//! Not its business: where rejected rows are, and how they are marked.

use crate::ast::{SelectQuery, placeholders};
use sqlparser::ast::{
    Expr, GroupByExpr, Ident, Query, Select, SelectItem, SetExpr, TableFactor, TableWithJoins,
};

/// The table of rejected rows, in `information_schema`.
const REJECTED_ROWS: [&str; 2] = ["information_schema", "rejected_rows"];

/// A query that gives one row for each rejected row that it reads.
#[derive(Clone, Debug)]
pub struct ReplayQuery {
    /// Gives the columns `TXN_ID`, `LOAD_ID` and `REJECT_ID` of the rows that it reads.
    pub rows: SelectQuery,
    /// The query over all rows that the table has: to be run on those.
    pub values: SelectQuery,
}

impl SelectQuery {
    /// Takes the query apart if it reads `information_schema.rejected_rows` and nothing else, and may give one row for each: it does not
    /// group, sort, limit or join rows and has no `?`. `None`: it is another query.
    #[must_use]
    pub fn replay(&self) -> Option<ReplayQuery> {
        if !is_over_rejected_rows(&self.ast) || !placeholders(&self.ast).is_empty() {
            return None;
        }
        let (mut rows, mut values) = (self.clone(), self.clone());
        let column = |name: &&str| SelectItem::UnnamedExpr(Expr::Identifier(Ident::new(*name)));
        let of_rows = select_of(&mut rows.ast)?;
        of_rows.projection = ["TXN_ID", "LOAD_ID", "REJECT_ID"].iter().map(column).collect();
        // The text has other columns.
        rows.text = String::new();
        select_of(&mut values.ast)?.selection = None;
        Some(ReplayQuery { rows, values })
    }
}

fn select_of(query: &mut Query) -> Option<&mut Select> {
    match query.body.as_mut() {
        SetExpr::Select(select) => Some(select),
        _ => None,
    }
}

fn is_over_rejected_rows(query: &Query) -> bool {
    let is_plain = query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none();
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    let [TableWithJoins { relation: TableFactor::Table { name, args: None, .. }, joins }] = &select.from[..]
    else {
        return false;
    };
    let parts = name.0.iter().map(|part| part.as_ident().map(|ident| ident.value.as_str()));
    let is_it = name.0.len() == REJECTED_ROWS.len()
        && parts
            .zip(REJECTED_ROWS)
            .all(|(part, wanted)| part.is_some_and(|part| part.eq_ignore_ascii_case(wanted)));
    let is_grouped = match &select.group_by {
        GroupByExpr::Expressions(by, with) => !by.is_empty() || !with.is_empty(),
        GroupByExpr::All(_) => true,
    };
    is_plain
        && is_it
        && joins.is_empty()
        && !is_grouped
        && select.distinct.is_none()
        && select.having.is_none()
        && select.qualify.is_none()
        && select.lateral_views.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_query;

    #[test]
    fn a_query_over_rejected_rows_is_taken_apart() {
        let sql =
            "SELECT r.raw_row FROM INFORMATION_SCHEMA.rejected_rows r WHERE r.code = 'x' AND txn_id > 7";
        let ReplayQuery { rows, values } = parse_query(sql).expect("legal").replay().expect("it is one");
        let rows = rows.ast.to_string();
        assert_eq!(
            rows,
            "SELECT TXN_ID, LOAD_ID, REJECT_ID FROM INFORMATION_SCHEMA.rejected_rows r WHERE r.code = 'x' AND txn_id > 7"
        );
        assert_eq!(values.ast.to_string(), "SELECT r.raw_row FROM INFORMATION_SCHEMA.rejected_rows r");
    }

    #[test]
    fn queries_that_may_give_other_rows_are_left_alone() {
        let table = "information_schema.rejected_rows";
        for sql in [
            format!("SELECT raw_row FROM {table} LIMIT 5"),
            format!("SELECT raw_row FROM {table} ORDER BY txn_id"),
            format!("SELECT DISTINCT raw_row FROM {table}"),
            format!("SELECT raw_row FROM {table} GROUP BY raw_row"),
            format!("SELECT raw_row FROM {table}, t"),
            format!("SELECT raw_row FROM {table} JOIN t ON 1 = 1"),
            format!("SELECT raw_row FROM {table} WHERE txn_id = ?"),
            format!("SELECT raw_row FROM {table} UNION ALL SELECT 1"),
            format!("WITH r AS (SELECT 1) SELECT raw_row FROM {table}"),
            "SELECT raw_row FROM rejected_rows".to_owned(),
            "SELECT raw_row FROM information_schema.tables".to_owned(),
        ] {
            assert!(parse_query(&sql).expect("legal").replay().is_none(), "{sql}");
        }
    }
}
