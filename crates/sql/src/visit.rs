//! Walks over sqlparser's trees, compiled once.
//!
//! sqlparser derives its walks as generic functions: each visitor's type makes the compiler translate the walk over the whole
//! grammar again, tens of thousands of lines, in each crate that has one. Here one type-erased visitor walks for all of them; a
//! call through a pointer per node is negligible beside parsing.
//!
//! Not its business: the purpose of a visitor.

use sqlparser::ast::{
    Expr, ObjectName, Query, Select, SelectItem, Statement, TableFactor, ValueWithSpan, Visit, VisitMut,
    Visitor, VisitorMut,
};
use std::ops::ControlFlow;

/// Walks over a query.
pub fn walk_query<V: Visitor>(query: &Query, visitor: &mut V) -> ControlFlow<V::Break> {
    let mut kept = Kept { visitor, broke: None };
    erased_query(query, &mut kept);
    kept.outcome()
}

/// Walks over an expression.
pub fn walk_expr<V: Visitor>(expr: &Expr, visitor: &mut V) -> ControlFlow<V::Break> {
    let mut kept = Kept { visitor, broke: None };
    erased_expr(expr, &mut kept);
    kept.outcome()
}

/// Walks over an item of a SELECT list.
pub fn walk_item<V: Visitor>(item: &SelectItem, visitor: &mut V) -> ControlFlow<V::Break> {
    let mut kept = Kept { visitor, broke: None };
    erased_item(item, &mut kept);
    kept.outcome()
}

/// Walks over a query and may change it.
pub fn walk_query_mut<V: VisitorMut>(query: &mut Query, visitor: &mut V) -> ControlFlow<V::Break> {
    let mut kept = KeptMut { visitor, broke: None };
    erased_query_mut(query, &mut kept);
    kept.outcome()
}

/// Walks over an expression and may change it.
pub fn walk_expr_mut<V: VisitorMut>(expr: &mut Expr, visitor: &mut V) -> ControlFlow<V::Break> {
    let mut kept = KeptMut { visitor, broke: None };
    erased_expr_mut(expr, &mut kept);
    kept.outcome()
}

type DynVisitor<'a> = dyn Visitor<Break = ()> + 'a;
type DynVisitorMut<'a> = dyn VisitorMut<Break = ()> + 'a;

// None of these is generic, so that the walk is compiled here and nowhere else. How a walk ended is in the visitor.
fn erased_query(query: &Query, visitor: &mut DynVisitor) {
    let _ = query.visit(&mut Erased(visitor));
}

fn erased_expr(expr: &Expr, visitor: &mut DynVisitor) {
    let _ = expr.visit(&mut Erased(visitor));
}

fn erased_item(item: &SelectItem, visitor: &mut DynVisitor) {
    let _ = item.visit(&mut Erased(visitor));
}

fn erased_query_mut(query: &mut Query, visitor: &mut DynVisitorMut) {
    let _ = query.visit(&mut ErasedMut(visitor));
}

fn erased_expr_mut(expr: &mut Expr, visitor: &mut DynVisitorMut) {
    let _ = expr.visit(&mut ErasedMut(visitor));
}

struct Erased<'a, 'b>(&'a mut DynVisitor<'b>);
struct ErasedMut<'a, 'b>(&'a mut DynVisitorMut<'b>);

/// A visitor, and the value it broke off with.
struct Kept<'a, V: Visitor> {
    visitor: &'a mut V,
    broke: Option<V::Break>,
}

/// As [`Kept`].
struct KeptMut<'a, V: VisitorMut> {
    visitor: &'a mut V,
    broke: Option<V::Break>,
}

impl<V: Visitor> Kept<'_, V> {
    fn outcome(self) -> ControlFlow<V::Break> {
        self.broke.map_or(ControlFlow::Continue(()), ControlFlow::Break)
    }
}

impl<V: VisitorMut> KeptMut<'_, V> {
    fn outcome(self) -> ControlFlow<V::Break> {
        self.broke.map_or(ControlFlow::Continue(()), ControlFlow::Break)
    }
}

