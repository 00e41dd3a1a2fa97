//! `SEQUENCE_MATCH` and `SEQUENCE_COUNT`: whether and how often a pattern occurs in a sequence of events.
//!
//! A pattern has `(?1)` for an event that meets the first condition, `.` for any event, `.*` for any number of events, and
//! `(?t<=60)` for any number of events as long as the one that follows is that many seconds after the one before.

use crate::functions::aggregates::events::{Event, sequences};
use crate::functions::{MySqlFunction, Param};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::datatypes::Int64Type;
use datafusion::common::{Result, exec_err};
use std::sync::Arc;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, Int, Text};
    vec![
        MySqlFunction::new("__sequence_match", &[Any, Text, Int], crate::functions::boolean, |args| {
            let found = counts(args, "sequence_match", Some(1))?;
            Ok(Arc::new(
                found.into_iter().map(|count| count.map(|count| count > 0)).collect::<BooleanArray>(),
            ))
        }),
        MySqlFunction::new("__sequence_count", &[Any, Text, Int], crate::functions::int64, |args| {
            Ok(Arc::new(Int64Array::from(counts(args, "sequence_count", None)?)))
        }),
    ]
}

/// How often each row's sequence contains the pattern, without overlaps, as far as the limit.
fn counts(args: &[ArrayRef], function: &str, limit: Option<i64>) -> Result<Vec<Option<i64>>> {
    let sequences = sequences(&args[0], function)?;
    let (patterns, conditions) = (args[1].as_string::<i32>(), args[2].as_primitive::<Int64Type>());
    let count = |(row, events): (usize, &Vec<Event>)| {
        if patterns.is_null(row) || conditions.is_null(row) {
            return Ok(None);
        }
        let steps = parse(patterns.value(row), conditions.value(row), function)?;
        Ok(Some(occurrences(&steps, events, limit)))
    };
    sequences.iter().enumerate().map(count).collect()
}

/// An event of a pattern, and its distance from the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    /// `None`: any event.
    condition: Option<usize>,
    /// Whether other events may be between it and the one before.
    has_gap: bool,
    /// Microseconds since the event before.
    least: i64,
    most: i64,
}

const FOLLOWING: Step = Step { condition: None, has_gap: false, least: i64::MIN, most: i64::MAX };

fn parse(pattern: &str, conditions: i64, function: &str) -> Result<Vec<Step>> {
    let wrong = |rest: &str| {
        exec_err!(
            "{}: the pattern '{pattern}' cannot be read at '{rest}'; it has (?1), (?t<=60), . and .*",
            function.to_uppercase()
        )
    };
    let mut steps = Vec::new();
    let mut next = FOLLOWING;
    let mut rest = pattern;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(".*") {
            next.has_gap = true;
            rest = after;
        } else if let Some(after) = rest.strip_prefix('.') {
            steps.push(std::mem::replace(&mut next, FOLLOWING));
            rest = after;
        } else if let Some((inner, after)) = rest.strip_prefix("(?").and_then(|rest| rest.split_once(')')) {
            if let Some(time) = inner.strip_prefix('t') {
                let Some((least, most)) = bounds(time) else { return wrong(rest) };
                next.has_gap = true;
                next.least = next.least.max(least);
                next.most = next.most.min(most);
            } else {
                let Some(number) = inner.parse::<usize>().ok().filter(|number| *number > 0) else {
                    return wrong(rest);
                };
                if number as i64 > conditions {
                    return exec_err!(
                        "{}: the pattern '{pattern}' names the condition {number}, but there are {conditions}",
                        function.to_uppercase()
                    );
                }
                next.condition = Some(number - 1);
                steps.push(std::mem::replace(&mut next, FOLLOWING));
            }
            rest = after;
        } else {
            return wrong(rest);
        }
    }
    let ends_with_time = next.least != i64::MIN || next.most != i64::MAX;
    if steps.is_empty() || ends_with_time {
        return exec_err!(
            "{}: the pattern '{pattern}' needs an event such as (?1), at its end too if a time is before it",
            function.to_uppercase()
        );
    }
    Ok(steps)
}

/// The distances in microseconds that an operator and a number of seconds allow.
fn bounds(time: &str) -> Option<(i64, i64)> {
    let digits = time.trim_start_matches(['<', '>', '=']);
    let (operator, seconds) = (&time[..time.len() - digits.len()], digits.trim().parse::<u32>().ok()?);
    let micros = i64::from(seconds) * 1_000_000;
    Some(match operator {
        ">=" => (micros, i64::MAX),
        ">" => (micros + 1, i64::MAX),
        "<=" => (i64::MIN, micros),
        "<" => (i64::MIN, micros - 1),
        "==" => (micros, micros),
        _ => return None,
    })
}

