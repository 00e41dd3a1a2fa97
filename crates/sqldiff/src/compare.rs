//! Two answers: are they the same?
//!
//! Rows are compared in their order where the query sets one, else as multisets. A value has one
//! canonical form per kind: numbers without trailing zeros and without a sign of zero, moments without
//! trailing zeros of their fraction, texts as they are. Doubles are equal within [`DOUBLE_TOLERANCE`].

/// Tolerance for doubles, relative to the larger one: sums are added in another order, and MariaDB divides decimals where others
/// divide doubles.
pub const DOUBLE_TOLERANCE: f64 = 1e-9;
/// As above where a FLOAT, which has 24 bits, is shown by one of the sides.
pub const SINGLE_TOLERANCE: f64 = 1e-5;
/// How far doubles may be apart that are sums of larger ones, which have cancelled each other.
pub const NOISE_TOLERANCE: f64 = 1e-6;

/// The contents of a column of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Integers and decimals.
    Exact,
    Double,
    Single,
    Time,
    Text,
}

/// The rows of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    pub contents: Vec<Content>,
    pub rows: Vec<Vec<Option<String>>>,
}

/// A side's answer to a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Rows(Answered),
    /// It refuses the query, or it failed in it.
    Error {
        number: u16,
        text: String,
    },
    /// No answer arrived.
    Gone(String),
}

/// How the second answer differs from the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Difference {
    Columns,
    RowCount,
    Values,
    /// Texts differ in zeros alone: those at the end of a number's fraction, and the sign of zero.
    Zeros,
    /// Doubles differ in their last digits, by no more than [`NOISE_TOLERANCE`], or texts in the last digits of long numbers, by
    /// no more than [`DOUBLE_TOLERANCE`].
    Digits,
    Order,
    /// The server under test refuses a query that the other side answers.
    OursFails,
    /// The other side refuses a query that the server under test answers.
    OtherFails,
    /// The server under test has died.
    Gone,
}

impl Difference {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Columns => "another count of columns",
            Self::RowCount => "another count of rows",
            Self::Values => "other values",
            Self::Zeros => "other zeros in texts",
            Self::Digits => "other last digits of doubles",
            Self::Order => "another order",
            Self::OursFails => "ours fails",
            Self::OtherFails => "the other side fails",
            Self::Gone => "no answer",
        }
    }
}

/// The difference between the outcomes of the server under test and the other side.
#[must_use]
pub fn difference(ours: &Outcome, other: &Outcome, ordered: bool) -> Option<Difference> {
    match (ours, other) {
        (Outcome::Gone(_), _) => Some(Difference::Gone),
        // Without an answer of the other side there is no comparison.
        (_, Outcome::Gone(_)) | (Outcome::Error { .. }, Outcome::Error { .. }) => None,
        (Outcome::Error { .. }, Outcome::Rows(_)) => Some(Difference::OursFails),
        (Outcome::Rows(_), Outcome::Error { .. }) => Some(Difference::OtherFails),
        (Outcome::Rows(ours), Outcome::Rows(other)) => between_rows(ours, other, ordered),
    }
}

