//! In network namespaces of their own, where the machine allows them.

use super::*;
use crate::Clock;
use crate::netlink::VethEnd;
use units::Span;

/// Runs `test` with a veth pair `a`, `b` in a fresh network namespace, which ends with its
/// thread; says so when the machine allows none.
fn with_pair(test: impl FnOnce(Netlink) + Send + 'static) {
    let thread = std::thread::spawn(|| {
        // SAFETY: unshare takes no pointers; it changes this thread's namespace only.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            let why = io::Error::last_os_error();
            eprintln!("skipped: unshare(CLONE_NEWNET) was refused: {why}");
            return;
        }
        let mut net = Netlink::open().unwrap();
        net.create_veth(&VethEnd::new("a"), &VethEnd::new("b")).unwrap();
        for name in ["a", "b"] {
            // The kernel's own chatter stays out of the tests.
            crate::netlink::sysctl(&format!("net/ipv6/conf/{name}/disable_ipv6"), "1").unwrap();
            net.set_up(name).unwrap();
        }
        test(net);
    });
    thread.join().expect("the test in the namespace failed");
}

/// Everything that arrives at `socket` until `count` frames have.
fn wait_for(socket: &mut PacketSocket, count: usize) -> Vec<(Option<u64>, Vec<u8>)> {
    let clock = Clock::from_here();
    let mut frames = Vec::new();
    while frames.len() < count && clock.now().as_secs_f64() < 5.0 {
        socket.receive(64, |unix_ns, frame| frames.push((unix_ns, frame))).unwrap();
        clock.sleep_until(clock.now() + Span::from_millis(1));
    }
    frames
}

fn broadcast(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 1]);
    frame.extend(ethertype.to_be_bytes());
    frame.extend(payload);
    frame
}

#[test]
fn frames_cross_whole_stamped_and_only_one_way() {
    with_pair(|_| {
        let mut a = PacketSocket::open("a", &Options::default()).unwrap();
        let mut b = PacketSocket::open("b", &Options::default()).unwrap();
        assert_eq!((a.interface(), a.mtu()), ("a", 1500));
        let sent = [broadcast(0x88b5, &[7; 46]), broadcast(0x0806, &[1; 1500])];
        assert_eq!(a.send(sent.iter().map(Vec::as_slice)).unwrap(), 2);
        let got = wait_for(&mut b, 2);
        assert!(got.iter().map(|(_, frame)| frame).eq(&sent));
        assert!(got.iter().all(|(unix_ns, _)| unix_ns.is_some()));
        // Its own frames are not its input.
        assert_eq!(a.receive(64, |_, _| ()).unwrap(), 0);
        assert_eq!(b.kernel_counts(), KernelCounts { frames: 2, dropped: 0 });
    });
}

#[test]
fn vlan_tags_survive() {
    with_pair(|_| {
        let a = PacketSocket::open("a", &Options::default()).unwrap();
        let mut b = PacketSocket::open("b", &Options::default()).unwrap();
        let mut tagged = broadcast(0x8100, &[0x60, 0x05]);
        tagged.extend(0x0806u16.to_be_bytes());
        tagged.extend([9; 46]);
        assert_eq!(a.send([tagged.as_slice()].into_iter()).unwrap(), 1);
        assert_eq!(wait_for(&mut b, 1)[0].1, tagged);
    });
}

#[test]
fn checksums_left_to_hardware_are_completed() {
    with_pair(|mut net| {
        net.add_address("a", "10.7.0.1".parse().unwrap(), 24).unwrap();
        let mut b = PacketSocket::open("b", &Options::default()).unwrap();
        // A checksum of its sender's own choosing goes through `a` half-made, for `a` says that
        // it has hardware for it. Broadcast: no answer to a question for the address is needed.
        let udp = std::net::UdpSocket::bind("10.7.0.1:4000").unwrap();
        udp.set_broadcast(true).unwrap();
        udp.send_to(b"checked", "10.7.0.255:4001").unwrap();
        let frame = wait_for(&mut b, 1).remove(0).1;
        let mut again = frame.clone();
        assert!(headers::complete_checksum(&mut again));
        assert_eq!(frame, again);
        assert_ne!(frame[40..42], [0, 0]);
    });
}

#[test]
fn a_frame_of_several_packets_is_an_error_that_says_what_to_do() {
    with_pair(|mut net| {
        net.set_mtu("a", 4000).unwrap();
        let a = PacketSocket::open("a", &Options::default()).unwrap();
        net.set_mtu("b", 1500).unwrap();
        let mut b = PacketSocket::open("b", &Options::default()).unwrap();
        net.set_mtu("b", 4000).unwrap();
        a.send([broadcast(0x0800, &[0; 3000]).as_slice()].into_iter()).unwrap();
        let clock = Clock::from_here();
        let error = loop {
            match b.receive(64, |_, _| panic!("nothing may pass")) {
                Err(error) => break error,
                Ok(_) => assert!(clock.now().as_secs_f64() < 5.0, "the frame did not arrive"),
            }
        };
        let text = error.to_string();
        assert!(matches!(error, PacketError::Oversized { len: 3014, limit: 1518, .. }), "{text}");
        assert!(text.contains("b handed on") && text.contains("ethtool -K"), "{text}");
    });
}

#[test]
fn an_interface_with_addresses_is_remarked_upon() {
    with_pair(|mut net| {
        let notes = |name: &str| {
            let socket = PacketSocket::open(name, &Options::default()).unwrap();
            socket.notes().iter().filter(|note| note.contains("address")).cloned().collect()
        };
        assert_eq!(notes("a"), Vec::<String>::new());
        net.add_address("a", "10.7.0.1".parse().unwrap(), 24).unwrap();
        crate::netlink::sysctl("net/ipv6/conf/a/disable_ipv6", "0").unwrap();
        net.add_address("a", "fd00:7::1".parse().unwrap(), 64).unwrap();
        let notes: Vec<String> = notes("a");
        assert!(notes.len() == 2 && notes[0].contains("10.7.0.1"), "{notes:?}");
        assert!(notes[1].contains("fd00:7::1:"), "{notes:?}");
    });
}

#[test]
fn refusals_name_the_interface() {
    with_pair(|_| {
        let text = PacketSocket::open("nowhere", &Options::default()).err().unwrap().to_string();
        assert!(text.contains("nowhere"), "{text}");
        let text = PacketSocket::open("lo", &Options::default()).err().unwrap().to_string();
        assert!(text.contains("lo is not an Ethernet interface"), "{text}");
    });
}
