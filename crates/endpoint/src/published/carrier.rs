//! What carries the segments of a host.

use super::Peer;
use super::raw::Raw;
use super::tnc::TncLink;
use std::io;
use std::os::fd::OwnedFd;

/// Receives a segment and its source.
pub(super) type Deliver<'a> = dyn FnMut(Peer, &[u8]) + 'a;

#[derive(Debug)]
pub(super) enum Carrier {
    /// A raw IP socket.
    Raw(Raw),
    /// A TNC.
    Tnc(Box<TncLink>),
}

impl Carrier {
    pub(super) fn descriptor(&self) -> io::Result<OwnedFd> {
        match self {
            Self::Raw(raw) => raw.descriptor(),
            Self::Tnc(tnc) => tnc.descriptor(),
        }
    }

    /// Checks that it reaches such a peer.
    pub(super) fn check(&self, peer: Peer) -> io::Result<()> {
        let (is_reached, text) = match self {
            Self::Raw(raw) => (
                peer.station.is_none() && raw.reaches(peer.address),
                "on IP a peer has an address of the same family, and no call sign",
            ),
            Self::Tnc(_) => (
                peer.station.is_some() && peer.address.is_ipv4(),
                "on packet radio a peer has a call sign and an IPv4 address",
            ),
        };
        let error = || io::Error::new(io::ErrorKind::InvalidInput, text);
        is_reached.then_some(()).ok_or_else(error)
    }

    /// Receives what has arrived, as much as `buffer` allows at a time.
    pub(super) fn receive(
        &mut self,
        buffer: &mut [u8],
        deliver: &mut Deliver<'_>,
    ) -> io::Result<()> {
        match self {
            Self::Raw(raw) => raw.receive(buffer, deliver),
            Self::Tnc(tnc) => tnc.receive(buffer, deliver),
        }
    }

    /// Whether nothing can be sent now.
    pub(super) fn is_full(&mut self) -> io::Result<bool> {
        match self {
            Self::Raw(raw) => Ok(raw.take_full()),
            Self::Tnc(tnc) => tnc.is_full(),
        }
    }

    /// Sends a segment; returns whether it was taken. One that was not is lost, as on the link.
    pub(super) fn send(&mut self, peer: Peer, segment: &[u8]) -> io::Result<bool> {
        match self {
            Self::Raw(raw) => Ok(raw.send(peer, segment)),
            Self::Tnc(tnc) => tnc.send(peer, segment),
        }
    }

    /// Frames and packets that were dropped because they are not for this host or malformed.
    pub(super) fn refused(&self) -> u64 {
        match self {
            Self::Raw(raw) => raw.refused,
            Self::Tnc(tnc) => tnc.refused(),
        }
    }
}
