//! `ARRAY<T>`, `MAP<K, V>` and `STRUCT<f:T, …>`.

use super::types::data_type;
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::parse::unsupported;
use sqlparser::tokenizer::Token;
use tributary_types::{DataType, ErrorCode, NESTING_MAX, Nested, NestedType, SqlError, StructField};

/// A nested type, if one is next; `column` names it in errors.
pub(super) fn nested(cursor: &mut Cursor<'_>, column: &str) -> Parsed<Option<DataType>> {
    if *cursor.peek_nth(1) != Token::Lt {
        return Ok(None);
    }
    let mut open = Open::default();
    let nested = open.nested(cursor, column)?;
    if open.closed > 0 {
        return Err(cursor.expected("one '>' less"));
    }
    Ok(nested)
}

/// The types that have begun and not ended.
#[derive(Default)]
struct Open {
    /// How many.
    depth: usize,
    /// How many of them a token has ended beyond the innermost: `>>` is one token.
    closed: usize,
}

impl Open {
    fn nested(&mut self, cursor: &mut Cursor<'_>, column: &str) -> Parsed<Option<DataType>> {
        if *cursor.peek_nth(1) != Token::Lt {
            return Ok(None);
        }
        let Some(word) = cursor.eat_any(&["ARRAY", "MAP", "STRUCT"]) else { return Ok(None) };
        cursor.expect_token(&Token::Lt)?;
        self.depth += 1;
        if self.depth > NESTING_MAX {
            let text = format!("Type exceeds the maximum nesting depth of {NESTING_MAX}");
            return Err(SqlError::detail(ErrorCode::Unknown, text));
        }
        let nested = match word {
            "ARRAY" => NestedType::Array(self.part(cursor, column)?),
            "MAP" => {
                let key = self.part(cursor, column)?;
                if key.depth() > 0 {
                    let what = format!("column '{column}': a key of type {key} in a MAP");
                    return Err(unsupported::refuse(&what, "use a type whose values are no collections"));
                }
                cursor.expect_token(&Token::Comma)?;
                NestedType::Map(key, self.part(cursor, column)?)
            }
            _ => NestedType::Struct(self.fields(cursor, column)?),
        };
        self.close(cursor)?;
        self.depth -= 1;
        Ok(Some(DataType::Nested(Nested::new(nested))))
    }

    fn part(&mut self, cursor: &mut Cursor<'_>, column: &str) -> Parsed<DataType> {
        let part = match self.nested(cursor, column)? {
            Some(nested) => nested,
            None => data_type(cursor, column)?,
        };
        if matches!(
            part,
            DataType::Variant
                | DataType::Ipv4
                | DataType::Ipv6
                | DataType::Varbinary { .. }
                | DataType::Time { .. }
        ) {
            let what = format!("column '{column}': {part} within a type");
            let instead = if part == DataType::Variant { "use JSON" } else { "use VARCHAR" };
            return Err(unsupported::refuse(&what, instead));
        }
        if part.is_state() {
            let what = format!("column '{column}': {} within a type", part.base_name());
            return Err(unsupported::refuse(&what, "make it a column of its own"));
        }
        if self.closed > 0 {
            // The rest belongs to the enclosing type, or to the column.
            return Ok(part);
        }
        if cursor.is("NOT") {
            let what = format!("column '{column}': NOT NULL within a type");
            return Err(unsupported::refuse(&what, "leave it out: elements and fields may be NULL"));
        }
        cursor.eat("NULL");
        Ok(part)
    }

    fn fields(&mut self, cursor: &mut Cursor<'_>, column: &str) -> Parsed<Vec<StructField>> {
        let mut fields: Vec<StructField> = Vec::new();
        loop {
            // As in Doris.
            let name = cursor.identifier("the name of a field")?.to_lowercase();
            cursor.expect_token(&Token::Colon)?;
            let data_type = self.part(cursor, column)?;
            if self.closed == 0 && cursor.is("COMMENT") {
                let what = format!("column '{column}': a comment of a field");
                return Err(unsupported::refuse(&what, "write it into the comment of the column"));
            }
            if fields.iter().any(|field| field.name.eq_ignore_ascii_case(&name)) {
                let text = format!("Duplicate field name {name} in struct (column '{column}')");
                return Err(SqlError::detail(ErrorCode::Unknown, text));
            }
            fields.push(StructField { name, data_type });
            if self.closed > 0 || !cursor.eat_token(&Token::Comma) {
                return Ok(fields);
            }
        }
    }

    /// Takes the `>` of a type.
    fn close(&mut self, cursor: &mut Cursor<'_>) -> Parsed<()> {
        if self.closed > 0 {
            self.closed -= 1;
            return Ok(());
        }
        if cursor.eat_token(&Token::ShiftRight) {
            self.closed = 1;
            return Ok(());
        }
        cursor.expect_token(&Token::Gt)
    }
}
