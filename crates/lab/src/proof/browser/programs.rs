//! The programs of a site: web server, name servers and browser.

use super::application;
use crate::LabError;
use crate::live::Program;
use crate::proof::failed;
use crate::proof::network::{CONNECT, TestNetwork};
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use testbed::addresses;

/// Host of the page, and host of its images, which has another address.
pub(super) const PAGE: &str = "www.site.example";
pub(super) const IMAGES: &str = "images.site.example";
/// Address of the images' host.
pub(super) const IMAGES_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 3);

/// Images of the page, with their width and height in pixels of three octets each.
const COUNT: usize = 28;
const SIDE: u32 = 48;
/// Octets that the page uploads and downloads.
const UPLOAD: usize = 300_000;
const LARGE: usize = 3_000_000;

/// Port at the terminal that leads to the name server beyond the hub.
const NAMES: u16 = 5300;

/// Returns a program that the test needs and that is not installed.
pub(super) fn missing() -> Option<&'static str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there =
        |program: &&str| std::env::split_paths(&path).any(|dir| dir.join(program).is_file());
    let needed = ["chromium", "nginx", "openssl", "socat", "unbound", "unshare"];
    needed.into_iter().find(|program| !is_there(program))
}

/// A folder with the site's files, which is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Writes the site and the configurations.
    ///
    /// # Errors
    /// Those of the file system.
    pub(super) fn write() -> Result<Self, LabError> {
        let path = std::env::temp_dir().join(format!("bentpipe-{}-browser", std::process::id()));
        let folder = Self(path);
        let written = folder.fill();
        written.map_err(failed("the site's files"))?;
        Ok(folder)
    }

    fn fill(&self) -> std::io::Result<()> {
        let site = self.path("site");
        fs::create_dir_all(&site)?;
        let images = (0..COUNT).map(|number| format!("<img src=\"//{IMAGES}/{number}.bmp\">\n"));
        let page = include_str!("site/page.html").replace("IMAGES", &images.collect::<String>());
        fs::write(site.join("index.html"), page)?;
        // The style sheet, the script and the images.
        let script = include_str!("site/page.js")
            .replace("OBJECTS", &(COUNT + 2).to_string())
            .replace("UPLOAD", &UPLOAD.to_string())
            .replace("LARGE", &LARGE.to_string());
        fs::write(site.join("page.js"), script)?;
        fs::write(site.join("style.css"), "img { padding: 2px }\n".repeat(200))?;
        for number in 0..COUNT {
            fs::write(site.join(format!("{number}.bmp")), bitmap(number))?;
        }
        fs::write(site.join("sound.wav"), sound())?;
        fs::write(site.join("large"), content(LARGE))?;
        fs::write(self.path("nginx.conf"), self.nginx())?;
        fs::write(self.path("far.conf"), self.far_names())?;
        fs::write(self.path("near.conf"), self.near_names())?;
        for (name, server) in [("far", addresses::SERVER.0), ("near", addresses::TERMINAL_LAN.0)] {
            fs::write(self.path(&format!("{name}.resolv")), format!("nameserver {server}\n"))?;
        }
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn nginx(&self) -> String {
        let dir = self.0.display();
        let application = application::PORT;
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {dir}/{name}; "))
            .concat();
        format!(
            "daemon off; pid {dir}/nginx.pid; error_log stderr; worker_processes 1; user root;\n\
             events {{ }}\n\
             http {{ {temporary}\n\
             types {{ text/html html; text/css css; text/javascript js; image/bmp bmp; audio/wav wav; }}\n\
             log_format short '$server_protocol $status $request_uri'; access_log {dir}/access.log short;\n\
             server {{ listen 80; listen 443 ssl http2; root {dir}/site;\n\
             ssl_certificate {dir}/certificate.pem; ssl_certificate_key {dir}/key.pem;\n\
             client_max_body_size 10m; add_header Alt-Svc 'h3=\":443\"; ma=3600';\n\
             location ~ ^/(report|upload|events|socket) {{\n\
             proxy_pass http://127.0.0.1:{application}; proxy_http_version 1.1; proxy_buffering off;\n\
             proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }} }} }}\n"
        )
    }

    /// The name server beyond the hub, which knows the site.
    fn far_names(&self) -> String {
        let own = addresses::SERVER.0;
        format!(
            "{}interface: {own}\nlocal-zone: \"site.example.\" static\n\
             local-data: \"{PAGE}. A {own}\"\nlocal-data: \"{IMAGES}. A {IMAGES_ADDRESS}\"\n",
            self.unbound("far")
        )
    }

    /// The cache at the terminal, as docs/guide/other-traffic.md has it.
    fn near_names(&self) -> String {
        let own = addresses::TERMINAL_LAN.0;
        format!(
            "{}interface: {own}\nprefetch: yes\nserve-expired: yes\ndo-not-query-localhost: no\n\
             forward-zone:\nname: \".\"\nforward-addr: 127.0.0.1@{NAMES}\n\
             forward-tcp-upstream: yes\n",
            self.unbound("near")
        )
    }

    fn unbound(&self, name: &str) -> String {
        let dir = self.0.display();
        format!(
            "server:\ndo-daemonize: no\nusername: \"\"\nchroot: \"\"\ndirectory: \"{dir}\"\n\
             pidfile: \"{dir}/{name}.pid\"\nuse-syslog: no\nmodule-config: \"iterator\"\n\
             access-control: 0.0.0.0/0 allow\n"
        )
    }

    /// Returns the lines of nginx's log.
    pub(super) fn requests(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("access.log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0); // In the folder for temporary files.
    }
}

/// The servers, which end when this is dropped.
#[derive(Debug)]
pub(super) struct Servers(#[expect(dead_code, reason = "they are dropped with it")] [Program; 2]);

/// Starts nginx and the far name server on the server's host.
///
/// # Errors
/// When a program is missing or cannot start.
pub(super) fn serve(folder: &Folder, network: &TestNetwork) -> Result<Servers, LabError> {
    let dir = folder.0.display();
    let certificate = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-days", "2", "-subj", &format!("/CN={PAGE}"), "-addext"])
        .arg(format!("subjectAltName=DNS:{PAGE},DNS:{IMAGES}"))
        .args(["-keyout", &format!("{dir}/key.pem"), "-out", &format!("{dir}/certificate.pem")])
        .output()
        .map_err(failed("openssl"))?;
    if !certificate.status.success() {
        let text = String::from_utf8_lossy(&certificate.stderr).into_owned();
        return Err(LabError::Proof(format!("openssl: {text}")));
    }
    let server = &network.net.server;
    let mut nginx = Command::new("nginx");
    nginx.args(["-e", "stderr", "-c"]).arg(folder.path("nginx.conf"));
    let names = unbound(&folder.path("far.conf"));
    Ok(Servers([
        Program::start(Some(server), nginx, "")?,
        Program::start(Some(server), names, "")?,
    ]))
}

fn unbound(file: &Path) -> Command {
    let mut command = Command::new("unbound");
    command.args(["-d", "-c"]).arg(file);
    command
}

/// The name server at the terminal and what leads its queries through the gateways.
#[derive(Debug)]
pub(super) struct NearNames(#[expect(dead_code, reason = "they are dropped with it")] [Program; 2]);

impl NearNames {
    /// Starts them with an empty cache.
    ///
    /// # Errors
    /// When a program is missing or cannot start.
    pub(super) fn start(folder: &Folder, network: &TestNetwork) -> Result<Self, LabError> {
        let terminal = Some(&network.net.terminal);
        let (lan, server) = (addresses::TERMINAL_LAN.0, addresses::SERVER.0);
        let mut socat = Command::new("socat");
        socat.arg(format!("TCP-LISTEN:{NAMES},bind=127.0.0.1,reuseaddr,fork"));
        socat.arg(format!("PROXY:{lan}:{server}:53,proxyport={CONNECT}"));
        let names = unbound(&folder.path("near.conf"));
        Ok(Self([Program::start(terminal, socat, "")?, Program::start(terminal, names, "")?]))
    }
}

/// Starts Chromium on the client's host with an empty profile and the name server `near` or `far`.
///
/// # Errors
/// When it is missing or cannot start.
pub(super) fn browse(
    (folder, network): (&Folder, &TestNetwork),
    names: &str,
    url: &str,
) -> Result<Program, LabError> {
    let profile = folder.path("profile");
    match fs::remove_dir_all(&profile) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(failed("the browser's profile")(error));
        }
        _ => {}
    }
    let mut command = Command::new("unshare");
    let script = "mount --bind \"$0\" /etc/resolv.conf && exec \"$@\"";
    command.args(["--mount", "sh", "-c", script]).arg(folder.path(&format!("{names}.resolv")));
    command.arg("chromium").args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--ignore-certificate-errors",
    ]);
    command.arg(format!("--user-data-dir={}", profile.display())).arg(url);
    Ok(Program::start(Some(&network.net.client), command, "")?)
}

