//! Servers that crash, connections that break, answers that are lost: nothing acknowledged is lost, nothing is done
//! twice, and it goes on by itself (`spec/durability.md`, R14, H1, H4).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gesta_store::{Conversations, Lease, Postgres, PostgresOptions, RunLog, StoreError, new_run_id};
use sqlx::{Connection, Executor, PgConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::server::{STEP_EVENTS, address, changed, new_run, number, open, opened, own_server, step, steps};

/// How often a step is tried at most, when the server is away.
const TRIES_MAX: u32 = 200;

/// Appends steps until there are so many events, looking after each unknown commit; counts those that were acknowledged.
async fn append_until(store: &Postgres, lease: &Lease, events: u64, acknowledged: &watch::Sender<u64>) {
    let (mut at, mut tries) = (0, 0);
    while at < events {
        match store.append(lease, at, &step(at), open()).await {
            Ok(()) => {
                acknowledged.send_modify(|steps| *steps += 1);
                (at, tries) = (at + STEP_EVENTS, 0);
            }
            Err(why) if why.is_passing() || matches!(why, StoreError::CommitUnknown { .. }) => {
                tries += 1;
                assert!(tries < TRIES_MAX, "{why}");
                if let Ok(stored) = store.load(lease.run()).await {
                    let found = stored.events.len() as u64;
                    assert!(found == at || found == at + STEP_EVENTS, "{at} events, then {found}: {why}");
                    assert!(found == at || matches!(why, StoreError::CommitUnknown { .. }), "it was there: {why}");
                    at = found;
                }
            }
            Err(unexpected) => panic!("{unexpected:?}"),
        }
    }
}

/// Four runs that are appended to at once.
async fn four(store: &Postgres, events: u64) -> (Vec<JoinHandle<()>>, watch::Receiver<u64>) {
    let (acknowledged, heard) = watch::channel(0);
    let mut tasks = Vec::new();
    for n in 0..4 {
        let lease = store.open(new_run(&format!("r{n}"), Some(&format!("k{n}"))), &[]).await.unwrap();
        let (store, acknowledged) = (store.clone(), acknowledged.clone());
        tasks.push(tokio::spawn(async move { append_until(&store, &lease, events, &acknowledged).await }));
    }
    (tasks, heard)
}

async fn check(store: &Postgres, events: u64) {
    for n in 0..4 {
        let stored = store.load(&format!("r{n}").as_str().into()).await.unwrap();
        assert_eq!(stored.events, steps(events), "run {n}");
    }
}

async fn until(acknowledged: &mut watch::Receiver<u64>, steps: u64) {
    // An error says that all are done.
    let _ = acknowledged.wait_for(|heard| *heard >= steps).await;
}

#[tokio::test]
async fn work_goes_on_when_the_server_was_killed_and_started_again() {
    let Some(mut server) = own_server() else { return };
    let options = PostgresOptions { connections_max: 4, connect_wait_ms: 30_000, ..PostgresOptions::default() };
    let store = Postgres::open(&server.address(), options).await.unwrap();
    let (tasks, mut acknowledged) = four(&store, 60 * STEP_EVENTS).await;
    for round in 1..=3 {
        until(&mut acknowledged, round * 40).await;
        server.kill();
        server = tokio::task::spawn_blocking(move || server.resume().map(|()| server)).await.unwrap().unwrap();
    }
    for task in tasks {
        task.await.unwrap();
    }
    check(&store, 60 * STEP_EVENTS).await;
    store.close().await;
}

#[tokio::test]
async fn a_server_that_is_away_is_said_to_be_and_used_again_when_it_is_back() {
    let Some(mut server) = own_server() else { return };
    let options = PostgresOptions { connections_max: 2, connect_wait_ms: 300, ..PostgresOptions::default() };
    let store = Postgres::open(&server.address(), options).await.unwrap();
    let lease = store.open(new_run("r1", None), &[]).await.unwrap();
    server.kill();
    for refused in [
        store.head(lease.run()).await.unwrap_err(),
        store.open(new_run("r2", None), &[]).await.unwrap_err(),
        store.claim(lease.run()).await.unwrap_err(),
    ] {
        assert_eq!(refused.code(), "store_unreachable", "{refused}");
        assert!(refused.is_passing() && refused.to_string().contains("start it"), "{refused}");
    }
    server.resume().unwrap();
    store.append(&lease, 0, &step(0), open()).await.unwrap();
    assert_eq!(store.load(lease.run()).await.unwrap().events, step(0));
    store.close().await;
}

#[tokio::test]
async fn work_goes_on_while_its_connections_are_ended_all_the_time() {
    let Some(address) = address() else { return };
    let name = new_run_id().as_str().replace('-', "");
    let own = changed(&address, |url| {
        url.query_pairs_mut().append_pair("application_name", &name);
    });
    let store = opened(&own).await.of_tenant(&name);
    let (tasks, mut acknowledged) = four(&store, 60 * STEP_EVENTS).await;
    let end =
        format!("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = '{name}'");
    let mut ended = 0;
    for round in 1..=12 {
        until(&mut acknowledged, round * 12).await;
        ended += number(&address, &end).await;
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert!(ended > 0);
    check(&store, 60 * STEP_EVENTS).await;
    store.close().await;
}

#[tokio::test]
async fn where_all_connections_are_busy_it_is_said_and_passes() {
    let Some(address) = address() else { return };
    let tenant = new_run_id().as_str().to_owned();
    let options =
        PostgresOptions { connections_max: 1, connect_wait_ms: 300, lock_wait_ms: 3_000, ..PostgresOptions::default() };
    let store = Postgres::open(&address, options).await.unwrap().of_tenant(&tenant);
    let lease = store.open(new_run("r1", None), &[]).await.unwrap();
    let mut other = PgConnection::connect(&address).await.unwrap();
    other.execute("BEGIN").await.unwrap();
    sqlx::query("SELECT 1 FROM gesta.runs WHERE tenant = $1 FOR UPDATE")
        .bind(&tenant)
        .execute(&mut other)
        .await
        .unwrap();
    // The only connection waits for the other's lock.
    let waiting = tokio::spawn({
        let (store, lease) = (store.clone(), lease.clone());
        async move { store.append(&lease, 0, &step(0), open()).await }
    });
    let mut refused = store.head(lease.run()).await;
    while refused.is_ok() {
        refused = store.head(lease.run()).await;
    }
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), "store_locked", "{refused}");
    assert!(refused.is_passing() && refused.to_string().contains("allow more connections"), "{refused}");
    let waited = waiting.await.unwrap().unwrap_err();
    assert_eq!(waited.code(), "store_locked", "{waited}");
    other.execute("ROLLBACK").await.unwrap();
    store.append(&lease, 0, &step(0), open()).await.unwrap();
    store.close().await;
}

