//! The line to a TNC: TCP or a serial device.

use nix::fcntl::OFlag;
use nix::sys::termios::{self, BaudRate, ControlFlags, SetArg};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Maximum time to connect to a TNC.
const CONNECT: Duration = Duration::from_secs(10);
/// Rate of a serial line if none is given.
const DEFAULT_BAUD: u32 = 9600;

/// Where a TNC is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// KISS over TCP at HOST:PORT; in text `tcp:HOST:PORT`.
    Tcp(String),
    /// A serial device and its rate in bit/s, with eight bits, no parity and one stop bit; in text
    /// `serial:/dev/ttyUSB0:9600`, or `serial:/dev/ttyUSB0` for 9600 bit/s.
    Serial(PathBuf, u32),
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "tcp:{address}"),
            Self::Serial(device, rate) => write!(f, "serial:{}:{rate}", device.display()),
        }
    }
}

impl FromStr for Line {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected =
            || "expected tcp:HOST:PORT, serial:DEVICE or serial:DEVICE:BITS_PER_SECOND".to_owned();
        match text.split_once(':').ok_or_else(expected)? {
            ("tcp", address) if address.contains(':') => Ok(Self::Tcp(address.to_owned())),
            ("serial", device) if !device.is_empty() => {
                let parts = device.rsplit_once(':');
                let with_rate = parts.and_then(|(device, rate)| Some((device, rate.parse().ok()?)));
                let (device, rate) = with_rate.unwrap_or((device, DEFAULT_BAUD));
                baud(rate).map_err(|error| error.to_string())?;
                Ok(Self::Serial(device.into(), rate))
            }
            _ => Err(expected()),
        }
    }
}

fn baud(rate: u32) -> io::Result<BaudRate> {
    const RATES: [(u32, BaudRate); 9] = [
        (1_200, BaudRate::B1200),
        (2_400, BaudRate::B2400),
        (4_800, BaudRate::B4800),
        (9_600, BaudRate::B9600),
        (19_200, BaudRate::B19200),
        (38_400, BaudRate::B38400),
        (57_600, BaudRate::B57600),
        (115_200, BaudRate::B115200),
        (230_400, BaudRate::B230400),
    ];
    let found = RATES.into_iter().find(|(known, _)| *known == rate);
    let text =
        "a serial line has 1200, 2400, 4800, 9600, 19200, 38400, 57600, 115200 or 230400 bit/s";
    found.map(|(_, baud)| baud).ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, text))
}

/// An open line, which does not wait.
#[derive(Debug)]
pub(super) enum OpenLine {
    Tcp(TcpStream),
    Serial(File),
}

impl OpenLine {
    pub(super) fn open(line: &Line) -> io::Result<Self> {
        match line {
            Line::Tcp(address) => {
                let mut last = io::Error::new(ErrorKind::NotFound, "no address");
                for address in address.to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, CONNECT) {
                        Ok(stream) => {
                            stream.set_nodelay(true)?;
                            stream.set_nonblocking(true)?;
                            return Ok(Self::Tcp(stream));
                        }
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
            Line::Serial(device, rate) => {
                // Without O_NONBLOCK the device would wait for its carrier.
                let flags = OFlag::O_NOCTTY | OFlag::O_NONBLOCK;
                let mut options = OpenOptions::new();
                let options = options.read(true).write(true).custom_flags(flags.bits());
                let file = options.open(device)?;
                let mut settings = termios::tcgetattr(&file)?;
                termios::cfmakeraw(&mut settings);
                settings.control_flags.remove(ControlFlags::CSTOPB | ControlFlags::CRTSCTS);
                settings.control_flags.insert(ControlFlags::CLOCAL | ControlFlags::CREAD);
                termios::cfsetspeed(&mut settings, baud(*rate)?)?;
                termios::tcsetattr(&file, SetArg::TCSAFLUSH, &settings)?;
                Ok(Self::Serial(file))
            }
        }
    }

    pub(super) fn descriptor(&self) -> io::Result<OwnedFd> {
        match self {
            Self::Tcp(stream) => stream.as_fd().try_clone_to_owned(),
            Self::Serial(file) => file.as_fd().try_clone_to_owned(),
        }
    }

    /// Reads what has arrived; `None` if nothing has.
    ///
    /// # Errors
    /// If the line is closed.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let read = match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Serial(file) => file.read(buffer),
        };
        match progress(read)? {
            Some(0) => Err(io::Error::new(ErrorKind::UnexpectedEof, "the TNC has closed the line")),
            other => Ok(other),
        }
    }

    /// Writes as much as there is room for.
    pub(super) fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let written = match self {
            Self::Tcp(stream) => stream.write(data),
            Self::Serial(file) => file.write(data),
        };
        Ok(progress(written)?.unwrap_or(0))
    }
}

fn progress(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(len) => Ok(Some(len)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed_and_printed() {
        for text in ["tcp:localhost:8001", "tcp:[::1]:8001", "serial:/dev/ttyUSB0:19200"] {
            assert_eq!(text.parse::<Line>().map(|line| line.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("serial:/dev/a:b".parse(), Ok(Line::Serial("/dev/a:b".into(), 9600)));
        for text in ["", "tcp:localhost", "udp:a:1", "serial:", "serial:/dev/a:7"] {
            assert!(text.parse::<Line>().is_err(), "{text}");
        }
    }
}
