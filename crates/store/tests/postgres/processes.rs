//! Several processes on one database, and processes that are killed. A process is this very test binary, started again
//! with a role in its environment.

use std::env;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use gesta_run::outcome::Outcome;
use gesta_store::{Busy, HeadChange, Postgres, PostgresOptions, RunFilter, RunLog, StoreError, new_run_id};

use crate::server::{STEP_EVENTS, address, new_run, open, step, steps};

const ROLE: &str = "GESTA_STORE_TEST_ROLE";
const TENANT: &str = "GESTA_STORE_TEST_TENANT";

/// Short, so that a killed process is not waited for long.
const TTL_MS: u64 = 500;

async fn store(address: &str, tenant: &str) -> Postgres {
    let options = PostgresOptions { lease_ttl_ms: TTL_MS, connections_max: 4, ..PostgresOptions::default() };
    Postgres::open(address, options).await.unwrap().of_tenant(tenant)
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "said: {line}").and_then(|()| out.flush()).unwrap();
}

/// What a started process does; in the tests themselves nothing.
#[tokio::test]
async fn a_started_process_plays_its_role() {
    let (Ok(role), Ok(tenant), Some(address)) = (env::var(ROLE), env::var(TENANT), address()) else { return };
    let store = store(&address, &tenant).await;
    match role.as_str() {
        "append for ever" => append_for_ever(&store).await,
        name => take_turns(&store, name).await,
    }
}

async fn append_for_ever(store: &Postgres) {
    let tasks: Vec<_> = (0..4)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                let run = format!("r{n}");
                let lease = store.open(new_run(&run, Some(&format!("k{n}"))), &[]).await.unwrap();
                for n in 0.. {
                    store.append(&lease, n * STEP_EVENTS, &step(n * STEP_EVENTS), open()).await.unwrap();
                    say(&format!("{run} {}", (n + 1) * STEP_EVENTS));
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

/// Opens a run in the one conversation again and again, until each of its turns has had it.
async fn take_turns(store: &Postgres, name: &str) {
    let mut turns = 0;
    while turns < 15 {
        match store.open(new_run(&format!("{name} {turns}"), Some("k")), &step(0)).await {
            Ok(lease) => {
                store.append(&lease, STEP_EVENTS, &step(STEP_EVENTS), open()).await.unwrap();
                let ends = HeadChange { release: true, ..HeadChange::ended(Outcome::Completed) };
                store.append(&lease, 2 * STEP_EVENTS, &[], ends).await.unwrap();
                turns += 1;
            }
            // On a machine that does much else a lease may lapse; its owner goes on all the same.
            Err(StoreError::ConversationBusy { busy: Busy::Open | Busy::Left, .. }) => tokio::task::yield_now().await,
            Err(unexpected) => panic!("{unexpected:?}"),
        }
    }
}

struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(role: &str, tenant: &str) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "processes::a_started_process_plays_its_role", "--nocapture"]);
        command.env(ROLE, role).env(TENANT, tenant).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// What it says next; none when it has ended.
    fn heard(&mut self) -> Option<String> {
        let said = self.lines.by_ref().map_while(Result::ok);
        said.filter_map(|line| line.split_once("said: ").map(|(_, said)| said.to_owned())).next()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn note(acknowledged: &mut [u64; 4], said: &str) {
    let (run, at) = said.split_once(' ').unwrap();
    let run: usize = run.trim_start_matches('r').parse().unwrap();
    acknowledged[run] = at.parse().unwrap();
}

#[tokio::test]
async fn after_a_kill_what_was_acknowledged_is_there_and_its_runs_are_taken_when_their_leases_lapse() {
    let Some(address) = address() else { return };
    let mut dice = fastrand::Rng::with_seed(21);
    for _ in 0..4 {
        let tenant = new_run_id().as_str().to_owned();
        let mut process = Process::start("append for ever", &tenant);
        let mut acknowledged = [0; 4];
        for _ in 0..dice.usize(1..80) {
            note(&mut acknowledged, &process.heard().expect("it appends for ever"));
        }
        process.child.kill().unwrap();
        while let Some(said) = process.heard() {
            note(&mut acknowledged, &said);
        }
        let store = store(&address, &tenant).await;
        for (n, acknowledged) in acknowledged.into_iter().enumerate() {
            let run = format!("r{n}").as_str().into();
            let lease = loop {
                match store.claim(&run).await {
                    Ok(lease) => break Some(lease),
                    Err(StoreError::NoSuchRun { .. }) if acknowledged == 0 => break None,
                    Err(StoreError::Leased { .. }) => tokio::task::yield_now().await,
                    Err(unexpected) => panic!("{unexpected:?}"),
                }
            };
            let Some(lease) = lease else { continue };
            assert_eq!(lease.fence(), 2);
            let events = store.load(&run).await.unwrap().events;
            let count = events.len() as u64;
            assert!(count >= acknowledged, "{run}: {acknowledged} events were acknowledged, {count} are there");
            assert_eq!(events, steps(count), "{run}");
            store.append(&lease, count, &step(count), open()).await.unwrap();
        }
        store.close().await;
    }
}

#[tokio::test]
async fn two_processes_share_a_database_and_a_conversation_takes_turns() {
    let Some(address) = address() else { return };
    let tenant = new_run_id().as_str().to_owned();
    let mut processes: Vec<Process> = ["a", "b"].map(|name| Process::start(name, &tenant)).into();
    for process in &mut processes {
        assert!(process.child.wait().unwrap().success());
    }
    let store = store(&address, &tenant).await;
    let runs = store.runs(&RunFilter::default()).await.unwrap();
    assert_eq!(runs.len(), 30);
    for head in runs {
        assert_eq!(store.load(&head.run).await.unwrap().events, steps(2 * STEP_EVENTS));
    }
    store.close().await;
}
