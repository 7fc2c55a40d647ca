//! A rate limit for each log statement, so that outsiders cannot fill the disk.

use rt::Clock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tracing::callsite::Identifier;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use units::{Instant, Span};

/// Maximum lines of one log statement in each [`WINDOW`].
const MOST: u32 = 20;
/// The same for the configured lines per connection.
const MOST_CONNECTIONS: u32 = 5_000;
/// The target of such lines.
pub(crate) const CONNECTIONS: &str = "bentpipe::connection";
const WINDOW: Span = Span::from_secs(10);

/// Counts of written and omitted lines, by log statement, whose number bounds the table.
type Places = Mutex<HashMap<Identifier, Place>>;

/// The table of the logging that this process has started.
static PLACES: OnceLock<Arc<Places>> = OnceLock::new();

/// Recent lines of one log statement.
#[derive(Debug)]
struct Place {
    metadata: &'static Metadata<'static>,
    since: Instant,
    written: u32,
    left_out: u64,
}

/// A filter that omits lines above the limit.
#[derive(Debug)]
pub(super) struct Limiter {
    clock: Clock,
    places: Arc<Places>,
}

impl Limiter {
    /// Returns the filter whose omissions [`tell_left_out`] logs.
    pub(super) fn of_process() -> Self {
        let places = PLACES.get_or_init(Arc::default);
        Self { clock: Clock::new(), places: Arc::clone(places) }
    }
}

impl<S: Subscriber> Layer<S> for Limiter {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        // Levels above `info` are not limited.
        if *metadata.level() > Level::INFO {
            return true;
        }
        let now = self.clock.now();
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let place = places.entry(metadata.callsite()).or_insert(Place {
            metadata,
            since: now,
            written: 0,
            left_out: 0,
        });
        place.may_write(now)
    }
}

impl Place {
    fn may_write(&mut self, now: Instant) -> bool {
        if now.since(self.since) >= WINDOW {
            (self.since, self.written) = (now, 0);
        }
        let most = if self.metadata.target() == CONNECTIONS { MOST_CONNECTIONS } else { MOST };
        let fits = self.written < most;
        if fits {
            self.written += 1;
        } else {
            self.left_out += 1;
        }
        fits
    }
}

/// Logs how many lines were omitted since the last call, if any.
pub(super) fn tell_left_out() {
    if let Some(places) = PLACES.get() {
        tell(places);
    }
}

fn tell(places: &Places) {
    let left_out: Vec<(&Metadata<'_>, u64)> = {
        let mut places = places.lock().unwrap_or_else(PoisonError::into_inner);
        places
            .values_mut()
            .filter(|place| place.left_out > 0)
            .map(|place| (place.metadata, std::mem::take(&mut place.left_out)))
            .collect()
    };
    for (place, lines) in left_out {
        let at = format!("{}:{}", place.file().unwrap_or("?"), place.line().unwrap_or(0));
        tracing::warn!(lines, level = %place.level(), at, "log rate limit: similar lines omitted");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logging::captured::Captured;
    use tracing_subscriber::layer::SubscriberExt;

    #[test]
    fn excess_log_lines_are_omitted_and_counted() {
        let written = Captured::default();
        let writer = written.clone();
        let lines =
            tracing_subscriber::fmt::layer().with_ansi(false).with_writer(move || writer.clone());
        let limiter = Limiter { clock: Clock::new(), places: Arc::default() };
        let places = Arc::clone(&limiter.places);
        let layers = tracing_subscriber::registry().with(limiter).with(lines);
        tracing::subscriber::with_default(layers, || {
            for number in 0..1000 {
                tracing::info!(number, "a client that nobody asked");
            }
            tracing::info!("another place");
            for _ in 0..200 {
                tracing::info!(target: CONNECTIONS, "a connection");
            }
            tell(&places);
        });
        let text = written.text();
        let count = |words: &str| text.lines().filter(|line| line.contains(words)).count();
        assert_eq!(count("a client that nobody asked"), MOST as usize);
        assert_eq!(count("another place"), 1);
        assert_eq!(count("a connection"), 200);
        assert_eq!(count("lines=980"), 1, "{text}");
    }

    #[test]
    fn a_place_may_write_again_later() {
        let metadata = tracing::info_span!("place").metadata();
        let Some(metadata) = metadata else { return };
        let mut place = Place { metadata, since: Instant::ZERO, written: MOST, left_out: 0 };
        assert!(!place.may_write(Instant::ZERO));
        assert!(place.may_write(Instant::ZERO + WINDOW));
        assert_eq!(place.left_out, 1);
    }
}
