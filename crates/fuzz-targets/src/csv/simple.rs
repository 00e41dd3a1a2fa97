//! Doris's CSV in one dialect (`,`, `\n`, `"`), written to be read rather than to be fast.

/// The contents of a body.
pub struct Records {
    pub texts: Vec<Vec<String>>,
    /// Somewhere text follows a mark that would close its field.
    pub has_text_behind_mark: bool,
}

/// The records of a whole body.
pub fn records(body: &str) -> Records {
    let mut rest = body.strip_prefix('\u{feff}').unwrap_or(body);
    let mut records = Records { texts: Vec::new(), has_text_behind_mark: false };
    while !rest.is_empty() {
        let mut texts = Vec::new();
        let mut is_blank = true;
        loop {
            is_blank &= texts.is_empty() && rest.starts_with('\n');
            let field = Field::first_of(rest);
            records.has_text_behind_mark |= field.has_text_behind_mark;
            texts.push(field.text);
            rest = &rest[field.length..];
            match rest.strip_prefix(',') {
                Some(after) => rest = after,
                None => break,
            }
            is_blank = false;
        }
        rest = rest.strip_prefix('\n').unwrap_or(rest);
        if !is_blank {
            records.texts.push(texts);
        }
    }
    records
}

struct Field {
    text: String,
    /// The bytes of the body that it takes.
    length: usize,
    has_text_behind_mark: bool,
}

impl Field {
    fn first_of(rest: &str) -> Self {
        let Some(inner) = rest.strip_prefix('"') else {
            let length = end_of_text(rest);
            return Self { text: rest[..length].to_owned(), length, has_text_behind_mark: false };
        };
        let Some(enclosed) = end_of_enclosed(inner) else {
            let text = inner.replace("\"\"", "\"");
            return Self { text, length: rest.len(), has_text_behind_mark: false };
        };
        let behind = enclosed + 1;
        let end = behind + end_of_text(&inner[behind..]);
        let text = match inner[..end].strip_suffix('"') {
            _ if end == behind => inner[..enclosed].replace("\"\"", "\""),
            Some(text) => text.to_owned(),
            None => rest[..=end].to_owned(),
        };
        Self { text, length: end + 1, has_text_behind_mark: end > behind }
    }
}

/// The offset of a separator, a delimiter or the end.
fn end_of_text(text: &str) -> usize {
    text.find([',', '\n']).unwrap_or(text.len())
}

/// The offset of the first mark that is not doubled.
fn end_of_enclosed(inner: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        at += inner[at..].find('"')?;
        if !inner[at + 1..].starts_with('"') {
            return Some(at);
        }
        at += 2;
    }
}
