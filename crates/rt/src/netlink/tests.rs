//! In a thread with a network namespace of its own, if permitted.

use super::*;
use std::net::{TcpListener, TcpStream, UdpSocket};

/// Runs `test` in a new network namespace; prints a message if that is not permitted.
fn in_fresh_namespace(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::spawn(|| {
        // SAFETY: unshare takes no pointers; it changes this thread's namespace only.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            let why = io::Error::last_os_error();
            eprintln!("skipped: unshare(CLONE_NEWNET) was refused: {why}");
            return;
        }
        test();
    });
    thread.join().expect("the test in the namespace failed");
}

#[test]
fn a_veth_pair_carries_both_address_families() {
    in_fresh_namespace(|| {
        let mut net = Netlink::open().unwrap();
        net.set_up("lo").unwrap();
        net.create_veth(&VethEnd { mtu: Some(1400), ..VethEnd::new("a") }, &VethEnd::new("b"))
            .unwrap();
        for name in ["a", "b"] {
            net.disable_offloads(name).unwrap();
            net.set_up(name).unwrap();
        }
        net.set_mtu("b", 1400).unwrap();
        for (text, prefix) in [("10.1.0.1", 24), ("fd00:1::1", 64)] {
            let address: IpAddr = text.parse().unwrap();
            net.add_address("a", address, prefix).unwrap();
            net.await_address(address).unwrap();
            let listener = TcpListener::bind((address, 0)).unwrap();
            TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        }
        net.add_neighbour("a", "10.1.0.2".parse().unwrap(), [2, 0, 0, 0, 0, 2]).unwrap();
        net.add_neighbour("a", "fd00:1::2".parse().unwrap(), [2, 0, 0, 0, 0, 2]).unwrap();
        // The kernel already has a neighbour entry for this destination.
        let asked = UdpSocket::bind("10.1.0.1:0").unwrap();
        asked.send_to(b"?", "10.1.0.3:9").unwrap();
        net.add_neighbour("a", "10.1.0.3".parse().unwrap(), [2, 0, 0, 0, 0, 3]).unwrap();
        net.delete_link("a").unwrap();
        assert!(matches!(net.link_index("b"), Err(NetlinkError::NoSuchLink(_))));
    });
}

#[test]
fn addresses_are_local_while_assigned() {
    in_fresh_namespace(|| {
        let mut net = Netlink::open().unwrap();
        let own = |address: &str, net: &mut Netlink| net.is_own(address.parse().unwrap()).unwrap();
        assert!(!own("10.1.0.1", &mut net), "without any route");
        net.set_up("lo").unwrap();
        assert!(own("127.0.0.2", &mut net) && own("::1", &mut net));
        net.create_veth(&VethEnd::new("a"), &VethEnd::new("b")).unwrap();
        net.set_up("a").unwrap();
        net.set_up("b").unwrap();
        net.add_address("a", "10.1.0.1".parse().unwrap(), 24).unwrap();
        assert!(own("10.1.0.1", &mut net) && own("10.1.0.255", &mut net));
        assert!(!own("10.1.0.2", &mut net) && !own("192.0.2.1", &mut net));
        let any = Route::local_default("10.7.0.0".parse().unwrap(), 254);
        net.add_route(&any).unwrap();
        assert!(own("192.0.2.1", &mut net), "by a route, without an address");
        net.delete_route(&any).unwrap();
        net.delete_link("a").unwrap();
        assert!(!own("10.1.0.1", &mut net));
    });
}

#[test]
fn routes_and_rules_are_added_and_removed() {
    in_fresh_namespace(|| {
        let mut net = Netlink::open().unwrap();
        net.set_up("lo").unwrap();
        net.create_veth(&VethEnd::new("a"), &VethEnd::new("b")).unwrap();
        net.set_up("a").unwrap();
        net.set_up("b").unwrap();
        net.add_address("a", "10.1.0.1".parse().unwrap(), 24).unwrap();
        net.add_address("a", "fd00:1::1".parse().unwrap(), 64).unwrap();

        let mut far = Route::to("10.9.0.0".parse().unwrap(), 16).via("10.1.0.2".parse().unwrap());
        far.congestion_control = Some("reno".to_owned());
        far.initial_cwnd = Some(32);
        far.initial_rwnd = Some(64);
        let six = Route::default_v6("fd00:1::2".parse().unwrap());
        let local4 = Route::local_default("10.0.0.0".parse().unwrap(), 4242);
        let local6 = Route::local_default("fd00::".parse().unwrap(), 4242);
        for route in [&far, &six, &local4, &local6] {
            net.add_route(route).unwrap();
            let twice = net.add_route(route).unwrap_err();
            assert_eq!(twice.errno(), Some(libc::EEXIST), "{twice}");
            net.delete_route(route).unwrap();
            net.delete_route(route).unwrap_err();
        }
        for v6 in [false, true] {
            let rule = MarkRule { v6, mark: 0x42, mask: 0xff, table: 4242, priority: 100 };
            net.add_rule(&rule).unwrap();
            net.delete_rule(&rule).unwrap();
            net.delete_rule(&rule).unwrap_err();
        }
    });
}

#[test]
fn errors_name_the_call_and_the_errno() {
    in_fresh_namespace(|| {
        let mut net = Netlink::open().unwrap();
        let gateway = Route::default_v4("10.1.0.2".parse().unwrap());
        let error = net.add_route(&gateway).unwrap_err();
        assert_eq!(error.errno(), Some(libc::ENETUNREACH));
        let text = error.to_string();
        assert!(text.contains("RTM_NEWROUTE (0.0.0.0/0 via 10.1.0.2)"), "{text}");
        assert!(matches!(net.set_up("absent"), Err(NetlinkError::NoSuchLink(_))));
        let text = sysctl("net.ipv4.no_such_key", "1").unwrap_err().to_string();
        assert!(text.contains("/proc/sys/net/ipv4/no_such_key"), "{text}");
    });
}

#[test]
fn sysctls_are_those_of_the_namespace() {
    let outside = std::fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap();
    in_fresh_namespace(|| {
        for value in ["1", "0"] {
            sysctl("net.ipv4.ip_forward", value).unwrap();
            let seen = std::fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap();
            assert_eq!(seen.trim(), value);
        }
    });
    assert_eq!(std::fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap(), outside);
}

#[test]
fn reverse_path_filter_is_disabled() {
    in_fresh_namespace(|| {
        let mut net = Netlink::open().unwrap();
        let is = || {
            let text = std::fs::read_to_string("/proc/sys/net/ipv4/conf/lo/rp_filter").unwrap();
            text.trim().to_owned()
        };
        for (how, value) in
            [(ReversePath::Loose, "2"), (ReversePath::Strict, "1"), (ReversePath::Off, "0")]
        {
            net.set_reverse_path("lo", how).unwrap();
            assert_eq!(is(), value);
        }
        assert!(net.set_reverse_path("nosuch0", ReversePath::Off).is_err());
    });
}
