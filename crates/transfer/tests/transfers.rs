//! Transfers between folders, over streams that end at every point.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;
use transfer::wire::{Answer, Entry, Kind, Message, Outcome, Role, decode};
use transfer::{Channel, Folder, Output, Source, Store, Summary, TransferError, receive, send};

/// One direction of a stream.
#[derive(Default)]
struct Pipe {
    octets: Vec<u8>,
    /// Octets that are carried before the stream is lost.
    left: Option<usize>,
    /// Octet that is damaged.
    damaged: Option<usize>,
    carried: usize,
    is_lost: bool,
}

/// Both directions, and the signal of a change.
type Pipes = Arc<(Mutex<[Pipe; 2]>, Condvar)>;

struct End {
    pipes: Pipes,
    side: usize,
}

impl Drop for End {
    fn drop(&mut self) {
        self.pipes.0.lock().unwrap()[self.side].is_lost = true;
        self.pipes.1.notify_all();
    }
}

impl Channel for End {
    fn try_read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let pipe = &mut self.pipes.0.lock().unwrap()[1 - self.side];
        let len = pipe.octets.len().min(buffer.len());
        if len == 0 {
            let lost =
                if pipe.is_lost { ErrorKind::ConnectionAborted } else { ErrorKind::WouldBlock };
            return Err(lost.into());
        }
        buffer[..len].copy_from_slice(&pipe.octets[..len]);
        pipe.octets.drain(..len);
        self.pipes.1.notify_all();
        Ok(len)
    }

    fn try_write(&mut self, data: &[u8]) -> io::Result<usize> {
        let mut pipes = self.pipes.0.lock().unwrap();
        if pipes.iter().any(|pipe| pipe.is_lost) {
            return Err(ErrorKind::ConnectionAborted.into());
        }
        let pipe = &mut pipes[self.side];
        let len = data.len().min(50_000 - pipe.octets.len().min(50_000));
        let len = pipe.left.map_or(len, |left| len.min(left));
        if pipe.left == Some(0) {
            pipe.is_lost = true;
            self.pipes.1.notify_all();
            return Err(ErrorKind::ConnectionAborted.into());
        }
        if len == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        let from = pipe.octets.len();
        pipe.octets.extend(&data[..len]);
        if let Some(at) = pipe.damaged.and_then(|at| at.checked_sub(pipe.carried))
            && at < len
        {
            pipe.octets[from + at] ^= 1;
        }
        pipe.carried += len;
        pipe.left = pipe.left.map(|left| left - len);
        self.pipes.1.notify_all();
        Ok(len)
    }

    fn wait(&mut self, _: bool) {
        let pipes = self.pipes.0.lock().unwrap();
        drop(self.pipes.1.wait_timeout(pipes, Duration::from_millis(1)));
    }
}

/// A stream that is lost after `left` octets of the sender.
fn stream(left: Option<usize>) -> [End; 2] {
    let pipes = Pipes::default();
    pipes.0.lock().unwrap()[0].left = left;
    [0, 1].map(|side| End { pipes: Arc::clone(&pipes), side })
}

/// A folder that is removed at the end.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        let folder = format!("bentpipe-transfer-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn content(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| ((at + seed) * 31 + at / 251) as u8).collect()
}

/// Makes a folder `data` with files of several sizes; returns it.
fn make_source(root: &Path) -> PathBuf {
    let data = root.join("data");
    fs::create_dir_all(data.join("deep/er")).unwrap();
    fs::create_dir_all(data.join("empty")).unwrap();
    for (number, len) in [0, 1, 16_384, 70_000, 400_000].into_iter().enumerate() {
        fs::write(data.join(format!("file {number}")), content(len, number)).unwrap();
    }
    for number in 0..50 {
        fs::write(data.join(format!("deep/er/{number}")), content(100 + number, number)).unwrap();
    }
    fs::set_permissions(data.join("file 1"), fs::Permissions::from_mode(0o777)).unwrap();
    data
}

/// Compares two folders; returns the number of files.
fn compare(one: &Path, other: &Path) -> usize {
    let names = |folder: &Path| -> Vec<_> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(one), names(other), "{}", other.display());
    names(one)
        .into_iter()
        .map(|name| {
            let (one, other) = (one.join(&name), other.join(&name));
            if one.is_dir() {
                return compare(&one, &other);
            }
            assert!(fs::read(&one).unwrap() == fs::read(&other).unwrap(), "{}", other.display());
            let modified = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
            assert_eq!(modified(&one), modified(&other));
            1
        })
        .sum()
}

type Both = [Result<Summary, TransferError>; 2];

/// Runs both ends over a stream; returns their results.
fn transfer(source: &Path, store: &mut (impl Store + Send), ends: [End; 2]) -> Both {
    let [mut near, mut far] = ends;
    thread::scope(|scope| {
        let receiving = scope.spawn(move || {
            let result = receive(&mut far, store, &mut |_| ());
            drop(far);
            result
        });
        let mut source = Source::paths(&[source.to_owned()]).unwrap();
        let sent = send(&mut near, &mut source, &mut |_| ());
        drop(near);
        [sent, receiving.join().unwrap()]
    })
}

