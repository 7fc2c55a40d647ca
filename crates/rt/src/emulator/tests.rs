//! Real sockets and interfaces, in namespaces of their own where privileges are needed. No test
//! depends on speed: they check the result of each packet, and that none is sent early.

use super::summary::{Accounts, End};
use super::*;
use crate::Clock;
use crate::batch::ReceiveBatch;
use crate::netlink::{Netlink, VethEnd};
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::{Block, PcapNgReader};
use satlink::{Admission, Direction, Link, LinkConfig, words};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;
use units::{Instant, Span};

fn link(text: &str) -> LinkConfig {
    words::parse_link(text).unwrap()
}

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("bentpipe-{}-{name}", std::process::id()))
}

/// An emulator in a thread of its own.
struct Running {
    handle: Handle,
    thread: JoinHandle<Result<Summary, EmulatorError>>,
}

impl Running {
    fn start(emulator: Emulator) -> Self {
        let handle = emulator.handle();
        let thread = std::thread::spawn(move || emulator.run(&AtomicBool::new(false)));
        Self { handle, thread }
    }

    fn stop(self) -> Result<Summary, EmulatorError> {
        self.handle.stop();
        self.thread.join().expect("the emulator does not panic")
    }
}

/// A relay of `link` to a target in the test, and a client.
fn relay(
    config: impl FnOnce(&mut EmulatorConfig),
    link: LinkConfig,
) -> (Running, UdpSocket, UdpSocket) {
    let bind = || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        socket
    };
    let (target, client) = (bind(), bind());
    let ports = Ports::UdpRelay {
        listen: "127.0.0.1:0".parse().unwrap(),
        target: target.local_addr().unwrap(),
    };
    let mut settings = EmulatorConfig::new(link, ports);
    config(&mut settings);
    let emulator = Emulator::open(settings).unwrap();
    client.connect(emulator.relay_address().unwrap()).unwrap();
    (Running::start(emulator), client, target)
}

fn balances(accounts: &Accounts) -> bool {
    let out = accounts.delivered.packets + accounts.dropped_in_all() + accounts.held.packets;
    accounts.received == accounts.offered.packets + accounts.out_of_memory
        && accounts.offered.packets + accounts.duplicated.packets == out
        && accounts.delivered.packets == accounts.sent + accounts.send_failed
}

struct Recorded {
    unix_ns: u64,
    inbound: bool,
    payload: Vec<u8>,
}

/// A relay's capture, without the headers.
fn read_capture(path: &Path) -> Vec<Recorded> {
    let mut reader = PcapNgReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(EnhancedPacketBlock { timestamp, data, options, .. }) =
            block.unwrap()
        {
            let inbound = options.contains(&EnhancedPacketOption::Flags(1));
            let unix_ns = timestamp.as_nanos() as u64;
            packets.push(Recorded { unix_ns, inbound, payload: data[28..].to_vec() });
        }
    }
    packets
}

