//! The local side of a transfer: an association's client or server, or a station of packet radio.

use super::progress::Progress;
use clap::Args;
use endpoint::published::{
    CallSign, Host, Line, Listener, Parameters, Station, Tnc, radio_session,
};
use endpoint::{Endpoint, PublicKey, RelayConfig, Stream, Target};
use rt::Clock;
use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;
use transfer::{Summary, TransferError};
use units::{BitRate, Span};

/// Port of a receiver on packet radio.
const RADIO_PORT: u16 = 7001;

/// Options of both commands.
#[derive(Args)]
pub(super) struct Common {
    /// Wait for the other side at this address, such as 0.0.0.0:7001
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Public key of the other side; repeat it for several with --listen
    #[arg(long, value_name = "KEY", required_unless_present = "kiss")]
    peer_key: Vec<PublicKey>,
    /// Own private key, created if it does not exist [default: ~/.config/bentpipe/key]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Maximum rate, such as 2mbit: that of IP packets
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate_limit: Option<BitRate>,
    #[command(flatten)]
    radio: Radio,
    /// No progress bar
    #[arg(long)]
    pub(super) quiet: bool,
}

/// Options of packet radio.
#[derive(Args)]
#[command(next_help_heading = "Packet radio, without encryption and authentication")]
struct Radio {
    /// Use the TNC at tcp:HOST:PORT, serial:DEVICE or serial:DEVICE:BITS_PER_SECOND
    #[arg(
        long,
        value_name = "LINE",
        requires = "call",
        conflicts_with_all = ["listen", "peer_key", "key", "rate_limit"]
    )]
    kiss: Option<Line>,
    /// Own call sign, such as M0ABC-1, or with an IPv4 address M0ABC-1@44.131.0.1
    #[arg(long, value_name = "CALL", requires = "kiss")]
    call: Option<Station>,
    /// Repeaters of the frames that are sent
    #[arg(long, value_name = "CALL", requires = "kiss", value_delimiter = ',', num_args = 1)]
    via: Vec<CallSign>,
    /// Port of the TNC
    #[arg(long, value_name = "N", requires = "kiss", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=15))]
    kiss_port: u8,
    /// Time from key-up to the first frame in ms; without it, as the TNC is set
    #[arg(long, value_name = "MS", requires = "kiss", value_parser = clap::value_parser!(u64).range(0..=2550))]
    txdelay: Option<u64>,
    /// P of p-persistence, p = (P + 1) / 256; without it, as the TNC is set
    #[arg(long, value_name = "P", requires = "kiss")]
    persist: Option<u8>,
    /// Slot time in ms; without it, as the TNC is set
    #[arg(long, value_name = "MS", requires = "kiss", value_parser = clap::value_parser!(u64).range(0..=2550))]
    slottime: Option<u64>,
}

fn rate(text: &str) -> Result<BitRate, String> {
    let link = satlink::words::parse_direction(&format!("rate {text}"));
    let rate = link.ok().and_then(|direction| direction.rate);
    rate.ok_or_else(|| "expected a rate such as 512kbit or 2mbit".to_owned())
}

/// How the peer is reached.
enum Way {
    Client(Endpoint),
    Server(Endpoint),
    Calling(Host, Station),
    /// Listens for one station, or for all.
    Called(Host, Listener, Option<Station>),
}

/// The endpoint, with the lock of its key.
pub(super) struct Local {
    way: Way,
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
    pub(super) fn open(&self, peer: Option<&str>, is_sender: bool) -> Result<Local, String> {
        if let Some(line) = &self.radio.kiss {
            return Ok(Local { way: self.radio.open(line, peer, is_sender)?, _lock: None });
        }
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
                Ok(Local { way: Way::Server(endpoint), _lock: None })
            }
            (None, peer) => {
                let peer = peer.unwrap_or_default();
                if self.peer_key.len() > 1 {
                    return Err("one --peer-key is expected without --listen".to_owned());
                }
                let lock = lock(&file)?;
                let endpoint = Endpoint::client(&config, resolve(peer)?);
                let endpoint = endpoint.map_err(|error| format!("{peer}: {error}"))?;
                Ok(Local { way: Way::Client(endpoint), _lock: Some(lock) })
            }
        }
    }
}

