//! What the paper gives, what it leaves open, and what is taken here.

use super::super::latency::TAKEN;
use crate::experiments::SetUp;

/// All lines.
pub(super) fn lines() -> Vec<SetUp> {
    let mut lines = bench();
    lines.extend(others());
    lines.extend(web());
    lines
}

fn bench() -> Vec<SetUp> {
    let published = SetUp::published;
    let chosen = |name, published, ours: &str, why| SetUp::chosen(name, published, ours, why);
    vec![
        published("link", "1.3 Mbit/s of TCP/IP, no errors; 600 ms for GEO"),
        published("files", "10 MB, 20 transfers, windows of 240 KB"),
        chosen(
            "round trips",
            "20 to 600 ms",
            "eight of them, five beside another",
            "the figures are not legible as numbers",
        ),
        chosen(
            "segments",
            "1,000 bytes, in section VI",
            "1,000 bytes of data for all files",
            "the one size that is named",
        ),
        chosen(
            "TCP",
            "BSD/OS 3.0 and the appendix",
            "its clocks of 200 and 500 ms, one segment at first, acknowledgements counted; four \
             recoveries",
            "what such systems did",
        ),
        chosen(
            "queues",
            "",
            "50 packets at the router and before the satellite",
            "what BSD gave an interface; 20 to 200 are among the alternatives",
        ),
        chosen(
            "the web beside a file",
            "about 80 kbit/s of HTTP",
            "80 kbit/s on average of replies as large as secondary ones of the traces",
            "light load that breaks up phases",
        ),
        chosen(
            "throughput",
            "of the application",
            "bytes over the time to the last one; over 400 s where it takes longer",
            "a transfer beside another may take half an hour",
        ),
    ]
}

fn others() -> Vec<SetUp> {
    let chosen = |name, published, ours: &str, why| SetUp::chosen(name, published, ours, why);
    vec![
        chosen(
            "the other connection",
            "SACK-NewReno over 20 ms, without end",
            "shares a hop of 10 Mbit/s with the file, before the satellite",
            "the bench's transit network, where the router is said to be congested",
        ),
        chosen(
            "RED and fair queueing",
            "hoped for",
            "RED from a tenth to three tenths of the queue, 10 % at most; deficit round robin",
            "as RED is usually set",
        ),
        chosen(
            "split connections",
            "at the gateway",
            "between the transit network and the satellite, 240 KB on each side",
            "what the hosts have",
        ),
        chosen(
            "STP",
            "slow start, congestion avoidance, three POLLs a round trip, a threshold of ten \
             segments",
            "the same; windows of 240 KB; POLLs ride on segments that are due within 10 ms",
            "what the hosts have, and the grain of its timers",
        ),
        chosen(
            "varying round trips",
            "",
            "±100 ms, evenly, packets kept in order",
            "the sentence gives no number",
        ),
        SetUp::fitted(
            "DirecPC",
            "375 ms, 50 kbit/s in return",
            "650 kbit/s, queue of 60 kbytes, 0.1 % of packets lost, segments of 1,460 bytes",
            "rate and losses by STP's 480 kbit/s, others are in the table; segments as the path's \
             MTU, which BSD/OS finds",
        ),
        SetUp::fitted(
            "Ricochet",
            "350 ms, queues of up to 15 s",
            "31.5 kbit/s both ways, a queue of 59 kbytes, segments of 1,460 bytes",
            "the rate by TCP's two numbers; 15 s of queue at that rate",
        ),
    ]
}

fn web() -> Vec<SetUp> {
    let chosen = |name, published, ours: &str, why| SetUp::chosen(name, published, ours, why);
    vec![
        SetUp::published("round trips of table I", "600 ms for GEO, 80 ms for LEO"),
        chosen(
            "sizes of replies",
            "the distributions of Mah's traces",
            "28 quantiles of the primary replies, evenly interpolated",
            "replies to what a user asked for; secondary ones fit the table worse",
        ),
        SetUp::fitted(
            "how the window opens in table I",
            "from one segment, delayed acknowledgements of 100 ms on average; no more is said",
            TAKEN.about,
            "among the rules that were tried the set under which most of the 48 numbers agree",
        ),
        chosen(
            "who closes",
            "the server, with the reply",
            "the same; T/TCP's client with its request, TCP's when it has read the end; STP's \
             END is for both directions",
            "HTTP/1.0, MSG_EOF, and SSCOP's release",
        ),
        chosen(
            "requests",
            "small",
            "drawn from the same traces; those of one segment are among the alternatives",
            "what the generator was made of",
        ),
        chosen(
            "hosts",
            "processing delays of real end systems",
            "none, but a kernel answers SYN and FIN before its application has written or closed",
            "as kernels do",
        ),
        chosen(
            "transfers that are sent",
            "1,000 of each kind",
            "20 times 50, one after the other, after one by which the hosts come to know each \
             other",
            "T/TCP saves the handshake between hosts that have met",
        ),
    ]
}
