//! Offloads, by the ioctl that every kernel has.

use super::NetlinkError;
use std::io;
use std::os::fd::AsRawFd;

/// `SIOCETHTOOL` of `linux/sockios.h`.
const SIOCETHTOOL: libc::c_ulong = 0x8946;

/// The legacy setters of `linux/ethtool.h`. Segmentation goes before what it depends on.
const FEATURES: [(u32, &str); 6] = [
    (0x1f, "ETHTOOL_STSO"),
    (0x24, "ETHTOOL_SGSO"),
    (0x2c, "ETHTOOL_SGRO"),
    (0x19, "ETHTOOL_SSG"),
    (0x17, "ETHTOOL_STXCSUM"),
    (0x15, "ETHTOOL_SRXCSUM"),
];

/// `struct ethtool_value`.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// Any socket of the namespace will do for interface ioctls.
pub(super) fn control_socket() -> Result<socket2::Socket, NetlinkError> {
    socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None)
        .map_err(|source| NetlinkError::refused("socket(AF_INET, SOCK_DGRAM)", source))
}

pub(super) fn disable_offloads(control: &socket2::Socket, name: &str) -> Result<(), NetlinkError> {
    for (command, word) in FEATURES {
        set(control, name, EthtoolValue { command, data: 0 })
            .or_else(|error| match error.raw_os_error() {
                Some(libc::EOPNOTSUPP) => Ok(()),
                _ => Err(error),
            })
            .map_err(|source| {
                NetlinkError::refused(format!("ioctl SIOCETHTOOL {word} ({name} off)"), source)
            })?;
    }
    Ok(())
}

fn set(control: &socket2::Socket, name: &str, mut value: EthtoolValue) -> io::Result<()> {
    // SAFETY: an `ifreq` of zero bytes is a valid one.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the request is a full `ifreq` whose data points at an `ethtool_value`, which is
    // what these commands read; both outlive the call.
    let result = unsafe { libc::ioctl(control.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
