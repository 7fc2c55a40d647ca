//! What the C library keeps of memory that nobody uses any more goes back to the kernel.
//!
//! glibc gives memory back from the top of its heap only, and one small block up there keeps all
//! that is free below; and once a large block has been freed, it takes blocks of that size from
//! the heap, too, and keeps twice as much of it. After an hour with full buffers a gateway would
//! hold what it needed then until it ends. So large blocks always come from the kernel and go
//! back there, and now and then all free pages are given back, wherever they lie.
//!
//! Where the C library is another one, nothing of this is done.

use std::fs;
use units::{Instant, Span};

/// Blocks of this many bytes and more are the kernel's.
#[cfg(target_env = "gnu")]
const LARGE: libc::c_int = 256 * 1024;
/// So much may stay free at the heap's top until memory is next given back: to give it back at
/// once and ask for it again costs a page fault for every four kilobytes.
#[cfg(target_env = "gnu")]
const TOP: libc::c_int = 64 << 20;
/// By so much the heap grows at least.
#[cfg(target_env = "gnu")]
const GROWTH: libc::c_int = 1 << 20;
/// How often to look.
const LOOKS: Span = Span::from_secs(5);
/// How often to count what is free when that was of no use, at most.
const RARE: Span = Span::from_secs(80);
/// Less than this is not worth the trouble, bytes.
const LITTLE: u64 = 128 * 1024;
/// While there is traffic, as much as this may be free beside half of what is used, bytes: what
/// goes back now is soon asked for again, a page at a time. At rest all goes.
const AT_WORK: u64 = 8 << 20;
/// Bytes per second below which a gateway rests.
const RESTING: u64 = 16 * 1024;

/// Tells the C library how to go about large blocks; once, before there are any.
pub(crate) fn settle() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt takes two numbers; that one of them should not be known is harmless.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
        libc::mallopt(libc::M_TRIM_THRESHOLD, TOP);
        libc::mallopt(libc::M_TOP_PAD, GROWTH);
    }
}

/// The part of the machine's memory that buffers may take in each direction, and their least.
const TOTAL_PART: u64 = 4;
const TOTAL_LEAST: u64 = 16 << 20;

/// Bytes of buffer for all terminals of a hub together, in each direction, where none are
/// configured: a quarter of the machine's memory. `None` where that is not known.
pub(crate) fn usual_total() -> Option<u64> {
    // SAFETY: sysconf takes a number and reads nothing else.
    let [pages, size] =
        unsafe { [libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)] };
    let machine = u64::try_from(pages).ok()?.checked_mul(u64::try_from(size).ok()?)?;
    Some((machine / TOTAL_PART).max(TOTAL_LEAST))
}

/// When to give memory back.
#[derive(Debug)]
pub(crate) struct Memory {
    next: Instant,
    /// What is free is counted again then, at work.
    count_at: Instant,
    /// How long the last wait for that was.
    pause: Span,
    /// When it was last looked, and how many bytes had moved by then.
    seen: (Instant, u64),
    /// What was resident after memory was given back, or less, bytes.
    rest: u64,
}

impl Memory {
    pub(crate) fn new(now: Instant) -> Self {
        Self { next: now + LOOKS, count_at: now, pause: LOOKS, seen: (now, 0), rest: 0 }
    }

    /// When to look again.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// Gives back what is free, if it is time for that and worth it; `moved` are the bytes that
    /// have gone through connections so far.
    pub(crate) fn review(&mut self, now: Instant, moved: u64) {
        if now < self.next {
            return;
        }
        let elapsed = now.since(self.seen.0).as_secs_f64();
        let resting = moved.saturating_sub(self.seen.1) as f64 <= elapsed * RESTING as f64;
        self.seen = (now, moved);
        self.judge(now, resting, resident(), in_use, give_back);
        self.next = now + LOOKS;
    }