#[test]
fn real_time_run_equals_virtual_time_run() {
    // A full queue, losses, jitter: everything in which the two could differ.
    let config = link("return rate 4mbit limit 20p delay 15ms 3ms loss 10% duplicate 2%");
    let paths = [scratch("replay-a.pcapng"), scratch("replay-b.pcapng")];
    let (running, client, target) = relay(
        |settings| {
            settings.pcap_a = Some(paths[0].clone());
            settings.pcap_b = Some(paths[1].clone());
            settings.seed = 7;
        },
        config.clone(),
    );
    let clock = Clock::from_here();
    let mut reached = Vec::new();
    target.set_nonblocking(true).unwrap();
    let mut collect = || {
        let mut buffer = [0; 2048];
        while let Ok(len) = target.recv(&mut buffer) {
            reached.push(buffer[..len].to_vec());
        }
    };
    for number in 0..600u32 {
        let mut payload = vec![0; 200 + (number as usize * 37) % 1000];
        payload[..4].copy_from_slice(&number.to_be_bytes());
        client.send(&payload).unwrap();
        if number % 40 == 39 {
            clock.sleep_until(clock.now() + Span::from_millis(20));
            collect();
        }
    }
    clock.sleep_until(clock.now() + Span::from_millis(120));
    let summary = running.stop().unwrap();
    collect();
    let accounts = &summary.end.r#return;
    assert!(balances(accounts), "{accounts:?}");
    assert_eq!((accounts.offered.packets, accounts.held.packets), (600, 0));
    assert!(accounts.dropped.contains_key("queue_full") && accounts.dropped.contains_key("loss"));

    let [left, arrived] = [&paths[0], &paths[1]].map(|path| read_capture(path));
    let mut again: Link<Vec<u8>> =
        Link::new(&config, summary.start.seed, summary.start.run).unwrap();
    let mut expected = Vec::new();
    let mut deliver = |again: &mut Link<Vec<u8>>, until: Instant| {
        while let Some(delivery) = again.poll_delivery(until) {
            expected.push((delivery.at, delivery.frame));
        }
    };
    for packet in arrived.iter().filter(|packet| packet.inbound) {
        let at = Instant::from_nanos(packet.unix_ns - summary.start.epoch_unix_ns);
        deliver(&mut again, at);
        // Captures contain the payload; the link also counted 28 octets of headers.
        let mut whole = packet.payload.clone();
        whole.extend([0; 28]);
        match again.offer(at, Direction::Return, whole) {
            Admission::Queued | Admission::Dropped(_, _) => {}
        }
    }
    deliver(&mut again, Instant::FAR_FUTURE);

    // The same packets in the same order, none before its time; and the target has received them.
    let left: Vec<_> = left.into_iter().filter(|packet| !packet.inbound).collect();
    assert_eq!(left.len(), expected.len());
    for (packet, (at, frame)) in left.iter().zip(&expected) {
        assert_eq!(packet.payload, frame[..frame.len() - 28]);
        assert!(packet.unix_ns >= summary.start.epoch_unix_ns + at.as_nanos());
    }
    assert!(left.iter().map(|packet| &packet.payload).eq(&reached));
    paths.iter().for_each(|path| std::fs::remove_file(path).unwrap());
}

