//! Names at a site, with curl: by a name server behind the satellite, by the terminal's DNS
//! forwarder, with placeholders, and while the link is down; and a web cache, with squid.
//!
//! ```text
//!   curl, squid ── terminal (DNS forwarder) ══ 600 ms ══ hub ── name server, web server
//! ```

use super::dead_names::answer;
use super::network::{Setup, Side, TestNetwork};
use super::{ProofConfig, Verdict, failed, sleep_ms};
use crate::LabError;
use crate::live::Program;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use testbed::addresses;
use units::Span;

/// Port of the web server, of squid, and of the terminal's metrics.
const WEB: u16 = 80;
const SQUID: u16 = 3129;
const METRICS: u16 = 9720;
/// Size of the page that the web cache holds, in octets.
const PAGE: usize = 200_000;
/// Shortest difference of one round trip of 600 ms, and longest time of none, in seconds.
const ROUND_TRIP: f64 = 0.5;
const AT_ONCE: f64 = 0.1;
/// Where Debian has squid.
const PROGRAM: &str = "/usr/sbin/squid";

pub(super) fn run(config: &ProofConfig, verdict: &mut Verdict) -> Result<(), LabError> {
    let (lan, server) = (addresses::TERMINAL_LAN.0, addresses::SERVER.0);
    let setup = Setup {
        link: "delay 300ms limit 1bdp forward rate 10mbit return rate 1mbit",
        rates: "rate_up = \"1mbit\"\nrate_down = \"10mbit\"\nround_trip = \"600ms\"",
        terminal_tables: format!(
            "[dns]\nlisten = [\"{lan}:53\"]\n#more\n[metrics]\nlisten = \"127.0.0.1:{METRICS}\"\n"
        ),
        hub_tables: format!(
            "[dns]\nservers = [\"{server}\"]\n[resolver]\nnameservers = [\"{server}\"]\n"
        ),
        ..Setup::new(config.seed)
    };
    let mut network = TestNetwork::without_gateways(&setup)?;
    let served = serve(&network)?;
    network.start_both()?;
    let rounds = if config.quick { 3 } else { 10 };

    let far = Site::new(&network, server)?;
    let near = Site::new(&network, lan)?;
    let plain = far.first_pages("far", rounds)?;
    let first = near.first_pages("near", rounds)?;
    let again = near.first_pages("near", rounds)?;
    network.kill(Side::Terminal);
    network.reconfigure(Side::Terminal, "#more", "placeholders = \"198.18.0.0/15\"");
    network.start(Side::Terminal)?;
    network.await_path(Span::from_secs(30))?;
    let near = Site::new(&network, lan)?;
    let placed = near.first_pages("placed", rounds)?;
    for (name, times) in
        [("far", &plain), ("forwarder", &first), ("repeated", &again), ("placeholder", &placed)]
    {
        verdict.figure(&format!("{name}_lookup_s"), times.lookup);
        verdict.figure(&format!("{name}_page_s"), times.page);
    }
    verdict.demand(
        placed.page <= plain.page - ROUND_TRIP && placed.lookup <= AT_ONCE,
        "with placeholders the first page of a name takes one round trip less",
    );
    verdict.demand(
        again.page <= plain.page - ROUND_TRIP && again.lookup <= AT_ONCE,
        "the look-up of a stored name takes no round trip",
    );
    verdict.demand(
        first.page <= plain.page + AT_ONCE,
        "the look-up of another name takes no longer than at the name server",
    );
    stale(&network, &near, verdict)?;
    cache(&network, &served, verdict)?;
    network.check()
}

/// Looks a name up whose response has expired, while the link is down.
fn stale(network: &TestNetwork, near: &Site, verdict: &mut Verdict) -> Result<(), LabError> {
    // Its TTL is 1 s.
    near.page("short.good.test")?;
    near.page("short.good.test")?;
    sleep_ms(2_500);
    network.outage(Span::from_secs(6))?;
    let found = near.lookup("short.good.test")?;
    verdict.figure("stale_lookup_s", found);
    verdict.demand(found < 2.5, "an expired response is used while the link is down");
    sleep_ms(6_000);
    Ok(())
}

