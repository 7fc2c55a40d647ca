//! The last warnings and errors of this process, which a terminal reports to its hub.

use relay::ReportedMessage;
use rt::Clock;
use std::collections::VecDeque;
use std::fmt::{Debug, Write};
use std::sync::{Mutex, PoisonError};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Number of messages that are kept.
const KEPT: usize = 3;
/// Maximum length of a message, octets.
const MAX_LEN: usize = 120;

/// The messages, the newest first.
static MESSAGES: Mutex<VecDeque<ReportedMessage>> = Mutex::new(VecDeque::new());

/// Returns the last messages, the newest first.
pub(crate) fn messages() -> Vec<ReportedMessage> {
    MESSAGES.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
}

/// Keeps warnings and errors.
#[derive(Debug)]
pub(super) struct Recent {
    pub(super) clock: Clock,
}

impl<S: Subscriber> Layer<S> for Recent {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if *event.metadata().level() > Level::WARN {
            return;
        }
        let mut text = Text::default();
        event.record(&mut text);
        let unix_s = (self.clock.epoch_unix_ns() + self.clock.now().as_nanos()) / 1_000_000_000;
        let messages = &mut *MESSAGES.lock().unwrap_or_else(PoisonError::into_inner);
        keep(messages, ReportedMessage { unix_s, text: text.finish() });
    }
}

/// Adds a message in the place of an equal one.
fn keep(messages: &mut VecDeque<ReportedMessage>, new: ReportedMessage) {
    messages.retain(|message| message.text != new.text);
    messages.push_front(new);
    messages.truncate(KEPT);
}

/// The message of an event, and its fields.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Text {
    fn finish(self) -> String {
        let mut text = self.message + &self.fields;
        let end = (0..=MAX_LEN.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
        text.truncate(end.unwrap_or_default());
        text
    }
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::layer::SubscriberExt;

    #[test]
    fn the_last_warnings_are_kept() {
        let layers = tracing_subscriber::registry().with(Recent { clock: Clock::new() });
        tracing::subscriber::with_default(layers, || {
            tracing::error!("first");
            tracing::warn!(path = %"geo", "path down");
            for _ in 0..5 {
                tracing::warn!("{}", "ä".repeat(100));
            }
            tracing::info!("not a warning");
        });
        let texts: Vec<String> = messages().into_iter().map(|message| message.text).collect();
        assert_eq!(texts, ["ä".repeat(60), "path down path=geo".into(), "first".into()]);
    }
}
