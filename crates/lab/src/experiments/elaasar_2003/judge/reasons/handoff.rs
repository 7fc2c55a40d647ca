//! Why cells of section 6.2 come out as they do.

use super::super::seen::Why;

pub(in super::super) const OFF_DRAINS: Why = Why {
    agrees: "it sends until its window is full, or the blackout is over",
    differs: "blackouts are short against the time in which OFF sends its window: what a STAT \
        enables is spread over a round trip",
};

pub(in super::super) const ON_LOSES_A_PART: Why = Why {
    agrees: "a third is what leaves until the next POLL is due; what was under way besides is \
        lost too",
    differs: "ON loses what was under way when the blackout began, and what it sends until the \
        next POLL is due",
};

pub(in super::super) const LOSES_LESS: Why = Why {
    agrees: "for the reason that the paper gives",
    differs: "ON's window is larger, and so is what is under way",
};

pub(in super::super) const FALSE_ALARMS_ARE_CHEAP: Why = Why {
    agrees: "a false alarm ends with the next STAT, a third of a round trip later at most",
    differs: "a cycle takes longer to end than the pause that a larger delay makes",
};

pub(in super::super) const SLOWER_WITH_RATE: Why = Why {
    agrees: "each blackout costs retransmissions, and OFF half of its window",
    differs: "a point is out of order beyond its interval",
};

pub(in super::super) const LONGER_IS_NO_SLOWER: Why = Why {
    agrees: "good stays are twice as long too, and windows have more time to open",
    differs: "with ON windows stay open anyway, so longer blackouts just cost",
};

pub(in super::super) const LONGER_HAS_LARGER_WINDOWS: Why = Why {
    agrees: "for the reason that the paper gives",
    differs: "true of OFF; ON's windows stay near 64 segments whatever the stays are, so there \
        is nothing to gain for them and points differ by chance",
};

pub(in super::super) const FASTER: Why = Why {
    agrees: "it keeps its window when the path is no slower than before, and stops sooner",
    differs: "ON's losses at a point outweigh its windows",
};

pub(in super::super) const LEAST_GAIN: Why = Why {
    agrees: "the least gain is where blackouts are rarest",
    differs: "the point with the least gain is not the paper's",
};

pub(in super::super) const MOST_GAIN: Why = Why {
    agrees: "the greatest is where blackouts are most frequent",
    differs: "the greatest gain is at the highest rate here too, of another size: it depends on \
        how OFF recovers from a blackout longer than its idle threshold, which the paper does \
        not say",
};

pub(in super::super) const LESS_SENT_AGAIN: Why = Why {
    agrees: "cycles begin at the first POLL without a STAT",
    differs: "ON's larger window has more under way when a blackout begins",
};

pub(in super::super) const MORE_AT_1_S: Why = Why {
    agrees: "OFF's window is larger when it is halved",
    differs: "the other way round. OFF pays one halving for each blackout whatever its length, \
        since 0.5 s, two and a half round trips, already drain most of its window; at the same \
        rate blackouts of 1 s are half as many. So the cost over time halves, while what each \
        saves grows by a third at most. With windows of 32 or 256 segments it is the same",
};

pub(in super::super) const MORE_LOST_AT_1_S: Why = Why {
    agrees: "windows are larger, and more is sent into a longer blackout",
    differs: "at all points but 1 %, where a file meets one blackout or two and chance \
        outweighs it",
};

pub(in super::super) const OVERHEAD_RISES: Why = Why {
    agrees: "each blackout costs about as many retransmissions as the next",
    differs: "a point is out of order beyond its interval",
};

pub(in super::super) const LONGER_COSTS_NO_MORE: Why = Why {
    agrees: "half as many blackouts cost less than twice as many segments each",
    differs: "each longer blackout costs more than two shorter ones",
};

pub(in super::super) const LESS_CONTROL: Why = Why {
    agrees: "one POLL each round trip while a cycle lasts, and a shorter connection",
    differs: "cycles add more probes than they spare POLLs",
};

pub(in super::super) const CONTROL_HARDLY_MATTERS: Why = Why {
    agrees: "POLLs and STATs are small and blackouts short",
    differs: "cycles are long at these settings",
};

pub(in super::super) const LESS_OVERHEAD: Why = Why {
    agrees: "fewer retransmissions",
    differs: "ON's larger windows lose more than cycles save",
};

pub(in super::super) const OVERHEAD_SAVED: Why = Why {
    agrees: "at the last point, 15 %; the paper's own point, 50 %, is not in its figure. \
        Headers of first sendings, 1.6 % of the file, are in both sums; without them the saving \
        is the published one",
    differs: "less is saved at the last point, 15 %; the paper's own point, 50 %, is not in its \
        figure. Headers of first sendings, 1.6 % of the file, are in both sums; without them \
        the saving is the published one",
};

pub(in super::super) const RATIO_FALLS: Why = Why {
    agrees: "throughput falls and overhead rises",
    differs: "a point is out of order beyond its interval",
};

pub(in super::super) const RATIO_BETTER_AT_1_S: Why = Why {
    agrees: "as fast at less overhead",
    differs: "true of all but a few points, whose intervals overlap",
};

pub(in super::super) const BETTER_RATIO: Why = Why {
    agrees: "faster at less overhead",
    differs: "at a point ON's overhead is higher by more than its throughput",
};

pub(in super::super) const RATIO_GAIN_AT_1_S: Why = Why {
    agrees: "the throughput's advantage is greater with 1 s",
    differs: "follows from the throughput's gain, which is greater with 0.5 s here (see \"more \
        gain at 1 s\")",
};

pub(in super::super) const BY_RECOVERY: Why = Why {
    agrees: "without it nothing is left: every blackout halves ON's window as well",
    differs: "what is left comes from cycles that begin early",
};

pub(in super::super) const LARGER_WINDOWS: Why = Why {
    agrees: "a blackout leaves ON's window as it was when the path is no slower afterwards",
    differs: "blackouts are so rare at that point that OFF's window is full as well",
};
