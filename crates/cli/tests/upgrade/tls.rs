//! Upgrades while the association runs over TLS.

use super::{CLIENTS, Site, echo, rounds, run, transfer, wait_or_show, wait_until};
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;

/// A pair of gateways whose link uses TLS only.
fn site(name: &str) -> Site {
    let folder = std::env::temp_dir().join(format!("bentpipe-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let tcp = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let udp = || UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (socks, tls, hub, own) = (tcp(), tcp(), udp(), udp());
    let mut site = Site { folder, socks, gateways: Vec::new() };
    let [hub_key, terminal_key] = ["hub", "terminal"].map(|role| site.key(role));
    let head = |role: &str| {
        let key = site.folder.join(format!("{role}.key"));
        format!("role = \"{role}\"\nprivate_key_file = \"{}\"\n[link]\n", key.display())
    };
    let at_hub = format!(
        "{}listen = \"{hub}\"\n[tls]\nlisten = \"{tls}\"\n[hub]\nallow = [\"127.0.0.0/8\"]\n\
         [[terminal]]\nname = \"boat\"\npublic_key = \"{terminal_key}\"\n",
        head("hub")
    );
    let at_terminal = format!(
        "{}peer = \"{hub}\"\nlisten = \"{own}\"\npeer_public_key = \"{hub_key}\"\n\
         [tls]\nport = {}\nuse = \"always\"\n[socks5]\nlisten = \"{socks}\"\n",
        head("terminal"),
        tls.port()
    );
    site.start("hub", &at_hub);
    site.start("terminal", &at_terminal);
    site
}

/// Upgrades the gateway of `role` while clients transfer over TLS.
fn upgrade_under_load(name: &str, role: &str) {
    let site = site(name);
    let (server, socks) = (echo(), site.socks);
    let logs = || format!("{}{}", site.log("hub"), site.log("terminal"));
    wait_or_show(|| transfer(socks, server).is_ok(), logs);
    let (stop, done) = (AtomicBool::new(false), AtomicUsize::new(0));
    let lost: Vec<String> = thread::scope(|scope| {
        let client = || {
            let mut lost = Vec::new();
            while !stop.load(SeqCst) {
                match transfer(socks, server) {
                    Ok(()) => drop(done.fetch_add(1, SeqCst)),
                    Err(error) => lost.push(error.to_string()),
                }
            }
            lost
        };
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(client)).collect();
        for _ in 0..rounds() {
            let before = done.load(SeqCst);
            site.upgrade(role);
            // Those that were running, and new ones.
            wait_or_show(|| done.load(SeqCst) >= before + 2 * CLIENTS, logs);
        }
        stop.store(true, SeqCst);
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    assert!(lost.is_empty(), "{} lost: {lost:?}\n{}", lost.len(), logs());
    wait_until(|| site.processes("terminal") == 1 && site.processes("hub") == 1);
    wait_or_show(|| transfer(socks, server).is_ok(), logs);
    let socket = site.socket("terminal");
    let status = run(&["status", "--json", "--socket", socket.to_str().unwrap()]);
    let status = status.unwrap_or_default().replace(' ', "");
    assert!(status.contains("\"carrier\":\"tls\""), "{status}");
}

/// TLS-3.1, TLS-4.6
#[test]
fn no_connection_over_tls_is_lost_when_the_hub_is_upgraded() {
    upgrade_under_load("upgrade-tls-hub", "hub");
}

/// TLS-4.6
#[test]
fn no_connection_over_tls_is_lost_when_the_terminal_is_upgraded() {
    upgrade_under_load("upgrade-tls-terminal", "terminal");
}
