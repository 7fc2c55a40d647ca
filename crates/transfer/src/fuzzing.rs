//! Functions for the targets in `fuzz/`, and for tests with random octets.

use crate::receiver::{Input, Receiver};
use crate::sender::{MAX_OPEN, Sender};
use crate::wire::{Answer, MAX_MESSAGE, Outcome, decode};
use crate::{SafePath, wire::Message};

/// Decodes `input` as messages, and hands them to both ends of a transfer. Returns the number of
/// messages.
///
/// # Panics
/// If a message is not encoded as it was decoded, or a bound is exceeded.
pub fn messages(input: &[u8]) -> usize {
    let (mut sender, mut receiver) = (Sender::default(), Receiver::default());
    for _ in 0..4 {
        sender.offer(1, 100);
    }
    let mut rest = input;
    let mut count = 0;
    while let Ok(Some((message, len))) = decode(rest) {
        assert!(len <= MAX_MESSAGE && len <= rest.len());
        check_encoding(&message, &rest[..len]);
        rest = &rest[len..];
        count += 1;
        let _ = sender.handle(message.clone());
        while let Some((number, offset)) = sender.take_needed() {
            assert!(offset <= 100);
            sender.on_sent(number);
        }
        match receiver.handle(message) {
            Ok(Input::Entry(entry)) => {
                let is_safe = SafePath::new(&entry.path).is_ok();
                let refused = Answer::Refused(String::new());
                receiver.answer(if is_safe { Answer::Send(0) } else { refused });
            }
            Ok(Input::Finish(number, hash)) => {
                let outcome = if hash[0] & 1 == 0 { Outcome::Stored } else { Outcome::Damaged };
                receiver.outcome(number, outcome);
            }
            Ok(Input::Data(number, bytes)) if bytes[0] == 0 => {
                receiver.outcome(number, Outcome::Failed(String::new()));
            }
            Ok(_) | Err(_) => {}
        }
    }
    assert!(count <= input.len() / 4 && MAX_OPEN > 4);
    count
}

/// Texts are escaped when they are decoded, so messages with them may differ.
fn check_encoding(message: &Message<'_>, octets: &[u8]) {
    let has_text = match message {
        Message::Answer { answer, .. } => matches!(answer, Answer::Refused(_)),
        Message::Result { outcome, .. } => matches!(outcome, Outcome::Failed(_)),
        Message::Error(_) => true,
        _ => false,
    };
    if !has_text {
        let mut encoded = Vec::new();
        message.encode(&mut encoded);
        assert_eq!(encoded, octets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Entry, Kind, Role};
    use units::RngStream;

    #[test]
    fn random_octets_and_damaged_messages_never_panic() {
        let mut random = RngStream::new(1, 0, "messages");
        let mut valid = Vec::new();
        Message::Hello(Role::Sender).encode(&mut valid);
        let path = b"a/b".to_vec();
        let (mode, mtime_s, mtime_ns, size) = (0o644, 1, 2, 4);
        let entry = Entry { number: 0, kind: Kind::File, mode, mtime_s, mtime_ns, size, path };
        Message::Entry(entry).encode(&mut valid);
        Message::Data { number: 0, offset: 0, bytes: b"abcd" }.encode(&mut valid);
        Message::Finish { number: 0, hash: [2; 32] }.encode(&mut valid);
        Message::End.encode(&mut valid);
        assert_eq!(messages(&valid), 5);
        let mut decoded = 0;
        for _ in 0..20_000 {
            let mut input = valid.clone();
            for _ in 0..1 + random.next_u64() % 3 {
                let at = random.next_u64() as usize % input.len();
                input[at] = random.next_u64() as u8;
            }
            decoded += messages(&input);
        }
        assert!(decoded > 40_000, "{decoded} messages reached the rules");
    }
}