/// Fetches a page through squid twice: the second time nothing crosses the satellite.
fn cache(
    network: &TestNetwork,
    served: &Arc<AtomicU64>,
    verdict: &mut Verdict,
) -> Result<(), LabError> {
    if !PathBuf::from(PROGRAM).exists() {
        verdict.note(format!("the web cache was not tested: {PROGRAM} is not installed"));
        return Ok(());
    }
    let folder = Folder::new("squid")?;
    let text = include_str!("../../../../contrib/squid/squid.conf")
        .replace("/var/spool/squid", &folder.path("spool"))
        .replace("10.1.0.0/24", "0.0.0.0/0");
    let text = format!(
        "{text}\nhttp_port {SQUID}\ndns_nameservers {}\npid_filename none\n\
         cache_log {}\naccess_log none\nvisible_hostname site\nshutdown_lifetime 0 seconds\n",
        addresses::TERMINAL_LAN.0,
        folder.path("log"),
    );
    let file = folder.write("squid.conf", &text)?;
    fs::create_dir(folder.path("spool")).map_err(failed("squid's folder"))?;
    // squid writes as its own user.
    let own = Command::new("chmod").args(["-R", "a+rwX"]).arg(&folder.0).status();
    own.map_err(failed("chmod"))?;
    let made = Command::new(PROGRAM).args(["-z", "-N", "-f", &file]).output();
    made.map_err(failed("squid"))?;
    let mut command = Command::new(PROGRAM);
    command.args(["-N", "-f", &file]);
    let _squid = Program::start(Some(&network.net.client), command, "")?;
    let proxy = format!("127.0.0.1:{SQUID}");
    let url = "http://cached.good.test/page";
    let mut fetched = false;
    for _ in 0..100 {
        sleep_ms(100);
        fetched = curl(network, &["--proxy", &proxy, url], None).is_ok();
        if fetched {
            break;
        }
    }
    verdict.demand(fetched, "squid fetches a page");
    // Until the connection to the server is idle.
    sleep_ms(2_000);
    let before = (served.load(Ordering::Relaxed), satellite_octets(network)?);
    let mut worst: f64 = 0.0;
    for _ in 0..20 {
        worst = worst.max(curl(network, &["--proxy", &proxy, url], None)?.page);
    }
    let after = (served.load(Ordering::Relaxed), satellite_octets(network)?);
    verdict.figure("cache_hit_page_s", worst);
    verdict.figure("cache_hits_satellite_stream_octets", after.1 - before.1);
    verdict.demand(after.0 == before.0, "20 hits are no requests to the server");
    verdict.demand(after.1 - before.1 < 1.0, "20 hits cost nothing on the satellite");
    Ok(())
}

/// Returns the octets of streams that the terminal has sent and received over the satellite.
fn satellite_octets(network: &TestNetwork) -> Result<f64, LabError> {
    let page = network.net.terminal.run(|| -> io::Result<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, METRICS))?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
        let mut page = String::new();
        stream.read_to_string(&mut page)?;
        Ok(page)
    });
    let page = page.map_err(failed("the terminal's metrics"))?;
    let value = |name: &str| {
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.parse::<f64>().ok())
    };
    let both = ["bentpipe_stream_sent_bytes_total", "bentpipe_stream_received_bytes_total"];
    let [Some(sent), Some(received)] = both.map(value) else {
        return Err(LabError::Proof("the metrics have no octets of streams".to_owned()));
    };
    Ok(sent + received)
}

/// Times of a page in seconds.
struct Times {
    lookup: f64,
    page: f64,
}

/// A client with a name server.
struct Site<'a> {
    network: &'a TestNetwork,
    folder: Folder,
}

impl<'a> Site<'a> {
    fn new(network: &'a TestNetwork, name_server: Ipv4Addr) -> Result<Self, LabError> {
        let folder = Folder::new(&name_server.to_string())?;
        folder.write("resolv.conf", &format!("nameserver {name_server}\n"))?;
        Ok(Self { network, folder })
    }

    /// Fetches the page of a host.
    fn page(&self, host: &str) -> Result<Times, LabError> {
        curl(self.network, &[&format!("http://{host}/")], Some(&self.folder.path("resolv.conf")))
    }

    /// Looks a host up, without its page.
    fn lookup(&self, host: &str) -> Result<f64, LabError> {
        let url = format!("http://{host}/");
        let arguments = ["--connect-timeout", "5", "--max-time", "5", &url];
        let resolv = self.folder.path("resolv.conf");
        curl(self.network, &arguments, Some(&resolv)).map(|times| times.lookup)
    }

    /// Fetches the first pages of `rounds` hosts, whose names begin with `label`; returns medians.
    fn first_pages(&self, label: &str, rounds: usize) -> Result<Times, LabError> {
        let (mut lookups, mut pages) = (Vec::new(), Vec::new());
        for number in 0..rounds {
            let times = self.page(&format!("{label}-{number}.good.test"))?;
            lookups.push(times.lookup);
            pages.push(times.page);
        }
        lookups.sort_by(f64::total_cmp);
        pages.sort_by(f64::total_cmp);
        Ok(Times { lookup: lookups[rounds / 2], page: pages[rounds / 2] })
    }
}

