//! Objects into fields: by their keys, or by paths.
//!
//! Invariant: a row gives each field one value, or leaves no trace at all.

use super::JsonFormat;
use super::keys::Keys;
use super::path::JsonPath;
use super::scan::{Cursor, Defect, Flaw, Stop, compact};
use crate::cells::reject::{Place, Reject, RejectCode};
use tributary_types::escapes::unescape;

/// Takes the values of rows. Every field gets one value per row.
pub(super) trait RowSink {
    /// A string's characters, and its token in the text. Valid UTF-8 if the row is.
    fn text(&mut self, field: usize, text: &[u8], token: &[u8]);
    fn number(&mut self, field: usize, literal: &[u8]);
    fn bool(&mut self, field: usize, value: bool);
    fn null(&mut self, field: usize);
    /// An object or array as JSON without blanks.
    fn nested(&mut self, field: usize, json: &[u8]);
    /// The row does not have the field.
    fn missing(&mut self, field: usize);
    /// The row, which is `source`, is complete.
    fn end_row(&mut self, source: &[u8]);
    /// Takes the values of the row under construction back. It is not counted.
    fn undo_row(&mut self);
    /// Counts a row that was not loaded.
    fn reject(&mut self, reject: impl FnOnce(Place) -> Reject);
    /// The names of the fields, if the first row determines them.
    fn name_fields(&mut self, _names: Vec<String>) {}
}

/// How the fields of rows are found.
#[derive(Debug)]
enum Lookup {
    /// By the keys of the row's object.
    Keys(Keys),
    /// By a path for each of the first fields.
    Paths(Vec<JsonPath>),
    /// The first row's keys will be the fields.
    FirstRow,
}

/// Turns objects into rows.
#[derive(Debug)]
pub(super) struct Rows {
    lookup: Lookup,
    /// The text of `jsonpaths` in reasons.
    paths_text: Option<String>,
    names: Vec<String>,
    /// For each field the number of the last row that had it.
    seen: Vec<u64>,
    row: u64,
    quotes_numbers: bool,
    scratch: Vec<u8>,
    /// The array of the values to which a path with `[*]` leads.
    gathered: Vec<u8>,
    /// Why the row can't be loaded although its text is legal.
    unloadable: Option<Defect>,
}

impl Rows {
    /// Rows with fields of these names, in order; `None`: the first row's keys are the names.
    pub(super) fn new(names: Option<Vec<String>>, format: &JsonFormat) -> Self {
        let mut rows = Self {
            lookup: Lookup::FirstRow,
            paths_text: format.paths.as_ref().map(|paths| paths.text.clone()),
            names: Vec::new(),
            seen: Vec::new(),
            row: 0,
            quotes_numbers: format.num_as_string,
            scratch: Vec::new(),
            gathered: Vec::new(),
            unloadable: None,
        };
        let paths = format.paths.as_ref().map(|paths| &paths.paths[..]);
        if let Some(names) = names.or_else(|| Some(paths?.iter().map(JsonPath::name).collect())) {
            rows.set_fields(names, paths);
        }
        rows
    }

    fn set_fields(&mut self, names: Vec<String>, paths: Option<&[JsonPath]>) {
        self.seen = vec![0; names.len()];
        self.lookup = match paths {
            None => Lookup::Keys(Keys::new(names.iter().map(|name| name.as_bytes().into()).zip(0..))),
            Some(paths) => {
                let paths = &paths[..paths.len().min(names.len())];
                match only_keys(paths) {
                    Some(keys) => Lookup::Keys(Keys::new(keys.into_iter().map(Into::into).zip(0..))),
                    None => Lookup::Paths(paths.to_vec()),
                }
            }
        };
        self.names = names;
    }

    /// The names of the fields, as far as they are known.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether the first row will name the fields.
    pub(super) fn is_unnamed(&self) -> bool {
        matches!(self.lookup, Lookup::FirstRow)
    }

    /// Whether rows are decoded while they are scanned: else they must be known to be legal before.
    pub(super) fn is_direct(&self) -> bool {
        matches!(self.lookup, Lookup::Keys(_))
    }

