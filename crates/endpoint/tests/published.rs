//! Streams of the published profile on raw IP and through TNCs.

use endpoint::published::{CallSign, Host, Line, Peer, Station, Tnc, ip_session, radio_session};
use nix::pty::{PtyMaster, grantpt, posix_openpt, ptsname_r, unlockpt};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(30);
const PORT: u16 = 7001;

/// Octets that differ at every position, with all that KISS escapes.
fn content(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 251) as u8).collect()
}

/// Sends `len` octets from `client` to `server` and back.
fn echo(client: &Host, server: &Host, address: impl Into<Peer>, len: usize) {
    let listener = server.listen(PORT).unwrap();
    let data = content(len);
    let stream = client.connect(address, PORT).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let stream = listener.accept_for(LIMIT).unwrap().stream;
            io::copy(&mut &stream, &mut &stream).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            stream.wait_acknowledged(LIMIT).unwrap();
        });
        scope.spawn(|| {
            (&stream).write_all(&data).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
        });
        let mut received = Vec::new();
        (&stream).read_to_end(&mut received).unwrap();
        assert!(received == data, "{} octets arrived", received.len());
    });
}

fn stations() -> [Station; 2] {
    ["M0ABC-1", "M0XYZ-2"].map(|call| Station::new(call.parse().unwrap()))
}

/// Copies all octets between two lines, as a channel with two TNCs does.
fn join<T: Read + Write + Send + 'static>(mut from: T, mut to: T) {
    thread::spawn(move || io::copy(&mut from, &mut to));
}

/// Two stations whose TNCs are at TCP ports.
fn tcp_hosts() -> [Host; 2] {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let line = Line::Tcp(listener.local_addr().unwrap().to_string());
    let hosts = stations()
        .map(|station| Host::radio(&Tnc::new(line.clone(), station), &radio_session()).unwrap());
    let [a, b] = [(); 2].map(|()| listener.accept().unwrap().0);
    let copy = |stream: &TcpStream| stream.try_clone().unwrap();
    join(copy(&a), copy(&b));
    join(b, a);
    hosts
}

#[test]
fn stations_exchange_data_through_tncs_over_tcp() {
    let [a, b] = tcp_hosts();
    echo(&a, &b, stations()[1], 20_000);
    echo(&b, &a, stations()[0], 500);
    assert_eq!((a.counters().refused, b.counters().refused), (0, 0));
    let is_wrong = a.connect(IpAddr::from([127, 0, 0, 1]), PORT).unwrap_err();
    assert_eq!(is_wrong.kind(), ErrorKind::InvalidInput);
    let refused = a.connect(stations()[1], PORT).unwrap();
    let error = (&refused).read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    drop(refused);
    a.close(LIMIT).unwrap();
    b.close(LIMIT).unwrap();
}

#[test]
fn stations_exchange_data_through_tncs_on_serial_lines() {
    let masters: Vec<PtyMaster> = (0..2)
        .map(|_| {
            let master = posix_openpt(nix::fcntl::OFlag::O_RDWR).unwrap();
            grantpt(&master).unwrap();
            unlockpt(&master).unwrap();
            master
        })
        .collect();
    let hosts: Vec<Host> = masters
        .iter()
        .zip(stations())
        .map(|(master, station)| {
            let line = format!("serial:{}:115200", ptsname_r(master).unwrap());
            Host::radio(&Tnc::new(line.parse().unwrap(), station), &radio_session()).unwrap()
        })
        .collect();
    let files: Vec<std::fs::File> =
        masters.into_iter().map(|master| std::os::fd::OwnedFd::from(master).into()).collect();
    join(files[0].try_clone().unwrap(), files[1].try_clone().unwrap());
    join(files[1].try_clone().unwrap(), files[0].try_clone().unwrap());
    echo(&hosts[0], &hosts[1], stations()[1], 3_000);
}

#[test]
fn hostile_frames_are_refused_and_counted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let [station, peer] = stations();
    let tnc = Tnc::new(Line::Tcp(listener.local_addr().unwrap().to_string()), station);
    let host = Host::radio(&tnc, &radio_session()).unwrap();
    let listening = host.listen(PORT).unwrap();
    let (mut line, _) = listener.accept().unwrap();
    let address = |call: CallSign, last: u8| {
        let mut octets = call.octets().map(|octet| octet << 1);
        octets[6] |= 0x60 | last;
        octets
    };
    let to_here = [&address(station.call, 0)[..], &address(peer.call, 1), &[0x03, 0xCC]].concat();
    let frame = |content: &[u8]| [&[0xC0, 0][..], content, &[0xC0]].concat();
    let hostile = [
        vec![0xC0, 0, 0xDB, 1, 0xC0],
        [&[0xC0, 0][..], &[7; 100_000], &[0xC0]].concat(),
        frame(b"no addresses"),
        // To this station, but no IPv4 packet, and one without a segment.
        frame(&to_here),
        frame(&[&to_here[..], &[0x45; 40]].concat()),
        // Another port of the TNC, and a command.
        vec![0xC0, 0x10, 1, 0xC0],
        vec![0xC0, 0x05, 1, 0xC0],
    ];
    hostile.iter().for_each(|octets| line.write_all(octets).unwrap());
    let error = listening.accept_for(Duration::from_millis(300)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_eq!(host.counters().refused, hostile.len() as u64);
    // When the TNC closes the line, the host is closed.
    drop(line);
    let error = listening.accept_for(LIMIT).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotConnected);
}

#[test]
fn hosts_exchange_data_on_raw_ip() {
    let [a, b] = ["127.0.0.1", "127.0.0.2"].map(|text| text.parse::<IpAddr>().unwrap());
    let open = |local| Host::raw(local, &ip_session(local, 1500));
    let client = match open(a) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            eprintln!("skipped: raw sockets need CAP_NET_RAW");
            return;
        }
        other => other.unwrap(),
    };
    let server = open(b).unwrap();
    echo(&client, &server, b, 1_000_000);
    client.close(LIMIT).unwrap();
    server.close(LIMIT).unwrap();
    let local: IpAddr = "::1".parse().unwrap();
    let Ok(host) = open(local) else {
        eprintln!("skipped: no IPv6");
        return;
    };
    echo(&host, &host, local, 100_000);
}
