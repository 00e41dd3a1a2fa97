//! The footer of a Parquet file, checked before the library reads it.
//!
//! The library reserves memory for as many row groups and children as a footer claims, and follows its nesting without a limit:
//! both end the process, and no panic handler can stop that.
//!
//! Invariant: a footer that passes is a tree of at most [`DEPTH_MAX`] levels and [`COLUMNS_MAX`] columns, has no more row groups
//! than fit into the file, and the library's memory for it is counted ([`Size::decoded_bytes`]).
//!
//! Not its business: whether the library can read the file.

use super::thrift::{DEPTH_MAX, Fault, Field, Kind, Outcome, Shape, Thrift, wrong};

/// The maximum columns of a file, including parts of nested ones.
const COLUMNS_MAX: usize = 16_384;
/// The minimum bytes of a row group in a file.
const ROW_GROUP_BYTES_MIN: u64 = 8;
/// The library's approximate memory for a column of a row group, and for an element of the schema, in bytes.
const CHUNK_BYTES: usize = 1024;
const ELEMENT_BYTES: usize = 1024;

const EMPTY: Shape = Shape::Struct(&[]);
const KEY_VALUES: Shape = Shape::List(&Shape::Struct(&[(1, Shape::Binary), (2, Shape::Binary)]));
const TIME: Shape =
    Shape::Struct(&[(1, Shape::Bool), (2, Shape::Struct(&[(1, EMPTY), (2, EMPTY), (3, EMPTY)]))]);
const LOGICAL_TYPE: Shape = Shape::Struct(&[
    (1, EMPTY),
    (2, EMPTY),
    (3, EMPTY),
    (4, EMPTY),
    (5, Shape::Struct(&[(1, Shape::I32), (2, Shape::I32)])),
    (6, EMPTY),
    (7, TIME),
    (8, TIME),
    (10, Shape::Struct(&[(1, Shape::I8), (2, Shape::Bool)])),
    (11, EMPTY),
    (12, EMPTY),
    (13, EMPTY),
    (14, EMPTY),
    (15, EMPTY),
    (16, Shape::Struct(&[(1, Shape::I8)])),
    (17, Shape::Struct(&[(1, Shape::Binary)])),
    (18, Shape::Struct(&[(1, Shape::Binary), (2, Shape::I32)])),
]);
const SCHEMA_ELEMENT: &[(i16, Shape)] = &[
    (1, Shape::I32),
    (2, Shape::I32),
    (3, Shape::I32),
    (4, Shape::Binary),
    (5, Shape::I32),
    (6, Shape::I32),
    (7, Shape::I32),
    (8, Shape::I32),
    (9, Shape::I32),
    (10, LOGICAL_TYPE),
];
const STATISTICS: Shape = Shape::Struct(&[
    (1, Shape::Binary),
    (2, Shape::Binary),
    (3, Shape::I64),
    (4, Shape::I64),
    (5, Shape::Binary),
    (6, Shape::Binary),
    (7, Shape::Bool),
    (8, Shape::Bool),
]);
const HISTOGRAM: Shape = Shape::List(&Shape::I64);
const BOUNDING_BOX: Shape = Shape::Struct(&[
    (1, Shape::Double),
    (2, Shape::Double),
    (3, Shape::Double),
    (4, Shape::Double),
    (5, Shape::Double),
    (6, Shape::Double),
    (7, Shape::Double),
    (8, Shape::Double),
]);
const COLUMN_METADATA: Shape = Shape::Struct(&[
    (1, Shape::I32),
    (2, Shape::List(&Shape::I32)),
    (3, Shape::List(&Shape::Binary)),
    (4, Shape::I32),
    (5, Shape::I64),
    (6, Shape::I64),
    (7, Shape::I64),
    (8, KEY_VALUES),
    (9, Shape::I64),
    (10, Shape::I64),
    (11, Shape::I64),
    (12, STATISTICS),
    (13, Shape::List(&Shape::Struct(&[(1, Shape::I32), (2, Shape::I32), (3, Shape::I32)]))),
    (14, Shape::I64),
    (15, Shape::I32),
    (16, Shape::Struct(&[(1, Shape::I64), (2, HISTOGRAM), (3, HISTOGRAM)])),
    (17, Shape::Struct(&[(1, BOUNDING_BOX), (2, Shape::List(&Shape::I32))])),
]);
const COLUMN_CHUNK: &[(i16, Shape)] = &[
    (1, Shape::Binary),
    (2, Shape::I64),
    (3, COLUMN_METADATA),
    (4, Shape::I64),
    (5, Shape::I32),
    (6, Shape::I64),
    (7, Shape::I32),
    (9, Shape::Binary),
];
const ROW_GROUP: &[(i16, Shape)] = &[
    (2, Shape::I64),
    (3, Shape::I64),
    (4, Shape::List(&Shape::Struct(&[(1, Shape::I32), (2, Shape::Bool), (3, Shape::Bool)]))),
    (5, Shape::I64),
    (6, Shape::I64),
    (7, Shape::I16),
];
const FILE: &[(i16, Shape)] = &[
    (1, Shape::I32),
    (3, Shape::I64),
    (5, KEY_VALUES),
    (6, Shape::Binary),
    (7, Shape::List(&Shape::Struct(&[(1, EMPTY)]))),
    (9, Shape::Binary),
];
/// Numbers of the fields that are walked explicitly.
const SCHEMA: i16 = 2;
const ROW_GROUPS: i16 = 4;
const COLUMNS: i16 = 1;
const NAME: i16 = 4;
const CHILDREN: i16 = 5;

