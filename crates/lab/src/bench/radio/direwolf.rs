//! Two processes of Dire Wolf and an audio loop between them, without sound devices.
//!
//! ```text
//!   Dire Wolf 0 ── ALSA `file` plugin ── FIFO ──▶ loop ── UDP ──▶ Dire Wolf 1
//!               ◀── UDP ── loop ◀── FIFO ── ALSA `file` plugin ──
//! ```
//!
//! Dire Wolf reads audio from a UDP port (`ADEVICE udp:PORT`) and writes it to an ALSA device, here
//! a plugin of the library that needs no driver. It writes a transmission at once and waits for as
//! long as it lasts; the loop passes the samples on in real time, and silence otherwise. While a
//! station transmits it hears silence, as a half-duplex radio does.

use crate::LabError;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use rt::Clock;
use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use units::Span;

/// Length of the blocks of audio.
const BLOCK: Span = Span::from_millis(10);
/// Time for a process to open its port.
const START: Span = Span::from_secs(20);

/// Whether the program is installed.
pub fn is_installed() -> bool {
    let mut command = Command::new("direwolf");
    command.arg("-u").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok()
}

/// Two stations; their processes and files are removed at the end.
pub(super) struct DireWolves {
    folder: PathBuf,
    processes: Vec<Child>,
    /// Where each offers KISS over TCP.
    pub(super) kiss: [SocketAddr; 2],
    audio: [SocketAddr; 2],
    /// What each transmits.
    fifos: Vec<File>,
    samples_per_second: u64,
}

impl Drop for DireWolves {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill(); // It may have ended.
            let _ = process.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl DireWolves {
    /// Starts both, with a modem of `rate` bit/s, in the new folder `folder`.
    ///
    /// # Errors
    /// If a file cannot be made, or a process does not open its port.
    pub(super) fn start(folder: &Path, rate: u64) -> Result<Self, LabError> {
        let failed = |source| LabError::File { path: folder.to_owned(), source };
        let ports = free_ports().map_err(failed)?;
        let mut stations = Self {
            folder: folder.to_owned(),
            processes: Vec::new(),
            kiss: ports.map(|(kiss, _)| kiss),
            audio: ports.map(|(_, audio)| audio),
            fifos: Vec::new(),
            // Five samples for each bit of the faster modem.
            samples_per_second: if rate > 1_200 { 48_000 } else { 44_100 },
        };
        fs::create_dir_all(folder).map_err(failed)?;
        for index in 0..2 {
            let process = stations.start_one(index, rate).map_err(failed)?;
            stations.processes.push(process);
        }
        stations.wait_ready()?;
        Ok(stations)
    }

    fn path(&self, name: &str, index: usize) -> PathBuf {
        self.folder.join(format!("{name}{index}"))
    }

    fn start_one(&mut self, index: usize, rate: u64) -> io::Result<Child> {
        let fifo = self.path("audio", index);
        mkfifo(&fifo, Mode::S_IRUSR | Mode::S_IWUSR)?;
        // Opened first, because a writer waits for it, and for writing as well, so that it has no
        // end.
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).custom_flags(OFlag::O_NONBLOCK.bits());
        self.fifos.push(options.open(&fifo)?);
        let alsa = self.path("asound", index);
        let device = format!(
            "pcm.loop {{ type file slave.pcm {{ type null }} file \"{}\" format raw }}\n",
            fifo.display()
        );
        fs::write(&alsa, device)?;
        let config = self.path("config", index);
        let text = format!(
            "ADEVICE udp:{} loop\nARATE {}\nACHANNELS 1\nCHANNEL 0\nMYCALL N0CALL-{index}\n\
             MODEM {rate}\nAGWPORT 0\nKISSPORT {}\n",
            self.audio[index].port(),
            self.samples_per_second,
            self.kiss[index].port(),
        );
        fs::write(&config, text)?;
        let log = File::create(self.path("log", index))?;
        let mut command = Command::new("direwolf");
        command.args(["-t", "0", "-c"]).arg(&config).env("ALSA_CONFIG_PATH", &alsa);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()
    }

    fn wait_ready(&mut self) -> Result<(), LabError> {
        let clock = Clock::new();
        let end = clock.now() + START;
        for index in 0..2 {
            while TcpStream::connect(self.kiss[index]).is_err() {
                let has_ended = self.processes[index].try_wait().ok().flatten().is_some();
                if has_ended || clock.now() >= end {
                    let reason = fs::read_to_string(self.path("log", index)).unwrap_or_default();
                    return Err(LabError::System { name: "direwolf".to_owned(), reason });
                }
                crate::threads::sleep(Span::from_millis(50));
            }
        }
        Ok(())
    }

    /// Passes audio on until `stop` is set.
    ///
    /// # Errors
    /// If no socket can be opened.
    pub(super) fn pass_audio(&self, stop: &AtomicBool) -> io::Result<()> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let mut sent: [VecDeque<u8>; 2] = Default::default();
        let octets = (2 * self.samples_per_second * BLOCK.as_millis() / 1_000) as usize;
        let mut buffer = vec![0; 65_536];
        let clock = Clock::new();
        let mut due = clock.now();
        while !stop.load(Ordering::Relaxed) {
            for (mut fifo, sent) in self.fifos.iter().zip(&mut sent) {
                while let Ok(len @ 1..) = fifo.read(&mut buffer) {
                    sent.extend(&buffer[..len]);
                }
            }
            let is_sending = [0, 1].map(|index: usize| !sent[index].is_empty());
            for from in 0..2 {
                let len = sent[from].len().min(octets);
                let mut block: Vec<u8> = sent[from].drain(..len).collect();
                block.resize(octets, 0);
                if is_sending[1 - from] {
                    block.fill(0);
                }
                // A block that is lost is noise.
                let _ = socket.send_to(&block, self.audio[1 - from]);
            }
            due += BLOCK;
            clock.sleep_until(due);
        }
        Ok(())
    }
}

/// Returns free ports for KISS and for audio of both stations.
fn free_ports() -> io::Result<[(SocketAddr, SocketAddr); 2]> {
    let mut found = Vec::new();
    for _ in 0..2 {
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        found.push((tcp.local_addr()?, udp.local_addr()?, tcp, udp));
    }
    Ok([(found[0].0, found[0].1), (found[1].0, found[1].1)])
}
