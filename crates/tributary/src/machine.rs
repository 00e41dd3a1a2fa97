//! The memory of the machine, or of the part of it that a container has, and its pages.

use std::fs;
use std::path::{Path, PathBuf};

/// The bytes of memory that the kernel grants this process: the machine's, or the least limit of its control groups.
pub(crate) fn memory_bytes() -> Option<u64> {
    let machine = total(&fs::read_to_string("/proc/meminfo").ok()?)?;
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = limit_files(&groups, Path::new("/sys/fs/cgroup")).into_iter().filter_map(|file| {
        // `max`, or a number that is larger than any machine, is no limit.
        fs::read_to_string(file).ok()?.trim().parse::<u64>().ok()
    });
    limits.chain([machine]).min()
}

/// Keeps the kernel from giving this process huge pages, which the allocator asks for. A load or a query uses a part of each for a
/// moment, and the kernel clears all of it (`docs/adr/0112-small-pages.md`).
pub(crate) fn use_small_pages() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        eprintln!("tributary: cannot do without huge pages: {error}");
    }
}

/// The machine's memory from the text of `/proc/meminfo`.
fn total(meminfo: &str) -> Option<u64> {
    let kib = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"))?;
    Some(kib.trim().parse::<u64>().ok()? * 1024)
}

/// Files of the limits of the process's control groups and those above them, from the text of `/proc/self/cgroup`. In a container
/// the path is that of the host, and only the root is there.
fn limit_files(groups: &str, root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let (base, name) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            _ if controllers.split(',').any(|controller| controller == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let levels = Path::new(path.trim_start_matches('/')).ancestors();
        files.extend(levels.map(|level| base.join(level).join(name)));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernel_gives_small_pages_only() {
        use_small_pages();
        assert!(rustix::thread::transparent_huge_pages_are_disabled().expect("the kernel says it"));
    }

    #[test]
    fn the_least_limit_of_machine_and_groups_counts() {
        assert_eq!(total("MemFree: 1 kB\nMemTotal:       24050284 kB\n"), Some(24_050_284 * 1024));
        assert_eq!(total(""), None);
        let root = Path::new("/g");
        let named = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(
            limit_files("0::/system.slice/tributary.service\n", root),
            named(&[
                "/g/system.slice/tributary.service/memory.max",
                "/g/system.slice/memory.max",
                "/g/memory.max"
            ])
        );
        assert_eq!(
            limit_files("5:cpu,cpuacct:/a\n4:memory:/a\nbroken\n", root),
            named(&["/g/memory/a/memory.limit_in_bytes", "/g/memory/memory.limit_in_bytes"])
        );
        assert_eq!(limit_files("0::/\n", root), named(&["/g/memory.max"]));
        assert!(memory_bytes().is_none_or(|bytes| bytes > 1 << 20));
    }
}
