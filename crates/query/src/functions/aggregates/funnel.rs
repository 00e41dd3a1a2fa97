//! `WINDOW_FUNNEL`: how many of its conditions, in their order, events meet within a span of time.

use crate::functions::aggregates::events::{Event, sequences};
use crate::functions::{MySqlFunction, Param};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::datatypes::Int64Type;
use datafusion::common::{Result, exec_err};
use std::sync::Arc;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, Int, Text};
    vec![MySqlFunction::new("__window_funnel", &[Any, Int, Text, Int], crate::functions::int64, funnel)]
}

/// The rule by which a chain goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Over any events.
    Default,
    /// Until a condition is met again that is in the chain already.
    Deduplication,
    /// Until an event does not meet the next condition.
    Fixed,
    /// Over events at later times only.
    Increase,
}

fn funnel(args: &[ArrayRef]) -> Result<ArrayRef> {
    let sequences = sequences(&args[0], "window_funnel")?;
    let (windows, modes) = (args[1].as_primitive::<Int64Type>(), args[2].as_string::<i32>());
    let counts = args[3].as_primitive::<Int64Type>();
    let level = |(row, events): (usize, &Vec<Event>)| -> Result<Option<i64>> {
        if windows.is_null(row) || modes.is_null(row) || counts.is_null(row) {
            return Ok(None);
        }
        let mode = match modes.value(row).to_ascii_lowercase().as_str() {
            "default" => Mode::Default,
            "deduplication" => Mode::Deduplication,
            "fixed" => Mode::Fixed,
            "increase" => Mode::Increase,
            other => {
                return exec_err!(
                    "WINDOW_FUNNEL does not know the mode '{other}'; use default, deduplication, fixed or increase"
                );
            }
        };
        let window = windows.value(row).saturating_mul(1_000_000);
        let conditions = usize::try_from(counts.value(row)).unwrap_or(0);
        Ok(Some(match mode {
            Mode::Default | Mode::Increase => over_gaps(events, window, conditions, mode),
            Mode::Deduplication | Mode::Fixed => step_by_step(events, window, conditions, mode),
        } as i64))
    };
    Ok(Arc::new(sequences.iter().enumerate().map(level).collect::<Result<Int64Array>>()?))
}

/// The longest chain, whose events may have others between them.
fn over_gaps(events: &[Event], window: i64, conditions: usize, mode: Mode) -> usize {
    // For each length of a chain the latest time at which one began: no other lasts longer.
    let mut starts: Vec<Option<i64>> = vec![None; conditions];
    let mut longest = 0;
    let together = |a: &Event, b: &Event| mode == Mode::Increase && a.at == b.at;
    for group in events.chunk_by(together) {
        let before = starts.clone();
        for event in group {
            let known = if mode == Mode::Increase { before.clone() } else { starts.clone() };
            for level in (0..conditions).filter(|level| event.meets(*level)) {
                let start = match level {
                    0 => Some(event.at),
                    _ => known[level - 1].filter(|start| event.at - start <= window),
                };
                if start.is_some() {
                    starts[level] = starts[level].max(start);
                    longest = longest.max(level + 1);
                }
            }
        }
    }
    longest
}

/// The longest chain that no event interrupts.
fn step_by_step(events: &[Event], window: i64, conditions: usize, mode: Mode) -> usize {
    let chain = |(first, start): (usize, &Event)| {
        let mut level = 1;
        for event in events[first + 1..].iter().take_while(|event| event.at - start.at <= window) {
            if level == conditions {
                break;
            }
            if event.meets(level) {
                level += 1;
            } else if mode == Mode::Fixed || (0..level).any(|condition| event.meets(condition)) {
                break;
            }
        }
        level
    };
    let starts = events.iter().enumerate().filter(|(_, event)| conditions > 0 && event.meets(0));
    starts.map(chain).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One event a second; a letter for the condition that it meets.
    fn events(letters: &str) -> Vec<Event> {
        let event =
            |(second, letter): (i64, u8)| Event { at: second * 1_000_000, conditions: 1 << (letter - b'a') };
        (0..).zip(letters.bytes()).map(event).collect()
    }

    fn level(letters: &str, seconds: i64, mode: Mode) -> usize {
        let (events, window) = (events(letters), seconds * 1_000_000);
        match mode {
            Mode::Default | Mode::Increase => over_gaps(&events, window, 4, mode),
            Mode::Deduplication | Mode::Fixed => step_by_step(&events, window, 4, mode),
        }
    }

    #[test]
    fn modes_differ_in_what_interrupts_a_chain() {
        for (letters, default, deduplication, fixed) in [
            ("abcd", 4, 4, 4),
            ("abacd", 4, 2, 2),
            ("abdc", 3, 3, 2),
            ("bcd", 0, 0, 0),
            ("aabcd", 4, 4, 4),
            ("", 0, 0, 0),
        ] {
            assert_eq!(level(letters, 100, Mode::Default), default, "{letters}");
            assert_eq!(level(letters, 100, Mode::Increase), default, "{letters}");
            assert_eq!(level(letters, 100, Mode::Deduplication), deduplication, "{letters}");
            assert_eq!(level(letters, 100, Mode::Fixed), fixed, "{letters}");
        }
    }

    #[test]
    fn a_chain_ends_with_its_window() {
        assert_eq!(level("abcd", 2, Mode::Default), 3);
        assert_eq!(level("abcd", 2, Mode::Fixed), 3);
        // The last of its beginnings is near enough.
        assert_eq!(level("abababcd", 3, Mode::Default), 4);
    }

    #[test]
    fn only_one_mode_needs_later_times() {
        let mut events = events("abc");
        events[1].at = 0;
        assert_eq!(over_gaps(&events, 10_000_000, 4, Mode::Default), 3);
        assert_eq!(over_gaps(&events, 10_000_000, 4, Mode::Increase), 1);
    }

    #[test]
    fn an_event_is_one_step_even_if_it_meets_several_conditions() {
        let both = Event { at: 0, conditions: 0b11 };
        assert_eq!(over_gaps(&[both], 10, 4, Mode::Default), 1);
        assert_eq!(over_gaps(&[both, Event { at: 1, ..both }], 10, 4, Mode::Default), 2);
    }
}
