//! Analytical model of the scenarios: mean response time and object rate.
//!
//! A request waits for slots of its terminal and crosses the satellite; then the object returns.
//! Free slots are evenly spaced, so a terminal with `m` slots in a frame of `T` has one every `g =
//! T/m`. The terminal is a queue with the service time `g` per cell. Request and acknowledgements
//! of an object are `c` cells. With `n` clients of mean think time `Z` this is the
//! machine-repairman model, solved by mean value analysis (Reiser and Lavenberg 1980), one client
//! at a time:
//!
//! ```text
//!   R(n) = D + (b-1)·g + c·g·Q(n-1)      response time; b: cells of the request. Later cells delay
//!                                        only the requests behind them
//!   X(n) = n / (Z + R(n))                objects per second
//!   Q(n) = X(n)·c·g·(1 + Q(n-1))         requests in queue and in service
//!   D    = two satellite hops, local networks, and g/2 until the next slot
//! ```
//!
//! Demand assignment is omitted: its effect at the published load is small.

use units::Span;

/// One terminal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terminal {
    /// Number of clients.
    pub clients: u32,
    /// Mean slots per frame.
    pub slots: f64,
}

/// Parameters of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// Duration of a frame.
    pub period: Span,
    /// Round-trip propagation delay of the satellite.
    pub round_trip: Span,
    /// Local networks and all other constant delays.
    pub extra: Span,
    /// Mean think time.
    pub think: Span,
    /// Slots needed before the object can be sent: those of the request.
    pub cells_before: f64,
    /// Slots needed for an object in all.
    pub cells: f64,
}

/// Results of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    /// Objects per second, of all terminals.
    pub objects_per_s: f64,
    /// Mean response time in seconds.
    pub response_s: f64,
}

impl Model {
    /// The published network: frames of 250 ms, a round trip of 540 ms, a think time of 2 s, a
    /// request of two cells and one STAT of one cell per object.
    pub fn published() -> Self {
        Self {
            period: Span::from_millis(250),
            round_trip: Span::from_millis(540),
            extra: Span::from_millis(15),
            think: Span::from_secs(2),
            cells_before: 2.0,
            cells: 3.0,
        }
    }

    /// Solves the model for one terminal.
    pub fn terminal(&self, terminal: &Terminal) -> Predicted {
        let gap = self.period.as_secs_f64() / terminal.slots;
        let fixed = (self.round_trip + self.extra).as_secs_f64() + gap / 2.0;
        let think = self.think.as_secs_f64();
        // Cells behind the request delay only the requests that follow.
        let own = (self.cells_before - 1.0) * gap;
        let service = self.cells * gap;
        let (mut queue, mut rate, mut response) = (0.0, 0.0, fixed + own);
        for clients in 1..=terminal.clients {
            let wait = service * queue;
            response = fixed + own + wait;
            rate = f64::from(clients) / (think + response);
            // Requests in queue, and the one in service.
            queue = rate * (wait + service);
        }
        Predicted { objects_per_s: rate, response_s: response }
    }

    /// Totals of all terminals; response times are weighted by object rate.
    pub fn all(&self, terminals: &[Terminal]) -> Predicted {
        let each: Vec<Predicted> =
            terminals.iter().map(|terminal| self.terminal(terminal)).collect();
        let objects_per_s: f64 = each.iter().map(|one| one.objects_per_s).sum();
        let weighted: f64 = each.iter().map(|one| one.objects_per_s * one.response_s).sum();
        Predicted { objects_per_s, response_s: weighted / objects_per_s }
    }
}

/// The terminals of the published network, with `slots` of a frame divided equally or by clients.
pub fn published_terminals(slots: f64, weighted: bool) -> Vec<Terminal> {
    let clients = |place: usize| if place.is_multiple_of(2) { 5 } else { 1 };
    let terminal = |place: usize| {
        let share = if weighted { f64::from(clients(place)) / 60.0 } else { 1.0 / 20.0 };
        Terminal { clients: clients(place), slots: slots * share }
    };
    (0..20).map(terminal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_client_waits_for_half_a_slot_interval_and_its_cells() {
        let one = Terminal { clients: 1, slots: 2.5 };
        let said = Model::published().terminal(&one);
        // 555 ms of delay, 50 ms to a slot, 100 ms to the second.
        assert!((said.response_s - 0.705).abs() < 1e-9, "{said:?}");
        assert!((said.objects_per_s - 1.0 / 2.705).abs() < 1e-9);
    }

    #[test]
    fn many_clients_are_limited_by_the_slots() {
        let crowd = Terminal { clients: 1_000, slots: 3.0 };
        let said = Model::published().terminal(&crowd);
        // Three slots in 250 ms, three per object.
        assert!((said.objects_per_s - 4.0).abs() < 0.05, "{said:?}");
    }
}
