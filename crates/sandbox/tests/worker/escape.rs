//! The wall: what somebody finds who has got out of the engine.

use gesta_sandbox::{Demand, Pool, PoolSettings, StartError};
use libtest_mimic::Trial;
use serde_json::json;

use crate::told::{call, toy};
use crate::trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("whoever_gets_out_of_the_engine_finds_nothing", nothing_is_open)]
}

async fn nothing_is_open() {
    let pool = Pool::new(PoolSettings::default());
    let walls = pool.start().await.unwrap();
    println!("in force: {walls}");
    let required = Pool::new(PoolSettings { demand: Demand::Required, ..PoolSettings::default() });
    match required.start().await {
        Ok(standing) => assert_eq!(standing, walls),
        Err(StartError::NotWhole { .. }) => assert!(!walls.are_whole()),
        Err(why) => panic!("{why}"),
    }
    let probed = call(&mut toy(&pool, "a"), "probe", json!({"parent": std::process::id()})).await.unwrap().result;
    let tries = probed.as_object().unwrap();
    assert!(tries.len() > 20);
    for (what, end) in tries {
        println!("{what}: {}", end.as_str().unwrap_or("it can"));
    }
    let open: Vec<_> = tries.iter().filter(|(_, end)| end.is_null()).map(|(what, _)| what).collect();
    // Without the kernel's two walls the limits alone remain, and they do not close everything.
    assert!(!walls.are_whole() || open.is_empty(), "{open:?}");
}
