//! Dropping of root privileges.
//!
//! systemd does this better, before the gateway starts. Without it, a gateway that was started by
//! root switches with `user = "bentpipe"` to that user, and keeps only the capabilities that its
//! configuration needs.

use crate::{Config, Role, SourceMode};
use caps::{CapSet, Capability, CapsHashSet};
use nix::unistd::{Uid, User};
use std::ffi::CString;
use std::io;

/// Errors of dropping privileges.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrivilegeError {
    /// The user does not exist.
    #[error("user: found {0:?}, expected the name of a user of this system")]
    NoUser(String),
    /// Only root can switch to another user.
    #[error("user: only root can switch to {0:?}; start as root, or remove the key")]
    NotRoot(String),
    /// A call of the kernel or of the user database failed.
    #[error("user: {call}: {source}")]
    Refused {
        /// The call.
        call: &'static str,
        /// Its error.
        source: io::Error,
    },
}

/// Returns the capabilities that `config` needs, and what for.
pub(crate) fn needed(config: &Config) -> Vec<(Capability, &'static str)> {
    let mut needed = Vec::new();
    let mut ports: Vec<u16> =
        config.effective_paths().iter().map(|path| path.link.listen.port()).collect();
    match &config.role {
        Role::Terminal(section) => {
            if section.intercept.is_some() {
                needed.push((Capability::CAP_NET_ADMIN, "[intercept]"));
                let what = match section.accept.confirms_intercepted() {
                    true => "accept = \"confirm\" in [intercept]",
                    false => "refusals before accept in [intercept]",
                };
                needed.push((Capability::CAP_NET_RAW, what));
            }
            let proxies = section.socks5.iter().chain(&section.connect);
            let dns = section.dns.iter().flat_map(|dns| &dns.listen);
            ports.extend(proxies.chain(dns).map(std::net::SocketAddr::port));
        }
        Role::Single(_) => needed.push((Capability::CAP_NET_ADMIN, "[single]")),
        Role::Hub(section) => {
            ports.extend(section.tls.iter().map(|tls| tls.listen.port()));
            if section.source == SourceMode::Client {
                needed.push((Capability::CAP_NET_ADMIN, "hub.source"));
            }
        }
    }
    if config.forward.is_some() {
        needed.push((Capability::CAP_NET_ADMIN, "[forward]"));
    }
    ports.extend(config.metrics.map(|address| address.port()));
    if ports.iter().any(|port| (1..1024).contains(port)) {
        needed.push((Capability::CAP_NET_BIND_SERVICE, "a port below 1024"));
    }
    needed
}

/// Switches to the user of the configuration, if there is one, and sets `no_new_privs`. To be
/// called before any thread is started and any socket is opened.
///
/// # Errors
/// When there is no such user, or this process may not switch to it.
pub fn give_up_privileges(config: &Config) -> Result<(), PrivilegeError> {
    // SAFETY: prctl with these arguments touches no memory.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        tracing::debug!(error = %io::Error::last_os_error(), "PR_SET_NO_NEW_PRIVS");
    }
    let Some(name) = &config.user else {
        if Uid::effective().is_root() {
            tracing::info!("running as root; set `user` in the configuration to drop privileges");
        }
        return Ok(());
    };
    let found = User::from_name(name).map_err(|errno| refused("getpwnam_r", errno))?;
    let user = found.ok_or_else(|| PrivilegeError::NoUser(name.clone()))?;
    if Uid::effective() == user.uid {
        return Ok(());
    }
    if !Uid::effective().is_root() {
        return Err(PrivilegeError::NotRoot(name.clone()));
    }
    let kept: CapsHashSet = needed(config).into_iter().map(|(capability, _)| capability).collect();
    become_user(&user, &kept)?;
    tracing::info!(user = name, ?kept, "root privileges dropped");
    Ok(())
}

fn become_user(user: &User, kept: &CapsHashSet) -> Result<(), PrivilegeError> {
    let capabilities = |call| {
        move |error: caps::errors::CapsError| {
            let source = io::Error::other(error.to_string());
            PrivilegeError::Refused { call, source }
        }
    };
    let all = caps::read(None, CapSet::Bounding).map_err(capabilities("capabilities"))?;
    for &capability in all.difference(kept) {
        let dropped = caps::drop(None, CapSet::Bounding, capability);
        dropped.map_err(capabilities("PR_CAPBSET_DROP"))?;
    }
    caps::securebits::set_keepcaps(true).map_err(capabilities("PR_SET_KEEPCAPS"))?;
    let name = CString::new(user.name.as_str()).map_err(|error| PrivilegeError::Refused {
        call: "the user's name",
        source: io::Error::other(error),
    })?;
    nix::unistd::initgroups(&name, user.gid).map_err(|errno| refused("initgroups", errno))?;
    let (group, uid) = (user.gid, user.uid);
    nix::unistd::setresgid(group, group, group).map_err(|errno| refused("setresgid", errno))?;
    nix::unistd::setresuid(uid, uid, uid).map_err(|errno| refused("setresuid", errno))?;
    for set in [CapSet::Effective, CapSet::Inheritable] {
        caps::clear(None, set).map_err(capabilities("capset"))?;
    }
    caps::set(None, CapSet::Permitted, kept).map_err(capabilities("capset"))?;
    caps::set(None, CapSet::Effective, kept).map_err(capabilities("capset"))
}

