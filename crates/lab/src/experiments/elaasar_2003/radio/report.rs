//! The sections on packet radio, in order.

use super::stacks::{PAUSE_MS, PROCESSING_MS, sweeps};
use super::{Results, cells, figures, tables};
use crate::experiments::{Section, SetUp};

fn paragraphs(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

pub(super) fn set_up() -> Vec<SetUp> {
    vec![
        SetUp::published("packet radio: frame and headers", "255 bytes; 17, 60, 16 and 5 of them"),
        SetUp::published("packet radio: stations", "two, half-duplex, p-persistent CSMA"),
        SetUp::chosen(
            "packet radio: TNC",
            "that of the transceivers; no parameter is given",
            "TXDELAY 300 ms, p = 129/256, slots of 30 ms, 4 frames in a transmission",
            "what the manuals of the maker's later TNCs start with; the transceiver's own list \
             was not to be had",
        ),
        SetUp::chosen(
            "packet radio: frames on air",
            "17 bytes of AX.25",
            "20: addresses 14, control and protocol 2, check sequence 2, flags 2",
            "AX.25 2.2. Throughput counts 17, as published. A POLL on an SD has three bytes more",
        ),
        SetUp::fitted(
            "packet radio: XSTP",
            "not given for section 7",
            "as in section 6, probing on, but POLLs ride on the last segment of a burst, and the \
             timer only replaces lost ones, below a window of ten segments",
            "STP's rule; of the two the one that leaves the column of 1 B undisturbed",
        ),
        SetUp::chosen(
            "packet radio: latency",
            "not defined",
            "from the request, which goes with BGN, to the last byte at the client",
            "what a user waits for",
        ),
        SetUp::chosen(
            "packet radio: throughput",
            "not defined",
            "the file and 98 bytes of headers for each frame, over the mean latency",
            "the one reading under which both rates leave the same time beside the frames",
        ),
        SetUp::chosen(
            "packet radio: discarded runs",
            "those dramatically affected by noise",
            "none; where noise is tried, those that take more than twice the first decile",
            "the chosen stack has no noise; a rule in place of judgement by eye",
        ),
        SetUp::fitted(
            "packet radio: processing of a packet",
            "named, not given",
            format!("{PROCESSING_MS} ms a packet in each computer"),
            "fitted to the column of 1 B",
        ),
        SetUp::fitted(
            "packet radio: processing of a file",
            "large files take long to process",
            format!(
                "{:.1} s from a frame's leaving the air to the next one",
                PAUSE_MS as f64 / 1e3
            ),
            "fitted to the columns of 1 KB and 10 KB",
        ),
    ]
}

pub(super) fn sections(results: &Results) -> Vec<Section> {
    vec![results_of(results), numbers(), explanations(results), compression(results)]
}

fn results_of(results: &Results) -> Section {
    let mut cells = cells::numbers(results);
    cells.extend(cells::claims(results));
    Section {
        title: "Packet radio: figure 19, tables 1 and 2".to_owned(),
        text: paragraphs(&[
            "A ground station retrieves files from a satellite: file transfer over XSTP over IPv4 \
             with a source route over AX.25, on a half-duplex channel with p-persistent CSMA. \
             What surprised the authors is that small files have the better throughput.",
            "With what the manuals say of the TNCs and 50 ms of processing for each packet our \
             stack has the published throughput of 1 B at both rates to one per cent. Larger files \
             it would carry 1.6 to 15 times faster than table 1 says, and at 9.6 kbit/s the \
             faster the larger they are. Table 1 itself tells what is missing: each further frame \
             costs 7.5 to 8 s that no rate shortens. With a pause of that length after each frame, \
             one number for four, the columns of 1 KB and 10 KB agree at both rates. \
             So the authors' explanation, processing time, is right in that it is a time for each \
             frame beside the channel's; but 50 ms a packet is what the first frame takes, and \
             what waits between the others cannot be seen in the numbers.",
            "Three other explanations were tried. XSTP's own POLLs, three in a round trip by the \
             timer, take a half-duplex channel over: they alone bring 1 KB and 10 KB at \
             1.2 kbit/s to within a quarter of table 1, without any pause, and make small files \
             the better ones there. At 9.6 kbit/s they do not. There noise does it: with one bit in \
             2,200 in error more than half of the full frames are lost, while of small files the \
             runs that were hit are discarded. It would mean that most of them were. And \
             serial lines of 1,200 bit/s between computers and TNCs would make 1 KB and 10 KB as \
             slow as published at both rates; but over them no byte comes in one second. The \
             pause needs one number where these need two and a coincidence.",
        ]),
        figures: vec![
            figures::latency_by_size(results),
            figures::throughput_by_size(results, 0),
            figures::throughput_by_size(results, 1),
        ],
        tables: vec![tables::stacks(results), tables::inside(results)],
        cells,
    }
}

fn numbers() -> Section {
    Section {
        title: "Packet radio: what table 1 says by itself".to_owned(),
        text: paragraphs(&[
            "1 B at 334 bit/s cannot be eight bits in 24 ms: no frame is that short. For each \
             reading of what was counted, table 1 implies a latency at either rate. Take from it \
             the time that a request and an answer are on air; what is left is key-up, access and \
             processing, and should be the same at both rates. It is, to three milliseconds, when \
             the whole frame is counted as the paper counts it, and under no other reading. It is \
             0.86 s: two key-ups of 300 ms, two waits of 30 ms, and four times 50 ms of \
             processing.",
            "Then the two rates tell, for each size, how many bytes were sent at the rate and how \
             much time did not depend on it. For 1 KB and 10 KB the rest is 7.6 and 8.0 s a frame, \
             where it was 0.85 s for the only frame of 1 B. No TNC's parameters reach that: the \
             longest TXDELAY that can be set is 1.2 s. A processing time of seconds for each \
             packet would show in the first frame as well.",
        ]),
        tables: vec![tables::accounting(), tables::decomposition()],
        ..Section::default()
    }
}

fn explanations(results: &Results) -> Section {
    let sweeps = sweeps().iter().enumerate();
    let tables = sweeps.map(|(index, sweep)| tables::sweep(index + 1, sweep, results));
    Section {
        title: "Packet radio: what each parameter does".to_owned(),
        text: paragraphs(&[
            "Each line changes one thing about the stack without pauses. Key-up, access and \
             processing move all sizes alike; a carrier that is noticed late makes a station's \
             answers collide with the other's next frame. POLLs by the timer decide at \
             1.2 kbit/s: each costs two accesses, they lengthen the round trip that sets their \
             pace, and a first round trip that is assumed too short floods the channel before \
             there is a measured one. Probing gains nothing here: what it takes for losses are \
             answers that wait for the channel.",
        ]),
        tables: tables.collect(),
        ..Section::default()
    }
}

fn compression(results: &Results) -> Section {
    Section {
        title: "Packet radio: header compression".to_owned(),
        text: paragraphs(&[
            "The paper suggests it and does not try it. A small profile of our own \
             (docs/spec/compression.md) sends 10 to 17 octets in place of 76: fields by their low \
             bits, a check over the header, full headers again ever more rarely and on request. \
             Plain segments keep 157 bytes of a file; filled ones carry 228 bytes of the stream in \
             the same frame.",
            "POLLs and STATs gain most: they are nothing but header. With the chosen stack's \
             pauses there is little left to gain.",
        ]),
        figures: vec![figures::gain(results)],
        tables: vec![tables::compression(results)],
        cells: vec![cells::compression(results)],
    }
}
