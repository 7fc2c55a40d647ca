//! Names to addresses, on a few threads of their own: the system's resolver blocks.

use mio::Waker;
use std::collections::VecDeque;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex};

/// Names that may wait for a thread; more are turned away.
const QUEUE: usize = 256;
const THREADS: usize = 4;

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
    questions: VecDeque<(u64, String, u16)>,
    answers: Vec<Answer>,
    threads: usize,
    idle: usize,
    closed: bool,
}

impl Resolver {
    /// A resolver that wakes the loop by `waker` when it has answers. Threads start when there
    /// is something to ask.
    pub(super) fn new(waker: Waker) -> Self {
        let state = Mutex::new(State::default());
        Self { shared: Arc::new(Shared { state, wanted: Condvar::new(), waker }) }
    }

    /// Asks for the addresses of `name`; false when too many questions wait already.
    pub(super) fn ask(&self, key: u64, name: String, port: u16) -> bool {
        let mut state = lock(&self.shared);
        if state.questions.len() >= QUEUE {
            return false;
        }
        state.questions.push_back((key, name, port));
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
        let Some((key, name, port)) = state.questions.pop_front() else {
            state.idle += 1;
            state = shared.wanted.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
            state.idle -= 1;
            continue;
        };
        drop(state);
        let addresses = match (name.as_str(), port).to_socket_addrs() {
            Ok(addresses) => addresses.collect(),
            Err(error) => {
                tracing::debug!(?name, %error, "name not resolved");
                Vec::new()
            }
        };
        state = lock(shared);
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
        assert!(resolver.ask(7, "127.0.0.1".into(), 80));
        assert!(resolver.ask(8, "no.such.name.invalid".into(), 80));
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
}
