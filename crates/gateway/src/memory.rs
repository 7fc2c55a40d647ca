//! Returns memory that the C library has freed but keeps to the kernel.
//!
//! glibc returns memory only from the top of its heap, so one small block there retains all free
//! memory below; and after freeing a large block it allocates blocks of that size from the heap,
//! too, and retains twice as much. After a period with full buffers a gateway would keep their
//! memory until it ends. Large blocks are therefore always mapped from the kernel and unmapped, and
//! all free pages are returned at intervals.
//!
//! With another C library this module does nothing.

use std::fs;
use units::{Instant, Span};

/// Minimum size in bytes of blocks that are mapped from the kernel.
#[cfg(target_env = "gnu")]
const LARGE: libc::c_int = 256 * 1024;
/// Free memory that may remain at the top of the heap until the next check, in bytes: returning and
/// allocating it again costs a page fault per 4 KiB.
#[cfg(target_env = "gnu")]
const TOP: libc::c_int = 64 << 20;
/// Minimum growth of the heap in bytes.
#[cfg(target_env = "gnu")]
const GROWTH: libc::c_int = 1 << 20;
/// Interval of the check. The second check at the latest detects rest, so free memory is returned
/// within twice this time.
const LOOKS: Span = Span::from_secs(2);
/// Maximum interval of counting free memory after counts without result.
const RARE: Span = Span::from_secs(80);
/// Minimum amount of free memory that is returned, in bytes.
const LITTLE: u64 = 128 * 1024;
/// Free memory under traffic in addition to half of the used memory, in bytes: it would
/// soon be allocated again, page by page. At rest all of it is returned.
const AT_WORK: u64 = 8 << 20;
/// Traffic below which a gateway is at rest, in bytes per second.
const RESTING: u64 = 16 * 1024;

/// Configures the C library's handling of large blocks; to be called once, before there are any.
pub(crate) fn settle() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt takes two numbers; an unknown one is harmless.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
        libc::mallopt(libc::M_TRIM_THRESHOLD, TOP);
        libc::mallopt(libc::M_TOP_PAD, GROWTH);
    }
}

/// Divisor of the machine's memory for buffers in each direction, and their minimum.
const TOTAL_PART: u64 = 4;
const TOTAL_LEAST: u64 = 16 << 20;

/// Returns the default buffer size of all terminals of a hub together, in each direction, in bytes:
/// a quarter of the machine's memory. `None` if that is unknown.
pub(crate) fn usual_total() -> Option<u64> {
    // SAFETY: sysconf takes a number and reads nothing else.
    let [pages, size] =
        unsafe { [libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)] };
    let machine = u64::try_from(pages).ok()?.checked_mul(u64::try_from(size).ok()?)?;
    Some((machine / TOTAL_PART).max(TOTAL_LEAST))
}

/// Schedule of returning memory.
#[derive(Debug)]
pub(crate) struct Memory {
    next: Instant,
    /// Time of the next count of free memory under traffic.
    count_at: Instant,
    /// The last interval between counts.
    pause: Span,
    /// Time of the last check, and the bytes moved by then.
    seen: (Instant, u64),
    /// Minimum of the resident memory since memory was returned, in bytes.
    rest: u64,
    /// How much of that was not in use, bytes.
    beside: u64,
}

impl Memory {
    pub(crate) fn new(now: Instant) -> Self {
        Self { next: now + LOOKS, count_at: now, pause: LOOKS, seen: (now, 0), rest: 0, beside: 0 }
    }

    /// Returns the time of the next check.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// Returns free memory to the kernel, if that is due and there is enough; `moved` is the number of
    /// bytes moved by connections so far.
    pub(crate) fn review(&mut self, now: Instant, moved: u64) {
        if now < self.next {
            return;
        }
        let elapsed = now.since(self.seen.0).as_secs_f64();
        let resting = moved.saturating_sub(self.seen.1) as f64 <= elapsed * RESTING as f64;
        self.seen = (now, moved);
        self.trim_if_free(now, resting, resident(), in_use, give_back);
        self.next = now + LOOKS;
    }

    /// Compares the resident memory, and counts free memory only if it has grown.
    fn trim_if_free(
        &mut self,
        now: Instant,
        resting: bool,
        resident: Option<u64>,
        in_use: impl FnOnce() -> Option<u64>,
        give_back: impl FnOnce() -> Option<(u64, u64)>,
    ) {
        let Some(resident) = resident else { return };
        self.rest = self.rest.min(resident);
        let has_grown = resident >= self.rest + LITTLE;
        // At rest all memory that was allocated since then is returned; otherwise the free memory
        // is counted, because memory that was in use at the last return may be free now.
        if !(resting && has_grown) {
            if !resting && now < self.count_at {
                return;
            }
            let Some(used) = in_use() else { return };
            let kept = if resting { self.beside + LITTLE } else { AT_WORK + used / 2 };
            if resident.saturating_sub(used) < kept {
                // Counting takes time if much is free.
                self.pause = if resting { LOOKS } else { (self.pause * 2).min(RARE) };
                self.count_at = now + self.pause;
                return;
            }
        }
        self.pause = LOOKS;
        if let Some((left, used)) = give_back() {
            (self.rest, self.beside) = (left, left.saturating_sub(used));
        }
    }
}

