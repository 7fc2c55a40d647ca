//! How connections end, for the log: a line for each where the configuration asks for it.

use crate::engine::limits::rates::Holder;
use crate::engine::peers::relay_set::StreamKey;
use crate::engine::transfer::connection::Connection;
use crate::engine::transfer::connections::Core;
use crate::logging::CONNECTIONS;
use relay::StreamId;
use std::borrow::Cow;

/// What is known of a connection's end, before it has come.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    /// The first cause that was found; what follows from it is none.
    cause: Option<Cow<'static, str>>,
    /// The number that both gateways know it by, also when the stream is gone.
    pub(crate) stream: Option<StreamId>,
}

impl Ending {
    /// Nothing is known yet of the end of a connection with this stream.
    pub(crate) fn of(key: Option<StreamKey>) -> Self {
        Self { cause: None, stream: key.map(|key| key.stream) }
    }
}

/// Whose connections are logged, if they are.
#[derive(Debug, Default)]
pub(crate) struct EndLog {
    pub(crate) wanted: bool,
    /// This terminal's own name; a hub's connections have their terminals'.
    pub(crate) name: String,
}

impl Core {
    /// The connection ends because of this, unless another cause was found before.
    pub(crate) fn because(&mut self, index: usize, cause: impl Into<Cow<'static, str>>) {
        if self.end_log.wanted
            && let Some(connection) = self.connections.get_mut(index)
        {
            connection.ending.cause.get_or_insert_with(|| cause.into());
        }
    }

    /// The connection is over.
    pub(crate) fn log_end(&self, connection: &Connection) {
        if !self.end_log.wanted {
            return;
        }
        let Connection { id, ending, about, holder, .. } = connection;
        let terminal = match holder {
            Some(Holder::Terminal(name)) => name,
            Some(Holder::Client(_) | Holder::Neighbour(_)) | None => self.end_log.name.as_str(),
        };
        let unknown = || "-".to_owned();
        let seconds = self.now.since(about.since).as_secs_f64();
        tracing::info!(
            target: CONNECTIONS,
            connection = id,
            stream = ending.stream.map_or_else(unknown, |stream| stream.to_string()),
            terminal,
            client = about.client.map_or_else(unknown, |client| client.to_string()),
            destination = about.server.as_ref().map_or_else(unknown, ToString::to_string),
            cause = ending.cause.as_deref().unwrap_or("ended by the gateway"),
            from_socket = about.from_socket,
            to_socket = about.to_socket,
            seconds = (seconds * 1000.0).round() / 1000.0,
            "connection"
        );
    }
}
