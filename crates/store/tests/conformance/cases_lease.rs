//! Who may append to a run, and for how long.

use gesta_run::outcome::Status;
use gesta_store::{HeadChange, StoreError};

use crate::bench::{Bench, TTL_MS, event, open};

fn fenced() -> StoreError {
    StoreError::Fenced { run: "r1".into() }
}

pub(crate) async fn a_run_is_not_claimed_while_someone_works_on_it(bench: Bench) {
    let lease = bench.open_alone("r1").await;
    bench.wait_ms(TTL_MS - 1);
    let refused = bench.store.claim(&"r1".into()).await.unwrap_err();
    assert_eq!(refused, StoreError::Leased { run: "r1".into(), until: lease.until() });
    assert!(refused.is_passing());
    bench.store.append(&lease, 0, &[event(1, "one")], open()).await.unwrap();
}

pub(crate) async fn a_lease_that_lapsed_is_taken_and_its_owner_is_fenced(bench: Bench) {
    let late = bench.open_alone("r1").await;
    bench.wait_ms(TTL_MS);
    let lease = bench.store.claim(&"r1".into()).await.unwrap();
    assert_eq!((late.fence(), lease.fence()), (1, 2));
    assert_eq!(bench.store.append(&late, 0, &[event(1, "late")], open()).await.unwrap_err(), fenced());
    assert_eq!(bench.store.renew(&late).await.unwrap_err(), fenced());
    bench.store.release(&late).await.unwrap();
    bench.store.append(&lease, 0, &[event(1, "mine")], open()).await.unwrap();
    assert_eq!(bench.store.load(&"r1".into()).await.unwrap().events, [event(1, "mine")]);
}

pub(crate) async fn a_run_that_was_given_back_is_claimed_at_once(bench: Bench) {
    let old = bench.open_alone("r1").await;
    bench.store.release(&old).await.unwrap();
    assert_eq!(bench.store.head(&"r1".into()).await.unwrap().held_by, None);
    assert_eq!(bench.store.append(&old, 0, &[event(1, "late")], open()).await.unwrap_err(), fenced());
    let lease = bench.store.claim(&"r1".into()).await.unwrap();
    assert_eq!(lease.fence(), 2);
    assert_eq!(bench.store.renew(&old).await.unwrap_err(), fenced());
}

pub(crate) async fn an_append_that_releases_gives_the_run_back(bench: Bench) {
    let lease = bench.open_alone("r1").await;
    let parks = HeadChange { release: true, ..HeadChange::to(Status::Parked) };
    bench.store.append(&lease, 0, &[event(1, "one")], parks).await.unwrap();
    assert_eq!(bench.store.append(&lease, 1, &[], open()).await.unwrap_err(), fenced());
    let lease = bench.store.claim(&"r1".into()).await.unwrap();
    bench.store.append(&lease, 1, &[event(2, "two")], open()).await.unwrap();
}

pub(crate) async fn appending_and_renewing_keep_a_lease(bench: Bench) {
    let lease = bench.open_alone("r1").await;
    bench.wait_ms(TTL_MS - 1);
    bench.store.append(&lease, 0, &[event(1, "one")], open()).await.unwrap();
    bench.wait_ms(TTL_MS - 1);
    bench.store.renew(&lease).await.unwrap();
    bench.wait_ms(TTL_MS - 1);
    assert!(matches!(bench.store.claim(&"r1".into()).await, Err(StoreError::Leased { .. })));
    bench.wait_ms(1);
    bench.store.claim(&"r1".into()).await.unwrap();
}

pub(crate) async fn of_many_claims_one_succeeds(bench: Bench) {
    let lease = bench.open_alone("r1").await;
    bench.store.release(&lease).await.unwrap();
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let store = bench.store.clone();
            tokio::spawn(async move { store.claim(&"r1".into()).await.is_ok() })
        })
        .collect();
    let mut claimed = 0;
    for task in tasks {
        claimed += u32::from(task.await.unwrap());
    }
    assert_eq!((claimed, bench.store.head(&"r1".into()).await.unwrap().fence), (1, 2));
}
