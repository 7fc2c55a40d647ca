//! Runs jobs on all processors.

use super::plan::{Draw, Point, Values};
use super::store::JobName;
use crate::LabError;
use crate::threads::panic_message;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// One replication of one point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job<'a> {
    pub(super) point: &'a Point,
    pub(super) replication: u32,
}

impl Job<'_> {
    pub(super) fn name(&self) -> JobName {
        JobName {
            study: self.point.study.to_owned(),
            point: self.point.key.clone(),
            replication: self.replication,
        }
    }

    fn run(&self, seed: u64) -> Result<Values, String> {
        let draw = Draw { seed, run: u64::from(self.replication) };
        let values = catch_unwind(AssertUnwindSafe(|| (self.point.simulate)(&draw)))
            .map_err(|panic| format!("it panicked: {}", panic_message(&*panic)))??;
        match values.not_a_number() {
            Some(name) => Err(format!("its value {name} is not a finite number")),
            None => Ok(values),
        }
    }
}

/// Returns all jobs of `points`, round by round: after an interruption every point has about the
/// same number of replications.
pub(super) fn jobs(points: &[Point]) -> Vec<Job<'_>> {
    let most = points.iter().map(|point| point.replications).max().unwrap_or(0);
    let round = |replication: u32| {
        let of_round = move |point: &&Point| replication < point.replications;
        points.iter().filter(of_round).map(move |point| Job { point, replication })
    };
    (0..most).flat_map(round).collect()
}

/// Runs `jobs` on `workers` threads; calls `each` with every result as it arrives, in no order.
///
/// # Errors
/// The first failed job, with the inputs that repeat it, or the error of `each`.
pub(super) fn run(
    jobs: &[Job<'_>],
    workers: usize,
    seed: u64,
    mut each: impl FnMut(JobName, Values) -> Result<(), LabError>,
) -> Result<(), LabError> {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (send, receive) = mpsc::channel();
        for _ in 0..workers.min(jobs.len()) {
            let (send, next) = (send.clone(), &next);
            scope.spawn(move || {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // The receiver is dropped after a job has failed.
                    if send.send((job.name(), job.run(seed))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        for (name, result) in receive {
            let values = result.map_err(|reason| {
                let JobName { study, point, replication } = &name;
                LabError::Request(format!(
                    "{study}/{point}, replication {replication} of seed {seed}: {reason}"
                ))
            })?;
            each(name, values)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn points(fail_at: Option<u64>) -> Vec<Point> {
        let point = move |index: u32| {
            Point::new("study", format!("p{index}"), 1 + index % 3, move |draw| {
                assert_ne!(draw.run, 99, "never drawn");
                match Some(draw.run) == fail_at && index == 5 {
                    true => Err("no luck".to_owned()),
                    false => Ok(Values::new().with("x", f64::from(index) + draw.seed as f64)),
                }
            })
        };
        (0..30).map(point).collect()
    }

    #[test]
    fn results_do_not_depend_on_the_number_of_workers() {
        let points = points(None);
        let jobs = jobs(&points);
        assert_eq!(jobs.len(), 60);
        assert!(jobs[..30].iter().all(|job| job.replication == 0));
        let collect = |workers| {
            let mut found = BTreeMap::new();
            let each = |name, values| {
                found.insert(name, values);
                Ok(())
            };
            run(&jobs, workers, 7, each).unwrap();
            found
        };
        let one = collect(1);
        assert_eq!(one.len(), 60);
        assert_eq!(one, collect(4));
    }

    #[test]
    fn a_failed_job_is_named_in_the_error() {
        let points = points(Some(1));
        let error = run(&jobs(&points), 3, 7, |_, _| Ok(())).unwrap_err().to_string();
        assert_eq!(error, "study/p5, replication 1 of seed 7: no luck");
        let bad = [
            Point::new("s", "nan", 1, |_| Ok(Values::new().with("x", f64::NAN))),
            Point::new("s", "panic", 1, |_| panic!("on purpose")),
        ];
        let error = run(&jobs(&bad[..1]), 1, 1, |_, _| Ok(())).unwrap_err().to_string();
        assert!(error.ends_with("its value x is not a finite number"), "{error}");
        let error = run(&jobs(&bad[1..]), 1, 1, |_, _| Ok(())).unwrap_err().to_string();
        assert!(error.ends_with("it panicked: on purpose"), "{error}");
    }
}
