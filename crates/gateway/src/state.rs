//! Path metrics of peers, cached on disk, so that a restart begins at speed.
//!
//! ```toml
//! # Path metrics measured by bentpipe. This file may be deleted.
//! [[peer]]
//! name = "boat"
//! rate_bits_per_second = 9930000
//! round_trip_ms = 602
//! learnt_unix_seconds = 1790000000
//! ```
//!
//! The file is optional: if it is missing, malformed or not writable, a line is logged and the
//! start is slower. A separate thread replaces it as a whole, rarely, so that a slow disk does not
//! delay the pacing of the link.

use relay::PathMetrics;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;
use units::{BitRate, Instant, Span};

/// Maximum number of peers in the file; the oldest are removed.
const MOST: usize = 1024;
/// Maximum size of the file in bytes; a larger one is rejected.
const MOST_BYTES: u64 = 1 << 20;
/// Maximum age of an entry in seconds.
const OLD: u64 = 30 * 86_400;
/// Minimum time between two writes.
const RARELY: Span = Span::from_secs(60);
/// Maximum time that the end of the gateway waits for a disk that does not respond.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);
/// Time after which unchanged metrics are written again, seconds.
const CONFIRMED: u64 = 6 * 3600;

/// The file's content.
#[derive(Debug, Default, Serialize)]
struct Content {
    peer: Vec<Peer>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Peer {
    name: String,
    rate_bits_per_second: u64,
    round_trip_ms: u64,
    learnt_unix_seconds: u64,
}

/// Metrics of one peer, and their time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    metrics: PathMetrics,
    unix: u64,
}

/// Cached path metrics and their file.
#[derive(Debug)]
pub(crate) struct State {
    path: Option<PathBuf>,
    entries: BTreeMap<String, Entry>,
    /// The content of the file.
    written: BTreeMap<String, Entry>,
    next: Instant,
    /// Disconnected when the thread that writes has finished.
    writer: Option<Receiver<()>>,
}

impl State {
    /// Reads the file at `path`, if it exists and is valid, at `unix` seconds.
    pub(crate) fn open(path: Option<&Path>, unix: u64) -> Self {
        let mut entries = BTreeMap::new();
        if let Some(path) = path {
            match read(path) {
                Ok(Some(content)) => entries = fresh(content, unix),
                Ok(None) => tracing::info!(path = %path.display(), "no cached path metrics yet"),
                Err(error) => {
                    let path = path.display();
                    tracing::warn!(%path, %error, "cached path metrics not read");
                }
            }
        }
        let written = entries.clone();
        let path = path.map(Path::to_path_buf);
        Self { path, entries, written, next: Instant::ZERO, writer: None }
    }

    /// Returns the metrics of all peers.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, PathMetrics)> {
        self.entries.iter().map(|(name, entry)| (name.as_str(), entry.metrics))
    }

    /// Returns the metrics of one peer.
    pub(crate) fn get(&self, name: &str) -> Option<PathMetrics> {
        self.entries.get(name).map(|entry| entry.metrics)
    }

    /// Stores metrics that were measured at `unix` seconds.
    pub(crate) fn put(&mut self, name: &str, metrics: PathMetrics, unix: u64) {
        if self.path.is_none() {
            return;
        }
        self.entries.insert(name.to_owned(), Entry { metrics, unix });
        if self.entries.len() > MOST {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.unix);
            if let Some(name) = oldest.map(|(name, _)| name.clone()) {
                self.entries.remove(&name);
            }
        }
    }

    /// Writes if there are changes and the last write is long enough ago.
    pub(crate) fn save_rarely(&mut self, now: Instant) {
        let is_busy = |writer: &Receiver<()>| writer.try_recv() == Err(TryRecvError::Empty);
        let busy = self.writer.as_ref().is_some_and(is_busy);
        if now < self.next || busy || !self.has_news() {
            return;
        }
        self.next = now + RARELY;
        self.save();
    }

    /// Writes pending changes and waits for that, for [`CLOSE_LIMIT`] at most: the end of the process
    /// does not depend on a disk.
    pub(crate) fn close(&mut self) {
        if self.is_written() && self.entries != self.written {
            self.save();
            self.is_written();
        }
    }

    /// Waits for the writing thread; returns whether it finished in time.
    fn is_written(&mut self) -> bool {
        let Some(writer) = self.writer.take() else { return true };
        let finished = writer.recv_timeout(CLOSE_LIMIT) != Err(RecvTimeoutError::Timeout);
        if !finished {
            tracing::warn!("state: the disk does not respond, path metrics may be lost");
        }
        finished
    }

    /// Whether metrics have changed enough to be written.
    fn has_news(&self) -> bool {
        self.entries.iter().any(|(name, entry)| match self.written.get(name) {
            None => true,
            Some(old) => {
                let (new, old_rate) = (entry.metrics.rate.as_bps(), old.metrics.rate.as_bps());
                new.abs_diff(old_rate) > old_rate / 20 || entry.unix >= old.unix + CONFIRMED
            }
        })
    }

    fn save(&mut self) {
        let Some(path) = self.path.clone() else { return };
        self.written.clone_from(&self.entries);
        let text = text_of(&self.entries);
        let (running, finished) = mpsc::channel();
        let writer = std::thread::Builder::new().name("state".into()).spawn(move || {
            let _until_the_end = running;
            if let Err(error) = replace(&path, text.as_bytes()) {
                tracing::warn!(path = %path.display(), %error, "path metrics not written");
            }
        });
        match writer {
            Ok(_) => self.writer = Some(finished),
            // The gateway continues; the next change triggers another attempt.
            Err(error) => tracing::warn!(%error, "no thread to write path metrics"),
        }
    }
}

