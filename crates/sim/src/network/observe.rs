//! Time series of a network.

use super::Network;
use crate::Series;
use units::Span;
use xstp::session::Snapshot;

impl Network {
    /// Samples a variable now and then at this interval.
    ///
    /// # Panics
    /// If the interval is zero.
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

    /// Records a variable at every change. It is read after every instant with an event.
    pub fn watch(
        &mut self,
        name: &str,
        unit: &'static str,
        read: impl Fn(&Self) -> Option<f64> + 'static,
    ) {
        let now = self.now();
        self.recorders.add(Series::new(name, unit), None, now, read);
    }

    /// Samples all variables of a session at this interval, named after `name`.
    ///
    /// # Panics
    /// If the interval is zero.
    pub fn sample_session(
        &mut self,
        every: Span,
        name: &str,
        read: impl Fn(&Self) -> Option<Snapshot> + 'static,
    ) {
        let now = self.now();
        self.recorders.add_session(name, every, now, read);
    }

    /// All series, in the order of their registration.
    pub fn series(&self) -> impl Iterator<Item = &Series> {
        self.recorders.series()
    }
}
