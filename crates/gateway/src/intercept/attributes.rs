//! Netlink attributes, written one after the other.
//!
//! ```text
//! ┌────────────┬────────────┬─────────────────────────┬──────────┐
//! │ length: 16 │ type:   16 │ payload                 │ padding  │   length counts header and
//! └────────────┴────────────┴─────────────────────────┴──────────┘   payload, not the padding
//!   host order, the type's top bit marks a nest        to 4 bytes
//! ```
//! Numbers inside nf_tables attributes are in network order.

/// Marks an attribute whose payload is attributes.
const NESTED: u16 = 1 << 15;

/// Encoded attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Attributes(Vec<u8>);

impl Attributes {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Appends one attribute.
    ///
    /// # Panics
    /// If the payload is longer than a netlink attribute (64 KB). All callers bound it.
    pub(super) fn put(mut self, kind: u16, payload: &[u8]) -> Self {
        let length = u16::try_from(payload.len() + 4).expect("an attribute below 64 KB");
        self.0.extend_from_slice(&length.to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(payload);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    pub(super) fn number(self, kind: u16, value: u32) -> Self {
        self.put(kind, &value.to_be_bytes())
    }

    /// A string with the NUL that ends it.
    pub(super) fn text(self, kind: u16, text: &str) -> Self {
        self.put(kind, &[text.as_bytes(), b"\0"].concat())
    }

    pub(super) fn nest(self, kind: u16, inner: &Self) -> Self {
        self.put(kind | NESTED, &inner.0)
    }
}

/// The payload of the first attribute of `kind`; `None` when there is none, or when the bytes
/// are not attributes.
pub(super) fn find(mut bytes: &[u8], kind: u16) -> Option<&[u8]> {
    while let [l0, l1, k0, k1, ..] = *bytes {
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        let payload = bytes.get(4..length)?;
        if u16::from_ne_bytes([k0, k1]) & !NESTED == kind {
            return Some(payload);
        }
        bytes = bytes.get(length.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_found_again() {
        let inner = Attributes::new().text(1, "cmp").number(2, 0x0102_0304);
        let outer = Attributes::new().put(7, &[9]).nest(4, &inner);
        assert_eq!(inner.as_bytes(), b"\x08\0\x01\0cmp\0\x08\0\x02\0\x01\x02\x03\x04");
        assert_eq!(&outer.as_bytes()[..12], b"\x05\0\x07\0\x09\0\0\0\x14\0\x04\x80");
        assert_eq!(find(outer.as_bytes(), 7), Some(&[9][..]));
        let nested = find(outer.as_bytes(), 4).unwrap();
        assert_eq!(find(nested, 2), Some(&[1, 2, 3, 4][..]));
        assert_eq!(find(nested, 3), None);
    }

    #[test]
    fn malformed_octets_have_no_attributes() {
        for bytes in
            [&b"\x01\0\x07\0"[..], b"\xff\0\x07\0abc", b"\0\0\0\0\x05\0\x07\0\x01", b"\x08"]
        {
            assert_eq!(find(bytes, 7), None);
        }
    }
}
