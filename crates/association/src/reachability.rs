//! A datagram by which a terminal tests whether its hub is reachable at an address, without an
//! effect on its association.
//!
//! It is a sealed datagram with index 0, which no hub chooses (ASC-1.3): the hub answers with an
//! Unknown (ASC-4.1), the same header with another kind.

use crate::wire::{Header, Kind, OVERHEAD};

/// Length of the probe and of the response, in octets.
pub const LEN: usize = OVERHEAD;

/// Returns the probe with this `counter`, which should be random.
pub fn probe(counter: u32) -> [u8; LEN] {
    let mut datagram = [0; LEN];
    Header { kind: Kind::Data, index: 0, counter }.encode(&mut datagram);
    datagram
}

/// Whether `datagram` is the response to the probe with this `counter`. Anyone who has seen the
/// probe can forge it.
pub fn is_response(datagram: &[u8], counter: u32) -> bool {
    let response = Header { kind: Kind::Unknown, index: 0, counter };
    Header::decode(datagram) == Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Hub, HubReceived, TransmitBatch};
    use units::Instant;

    #[test]
    fn a_hub_answers_and_keeps_nothing() {
        let mut hub = Hub::new(Config::new("hub"), units::RngStream::new(1, 0, "hub"));
        let from = "192.0.2.1:5000".parse().unwrap();
        let mut datagram = probe(0x1234_5678);
        let received = hub.handle_datagram(Instant::ZERO, from, &mut datagram);
        assert!(!matches!(received, Ok(HubReceived::Payload { .. })));
        let mut buffer = [0; 100];
        let mut batch = TransmitBatch::new(&mut buffer, 1);
        assert_eq!(hub.poll_transmit(&mut batch), Some(from));
        let response = &buffer[..LEN];
        assert!(is_response(response, 0x1234_5678));
        assert!(!is_response(response, 0x1234_5679));
        assert!(!is_response(&probe(0x1234_5678), 0x1234_5678));
        assert!(!is_response(&response[..LEN - 1], 0x1234_5678));
    }
}
