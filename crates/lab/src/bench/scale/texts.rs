//! The gateways' configurations.

use gateway::PrivateKey;
use std::fmt::Write;
use std::net::SocketAddr;

/// Returns the hub's configuration; `keys` are those of the terminals, and last its own.
pub(super) fn hub(at: SocketAddr, metrics: SocketAddr, keys: &[PrivateKey]) -> String {
    let (own, terminals) = keys.split_last().expect("the hub has a key");
    let mut text = format!(
        "role = \"hub\"\nprivate_key = \"{}\"\n[link]\nlisten = \"{at}\"\n\
         [metrics]\nlisten = \"{metrics}\"\n[limits]\ndrain = \"0s\"\n",
        own.to_text()
    );
    for (number, key) in terminals.iter().enumerate() {
        let key = key.public();
        write!(text, "[[terminal]]\nname = \"site-{number}\"\npublic_key = \"{key}\"\n")
            .expect("a string takes what is written");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use gateway::{Config, SystemEntropy};
    use std::net::Ipv4Addr;

    #[test]
    fn the_hub_accepts_its_configuration() {
        let keys = [(); 3].map(|()| PrivateKey::generate(&mut SystemEntropy));
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 7_000));
        let hub = Config::parse("hub", &hub(at, at, &keys));
        assert!(hub.is_ok(), "{hub:?}");
    }
}
