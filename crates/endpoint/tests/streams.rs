//! Streams between a client and a server over loopback.

use endpoint::{Accepted, Endpoint, PrivateKey, SystemEntropy, Target, config};
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::thread;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(30);

fn keys() -> [PrivateKey; 2] {
    [(); 2].map(|()| PrivateKey::generate(&mut SystemEntropy))
}

fn pair() -> (Endpoint, Endpoint) {
    let [a, b] = keys();
    let any = "127.0.0.1:0".parse().unwrap();
    let server = Endpoint::server(&config(&b, &[a.public()]).unwrap(), any).unwrap();
    let client = config(&a, &[b.public()]).unwrap();
    let client = Endpoint::client(&client, server.local_address()).unwrap();
    (client, server)
}

fn target(name: &str) -> Target {
    Target::name(name, 1)
}

/// Octets that differ at every position.
fn content(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 251) as u8).collect()
}

#[test]
fn several_streams_carry_data_in_both_directions() {
    let (client, server) = pair();
    let echo = thread::spawn(move || {
        let streams = (0..3).map(|_| server.accept_for(LIMIT).unwrap().stream);
        let copies = streams.map(|stream| {
            thread::spawn(move || {
                let copied = io::copy(&mut &stream, &mut &stream).unwrap();
                stream.shutdown(Shutdown::Write).unwrap();
                copied
            })
        });
        let copies: Vec<_> = copies.collect();
        let copied: u64 = copies.into_iter().map(|copy| copy.join().unwrap()).sum();
        server.close(LIMIT).unwrap();
        copied
    });
    let data = content(700_000);
    let streams: Vec<_> = (0..3).map(|_| client.open(target("echo")).unwrap()).collect();
    thread::scope(|scope| {
        for stream in &streams {
            let data = &data;
            scope.spawn(move || {
                (&*stream).write_all(data).unwrap();
                stream.shutdown(Shutdown::Write).unwrap();
            });
            scope.spawn(move || {
                let mut received = Vec::new();
                (&*stream).read_to_end(&mut received).unwrap();
                assert!(received == *data, "{} of {} bytes", received.len(), data.len());
            });
        }
    });
    drop(streams);
    assert_eq!(echo.join().unwrap(), 2_100_000);
    client.close(LIMIT).unwrap();
}

#[test]
fn written_data_is_delivered_after_the_stream_and_the_client_are_dropped() {
    let (client, server) = pair();
    let mut stream = client.open(target("sink")).unwrap();
    stream.write_all(&content(100_000)).unwrap();
    drop(stream);
    drop(client);
    let Accepted { mut stream, target, peer } = server.accept_for(LIMIT).unwrap();
    assert_eq!(target.to_string(), "sink:1");
    assert_eq!(peer.len(), 44, "the text of the client's key");
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    assert!(received == content(100_000));
}

#[test]
fn the_end_of_a_server_ends_streams_and_the_next_server_is_found() {
    let [a, b] = keys();
    let any = "127.0.0.1:0".parse().unwrap();
    let server_config = config(&b, &[a.public()]).unwrap();
    let server = Endpoint::server(&server_config, any).unwrap();
    let at = server.local_address();
    let client = Endpoint::client(&config(&a, &[b.public()]).unwrap(), at).unwrap();
    let mut stream = client.open(target("first")).unwrap();
    stream.write_all(b"x").unwrap();
    let accepted = server.accept_for(LIMIT).unwrap();
    let closed = server.close(Duration::from_millis(50));
    assert_eq!(closed.unwrap_err().kind(), ErrorKind::TimedOut, "the stream is still open");
    drop(accepted);
    let error = stream.read(&mut [0; 8]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionAborted);
    let server = loop {
        match Endpoint::server(&server_config, at) {
            Ok(server) => break server,
            Err(error) => assert_eq!(error.kind(), ErrorKind::AddrInUse),
        }
        thread::yield_now();
    };
    client.wait_connected(LIMIT).unwrap();
    let mut stream = client.open(target("second")).unwrap();
    stream.write_all(b"y").unwrap();
    assert_eq!(server.accept_for(LIMIT).unwrap().target.to_string(), "second:1");
}

#[test]
fn a_client_with_an_unknown_key_gets_no_session() {
    let (client, server) = pair();
    let [unknown, other] = keys();
    let address = server.local_address();
    let unknown = config(&unknown, &[other.public()]).unwrap();
    let unknown = Endpoint::client(&unknown, address).unwrap();
    client.wait_connected(LIMIT).unwrap();
    let connected = unknown.wait_connected(Duration::from_millis(300));
    assert_eq!(connected.unwrap_err().kind(), ErrorKind::TimedOut);
}

#[test]
fn tokio_tasks_read_and_write() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (client, server) = pair();
    let data = content(300_000);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut stream = client.open(target("tokio")).unwrap();
        let written = async {
            AsyncWriteExt::write_all(&mut stream, &data).await.unwrap();
            AsyncWriteExt::shutdown(&mut stream).await.unwrap();
            let mut reply = Vec::new();
            AsyncReadExt::read_to_end(&mut stream, &mut reply).await.unwrap();
            reply
        };
        let served = async {
            let mut stream = server.accept_async().await.unwrap().stream;
            let mut received = Vec::new();
            AsyncReadExt::read_to_end(&mut stream, &mut received).await.unwrap();
            AsyncWriteExt::write_all(&mut stream, b"done").await.unwrap();
            received
        };
        let (reply, received) = tokio::join!(written, served);
        assert!(received == data);
        assert_eq!(reply, b"done");
    });
}
