//! A UDP path between a terminal and its hub that can be interrupted.

use super::harness::pause_ms;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Forwards datagrams between its clients and one hub.
pub(super) struct Line {
    /// The address at which a terminal reaches the hub.
    pub(super) address: SocketAddr,
    cut: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Line {
    pub(super) fn to(hub: SocketAddr) -> Self {
        let near = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let far = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        far.connect(hub).unwrap();
        for socket in [&near, &far] {
            socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        }
        let address = near.local_addr().unwrap();
        let [cut, over] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let flags = (Arc::clone(&cut), Arc::clone(&over));
        let thread = std::thread::spawn(move || carry(&near, &far, &flags.0, &flags.1));
        Self { address, cut, over, thread: Some(thread) }
    }

    /// Discards all datagrams from now on.
    pub(super) fn cut(&self) {
        self.cut.store(true, Ordering::Relaxed);
        // Datagrams in flight have arrived.
        pause_ms(100);
    }

    /// Forwards datagrams again.
    pub(super) fn mend(&self) {
        self.cut.store(false, Ordering::Relaxed);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn carry(near: &UdpSocket, far: &UdpSocket, cut: &AtomicBool, over: &AtomicBool) {
    let terminal = std::sync::Mutex::new(None);
    let passes = || !cut.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut buffer = [0; 2048];
            while !over.load(Ordering::Relaxed) {
                let Ok(count) = far.recv(&mut buffer) else { continue };
                let to = *terminal.lock().unwrap();
                if let Some(to) = to.filter(|_| passes()) {
                    let _ = near.send_to(&buffer[..count], to);
                }
            }
        });
        let mut buffer = [0; 2048];
        while !over.load(Ordering::Relaxed) {
            let Ok((count, from)) = near.recv_from(&mut buffer) else { continue };
            *terminal.lock().unwrap() = Some(from);
            if passes() {
                // Without a hub this returns an ICMP error.
                let _ = far.send(&buffer[..count]);
            }
        }
    });
}
