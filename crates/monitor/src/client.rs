//! Asking a gateway, one line at a time.

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

/// Where control sockets usually are.
const FOLDER: &str = "/run/bentpipe";
/// How long a gateway may take to answer: longer than it ever does.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest answer: a page of connections, or hundreds of terminals.
const MAX_ANSWER: u64 = 16 << 20;

/// A question to a gateway.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Question {
    /// Everything about the gateway and its terminals; answered by [`Status`](crate::Status).
    Status,
    /// Some connections; answered by [`Page`](crate::Page).
    Connections {
        /// Those with a higher number.
        after: u64,
        /// How many.
        most: usize,
        /// Only those of one terminal.
        #[serde(skip_serializing_if = "Option::is_none")]
        terminal: Option<String>,
    },
    /// What passes, behind the answer.
    Capture(crate::Request),
}

/// A connection to a gateway's control socket.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
}

impl Client {
    /// The gateway at `socket`; when that is `None`, the only one of this machine.
    ///
    /// # Errors
    /// When there is none, or several to choose from, or it does not let us in.
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

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// When the gateway refuses, gives no answer, or one that makes no sense.
    pub fn ask<T: DeserializeOwned>(&mut self, question: &Question) -> Result<T, Error> {
        Ok(serde_json::from_value(self.ask_value(question)?)?)
    }

    /// As [`Client::ask`]; the answer as it came.
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

    /// What follows an answer.
    pub(crate) fn into_stream(self) -> BufReader<UnixStream> {
        self.stream
    }
}

/// The one to choose, when there is no choice.
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
    fn the_only_socket_is_found_and_several_are_named() {
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
    fn questions_are_what_the_guide_says() {
        let line = |question: &Question| serde_json::to_string(question).unwrap();
        assert_eq!(line(&Question::Status), r#"{"ask":"status"}"#);
        let page = Question::Connections { after: 7, most: 100, terminal: None };
        assert_eq!(line(&page), r#"{"ask":"connections","after":7,"most":100}"#);
        let request = crate::Request { count: Some(9), ..crate::Request::default() };
        assert_eq!(line(&Question::Capture(request)), r#"{"ask":"capture","count":9}"#);
    }
}
