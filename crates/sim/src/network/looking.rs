//! Series of what a network does.

use super::Network;
use crate::Series;
use units::Span;
use xstp::session::Snapshot;

impl Network {
    /// Samples a variable at once and then at this distance.
    ///
    /// # Panics
    /// When the distance is no time at all.
    pub fn sample(
        &mut self,
        every: Span,
        name: &str,
        unit: &'static str,
        read: impl Fn(&Self) -> Option<f64> + 'static,
    ) {
        let now = self.now();
        self.recorders.add(Series::new(name, unit), Some(every), now, read);
    }

    /// Takes a variable's value whenever it is another. It is read after every instant at which
    /// something happens.
    pub fn watch(
        &mut self,
        name: &str,
        unit: &'static str,
        read: impl Fn(&Self) -> Option<f64> + 'static,
    ) {
        let now = self.now();
        self.recorders.add(Series::new(name, unit), None, now, read);
    }

    /// Samples all variables of a session at this distance, named after `name`.
    ///
    /// # Panics
    /// When the distance is no time at all.
    pub fn sample_session(
        &mut self,
        every: Span,
        name: &str,
        read: impl Fn(&Self) -> Option<Snapshot> + 'static,
    ) {
        let now = self.now();
        self.recorders.add_session(name, every, now, read);
    }

    /// All series, in the order in which they were asked for.
    pub fn series(&self) -> impl Iterator<Item = &Series> {
        self.recorders.series()
    }
}
