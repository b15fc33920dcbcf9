//! Documents: a turn works on its own copy, and the conversation has what a completed turn adopted.

use gesta_run::outcome::{Outcome, Status};
use gesta_run::time::Timestamp;
use gesta_store::{Busy, DOCUMENT_BYTES_MAX, DocumentChange, HeadChange, Lease, Store, StoreError, StoredDocument};

use crate::bench::{Bench, TTL_MS, ended, event, new_run, open, turn};

fn works(image: &str) -> HeadChange {
    HeadChange { working: Some(image.into()), ..open() }
}

fn adopts(from: u64) -> HeadChange {
    HeadChange { document: DocumentChange::Adopt { from }, release: true, ..ended() }
}

fn drops() -> HeadChange {
    let change = HeadChange::ended(Outcome::Cancelled);
    HeadChange { document: DocumentChange::Drop, release: true, ..change }
}

fn conflict(from: u64, found: u64) -> StoreError {
    StoreError::DocumentConflict { conversation: "k".into(), from, found }
}

/// The document of conversation `k`: its version and its image as a text.
async fn document(bench: &Bench) -> Option<(u64, String)> {
    let found = bench.store.document(&"k".into()).await.unwrap();
    found.map(|it| (it.version, String::from_utf8(it.image).unwrap()))
}

async fn working(bench: &Bench, run: &str) -> Option<String> {
    let found = bench.store.working(&run.into()).await.unwrap();
    found.map(|it| String::from_utf8(it).unwrap())
}

fn has(version: u64, image: &str) -> Option<(u64, String)> {
    Some((version, image.to_owned()))
}

async fn append(bench: &Bench, lease: &Lease, at: u64, change: HeadChange) -> Result<(), StoreError> {
    bench.store.append(lease, at, &[event(5, "step")], change).await
}

/// Opens a run in conversation `k` that works on this image.
async fn at_work(bench: &Bench, run: &str, image: &str) -> Lease {
    let lease = bench.open(run).await.unwrap();
    append(bench, &lease, 0, works(image)).await.unwrap();
    lease
}

pub(crate) async fn a_working_copy_is_its_runs_alone_until_the_turn_adopts_it(bench: Bench) {
    let lease = at_work(&bench, "r1", "one").await;
    assert_eq!((document(&bench).await, working(&bench, "r1").await), (None, Some("one".to_owned())));
    assert_eq!(working(&bench, "nobody").await, None);
    bench.store.append(&lease, 1, &[event(77, "ends")], adopts(0)).await.unwrap();
    let stored = StoredDocument { version: 1, image: "one".into(), changed_at: Timestamp(77) };
    assert_eq!(bench.store.document(&"k".into()).await.unwrap(), Some(stored));
    assert_eq!(working(&bench, "r1").await, None);
    let lease = at_work(&bench, "r2", "two").await;
    assert_eq!(document(&bench).await, has(1, "one"));
    append(&bench, &lease, 1, adopts(1)).await.unwrap();
    assert_eq!((document(&bench).await, working(&bench, "r2").await), (has(2, "two"), None));
}

pub(crate) async fn the_last_working_copy_counts(bench: Bench) {
    let lease = at_work(&bench, "r1", "first").await;
    append(&bench, &lease, 1, works("second")).await.unwrap();
    append(&bench, &lease, 2, open()).await.unwrap();
    assert_eq!(working(&bench, "r1").await, Some("second".to_owned()));
    append(&bench, &lease, 3, HeadChange { working: Some("last".into()), ..adopts(0) }).await.unwrap();
    assert_eq!((document(&bench).await, working(&bench, "r1").await), (has(1, "last"), None));
}

pub(crate) async fn a_working_copy_that_is_dropped_leaves_the_document_as_it_was(bench: Bench) {
    bench.store.put_document(&"k".into(), 0, "base".into()).await.unwrap();
    let lease = at_work(&bench, "r1", "tried").await;
    append(&bench, &lease, 1, drops()).await.unwrap();
    assert_eq!((document(&bench).await, working(&bench, "r1").await), (has(1, "base"), None));
    let lease = bench.open("r2").await.unwrap();
    append(&bench, &lease, 0, HeadChange { working: Some("tried".into()), ..drops() }).await.unwrap();
    assert_eq!((document(&bench).await, working(&bench, "r2").await), (has(1, "base"), None));
}