    /// Looks at what is resident, and beyond that only where it has become more.
    fn judge(
        &mut self,
        now: Instant,
        resting: bool,
        resident: Option<u64>,
        in_use: impl FnOnce() -> Option<u64>,
        give_back: impl FnOnce() -> Option<u64>,
    ) {
        let Some(resident) = resident else { return };
        self.rest = self.rest.min(resident);
        if resident < self.rest + LITTLE {
            self.pause = LOOKS;
            return;
        }
        if !resting {
            if now < self.count_at {
                return;
            }
            let Some(used) = in_use() else { return };
            if resident.saturating_sub(used) < AT_WORK + used / 2 {
                // To count what is free takes time where there is much.
                self.pause = (self.pause * 2).min(RARE);
                self.count_at = now + self.pause;
                return;
            }
        }
        self.pause = LOOKS;
        if let Some(left) = give_back() {
            self.rest = left;
        }
    }
}

/// What this process has of the machine's memory for itself, bytes.
fn resident() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let mut words = text.split_whitespace().skip(1).map_while(|word| word.parse::<u64>().ok());
    let (all, shared) = (words.next()?, words.next()?);
    // SAFETY: it takes no pointers.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    Some(all.saturating_sub(shared) * u64::try_from(size).ok()?)
}

/// What the program has asked for and not given back, bytes.
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

/// Gives all free pages back; returns what is resident then.
#[cfg(target_env = "gnu")]
fn give_back() -> Option<u64> {
    // SAFETY: it takes a number, and touches no memory that is in use.
    unsafe { libc::malloc_trim(0) };
    resident()
}

#[cfg(not(target_env = "gnu"))]
fn give_back() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A look at this second; returns whether memory was counted, and whether it was given back.
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
            Some(left)
        };
        memory.judge(now, resting, Some(resident), in_use, give_back);
        (counted, given)
    }

    #[test]
    fn who_rests_gives_back_what_is_free_once() {
        let mut memory = Memory::new(Instant::ZERO);
        assert!(look(&mut memory, 0, true, (60 * MIB, 10 * MIB, 12 * MIB)).1);
        // Some blocks lie alone on their pages: to try again would bring nothing.
        assert!(!look(&mut memory, 5, true, (12 * MIB, 10 * MIB, 12 * MIB)).1);
        assert!(look(&mut memory, 10, true, (13 * MIB, 10 * MIB, 12 * MIB)).1);
    }

    #[test]
    fn who_works_keeps_some_of_it_and_counts_more_and_more_rarely() {
        let mut memory = Memory::new(Instant::ZERO);
        let mut counts = Vec::new();
        for at in (0..=310).step_by(5) {
            let (counted, given) = look(&mut memory, at, false, (30 * MIB, 16 * MIB, 16 * MIB));
            assert!(!given);
            counts.extend(counted.then_some(at));
        }
        assert_eq!(counts, [0, 10, 30, 70, 150, 230, 310]);
        assert!(!look(&mut memory, 385, false, (33 * MIB, 16 * MIB, 16 * MIB)).1);
        assert!(look(&mut memory, 390, false, (33 * MIB, 16 * MIB, 16 * MIB)).1);
        assert_eq!(memory.pause, LOOKS);
    }

    #[test]
    fn who_comes_to_rest_does_not_wait_for_the_next_count() {
        let mut memory = Memory::new(Instant::ZERO);
        for at in (0..=155).step_by(5) {
            look(&mut memory, at, false, (30 * MIB, 16 * MIB, 16 * MIB));
        }
        assert_eq!(look(&mut memory, 160, true, (30 * MIB, 16 * MIB, 2 * MIB)), (false, true));
    }

    /// What this is all for: blocks that were freed below others that are still used.
    #[test]
    #[cfg(target_env = "gnu")]
    fn what_is_free_below_what_is_used_goes_back() {
        settle();
        let mut blocks: Vec<Vec<u8>> = (0..4_000).map(|_| vec![1; 16 * 1024]).collect();
        let (full, used) = (resident().unwrap(), in_use().unwrap());
        assert!(used >= 60 * MIB);
        let mut kept = 0;
        blocks.retain(|_| {
            kept += 1;
            kept % 100 == 0
        });
        let left = give_back().unwrap();
        assert!(left + 40 * MIB < full, "{full} bytes, then {left}");
        assert!(in_use().unwrap() + 40 * MIB < used);
        assert!(blocks.iter().all(|block| block.iter().all(|octet| *octet == 1)));
    }
}
