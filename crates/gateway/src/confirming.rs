//! What confirming intercepted connections asks of a gateway's sockets and of the kernel's rules.

use crate::Error;
use crate::intercept::{ConfirmRules, Doorkeeper, TerminalRules};
use crate::{AcceptMode, AcceptRules};

/// The doorkeeper that is at work, as the kernel's rules know it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnDuty {
    group: u16,
    mark: u32,
}

/// Puts `accept` into `rules`. Opens a doorkeeper where one is needed and there is none that goes
/// with the rules' mark; without need, one that is there stays, for those that wait by now.
pub(crate) fn prepare(
    rules: &mut TerminalRules,
    accept: &AcceptRules,
    there: &mut Option<OnDuty>,
) -> Result<Option<Doorkeeper>, Error> {
    let mut opened = None;
    let mark = rules.mark;
    let duty = match there.filter(|there| there.mark == mark) {
        Some(there) => there,
        None if accept.confirms() || there.is_some() => {
            let keeper = Doorkeeper::open(rules.group(), mark)?;
            let group = keeper.group();
            opened = Some(keeper);
            OnDuty { group, mark }
        }
        None => return Ok(None),
    };
    *there = Some(duty);
    rules.confirm = Some(ConfirmRules {
        group: duty.group,
        rules: accept.for_interception(),
        others: accept.others == AcceptMode::Confirm,
    });
    Ok(opened)
}