fn between_rows(ours: &Answered, other: &Answered, ordered: bool) -> Option<Difference> {
    if ours.contents.len() != other.contents.len() {
        return Some(Difference::Columns);
    }
    if ours.rows.len() != other.rows.len() {
        return Some(Difference::RowCount);
    }
    let columns: Vec<(Content, Content)> =
        ours.contents.iter().copied().zip(other.contents.iter().copied()).collect();
    let row = |left: &Row, right: &Row, value: &SameValue| {
        let cells = columns.iter().zip(left.iter().zip(right));
        cells.into_iter().all(|(&contents, (left, right))| value(left.as_deref(), right.as_deref(), contents))
    };
    let same = |left: &Row, right: &Row| row(left, right, &same_value);
    if ours.rows.iter().zip(&other.rows).all(|(left, right)| same(left, right)) {
        return None;
    }
    if !are_same_rows(ours, other, &same) {
        let but_zeros = |left: &Row, right: &Row| row(left, right, &same_but_zeros);
        let but_noise = |left: &Row, right: &Row| row(left, right, &same_but_noise);
        return Some(if are_same_rows(ours, other, &but_zeros) {
            Difference::Zeros
        } else if are_same_rows(ours, other, &but_noise) {
            Difference::Digits
        } else {
            Difference::Values
        });
    }
    // Sums of doubles that differ in their last digit are equal here, and may be in any order.
    let exact = |left: &Row, right: &Row| {
        let double = |text: Option<&str>| text.and_then(|text| text.parse::<f64>().ok());
        row(left, right, &move |left, right, contents| {
            if is_double(contents) {
                double(left) == double(right)
            } else {
                same_value(left, right, contents)
            }
        })
    };
    (ordered && are_same_rows(ours, other, &exact)).then_some(Difference::Order)
}

type Row = Vec<Option<String>>;
type Contents = (Content, Content);
type SameValue = dyn Fn(Option<&str>, Option<&str>, Contents) -> bool;

fn is_double(contents: Contents) -> bool {
    [contents.0, contents.1].iter().any(|content| matches!(content, Content::Double | Content::Single))
}

/// Whether each row has an equal counterpart that no earlier row took. There are few rows.
fn are_same_rows(ours: &Answered, other: &Answered, same: &dyn Fn(&Row, &Row) -> bool) -> bool {
    let mut left_over: Vec<&Row> = other.rows.iter().collect();
    ours.rows.iter().all(|row| {
        let place = left_over.iter().position(|candidate| same(row, candidate));
        place.map(|place| left_over.swap_remove(place)).is_some()
    })
}

/// Whether two values are the same, or are doubles that are nearly so.
fn same_but_noise(left: Option<&str>, right: Option<&str>, contents: Contents) -> bool {
    let near = |left: f64, right: f64| {
        (left - right).abs() <= NOISE_TOLERANCE * left.abs().max(right.abs()).max(1.0)
    };
    same_value(left, right, contents)
        || is_double(contents)
            && matches!((left.map(str::parse), right.map(str::parse)), (Some(Ok(left)), Some(Ok(right))) if near(left, right))
        || matches!((left, right), (Some(left), Some(right)) if are_near_texts(left, right))
}

/// How many digits a number in a text must have on one of the sides to be the text of a DOUBLE that is the sum of others.
const LONG_NUMBER: usize = 14;

/// Whether two texts differ in the last digits of long numbers alone.
fn are_near_texts(left: &str, right: &str) -> bool {
    let (left, right) = (pieces(left), pieces(right));
    let near = |left: &str, right: &str| {
        let long = left.len().max(right.len()) > LONG_NUMBER;
        let numbers = (left.parse::<f64>(), right.parse::<f64>());
        long && matches!(numbers, (Ok(left), Ok(right)) if (left - right).abs() <= DOUBLE_TOLERANCE * left.abs().max(right.abs()))
    };
    left.len() == right.len()
        && left.iter().zip(&right).all(|(left, right)| left == right || near(left, right))
}

/// The numbers of a text and the parts between them.
fn pieces(text: &str) -> Vec<&str> {
    let is_number = |letter: char| letter.is_ascii_digit() || letter == '.';
    text.chars()
        .scan((0, None), |(end, before), letter| {
            let is_new = before.replace(is_number(letter)) != Some(is_number(letter));
            let start = *end;
            *end += letter.len_utf8();
            Some(is_new.then_some(start))
        })
        .flatten()
        .chain([text.len()])
        .collect::<Vec<_>>()
        .windows(2)
        .map(|bounds| &text[bounds[0]..bounds[1]])
        .collect()
}

/// Whether two values are the same, or are texts that differ in zeros alone.
fn same_but_zeros(left: Option<&str>, right: Option<&str>, contents: Contents) -> bool {
    same_value(left, right, contents)
        || matches!((left, right), (Some(left), Some(right)) if without_zeros(left) == without_zeros(right))
}

