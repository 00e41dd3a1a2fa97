//! `CAST(x AS type)` for ARRAY, MAP and STRUCT.
//!
//! A function here converts to one type, whose text is part of its name, as with those of [`cast`](super::cast). The parts of a
//! value are converted as values of their own; a text is read as loads read it, and what is no such value is NULL.

use super::cast::{self, Target};
use super::convert;
use crate::functions::dates::zone;
use crate::functions::json::made;
use crate::functions::nested::made_maps;
use crate::types::kind::is_text;
use crate::types::metadata;
use arrow::array::{
    Array, ArrayRef, AsArray, ListArray, MapArray, StringArray, StringBuilder, StructArray, new_null_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, internal_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;
use tributary_types::nested_text::{Form, Malformed, Parts, Token, field_values};
use tributary_types::{DataType as Declared, Nested, NestedType, StructField};

/// The function that converts to the type of this text, in lower case; `None` if it is no ARRAY, MAP or STRUCT.
pub(super) fn function(name: &str, to: &str, lenient: bool) -> Option<Arc<ScalarUDF>> {
    let Ok(Declared::Nested(to)) = tributary_sql::parse_type(to) else { return None };
    let signature = Signature::any(1, Volatility::Immutable);
    Some(Arc::new(ScalarUDF::new_from_impl(CastToNested { name: name.to_owned(), to, lenient, signature })))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CastToNested {
    name: String,
    to: Nested,
    lenient: bool,
    signature: Signature,
}

impl ScalarUDFImpl for CastToNested {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let to = Declared::Nested(self.to);
        match types {
            [from] if !is_convertible(from, to) => {
                let from = crate::types::shown::type_text(&Field::new("", from.clone(), true));
                plan_err!("CAST of {from} to {to} is not supported")
            }
            _ => Ok(to.to_arrow()),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let field = Field::new(&self.name, self.return_type(&types)?, true);
        Ok(Arc::new(field.with_metadata(metadata::declared(Declared::Nested(self.to)))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let known = args.arg_fields.first().and_then(|field| metadata::known_type(field));
        let rules = Rules { lenient: self.lenient, form: form_of(known) };
        let converted = |array: &ArrayRef| rules.converted(array, known, Declared::Nested(self.to));
        zone::within(zone::of(&args.config_options), || match args.args.as_slice() {
            [ColumnarValue::Array(array)] => Ok(ColumnarValue::Array(converted(array)?)),
            [ColumnarValue::Scalar(scalar)] => {
                let array = converted(&scalar.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?))
            }
            _ => internal_err!("{} takes one value", self.name),
        })
    }
}

/// Documents have the names of fields; other texts need not.
fn form_of(known: Option<Declared>) -> Form {
    match known {
        Some(Declared::Json | Declared::Variant) => Form::Json,
        _ => Form::Text,
    }
}

/// Whether values of one type are converted to another.
fn is_convertible(from: &DataType, to: Declared) -> bool {
    let Declared::Nested(nested) = to else {
        let is_shown = matches!(
            to,
            Declared::String | Declared::Varchar { .. } | Declared::Char { .. } | Declared::Json
        );
        return is_shown || !from.is_nested();
    };
    match (from, nested.kept()) {
        (DataType::Null, _) => true,
        (from, _) if is_text(from) => true,
        (
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::FixedSizeList(item, _)
            | DataType::ListView(item),
            NestedType::Array(to),
        ) => is_convertible(item.data_type(), *to),
        (DataType::Map(entries, _), NestedType::Map(key, value)) => match entries.data_type() {
            DataType::Struct(pair) => {
                is_convertible(pair[0].data_type(), *key) && is_convertible(pair[1].data_type(), *value)
            }
            _ => false,
        },
        (DataType::Struct(from), NestedType::Struct(to)) => {
            let mut pairs = from.iter().zip(to);
            from.len() == to.len() && pairs.all(|(from, to)| is_convertible(from.data_type(), to.data_type))
        }
        _ => false,
    }
}

/// How values are converted.
#[derive(Clone, Copy)]
struct Rules {
    /// A number that does not fit is NULL and no error.
    lenient: bool,
    form: Form,
}

impl Rules {
    /// The values in another type; `known` is their declared type.
    fn converted(self, array: &ArrayRef, known: Option<Declared>, to: Declared) -> Result<ArrayRef> {
        let Declared::Nested(nested) = to else { return self.leaf(array, known, to) };
        let parts = match known {
            Some(Declared::Nested(known)) => Some(known.kept()),
            _ => None,
        };
        match (array.data_type(), nested.kept()) {
            (DataType::Null, _) => Ok(new_null_array(&to.to_arrow(), array.len())),
            (from, _) if is_text(from) => {
                self.of_texts(convert::safe_cast(array, &DataType::Utf8)?.as_string(), nested)
            }
            (DataType::List(_), NestedType::Array(element)) => {
                let known = match parts {
                    Some(NestedType::Array(element)) => Some(*element),
                    _ => None,
                };
                let lists = array.as_list::<i32>();
                let values = self.converted(lists.values(), known, *element)?;
                let field = Arc::new(Field::new_list_field(element.to_arrow(), true));
                let made = ListArray::try_new(field, lists.offsets().clone(), values, lists.nulls().cloned());
                Ok(Arc::new(made?))
            }
            (
                DataType::LargeList(item) | DataType::FixedSizeList(item, _) | DataType::ListView(item),
                NestedType::Array(_),
            ) => self.converted(&convert::safe_cast(array, &DataType::List(Arc::clone(item)))?, known, to),
            (DataType::Map(..), NestedType::Map(key, value)) => {
                let known = match parts {
                    Some(NestedType::Map(key, value)) => (Some(*key), Some(*value)),
                    _ => (None, None),
                };
                let maps = array.as_map();
                let keys = self.converted(maps.keys(), known.0, *key)?;
                let values = self.converted(maps.values(), known.1, *value)?;
                map_of(&keys, &values, &entries_of(maps), to)
            }
            (DataType::Struct(_), NestedType::Struct(fields)) => {
                let given = array.as_struct();
                let columns = given.columns().iter().zip(fields).enumerate().map(|(at, (column, field))| {
                    let known = match parts {
                        Some(NestedType::Struct(known)) => known.get(at).map(|field| field.data_type),
                        _ => None,
                    };
                    self.converted(column, known, field.data_type)
                });
                struct_of(columns.collect::<Result<_>>()?, given.nulls().cloned(), to)
            }
            (from, _) => plan_err!("CAST of {from} to {to} is not supported"),
        }
    }

    /// Values that do not consist of values.
    fn leaf(self, array: &ArrayRef, known: Option<Declared>, to: Declared) -> Result<ArrayRef> {
        let number = |target: Target| cast::converted(array, target, self.lenient);
        let texts = || match known {
            Some(known) => convert::to_text_of(array, known),
            None => convert::to_text(array),
        };
        match to {
            Declared::Boolean => convert::to_boolean(array),
            Declared::TinyInt => number(Target::TinyInt),
            Declared::SmallInt => number(Target::SmallInt),
            Declared::Int => number(Target::Int),
            Declared::BigInt => number(Target::BigInt),
            Declared::LargeInt => number(Target::LargeInt),
            Declared::Float => number(Target::Float),
            Declared::Double => convert::to_real(array),
            Declared::Decimal { precision, scale } => number(Target::Decimal { precision, scale }),
            Declared::Date => convert::safe_cast(&convert::to_datetime(array)?, &DataType::Date32),
            Declared::DateTime { scale } => number(Target::DateTime { digits: scale }),
            Declared::Json if !is_text(array.data_type()) => made::to_documents(array, known),
            Declared::String | Declared::Json => texts(),
            Declared::Varchar { bytes } | Declared::Char { bytes } => {
                let texts = texts()?;
                let cut = |text: &str| text.chars().take(bytes as usize).collect::<String>();
                Ok(Arc::new(
                    texts.as_string::<i32>().iter().map(|text| text.map(cut)).collect::<StringArray>(),
                ))
            }
            other => plan_err!("CAST to {other} within a type is not supported"),
        }
    }

    /// The values that texts are; NULL for other texts.
    fn of_texts(self, texts: &StringArray, nested: Nested) -> Result<ArrayRef> {
        let text = |row: usize| {
            let text = texts.is_valid(row).then(|| texts.value(row).as_bytes());
            text.filter(|text| !text.eq_ignore_ascii_case(b"null"))
        };
        let rows = (0..texts.len()).map(text);
        match nested.kept() {
            NestedType::Array(element) => self.arrays(rows, *element),
            NestedType::Map(key, value) => self.maps(rows, *key, *value),
            NestedType::Struct(fields) => self.structs(rows, fields, Declared::Nested(nested)),
        }
    }

    fn arrays<'a>(self, rows: impl Iterator<Item = Option<&'a [u8]>>, element: Declared) -> Result<ArrayRef> {
        let mut parts = StringBuilder::new();
        let (mut lengths, mut valid) = (Vec::new(), Vec::new());
        for text in rows {
            let read = text.and_then(|text| elements(text, element).ok());
            valid.push(read.is_some());
            let read = read.unwrap_or_default();
            lengths.push(read.len());
            read.into_iter().for_each(|part| parts.append_option(part));
        }
        let parts: ArrayRef = Arc::new(parts.finish());
        let values = self.converted(&parts, None, element)?;
        let field = Arc::new(Field::new_list_field(element.to_arrow(), true));
        let offsets = OffsetBuffer::from_lengths(lengths);
        Ok(Arc::new(ListArray::try_new(field, offsets, values, Some(NullBuffer::from(valid)))?))
    }

    fn maps<'a>(
        self,
        rows: impl Iterator<Item = Option<&'a [u8]>>,
        key: Declared,
        value: Declared,
    ) -> Result<ArrayRef> {
        let (mut keys, mut values) = (StringBuilder::new(), StringBuilder::new());
        let mut places: Vec<Option<Vec<(usize, usize)>>> = Vec::new();
        let mut count = 0;
        for text in rows {
            let read = text.and_then(|text| entries(text, key, value).ok());
            places.push(read.map(|read| {
                let start = count;
                for (key, value) in read {
                    keys.append_value(key);
                    values.append_option(value);
                    count += 1;
                }
                (start..count).map(|at| (at, at)).collect()
            }));
        }
        let (keys, values): (ArrayRef, ArrayRef) = (Arc::new(keys.finish()), Arc::new(values.finish()));
        let (keys, values) = (self.converted(&keys, None, key)?, self.converted(&values, None, value)?);
        map_of(&keys, &values, &places, Declared::map(key, value))
    }

    fn structs<'a>(
        self,
        rows: impl Iterator<Item = Option<&'a [u8]>>,
        fields: &[StructField],
        to: Declared,
    ) -> Result<ArrayRef> {
        let mut columns: Vec<StringBuilder> = fields.iter().map(|_| StringBuilder::new()).collect();
        let mut valid = Vec::new();
        for text in rows {
            let read = text.and_then(|text| members(text, fields, self.form).ok());
            valid.push(read.is_some());
            let mut read = read.unwrap_or_default().into_iter();
            columns.iter_mut().for_each(|column| column.append_option(read.next().flatten()));
        }
        let columns = columns.into_iter().zip(fields).map(|(mut column, field)| {
            let column: ArrayRef = Arc::new(column.finish());
            self.converted(&column, None, field.data_type)
        });
        struct_of(columns.collect::<Result<_>>()?, Some(NullBuffer::from(valid)), to)
    }
}

