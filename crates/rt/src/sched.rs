//! Real-time scheduling for the calling thread.
//!
//! A real-time thread has three requirements: to be woken at the requested time (timer slack), to
//! run before other threads (SCHED_FIFO), and not to wait for its memory (mlockall). If SCHED_FIFO
//! is refused, a short slice (since Linux 6.12), which needs no privilege, lets a waking thread
//! preempt one with a longer slice. A container or a user namespace may refuse each of them; what
//! was granted is part of every measurement and is reported.

use serde::Serialize;
use std::fmt;
use std::io;

/// The requested settings.
#[derive(Clone, Debug)]
pub struct Request {
    /// The SCHED_FIFO priority, 1 to 99; `None`: not requested.
    pub fifo_priority: Option<u8>,
    /// Whether to lock all of the process's memory.
    pub lock_memory: bool,
}

impl Default for Request {
    /// Before all other threads that are not real-time; memory not locked.
    fn default() -> Self {
        Self { fifo_priority: Some(1), lock_memory: false }
    }
}

/// The kernel's response to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// Not requested.
    NotAsked,
    /// Granted.
    Granted,
    /// Refused: the call and its error.
    Refused(String),
}

/// The settings of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Scheduling {
    /// Timer slack below 50 microseconds.
    pub timer_slack: Grant,
    /// SCHED_FIFO.
    pub fifo: Grant,
    /// A short slice among ordinary threads; requested where SCHED_FIFO is refused.
    pub short_slice: Grant,
    /// Memory locked.
    pub memory: Grant,
}

/// Requests `request` for the calling thread (memory: for its process).
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

/// Resets the real-time priority of the calling thread, if it was granted.
pub fn give_back(scheduling: &Scheduling) {
    if scheduling.fifo == Grant::Granted {
        // Lowering the priority is always permitted.
        set_scheduler(libc::SCHED_OTHER, 0);
    }
}

fn least_slack() -> Grant {
    // SAFETY: PR_SET_TIMERSLACK takes one number and touches no memory of ours.
    let status = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1usize) };
    Grant::of("prctl(PR_SET_TIMERSLACK)", status)
}

fn fifo(priority: u8) -> Grant {
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    Grant::of("sched_setscheduler(SCHED_FIFO)", set_scheduler(policy, priority.into()))
}

/// Sets the policy and priority of the calling thread; the C library musl has no function for it.
fn set_scheduler(policy: libc::c_int, priority: libc::c_int) -> libc::c_int {
    // SAFETY: the kernel's sched_param is one int; 0 is the calling thread.
    let status =
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) };
    status as libc::c_int
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
    /// The slice of ordinary threads, in nanoseconds.
    runtime: u64,
    deadline: u64,
    period: u64,
}

fn short_slice() -> Grant {
    // The kernel's minimum.
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
    fn granted_settings_match_the_kernel() {
        // In a thread of its own, which ends with its priority.
        std::thread::spawn(|| {
            let request = Request { fifo_priority: Some(1), lock_memory: false };
            let scheduling = ask(&request);
            // SAFETY: 0 is the calling thread; no memory is touched.
            let policy = unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK;
            assert_eq!(policy == libc::SCHED_FIFO, scheduling.fifo == Grant::Granted);
            // SAFETY: PR_GET_TIMERSLACK takes nothing and touches no memory of ours.
            let slack = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
            // A real-time thread has no slack.
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
    fn refusal_names_the_call_and_falls_back_to_a_slice() {
        std::thread::spawn(|| {
            let scheduling = ask(&Request { fifo_priority: Some(200), lock_memory: false });
            // Kernels without slices ignore the attribute.
            assert_eq!(scheduling.short_slice, Grant::Granted);
            let text = scheduling.to_string();
            assert!(text.contains("refused (sched_setscheduler(SCHED_FIFO): Invalid"), "{text}");
        })
        .join()
        .expect("the thread's own assertions hold");
    }
}
