//! Third-party clients and servers.

use crate::network::{Setup, TestNetwork, have};
use serde_json::Value;
use std::fs;
use std::process::Command;
use testbed::Process;

const SOCKS: &str = "socks5h://10.1.0.1:1080";
const CONNECT: &str = "http://10.1.0.1:3128";

/// Starts nginx on the server for both address families with the test's directory.
pub(crate) fn nginx(network: &TestNetwork) -> Process {
    let dir = network.dir.display();
    let config = format!(
        "daemon off; pid {dir}/nginx.pid; error_log stderr; worker_processes 1; user root;\n\
         events {{ worker_connections 1024; }}\n\
         http {{ access_log off; send_timeout 300s; client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;\n\
         fastcgi_temp_path {dir}/fastcgi; uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;\n\
         server {{ listen 80; listen [::]:80; root {dir}; }} }}\n"
    );
    fs::write(network.dir.join("nginx.conf"), config).expect("room on the disk");
    let path = network.dir.join("nginx.conf");
    let path = path.to_str().expect("a plain path");
    network.start_on_server("nginx", &["-e", "stderr", "-c", path], 80)
}

#[test]
fn nginx_serves_curl_over_every_route() {
    if !have(&["nginx", "curl"]) {
        return;
    }
    let Some(network) = TestNetwork::build("nginx", &Setup::default()) else { return };
    let _nginx = nginx(&network);
    let content = network.file("large", 3_000_000);
    for (way, args) in [
        ("intercepted", &["http://10.3.0.2/large"][..]),
        ("intercepted, IPv6", &["http://[fd00:3::2]/large"]),
        ("SOCKS5", &["--proxy", SOCKS, "http://10.3.0.2/large"]),
        ("SOCKS5 to IPv6", &["--proxy", SOCKS, "http://[fd00:3::2]/large"]),
        ("CONNECT", &["--proxy", CONNECT, "--proxytunnel", "http://10.3.0.2/large"]),
    ] {
        let common = ["--silent", "--show-error", "--fail", "--max-time", "30", "--output", "got"];
        network.succeed_on_client("curl", &[&common, args].concat());
        let got = fs::read(network.dir.join("got")).expect("what curl got");
        assert!(got == content, "{way}: {} bytes, not the file's", got.len());
        fs::remove_file(network.dir.join("got")).expect("a file to remove");
    }
    let (terminal, hub) = network.finish();
    assert!(terminal["connections"]["accepted"].as_u64() >= Some(6), "{terminal}");
    assert!(hub["connections"]["connected"].as_u64() >= Some(6), "{hub}");
    assert_eq!(terminal["connections"]["bad_requests"], 0);
}

#[test]
fn the_server_sees_the_clients_own_address_if_configured() {
    if !have(&["nginx", "curl"]) {
        return;
    }
    let setup = Setup {
        hub: "source = \"client\"\nclients = [\"10.1.0.0/16\", \"fd00:1::/32\"]",
        ..Setup::default()
    };
    let Some(network) = TestNetwork::build("source", &setup) else { return };
    for (server, client) in [("10.3.0.2", "10.1.0.2"), ("fd00:3::2", "fd00:1::2")] {
        let server: std::net::IpAddr = server.parse().unwrap();
        let listener = network.listen(server, 9000);
        let stream = network.connect(server, 9000);
        let (_, seen) = listener.accept().expect("a connection");
        assert_eq!(seen, stream.local_addr().unwrap());
        assert_eq!(seen.ip().to_string(), client);
    }
}

#[test]
fn two_hundred_parallel_downloads_are_complete() {
    if !have(&["nginx", "curl"]) {
        return;
    }
    let Some(network) = TestNetwork::build("crowd", &Setup::default()) else { return };
    let _nginx = nginx(&network);
    let content = network.file("small", 40_000);
    network.succeed_on_client(
        "curl",
        &[
            "--silent",
            "--show-error",
            "--fail",
            "--max-time",
            "60",
            "--parallel",
            "--parallel-immediate",
            "--parallel-max",
            "200",
            "--output",
            "got_#1",
            "http://10.3.0.2/small?[1-200]",
        ],
    );
    for number in 1..=200 {
        let got = fs::read(network.dir.join(format!("got_{number}"))).expect("what curl got");
        assert!(got == content, "download {number} has {} bytes", got.len());
    }
    let (terminal, _) = network.finish();
    assert!(terminal["connections"]["peak_connections"].as_u64() >= Some(100), "{terminal}");
}

