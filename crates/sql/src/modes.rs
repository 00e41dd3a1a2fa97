//! Modes of `sql_mode` that change how statements are read: the text of a statement, written as in the default mode.
//!
//! All that reads texts (the parser, the scanner of INSERT, the search for secrets) knows the default mode alone. A session in another
//! mode translates each text once, before anything else sees it. Only `||` needs the parser ([`Reading::pipes_concatenate`]).

use std::borrow::Cow;

/// Modes that change where texts and names end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuoteModes {
    /// `ANSI_QUOTES`: double quotes are those of names.
    pub ansi_quotes: bool,
    /// `NO_BACKSLASH_ESCAPES`: a backslash in a text is a backslash.
    pub no_backslash_escapes: bool,
}

/// How the parser reads statements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// DDL that only MySQL has is mapped to what comes nearest.
    pub is_compatible: bool,
    /// `PIPES_AS_CONCAT`: `||` concatenates.
    pub pipes_concatenate: bool,
    /// `REAL_AS_FLOAT`: a column REAL is a FLOAT, and not a DOUBLE.
    pub real_is_float: bool,
}

impl QuoteModes {
    /// Returns the text as it would be written in the default mode, with the same meaning.
    #[must_use]
    pub fn translated(self, sql: &str) -> Cow<'_, str> {
        if self == Self::default() || !sql.contains(['\\', '"']) {
            return Cow::Borrowed(sql);
        }
        let mut out = String::with_capacity(sql.len() + 16);
        let mut rest = sql;
        while let Some(first) = rest.chars().next() {
            let len = match first {
                '\'' => self.push_text(rest, '\'', &mut out),
                '"' if self.ansi_quotes => push_name(rest, &mut out),
                '"' => self.push_text(rest, '"', &mut out),
                _ => {
                    let len = plain_len(rest);
                    out.push_str(&rest[..len]);
                    len
                }
            };
            rest = &rest[len..];
        }
        Cow::Owned(out)
    }

    /// Appends the quoted text at the beginning of `rest`, and returns its length there. A doubled quote is read as two texts.
    fn push_text(self, rest: &str, quote: char, out: &mut String) -> usize {
        let mut is_escaped = false;
        for (at, letter) in rest.char_indices().skip(1) {
            if letter == quote && !is_escaped {
                let len = at + 1;
                match self.no_backslash_escapes {
                    true => out.push_str(&rest[..len].replace('\\', "\\\\")),
                    false => out.push_str(&rest[..len]),
                }
                return len;
            }
            is_escaped = letter == '\\' && !is_escaped && !self.no_backslash_escapes;
        }
        // It has no end, which the parser says.
        out.push_str(rest);
        rest.len()
    }
}

/// Appends the name in double quotes at the beginning of `rest`, in backticks, and returns its length there.
fn push_name(rest: &str, out: &mut String) -> usize {
    let begin = out.len();
    out.push('`');
    let mut letters = rest.char_indices().skip(1).peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' if letters.next_if(|(_, next)| *next == '"').is_some() => out.push('"'),
            '"' => {
                out.push('`');
                return at + 1;
            }
            '`' => out.push_str("``"),
            letter => out.push(letter),
        }
    }
    // It has no end, which the parser says.
    out.truncate(begin);
    out.push_str(rest);
    rest.len()
}

/// The length of what is at the beginning of `rest` and is the same in all modes: a name in backticks, a comment, or what lies between
/// these and quotes. The contents of `/*! … */` are a part of the statement.
fn plain_len(rest: &str) -> usize {
    let len_to = |end: &str, skipped: usize| {
        rest.get(skipped..).and_then(|rest| rest.find(end)).map_or(rest.len(), |at| skipped + at + end.len())
    };
    if rest.starts_with('`') {
        return len_to("`", 1);
    }
    if rest.starts_with('#') || is_line_comment(rest) {
        return len_to("\n", 1);
    }
    if rest.starts_with("/*") && !rest.starts_with("/*!") {
        return len_to("*/", 2);
    }
    let first = rest.chars().next().map_or(0, char::len_utf8);
    let next = rest[first..].find(['\'', '"', '`', '#', '-', '/']);
    next.map_or(rest.len(), |at| first + at)
}

/// Whether `--` and a blank or the end are next.
fn is_line_comment(rest: &str) -> bool {
    rest.strip_prefix("--").is_some_and(|after| after.chars().next().is_none_or(|next| next <= ' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSI: QuoteModes = QuoteModes { ansi_quotes: true, no_backslash_escapes: false };
    const PLAIN: QuoteModes = QuoteModes { ansi_quotes: false, no_backslash_escapes: true };
    const BOTH: QuoteModes = QuoteModes { ansi_quotes: true, no_backslash_escapes: true };

    #[test]
    fn the_default_mode_leaves_texts_as_they_are() {
        let sql = r#"SELECT "a\"b", 'c\'d'"#;
        assert!(matches!(QuoteModes::default().translated(sql), Cow::Borrowed(same) if same == sql));
        assert!(matches!(BOTH.translated("SELECT 1"), Cow::Borrowed("SELECT 1")));
    }

    #[test]
    fn double_quotes_become_those_of_names() {
        for (sql, translated) in [
            (r#"SELECT "a" FROM "d"."t""#, "SELECT `a` FROM `d`.`t`"),
            (r#"SELECT "say ""so""", "a`b", "c\""#, r#"SELECT `say "so"`, `a``b`, `c\`"#),
            (r#"SELECT 'it is "so"', `a"b`"#, r#"SELECT 'it is "so"', `a"b`"#),
            (r#"SELECT 'a\'"b"', "c""#, r#"SELECT 'a\'"b"', `c`"#),
            (r#"SELECT 'a''"b"', "c""#, r#"SELECT 'a''"b"', `c`"#),
            (r#"SELECT "open"#, r#"SELECT "open"#),
            ("SELECT 1 -- \"a\"\n, \"b\"", "SELECT 1 -- \"a\"\n, `b`"),
            (r#"SELECT 1--"a""#, "SELECT 1--`a`"),
            ("SELECT 1 # \"a\"\n, \"b\"", "SELECT 1 # \"a\"\n, `b`"),
            (r#"SELECT /* "a" */ "b" /*!40000 , "c" */"#, "SELECT /* \"a\" */ `b` /*!40000 , `c` */"),
            (r#"SELECT 8 / "a" - "é""#, "SELECT 8 / `a` - `é`"),
        ] {
            assert_eq!(ANSI.translated(sql), translated, "{sql}");
        }
    }

    #[test]
    fn backslashes_of_texts_are_doubled() {
        for (sql, translated) in [
            (r"SELECT 'a\', 'b'", r"SELECT 'a\\', 'b'"),
            (r#"SELECT "a\", 'b\''c'"#, r#"SELECT "a\\", 'b\\''c'"#),
            (r"SELECT `a\`, '%\_'", r"SELECT `a\`, '%\\_'"),
            (r"SELECT 'a\", r"SELECT 'a\"),
            (r"/* a\ */ SELECT 1 -- 'a\'", r"/* a\ */ SELECT 1 -- 'a\'"),
        ] {
            assert_eq!(PLAIN.translated(sql), translated, "{sql}");
        }
        assert_eq!(BOTH.translated(r#"SELECT "a\", 'b\'"#), r"SELECT `a\`, 'b\\'");
    }
}
