//! The emulator between the terminal and the hub, and what enters the link.

use super::meter::{Meter, Reading};
use crate::LabError;
use rt::emulator::{Emulator, EmulatorConfig, Handle, Ports, Summary};
use satlink::LinkConfig;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread::JoinHandle;
use testbed::Satellite;
use units::{Instant, Span};

/// A running emulator.
#[derive(Debug)]
pub struct Emulation {
    meter: Meter,
    handle: Handle,
    thread: Option<JoinHandle<Result<Summary, String>>>,
}

impl Emulation {
    pub(crate) fn start(net: &Satellite, link: &LinkConfig, seed: u64) -> Result<Self, LabError> {
        let ports = Ports::Interfaces {
            a: Satellite::TO_HUB.to_owned(),
            b: Satellite::TO_TERMINAL.to_owned(),
        };
        let emulator = EmulatorConfig { seed, ..EmulatorConfig::new(link.clone(), ports) };
        let (ready, readiness) = mpsc::channel();
        let thread = net.space.spawn("emulator", move || {
            let opened = Emulator::open(emulator).map_err(|error| error.to_string());
            let emulator = opened.inspect_err(|error| {
                // Whoever waits has gone when nobody listens.
                let _ = ready.send(Err(error.clone()));
            })?;
            let _ = ready.send(Ok(emulator.handle()));
            emulator.run(&AtomicBool::new(false)).map_err(|error| error.to_string())
        });
        let gone = || LabError::Emulator("ended before it began".to_owned());
        let handle = readiness.recv().map_err(|_| gone())?.map_err(LabError::Emulator)?;
        Ok(Self { meter: Meter::start(net), handle, thread: Some(thread) })
    }

    /// What has entered the link since `from`; the last reading before it comes first.
    pub fn readings(&self, from: Instant) -> Vec<Reading> {
        self.meter.since(from)
    }

    /// Lets nothing through for `length`, from now on.
    ///
    /// # Errors
    /// When the emulator has ended.
    pub fn outage(&self, length: Span) -> Result<(), LabError> {
        self.handle.outage(length).map_err(|error| LabError::Emulator(error.to_string()))
    }

    /// Changes the link from now on.
    ///
    /// # Errors
    /// When the link makes no sense, or the emulator has ended.
    pub fn reconfigure(&self, link: LinkConfig) -> Result<(), LabError> {
        self.handle.reconfigure(link).map_err(|error| LabError::Emulator(error.to_string()))
    }

    pub(super) fn stop(mut self) -> Result<Summary, LabError> {
        self.handle.stop();
        let thread = self.thread.take().expect("the emulator is stopped once");
        let gone = |_| LabError::Emulator("its thread panicked".to_owned());
        thread.join().map_err(gone)?.map_err(LabError::Emulator)
    }
}

impl Drop for Emulation {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // What it has to say nobody asked for.
        }
    }
}