/// The pairs of each map, by their places.
fn entries_of(maps: &MapArray) -> Vec<Option<Vec<(usize, usize)>>> {
    let offsets = maps.value_offsets();
    let pairs = |row: usize| {
        let range = offsets[row] as usize..offsets[row + 1] as usize;
        maps.is_valid(row).then(|| range.map(|at| (at, at)).collect())
    };
    (0..maps.len()).map(pairs).collect()
}

/// Maps of the pairs at these places; NULL where a key is.
fn map_of(
    keys: &ArrayRef,
    values: &ArrayRef,
    places: &[Option<Vec<(usize, usize)>>],
    to: Declared,
) -> Result<ArrayRef> {
    let has_keys = |pairs: &&Vec<(usize, usize)>| pairs.iter().all(|(key, _)| keys.is_valid(*key));
    let places: Vec<_> = places.iter().map(|pairs| pairs.as_ref().filter(has_keys).cloned()).collect();
    convert::safe_cast(&made_maps::assemble(keys, values, &places, "cast")?, &to.to_arrow())
}

fn struct_of(columns: Vec<ArrayRef>, nulls: Option<NullBuffer>, to: Declared) -> Result<ArrayRef> {
    match to.to_arrow() {
        DataType::Struct(fields) => Ok(Arc::new(StructArray::try_new(fields, columns, nulls)?)),
        other => internal_err!("{other} is no struct"),
    }
}