/// TRF-3.1, TRF-3.6, TRF-4.3
#[test]
fn a_folder_arrives_and_a_second_transfer_finds_it_there() {
    let root = Temporary::new("whole");
    let data = make_source(&root.0);
    let to = root.0.join("to");
    let folder = Folder::open(&to).unwrap();
    let [sent, received] = transfer(&data, &mut folder.store(), stream(None));
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert_eq!((sent.files, sent.failed, sent.octets), (55, 0, received.octets));
    assert_eq!(compare(&data, &to.join("data")), 55);
    let mode = fs::metadata(to.join("data/file 1")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    let [sent, received] = transfer(&data, &mut folder.store(), stream(None));
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert_eq!((sent.files, sent.octets, received.octets), (0, 0, 0));
    assert_eq!(sent.present, 55 + 4, "files and folders");
    drop(folder);
    assert!(!to.join(".bentpipe-partial").exists());
}

/// TRF-3.2
#[test]
fn an_interrupted_transfer_continues_where_it_was() {
    let root = Temporary::new("interrupted");
    let data = make_source(&root.0);
    let folder = Folder::open(&root.0.join("to")).unwrap();
    let total: u64 = 1 + 16_384 + 70_000 + 400_000 + (100..150).sum::<u64>();
    let (mut octets, mut interruptions) = (0, 0);
    // The first stream is lost in the handshake; the others carry 60 kB each.
    let mut left = 5;
    loop {
        let [sent, received] = transfer(&data, &mut folder.store(), stream(Some(left)));
        match (sent, received) {
            (Ok(sent), Ok(_)) => {
                octets += sent.octets;
                break;
            }
            (Err(TransferError::Interrupted(_)), Err(TransferError::Interrupted(_))) => {}
            other => panic!("{other:?}"),
        }
        interruptions += 1;
        left = 60_000;
        assert!(interruptions < 20, "no progress");
    }
    assert!(interruptions >= 8, "{interruptions}");
    assert!(octets < total / 2, "the last transfer sent {octets} of {total} octets");
    assert_eq!(compare(&data, &root.0.join("to/data")), 55);
}

/// TRF-3.5
#[test]
fn a_damaged_octet_is_detected_and_the_file_sent_again() {
    let root = Temporary::new("damaged");
    let file = root.0.join("file");
    fs::write(&file, content(100_000, 3)).unwrap();
    let folder = Folder::open(&root.0.join("to")).unwrap();
    let ends = stream(None);
    ends[0].pipes.0.lock().unwrap()[0].damaged = Some(30_000);
    let [sent, received] = transfer(&file, &mut folder.store(), ends);
    assert_eq!((sent.unwrap().octets, received.unwrap().files), (200_000, 1));
    assert!(fs::read(root.0.join("to/file")).unwrap() == content(100_000, 3));
}

/// TRF-3.2: an incomplete file whose beginning is not that of the source is discarded.
#[test]
fn a_wrong_beginning_is_detected_at_the_end() {
    let root = Temporary::new("beginning");
    let file = root.0.join("file");
    fs::write(&file, content(100_000, 3)).unwrap();
    let folder = Folder::open(&root.0.join("to")).unwrap();
    let [sent, _] = transfer(&file, &mut folder.store(), stream(Some(50_000)));
    assert!(matches!(sent, Err(TransferError::Interrupted(_))));
    let partial = fs::read_dir(root.0.join("to/.bentpipe-partial")).unwrap().next().unwrap();
    let partial = partial.unwrap().path();
    let mut begun = fs::read(&partial).unwrap();
    assert!(begun.len() > 20_000, "{}", begun.len());
    begun[7] ^= 1;
    fs::write(&partial, &begun).unwrap();
    let [sent, received] = transfer(&file, &mut folder.store(), stream(None));
    assert_eq!(received.unwrap().files, 1);
    assert_eq!(sent.unwrap().octets, 200_000 - begun.len() as u64);
    assert!(fs::read(root.0.join("to/file")).unwrap() == content(100_000, 3));
}

fn entry(path: &str, size: u64) -> Entry {
    let (mode, mtime_s, mtime_ns) = (0o644, 0, 0);
    let path = path.as_bytes().to_vec();
    Entry { number: 0, kind: Kind::File, mode, mtime_s, mtime_ns, size, path }
}

/// TRF-4.1, TRF-4.2
#[test]
fn nothing_is_written_outside_the_folder() {
    let root = Temporary::new("outside");
    let (to, outside) = (root.0.join("to"), root.0.join("outside"));
    fs::create_dir_all(&to).unwrap();
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("file"), b"as before").unwrap();
    symlink(&outside, to.join("link")).unwrap();
    symlink(outside.join("file"), to.join("name")).unwrap();
    let folder = Folder::open(&to).unwrap();
    let mut store = folder.store();
    for path in ["../outside/file", "/etc/x", "a/../../outside/y", "link/file", "link/new/file"] {
        let answer = store.offer(entry(path, 3));
        assert!(matches!(answer, Answer::Refused(_)), "{path}: {answer:?}");
        let kind = Kind::Folder;
        let answer = store.offer(Entry { kind, ..entry(path, 0) });
        assert!(matches!(answer, Answer::Refused(_)), "{path}: {answer:?}");
    }
    // A link in the place of the file is replaced, not followed.
    assert_eq!(store.offer(entry("name", 3)), Answer::Send(0));
    store.write(0, b"new").unwrap();
    let hash = ring::digest::digest(&ring::digest::SHA256, b"new");
    assert!(store.finish(0, hash.as_ref().try_into().unwrap()).unwrap());
    assert_eq!(fs::read(to.join("name")).unwrap(), b"new");
    // A folder that becomes a link between the offer and the end of the file.
    assert_eq!(store.offer(entry("folder/file", 3)), Answer::Send(0));
    symlink(&outside, to.join("folder")).unwrap();
    store.write(0, b"new").unwrap();
    assert!(store.finish(0, hash.as_ref().try_into().unwrap()).is_err());
    assert_eq!(fs::read(outside.join("file")).unwrap(), b"as before");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}

