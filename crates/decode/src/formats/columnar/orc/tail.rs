//! The metadata of an ORC file: its postscript, its footer, and the footer of each stripe.
//!
//! Invariant: every range that is returned is in the file, types are a tree of bounded depth, and no count exceeds the limits
//! here.

use super::chunks::{Chunks, Packing};
use super::proto::{Message, Value};
use super::{Damage, Outcome};
use crate::formats::columnar::memory::BodyMemory;
use crate::formats::host::Spooled;
use arrow::datatypes::{DataType, Field, Fields, TimeUnit, UnionFields, UnionMode};
use std::collections::HashMap;
use std::sync::Arc;

/// The longest footer, unpacked, in bytes.
const FOOTER_BYTES_MAX: usize = 64 * 1024 * 1024;
const STRIPES_MAX: usize = 1 << 18;
const STREAMS_MAX: usize = 1 << 18;
const TYPES_MAX: usize = 1 << 14;
const DEPTH_MAX: usize = 32;

/// A file's postscript and footer.
pub(super) struct Tail {
    pub packing: Packing,
    pub stripes: Vec<Stripe>,
    pub types: Vec<Type>,
}

/// Rows that are stored together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stripe {
    offset: u64,
    index_bytes: u64,
    pub data_bytes: u64,
    footer_bytes: u64,
    pub rows: u64,
}

/// A column, or one within another.
#[derive(Clone, Debug, Default)]
pub(super) struct Type {
    pub kind: u64,
    pub children: Vec<usize>,
    names: Vec<String>,
    precision: u64,
    scale: u64,
}

/// How a column is written in a stripe.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Encoding {
    pub kind: u64,
    pub dictionary_size: u64,
}

/// The positions of a stripe's parts.
pub(super) struct StripeFooter {
    /// By column and kind: offset and length.
    streams: HashMap<(u64, u64), (u64, u64)>,
    encodings: Vec<Encoding>,
    pub zone: String,
}

impl Tail {
    /// Reads the end of a file.
    ///
    /// # Errors
    /// [`Damage`] if it is not an ORC file, is truncated, or exceeds a limit.
    pub fn read(file: &Arc<dyn Spooled>, memory: &Arc<BodyMemory>) -> Outcome<Self> {
        let length = file.len_bytes();
        let postscript_bytes = u64::from(file.read(length - 1, 1)?[0]);
        let postscript_at = (length - 1)
            .checked_sub(postscript_bytes)
            .ok_or_else(|| Damage::new("it is no ORC file, or it is cut off"))?;
        let postscript = file.read(postscript_at, postscript_bytes as usize)?;
        let (mut footer_bytes, mut codec, mut block_bytes, mut is_orc) = (0, 0, 0, false);
        let mut fields = Message::new(&postscript);
        let no_orc = |_| Damage::new("it is no ORC file, or it is cut off");
        while let Some((number, value)) = fields.next().map_err(no_orc)? {
            match number {
                1 => footer_bytes = value.number()?,
                2 => codec = value.number()?,
                3 => block_bytes = value.number()?,
                8000 => is_orc = value == Value::Bytes(b"ORC"),
                _ => {}
            }
        }
        if !is_orc {
            return Err(Damage::new("it is no ORC file, or it is cut off"));
        }
        let packing = Packing::of_file(codec, block_bytes)?;
        let footer_at = postscript_at
            .checked_sub(footer_bytes)
            .ok_or_else(|| Damage::new(format!("its footer has {footer_bytes} bytes, the file {length}")))?;
        let footer = Chunks::new(file, memory, packing, footer_at, footer_bytes).all(FOOTER_BYTES_MAX)?;
        let mut tail = Self { packing, stripes: Vec::new(), types: Vec::new() };
        tail.read_footer(&footer, footer_at)?;
        tail.check_types()?;
        Ok(tail)
    }

    fn read_footer(&mut self, footer: &[u8], footer_at: u64) -> Outcome<()> {
        let mut fields = Message::new(footer);
        while let Some((number, value)) = fields.next()? {
            match number {
                3 => self.stripes.push(Stripe::read(value.message()?, footer_at)?),
                4 => self.types.push(Type::read(value.message()?)?),
                10 => return Err(Damage::new("it has encrypted columns, which are not read")),
                _ => {}
            }
            if self.stripes.len() > STRIPES_MAX || self.types.len() > TYPES_MAX {
                return Err(Damage::new(format!(
                    "it has more than {STRIPES_MAX} stripes, or more than {TYPES_MAX} columns with those within others"
                )));
            }
        }
        Ok(())
    }

