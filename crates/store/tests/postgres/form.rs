//! The form of a database: made by one of many, recognised before it is touched.

use gesta_run::outcome::Outcome;
use gesta_store::{
    Audit, Conversations, DocumentChange, Documents, HeadChange, Keys, Postgres, PostgresOptions, RunFilter, RunLog,
    ServerFault, StoreError,
};
use sqlx::{Connection, Executor, PgConnection};

use crate::server::{Database, new_run, number, opened};

fn fault(result: Result<Postgres, StoreError>) -> ServerFault {
    match result.map(drop).unwrap_err() {
        StoreError::Server { fault, .. } => fault,
        other => panic!("{other:?}"),
    }
}

async fn open(database: &Database) -> Result<Postgres, StoreError> {
    Postgres::open(&database.address, PostgresOptions { lock_wait_ms: 300, ..PostgresOptions::default() }).await
}

#[tokio::test]
async fn many_who_open_a_new_database_at_once_make_it_once() {
    let Some(database) = Database::new().await else { return };
    let tasks: Vec<_> = (0..8)
        .map(|n| {
            let address = database.address.clone();
            tokio::spawn(async move {
                let store = opened(&address).await;
                store.open(new_run(&format!("r{n}"), None), &[]).await.unwrap();
                store.close().await;
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let store = opened(&database.address).await;
    assert_eq!(store.runs(&RunFilter::default()).await.unwrap().len(), 8);
    store.check().await.unwrap();
    store.close().await;
    assert_eq!(number(&database.address, "SELECT sum(version) FROM gesta.form").await, 2);
    database.remove().await;
}

/// A change of form adds a file of the version before it and leaves the others.
#[tokio::test]
async fn the_database_of_every_version_still_loads() {
    for (version, made) in [(1, include_str!("../../fixtures/v1.postgres.sql"))] {
        let Some(database) = Database::new().await else { return };
        database.run(made).await;
        let store = opened(&database.address).await;
        let runs = store.runs(&RunFilter::default()).await.unwrap();
        assert_eq!(runs.iter().map(|it| it.run.as_str()).collect::<Vec<_>>(), ["parked", "ended"], "{version}");
        assert_eq!(store.load(&"ended".into()).await.unwrap().events.len(), 2);
        assert_eq!(store.history(&"talk".into(), 10).await.unwrap().len(), 1);
        assert_eq!(store.document(&"talk".into()).await.unwrap().unwrap().image, b"image one");
        assert_eq!(store.working(&"parked".into()).await.unwrap().unwrap(), b"image two");
        // What came later is there, and empty; what waited goes on.
        assert!(store.keys().await.unwrap().is_empty() && store.audit(0, 0).await.unwrap().is_empty());
        let lease = store.claim(&"parked".into()).await.unwrap();
        let ends = HeadChange { document: DocumentChange::Adopt { from: 1 }, ..HeadChange::ended(Outcome::Completed) };
        store.append(&lease, 1, &[], ends).await.unwrap();
        assert_eq!(store.document(&"talk".into()).await.unwrap().unwrap().image, b"image two");
        store.close().await;
        assert_eq!(number(&database.address, "SELECT sum(version) FROM gesta.form").await, 2);
        database.remove().await;
    }
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_left_untouched() {
    let Some(database) = Database::new().await else { return };
    opened(&database.address).await.close().await;
    database.run("UPDATE gesta.form SET version = 99").await;
    let newer = fault(open(&database).await);
    assert_eq!(newer, ServerFault::Newer { found: 99, known: 2 });
    assert_eq!(number(&database.address, "SELECT CAST(version AS BIGINT) FROM gesta.form").await, 99);
    database.remove().await;
}

#[tokio::test]
async fn tables_of_another_program_in_our_place_are_left_untouched() {
    for made in [
        "CREATE TABLE gesta.runs (a INTEGER)",
        "CREATE TABLE gesta.form (a INTEGER)",
        "CREATE TABLE gesta.form (application TEXT, version INTEGER); INSERT INTO gesta.form VALUES ('other', 1)",
    ] {
        let Some(database) = Database::new().await else { return };
        database.run("CREATE SCHEMA gesta").await;
        for statement in made.split("; ") {
            database.run(statement).await;
        }
        let foreign = fault(open(&database).await);
        assert!(matches!(foreign, ServerFault::Foreign { .. }), "{made}: {foreign:?}");
        let tables = "SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace('gesta')";
        assert_eq!(number(&database.address, tables).await, 1, "{made}");
        database.remove().await;
    }
}

#[tokio::test]
async fn tables_of_another_program_elsewhere_are_no_hindrance() {
    let Some(database) = Database::new().await else { return };
    database.run("CREATE TABLE public.runs (a INTEGER)").await;
    let store = open(&database).await.unwrap();
    store.open(new_run("r1", None), &[]).await.unwrap();
    store.close().await;
    assert_eq!(number(&database.address, "SELECT count(*) FROM public.runs").await, 0);
    database.remove().await;
}

#[tokio::test]
async fn a_database_that_can_only_be_read_is_read() {
    let Some(database) = Database::new().await else { return };
    let store = opened(&database.address).await;
    store.open(new_run("r1", None), &[]).await.unwrap();
    store.close().await;
    let name = database.address.rsplit('/').next().unwrap().to_owned();
    database.run(&format!("ALTER DATABASE {name} SET default_transaction_read_only = on")).await;
    let store = open(&database).await.unwrap();
    assert_eq!(store.runs(&RunFilter::default()).await.unwrap().len(), 1);
    let refused = store.open(new_run("r2", None), &[]).await.unwrap_err();
    assert_eq!(refused.code(), "store_read_only", "{refused}");
    store.close().await;
    database.remove().await;
}

#[tokio::test]
async fn whoever_makes_the_form_is_waited_for_and_never_for_ever() {
    let Some(database) = Database::new().await else { return };
    let mut other = PgConnection::connect(&database.address).await.unwrap();
    other.execute("BEGIN").await.unwrap();
    let lock = i64::from(u32::from_be_bytes(*b"Gest"));
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(lock).execute(&mut other).await.unwrap();
    let waited = fault(open(&database).await);
    assert!(matches!(waited, ServerFault::Slow { .. }), "{waited:?}");
    // One who is killed in the middle lets go of it.
    let address = database.address.clone();
    let opening = tokio::spawn(async move { opened(&address).await });
    tokio::task::yield_now().await;
    drop(other);
    opening.await.unwrap().close().await;
    database.remove().await;
}

#[tokio::test]
async fn tables_that_were_changed_by_hand_are_damage_and_no_panic() {
    let Some(database) = Database::new().await else { return };
    let store = opened(&database.address).await;
    store.open(new_run("r1", None), &[]).await.unwrap();
    database.run("ALTER TABLE gesta.runs ALTER COLUMN fence TYPE TEXT").await;
    let damaged = store.load(&"r1".into()).await.unwrap_err();
    assert!(["record_damaged", "store_damaged", "store_io"].contains(&damaged.code()), "{damaged:?}");
    database.run("DROP TABLE gesta.runs").await;
    let damaged = store.runs(&RunFilter::default()).await.unwrap_err();
    assert_eq!(damaged.code(), "store_damaged", "{damaged}");
    store.close().await;
    database.remove().await;
}
