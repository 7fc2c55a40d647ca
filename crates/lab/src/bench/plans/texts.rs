//! Configurations of link and gateways.

use super::{DELAY, FLOOD, PlansConfig, REQUESTS, is_double};
use gateway::PrivateKey;
use satlink::{DirectionConfig, Limit, LinkConfig, QueueConfig};
use std::net::SocketAddr;
use units::BitRate;

pub(super) fn emulated(config: &PlansConfig) -> LinkConfig {
    let direction = |rate| DirectionConfig {
        rate: Some(rate),
        delay: DELAY,
        queue: QueueConfig { limit: Limit::BandwidthDelay(1.0), ..QueueConfig::default() },
        ..DirectionConfig::default()
    };
    LinkConfig {
        forward: direction(config.rate),
        return_: direction(up(config)),
        ..LinkConfig::default()
    }
}

/// Returns the rate of the return link.
fn up(config: &PlansConfig) -> BitRate {
    config.rate.mul_ratio(1, 5)
}

/// Returns the address of a terminal's proxy: a loopback address that contains this process's
/// number, so that several runs do not conflict.
pub(super) fn proxy(terminal: usize) -> SocketAddr {
    let run = 64 + (std::process::id() % 128) as u8;
    let address = [127, run, (terminal / 250 + 1) as u8, (terminal % 250 + 1) as u8];
    SocketAddr::from((address, 1080))
}

fn link_text(config: &PlansConfig) -> String {
    format!(
        "rate_up = \"{}bit\"\nrate_down = \"{}bit\"\nround_trip = \"{}ms\"\n",
        up(config).as_bps(),
        config.rate.as_bps(),
        (DELAY * 2).as_millis()
    )
}

pub(super) fn hub_text(
    config: &PlansConfig,
    [at, metrics]: [SocketAddr; 2],
    urgent: [u16; 2],
    keys: &[PrivateKey],
) -> String {
    // One terminal may use half of the connections.
    let connections = 2 * (config.terminals * config.connections + FLOOD.0 + FLOOD.1 + REQUESTS);
    let mut text = format!(
        "role = \"hub\"\nprivate_key = \"{}\"\n[link]\nlisten = \"{at}\"\n{}\
         [metrics]\nlisten = \"{metrics}\"\n\
         [limits]\ndrain = \"0s\"\nconnections = {connections}\n\
         [[plan]]\nname = \"double\"\nweight = 2\n\
         [[class]]\nname = \"urgent\"\nports = {urgent:?}\npriority = \"urgent\"\n",
        keys[config.terminals].to_text(),
        link_text(config),
    );
    for (number, key) in keys[..config.terminals].iter().enumerate() {
        let plan = if is_double(number) { "plan = \"double\"\n" } else { "" };
        text += &format!(
            "[[terminal]]\nname = \"site-{number}\"\npublic_key = \"{}\"\n{plan}",
            key.public()
        );
    }
    text
}

pub(super) fn terminal_text(
    config: &PlansConfig,
    number: usize,
    peer: SocketAddr,
    key: &PrivateKey,
    hub: &str,
) -> String {
    format!(
        "role = \"terminal\"\nname = \"site-{number}\"\nprivate_key = \"{}\"\naccept = \"early\"\n\
         [link]\npeer = \"{peer}\"\npeer_public_key = \"{hub}\"\n{}\
         [socks5]\nlisten = \"{}\"\n[limits]\ndrain = \"0s\"\n",
        key.to_text(),
        link_text(config),
        proxy(number)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use gateway::SystemEntropy;
    use std::net::Ipv4Addr;

    #[test]
    fn the_gateway_configurations_are_valid() {
        let config = PlansConfig { terminals: 5, ..PlansConfig::default() };
        let keys: Vec<PrivateKey> =
            (0..6).map(|_| PrivateKey::generate(&mut SystemEntropy)).collect();
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 7_000));
        let hub = gateway::Config::parse("hub", &hub_text(&config, [at, at], [1, 2], &keys));
        assert!(hub.is_ok(), "{hub:?}");
        let key = keys[5].public().to_string();
        let terminal = terminal_text(&config, 3, at, &keys[3], &key);
        let terminal = gateway::Config::parse("terminal", &terminal);
        assert!(terminal.is_ok(), "{terminal:?}");
        assert_ne!(proxy(3), proxy(253));
    }
}
