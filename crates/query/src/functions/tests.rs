use super::*;
use arrow::array::{Array, new_null_array};
use datafusion::config::ConfigOptions;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Imitates the optimizer's test whether a condition can be true of a row of NULLs: columns have no type then, though the
/// function was planned for one.
fn call(function: &ScalarUDF, arrays: &[ArrayRef]) -> Result<ColumnarValue> {
    let arg_fields: Vec<FieldRef> =
        arrays.iter().map(|array| Arc::new(Field::new("", array.data_type().clone(), true))).collect();
    let scalar_arguments = vec![None; arrays.len()];
    let return_field = function.return_field_from_args(ReturnFieldArgs {
        arg_fields: &arg_fields,
        scalar_arguments: &scalar_arguments,
    })?;
    function.invoke_with_args(ScalarFunctionArgs {
        args: arrays.iter().cloned().map(ColumnarValue::Array).collect(),
        arg_fields,
        number_rows: 1,
        return_field,
        config_options: Arc::new(ConfigOptions::default()),
    })
}

fn list() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::Int64, true)))
}

#[test]
fn a_null_without_a_type_is_no_panic_in_any_function() {
    let types = [
        DataType::Null,
        DataType::Boolean,
        DataType::Int64,
        DataType::Decimal128(10, 2),
        DataType::Float64,
        DataType::Utf8,
        DataType::Date32,
        DATETIME,
        list(),
    ];
    let mut panics = Vec::new();
    for function in all() {
        for count in 0..5 {
            for data_type in &types {
                // None of the arguments, or one of them, has the type; all others have no type.
                for typed in 0..=count {
                    let array = |at| new_null_array(if at == typed { data_type } else { &DataType::Null }, 1);
                    let untyped: Vec<ArrayRef> = (0..count).map(array).collect();
                    let array = |at| new_null_array(if at == typed { &DataType::Null } else { data_type }, 1);
                    let one_untyped: Vec<ArrayRef> = (0..count).map(array).collect();
                    for arrays in [untyped, one_untyped] {
                        if catch_unwind(AssertUnwindSafe(|| call(function, &arrays))).is_err() {
                            let types: Vec<&DataType> = arrays.iter().map(Array::data_type).collect();
                            panics.push(format!("{}({types:?})", function.name()));
                        }
                    }
                }
            }
        }
    }
    panics.sort();
    panics.dedup();
    assert!(panics.is_empty(), "{}", panics.join("\n"));
}
