//! Names of several files: `*`, `?` and `[a-z]` within a part between slashes, `{a,b}` and `{1..3}` anywhere.

use crate::error::FileError;
use glob::{MatchOptions, Pattern};

/// The maximum names that braces may expand to.
const ALTERNATIVES_MAX: usize = 1000;

/// `*` does not match `/`, and a name's first dot is an ordinary character.
const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// A name in which no braces are left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    text: String,
    /// `None`: it is the name of one file.
    pattern: Option<Pattern>,
}

impl Name {
    fn new(text: String) -> Result<Self, FileError> {
        let pattern = match text.contains(['*', '?', '[']) {
            false => None,
            true => Some(Pattern::new(&text).map_err(|error| {
                FileError::Property(format!("'{text}' is no pattern of names: {}", error.msg))
            })?),
        };
        Ok(Self { text, pattern })
    }

    /// The names that a text means.
    pub(crate) fn all(text: &str) -> Result<Vec<Self>, FileError> {
        alternatives(text)?.into_iter().map(Self::new).collect()
    }

    /// The text, if it names one file.
    pub(crate) fn plain(&self) -> Option<&str> {
        self.pattern.is_none().then_some(self.text.as_str())
    }

    /// The directory below which all files of the name are: the parts before the first that is a pattern.
    pub(crate) fn directory(&self) -> &str {
        let end = self.text.find(['*', '?', '[']).unwrap_or(self.text.len());
        self.text[..end].rsplit_once('/').map_or("", |(directory, _)| directory)
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        match &self.pattern {
            None => self.text == name,
            Some(pattern) => pattern.matches_with(name, OPTIONS),
        }
    }
}

/// The expansions of a text with braces, in order.
pub(crate) fn alternatives(text: &str) -> Result<Vec<String>, FileError> {
    let mut done = Vec::new();
    let mut open = vec![text.to_owned()];
    while let Some(text) = open.pop() {
        let Some(start) = text.find('{') else {
            done.push(text);
            continue;
        };
        let end = text[start..].find('}').map(|end| start + end);
        let end = end.ok_or_else(|| FileError::Property(format!("a {{ in '{text}' has no }}")))?;
        let inside = &text[start + 1..end];
        let items = match range(inside) {
            Some(items) => items,
            None => inside.split(',').map(str::to_owned).collect(),
        };
        if done.len() + open.len() + items.len() > ALTERNATIVES_MAX {
            return Err(FileError::Property(format!(
                "the braces of '{text}' stand for more than {ALTERNATIVES_MAX} names; use a pattern"
            )));
        }
        let (before, after) = (&text[..start], &text[end + 1..]);
        open.extend(items.iter().rev().map(|item| format!("{before}{item}{after}")));
    }
    Ok(done)
}

/// `1..3`; numbers have as many digits as the first one is written with.
fn range(text: &str) -> Option<Vec<String>> {
    let (first, last) = text.split_once("..")?;
    let (from, to): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
    let items = from.min(to)..=from.max(to);
    if items.clone().count() > ALTERNATIVES_MAX {
        return Some(vec![String::new(); ALTERNATIVES_MAX + 1]);
    }
    let width = if first.starts_with('0') { first.len() } else { 0 };
    let mut items: Vec<String> = items.map(|number| format!("{number:0width$}")).collect();
    if from > to {
        items.reverse();
    }
    Some(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_stand_for_lists_and_ranges() {
        for (text, expected) in [
            ("a.csv", &["a.csv"][..]),
            ("{a,b/c}.csv", &["a.csv", "b/c.csv"]),
            ("{1..3}", &["1", "2", "3"]),
            ("{08..10}-{x,y}", &["08-x", "08-y", "09-x", "09-y", "10-x", "10-y"]),
            ("{2..1}", &["2", "1"]),
            ("{,x}", &["", "x"]),
        ] {
            assert_eq!(alternatives(text).expect(text), expected, "{text}");
        }
        assert!(alternatives("a{b").unwrap_err().to_string().contains("has no }"));
        for many in ["{0..4000000000}", "{1..100}{1..100}"] {
            assert!(alternatives(many).unwrap_err().to_string().contains("more than 1000"), "{many}");
        }
    }

    #[test]
    fn patterns_stay_within_a_part_of_the_name() {
        let matches = |pattern: &str, name: &str| {
            Name::all(pattern).expect(pattern).iter().any(|pattern| pattern.matches(name))
        };
        assert!(matches("a/*.csv", "a/b.csv") && matches("a/*.csv", "a/.csv"));
        assert!(!matches("a/*.csv", "a/b/c.csv") && !matches("*.csv", "a/b.csv"));
        assert!(matches("a/?[0-9]/{x,y}*", "a/b7/yes") && !matches("a/?[0-9]/{x,y}*", "a/bb/yes"));
        assert!(!matches("a.csv", "A.csv") && matches("a.csv", "a.csv"));
        let name = |text: &str| Name::all(text).expect(text).remove(0);
        assert_eq!(name("a/b*/c").directory(), "a");
        assert_eq!((name("*").directory(), name("*").plain()), ("", None));
        assert_eq!((name("a/b/c").directory(), name("a/b/c").plain()), ("a/b", Some("a/b/c")));
        assert!(Name::all("a[b").unwrap_err().to_string().contains("is no pattern"));
    }
}
