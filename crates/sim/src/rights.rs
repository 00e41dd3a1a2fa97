//! Users whose right to load is revoked and granted while their loads run and wait: no load joins a group, or goes to the log, after
//! its right was revoked, and none is refused for a right that it had all the time.

use crate::model::LoadId;
use crate::trace::note;
use crate::world::World;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tributary_ingest::{Answered, IngestError, LoadRight};
use tributary_types::{UserKey, host};

/// Users who load.
const USERS: usize = 3;

/// A user, and when the right has changed.
#[derive(Debug)]
struct User {
    has_right: Arc<AtomicBool>,
    /// Asks for the same.
    right: Arc<LoadRight>,
    /// When it was revoked last.
    revoked: Option<Instant>,
    /// When it was granted again last.
    granted: Option<Instant>,
}

/// The users, and when their loads were sent.
#[derive(Debug)]
pub struct Rights {
    users: [User; USERS],
    sent: BTreeMap<LoadId, Instant>,
}

impl Default for Rights {
    fn default() -> Self {
        let user = |_| {
            let has_right = Arc::new(AtomicBool::new(true));
            let asked = Arc::clone(&has_right);
            let right = Arc::new(LoadRight::new(move || asked.load(Ordering::Relaxed)));
            User { has_right, right, revoked: None, granted: None }
        };
        Self { users: std::array::from_fn(user), sent: BTreeMap::new() }
    }
}

const fn user_of(id: LoadId) -> usize {
    (id % USERS as u64) as usize
}

/// The user of a load.
#[must_use]
pub fn user(id: LoadId) -> UserKey {
    UserKey::of("user", &user_of(id).to_string())
}

/// The right of a load that is about to be sent, if it is asked for.
pub fn right(world: &World, id: LoadId) -> Option<Arc<LoadRight>> {
    if !world.plan.rights {
        return None;
    }
    let mut rights = world.rights.borrow_mut();
    rights.sent.insert(id, host::now());
    Some(Arc::clone(&rights.users[user_of(id)].right))
}

/// The load is the server's own.
pub fn is_not_asked(world: &World, id: LoadId) {
    world.rights.borrow_mut().sent.remove(&id);
}

/// Revokes or grants a user's right.
pub fn change(world: &World) {
    let number = world.throw(|dice| dice.below(USERS as u64));
    let mut rights = world.rights.borrow_mut();
    let user = &mut rights.users[number as usize];
    let is_granted = !user.right.holds();
    if !is_granted && !world.throw(|dice| dice.one_in(3)) {
        return;
    }
    let at = if is_granted { &mut user.granted } else { &mut user.revoked };
    *at = Some(host::now());
    user.has_right.store(is_granted, Ordering::Relaxed);
    note!(world.trace, "right", number, u64::from(is_granted), "of user {number}: {is_granted}");
}

/// Checks a load's answer against its user's right.
pub fn check(world: &World, id: LoadId, answer: &Result<Answered, IngestError>) {
    let rights = world.rights.borrow();
    let Some(&sent) = rights.sent.get(&id) else { return };
    let user = &rights.users[user_of(id)];
    match answer {
        Ok(answered) if !user.right.holds() => {
            // When it joined its group, or was given to the log.
            let stages = &answered.stages;
            let mut joined = sent + stages.admit;
            if answered.version.is_some() && answered.closed_by.is_none() {
                joined += stages.wait + stages.build;
            }
            if user.revoked.is_some_and(|revoked| joined > revoked) {
                let text = format!(
                    "load {id} joined at {joined:?}, after its right was revoked at {:?}",
                    user.revoked
                );
                drop(rights);
                world.violated(text);
            }
        }
        Err(IngestError::RightRevoked { .. }) => {
            world.count(|counts| counts.revoked += 1);
            let was_without = !user.right.holds()
                || user.revoked.is_some_and(|at| at >= sent)
                || user.granted.is_some_and(|at| at >= sent);
            if !was_without {
                drop(rights);
                world.violated(format!("load {id} was refused, and its user had the right all the time"));
            }
        }
        _ => {}
    }
}
