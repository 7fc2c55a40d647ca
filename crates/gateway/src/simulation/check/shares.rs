//! Progress of others: an honest client has its share whatever a hostile one does.

use super::all_given_back;
use crate::simulation::draw::contest::Contest;
use crate::simulation::task::Task;
use crate::simulation::world::World;
use units::{Instant, Span};

/// What an honest client gets of its max-min share, at least, in percent.
const PORTION: u64 = 80;
/// Round trips until the first byte: the proxy's dialogue is local, so the opening and its answer,
/// the request, and as many again for a queue that the hostile client has filled.
const ROUND_TRIPS: u64 = 4;
/// What a name server, the gateways' turns and retransmissions of the handshake's timers may take.
const SETUP: Span = Span::from_secs(1);

/// What the opening of a stream, its answer and its end cost a link, octets.
const OPENING: u64 = 160;

/// Runs a contest to the end of its honest clients, and sees everything given back.
///
/// # Errors
/// What an honest client did not get.
pub(in crate::simulation) fn run(contest: &Contest) -> Result<World, String> {
    let storm = &contest.storm;
    let mut world = storm.world()?;
    let is_done = |world: &mut World| honest(world).all(Task::is_over);
    let begin = contest.begin();
    world.run(begin, |_| false)?;
    let limit = storm.calm_at + Span::from_secs(60);
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
                "with {:?} an honest client was to be served by {due:?}: {task:?}",
                contest.attack
            ));
        }
    }
    // All leave, whatever they were about to do.
    {
        let mut net = world.net.net();
        world.tasks.iter_mut().for_each(|task| task.leave(&mut net));
    }
    all_given_back(&mut world)?;
    Ok(world)
}

fn honest(world: &World) -> impl Iterator<Item = &Task> {
    world.tasks.iter().filter(|task| !task.hostile)
}
