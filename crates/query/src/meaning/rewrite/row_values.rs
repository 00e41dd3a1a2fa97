//! Comparisons of rows, `(a, b) = (1, 2)`, as comparisons of their values: DataFusion's rows know no NULL.

use super::ast;
use super::exprs::{not, tree};
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{BinaryOperator, CaseWhen, Expr, Ident, Query, SelectItem, SetExpr, Value};
use tributary_types::{ErrorCode, SqlError};

/// The values of a row.
pub(super) fn of(expr: &Expr) -> Option<&[Expr]> {
    match expr {
        Expr::Tuple(values) => Some(values),
        Expr::Nested(inner) => of(inner),
        _ => None,
    }
}

fn wrong_count(count: usize) -> SqlError {
    SqlError::new(ErrorCode::OperandColumns, format!("Operand should contain {count} column(s)"))
}

/// `left op right` of two rows.
pub(super) fn compare(left: &[Expr], op: &BinaryOperator, right: &[Expr]) -> Result<Expr, SqlError> {
    use BinaryOperator as Op;
    if left.len() != right.len() {
        return Err(wrong_count(left.len()));
    }
    let pairs = || left.iter().zip(right);
    let each =
        |op: Op| pairs().map(|(left, right)| ast::binary(left.clone(), op.clone(), right.clone())).collect();
    Ok(match op {
        Op::Eq | Op::Spaceship => all(each(op.clone()), Op::And),
        Op::NotEq => all(each(Op::NotEq), Op::Or),
        Op::Lt | Op::LtEq | Op::Gt | Op::GtEq => {
            let strict = match op {
                Op::Lt | Op::LtEq => Op::Lt,
                _ => Op::Gt,
            };
            let mut decided: Option<Expr> = None;
            for (left, right) in pairs().rev() {
                decided = Some(match decided {
                    None => ast::binary(left.clone(), op.clone(), right.clone()),
                    Some(rest) => {
                        let same = ast::binary(left.clone(), Op::Eq, right.clone());
                        let first = ast::binary(left.clone(), strict.clone(), right.clone());
                        all(vec![first, all(vec![same, rest], Op::And)], Op::Or)
                    }
                });
            }
            decided.ok_or_else(|| wrong_count(1))?
        }
        _ => return Err(wrong_count(1)),
    })
}

/// A row in a list of rows.
pub(super) fn in_list(row: &[Expr], list: &[Expr], negated: bool) -> Result<Expr, SqlError> {
    let same = list
        .iter()
        .map(|other| compare(row, &BinaryOperator::Eq, of(other).ok_or_else(|| wrong_count(row.len()))?));
    let any = all(same.collect::<Result<Vec<_>, _>>()?, BinaryOperator::Or);
    Ok(if negated { not(any) } else { any })
}

/// A row among the rows of a subquery: true if one is equal, NULL if a comparison with one is NULL.
pub(super) fn in_subquery(row: &[Expr], subquery: &Query, negated: bool) -> Result<Expr, SqlError> {
    let names: Vec<Ident> = (0..row.len()).map(|at| Ident::new(format!("__value_{at}"))).collect();
    let others: Vec<Expr> =
        names.iter().map(|name| Expr::CompoundIdentifier(vec![Ident::new("__row"), name.clone()])).collect();
    let same = compare(row, &BinaryOperator::Eq, &others)?;
    let exists = |condition: Expr| -> Result<Expr, SqlError> {
        let mut query =
            tributary_sql::parse_query("SELECT 1 FROM (SELECT 1) AS __row (x) WHERE TRUE")?.ast.into_inner();
        let SetExpr::Select(select) = query.body.as_mut() else { return Err(wrong_count(1)) };
        select.projection = vec![SelectItem::UnnamedExpr(ast::number(1))];
        select.selection = Some(condition);
        for table in &mut select.from {
            if let sqlparser::ast::TableFactor::Derived { subquery: inner, alias: Some(alias), .. } =
                &mut table.relation
            {
                **inner = subquery.clone();
                let column = alias.columns.remove(0);
                alias.columns = names
                    .iter()
                    .map(|name| sqlparser::ast::TableAliasColumnDef { name: name.clone(), ..column.clone() })
                    .collect();
            }
        }
        Ok(Expr::Exists { subquery: Box::new(query), negated: false })
    };
    let branch = |condition: Expr, result: Value| -> Result<CaseWhen, SqlError> {
        Ok(CaseWhen { condition: exists(condition)?, result: ast::value(result) })
    };
    Ok(Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![
            branch(same.clone(), Value::Boolean(!negated))?,
            branch(Expr::IsNull(Box::new(Expr::Nested(Box::new(same)))), Value::Null)?,
        ],
        else_result: Some(Box::new(ast::value(Value::Boolean(negated)))),
    })
}

fn all(conditions: Vec<Expr>, op: BinaryOperator) -> Expr {
    Expr::Nested(Box::new(tree(conditions, &op)))
}