/// A run that failed and goes on again after another had the conversation.
pub(crate) async fn a_document_that_changed_during_the_turn_refuses_the_whole_append(bench: Bench) {
    let late = at_work(&bench, "r1", "late").await;
    append(&bench, &late, 1, ended()).await.unwrap();
    let lease = at_work(&bench, "r2", "meanwhile").await;
    append(&bench, &lease, 1, adopts(0)).await.unwrap();
    for from in [0, 2, u64::MAX] {
        let change = HeadChange { turn: Some(turn("late")), ..adopts(from) };
        assert_eq!(append(&bench, &late, 2, change).await.unwrap_err(), conflict(from, 1));
        let change = HeadChange { working: Some("later".into()), ..adopts(from) };
        assert_eq!(append(&bench, &late, 2, change).await.unwrap_err(), conflict(from, 1));
    }
    assert_eq!((document(&bench).await, working(&bench, "r1").await), (has(1, "meanwhile"), Some("late".to_owned())));
    assert_eq!(bench.store.load(&"r1".into()).await.unwrap().events.len(), 2);
    assert!(bench.store.history(&"k".into(), 9).await.unwrap().is_empty());
    // The lease is still the run's: it was not given back by what was refused.
    append(&bench, &late, 2, adopts(1)).await.unwrap();
    assert_eq!(document(&bench).await, has(2, "late"));
}

pub(crate) async fn where_there_is_nothing_to_adopt_nothing_is_refused(bench: Bench) {
    bench.store.put_document(&"k".into(), 0, "base".into()).await.unwrap();
    let lease = bench.open("r1").await.unwrap();
    append(&bench, &lease, 0, adopts(9)).await.unwrap();
    assert_eq!(document(&bench).await, has(1, "base"));
    let lease = bench.open_alone("alone").await;
    append(&bench, &lease, 0, works("alone")).await.unwrap();
    assert_eq!(working(&bench, "alone").await, Some("alone".to_owned()));
    append(&bench, &lease, 1, adopts(9)).await.unwrap();
    assert_eq!(working(&bench, "alone").await, None);
    assert_eq!(bench.store.documents(0).await.unwrap().len(), 1);
}

pub(crate) async fn an_append_that_is_refused_changes_no_document(bench: Bench) {
    let lease = at_work(&bench, "r1", "one").await;
    let moved = append(&bench, &lease, 7, HeadChange { working: Some("two".into()), ..adopts(0) }).await;
    assert!(matches!(moved, Err(StoreError::Conflict { .. })), "{moved:?}");
    append(&bench, &lease, 7, drops()).await.unwrap_err();
    bench.wait_ms(TTL_MS);
    bench.store.claim(&"r1".into()).await.unwrap();
    for change in [works("two"), adopts(0), drops()] {
        assert_eq!(append(&bench, &lease, 1, change).await, Err(StoreError::Fenced { run: "r1".into() }));
    }
    assert_eq!((document(&bench).await, working(&bench, "r1").await), (None, Some("one".to_owned())));
}

pub(crate) async fn whoever_takes_a_run_up_finds_its_working_copy(bench: Bench) {
    let lease = at_work(&bench, "r1", "before the crash").await;
    bench.wait_ms(TTL_MS);
    let taken = bench.store.claim(&"r1".into()).await.unwrap();
    assert!(taken.fence() > lease.fence());
    assert_eq!(working(&bench, "r1").await, Some("before the crash".to_owned()));
    let parks = HeadChange { working: Some("parked".into()), release: true, ..HeadChange::to(Status::Parked) };
    append(&bench, &taken, 1, parks).await.unwrap();
    let taken = bench.store.claim(&"r1".into()).await.unwrap();
    assert_eq!((document(&bench).await, working(&bench, "r1").await), (None, Some("parked".to_owned())));
    append(&bench, &taken, 2, adopts(0)).await.unwrap();
    assert_eq!(document(&bench).await, has(1, "parked"));
}

pub(crate) async fn a_document_is_put_from_outside_while_no_run_has_the_conversation(bench: Bench) {
    let put = async |from: u64, image: &str| bench.store.put_document(&"k".into(), from, image.into()).await;
    assert_eq!(put(1, "x").await, Err(conflict(1, 0)));
    assert_eq!(put(0, "imported").await, Ok(1));
    assert_eq!(put(0, "x").await, Err(conflict(0, 1)));
    let stored = bench.store.document(&"k".into()).await.unwrap().unwrap();
    assert_eq!((stored.version, stored.changed_at), (1, Timestamp(1_000_000)));
    // A document begins no conversation.
    assert!(bench.store.conversation(&"k".into()).await.unwrap().is_none());
    let lease = bench.open("r1").await.unwrap();
    let busy = |busy| StoreError::ConversationBusy { conversation: "k".into(), run: "r1".into(), busy };
    assert_eq!(put(1, "x").await, Err(busy(Busy::Open)));
    let parks = HeadChange { working: Some("parked".into()), release: true, ..HeadChange::to(Status::Parked) };
    append(&bench, &lease, 0, parks).await.unwrap();
    assert_eq!(put(1, "x").await, Err(busy(Busy::Parked)));
    let lease = bench.store.claim(&"r1".into()).await.unwrap();
    append(&bench, &lease, 1, adopts(1)).await.unwrap();
    assert_eq!(put(2, "one tool less").await, Ok(3));
    assert_eq!(document(&bench).await, has(3, "one tool less"));
}

