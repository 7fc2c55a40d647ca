//! The packets are from a Linux client on a virtual interface, where checksums are incomplete.

use super::*;

const V4: &str = "4500003c35d240004006e7d50a0100020a090909bcbe0050b72a22de00000000a002faf01d4300000204\
                  05b40402080aa976e8ea000000000103030a";
const V6: &str = "600a0dd500280640fd000001000000000000000000000002fd000009000000000000000000000001e4dc00\
                  501dd74dfa00000000a002fd20fa3c0000020405a00402080ac26505d9000000000103030a";

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).unwrap()).collect()
}

fn syn(hex: &str) -> Syn {
    Syn::parse(&bytes(hex)).unwrap()
}

/// Sums to zero with its checksum in place.
fn is_right(from: &str, to: &str, protocol: u8, payload: &[u8]) -> bool {
    let pseudo = pseudo_header(from.parse().unwrap(), to.parse().unwrap(), protocol, payload.len());
    fold(pseudo + sum(payload)) == 0xffff
}

#[test]
fn a_syn_is_read_and_its_checksum_completed() {
    let v4 = syn(V4);
    assert_eq!(v4.client, "10.1.0.2:48318".parse().unwrap());
    assert_eq!(v4.server, "10.9.9.9:80".parse().unwrap());
    assert!(is_right("10.1.0.2", "10.9.9.9", 6, &v4.packet()[20..]));
    let v6 = syn(V6);
    assert_eq!(v6.client, "[fd00:1::2]:58588".parse().unwrap());
    assert_eq!(v6.server, "[fd00:9::1]:80".parse().unwrap());
    assert!(is_right("fd00:1::2", "fd00:9::1", 6, &v6.packet()[40..]));
    // Other fields are unchanged, and a complete SYN stays as it is.
    for (syn, hex, at) in [(&v4, V4, 36), (&v6, V6, 56)] {
        let mut came = bytes(hex);
        came[at..at + 2].copy_from_slice(&syn.packet()[at..at + 2]);
        assert_eq!(syn.packet(), came);
        assert_eq!(Syn::parse(&came).as_ref(), Some(syn));
        // What a frame has behind the packet is not the packet's.
        assert_eq!(Syn::parse(&[&came[..], &[0; 6]].concat()).as_ref(), Some(syn));
    }
}

#[test]
fn incomplete_syns_are_rejected() {
    for (hex, tcp) in [(V4, 20), (V6, 40)] {
        let good = syn(hex).packet().to_vec();
        for len in 0..good.len() {
            assert_eq!(Syn::parse(&good[..len]), None, "{len} bytes");
        }
        for flags in [0x00, 0x10, 0x12, 0x03, 0x06, 0x04] {
            let mut other = good.clone();
            other[tcp + 13] = flags;
            assert_eq!(Syn::parse(&other), None, "flags {flags:#x}");
        }
        // A changed bit is detected at any position of TCP's header.
        for bit in tcp * 8..good.len() * 8 {
            let mut broken = good.clone();
            broken[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Syn::parse(&broken), None, "bit {bit}");
        }
        for bit in 0..tcp * 8 {
            let mut broken = good.clone();
            broken[bit / 8] ^= 1 << (bit % 8);
            let _ = Syn::parse(&broken);
        }
    }
    let mut fragment = bytes(V4);
    fragment[6] = 0x20;
    assert_eq!(Syn::parse(&fragment), None);
}

#[test]
fn headers_between_are_passed() {
    let good = syn(V6).packet().to_vec();
    let mut long = good.clone();
    long[6] = 60;
    long[5] += 8;
    long.splice(40..40, [6, 0, 1, 4, 0, 0, 0, 0]);
    let parsed = Syn::parse(&long).unwrap();
    assert_eq!((parsed.server, parsed.tcp), (syn(V6).server, 48));
    assert_eq!(parsed.packet(), long);
    // A packet that is shorter than its length field.
    long[41] = 255;
    assert_eq!(Syn::parse(&long), None);
}

#[test]
fn a_reset_answers_the_syn() {
    let v4 = syn(V4).reset();
    assert_eq!(
        v4[..20],
        bytes("450000280000400040060000" /* kernel's */)
            .into_iter()
            .chain([10, 9, 9, 9, 10, 1, 0, 2])
            .collect::<Vec<_>>()
    );
    // From port 80 to 48318; it acknowledges b72a22de and the SYN.
    assert_eq!(v4[20..36], bytes("0050bcbe00000000b72a22df50140000"));
    assert!(is_right("10.9.9.9", "10.1.0.2", 6, &v4[20..]));
    let v6 = syn(V6).reset();
    assert_eq!((v6.len(), v6[5], v6[6]), (60, 20, 6));
    assert_eq!(v6[8..40], [&bytes(V6)[24..40], &bytes(V6)[8..24]].concat());
    assert!(is_right("fd00:9::1", "fd00:1::2", 6, &v6[40..]));
}

#[test]
fn data_in_a_syn_is_acknowledged_by_the_reset() {
    let mut with_data = syn(V4).packet().to_vec();
    with_data.extend_from_slice(b"hello");
    with_data[3] += 5;
    // As from hardware that completes it.
    let pseudo = pseudo_header("10.1.0.2".parse().unwrap(), "10.9.9.9".parse().unwrap(), 6, 45);
    with_data[36..38].copy_from_slice(&fold(pseudo).to_be_bytes());
    let syn = Syn::parse(&with_data).unwrap();
    assert_eq!(syn.reset()[28..32], (0xb72a_22de_u32 + 6).to_be_bytes());
}

#[test]
fn icmp_errors_contain_the_packet() {
    let (v4, v6) = (syn(V4), syn(V6));
    for (what, codes) in [
        (Unreachable::Network, [(3, 0), (1, 0)]),
        (Unreachable::Host, [(3, 1), (1, 3)]),
        (Unreachable::Prohibited, [(3, 13), (1, 1)]),
    ] {
        let message = v4.unreachable(what);
        assert_eq!((message[9], message[12..20].to_vec()), (1, vec![0, 0, 0, 0, 10, 1, 0, 2]));
        assert_eq!((message[20], message[21]), codes[0]);
        assert_eq!(fold(sum(&message[20..])), 0xffff);
        assert_eq!(&message[28..], v4.packet());
        let message = v6.unreachable(what);
        assert_eq!((message[0], message[1]), codes[1]);
        assert_eq!(&message[8..], v6.packet());
    }
}
