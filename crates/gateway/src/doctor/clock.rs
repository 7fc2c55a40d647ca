//! The wall clock: for the dates of logs and tokens. Handshakes work with any.

use super::{Diagnosis, Status};
use crate::enrolment::utc;
use rt::Clock;

/// 2026-01-01, in seconds since 1970: no machine with this program is older.
const EARLIEST: u64 = 1_767_225_600;

pub(super) fn check(diagnosis: &mut Diagnosis) {
    check_at(diagnosis, Clock::unix_s(), is_synchronized());
}

pub(super) fn check_at(diagnosis: &mut Diagnosis, unix_s: u64, synchronized: Option<bool>) {
    let time = utc(unix_s);
    let remedy = "start a time service: timedatectl set-ntp true, or chrony";
    if unix_s < EARLIEST {
        let found = format!("it is {time} by this machine's clock; dates in logs are wrong");
        diagnosis.advise("clock", Status::Warning, found, remedy);
    } else if synchronized == Some(false) {
        let found = format!("{time}, and the kernel says that no time service sets the clock");
        diagnosis.advise("clock", Status::Warning, found, remedy);
    } else {
        diagnosis.add("clock", Status::Ok, time);
    }
}

/// Whether a time service sets the clock; `None` if the kernel does not say.
fn is_synchronized() -> Option<bool> {
    // SAFETY: all zero is a valid value of the structure.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `state` is valid for reads and writes; with no modes nothing is set.
    let status = unsafe { libc::adjtimex(&raw mut state) };
    (status >= 0).then_some(status != libc::TIME_ERROR)
}
