//! Expressions of nf_tables rules, which load, compare and act.
//!
//! A rule runs its expressions from left to right until a comparison fails. They pass values
//! in registers: here register 1 holds the last loaded value, and register 2 the port of
//! `tproxy`. Names and numbers are those of `linux/netfilter/nf_tables.h`; comments name the
//! types of nested attributes.

use std::net::{IpAddr, SocketAddr};

use super::attributes::Attributes;
use super::prefix::{PortRange, Prefix};

/// `NFTA_LIST_ELEM`
const ELEMENT: u16 = 1;

const REGISTER_VERDICT: u32 = 0;
const REGISTER_1: u32 = 1;
const REGISTER_2: u32 = 2;

/// `NFPROTO_IPV4` and `NFPROTO_IPV6`, as `meta nfproto` and `tproxy` know them.
const FAMILY_IPV4: u8 = 2;
const FAMILY_IPV6: u8 = 10;

/// A TCP header's flags byte: FIN, SYN, RST and ACK.
const FLAGS_OFFSET: u32 = 13;
const FLAGS_OF_A_SYN: u8 = 0x01 | 0x02 | 0x04 | 0x10;
const FLAG_SYN: u8 = 0x02;

/// The key of a `meta` expression.
#[derive(Clone, Copy)]
enum Meta {
    Mark = 3,
    InterfaceName = 6,
    NetworkProtocol = 15,
    TransportProtocol = 16,
}

/// The key of a `socket` expression.
#[derive(Clone, Copy)]
enum SocketKey {
    Transparent = 0,
    Wildcard = 2,
}

/// How a `cmp` expression compares.
#[derive(Clone, Copy)]
enum Compare {
    Equal = 0,
    NotEqual = 1,
    AtMost = 3,
    AtLeast = 5,
}

/// Base of the offset of a `payload` expression.
#[derive(Clone, Copy)]
enum Header {
    Network = 1,
    Transport = 2,
}