/// Returns the names of the capabilities that `config` needs, for a service manager.
pub fn capabilities(config: &Config) -> Vec<String> {
    let mut names: Vec<String> = needed(config).iter().map(|(one, _)| one.to_string()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Capabilities of root for files of other users.
const FILES: [Capability; 3] =
    [Capability::CAP_DAC_OVERRIDE, Capability::CAP_DAC_READ_SEARCH, Capability::CAP_FOWNER];

/// Drops the capabilities that `config` does not need from this thread and those that it starts. To
/// be called after opening sockets whose buffers need a privilege, and before reading any octet
/// from the network.
pub(crate) fn drop_unneeded(config: &Config) {
    let mut kept: CapsHashSet = needed(config).into_iter().map(|(one, _)| one).collect();
    // Binding to an interface again needs it before Linux 5.7.
    if config.effective_paths().iter().any(|path| path.interface.is_some()) {
        kept.insert(Capability::CAP_NET_RAW);
    }
    if Uid::effective().is_root() {
        kept.extend(FILES);
    }
    if let Err(error) = keep_only(&kept) {
        tracing::warn!(%error, "unneeded capabilities not dropped");
    }
}

/// Lets a program that this process starts have the same capabilities.
pub(crate) fn keep_over_exec() {
    let kept = caps::read(None, CapSet::Permitted).and_then(|kept| {
        caps::set(None, CapSet::Inheritable, &kept)?;
        kept.into_iter().try_for_each(|one| caps::raise(None, CapSet::Ambient, one))
    });
    if let Err(error) = kept {
        tracing::debug!(%error, "capabilities not passed to another program");
    }
}

/// Drops every capability of this thread, which needs none.
pub(crate) fn drop_all_of_thread() {
    if let Err(error) = keep_only(&CapsHashSet::new()) {
        tracing::debug!(%error, "capabilities of a thread not dropped");
    }
}

fn keep_only(kept: &CapsHashSet) -> Result<(), caps::errors::CapsError> {
    let mut sets = vec![CapSet::Ambient];
    // Only root can change the bounding set; `no_new_privs` has the same effect for others.
    if caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP)? {
        sets.push(CapSet::Bounding);
    }
    for set in sets {
        for &capability in caps::read(None, set)?.difference(kept) {
            caps::drop(None, set, capability)?;
        }
    }
    for set in [CapSet::Effective, CapSet::Inheritable, CapSet::Permitted] {
        let left = caps::read(None, set)?.intersection(kept).copied().collect();
        caps::set(None, set, &left)?;
    }
    Ok(())
}

fn refused(call: &'static str, errno: nix::Error) -> PrivilegeError {
    PrivilegeError::Refused { call, source: io::Error::from(errno) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(text: &str) -> Vec<&'static str> {
        let config = Config::parse("test.toml", text).unwrap_or_else(|error| panic!("{error}"));
        needed(&config).into_iter().map(|(_, what)| what).collect()
    }

    #[test]
    fn only_configured_functions_need_privileges() {
        let terminal = "role = \"terminal\"\nsecurity = \"none\"\n\
                        [link]\npeer = \"192.0.2.1:7000\"\n";
        let socks = |port| format!("{terminal}[socks5]\nlisten = \"127.0.0.1:{port}\"\n");
        assert_eq!(needs(&socks(1080)), [""; 0]);
        assert_eq!(needs(&socks(80)), ["a port below 1024"]);
        let intercept = format!("{terminal}[intercept]\ninterfaces = [\"lan0\"]\n");
        assert_eq!(needs(&intercept), ["[intercept]", "refusals before accept in [intercept]"]);
        let confirm = format!("accept = \"confirm\"\n{intercept}");
        assert_eq!(needs(&confirm), ["[intercept]", "accept = \"confirm\" in [intercept]"]);
        let forward = format!("{}[forward]\ninterfaces = [\"lan0\"]\n", socks(1080));
        assert_eq!(needs(&forward), ["[forward]"]);
        let hub = "role = \"hub\"\nsecurity = \"none\"\n[link]\nlisten = \"127.0.0.1:500\"\n\
                   [hub]\nsource = \"client\"\nclients = [\"10.1.0.0/16\"]\n";
        assert_eq!(needs(hub), ["hub.source", "a port below 1024"]);
    }
}
