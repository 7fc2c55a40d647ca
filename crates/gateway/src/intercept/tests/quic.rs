//! QUIC from clients meets an ICMP error, and other UDP passes.

use super::*;
use crate::intercept::ForwardRules;
use std::net::UdpSocket;

/// Time in which a refusal has to arrive, so that no user notices the fallback.
const AT_ONCE: Duration = Duration::from_millis(100);

/// Whether a datagram from a client to `port` of the server is refused at once, for each family; if
/// it is not, it arrives.
fn refused(spaces: &Spaces, port: u16) -> [bool; 2] {
    [0, 1].map(|family| {
        enter(&spaces.server);
        let server = UdpSocket::bind(at(SERVERS[family], port)).unwrap();
        server.set_read_timeout(Some(PATIENCE)).unwrap();
        enter(&spaces.client);
        let client = UdpSocket::bind(at(CLIENTS[family], 0)).unwrap();
        client.connect(at(SERVERS[family], port)).unwrap();
        client.set_read_timeout(Some(AT_ONCE)).unwrap();
        client.send(b"initial").unwrap();
        let error = client.recv(&mut [0; 16]).expect_err("no answer");
        let refused = error.kind() == io::ErrorKind::ConnectionRefused;
        if !refused {
            server.recv(&mut [0; 16]).expect("what is not refused arrives");
        }
        refused
    })
}

fn terminal_rules(refuse_quic: bool) -> TerminalRules {
    TerminalRules { refuse_quic, ..TerminalRules::new("term", &["lan0"], 1080) }
}

#[test]
fn quic_is_refused_and_other_datagrams_pass() {
    with_namespaces(|| {
        let spaces = Spaces::build();
        assert_eq!(refused(&spaces, 443), [false; 2], "without rules everything passes");
        enter(&spaces.gateway);
        let before = everything();
        let mut terminal = Interception::terminal(&terminal_rules(true)).unwrap();
        assert_eq!(refused(&spaces, 443), [true; 2]);
        for other in [442, 444, 53] {
            assert_eq!(refused(&spaces, other), [false; 2]);
        }
        // While new connections bypass the gateway, QUIC does as well.
        enter(&spaces.gateway);
        terminal.suspend().unwrap();
        assert_eq!(refused(&spaces, 443), [false; 2]);
        enter(&spaces.gateway);
        let excluded = SERVERS.map(|address| address.parse::<Prefix>().unwrap());
        let rules = TerminalRules { exclude_destinations: excluded.into(), ..terminal_rules(true) };
        terminal.change_terminal(&rules).unwrap();
        assert_eq!(refused(&spaces, 443), [false; 2], "TCP would not be intercepted either");
        enter(&spaces.gateway);
        terminal.change_terminal(&terminal_rules(false)).unwrap();
        assert_eq!(refused(&spaces, 443), [false; 2]);
        enter(&spaces.gateway);
        terminal.remove().unwrap();
        assert_nothing_changed(&before);
    });
}

/// What is marked to be forwarded meets the refusal all the same, in whichever order the tables
/// were made. The WAN interface stands for the tunnel.
#[test]
fn quic_that_would_be_forwarded_is_refused_where_that_is_configured() {
    with_namespaces(|| {
        let spaces = Spaces::build();
        enter(&spaces.gateway);
        let forward = ForwardRules::new("carry", &["lan0".into()], "wan0");
        let carried = Interception::forward(&forward).unwrap();
        let mut terminal = Interception::terminal(&terminal_rules(false)).unwrap();
        assert_eq!(refused(&spaces, 443), [false; 2]);
        enter(&spaces.gateway);
        terminal.change_terminal(&terminal_rules(true)).unwrap();
        assert_eq!(refused(&spaces, 443), [true; 2]);
        assert_eq!(refused(&spaces, 444), [false; 2]);
        enter(&spaces.gateway);
        carried.remove().unwrap();
        let _carried_again = Interception::forward(&forward).unwrap();
        assert_eq!(refused(&spaces, 443), [true; 2]);
    });
}
