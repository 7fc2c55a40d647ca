//! The wire format of a TCP segment.

use crate::Pattern;
use simtcp::{ConnectionCount, FastOpen, Options, Segment};

/// Writes header, options and payload: `bytes`, or otherwise the pattern that the payload names.
pub(super) fn write(out: &mut Vec<u8>, segment: &Segment, bytes: Option<&[u8]>, pseudo: &[u8; 12]) {
    let start = out.len();
    out.extend(segment.ports.from.to_be_bytes());
    out.extend(segment.ports.to.to_be_bytes());
    // Sequence numbers do not wrap here; the wire has their lower 32 bits.
    out.extend((segment.sequence as u32).to_be_bytes());
    out.extend((segment.acknowledgement.unwrap_or(0) as u32).to_be_bytes());
    let words = 5 + segment.options.len() / 4;
    let flags: [(bool, u8); 7] = [
        (segment.flags.fin, 0x01),
        (segment.flags.syn, 0x02),
        (segment.flags.reset, 0x04),
        (segment.payload.len > 0, 0x08),
        (segment.acknowledgement.is_some(), 0x10),
        (segment.flags.ece, 0x40),
        (segment.flags.cwr, 0x80),
    ];
    // AE is the last bit of the reserved ones (RFC 9768, section 3.1).
    out.push((words as u8) << 4 | u8::from(segment.flags.ae));
    out.push(flags.iter().filter(|(set, _)| *set).map(|(_, bit)| bit).sum::<u8>());
    out.extend(segment.window.to_be_bytes());
    // Checksum, urgent pointer.
    out.extend([0; 4]);
    write_options(out, &segment.options);
    let end = start + 4 * words;
    out.resize(end, 0);
    out.resize(end + segment.payload.len as usize, 0);
    match bytes {
        Some(bytes) => {
            let len = bytes.len().min(out.len() - end);
            out[end..end + len].copy_from_slice(&bytes[..len]);
        }
        None => Pattern(segment.payload.content).fill(segment.payload.offset, &mut out[end..]),
    }
    let sum = super::checksum(&[pseudo, &out[start..]]);
    out[start + 16..start + 18].copy_from_slice(&sum.to_be_bytes());
}

/// Options in the usual order of TCP stacks, each padded with no-operations before it.
fn write_options(out: &mut Vec<u8>, options: &Options) {
    let opening = options.max_segment.is_some()
        || options.window_scale.is_some()
        || options.sack_permitted
        || options.fast_open.is_some();
    let filling: &[u8] = if opening { &[] } else { &[1, 1] };
    if let Some(size) = options.max_segment {
        out.extend([2, 4]);
        out.extend(size.to_be_bytes());
    }
    if let Some(shift) = options.window_scale {
        out.extend([3, 3, shift]);
    }
    if options.sack_permitted {
        out.extend([4, 2]);
    }
    if let Some((value, echo)) = options.timestamps {
        out.extend_from_slice(filling);
        out.extend([8, 10]);
        out.extend(value.to_be_bytes());
        out.extend(echo.to_be_bytes());
    }
    match options.count {
        Some(ConnectionCount::Count(count)) => write_count(out, filling, 11, count),
        Some(ConnectionCount::New(count)) => write_count(out, filling, 12, count),
        None => {}
    }
    if let Some(echo) = options.count_echo {
        write_count(out, &[], 13, echo);
    }
    match options.fast_open {
        Some(FastOpen::Request) => out.extend([34, 2]),
        Some(FastOpen::Cookie(cookie)) => {
            out.extend([34, 10]);
            out.extend(cookie.to_be_bytes());
        }
        None => {}
    }
    if let Some(probe) = options.probe {
        out.extend([253, 8]);
        out.extend(probe.cycle.to_be_bytes());
        out.extend([u8::from(probe.second), u8::from(probe.answer)]);
    }
    let blocks = options.sack.as_slice();
    if !blocks.is_empty() {
        out.extend([1, 1, 5, 2 + 8 * blocks.len() as u8]);
        for &(first, end) in blocks {
            out.extend((first as u32).to_be_bytes());
            out.extend((end as u32).to_be_bytes());
        }
    }
}

fn write_count(out: &mut Vec<u8>, filling: &[u8], kind: u8, count: u32) {
    out.extend_from_slice(filling);
    out.extend([kind, 6]);
    out.extend(count.to_be_bytes());
}
