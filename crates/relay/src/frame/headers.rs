//! Encoding of the frames of header compression (`docs/spec/headers.md`).

use super::{COMPRESSED, CONTEXTS, DEFINE, Frame, FrameError, INVALID, Reader, Writer, varint_len};
use crate::headers::{CONTEXTS as MOST, Rule};

impl Writer<'_> {
    /// Writes a DEFINE and the packet that becomes the context, if both fit; returns whether they
    /// did.
    pub(crate) fn define(&mut self, context: u8, rule: Rule, packet: &[u8], more: bool) -> bool {
        let stride = u64::from(rule.stride);
        let len = 2 + varint_len(stride);
        if 2 + len + 1 + packet.len() > self.left() {
            return false;
        }
        self.bytes(&[DEFINE, len as u8, context, rule.octet()]);
        self.varint(stride);
        self.datagram(packet, more)
    }

    /// Writes a COMPRESSED of a header and a payload if it fits; returns whether it did.
    pub(crate) fn compressed(&mut self, header: &[u8], payload: &[u8]) -> bool {
        let len = header.len() + payload.len();
        if 1 + varint_len(len as u64) + len > self.left() {
            return false;
        }
        self.byte(COMPRESSED);
        self.varint(len as u64);
        self.bytes(header);
        self.bytes(payload);
        true
    }
}

impl<'a> Reader<'a> {
    /// Decodes the content of an extension frame of header compression.
    pub(super) fn headers(&mut self, kind: u8) -> Result<Frame<'a>, FrameError> {
        let (first, unknown) = (self.first(), Frame::Unknown { kind });
        let context = |frame| if usize::from(first) < MOST { frame } else { unknown.clone() };
        match kind {
            DEFINE => {
                let [_, octet] = self.array()?;
                let stride = u32::try_from(self.varint()?).map_err(|_| FrameError::Number)?;
                let rule = Rule::from_octet(octet, stride);
                Ok(rule.map_or(unknown.clone(), |rule| {
                    context(Frame::Define { context: first, rule })
                }))
            }
            COMPRESSED => Ok(Frame::Compressed { content: self.rest() }),
            CONTEXTS => Ok(Frame::Contexts { contexts: self.varint()? }),
            INVALID => {
                self.byte()?;
                Ok(context(Frame::Invalid { context: first }))
            }
            _ => Ok(unknown),
        }
    }
}
