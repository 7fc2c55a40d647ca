//! Slot allocation: max-min by demand, and by weight.

use alloc::vec;
use alloc::vec::Vec;

/// Max-min allocation of `slots` to the demands `wants`: no share exceeds its demand, and no share
/// is more than one slot larger than another whose demand is not met. Slots left after equal shares
/// are assigned in rotation from `*turn` on; `turn` is set behind the last one served, so that the
/// order is fair over time.
///
/// Returns the shares.
pub fn max_min(slots: u32, wants: &[u32], turn: &mut usize) -> Vec<u32> {
    let mut sorted: Vec<u32> = wants.iter().copied().filter(|&want| want > 0).collect();
    sorted.sort_unstable();
    let (mut left, mut level) = (u64::from(slots), None);
    for (place, &want) in sorted.iter().enumerate() {
        let others = (sorted.len() - place) as u64;
        if u64::from(want) * others > left {
            level = Some((left / others, left % others));
            break;
        }
        left -= u64::from(want);
    }
    let Some((level, mut over)) = level else { return wants.to_vec() };
    // At most `slots`, so it fits.
    let level = level as u32;
    let mut shares: Vec<u32> = wants.iter().map(|&want| want.min(level)).collect();
    let count = wants.len();
    let start = *turn % count;
    for place in (start..count).chain(0..start) {
        if over == 0 {
            break;
        }
        if wants[place] > level {
            shares[place] += 1;
            over -= 1;
            *turn = (place + 1) % count;
        }
    }
    shares
}

/// One slot, in units of credit.
const ONE: i64 = 1 << 24;
/// Maximum credit: a surplus that a terminal could not use expires.
const MOST_CREDIT: i64 = 4 * ONE;

/// Allocation of free slots by weight over consecutive frames. Fractions of slots are carried over
/// as credit, so that over time each share is exact to within a few slots.
#[derive(Clone, Debug, Default)]
pub struct ByWeight {
    credits: Vec<i64>,
}

impl ByWeight {
    /// Extends the allocation to `count` terminals.
    pub fn grow(&mut self, count: usize) {
        if self.credits.len() < count {
            self.credits.resize(count, 0);
        }
    }

    /// Discards the credit of `who`.
    pub fn forget(&mut self, who: usize) {
        self.credits[who] = 0;
    }

    /// Allocates `slots` by `weights` up to the maxima `most`. All slots are assigned, unless all
    /// terminals with a weight have their maximum.
    pub fn share(&mut self, slots: u32, weights: &[u32], most: &[u32]) -> Vec<u32> {
        self.grow(weights.len());
        let due = proportional(slots, weights, most);
        let mut shares = vec![0; weights.len()];
        let mut left = slots;
        for (who, &due) in due.iter().enumerate() {
            if weights[who] == 0 {
                continue;
            }
            self.credits[who] += due;
            let whole = (self.credits[who] / ONE).clamp(0, i64::from(most[who])) as u32;
            shares[who] = whole.min(left);
            left -= shares[who];
        }
        self.top_up(&mut shares, weights, most, left);
        for (who, &share) in shares.iter().enumerate() {
            let owed = self.credits[who] - i64::from(share) * ONE;
            self.credits[who] = owed.clamp(-MOST_CREDIT, MOST_CREDIT);
        }
        shares
    }

    /// Assigns the remaining slots one by one to the largest credits.
    fn top_up(&self, shares: &mut [u32], weights: &[u32], most: &[u32], mut left: u32) {
        while left > 0 {
            let open = |who: &usize| weights[*who] > 0 && shares[*who] < most[*who];
            let mut order: Vec<usize> = (0..shares.len()).filter(open).collect();
            if order.is_empty() {
                return;
            }
            // Of equal credits the first wins, and has the smaller credit next time.
            order.sort_by_key(|&who| i64::from(shares[who]) * ONE - self.credits[who]);
            for who in order.into_iter().take(left as usize) {
                shares[who] += 1;
                left -= 1;
            }
        }
    }
}

/// The exact shares in units of credit: by weight, and the excess above a maximum by weight to the
/// others.
fn proportional(slots: u32, weights: &[u32], most: &[u32]) -> Vec<i64> {
    let mut due = vec![0; weights.len()];
    let mut open: Vec<usize> = (0..weights.len()).filter(|&who| weights[who] > 0).collect();
    let mut left = i128::from(slots) * i128::from(ONE);
    loop {
        let sum: i128 = open.iter().map(|&who| i128::from(weights[who])).sum();
        if sum == 0 {
            return due;
        }
        let full = |who: usize| i128::from(most[who]) * i128::from(ONE);
        let share = |who: usize| left * i128::from(weights[who]) / sum;
        let (capped, others): (Vec<usize>, Vec<usize>) =
            open.iter().copied().partition(|&who| share(who) > full(who));
        if capped.is_empty() {
            for who in open {
                due[who] = share(who) as i64;
            }
            return due;
        }
        for &who in &capped {
            due[who] = full(who) as i64;
        }
        left -= capped.iter().map(|&who| full(who)).sum::<i128>();
        open = others;
    }
}
