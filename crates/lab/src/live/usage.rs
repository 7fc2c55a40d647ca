//! Resource usage of a process.

use crate::LabError;
use std::fs;
use std::path::PathBuf;

/// Resource usage of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    /// Memory in use, bytes.
    pub(crate) resident: u64,
    /// Maximum resident memory, bytes.
    pub(crate) peak: u64,
    /// Resident memory, with shared pages divided among the processes that share them, bytes.
    pub(crate) proportional: u64,
    /// Anonymous resident memory (without a file), bytes.
    pub(crate) anonymous: u64,
    /// Open descriptors.
    pub(crate) descriptors: u64,
    /// Time on processors, seconds.
    pub(crate) cpu: f64,
}

impl Usage {
    pub(crate) fn of(process: u32) -> Result<Self, LabError> {
        let folder = PathBuf::from(format!("/proc/{process}"));
        let failed = |path: PathBuf| move |source| LabError::File { path, source };
        let read = |file: &str| {
            let path = folder.join(file);
            fs::read_to_string(&path).map_err(failed(path))
        };
        let memory = read("smaps_rollup")?;
        let (stat, status) = (read("stat")?, read("status")?);
        let path = folder.join("fd");
        let descriptors = fs::read_dir(&path).map_err(failed(path))?.count() as u64;
        Ok(Self {
            resident: kilobytes(&memory, "Rss:"),
            peak: kilobytes(&status, "VmHWM:"),
            proportional: kilobytes(&memory, "Pss:"),
            anonymous: kilobytes(&memory, "Anonymous:"),
            descriptors,
            cpu: cpu(&stat).unwrap_or_default(),
        })
    }
}

impl Usage {
    /// The sum of a process and those that it has started. Processes that are gone count nothing.
    pub(crate) fn of_family(process: u32) -> Self {
        let children = format!("/proc/{process}/task/{process}/children");
        let children = fs::read_to_string(children).unwrap_or_default();
        let own = Self::of(process).unwrap_or_default();
        let numbers = children.split_whitespace().filter_map(|number| number.parse().ok());
        numbers.map(Self::of_family).fold(own, |sum, one| Self {
            resident: sum.resident + one.resident,
            peak: sum.peak + one.peak,
            proportional: sum.proportional + one.proportional,
            anonymous: sum.anonymous + one.anonymous,
            descriptors: sum.descriptors + one.descriptors,
            cpu: sum.cpu + one.cpu,
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
        assert!(own.peak >= own.anonymous);
    }
}
