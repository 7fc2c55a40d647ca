//! Small things about sockets that both packet and UDP sockets want.

use std::io;
use std::os::fd::RawFd;

/// Asks for a receive buffer of `bytes`, past the machine's limit where that is allowed; returns
/// what was granted, without the kernel's doubling.
pub(crate) fn receive_buffer(fd: RawFd, bytes: usize) -> usize {
    buffer(fd, bytes, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF)
}

/// As [`receive_buffer`], for what is on its way out.
pub(crate) fn send_buffer(fd: RawFd, bytes: usize) -> usize {
    buffer(fd, bytes, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)
}

fn buffer(fd: RawFd, bytes: usize, forced: i32, plain: i32) -> usize {
    let wanted = i32::try_from(bytes).unwrap_or(i32::MAX / 2);
    if set_number(fd, libc::SOL_SOCKET, forced, wanted).is_err() {
        // Cut down to the limit silently; what was granted is read below.
        let _ = set_number(fd, libc::SOL_SOCKET, plain, wanted);
    }
    number(fd, libc::SOL_SOCKET, plain).map_or(0, |granted| granted as usize / 2)
}

/// Sets a socket option that is a number.
pub(crate) fn set_number(fd: RawFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    let len = size_of::<i32>() as libc::socklen_t;
    // SAFETY: `value` is `len` bytes that outlive the call.
    let status = unsafe { libc::setsockopt(fd, level, name, (&raw const value).cast(), len) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn number(fd: RawFd, level: i32, name: i32) -> io::Result<i32> {
    let mut value = 0i32;
    let mut len = size_of::<i32>() as libc::socklen_t;
    // SAFETY: `value` and `len` are valid to write to and agree in size.
    let status =
        unsafe { libc::getsockopt(fd, level, name, (&raw mut value).cast(), &raw mut len) };
    if status == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

/// Datagrams that the kernel dropped at this socket because nobody read them in time.
pub(crate) fn dropped(fd: RawFd) -> u64 {
    // `SK_MEMINFO_DROPS` of `linux/sock_diag.h` is the last of nine numbers.
    let mut memory = [0u32; 9];
    let mut len = size_of_val(&memory) as libc::socklen_t;
    const SO_MEMINFO: i32 = 55;
    // SAFETY: `memory` and `len` are valid to write to and agree in size.
    let status = unsafe {
        libc::getsockopt(fd, libc::SOL_SOCKET, SO_MEMINFO, memory.as_mut_ptr().cast(), &raw mut len)
    };
    if status == 0 { u64::from(memory[8]) } else { 0 }
}
