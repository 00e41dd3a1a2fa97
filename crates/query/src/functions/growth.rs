//! Limits of the memory that a call takes for the rows of one batch.
//!
//! The pool of a query knows what operators hold, not what a function builds; a short statement could build gigabytes of text. So a
//! function whose results may be larger than its arguments makes them with [`Texts`], and those of DataFusion are asked for their
//! size before they are called.

use crate::error::external;
use arrow::array::{Array, ArrayRef, AsArray, StringBuilder};
use arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use regex::Regex;
use std::sync::Arc;
use tributary_types::memory;

/// Bytes by which the results of a call may exceed its arguments.
const GROWTH_MAX: usize = 64 << 20;
/// Bytes of a constant that planning computes.
const LITERAL_MAX: usize = 64 << 10;
/// Bytes of the results of a call.
const RESULTS_MAX: usize = 512 << 20;

/// The bytes that the results of a call may have.
#[derive(Clone, Copy, Debug)]
struct Allowed {
    bytes: usize,
    /// The process has no memory for more.
    is_by_process: bool,
}

impl Allowed {
    /// With these arguments.
    fn with(args: &[ArrayRef]) -> Self {
        let given: usize = args.iter().map(bytes).sum();
        Self::at_most(given.saturating_add(GROWTH_MAX))
    }

    fn at_most(bytes: usize) -> Self {
        let own = bytes.min(RESULTS_MAX);
        let left = usize::try_from(memory::left()).unwrap_or(usize::MAX);
        Self { bytes: own.min(left), is_by_process: left < own }
    }

    fn refuse<T>(self, function: &str) -> Result<T> {
        if self.is_by_process {
            memory::check(self.bytes as u64 + 1).map_err(|full| external(full.into()))?;
        }
        exec_err!(
            "{} would take more than {} MiB for the rows that are computed at once: make shorter texts and lists",
            function.trim_start_matches('_').to_uppercase(),
            self.bytes >> 20
        )
    }
}

/// The bytes of the values of an array, or a little more.
fn bytes(array: &ArrayRef) -> usize {
    match array.as_string_opt::<i32>() {
        Some(texts) => {
            let offsets = texts.value_offsets();
            offsets.last().zip(offsets.first()).map_or(0, |(last, first)| (last - first) as usize)
        }
        None => array.get_array_memory_size(),
    }
}

/// Checks that the copies of a constant, one for each row, do not take too much memory.
///
/// # Errors
/// They do.
pub(super) fn check_copies(function: &str, arg: &ColumnarValue, rows: usize) -> Result<()> {
    let ColumnarValue::Scalar(constant) = arg else { return Ok(()) };
    let allowed = Allowed::at_most(RESULTS_MAX);
    if constant.size().saturating_mul(rows) > allowed.bytes { allowed.refuse(function) } else { Ok(()) }
}

/// Checks that the arguments of a call do not take too much memory by themselves.
///
/// # Errors
/// They do.
pub(super) fn check_constants(function: &str, args: &[ColumnarValue]) -> Result<()> {
    let sizes = args.iter().map(|arg| match arg {
        ColumnarValue::Scalar(constant) => constant.size(),
        ColumnarValue::Array(_) => 0,
    });
    let allowed = Allowed::at_most(RESULTS_MAX);
    if sizes.sum::<usize>() > allowed.bytes { allowed.refuse(function) } else { Ok(()) }
}

/// Leaves a call with constant arguments to the execution if its result would be a large literal: each step of planning copies those.
///
/// # Errors
/// It would. The optimizer then keeps the call.
pub(super) fn check_literal(result: &ScalarValue) -> Result<()> {
    if crate::planning::is_optimizing() && result.size() > LITERAL_MAX {
        return exec_err!("the value of a call with constant arguments is too large for a plan");
    }
    Ok(())
}

/// Texts that are the results of a call.
pub(super) struct Texts {
    function: &'static str,
    builder: StringBuilder,
    allowed: Allowed,
}

impl Texts {
    pub fn new(function: &'static str, args: &[ArrayRef]) -> Self {
        Self { function, builder: StringBuilder::new(), allowed: Allowed::with(args) }
    }

    /// Adds the result of the next row.
    ///
    /// # Errors
    /// It is one too many.
    pub fn push(&mut self, text: Option<impl AsRef<str>>) -> Result<()> {
        let Some(text) = text else {
            self.builder.append_null();
            return Ok(());
        };
        self.push_parts([text.as_ref()])
    }

