//! Files and folders over one stream.
//!
//! ```text
//!   Source ─▶ send ─▶ Sender ══ ENTRY, DATA, FINISH, END ══▶ Receiver ─▶ receive ─▶ Store
//!   (walks the           ◀══ ANSWER, RESULT, DONE ══                    (folder, or
//!    folders)                                                            standard output)
//! ```
//!
//! [`wire`] has the messages, [`sender`] and [`receiver`] the rules without I/O; [`send`] and
//! [`receive`] read and write files. The receiver names the offset from which it needs a file, so an
//! interrupted transfer that is started again continues. `docs/spec/transfer.md` specifies it.
#![forbid(unsafe_code)]

mod channel;
mod folder;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod output;
mod path;
pub mod receiver;
mod receiving;
pub mod sender;
mod sending;
mod source;
pub mod wire;

pub use channel::Channel;
pub use folder::Folder;
pub use output::Output;
pub use path::{PathError, SafePath};
pub use receiving::{Store, receive};
pub use sending::send;
pub use source::{Source, SourceError};

use std::io;

/// Why a transfer has ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The stream was lost. The transfer can be started again, and continues.
    #[error("interrupted: {0}")]
    Interrupted(io::Error),
    /// The peer has ended the transfer.
    #[error("the peer has ended the transfer: {0}")]
    Peer(String),
    /// The peer has violated the protocol.
    #[error("protocol: {0}")]
    Protocol(#[from] wire::Violation),
    /// A local file cannot be read or written.
    #[error("{0}")]
    Local(String),
}

/// What a transfer has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Files that were transferred.
    pub files: u64,
    /// Files that the receiver had already.
    pub present: u64,
    /// Files and folders that were refused, skipped or failed; each had a [`Update::Note`].
    pub failed: u64,
    /// Octets of content that were sent or received by this call.
    pub octets: u64,
}

/// Progress of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update<'a> {
    /// So many octets of content were sent or received.
    Moved(u64),
    /// So many octets were there already.
    Skipped(u64),
    /// A remark for the user, about a file.
    Note(&'a str),
}

/// Receives the progress of a transfer.
pub type Reporter<'a> = dyn FnMut(Update<'_>) + 'a;
