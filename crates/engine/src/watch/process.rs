//! The process's memory and file descriptors, as the kernel has them.

use rustix::process::{Resource, getrlimit};
use std::fs;

/// Resident memory in bytes; 0 if it is unknown.
pub(crate) fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
    kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Open file descriptors, and how many there may be; `None` if they are unknown, or without a limit.
pub(super) fn descriptors() -> Option<(u64, u64)> {
    let open = fs::read_dir("/proc/self/fd").ok()?.count() as u64;
    Some((open, getrlimit(Resource::Nofile).current?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_memory_and_descriptors() {
        assert!(resident_bytes() > 1024 * 1024);
        assert!(descriptors().is_none_or(|(open, most)| (3..=most).contains(&open)));
    }
}
