use super::*;
use encoder::is_encrypted;
use units::RngStream;

/// Decodes `wire`, handed over in pieces of at most `piece` octets.
fn decode(wire: &[u8], piece: usize) -> Result<Vec<u8>, decoder::Damaged> {
    let mut decoder = Decoder::new(&Coder::default());
    let (mut plain, mut at) = (Vec::new(), 0);
    loop {
        assert!(
            decoder.output().len() <= MAX_CHUNK
                && decoder.allocated() <= MAX_MEMORY + 2 * MAX_CHUNK
        );
        plain.extend_from_slice(decoder.output());
        decoder.consume(decoder.output().len());
        if decoder.is_over() {
            plain.extend_from_slice(&wire[at..]);
            return Ok(plain);
        }
        let rest = &wire[at..wire.len().min(at + piece)];
        if rest.is_empty() {
            return if decoder.is_between_chunks() { Ok(plain) } else { Err(decoder::Damaged) };
        }
        at += decoder.take(rest)?;
    }
}

fn encode<'a>(writes: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut encoder = Encoder::new(&Coder::default()).unwrap();
    writes.into_iter().flat_map(|data| encoder.encode(data)).collect()
}

/// Octets that look like a protocol of text, different from line to line.
fn text(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = RngStream::new(seed, 0, "text");
    let mut text = Vec::new();
    while text.len() < len {
        let [id, value] = [rng.next_u64() % 100_000, rng.next_u64() % 1_000];
        text.extend_from_slice(
            format!("{{\"id\":{id},\"state\":\"open\",\"value\":{value}}}\n").as_bytes(),
        );
    }
    text.truncate(len);
    text
}

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = RngStream::new(seed, 0, "noise");
    (0..len).map(|_| rng.next_u64() as u8).collect()
}

/// RLY-13.3
#[test]
fn every_write_is_decoded_by_itself_and_in_order() {
    let plain = [text(1, 200_000), noise(2, 40_000), text(1, 100_000), vec![7; 50_000]].concat();
    for size in [1_usize, 7, 600, MAX_CHUNK] {
        let plain = &plain[..plain.len().min(size * 3_000)];
        let mut encoder = Encoder::new(&Coder::default()).unwrap();
        let mut decoder = Decoder::new(&Coder::default());
        for write in plain.chunks(size) {
            let chunk = encoder.encode(write);
            assert!(chunk.len() <= write.len() + OVERHEAD);
            assert_eq!(decoder.take(&chunk), Ok(chunk.len()));
            assert_eq!(decoder.output(), write);
            decoder.consume(write.len());
        }
    }
}

/// RLY-13.3
#[test]
fn chunks_may_arrive_in_any_pieces() {
    let plain = [text(3, 30_000), noise(4, 9_000)].concat();
    let wire = encode(plain.chunks(5_000));
    for piece in [1, 13, 1_436, 100_000] {
        assert_eq!(decode(&wire, piece).as_ref(), Ok(&plain));
    }
}

/// RLY-13.4
#[test]
fn octets_behind_the_end_of_coding_are_not_coded() {
    let mut wire = encode([&b"GET / HTTP/1.1\r\n\r\n"[..]]);
    Encoder::end_coding(&mut wire);
    wire.extend_from_slice(&[0xff; 300]);
    let plain = [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 300]].concat();
    assert_eq!(decode(&wire, 11), Ok(plain));
}

#[test]
fn a_request_is_shorter_by_the_dictionary() {
    let request =
        b"GET /index.html HTTP/1.1\r\nHost: www.example.org\r\nUser-Agent: curl/8.5.0\r\n\
                    Accept: */*\r\n\r\n";
    let wire = encode([&request[..]]);
    assert!(wire.len() * 4 < request.len() * 3, "{} of {}", wire.len(), request.len());
}

/// A prefix that begins like a formatted dictionary is used as it is.
#[test]
fn histories_that_look_like_dictionaries_do_no_harm() {
    let marked = [&DICTIONARY_MAGIC[..], &text(5, 1_020)].concat();
    let plain = marked.repeat(100);
    assert_eq!(decode(&encode(plain.chunks(1_024)), 900).as_ref(), Ok(&plain));
    assert_eq!(prefix(&plain, 1_024), &plain[plain.len() - 1_023..]);
}

/// RLY-13.5
#[test]
fn a_chunk_that_grows_beyond_its_bound_is_damaged() {
    let bomb = vec![0; MAX_CHUNK + 1];
    let mut frame = Vec::with_capacity(zstd_safe::compress_bound(bomb.len()));
    CCtx::create().compress(&mut frame, &bomb, 3).unwrap();
    let content = &frame[MAGIC.len()..];
    let mut wire = vec![VERSION, (content.len() * 2 + 1) as u8];
    assert!(content.len() < 64);
    wire.extend_from_slice(content);
    assert_eq!(decode(&wire, 1_000), Err(decoder::Damaged));
    assert_eq!(decode(&[2], 1), Err(decoder::Damaged), "another version");
    assert_eq!(decode(&[VERSION, 0x82, 0x80, 0x02], 9), Err(decoder::Damaged), "too long");
    assert_eq!(decode(&[VERSION, 0x80, 0x80, 0x80, 0], 9), Err(decoder::Damaged), "long head");
    assert_eq!(decode(&[VERSION, 1], 9), Err(decoder::Damaged), "compressed, and empty");
    assert_eq!(decode(&[VERSION, 4, 7], 9), Err(decoder::Damaged), "cut off");
}

/// RLY-13.2
#[test]
fn protocols_that_encrypt_and_content_that_does_not_shrink_are_left_alone() {
    assert!(is_encrypted(&[0x16, 3, 1, 2, 0, 1]) && is_encrypted(b"SSH-2.0-OpenSSH_9.6\r\n"));
    assert!(!is_encrypted(b"GET / HTTP/1.1\r\n") && !is_encrypted(&[]));
    let judge = |data: &[u8]| {
        let mut encoder = Encoder::new(&Coder::default()).unwrap();
        data.chunks(3_000).any(|part| {
            encoder.encode(part);
            encoder.is_in_vain()
        })
    };
    assert!(judge(&noise(6, 3_000)) && !judge(&text(7, 60_000)));
    // Text first, and then an image: decided while the sample lasts, and not after it.
    assert!(judge(&[text(8, 500), noise(9, 15_000)].concat()));
    assert!(!judge(&[text(8, 18_000), noise(9, 100_000)].concat()));
}

/// RLY-13.6
#[test]
fn encoders_are_bounded_and_free_again() {
    let coder = Coder::default();
    let mut all: Vec<Encoder> = (0..MAX_SHARED).map(|_| Encoder::new(&coder).unwrap()).collect();
    assert!(Encoder::new(&coder).is_none());
    all.pop();
    assert!(Encoder::new(&coder).is_some());
}
