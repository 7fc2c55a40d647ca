//! One end of a connection: the state machine, what it sends and when, and what it receives.
//!
//! ```text
//!                 layer above (Upper)
//!      fresh, again │           ▲ deliver, released
//!  ┌────────────────┼───────────┼──────────────────────────┐
//!  │ Session        ▼           │                          │
//!  │   sender ── polling    receiver      state            │
//!  │   pacing    congestion  round trip   handshakes       │
//!  └────────────────┬───────────▲──────────────────────────┘
//!    poll_transmit  ▼           │  handle_segment
//!                     segments
//! ```
//!
//! A session has no clock and no I/O. Its driver hands in segments with the time, asks for
//! segments until there are none, and comes back at the time that the session names. A session
//! delivers immediately, each packet as it arrives; a
//! [`Connection`](crate::Connection) puts bytes in order on top.

mod coverage;
mod events;
mod handshake;
mod incoming;
mod loading;
mod outgoing;
mod pacing;
mod parts;
mod polling;
mod probing;
pub mod receiver;
mod round_trip;
pub(crate) mod sender;
mod share;
mod snapshot;
mod state;
mod timers;
mod transitions;
mod upper;

pub use crate::config::{
    ConfigError, GatewayPolicy, Halve, LossRoundTrip, LowRatePolicy, ProbingConfig, RetransmitRule,
    SessionConfig, Spread, StpPolicy, XstpPolicy,
};
pub use coverage::Coverage;
pub use events::{Event, Statistics};
pub use incoming::ReceiveError;
pub use probing::ProbingStatistics;
pub use snapshot::{Learnt, Snapshot};
pub use state::{State, Stimulus};
pub use upper::{Filled, Upper};

use crate::config::Controller;
use crate::congestion::Congestion;
use crate::wire::Profile;
use alloc::collections::VecDeque;
use handshake::Handshake;
use pacing::Pacer;
use polling::{Polling, PollingConfig};
use probing::Probing;
use receiver::{Receiver, ReceiverConfig};
use round_trip::RoundTrip;
use sender::Sender;
use share::Share;
use units::{BitRate, Instant, Span};

/// One end of an XSTP connection, without I/O and without a clock.
#[derive(Clone, Debug)]
pub struct Session {
    config: SessionConfig,
    state: State,
    is_client: bool,
    /// The running incarnation; for a listener the last one that it must not accept again.
    incarnation: Option<u32>,
    /// The stamp of the peer's BGN or BGNAK; in long connections, one long after it.
    peer_began: Option<u32>,
    handshake: Handshake,
    sender: Sender,
    receiver: Receiver,
    polling: Polling,
    pacer: Pacer,
    share: Share,
    congestion: Congestion,
    round_trip: RoundTrip,
    /// The largest segment to send: our own limit, the path's and the peer's.
    max_segment: usize,
    /// The largest segment that the peer takes.
    peer_max_segment: usize,
    /// Pause between segments when a window controller paces.
    interval: Span,
    /// The layer above had something new when last asked.
    fresh_waiting: bool,
    /// The layer below has no room for data now.
    held: bool,
    /// What it was told that it may send at.
    granted: Option<BitRate>,
    /// A POLL goes with the segment that is being made, and the controller does not know yet.
    poll_untold: Option<u32>,
    /// Something that was lost more than once waits to be sent again, and a POLL with it.
    ask_when_resent: bool,
    /// Numbers to be sent again that may still go back to back.
    again_at_once: u32,
    probing: Probing,
    end_wanted: bool,
    /// Both directions came to an orderly end.
    ended: bool,
    /// The peer's window is open, or nothing waits for it.
    credit: bool,
    /// When the table last went from empty to not empty.
    armed_at: Instant,
    /// The latest time at which something may have been sent.
    stamped_at: Instant,
    last_data_sent: Option<Instant>,
    last_stat_sent: Option<Instant>,
    /// More parts of the list that is being sent are due at once.
    in_list: bool,
    /// Segments of the list that was sent last; the next one waits as much longer.
    list_parts: u64,
    /// When something was last heard, or the session began.
    last_heard: Instant,
    /// Since when the peer owes any sign of life.
    unanswered_since: Option<Instant>,
    /// Since when POLLs go unanswered for too long.
    outage_since: Option<Instant>,
    /// POLLs sent before this are no round-trip samples.
    samples_from: Instant,
    events: VecDeque<Event>,
    statistics: Statistics,
    coverage: Coverage,
}

/// Beginning and ending.
impl Session {
    /// A client's session. BGN goes with the first segment, and data with it if there is any.
    ///
    /// `incarnation` must be above (serially) that of any earlier session between the same
    /// ends; 8 bits of it count as published, 32 when sealed.
    ///
    /// # Panics
    /// When the configuration is not [valid](SessionConfig::validate).
    pub fn connect(config: &SessionConfig, now: Instant, incarnation: u32) -> Self {
        let mut session = Self::new(config, now, true);
        session.state = State::Beginning;
        session.incarnation = Some(session.trim_incarnation(incarnation));
        session.handshake.begin();
        session.polling.want();
        session
    }

