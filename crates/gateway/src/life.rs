//! A gateway's life: it works, it drains, it ends.
//!
//! ```text
//!   open ──▶ work ──asked to stop──▶ drain ──all finished, or limits.drain is over──▶ end
//!                 └─────────────asked twice, or at once─────────────────────────────▶
//! ```

use crate::engine::Pause;
use crate::{Error, Gateway, Stop};
use units::Instant;

impl Gateway {
    /// Works until it is asked to end; the kernel's tables are the caller's to clean.
    pub(crate) fn live(&mut self, stop: &Stop) -> Result<(), Error> {
        self.engine.watch(stop)?;
        loop {
            match self.engine.run(stop, Instant::FAR_FUTURE)? {
                Pause::End => break,
                Pause::Drain => self.drain(),
                Pause::Reload => self.reload(),
                Pause::Due => {}
            }
        }
        let left = self.engine.connections();
        if left > 0 {
            tracing::warn!(connections = left, "ends, and resets the connections that still run");
        }
        self.engine.close();
        Ok(())
    }

    /// New connections go their ordinary way or are refused; those that run may finish.
    fn drain(&mut self) {
        let limit = self.config.limits.drain;
        let connections = self.engine.connections();
        tracing::info!(connections, %limit, "asked to stop: running connections may finish");
        // First the kernel's rules, so that nobody is led to a listener that closes.
        if let Some(interception) = &mut self.interception
            && let Err(error) = interception.let_pass()
        {
            tracing::warn!(%error, "new connections are still intercepted");
        }
        self.engine.drain(limit);
    }
}
