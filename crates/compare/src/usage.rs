//! The CPU time of processes, from `/proc`.

use crate::Outcome;
use tributary_bench::ticks_per_second;

/// CPU seconds that a process and those it has begun have used.
pub fn cpu_seconds_of(pid: u32) -> Outcome<f64> {
    let children = std::fs::read_dir("/proc")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter_map(|other| ticks(other).ok())
        .filter(|&(parent, _)| parent == pid)
        .map(|(_, ticks)| ticks)
        .sum::<u64>();
    let (_, own) = ticks(pid)?;
    Ok((own + children) as f64 / ticks_per_second())
}

/// A process's parent and its CPU time in clock ticks, with that of children that have ended.
fn ticks(pid: u32) -> Outcome<(u32, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let after_name = stat.rsplit_once(')').ok_or("a line of /proc without a name")?.1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    // Fields 14 to 17 of proc(5); the first here is the third there.
    let times = fields[11..15].iter().map(|field| field.parse::<u64>()).sum::<Result<u64, _>>()?;
    Ok((fields[1].parse()?, times))
}
