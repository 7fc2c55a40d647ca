//! The scenarios by hand: mean response and objects, without simulating anything.
//!
//! A request waits for slots of its terminal, crosses the satellite, and the object comes back.
//! Free slots lie evenly, so a terminal with `m` slots in a frame of `T` has one every `g = T/m`.
//! The terminal is a queue whose server needs `g` for each cell; what is sent for each object, its
//! request and its share of acknowledgements, are `c` cells. With `n` clients who think for `Z`
//! on average that is the machine-repairman model, solved by mean value analysis (Reiser and
//! Lavenberg 1980), in steps of one client:
//!
//! ```text
//!   R(n) = D + (b-1)·g + c·g·Q(n-1)      response; b: cells of the request, the others go after
//!                                        it and delay only who comes behind
//!   X(n) = n / (Z + R(n))                objects in a second
//!   Q(n) = X(n)·c·g·(1 + Q(n-1))         who waits, and who is served
//!   D    = two crossings, local networks, and half a g to the next slot
//! ```
//!
//! Demand is left out: at the published load it moves next to nothing.

use units::Span;

/// One terminal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terminal {
    /// Clients.
    pub clients: u32,
    /// Slots of a frame, on average.
    pub slots: f64,
}

/// What the model is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// A frame.
    pub period: Span,
    /// There and back, slots and local networks aside.
    pub round_trip: Span,
    /// Local networks and everything else that is the same for all.
    pub extra: Span,
    /// The mean time between an object and the next request.
    pub think: Span,
    /// Slots that are needed until the object may come: the request's.
    pub cells_before: f64,
    /// Slots that are sent for an object in all.
    pub cells: f64,
}

/// What it says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    /// Objects in a second, of all terminals.
    pub objects_per_s: f64,
    /// Mean response, seconds.
    pub response_s: f64,
}

impl Model {
    /// The published network: 250 ms, 540 ms, 2 s; a request of two cells and, for each object, a
    /// STAT of one.
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

    /// Of one terminal, by mean value analysis.
    pub fn terminal(&self, terminal: &Terminal) -> Predicted {
        let gap = self.period.as_secs_f64() / terminal.slots;
        let fixed = (self.round_trip + self.extra).as_secs_f64() + gap / 2.0;
        let think = self.think.as_secs_f64();
        // What goes after the request does not delay its own object, only those behind it.
        let own = (self.cells_before - 1.0) * gap;
        let service = self.cells * gap;
        let (mut queue, mut rate, mut response) = (0.0, 0.0, fixed + own);
        for clients in 1..=terminal.clients {
            let wait = service * queue;
            response = fixed + own + wait;
            rate = f64::from(clients) / (think + response);
            // Those who wait, and the one that is served.
            queue = rate * (wait + service);
        }
        Predicted { objects_per_s: rate, response_s: response }
    }

    /// Of all terminals shared_weight: responses are weighted by objects.
    pub fn all(&self, terminals: &[Terminal]) -> Predicted {
        let each: Vec<Predicted> =
            terminals.iter().map(|terminal| self.terminal(terminal)).collect();
        let objects_per_s: f64 = each.iter().map(|one| one.objects_per_s).sum();
        let weighted: f64 = each.iter().map(|one| one.objects_per_s * one.response_s).sum();
        Predicted { objects_per_s, response_s: weighted / objects_per_s }
    }
}

/// The terminals of the published network, with `slots` of a frame shared equally or by clients.
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
    fn an_idle_terminal_waits_for_half_a_gap_and_its_own_cells() {
        let one = Terminal { clients: 1, slots: 2.5 };
        let said = Model::published().terminal(&one);
        // 555 ms, 50 ms to a slot, 100 ms to the second.
        assert!((said.response_s - 0.705).abs() < 1e-9, "{said:?}");
        assert!((said.objects_per_s - 1.0 / 2.705).abs() < 1e-9);
    }

    #[test]
    fn a_crowd_is_bound_by_the_slots() {
        let crowd = Terminal { clients: 1_000, slots: 3.0 };
        let said = Model::published().terminal(&crowd);
        // Three slots in 250 ms, three to an object.
        assert!((said.objects_per_s - 4.0).abs() < 0.05, "{said:?}");
    }
}