#[test]
fn iperf3_runs_in_both_directions_at_once() {
    if !have(&["iperf3"]) {
        return;
    }
    let Some(network) = TestNetwork::build("iperf3", &Setup::default()) else { return };
    // iperf3 serves one test; the readiness check is a connection of its own.
    let _server = network.start_on_server("iperf3", &["--server", "--port", "5201"], 5201);
    let args = ["--client", "10.3.0.2", "--time", "3", "--bidir", "--json", "--parallel", "2"];
    let report = network.succeed_on_client("iperf3", &args);
    let report: Value = serde_json::from_str(&report).expect("iperf3's report");
    assert!(report.get("error").is_none(), "{}", report["error"]);
    for direction in ["sum_received", "sum_received_bidir_reverse"] {
        let bytes = report["end"][direction]["bytes"].as_u64();
        assert!(bytes > Some(100_000), "{direction}: {bytes:?} bytes");
    }
}

#[test]
fn rsync_over_ssh_copies_in_both_directions() {
    if !have(&["sshd", "ssh", "ssh-keygen", "rsync"]) {
        return;
    }
    let Some(network) = TestNetwork::build("ssh", &Setup::default()) else { return };
    let _sshd = sshd(&network);
    let dir = network.dir.display();
    let content = network.file("original", 1_000_000);
    let shell = format!(
        "ssh -F none -i {dir}/client_key -o StrictHostKeyChecking=no -o BatchMode=yes \
         -o UserKnownHostsFile={dir}/known -o IdentitiesOnly=yes -o LogLevel=ERROR"
    );
    // The server sends first: nothing may wait for the client's data.
    for (number, server) in ["10.3.0.2", "[fd00:3::2]"].into_iter().enumerate() {
        let up = format!("root@{server}:{dir}/up{number}");
        let down = format!("down{number}");
        network.succeed_on_client("rsync", &["-e", &shell, "original", &up]);
        network.succeed_on_client("rsync", &["-e", &shell, &up, &down]);
        assert!(fs::read(network.dir.join(down)).expect("a copy") == content, "{server}");
    }
}

#[test]
fn ssh_connects_by_its_proxy_command() {
    if !have(&["sshd", "ssh", "ssh-keygen"]) {
        return;
    }
    let Some(network) = TestNetwork::build("proxy-command", &Setup::default()) else { return };
    let _sshd = sshd(&network);
    let program = env!("CARGO_BIN_EXE_bentpipe");
    let proxy = format!("ProxyCommand={program} connect --proxy 10.1.0.1:1080 %h %p");
    let (key, known) = (network.dir.join("client_key"), network.dir.join("known"));
    let known = format!("UserKnownHostsFile={}", known.display());
    let mut words = vec!["-F", "none", "-i", key.to_str().expect("a plain path")];
    for option in [&proxy, &known, "StrictHostKeyChecking=no", "BatchMode=yes", "LogLevel=ERROR"] {
        words.extend(["-o", option]);
    }
    words.extend(["root@10.3.0.2", "echo", "through"]);
    assert_eq!(network.succeed_on_client("ssh", &words), "through\n");
    let (terminal, _) = network.finish();
    assert!(terminal["connections"]["accepted"].as_u64() >= Some(1), "{terminal}");
}

fn sshd(network: &TestNetwork) -> Process {
    let dir = network.dir.display();
    for key in ["host_key", "client_key"] {
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f", key])
            .current_dir(&network.dir)
            .status();
        assert!(made.expect("ssh-keygen starts").success());
    }
    // The directory of sshd's unprivileged process, which boot scripts usually create.
    fs::create_dir_all("/run/sshd").expect("a directory for sshd");
    let config = format!(
        "ListenAddress 0.0.0.0:22\nListenAddress [::]:22\nHostKey {dir}/host_key\n\
         AuthorizedKeysFile {dir}/client_key.pub\nPermitRootLogin yes\nStrictModes no\n\
         UsePAM no\nPidFile none\n"
    );
    fs::write(network.dir.join("sshd.conf"), config).expect("room on the disk");
    let path = network.dir.join("sshd.conf");
    let path = path.to_str().expect("a plain path");
    // sshd requires an absolute path.
    network.start_on_server("/usr/sbin/sshd", &["-D", "-e", "-f", path], 22)
}
