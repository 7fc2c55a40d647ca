//! Real-time scheduling for the calling thread: asked for politely, answered exactly.
//!
//! A thread that must act on time wants three things of the kernel: to be woken at the time it
//! said (timer slack), to run before others (SCHED_FIFO), and not to wait for its memory
//! (mlockall). Where the second is refused, there is a lesser one that needs no privilege: a
//! short slice (since Linux 6.12), with which a thread that wakes may interrupt one with a longer
//! slice instead of waiting for its end. A container or a user namespace may refuse each of them; what was granted is
//! part of every measurement, so it is reported and never assumed.

use serde::Serialize;
use std::fmt;
use std::io;

/// What to ask for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The SCHED_FIFO priority, 1 to 99; `None` asks for nothing.
    pub fifo_priority: Option<u8>,
    /// Whether to keep all of the process's memory resident.
    pub lock_memory: bool,
}

impl Default for Request {
    /// Before everything that is not real-time, behind everything that is; memory not locked.
    fn default() -> Self {
        Self { fifo_priority: Some(1), lock_memory: false }
    }
}

/// The kernel's answer to one wish.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// Nobody asked.
    NotAsked,
    /// Granted.
    Granted,
    /// Refused: the call, and the error it gave.
    Refused(String),
}

/// What a thread got.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Scheduling {
    /// Wake-ups at the time, not up to 50 microseconds later.
    pub timer_slack: Grant,
    /// SCHED_FIFO.
    pub fifo: Grant,
    /// A short slice among ordinary threads; asked for where SCHED_FIFO is refused.
    pub short_slice: Grant,
    /// Memory kept resident.
    pub memory: Grant,
}

/// Asks for `request`, for the calling thread (memory: for its process).
///
/// Threads that it starts later do not inherit the real-time priority.
pub fn ask(request: &Request) -> Scheduling {
    let fifo = request.fifo_priority.map_or(Grant::NotAsked, fifo);
    let short_slice = match fifo {
        Grant::Refused(_) => short_slice(),
        Grant::NotAsked | Grant::Granted => Grant::NotAsked,
    };
    Scheduling {
        timer_slack: least_slack(),
        fifo,
        short_slice,
        memory: if request.lock_memory { lock_memory() } else { Grant::NotAsked },
    }
}

/// Gives the real-time priority of the calling thread back, if it was granted.
pub fn give_back(scheduling: &Scheduling) {
    if scheduling.fifo == Grant::Granted {
        let parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: `parameters` is a valid sched_param; 0 is the calling thread. Nobody is
        // refused less priority.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const parameters) };
    }
}

fn least_slack() -> Grant {
    // SAFETY: PR_SET_TIMERSLACK takes one number and touches no memory of ours.
    let status = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1usize) };
    Grant::of("prctl(PR_SET_TIMERSLACK)", status)
}

fn fifo(priority: u8) -> Grant {
    let parameters = libc::sched_param { sched_priority: i32::from(priority) };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: `parameters` is a valid sched_param; 0 is the calling thread.
    let status = unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
    Grant::of("sched_setscheduler(SCHED_FIFO)", status)
}

/// `struct sched_attr` of `linux/sched/types.h`, as far as its first version goes.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// For ordinary threads: the slice, nanoseconds.
    runtime: u64,
    deadline: u64,
    period: u64,
}

fn short_slice() -> Grant {
    // The least that the kernel gives.
    const SLICE_NS: u64 = 100_000;
    // SAFETY: getpriority takes two numbers; 0 is the calling thread.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: libc::SCHED_OTHER as u32,
        nice,
        runtime: SLICE_NS,
        ..Attributes::default()
    };
    // SAFETY: `attributes` is a sched_attr of the size that it states; 0 is the calling thread.
    let status = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    Grant::of("sched_setattr(slice)", status as libc::c_int)
}

fn lock_memory() -> Grant {
    // SAFETY: mlockall changes where our pages live, not what is in them.
    let status = unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) };
    Grant::of("mlockall", status)
}

impl Grant {
    fn of(call: &str, status: libc::c_int) -> Self {
        if status == 0 {
            Self::Granted
        } else {
            Self::Refused(format!("{call}: {}", io::Error::last_os_error()))
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAsked => f.write_str("not asked for"),
            Self::Granted => f.write_str("granted"),
            Self::Refused(why) => write!(f, "refused ({why})"),
        }
    }
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "real-time priority {}, timer slack of 1 ns {}", self.fifo, self.timer_slack)?;
        for (what, grant) in [("short slice", &self.short_slice), ("locked memory", &self.memory)] {
            match grant {
                Grant::NotAsked => {}
                Grant::Granted | Grant::Refused(_) => write!(f, ", {what} {grant}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_granted_is_what_the_kernel_says() {
        // In a thread of its own, which takes its priority with it.
        std::thread::spawn(|| {
            let request = Request { fifo_priority: Some(1), lock_memory: false };
            let scheduling = ask(&request);
            // SAFETY: 0 is the calling thread; no memory is touched.
            let policy = unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK;
            assert_eq!(policy == libc::SCHED_FIFO, scheduling.fifo == Grant::Granted);
            // SAFETY: PR_GET_TIMERSLACK takes nothing and touches no memory of ours.
            let slack = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
            // A real-time thread has no slack, whatever it asked for.
            assert!(scheduling.timer_slack != Grant::Granted || slack <= 1, "{slack}");
            assert_eq!(scheduling.memory, Grant::NotAsked);
            give_back(&scheduling);
            // SAFETY: as above.
            assert_eq!(unsafe { libc::sched_getscheduler(0) } & 3, libc::SCHED_OTHER);
        })
        .join()
        .expect("the thread's own assertions hold");
    }

    #[test]
    fn a_refusal_names_the_call_and_the_lesser_wish_is_asked_for() {
        std::thread::spawn(|| {
            let scheduling = ask(&Request { fifo_priority: Some(200), lock_memory: false });
            // Kernels that know no slices pass over it; none refuses.
            assert_eq!(scheduling.short_slice, Grant::Granted);
            let text = scheduling.to_string();
            assert!(text.contains("refused (sched_setscheduler(SCHED_FIFO): Invalid"), "{text}");
        })
        .join()
        .expect("the thread's own assertions hold");
    }
}