    /// Gives the values of the object that is next to `sink`; how many fields it has. After an error the values
    /// must be taken back.
    #[inline]
    pub(super) fn object(&mut self, cursor: &mut Cursor<'_>, sink: &mut impl RowSink) -> Result<usize, Stop> {
        self.unloadable = None;
        self.row += 1;
        if matches!(self.lookup, Lookup::FirstRow) {
            self.learn(*cursor, sink)?;
        }
        let found = match &mut self.lookup {
            Lookup::Keys(keys) => {
                keys.begin_row();
                self.by_keys(cursor, sink)?
            }
            Lookup::Paths(_) | Lookup::FirstRow => self.by_paths(cursor, sink)?,
        };
        if found < self.seen.len() {
            for field in 0..self.seen.len() {
                if self.seen[field] != self.row {
                    sink.missing(field);
                }
            }
        }
        Ok(found)
    }

    #[inline]
    fn by_keys(&mut self, cursor: &mut Cursor<'_>, sink: &mut impl RowSink) -> Result<usize, Stop> {
        let mut found = 0;
        cursor.at += 1;
        if cursor.token()? == b'}' {
            cursor.at += 1;
            return Ok(0);
        }
        loop {
            let field = self.key(cursor)?;
            let first = cursor.token()?;
            match field {
                Some(field) if self.seen[field] != self.row => {
                    self.seen[field] = self.row;
                    found += 1;
                    self.value(cursor, first, field, sink)?;
                }
                _ => cursor.skip_value()?,
            }
            match cursor.token()? {
                b',' => cursor.at += 1,
                b'}' => break,
                _ => return Err(cursor.expected("',' or '}' behind a value")),
            }
            if cursor.token()? != b'"' {
                return Err(cursor.expected("a key in double quotes"));
            }
        }
        cursor.at += 1;
        if let Lookup::Keys(keys) = &mut self.lookup {
            keys.end_row();
        }
        Ok(found)
    }

    /// Takes a key with its colon; the field that it is.
    #[inline]
    fn key(&mut self, cursor: &mut Cursor<'_>) -> Result<Option<usize>, Stop> {
        let Lookup::Keys(keys) = &mut self.lookup else { return Ok(None) };
        if let Some((length, field)) = keys.guess(cursor.rest()) {
            cursor.at += length;
            return Ok(field);
        }
        let key = cursor.key()?;
        if !key.is_escaped {
            return Ok(keys.search(key.raw));
        }
        self.scratch.clear();
        // A key with an unpaired surrogate matches no field.
        Ok(unescape(key.raw, &mut self.scratch).ok().and_then(|()| keys.search(&self.scratch)))
    }

    fn by_paths(&mut self, cursor: &mut Cursor<'_>, sink: &mut impl RowSink) -> Result<usize, Stop> {
        let start = cursor.at;
        cursor.nested()?;
        let Lookup::Paths(paths) = &mut self.lookup else { return Ok(0) };
        let paths = std::mem::take(paths);
        let found = self.along(&paths, cursor.bytes(), start, sink);
        self.lookup = Lookup::Paths(paths);
        found
    }

    /// Gives the values that paths lead to from the legal object at `at`.
    fn along(
        &mut self,
        paths: &[JsonPath],
        bytes: &[u8],
        at: usize,
        sink: &mut impl RowSink,
    ) -> Result<usize, Stop> {
        let mut found = 0;
        for (field, path) in paths.iter().enumerate() {
            if path.leads_to_many() {
                found += usize::from(self.many(path, bytes, at, field, sink)?);
                continue;
            }
            let Some(at) = path.find(bytes, at) else { continue };
            found += 1;
            self.seen[field] = self.row;
            self.value(&mut Cursor::new(bytes, at), bytes[at], field, sink)?;
        }
        Ok(found)
    }

    /// Gives the array of all values that a path leads to; whether there is one.
    fn many(
        &mut self,
        path: &JsonPath,
        bytes: &[u8],
        at: usize,
        field: usize,
        sink: &mut impl RowSink,
    ) -> Result<bool, Stop> {
        let mut array = std::mem::take(&mut self.gathered);
        let found = path.gather(bytes, at, &mut array);
        if found.is_some() {
            self.seen[field] = self.row;
            self.value(&mut Cursor::new(&array, 0), b'[', field, sink)?;
        }
        self.gathered = array;
        Ok(found.is_some())
    }