/// The texts of the elements between square brackets; `None` for NULL.
fn elements(text: &[u8], element: Declared) -> Result<Vec<Option<String>>, Malformed> {
    let mut parts = Parts::of(text, b'[', b']')?;
    let mut read = Vec::new();
    while let Some(part) = parts.next()? {
        read.push(text_of(part, element)?);
    }
    Ok(read)
}

/// The texts of the keys and values between braces.
fn entries(text: &[u8], key: Declared, value: Declared) -> Result<Vec<(String, Option<String>)>, Malformed> {
    let mut parts = Parts::of(text, b'{', b'}')?;
    let mut read = Vec::new();
    while let Some(part) = parts.next()? {
        let (name, member) = part.divided()?.ok_or(Malformed)?;
        read.push((text_of(name, key)?.ok_or(Malformed)?, text_of(member, value)?));
    }
    Ok(read)
}

/// The texts of the fields between braces.
fn members(text: &[u8], fields: &[StructField], form: Form) -> Result<Vec<Option<String>>, Malformed> {
    let values = field_values(text, fields, form)?;
    let texts = values.into_iter().zip(fields).map(|(value, field)| match value {
        Some(value) => text_of(value, field.data_type),
        None => Ok(None),
    });
    texts.collect()
}

/// The text that is converted to the type of a part.
fn text_of(part: Token<'_>, to: Declared) -> Result<Option<String>, Malformed> {
    if part.is_null() {
        return Ok(None);
    }
    let is_document = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).is_ok();
    let text = match part.unquoted()? {
        // A text in quotes is the document that it spells, else a text of JSON.
        Some(text) if to == Declared::Json && !is_document(&text) => part.text.to_vec(),
        Some(text) => text.into_owned(),
        None => part.text.to_vec(),
    };
    String::from_utf8(text).map(Some).map_err(|_| Malformed)
}
