//! Several processes on one folder, and processes that are killed: nothing acknowledged is lost, nothing is half there.
//!
//! A process is this very test binary, started again with a role in its environment.

#![allow(clippy::unwrap_used, reason = "a test that can't go on is to stop where it stands")]

use std::env;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use gesta_run::event::{Event, EventKind};
use gesta_run::outcome::{Outcome, Status};
use gesta_run::time::Timestamp;
use gesta_store::{
    Busy, Conversations, DocumentChange, Documents, HeadChange, NewRun, RunFilter, RunLog, Sqlite, StoreError,
    StoreOptions, Turn,
};

const ROLE: &str = "GESTA_STORE_TEST_ROLE";
const FOLDER: &str = "GESTA_STORE_TEST_FOLDER";
const STEP_EVENTS: u64 = 3;

fn new_run(run: &str, conversation: Option<&str>) -> NewRun {
    NewRun {
        run: run.into(),
        agent: "coach".to_owned(),
        conversation: conversation.map(Into::into),
        contact: None,
        config: "hash".to_owned(),
        at: Timestamp(1),
    }
}

/// The events of one step: numbered, so that order and wholeness show.
fn step(at: u64) -> Vec<Event> {
    let event = |n: u64| EventKind::FunctionFailed { function: "f".to_owned(), error: n.to_string() };
    (at..at + STEP_EVENTS).map(|n| Event { at: Timestamp(1), what: event(n) }).collect()
}

fn open() -> HeadChange {
    HeadChange::to(Status::Open)
}

async fn opened(folder: &Path) -> Sqlite {
    Sqlite::open(folder, StoreOptions::default()).await.unwrap()
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "said: {line}").and_then(|()| out.flush()).unwrap();
}

/// What a started process does; in the tests themselves nothing.
#[tokio::test]
async fn a_started_process_plays_its_role() {
    let (Ok(role), Some(folder)) = (env::var(ROLE), env::var_os(FOLDER)) else { return };
    let store = opened(Path::new(&folder)).await;
    match role.as_str() {
        "append for ever" => append_for_ever(&store).await,
        "hold one run" => {
            store.open(new_run("held", Some("k")), &step(0)).await.unwrap();
            say("held");
            std::future::pending::<()>().await;
        }
        "change a document for ever" => change_a_document_for_ever(&store).await,
        other => take_turns(&store, other).await,
    }
}

