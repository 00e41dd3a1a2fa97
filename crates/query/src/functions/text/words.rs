//! Words in texts: `MATCH_ANY`, `MATCH_ALL`, `MATCH_PHRASE` and `MATCH_PHRASE_PREFIX`.
//!
//! Doris looks words up in an inverted index; here each text is split when it is looked at, with the same answers as an index with
//! the parsers `english` and `unicode` gives.

use crate::functions::MySqlFunction;
use crate::functions::cells::value;
use arrow::array::{Array, ArrayRef, BooleanArray};
use std::sync::Arc;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use crate::functions::Param::Text;
    let boolean = crate::functions::boolean;
    vec![
        MySqlFunction::new("match_any", &[Text, Text], boolean, |args| Ok(matches(args, has_any))),
        MySqlFunction::new("match_all", &[Text, Text], boolean, |args| Ok(matches(args, has_all))),
        MySqlFunction::new("match_phrase", &[Text, Text], boolean, |args| Ok(matches(args, has_phrase))),
        MySqlFunction::new("match_phrase_prefix", &[Text, Text], boolean, |args| {
            Ok(matches(args, has_prefix))
        }),
    ]
}

fn has_any(text: &[String], words: &[String]) -> bool {
    words.iter().any(|word| text.contains(word))
}

fn has_all(text: &[String], words: &[String]) -> bool {
    words.iter().all(|word| text.contains(word))
}

fn has_phrase(text: &[String], words: &[String]) -> bool {
    text.windows(words.len()).any(|part| part == words)
}

fn has_prefix(text: &[String], words: &[String]) -> bool {
    text.windows(words.len()).any(|part| begins(part, words))
}

/// Whether these are the words, but for the end of the last one.
fn begins(part: &[String], words: &[String]) -> bool {
    match (part.split_last(), words.split_last()) {
        (Some((last, before)), Some((end, first))) => before == first && last.starts_with(end.as_str()),
        _ => false,
    }
}

/// Whether each text has the words beside it. No word is found in nothing, and nothing is found if no word is asked for.
fn matches(args: &[ArrayRef], finds: fn(&[String], &[String]) -> bool) -> ArrayRef {
    // Nearly always the same words for all rows.
    let (mut of, mut words) = (None, Vec::new());
    let rows = (0..args[0].len()).map(|row| {
        let (text, asked) = (value(&args[0], row)?, value(&args[1], row)?);
        if of != Some(asked) {
            (of, words) = (Some(asked), split(asked));
        }
        Some(!words.is_empty() && finds(&split(text), &words))
    });
    Arc::new(rows.collect::<BooleanArray>())
}

/// The words of a text, in lower case: letters and digits in a row. Each character of a script that has no blanks is a word.
fn split(text: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), String::new());
    for letter in text.chars() {
        let is_alone = stands_alone(letter);
        if (is_alone || !letter.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        match is_alone {
            true => words.push(letter.to_string()),
            false if letter.is_alphanumeric() => word.extend(letter.to_lowercase()),
            false => {}
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Whether a character is an ideograph, or one of Hiragana.
const fn stands_alone(letter: char) -> bool {
    matches!(letter,
        '\u{3041}'..='\u{3096}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{323AF}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::StringArray;

    #[test]
    fn texts_have_words() {
        let words = |text: &str| split(text).join("|");
        assert_eq!(words("GET /index.html?id=42 HTTP/1.1"), "get|index|html|id|42|http|1|1");
        assert_eq!(words("Straße, ÄPFEL; it's_x"), "straße|äpfel|it|s|x");
        assert_eq!(words("日本語 text。ok"), "日|本|語|text|ok");
        assert_eq!(words(" .,; "), "");
    }

    #[test]
    fn words_are_found() {
        let text = "Connection reset by Peer 10.0.0.7";
        for (name, words, expected) in [
            ("match_any", "foo PEER", Some(true)),
            ("match_any", "foo bar", Some(false)),
            ("match_any", "conn", Some(false)),
            ("match_all", "peer, connection", Some(true)),
            ("match_all", "peer foo", Some(false)),
            ("match_all", "", Some(false)),
            ("match_phrase", "reset by peer", Some(true)),
            ("match_phrase", "by reset", Some(false)),
            ("match_phrase", "10.0.0", Some(true)),
            ("match_phrase", "connection reset by peer 10 0 0 7 more", Some(false)),
            ("match_phrase_prefix", "reset by pe", Some(true)),
            ("match_phrase_prefix", "reset b peer", Some(false)),
            ("match_phrase_prefix", "conn", Some(true)),
            ("match_phrase_prefix", "...", Some(false)),
        ] {
            let function = functions().into_iter().find(|function| function.name == name).expect(name);
            let args: [ArrayRef; 2] = [
                Arc::new(StringArray::from(vec![Some(text), None, Some("")])),
                Arc::new(StringArray::from(vec![Some(words); 3])),
            ];
            let found = (function.body)(&args).expect(name);
            let found: &BooleanArray = found.as_any().downcast_ref().expect("flags");
            let expected: Vec<Option<bool>> = vec![expected, None, Some(false)];
            assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{name} {words}");
        }
    }
}