/// Hands all methods of sqlparser's visitors to `$implement`: one that is missing here would never be called.
macro_rules! with_every_method {
    ($implement:ident) => {
        $implement! {
            pre_visit_query(Query),
            post_visit_query(Query),
            pre_visit_select(Select),
            post_visit_select(Select),
            pre_visit_relation(ObjectName),
            post_visit_relation(ObjectName),
            pre_visit_table_factor(TableFactor),
            post_visit_table_factor(TableFactor),
            pre_visit_expr(Expr),
            post_visit_expr(Expr),
            pre_visit_statement(Statement),
            post_visit_statement(Statement),
            pre_visit_value(ValueWithSpan),
            post_visit_value(ValueWithSpan),
        }
    };
}

macro_rules! forward {
    ($($method:ident($node:ident)),+ $(,)?) => {
        impl Visitor for Erased<'_, '_> {
            type Break = ();
            $(fn $method(&mut self, node: &$node) -> ControlFlow<()> {
                self.0.$method(node)
            })+
        }

        impl VisitorMut for ErasedMut<'_, '_> {
            type Break = ();
            $(fn $method(&mut self, node: &mut $node) -> ControlFlow<()> {
                self.0.$method(node)
            })+
        }

        impl<V: Visitor> Visitor for Kept<'_, V> {
            type Break = ();
            $(fn $method(&mut self, node: &$node) -> ControlFlow<()> {
                self.visitor.$method(node).map_break(|value| self.broke = Some(value))
            })+
        }

        impl<V: VisitorMut> VisitorMut for KeptMut<'_, V> {
            type Break = ();
            $(fn $method(&mut self, node: &mut $node) -> ControlFlow<()> {
                self.visitor.$method(node).map_break(|value| self.broke = Some(value))
            })+
        }
    };
}

with_every_method!(forward);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_query;
    use std::collections::BTreeSet;

    /// Records which methods were called; breaks off at a literal if configured to.
    #[derive(Default)]
    struct Witness {
        called: BTreeSet<&'static str>,
        breaks: bool,
    }

    macro_rules! witness {
        ($($method:ident($node:ident)),+ $(,)?) => {
            impl Visitor for Witness {
                type Break = &'static str;
                $(fn $method(&mut self, _: &$node) -> ControlFlow<&'static str> {
                    self.note(stringify!($method))
                })+
            }

            impl VisitorMut for Witness {
                type Break = &'static str;
                $(fn $method(&mut self, _: &mut $node) -> ControlFlow<&'static str> {
                    self.note(stringify!($method))
                })+
            }
        };
    }

    with_every_method!(witness);

    impl Witness {
        fn note(&mut self, method: &'static str) -> ControlFlow<&'static str> {
            self.called.insert(method);
            if self.breaks && method == "pre_visit_value" {
                return ControlFlow::Break("at the literal");
            }
            ControlFlow::Continue(())
        }
    }

    fn query() -> Query {
        let query = parse_query("SELECT a + 1 FROM t WHERE b IN (SELECT c FROM u)").expect("a query");
        query.ast.into_inner()
    }

    #[test]
    fn every_method_is_called_by_both_walks() {
        let mut seen = Witness::default();
        assert_eq!(walk_query(&query(), &mut seen), ControlFlow::Continue(()));
        // All but the two for statements, which a query is not.
        assert_eq!(seen.called.len(), 12, "{:?}", seen.called);
        let mut seen_mut = Witness::default();
        assert_eq!(walk_query_mut(&mut query(), &mut seen_mut), ControlFlow::Continue(()));
        assert_eq!(seen_mut.called, seen.called);
    }

    #[test]
    fn a_walk_ends_where_the_visitor_breaks_off_and_hands_its_value_on() {
        let mut visitor = Witness { breaks: true, ..Witness::default() };
        assert_eq!(walk_query(&query(), &mut visitor), ControlFlow::Break("at the literal"));
        assert!(!visitor.called.contains("post_visit_value"));
        let mut visitor = Witness { breaks: true, ..Witness::default() };
        assert_eq!(walk_query_mut(&mut query(), &mut visitor), ControlFlow::Break("at the literal"));
        assert!(!visitor.called.contains("post_visit_select"));
    }
}
