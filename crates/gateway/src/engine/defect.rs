//! Defects that are seeded by hand, one at a time, to see that storms find them. Where neither tests
//! nor the simulation are built, nothing of this is there.

/// A defect.
#[cfg_attr(
    not(any(test, feature = "simulation")),
    expect(unreachable_pub, reason = "exported by the simulation")
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// A splice shuts down its socket when the stream's end is announced, although bytes are
    /// still to be written.
    EarlyShutdown,
    /// A splice discards bytes that it has read from its socket and the stream did not take.
    LostBytes,
    /// A splice ignores that its socket is writable.
    LostWakeup,
    /// A socket error is taken for an end of stream.
    ResetAsEnd,
    /// A connection that is over keeps its slot.
    LeakedSlot,
    /// A lookup without a connection that needs it is not cancelled.
    LeakedLookup,
    /// A held SYN is reinjected before the server has answered.
    EarlyAccept,
    /// The loop does not wait while there is a connection.
    BusyLoop,
    /// No idle connection is reclaimed for a client that has fewer.
    NoReclaim,
    /// A drain does not wait for connections that run.
    HastyDrain,
    /// A drain does not announce the end of its sessions to the peers.
    NoGoaway,
    /// A hub that gives up connecting finishes the connection in order.
    OrderlyAbandonment,
    /// The last bytes of a connection that was reset have no more time although they wait for the
    /// link, or others of them arrive meanwhile.
    ImpatientReset,
}

/// All of them.
#[cfg(any(test, feature = "simulation"))]
pub const DEFECTS: [Defect; 13] = [
    Defect::EarlyShutdown,
    Defect::LostBytes,
    Defect::LostWakeup,
    Defect::ResetAsEnd,
    Defect::LeakedSlot,
    Defect::LeakedLookup,
    Defect::EarlyAccept,
    Defect::BusyLoop,
    Defect::NoReclaim,
    Defect::HastyDrain,
    Defect::NoGoaway,
    Defect::OrderlyAbandonment,
    Defect::ImpatientReset,
];

#[cfg(any(test, feature = "simulation"))]
std::thread_local! {
    static SEEDED: std::cell::Cell<Option<Defect>> = const { std::cell::Cell::new(None) };
}

/// Whether the gateways of this thread have `defect`.
#[cfg(any(test, feature = "simulation"))]
pub(in crate::engine) fn has(defect: Defect) -> bool {
    SEEDED.get() == Some(defect)
}

/// Gateways have no seeded defects.
#[cfg(not(any(test, feature = "simulation")))]
pub(in crate::engine) const fn has(_: Defect) -> bool {
    false
}

/// Has the gateways of this thread have `defect` while `run` does.
#[cfg(any(test, feature = "simulation"))]
pub fn with_defect<T>(defect: Defect, run: impl FnOnce() -> T) -> T {
    SEEDED.set(Some(defect));
    let result = run();
    SEEDED.set(None);
    result
}