    /// A server's session, waiting for a BGN.
    ///
    /// # Panics
    /// When the configuration is not [valid](SessionConfig::validate).
    pub fn listen(config: &SessionConfig) -> Self {
        let mut session = Self::new(config, Instant::ZERO, false);
        session.state = State::Listening;
        session
    }

    /// As [`Session::listen`], but only incarnations newer than `last` are accepted: what
    /// arrives late from an older session cannot begin a new one.
    ///
    /// # Panics
    /// When the configuration is not [valid](SessionConfig::validate).
    pub fn listen_after(config: &SessionConfig, last: u32) -> Self {
        let mut session = Self::listen(config);
        session.incarnation = Some(session.trim_incarnation(last));
        session
    }

    fn new(config: &SessionConfig, now: Instant, is_client: bool) -> Self {
        if let Err(error) = config.validate() {
            panic!("session configuration: {error}");
        }
        let polling = PollingConfig {
            per_round_trip: config.polls_per_round_trip,
            round_trips: config.poll_round_trips,
            backoff_cap: config.poll_backoff_cap,
            tick: config.tick,
            spacing: config.control_spacing,
        };
        let mut sender = Sender::new(
            config.number_window,
            config.initial_peer_window,
            config.gateway.release_early,
        );
        sender.set_double(
            config.gateway.duplicate_from_retransmission,
            config.gateway.duplicate_first_packets,
        );
        sender.start_at(u64::from(config.first_number.value()));
        Self {
            state: State::Closed,
            is_client,
            incarnation: None,
            peer_began: None,
            handshake: Handshake::default(),
            sender,
            receiver: Receiver::new(&receiver_config(config)),
            polling: Polling::new(polling, count_before(&config.profile, now)),
            pacer: Pacer::new(config.pacing_burst),
            share: Share::default(),
            congestion: Congestion::new(config),
            round_trip: RoundTrip::new(config.initial_round_trip),
            max_segment: config.max_segment,
            peer_max_segment: usize::MAX,
            interval: Span::ZERO,
            fresh_waiting: true,
            held: false,
            granted: None,
            poll_untold: None,
            ask_when_resent: false,
            again_at_once: config.xstp.retransmit_burst,
            probing: Probing::default(),
            end_wanted: false,
            ended: false,
            credit: true,
            armed_at: now,
            stamped_at: Instant::ZERO,
            last_data_sent: None,
            last_stat_sent: None,
            in_list: false,
            list_parts: 0,
            last_heard: now,
            unanswered_since: None,
            outage_since: None,
            samples_from: Instant::ZERO,
            events: VecDeque::new(),
            statistics: Statistics::default(),
            coverage: Coverage::default(),
            config: config.clone(),
        }
    }

    /// The layer above sends nothing more: END goes out once everything is acknowledged. The
    /// peer's direction goes on.
    pub fn end(&mut self, now: Instant) {
        let _ = now;
        self.end_wanted = true;
    }

    /// Gives up: RST goes out, and the session is closed.
    pub fn abort(&mut self, now: Instant) {
        self.apply(now, Stimulus::Abort);
    }
}

/// What drivers and the layer above may know and set.
impl Session {
    /// The layer above has something new to send.
    pub fn wake(&mut self) {
        self.fresh_waiting = true;
    }

    /// The layer below shares its line among several sessions, and this one's data has to wait for
    /// its turn, or no longer (XSTP-8.1.8). What goes without data does not wait.
    pub fn hold_data(&mut self, held: bool) {
        self.held = held;
    }

    /// From when on data would go out if it were not [held](Self::hold_data); `None` when there is
    /// none that may.
    pub fn data_due(&self) -> Option<Instant> {
        self.state.is_connected().then(|| self.wanted_data_at()).flatten()
    }

    /// Whether the next packet is one that goes again.
    pub fn goes_again(&self) -> bool {
        self.sender.queued() > 0
    }

    /// The next thing that the layer above should know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Where the session is.
    pub fn state(&self) -> State {
        self.state
    }

    /// The smoothed round trip, once one was measured.
    pub fn round_trip(&self) -> Option<Span> {
        self.round_trip.measured()
    }

    /// The shortest round trip so far.
    pub fn least_round_trip(&self) -> Option<Span> {
        self.round_trip.least()
    }

    /// The counters.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Which events it has met in which states.
    pub fn coverage(&self) -> Coverage {
        self.coverage
    }

    /// Payload bytes sent and not released.
    pub fn outstanding_bytes(&self) -> u64 {
        self.sender.unreleased_bytes()
    }

    /// Numbers sent and not released.
    pub fn outstanding_numbers(&self) -> u64 {
        self.sender.unreleased()
    }

