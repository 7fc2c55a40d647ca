//! A live view of a gateway, updated once per second.

mod frame;
mod sampler;
mod screen;

use crate::{Client, Error, Page, Question, Status};
use frame::{Look, Order};
use rt::Clock;
use sampler::Sampler;
use screen::{Key, Screen};
use std::io::{IsTerminal, Write};
use std::path::Path;
use units::{Instant, Span};

/// Connections per request, and maximum number of such requests.
const PAGE: usize = 500;
const PAGES: usize = 20;

/// Options of the live view.
#[derive(Clone, Debug)]
pub struct Options {
    /// Interval between updates.
    pub interval: Span,
    /// Maximum number of updates.
    pub count: Option<u64>,
    /// Only connections of one terminal.
    pub terminal: Option<String>,
}

impl Default for Options {
    /// Updates every second without limit, of all connections.
    fn default() -> Self {
        Self { interval: Span::from_secs(1), count: None, terminal: None }
    }
}

/// Shows the gateway at `socket`, or the only one of this machine, until the user quits: as a
/// screen on a terminal, otherwise as one page after another.
///
/// # Errors
/// If the gateway does not respond.
pub fn run(socket: Option<&Path>, options: &Options) -> Result<(), Error> {
    let mut client = Client::find(socket)?;
    if std::io::stdout().is_terminal() {
        let mut screen = Screen::open()?;
        let result = live(&mut client, options, &mut screen);
        // The terminal is restored before errors are handled.
        drop(screen);
        result
    } else {
        pages(&mut client, options)
    }
}

/// Queries the gateway; returns the data with the rates since the last update.
fn look(
    client: &mut Client,
    options: &Options,
    sampler: &mut Sampler,
    now: Instant,
) -> Result<(), Error> {
    let status: Status = client.ask(&Question::Status)?;
    let mut connections = Vec::new();
    let mut after = 0;
    for _ in 0..PAGES {
        let terminal = options.terminal.clone();
        let page: Page = client.ask(&Question::Connections { after, most: PAGE, terminal })?;
        let last = page.connections.last().map(|connection| connection.number);
        connections.extend(page.connections);
        match last {
            Some(last) if page.more => after = last,
            Some(_) | None => break,
        }
    }
    sampler.take(now, status, connections);
    Ok(())
}

fn live(client: &mut Client, options: &Options, screen: &mut Screen) -> Result<(), Error> {
    let clock = Clock::new();
    let mut sampler = Sampler::default();
    let mut order = Order::default();
    let (mut paused, mut first, mut looks) = (false, 0usize, 0);
    let mut due = clock.now();
    loop {
        if clock.now() >= due {
            if !paused {
                look(client, options, &mut sampler, clock.now())?;
                looks += 1;
            }
            due = clock.now() + options.interval;
        }
        let (width, height) = screen.size();
        let view = Look { order, paused, first, width, height, keys: true };
        screen.show(&frame::frame(&sampler, &view))?;
        if options.count.is_some_and(|count| looks >= count) {
            return Ok(());
        }
        match screen.key(due.since(clock.now()))? {
            Some(Key::Quit) => return Ok(()),
            Some(Key::Pause) => paused = !paused,
            Some(Key::Order) => order = order.next(),
            Some(Key::Down(lines)) => first = (first + lines).min(sampler.connections().len()),
            Some(Key::Up(lines)) => first = first.saturating_sub(lines),
            Some(Key::Other) | None => {}
        }
    }
}

fn pages(client: &mut Client, options: &Options) -> Result<(), Error> {
    let clock = Clock::new();
    let mut sampler = Sampler::default();
    let mut looks = 0;
    loop {
        look(client, options, &mut sampler, clock.now())?;
        looks += 1;
        let view = Look { width: 160, height: 60, keys: false, ..Look::default() };
        let mut text = String::new();
        for line in frame::frame(&sampler, &view) {
            let plain: String = line.iter().map(|(text, _)| text.as_str()).collect();
            text.push_str(plain.trim_end());
            text.push('\n');
        }
        text.push('\n');
        match std::io::stdout().write_all(text.as_bytes()) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
            other => other?,
        }
        if options.count.is_some_and(|count| looks >= count) {
            return Ok(());
        }
        clock.sleep_until(clock.now() + options.interval);
    }
}
