//! Hosts: network namespaces that are kept alive by a descriptor.

use crate::TestbedError;
use rt::netlink::{Netlink, NetlinkError};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::thread::{self, JoinHandle};

/// A network namespace with a name for messages.
///
/// It has no name in the file system, so that nothing remains when the process ends.
#[derive(Debug)]
pub struct Host {
    name: String,
    namespace: OwnedFd,
}

impl Host {
    /// A new host with the interface `lo`, which is up.
    ///
    /// # Errors
    /// If the kernel refuses a namespace; see [`crate::permission`].
    pub fn new(name: &str) -> Result<Self, TestbedError> {
        let made = thread::Builder::new()
            .name(format!("{name}: namespace"))
            .spawn(make_namespace)
            .map_err(|source| TestbedError::refused("clone (a thread)", source))?;
        let namespace = made.join().expect("making a namespace does not panic")?;
        let host = Self { name: name.to_owned(), namespace };
        host.configure(|net| net.set_up("lo"))?;
        Ok(host)
    }

    /// The host's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The descriptor of the namespace.
    pub fn namespace(&self) -> BorrowedFd<'_> {
        self.namespace.as_fd()
    }

    /// Runs `work` on this host in a thread of its own, and waits for it. A panic in `work` is
    /// propagated.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let fd = self.namespace.as_raw_fd();
        thread::scope(|scope| {
            let task = thread::Builder::new()
                .name(format!("{}: task", self.name))
                .spawn_scoped(scope, move || {
                    enter(fd).expect("a namespace that was made can be entered");
                    work()
                })
                .expect("the machine has room for one more thread");
            task.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Starts `work` on this host in a thread of its own.
    ///
    /// # Panics
    /// If a thread cannot be created.
    pub fn spawn<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let namespace = self.namespace.try_clone().expect("the process has a free descriptor");
        thread::Builder::new()
            .name(format!("{}: {name}", self.name))
            .spawn(move || {
                enter(namespace.as_raw_fd()).expect("a namespace that was made can be entered");
                work()
            })
            .expect("the machine has room for one more thread")
    }

    /// Starts a program on this host. It is killed when the [`Process`] is dropped, and when the
    /// *thread* that called this ends: PR_SET_PDEATHSIG refers to the thread.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn start(&self, mut command: Command) -> Result<Process, TestbedError> {
        let fd = self.namespace.as_raw_fd();
        // SAFETY: between fork and exec the closure makes one system call only.
        unsafe { command.pre_exec(move || enter(fd)) };
        Process::start(command)
    }

    /// Changes the host's network configuration.
    pub(crate) fn configure<T: Send>(
        &self,
        work: impl FnOnce(&mut Netlink) -> Result<T, NetlinkError> + Send,
    ) -> Result<T, TestbedError> {
        self.run(|| work(&mut Netlink::open()?))
            .map_err(|source| TestbedError::Configuration { host: self.name.clone(), source })
    }
}

/// A program on a host; dropping this kills it.
#[derive(Debug)]
pub struct Process {
    child: Child,
}

impl Process {
    /// Starts a program in the current namespace, which is killed like those of [`Host::start`].
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn start(mut command: Command) -> Result<Self, TestbedError> {
        let parent = std::process::id();
        // SAFETY: between fork and exec the closure makes system calls only.
        unsafe { command.pre_exec(move || die_with_parent(parent)) };
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command
            .spawn()
            .map_err(|source| TestbedError::refused(format!("exec of {program}"), source))?;
        Ok(Self { child })
    }

    /// The program's standard streams and process number.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Asks the program to end (SIGTERM).
    pub fn terminate(&self) {
        // SAFETY: kill takes no pointers. The child has not been waited for, so the number is
        // still its own.
        unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGTERM) };
    }

    /// Waits until the program ends.
    ///
    /// # Errors
    /// The error of `wait`.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }

    /// Whether the program has ended.
    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)) | Err(_))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.has_ended() {
            // It has ended or is about to: errors here cannot be handled.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn make_namespace() -> Result<OwnedFd, TestbedError> {
    // SAFETY: unshare takes no pointers; it changes the calling thread's namespace only.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(TestbedError::last("unshare(CLONE_NEWNET)"));
    }
    let path = "/proc/thread-self/ns/net";
    File::open(path)
        .map(OwnedFd::from)
        .map_err(|source| TestbedError::refused(format!("open({path})"), source))
}

/// Moves the calling thread into a namespace.
fn enter(namespace: RawFd) -> io::Result<()> {
    // SAFETY: setns takes no pointers.
    match unsafe { libc::setns(namespace, libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes the kernel kill this process when the thread that started it ends.
fn die_with_parent(parent: u32) -> io::Result<()> {
    // SAFETY: neither call takes pointers.
    let (status, now) =
        unsafe { (libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL), libc::getppid()) };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    if now as u32 == parent { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
}
