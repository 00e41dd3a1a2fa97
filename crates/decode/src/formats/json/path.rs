//! Paths into a value: `$.a.b`, `$.a[0]`, `$.a[*].b`, `$."odd key"`, and `$` for all of it.

use super::scan::Cursor;
use crate::formats::format::FormatError;
use tributary_types::escapes::unescape;

/// A path of the properties `jsonpaths` and `json_root`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonPath(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(Box<[u8]>),
    Index(usize),
    /// `[*]`: each element.
    Every,
}

/// The end of a walk along a path.
enum Place {
    /// The value at its end.
    Value(usize),
    /// The first element, if there is one, of an array each of whose elements is meant, and the step behind that.
    Elements(usize, usize),
}

impl JsonPath {
    /// Reads a path.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] with the fault and its position.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        Self::steps(text).map(Self).map_err(|what| {
            FormatError::Invalid(format!(
                "It's invalid jsonpaths. `{text}`: {what}; paths are like $.a.b, $.a[0], $.a[*].b or $.\"odd key\""
            ))
        })
    }

    /// Reads a path that leads to one value.
    ///
    /// # Errors
    /// See [`JsonPath::parse`].
    pub fn parse_one(text: &str) -> Result<Self, FormatError> {
        let path = Self::parse(text)?;
        if path.leads_to_many() {
            return Err(FormatError::Invalid(format!(
                "It's invalid jsonpaths. `{text}`: [*] leads to many values, json_root to one; strip_outer_array \
                 makes the elements of an array rows"
            )));
        }
        Ok(path)
    }

    /// Reads an array of paths, which is JSON itself.
    ///
    /// # Errors
    /// See [`JsonPath::parse`].
    pub fn parse_list(text: &str) -> Result<Vec<Self>, FormatError> {
        let paths: Vec<String> = serde_json::from_str(text).map_err(|error| {
            FormatError::Invalid(format!(
                "It's invalid jsonpaths. {text}: {error}; give a JSON array of paths, e.g. [\"$.id\", \"$.a.b\"]"
            ))
        })?;
        if paths.is_empty() {
            return Err(FormatError::Invalid("It's invalid jsonpaths. The array is empty".to_owned()));
        }
        paths.iter().map(|path| Self::parse(path)).collect()
    }

    fn steps(text: &str) -> Result<Vec<Step>, String> {
        let mut rest = text.trim().strip_prefix('$').ok_or("a path begins with $")?;
        let mut steps = Vec::new();
        // `$.` is the whole, as `$` is.
        while !(rest.is_empty() || rest == "." && steps.is_empty()) {
            if let Some(index) = rest.strip_prefix('[') {
                let (digits, behind) = index.split_once(']').ok_or("a [ is not closed")?;
                steps.push(match digits.trim() {
                    "*" => Step::Every,
                    number => Step::Index(
                        number.parse().map_err(|_| format!("[{digits}] is not the number of an element"))?,
                    ),
                });
                rest = behind;
            } else if let Some(quoted) = rest.strip_prefix(".\"") {
                let (key, behind) = quoted.split_once('"').ok_or("a quote is not closed")?;
                steps.push(Step::Key(key.as_bytes().into()));
                rest = behind;
            } else {
                let key = rest.strip_prefix('.').ok_or("a key begins with a point")?;
                let end = key.find(['.', '[']).unwrap_or(key.len());
                match &key[..end] {
                    "" => return Err("a key is empty".to_owned()),
                    "*" => return Err(".* is not supported".to_owned()),
                    key => steps.push(Step::Key(key.as_bytes().into())),
                }
                rest = &key[end..];
            }
        }
        Ok(steps)
    }

    /// The key, if the path is one key of the object itself.
    pub(super) fn only_key(&self) -> Option<&[u8]> {
        match &self.0[..] {
            [Step::Key(key)] => Some(key),
            _ => None,
        }
    }

    /// The name of a field with this path: its last key.
    pub(super) fn name(&self) -> String {
        match self.0.iter().rev().find_map(|step| if let Step::Key(key) = step { Some(key) } else { None }) {
            Some(key) => String::from_utf8_lossy(key).into_owned(),
            None => "$".to_owned(),
        }
    }

    /// Whether the path has a `[*]`, so that its value is the result of [`JsonPath::gather`].
    pub(super) fn leads_to_many(&self) -> bool {
        self.0.contains(&Step::Every)
    }

    /// The position of the value in `bytes`, whose value at `at` is legal JSON. The first of equal keys counts. `None` for a path
    /// that leads to many.
    pub(super) fn find(&self, bytes: &[u8], at: usize) -> Option<usize> {
        match self.walk(bytes, at, 0)? {
            Place::Value(at) => Some(at),
            Place::Elements(..) => None,
        }
    }

    /// Writes an array of all values to which the path leads from the legal value at `at` of `bytes`, in order. `None` if there
    /// are none.
    pub(super) fn gather(&self, bytes: &[u8], at: usize, out: &mut Vec<u8>) -> Option<()> {
        out.clear();
        // The next element of each array being iterated, and the step after its `[*]`.
        let mut open: Vec<(usize, usize)> = Vec::new();
        let mut place = self.walk(bytes, at, 0);
        loop {
            match place.take() {
                Some(Place::Value(at)) => {
                    out.push(if out.is_empty() { b'[' } else { b',' });
                    let mut cursor = Cursor::new(bytes, at);
                    cursor.skip_value().ok()?;
                    out.extend_from_slice(&bytes[at..cursor.at]);
                }
                Some(Place::Elements(first, step)) => open.push((first, step)),
                None => {}
            }
            let Some((next, step)) = open.last_mut() else { break };
            let mut cursor = Cursor::new(bytes, *next);
            if cursor.token().is_ok_and(|byte| byte != b']') {
                let (element, step) = (cursor.at, *step);
                cursor.skip_value().ok()?;
                if cursor.token() == Ok(b',') {
                    cursor.at += 1;
                }
                *next = cursor.at;
                place = self.walk(bytes, element, step);
            } else {
                open.pop();
            }
        }
        if out.is_empty() {
            return None;
        }
        out.push(b']');
        Some(())
    }

    /// Goes from the value at `at` along the steps from `step` on.
    fn walk(&self, bytes: &[u8], at: usize, step: usize) -> Option<Place> {
        let mut cursor = Cursor::new(bytes, at);
        for (number, step) in self.0.iter().enumerate().skip(step) {
            let open = cursor.token().ok()?;
            match (step, open) {
                (Step::Key(wanted), b'{') => {
                    cursor.at += 1;
                    find_key(&mut cursor, wanted)?;
                }
                (Step::Index(index), b'[') => {
                    cursor.at += 1;
                    find_element(&mut cursor, *index)?;
                }
                (Step::Every, b'[') => return Some(Place::Elements(cursor.at + 1, number + 1)),
                _ => return None,
            }
        }
        cursor.token().ok()?;
        Some(Place::Value(cursor.at))
    }
}