    /// Types are a tree in preorder, whose root is a struct.
    fn check_types(&self) -> Outcome<()> {
        if self.types.first().is_none_or(|root| root.kind != kind::STRUCT) {
            return Err(Damage::new("its rows are no struct"));
        }
        let mut depths = vec![0; self.types.len()];
        for (at, parent) in self.types.iter().enumerate() {
            let children = match parent.kind {
                kind::STRUCT => parent.names.len(),
                kind::LIST => 1,
                kind::MAP => 2,
                kind::UNION => parent.children.len(),
                _ => 0,
            };
            if parent.children.len() != children {
                return Err(Damage::new(format!(
                    "type {at} has {} types in it and not {children}",
                    parent.children.len()
                )));
            }
            for &child in &parent.children {
                if child <= at || depths.get(child) != Some(&0) {
                    return Err(Damage::new(format!("type {at} has the type {child} in it")));
                }
                depths[child] = depths[at] + 1;
                if depths[child] > DEPTH_MAX {
                    return Err(Damage::new(format!("its types are nested more than {DEPTH_MAX} deep")));
                }
            }
        }
        Ok(())
    }

    /// The columns of the file, as Arrow has them.
    ///
    /// # Errors
    /// [`Damage`] if there is no such type.
    pub fn fields(&self) -> Outcome<Fields> {
        self.fields_of(&self.types[0])
    }

    fn fields_of(&self, parent: &Type) -> Outcome<Fields> {
        let field = |(name, &child): (&String, &usize)| Ok(Field::new(name, self.data_type(child)?, true));
        parent.names.iter().zip(&parent.children).map(field).collect()
    }

    /// The Arrow type of a column.
    ///
    /// # Errors
    /// [`Damage`] if there is no such type.
    pub fn data_type(&self, at: usize) -> Outcome<DataType> {
        let this = &self.types[at];
        Ok(match this.kind {
            kind::BOOLEAN => DataType::Boolean,
            kind::BYTE => DataType::Int8,
            kind::SHORT => DataType::Int16,
            kind::INT => DataType::Int32,
            kind::LONG => DataType::Int64,
            kind::FLOAT => DataType::Float32,
            kind::DOUBLE => DataType::Float64,
            kind::STRING | kind::VARCHAR | kind::CHAR => DataType::Utf8,
            kind::BINARY => DataType::Binary,
            kind::TIMESTAMP => DataType::Timestamp(TimeUnit::Microsecond, None),
            kind::INSTANT => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            kind::DATE => DataType::Date32,
            kind::DECIMAL => {
                let (precision, scale) = (this.precision, this.scale);
                if !(1..=38).contains(&precision) || scale > precision {
                    return Err(Damage::new(format!("there is no DECIMAL({precision}, {scale})")));
                }
                DataType::Decimal128(precision as u8, scale as i8)
            }
            kind::LIST => {
                DataType::List(Arc::new(Field::new("item", self.data_type(this.children[0])?, true)))
            }
            kind::MAP => {
                let key = Field::new("key", self.data_type(this.children[0])?, false);
                let value = Field::new("value", self.data_type(this.children[1])?, true);
                let entries = DataType::Struct(Fields::from(vec![key, value]));
                DataType::Map(Arc::new(Field::new("entries", entries, false)), false)
            }
            kind::STRUCT => DataType::Struct(self.fields_of(this)?),
            // Represents a nested value that is never read.
            kind::UNION => DataType::Union(UnionFields::empty(), UnionMode::Sparse),
            other => return Err(Damage::new(format!("there is no type {other}"))),
        })
    }
}

/// The numbers of types.
pub(super) mod kind {
    pub const BOOLEAN: u64 = 0;
    pub const BYTE: u64 = 1;
    pub const SHORT: u64 = 2;
    pub const INT: u64 = 3;
    pub const LONG: u64 = 4;
    pub const FLOAT: u64 = 5;
    pub const DOUBLE: u64 = 6;
    pub const STRING: u64 = 7;
    pub const BINARY: u64 = 8;
    pub const TIMESTAMP: u64 = 9;
    pub const LIST: u64 = 10;
    pub const MAP: u64 = 11;
    pub const STRUCT: u64 = 12;
    pub const UNION: u64 = 13;
    pub const DECIMAL: u64 = 14;
    pub const DATE: u64 = 15;
    pub const VARCHAR: u64 = 16;
    pub const CHAR: u64 = 17;
    pub const INSTANT: u64 = 18;
}

