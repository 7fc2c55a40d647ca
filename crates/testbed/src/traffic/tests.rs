//! Over the loopback interface.

use super::*;
use std::net::SocketAddr;
use units::Span;

const SOON: Limits = Limits { after_first_byte: Span::from_secs(20), overall: Span::from_secs(20) };

fn any_port() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn file(seed: u64, bytes: u64) -> File<'static> {
    File { seed, bytes, congestion: "-" }
}

#[test]
fn a_download_is_complete_and_checked() {
    let server = FileServer::start(None, any_port()).unwrap();
    let progress = Progress::default();
    let got = download(Way::Direct, server.address(), file(3, 1_000_003), SOON, &progress);
    assert!(got.complete && got.matches, "{got:?}");
    assert_eq!((got.bytes, progress.bytes()), (1_000_003, 1_000_003));
    assert_eq!(got.series.last().map(|sample| sample.bytes), Some(1_000_003));
    assert!(got.first_byte >= got.connected);
    assert!(got.goodput(Span::from_secs(60)) > 0.0);
}

#[test]
fn stopped_download_is_verified_up_to_its_end() {
    let server = FileServer::start(None, any_port()).unwrap();
    let progress = Progress::default();
    let limits = Limits { after_first_byte: Span::from_millis(30), ..SOON };
    let got = download(Way::Direct, server.address(), file(4, u64::MAX), limits, &progress);
    assert!(!got.complete && got.matches && got.bytes > 0, "{got:?}");
    assert_eq!(got.error, None);
}

#[test]
fn upload_is_confirmed_by_the_server() {
    let server = FileServer::start(None, any_port()).unwrap();
    let progress = Progress::default();
    let sent = upload(Way::Direct, server.address(), file(5, 300_001), SOON, &progress);
    assert!(sent.complete && sent.matches, "{sent:?}");
    let served = server.served(5).unwrap();
    assert_eq!(served.bytes, 300_001);
    assert_eq!(server.served(6), None);
}

#[test]
fn a_request_gets_its_response() {
    let server = FileServer::start(None, any_port()).unwrap();
    for (request, response) in [(4096, 4096), (24, 1), (100, 0)] {
        let asked = ask(Way::Direct, server.address(), (request, response), Span::from_secs(10));
        assert!(asked.took.is_some(), "{asked:?}");
    }
}

#[test]
fn failures_are_reported() {
    let no_server = {
        let server = FileServer::start(None, any_port()).unwrap();
        server.address()
    };
    let got = download(Way::Direct, no_server, file(1, 10), SOON, &Progress::default());
    assert!(got.error.is_some() && !got.complete, "{got:?}");
    assert_eq!(got.goodput(Span::from_secs(1)), 0.0);
    assert!(load_page(Way::Direct, no_server, 6).error.is_some());
}

#[test]
fn the_page_has_its_objects_and_bytes() {
    let server = WebServer::start(None, any_port()).unwrap();
    let six = load_page(Way::Direct, server.address(), 6);
    assert!(six.matches && six.took.is_some(), "{six:?}");
    let piped = load_page_pipelined(Way::Direct, server.address());
    assert!(piped.matches && piped.took.is_some(), "{piped:?}");
}

#[test]
fn goodput_counts_from_the_first_byte() {
    let second = Span::from_secs(1);
    let sample = |at, bytes| Sample { at: second * at, bytes };
    let mut transfer = Transfer {
        started: units::Instant::ZERO,
        connected: Some(second),
        first_byte: Some(second * 2),
        ended: second * 12,
        bytes: 2_000,
        complete: false,
        matches: true,
        checksum: 0,
        series: vec![sample(2, 100), sample(4, 1_000), sample(11, 2_000)],
        error: None,
    };
    assert_eq!(transfer.goodput(second * 4), 1_000.0 * 8.0 / 4.0);
    // For an interrupted transfer the idle time counts as well.
    assert_eq!(transfer.goodput(second * 20), 2_000.0 * 8.0 / 20.0);
    transfer.complete = true;
    assert_eq!(transfer.goodput(second * 20), 2_000.0 * 8.0 / 10.0);
}

#[test]
fn a_client_with_a_small_window_has_the_file_as_well() {
    let server = FileServer::start(None, any_port()).unwrap();
    let way = Way::Buffered(ReceiveBuffer { bytes: 16_384, window: 8_192 });
    let got = download(way, server.address(), file(8, 200_000), SOON, &Progress::default());
    assert!(got.complete && got.matches, "{:?}", got.error);
}
