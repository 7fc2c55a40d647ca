//! Obtains the rights to create networks, before any thread starts.
//!
//! A successful `unshare` is no proof: some distributions allow it and deny the rights that come
//! with it. A child process therefore creates a veth pair across two namespaces, as the testbed
//! does, and reports errors.

use crate::TestbedError;
use rt::netlink::{Netlink, VethEnd, sysctl};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

/// The source of the rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// The process has them, as root does.
    Own,
    /// A user namespace, in which the process is root from now on.
    UserNamespace,
}

/// Obtains the rights to create networks. Call this before any thread starts: a process with
/// threads cannot enter a user namespace.
///
/// # Errors
/// [`TestbedError::Denied`] with the errors without and with a user namespace.
pub fn acquire() -> Result<Permission, TestbedError> {
    let plain = match in_child(probe) {
        None => return Ok(Permission::Own),
        Some(refusal) => refusal,
    };
    let denied = |user: String| TestbedError::Denied { plain: plain.clone(), user };
    if let Some(user) = in_child(|| {
        enter_user_namespace()?;
        probe()
    }) {
        return Err(denied(user));
    }
    enter_user_namespace().map_err(|error| denied(error.to_string()))?;
    Ok(Permission::UserNamespace)
}

/// As [`acquire`] for processes with threads, such as tests: the rights must already be there.
///
/// # Errors
/// The call that was refused.
pub fn check() -> Result<(), TestbedError> {
    let checked = std::thread::spawn(probe).join();
    checked.expect("the probe does not panic")
}

/// Creates a veth pair from one new namespace into another and adds a route over it.
fn probe() -> Result<(), TestbedError> {
    unshare(libc::CLONE_NEWNET, "unshare(CLONE_NEWNET)")?;
    let path = "/proc/thread-self/ns/net";
    let first = File::open(path).map_err(|e| TestbedError::refused(format!("open({path})"), e))?;
    unshare(libc::CLONE_NEWNET, "unshare(CLONE_NEWNET)")?;
    // SAFETY: setns takes no pointers.
    let back =
        |fd: &File| unsafe { libc::setns(std::os::fd::AsRawFd::as_raw_fd(fd), libc::CLONE_NEWNET) };
    let configure = |source| TestbedError::Configuration { host: "probe".to_owned(), source };
    let mut net = Netlink::open().map_err(configure)?;
    let peer = VethEnd::new("probe1").in_namespace(first.as_fd());
    net.create_veth(&VethEnd::new("probe0"), &peer).map_err(configure)?;
    net.disable_offloads("probe0").map_err(configure)?;
    net.set_up("probe0").map_err(configure)?;
    sysctl("net.ipv4.ip_forward", "1").map_err(configure)?;
    if back(&first) != 0 {
        return Err(TestbedError::last("setns(CLONE_NEWNET)"));
    }
    Ok(())
}

fn unshare(flags: libc::c_int, call: &str) -> Result<(), TestbedError> {
    // SAFETY: unshare takes no pointers.
    if unsafe { libc::unshare(flags) } == 0 { Ok(()) } else { Err(TestbedError::last(call)) }
}

/// Becomes root of a new user namespace that owns a new network namespace.
fn enter_user_namespace() -> Result<(), TestbedError> {
    // SAFETY: neither call takes pointers.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET, "unshare(CLONE_NEWUSER | CLONE_NEWNET)")?;
    let files = [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("0 {user} 1")),
        ("/proc/self/gid_map", format!("0 {group} 1")),
    ];
    for (path, text) in files {
        std::fs::write(path, text)
            .map_err(|source| TestbedError::refused(format!("write to {path}"), source))?;
    }
    Ok(())
}

/// Runs `work` in a child process; `None` if it succeeded, otherwise the error as text.
fn in_child(work: impl FnOnce() -> Result<(), TestbedError>) -> Option<String> {
    let mut ends = [0; 2];
    // SAFETY: pipe2 writes two descriptors to the array.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Some(TestbedError::last("pipe2").to_string());
    }
    // SAFETY: both descriptors are new and have no other owner.
    let (read, write) = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
    // SAFETY: the caller has no threads yet, so the child's memory is whole.
    match unsafe { libc::fork() } {
        -1 => Some(TestbedError::last("fork").to_string()),
        0 => {
            let refusal = work().map_or_else(|error| error.to_string(), |()| String::new());
            let written = File::from(write).write_all(refusal.as_bytes()).is_ok();
            let code = i32::from(!(written && refusal.is_empty()));
            // SAFETY: ends the child without running the parent's destructors.
            unsafe { libc::_exit(code) }
        }
        child => {
            drop(write);
            let mut refusal = String::new();
            let heard = File::from(read).read_to_string(&mut refusal);
            outcome(wait_for(child), heard, refusal)
        }
    }
}

fn outcome(status: libc::c_int, heard: io::Result<usize>, refusal: String) -> Option<String> {
    match (status, heard) {
        (0, Ok(_)) if refusal.is_empty() => None,
        (_, Ok(_)) if !refusal.is_empty() => Some(refusal),
        (status, Ok(_)) => Some(format!("the probing process died (status {status})")),
        (_, Err(error)) => Some(format!("the probing process could not be heard: {error}")),
    }
}

fn wait_for(child: libc::pid_t) -> libc::c_int {
    let mut status = 0;
    // SAFETY: `status` is a valid place for one status.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } < 0 {
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return -1;
        }
    }
    status
}
