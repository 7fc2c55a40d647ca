//! The words of the report: what to see in a section, and why cells come out as they do.

pub(super) const SUMMARY: [&str; 3] = [
    "The paper's result stands: with probing on, the protocol is faster under every error \
     condition of the paper, and nearly always at less overhead. Throughput over overhead is \
     better nearly everywhere. What differs, differs mostly in size, and mostly because the \
     paper's XSTP-OFF must have recovered in another way after blackouts than its text tells.",
    "Two parts of the mechanism pay in two places. Under bit corruption and hand-offs the gain in \
     throughput is the immediate recovery; where the link is away the saved overhead is the early \
     timeout. Where probing stops paying, which the paper leaves open, depends on what congestion \
     is: at no share in the paper's own model, where a congested stay is slow throughout; but \
     where a short queue overflows, from about three quarters of the losses on, and for overhead \
     much sooner.",
    "Nothing of sections 6 and 8 was fitted; what was fitted of the packet radio is named in the \
     set-up. Two readings of the text were corrected after figures had been looked at for the \
     first time, both by reading again what the paper says; the decision record xstp-2003 has the \
     figures before and after. Of the cells of these sections 79 were written down before any \
     result. Thirteen were added afterwards, when sentences were found to have none: causes told \
     apart, larger windows and fewer segments lost under hand-offs and limited connectivity (five), \
     a probe each round trip (two), what POLLs from before a cycle are worth (two), \
     retransmissions apart from overhead (three), overhead saved by the length of blackouts. When \
     the two pivots agree was put more sharply and extended to the queue. That a statement must \
     hold beyond chance, and not for the means alone, was decided afterwards as well; two cells \
     that had agreed differ by it.",
];

pub(super) const CORRUPTION: [&str; 2] = [
    "Good and bad stays are equally long on average; the bad ones drop packets in both \
     directions. OFF halves its window once for each window with a loss, and needs as many round \
     trips as it lost segments to have it back: it lives on small windows. ON halves only when \
     the round trips of two probes are longer than before the loss, which happens when a bad \
     stay comes with the longer of the two delays.",
    "Without loss (0 %) both are bound by their 64 segments: what a STAT enables is spread over \
     the next round trip, so a window takes two of them. The gateway's controller steady has the \
     same buffers and no such rule; it does not slow down for losses at all and keeps sending \
     into bad stays, which is why its overhead grows with the error rate.",
];

pub(super) const HANDOFF: [&str; 2] = [
    "Blackouts in both directions, longer apart than they last. What a sender has under way when \
     one begins is lost; what it sends into it is lost too. ON stops at the first POLL that is \
     due without a STAT since the last one. OFF goes on until its window is full.",
    "After the blackout OFF halves its window, or slow-starts when it had to wait for longer than \
     the idle threshold; ON goes on as before when the path is no slower than before.",
];

pub(super) const CONNECTIVITY: [&str; 2] = [
    "As hand-off, the other way round: the link is away for most of the time, for minutes at the \
     lowest rates. What counts is how soon a sender finds that it is back, before the next loss: \
     ON asks once each round trip, OFF's POLLs back off to 64 intervals, 4.3 s at 200 ms.",
    "A file meets few blackouts here, and their lengths are exponential: intervals are wide, in \
     the paper as well as here.",
];

pub(super) const CONGESTION: [&str; 2] = [
    "The paper leaves open how much congestion among the losses makes probing stop paying. Two \
     answers. In the paper's own model bad stays drop 20 % and a share of them is congested: they \
     come with 50 ms more delay each way. Good stays have the shorter delay here, so that every \
     congested bad stay can be told.",
    "The second answer needs no model of congestion: a line of 800 kbit/s with a short queue, \
     which the sender's own window overflows, and random loss besides. Overflows are a share of \
     all losses that follows from the random loss. The queue's 8 packets were chosen after a \
     look at 16, with which ON was nowhere worse.",
];

pub(super) const AMBIGUITIES: [&str; 2] = [
    "Each reading changes one thing of the set-up, for OFF and ON alike where both have it, at a \
     selection of points (5 replications, all where cells stand on it). The last three take a part of the mechanism \
     out, to see what it is worth.",
    "What matters: the tolerance (at 0 jitter of timers counts as congestion, at 0.5 nothing \
     does); how far OFF's polling backs off, and whether it slow-starts when the link is back; \
     and whether a full window is spread over a round trip or what a STAT enables. What hardly \
     matters: the line's rate, which round trip is compared, whether packets overtake each \
     other, bursts. Immediate recovery is all of the gain under bit corruption and hand-offs; \
     the early timeout is most of it where connectivity is limited.",
];
