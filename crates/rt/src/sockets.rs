//! Socket options of packet and UDP sockets.

use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::RawFd;

/// Requests a receive buffer of `bytes`, above the system's limit if permitted; returns the granted
/// size without the kernel's doubling.
pub(crate) fn receive_buffer(fd: RawFd, bytes: usize) -> usize {
    buffer(fd, bytes, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF)
}

/// As [`receive_buffer`], for the send buffer.
pub(crate) fn send_buffer(fd: RawFd, bytes: usize) -> usize {
    buffer(fd, bytes, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)
}

fn buffer(fd: RawFd, bytes: usize, forced: i32, plain: i32) -> usize {
    let wanted = i32::try_from(bytes).unwrap_or(i32::MAX / 2);
    if set_number(fd, libc::SOL_SOCKET, forced, wanted).is_err() {
        // The kernel reduces it to the limit silently; the granted size is read below.
        let _ = set_number(fd, libc::SOL_SOCKET, plain, wanted);
    }
    number(fd, libc::SOL_SOCKET, plain).map_or(0, |granted| granted as usize / 2)
}

/// Sets a numeric socket option.
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

/// Datagrams dropped by the kernel at this socket because they were not read in time.
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

/// The IP addresses of `interface` in the calling thread's network namespace, without IPv6
/// link-local ones.
pub(crate) fn addresses(interface: &str) -> Vec<IpAddr> {
    let mut first = std::ptr::null_mut();
    // SAFETY: `first` is valid to write to.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut next: *const libc::ifaddrs = first;
    // SAFETY: the list that getifaddrs made is valid until it is freed, and ends with null.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        // SAFETY: every entry has a name that ends with zero.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) };
        // SAFETY: an entry's address is null, or a sockaddr of the length that its family has.
        let address = unsafe { ip_address(entry.ifa_addr) };
        if name.to_bytes() == interface.as_bytes() {
            found.extend(address.filter(|address| !is_link_local(*address)));
        }
    }
    // SAFETY: this is the list's one end, and nothing of it is kept.
    unsafe { libc::freeifaddrs(first) };
    found
}

fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

/// # Safety
/// `address` is null, or leads to a socket address of the length that its family has.
unsafe fn ip_address(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: the caller's promise.
    let family = unsafe { address.as_ref() }?.sa_family;
    match i32::from(family) {
        libc::AF_INET => {
            // SAFETY: the caller's promise, for this family.
            let v4 = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: the caller's promise, for this family.
            let v6 = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}
