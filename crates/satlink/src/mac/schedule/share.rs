//! Two ways to share slots out: by need, and by weight.

use alloc::vec;
use alloc::vec::Vec;

/// Shares `slots` among those who want `wants` of them so that the least served get as much as
/// can be (max-min): nobody gets more than they want, and nobody has more than one slot more
/// than another who still wants some. Slots over after an equal share go round, from `*turn` on;
/// `turn` is left behind the last who got one, so that the same few are not always first.
///
/// Returned is what each gets.
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

/// One slot, in the unit of credits.
const ONE: i64 = 1 << 24;
/// Credits end here: what was owed to someone who could not take it is forgotten.
const MOST_CREDIT: i64 = 4 * ONE;

/// Shares what is free by weight, frame after frame. Slots cannot be halved, so what a frame
/// leaves somebody short of is owed to them in the next: over time everyone has their share to
/// within a few slots, however small it is.
#[derive(Clone, Debug, Default)]
pub struct ByWeight {
    credits: Vec<i64>,
}

impl ByWeight {
    /// Makes room for `count` takers.
    pub fn grow(&mut self, count: usize) {
        if self.credits.len() < count {
            self.credits.resize(count, 0);
        }
    }

    /// Forgets what is owed to `who`.
    pub fn forget(&mut self, who: usize) {
        self.credits[who] = 0;
    }

    /// Shares `slots` by `weights`; nobody gets more than their `most`. All slots are given
    /// away, unless all who have weight have their most.
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

    /// Gives what is left to those to whom most is owed, one slot at a time.
    fn top_up(&self, shares: &mut [u32], weights: &[u32], most: &[u32], mut left: u32) {
        while left > 0 {
            let open = |who: &usize| weights[*who] > 0 && shares[*who] < most[*who];
            let mut order: Vec<usize> = (0..shares.len()).filter(open).collect();
            if order.is_empty() {
                return;
            }
            // Of equal claims the first wins, and has the smaller claim next time.
            order.sort_by_key(|&who| i64::from(shares[who]) * ONE - self.credits[who]);
            for who in order.into_iter().take(left as usize) {
                shares[who] += 1;
                left -= 1;
            }
        }
    }
}

/// What is due to each, in units of credit: by weight, and where that is more than somebody's
/// most, by weight among the others.
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
