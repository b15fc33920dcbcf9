//! Many conversations at once: nobody gets what is another's, and nobody waits much longer than the others.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use gesta_sandbox::{Cause, Pool, PoolSettings};
use libtest_mimic::Trial;
use serde_json::json;

use crate::told::{Shop, call, call_with, pool, toy};
use crate::trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("sixty_four_conversations_keep_their_own_and_wait_alike", sixty_four),
        trial("a_second_conversation_is_answered_while_the_first_is_hostile", beside_a_hostile_one),
        trial("who_waits_too_long_for_a_worker_gets_an_error", busy),
        trial("there_are_never_more_workers_than_there_may_be", at_most),
    ]
}

const ROUNDS: usize = 4;

/// One conversation: adds a tool of its own and calls it in a loop. How long its calls took together.
async fn converse(pool: &Pool, n: usize) -> Duration {
    let canary = format!("canary {n}");
    let shop = Shop::default();
    let mut session = toy(pool, &canary);
    let began = Instant::now();
    let tool = format!("tool_{n}");
    call(&mut session, "add", json!({"name": tool, "source": canary})).await.unwrap();
    for round in 0..ROUNDS {
        let id = format!("{canary}, {round}");
        let called = call_with(&mut session, &tool, json!({"id": id}), &shop).await.unwrap();
        assert_eq!(called.result[1]["id"], json!(id));
    }
    let took = began.elapsed();
    let asked = shop.asked.lock().unwrap();
    assert_eq!(asked.len(), ROUNDS);
    assert!(asked.iter().all(|(_, arguments)| arguments["id"].as_str().unwrap().starts_with(&canary)));
    assert_eq!(session.record().added.len(), 1);
    assert_eq!(session.record().added[0].source, canary);
    took
}

async fn sixty_four() {
    let pool = Pool::new(PoolSettings { wait_max_ms: 60_000, ..PoolSettings::default() });
    pool.start().await.unwrap();
    let hostile = async {
        let mut session = toy(&pool, "hostile");
        for tool in ["spin", "bomb", "flood", "recurse"] {
            call_with(&mut session, tool, json!({}), &Shop::default()).await.unwrap_err();
        }
    };
    let all = join_all((0..64).map(|n| converse(&pool, n)));
    let (mut took, ()) = futures_util::future::join(all, hostile).await;
    took.sort();
    let (median, longest) = (took[32], took[63]);
    println!("median {median:?}, longest {longest:?}");
    assert!(longest <= median * 2, "median {median:?}, longest {longest:?}");
}

async fn beside_a_hostile_one() {
    let pool = pool();
    let (mut hostile, mut other) = (toy(&pool, "hostile"), toy(&pool, "other"));
    call(&mut other, "echo", json!({})).await.unwrap();
    let mut bad = Box::pin(call(&mut hostile, "spin", json!({})));
    let mut answered = 0;
    loop {
        let began = Instant::now();
        let good = Box::pin(call(&mut other, "echo", json!({"n": answered})));
        match futures_util::future::select(bad, good).await {
            futures_util::future::Either::Left((ended, _)) => {
                ended.unwrap_err();
                break;
            }
            futures_util::future::Either::Right((echo, still)) => {
                assert_eq!(echo.unwrap().result, json!({"n": answered}));
                assert!(began.elapsed() < Duration::from_millis(200));
                answered += 1;
                bad = still;
            }
        }
    }
    assert!(answered > 10, "{answered}");
}

async fn busy() {
    let settings = PoolSettings { workers_max: 1, wait_max_ms: 400, ..PoolSettings::default() };
    let pool = Pool::new(settings);
    let (mut first, mut second) = (toy(&pool, "a"), toy(&pool, "b"));
    let spin = call(&mut first, "spin", json!({}));
    let waits = call(&mut second, "echo", json!({}));
    let (_, second_ended) = futures_util::future::join(spin, waits).await;
    assert_eq!(second_ended.unwrap_err().cause, Cause::Busy { waited_ms: 400 });
    // Once one is there again it is answered, however long the machine takes to start it.
    let until = Instant::now() + Duration::from_secs(10);
    while call(&mut second, "echo", json!({})).await.is_err() {
        assert!(Instant::now() < until);
    }
}

async fn at_most() {
    let settings = PoolSettings { workers_max: 3, wait_max_ms: 60_000, ..PoolSettings::default() };
    let pool = Pool::new(settings);
    let calls = join_all((0..20).map(|n| converse(&pool, n)));
    let mut calls = std::pin::pin!(calls);
    let watched = std::future::poll_fn(|context| {
        let counts = pool.counts();
        assert!(counts.live <= 3 && counts.warm + counts.kept <= 3, "{counts:?}");
        calls.as_mut().poll(context)
    });
    watched.await;
}