impl Radio {
    fn open(&self, line: &Line, peer: Option<&str>, is_sender: bool) -> Result<Way, String> {
        let station = self.call.ok_or("--call is expected with --kiss")?;
        let tnc = Tnc {
            port: self.kiss_port,
            parameters: Parameters {
                tx_delay: self.txdelay.map(Span::from_millis),
                persistence: self.persist,
                slot_time: self.slottime.map(Span::from_millis),
                full_duplex: None,
            },
            repeaters: self.via.clone(),
            ..Tnc::new(line.clone(), station)
        };
        if tnc.repeaters.len() > 8 {
            return Err("--via: at most 8 repeaters are expected".to_owned());
        }
        let parse =
            |text: &str| text.parse::<Station>().map_err(|error| format!("{text}: {error}"));
        let peer = peer.map(parse).transpose()?;
        let failed = |error: io::Error| format!("{line}: {error}");
        let host = Host::radio(&tnc, &radio_session()).map_err(failed)?;
        match (is_sender, peer) {
            (true, Some(peer)) => Ok(Way::Calling(host, peer)),
            (true, None) => Err("--to is expected with --kiss".to_owned()),
            (false, peer) => {
                let listener = host.listen(RADIO_PORT).map_err(failed)?;
                Ok(Way::Called(host, listener, peer))
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
    pub(super) fn is_server(&self) -> bool {
        matches!(self.way, Way::Server(_) | Way::Called(..))
    }

    fn is_radio(&self) -> bool {
        matches!(self.way, Way::Calling(..) | Way::Called(..))
    }

    /// Time between attempts to continue an interrupted transfer.
    fn retry(&self) -> Span {
        Span::from_secs(if self.is_radio() { 30 } else { 1 })
    }

    /// Time for the last messages.
    pub(super) fn linger(&self) -> Duration {
        Duration::from_secs(if self.is_radio() { 120 } else { 10 })
    }

    /// Returns the next stream to a peer, and the peer's name.
    pub(super) fn stream(&self) -> Result<(Stream, String), String> {
        let clock = Clock::new();
        loop {
            match self.try_stream() {
                Ok(Some(stream)) => return Ok(stream),
                Ok(None) => {}
                // The session is ending; the next one follows.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    clock.sleep_until(clock.now() + self.retry());
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Returns a stream; `None` for one of a station that is not accepted.
    fn try_stream(&self) -> io::Result<Option<(Stream, String)>> {
        match &self.way {
            Way::Server(server) => {
                server.accept().map(|accepted| Some((accepted.stream, accepted.peer)))
            }
            Way::Client(client) => {
                client.open(Target::name("transfer", 1)).map(|stream| Some((stream, String::new())))
            }
            Way::Calling(host, peer) => {
                host.connect(*peer, RADIO_PORT).map(|stream| Some((stream, String::new())))
            }
            Way::Called(_, listener, only) => {
                let accepted = listener.accept()?;
                let is_wanted = only.is_none_or(|only| accepted.peer == only.into());
                Ok(is_wanted.then(|| (accepted.stream, accepted.peer.to_string())))
            }
        }
    }

    /// Runs `work` on one stream after another until it is complete.
    pub(super) fn until_complete(
        &self,
        progress: &Progress,
        mut work: impl FnMut(&mut Stream) -> Result<Summary, TransferError>,
    ) -> Result<Summary, String> {
        let clock = Clock::new();
        loop {
            let (mut stream, _) = self.stream()?;
            let result = work(&mut stream);
            // The last messages: a completion or an error. Without a session they are lost.
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.wait_acknowledged(self.linger());
            match result {
                Ok(summary) => return Ok(summary),
                Err(TransferError::Interrupted(error)) => {
                    progress.note(&format!("interrupted: {error}; continues"));
                    clock.sleep_until(clock.now() + self.retry());
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Ends the sessions in order; what does not end in time is lost.
    pub(super) fn close(self) {
        let linger = self.linger();
        let _ = match self.way {
            Way::Client(endpoint) | Way::Server(endpoint) => endpoint.close(linger),
            Way::Calling(host, _) => host.close(linger),
            Way::Called(host, listener, _) => {
                drop(listener);
                host.close(linger)
            }
        };
    }
}
