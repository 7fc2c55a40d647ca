//! What confirming intercepted connections asks of a gateway's sockets and of the kernel's rules.

use crate::Error;
use crate::intercept::{ConfirmRules, Doorkeeper, InterceptError, Interception, TerminalRules};
use crate::{AcceptMode, AcceptRules};

/// The doorkeeper that is at work, as the kernel's rules know it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnDuty {
    group: u16,
    mark: u32,
}

/// Puts `accept` into `rules`. Opens a doorkeeper where one is needed and there is none that goes
/// with the rules' mark; without need, one that is there stays, for those that wait by now. Where
/// nothing is confirmed by configuration one is opened if `optional` is set and the kernel allows
/// it: servers that have failed lately are confirmed then.
pub(crate) fn prepare(
    rules: &mut TerminalRules,
    accept: &AcceptRules,
    there: &mut Option<OnDuty>,
    optional: bool,
) -> Result<Option<Doorkeeper>, Error> {
    let mut opened = None;
    let mark = rules.mark;
    let duty = match there.filter(|there| there.mark == mark) {
        Some(there) => there,
        None => {
            let required = accept.confirms_intercepted() || there.is_some();
            if !required && !optional {
                return Ok(None);
            }
            let keeper = match Doorkeeper::open(rules.group(), mark) {
                Err(error) if !required => {
                    missing(&error);
                    return Ok(None);
                }
                opened => opened?,
            };
            let group = keeper.group();
            opened = Some(keeper);
            OnDuty { group, mark }
        }
    };
    *there = Some(duty);
    rules.confirm = Some(ConfirmRules {
        group: duty.group,
        rules: accept.for_interception(),
        others: accept.others == AcceptMode::Confirm,
    });
    Ok(opened)
}

/// Intercepts by `rules`. Where the kernel refuses them and nothing is confirmed by configuration,
/// it is tried again without confirming anything.
pub(crate) fn install(
    rules: &mut TerminalRules,
    accept: &AcceptRules,
    keeper: &mut Option<Doorkeeper>,
    there: &mut Option<OnDuty>,
) -> Result<Interception, InterceptError> {
    match Interception::terminal(rules) {
        Err(error) if rules.confirm.is_some() && !accept.confirms_intercepted() => {
            (rules.confirm, *keeper, *there) = (None, None, None);
            let installed = Interception::terminal(rules)?;
            missing(&error);
            Ok(installed)
        }
        installed => installed,
    }
}

fn missing(error: &InterceptError) {
    tracing::warn!(
        %error,
        "intercepted connections to servers that have just refused are answered early"
    );
}