#[test]
fn a_relay_serves_several_clients_in_both_directions() {
    let (running, first, target) =
        relay(|settings| settings.log = Some(11), link("delay 2ms forward rate 1mbit"));
    let second = UdpSocket::bind("127.0.0.1:0").unwrap();
    second.connect(first.peer_addr().unwrap()).unwrap();
    second.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut buffer = [0; 64];
    for (client, word) in [(&first, b"one"), (&second, b"two"), (&first, b"six")] {
        client.send(word).unwrap();
        let (len, from) = target.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..len], word);
        target.send_to(&buffer[..len], from).unwrap();
        let len = client.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..len], word);
    }
    let handle = running.handle.clone();
    let summary = running.stop().unwrap();
    let end = &summary.end;
    assert_eq!(handle.counters(Direction::Forward).delivered, end.forward.delivered);
    // The log has each packet's arrival and departure, up to its limit.
    assert_eq!((summary.log.len(), summary.log_omitted), (11, 1));
    let [offered, delivered] = [&summary.log[2], &summary.log[3]];
    assert_eq!((offered.direction, offered.bytes), (Direction::Forward, 31));
    // 31 octets at 1 Mbit/s, and propagation.
    let waited = Span::from_micros(248);
    assert_eq!(delivered.event, LogEvent::Delivered { waited });
    assert_eq!(delivered.at, offered.at + waited + Span::from_millis(2));
    assert_eq!((end.forward.sent, end.r#return.sent), (3, 3));
    // 3 octets each, and the headers of IPv4 and UDP.
    assert_eq!(end.forward.offered.bytes, 3 * 31);
    assert!(balances(&end.forward) && balances(&end.r#return));
}

/// The traffic classes of the next `count` datagrams at `socket`.
fn traffic_classes(socket: &UdpSocket, count: usize) -> Vec<u8> {
    let mut batch = ReceiveBatch::new(8, 2048);
    let clock = Clock::from_here();
    let mut classes = Vec::new();
    while classes.len() < count && clock.now().as_secs_f64() < 5.0 {
        let took = batch.receive(socket.as_raw_fd(), 8).unwrap();
        classes.extend((0..took).filter_map(|index| batch.message(index).beside().traffic_class));
        clock.sleep_until(clock.now() + Span::from_millis(1));
    }
    classes
}

#[test]
fn relay_supports_ipv6_and_forwards_ecn_marks() {
    let Ok(target) = UdpSocket::bind("[::1]:0") else {
        eprintln!("skipped: this machine has no IPv6");
        return;
    };
    socket2::SockRef::from(&target).set_recv_tclass_v6(true).unwrap();
    let path = scratch("six.pcapng");
    let ports = Ports::UdpRelay {
        listen: "[::1]:0".parse().unwrap(),
        target: target.local_addr().unwrap(),
    };
    // RED whose mean stays between its thresholds: 40 packets of 100 octets, weight 0.002.
    let marking = link("return rate 100kbit queue red 1b 400b 100% ecn limit 100000b delay 1ms");
    let mut config = EmulatorConfig::new(marking, ports);
    config.pcap_a = Some(path.clone());
    let emulator = Emulator::open(config).unwrap();
    let client = socket2::Socket::new(socket2::Domain::IPV6, socket2::Type::DGRAM, None).unwrap();
    client.connect(&emulator.relay_address().unwrap().into()).unwrap();
    client.set_tclass_v6(0x02).unwrap();
    let running = Running::start(emulator);
    for _ in 0..40 {
        client.send(&[6; 52]).unwrap();
    }
    let reached = traffic_classes(&target, 40);
    let accounts = running.stop().unwrap().end.r#return;
    assert_eq!(accounts.offered.bytes, 40 * 100);
    assert!(accounts.marked > 0, "{accounts:?}");
    // Packets marked in the link leave with the mark, also in the capture.
    let marks = reached.iter().filter(|&&class| class == 3).count() as u64;
    assert_eq!((marks, reached.len()), (accounts.marked, 40));
    assert!(reached.iter().all(|class| [2, 3].contains(class)));
    let mut reader = PcapNgReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    let mut marked = 0;
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            assert_eq!((packet.data[0] >> 4, packet.data[6], packet.data.len()), (6, 17, 100));
            marked += u64::from(packet.data[1] & 0x30 == 0x30);
        }
    }
    assert_eq!(marked, accounts.marked);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn target_that_starts_late_is_reached() {
    // An address of its own, so that no other test uses the port meanwhile.
    let place = UdpSocket::bind("127.0.0.77:0").unwrap().local_addr().unwrap();
    let ports = Ports::UdpRelay { listen: "127.0.0.1:0".parse().unwrap(), target: place };
    let emulator = Emulator::open(EmulatorConfig::new(link("delay 1ms"), ports)).unwrap();
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(emulator.relay_address().unwrap()).unwrap();
    let running = Running::start(emulator);
    let clock = Clock::from_here();
    for _ in 0..4 {
        client.send(b"nobody there").unwrap();
        clock.sleep_until(clock.now() + Span::from_millis(5));
    }
    let target = UdpSocket::bind(place).unwrap();
    target.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    client.send(b"here").unwrap();
    let mut buffer = [0; 64];
    let len = target.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..len], b"here");
    let end = running.stop().unwrap().end;
    assert_eq!((end.r#return.send_failed, end.kept_up), (0, end.reasons.is_empty()));
}

#[test]
fn commands_change_the_running_link() {
    let (running, client, target) = relay(|_| {}, link("delay 1ms"));
    let mut buffer = [0; 64];
    let mut crosses = |word: &[u8], wait: Duration| {
        target.set_read_timeout(Some(wait)).unwrap();
        client.send(word).unwrap();
        loop {
            match target.recv(&mut buffer) {
                Ok(len) if &buffer[..len] == word => return true,
                Ok(_) => {}
                Err(_) => return false,
            }
        }
    };
    let (long, short) = (Duration::from_secs(5), Duration::from_millis(100));
    assert!(crosses(b"before", long));
    running.handle.line("set return loss 100%").unwrap();
    assert!(!crosses(b"lost", short));
    running.handle.line("set return loss 0%").unwrap();
    assert!(crosses(b"again", long));
    running.handle.line("outage 3600s").unwrap();
    assert!(!crosses(b"dark", short));
    // A change of the link ends no outage.
    running.handle.line("set delay 2ms").unwrap();
    assert!(!crosses(b"still dark", short));
    let accounts = running.stop().unwrap().end.r#return;
    assert_eq!((accounts.dropped["loss"], accounts.dropped["outage"]), (1, 2));
    assert!(balances(&accounts));
}

#[test]
fn memory_limit_is_reported() {
    let (running, client, target) =
        relay(|settings| settings.memory = 1000, link("return delay 300ms"));
    for _ in 0..5 {
        client.send(&[0; 400]).unwrap();
    }
    let mut buffer = [0; 512];
    for _ in 0..2 {
        target.recv(&mut buffer).unwrap();
    }
    let end = running.stop().unwrap().end;
    assert_eq!((end.r#return.out_of_memory, end.r#return.sent), (3, 2));
    assert!(!end.kept_up && end.reasons[0].contains("3 return packets found no memory"));
}

#[test]
fn datagrams_dropped_by_the_kernel_are_reported() {
    let ports = Ports::UdpRelay {
        listen: "127.0.0.1:0".parse().unwrap(),
        target: "127.0.0.1:9".parse().unwrap(),
    };
    let mut config = EmulatorConfig::new(link("delay 1ms"), ports);
    config.socket_buffer = 100_000;
    config.duration = Some(Span::from_secs(1));
    let emulator = Emulator::open(config).unwrap();
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..500 {
        client.send_to(&[0; 1400], emulator.relay_address().unwrap()).unwrap();
    }
    let running = Running::start(emulator);
    let clock = Clock::from_here();
    clock.sleep_until(clock.now() + Span::from_millis(100));
    let end = running.stop().unwrap().end;
    let dropped = end.r#return.kernel_dropped;
    assert!(dropped > 0 && end.r#return.received + dropped == 500, "{:?}", end.r#return);
    assert!(!end.kept_up && end.reasons[0].contains("faster than they could be read"));
}

#[test]
fn report_lists_shortfalls() {
    let (running, _client, _target) = relay(|_| {}, link("delay 1ms"));
    let summary = running.stop().unwrap();
    let limit = Span::from_millis(1);
    let mut end: End = summary.end.clone();
    assert_eq!(end.shortcomings(limit), [""; 0]);
    end.forward.kernel_dropped = 4;
    end.r#return.send_failed = 2;
    end.lateness.p99_seconds = 0.0021;
    let reasons = end.shortcomings(limit);
    assert_eq!(reasons.len(), 3, "{reasons:?}");
    assert!(reasons[0].contains("4 forward packets arrived faster"));
    assert!(reasons[2].contains("2.100 ms after its time"));
    let mut short = summary;
    short.end.reasons = reasons;
    short.end.kept_up = false;
    assert!(short.to_string().contains("DID NOT KEEP UP: 4 forward packets"));
    let json = short.to_json();
    assert_eq!(json["end"]["kept_up"], false);
    assert_eq!(json["end"]["forward"]["offered"]["packets"], 0);
    assert!(json["end"]["return"]["bits_per_second"].is_number());
}

/// Runs `test` in a new network namespace with two veth pairs, `a`–`inner-a` and `b`–`inner-b`; the
/// namespace ends with the thread. Prints a message if that is not permitted.
fn between_interfaces(test: impl FnOnce(Netlink) + Send + 'static) {
    let thread = std::thread::spawn(|| {
        // SAFETY: unshare takes no pointers; it changes this thread's namespace only.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            let why = io::Error::last_os_error();
            eprintln!("skipped: unshare(CLONE_NEWNET) was refused: {why}");
            return;
        }
        let mut net = Netlink::open().unwrap();
        for (outer, inner) in [("a", "inner-a"), ("b", "inner-b")] {
            net.create_veth(&VethEnd::new(outer), &VethEnd::new(inner)).unwrap();
            for name in [outer, inner] {
                let key = format!("net/ipv6/conf/{name}/disable_ipv6");
                crate::netlink::sysctl(&key, "1").unwrap();
                net.set_up(name).unwrap();
            }
        }
        test(net);
    });
    thread.join().expect("the test in the namespace failed");
}

fn emulate(words: &str) -> Emulator {
    let words: Vec<String> =
        format!("inner-a inner-b {words}").split(' ').map(String::from).collect();
    Emulator::open(EmulatorConfig::from_words(&words).unwrap()).unwrap()
}

fn frame(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1];
    frame.extend(ethertype.to_be_bytes());
    frame.extend(payload);
    frame
}

fn wait_for(socket: &mut PacketSocket, count: usize) -> Vec<Vec<u8>> {
    let clock = Clock::from_here();
    let mut frames = Vec::new();
    while frames.len() < count && clock.now().as_secs_f64() < 5.0 {
        socket.receive(64, |_, frame| frames.push(frame)).unwrap();
        clock.sleep_until(clock.now() + Span::from_millis(1));
    }
    frames
}

#[test]
fn interfaces_forward_all_ethernet_frames() {
    between_interfaces(|_| {
        let mut a = PacketSocket::open("a", &Options::default()).unwrap();
        let mut b = PacketSocket::open("b", &Options::default()).unwrap();
        let running = Running::start(emulate("delay 3ms rate 100mbit"));
        let mut broadcast = frame(0x0806, &[1; 46]);
        broadcast[..6].fill(0xff);
        let sent = [
            broadcast,
            frame(0x86dd, &[0x60; 300]),
            frame(0x88b5, &[3; 1500]),
            frame(0x8100, &[0, 7, 8, 0, 5, 5, 5]),
            frame(0x0800, &[0x45; 60]),
        ];
        a.send(sent.iter().map(Vec::as_slice)).unwrap();
        assert_eq!(wait_for(&mut b, sent.len()), sent);
        b.send(sent.iter().map(Vec::as_slice)).unwrap();
        assert_eq!(wait_for(&mut a, sent.len()), sent);
        // No frame is sent back to its source.
        assert_eq!(b.receive(64, |_, _| ()).unwrap(), 0);
        let end = running.stop().unwrap().end;
        assert_eq!((end.forward.sent, end.r#return.sent), (5, 5));
        assert!(balances(&end.forward) && balances(&end.r#return));
        assert_eq!(end.lateness.packets, 10);
    });
}

#[test]
fn interface_that_is_down_is_reported() {
    between_interfaces(|mut net| {
        let a = PacketSocket::open("a", &Options::default()).unwrap();
        let running = Running::start(emulate("delay 1ms"));
        net.set_down("inner-b").unwrap();
        a.send([frame(0x0800, &[0; 100]).as_slice()].into_iter()).unwrap();
        let clock = Clock::from_here();
        clock.sleep_until(clock.now() + Span::from_millis(50));
        let end = running.stop().unwrap().end;
        assert_eq!((end.forward.delivered.packets, end.forward.send_failed), (1, 1));
        assert!(!end.kept_up && end.reasons[0].contains("could not be handed on"), "{end:?}");
    });
}

#[test]
fn frames_dropped_by_the_kernel_are_reported() {
    between_interfaces(|_| {
        let a = PacketSocket::open("a", &Options::default()).unwrap();
        let ports = Ports::Interfaces { a: "inner-a".into(), b: "inner-b".into() };
        let mut config = EmulatorConfig::new(link("delay 1ms"), ports);
        config.socket_buffer = 100_000;
        let emulator = Emulator::open(config).unwrap();
        // The emulator does not read yet, and 500 frames of 1,514 octets exceed 100 kB.
        let frame = frame(0x0800, &[0; 1500]);
        for _ in 0..500 {
            a.send([frame.as_slice()].into_iter()).unwrap();
        }
        let running = Running::start(emulator);
        let clock = Clock::from_here();
        clock.sleep_until(clock.now() + Span::from_millis(100));
        let end = running.stop().unwrap().end;
        let dropped = end.forward.kernel_dropped;
        assert!(dropped > 0 && end.forward.received + dropped == 500, "{:?}", end.forward);
        assert!(!end.kept_up && end.reasons[0].contains("faster than they could be read"));
    });
}

#[test]
fn aggregated_packets_end_the_run_with_an_error() {
    between_interfaces(|mut net| {
        let running = Running::start(emulate("delay 1ms"));
        net.set_mtu("a", 9000).unwrap();
        net.set_mtu("inner-a", 9000).unwrap();
        let a = PacketSocket::open("a", &Options::default()).unwrap();
        a.send([frame(0x0800, &[0; 4000]).as_slice()].into_iter()).unwrap();
        let error = running.thread.join().unwrap().unwrap_err();
        assert!(error.to_string().contains("inner-a handed on a frame of 4014 bytes"), "{error}");
    });
}

#[test]
fn an_interface_that_is_deleted_ends_the_run() {
    between_interfaces(|mut net| {
        let running = Running::start(emulate("delay 1ms"));
        net.delete_link("b").unwrap();
        let error = running.thread.join().unwrap().unwrap_err();
        assert!(error.to_string().contains("inner-b is gone"), "{error}");
    });
}

#[test]
fn the_stop_flag_and_the_duration_end_a_run() {
    let config = |duration| {
        let ports = Ports::UdpRelay {
            listen: "127.0.0.1:0".parse().unwrap(),
            target: "127.0.0.1:9".parse().unwrap(),
        };
        EmulatorConfig { duration, ..EmulatorConfig::new(link("delay 1ms"), ports) }
    };
    let brief = Emulator::open(config(Some(Span::from_millis(30)))).unwrap();
    let summary = brief.run(&AtomicBool::new(false)).unwrap();
    assert!(summary.end.seconds >= 0.03);
    let stop = Arc::new(AtomicBool::new(false));
    let endless = Emulator::open(config(None)).unwrap();
    let thread = std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || endless.run(&stop).map(drop)
    });
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap().unwrap();
}