/// The counts of a footer's contents.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub columns: usize,
    pub row_groups: usize,
    elements: usize,
    chunks: usize,
    /// Names of all columns, each with the names of its groups.
    path_bytes: usize,
}

impl Size {
    /// The library's approximate memory for it, in bytes.
    pub fn decoded_bytes(&self) -> usize {
        let chunks = (self.chunks + self.row_groups).saturating_mul(CHUNK_BYTES);
        let schema = self.elements.saturating_mul(ELEMENT_BYTES);
        chunks.saturating_add(schema).saturating_add(self.path_bytes.saturating_mul(2))
    }
}

/// Walks the footer of a file.
pub(super) fn size(footer: &[u8], file_bytes: u64) -> Outcome<Size> {
    let mut size = Size::default();
    let mut thrift = Thrift::new(footer);
    thrift.fields(1, |thrift, field| match field.id {
        SCHEMA => schema(thrift, field, &mut size),
        ROW_GROUPS => row_groups(thrift, field, file_bytes, &mut size),
        _ => thrift.check_known(field, FILE, 2),
    })?;
    Ok(size)
}

fn structs(thrift: &mut Thrift<'_>, field: Field, what: &str) -> Outcome<usize> {
    if field.kind != Kind::List {
        return wrong(format!("its {what} are no list"));
    }
    let (kind, length) = thrift.list()?;
    if length > 0 && kind != Kind::Struct { wrong(format!("its {what} are no structs")) } else { Ok(length) }
}

/// A group of the schema that is open.
struct Group {
    /// The number of its remaining children.
    left: usize,
    path_bytes: usize,
}

fn schema(thrift: &mut Thrift<'_>, field: Field, size: &mut Size) -> Outcome<()> {
    size.elements = structs(thrift, field, "columns")?;
    // The root counts as its own child.
    let mut open = vec![Group { left: 1, path_bytes: 0 }];
    for number in 0..size.elements {
        let Some(parent) = open.last_mut() else {
            return wrong(format!("its schema has {} elements, and its tree {number}", size.elements));
        };
        parent.left -= 1;
        let parent_bytes = parent.path_bytes;
        let (mut name, mut children) = (0, 0);
        thrift.fields(3, |thrift, field| match (field.id, field.kind) {
            (NAME, Kind::Binary) => {
                name = thrift.binary()?.len();
                Ok(())
            }
            (CHILDREN, Kind::I32) => {
                children = thrift.i32()?;
                Ok(())
            }
            _ => thrift.check_known(field, SCHEMA_ELEMENT, 4),
        })?;
        let after = size.elements - number - 1;
        let children = match usize::try_from(children) {
            Ok(children) if children <= after => children,
            _ => {
                return wrong(format!(
                    "a group has {children} children, and {after} elements of the schema are left"
                ));
            }
        };
        let path_bytes = parent_bytes + name + 1;
        if children > 0 {
            open.push(Group { left: children, path_bytes });
            if open.len() > DEPTH_MAX as usize {
                return wrong(format!("its columns nest more than {DEPTH_MAX} deep"));
            }
        } else {
            size.columns += 1;
            size.path_bytes = size.path_bytes.saturating_add(path_bytes);
            if size.columns > COLUMNS_MAX {
                return wrong(format!("it has more than {COLUMNS_MAX} columns"));
            }
        }
        while open.last().is_some_and(|group| group.left == 0) {
            open.pop();
        }
    }
    match open.last() {
        Some(_) if size.elements > 0 => Err(Fault::CutOff),
        _ => Ok(()),
    }
}

