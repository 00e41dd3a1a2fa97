//! A user whose loads leave little for those of others.
//!
//! Loads of different users share the line for memory and the log fairly, but not processors, network and disk: a user with a thousand
//! connections gets nearly all of these. This is a finding if others have loads, too, and the server is busy.
//!
//! Not here: limits (`access/limits`), which are the way out.

use super::findings::Finding;
use super::problems::ProblemKind;
use super::process::ProcessorTime;
use crate::access::limits::UserLoads;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use tributary_types::UserKey;

/// The time of which shares are told.
const WINDOW: Duration = Duration::from_secs(5);
const WINDOW_MIN: Duration = Duration::from_secs(2);
/// A user with this part of all bytes, or of all loads, floods.
const PART: f64 = 0.75;
/// A user that brings less in a second does not.
const BYTES_MIN: f64 = 1024.0 * 1024.0;
const LOADS_MIN: f64 = 50.0;
/// The processors are busy beyond this part.
const BUSY: f64 = 0.9;

/// The loads of users at a look.
#[derive(Clone, Debug)]
pub(super) struct UsersLook {
    pub at: Instant,
    pub users: Vec<UserLoads>,
    pub processors: Option<ProcessorTime>,
    /// Loads that wait for memory, or for their turn at a log.
    pub waiting: u64,
}

/// The looks within [`WINDOW`].
#[derive(Debug, Default)]
pub(super) struct Flood(VecDeque<UsersLook>);

/// A user that floods, and how much.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Flooding {
    user: UserKey,
    bytes_per_second: f64,
    loads_per_second: f64,
    part_of_bytes: f64,
    part_of_loads: f64,
    others: usize,
}

impl Flood {
    /// The finding of this look. `name` is `'u'@'h'` of a user, if there is such a one.
    pub fn look(&mut self, look: UsersLook, name: impl Fn(UserKey) -> Option<String>) -> Option<Finding> {
        self.0.retain(|earlier| look.at.saturating_duration_since(earlier.at) <= WINDOW);
        let found = self.0.front().and_then(|earlier| {
            let busy = look.processors.zip(earlier.processors).and_then(|(now, then)| now.busy_since(then));
            let wait = why_others_wait(look.waiting, busy)?;
            let flooding = flooding(earlier, &look)?;
            Some(finding(&flooding, &name(flooding.user)?, wait))
        });
        self.0.push_back(look);
        found
    }
}

/// Says why loads of others wait; `None`: there is enough for all.
fn why_others_wait(waiting: u64, busy: Option<f64>) -> Option<String> {
    let busy = busy
        .filter(|busy| *busy >= BUSY)
        .map(|busy| format!("The processors are {:.0} % busy", busy * 100.0));
    let waiting =
        (waiting > 0).then(|| format!("{waiting} loads wait for memory or for their turn at the log"));
    let all: Vec<String> = busy.into_iter().chain(waiting).collect();
    (!all.is_empty()).then(|| format!("{}.", all.join(", and ")))
}

/// The user that floods between two looks.
fn flooding(earlier: &UsersLook, look: &UsersLook) -> Option<Flooding> {
    let seconds = look.at.saturating_duration_since(earlier.at);
    if seconds < WINDOW_MIN {
        return None;
    }
    let before = |user: UserKey| earlier.users.iter().find(|loads| loads.user == user);
    let grown = look.users.iter().map(|now| {
        let (loads, bytes) = before(now.user).map_or((0, 0), |then| (then.loads, then.bytes));
        (now.user, now.loads.saturating_sub(loads) as f64, now.bytes.saturating_sub(bytes) as f64)
    });
    let active: Vec<(UserKey, f64, f64)> = grown.filter(|(_, loads, bytes)| loads + bytes > 0.0).collect();
    let part = |of: f64, all: f64| if all > 0.0 { of / all } else { 0.0 };
    let all_loads: f64 = active.iter().map(|(_, loads, _)| loads).sum();
    let all_bytes: f64 = active.iter().map(|(_, _, bytes)| bytes).sum();
    let of = |&(user, loads, bytes): &(UserKey, f64, f64)| Flooding {
        user,
        bytes_per_second: bytes / seconds.as_secs_f64(),
        loads_per_second: loads / seconds.as_secs_f64(),
        part_of_bytes: part(bytes, all_bytes),
        part_of_loads: part(loads, all_loads),
        others: active.len() - 1,
    };
    let floods = |found: &Flooding| {
        found.others > 0
            && (found.part_of_bytes >= PART && found.bytes_per_second >= BYTES_MIN
                || found.part_of_loads >= PART && found.loads_per_second >= LOADS_MIN)
    };
    let most = |one: &Flooding, other: &Flooding| one.part_of_bytes.total_cmp(&other.part_of_bytes);
    active.iter().map(of).filter(floods).max_by(most)
}

