//! `bentpipe send` and `bentpipe receive`.

mod progress;

use crate::Outcome;
use clap::Args;
use endpoint::{Endpoint, PublicKey, RelayConfig, Stream, Target};
use progress::Progress;
use rt::Clock;
use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use transfer::{Folder, Output, Source, Summary, TransferError};
use units::{BitRate, Span};

/// Time between attempts to continue an interrupted transfer.
const RETRY: Span = Span::from_secs(1);
/// Time for the last messages.
const LINGER: Duration = Duration::from_secs(10);
/// Maximum number of senders at a time.
const MAX_SENDERS: usize = 64;

/// Send files and folders to `bentpipe receive`, over XSTP
///
/// An interrupted transfer continues, also after both programs were ended: repeat the command. A
/// file that the receiver has with this size and time is not sent.
#[derive(Args)]
#[command(after_help = "Example: bentpipe send --to receiver.example:7001 --peer-key \
                  xkIMJWyn/xspNGo5qjHnn+SGC7S1eLi3kOC9LDaf/34= photos")]
pub struct Send {
    /// Files and folders; - is standard input
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Name of standard input at the receiver
    #[arg(long, default_value = "stdin")]
    name: String,
    /// Address of the receiver; or --listen
    #[arg(
        long,
        value_name = "HOST:PORT",
        required_unless_present = "listen",
        conflicts_with = "listen"
    )]
    to: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// Receive files and folders from `bentpipe send`, over XSTP
///
/// Files are written into FOLDER and nowhere else. Incomplete ones are in FOLDER/.bentpipe-partial
/// until their content is verified. With --listen it receives from any number of senders until it
/// is ended.
#[derive(Args)]
#[command(after_help = "Example: bentpipe receive --listen 0.0.0.0:7001 --peer-key \
                  xcvHZvfOxkd6ty807qPyjRB92qlHFOvrbO4FcjvCUmA= incoming")]
pub struct Receive {
    /// The folder, created if it does not exist; - writes one file to standard output
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// Address of a sender that listens; or --listen
    #[arg(
        long,
        value_name = "HOST:PORT",
        required_unless_present = "listen",
        conflicts_with = "listen"
    )]
    from: Option<String>,
    /// End after the first complete transfer
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    common: Common,
}

/// Options of both commands.
#[derive(Args)]
struct Common {
    /// Wait for the other side at this address, such as 0.0.0.0:7001
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Public key of the other side; repeat it for several with --listen
    #[arg(long, value_name = "KEY", required = true)]
    peer_key: Vec<PublicKey>,
    /// Own private key, created if it does not exist [default: ~/.config/bentpipe/key]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Maximum rate, such as 2mbit: that of IP packets
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate_limit: Option<BitRate>,
    /// No progress bar
    #[arg(long)]
    quiet: bool,
}

fn rate(text: &str) -> Result<BitRate, String> {
    let link = satlink::words::parse_direction(&format!("rate {text}"));
    let rate = link.ok().and_then(|direction| direction.rate);
    rate.ok_or_else(|| "expected a rate such as 512kbit or 2mbit".to_owned())
}

/// The endpoint, with the lock of its key.
struct Local {
    endpoint: Endpoint,
    is_server: bool,
    _lock: Option<File>,
}

impl Common {
    fn key_file(&self) -> Result<PathBuf, String> {
        if let Some(key) = &self.key {
            return Ok(key.clone());
        }
        let home = std::env::var_os("HOME").ok_or("HOME is not set: give the key by --key")?;
        let folder = PathBuf::from(home).join(".config/bentpipe");
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(folder.join("key"))
    }

    /// Opens the endpoint: a client of `peer`, or a server.
    fn open(&self, peer: Option<&str>, is_sender: bool) -> Result<Local, String> {
        let file = self.key_file()?;
        let key = gateway::private_key(&file).map_err(|error| error.to_string())?;
        if !self.quiet {
            eprintln!("this side's key: {}", key.public());
        }
        let config = endpoint::config(&key, &self.peer_key).map_err(|error| error.to_string())?;
        let (send_rate, receive_rate) =
            if is_sender { (self.rate_limit, None) } else { (None, self.rate_limit) };
        let config = RelayConfig { send_rate, receive_rate, ..config };
        match (self.listen, peer) {
            (Some(local), _) => {
                let endpoint = Endpoint::server(&config, local);
                let endpoint = endpoint.map_err(|error| format!("{local}: {error}"))?;
                Ok(Local { endpoint, is_server: true, _lock: None })
            }
            (None, peer) => {
                let peer = peer.unwrap_or_default();
                if self.peer_key.len() > 1 {
                    return Err("one --peer-key is expected without --listen".to_owned());
                }
                let lock = lock(&file)?;
                let endpoint = Endpoint::client(&config, resolve(peer)?);
                let endpoint = endpoint.map_err(|error| format!("{peer}: {error}"))?;
                Ok(Local { endpoint, is_server: false, _lock: Some(lock) })
            }
        }
    }
}

/// Locks the key of a client: a server has one association with each key.
fn lock(path: &Path) -> Result<File, String> {
    let shown = path.display();
    let file = File::open(path).map_err(|error| format!("{shown}: {error}"))?;
    file.try_lock().map_err(|error| match error {
        fs::TryLockError::WouldBlock => format!(
            "{shown}: another transfer uses this key: send all paths by one command, or use a \
             second --key"
        ),
        fs::TryLockError::Error(error) => format!("{shown}: {error}"),
    })?;
    Ok(file)
}

