//! A seeded world around the machine: random plans, random inputs in any order, late, twice, wrong, and after a crash.

// Tests stand outside of the machine: they have files, threads and a clock.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]
#![allow(dead_code, unreachable_pub)]

pub mod check;
pub mod dice;
pub mod grants;
pub mod order;
pub mod sent;
pub mod world;

use std::sync::Arc;

use gesta_run::{Event, Functions, Plan};

/// Runs that share one plan, because compiling schemas costs more than a run.
const RUNS_PER_PLAN: u64 = 16;

/// What one seed came to.
pub struct Played {
    pub plan: Arc<Plan>,
    pub log: Vec<Event>,
    pub faults: Vec<String>,
}

impl Played {
    /// The failing seed as something a person can read and play again: a scene where the log can be told as one.
    pub fn told(&self, seed: u64) -> String {
        let faults = self.faults.join("\n# ");
        let scene = gesta_scene::from_log(&self.plan.spec, &self.log);
        let lines: Vec<String> = self.log.iter().filter_map(|event| serde_json::to_string(event).ok()).collect();
        format!("# seed {seed}\n# {faults}\n{scene}\n# its log\n{}\n", lines.join("\n"))
    }
}

/// The plan of a seed.
pub fn plan_of(seed: u64) -> Arc<Plan> {
    let mut dice = fastrand::Rng::with_seed(seed / RUNS_PER_PLAN);
    Plan::new(dice::plan(&mut dice), Functions::default()).expect("the dice make sound plans")
}

/// Plays one seed from its start to its end, and checks what happened.
pub fn play(seed: u64, plan: &Arc<Plan>) -> Played {
    let mut world = world::World::new(seed, plan.clone());
    world.play();
    let mut faults = world.faults;
    faults.extend(check::check(plan, &world.log));
    Played { plan: plan.clone(), log: world.log, faults }
}

/// Plays seeds one after another on as many threads as there are, and gives those that fail with what they came to.
pub fn play_all(start: u64, count: u64, threads: u64) -> (u64, Vec<(u64, Played)>) {
    let threads = threads.max(1);
    let share = count.div_ceil(threads);
    let work = |thread: u64| {
        let (mut events, mut failed, mut plan) = (0, Vec::new(), None);
        for seed in (start + thread * share..start + count).take(usize::try_from(share).unwrap_or(usize::MAX)) {
            if seed % RUNS_PER_PLAN == 0 || plan.is_none() {
                plan = Some(plan_of(seed));
            }
            let Some(plan) = &plan else { continue };
            let played = play(seed, plan);
            events += played.log.len() as u64;
            if !played.faults.is_empty() && failed.len() < 10 {
                failed.push((seed, played));
            }
        }
        (events, failed)
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        let done = workers.into_iter().map(|worker| worker.join().expect("no seed makes the machine panic"));
        done.fold((0, Vec::new()), |(events, mut failed), (more, others)| {
            failed.extend(others);
            (events + more, failed)
        })
    })
}