fn finding(found: &Flooding, user: &str, wait: String) -> Finding {
    let Flooding { bytes_per_second, loads_per_second, part_of_bytes, part_of_loads, others, .. } = found;
    let others =
        if *others == 1 { "one other user has".to_owned() } else { format!("{others} other users have") };
    let text = format!(
        "{user} sends {:.0} % of all loads and {:.0} % of their bytes ({loads_per_second:.0} loads and {:.1} MiB a second), and {others} \
         loads, too.",
        part_of_loads * 100.0,
        part_of_bytes * 100.0,
        bytes_per_second / (1024.0 * 1024.0),
    );
    Finding::new(ProblemKind::UserFloods, text).of_subject(user).cause(wait).way_out(format!(
        "See its connections in SHOW PROCESSLIST. Limit it: SET PROPERTY FOR {user} 'max_load_bytes_per_second' = '…', or \
         'max_load_requests_per_second', or 'max_concurrent_loads'; its clients are told when to send again."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(number: u64) -> UserKey {
        UserKey::of("u", &number.to_string())
    }

    /// Seconds since the start, the busy part, users with (number, loads, bytes) since the start, waiting loads.
    type Seen<'a> = (u64, f64, &'a [(u64, u64, u64)], u64);

    /// Looks, and returns the text of each finding.
    fn looks(of: &[Seen<'_>]) -> Vec<Option<String>> {
        let start = Instant::now();
        let mut flood = Flood::default();
        let looked = of.iter().map(|(seconds, busy, users, waiting)| {
            let users =
                users.iter().map(|&(number, loads, bytes)| UserLoads { user: user(number), loads, bytes });
            let look = UsersLook {
                at: start + Duration::from_secs(*seconds),
                users: users.collect(),
                processors: Some(ProcessorTime::of(seconds * 1000, (*seconds as f64 * 1000.0 * busy) as u64)),
                waiting: *waiting,
            };
            let named =
                |key| (0..9).find(|number| user(*number) == key).map(|number| format!("'u{number}'@'%'"));
            flood.look(look, named).map(|found| found.problem)
        });
        looked.collect()
    }

    const MIB: u64 = 1024 * 1024;

    #[test]
    fn a_user_with_nearly_all_bytes_floods_if_the_server_is_busy_and_others_have_loads() {
        let one = [(1, 0, 0), (2, 0, 0)];
        let later = [(1, 60, 95 * MIB), (2, 40, 5 * MIB)];
        let found = looks(&[(0, 1.0, &one, 0), (5, 1.0, &later, 0)]);
        let text = "'u1'@'%' sends 60 % of all loads and 95 % of their bytes (12 loads and 19.0 MiB a second), and one other user has \
                    loads, too.";
        assert_eq!(found, [None, Some(text.to_owned())]);
        assert_eq!(looks(&[(0, 0.5, &one, 0), (5, 0.5, &later, 0)]), [None, None], "there is enough for all");
        assert!(looks(&[(0, 0.5, &one, 0), (5, 0.5, &later, 3)])[1].is_some(), "loads wait");
        assert_eq!(
            looks(&[(0, 1.0, &one, 0), (1, 1.0, &later, 0)]),
            [None, None],
            "a second is too short to say"
        );
        let alone = [(1, 60, 95 * MIB), (2, 0, 0)];
        assert_eq!(looks(&[(0, 1.0, &one, 0), (5, 1.0, &alone, 0)]), [None, None], "nobody else is there");
        let little = [(1, 60, MIB), (2, 1, 5)];
        assert_eq!(looks(&[(0, 1.0, &one, 0), (5, 1.0, &little, 0)]), [None, None], "it is not much");
        let fair = [(1, 60, 60 * MIB), (2, 40, 40 * MIB)];
        assert_eq!(looks(&[(0, 1.0, &one, 0), (5, 1.0, &fair, 0)]), [None, None], "both send much");
    }

    #[test]
    fn many_tiny_loads_flood_too_and_old_looks_count_no_longer() {
        let one = [(1, 0, 0), (2, 0, 0)];
        let tiny = [(1, 5000, 5000), (2, 40, 4 * MIB)];
        let calm = [(1, 5000, 5000), (2, 80, 8 * MIB)];
        let found = looks(&[(0, 1.0, &one, 0), (5, 1.0, &tiny, 0), (12, 1.0, &calm, 0), (16, 1.0, &calm, 0)]);
        assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, false, false]);
    }
}
