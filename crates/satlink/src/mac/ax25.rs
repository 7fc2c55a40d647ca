//! AX.25 as far as sizes go: unnumbered information frames, as packet radio carries IP in them.
//!
//! ```text
//!  flag │ destination │ source │ control │ protocol │ information │ check │ flag
//!    1  │      7      │    7   │    1    │    1     │   0 to 256  │   2   │   1
//! ```
//!
//! Source: AX.25 version 2.2, sections 3.1 to 3.10 and 6.7.2.1 (N1). Stuffed bits, about one in
//! sixty of random data, are left out.

/// Destination and source without repeaters, control and protocol: what stands before the
/// information of a UI frame.
pub const UI_HEADER: usize = 7 + 7 + 1 + 1;

/// The check sequence.
pub const CHECK_SEQUENCE: usize = 2;

/// The two flags around a frame that is sent alone.
pub const FLAGS: usize = 2;

/// The longest information field unless stations agree on another: N1.
pub const LONGEST_INFORMATION: usize = 256;

/// Elaasar et al. 2003, section 7.2, count this much AX.25 header: one byte above
/// [`UI_HEADER`], with which 238 bytes of a frame of 255 are left for IP. They do not say what
/// the byte is; check sequence and flags are not counted.
pub const HEADER_AS_PUBLISHED: usize = 17;

/// The longest frame of Elaasar et al. 2003, counted as [`HEADER_AS_PUBLISHED`] is.
pub const FRAME_AS_PUBLISHED: usize = 255;

/// The protocol identifier of IPv4 (AX.25 2.2, figure 3.2).
pub const PROTOCOL_IPV4: u8 = 0xCC;

/// The protocol identifier of what has no layer 3: a compressor's packets travel under it.
pub const PROTOCOL_NONE: u8 = 0xF0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Framing;

    #[test]
    fn sizes_agree_with_the_framing_of_links() {
        let added = (UI_HEADER + CHECK_SEQUENCE + FLAGS) as u64;
        assert_eq!(Framing::Ax25.on_air(100), 100 + added);
        assert_eq!(FRAME_AS_PUBLISHED - HEADER_AS_PUBLISHED, 238);
        const { assert!(FRAME_AS_PUBLISHED - HEADER_AS_PUBLISHED <= LONGEST_INFORMATION) };
    }
}
