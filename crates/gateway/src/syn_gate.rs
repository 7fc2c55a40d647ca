//! Setup of deferred accept for intercepted connections: the gate and its rules in the packet
//! filter.

use crate::Error;
use crate::engine::{HeldSyns, SocketId};
use crate::intercept::{
    ConfirmRules, InterceptError, Interception, ReceiveStatus, Syn, SynGate, TerminalRules,
};
use crate::{AcceptMode, AcceptRules};
use relay::RefuseReason;

/// The gate in use, as the packet filter refers to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ActiveGate {
    group: u16,
    mark: u32,
}

impl HeldSyns for SynGate {
    fn id(&self) -> SocketId {
        SocketId(self.descriptor())
    }

    fn receive(&mut self, limit: usize, take: &mut dyn FnMut(Syn)) -> ReceiveStatus {
        Self::receive(self, limit, take)
    }

    fn is_forged(&mut self, syn: &Syn) -> bool {
        Self::is_forged(self, syn)
    }

    fn reinject(&self, syn: &Syn) {
        Self::reinject(self, syn);
    }

    fn reject(&self, syn: &Syn, reason: RefuseReason) {
        self.refuse(syn, reason);
    }
}

/// Adds `accept` to `rules`. Opens a gate if one is needed and none with the rules' mark is open;
/// one that is not needed any more stays for the SYNs that it holds. If the configuration defers
/// nothing, a gate is opened if `optional` is set and the kernel permits it: connections to servers
/// that have failed recently are deferred.
pub(crate) fn prepare(
    rules: &mut TerminalRules,
    accept: &AcceptRules,
    there: &mut Option<ActiveGate>,
    optional: bool,
) -> Result<Option<SynGate>, Error> {
    let mut opened = None;
    let mark = rules.mark;
    let duty = match there.filter(|there| there.mark == mark) {
        Some(there) => there,
        None => {
            let required = accept.confirms_intercepted() || there.is_some();
            if !required && !optional {
                return Ok(None);
            }
            let gate = match SynGate::open(rules.group(), mark) {
                Err(error) if !required => {
                    missing(&error);
                    return Ok(None);
                }
                opened => opened?,
            };
            let group = gate.group();
            opened = Some(gate);
            ActiveGate { group, mark }
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

/// Installs `rules`. If the kernel refuses them and the configuration defers nothing, they are
/// installed without deferred accept.
pub(crate) fn install(
    rules: &mut TerminalRules,
    accept: &AcceptRules,
    gate: &mut Option<SynGate>,
    there: &mut Option<ActiveGate>,
) -> Result<Interception, InterceptError> {
    match Interception::terminal(rules) {
        Err(error) if rules.confirm.is_some() && !accept.confirms_intercepted() => {
            (rules.confirm, *gate, *there) = (None, None, None);
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
        "deferred accept unavailable: connections to recently failed servers are accepted early"
    );
}
