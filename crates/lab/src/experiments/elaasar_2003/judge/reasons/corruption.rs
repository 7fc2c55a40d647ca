//! Why cells of section 6.1 come out as they do.

use super::super::seen::Why;

pub(in super::super) const FASTER: Why = Why {
    agrees: "a link error leaves ON's window as it was; OFF halves it once for each window with \
        a loss",
    differs: "OFF keeps a window as large as ON's at that point",
};

pub(in super::super) const LEAST_GAIN: Why = Why {
    agrees: "the least gain is at 0 %: nothing is lost there and both do the same. Where packets \
        of a fast stay may overtake those of the slow one before (a reading tried below), OFF \
        halves for gaps that are none and ON gains there as well",
    differs: "the point with the least gain is not the paper's",
};

pub(in super::super) const MOST_GAIN: Why = Why {
    agrees: "the greatest gain is where OFF's window is smallest against ON's",
    differs: "smaller than published: ON stops for one to two round trips at each loss, and \
        takes losses for congestion in bad stays that come with a longer delay, as the paper's \
        rule has it. With a tolerance of 0.5, where nothing counts as congestion, gains reach \
        about 100 % with stays of 10 s and more than the published 150 % with 1 s; so the \
        paper's sessions did find congestion, and less of it than ours",
};

pub(in super::super) const BY_RECOVERY: Why = Why {
    agrees: "taken out, every cycle halves the window as OFF does, and costs the time that it \
        takes besides",
    differs: "what is left comes from early timeouts and shorter waits",
};

pub(in super::super) const MORE_AT_10_S: Why = Why {
    agrees: "in 1 s hardly five segments are added to a window, so there is less to keep",
    differs: "stays of 1 s are long enough here to open the window",
};

pub(in super::super) const WINDOWS_GROW: Why = Why {
    agrees: "a segment each round trip is added: 40 or so in 10 s, four in 1 s",
    differs: "windows are bound by something else than stays at these settings",
};

pub(in super::super) const WINDOWS_STAY: Why = Why {
    agrees: "for the reason that the paper gives",
    differs: "windows open faster than the paper has it",
};

pub(in super::super) const CYCLES_LENGTHEN: Why = Why {
    agrees: "two neighbouring probes must come back, and each of them and its answer may be lost",
    differs: "at these settings the length of a cycle is bound by the stay",
};

pub(in super::super) const SLOW_STARTS: Why = Why {
    agrees: "cycles longer than the idle threshold that also find longer round trips",
    differs: "no cycle lasted as long as the idle threshold and found congestion",
};

pub(in super::super) const SLOW_STARTS_COST: Why = Why {
    agrees: "a slow start begins anew from one segment, where halving keeps 30 or so",
    differs: "slow start up to the old window takes six round trips; halving needs as many as it \
        took segments away, so slow start is not the slower one here",
};

pub(in super::super) const LIGHT_IS_QUICK: Why = Why {
    agrees: "with few losses the first probe and the last answer before it are enough",
    differs: "at these settings cycles are short at any rate",
};

pub(in super::super) const LIGHT_GOES_ON: Why = Why {
    agrees: "a stay keeps its delay, so most losses find the round trips that they found before",
    differs: "most losses come with a change of delay at these settings",
};

pub(in super::super) const ONE_HALVING: Why = Why {
    agrees: "several segments of a window are lost together",
    differs: "losses come one by one here, and each is a new event",
};

pub(in super::super) const BACKOFF_COSTS: Why = Why {
    agrees: "OFF asks seldom after several POLLs went unanswered",
    differs: "hardly: at 50 % three of four POLLs go unanswered, but an interval doubles only \
        after a whole round trip of silence, and any STAT ends it; and most of the file passes \
        in good stays anyway",
};

pub(in super::super) const LESS_OVERHEAD: Why = Why {
    agrees: "nothing is sent while a cycle lasts, and fewer STATs list what is missing",
    differs: "ON's larger windows lose more at the start of each bad stay than cycles save",
};

pub(in super::super) const LARGER_WINDOWS: Why = Why {
    agrees: "for the reason that the paper gives",
    differs: "congestion is found too often at these settings to keep windows larger",
};

pub(in super::super) const MORE_AT_FIRST: Why = Why {
    agrees: "the same: the window is there to be lost",
    differs: "ON's cycles begin early enough here to lose less in spite of its larger window",
};

pub(in super::super) const NOT_AT_5: Why = Why {
    agrees: "larger windows lose more at first",
    differs: "the effect is there, at 10 to 20 %, where ON loses half as many segments again as \
        OFF each bad stay and saves little or nothing; at 5 % a cycle still costs less than it \
        saves. The point moves with readings that the paper leaves open: with a full window \
        spread over the round trip it lies at 5 %, without the map's slot for earlier answers \
        it is gone",
};

pub(in super::super) const NOT_AT_20: &str = "the text says of the same point, in the next sentence, that probing lowers the overhead \
     there; that sentence has a cell of its own";

pub(in super::super) const FROM_20: Why = Why {
    agrees: "cycles get long enough to sit bad stays out",
    differs: "at 20 to 30 % the larger windows still lose as much as cycles save, with intervals \
        wider than the difference; beyond, cycles are long enough to sit the bad stay out. The \
        paper itself names 20 % both as a point where probing does not save and as the one from \
        which on it does",
};

pub(in super::super) const BY_EARLY_TIMEOUT: Why = Why {
    agrees: "a cycle that a POLL without a STAT begins is sooner than one by a report",
    differs: "the other way round under bit corruption: a report of a gap comes with the next \
        STAT or USTAT, which bad stays of up to 50 % let through; an early timeout ends as soon \
        as one STAT without gaps comes. Under hand-offs, where nothing comes through, early \
        timeouts save all that is saved (see the readings tried)",
};

pub(in super::super) const OVERHEAD_AT_50: Why = Why {
    agrees: "within tolerance; headers of first sendings, 1.6 % of the file, are in both sums: \
        without them the saving is larger by about ten points. REQ_PROBES 3 gives the published \
        figure",
    differs: "less is saved: at 50 % two answers in a row come by luck within a bad stay, and \
        each such end of a cycle sends up to a window into it. With REQ_PROBES 3 nearly the \
        published figure is saved; the paper says 2 (see the readings tried). Headers of first \
        sendings, 1.6 % of the file on both sides, make the saving look smaller by about five \
        points",
};

pub(in super::super) const RATIO_FALLS: Why = Why {
    agrees: "less throughput for more overhead",
    differs: "overhead grows no further while cycles sit bad stays out",
};

pub(in super::super) const BETTER_RATIO: Why = Why {
    agrees: "more throughput, and seldom more overhead",
    differs: "at that point ON's overhead is higher by more than its throughput",
};
