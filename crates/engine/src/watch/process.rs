//! The process's file descriptors, as the kernel has them.

use rustix::process::{Resource, getrlimit};
use std::fs;

/// Open file descriptors, and how many there may be; `None` if they are unknown, or without a limit.
pub(super) fn descriptors() -> Option<(u64, u64)> {
    let open = fs::read_dir("/proc/self/fd").ok()?.count() as u64;
    Some((open, getrlimit(Resource::Nofile).current?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_descriptors() {
        assert!(descriptors().is_none_or(|(open, most)| (3..=most).contains(&open)));
    }
}
