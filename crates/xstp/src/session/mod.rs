//! One end of a connection: the state machine, and what sends and receives.

pub mod receiver;
