//! A program on a host, with the end of what it writes to its standard error.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use testbed::{Host, Process, TestbedError};

/// Lines of a program's standard error that are kept.
const LINES: usize = 20;

/// A running program. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Program {
    process: Process,
    errors: Arc<Mutex<VecDeque<String>>>,
    reader: Option<JoinHandle<()>>,
}

impl Program {
    /// Starts `command` on `host`, or on the machine itself for `None`, with `input` as its
    /// standard input.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn start(
        host: Option<&Host>,
        mut command: Command,
        input: &str,
    ) -> Result<Self, TestbedError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = match host {
            Some(host) => host.start(command)?,
            None => Process::start(command)?,
        };
        let mut stdin = process.child().stdin.take().expect("standard input is a pipe");
        // A program that ended before it read its input is found by `failure`.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        let stderr = process.child().stderr.take().expect("standard error is a pipe");
        let errors = Arc::new(Mutex::new(VecDeque::new()));
        let kept = Arc::clone(&errors);
        let reader = thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() == LINES {
                    kept.pop_front();
                }
                kept.push_back(line);
            }
        });
        Ok(Self { process, errors, reader: Some(reader) })
    }

    /// Its process number.
    pub(crate) fn id(&mut self) -> u32 {
        self.child().id()
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        self.process.child()
    }

    /// The end of its standard error so far.
    pub(crate) fn errors(&self) -> String {
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        errors.iter().cloned().collect::<Vec<_>>().join("\n")
    }

    /// Whether it has ended, and successfully.
    ///
    /// # Errors
    /// Those of the system's `wait`.
    pub(crate) fn ended(&mut self) -> io::Result<Option<bool>> {
        let status = self.child().try_wait()?;
        if status.is_some()
            && let Some(reader) = self.reader.take()
        {
            let _ = reader.join(); // It cannot panic, and the lines are what counts.
        }
        Ok(status.map(|status| status.success()))
    }

    /// Sends SIGTERM, waits, and returns what it wrote to its standard output.
    pub(crate) fn stop(mut self) -> String {
        self.process.terminate();
        let mut text = String::new();
        if let Some(output) = self.child().stdout.take() {
            // What cannot be read is not there.
            let _ = output.take(1 << 20).read_to_string(&mut text);
        }
        let _ = self.process.wait();
        text
    }
}
