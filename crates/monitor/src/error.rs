//! Errors of the client.

use std::io;
use std::path::PathBuf;

/// Errors of the client of a gateway.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No socket was given, and the default folder has none.
    #[error(
        "no gateway's control socket in {folder}: start a gateway, or name its socket by --socket"
    )]
    Nowhere {
        /// The default folder.
        folder: &'static str,
    },
    /// No socket was given, and the default folder has several.
    #[error("several gateways run here: name one of {}", list(.found))]
    Several {
        /// Paths of the sockets.
        found: Vec<PathBuf>,
    },
    /// The control socket could not be used.
    #[error("{}: {source}{}", path.display(), advice(.source))]
    Connect {
        /// Path of the socket.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The gateway sent no complete response.
    #[error("the gateway gave no answer: {0}")]
    Silent(#[from] io::Error),
    /// The gateway refused the request.
    #[error("the gateway says: {0}")]
    Refused(String),
    /// The response is invalid.
    #[error("the gateway's answer cannot be read: {0}")]
    Answer(#[from] serde_json::Error),
    /// The file of a capture could not be written.
    #[error("{}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The error of the operating system.
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