    /// Adds the result of the next row, which is these texts behind each other.
    ///
    /// # Errors
    /// As in [`Self::push`].
    pub fn push_parts<'a>(&mut self, parts: impl IntoIterator<Item = &'a str>) -> Result<()> {
        for part in parts {
            if self.builder.values_slice().len() + part.len() > self.allowed.bytes {
                return self.allowed.refuse(self.function);
            }
            // Writing to a builder cannot fail.
            let _ = std::fmt::Write::write_str(&mut self.builder, part);
        }
        self.builder.append_value("");
        Ok(())
    }

    pub fn finish(mut self) -> ArrayRef {
        Arc::new(self.builder.finish())
    }
}

/// The bytes of results that are not texts.
pub(super) struct Bytes {
    function: &'static str,
    made: usize,
    allowed: Allowed,
}

impl Bytes {
    pub fn new(function: &'static str, args: &[ArrayRef]) -> Self {
        Self { function, made: 0, allowed: Allowed::with(args) }
    }

    /// Counts bytes that are about to be added.
    ///
    /// # Errors
    /// They are too many.
    pub fn add(&mut self, bytes: usize) -> Result<()> {
        self.made = self.made.saturating_add(bytes);
        if self.made > self.allowed.bytes { self.allowed.refuse(self.function) } else { Ok(()) }
    }
}

/// Makes a text for each row; the closure gets the row's number.
///
/// # Errors
/// They are too many, or the closure's.
pub(super) fn texts<T: AsRef<str>>(
    function: &'static str,
    args: &[ArrayRef],
    of: impl Fn(usize) -> Result<Option<T>>,
) -> Result<ArrayRef> {
    let mut texts = Texts::new(function, args);
    for row in 0..args.first().map_or(0, Array::len) {
        texts.push(of(row)?)?;
    }
    Ok(texts.finish())
}

/// The same function of DataFusion, but called only if its results are not too large.
pub fn scalar(inner: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    let results = match inner.name() {
        "replace" => Results(replaced),
        "regexp_replace" => Results(matches_replaced),
        "array_repeat" => Results(repeated),
        _ => return inner,
    };
    Arc::new(ScalarUDF::new_from_impl(Limited { inner, results }))
}

/// The bytes of the results of a call, as long as they are not above a limit.
#[derive(Clone, Copy, Debug)]
struct Results(fn(&[ArrayRef], usize, usize) -> Option<usize>);

/// It follows from the function: all are equal.
impl PartialEq for Results {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for Results {}
impl std::hash::Hash for Results {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Limited {
    inner: Arc<ScalarUDF>,
    results: Results,
}

impl ScalarUDFImpl for Limited {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.inner.schema_name(args)
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { args.number_rows };
        check_constants(self.name(), &args.args)?;
        let mut arrays = Vec::with_capacity(args.args.len());
        for arg in &args.args {
            check_copies(self.name(), arg, rows)?;
            // A constant is an array of one row, which stands for all.
            arrays.push(arg.to_array(1)?);
        }
        let allowed = Allowed::with(&arrays);
        let results = (self.results.0)(&arrays, rows, allowed.bytes);
        if results.is_none_or(|results| results > allowed.bytes) {
            return allowed.refuse(self.name());
        }
        let result = self.inner.invoke_with_args(args)?;
        if let ColumnarValue::Scalar(result) = &result {
            check_literal(result)?;
        }
        Ok(result)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(args, info)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }
}

/// The place of a row in an array, whose only row stands for all.
fn place(array: &ArrayRef, row: usize) -> usize {
    if array.len() == 1 { 0 } else { row }
}

/// A text of a row, of any of Arrow's arrays of texts; empty for NULL and other types.
fn text(array: &ArrayRef, row: usize) -> &str {
    let row = place(array, row);
    if array.is_null(row) {
        return "";
    }
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().value(row),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row),
        DataType::Utf8View => array.as_string_view().value(row),
        _ => "",
    }
}

fn sum(rows: usize, of: impl FnMut(usize) -> Option<usize>) -> Option<usize> {
    (0..rows).map(of).try_fold(0_usize, |sum, bytes| sum.checked_add(bytes?))
}

/// The bytes that texts have if a replacement takes the place of each of the `count` matches in them, and of nothing.
fn after(text: &str, count: usize, replacement: &str) -> Option<usize> {
    replacement.len().checked_mul(count)?.checked_add(text.len())
}

