//! Why cells of section 6.3 come out as they do.

use super::super::seen::Why;

pub(in super::super) const OFF_DRAINS: Why = Why {
    agrees: "it sends until its window is full",
    differs: "what a STAT enables is spread over a round trip, and the file ends before",
};

pub(in super::super) const ON_LOSES_A_PART: Why = Why {
    agrees: "a third is what leaves until the next POLL is due; what was under way besides is \
        lost too",
    differs: "ON loses what was under way when connectivity ended, and what it sends until the \
        next POLL is due",
};

pub(in super::super) const BACKOFF_COSTS: Why = Why {
    agrees: "each blackout adds half of the backed-off interval, of a stay of five seconds",
    differs: "the mean is higher at all of these points, by a third to nearly double; but files \
        meet few blackouts of very different length, and with five replications some intervals \
        reach zero",
};

pub(in super::super) const FOUND_IN_A_ROUND_TRIP: Why = Why {
    agrees: "a probe leaves each round trip of 200 ms, and takes 100 ms to the sink",
    differs: "the smoothed round trip was longer than the link's",
};

pub(in super::super) const OFF_FINDS_LATE: Why = Why {
    agrees: "its POLLs are up to 4.3 s apart: 64 thirds of a round trip",
    differs: "POLLs are not backed off far enough at these settings",
};

pub(in super::super) const MORE_POLLS: Why = Why {
    agrees: "a probe of 16 octets each 200 ms through blackouts of minutes",
    differs: "blackouts are short at these settings",
};

pub(in super::super) const FASTER_WITH_RATE: Why = Why {
    agrees: "there is more time with link",
    differs: "a point is out of order beyond its interval: files meet few blackouts of very \
        different length",
};

pub(in super::super) const LONGER_IS_FASTER: Why = Why {
    agrees: "half as many beginnings for the same time",
    differs: "files end within a stay or two, whose lengths are left to chance",
};

pub(in super::super) const LONGER_HAS_LARGER_WINDOWS: Why = Why {
    agrees: "for the reason that the paper gives",
    differs: "windows are bound by 64 segments in both",
};

pub(in super::super) const FASTER: Why = Why {
    agrees: "it finds the link sooner and goes on with its old window",
    differs: "at a point chance outweighs it: files meet few blackouts of very different length",
};

pub(in super::super) const LEAST_GAIN: Why = Why {
    agrees: "the least gain is at the lowest rates, where both wait for most of the time",
    differs: "more than published throughout: OFF finds the link by POLLs up to 4.3 s apart, of \
        stays of 5 s, and then begins with one segment. The paper gives no cap for the \
        back-off; with a cap of 4 intervals instead of 64 gains are 0 to 10 %, so the published \
        ones lie between (see the readings tried)",
};

pub(in super::super) const MOST_GAIN: Why = Why {
    agrees: "the greatest is where stays without link are shortest",
    differs: "of another size: it hangs on how far OFF's polling backs off and on whether it \
        slow-starts or halves when the link is back. The paper gives neither a cap nor the idle \
        threshold; other values lead from a third to three times the published gain (see the \
        readings tried)",
};

pub(in super::super) const LESS_SENT_AGAIN: Why = Why {
    agrees: "cycles begin at the first POLL without a STAT",
    differs: "larger windows lose more at that point",
};

pub(in super::super) const OVERHEAD_IS_LEVEL: Why = Why {
    agrees: "each file needs about as many stays, and each stay loses about as much",
    differs: "the number of stays that a file needs changes with the rate",
};

pub(in super::super) const MOSTLY_SENT_AGAIN: Why = Why {
    agrees: "POLLs are small, but for the longest blackouts",
    differs: "probes through long blackouts outweigh what is sent again",
};

pub(in super::super) const WINDOW_RISES: Why = Why {
    agrees: "for the reason that the paper gives",
    differs: "in the paper's own set-up a stay with link is 5 s on average at every rate; only \
        blackouts differ, so windows have no more time to grow at a higher rate. What changes: \
        at 30 % a quarter of the blackouts is shorter than the idle threshold; after these OFF \
        halves instead of slow-starting up to its old window, and its mean window falls",
};

pub(in super::super) const MORE_LOST_EACH: Why = Why {
    agrees: "windows are larger",
    differs: "stays with link are as long at every rate, and so are windows at their ends: what \
        is lost each time hardly depends on the rate",
};

pub(in super::super) const FEWER_EVENTS: Why = Why {
    agrees: "fewer stays for the same file",
    differs: "each stay with link is as long and carries as much at every rate, whatever lies \
        between, so a file needs as many; OFF needs more at 30 %, where it halves after \
        blackouts shorter than its idle threshold",
};

pub(in super::super) const LESS_OVERHEAD: Why = Why {
    agrees: "fewer retransmissions",
    differs: "not at 1 %: a probe of 16 octets each 200 ms through a blackout of 495 s is 39.6 \
        kB, as much as 39 segments, where an early timeout saves some 25 of at most 64. Probing \
        can only save octets where blackouts are shorter than about 320 s, at rates above 1.6 \
        %. The paper says itself that probes cost most there",
};

pub(in super::super) const FEWER_EVENTS_WITH_ON: Why =
    Why { agrees: "it is done sooner", differs: "chance outweighs it at a point" };

pub(in super::super) const LESS_ADVANTAGE_AT_10_S: Why = Why {
    agrees: "OFF makes more of longer stays",
    differs: "about as much is saved in both: with 10 s stays blackouts are longer too and \
        probes cost more, but fewer stays are needed. The difference is within the intervals of \
        both",
};

pub(in super::super) const BY_SLOW_START: Why = Why {
    agrees: "halving again and again would leave it with small windows; slow start reaches the \
        old window in six round trips",
    differs: "slow start from one segment is the slower way here",
};

pub(in super::super) const LONGER_CYCLES: Why = Why {
    agrees: "a cycle lasts as long as the blackout, and probes are sent throughout",
    differs: "chance of few blackouts outweighs it at a point",
};

pub(in super::super) const RATIO_RISES: Why = Why {
    agrees: "faster at hardly more overhead",
    differs: "a point is out of order beyond its interval",
};

pub(in super::super) const RATIO_BETTER_AT_10_S: Why = Why {
    agrees: "faster, at less overhead for each stay",
    differs: "chance of few blackouts outweighs it",
};

pub(in super::super) const BETTER_RATIO: Why = Why {
    agrees: "faster at less overhead",
    differs: "not at 1 %, where probes through blackouts of minutes cost more than early \
        timeouts save (see \"less overhead\"); at all other points",
};

pub(in super::super) const BY_RECOVERY: Why = Why {
    agrees: "without it every blackout halves ON's window as well",
    differs: "most of the gain stays: it comes from finding the link again within a round trip. \
        Blackouts of minutes end in slow start for OFF, which has its old window back in six \
        round trips; a window kept is worth little beside the seconds that OFF takes to ask. \
        Without early timeouts nearly all of the gain is gone (see the readings tried)",
};

pub(in super::super) const LARGER_WINDOWS: Why = Why {
    agrees: "a blackout leaves ON's window as it was when the path is no slower afterwards",
    differs: "windows stand as they were left through long blackouts, for OFF as well",
};

pub(in super::super) const LOSES_LESS: Why = Why {
    agrees: "nothing new is sent from the first POLL without a STAT on",
    differs: "ON's window is larger, and so is what is under way",
};

pub(in super::super) const PROBE_EACH_ROUND_TRIP: Why = Why {
    agrees: "the smoothed round trip lies between the two that the delays make",
    differs: "the smoothed round trip is another at these settings",
};
