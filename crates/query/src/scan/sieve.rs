//! A filter that only spares other steps work, and gives up if it leaves too few rows out.

use arrow::array::{BooleanArray, RecordBatch};
use arrow::datatypes::{DataType, Schema};
use datafusion::common::cast::as_boolean_array;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::DynamicFilterTracking;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of rows after which a sieve is judged.
const ROWS_JUDGED: u64 = 32 * 1024;
/// A sieve that lets more than this fraction of the rows through gives up.
const FRACTION_MAX: u64 = 4;

/// A filter that lets all rows through once it has given up, and where it fails.
#[derive(Debug)]
pub(crate) struct Sieve {
    filter: Arc<dyn PhysicalExpr>,
    /// Shared by all forms of the sieve, which has one for each file. `None`: only bounds are compared with the filter.
    tally: Option<Arc<Tally>>,
}

impl Sieve {
    /// A filter that is asked, and counts.
    pub(crate) const fn new(filter: Arc<dyn PhysicalExpr>, tally: Arc<Tally>) -> Self {
        Self { filter, tally: Some(tally) }
    }

    /// A filter that is not asked about rows.
    pub(crate) const fn of_bounds(filter: Arc<dyn PhysicalExpr>) -> Self {
        Self { filter, tally: None }
    }
}

/// Counts of the rows that a sieve has seen and let through. Files may share it; a lost count does no harm.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    rows: AtomicU64,
    passed: AtomicU64,
}

impl Tally {
    fn count(&self, passes: &BooleanArray) {
        self.rows.fetch_add(passes.len() as u64, Ordering::Relaxed);
        self.passed.fetch_add(passes.true_count() as u64, Ordering::Relaxed);
    }

    /// Whether nothing was counted yet.
    fn is_new(&self) -> bool {
        self.rows.load(Ordering::Relaxed) == 0
    }

    pub(crate) fn has_given_up(&self) -> bool {
        let rows = self.rows.load(Ordering::Relaxed);
        rows >= ROWS_JUDGED && self.passed.load(Ordering::Relaxed) * FRACTION_MAX > rows
    }
}

impl PhysicalExpr for Sieve {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.filter.nullable(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let all = || Ok(ColumnarValue::Scalar(ScalarValue::Boolean(Some(true))));
        let Some(tally) = self.tally.as_ref().filter(|tally| !tally.has_given_up()) else { return all() };
        // A join's filter lets all rows through until the join has read its other side.
        if tally.is_new()
            && matches!(DynamicFilterTracking::classify(&self.filter), DynamicFilterTracking::Watching(_))
        {
            return all();
        }
        // The filter above has the same error, unless another filter leaves the row out before.
        let passes = self.filter.evaluate(batch).and_then(|passes| passes.into_array(batch.num_rows()));
        let Ok(passes) = passes else { return all() };
        tally.count(as_boolean_array(&passes)?);
        Ok(ColumnarValue::Array(passes))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.filter]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let filter = children.pop().unwrap_or_else(|| Arc::clone(&self.filter));
        Ok(Arc::new(Self { filter, tally: self.tally.clone() }))
    }

    /// Returns the filter, with which bounds are compared.
    fn snapshot(&self) -> Result<Option<Arc<dyn PhysicalExpr>>> {
        Ok(Some(Arc::clone(&self.filter)))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.filter.fmt_sql(f)
    }
}

impl fmt::Display for Sieve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.filter.fmt(f)
    }
}

impl PartialEq for Sieve {
    fn eq(&self, other: &Self) -> bool {
        self.filter.eq(&other.filter)
            && self.tally.as_ref().map(Arc::as_ptr) == other.tally.as_ref().map(Arc::as_ptr)
    }
}

impl Eq for Sieve {}

impl Hash for Sieve {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.filter.hash(state);
    }
}