pub(crate) async fn of_many_puts_of_one_version_one_is_kept(bench: Bench) {
    let tasks: Vec<_> = (0..20)
        .map(|n| {
            let store = bench.store.clone();
            tokio::spawn(async move { store.put_document(&"k".into(), 0, vec![n]).await })
        })
        .collect();
    let mut kept = 0;
    for task in tasks {
        match task.await.unwrap() {
            Ok(version) => kept += version,
            Err(refused) => assert_eq!(refused, conflict(0, 1)),
        }
    }
    assert_eq!((kept, bench.store.documents(0).await.unwrap().len()), (1, 1));
}

pub(crate) async fn an_image_is_kept_byte_for_byte_and_up_to_its_limit(bench: Bench) {
    let images = [Vec::new(), vec![0], (0..=255).collect(), vec![0xff; DOCUMENT_BYTES_MAX]];
    let lease = bench.open_alone("r1").await;
    for (from, image) in (0..).zip(&images) {
        assert_eq!(bench.store.put_document(&"k".into(), from, image.clone()).await, Ok(from + 1));
        assert!(bench.store.document(&"k".into()).await.unwrap().unwrap().image == *image, "{from}");
        let change = HeadChange { working: Some(image.clone()), ..open() };
        bench.store.append(&lease, 0, &[], change).await.unwrap();
        assert!(bench.store.working(&"r1".into()).await.unwrap().as_ref() == Some(image), "{from}");
    }
    let image = vec![1; DOCUMENT_BYTES_MAX + 1];
    let refused = bench.store.put_document(&"k".into(), 4, image.clone()).await.unwrap_err();
    let max = DOCUMENT_BYTES_MAX as u64;
    assert_eq!(refused, StoreError::DocumentTooLarge { bytes: max + 1, max });
    let change = HeadChange { working: Some(image), ..open() };
    assert_eq!(append(&bench, &lease, 0, change).await.unwrap_err(), refused);
    assert_eq!(bench.store.head(&"r1".into()).await.unwrap().events, 0);
    assert_eq!(bench.store.documents(0).await.unwrap()[0].version, 4);
}

pub(crate) async fn documents_are_listed_by_their_last_change(bench: Bench) {
    for (conversation, image) in [("b", "bb"), ("a", ""), ("c", "ccc")] {
        bench.store.put_document(&conversation.into(), 0, image.into()).await.unwrap();
    }
    bench.wait_ms(5);
    bench.store.put_document(&"c".into(), 1, "cc".into()).await.unwrap();
    let listed = async |limit| -> Vec<(String, u64, u64, i64)> {
        let heads = bench.store.documents(limit).await.unwrap();
        heads.into_iter().map(|it| (it.conversation.to_string(), it.version, it.bytes, it.changed_at.0)).collect()
    };
    let c = ("c".to_owned(), 2, 2, 1_000_005);
    let a = ("a".to_owned(), 1, 0, 1_000_000);
    let b = ("b".to_owned(), 1, 2, 1_000_000);
    assert_eq!(listed(0).await, [c.clone(), a.clone(), b]);
    assert_eq!(listed(2).await, [c, a]);
}

pub(crate) async fn documents_of_tenants_never_meet(bench: Bench) {
    bench.store.put_document(&"k".into(), 0, "ours".into()).await.unwrap();
    at_work(&bench, "r1", "ours").await;
    assert_eq!(bench.neighbour.document(&"k".into()).await.unwrap(), None);
    assert_eq!(bench.neighbour.working(&"r1".into()).await.unwrap(), None);
    assert!(bench.neighbour.documents(0).await.unwrap().is_empty());
    assert_eq!(bench.neighbour.put_document(&"k".into(), 0, "theirs".into()).await, Ok(1));
    assert!(bench.neighbour.erase(&"k".into()).await.unwrap());
    assert_eq!((document(&bench).await, working(&bench, "r1").await), (has(1, "ours"), Some("ours".to_owned())));
}

pub(crate) async fn erasing_a_conversation_takes_its_document_and_the_working_copies_along(bench: Bench) {
    for (conversation, run) in [("k", "r1"), ("other", "r2")] {
        bench.store.put_document(&conversation.into(), 0, conversation.into()).await.unwrap();
        let lease = bench.store.open(new_run(run, Some(conversation), 1), &[]).await.unwrap();
        append(&bench, &lease, 0, works(run)).await.unwrap();
    }
    assert!(bench.store.erase(&"k".into()).await.unwrap());
    assert_eq!((document(&bench).await, working(&bench, "r1").await), (None, None));
    assert!(bench.store.document(&"other".into()).await.unwrap().is_some());
    assert_eq!(working(&bench, "r2").await, Some("r2".to_owned()));
    // A run of the same name has nothing of it, and a document alone is something to erase.
    bench.open("r1").await.unwrap();
    assert_eq!(working(&bench, "r1").await, None);
    let store: &dyn Store = &*bench.store;
    store.put_document(&"alone".into(), 0, "alone".into()).await.unwrap();
    assert!(store.erase(&"alone".into()).await.unwrap());
    assert_eq!(store.document(&"alone".into()).await.unwrap(), None);
}
