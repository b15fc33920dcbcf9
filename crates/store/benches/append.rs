//! What a durable step costs: one task that waits for each commit, and 64 that share them, in one run.
//!
//! Only ratios between figures of one run mean something: `cargo bench -p gesta-store`. With `GESTA_TEST_POSTGRES` the same
//! on that server, whose settings then decide: `fsync` must be on.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use gesta_run::event::{Event, EventKind};
use gesta_run::message::Block;
use gesta_run::outcome::Status;
use gesta_run::reply::Reply;
use gesta_run::time::Timestamp;
use gesta_store::{HeadChange, Lease, Memory, NewRun, Postgres, PostgresOptions, RunLog, Sqlite, Store, StoreOptions};
use tokio::runtime::{Builder, Runtime};

const TASKS: u64 = 64;

/// What an answer with one call and its result leaves behind: about 700 bytes of JSON.
fn step() -> Vec<Event> {
    let reply = Reply {
        blocks: vec![Block::text("Let me look that up for you. ".repeat(8)), Block::call("c1", "find", "{\"id\":42}")],
        ..Reply::default()
    };
    let kinds = [
        EventKind::Replied { trip: 1, reply, calls: Vec::new() },
        EventKind::Started { call: "c1".into() },
        EventKind::TripEnded { trip: 1 },
    ];
    kinds.into_iter().map(|what| Event { at: Timestamp(1), what }).collect()
}

async fn open(store: &dyn Store, run: &str) -> Lease {
    let new = NewRun {
        run: run.into(),
        agent: "coach".to_owned(),
        conversation: Some(run.into()),
        contact: None,
        config: "hash".to_owned(),
        at: Timestamp(1),
    };
    store.open(new, &[]).await.expect("a new run opens")
}

/// Appends `count` steps from each of `tasks` tasks.
async fn append(store: Arc<dyn Store>, tasks: u64, count: u64, names: Arc<AtomicU64>) -> Duration {
    let mut leases = Vec::new();
    for _ in 0..tasks {
        leases.push(open(&*store, &format!("run {}", names.fetch_add(1, Ordering::Relaxed))).await);
    }
    let events = Arc::new(step());
    let begun = Instant::now();
    let running: Vec<_> = leases
        .into_iter()
        .map(|lease| {
            let (store, events) = (store.clone(), events.clone());
            tokio::spawn(async move {
                for n in 0..count {
                    let at = n * events.len() as u64;
                    let change = HeadChange::to(Status::Open);
                    store.append(&lease, at, &events, change).await.expect("it is appended");
                }
            })
        })
        .collect();
    for task in running {
        task.await.expect("no task panics");
    }
    begun.elapsed()
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime starts")
}

/// A store on the server that the environment names, in a tenant of its own.
fn server(runtime: &Runtime) -> Option<Arc<dyn Store>> {
    let address = std::env::var("GESTA_TEST_POSTGRES").ok()?;
    let opened = runtime.block_on(Postgres::open(&address, PostgresOptions::default()));
    let tenant = gesta_store::new_run_id();
    Some(Arc::new(opened.expect("the server is there").of_tenant(tenant.as_str())))
}

fn appends(criterion: &mut Criterion) {
    let runtime = runtime();
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let disk: Arc<dyn Store> =
        Arc::new(Sqlite::open_blocking(folder.path(), StoreOptions::default()).expect("a new store opens"));
    let memory: Arc<dyn Store> = Arc::new(Memory::default());
    let server = server(&runtime);
    let names = Arc::new(AtomicU64::new(0));
    let mut group = criterion.benchmark_group("append one step");
    group.throughput(Throughput::Elements(1));
    let mut cases =
        vec![("sqlite, 1 task", &disk, 1), ("sqlite, 64 tasks", &disk, TASKS), ("memory, 1 task", &memory, 1)];
    if let Some(server) = &server {
        cases.extend([("postgres, 1 task", server, 1), ("postgres, 64 tasks", server, TASKS)]);
    }
    for (name, store, tasks) in cases {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|iterations| {
                let count = iterations.div_ceil(tasks);
                let took = runtime.block_on(append(store.clone(), tasks, count, names.clone()));
                // The last round may be fuller than asked for.
                took.mul_f64(iterations as f64 / (count * tasks) as f64)
            });
        });
    }
    group.finish();
}

fn loads(criterion: &mut Criterion) {
    let runtime = runtime();
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let store = Sqlite::open_blocking(folder.path(), StoreOptions::default()).expect("a new store opens");
    runtime.block_on(async {
        let lease = open(&store, "r").await;
        let events = step();
        for n in 0..10 {
            let at = n * events.len() as u64;
            store.append(&lease, at, &events, HeadChange::to(Status::Open)).await.expect("it is appended");
        }
    });
    let run = "r".into();
    criterion.bench_function("load a run of 10 steps", |bencher| {
        bencher.iter(|| runtime.block_on(async { black_box(store.load(&run).await.expect("it is there")) }));
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(3));
    targets = appends, loads
}
criterion_main!(benches);
