//! The header `columns`: `k1, k2, tmp, k3 = tmp + 1`.
//!
//! Splits at commas outside quotes and parentheses. Whether a name is a column and an expression
//! is legal is not known here.

use super::HeaderError;
use crate::request::ColumnMapping;

/// The entries in order.
///
/// # Errors
/// An empty entry, an illegal name, a missing expression, an open quote or parenthesis.
pub(crate) fn parse(text: &str) -> Result<Vec<ColumnMapping>, HeaderError> {
    let mut columns = Vec::new();
    let mut rest = text;
    loop {
        let scan = Scan::of_entry(rest).map_err(|what| invalid(text, &what))?;
        columns.push(entry(&rest[..scan.end], scan.equals).map_err(|what| invalid(text, &what))?);
        if scan.end == rest.len() {
            return Ok(columns);
        }
        rest = &rest[scan.end + 1..];
    }
}

fn invalid(text: &str, what: &str) -> HeaderError {
    HeaderError::invalid(format!(
        "Invalid header `columns`: {what}; columns: {text}. Give names and `name = expression`, separated by commas"
    ))
}

/// The end of an entry and the position of its first `=`.
struct Scan {
    end: usize,
    equals: Option<usize>,
}

impl Scan {
    fn of_entry(text: &str) -> Result<Self, String> {
        let (mut depth, mut equals, mut position) = (0_usize, None, 0);
        let bytes = text.as_bytes();
        while position < bytes.len() {
            match bytes[position] {
                b',' if depth == 0 => break,
                b'=' if depth == 0 && equals.is_none() => equals = Some(position),
                b'(' | b'[' => depth += 1,
                b')' | b']' if depth == 0 => {
                    return Err(format!("`{}` closes nothing", char::from(bytes[position])));
                }
                b')' | b']' => depth -= 1,
                quote @ (b'\'' | b'"' | b'`') => position = end_of_quote(bytes, position, quote)?,
                _ => {}
            }
            position += 1;
        }
        if depth > 0 {
            return Err("a parenthesis is not closed".to_owned());
        }
        Ok(Self { end: position, equals })
    }
}

/// The position of the quote that closes the one at `start`. A doubled quote reads as two quoted
/// texts, which is as good for splitting.
fn end_of_quote(bytes: &[u8], start: usize, quote: u8) -> Result<usize, String> {
    let mut position = start + 1;
    while position < bytes.len() {
        match bytes[position] {
            b'\\' if quote != b'`' => position += 1,
            byte if byte == quote => return Ok(position),
            _ => {}
        }
        position += 1;
    }
    Err(format!("the quote {} is not closed", char::from(quote)))
}

fn entry(text: &str, equals: Option<usize>) -> Result<ColumnMapping, String> {
    let (name, expr) = match equals {
        None => (text, None),
        Some(position) => (&text[..position], Some(text[position + 1..].trim())),
    };
    if expr == Some("") {
        return Err(format!("no expression after `{} =`", name.trim()));
    }
    Ok(ColumnMapping { name: self::name(name.trim())?, expr: expr.map(ToOwned::to_owned) })
}

fn name(text: &str) -> Result<String, String> {
    if let Some(quoted) = text.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')) {
        return match quoted {
            "" => Err("an empty name ``".to_owned()),
            quoted => Ok(quoted.replace("``", "`")),
        };
    }
    let legal = |character: char| character.is_alphanumeric() || matches!(character, '_' | '$' | '.');
    match text {
        "" => Err("an empty entry".to_owned()),
        name if name.chars().all(legal) => Ok(name.to_owned()),
        name => Err(format!("`{name}` is not a name (quote it with backticks)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<(String, Option<String>)> {
        parse(text).unwrap().into_iter().map(|column| (column.name, column.expr)).collect()
    }

    fn field(name: &str) -> (String, Option<String>) {
        (name.to_owned(), None)
    }

    fn derived(name: &str, expr: &str) -> (String, Option<String>) {
        (name.to_owned(), Some(expr.to_owned()))
    }

    #[test]
    fn names_and_derived_columns_are_split_at_outer_commas() {
        assert_eq!(parsed("k1"), [field("k1")]);
        assert_eq!(
            parsed("k1, k2,tmpk3 , k3 = tmpk3 + 1"),
            [field("k1"), field("k2"), field("tmpk3"), derived("k3", "tmpk3 + 1")]
        );
        assert_eq!(parsed("a,b=if(a=1, 'x,y', \"(\")"), [field("a"), derived("b", "if(a=1, 'x,y', \"(\")")]);
        assert_eq!(parsed("`a,b`,`c``d`=`a,b`"), [field("a,b"), derived("c`d", "`a,b`")]);
        assert_eq!(
            parsed(r"a, b = concat(a, 'it\'s, ok')"),
            [field("a"), derived("b", r"concat(a, 'it\'s, ok')")]
        );
        assert_eq!(parsed("列1,__DORIS_DELETE_SIGN__"), [field("列1"), field("__DORIS_DELETE_SIGN__")]);
    }

    #[test]
    fn a_list_that_does_not_parse_is_refused_with_the_place() {
        for (text, what) in [
            ("a,,b", "an empty entry"),
            ("a,", "an empty entry"),
            ("a b", "`a b` is not a name"),
            ("a=", "no expression after `a =`"),
            ("``", "an empty name"),
            ("a=f(1", "a parenthesis is not closed"),
            ("a=1)", "`)` closes nothing"),
            ("a='x", "the quote ' is not closed"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(what) && error.contains(text), "{error}");
        }
    }
}