/// Verdict on a packet that a rule matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Accepts the packet in this table; other tables still process it.
    Accept,
    /// Drops the packet.
    Drop,
    /// Returns to the rule after the jump; in the base chain, leaves the table.
    Return,
    /// Continues in another chain and returns at its end.
    Jump(&'static str),
    /// Continues in another chain without returning.
    Goto(&'static str),
}

/// The expressions of one rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Expressions(Attributes);

impl Expressions {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn attributes(&self) -> &Attributes {
        &self.0
    }

    /// `meta l4proto tcp`
    pub(super) fn tcp(self) -> Self {
        self.meta(Meta::TransportProtocol).compare(Compare::Equal, &[6])
    }

    /// `meta l4proto NUMBER`
    pub(super) fn protocol(self, number: u8) -> Self {
        self.meta(Meta::TransportProtocol).compare(Compare::Equal, &[number])
    }

    /// `meta mark != 0`
    pub(super) fn marked_already(self) -> Self {
        self.meta(Meta::Mark).compare(Compare::NotEqual, &0u32.to_ne_bytes())
    }

    /// `reject with icmpx port-unreachable`
    pub(super) fn reject(self) -> Self {
        const ICMPX_UNREACHABLE: u32 = 2;
        const PORT_UNREACHABLE: u8 = 1;
        let data = Attributes::new()
            .number(1, ICMPX_UNREACHABLE) // NFTA_REJECT_TYPE
            .put(2, &[PORT_UNREACHABLE]); // NFTA_REJECT_ICMP_CODE
        self.expression("reject", &data)
    }

    /// `reject with tcp reset`
    pub(super) fn reject_by_reset(self) -> Self {
        const TCP_RESET: u32 = 1;
        self.expression("reject", &Attributes::new().number(1, TCP_RESET)) // NFTA_REJECT_TYPE
    }

    /// `ip daddr . tcp dport @SET` or `ip6 daddr . tcp dport @SET`, by the family of `any`.
    pub(super) fn destination_and_port_in(self, any: IpAddr, set: &str) -> Self {
        // Registers of 4 octets begin at 8; the first four of them are register 1.
        const FIRST_OF_4: u32 = 8;
        let (offset, size) = if any.is_ipv4() { (16, 4) } else { (24, 16) };
        let port = FIRST_OF_4 + size as u32 / 4;
        let data = Attributes::new()
            .text(1, set) // NFTA_LOOKUP_SET
            .number(2, REGISTER_1); // NFTA_LOOKUP_SREG
        self.payload(Header::Network, offset, size)
            .payload_into(port, Header::Transport, 2, 2)
            .expression("lookup", &data)
    }

    /// `meta nfproto ipv4` or `ipv6`, by the family of `address`.
    pub(super) fn family(self, address: IpAddr) -> Self {
        let family = if address.is_ipv4() { FAMILY_IPV4 } else { FAMILY_IPV6 };
        self.meta(Meta::NetworkProtocol).compare(Compare::Equal, &[family])
    }

    /// `iifname "name"`; a name that ends in `*` matches by prefix.
    pub(super) fn arrived_on(self, name: &str) -> Self {
        let mut wanted = name.as_bytes().to_vec();
        if wanted.last() == Some(&b'*') {
            wanted.pop();
        } else {
            // The kernel compares its whole name buffer, including the padding.
            wanted.resize(libc::IFNAMSIZ, 0);
        }
        self.meta(Meta::InterfaceName).compare(Compare::Equal, &wanted)
    }

    /// `tcp flags & (fin | syn | rst | ack) != syn`: not the first packet of a connection.
    pub(super) fn not_opening(self) -> Self {
        self.payload(Header::Transport, FLAGS_OFFSET, 1)
            .masked(&[FLAGS_OF_A_SYN])
            .compare(Compare::NotEqual, &[FLAG_SYN])
    }

    /// `tcp flags & (fin | syn | rst | ack) == syn`: the first packet of a connection.
    pub(super) fn opening(self) -> Self {
        self.payload(Header::Transport, FLAGS_OFFSET, 1)
            .masked(&[FLAGS_OF_A_SYN])
            .compare(Compare::Equal, &[FLAG_SYN])
    }

    /// `meta mark MARK`
    pub(super) fn marked(self, mark: u32) -> Self {
        self.meta(Meta::Mark).compare(Compare::Equal, &mark.to_ne_bytes())
    }

    /// `log group GROUP`: sends a copy to the socket that has bound the group.
    pub(super) fn log(self, group: u16) -> Self {
        let data = Attributes::new().put(1, &group.to_be_bytes()); // NFTA_LOG_GROUP
        self.expression("log", &data)
    }

    /// `socket transparent 1`: the packet belongs to a local transparent socket, or to a connection
    /// in the accept queue of a transparent listener.
    pub(super) fn transparent_socket(self) -> Self {
        self.socket(SocketKey::Transparent, 1)
    }

    /// `socket transparent 1 socket wildcard 1`: as above, and the socket is bound to no address.
    /// Only a listener is; to accept by it would take all packets to its port, for any destination.
    /// (The kernel does not set `wildcard` for a connection in an accept queue, so the opposite
    /// cannot be tested.)
    pub(super) fn wildcard_listener(self) -> Self {
        self.socket(SocketKey::Transparent, 1).socket(SocketKey::Wildcard, 1)
    }

    /// `fib daddr type local`: the destination is this host's own address.
    pub(super) fn destined_here(self) -> Self {
        const RESULT_ADDRESS_TYPE: u32 = 3;
        const FLAG_DESTINATION: u32 = 1 << 1;
        const LOCAL: u32 = 2;
        let data = Attributes::new()
            .number(1, REGISTER_1) // NFTA_FIB_DREG
            .number(2, RESULT_ADDRESS_TYPE) // NFTA_FIB_RESULT
            .number(3, FLAG_DESTINATION); // NFTA_FIB_FLAGS
        // The address type is a number in host order, not part of a packet.
        self.expression("fib", &data).compare(Compare::Equal, &LOCAL.to_ne_bytes())
    }

    /// `ip daddr PREFIX` or `ip6 daddr PREFIX`
    pub(super) fn destined_to(self, prefix: &Prefix) -> Self {
        let (network, offset) = match prefix.network() {
            IpAddr::V4(network) => (network.octets().to_vec(), 16),
            IpAddr::V6(network) => (network.octets().to_vec(), 24),
        };
        let family = self.family(prefix.network());
        if prefix.length() == 0 {
            return family;
        }
        let size = network.len();
        let loaded = family.payload(Header::Network, offset, size);
        let bits = usize::from(prefix.length());
        let masked = if bits < size * 8 { loaded.masked(&mask(bits, size)) } else { loaded };
        masked.compare(Compare::Equal, &network)
    }

    /// `th dport RANGE`, of a protocol with ports.
    pub(super) fn destined_to_ports(self, ports: PortRange) -> Self {
        let loaded = self.payload(Header::Transport, 2, 2);
        let (first, last) = (ports.first().to_be_bytes(), ports.last().to_be_bytes());
        if first == last {
            return loaded.compare(Compare::Equal, &first);
        }
        loaded.compare(Compare::AtLeast, &first).compare(Compare::AtMost, &last)
    }

    /// `tproxy to ADDRESS:PORT`: the packet is for the listener that is bound there.
    pub(super) fn tproxy(self, listener: SocketAddr) -> Self {
        let (address, family) = match listener.ip() {
            IpAddr::V4(ip) => (ip.octets().to_vec(), FAMILY_IPV4),
            IpAddr::V6(ip) => (ip.octets().to_vec(), FAMILY_IPV6),
        };
        let data = Attributes::new()
            .number(1, u32::from(family)) // NFTA_TPROXY_FAMILY
            .number(2, REGISTER_1) // NFTA_TPROXY_REG_ADDR
            .number(3, REGISTER_2); // NFTA_TPROXY_REG_PORT
        self.immediate(REGISTER_1, &address)
            .immediate(REGISTER_2, &listener.port().to_be_bytes())
            .expression("tproxy", &data)
    }

    /// `meta mark set MARK`
    pub(super) fn set_mark(self, mark: u32) -> Self {
        let data = Attributes::new()
            .number(2, Meta::Mark as u32) // NFTA_META_KEY
            .number(3, REGISTER_1); // NFTA_META_SREG
        self.immediate(REGISTER_1, &mark.to_ne_bytes()).expression("meta", &data)
    }

    pub(super) fn verdict(self, verdict: Verdict) -> Self {
        let (code, chain) = match verdict {
            Verdict::Accept => (1, None),
            Verdict::Drop => (0, None),
            Verdict::Jump(chain) => (-3i32, Some(chain)),
            Verdict::Goto(chain) => (-4, Some(chain)),
            Verdict::Return => (-5, None),
        };
        let mut inner = Attributes::new().put(1, &code.to_be_bytes()); // NFTA_VERDICT_CODE
        if let Some(chain) = chain {
            inner = inner.text(2, chain); // NFTA_VERDICT_CHAIN
        }
        let data = Attributes::new()
            .number(1, REGISTER_VERDICT) // NFTA_IMMEDIATE_DREG
            .nest(2, &Attributes::new().nest(2, &inner)); // ..._DATA, NFTA_DATA_VERDICT
        self.expression("immediate", &data)
    }

    fn meta(self, key: Meta) -> Self {
        let data = Attributes::new()
            .number(2, key as u32) // NFTA_META_KEY
            .number(1, REGISTER_1); // NFTA_META_DREG
        self.expression("meta", &data)
    }

    fn socket(self, key: SocketKey, wanted: u8) -> Self {
        let data = Attributes::new()
            .number(1, key as u32) // NFTA_SOCKET_KEY
            .number(2, REGISTER_1); // NFTA_SOCKET_DREG
        self.expression("socket", &data).compare(Compare::Equal, &[wanted])
    }

    fn payload(self, header: Header, offset: u32, length: usize) -> Self {
        self.payload_into(REGISTER_1, header, offset, length)
    }

    fn payload_into(self, register: u32, header: Header, offset: u32, length: usize) -> Self {
        let data = Attributes::new()
            .number(1, register) // NFTA_PAYLOAD_DREG
            .number(2, header as u32) // NFTA_PAYLOAD_BASE
            .number(3, offset) // NFTA_PAYLOAD_OFFSET
            .number(4, length as u32); // NFTA_PAYLOAD_LEN
        self.expression("payload", &data)
    }

    fn masked(self, mask: &[u8]) -> Self {
        let zero = vec![0; mask.len()];
        let data = Attributes::new()
            .number(1, REGISTER_1) // NFTA_BITWISE_SREG
            .number(2, REGISTER_1) // NFTA_BITWISE_DREG
            .number(3, mask.len() as u32) // NFTA_BITWISE_LEN
            .nest(4, &value(mask)) // NFTA_BITWISE_MASK
            .nest(5, &value(&zero)); // NFTA_BITWISE_XOR
        self.expression("bitwise", &data)
    }

    fn compare(self, how: Compare, with: &[u8]) -> Self {
        let data = Attributes::new()
            .number(1, REGISTER_1) // NFTA_CMP_SREG
            .number(2, how as u32) // NFTA_CMP_OP
            .nest(3, &value(with)); // NFTA_CMP_DATA
        self.expression("cmp", &data)
    }

    fn immediate(self, register: u32, constant: &[u8]) -> Self {
        let data = Attributes::new()
            .number(1, register) // NFTA_IMMEDIATE_DREG
            .nest(2, &value(constant)); // NFTA_IMMEDIATE_DATA
        self.expression("immediate", &data)
    }

    fn expression(self, name: &str, data: &Attributes) -> Self {
        let expression = Attributes::new()
            .text(1, name) // NFTA_EXPR_NAME
            .nest(2, data); // NFTA_EXPR_DATA
        Self(self.0.nest(ELEMENT, &expression))
    }
}

/// `NFTA_DATA_VALUE`
fn value(bytes: &[u8]) -> Attributes {
    Attributes::new().put(1, bytes)
}

/// The first `bits` of `size` bytes set.
fn mask(bits: usize, size: usize) -> Vec<u8> {
    (0..size).map(|i| !(0xffu16 >> bits.saturating_sub(i * 8).min(8)) as u8).collect()
}

#[cfg(test)]
mod tests;
