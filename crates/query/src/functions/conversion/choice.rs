//! CASE, IF and COALESCE until their types are known, and NULLIF.
//!
//! The SQL planner uses the first branch's type for all. So the rewrite of a query writes calls of the functions here instead,
//! whose type is the common one, and [`plan`] turns them into expressions of DataFusion, with every branch converted, before any
//! other rule sees the plan. They never run, except `nullif`.

use crate::functions::MySqlFunction;
use crate::functions::Param;
use crate::functions::conversion::cast;
use crate::functions::conversion::convert;
use crate::functions::conversion::exprs::widened;
use crate::functions::nested::alike::normal;
use crate::types;
use crate::types::kind::DATETIME;
use crate::types::kind::{Kind, kind};
use crate::types::metadata;
use arrow::array::ArrayRef;
use arrow::compute::kernels::cmp;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, internal_err, plan_err};
use datafusion::logical_expr::expr::{Case, ScalarFunction};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// A choice between values, by the order of its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Form {
    /// Condition, value, condition, value, …, and a last value for ELSE.
    Case,
    /// The operand, then as [`Form::Case`] with values to compare with in the conditions' places.
    CaseOf,
    Coalesce,
}

impl Form {
    fn named(name: &str) -> Option<Self> {
        match name {
            "__case" => Some(Self::Case),
            "__case_of" => Some(Self::CaseOf),
            "__coalesce" => Some(Self::Coalesce),
            _ => None,
        }
    }

    /// Whether the argument at `index` of `count` can be the result.
    const fn is_value(self, index: usize, count: usize) -> bool {
        let pairs_from = match self {
            Self::Coalesce => return true,
            Self::Case => 0,
            Self::CaseOf => 1,
        };
        index >= pairs_from && ((index - pairs_from) % 2 == 1 || index + 1 == count && index > pairs_from)
    }
}

/// The function of a form; see the module.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Choice {
    name: &'static str,
    form: Form,
    signature: Signature,
}

pub fn choices() -> Vec<Choice> {
    let choice =
        |name, form| Choice { name, form, signature: Signature::variadic_any(Volatility::Immutable) };
    vec![
        choice("__case", Form::Case),
        choice("__case_of", Form::CaseOf),
        choice("__coalesce", Form::Coalesce),
    ]
}

impl ScalarUDFImpl for Choice {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        internal_err!("{} has its type from return_field_from_args", self.name)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let count = args.arg_fields.len();
        if count == 0 {
            return plan_err!("COALESCE needs a value");
        }
        let values = (0..count).filter(|index| self.form.is_value(*index, count));
        let typed: Vec<(DataType, Option<&ScalarValue>)> = values
            .map(|index| {
                let constant = args.scalar_arguments.get(index).copied().flatten();
                (args.arg_fields[index].data_type().clone(), constant)
            })
            .collect();
        let field = Field::new(self.name, common(&typed)?, true);
        let values = (0..count).filter(|index| self.form.is_value(*index, count));
        let digits = common_digits(values.map(|index| args.arg_fields[index].as_ref()));
        Ok(Arc::new(match digits.filter(|_| *field.data_type() == DATETIME) {
            Some(digits) => field.with_metadata(metadata::with_digits(digits)),
            None => field,
        }))
    }

    fn short_circuits(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("{} is planned as a CASE", self.name)
    }
}

/// The common type of values, some of them constants: `0` next to a FLOAT leaves it a FLOAT.
fn common(values: &[(DataType, Option<&ScalarValue>)]) -> Result<DataType> {
    let small = |constant: &ScalarValue| matches!(constant, ScalarValue::Int64(Some(value)) if i16::try_from(*value).is_ok());
    let has_float = values.iter().any(|(data_type, _)| *data_type == DataType::Float32);
    let types = values.iter().map(|(data_type, constant)| {
        if has_float && constant.is_some_and(small) { &DataType::Int16 } else { data_type }
    });
    match types::common(types) {
        Some(data_type) => Ok(data_type),
        None => {
            let types: Vec<String> = values.iter().map(|(data_type, _)| data_type.to_string()).collect();
            plan_err!("no type holds the values of all of {}; use CAST", types.join(", "))
        }
    }
}

/// How many digits of a second the values have at most, if that is known of all of them.
pub fn common_digits<'a>(mut values: impl Iterator<Item = &'a Field>) -> Option<u8> {
    values.try_fold(0, |most: u8, field| match kind(field.data_type()) {
        Kind::Null | Kind::Date => Some(most),
        _ => metadata::digits(field).map(|digits| most.max(digits)),
    })
}

