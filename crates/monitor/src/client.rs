//! The client of a control socket, with one JSON object per line.

use crate::Error;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Default folder of control sockets.
const FOLDER: &str = "/run/bentpipe";
/// Time limit of a response.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum size of a response in octets: a page of connections, or hundreds of terminals.
const MAX_ANSWER: u64 = 16 << 20;

/// A request to a gateway.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Question {
    /// The status of the gateway and its terminals; the response is [`Status`](crate::Status).
    Status,
    /// A page of connections; the response is [`Page`](crate::Page).
    Connections {
        /// Only connections with a higher number.
        after: u64,
        /// Maximum number of connections.
        most: usize,
        /// Only connections of one terminal.
        #[serde(skip_serializing_if = "Option::is_none")]
        terminal: Option<String>,
    },
    /// A capture, which follows the response.
    Capture(crate::Request),
}

/// A connection to a gateway's control socket.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
}

impl Client {
    /// Connects to the gateway at `socket`, or to the only one of this machine if `None`.
    ///
    /// # Errors
    /// If there is none or several, or access is denied.
    pub fn find(socket: Option<&Path>) -> Result<Self, Error> {
        let path = match socket {
            Some(path) => path.to_owned(),
            None => only(sockets(Path::new(FOLDER)))?,
        };
        let connect = |path: &Path| {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok(stream)
        };
        match connect(&path) {
            Ok(stream) => Ok(Self { stream: BufReader::new(stream) }),
            Err(source) => Err(Error::Connect { path, source }),
        }
    }

    /// Sends a request and returns the response.
    ///
    /// # Errors
    /// If the gateway refuses, or sends no valid response.
    pub fn ask<T: DeserializeOwned>(&mut self, question: &Question) -> Result<T, Error> {
        Ok(serde_json::from_value(self.ask_value(question)?)?)
    }

    /// As [`Client::ask`], with the response as text.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub fn ask_value(&mut self, question: &Question) -> Result<Value, Error> {
        let mut line = serde_json::to_vec(question)?;
        line.push(b'\n');
        self.stream.get_mut().write_all(&line)?;
        let mut answer = Vec::new();
        io::Read::take(&mut self.stream, MAX_ANSWER).read_until(b'\n', &mut answer)?;
        if answer.last() != Some(&b'\n') {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let value: Value = serde_json::from_slice(&answer)?;
        match value.get("error") {
            Some(error) => Err(Error::Refused(error.as_str().unwrap_or("no").to_owned())),
            None => Ok(value),
        }
    }

    /// Returns the connection, for reading what follows the response.
    pub(crate) fn into_stream(self) -> BufReader<UnixStream> {
        self.stream
    }
}

/// Returns the only control socket.
fn only(mut found: Vec<PathBuf>) -> Result<PathBuf, Error> {
    match found.len() {
        0 => Err(Error::Nowhere { folder: FOLDER }),
        1 => Ok(found.remove(0)),
        _ => Err(Error::Several { found }),
    }
}

fn sockets(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()))
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sock"))
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn the_only_socket_is_found_and_several_are_reported() {
        let folder = std::env::temp_dir().join(format!("monitor-find-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        assert!(matches!(only(sockets(&folder)), Err(Error::Nowhere { .. })));
        let hub = UnixListener::bind(folder.join("hub.sock")).unwrap();
        fs::write(folder.join("notes.sock"), "no socket").unwrap();
        assert_eq!(only(sockets(&folder)).unwrap(), folder.join("hub.sock"));
        let _other = UnixListener::bind(folder.join("north.sock")).unwrap();
        let said = only(sockets(&folder)).unwrap_err().to_string();
        assert!(said.contains("hub.sock, ") && said.contains("north.sock"), "{said}");
        drop(hub);
        let said = Client::find(Some(&folder.join("hub.sock"))).unwrap_err().to_string();
        assert!(said.contains("does not run any more"), "{said}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn requests_are_as_documented() {
        let line = |question: &Question| serde_json::to_string(question).unwrap();
        assert_eq!(line(&Question::Status), r#"{"ask":"status"}"#);
        let page = Question::Connections { after: 7, most: 100, terminal: None };
        assert_eq!(line(&page), r#"{"ask":"connections","after":7,"most":100}"#);
        let request = crate::Request { count: Some(9), ..crate::Request::default() };
        assert_eq!(line(&Question::Capture(request)), r#"{"ask":"capture","count":9}"#);
    }
}
