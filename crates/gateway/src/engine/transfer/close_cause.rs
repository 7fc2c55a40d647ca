//! Causes of the ends of connections, of which each is logged if configured.

use crate::engine::limits::rates::QuotaOwner;
use crate::engine::peers::peer::StreamKey;
use crate::engine::transfer::connection::{Connection, Stage};
use crate::engine::transfer::connections::Core;
use crate::logging::CONNECTIONS;
use relay::StreamId;
use std::borrow::Cow;

/// Cause of a connection's end, as far as it is known before the end.
#[derive(Debug, Default)]
pub(crate) struct CloseCause {
    /// First cause that was found; later ones follow from it.
    cause: Option<Cow<'static, str>>,
    /// Stream number, which both gateways log, also after the stream is gone.
    pub(crate) stream: Option<StreamId>,
}

impl CloseCause {
    /// An unknown cause for a connection with this stream.
    pub(crate) fn of(key: Option<StreamKey>) -> Self {
        Self { cause: None, stream: key.map(|key| key.stream) }
    }
}

/// Settings of the log of connections.
#[derive(Debug, Default)]
pub(crate) struct ConnectionLog {
    pub(crate) wanted: bool,
    /// Name of this terminal; connections of a hub have the names of their terminals.
    pub(crate) name: String,
}

impl<S: Stage> Core<S> {
    /// Sets the cause of the connection's end, unless another was found before.
    pub(crate) fn set_close_cause(&mut self, index: usize, cause: impl Into<Cow<'static, str>>) {
        if self.connection_log.wanted
            && let Some(connection) = self.connections.get_mut(index)
        {
            connection.close_cause.cause.get_or_insert_with(|| cause.into());
        }
    }

    /// Logs the end of a connection.
    pub(crate) fn log_end(&self, connection: &Connection<S>) {
        if !self.connection_log.wanted {
            return;
        }
        let Connection { id, close_cause, info, quota_owner, .. } = connection;
        let terminal = match quota_owner {
            Some(QuotaOwner::Terminal(name)) => name,
            Some(QuotaOwner::Client(_) | QuotaOwner::Neighbour(_)) | None => {
                self.connection_log.name.as_str()
            }
        };
        let unknown = || "-".to_owned();
        let seconds = self.now.since(info.since).as_secs_f64();
        tracing::info!(
            target: CONNECTIONS,
            connection = id,
            stream = close_cause.stream.map_or_else(unknown, |stream| stream.to_string()),
            terminal,
            client = info.client.map_or_else(unknown, |client| client.to_string()),
            destination = info.server.as_ref().map_or_else(unknown, ToString::to_string),
            cause = close_cause.cause.as_deref().unwrap_or("ended by the gateway"),
            from_socket = info.from_socket,
            to_socket = info.to_socket,
            seconds = (seconds * 1000.0).round() / 1000.0,
            "connection"
        );
    }
}
