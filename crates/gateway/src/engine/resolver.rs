//! Names to addresses, on a few threads of their own: the system's resolver blocks.

use super::quota::Holder;
use mio::Waker;
use std::collections::VecDeque;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex};

/// Names that may wait for a thread; more are turned away.
const QUEUE: usize = 256;
const THREADS: usize = 8;
/// How much of the queue, and of the threads, one of those who ask may have: names that take for
/// ever are easily made up, and must not keep others from theirs.
const SHARE: usize = 2;

/// What came of a question.
#[derive(Debug)]
pub(super) struct Answer {
    /// Who asked.
    pub(super) key: u64,
    /// The addresses; empty when there are none, or the question could not be answered.
    pub(super) addresses: Vec<SocketAddr>,
}

/// A bounded pool of threads that ask the system's resolver.
#[derive(Debug)]
pub(super) struct Resolver {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    wanted: Condvar,
    waker: Waker,
}

#[derive(Debug, Default)]
struct State {
    questions: VecDeque<Question>,
    /// On whose behalf threads are at work.
    busy: Vec<Holder>,
    answers: Vec<Answer>,
    threads: usize,
    idle: usize,
    closed: bool,
}

#[derive(Debug)]
struct Question {
    key: u64,
    who: Holder,
    name: String,
    port: u16,
}

impl State {
    /// The first question of somebody who has threads left.
    fn next(&mut self) -> Option<Question> {
        let at = |who: &Holder| self.busy.iter().filter(|&other| other == who).count();
        let next =
            self.questions.iter().position(|question| at(&question.who) < THREADS / SHARE)?;
        self.questions.remove(next)
    }
}

impl Resolver {
    /// A resolver that wakes the loop by `waker` when it has answers. Threads start when there
    /// is something to ask.
    pub(super) fn new(waker: Waker) -> Self {
        let state = Mutex::new(State::default());
        Self { shared: Arc::new(Shared { state, wanted: Condvar::new(), waker }) }
    }

    /// Asks for the addresses of `name` for `who`; false when too many questions wait already, of
    /// all or of the same.
    pub(super) fn ask(&self, key: u64, who: Holder, name: String, port: u16) -> bool {
        let mut state = lock(&self.shared);
        let of_the_same = state.questions.iter().filter(|question| question.who == who).count();
        if state.questions.len() >= QUEUE || of_the_same >= QUEUE / SHARE {
            return false;
        }
        state.questions.push_back(Question { key, who, name, port });
        if state.questions.len() > state.idle && state.threads < THREADS {
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new().name("resolver".into());
            match thread.spawn(move || answer(&shared)) {
                Ok(_) => state.threads += 1,
                // With no thread at all nobody would ever answer.
                Err(_) if state.threads == 0 => {
                    state.questions.pop_back();
                    return false;
                }
                Err(_) => {}
            }
        }
        self.shared.wanted.notify_one();
        true
    }

    /// The answers since the last call.
    pub(super) fn answers(&self) -> Vec<Answer> {
        std::mem::take(&mut lock(&self.shared).answers)
    }
}

impl Drop for Resolver {
    /// The threads end when they are done with what they are at: nobody waits for a name server.
    fn drop(&mut self) {
        let mut state = lock(&self.shared);
        state.closed = true;
        state.questions.clear();
        self.shared.wanted.notify_all();
    }
}

fn answer(shared: &Shared) {
    let mut state = lock(shared);
    loop {
        if state.closed {
            return;
        }
        let Some(Question { key, who, name, port }) = state.next() else {
            state.idle += 1;
            state = shared.wanted.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
            state.idle -= 1;
            continue;
        };
        state.busy.push(who.clone());
        drop(state);
        let addresses = match (name.as_str(), port).to_socket_addrs() {
            Ok(addresses) => addresses.collect(),
            Err(error) => {
                tracing::debug!(?name, %error, "name not resolved");
                Vec::new()
            }
        };
        state = lock(shared);
        if let Some(done) = state.busy.iter().position(|other| *other == who) {
            state.busy.swap_remove(done);
        }
        state.answers.push(Answer { key, addresses });
        wake(&shared.waker);
    }
}

fn wake(waker: &Waker) {
    if let Err(error) = waker.wake() {
        tracing::warn!(%error, "the loop was not woken for a resolved name");
    }
}

/// No thread panics while it holds the lock, and what it guards is valid between statements.
fn lock(shared: &Shared) -> std::sync::MutexGuard<'_, State> {
    shared.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mio::{Events, Poll, Token};
    use std::time::Duration;

    #[test]
    fn answers_wake_the_loop_and_find_who_asked() {
        let mut poll = Poll::new().unwrap();
        let waker = Waker::new(poll.registry(), Token(1)).unwrap();
        let resolver = Resolver::new(waker);
        let who = Holder::Terminal("boat".into());
        assert!(resolver.ask(7, who.clone(), "127.0.0.1".into(), 80));
        assert!(resolver.ask(8, who, "no.such.name.invalid".into(), 80));
        let mut answers = Vec::new();
        let mut events = Events::with_capacity(4);
        while answers.len() < 2 {
            poll.poll(&mut events, Some(Duration::from_secs(30))).unwrap();
            assert!(!events.is_empty(), "no answer");
            answers.extend(resolver.answers());
        }
        answers.sort_by_key(|answer| answer.key);
        assert_eq!(answers[0].addresses, ["127.0.0.1:80".parse().unwrap()]);
        assert_eq!((answers[1].key, answers[1].addresses.len()), (8, 0));
    }

    #[test]
    fn one_who_asks_too_much_leaves_room_for_others() {
        let (one, other) = (Holder::Terminal("one".into()), Holder::Terminal("other".into()));
        let question =
            |who: &Holder| Question { key: 0, who: who.clone(), name: "x".into(), port: 1 };
        let mut state = State::default();
        state.questions.extend((0..20).map(|_| question(&one)));
        state.questions.push_back(question(&other));
        // Threads that never come back.
        for _ in 0..THREADS / SHARE {
            assert_eq!(state.next().unwrap().who, one);
            state.busy.push(one.clone());
        }
        assert_eq!(state.next().unwrap().who, other);
        assert!(state.next().is_none(), "the others wait until one of these is done");
        state.busy.pop();
        assert_eq!(state.next().unwrap().who, one);
    }

    #[test]
    fn the_queue_is_shared_too() {
        let poll = Poll::new().unwrap();
        let resolver = Resolver::new(Waker::new(poll.registry(), Token(1)).unwrap());
        // Nobody works, so that all wait.
        lock(&resolver.shared).threads = THREADS;
        let ask = |who: &str| resolver.ask(1, Holder::Terminal(who.into()), "x".into(), 80);
        assert_eq!((0..QUEUE).filter(|_| ask("one")).count(), QUEUE / SHARE);
        assert_eq!((0..QUEUE).filter(|_| ask("other")).count(), QUEUE / SHARE);
        assert!(!ask("third"));
    }
}
