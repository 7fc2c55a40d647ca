//! Messages of a hub to a MAC scheduler with the number of connections per terminal: JSON in
//! datagrams on a Unix socket.
//!
//! ```text
//!   hub daemon  ── {"bentpipe":"mac","version":1,…,"terminals":[{"name":"boat","connections":5}]}
//!       │ Sender
//!       ▼ SOCK_DGRAM, at a path of the scheduler
//!   scheduler   Receiver: an emulator's, or a real one's
//! ```
//!
//! A number replaces the previous one of its terminal; terminals that are not named are unchanged.
//! Lost messages have no lasting effect if numbers are repeated. `docs/guide/multi-access.md`
//! describes the format.

use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// The version of the format.
pub const VERSION: u32 = 1;
/// Maximum length of a message in octets; longer ones are rejected.
pub const LONGEST: usize = 60_000;
/// Maximum terminals per message; a hub with more sends several.
pub const MOST_TERMINALS: usize = 100;

/// The type of a message, which distinguishes it from stray datagrams.
const NAME: &str = "mac";

/// One message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Always `mac`.
    bentpipe: String,
    /// The version of the format. Messages of unknown versions are rejected.
    pub version: u32,
    /// The name of the hub, for logs.
    #[serde(default)]
    pub hub: String,
    /// Sequence number of the hub's messages, from 0.
    #[serde(default)]
    pub sequence: u64,
    /// Terminals; need not be all.
    pub terminals: Vec<TerminalCount>,
}

/// The state of a terminal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalCount {
    /// Its name, as at the hub.
    pub name: String,
    /// Open connections between the terminal and the hub.
    pub connections: u64,
}

impl Message {
    /// A message of this version.
    pub fn new(hub: &str, sequence: u64, terminals: Vec<TerminalCount>) -> Self {
        let (bentpipe, hub) = (NAME.to_owned(), hub.to_owned());
        Self { bentpipe, version: VERSION, hub, sequence, terminals }
    }

    /// Parses a datagram; unknown keys are ignored.
    ///
    /// # Errors
    /// Why it is not a message of this version.
    pub fn parse(datagram: &[u8]) -> Result<Self, String> {
        let message: Self = serde_json::from_slice(datagram).map_err(|error| error.to_string())?;
        if message.bentpipe != NAME {
            return Err(format!("bentpipe: found {:?}, expected {NAME:?}", message.bentpipe));
        }
        if message.version != VERSION {
            return Err(format!("version: found {}, expected {VERSION}", message.version));
        }
        Ok(message)
    }

    /// Encodes the message as a datagram.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("every key is a string")
    }
}

/// The hub's end.
#[derive(Debug)]
pub struct Sender {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Sender {
    /// A sender to `path`, where a scheduler need not listen yet.
    ///
    /// # Errors
    /// If no socket can be created.
    pub fn new(path: &Path) -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, path: path.to_owned() })
    }

    /// Its destination.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sends a message without blocking.
    ///
    /// # Errors
    /// If no scheduler listens, or its receive queue is full.
    pub fn send(&self, message: &Message) -> io::Result<()> {
        self.socket.send_to(&message.to_bytes(), &self.path).map(drop)
    }
}

/// The scheduler's end. The socket is removed when this is dropped.
#[derive(Debug)]
pub struct Receiver {
    socket: UnixDatagram,
    path: PathBuf,
    /// One octet more than a message may have, to detect longer ones.
    buffer: Vec<u8>,
}

impl Receiver {
    /// Listens at `path`, for this user and group (mode 660). A stale socket is replaced.
    ///
    /// # Errors
    /// If another file is there, another scheduler listens there, or access is denied.
    pub fn bind(path: &Path) -> io::Result<Self> {
        let socket = match UnixDatagram::bind(path) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                // A file refuses a connection like a stale socket.
                let is_socket = fs::symlink_metadata(path)?.file_type().is_socket();
                let refused = UnixDatagram::unbound()?.connect(path).map_err(|error| error.kind());
                match refused {
                    Err(ErrorKind::ConnectionRefused) if is_socket => {
                        fs::remove_file(path)?;
                        UnixDatagram::bind(path)?
                    }
                    Ok(()) | Err(_) => return Err(error),
                }
            }
            other => other?,
        };
        let receiver = Self { socket, path: path.to_owned(), buffer: vec![0; LONGEST + 1] };
        receiver.socket.set_nonblocking(true)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o660))?;
        Ok(receiver)
    }

    /// The next queued message, or why it was rejected; `None`: the queue is empty.
    pub fn receive(&mut self) -> Option<Result<Message, String>> {
        match self.socket.recv(&mut self.buffer) {
            Ok(length) if length > LONGEST => Some(Err(format!("longer than {LONGEST} bytes"))),
            Ok(length) => Some(Message::parse(&self.buffer[..length])),
            // No message, or an error that cannot be handled here.
            Err(_) => None,
        }
    }
}