fn replaced(args: &[ArrayRef], rows: usize, limit: usize) -> Option<usize> {
    let [texts, from, to] = args else { return Some(0) };
    // An occurrence has a byte at least, and the empty one is between any two characters.
    let at_most = |row| after(text(texts, row), text(texts, row).len() + 1, text(to, row));
    let count =
        |row| after(text(texts, row), text(texts, row).matches(text(from, row)).count(), text(to, row));
    sum(rows, at_most).filter(|bytes| *bytes <= limit).or_else(|| sum(rows, count))
}

fn matches_replaced(args: &[ArrayRef], rows: usize, limit: usize) -> Option<usize> {
    let [texts, patterns, by, ..] = args else { return Some(0) };
    // Groups of a match that a replacement names: together as long as the text for each time that they are named.
    let with_groups = |row: usize, count: usize| {
        let groups = text(by, row).bytes().filter(|byte| matches!(byte, b'$' | b'\\')).count();
        let of_groups = groups.checked_mul(text(texts, row).len())?;
        after(text(texts, row), count, text(by, row))?.checked_add(of_groups)
    };
    let at_most = |row| with_groups(row, text(texts, row).len() + 1);
    if let Some(bytes) = sum(rows, at_most).filter(|bytes| *bytes <= limit) {
        return Some(bytes);
    }
    let mut known: Option<(&str, Option<Regex>)> = None;
    sum(rows, |row| {
        let pattern = text(patterns, row);
        if known.as_ref().is_none_or(|(known, _)| *known != pattern) {
            known = Some((pattern, Regex::new(pattern).ok()));
        }
        // The function itself says why it can't be read.
        let Some((_, Some(regex))) = &known else { return Some(0) };
        with_groups(row, regex.find_iter(text(texts, row)).count())
    })
}

fn repeated(args: &[ArrayRef], rows: usize, _: usize) -> Option<usize> {
    let [values, counts] = args else { return Some(0) };
    let counts = arrow::compute::cast(counts, &DataType::Int64).ok()?;
    let counts = counts.as_primitive::<Int64Type>();
    let each = bytes(values) / values.len().max(1);
    let is_text = matches!(values.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    sum(rows, |row| {
        let of = if counts.len() == 1 { 0 } else { row };
        let count = if counts.is_null(of) { 0 } else { usize::try_from(counts.value(of)).unwrap_or(0) };
        let value = if is_text { text(values, row).len() + size_of::<i32>() } else { each.max(1) };
        value.checked_mul(count)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int64Array, StringArray};

    fn array(texts: &[&str]) -> ArrayRef {
        Arc::new(StringArray::from(texts.to_vec()))
    }

    #[test]
    fn texts_may_grow_to_a_limit() {
        let args = [array(&["a"; 100])];
        let line = "x".repeat(1 << 20);
        let made = |bytes: usize| texts("repeat", &args, |_| Ok(Some(&line[..bytes])));
        assert_eq!(made(600_000).expect("60 MB").len(), 100);
        let error = made(700_000).expect_err("70 MB").to_string();
        assert!(error.contains("REPEAT would take more than 64 MiB"), "{error}");
    }

    #[test]
    fn replacements_are_counted_only_if_they_might_be_too_many() {
        let long = "a".repeat(1 << 20);
        let (text, by) = (array(&[&long]), array(&[&"b".repeat(1000)]));
        let limit = 64 << 20;
        assert_eq!(replaced(&[Arc::clone(&text), array(&["c"]), Arc::clone(&by)], 1, limit), Some(1 << 20));
        let all = Some((1 << 20) * 1001);
        assert_eq!(replaced(&[Arc::clone(&text), array(&["a"]), Arc::clone(&by)], 1, limit), all);
        assert_eq!(matches_replaced(&[Arc::clone(&text), array(&["a"]), Arc::clone(&by)], 1, limit), all);
        assert_eq!(matches_replaced(&[text, array(&["a+$"]), by], 1, limit), Some((1 << 20) + 1000));
    }

    #[test]
    fn a_constant_counts_for_each_row() {
        let by = array(&[&"b".repeat(1 << 20)]);
        let args = [array(&["a"; 100]), array(&["a"]), by];
        assert_eq!(replaced(&args, 100, 64 << 20), Some(100 * ((1 << 20) + 1)));
        assert_eq!(repeated(&[array(&["xyzw"]), Arc::new(Int64Array::from(vec![10]))], 3, 0), Some(240));
    }

    #[test]
    fn a_list_of_copies_counts_each() {
        let counts: ArrayRef = Arc::new(Int64Array::from(vec![Some(2_000_000_000), None]));
        let bytes = repeated(&[array(&["x", "y"]), counts], 2, 0);
        assert_eq!(bytes, Some(10_000_000_000));
    }
}
