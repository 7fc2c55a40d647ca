//! Reloads that the kernel rejects, in a separate network namespace.

use super::harness::*;
use crate::intercept::tests::{assert_nothing_changed, everything, with_namespaces};
use crate::intercept::{HubRules, Interception};
use rt::netlink::{Netlink, sysctl};

#[test]
fn rejected_changes_leave_rules_and_routes_unchanged() {
    with_namespaces(|| {
        if !std::path::Path::new("/dev/net/tun").exists() {
            eprintln!("skipped: no /dev/net/tun");
            return;
        }
        Netlink::open().unwrap().set_up("lo").unwrap();
        // IPv6 routes cannot be added here, which does not prevent the start.
        sysctl("net.ipv6.conf.all.disable_ipv6", "1").unwrap();
        let hub = Running::start(
            "role = \"hub\"\n[link]\nlisten = \"127.0.0.1:0\"\n\
             [hub]\nid = \"mine\"\nsource = \"client\"\ninterfaces = [\"lo\"]\n\
             [forward]\nnetworks = [\"10.1.0.0/24\"]\ndevice = \"tun8\"\n\
             [[terminal]]\nname = \"boat\"\nclients = [\"10.2.0.0/24\"]\n",
        );
        let other = Interception::hub(&HubRules::new("other")).unwrap();
        let before = everything();
        // The routes are rejected, and the rules are not changed.
        hub.reload(|text| {
            let text = text.replace("\"10.2.0.0/24\"", "\"10.4.0.0/24\", \"fd00:5::/64\"");
            text.replace("[\"lo\"]", "[\"eth9\"]")
        });
        pause_ms(1_000);
        assert_nothing_changed(&before);
        // The rules are rejected because their name is in use, and the routes are not changed.
        hub.reload(|text| {
            let text = text.replace("\"10.2.0.0/24\"", "\"10.4.0.0/24\"");
            text.replace("id = \"mine\"", "id = \"other\"")
        });
        pause_ms(1_000);
        assert_nothing_changed(&before);
        // A valid change applies to both.
        hub.reload(|text| text.replace("\"10.2.0.0/24\"", "\"10.4.0.0/24\""));
        assert!(soon(|| everything() != before));
        hub.stop();
        other.remove().unwrap();
    });
}
