//! Real interfaces in namespaces of their own. No test depends on speed: they check the result of
//! each packet, and that none is sent early.

use super::*;
use crate::counts::{Message, Sender, TerminalCount};
use crate::netlink::{Netlink, VethEnd, sysctl};
use crate::packet::{Options, PacketSocket};
use satlink::mac::mf_tdma::{Class, MfTdma};
use satlink::words;
use std::path::PathBuf;
use std::thread::JoinHandle;
use units::{Instant, Span};

/// A short delay and frames of 20 ms with 471 slots, for short tests.
const FAST: &str = "forward rate 20mbit delay 2ms\n\
                    return rate 10mbit frame 20ms hub 1ms lead 1ms\nterminals up 1ms\n";

/// Runs `test` in a new network namespace with pairs `NAME`–`e-NAME` for the hub and three
/// terminals. Prints a message if that is not permitted.
fn in_a_star(test: impl FnOnce(Netlink) + Send + 'static) {
    let thread = std::thread::spawn(|| {
        // SAFETY: unshare takes no pointers; it changes this thread's namespace only.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            let why = std::io::Error::last_os_error();
            eprintln!("skipped: unshare(CLONE_NEWNET) was refused: {why}");
            return;
        }
        let mut net = Netlink::open().unwrap();
        for outer in ["hub", "a", "b", "c"] {
            let inner = format!("e-{outer}");
            net.create_veth(&VethEnd::new(outer), &VethEnd::new(&inner)).unwrap();
            for name in [outer, &inner] {
                sysctl(&format!("net/ipv6/conf/{name}/disable_ipv6"), "1").unwrap();
                net.set_up(name).unwrap();
            }
        }
        test(net);
    });
    thread.join().expect("the test in the namespace failed");
}

struct Running {
    handle: StarHandle,
    thread: JoinHandle<Result<StarSummary, EmulatorError>>,
}

impl Running {
    fn start(text: &str, change: impl FnOnce(&mut StarEmulatorConfig)) -> Self {
        let star = words::parse_star(text).unwrap();
        let words = ["e-hub", "boat=e-a", "hut=e-b", "e-c"].map(String::from);
        let mut config = StarEmulatorConfig::from_words(star, &words).unwrap();
        config.log = Some(1_000);
        change(&mut config);
        let emulator = StarEmulator::open(config).unwrap();
        let handle = emulator.handle();
        let thread = std::thread::spawn(move || emulator.run(&AtomicBool::new(false)));
        Self { handle, thread }
    }

    fn stop(self) -> StarSummary {
        self.handle.stop();
        self.thread.join().expect("the emulator does not panic").unwrap()
    }
}

fn open(name: &str) -> PacketSocket {
    PacketSocket::open(name, &Options::default()).unwrap()
}

/// A frame from one station to another, by the last octets of their addresses; 255 is broadcast.
fn frame(to: u8, from: u8, bytes: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0x88, 0xb5];
    if to == 255 {
        frame[..6].fill(0xff);
    }
    frame.resize(14 + bytes, from);
    frame
}

fn send(socket: &PacketSocket, frame: &[u8]) {
    assert_eq!(socket.send([frame].into_iter()).unwrap(), 1);
}

fn pause(ms: u64) {
    let clock = Clock::from_here();
    clock.sleep_until(clock.now() + Span::from_millis(ms));
}

/// Reads frames until there are `count`, or five seconds have passed.
fn wait_for(socket: &mut PacketSocket, count: usize) -> Vec<Vec<u8>> {
    let clock = Clock::from_here();
    let mut frames = Vec::new();
    while frames.len() < count && clock.now().as_secs_f64() < 5.0 {
        socket.receive(64, |_, frame| frames.push(frame)).unwrap();
        pause(1);
    }
    frames
}

