//! Key pairs for two gateways of one measurement.

use gateway::{PrivateKey, SystemEntropy};

/// Configuration lines by which two gateways authenticate each other with temporary keys:
/// measurements include encryption.
pub(crate) struct Acquainted {
    /// At the top of the hub's configuration.
    pub(crate) hub_top: String,
    /// At the end of the hub's configuration.
    pub(crate) hub_end: String,
    /// At the top of the terminal's configuration.
    pub(crate) terminal_top: String,
    /// In the terminal's `[link]`.
    pub(crate) terminal_link: String,
}

impl Acquainted {
    pub(crate) fn new() -> Self {
        let [hub, terminal] = [(); 2].map(|()| PrivateKey::generate(&mut SystemEntropy));
        let own = |key: &PrivateKey| format!("private_key = \"{}\"\n", key.to_text());
        let public = terminal.public();
        Self {
            hub_top: own(&hub),
            hub_end: format!("[[terminal]]\nname = \"terminal\"\npublic_key = \"{public}\"\n"),
            terminal_top: own(&terminal),
            terminal_link: format!("peer_public_key = \"{}\"\n", hub.public()),
        }
    }
}
