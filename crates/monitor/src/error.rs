//! Why there is nothing to see.

use std::io;
use std::path::PathBuf;

/// Why a gateway could not be looked at.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No socket was named, and none is where they usually are.
    #[error("no gateway's control socket in {folder}; is a gateway running? else name its socket")]
    Nowhere {
        /// Where they usually are.
        folder: &'static str,
    },
    /// No socket was named, and there are several.
    #[error("several gateways run here: name one of {}", list(.found))]
    Several {
        /// Their sockets.
        found: Vec<PathBuf>,
    },
    /// The gateway's socket.
    #[error("{}: {source}{}", path.display(), advice(.source))]
    Connect {
        /// Its place.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The gateway did not answer, or not to the end.
    #[error("the gateway gave no answer: {0}")]
    Silent(#[from] io::Error),
    /// The gateway refused to answer.
    #[error("the gateway says: {0}")]
    Refused(String),
    /// The answer is not one.
    #[error("the gateway's answer cannot be read: {0}")]
    Answer(#[from] serde_json::Error),
    /// The file of a capture.
    #[error("{}: {source}", path.display())]
    File {
        /// Its place.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

fn list(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    names.join(", ")
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; root and the socket's group may ask",
        io::ErrorKind::ConnectionRefused => "; the gateway that made it does not run any more",
        _ => "",
    }
}
