//! Maps keys to fields: by a guess from the previous row, or else by a search.
//!
//! Rows of one program have their keys in one order, so the next key is nearly always the one that followed in the previous row:
//! one comparison of bytes finds it, quotes and colon included. Keys that are not fields are remembered, too.
//!
//! Invariant: a guess never gives another field than a search would.

use std::collections::HashMap;
use std::ops::Range;

/// Limit on the remembered keys that are not fields …
const STRANGERS_MAX: usize = 1024;
/// … and the longest of them, in bytes.
const STRANGER_BYTES_MAX: usize = 256;
/// How many keys of the row before may be left out before a search.
const GUESSES: usize = 3;

/// The number of a key that is not remembered.
const FORGOTTEN: u32 = u32::MAX;

/// The keys of rows.
#[derive(Debug)]
pub(super) struct Keys {
    /// The keys as they appear in a text: `"name":`.
    tokens: Vec<u8>,
    entries: Vec<Entry>,
    /// Made when the first guess fails.
    numbers: Option<HashMap<Box<[u8]>, u32>>,
    names: Vec<(Box<[u8]>, usize)>,
    /// Numbers of the keys of the row before, in order, and of this row.
    previous: Vec<u32>,
    row: Vec<u32>,
    /// The place in `previous` of the next guess.
    next: usize,
    /// A key was not where it was guessed.
    is_changed: bool,
    strangers: usize,
}

#[derive(Clone, Debug)]
struct Entry {
    /// In `tokens`; empty if the key cannot appear literally in a text.
    token: Range<u32>,
    field: Option<usize>,
}

impl Keys {
    /// Names and the fields that they are; the first of equal names counts.
    pub(super) fn new(names: impl Iterator<Item = (Box<[u8]>, usize)>) -> Self {
        let mut keys = Self {
            tokens: Vec::new(),
            entries: Vec::new(),
            numbers: None,
            names: names.collect(),
            previous: Vec::new(),
            row: Vec::new(),
            next: 0,
            is_changed: false,
            strangers: 0,
        };
        for index in 0..keys.names.len() {
            let (name, field) = keys.names[index].clone();
            keys.add(&name, Some(field));
        }
        keys.previous = (0..keys.entries.len() as u32).collect();
        keys
    }

    fn add(&mut self, name: &[u8], field: Option<usize>) -> u32 {
        let start = self.tokens.len() as u32;
        if !name.iter().any(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)) {
            self.tokens.push(b'"');
            self.tokens.extend_from_slice(name);
            self.tokens.extend_from_slice(b"\":");
        }
        self.entries.push(Entry { token: start..self.tokens.len() as u32, field });
        self.entries.len() as u32 - 1
    }

    /// Begins a row.
    #[inline]
    pub(super) fn begin_row(&mut self) {
        self.row.clear();
        self.next = 0;
        self.is_changed = false;
    }

    /// The length of the key and colon at the beginning of `rest`, and its field, if the previous row predicts them.
    #[inline]
    pub(super) fn guess(&mut self, rest: &[u8]) -> Option<(usize, Option<usize>)> {
        for ahead in 0..GUESSES {
            let number = *self.previous.get(self.next + ahead)?;
            let Some(entry) = self.entries.get(number as usize) else { continue };
            let token = &self.tokens[entry.token.start as usize..entry.token.end as usize];
            if !token.is_empty() && rest.starts_with(token) {
                self.next += ahead + 1;
                self.row.push(number);
                return Some((token.len(), entry.field));
            }
        }
        None
    }

    /// The field of a key that was not guessed.
    pub(super) fn search(&mut self, key: &[u8]) -> Option<usize> {
        let names = &self.names;
        let numbers = self.numbers.get_or_insert_with(|| {
            // The first of equal names is inserted last.
            names.iter().enumerate().rev().map(|(number, (name, _))| (name.clone(), number as u32)).collect()
        });
        let number = match numbers.get(key) {
            Some(&number) => number,
            None if self.strangers < STRANGERS_MAX && key.len() <= STRANGER_BYTES_MAX => {
                self.strangers += 1;
                let number = self.entries.len() as u32;
                numbers.insert(key.into(), number);
                self.add(key, None)
            }
            None => FORGOTTEN,
        };
        self.is_changed = true;
        self.row.push(number);
        self.entries.get(number as usize)?.field
    }

    /// Ends a row. One that only leaves keys out changes nothing.
    #[inline]
    pub(super) fn end_row(&mut self) {
        if self.is_changed {
            std::mem::swap(&mut self.previous, &mut self.row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(names: &[&str]) -> Keys {
        Keys::new(names.iter().zip(0..).map(|(name, field)| (name.as_bytes().into(), field)))
    }

    /// The fields of a row's keys, and how many of them were guessed.
    fn row(keys: &mut Keys, names: &[&str]) -> (Vec<Option<usize>>, usize) {
        keys.begin_row();
        let mut guessed = 0;
        let fields = names.iter().map(|name| match keys.guess(format!("\"{name}\":1").as_bytes()) {
            Some((length, field)) => {
                assert_eq!(length, name.len() + 3);
                guessed += 1;
                field
            }
            None => keys.search(name.as_bytes()),
        });
        let fields = fields.collect();
        keys.end_row();
        (fields, guessed)
    }

    #[test]
    fn the_order_of_the_row_before_is_guessed() {
        let mut keys = keys(&["a", "b", "c"]);
        assert_eq!(row(&mut keys, &["a", "b", "c"]), (vec![Some(0), Some(1), Some(2)], 3));
        assert_eq!(row(&mut keys, &["c", "x", "b", "a"]).0, [Some(2), None, Some(1), Some(0)]);
        assert_eq!(row(&mut keys, &["c", "x", "b", "a"]), (vec![Some(2), None, Some(1), Some(0)], 4));
        assert_eq!(row(&mut keys, &["c", "a"]), (vec![Some(2), Some(0)], 2), "keys may be left out");
        assert_eq!(row(&mut keys, &["c", "x", "b", "a"]).1, 4, "and come back");
        assert_eq!(row(&mut keys, &[]), (vec![], 0));
    }

    #[test]
    fn names_are_whole_and_compared_byte_for_byte() {
        let mut keys = keys(&["a", "ab", "a\"b", ""]);
        assert_eq!(row(&mut keys, &["ab", "A", "a", "abc"]).0, [Some(1), None, Some(0), None]);
        keys.begin_row();
        assert_eq!(keys.guess(b"\"a\\\"b\":1"), None);
        assert_eq!((keys.search(b"a\"b"), keys.search(b"")), (Some(2), Some(3)));
    }

    #[test]
    fn what_is_remembered_of_strange_keys_is_bounded() {
        let mut keys = keys(&["a"]);
        for number in 0..3 * STRANGERS_MAX {
            let name = format!("k{number}");
            assert_eq!(row(&mut keys, &[&name, "a"]).0, [None, Some(0)]);
        }
        assert_eq!(keys.entries.len(), 1 + STRANGERS_MAX);
        assert_eq!(row(&mut keys, &[&"x".repeat(STRANGER_BYTES_MAX + 1), "a"]).0, [None, Some(0)]);
    }
}