fn resolve(peer: &str) -> Result<SocketAddr, String> {
    let mut found = peer.to_socket_addrs().map_err(|error| format!("{peer}: {error}"))?;
    found.next().ok_or_else(|| format!("{peer}: no address"))
}

impl Local {
    /// Returns the next stream to the peer.
    fn stream(&self) -> Result<Stream, String> {
        let clock = Clock::new();
        loop {
            let stream = match self.is_server {
                true => self.endpoint.accept().map(|accepted| accepted.stream),
                false => self.endpoint.open(Target::name("transfer", 1)),
            };
            match stream {
                // The session is ending; the next one follows.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    clock.sleep_until(clock.now() + RETRY);
                }
                other => return other.map_err(|error| error.to_string()),
            }
        }
    }

    /// Runs `work` on one stream after another until it is complete.
    fn until_complete(
        &self,
        progress: &Progress,
        mut work: impl FnMut(&mut Stream) -> Result<Summary, TransferError>,
    ) -> Result<Summary, String> {
        let clock = Clock::new();
        loop {
            let mut stream = self.stream()?;
            let result = work(&mut stream);
            // The last messages: a completion or an error. Without a session they are lost.
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.wait_acknowledged(LINGER);
            match result {
                Ok(summary) => return Ok(summary),
                Err(TransferError::Interrupted(error)) => {
                    progress.note(&format!("interrupted: {error}; continues"));
                    clock.sleep_until(clock.now() + RETRY);
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}

fn conclude(summary: Summary) -> Outcome {
    match summary.failed {
        0 => Ok(()),
        failed => Err(format!("{failed} files or folders were not transferred")),
    }
}

/// Sends files and folders, or standard input.
///
/// # Errors
/// If a file was not sent, or the receiver refuses.
pub fn send(arguments: &Send) -> Outcome {
    let is_input = arguments.paths.iter().any(|path| path == Path::new("-"));
    if is_input && arguments.paths.len() > 1 {
        return Err("standard input is sent alone".to_owned());
    }
    let mut source = match is_input {
        true => Source::input(io::stdin(), &arguments.name),
        false => Source::paths(&arguments.paths).map_err(|error| error.to_string())?,
    };
    let local = arguments.common.open(arguments.to.as_deref(), true)?;
    let total = source.is_repeatable().then(|| source.total().1);
    let progress = Progress::new(arguments.common.quiet, total);
    let mut has_begun = false;
    let summary = local.until_complete(&progress, |stream| {
        if has_begun && !source.is_repeatable() {
            let text = "interrupted, and standard input has no second beginning".to_owned();
            return Err(TransferError::Local(text));
        }
        has_begun = true;
        progress.restart();
        transfer::send(stream, &mut source, &mut |update| progress.update(update))
    })?;
    progress.finish(&summary);
    let _ = local.endpoint.close(LINGER); // The receiver has everything.
    conclude(summary)
}

/// Receives files and folders.
///
/// # Errors
/// If a file was not stored, or the sender refuses.
pub fn receive(arguments: &Receive) -> Outcome {
    let common = &arguments.common;
    let is_output = arguments.folder == Path::new("-");
    let folder = match is_output {
        true => None,
        false => Some(Folder::open(&arguments.folder).map_err(|error| error.to_string())?),
    };
    let local = common.open(arguments.from.as_deref(), false)?;
    let progress = Progress::new(common.quiet, None);
    let summary = match folder {
        Some(folder) if local.is_server && !arguments.once => {
            return serve(&local, &Arc::new(folder), common.quiet);
        }
        Some(folder) => local.until_complete(&progress, |stream| {
            transfer::receive(stream, &mut folder.store(), &mut |update| progress.update(update))
        })?,
        None => {
            let mut output = Output::new(io::stdout());
            local.until_complete(&progress, |stream| {
                transfer::receive(stream, &mut output, &mut |update| progress.update(update))
            })?
        }
    };
    progress.finish(&summary);
    let _ = local.endpoint.close(LINGER); // The sender has the last message.
    conclude(summary)
}

/// Receives from any number of senders, each in a thread.
fn serve(local: &Local, folder: &Arc<Folder>, quiet: bool) -> Outcome {
    let running = Arc::new(());
    loop {
        let accepted = local.endpoint.accept().map_err(|error| error.to_string())?;
        let (mut stream, peer) = (accepted.stream, accepted.peer);
        // Senders beyond the limit are reset; they try again.
        if Arc::strong_count(&running) > MAX_SENDERS {
            continue;
        }
        let (folder, slot) = (Arc::clone(folder), Arc::clone(&running));
        let work = move || {
            let progress = Progress::new(quiet, None);
            let mut report = |update: transfer::Update<'_>| progress.update(update);
            let result = transfer::receive(&mut stream, &mut folder.store(), &mut report);
            let _ = stream.wait_acknowledged(LINGER); // As for a client.
            match result {
                Ok(summary) => progress.finish(&summary),
                Err(error) => progress.note(&format!("from {peer}: {error}")),
            }
            drop(slot);
        };
        // Without a thread the stream is reset, and the sender tries again.
        if let Err(error) = thread::Builder::new().spawn(work) {
            eprintln!("a sender was not served: {error}");
        }
    }
}
