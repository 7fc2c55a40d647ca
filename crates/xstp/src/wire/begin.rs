//! BGN and BGNAK.
//!
//! ```text
//! published   +---------------+-------------------------------+--------
//!             |  incarnation  |      maximum segment          |  echo (4 octets, BGNAK only)
//!             +---------------+-------------------------------+--------
//! sealed      +---------------+---------------+---------------+---------------+
//!             |   version 1   |   delivery    |      maximum segment          |
//!             +---------------+---------------+---------------+---------------+
//!             |                          incarnation                          |
//!             +---------------------------------------------------------------+
//!             |   window, variable-length     |  echo (4 octets, BGNAK only)
//!             +-------------------------------+--------
//! ```

use super::header::Header;
use super::octets::{Reader, Sink};
use super::{DecodeError, Profile};
use crate::seq::Seq24;

/// Version of the sealed profile.
const VERSION: u8 = 1;

/// Delivery of received packets to the upper layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// As one stream of octets.
    InOrder,
    /// Each packet when it is received (sealed profile only).
    Immediate,
}

/// BGN: opens a session, with the limits of its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begin {
    /// Distinguishes this session from earlier ones between the same addresses; 8 bits as
    /// published (higher bits are not sent), 32 bits when sealed.
    pub incarnation: u32,
    /// Receive window of the sender of this segment until its first STAT, in packets.
    pub window: u32,
    /// Maximum segment size that the sender of this segment receives, in octets with the header.
    pub max_segment: u16,
    /// Delivery at the sender of this segment; always [`Delivery::InOrder`] as published.
    pub delivery: Delivery,
}

/// BGNAK: accepts the BGN with the same incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeginAck {
    /// Limits of the accepting side, with the incarnation of the BGN.
    pub begin: Begin,
    /// Timestamp of the BGN.
    pub echo: u32,
}

impl Begin {
    pub(super) fn encode(&self, profile: &Profile, sink: &mut impl Sink) {
        match profile {
            Profile::Published(_) => {
                sink.octet(self.incarnation as u8);
                sink.u16(self.max_segment);
            }
            Profile::Sealed => {
                sink.octet(VERSION);
                sink.octet(match self.delivery {
                    Delivery::InOrder => 0,
                    Delivery::Immediate => 1,
                });
                sink.u16(self.max_segment);
                sink.u32(self.incarnation);
                sink.varint(self.window.min(Seq24::HALF));
            }
        }
    }

    pub(super) fn decode(
        profile: &Profile,
        header: &Header,
        reader: &mut Reader<'_>,
    ) -> Result<Self, DecodeError> {
        match profile {
            Profile::Published(_) => Ok(Self {
                incarnation: u32::from(reader.octet()?),
                window: header.window,
                max_segment: reader.u16()?,
                delivery: Delivery::InOrder,
            }),
            Profile::Sealed => {
                let version = reader.octet()?;
                if version != VERSION {
                    return Err(DecodeError::Field {
                        part: reader.part(),
                        field: "version",
                        expected: u32::from(VERSION),
                        found: u32::from(version),
                    });
                }
                let delivery = match reader.octet()? {
                    0 => Delivery::InOrder,
                    1 => Delivery::Immediate,
                    found => {
                        return Err(DecodeError::Field {
                            part: reader.part(),
                            field: "delivery",
                            expected: 1,
                            found: u32::from(found),
                        });
                    }
                };
                Ok(Self {
                    max_segment: reader.u16()?,
                    incarnation: reader.u32()?,
                    window: reader.varint_up_to(Seq24::HALF, "window")?,
                    delivery,
                })
            }
        }
    }
}

impl BeginAck {
    pub(super) fn encode(&self, profile: &Profile, sink: &mut impl Sink) {
        self.begin.encode(profile, sink);
        sink.u32(self.echo);
    }

    pub(super) fn decode(
        profile: &Profile,
        header: &Header,
        reader: &mut Reader<'_>,
    ) -> Result<Self, DecodeError> {
        let begin = Begin::decode(profile, header, reader)?;
        Ok(Self { begin, echo: reader.u32()? })
    }
}
