//! The texts of nested values, as cells: their grammar is in [`tributary_types::nested_text`].

use super::Rules;
use crate::blocks::nested::Tree;
use crate::cells::cell::{Cell, Fault, push_cell};
use tributary_types::DataType;
pub(super) use tributary_types::nested_text::Form;
use tributary_types::nested_text::{Malformed, Parts, Token, field_values};

impl From<Malformed> for Fault {
    fn from(_: Malformed) -> Self {
        Self::Bad
    }
}

impl Tree {
    /// Pushes a value that is not a leaf.
    pub(super) fn push_text(&mut self, text: &[u8], form: Form, rules: Rules) -> Result<(), Fault> {
        match self {
            _ if text.eq_ignore_ascii_case(b"null") => Err(Fault::Null),
            Self::Leaf { .. } => Err(Fault::Bad),
            Self::List { lists, items } => {
                let mut parts = Parts::of(text, b'[', b']')?;
                let mut count = 0;
                while let Some(part) = parts.next()? {
                    items.push_token(part, form, rules)?;
                    count += 1;
                }
                lists.push(count);
                Ok(())
            }
            Self::Map { .. } => {
                let mut parts = Parts::of(text, b'{', b'}')?;
                let mut entries = Vec::new();
                while let Some(part) = parts.next()? {
                    entries.push(part.divided()?.ok_or(Fault::Bad)?);
                }
                self.push_entries(
                    entries.len(),
                    rules,
                    |keys, entry| keys.push_strictly(entries[entry].0, form, rules),
                    |values, entry| values.push_strictly(entries[entry].1, form, rules),
                )
            }
            Self::Struct { len, names, fields, .. } => {
                let values = field_values(text, names, form)?;
                for (field, value) in fields.iter_mut().zip(values) {
                    match value {
                        Some(value) => field.push_token(value, form, rules)?,
                        None => field.push_null(),
                    }
                }
                *len += 1;
                Ok(())
            }
        }
    }

    /// Pushes a part: NULL where it cannot be converted and the rules allow it.
    fn push_token(&mut self, token: Token<'_>, form: Form, rules: Rules) -> Result<(), Fault> {
        let before = self.len();
        let pushed = self.push_strictly(token, form, rules);
        self.settle(before, pushed, rules)
    }

    fn push_strictly(&mut self, token: Token<'_>, form: Form, rules: Rules) -> Result<(), Fault> {
        if token.is_null() {
            return Err(Fault::Null);
        }
        let quoted = token.unquoted()?;
        match self {
            Self::Leaf { data_type, values } => {
                let text = match &quoted {
                    // A string in quotes is the document that it spells, else a JSON string.
                    Some(text) if *data_type == DataType::Json && !is_document(text) => token.text,
                    Some(text) => text,
                    None => token.text,
                };
                let cell = Cell::Text(text);
                push_cell(values, *data_type, cell, rules.strict, rules.utc_offset_seconds)
            }
            tree => tree.push_text(quoted.as_deref().unwrap_or(token.text), form, rules),
        }
    }
}

fn is_document(text: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok()
}
