//! The emulator between terminal and hub.

use super::meter::{Meter, Reading};
use crate::LabError;
use rt::emulator::{Emulator, EmulatorConfig, Handle, Ports, Summary};
use satlink::LinkConfig;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread::JoinHandle;
use testbed::{Host, Satellite};
use units::{Instant, Span};

/// A running emulator.
#[derive(Debug)]
pub struct Emulation {
    /// Of the first link only.
    meter: Option<Meter>,
    handle: Handle,
    thread: Option<JoinHandle<Result<Summary, String>>>,
}

/// The thread of an emulator, which ends with a summary.
pub(crate) type EmulatorThread<S> = JoinHandle<Result<S, String>>;

/// Opens an emulator in the namespace `space` and runs it there in a thread. Returns the handle
/// that `open` provides.
pub(crate) fn spawn_emulator<E: 'static, H: Send + 'static, S: Send + 'static>(
    space: &Host,
    open: impl FnOnce() -> Result<(E, H), String> + Send + 'static,
    run: fn(E) -> Result<S, String>,
) -> Result<(H, EmulatorThread<S>), LabError> {
    let (ready, readiness) = mpsc::channel();
    let thread = space.spawn("emulator", move || {
        let (emulator, handle) = open().inspect_err(|error| {
            // The receiver may be gone.
            let _ = ready.send(Err(error.clone()));
        })?;
        let _ = ready.send(Ok(handle));
        run(emulator)
    });
    let gone = || LabError::Emulator("ended before it began".to_owned());
    let handle = readiness.recv().map_err(|_| gone())?.map_err(LabError::Emulator)?;
    Ok((handle, thread))
}

impl Emulation {
    pub(crate) fn start(net: &Satellite, link: &LinkConfig, seed: u64) -> Result<Self, LabError> {
        let ends = [Satellite::TO_TERMINAL, Satellite::TO_HUB];
        let mut emulation = Self::between(net, ends, link, seed)?;
        emulation.meter = Some(Meter::start(net));
        Ok(emulation)
    }

    /// Starts the emulator of the [second link](Satellite::add_second).
    pub(crate) fn second(net: &Satellite, link: &LinkConfig, seed: u64) -> Result<Self, LabError> {
        Self::between(net, Satellite::SECOND, link, seed)
    }

    fn between(
        net: &Satellite,
        [terminal, hub]: [&str; 2],
        link: &LinkConfig,
        seed: u64,
    ) -> Result<Self, LabError> {
        let ports = Ports::Interfaces { a: hub.to_owned(), b: terminal.to_owned() };
        let emulator = EmulatorConfig { seed, ..EmulatorConfig::new(link.clone(), ports) };
        let open = move || {
            let emulator = Emulator::open(emulator).map_err(|error| error.to_string())?;
            let handle = emulator.handle();
            Ok((emulator, handle))
        };
        let (handle, thread) = spawn_emulator(&net.space, open, |emulator| {
            emulator.run(&AtomicBool::new(false)).map_err(|error| error.to_string())
        })?;
        Ok(Self { meter: None, handle, thread: Some(thread) })
    }

    /// Returns the readings of the link's input since `from`, preceded by the last one before it.
    pub fn readings(&self, from: Instant) -> Vec<Reading> {
        self.meter.as_ref().map(|meter| meter.since(from)).unwrap_or_default()
    }

    /// Starts an outage of `length`.
    ///
    /// # Errors
    /// If the emulator has ended.
    pub fn outage(&self, length: Span) -> Result<(), LabError> {
        self.handle.outage(length).map_err(|error| LabError::Emulator(error.to_string()))
    }

    /// Changes the link.
    ///
    /// # Errors
    /// If the link is invalid, or the emulator has ended.
    pub fn reconfigure(&self, link: LinkConfig) -> Result<(), LabError> {
        self.handle.reconfigure(link).map_err(|error| LabError::Emulator(error.to_string()))
    }

    /// Stops the emulator, and returns its summary.
    pub(crate) fn stop(mut self) -> Result<Summary, LabError> {
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
            let _ = thread.join();
        }
    }
}
