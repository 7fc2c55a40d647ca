//! A TUN interface: one IP packet per call.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

/// A TUN interface; it is removed when this is dropped.
#[derive(Debug)]
pub struct Tun {
    file: File,
    name: String,
}

impl Tun {
    /// Creates an interface `name` in the thread's network namespace; it is down, without
    /// addresses, and its calls do not block.
    ///
    /// # Errors
    /// `EPERM` without `CAP_NET_ADMIN`; `EBUSY` if the name is in use; `ENOENT` or `EACCES` without
    /// access to `/dev/net/tun`.
    pub fn open(name: &str) -> io::Result<Self> {
        if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains(['/', '%', '\0']) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a name for an interface"));
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open("/dev/net/tun")?;
        // SAFETY: all zeros are an `ifreq`.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: `request` is valid for reads and writes while the call lasts.
        if unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { file, name: name.to_owned() })
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads the next packet that the kernel sends through the interface; returns its length.
    ///
    /// # Errors
    /// `WouldBlock` if there is none.
    pub fn receive(&self, packet: &mut [u8]) -> io::Result<usize> {
        (&self.file).read(packet)
    }

    /// Passes a packet to the kernel as received by the interface.
    ///
    /// # Errors
    /// `WouldBlock` if the queue is full; `EINVAL` if it is no IP packet.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        (&self.file).write(packet).map(drop)
    }
}

impl AsRawFd for Tun {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::Netlink;

    #[test]
    fn invalid_name_is_rejected() {
        for name in ["", "sixteen-letters-", "a/b", "tun%d"] {
            assert_eq!(Tun::open(name).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn packets_pass_if_permitted() {
        let name = format!("bp{}", std::process::id());
        let tun = match Tun::open(&name) {
            Ok(tun) => tun,
            Err(error) => {
                eprintln!("skipped: /dev/net/tun: {error}");
                return;
            }
        };
        assert_eq!(tun.name(), name);
        let mut netlink = Netlink::open().unwrap();
        netlink.set_mtu(&name, 1400).unwrap();
        netlink.set_up(&name).unwrap();
        assert_eq!(tun.send(&[0; 20]).unwrap_err().raw_os_error(), Some(libc::EINVAL));
        drop(tun);
        assert!(netlink.link_index(&name).is_err(), "it goes with the descriptor");
    }
}
