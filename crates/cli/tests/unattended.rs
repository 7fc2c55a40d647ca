//! An unattended gateway: its log is not read, its addresses are assigned late, and it has only the
//! capabilities that it needs.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Time limit of every wait.
const TOO_LONG: Duration = Duration::from_secs(30);
/// Flag of open(2) on the tested architectures.
const O_NONBLOCK: i32 = 0o4000;

/// A folder that is removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("bentpipe-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn gateway(config: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bentpipe"));
    command.args(["gateway", "--config"]).arg(config);
    command.env("BENTPIPE_LOG", "debug").env_remove("JOURNAL_STREAM").env_remove("NOTIFY_SOCKET");
    command
}

/// A process that is killed on drop.
struct Running(Child);

impl Running {
    fn terminate(&self) {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    }

    /// Waits for its end; `None` at the time limit.
    fn ended(&mut self) -> Option<ExitStatus> {
        for _ in 0..TOO_LONG.as_millis() / 20 {
            if let Some(status) = self.0.try_wait().unwrap() {
                return Some(status);
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        None
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns a full pipe for writing, with its unread end.
fn full_pipe() -> (Stdio, std::io::PipeReader) {
    let (reader, writer) = std::io::pipe().unwrap();
    let again = format!("/proc/self/fd/{}", writer.as_raw_fd());
    let mut filling = File::options().write(true).custom_flags(O_NONBLOCK).open(again).unwrap();
    for length in [4096, 1] {
        let refused = loop {
            if let Err(error) = filling.write(&vec![b'\n'; length]) {
                break error;
            }
        };
        assert_eq!(refused.kind(), ErrorKind::WouldBlock);
    }
    (OwnedFd::from(writer).into(), reader)
}

fn connect(address: SocketAddr) -> TcpStream {
    for _ in 0..TOO_LONG.as_millis() / 20 {
        if let Ok(stream) = TcpStream::connect(address) {
            return stream;
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
    panic!("nobody listens on {address}");
}

#[test]
fn a_gateway_with_unread_output_works_and_stops() {
    let folder = Folder::new("unread");
    let [socks, metrics] =
        [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let config = folder.write(
        "terminal.toml",
        &format!(
            "role = \"terminal\"\nsecurity = \"none\"\n[link]\npeer = \"127.0.0.1:9\"\n\
             [socks5]\nlisten = \"{socks}\"\n[control]\nsocket = \"off\"\n\
             [metrics]\nlisten = \"{metrics}\"\n[log]\nconnections = \"on\"\n"
        ),
    );
    let (errors, log) = full_pipe();
    let (output, _unread) = full_pipe();
    let mut child = Running(gateway(&config).stdout(output).stderr(errors).spawn().unwrap());
    for number in 0.. {
        if number % 500 == 499 && !page(metrics).contains("\nbentpipe_log_lines_dropped_total 0\n")
        {
            break;
        }
        assert!(number < 20_000, "no line was dropped");
        let mut client = connect(socks);
        client.set_read_timeout(Some(TOO_LONG)).unwrap();
        client.write_all(&[5, 1, 0]).unwrap();
        let mut answer = [0; 2];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(answer, [5, 0]);
        // Invalid datagrams are logged.
        client.write_all(&[9; 10]).unwrap();
    }
    // When reading resumes, it reports the number of dropped lines.
    let mut lines = BufReader::new(log).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("log lines dropped")), "it has ended");
    child.terminate();
    child.terminate();
    // Not read completely.
    assert!(child.ended().expect("it does not end").success());
}

/// Returns the page of metrics.
fn page(metrics: SocketAddr) -> String {
    let mut client = connect(metrics);
    client.set_read_timeout(Some(TOO_LONG)).unwrap();
    client.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    let mut page = String::new();
    client.read_to_string(&mut page).unwrap();
    page
}

#[test]
fn a_fatal_error_does_not_wait_for_a_reader() {
    let folder = Folder::new("unread-error");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = folder.write(
        "terminal.toml",
        &format!(
            "role = \"terminal\"\nsecurity = \"none\"\n[link]\npeer = \"127.0.0.1:9\"\n\
             [socks5]\nlisten = \"{}\"\n[control]\nsocket = \"off\"\n",
            taken.local_addr().unwrap()
        ),
    );
    let (errors, _unread) = full_pipe();
    let mut child = Running(gateway(&config).stdout(Stdio::null()).stderr(errors).spawn().unwrap());
    assert_eq!(child.ended().expect("it does not end").code(), Some(1));
}

/// Returns the capabilities in `set` of the kernel's status of a task.
fn capabilities(task: &Path, set: &str) -> u64 {
    let text = fs::read_to_string(task.join("status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(set)).unwrap();
    u64::from_str_radix(line.trim(), 16).unwrap()
}

const NET_ADMIN: u64 = 1 << 12;
/// CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH and CAP_FOWNER.
const FILES: u64 = 1 << 1 | 1 << 2 | 1 << 3;

/// Starts a hub by `command`, waits until it responds, and returns the union of its threads'
/// capabilities.
fn granted(folder: &Folder, command: &mut Command) -> [u64; 4] {
    let metrics: SocketAddr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = fs::read_to_string(folder.0.join("hub.toml")).unwrap();
    let text = text.replace("[control]", &format!("[metrics]\nlisten = \"{metrics}\"\n[control]"));
    folder.write("hub-now.toml", &text);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let child = Running(child);
    let page = page(metrics);
    assert!(page.contains("\nbentpipe_log_lines_dropped_total 0\n"), "{page}");
    let tasks = fs::read_dir(format!("/proc/{}/task", child.0.id())).unwrap();
    let tasks: Vec<PathBuf> = tasks.map(|task| task.unwrap().path()).collect();
    assert!(tasks.len() > 1, "the log has a thread of its own");
    ["CapEff:", "CapPrm:", "CapAmb:", "CapBnd:"]
        .map(|set| tasks.iter().fold(0, |all, task| all | capabilities(task, set)))
}

#[test]
fn a_hub_keeps_only_the_capabilities_that_its_configuration_needs() {
    if !fs::read_to_string("/proc/self/status").unwrap().contains("Uid:\t0\t0\t0\t0")
        || testbed::permission::check().is_err()
    {
        eprintln!("skipped: only root has capabilities to drop");
        return;
    }
    let host = testbed::Host::new("capabilities").expect("a namespace");
    let folder = Folder::new("capabilities");
    let hub = "role = \"hub\"\nsecurity = \"none\"\n[link]\nlisten = \"127.0.0.1:0\"\n\
               [control]\nsocket = \"off\"\n";
    let lending = format!("{hub}[hub]\nsource = \"client\"\nclients = [\"10.1.0.0/16\"]\n");
    let now = folder.0.join("hub-now.toml");
    folder.write("hub.toml", hub);
    let all = host.run(|| granted(&folder, &mut gateway(&now)));
    assert_eq!(all, [FILES, FILES, 0, FILES], "{all:x?}");
    folder.write("hub.toml", &lending);
    let all = host.run(|| granted(&folder, &mut gateway(&now)));
    let wanted = FILES | NET_ADMIN;
    assert_eq!(all, [wanted, wanted, 0, wanted], "{all:x?}");

    // As systemd starts it: another user, with both capabilities granted by the unit.
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o755)).unwrap();
    let words = ["--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"];
    let granted_by_unit = "-all,+net_admin,+net_raw";
    let mut command = Command::new("setpriv");
    command.args(words);
    for set in ["--inh-caps", "--ambient-caps", "--bounding-set"] {
        command.args([set, granted_by_unit]);
    }
    command.arg(env!("CARGO_BIN_EXE_bentpipe"));
    let mut try_it = Command::new("setpriv");
    try_it.args(words).args([env!("CARGO_BIN_EXE_bentpipe"), "version"]);
    if !try_it.stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        eprintln!("skipped in part: another user cannot run {}", env!("CARGO_BIN_EXE_bentpipe"));
        return;
    }
    command.args(["gateway", "--config"]).arg(&now).env_remove("NOTIFY_SOCKET");
    folder.write("hub.toml", hub);
    let all = host.run(|| granted(&folder, &mut command));
    assert_eq!(all[..3], [0, 0, 0], "{all:x?}");
    folder.write("hub.toml", &lending);
    let all = host.run(|| granted(&folder, &mut command));
    assert_eq!(all[..3], [NET_ADMIN; 3], "{all:x?}");
}

fn packaging(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd").join(file)
}

#[test]
fn the_unit_of_a_hub_grants_the_required_capabilities() {
    let folder = Folder::new("generator");
    let hub = "role = \"hub\"\nsecurity = \"none\"\n[link]\nlisten = \"10.2.0.2:7000\"\n";
    folder.write("hub.toml", hub);
    let lending = "[hub]\nsource = \"client\"\nclients = [\"10.1.0.0/16\"]\n";
    folder.write("lending.toml", &format!("{hub}{lending}"));
    folder.write("low.toml", &hub.replace("7000", "500"));
    folder.write("wrong.toml", &format!("{hub}nonsense = 1\n"));
    folder.write("terminal.toml", "role = \"terminal\"\n");
    let out = folder.0.join("out");
    fs::create_dir(&out).unwrap();
    let ended = Command::new(packaging("bentpipe-generator"))
        .arg(&out)
        .env("BENTPIPE_PROGRAM", env!("CARGO_BIN_EXE_bentpipe"))
        .env("BENTPIPE_CONFIGURATIONS", &folder.0)
        .status()
        .unwrap();
    assert!(ended.success());
    let mut units: Vec<_> = fs::read_dir(&out)
        .unwrap()
        .map(|one| one.unwrap().file_name().into_string().unwrap())
        .collect();
    units.sort();
    let name = |unit: &str| format!("bentpipe@{unit}.service.d");
    assert_eq!(units, ["hub", "lending", "low"].map(name), "others stay as the unit has them");
    let granted = |unit: &str| {
        let text = fs::read_to_string(out.join(name(unit)).join("capabilities.conf")).unwrap();
        text.lines().skip(2).map(str::to_owned).collect::<Vec<_>>()
    };
    let lines = |needed: &str| {
        ["AmbientCapabilities=", "CapabilityBoundingSet="]
            .iter()
            .flat_map(|set| [(*set).to_owned(), format!("{set}{needed}")])
            .collect::<Vec<_>>()
    };
    assert_eq!(granted("hub"), ["AmbientCapabilities=", "CapabilityBoundingSet="]);
    assert_eq!(granted("lending"), lines("CAP_NET_ADMIN"));
    assert_eq!(granted("low"), lines("CAP_NET_BIND_SERVICE"));
}

#[test]
fn systemd_accepts_the_unit_and_restarts_without_limit() {
    let unit = fs::read_to_string(packaging("bentpipe@.service")).unwrap();
    for line in ["StartLimitIntervalSec=0", "Restart=always", "RestartSec=1"] {
        assert!(unit.lines().any(|one| one == line), "{line}");
    }
    let folder = Folder::new("unit");
    let unit = unit.replace("/usr/bin/bentpipe", env!("CARGO_BIN_EXE_bentpipe"));
    let file = folder.write("bentpipe@hub.service", &unit);
    let mut command = Command::new("systemd-analyze");
    let Ok(said) = command.args(["verify", "--man=no"]).arg(&file).output() else {
        eprintln!("skipped: this machine has no systemd-analyze");
        return;
    };
    let errors = String::from_utf8_lossy(&said.stderr);
    // systemd before version 254 does not know all keys.
    let is_ours = |line: &&str| {
        line.contains("bentpipe@")
            && !line.contains("RestartSteps")
            && !line.contains("MaxDelaySec")
    };
    assert_eq!(errors.lines().find(is_ours), None, "{errors}");
}

/// The journal shows a line with escape sequences as "blob data".
#[test]
fn lines_for_the_journal_have_a_level_and_no_escape_sequences() {
    let folder = Folder::new("journal");
    let config = folder.write(
        "hub.toml",
        "role = \"hub\"\nsecurity = \"none\"\n[link]\nlisten = \"127.0.0.1:0\"\n\
         [control]\nsocket = \"off\"\n",
    );
    let mut command = gateway(&config);
    command.env("JOURNAL_STREAM", "8:1").stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = Running(command.spawn().unwrap());
    let lines = BufReader::new(child.0.stderr.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.into_iter().find(|line| line.contains("addresses=")).unwrap();
    assert!(line.starts_with("<6>") && !line.contains('\x1b'), "{line:?}");
}