fn text_of(entries: &BTreeMap<String, Entry>) -> String {
    let peer = entries
        .iter()
        .map(|(name, Entry { metrics, unix })| Peer {
            name: name.clone(),
            rate_bits_per_second: metrics.rate.as_bps(),
            round_trip_ms: metrics.min_rtt.as_millis(),
            learnt_unix_seconds: *unix,
        })
        .collect();
    // Names and numbers are always representable.
    let body = toml::to_string(&Content { peer }).unwrap_or_default();
    format!("# Path metrics measured by bentpipe. This file may be deleted.\n\n{body}")
}

/// Drops outdated and implausible entries.
fn fresh(content: Content, unix: u64) -> BTreeMap<String, Entry> {
    let mut peers: Vec<Peer> = content.peer;
    // The latest are kept if there are too many.
    peers.sort_by_key(|peer| std::cmp::Reverse(peer.learnt_unix_seconds));
    let entry = |peer: Peer| {
        let rate =
            BitRate::new(peer.rate_bits_per_second).filter(|rate| rate.as_bps() <= MAX_BPS)?;
        let round_trip = Span::from_millis(peer.round_trip_ms.clamp(1, 60_000));
        // A clock that was set back makes no entry older.
        let at = peer.learnt_unix_seconds.min(unix);
        let entry = Entry { metrics: PathMetrics { rate, min_rtt: round_trip }, unix: at };
        (unix - at <= OLD && peer.name.len() <= 256).then_some((peer.name, entry))
    };
    peers.into_iter().filter_map(entry).take(MOST).collect()
}

/// As in the configuration: 10 Tbit/s.
const MAX_BPS: u64 = 10_000_000_000_000;

fn read(path: &Path) -> io::Result<Option<Content>> {
    // Nonblocking: a pipe without a writer must not block the start.
    let opened = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    file.take(MOST_BYTES).read_to_string(&mut text)?;
    let broken = |error: toml::de::Error| io::Error::other(error.message().to_owned());
    let table: toml::Table = toml::from_str(&text).map_err(broken)?;
    let Some(peers) = table.get("peer") else { return Ok(Some(Content::default())) };
    let peers = peers.as_array().ok_or_else(|| io::Error::other("`peer` is not a list"))?;
    let peer: Vec<Peer> =
        peers.iter().filter_map(|peer| Peer::deserialize(peer.clone()).ok()).collect();
    let left_out = peers.len() - peer.len();
    if left_out > 0 {
        let path = path.display();
        tracing::warn!(%path, left_out, "some cached path metrics are implausible and ignored");
    }
    Ok(Some(Content { peer }))
}

