//! Names that need no lookup, and the search list for others.

use hickory_resolver::proto::rr::Name;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// The addresses of `name` where no server is queried: those of a literal address, and the
/// loopback addresses for `localhost` and all below it (RFC 6761, section 6.3).
pub(crate) fn without_lookup(name: &str) -> Option<Arc<[IpAddr]>> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Some([address].into());
    }
    let last = name.strip_suffix('.').unwrap_or(name).rsplit('.').next()?;
    let loopback: [IpAddr; 2] = [Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()];
    last.eq_ignore_ascii_case("localhost").then(|| loopback.into())
}

/// The names that are looked up in turn for `name`, until one has addresses: the search list as
/// in resolv.conf(5). A name with fewer than `ndots` dots is tried as it is at last, others at
/// first; one with a dot at its end is tried as it is alone. Empty when `name` is none.
pub(crate) fn candidates(name: &str, search: &[Name], ndots: usize) -> Vec<Name> {
    let Ok(plain) = Name::from_ascii(name) else { return Vec::new() };
    let mut absolute = plain.clone();
    absolute.set_fqdn(true);
    if plain.is_fqdn() {
        return vec![absolute];
    }
    let dots = name.bytes().filter(|&byte| byte == b'.').count();
    // A name that is too long with a domain behind it is not one.
    let searched = search.iter().filter_map(|domain| {
        let mut name = plain.clone().append_domain(domain).ok()?;
        name.set_fqdn(true);
        Some(name)
    });
    let mut names: Vec<Name> = searched.collect();
    names.insert(if dots >= ndots { 0 } else { names.len() }, absolute);
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_localhost_need_no_server() {
        let known = |name| {
            let known = without_lookup(name);
            known.map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        };
        for (name, addresses) in [
            ("192.0.2.7", "192.0.2.7"),
            ("2001:db8::7", "2001:db8::7"),
            ("localhost", "::1 127.0.0.1"),
            ("LocalHost.", "::1 127.0.0.1"),
            ("printer.localhost", "::1 127.0.0.1"),
        ] {
            assert_eq!(known(name).as_deref(), Some(addresses), "{name}");
        }
        // No short forms of addresses, which a policy by name would not recognise.
        for name in ["localhost.example", "notlocalhost", "127.1", "0x7f000001", ""] {
            assert_eq!(known(name), None, "{name}");
        }
    }

    #[test]
    fn the_search_list_comes_before_or_after_the_name_itself() {
        let search = ["lan", "example.org"].map(|name| Name::from_ascii(name).unwrap());
        let names = |name: &str, ndots| {
            let all = candidates(name, &search, ndots);
            all.iter().map(Name::to_ascii).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names("nas", 1), "nas.lan. nas.example.org. nas.");
        assert_eq!(names("www.net", 1), "www.net. www.net.lan. www.net.example.org.");
        assert_eq!(names("www.net", 2), "www.net.lan. www.net.example.org. www.net.");
        assert_eq!(names("nas.", 1), "nas.");
        assert_eq!(names("_dmarc.a_b.net.", 1), "_dmarc.a_b.net.");
        assert_eq!(names(&"x".repeat(64), 1), "");
        assert_eq!(names("a..b", 1), "");
        let long = ["abcdefghi."; 25].concat();
        let long = long.trim_end_matches('.');
        assert_eq!(candidates(long, &search, 1).len(), 2, "{long}.example.org is too long");
    }
}
