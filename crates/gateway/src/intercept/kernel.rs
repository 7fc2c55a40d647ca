//! Kernel settings on which an interception depends: read, never changed.

use std::fs;

/// Role of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Terminal,
    Hub,
}

/// Whether this network namespace has IPv6, enabled on `interface`: without it no IPv6 route can
/// lead there.
pub(super) fn has_ipv6(interface: &str) -> bool {
    // The namespace of this thread; `/proc/net` is that of the process's first thread.
    let any = fs::metadata("/proc/thread-self/net/if_inet6").is_ok();
    let off = fs::read_to_string(format!("/proc/sys/net/ipv6/conf/{interface}/disable_ipv6"));
    any && !off.is_ok_and(|value| value.trim() == "1")
}

/// Returns notes for the administrator on settings that impair the interception.
pub(super) fn notes(interfaces: &[String], role: Role) -> Vec<String> {
    notes_from(interfaces, role, |key| {
        let value = fs::read_to_string(format!("/proc/sys/{key}"));
        value.ok().map(|text| text.trim().into())
    })
}

fn notes_from(
    interfaces: &[String],
    role: Role,
    read: impl Fn(&str) -> Option<String>,
) -> Vec<String> {
    let is = |key: &str, value: &str| read(key).as_deref() == Some(value);
    let mut notes = Vec::new();
    if is("net/ipv4/tcp_fwmark_accept", "1") {
        notes.push(
            "net.ipv4.tcp_fwmark_accept is 1: accepted sockets inherit the mark and their answers \
             come back to this host; set it to 0"
                .into(),
        );
    }
    for scope in ["all"].into_iter().chain(interfaces.iter().map(String::as_str)) {
        if is(&format!("net/ipv4/conf/{scope}/src_valid_mark"), "1") {
            notes.push(format!(
                "net.ipv4.conf.{scope}.src_valid_mark is 1: marked packets fail the kernel's \
                 check of their source and are dropped; set it to 0"
            ));
        }
    }
    if role == Role::Terminal {
        for (key, family) in
            [("net/ipv4/ip_forward", "IPv4"), ("net/ipv6/conf/all/forwarding", "IPv6")]
        {
            if is(key, "0") {
                let key = key.replace('/', ".");
                notes.push(format!(
                    "{key} is 0: {family} traffic that is not intercepted is not forwarded"
                ));
            }
        }
    }
    for name in interfaces.iter().filter(|name| !name.ends_with('*')) {
        if read(&format!("net/ipv4/conf/{name}/forwarding")).is_none() {
            notes.push(format!("there is no interface {name:?} yet; the rules wait for it"));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_conflicting_settings_are_reported() {
        let lan = ["lan0".to_string(), "wlan*".to_string()];
        let fine = |key: &str| match key {
            "net/ipv4/tcp_fwmark_accept" | "net/ipv4/conf/all/src_valid_mark" => Some("0".into()),
            "net/ipv4/conf/lan0/forwarding" => Some("1".into()),
            _ => None,
        };
        assert_eq!(notes_from(&lan, Role::Terminal, fine), [""; 0]);
        let bad = |key: &str| match key {
            "net/ipv4/ip_forward" => Some("0".into()),
            key if key.ends_with("lan0/forwarding") => None,
            _ => Some("1".into()),
        };
        let notes = notes_from(&lan, Role::Terminal, bad);
        for word in [
            "tcp_fwmark_accept",
            "conf.all.src_valid_mark",
            "conf.lan0.",
            "ip_forward",
            "no interface \"lan0\"",
        ] {
            assert!(notes.iter().any(|note| note.contains(word)), "{word}: {notes:?}");
        }
        assert!(!notes_from(&lan, Role::Hub, bad).iter().any(|note| note.contains("ip_forward")));
    }
}