fn row_groups(thrift: &mut Thrift<'_>, field: Field, file_bytes: u64, size: &mut Size) -> Outcome<()> {
    size.row_groups = structs(thrift, field, "row groups")?;
    if size.row_groups as u64 > file_bytes / ROW_GROUP_BYTES_MIN {
        return wrong(format!("it has {} row groups in {file_bytes} bytes", size.row_groups));
    }
    for _ in 0..size.row_groups {
        thrift.fields(3, |thrift, field| {
            if field.id != COLUMNS {
                return thrift.check_known(field, ROW_GROUP, 4);
            }
            let chunks = structs(thrift, field, "columns of a row group")?;
            size.chunks += chunks;
            (0..chunks).try_for_each(|_| {
                thrift.fields(5, |thrift, field| thrift.check_known(field, COLUMN_CHUNK, 6))
            })
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::columnar::parquet::tests::thrift::{list, long, number, structs, text};

    const FILE_BYTES: u64 = 1 << 20;

    fn element(name: &str, children: Option<i32>) -> Vec<u8> {
        let children = children.map_or_else(Vec::new, |children| number(5, 4, children.into()));
        [number(1, 0, 1), number(3, 1, 0), text(4, 3, name), children, vec![0]].concat()
    }

    /// A footer with this schema and these row groups.
    fn footer(schema: &[Vec<u8>], row_groups: &[u8]) -> Vec<u8> {
        [number(1, 0, 1), structs(2, 1, schema), long(3, 2, 0), list(4, 3, row_groups), vec![0]].concat()
    }

    fn error(schema: &[Vec<u8>]) -> String {
        size(&footer(schema, &[0x0c]), FILE_BYTES).unwrap_err().to_string()
    }

    #[test]
    fn the_tree_and_the_row_groups_are_counted() {
        let schema = [
            element("root", Some(2)),
            element("a", None),
            element("pair", Some(2)),
            element("x", None),
            element("y", Some(0)),
        ];
        let size = size(&footer(&schema, &[0x0c]), FILE_BYTES).unwrap();
        assert_eq!((size.columns, size.row_groups, size.elements), (3, 0, 5));
        assert_eq!(size.path_bytes, 3 * "root ".len() + 2 + 2 * "pair ".len() + 2 * "x ".len());
    }

    #[test]
    fn more_row_groups_than_bytes_are_refused() {
        // 2^31 - 1 of them, and as many as there are bytes left, which is too many for the file.
        let claims = size(&footer(&[], &[0xfc, 0xff, 0xff, 0xff, 0xff, 7]), FILE_BYTES).unwrap_err();
        assert!(claims.to_string().contains("a list has 2147483647 elements"), "{claims}");
        let empty = [vec![0xfc, 100], vec![0; 100]].concat();
        let dense = size(&footer(&[], &empty), 799).unwrap_err();
        assert!(dense.to_string().contains("100 row groups in 799 bytes"), "{dense}");
        assert_eq!(size(&footer(&[], &empty), 800).unwrap().row_groups, 100);
    }

    #[test]
    fn columns_nest_and_are_as_many_as_the_limits_say() {
        let chain = |depth: usize| {
            let mut schema = vec![element("g", Some(1)); depth];
            schema.push(element("leaf", None));
            schema
        };
        assert!(size(&footer(&chain(60), &[0x0c]), FILE_BYTES).is_ok());
        assert!(error(&chain(200_000)).contains("nest more than 64 deep"));
        let flat = |columns: usize| {
            let mut schema = vec![element("root", Some(columns as i32))];
            schema.extend(vec![element("c", None); columns]);
            schema
        };
        assert_eq!(size(&footer(&flat(COLUMNS_MAX), &[0x0c]), FILE_BYTES).unwrap().columns, COLUMNS_MAX);
        assert!(error(&flat(COLUMNS_MAX + 1)).contains("more than 16384 columns"));
    }

    #[test]
    fn children_are_elements_that_are_there() {
        for children in [3, i32::MAX, -1] {
            let text = error(&[element("root", Some(children)), element("a", None), element("b", None)]);
            assert!(text.contains(&format!("a group has {children} children, and 2 elements")), "{text}");
        }
        assert!(
            error(&[element("root", Some(1)), element("a", None), element("b", None)]).contains("its tree 2")
        );
        assert!(error(&[element("root", Some(1))]).contains("has 1 children"));
    }

    #[test]
    fn a_field_of_another_type_than_the_library_reads_is_refused() {
        // The number of children as a text, which the library would read as a number.
        let disguised = [number(1, 0, 1), text(5, 1, "x"), vec![0]].concat();
        assert!(error(&[disguised]).contains("the field 5 is a Binary, and should be a I32"));
    }
}