impl AsRawFd for Receiver {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // The socket may already be removed.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("bentpipe-{}-{name}.sock", std::process::id()))
    }

    fn count(name: &str, connections: u64) -> TerminalCount {
        TerminalCount { name: name.into(), connections }
    }

    #[test]
    fn a_message_reads_as_documented() {
        let message = Message::new("teleport", 7, vec![count("boat", 5)]);
        let text = String::from_utf8(message.to_bytes()).unwrap();
        let documented = r#"{"bentpipe":"mac","version":1,"hub":"teleport","sequence":7,"terminals":[{"name":"boat","connections":5}]}"#;
        assert_eq!(text, documented);
        assert_eq!(Message::parse(documented.as_bytes()), Ok(message));
        // Keys of later versions are ignored.
        let more = documented.replace("\"hub\"", "\"weather\":\"fine\",\"hub\"");
        assert!(Message::parse(more.as_bytes()).is_ok());
    }

    #[test]
    fn the_longest_message_of_a_hub_fits() {
        // A name has at most 64 bytes, and none needs more than six for one (\u0000).
        let name = "\u{1}".repeat(64);
        let terminals = vec![count(&name, u64::MAX); MOST_TERMINALS];
        let bytes = Message::new("teleport", u64::MAX, terminals).to_bytes();
        assert!(bytes.len() <= LONGEST, "{}", bytes.len());
    }

    #[test]
    fn invalid_messages_are_rejected_with_a_reason() {
        let error = |text: &str| Message::parse(text.as_bytes()).unwrap_err();
        assert!(error("GET / HTTP/1.1").contains("expected value"));
        let other = r#"{"bentpipe":"mac","version":2,"terminals":[]}"#;
        assert_eq!(error(other), "version: found 2, expected 1");
        let other = r#"{"bentpipe":"status","version":1,"terminals":[]}"#;
        assert_eq!(error(other), "bentpipe: found \"status\", expected \"mac\"");
        let other = r#"{"bentpipe":"mac","version":1,"terminals":[{"name":"a","connections":-1}]}"#;
        assert!(error(other).contains("-1"));
    }

    #[test]
    fn messages_arrive_and_a_receiver_is_optional() {
        let path = place("counts");
        let sender = Sender::new(&path).unwrap();
        let message = Message::new("teleport", 0, vec![count("boat", 5), count("hut", 0)]);
        assert_eq!(sender.send(&message).unwrap_err().kind(), ErrorKind::NotFound);
        let mut receiver = Receiver::bind(&path).unwrap();
        assert!(receiver.receive().is_none());
        sender.send(&message).unwrap();
        assert_eq!(receiver.receive(), Some(Ok(message.clone())));
        let refused = Receiver::bind(&path).map(drop).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::AddrInUse, "one listens there");
        let stranger = UnixDatagram::unbound().unwrap();
        stranger.send_to(&vec![b' '; LONGEST + 9], &path).unwrap();
        assert!(receiver.receive().unwrap().unwrap_err().contains("longer than"));
        drop(receiver);
        assert!(!path.exists());
        assert!(sender.send(&message).is_err());
    }

    #[test]
    fn a_socket_that_was_left_behind_is_replaced_and_a_file_is_not() {
        let path = place("left");
        drop(UnixDatagram::bind(&path).unwrap());
        drop(Receiver::bind(&path).unwrap());
        fs::write(&path, "of another program").unwrap();
        let refused = Receiver::bind(&path).map(drop).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::AddrInUse);
        fs::remove_file(&path).unwrap();
    }
}