/// Returns the resident anonymous memory of this process in bytes.
fn resident() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let mut words = text.split_whitespace().skip(1).map_while(|word| word.parse::<u64>().ok());
    let (all, shared) = (words.next()?, words.next()?);
    // SAFETY: it takes no pointers.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    Some(all.saturating_sub(shared) * u64::try_from(size).ok()?)
}

/// Returns the allocated memory in bytes.
#[cfg(target_env = "gnu")]
fn in_use() -> Option<u64> {
    // SAFETY: it takes nothing, and returns numbers.
    let heap = unsafe { libc::mallinfo2() };
    Some(heap.uordblks as u64 + heap.hblkhd as u64)
}

#[cfg(not(target_env = "gnu"))]
fn in_use() -> Option<u64> {
    None
}

/// Returns all free pages to the kernel; returns the resident memory after that, and how much of it
/// is in use, in bytes.
#[cfg(target_env = "gnu")]
fn give_back() -> Option<(u64, u64)> {
    // SAFETY: it takes a number, and touches no memory that is in use.
    unsafe { libc::malloc_trim(0) };
    Some((resident()?, in_use()?))
}

#[cfg(not(target_env = "gnu"))]
fn give_back() -> Option<(u64, u64)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Checks at this second; returns whether memory was counted, and whether it was returned.
    fn look(
        memory: &mut Memory,
        at: u64,
        resting: bool,
        (resident, used, left): (u64, u64, u64),
    ) -> (bool, bool) {
        let now = Instant::ZERO + Span::from_secs(at);
        let (mut counted, mut given) = (false, false);
        let in_use = || {
            counted = true;
            Some(used)
        };
        let give_back = || {
            given = true;
            Some((left, used.min(left)))
        };
        memory.trim_if_free(now, resting, Some(resident), in_use, give_back);
        (counted, given)
    }

    #[test]
    fn free_memory_is_returned_once_at_rest() {
        let mut memory = Memory::new(Instant::ZERO);
        assert!(look(&mut memory, 0, true, (60 * MIB, 10 * MIB, 12 * MIB)).1);
        // Some blocks are alone on their pages: another attempt would return nothing.
        assert!(!look(&mut memory, 5, true, (12 * MIB, 10 * MIB, 12 * MIB)).1);
        assert!(look(&mut memory, 10, true, (13 * MIB, 10 * MIB, 12 * MIB)).1);
    }

    /// Buffers were full when memory was last returned, and are freed afterwards: their blocks are
    /// neither large nor at the top, so they stay resident.
    #[test]
    fn memory_in_use_at_a_return_is_returned_later() {
        for resting in [false, true] {
            let mut memory = Memory::new(Instant::ZERO);
            let full = (900 * MIB, 500 * MIB, 510 * MIB);
            assert!(look(&mut memory, 0, resting, full).1, "at work");
            let freed = (510 * MIB, 10 * MIB, 20 * MIB);
            assert!(look(&mut memory, 2, true, freed).1, "at rest");
            assert!(!look(&mut memory, 4, true, (20 * MIB, 10 * MIB, 20 * MIB)).1);
        }
    }

    #[test]
    fn memory_is_counted_less_often_under_traffic() {
        let mut memory = Memory::new(Instant::ZERO);
        let mut counts = Vec::new();
        for at in (0..=290).step_by(2) {
            let (counted, given) = look(&mut memory, at, false, (30 * MIB, 16 * MIB, 16 * MIB));
            assert!(!given);
            counts.extend(counted.then_some(at));
        }
        assert_eq!(counts, [0, 4, 12, 28, 60, 124, 204, 284]);
        assert!(!look(&mut memory, 363, false, (33 * MIB, 16 * MIB, 16 * MIB)).1);
        assert!(look(&mut memory, 364, false, (33 * MIB, 16 * MIB, 16 * MIB)).1);
        assert_eq!(memory.pause, LOOKS);
    }

    #[test]
    fn memory_is_returned_when_traffic_ends() {
        let mut memory = Memory::new(Instant::ZERO);
        for at in (0..=155).step_by(5) {
            look(&mut memory, at, false, (30 * MIB, 16 * MIB, 16 * MIB));
        }
        assert_eq!(look(&mut memory, 160, true, (30 * MIB, 16 * MIB, 2 * MIB)), (false, true));
    }

    /// Blocks that were freed below others that are still used.
    #[test]
    #[cfg(target_env = "gnu")]
    fn free_memory_below_used_memory_is_returned() {
        settle();
        let mut blocks: Vec<Vec<u8>> = (0..4_000).map(|_| vec![1; 16 * 1024]).collect();
        let (full, used) = (resident().unwrap(), in_use().unwrap());
        assert!(used >= 60 * MIB);
        let mut kept = 0;
        blocks.retain(|_| {
            kept += 1;
            kept % 100 == 0
        });
        let (left, _) = give_back().unwrap();
        assert!(left + 40 * MIB < full, "{full} bytes, then {left}");
        assert!(in_use().unwrap() + 40 * MIB < used);
        assert!(blocks.iter().all(|block| block.iter().all(|octet| *octet == 1)));
    }
}