/// Replaces the file atomically: by a temporary file and a rename.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    // A leftover file there, or a link in a folder of another user, is removed first.
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = File::create_new(&beside)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn metrics(kbps: u64) -> PathMetrics {
        PathMetrics { rate: BitRate::from_kbps(kbps), min_rtt: Span::from_millis(603) }
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("bentpipe-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn metrics_are_read_back_until_they_are_old() {
        let folder = folder("state");
        let path = folder.join("below").join("peers.toml");
        let mut state = State::open(Some(&path), NOW);
        assert_eq!(state.get("boat"), None);
        state.put("boat", metrics(9_900), NOW);
        state.put("a \"strange\"\\ name", metrics(5), NOW - OLD);
        state.close();
        let again = State::open(Some(&path), NOW);
        assert_eq!(again.all().count(), 2);
        assert_eq!(again.get("boat"), Some(metrics(9_900)));
        let later = State::open(Some(&path), NOW + 1);
        assert_eq!(later.all().collect::<Vec<_>>(), [("boat", metrics(9_900))]);
        let set_back = State::open(Some(&path), 0);
        assert_eq!(set_back.all().count(), 2);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_broken_file_is_no_reason_not_to_start_and_is_replaced() {
        let folder = folder("broken-state");
        let path = folder.join("peers.toml");
        let zero = "[[peer]]\nname = \"a\"\nrate_bits_per_second = 0\nround_trip_ms = 1\n\
                    learnt_unix_seconds = 1800000000";
        for broken in ["[[peer", "peer = 4", "\u{fffd}", "[[peer]]\nname = \"a\"", zero] {
            fs::write(&path, broken).unwrap();
            assert_eq!(State::open(Some(&path), NOW).all().count(), 0, "{broken}");
        }
        fs::write(&path, [0xff, 0xfe]).unwrap();
        let mut state = State::open(Some(&path), NOW);
        state.put("boat", metrics(100), NOW);
        state.close();
        assert_eq!(State::open(Some(&path), NOW).get("boat"), Some(metrics(100)));
        // Nor is a place where nothing can be written.
        let mut nowhere = State::open(Some(Path::new("/proc/nowhere/peers.toml")), NOW);
        nowhere.put("boat", metrics(100), NOW);
        nowhere.close();
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn one_bad_entry_costs_only_itself() {
        let folder = folder("half-state");
        let path = folder.join("peers.toml");
        let mut state = State::open(Some(&path), NOW);
        state.put("boat", metrics(100), NOW);
        state.put("barge", metrics(200), NOW);
        state.close();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replacen("rate_bits_per_second = 200000", "rate = -4", 1)).unwrap();
        let state = State::open(Some(&path), NOW);
        assert_eq!(state.all().collect::<Vec<_>>(), [("boat", metrics(100))]);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_pipe_does_not_block() {
        let folder = folder("pipe-state");
        let path = folder.join("peers.toml");
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        assert_eq!(State::open(Some(&path), NOW).all().count(), 0);
        assert_eq!(State::open(Some(&folder), NOW).all().count(), 0, "a folder");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn symbolic_links_are_not_followed() {
        let folder = folder("linked-state");
        let (path, other) = (folder.join("peers.toml"), folder.join("other"));
        fs::write(&other, "precious").unwrap();
        std::os::unix::fs::symlink(&other, folder.join("peers.toml.part")).unwrap();
        let mut state = State::open(Some(&path), NOW);
        state.put("boat", metrics(100), NOW);
        state.close();
        assert_eq!(fs::read_to_string(&other).unwrap(), "precious");
        assert_eq!(State::open(Some(&path), NOW).get("boat"), Some(metrics(100)));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn only_news_are_written_and_rarely() {
        let folder = folder("rare-state");
        let path = folder.join("peers.toml");
        let mut state = State::open(Some(&path), NOW);
        let at = |secs| Instant::ZERO + Span::from_secs(secs);
        state.put("boat", metrics(1_000), NOW);
        assert!(state.has_news());
        state.save_rarely(at(1));
        assert!(!state.has_news());
        state.put("boat", metrics(1_040), NOW + 10);
        assert!(!state.has_news(), "by 4 %");
        state.put("boat", metrics(1_060), NOW + 20);
        assert!(state.has_news());
        state.save_rarely(at(30));
        assert!(state.has_news(), "too early");
        state.close();
        assert_eq!(State::open(Some(&path), NOW).get("boat"), Some(metrics(1_060)));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_file_has_a_bound() {
        let mut state = State::open(Some(Path::new("/nonexistent/peers.toml")), NOW);
        for number in 0..MOST as u64 + 5 {
            state.put(&format!("boat {number}"), metrics(9), NOW + number);
        }
        assert_eq!(state.all().count(), MOST);
        assert_eq!(state.get("boat 4"), None);
        assert!(text_of(&state.entries).len() < MOST_BYTES as usize);
        state.path = None; // Nothing is to be written.
    }
}
