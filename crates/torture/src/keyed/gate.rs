//! Whether a server runs, and where: clients wait here while it is killed and started.

use crate::doors::Doors;
use crate::server::Server;
use parking_lot::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// A running server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Up {
    pub mysql_port: u16,
    pub http_port: u16,
    /// The number of kills before its start.
    pub kills: u64,
}

impl Up {
    /// The way to the server, past the proxy.
    pub const fn doors(self) -> Doors {
        Doors::open(self.mysql_port, self.http_port)
    }
}

/// The state of the server, for clients and the proxy.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    has_changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    up: Option<Up>,
    kills: u64,
    is_over: bool,
}

impl Gate {
    pub fn open(&self, server: &Server) {
        let mut state = self.state.lock();
        let kills = state.kills;
        state.up = Some(Up { mysql_port: server.doors.mysql_port, http_port: server.doors.http_port, kills });
        self.has_changed.notify_all();
    }

    /// Call it before the server is killed: from now on connections may break.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.up = None;
        state.kills += 1;
    }

    /// Ends all waits: no server will be started any more.
    pub fn end(&self) {
        self.state.lock().is_over = true;
        self.has_changed.notify_all();
    }

    /// Waits for a server. `None`: there will be none.
    pub fn wait(&self) -> Option<Up> {
        let mut state = self.state.lock();
        loop {
            if state.is_over {
                return None;
            }
            if let Some(up) = state.up {
                return Some(up);
            }
            self.has_changed.wait(&mut state);
        }
    }

    /// The server that runs now.
    pub fn up(&self) -> Option<Up> {
        self.state.lock().up
    }

    /// Whether a server was killed since that one was started.
    pub fn was_killed(&self, up: Up) -> bool {
        self.state.lock().kills != up.kills
    }

    /// Waits for that time, or until everything is over.
    pub fn pause(&self, time: Duration) {
        let end = Instant::now() + time;
        let mut state = self.state.lock();
        while !state.is_over && !self.has_changed.wait_until(&mut state, end).timed_out() {}
    }
}