/// A text whose numbers have neither trailing zeros in their fractions nor a sign of zero.
fn without_zeros(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(start) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let (before, from) = rest.split_at(start);
        let end = from.find(|letter: char| !(letter.is_ascii_digit() || letter == '.')).unwrap_or(from.len());
        let (number, after) = from.split_at(end);
        out.push_str(before);
        let number =
            if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
        if number.bytes().all(|byte| byte == b'0') && out.ends_with('-') {
            out.pop();
        }
        out.push_str(number);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Whether two values of columns with these contents are the same.
#[must_use]
pub fn same_value(left: Option<&str>, right: Option<&str>, contents: Contents) -> bool {
    let (Some(left), Some(right)) = (left, right) else { return left == right };
    if left == right {
        return true;
    }
    let is = |content: Content| contents.0 == content || contents.1 == content;
    if is(Content::Single) || is(Content::Double) {
        let tolerance = if is(Content::Single) { SINGLE_TOLERANCE } else { DOUBLE_TOLERANCE };
        return match (left.parse::<f64>(), right.parse::<f64>()) {
            (Ok(left), Ok(right)) => {
                left == right || (left - right).abs() <= tolerance * left.abs().max(right.abs()).max(1.0)
            }
            _ => false,
        };
    }
    if is(Content::Exact) {
        return match (canonical_number(left), canonical_number(right)) {
            (Some(left), Some(right)) => left == right,
            _ => false,
        };
    }
    is(Content::Time) && canonical_time(left) == canonical_time(right)
}

/// A decimal number without redundant zeros; `None` if it is not a number or has an exponent.
#[must_use]
pub fn canonical_number(text: &str) -> Option<String> {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let only_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !only_digits(whole) || !only_digits(fraction) {
        return None;
    }
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let whole = if whole.is_empty() { "0" } else { whole };
    let sign = if whole == "0" && fraction.is_empty() { "" } else { sign };
    Some(if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") })
}

fn canonical_time(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(contents: &[Content], rows: &[&[&str]]) -> Outcome {
        let value = |text: &&str| (*text != "NULL").then(|| (*text).to_owned());
        let rows = rows.iter().map(|row| row.iter().map(value).collect()).collect();
        Outcome::Rows(Answered { contents: contents.to_vec(), rows })
    }

    #[test]
    fn rows_are_a_multiset_unless_the_query_orders_them() {
        let contents = [Content::Exact, Content::Text];
        let left = rows(&contents, &[&["1", "a"], &["2", "b"], &["2", "b"]]);
        let right = rows(&contents, &[&["2", "b"], &["1", "a"], &["2", "b"]]);
        assert_eq!(difference(&left, &right, false), None);
        assert_eq!(difference(&left, &right, true), Some(Difference::Order));
        let doubled = rows(&contents, &[&["1", "a"], &["1", "a"], &["2", "b"]]);
        assert_eq!(difference(&left, &doubled, false), Some(Difference::Values));
        let fewer = rows(&contents, &[&["1", "a"]]);
        assert_eq!(difference(&left, &fewer, false), Some(Difference::RowCount));
        let narrow = rows(&contents[..1], &[&["1"]]);
        assert_eq!(difference(&fewer, &narrow, false), Some(Difference::Columns));
    }

    #[test]
    fn doubles_that_are_equal_but_for_their_last_digit_come_in_any_order() {
        let contents = [Content::Text, Content::Double];
        let left = rows(&contents, &[&["a", "0.6"], &["b", "0.6"]]);
        let right = rows(&contents, &[&["b", "0.6000000000000001"], &["a", "0.6"]]);
        assert_eq!(difference(&left, &right, true), None);
        let right = rows(&contents, &[&["b", "0.6"], &["a", "0.6"]]);
        assert_eq!(difference(&left, &right, true), Some(Difference::Order));
    }

    #[test]
    fn last_digits_of_doubles_are_a_difference_of_their_own() {
        let told = |content, left: &str, right: &str| {
            difference(&rows(&[content], &[&[left]]), &rows(&[content], &[&[right]]), false)
        };
        let noise = told(Content::Double, "15.349999904632568", "15.350000114440919");
        assert_eq!(noise, Some(Difference::Digits));
        assert_eq!(told(Content::Double, "15.3499", "15.35"), Some(Difference::Values));
        let texts = |left, right| told(Content::Text, left, right);
        assert_eq!(texts("a1.3533528323661272,2", "a1.353352832366127,2"), Some(Difference::Digits));
        assert_eq!(texts("a1.3533528323661272,2", "a1.353352832366127,3"), Some(Difference::Values));
        assert_eq!(texts("1.3533528323661272", "1.3533527323661272"), Some(Difference::Values));
        assert_eq!(texts("1.35", "1.3500000001"), Some(Difference::Values));
        assert_eq!(texts("ä", "b"), Some(Difference::Values));
        assert_eq!(
            told(Content::Exact, "15.349999904632568", "15.350000114440919"),
            Some(Difference::Values)
        );
    }

    #[test]
    fn zeros_of_texts_are_a_difference_of_their_own() {
        let told = |left: &str, right: &str| {
            difference(&rows(&[Content::Text], &[&[left]]), &rows(&[Content::Text], &[&[right]]), false)
        };
        assert_eq!(told("1.50", "1.5"), Some(Difference::Zeros));
        assert_eq!(told("-0x", "0x"), Some(Difference::Zeros));
        assert_eq!(
            told("2020-01-31 10:00:00.500000, 3", "2020-01-31 10:00:00.5, 3"),
            Some(Difference::Zeros)
        );
        assert_eq!(told("2.0", "2"), Some(Difference::Zeros));
        assert_eq!(told("20", "2"), Some(Difference::Values));
        assert_eq!(told("1.05", "1.5"), Some(Difference::Values));
        assert_eq!(told("-1", "1"), Some(Difference::Values));
    }

    #[test]
    fn values_have_one_form_per_kind() {
        let exact = (Content::Exact, Content::Exact);
        assert!(same_value(Some("1.50"), Some("1.5"), exact));
        assert!(same_value(Some("-0.00"), Some("0"), exact));
        assert!(same_value(Some("007"), Some("7"), exact));
        assert!(!same_value(Some("1.5"), Some("1.50000001"), exact));
        assert!(!same_value(None, Some("0"), exact));
        assert!(same_value(None, None, exact));
        let double = (Content::Exact, Content::Double);
        assert!(same_value(Some("0.333333333333"), Some("0.3333333333333333"), double));
        assert!(!same_value(Some("0.3333"), Some("0.3333333333333333"), double));
        assert!(same_value(Some("1e3"), Some("1000"), double));
        assert!(!same_value(Some("x"), Some("1000"), double));
        let time = (Content::Time, Content::Time);
        assert!(same_value(Some("2020-01-01 00:00:00.500"), Some("2020-01-01 00:00:00.5"), time));
        assert!(same_value(Some("2020-01-01 00:00:00.000"), Some("2020-01-01 00:00:00"), time));
        let text = (Content::Text, Content::Text);
        assert!(!same_value(Some("1.50"), Some("1.5"), text));
    }

    #[test]
    fn errors_of_one_side_are_differences() {
        let answer = rows(&[Content::Exact], &[&["1"]]);
        let error = Outcome::Error { number: 1105, text: "no".to_owned() };
        let gone = Outcome::Gone("reset".to_owned());
        assert_eq!(difference(&error, &answer, false), Some(Difference::OursFails));
        assert_eq!(difference(&answer, &error, false), Some(Difference::OtherFails));
        assert_eq!(difference(&error, &error, false), None);
        assert_eq!(difference(&gone, &error, false), Some(Difference::Gone));
        assert_eq!(difference(&answer, &gone, false), None);
    }
}