/// The expression for a call; `None` for other functions. `alike` makes values comparable with the first of them.
pub fn plan(
    call: &ScalarFunction,
    field_of: impl Fn(&Expr) -> Result<FieldRef>,
    alike: impl Fn(Expr, Vec<Expr>) -> (Expr, Vec<Expr>),
) -> Result<Option<Expr>> {
    let Some(form) = Form::named(call.func.name()) else { return Ok(None) };
    let count = call.args.len();
    let mut typed = Vec::with_capacity(count);
    let mut fields = Vec::with_capacity(count);
    for (index, arg) in call.args.iter().enumerate() {
        if form.is_value(index, count) {
            let constant = if let Expr::Literal(scalar, _) = arg { Some(scalar) } else { None };
            let field = field_of(arg)?;
            typed.push((field.data_type().clone(), constant));
            fields.push(field);
        }
    }
    let to = common(&typed)?;
    let mut types = typed.into_iter().map(|(data_type, _)| data_type);
    let args = call.args.iter().enumerate().map(|(index, arg)| match form.is_value(index, count) {
        true => widened(arg.clone(), &types.next().unwrap_or(DataType::Null), &to),
        false => arg.clone(),
    });
    let mut args: Vec<Expr> = args.collect();
    // An expression of DataFusion does not say how many digits it has; a cast to them does.
    let digits = common_digits(fields.iter().map(AsRef::as_ref)).filter(|_| to == DATETIME);
    let shown = |expr: Expr| match digits.and_then(|digits| cast::function(&datetime(digits))) {
        Some(cast) => cast.call(vec![expr]),
        None => expr,
    };
    if form == Form::Coalesce {
        return Ok(Some(shown(datafusion::functions::core::coalesce().call(args))));
    }
    let operand = (form == Form::CaseOf).then(|| args.remove(0));
    let otherwise = if args.len() % 2 == 1 { args.pop() } else { None };
    let (mut whens, mut thens) = (Vec::new(), Vec::new());
    let mut rest = args.into_iter();
    while let (Some(when), Some(then)) = (rest.next(), rest.next()) {
        whens.push(when);
        thens.push(then);
    }
    let operand = operand.map(|operand| {
        let (operand, converted) = alike(operand, std::mem::take(&mut whens));
        whens = converted;
        Box::new(operand)
    });
    let pairs = whens.into_iter().map(Box::new).zip(thens.into_iter().map(Box::new)).collect();
    Ok(Some(shown(Expr::Case(Case::new(operand, pairs, otherwise.map(Box::new))))))
}

fn datetime(digits: u8) -> String {
    cast::Target::DateTime { digits }.function(false)
}

pub(super) fn functions() -> Vec<MySqlFunction> {
    vec![
        MySqlFunction::new("nullif", &[Param::Any, Param::Any], crate::functions::utf8, |args| {
            null_if(&args[0], &args[1])
        })
        .returning(|types| types[0].clone())
        .with_digits(|args| metadata::digits(&args.arg_fields[0])),
    ]
}

/// The first value, or NULL where it equals the second as `=` compares them.
fn null_if(left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef> {
    let types = [left.data_type(), right.data_type()];
    if types.contains(&&DataType::Null) {
        return Ok(Arc::clone(left));
    }
    let kinds = types.map(kind);
    let is_date = |kind: &Kind| matches!(kind, Kind::Date | Kind::DateTime);
    let convert = |array: &ArrayRef| {
        if types[0] == types[1] {
            return Ok(Arc::clone(array));
        }
        if let Some(to) = types::comparison(types) {
            return Ok(arrow::compute::cast(array, &to)?);
        }
        match kinds {
            kinds if kinds.iter().all(|kind| *kind == Kind::Text) => convert::to_text(array),
            kinds if kinds.iter().any(is_date) => convert::to_datetime(array),
            _ => convert::to_real(array),
        }
    };
    let equal = cmp::eq(&normal(convert(left)?), &normal(convert(right)?))?;
    Ok(arrow::compute::nullif(left, &equal)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_knows_which_arguments_are_values() {
        let values = |form: Form, count| {
            (0..count).filter(|index| form.is_value(*index, count)).collect::<Vec<usize>>()
        };
        assert_eq!(values(Form::Case, 2), [1]);
        assert_eq!(values(Form::Case, 3), [1, 2]);
        assert_eq!(values(Form::Case, 5), [1, 3, 4]);
        assert_eq!(values(Form::CaseOf, 3), [2]);
        assert_eq!(values(Form::CaseOf, 4), [2, 3]);
        assert_eq!(values(Form::Coalesce, 3), [0, 1, 2]);
    }
}
