//! Held SYNs of a real client in front of a real listener.

use super::*;
use relay::RefuseReason;
use std::os::fd::AsRawFd;
use std::thread::JoinHandle;

/// A gateway that confirms port 80 and everything to the second server's network.
struct Gate {
    spaces: Spaces,
    keeper: SynGate,
    listeners: Listeners,
    _interception: Interception,
}

impl Gate {
    fn build() -> Self {
        let spaces = Spaces::build();
        enter(&spaces.gateway);
        let listeners = listen(0).unwrap();
        let port = listeners.v4.local_addr().unwrap().port();
        let mut rules = TerminalRules::new("term", &["lan0"], port);
        let keeper = SynGate::open(rules.group(), rules.mark).unwrap();
        let rule = |networks: &[&str], ports: &[&str], confirm| ConfirmRule {
            networks: networks.iter().map(|text| text.parse().unwrap()).collect(),
            ports: ports.iter().map(|text| text.parse().unwrap()).collect(),
            confirm,
        };
        rules.confirm = Some(ConfirmRules {
            group: keeper.group(),
            rules: vec![
                rule(&["10.77.0.0/16"], &["81"], false),
                rule(&["10.77.0.0/16"], &[], true),
                rule(&[], &["80"], true),
            ],
            others: false,
        });
        let interception = Interception::terminal(&rules).unwrap();
        Self { spaces, keeper, listeners, _interception: interception }
    }

    /// A client that begins to connect.
    fn client(&self, server: SocketAddr, patience: Duration) -> Client {
        let space = self.spaces.client.try_clone().unwrap();
        Client(std::thread::spawn(move || {
            enter(&space);
            TcpStream::connect_timeout(&server, patience)
        }))
    }

    /// The next SYN that is kept back.
    fn held_syn(&mut self) -> Syn {
        for _ in 0..5_000 {
            let mut found = None;
            self.keeper.receive(1, |syn| found = Some(syn));
            if let Some(syn) = found {
                return syn;
            }
            std::thread::park_timeout(Duration::from_millis(1));
        }
        panic!("no SYN is held");
    }

    fn listener(&self, server: SocketAddr) -> &TcpListener {
        if server.is_ipv4() { &self.listeners.v4 } else { self.listeners.v6.as_ref().unwrap() }
    }