/// What a proxy does with the next commit.
#[derive(Clone, Copy)]
enum Loses {
    /// The server never hears of it.
    Commit,
    /// The server does it, and the answer is lost.
    Answer,
}

/// Stands between the store and the server, and breaks a connection in its commit when it is armed.
async fn proxy(server: &str, loses: Loses) -> (String, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = url::Url::parse(server).unwrap();
    let behind = (url.host_str().unwrap().to_owned(), url.port().unwrap_or(5432));
    let armed = Arc::new(AtomicBool::new(false));
    let through = changed(server, |url| {
        url.set_ip_host("127.0.0.1".parse().unwrap()).unwrap();
        url.set_port(Some(port)).unwrap();
        url.query_pairs_mut().append_pair("sslmode", "disable");
    });
    let told = armed.clone();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect((behind.0.as_str(), behind.1)).await.unwrap();
            tokio::spawn(pass(client, server, loses, told.clone()));
        }
    });
    (through, armed)
}

async fn pass(mut client: TcpStream, mut server: TcpStream, loses: Loses, armed: Arc<AtomicBool>) {
    let (mut asked, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let Ok(read @ 1..) = read else { return };
                let commits = asked[..read].windows(6).any(|it| it == b"COMMIT") && armed.swap(false, Ordering::SeqCst);
                if commits && matches!(loses, Loses::Commit) {
                    return;
                }
                if server.write_all(&asked[..read]).await.is_err() {
                    return;
                }
                if commits {
                    // Its answer says that it is done.
                    let _ = server.read(&mut answered).await;
                    return;
                }
            }
            read = server.read(&mut answered) => {
                let Ok(read @ 1..) = read else { return };
                if client.write_all(&answered[..read]).await.is_err() {
                    return;
                }
            }
        }
    }
}

#[tokio::test]
async fn a_commit_whose_connection_breaks_is_unknown_and_never_repeated() {
    for loses in [Loses::Commit, Loses::Answer] {
        let Some(address) = address() else { return };
        let (through, armed) = proxy(&address, loses).await;
        let store = opened(&through).await.of_tenant(new_run_id().as_str());
        armed.store(true, Ordering::SeqCst);
        let unknown = store.open(new_run("r1", Some("k")), &step(0)).await.unwrap_err();
        assert!(matches!(unknown, StoreError::CommitUnknown { .. }), "{unknown:?}");
        assert!(!armed.load(Ordering::SeqCst), "no commit went through");
        // Looking tells which.
        match (loses, store.load(&"r1".into()).await) {
            (Loses::Commit, Err(StoreError::NoSuchRun { .. })) => {}
            (Loses::Answer, Ok(stored)) => assert_eq!(stored.events, step(0)),
            (_, unexpected) => panic!("{unexpected:?}"),
        }
        store.close().await;
    }
}

#[test]
fn a_runtime_that_ends_in_the_middle_does_no_harm() {
    let Some(address) = address() else { return };
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let tenant = new_run_id();
    let first = runtime();
    let store = first.block_on(async {
        let store = opened(&address).await.of_tenant(tenant.as_str());
        let (_, mut acknowledged) = four(&store, u64::MAX).await;
        until(&mut acknowledged, 10).await;
        store
    });
    drop(first);
    drop(store);
    runtime().block_on(async {
        let store = opened(&address).await.of_tenant(tenant.as_str());
        for n in 0..4 {
            let events = store.load(&format!("r{n}").as_str().into()).await.unwrap().events;
            assert_eq!(events, steps(events.len() as u64), "run {n}");
        }
        store.close().await;
    });
}

#[tokio::test]
async fn work_that_is_given_up_half_way_leaves_the_connections_usable() {
    let Some(address) = address() else { return };
    let options = PostgresOptions { connections_max: 1, ..PostgresOptions::default() };
    let store = Postgres::open(&address, options).await.unwrap().of_tenant(new_run_id().as_str());
    for n in 0..20 {
        let opening = store.open(new_run(&format!("r{n}"), Some("k")), &[]);
        // Polled a few times, then dropped.
        let mut opening = Box::pin(opening);
        for _ in 0..n {
            tokio::select! {
                biased;
                _ = &mut opening => break,
                () = tokio::task::yield_now() => {}
            }
        }
        drop(opening);
    }
    // Whether one of them came through is not told to whoever gave up.
    store.erase(&"k".into()).await.unwrap();
    let lease = store.open(new_run("last", Some("k")), &step(0)).await.unwrap();
    store.append(&lease, STEP_EVENTS, &step(STEP_EVENTS), open()).await.unwrap();
    assert_eq!(store.load(lease.run()).await.unwrap().events, steps(2 * STEP_EVENTS));
    store.close().await;
}