impl Type {
    fn read(mut fields: Message<'_>) -> Outcome<Self> {
        let (mut this, mut children) = (Self::default(), Vec::new());
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => this.kind = value.number()?,
                2 => value.add_numbers(&mut children)?,
                3 => this.names.push(text(value)?),
                5 => this.precision = value.number()?,
                6 => this.scale = value.number()?,
                _ => {}
            }
        }
        this.children = children.into_iter().map(|child| child as usize).collect();
        Ok(this)
    }
}

impl Stripe {
    fn read(mut fields: Message<'_>, end: u64) -> Outcome<Self> {
        let mut stripe = Self::default();
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => stripe.offset = value.number()?,
                2 => stripe.index_bytes = value.number()?,
                3 => stripe.data_bytes = value.number()?,
                4 => stripe.footer_bytes = value.number()?,
                5 => stripe.rows = value.number()?,
                _ => {}
            }
        }
        let lengths = [stripe.index_bytes, stripe.data_bytes, stripe.footer_bytes];
        let stripe_end = lengths.iter().try_fold(stripe.offset, |at, &length| at.checked_add(length));
        if stripe_end.is_none_or(|stripe_end| stripe_end > end) {
            return Err(Damage::new(format!(
                "a stripe of {lengths:?} bytes begins at {}, and the file's footer at {end}",
                stripe.offset
            )));
        }
        Ok(stripe)
    }

    /// Reads the stripe's metadata.
    ///
    /// # Errors
    /// [`Damage`] if it is cut off or beyond a limit.
    pub fn footer(
        &self,
        file: &Arc<dyn Spooled>,
        memory: &Arc<BodyMemory>,
        packing: Packing,
    ) -> Outcome<StripeFooter> {
        let end = self.offset + self.index_bytes + self.data_bytes;
        let bytes = Chunks::new(file, memory, packing, end, self.footer_bytes).all(FOOTER_BYTES_MAX)?;
        let mut footer = StripeFooter { streams: HashMap::new(), encodings: Vec::new(), zone: String::new() };
        let mut at = self.offset;
        let mut fields = Message::new(&bytes);
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => {
                    let (kind, column, length) = stream(value.message()?)?;
                    let next = at.checked_add(length).filter(|&next| next <= end);
                    let next = next.ok_or_else(|| {
                        Damage::new(format!("a stream of {length} bytes at {at} leaves its stripe"))
                    })?;
                    footer.streams.insert((column, kind), (at, length));
                    at = next;
                }
                2 => footer.encodings.push(encoding(value.message()?)?),
                3 => footer.zone = text(value)?,
                _ => {}
            }
            if footer.streams.len() > STREAMS_MAX || footer.encodings.len() > TYPES_MAX {
                return Err(Damage::new(format!("a stripe has more than {STREAMS_MAX} streams")));
            }
        }
        Ok(footer)
    }
}

impl StripeFooter {
    /// The position of a stream: offset and length. A missing stream is empty.
    pub fn stream(&self, column: usize, kind: u64) -> Option<(u64, u64)> {
        self.streams.get(&(column as u64, kind)).copied()
    }

    /// # Errors
    /// [`Damage`] if it is not there.
    pub fn encoding(&self, column: usize) -> Outcome<Encoding> {
        let encoding = self.encodings.get(column).copied();
        encoding
            .ok_or_else(|| Damage::new(format!("a stripe does not say how its column {column} is written")))
    }
}

fn stream(mut fields: Message<'_>) -> Outcome<(u64, u64, u64)> {
    let (mut kind, mut column, mut length) = (0, 0, 0);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => kind = value.number()?,
            2 => column = value.number()?,
            3 => length = value.number()?,
            _ => {}
        }
    }
    Ok((kind, column, length))
}

fn encoding(mut fields: Message<'_>) -> Outcome<Encoding> {
    let mut encoding = Encoding::default();
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => encoding.kind = value.number()?,
            2 => encoding.dictionary_size = value.number()?,
            _ => {}
        }
    }
    Ok(encoding)
}

fn text(value: Value<'_>) -> Outcome<String> {
    let text = std::str::from_utf8(value.bytes()?);
    text.map(str::to_owned).map_err(|_| Damage::new("a name in its description is not UTF-8"))
}
