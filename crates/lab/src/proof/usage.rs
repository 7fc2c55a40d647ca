//! Resource usage of a process.

use super::failed;
use crate::LabError;
use std::fs;

/// Resource usage of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Usage {
    /// Resident memory in octets.
    pub(super) resident: u64,
    /// Proportional set size in octets: shared pages are divided among their users.
    pub(super) proportional: u64,
    /// Anonymous resident memory in octets.
    pub(super) anonymous: u64,
    /// Open descriptors.
    pub(super) descriptors: u64,
    /// Processor time in seconds.
    pub(super) cpu: f64,
}

impl Usage {
    pub(super) fn of(process: u32) -> Result<Self, LabError> {
        let read = |file: &str| {
            let path = format!("/proc/{process}/{file}");
            fs::read_to_string(&path).map_err(failed(&path))
        };
        let memory = read("smaps_rollup")?;
        let stat = read("stat")?;
        let descriptors = fs::read_dir(format!("/proc/{process}/fd"))
            .map_err(failed("/proc: descriptors"))?
            .count() as u64;
        Ok(Self {
            resident: kilobytes(&memory, "Rss:"),
            proportional: kilobytes(&memory, "Pss:"),
            anonymous: kilobytes(&memory, "Anonymous:"),
            descriptors,
            cpu: cpu(&stat).unwrap_or_default(),
        })
    }
}

fn kilobytes(text: &str, key: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let number = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0) * 1024
}

/// Parses the fields after the name in parentheses: 14 and 15 of `proc(5)`, in units of 10 ms.
fn cpu(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((user + system) as f64 / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_files_are_parsed() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 1 0 9";
        assert_eq!(cpu(stat), Some(3.0));
        assert_eq!(kilobytes("Rss:   12 kB\nPss:  8 kB\n", "Pss:"), 8192);
        let own = Usage::of(std::process::id()).unwrap();
        assert!(own.resident >= own.anonymous && own.descriptors > 2);
    }
}
