//! The vectors follow what the `nft` program sends for the same rules (see its `--debug=mnl`);
//! where they differ, in the order of attributes and in some that are zero, the kernel reads the
//! same. `a=` begins an attribute of type `a`, in hexadecimal or as a string, and `a(` one that
//! holds others, up to `)`.

use super::*;

fn drawn(text: &str) -> Vec<u8> {
    let mut open = vec![(0, Attributes::new())];
    for token in text.split_whitespace() {
        if let Some(kind) = token.strip_suffix('(') {
            open.push((kind.parse().unwrap(), Attributes::new()));
        } else if token == ")" {
            let (kind, inner) = open.pop().unwrap();
            let (outer_kind, outer) = open.pop().unwrap();
            open.push((outer_kind, outer.nest(kind, &inner)));
        } else {
            let (kind, hex) = token.split_once('=').unwrap();
            let bytes: Vec<u8> = match hex.strip_prefix('"') {
                Some(text) => [text.as_bytes(), b"\0"].concat(),
                None => (0..hex.len() / 2)
                    .map(|i| u8::from_str_radix(&hex[i * 2..i * 2 + 2], 16).unwrap())
                    .collect(),
            };
            let (outer_kind, outer) = open.pop().unwrap();
            open.push((outer_kind, outer.put(kind.parse().unwrap(), &bytes)));
        }
    }
    open.pop().unwrap().1.as_bytes().to_vec()
}

fn check(expressions: &Expressions, drawing: &str) {
    assert_eq!(expressions.attributes().as_bytes(), drawn(drawing), "{drawing}");
}

