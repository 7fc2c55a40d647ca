//! Progress of honest clients beside a hostile one.

use super::all_released;
use crate::simulation::draw::contest::Contest;
use crate::simulation::task::Task;
use crate::simulation::world::World;
use units::{Instant, Span};

/// Minimum portion of its max-min share that an honest client receives, in percent.
const PORTION: u64 = 80;
/// Round trips until the first byte: the opening of the stream with its reply, and the request, are
/// two (the proxy handshake is local); two more allow for a queue that the hostile client has
/// filled.
const ROUND_TRIPS: u64 = 4;
/// Allowance for name servers, processing delays and retransmissions of the handshake.
const SETUP: Span = Span::from_secs(1);

/// Octets on a link for the opening, the reply and the end of a stream.
const OPENING: u64 = 160;

/// Runs a contest until its honest clients have ended, and checks that all resources are released.
///
/// # Errors
/// Returns the violation.
pub(in crate::simulation) fn run(contest: &Contest) -> Result<World, String> {
    let storm = &contest.storm;
    let mut world = storm.world()?;
    let is_done = |world: &mut World| honest(world).all(Task::is_over);
    let begin = contest.begin();
    world.run(begin, |_| false)?;
    let limit = storm.faults_end + Span::from_secs(60);
    world.run(limit, is_done)?;
    let millis = world.now().since(begin).as_millis().max(1);
    let began = storm.tasks.iter().filter(|(task, _)| task.hostile && task.start >= begin);
    let share = contest.share(OPENING * began.count() as u64 * 8_000 / millis);
    for task in honest(&world) {
        let bytes = task.sides.iter().map(|side| side.plan.bytes).max().unwrap_or_default();
        let allowed = share.time_for(bytes * 100 / PORTION);
        let setup = storm.options.delay * 2 * ROUND_TRIPS + SETUP;
        let due: Instant = task.start + setup + allowed;
        if !task.is_complete() || task.finished.is_none_or(|at| at > due) {
            return Err(format!(
                "with {:?} an honest client was not served by {due:?}: {task:?}",
                contest.attack
            ));
        }
    }
    // All clients close.
    {
        let mut net = world.net.net();
        world.tasks.iter_mut().for_each(|task| task.leave(&mut net));
    }
    all_released(&mut world)?;
    Ok(world)
}

fn honest(world: &World) -> impl Iterator<Item = &Task> {
    world.tasks.iter().filter(|task| !task.hostile)
}