/// Appends to several runs at once, and says what was acknowledged, until it is killed or the disk is full.
async fn append_for_ever(store: &Sqlite) {
    let tasks: Vec<_> = (0..4)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                let run = format!("r{n}");
                let lease = store.open(new_run(&run, None), &[]).await.unwrap();
                let mut at = 0;
                loop {
                    if let Err(refused) = store.append(&lease, at, &step(at), open()).await {
                        say(&format!("refused {}", refused.code()));
                        return;
                    }
                    at += STEP_EVENTS;
                    say(&format!("{run} {at}"));
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

/// Turn by turn changes the document of one conversation, and says what was acknowledged, until it is killed.
async fn change_a_document_for_ever(store: &Sqlite) {
    for n in 1_u64.. {
        let lease = store.open(new_run(&format!("r{n}"), Some("k")), &[]).await.unwrap();
        let working = Some(n.to_be_bytes().repeat(2_000));
        store.append(&lease, 0, &step(0), HeadChange { working, ..open() }).await.unwrap();
        say(&format!("working {n}"));
        let (turn, document) = (Some(Turn { messages: Vec::new(), tokens: 0 }), DocumentChange::Adopt { from: n - 1 });
        let ends = HeadChange { turn, document, ..HeadChange::ended(Outcome::Completed) };
        store.append(&lease, STEP_EVENTS, &[], ends).await.unwrap();
        say(&format!("adopted {n}"));
    }
}

/// Opens a run in the one conversation again and again, until each of its turns has had it.
async fn take_turns(store: &Sqlite, name: &str) {
    let mut turns = 0;
    while turns < 15 {
        match store.open(new_run(&format!("{name} {turns}"), Some("k")), &step(0)).await {
            Ok(lease) => {
                store.append(&lease, STEP_EVENTS, &step(STEP_EVENTS), open()).await.unwrap();
                let ends = HeadChange { release: true, ..HeadChange::ended(Outcome::Completed) };
                store.append(&lease, 2 * STEP_EVENTS, &[], ends).await.unwrap();
                turns += 1;
            }
            Err(StoreError::ConversationBusy { busy: Busy::Open, .. }) => tokio::task::yield_now().await,
            Err(unexpected) => panic!("{unexpected:?}"),
        }
    }
}

struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(role: &str, folder: &Path) -> Self {
        Self::spawn(Command::new(env::current_exe().unwrap()), role, folder)
    }

    fn spawn(mut command: Command, role: &str, folder: &Path) -> Self {
        command.args(["--exact", "a_started_process_plays_its_role", "--nocapture"]);
        command.env(ROLE, role).env(FOLDER, folder).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// What it says next; none when it has ended.
    fn heard(&mut self) -> Option<String> {
        let said = self.lines.by_ref().map_while(Result::ok);
        said.filter_map(|line| line.split_once("said: ").map(|(_, said)| said.to_owned())).next()
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Notes the last acknowledged position of each run.
fn note(acknowledged: &mut [u64; 4], said: &str) {
    let (run, at) = said.split_once(' ').unwrap();
    let run: usize = run.trim_start_matches('r').parse().unwrap();
    acknowledged[run] = at.parse().unwrap();
}

async fn check(store: &Sqlite, acknowledged: [u64; 4]) {
    for (n, acknowledged) in acknowledged.into_iter().enumerate() {
        let run = format!("r{n}").as_str().into();
        let events = match store.load(&run).await {
            Ok(stored) => stored.events,
            Err(StoreError::NoSuchRun { .. }) if acknowledged == 0 => continue,
            Err(unexpected) => panic!("{unexpected:?}"),
        };
        let count = events.len() as u64;
        assert!(count >= acknowledged, "{run}: {acknowledged} events were acknowledged, {count} are there");
        assert_eq!(count % STEP_EVENTS, 0, "{run}: a step is half there");
        let expected: Vec<Event> = (0..count / STEP_EVENTS).flat_map(|n| step(n * STEP_EVENTS)).collect();
        assert_eq!(events, expected, "{run}");
        // Its process is gone, so nobody waits for the lease to lapse.
        let lease = store.claim(&run).await.unwrap();
        store.append(&lease, count, &step(count), open()).await.unwrap();
    }
}

#[tokio::test]
async fn after_a_kill_every_acknowledged_append_is_there_in_order_and_none_is_half() {
    let mut dice = fastrand::Rng::with_seed(11);
    for _ in 0..8 {
        let folder = tempfile::tempdir().unwrap();
        let mut process = Process::start("append for ever", folder.path());
        let mut acknowledged = [0; 4];
        for _ in 0..dice.usize(1..120) {
            note(&mut acknowledged, &process.heard().expect("it appends for ever"));
        }
        process.kill();
        while let Some(said) = process.heard() {
            note(&mut acknowledged, &said);
        }
        let store = opened(folder.path()).await;
        check(&store, acknowledged).await;
        store.close().await;
    }
}

#[tokio::test]
async fn after_a_kill_the_document_is_that_of_the_last_turn_and_the_open_run_has_its_working_copy() {
    let mut dice = fastrand::Rng::with_seed(12);
    for _ in 0..6 {
        let folder = tempfile::tempdir().unwrap();
        let mut process = Process::start("change a document for ever", folder.path());
        let (mut working, mut adopted) = (0, 0);
        let mut heard = |said: &str| match said.split_once(' ').unwrap() {
            ("working", n) => working = n.parse().unwrap(),
            (_, n) => adopted = n.parse().unwrap(),
        };
        for _ in 0..dice.usize(1..60) {
            heard(&process.heard().expect("it goes on for ever"));
        }
        process.kill();
        while let Some(said) = process.heard() {
            heard(&said);
        }
        let store = opened(folder.path()).await;
        let turns = store.conversation(&"k".into()).await.unwrap().unwrap().turns;
        assert!(turns == adopted || turns == adopted + 1, "{adopted} turns were acknowledged, {turns} are there");
        let document = store.document(&"k".into()).await.unwrap();
        let found = document.map(|it| (it.version, it.image));
        assert_eq!(found, (turns > 0).then(|| (turns, turns.to_be_bytes().repeat(2_000))));
        for n in 1..=turns + 1 {
            let run = format!("r{n}").as_str().into();
            let kept = store.working(&run).await.unwrap();
            let events = store.head(&run).await.map_or(0, |head| head.events);
            let expected = (n > turns && events > 0).then(|| n.to_be_bytes().repeat(2_000));
            assert_eq!(kept, expected, "{run} of {turns} turns");
            assert!(n <= turns || n > working || kept.is_some(), "{run}: its working copy was acknowledged");
        }
    }
}

#[tokio::test]
async fn two_processes_share_a_folder_and_a_conversation_takes_turns() {
    let folder = tempfile::tempdir().unwrap();
    let mut processes: Vec<Process> = ["a", "b"].map(|name| Process::start(name, folder.path())).into();
    for process in &mut processes {
        assert!(process.child.wait().unwrap().success());
    }
    let store = opened(folder.path()).await;
    let runs = store.runs(&RunFilter::default()).await.unwrap();
    assert_eq!(runs.len(), 30);
    for head in runs {
        let events = store.load(&head.run).await.unwrap().events;
        assert_eq!(events, [step(0), step(STEP_EVENTS)].concat());
    }
}

#[tokio::test]
async fn the_run_of_a_living_process_is_not_taken_and_that_of_a_dead_one_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path()).await;
    let mut process = Process::start("hold one run", folder.path());
    assert_eq!(process.heard().as_deref(), Some("held"));
    assert!(matches!(store.claim(&"held".into()).await, Err(StoreError::Leased { .. })));
    let busy = async || match store.open(new_run("next", Some("k")), &[]).await {
        Err(StoreError::ConversationBusy { busy, .. }) => busy,
        unexpected => panic!("{unexpected:?}"),
    };
    assert_eq!(busy().await, Busy::Open);
    process.kill();
    assert_eq!(busy().await, Busy::Left);
    let lease = store.claim(&"held".into()).await.unwrap();
    assert_eq!(lease.fence(), 2);
    store.append(&lease, STEP_EVENTS, &step(STEP_EVENTS), open()).await.unwrap();
}

/// A limit on the size of files stands for a full disk: the process is told by its system, not by SQLite.
#[cfg(unix)]
#[tokio::test]
async fn when_the_system_takes_no_more_bytes_what_was_acknowledged_is_there_and_it_works_again_later() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 400; exec \"$0\" \"$@\"";
    command.args(["-c", script]).arg(env::current_exe().unwrap());
    let mut process = Process::spawn(command, "append for ever", folder.path());
    let mut acknowledged = [0; 4];
    let mut refusals = Vec::new();
    while let Some(said) = process.heard() {
        match said.strip_prefix("refused ") {
            Some(code) => refusals.push(code.to_owned()),
            None => note(&mut acknowledged, &said),
        }
    }
    assert!(process.child.wait().unwrap().success(), "it did not end by itself");
    assert_eq!(refusals.len(), 4);
    for code in refusals {
        assert!(["store_full", "store_io", "commit_unknown"].contains(&code.as_str()), "{code}");
    }
    assert!(acknowledged.iter().sum::<u64>() > 0);
    check(&opened(folder.path()).await, acknowledged).await;
}
