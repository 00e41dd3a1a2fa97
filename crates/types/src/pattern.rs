//! SQL's LIKE, for names of variables, tables and hosts. Queries have their own, in the query engine.

/// Whether the text is like the pattern, without regard to case: `%` is any text, `_` one character, `\\` takes the
/// next one as it is. The time grows with the product of both lengths, never more.
#[must_use]
pub fn like(text: &str, pattern: &str) -> bool {
    let text: Vec<char> = text.to_lowercase().chars().collect();
    let pattern: Vec<char> = pattern.to_lowercase().chars().collect();
    let (mut at, mut in_pattern) = (0, 0);
    // The text position that the last `%` has reached, and the pattern after it.
    let mut retry: Option<(usize, usize)> = None;
    while at < text.len() {
        let (wanted, width) = match pattern.get(in_pattern) {
            Some('\\') if in_pattern + 1 < pattern.len() => (Some(pattern[in_pattern + 1]), 2),
            Some('%') => {
                in_pattern += 1;
                retry = Some((at, in_pattern));
                continue;
            }
            Some('_') => (Some(text[at]), 1),
            Some(&other) => (Some(other), 1),
            None => (None, 0),
        };
        if wanted == Some(text[at]) {
            at += 1;
            in_pattern += width;
        } else if let Some((from, after)) = retry {
            at = from + 1;
            retry = Some((at, after));
            in_pattern = after;
        } else {
            return false;
        }
    }
    pattern[in_pattern..].iter().all(|&rest| rest == '%')
}

#[cfg(test)]
mod tests {
    use super::like;

    #[test]
    fn like_knows_wildcards_and_escapes() {
        for (text, pattern, expected) in [
            ("group_commit", "group%", true),
            ("GROUP_COMMIT", "%commit", true),
            ("group_commit", "GROUP\\_COMMIT", true),
            ("groupxcommit", "group\\_commit", false),
            ("groupxcommit", "group_commit", true),
            ("a_c", "a\\_c", true),
            ("abc", "a\\_c", false),
            ("a%", "a\\%", true),
            ("ab", "a\\%", false),
            ("a\\", "a\\", true),
            ("", "%", true),
            ("", "", true),
            ("", "_", false),
            ("abc", "", false),
            ("abc", "%b%", true),
            ("aab", "%ab", true),
            ("abcabc", "%abc", true),
            ("version", "ver%ion%", true),
            ("äöü", "Ä_Ü", true),
        ] {
            assert_eq!(like(text, pattern), expected, "{text} LIKE {pattern}");
        }
    }

    /// LIKE by its definition, however long it takes.
    fn means(text: &[char], pattern: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['%', rest @ ..] => (0..=text.len()).any(|at| means(&text[at..], rest)),
            ['_', rest @ ..] => !text.is_empty() && means(&text[1..], rest),
            ['\\', letter, rest @ ..] | [letter, rest @ ..] => {
                text.first() == Some(letter) && means(&text[1..], rest)
            }
        }
    }

    #[test]
    fn short_texts_and_patterns_are_all_matched_as_like_is_defined() {
        let words = |letters: &[char], longest: usize| {
            let mut all: Vec<Vec<char>> = vec![Vec::new()];
            let mut last = all.clone();
            for _ in 0..longest {
                last = last
                    .iter()
                    .flat_map(|word| letters.iter().map(move |letter| [word.as_slice(), &[*letter]].concat()))
                    .collect();
                all.extend(last.clone());
            }
            all
        };
        let texts = words(&['a', 'b', '_'], 4);
        for pattern in words(&['a', '_', '%', '\\'], 4) {
            for text in &texts {
                let expected = means(text, &pattern);
                let (text, pattern): (String, String) = (text.iter().collect(), pattern.iter().collect());
                assert_eq!(like(&text, &pattern), expected, "{text} LIKE {pattern}");
            }
        }
    }

    #[test]
    fn a_pattern_of_many_wildcards_takes_no_time_to_speak_of() {
        assert!(!like(&"a".repeat(5_000), &("%a".repeat(100) + "b")));
    }
}
