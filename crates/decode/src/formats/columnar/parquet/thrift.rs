//! Thrift's compact protocol, walked before a library reads it.
//!
//! Invariant: nothing is allocated for claims of the bytes. A list has at most as many elements as there are bytes left, values
//! nest at most [`DEPTH_MAX`] deep, a struct has a field once, and a field that a [`Shape`] knows has the type stated there:
//! libraries rely on a field's number alone, and would read other bytes as another type.
//!
//! Not its business: the meaning of the fields.

use std::borrow::Cow;

/// The nesting limit of structs and lists.
pub(super) const DEPTH_MAX: u32 = 64;

/// The reason why bytes are not a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// They end within it.
    CutOff,
    Wrong(Cow<'static, str>),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::CutOff => f.write_str("it is cut off"),
            Self::Wrong(what) => f.write_str(what),
        }
    }
}

pub(super) type Outcome<T> = Result<T, Fault>;

pub(super) fn wrong<T>(what: impl Into<Cow<'static, str>>) -> Outcome<T> {
    Err(Fault::Wrong(what.into()))
}

/// The type of a value on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    I8,
    I16,
    I32,
    I64,
    Double,
    Binary,
    List,
    Map,
    Struct,
    Uuid,
}

/// The type that a field must have.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    Bool,
    I8,
    I16,
    I32,
    I64,
    Double,
    Binary,
    List(&'static Self),
    /// The fields that are known, by number; others are skipped.
    Struct(&'static [(i16, Self)]),
}

impl Shape {
    const fn kind(&self) -> Kind {
        match self {
            Self::Bool => Kind::Bool,
            Self::I8 => Kind::I8,
            Self::I16 => Kind::I16,
            Self::I32 => Kind::I32,
            Self::I64 => Kind::I64,
            Self::Double => Kind::Double,
            Self::Binary => Kind::Binary,
            Self::List(_) => Kind::List,
            Self::Struct(_) => Kind::Struct,
        }
    }
}

/// A field of a struct, in front of its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub id: i16,
    pub kind: Kind,
    /// A BOOL has its value here, without further bytes.
    pub flag: bool,
}

/// Untrusted bytes.
#[derive(Clone, Debug)]
pub(super) struct Thrift<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Thrift<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The number of bytes that were read.
    pub fn position(&self) -> usize {
        self.at
    }

    fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    fn byte(&mut self) -> Outcome<u8> {
        let byte = *self.bytes.get(self.at).ok_or(Fault::CutOff)?;
        self.at += 1;
        Ok(byte)
    }

    fn skip_bytes(&mut self, count: usize) -> Outcome<()> {
        if count > self.left() {
            return Err(Fault::CutOff);
        }
        self.at += count;
        Ok(())
    }

    fn varint(&mut self) -> Outcome<u64> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        wrong("a number has more than 64 bits")
    }

    fn int(&mut self, bits: u32) -> Outcome<i64> {
        let zigzag = self.varint()?;
        let value = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
        let limit = 1_i64 << (bits - 1).min(62);
        if bits < 64 && !(-limit..limit).contains(&value) {
            return wrong(format!("the number {value} has more than {bits} bits"));
        }
        Ok(value)
    }

    /// The value of an I32 field.
    pub fn i32(&mut self) -> Outcome<i32> {
        Ok(self.int(32)? as i32)
    }

    /// The value of a BINARY field.
    pub fn binary(&mut self) -> Outcome<&'a [u8]> {
        let length = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
        let start = self.at;
        self.skip_bytes(length)?;
        Ok(&self.bytes[start..self.at])
    }

    /// The header of a LIST: the type and the number of its elements.
    pub fn list(&mut self) -> Outcome<(Kind, usize)> {
        let head = self.byte()?;
        if head == 0 {
            return Ok((Kind::I8, 0));
        }
        let kind = kind_of(head & 0xf)?;
        let length = match head >> 4 {
            15 => usize::try_from(self.varint()?).unwrap_or(usize::MAX),
            short => usize::from(short),
        };
        if length > self.left() || length > i32::MAX as usize {
            return wrong(format!("a list has {length} elements, and {} bytes are left", self.left()));
        }
        Ok((kind, length))
    }

    /// Reads a struct. `each` takes the value of each field.
    pub fn fields(
        &mut self,
        depth: u32,
        mut each: impl FnMut(&mut Self, Field) -> Outcome<()>,
    ) -> Outcome<()> {
        if depth > DEPTH_MAX {
            return wrong(format!("it nests more than {DEPTH_MAX} deep"));
        }
        let (mut last, mut seen) = (0_i16, 0_u64);
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            let id = match head >> 4 {
                0 => self.int(16)? as i16,
                delta => match last.checked_add(i16::from(delta)) {
                    Some(id) => id,
                    None => return wrong("a field has a number of more than 16 bits"),
                },
            };
            if let Ok(bit @ 0..64) = u32::try_from(id) {
                if seen >> bit & 1 == 1 {
                    return wrong(format!("a struct has the field {id} twice"));
                }
                seen |= 1 << bit;
            }
            let kind = kind_of(head & 0xf)?;
            each(self, Field { id, kind, flag: head & 0xf == 1 })?;
            last = id;
        }
    }

    /// Skips a value of a field.
    pub fn skip(&mut self, kind: Kind, depth: u32) -> Outcome<()> {
        if kind == Kind::Bool { Ok(()) } else { self.skip_element(kind, depth) }
    }

    fn skip_element(&mut self, kind: Kind, depth: u32) -> Outcome<()> {
        if depth > DEPTH_MAX {
            return wrong(format!("it nests more than {DEPTH_MAX} deep"));
        }
        match kind {
            // The library reads no byte for them, the specification one.
            Kind::Bool => wrong("an unknown list has elements of BOOL"),
            Kind::I8 => self.skip_bytes(1),
            Kind::I16 => self.int(16).map(drop),
            Kind::I32 => self.int(32).map(drop),
            Kind::I64 => self.int(64).map(drop),
            Kind::Double => self.skip_bytes(8),
            Kind::Uuid => self.skip_bytes(16),
            Kind::Binary => self.binary().map(drop),
            Kind::List => {
                let (kind, length) = self.list()?;
                (0..length).try_for_each(|_| self.skip_element(kind, depth + 1))
            }
            Kind::Map => {
                let length = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
                if length == 0 {
                    return Ok(());
                }
                if length > self.left() {
                    return wrong(format!("a map has {length} entries, and {} bytes are left", self.left()));
                }
                let kinds = self.byte()?;
                let (key, value) = (kind_of(kinds >> 4)?, kind_of(kinds & 0xf)?);
                (0..length).try_for_each(|_| {
                    self.skip_element(key, depth + 1)?;
                    self.skip_element(value, depth + 1)
                })
            }
            Kind::Struct => self.fields(depth, |this, field| this.skip(field.kind, depth + 1)),
        }
    }

    /// Skips a field whose type is known.
    pub fn check(&mut self, field: Field, shape: &Shape, depth: u32) -> Outcome<()> {
        if field.kind != shape.kind() {
            return wrong(format!(
                "the field {} is a {:?}, and should be a {:?}",
                field.id,
                field.kind,
                shape.kind()
            ));
        }
        match shape {
            Shape::Bool => Ok(()),
            shape => self.check_value(shape, depth),
        }
    }

    fn check_value(&mut self, shape: &Shape, depth: u32) -> Outcome<()> {
        match shape {
            Shape::List(of) => {
                let (kind, length) = self.list()?;
                if length > 0 && kind != of.kind() {
                    return wrong(format!(
                        "a list has elements of {kind:?}, and should have {:?}",
                        of.kind()
                    ));
                }
                (0..length).try_for_each(|_| self.check_value(of, depth + 1))
            }
            Shape::Struct(known) => {
                self.fields(depth, |this, field| this.check_known(field, known, depth + 1))
            }
            shape => self.skip_element(shape.kind(), depth),
        }
    }

    /// Skips a field of a struct with these known fields.
    pub fn check_known(&mut self, field: Field, known: &[(i16, Shape)], depth: u32) -> Outcome<()> {
        match known.iter().find(|(id, _)| *id == field.id) {
            Some((_, shape)) => self.check(field, shape, depth),
            None => self.skip(field.kind, depth),
        }
    }
}