fn find_key(cursor: &mut Cursor<'_>, wanted: &[u8]) -> Option<()> {
    while cursor.token().ok()? == b'"' {
        let key = cursor.key().ok()?;
        let is_wanted = if key.is_escaped {
            let mut name = Vec::new();
            unescape(key.raw, &mut name).is_ok() && name == wanted
        } else {
            key.raw == wanted
        };
        if is_wanted {
            return Some(());
        }
        cursor.skip_value().ok()?;
        if cursor.token().ok()? == b',' {
            cursor.at += 1;
        }
    }
    None
}

fn find_element(cursor: &mut Cursor<'_>, index: usize) -> Option<()> {
    for _ in 0..index {
        if cursor.token().ok()? == b']' {
            return None;
        }
        cursor.skip_value().ok()?;
        if cursor.token().ok()? == b',' {
            cursor.at += 1;
        }
    }
    (cursor.token().ok()? != b']').then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_values() {
        let text = br#"{"a":{"b":[10,{"c":null},[1]],"b":0},"a.b":"x","\u0061":2,"e":{}}"#;
        for (path, value) in [
            ("$", Some(&b"{\"a\":"[..])),
            ("$.", Some(b"{\"a\":")),
            ("$.a.b[0]", Some(b"10")),
            (" $.a.b[1].c", Some(b"null")),
            ("$.a.b[2][0]", Some(b"1]")),
            ("$.a.b[3]", None),
            ("$.a.b[2][1]", None),
            ("$.\"a.b\"", Some(b"\"x\"")),
            ("$.e", Some(b"{}")),
            ("$.e.a", None),
            ("$.a[0]", None),
            ("$.x", None),
        ] {
            let found = JsonPath::parse(path).unwrap().find(text, 0);
            assert_eq!(found.map(|at| &text[at..at + value.map_or(0, <[u8]>::len)]), value, "{path}");
        }
        let escaped = br#"{"\u0061":1}"#;
        assert_eq!(JsonPath::parse("$.a").unwrap().find(escaped, 0), Some(10));
    }

    #[test]
    fn a_path_with_a_star_gathers_all_values() {
        let text = br#"{"a":[{"b":1,"c":[1,2]},{"c":[]},{"b": "x" ,"c":[[3]]},7],"e":[],"o":{"b":1}}"#;
        for (path, values) in [
            ("$.a[*].b", Some("[1,\"x\"]")),
            ("$.a[*].c", Some("[[1,2],[],[[3]]]")),
            ("$.a[*].c[*]", Some("[1,2,[3]]")),
            ("$.a[ * ].c[0]", Some("[1,[3]]")),
            ("$.a[0].c[*]", Some("[1,2]")),
            ("$.a[*].c[*][*]", Some("[3]")),
            ("$.e[*]", None),
            ("$.o[*]", None),
            ("$.x[*]", None),
            ("$.a[*].x", None),
        ] {
            let path = JsonPath::parse(path).unwrap();
            let mut out = b"left".to_vec();
            let found = path.gather(text, 0, &mut out).map(|()| String::from_utf8(out).unwrap());
            assert_eq!(found.as_deref(), values, "{path:?}");
            assert_eq!(path.find(text, 0), None);
        }
        let root = JsonPath::parse_one("$.a[*]").unwrap_err().to_string();
        assert!(root.contains("json_root to one"), "{root}");
    }

    #[test]
    fn a_path_that_is_none_is_refused_with_its_text() {
        for (path, what) in [
            ("a", "begins with $"),
            ("$a", "begins with a point"),
            ("$.a..b", "a key is empty"),
            ("$.a.", "a key is empty"),
            ("$.*", ".* is not supported"),
            ("$.a[x]", "[x] is not the number"),
            ("$.a[1", "[ is not closed"),
            ("$.\"a", "quote is not closed"),
        ] {
            let error = JsonPath::parse(path).unwrap_err().to_string();
            assert!(error.starts_with("It's invalid jsonpaths. ") && error.contains(what), "{path}: {error}");
        }
        for list in ["$.a", "[1]", "[]", "{\"a\":1}"] {
            let error = JsonPath::parse_list(list).unwrap_err().to_string();
            assert!(error.starts_with("It's invalid jsonpaths. "), "{error}");
        }
        let paths = JsonPath::parse_list("[\"$.a\", \"$.b[0]\"]").unwrap();
        assert_eq!(paths.iter().map(JsonPath::only_key).collect::<Vec<_>>(), [Some(&b"a"[..]), None]);
        assert_eq!(paths[1].name(), "b");
    }
}