    /// Reads a value, whose first byte is next, for a field.
    #[inline]
    fn value(
        &mut self,
        cursor: &mut Cursor<'_>,
        first: u8,
        field: usize,
        sink: &mut impl RowSink,
    ) -> Result<(), Stop> {
        match first {
            b'"' => {
                let start = cursor.at;
                let text = cursor.string()?;
                let token = &cursor.bytes()[start..cursor.at];
                if text.is_escaped {
                    self.escaped_text(start, text.raw, token, field, sink);
                } else {
                    sink.text(field, text.raw, token);
                }
            }
            b'-' | b'0'..=b'9' => sink.number(field, cursor.number()?),
            b't' => {
                cursor.word("true")?;
                sink.bool(field, true);
            }
            b'f' => {
                cursor.word("false")?;
                sink.bool(field, false);
            }
            b'n' => {
                cursor.word("null")?;
                sink.null(field);
            }
            b'{' | b'[' => {
                let raw = cursor.nested()?;
                let has_blanks = || raw.iter().any(u8::is_ascii_whitespace);
                if self.quotes_numbers || has_blanks() {
                    self.scratch.clear();
                    compact(raw, self.quotes_numbers, &mut self.scratch);
                    sink.nested(field, &self.scratch);
                } else {
                    sink.nested(field, raw);
                }
            }
            _ => return Err(cursor.expected("a value")),
        }
        Ok(())
    }

    fn escaped_text(
        &mut self,
        start: usize,
        raw: &[u8],
        token: &[u8],
        field: usize,
        sink: &mut impl RowSink,
    ) {
        self.scratch.clear();
        match unescape(raw, &mut self.scratch) {
            Ok(()) => sink.text(field, &self.scratch, token),
            Err(at) => {
                self.unloadable.get_or_insert(Defect { at: start + 1 + at, flaw: Flaw::HalfCharacter });
            }
        }
    }

    /// Makes the keys of the object that is next the fields, if it has some.
    fn learn(&mut self, mut cursor: Cursor<'_>, sink: &mut impl RowSink) -> Result<(), Stop> {
        let mut whole = cursor;
        whole.nested()?;
        let mut names: Vec<String> = Vec::new();
        cursor.at += 1;
        while cursor.token()? == b'"' {
            let key = cursor.key()?;
            self.scratch.clear();
            if unescape(key.raw, &mut self.scratch).is_ok() {
                let name = String::from_utf8_lossy(&self.scratch).into_owned();
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            cursor.skip_value()?;
            if cursor.token()? == b',' {
                cursor.at += 1;
            }
        }
        if !names.is_empty() {
            sink.name_fields(names.clone());
            self.set_fields(names, None);
        }
        Ok(())
    }

    /// Ends a row that was read: it is loaded, or rejected. `start` is the offset of `source` for reported positions, and
    /// `is_text` whether it is UTF-8.
    #[inline]
    pub(super) fn settle(
        &mut self,
        found: usize,
        (start, source): (usize, &[u8]),
        is_text: bool,
        sink: &mut impl RowSink,
    ) {
        if is_text && self.unloadable.is_none() && found > 0 {
            return sink.end_row(source);
        }
        self.refuse(start, source, is_text, sink);
    }

    #[cold]
    fn refuse(&mut self, start: usize, source: &[u8], is_text: bool, sink: &mut impl RowSink) {
        sink.undo_row();
        let defect = match self.unloadable.take() {
            _ if !is_text => Some(encoding(source)),
            Some(Defect { at, flaw }) => Some(Defect { at: at - start, flaw }),
            None => None,
        };
        sink.reject(|place| {
            let (code, reason) = match defect {
                Some(defect) if is_text => (RejectCode::BadJson, defect.reason("the row")),
                Some(defect) => (RejectCode::NotUtf8, defect.reason("the row")),
                None => (RejectCode::NoFields, self.nothing_found()),
            };
            Reject::of_row(place, code, reason, source)
        });
    }

    fn nothing_found(&self) -> String {
        match &self.paths_text {
            None => "All fields is null, this is a invalid row.".to_owned(),
            Some(paths) => {
                let names: String = self.names.iter().map(|name| format!("{name}, ")).collect();
                format!(
                    "There is no column matching jsonpaths in the json file, columns:[{names}], please check columns \
                     and jsonpaths:{paths}"
                )
            }
        }
    }
}

/// The position at which `bytes` stop being UTF-8.
pub(super) fn encoding(bytes: &[u8]) -> Defect {
    let at = std::str::from_utf8(bytes).err().map_or(0, |error| error.valid_up_to());
    Defect { at, flaw: Flaw::Encoding }
}

/// The keys that paths are, if each is one of its own.
fn only_keys(paths: &[JsonPath]) -> Option<Vec<&[u8]>> {
    let keys: Vec<&[u8]> = paths.iter().map(JsonPath::only_key).collect::<Option<_>>()?;
    let is_first = |(at, key): (usize, &&[u8])| !keys[..at].contains(key);
    keys.iter().enumerate().all(is_first).then_some(keys)
}
