use super::*;
use crate::intercept::HubRules;

#[test]
fn a_batch_has_begin_and_end_and_one_response() {
    let plan = HubRules::new("x").plan().unwrap();
    let mut batch = Batch::new(7);
    batch.control(BATCH_BEGIN, "nf_tables");
    push_chain(&mut batch, &plan.table, &plan.chains[0]);
    batch.acknowledge_last();
    batch.control(BATCH_END, "");

    let mut rest = &batch.bytes[..];
    let mut seen = Vec::new();
    while let Some((header, payload, next)) = split_message(rest) {
        let flags = u16::from_ne_bytes([rest[6], rest[7]]);
        seen.push((header.kind, header.sequence, flags, payload[..4].to_vec()));
        rest = next;
    }
    assert_eq!(
        seen,
        [
            (0x10, 7, 0x01, vec![0, 0, 0, 10]),
            (0xa03, 8, 0x405, vec![1, 0, 0, 0]),
            (0x11, 9, 0x01, vec![0, 0, 0, 10]),
        ]
    );
    assert_eq!(batch.awaited, 1);
}

#[test]
fn a_base_chain_is_encoded_as_by_nft() {
    let mut batch = Batch::new(0);
    push_chain(&mut batch, "t", &Chain { name: "prerouting", hooked: true, rules: vec![] });
    let (_, payload, _) = split_message(&batch.bytes).unwrap();
    let body = &payload[4..];
    assert_eq!(find(body, 1), Some(&b"t\0"[..]));
    assert_eq!(find(body, 3), Some(&b"prerouting\0"[..]));
    let hook = find(body, 4).unwrap();
    assert_eq!(find(hook, 1), Some(&[0, 0, 0, 0][..]));
    assert_eq!(find(hook, 2), Some(&[0xff, 0xff, 0xff, 0x6a][..]));
    assert_eq!(find(body, 5), Some(&[0, 0, 0, 1][..]));
    assert_eq!(find(body, 7), Some(&b"filter\0"[..]));
}

#[test]
fn answers_that_are_no_messages_end_the_reading() {
    for bytes in [&[][..], &[16, 0, 0, 0], &[8; 40], &[0; 16]] {
        assert!(split_message(bytes).is_none(), "{bytes:?}");
    }
    assert_eq!(errno(&[]), libc::EPROTO);
    assert_eq!(errno(&(-2i32).to_ne_bytes()), libc::ENOENT);
}