    fn no_client_is_accepted(&self, server: SocketAddr) {
        let listener = self.listener(server);
        listener.set_nonblocking(true).unwrap();
        assert_eq!(listener.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}

struct Client(JoinHandle<io::Result<TcpStream>>);

impl Client {
    fn connected(self) -> TcpStream {
        self.0.join().unwrap().expect("a connection")
    }

    fn errno(self) -> i32 {
        let error = self.0.join().unwrap().expect_err("no connection");
        error.raw_os_error().unwrap_or_else(|| panic!("{error}"))
    }
}

/// Timestamps, selective acknowledgements and window scaling, as agreed on.
fn options(stream: &TcpStream) -> u8 {
    // SAFETY: all zeroes is a valid value of this plain C structure.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut len = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: `info` is valid for writes of `len` bytes.
    let status = unsafe {
        let (level, name) = (libc::IPPROTO_TCP, libc::TCP_INFO);
        libc::getsockopt(stream.as_raw_fd(), level, name, (&raw mut info).cast(), &raw mut len)
    };
    assert_eq!(status, 0);
    info.tcpi_options & 7
}

#[test]
fn a_held_syn_is_reinjected_unchanged() {
    with_namespaces(|| {
        let mut gate = Gate::build();
        for server in [at(SERVERS[0], 80), at(SERVERS[1], 80), at("10.77.1.1", 7)] {
            let client = gate.client(server, PATIENCE);
            let syn = gate.held_syn();
            assert_eq!(syn.server, server);
            assert!(CLIENTS.iter().any(|own| syn.client.ip().to_string() == *own));
            assert!(!gate.keeper.is_forged(&syn));
            gate.no_client_is_accepted(server);
            gate.keeper.reinject(&syn);
            let (mut taken, peer) = accept(gate.listener(server));
            assert_eq!((peer.ip(), peer.port()), (syn.client.ip(), syn.client.port()));
            assert_eq!(taken.local_addr().unwrap(), server);
            let mut client = client.connected();
            assert_eq!(client.local_addr().unwrap().port(), syn.client.port());
            // The server's end speaks first, and nothing was lost of how the client speaks.
            pass(&mut taken, &mut client, b"220 ready\r\n");
            pass(&mut client, &mut taken, &[7; 100_000]);
            assert_eq!((options(&client), options(&taken)), (7, 7));
        }
    });
}

#[test]
fn rejections_are_those_of_the_network() {
    with_namespaces(|| {
        let mut gate = Gate::build();
        let (v4, v6) = (at(SERVERS[0], 80), at(SERVERS[1], 80));
        for (reason, server, errno) in [
            (RefuseReason::ConnectionRefused, v4, libc::ECONNREFUSED),
            (RefuseReason::ConnectionRefused, v6, libc::ECONNREFUSED),
            (RefuseReason::HostUnreachable, v4, libc::EHOSTUNREACH),
            (RefuseReason::HostUnreachable, v6, libc::EHOSTUNREACH),
            (RefuseReason::NetworkUnreachable, v4, libc::ENETUNREACH),
            (RefuseReason::NetworkUnreachable, v6, libc::ENETUNREACH),
            (RefuseReason::Policy, v4, libc::EHOSTUNREACH),
            (RefuseReason::Policy, v6, libc::EACCES),
        ] {
            let client = gate.client(server, PATIENCE);
            let syn = gate.held_syn();
            gate.keeper.refuse(&syn, reason);
            assert_eq!(client.errno(), errno, "{reason:?} of {server}");
        }
        // For a server that does not respond, no response is sent.
        let client = gate.client(v4, Duration::from_millis(300));
        let syn = gate.held_syn();
        gate.keeper.refuse(&syn, RefuseReason::TimedOut);
        assert_eq!(client.0.join().unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
        gate.no_client_is_accepted(v4);
    });
}

#[test]
fn only_deferred_connections_are_held() {
    with_namespaces(|| {
        let mut gate = Gate::build();
        for server in [at(SERVERS[0], 81), at("10.77.0.1", 81)] {
            let client = gate.client(server, PATIENCE);
            assert_eq!(accept(gate.listener(server)).0.local_addr().unwrap(), server);
            client.connected();
        }
        let heard = gate.keeper.receive(1, |syn| panic!("{syn:?}"));
        assert!(!heard.more && !heard.lost);
    });
}

#[test]
fn a_repeated_syn_is_admitted_once() {
    with_namespaces(|| {
        let mut gate = Gate::build();
        let server = at(SERVERS[0], 80);
        let client = gate.client(server, PATIENCE);
        let first = gate.held_syn();
        // It retransmits after a second without a response.
        let again = gate.held_syn();
        assert_eq!((again.client, again.server), (first.client, first.server));
        gate.keeper.reinject(&again);
        gate.keeper.reinject(&first);
        let (mut taken, _) = accept(gate.listener(server));
        let mut client = client.connected();
        pass(&mut client, &mut taken, b"once");
        gate.no_client_is_accepted(server);
    });
}

#[test]
fn packets_with_own_source_addresses_are_rejected() {
    with_namespaces(|| {
        let mut gate = Gate::build();
        let client = gate.client(at(SERVERS[0], 80), Duration::from_millis(100));
        let syn = gate.held_syn();
        for (address, forged) in [("10.1.0.1", true), ("10.3.0.1", true), ("10.1.0.9", false)] {
            let mut syn = syn.clone();
            syn.client = at(address, 5);
            assert_eq!(gate.keeper.is_forged(&syn), forged, "{address}");
        }
        for address in ["127.0.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255"] {
            let mut syn = syn.clone();
            syn.client = at(address, 5);
            assert!(gate.keeper.is_forged(&syn));
        }
        let _ = client.0.join();
    });
}

#[test]
fn a_group_that_somebody_has_is_passed_by_and_rights_are_named() {
    with_namespaces(|| {
        drop(new_space());
        let one = SynGate::open(77, 5).unwrap();
        let other = SynGate::open(77, 5).unwrap();
        assert_eq!((one.group(), other.group()), (77, 78));
        drop_capability(13); // CAP_NET_RAW
        let text = SynGate::open(99, 5).unwrap_err().to_string();
        assert!(text.contains("needs CAP_NET_RAW") && text.contains("not permitted"), "{text}");
        // Without it, interception continues.
        drop(Interception::hub(&HubRules::new("x")).unwrap());
    });
}

/// Takes one right from this thread.
fn drop_capability(number: u32) {
    let mut header = [0x2008_0522u32, 0]; // _LINUX_CAPABILITY_VERSION_3, this thread
    let mut sets = [[0u32; 3]; 2];
    // SAFETY: the kernel reads 8 bytes of the header and fills 24 bytes of the sets.
    let got = unsafe { libc::syscall(libc::SYS_capget, header.as_mut_ptr(), sets.as_mut_ptr()) };
    assert_eq!(got, 0);
    for set in &mut sets[0] {
        *set &= !(1 << number);
    }
    // SAFETY: the kernel reads 8 bytes of the header and 24 bytes of the sets.
    let set = unsafe { libc::syscall(libc::SYS_capset, header.as_mut_ptr(), sets.as_ptr()) };
    assert_eq!(set, 0);
}

#[test]
fn confirm_mode_can_change_at_reload() {
    with_namespaces(|| {
        let spaces = Spaces::build();
        let file = std::env::temp_dir().join(format!("bentpipe-{}-confirm", std::process::id()));
        let write = |accept: &str| {
            let text = format!(
                "role = \"terminal\"\nsecurity = \"none\"\n{accept}\n[link]\npeer = \"10.3.0.2:7000\"\n\
                 [intercept]\ninterfaces = \"lan0\"\n"
            );
            std::fs::write(&file, text).unwrap();
        };
        write("accept = \"early\"");
        enter(&spaces.gateway);
        let config = crate::Config::load(&file).unwrap();
        let mut gateway = crate::Gateway::open(&config).unwrap().reloading_from(file.clone());
        let is_answered = |port| {
            enter(&spaces.client);
            let answer = TcpStream::connect_timeout(&at(SERVERS[0], port), PATIENCE / 10);
            enter(&spaces.gateway);
            answer.is_ok()
        };
        assert!(is_answered(80));
        write("[[accept_rule]]\nports = 80\naccept = \"confirm\"");
        gateway.reload();
        assert!(!is_answered(80) && is_answered(81));
        write("accept = \"confirm\"");
        gateway.reload();
        assert!(!is_answered(80) && !is_answered(81));
        // Another mark requires another gate.
        write("accept = \"confirm\"");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, format!("{text}mark = 4711\n")).unwrap();
        gateway.reload();
        assert!(!is_answered(80));
        write("accept = \"early\"");
        gateway.reload();
        assert!(is_answered(80) && is_answered(81));
        std::fs::remove_file(&file).unwrap();
    });
}
