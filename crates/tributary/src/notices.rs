//! Notices to the service manager, for systemd's `Type=notify`. Without one, nothing happens.
//!
//! Not here: health and readiness, which are asked for over HTTP.

use sd_notify::NotifyState;

/// The log has been read back, and the ports are open.
pub(crate) fn ready() {
    send(NotifyState::Ready);
}

/// Running requests end, groups are committed, memtables are flushed. May be sent twice.
pub(crate) fn stopping() {
    send(NotifyState::Stopping);
}

fn send(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!(%error, "the service manager can't be notified");
    }
}