#[test]
fn capturing_ipv4_is_encoded_as_by_nft() {
    let rule = Expressions::new()
        .family("127.0.0.1".parse().unwrap())
        .tcp()
        .tproxy("127.0.0.1:1080".parse().unwrap())
        .set_mark(u32::from_ne_bytes([0x01, 0x00, 0x70, 0x62]))
        .verdict(Verdict::Accept);
    check(
        &rule,
        r#"1( 1="meta 2( 2=0000000f 1=00000001 ) )
           1( 1="cmp 2( 1=00000001 2=00000000 3( 1=02 ) ) )
           1( 1="meta 2( 2=00000010 1=00000001 ) )
           1( 1="cmp 2( 1=00000001 2=00000000 3( 1=06 ) ) )
           1( 1="immediate 2( 1=00000001 2( 1=7f000001 ) ) )
           1( 1="immediate 2( 1=00000002 2( 1=0438 ) ) )
           1( 1="tproxy 2( 1=00000002 2=00000001 3=00000002 ) )
           1( 1="immediate 2( 1=00000001 2( 1=01007062 ) ) )
           1( 1="meta 2( 2=00000003 3=00000001 ) )
           1( 1="immediate 2( 1=00000000 2( 2( 1=00000001 ) ) ) )"#,
    );
}

#[test]
fn capturing_ipv6_is_encoded_as_by_nft() {
    check(
        &Expressions::new().tproxy("[::1]:1080".parse().unwrap()),
        r#"1( 1="immediate 2( 1=00000001 2( 1=00000000000000000000000000000001 ) ) )
           1( 1="immediate 2( 1=00000002 2( 1=0438 ) ) )
           1( 1="tproxy 2( 1=0000000a 2=00000001 3=00000002 ) )"#,
    );
}

#[test]
fn flags_sockets_and_addresses_are_encoded_as_by_nft() {
    check(
        &Expressions::new().not_opening().wildcard_listener(),
        r#"1( 1="payload 2( 1=00000001 2=00000002 3=0000000d 4=00000001 ) )
           1( 1="bitwise 2( 1=00000001 2=00000001 3=00000001 4( 1=17 ) 5( 1=00 ) ) )
           1( 1="cmp 2( 1=00000001 2=00000001 3( 1=02 ) ) )
           1( 1="socket 2( 1=00000000 2=00000001 ) )
           1( 1="cmp 2( 1=00000001 2=00000000 3( 1=01 ) ) )
           1( 1="socket 2( 1=00000002 2=00000001 ) )
           1( 1="cmp 2( 1=00000001 2=00000000 3( 1=01 ) ) )"#,
    );
    let local = u32::from_be_bytes(2u32.to_ne_bytes());
    check(
        &Expressions::new().destined_here().verdict(Verdict::Return),
        &format!(
            r#"1( 1="fib 2( 1=00000001 2=00000003 3=00000002 ) )
               1( 1="cmp 2( 1=00000001 2=00000000 3( 1={local:08x} ) ) )
               1( 1="immediate 2( 1=00000000 2( 2( 1=fffffffb ) ) ) )"#
        ),
    );
}

#[test]
fn networks_and_ports_are_encoded_as_by_nft() {
    check(
        &Expressions::new().destined_to(&"10.0.0.0/9".parse().unwrap()),
        r#"1( 1="meta 2( 2=0000000f 1=00000001 ) )
           1( 1="cmp 2( 1=00000001 2=00000000 3( 1=02 ) ) )
           1( 1="payload 2( 1=00000001 2=00000001 3=00000010 4=00000004 ) )
           1( 1="bitwise 2( 1=00000001 2=00000001 3=00000004 4( 1=ff800000 ) 5( 1=00000000 ) ) )
           1( 1="cmp 2( 1=00000001 2=00000000 3( 1=0a000000 ) ) )"#,
    );
    check(
        &Expressions::new().destined_to(&"2001:db8::1/128".parse().unwrap()),
        r#"1( 1="meta 2( 2=0000000f 1=00000001 ) )
           1( 1="cmp 2( 1=00000001 2=00000000 3( 1=0a ) ) )
           1( 1="payload 2( 1=00000001 2=00000001 3=00000018 4=00000010 ) )
           1( 1="cmp 2( 1=00000001 2=00000000 3( 1=20010db8000000000000000000000001 ) ) )"#,
    );
    check(
        &Expressions::new()
            .destined_to_ports("8000-8080".parse().unwrap())
            .verdict(Verdict::Goto("capture")),
        r#"1( 1="payload 2( 1=00000001 2=00000002 3=00000002 4=00000002 ) )
           1( 1="cmp 2( 1=00000001 2=00000005 3( 1=1f40 ) ) )
           1( 1="cmp 2( 1=00000001 2=00000003 3( 1=1f90 ) ) )
           1( 1="immediate 2( 1=00000000 2( 2( 1=fffffffc 2="capture ) ) ) )"#,
    );
    check(
        &Expressions::new().destined_to_ports("22".parse().unwrap()),
        r#"1( 1="payload 2( 1=00000001 2=00000002 3=00000002 4=00000002 ) )
           1( 1="cmp 2( 1=00000001 2=00000000 3( 1=0016 ) ) )"#,
    );
}

#[test]
fn interfaces_are_compared_whole_or_by_their_beginning() {
    check(
        &Expressions::new().arrived_on("lan0").verdict(Verdict::Jump("lan")),
        r#"1( 1="meta 2( 2=00000006 1=00000001 ) )
           1( 1="cmp 2( 1=00000001 2=00000000 3( 1=6c616e30000000000000000000000000 ) ) )
           1( 1="immediate 2( 1=00000000 2( 2( 1=fffffffd 2="lan ) ) ) )"#,
    );
    check(
        &Expressions::new().arrived_on("eth*"),
        r#"1( 1="meta 2( 2=00000006 1=00000001 ) )
           1( 1="cmp 2( 1=00000001 2=00000000 3( 1=657468 ) ) )"#,
    );
}

#[test]
fn masks_cover_their_bits() {
    assert_eq!(mask(9, 4), [0xff, 0x80, 0, 0]);
    assert_eq!(mask(32, 4), [0xff; 4]);
    assert_eq!(mask(0, 2), [0, 0]);
    assert_eq!(mask(61, 16)[6..9], [0xff, 0xf8, 0]);
}

#[test]
fn logging_and_dropping_are_encoded_as_by_nft() {
    check(
        &Expressions::new().opening().marked(u32::from_ne_bytes([0x42, 0x42, 0, 0])),
        r#"1( 1="payload 2( 1=00000001 2=00000002 3=0000000d 4=00000001 ) )
           1( 1="bitwise 2( 1=00000001 2=00000001 3=00000001 4( 1=17 ) 5( 1=00 ) ) )
           1( 1="cmp 2( 1=00000001 2=00000000 3( 1=02 ) ) )
           1( 1="meta 2( 2=00000003 1=00000001 ) )
           1( 1="cmp 2( 1=00000001 2=00000000 3( 1=42420000 ) ) )"#,
    );
    check(
        &Expressions::new().log(77).verdict(Verdict::Drop),
        r#"1( 1="log 2( 1=004d ) )
           1( 1="immediate 2( 1=00000000 2( 2( 1=00000000 ) ) ) )"#,
    );
}