/// Counts from left to right, each time by the first events that fit.
fn occurrences(steps: &[Step], events: &[Event], limit: Option<i64>) -> i64 {
    let meets = |step: &Step, event: Event| step.condition.is_none_or(|condition| event.meets(condition));
    // For each step the places of events that meet it and from which the rest of the pattern can be met.
    let mut fitting: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
    for (number, step) in steps.iter().enumerate().rev() {
        let places = (0..events.len()).filter(|at| meets(step, events[*at]));
        fitting[number] = match steps.get(number + 1) {
            None => places.collect(),
            Some(next) => {
                places.filter(|at| following(next, &fitting[number + 1], events, *at).is_some()).collect()
            }
        };
    }
    let (mut count, mut from) = (0, 0);
    while limit.is_none_or(|limit| count < limit) {
        let first = fitting[0].partition_point(|at| *at < from);
        let Some(first) = fitting[0].get(first) else { break };
        let mut rest = steps.iter().zip(&fitting).skip(1);
        let last = rest.try_fold(*first, |at, (step, places)| following(step, places, events, at));
        // Each of the places has one that follows.
        let Some(last) = last else { break };
        count += 1;
        from = last + 1;
    }
    count
}

/// The first of the places that a step may have behind an event.
fn following(step: &Step, places: &[usize], events: &[Event], before: usize) -> Option<usize> {
    let start = events[before].at;
    let is_early = |at: &usize| *at <= before || events[*at].at.saturating_sub(start) < step.least;
    let found = *places.get(places.partition_point(is_early))?;
    let is_near = step.has_gap || found == before + 1;
    (is_near && events[found].at - start <= step.most).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(pattern: &str, events: &[(i64, i64)]) -> i64 {
        let event = |(second, condition): &(i64, i64)| Event {
            at: second * 1_000_000,
            conditions: 1 << (condition - 1),
        };
        let events: Vec<Event> = events.iter().map(event).collect();
        occurrences(&parse(pattern, 3, "sequence_count").unwrap(), &events, None)
    }

    #[test]
    fn events_of_a_pattern_are_adjacent_unless_it_has_a_gap() {
        let events = [(1, 1), (2, 3), (3, 2), (4, 1), (5, 2), (6, 2)];
        assert_eq!(count("(?1)(?2)", &events), 1);
        assert_eq!(count("(?1).*(?2)", &events), 2);
        assert_eq!(count("(?1).(?2)", &events), 2);
        assert_eq!(count("(?3)(?2)(?1)", &events), 1);
        assert_eq!(count("(?2)(?3)", &events), 0);
        assert_eq!(count("(?2)", &events), 3);
        assert_eq!(count(".*(?2).*", &events), 3);
    }

    #[test]
    fn times_are_between_two_events_of_a_pattern() {
        let events = [(0, 1), (30, 2), (100, 1), (160, 2), (161, 2)];
        assert_eq!(count("(?1)(?t<=30)(?2)", &events), 1);
        assert_eq!(count("(?1)(?t<30)(?2)", &events), 0);
        assert_eq!(count("(?1)(?t>=60)(?2)", &events), 1);
        // From the first event on; the earliest events that fit are taken.
        assert_eq!(count("(?1)(?t>60)(?2)", &events), 1);
        assert_eq!(count("(?1)(?t==61)(?2)", &events), 1);
        assert_eq!(count("(?1)(?t>=60)(?t<=60)(?2)", &events), 1);
        assert_eq!(count("(?1)(?t==62)(?2)", &events), 0);
    }

    #[test]
    fn a_pattern_that_cannot_be_read_is_refused() {
        for (pattern, reason) in [
            ("", "needs an event"),
            (".*", "needs an event"),
            ("(?1)(?t>1)", "at its end too"),
            ("(?4)", "names the condition 4, but there are 3"),
            ("(?0)", "cannot be read at '(?0)'"),
            ("(?1)x", "cannot be read at 'x'"),
            ("(?1)(?t=1)(?2)", "cannot be read at '(?t=1)(?2)'"),
            ("(?1", "cannot be read at '(?1'"),
        ] {
            let error = parse(pattern, 3, "sequence_match").unwrap_err().to_string();
            assert!(error.contains(reason), "{pattern}: {error}");
        }
    }
}
