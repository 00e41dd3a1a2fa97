//! Texts and quoted names as they are written → as they are meant.
//!
//! MySQL's escapes: `\0`, `\b`, `\n`, `\r`, `\t`, `\Z`; `\%` and `\_` keep their backslash; any other character represents
//! itself. A doubled quote is one quote. Names support only the latter.

use sqlparser::tokenizer::Token;

/// Replaces the text of a token, as written, by its meaning.
pub(crate) fn resolve(token: &mut Token) {
    match token {
        Token::SingleQuotedString(text) | Token::NationalStringLiteral(text) => resolve_text(text, '\''),
        Token::DoubleQuotedString(text) => resolve_text(text, '"'),
        Token::Word(word) if word.quote_style == Some('`') && word.value.contains("``") => {
            word.value = word.value.replace("``", "`");
        }
        _ => {}
    }
}

fn resolve_text(text: &mut String, quote: char) {
    if !text.contains(['\\', quote]) {
        return;
    }
    let mut meant = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(ch) = chars.next() {
        match ch {
            '\\' => push_escaped(&mut meant, chars.next()),
            // Only doubled ones are inside.
            ch if ch == quote => {
                chars.next();
                meant.push(ch);
            }
            ch => meant.push(ch),
        }
    }
    *text = meant;
}

/// Appends the meaning of a backslash followed by `next`.
fn push_escaped(out: &mut String, next: Option<char>) {
    let meant = match next {
        Some('0') => '\0',
        Some('b') => '\u{8}',
        Some('n') => '\n',
        Some('r') => '\r',
        Some('t') => '\t',
        Some('Z') => '\u{1a}',
        Some(wildcard @ ('%' | '_')) => {
            out.push('\\');
            wildcard
        }
        Some(other) => other,
        None => '\\',
    };
    out.push(meant);
}
