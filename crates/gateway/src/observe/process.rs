//! Resource usage of this process.

use super::ProcessStatus;
use std::fs;

/// Returns the kernel's current values; those that it does not provide are omitted.
pub(super) fn status() -> ProcessStatus {
    let (open_descriptors, max_descriptors) = descriptors();
    ProcessStatus {
        cpu_seconds: cpu_seconds(),
        resident_bytes: resident(),
        open_descriptors,
        max_descriptors,
        log_lines_dropped: crate::logging::dropped_lines(),
    }
}

fn cpu_seconds() -> f64 {
    // SAFETY: all zeroes is a valid value of this plain C structure.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is valid for writes.
    if unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) } != 0 {
        return 0.0;
    }
    [usage.ru_utime, usage.ru_stime]
        .iter()
        .map(|time| time.tv_sec as f64 + time.tv_usec as f64 / 1e6)
        .sum()
}

fn resident() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    // SAFETY: it takes no pointers.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    Some(pages * u64::try_from(size).ok()?)
}

fn descriptors() -> (Option<u64>, Option<u64>) {
    // Since Linux 6.2 this is their number; counting thousands of entries would delay the loop.
    let open = fs::metadata("/proc/self/fd").ok().map(|folder| folder.len());
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writes.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0;
    (open.filter(|&open| open > 0), known.then_some(limit.rlim_cur))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_uses_something() {
        let mut work = 0u64;
        let before = status();
        while status().cpu_seconds <= before.cpu_seconds {
            work = std::hint::black_box(work.wrapping_add(1));
        }
        assert!(before.resident_bytes.unwrap() > 100_000);
        assert!(before.max_descriptors >= before.open_descriptors);
    }
}
