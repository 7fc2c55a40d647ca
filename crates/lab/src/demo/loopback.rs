//! The demo without privileges: the gateways' explicit proxy with the emulator as a UDP relay, on
//! the loopback interface.
//!
//! ```text
//!   client ─SOCKS5─ terminal ═UDP═ emulator ═UDP═ hub ── server
//! ```
//!
//! Plain TCP cannot use a UDP relay, so there is no comparison.

use super::measure::{Stage, Watched, download, fill_in, quick_things};
use super::report::{DemoRun, Report};
use super::view::View;
use super::{DemoConfig, Plan};
use crate::LabError;
use crate::live::{Acquainted, Gateway, GatewayRates, UdpLink, Way};
use crate::threads::joined;
use rt::Clock;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::thread;
use testbed::traffic::{self, FileServer, WebServer};
use units::Span;

pub(super) fn run(plan: &Plan, config: &DemoConfig) -> Result<Report, LabError> {
    eprintln!(
        "Without network namespaces plain TCP cannot be led over the emulated link. What can be\n\
         shown: the gateways' SOCKS5 proxy on this machine's loopback interface, with the same\n\
         link between them as a UDP relay."
    );
    let watched = [Watched::new(Way::Bentpipe)];
    let view = View::new(&watched, plan);
    let result = thread::scope(|scope| {
        let task = scope.spawn(|| {
            let result = measured(plan, &watched[0]);
            watched[0].enter(match &result {
                Ok(_) => Stage::Done,
                Err(error) => Stage::Failed(error.to_string()),
            });
            result
        });
        view.show_until(|| task.is_finished());
        joined(task.join())
    });
    view.close();
    Ok(Report::new(config, plan, vec![result?]))
}

fn measured(plan: &Plan, watched: &Watched) -> Result<DemoRun, LabError> {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let files = FileServer::start(None, any)?;
    let web = WebServer::start(None, any)?;
    let (hub_port, proxy) = (free_udp()?, free_tcp()?);
    let relay = UdpLink::start(&plan.link, plan.seed, hub_port)?;
    let link = gateway_link(plan)?;
    let Acquainted { hub_top, hub_end, terminal_top, terminal_link } = Acquainted::new();
    let mut hub = Gateway::start(
        None,
        "hub",
        &format!("role = \"hub\"\n{hub_top}[link]\nlisten = \"{hub_port}\"\n{link}{hub_end}"),
    )?;
    let mut terminal = Gateway::start(
        None,
        "terminal",
        &format!(
            "role = \"terminal\"\n{terminal_top}accept = \"early\"\n\
             [link]\npeer = \"{}\"\n{terminal_link}{link}\
             [socks5]\nlisten = \"{proxy}\"\n",
            relay.address()
        ),
    )?;
    let route = traffic::Way::Socks5(proxy);
    await_gateways(route, files.address(), &mut [&mut hub, &mut terminal])?;

    let mut run = DemoRun::new(Way::Bentpipe);
    quick_things(&mut run, watched, route, files.address(), web.address());
    watched.enter(Stage::Download { since: Clock::new().now() });
    let before = relay.returned();
    let transfer = download(plan, route, files.address(), "-", &watched.progress);
    let bytes = relay.returned().saturating_sub(before);
    watched.enter(Stage::Closing);
    run.return_bytes = Some(bytes);
    run.return_bits_per_second = Some(bytes as f64 * 8.0 / transfer.ended.as_secs_f64());
    fill_in(&mut run, &transfer, plan);
    let counters = hub.stop();
    terminal.stop();
    run.retransmissions = counters.get("retransmitted").and_then(serde_json::Value::as_u64);
    let summary = relay.stop()?;
    run.emulator_kept_up = summary.end.kept_up;
    run.notes.extend(summary.end.reasons.iter().cloned());
    Ok(run)
}

fn gateway_link(plan: &Plan) -> Result<String, LabError> {
    Ok(GatewayRates::of(&plan.link)?.as_toml(plan.link.round_trip()))
}

fn await_gateways(
    route: traffic::Way,
    server: SocketAddr,
    gateways: &mut [&mut Gateway],
) -> Result<(), LabError> {
    let clock = Clock::new();
    let patience = clock.now() + Span::from_secs(20);
    loop {
        let exchange = traffic::ask(route, server, (64, 64), Span::from_secs(5));
        let Some(error) = exchange.error else { return Ok(()) };
        for gateway in gateways.iter_mut() {
            gateway.check()?;
        }
        if clock.now() > patience {
            return Err(LabError::Emulator(format!("no request gets across: {error}")));
        }
        clock.sleep_until(clock.now() + Span::from_millis(200));
    }
}

/// Returns a currently unused UDP address.
fn free_udp() -> Result<SocketAddr, LabError> {
    let free = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr());
    free.map_err(|error| LabError::Emulator(format!("no free UDP port: {error}")))
}

/// Returns a currently unused TCP address.
fn free_tcp() -> Result<SocketAddr, LabError> {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr());
    free.map_err(|error| LabError::Emulator(format!("no free TCP port: {error}")))
}
