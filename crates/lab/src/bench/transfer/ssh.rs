//! A server of ssh with temporary keys, for rsync and scp.

use crate::LabError;
use crate::live::Program;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use testbed::{Host, addresses};

/// Port of the server.
const PORT: u16 = 2222;
/// Congestion control of the kernel on both hosts: the fastest on a lossy link.
const CONGESTION: &str = "bbr";

/// Keys and configuration of a server and its client.
pub(super) struct Ssh {
    folder: PathBuf,
}

impl Ssh {
    /// Makes keys and the configuration in `folder`.
    pub(super) fn new(folder: &Path) -> Result<Self, LabError> {
        let failed = |source| LabError::File { path: folder.to_owned(), source };
        fs::create_dir_all(folder).map_err(failed)?;
        for name in ["host", "user"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(folder.join(name));
            if !keygen.status().map_err(failed)?.success() {
                return Err(LabError::Request("ssh-keygen failed".to_owned()));
            }
        }
        fs::copy(folder.join("user.pub"), folder.join("authorized")).map_err(failed)?;
        let shown = folder.display();
        let config = format!(
            "Port {PORT}\nHostKey {shown}/host\nAuthorizedKeysFile {shown}/authorized\n\
             StrictModes no\nUsePAM no\nPermitRootLogin yes\nPidFile none\n\
             Subsystem sftp internal-sftp\n"
        );
        fs::write(folder.join("sshd_config"), config).map_err(failed)?;
        // sshd changes its root to this folder; it is that of Debian's package.
        fs::create_dir_all("/run/sshd").map_err(failed)?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// Starts the server on `host`.
    pub(super) fn start_server(&self, host: &Host) -> Result<Program, LabError> {
        let mut command = Command::new("/usr/sbin/sshd");
        command.args(["-D", "-e", "-f"]).arg(self.folder.join("sshd_config"));
        set_congestion(host)?;
        Ok(Program::start(Some(host), command, "")?)
    }

    /// Returns the command of rsync, with its arguments.
    pub(super) fn rsync(&self, from: &Path, to: &Path) -> Vec<String> {
        let ssh = format!("ssh -p {PORT} {}", self.options().join(" "));
        let from = from.display().to_string();
        ["rsync", "-a", "--partial", "-e", &ssh, &from, &place(to)].map(str::to_owned).into()
    }

    /// Returns the command of scp, with its arguments.
    pub(super) fn scp(&self, from: &Path, to: &Path) -> Vec<String> {
        let mut words = ["scp", "-r", "-p", "-P", &PORT.to_string()].map(str::to_owned).to_vec();
        words.extend(self.options());
        words.extend([from.display().to_string(), place(to)]);
        words
    }

    fn options(&self) -> Vec<String> {
        let key = self.folder.join("user").display().to_string();
        let settings =
            ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "BatchMode=yes"];
        let mut words = vec!["-q".to_owned(), "-i".to_owned(), key];
        words.extend(settings.iter().flat_map(|one| ["-o".to_owned(), (*one).to_owned()]));
        words
    }
}

fn place(to: &Path) -> String {
    format!("root@{}:{}/", addresses::SERVER.0, to.display())
}

/// Sets the congestion control of new connections on `host`.
pub(super) fn set_congestion(host: &Host) -> Result<(), LabError> {
    let path = "/proc/sys/net/ipv4/tcp_congestion_control";
    let set = host.run(|| fs::write(path, CONGESTION));
    set.map_err(|source| LabError::File { path: path.into(), source })
}