/// Content that `page.js` generates as well.
fn content(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 + (at >> 8)) as u8).collect()
}

/// A Windows bitmap of 24 bits a pixel, whose pixels depend on `number`.
fn bitmap(number: usize) -> Vec<u8> {
    let pixels = SIDE * SIDE * 3;
    let mut file = b"BM".to_vec();
    for field in [54 + pixels, 0, 54, 40, SIDE, SIDE, 24 << 16 | 1, 0, pixels, 0, 0, 0, 0] {
        file.extend(field.to_le_bytes());
    }
    file.extend((0..pixels as usize).map(|at| ((at + number) * 37) as u8));
    file
}

/// A minute of silence: 16-bit samples, 48,000 a second.
fn sound() -> Vec<u8> {
    const RATE: u32 = 48_000;
    const OCTETS: u32 = 60 * RATE * 2;
    let mut file = b"RIFF".to_vec();
    file.extend((36 + OCTETS).to_le_bytes());
    file.extend(b"WAVEfmt ");
    for field in [16, 1 << 16 | 1, RATE, RATE * 2, 16 << 16 | 2] {
        file.extend(u32::to_le_bytes(field));
    }
    file.extend(b"data");
    file.extend(OCTETS.to_le_bytes());
    file.resize(file.len() + OCTETS as usize, 0);
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_and_sound_have_the_length_of_their_heads() {
        let image = bitmap(3);
        assert_eq!(image[2..6], (image.len() as u32).to_le_bytes());
        let sound = sound();
        assert_eq!(sound[4..8], (sound.len() as u32 - 8).to_le_bytes());
    }
}
