//! Messages of rtnetlink by their type and octets. `RouteNetlinkMessage` would bring the encoders and decoders of all
//! types and of all kinds of links, 0.3 MB of a program.

use netlink_packet_core::{
    DecodeError, DefaultNla, Emitable, NetlinkDeserializable, NetlinkHeader, NetlinkSerializable,
    Parseable,
};
use netlink_packet_route::route::RouteMessage;

/// A message.
#[derive(Debug)]
pub(super) struct Message {
    /// Such as `RTM_NEWLINK`.
    kind: u16,
    /// What follows its netlink header.
    body: Vec<u8>,
}

impl Message {
    /// Returns the message of a type with these contents.
    pub(super) fn new(kind: u16, contents: &impl Emitable) -> Self {
        let mut body = vec![0; contents.buffer_len()];
        contents.emit(&mut body);
        Self { kind, body }
    }

    /// The number of the interface, if this describes one.
    pub(super) fn link_index(&self) -> Option<u32> {
        let index = self.body.get(4..8).filter(|_| self.kind == libc::RTM_NEWLINK)?;
        Some(u32::from_ne_bytes(index.try_into().ok()?))
    }

    /// The route, if this describes one.
    pub(super) fn route(&self) -> Option<RouteMessage> {
        let is_route = self.kind == libc::RTM_NEWROUTE;
        is_route.then(|| RouteMessage::parse(&self.body[..]).ok()).flatten()
    }
}

impl NetlinkSerializable for Message {
    fn message_type(&self) -> u16 {
        self.kind
    }

    fn buffer_len(&self) -> usize {
        self.body.len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        buffer[..self.body.len()].copy_from_slice(&self.body);
    }
}

impl NetlinkDeserializable for Message {
    type Error = DecodeError;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Self, DecodeError> {
        Ok(Self { kind: header.message_type, body: payload.to_vec() })
    }
}

/// An interface in a request: `struct ifinfomsg` of `linux/rtnetlink.h`, and attributes.
#[derive(Debug, Default)]
pub(super) struct Link {
    /// Its number; 0 if the request has its name.
    pub(super) index: u32,
    /// Flags, such as `IFF_UP`.
    pub(super) flags: u32,
    /// Which of the flags are set or cleared.
    pub(super) changed: u32,
    pub(super) attributes: Vec<DefaultNla>,
}

impl Link {
    /// The interface called `name`.
    pub(super) fn named(name: &str) -> Self {
        Self::default().with(libc::IFLA_IFNAME, [name.as_bytes(), b"\0"].concat())
    }

    /// The interface with a number.
    pub(super) fn numbered(index: u32) -> Self {
        Self { index, ..Self::default() }
    }

    /// Returns it with an attribute more.
    pub(super) fn with(mut self, kind: u16, value: Vec<u8>) -> Self {
        self.attributes.push(DefaultNla::new(kind, value));
        self
    }

    /// Returns its octets, as an attribute of another message.
    pub(super) fn octets(&self) -> Vec<u8> {
        Message::new(0, self).body
    }
}

impl Emitable for Link {
    fn buffer_len(&self) -> usize {
        16 + self.attributes.as_slice().buffer_len()
    }

    fn emit(&self, buffer: &mut [u8]) {
        // Family (unspecified), padding and type of device are 0.
        for (at, field) in [(4, self.index), (8, self.flags), (12, self.changed)] {
            buffer[at..at + 4].copy_from_slice(&field.to_ne_bytes());
        }
        self.attributes.as_slice().emit(&mut buffer[16..]);
    }
}

/// Returns attributes as the value of one that contains them.
pub(super) fn nested(attributes: &[DefaultNla]) -> Vec<u8> {
    let mut value = vec![0; attributes.buffer_len()];
    attributes.emit(&mut value);
    value
}