fn kind_of(wire: u8) -> Outcome<Kind> {
    Ok(match wire {
        1 | 2 => Kind::Bool,
        3 => Kind::I8,
        4 => Kind::I16,
        5 => Kind::I32,
        6 => Kind::I64,
        7 => Kind::Double,
        8 => Kind::Binary,
        9 | 10 => Kind::List,
        11 => Kind::Map,
        12 => Kind::Struct,
        13 => Kind::Uuid,
        _ => return wrong(format!("there is no type {wire}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIR: Shape = Shape::Struct(&[(1, Shape::I32), (2, Shape::List(&Shape::Binary))]);

    fn check(bytes: &[u8]) -> Outcome<usize> {
        let mut thrift = Thrift::new(bytes);
        let field = Field { id: 1, kind: Kind::Struct, flag: false };
        thrift.check(field, &PAIR, 1).map(|()| thrift.position())
    }

    fn text(bytes: &[u8]) -> String {
        check(bytes).unwrap_err().to_string()
    }

    #[test]
    fn known_and_unknown_fields_are_walked_to_the_end_of_their_struct() {
        // 1: -1, 2: ["a", ""], 3: true, 9: {1: 0.5}, and a byte behind.
        let bytes =
            [0x15, 1, 0x19, 0x28, 1, b'a', 0, 0x11, 0x6c, 0x17, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f, 0, 0, 7];
        assert_eq!(check(&bytes), Ok(bytes.len() - 1));
        for length in 0..bytes.len() - 1 {
            assert!(check(&bytes[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn a_list_is_not_longer_than_the_bytes_that_are_left() {
        assert!(text(&[0x29, 0xf8, 0xff, 0xff, 0xff, 0xff, 7]).contains("a list has 2147483647 elements"));
        assert!(text(&[0x3b, 0xff, 0xff, 0xff, 0xff, 7, 0x55]).contains("a map has 2147483647 entries"));
        assert!(text(&[0x29, 0x18, 5, b'a']).contains("cut off"));
    }

    #[test]
    fn a_field_comes_once_and_with_its_type() {
        assert!(text(&[0x15, 0, 0x05, 2, 0, 0]).contains("the field 1 twice"));
        assert!(text(&[0x16, 0, 0]).contains("the field 1 is a I64, and should be a I32"));
        assert!(text(&[0x29, 0x15, 0, 0]).contains("a list has elements of I32, and should have Binary"));
        assert!(text(&[0x15, 0xff, 0xff, 0xff, 0xff, 0x7f, 0]).contains("more than 32 bits"));
        assert!(text(&[0x39, 0x12, 1, 0]).contains("elements of BOOL"));
    }

    #[test]
    fn values_nest_no_deeper_than_the_limit() {
        let lists = |depth: usize| {
            let mut bytes = vec![0x39];
            bytes.extend(vec![0x19; depth]);
            bytes.extend([0x13, 0, 0]);
            bytes
        };
        assert!(check(&lists(50)).is_ok());
        assert!(text(&lists(100_000)).contains("nests more than 64 deep"));
        assert!(text(&vec![0x3c; 100_000]).contains("nests more than 64 deep"));
    }
}
