//! What errors and changes of the link do to the start and to the way back up.

use super::*;

/// XSTP-14.2.2
#[test]
fn one_packet_that_a_train_lost_hides_nothing_of_the_rate() {
    for lost in [2, 3, 5, 6, 8, 9] {
        let mut rig = Rig::auto(|_| GOOD);
        rig.losing = Some(lost);
        rig.run(1_000);
        assert_eq!(rig.steady.mode(), "ramp");
        let half = rig.steady.pace(rig.now).as_bps();
        assert!(half > 4_900_000, "{half} without packet {lost}");
    }
}
