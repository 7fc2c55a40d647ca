//! Announcement of the address families that a hub reaches.

mod rig;

use relay::{Families, FamilyReach, RelayConfig};
use rig::{Faults, Rig};
use units::{BitRate, Span};

const ONLY_IPV4: Families = Families { ipv4: FamilyReach::Global, ipv6: FamilyReach::None };

/// RLY-9.2, RLY-9.3
#[test]
fn every_session_gets_the_announcement_despite_loss() {
    let rate = Some(BitRate::from_mbps(2));
    let config = |name: &str| RelayConfig::new(name).with_rates(rate, rate);
    let mut rig = Rig::with(7, config("boat"), config("hub"));
    rig.faults = Faults { loss: 0.3, ..Faults::default() };
    rig.hub.set_families(ONLY_IPV4);
    let announced = |rig: &mut Rig, families| {
        assert!(rig.run(Span::from_secs(120), |rig| rig.terminal.families() == Some(families)));
    };
    announced(&mut rig, ONLY_IPV4);
    // A change, and back.
    rig.hub.set_families(Families::default());
    announced(&mut rig, Families::default());
    rig.hub.set_families(ONLY_IPV4);
    announced(&mut rig, ONLY_IPV4);
    rig.restart_terminal();
    assert_eq!(rig.terminal.families(), None, "of this session nothing is known yet");
    announced(&mut rig, ONLY_IPV4);
    rig.faults = Faults::default();
    assert_eq!(rig.terminal.statistics().bad_frames, 0);
}