#[test]
fn a_folder_has_one_receiving_process_and_a_file_one_sender() {
    let root = Temporary::new("lock");
    let folder = Folder::open(&root.0).unwrap();
    let error = Folder::open(&root.0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ResourceBusy);
    let (mut one, mut other) = (folder.store(), folder.store());
    assert_eq!(one.offer(entry("a", 3)), Answer::Send(0));
    assert!(matches!(other.offer(entry("a", 3)), Answer::Refused(_)));
    drop(one);
    assert_eq!(other.offer(entry("a", 3)), Answer::Send(0));
}

#[test]
fn an_input_arrives_at_an_output() {
    let [mut near, mut far] = stream(None);
    let data = content(300_000, 1);
    let mut written = Vec::new();
    let mut output = Output::new(&mut written);
    thread::scope(|scope| {
        let receiving = scope.spawn(|| receive(&mut far, &mut output, &mut |_| ()));
        let mut source = Source::input(io::Cursor::new(data.clone()), "input");
        assert!(!source.is_repeatable());
        let sent = send(&mut near, &mut source, &mut |_| ()).unwrap();
        assert_eq!((sent.files, sent.octets), (1, 300_000));
        receiving.join().unwrap().unwrap();
    });
    drop(output);
    assert!(written == data);
}

/// Messages of the other end, scripted.
fn answer_with(messages: &[Message<'_>]) -> Result<Summary, TransferError> {
    let root = Temporary::new(&format!("scripted-{}", messages.len()));
    fs::write(root.0.join("file"), b"abc").unwrap();
    let [mut near, mut far] = stream(None);
    let mut octets = Vec::new();
    messages.iter().for_each(|message| message.encode(&mut octets));
    far.try_write(&octets).unwrap();
    let mut source = Source::paths(&[root.0.join("file")]).unwrap();
    let result = send(&mut near, &mut source, &mut |_| ());
    if matches!(result, Err(TransferError::Protocol(_))) {
        let mut input = vec![0; 1000];
        let len = far.try_read(&mut input).unwrap();
        let mut rest = &input[..len];
        let mut last = None;
        while let Some((message, len)) = decode(rest).unwrap() {
            last = Some(message.clone());
            rest = &rest[len..];
        }
        assert!(matches!(last, Some(Message::Error(_))), "{last:?}");
    }
    result
}

#[test]
fn violations_and_errors_of_the_receiver_end_the_transfer() {
    let hello = Message::Hello(Role::Receiver);
    let result = answer_with(&[Message::Hello(Role::Sender)]);
    assert!(matches!(result, Err(TransferError::Protocol(_))), "{result:?}");
    let answer = Message::Answer { number: 0, answer: Answer::Send(4) };
    let result = answer_with(&[hello.clone(), answer]);
    assert!(matches!(result, Err(TransferError::Protocol(_))), "{result:?}");
    let stored = Message::Result { number: 9, outcome: Outcome::Stored };
    let result = answer_with(&[hello.clone(), Message::Done, stored]);
    assert!(matches!(result, Err(TransferError::Protocol(_))), "{result:?}");
    let text = "no room".to_owned();
    let result = answer_with(&[hello.clone(), hello.clone(), hello, Message::Error(text.clone())]);
    assert!(matches!(result, Err(TransferError::Protocol(_))), "{result:?}");
    let result = answer_with(&[
        Message::Hello(Role::Receiver),
        Message::Error(text.clone()),
        Message::Done,
        Message::Done,
        Message::Done,
    ]);
    assert!(matches!(&result, Err(TransferError::Peer(found)) if *found == text), "{result:?}");
}
