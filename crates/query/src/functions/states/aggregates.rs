//! Aggregates over values of BITMAP and HLL columns: their union or intersection, and its number of elements.

use crate::functions::states::intersect_count::{self, IntersectCount};
use crate::functions::states::sets::{bytes_of, read_bitmap, read_hll};
use crate::types::metadata;
use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use std::sync::{Arc, LazyLock};
use tributary_types::DataType as Declared;
use tributary_types::state::{Bitmap, Hll};

/// The names of these aggregates.
const NAMES: [&str; 8] = [
    "bitmap_union",
    "bitmap_intersect",
    "bitmap_union_count",
    "bitmap_union_int",
    "group_bitmap_xor",
    "hll_union",
    "hll_union_agg",
    intersect_count::NAME,
];

/// The aggregate of that name.
pub fn get(name: &str) -> Option<Arc<AggregateUDF>> {
    static ALL: LazyLock<Vec<Arc<AggregateUDF>>> = LazyLock::new(|| {
        let kinds = [
            Kind::BitmapUnion,
            Kind::BitmapIntersect,
            Kind::BitmapUnionCount,
            Kind::BitmapUnionInt,
            Kind::BitmapXor,
            Kind::HllUnion,
            Kind::HllUnionAgg,
        ];
        let make = |kind| Arc::new(AggregateUDF::new_from_impl(OfStates::new(kind)));
        let intersect_count = Arc::new(AggregateUDF::new_from_impl(IntersectCount::default()));
        kinds.into_iter().map(make).chain([intersect_count]).collect()
    });
    ALL.iter().find(|function| function.name() == name).cloned()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    BitmapUnion,
    BitmapIntersect,
    BitmapUnionCount,
    /// Over numbers.
    BitmapUnionInt,
    BitmapXor,
    HllUnion,
    HllUnionAgg,
}

impl Kind {
    const fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    /// The type of the result, unless it is a number.
    const fn makes(self) -> Option<Declared> {
        match self {
            Self::BitmapUnion | Self::BitmapIntersect | Self::BitmapXor => Some(Declared::Bitmap),
            Self::HllUnion => Some(Declared::Hll),
            Self::BitmapUnionCount | Self::BitmapUnionInt | Self::HllUnionAgg => None,
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfStates {
    kind: Kind,
    signature: Signature,
}

impl OfStates {
    fn new(kind: Kind) -> Self {
        Self { kind, signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for OfStates {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(if self.kind.makes().is_some() { DataType::Binary } else { DataType::Int64 })
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        let types: Vec<DataType> = fields.iter().map(|field| field.data_type().clone()).collect();
        let field = Field::new(self.name(), self.return_type(&types)?, true);
        Ok(Arc::new(match self.kind.makes() {
            Some(declared) => field.with_metadata(metadata::declared(declared)),
            None => field,
        }))
    }

    fn state_fields(
        &self,
        args: datafusion::logical_expr::function::StateFieldsArgs<'_>,
    ) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format!("{}[state]", args.name), DataType::Binary, true))])
    }

    fn accumulator(&self, _args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Together::new(self.kind)))
    }

    /// The result over no rows, which a subquery has for a row outside that it finds nothing for.
    fn default_value(&self, _data_type: &DataType) -> Result<ScalarValue> {
        Together::new(self.kind).evaluate()
    }
}

/// The accumulated union or intersection.
#[derive(Debug)]
struct Together {
    kind: Kind,
    /// `None`: there was no value yet.
    bitmap: Option<Bitmap>,
    hll: Hll,
}

impl Together {
    fn new(kind: Kind) -> Self {
        Self { kind, bitmap: None, hll: Hll::default() }
    }

    fn add(&mut self, bytes: &[u8]) -> Result<()> {
        match self.kind {
            Kind::HllUnion | Kind::HllUnionAgg => self.hll.merge(&read_hll(bytes)?),
            Kind::BitmapIntersect => {
                let other = read_bitmap(bytes)?;
                match &mut self.bitmap {
                    Some(bitmap) => bitmap.intersect(&other),
                    None => self.bitmap = Some(other),
                }
            }
            Kind::BitmapXor => {
                self.bitmap.get_or_insert_default().symmetric_difference(&read_bitmap(bytes)?);
            }
            Kind::BitmapUnion | Kind::BitmapUnionCount | Kind::BitmapUnionInt => {
                self.bitmap.get_or_insert_default().union(read_bitmap(bytes)?);
            }
        }
        Ok(())
    }

    fn add_all(&mut self, values: &ArrayRef) -> Result<()> {
        bytes_of(values)?.iter().flatten().try_for_each(|bytes| self.add(bytes))
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        match self.kind {
            Kind::HllUnion | Kind::HllUnionAgg => Some(self.hll.bytes()),
            _ => self.bitmap.as_ref().map(Bitmap::bytes),
        }
    }
}

impl Accumulator for Together {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        if self.kind != Kind::BitmapUnionInt {
            return self.add_all(&values[0]);
        }
        let texts = cast(&values[0], &DataType::Utf8)?;
        let bitmap = self.bitmap.get_or_insert_default();
        let numbers = texts.as_string::<i32>().iter().flatten().filter_map(|text| text.parse().ok());
        numbers.for_each(|number| bitmap.insert(number));
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.add_all(&states[0])
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Binary(self.bytes())])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let count = |count: u64| ScalarValue::Int64(Some(i64::try_from(count).unwrap_or(i64::MAX)));
        Ok(match self.kind {
            Kind::BitmapUnionCount | Kind::BitmapUnionInt => {
                count(self.bitmap.as_ref().map_or(0, Bitmap::count))
            }
            Kind::HllUnionAgg => count(self.hll.estimate()),
            Kind::BitmapUnion | Kind::BitmapIntersect | Kind::BitmapXor | Kind::HllUnion => {
                ScalarValue::Binary(Some(self.bytes().unwrap_or_else(|| Bitmap::default().bytes())))
            }
        })
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.bytes().map_or(0, |bytes| bytes.len())
    }
}