#[test]
fn frames_reach_the_hub_and_the_addressed_terminal() {
    in_a_star(|_| {
        let [mut hub, mut a, mut b] = ["hub", "a", "b"].map(open);
        let running = Running::start(FAST, |_| {});
        send(&hub, &frame(1, 9, 100));
        // Station 1 is not learned yet: all terminals get the frame.
        assert_eq!(wait_for(&mut a, 1), [frame(1, 9, 100)]);
        assert_eq!(wait_for(&mut b, 1).len(), 1);
        send(&a, &frame(9, 1, 60));
        send(&b, &frame(1, 2, 70));
        let mut heard = wait_for(&mut hub, 2);
        heard.sort();
        assert_eq!(heard, [frame(1, 2, 70), frame(9, 1, 60)]);
        send(&hub, &frame(1, 9, 200));
        send(&hub, &frame(2, 9, 300));
        send(&hub, &frame(255, 9, 400));
        // A frame from one terminal to another reaches the hub only.
        assert_eq!(wait_for(&mut a, 2), [frame(1, 9, 200), frame(255, 9, 400)]);
        assert_eq!(wait_for(&mut b, 2), [frame(2, 9, 300), frame(255, 9, 400)]);
        let summary = running.stop();
        let (forward, back) = (&summary.end.forward, &summary.end.r#return);
        assert_eq!((forward.offered.packets, forward.delivered.packets), (4, 4));
        assert_eq!((back.offered.packets, back.delivered.packets), (2, 2));
        assert_eq!(summary.end.terminals[1].delivered.bytes, 70);
        assert_eq!(summary.start.terminals[0], ("boat".into(), "e-a".into()));
        assert_eq!(summary.start.frame, (471, 0.02));
        assert!(summary.to_json()["end"]["return"]["slots"]["granted"].as_u64() > Some(470));
        assert!(summary.to_string().contains("slots: "));
    });
}

/// The return link in real time gives the same results as under virtual time with the same
/// arrivals.
#[test]
fn real_time_run_equals_virtual_time_run() {
    let text = format!("{FAST}return rate 1mbit lose bursts 2% lose requests 20%\n");
    let star = words::parse_star(&text).unwrap();
    in_a_star(move |_| {
        let terminals = ["a", "b", "c"].map(open);
        let running = Running::start(&text, |config| config.seed = 7);
        for step in 0..120 {
            let terminal = &terminals[step % 3];
            send(terminal, &frame(9, 1, 40 + step * 5));
            pause(if step % 10 == 9 { 9 } else { 1 });
        }
        pause(400);
        let summary = running.stop();
        let names = ["boat", "hut", "e-c"].map(String::from);
        let mac = star.with_terminals(&names).unwrap();
        let mut link: MfTdma<Vec<u8>> = MfTdma::new(&mac, 7, 0).unwrap();
        let (offers, arrivals): (Vec<summary::ReturnEntry>, Vec<_>) =
            summary.log.iter().copied().partition(|entry: &summary::ReturnEntry| !entry.arrived);
        assert_eq!(offers.len(), 120);
        for offer in offers {
            link.offer(offer.at, offer.terminal, Class::Data, vec![0; offer.bytes]);
        }
        let end = Instant::ZERO + Span::from_secs_f64(summary.end.seconds);
        let mut again = Vec::new();
        while let Some(arrived) = link.poll_arrival(end) {
            again.push((arrived.at, arrived.terminal, arrived.frame.len()));
        }
        let live: Vec<_> = arrivals.iter().map(|a| (a.at, a.terminal, a.bytes)).collect();
        assert!(live.len() > 60 && live.len() < 120, "{}", live.len());
        assert_eq!(live, again);
        assert_eq!(summary.end.r#return.dropped["lost"], 120 - live.len() as u64);
    });
}

#[test]
fn connection_counts_are_weights_until_they_expire() {
    in_a_star(|_| {
        let path: PathBuf =
            std::env::temp_dir().join(format!("bentpipe-{}-star.sock", std::process::id()));
        let text = format!("{FAST}return free weighted\nconnections keep 1s\n");
        let counts = Some(path.clone());
        let running = Running::start(&text, |config| config.counts = counts);
        let sender = Sender::new(&path).unwrap();
        let count = |name: &str, connections| TerminalCount { name: name.into(), connections };
        let terminals = vec![count("boat", 8), count("hut", 0), count("plane", 5)];
        for sequence in 0..7 {
            sender.send(&Message::new("hub", sequence, terminals.clone())).unwrap();
            pause(100);
        }
        let stranger = std::os::unix::net::UnixDatagram::unbound().unwrap();
        stranger.send_to(b"five connections to the boat", &path).unwrap();
        pause(50);
        let handle = running.handle.clone();
        // Afterwards there are no announcements, only a command.
        pause(1_200);
        handle.line("weight e-c 3").unwrap();
        let summary = running.stop();
        let counts = summary.end.counts;
        assert_eq!((counts.messages, counts.malformed), (7, 1));
        assert_eq!((counts.told, counts.unknown, counts.stale), (14, 7, 2));
        let [boat, hut, other] = &summary.end.terminals[..] else { panic!("three") };
        assert_eq!([boat.weight, hut.weight, other.weight], [1, 1, 3]);
        // Eight times the weight while it was announced, and at least 1.1 s with equal weights.
        assert!(boat.granted > hut.granted * 3 / 2, "{} {}", boat.granted, hut.granted);
        assert!(!path.exists(), "the socket goes with who made it");
    });
}

#[test]
fn misbehaviour_is_counted_and_costs_other_terminals_little() {
    in_a_star(|_| {
        let [mut hub, a, b] = ["hub", "a", "b"].map(open);
        let text = format!("{FAST}return sync 2 silence 8 free none\nterminals constant 20\n");
        let running = Running::start(&text, |_| {});
        let order = |line: &str| running.handle.line(line).unwrap();
        order("claim boat 1000000");
        pause(200);
        for _ in 0..10 {
            order("intrude e-c");
            pause(7);
        }
        order("vanish hut");
        pause(50);
        send(&b, &frame(9, 2, 60));
        // 8 frames of 20 ms, and the packets in flight.
        pause(400);
        send(&a, &frame(9, 1, 61));
        assert_eq!(wait_for(&mut hub, 1), [frame(9, 1, 61)]);
        order("claim boat honest");
        order("on hut");
        pause(100);
        send(&b, &frame(9, 2, 62));
        assert_eq!(wait_for(&mut hub, 1), [frame(9, 2, 62)]);
        let summary = running.stop();
        let back = &summary.end.r#return;
        assert!(back.requests_cut > 10, "it asked for more than exists");
        let [boat, hut, _] = &summary.end.terminals[..] else { panic!("three") };
        assert!(boat.granted > 100 * boat.used, "it said what was not so: {boat:?}");
        assert_eq!((back.intruders, back.silenced), (10, 1));
        assert_eq!(back.dropped["overflowed"], 1, "what a terminal that is off was given");
        assert_eq!(hut.delivered.packets, 1);
    });
}

#[test]
fn terminal_with_removed_interface_vanishes_and_others_continue() {
    in_a_star(|mut net| {
        let [mut hub, a] = ["hub", "a"].map(open);
        let running = Running::start(FAST, |_| {});
        net.delete_link("c").unwrap();
        pause(100);
        send(&hub, &frame(255, 9, 100));
        send(&a, &frame(9, 1, 60));
        assert_eq!(wait_for(&mut hub, 1).len(), 1);
        let summary = running.stop();
        assert!(summary.start.notes.iter().any(|note| note.starts_with("e-c: gone at")));
        assert!(summary.end.kept_up || !summary.end.reasons.iter().any(|r| r.contains("handed")));
        let running = Running::start(FAST, |config| config.terminals.truncate(2));
        net.delete_link("hub").unwrap();
        let error = running.thread.join().unwrap().unwrap_err();
        assert!(error.to_string().contains("e-hub is gone"), "{error}");
    });
}

#[test]
fn invalid_configuration_is_rejected_before_the_start() {
    in_a_star(|_| {
        let open = |text: &str, change: fn(&mut StarEmulatorConfig)| {
            let words = ["e-hub", "e-a"].map(String::from);
            let star = words::parse_star(text).unwrap();
            let mut config = StarEmulatorConfig::from_words(star, &words).unwrap();
            change(&mut config);
            StarEmulator::open(config).map(drop).unwrap_err().to_string()
        };
        assert!(open("terminal boat", |_| {}).contains("terminal boat is described"));
        assert!(open("return frame 1ms", |_| {}).contains("frame: expected at least one slot"));
        assert!(open("", |config| config.hub = "e-none".into()).contains("e-none"));
        let nowhere = |config: &mut StarEmulatorConfig| config.counts = Some("/no/such/dir".into());
        assert!(open("", nowhere).starts_with("socket for connection counts /no/such/dir: "));
    });
}