/// Runs curl at the client, with another `/etc/resolv.conf` if one is named.
fn curl(
    network: &TestNetwork,
    arguments: &[&str],
    resolv: Option<&str>,
) -> Result<Times, LabError> {
    let script = match resolv {
        Some(_) => "mount --bind \"$0\" /etc/resolv.conf && exec \"$@\"",
        None => "exec \"$@\"",
    };
    let format = "%{time_namelookup} %{time_total} %{http_code}";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, resolv.unwrap_or("-")]);
    command.args(["curl", "--silent", "--output", "/dev/null", "--write-out", format]);
    command.args(["--noproxy", ""]).args(arguments);
    let output = network.net.client.run(|| command.output()).map_err(failed("curl"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers: Vec<f64> = text.split(' ').filter_map(|word| word.parse().ok()).collect();
    let only_lookup = arguments.contains(&"--connect-timeout");
    match numbers[..] {
        [lookup, page, code] if code == 200.0 || only_lookup && lookup > 0.0 => {
            Ok(Times { lookup, page })
        }
        _ => Err(LabError::Proof(format!(
            "curl: {text} {}",
            String::from_utf8_lossy(&output.stderr)
        ))),
    }
}

/// Starts the name server, by UDP and TCP, and the web server; returns the number of its requests.
fn serve(network: &TestNetwork) -> Result<Arc<AtomicU64>, LabError> {
    let address = |port| SocketAddr::new(addresses::SERVER.0.into(), port);
    let listen = |port| network.net.server.run(|| TcpListener::bind(address(port)));
    let udp = network.net.server.run(|| UdpSocket::bind(address(53)));
    let udp = udp.map_err(failed("the name server"))?;
    let (tcp, web) = (listen(53), listen(WEB));
    let (tcp, web) = (tcp.map_err(failed("the name server"))?, web.map_err(failed("a server"))?);
    let served = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&served);
    // The threads end with the process.
    std::thread::spawn(move || {
        let mut query = [0; 512];
        while let Ok((length, from)) = udp.recv_from(&mut query) {
            if let Some(answer) = timed_answer(&query[..length]) {
                let _ = udp.send_to(&answer, from); // A lost response is requested again.
            }
        }
    });
    each(tcp, |stream| {
        let mut length = [0; 2];
        while stream.read_exact(&mut length).is_ok() {
            let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
            stream.read_exact(&mut query)?;
            let answer = timed_answer(&query).unwrap_or_default();
            stream.write_all(&[&(answer.len() as u16).to_be_bytes(), &answer[..]].concat())?;
        }
        Ok(())
    });
    each(web, move |stream| {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut octet = [0];
            stream.read_exact(&mut octet)?;
            head.push(octet[0]);
        }
        count.fetch_add(1, Ordering::Relaxed);
        let size = if head.starts_with(b"GET /page") { PAGE } else { 2 };
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {size}\r\nConnection: close\r\n\
             Expires: Fri, 01 Jan 2100 00:00:00 GMT\r\n\r\n"
        );
        stream.write_all(&[head.as_bytes(), &vec![b'x'; size]].concat())
    });
    Ok(served)
}

/// Handles each connection of `listener` in a thread of its own.
fn each(
    listener: TcpListener,
    handle: impl Fn(&mut TcpStream) -> io::Result<()> + Clone + Send + 'static,
) {
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let handle = handle.clone();
            // A client that leaves early is no error.
            std::thread::spawn(move || handle(&mut stream).unwrap_or_default());
        }
    });
}

/// The response of the name server; names with "short" have a TTL of 1 s.
fn timed_answer(query: &[u8]) -> Option<Vec<u8>> {
    let mut answer = answer(query)?;
    if query.windows(6).any(|octets| octets == b"\x05short") && answer.ends_with(&ADDRESS) {
        let ttl = answer.len() - 10;
        answer[ttl..ttl + 4].copy_from_slice(&[0, 0, 0, 1]);
    }
    Some(answer)
}

/// The server's address.
const ADDRESS: [u8; 4] = addresses::SERVER.0.octets();

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Result<Self, LabError> {
        let name = format!("bentpipe-names-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).map_err(failed("a folder"))?;
        Ok(Self(folder))
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn write(&self, name: &str, text: &str) -> Result<String, LabError> {
        fs::write(self.path(name), text).map_err(failed("a file"))?;
        Ok(self.path(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0); // In the folder for temporary files.
    }
}
