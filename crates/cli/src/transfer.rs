//! `bentpipe send` and `bentpipe receive`.

mod local;
mod progress;

use crate::Outcome;
use clap::Args;
use local::{Common, Local};
use progress::Progress;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use transfer::{Folder, Output, Source, Summary, TransferError};

/// Maximum number of senders at a time.
const MAX_SENDERS: usize = 64;

/// Send files and folders to `bentpipe receive`, over XSTP
///
/// An interrupted transfer continues, also after both programs were ended: repeat the command. A
/// file that the receiver has with this size and time is not sent.
#[derive(Args)]
#[command(after_help = "Example: bentpipe send --to receiver.example:7001 --peer-key \
                  xkIMJWyn/xspNGo5qjHnn+SGC7S1eLi3kOC9LDaf/34= photos")]
pub struct Send {
    /// Files and folders; - is standard input
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Name of standard input at the receiver
    #[arg(long, default_value = "stdin")]
    name: String,
    /// Address of the receiver; or --listen. With --kiss its call sign
    #[arg(
        long,
        value_name = "HOST:PORT|CALL",
        required_unless_present = "listen",
        conflicts_with = "listen"
    )]
    to: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// Receive files and folders from `bentpipe send`, over XSTP
///
/// Files are written into FOLDER and nowhere else. Incomplete ones are in FOLDER/.bentpipe-partial
/// until their content is verified. With --listen or --kiss it receives from any number of senders
/// until it is ended.
#[derive(Args)]
#[command(after_help = "Example: bentpipe receive --listen 0.0.0.0:7001 --peer-key \
                  xcvHZvfOxkd6ty807qPyjRB92qlHFOvrbO4FcjvCUmA= incoming")]
pub struct Receive {
    /// The folder, created if it does not exist; - writes one file to standard output
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// Address of a sender that listens; or --listen. With --kiss the only call sign from which
    /// files are accepted
    #[arg(
        long,
        value_name = "HOST:PORT|CALL",
        required_unless_present_any = ["listen", "kiss"],
        conflicts_with = "listen"
    )]
    from: Option<String>,
    /// End after the first complete transfer
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    common: Common,
}

fn conclude(summary: Summary) -> Outcome {
    match summary.failed {
        0 => Ok(()),
        failed => Err(format!("{failed} files or folders were not transferred")),
    }
}

/// Sends files and folders, or standard input.
///
/// # Errors
/// If a file was not sent, or the receiver refuses.
pub fn send(arguments: &Send) -> Outcome {
    let is_input = arguments.paths.iter().any(|path| path == Path::new("-"));
    if is_input && arguments.paths.len() > 1 {
        return Err("standard input is sent alone".to_owned());
    }
    let mut source = match is_input {
        true => Source::input(io::stdin(), &arguments.name),
        false => Source::paths(&arguments.paths).map_err(|error| error.to_string())?,
    };
    let local = arguments.common.open(arguments.to.as_deref(), true)?;
    let total = source.is_repeatable().then(|| source.total().1);
    let progress = Progress::new(arguments.common.quiet, total);
    let mut has_begun = false;
    let summary = local.until_complete(&progress, |stream| {
        if has_begun && !source.is_repeatable() {
            let text = "interrupted, and standard input has no second beginning".to_owned();
            return Err(TransferError::Local(text));
        }
        has_begun = true;
        progress.restart();
        transfer::send(stream, &mut source, &mut |update| progress.update(update))
    })?;
    progress.finish(&summary);
    local.close(); // The receiver has everything.
    conclude(summary)
}

/// Receives files and folders.
///
/// # Errors
/// If a file was not stored, or the sender refuses.
pub fn receive(arguments: &Receive) -> Outcome {
    let common = &arguments.common;
    let is_output = arguments.folder == Path::new("-");
    let folder = match is_output {
        true => None,
        false => Some(Folder::open(&arguments.folder).map_err(|error| error.to_string())?),
    };
    let local = common.open(arguments.from.as_deref(), false)?;
    let progress = Progress::new(common.quiet, None);
    let summary = match folder {
        Some(folder) if local.is_server() && !arguments.once => {
            return serve(&local, &Arc::new(folder), common.quiet);
        }
        Some(folder) => local.until_complete(&progress, |stream| {
            transfer::receive(stream, &mut folder.store(), &mut |update| progress.update(update))
        })?,
        None => {
            let mut output = Output::new(io::stdout());
            local.until_complete(&progress, |stream| {
                transfer::receive(stream, &mut output, &mut |update| progress.update(update))
            })?
        }
    };
    progress.finish(&summary);
    local.close(); // The sender has the last message.
    conclude(summary)
}

/// Receives from any number of senders, each in a thread.
fn serve(local: &Local, folder: &Arc<Folder>, quiet: bool) -> Outcome {
    let running = Arc::new(());
    loop {
        let (mut stream, peer) = local.stream()?;
        // Senders beyond the limit are reset; they try again.
        if Arc::strong_count(&running) > MAX_SENDERS {
            continue;
        }
        let (folder, slot) = (Arc::clone(folder), Arc::clone(&running));
        let linger = local.linger();
        let work = move || {
            let progress = Progress::new(quiet, None);
            let mut report = |update: transfer::Update<'_>| progress.update(update);
            let result = transfer::receive(&mut stream, &mut folder.store(), &mut report);
            let _ = stream.wait_acknowledged(linger); // As for a client.
            match result {
                Ok(summary) => progress.finish(&summary),
                Err(error) => progress.note(&format!("from {peer}: {error}")),
            }
            drop(slot);
        };
        // Without a thread the stream is reset, and the sender tries again.
        if let Err(error) = thread::Builder::new().spawn(work) {
            eprintln!("a sender was not served: {error}");
        }
    }
}
