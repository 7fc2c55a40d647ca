//! More terminals than a hub has slots.

mod crowd;

use crowd::Crowd;
use relay::Plans;
use units::{BitRate, Span};

/// Returns two slots, three terminals, and a waiting request of the third.
fn one_too_many() -> Crowd {
    let rates = [BitRate::from_mbps(10), BitRate::from_mbps(2)];
    let mut crowd = Crowd::with_places(3, 2, rates, Plans::default());
    // The third one connects after the others.
    crowd.vanish(2);
    crowd.run(Span::from_secs(3), |_| false);
    crowd.come_again(2);
    for boat in 0..3 {
        crowd.open(boat, "answer");
    }
    crowd.run(Span::from_secs(60), |_| false);
    for boat in 0..2 {
        assert_eq!(crowd.boats[boat].ended.len(), 1, "{boat} has a place");
    }
    assert!(!crowd.boats[2].relay.is_answered());
    // A Hello each second at first, and then every five.
    let asked = crowd.hub.association_counters().full;
    assert!((10..20).contains(&asked), "{asked}");
    // The waiting terminal has no error and continues to send Hellos.
    assert!(crowd.open(2, "answer").is_some());
    assert_eq!(crowd.hub.peers().count(), 2);
    crowd
}

/// Returns how long the third terminal waits for its responses from now on.
fn waits(crowd: &mut Crowd) -> Span {
    let from = crowd.now;
    let served = crowd.run(Span::from_secs(300), |crowd| crowd.boats[2].ended.len() == 2);
    assert!(served, "{:?}", crowd.boats[2].read);
    assert_eq!(crowd.read(2), [1_000, 1_000]);
    crowd.now.since(from)
}

/// ASC-2.9
#[test]
fn a_terminal_beyond_the_limit_is_served_when_another_leaves() {
    let mut crowd = one_too_many();
    crowd.leave(0);
    // Its next Hello, the Welcome, and the requests.
    let took = waits(&mut crowd);
    println!("served {took} after a terminal has left");
    assert!(took < Span::from_secs(8), "{took}");
    crowd.run(Span::from_secs(20), |_| false);
    let full = crowd.hub.association_counters().full;
    crowd.run(Span::from_secs(20), |_| false);
    assert_eq!(crowd.hub.association_counters().full, full, "nobody waits any more");
}

/// ASC-2.9
#[test]
fn a_slot_is_free_after_the_outage_timeout_of_its_terminal() {
    let mut crowd = one_too_many();
    // The hub has queued data without a STAT: it detects the loss after two minutes.
    crowd.open(0, "bulk");
    crowd.run(Span::from_secs(2), |_| false);
    crowd.vanish(0);
    let took = waits(&mut crowd);
    println!("served {took} after a terminal has vanished");
    assert!((Span::from_secs(110)..Span::from_secs(140)).contains(&took), "{took}");
}