    /// The congestion window in bytes, if the controller keeps one.
    pub fn congestion_window(&self) -> Option<u64> {
        self.congestion.window()
    }

    /// What the next session on this way should begin with; `None` while it is not known.
    pub fn learnt(&self) -> Option<Learnt> {
        let round_trip = self.round_trip.least()?;
        self.congestion.learnt().map(|rate| Learnt { rate, round_trip })
    }

    /// Since when POLLs go unanswered for too long, while they do.
    pub fn outage_since(&self) -> Option<Instant> {
        self.outage_since
    }

    /// When another session between the same ends can begin, on the clock that this one was driven
    /// by: as published its stamps must be after all that this one used. POLLs in quick
    /// succession run ahead of the clock, and a clock that was set back is behind them all
    /// (XSTP-4.1.4, XSTP-4.1.5).
    pub fn renewable_at(&self) -> Instant {
        let Profile::Published(_) = &self.config.profile else { return Instant::ZERO };
        let tick = self.config.profile.tick();
        let stamped = self.stamped_at + tick;
        self.polling.last_sent().map_or(stamped, |sent| {
            let ahead = self.polling.count().wrapping_sub(stamp_of(&self.config.profile, sent));
            let ahead = u64::try_from(ahead as i32).unwrap_or(0);
            stamped.max(sent + tick * (ahead + 1))
        })
    }

    /// The incarnation that is running, once there is one.
    pub fn incarnation(&self) -> Option<u32> {
        self.incarnation
    }

    /// What was set about it.
    pub fn config(&self) -> &SessionConfig {
        &self.config
    }

    /// How segments are written.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn profile(&self) -> &Profile {
        &self.config.profile
    }

    /// The largest segment that goes out now, in bytes with XSTP's header.
    pub fn max_segment(&self) -> usize {
        self.max_segment
    }

    /// The path's MTU changed: segments carry at most `bytes` from now on, never more than is
    /// configured or than the peer takes, and never fewer than a header with 64 payload bytes.
    pub fn set_max_segment(&mut self, bytes: usize) {
        let least = self.config.data_overhead() + 64;
        let most = self.config.max_segment.min(self.peer_max_segment);
        self.max_segment = bytes.min(most).max(least);
    }

    /// The most that this side sends at is `rate` from now on; `None`: what the controller finds.
    /// The controller `fixed` keeps its rate when there is none.
    pub fn set_max_rate(&mut self, rate: Option<BitRate>) {
        if rate.is_some() || self.config.controller != Controller::Fixed {
            self.config.max_rate = rate;
            self.congestion.set_most(self.config.paced_rate());
            if self.granted.is_some() {
                self.set_granted_rate(self.granted);
            }
        }
    }

    /// An idle session sends a POLL after `time` without word from the peer from now on; as
    /// [`SessionConfig::keep_alive`], above zero.
    pub fn set_keep_alive(&mut self, time: Span) {
        self.config.keep_alive = time.max(Span::from_nanos(1));
    }

    /// The layer above was told that this side may send at `rate` by now, of what it may send at
    /// most: what bounds it holds as well. A controller that sends at its bound goes on at the new
    /// one, without finding out what it was told.
    pub fn set_granted_rate(&mut self, rate: Option<BitRate>) {
        self.granted = rate;
        let most = self.config.paced_rate();
        let granted = rate.map(|rate| self.config.less_headroom(rate));
        let most = match (most, granted) {
            (Some(most), Some(granted)) => Some(most.min(granted)),
            (most, granted) => most.or(granted),
        };
        self.congestion.grant(most);
    }

    /// The way back takes so much from now on, as far as it is known; as
    /// [`SessionConfig::return_rate`].
    pub fn set_return_rate(&mut self, rate: Option<BitRate>) {
        self.config.reverse_rate = rate;
    }

    /// Numbers that the peer may have in use towards us from now on. What was offered already
    /// stays accepted.
    pub fn set_receive_window(&mut self, numbers: u32) {
        self.receiver.set_window(numbers.min(self.config.profile.max_window()));
    }
}

fn receiver_config(config: &SessionConfig) -> ReceiverConfig {
    ReceiverConfig {
        first: config.first_number,
        window: config.receive_window.min(config.profile.max_window()),
        ustat_threshold: config.ustat_threshold,
        ustat_hold: config.ustat_hold,
    }
}

/// The count before that of the first POLL. As published a POLL's count is its millisecond, so
/// what was sent before the first POLL counts as of the millisecond before.
fn count_before(profile: &Profile, now: Instant) -> u32 {
    match profile {
        Profile::Published(_) => stamp_of(profile, now).wrapping_sub(1),
        Profile::Sealed => 0,
    }
}

/// `now` in the profile's ticks.
fn stamp_of(profile: &Profile, now: Instant) -> u32 {
    (now.as_nanos() / profile.tick().as_nanos()) as u32
}

#[cfg(test)]
mod tests;
