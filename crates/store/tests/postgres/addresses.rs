//! A server that can't be used is said by name, with the way out, and never with the password.

use std::path::Path;

use gesta_store::{Postgres, PostgresOptions, StoreError};
use tokio::net::TcpListener;

use crate::server::{address, changed, own_server, run};

fn options() -> PostgresOptions {
    PostgresOptions { connect_wait_ms: 2_000, ..PostgresOptions::default() }
}

async fn refusal(address: &str) -> StoreError {
    let refused = Postgres::open(address, options()).await.map(drop).unwrap_err();
    let said = format!("{refused} {refused:?}");
    assert!(said.contains("; ") && !said.contains("s3cret"), "{said}");
    refused
}

#[tokio::test]
async fn whoever_is_not_let_in_is_told_what_to_mend() {
    let Some(server) = own_server() else { return };
    let good = server.address();
    let with = |user: &str, password: &str, database: &str| {
        changed(&good, |url| {
            url.set_username(user).unwrap();
            url.set_password(Some(password)).unwrap();
            url.set_path(database);
        })
    };
    Postgres::open(&good, options()).await.unwrap().close().await;
    for (address, code, told) in [
        (with("gesta", "s3cret", "postgres"), "store_refused", "mend user and password"),
        (with("nobody", "s3cret", "postgres"), "store_refused", "mend user and password"),
        (with("gesta", "gesta", "elsewhere"), "store_refused", "createdb"),
    ] {
        let refused = refusal(&address).await;
        assert_eq!(refused.code(), code, "{refused}");
        assert!(refused.to_string().contains(told) && refused.to_string().contains("127.0.0.1"), "{refused}");
    }
    run(&good, "CREATE ROLE guest LOGIN PASSWORD 's3cret'").await;
    run(&good, "CREATE DATABASE guarded").await;
    let refused = refusal(&with("guest", "s3cret", "guarded")).await;
    assert_eq!(refused.code(), "store_refused", "{refused}");
    assert!(refused.to_string().contains("give the user the right to create"), "{refused}");
}

#[tokio::test]
async fn a_server_is_trusted_as_its_address_asks() {
    let Some(mut server) = own_server() else { return };
    let plain = server.address();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/tls");
    let authority = fixtures.join("ca.crt").display().to_string();
    let asked = |host: &str, mode: &str, authority: Option<&str>| {
        changed(&plain, |url| {
            url.set_host(Some(host)).unwrap();
            url.query_pairs_mut().append_pair("sslmode", mode).extend_pairs(authority.map(|it| ("sslrootcert", it)));
        })
    };
    let without = refusal(&asked("127.0.0.1", "require", None)).await;
    assert!(without.code() == "store_refused" && without.to_string().contains("mend sslmode"), "{without}");
    server.secure(&fixtures.join("server.crt"), &fixtures.join("server.key")).unwrap();
    for (host, mode, authority, is_trusted) in [
        ("127.0.0.1", "disable", None, true),
        ("127.0.0.1", "prefer", None, true),
        ("127.0.0.1", "require", None, true),
        ("localhost", "verify-full", Some(authority.as_str()), true),
        ("127.0.0.1", "verify-ca", Some(authority.as_str()), true),
        // The certificate is for another name, or of an authority that nobody knows.
        ("127.0.0.1", "verify-full", Some(authority.as_str()), false),
        ("localhost", "verify-full", None, false),
    ] {
        let address = asked(host, mode, authority);
        if !is_trusted {
            let refused = refusal(&address).await;
            assert!(refused.code() == "store_refused" && refused.to_string().contains("sslrootcert"), "{refused}");
            continue;
        }
        let store = Postgres::open(&address, options()).await.unwrap();
        store.check().await.unwrap();
        store.close().await;
    }
}

#[tokio::test]
async fn where_nobody_answers_or_somebody_else_does_the_server_is_out_of_reach() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let address = format!("postgres://maria:s3cret@127.0.0.1:{port}/shop");
    // Somebody who hangs up, somebody who says nothing, nobody.
    let hangs_up = tokio::spawn(async move {
        drop(listener.accept().await.unwrap());
        listener
    });
    let refused = refusal(&address).await;
    assert_eq!(refused.code(), "store_unreachable", "{refused}");
    let listener = hangs_up.await.unwrap();
    let silent = Postgres::open(&address, PostgresOptions { connect_wait_ms: 50, ..options() }).await.unwrap_err();
    assert_eq!(silent.code(), "store_unreachable", "{silent}");
    assert!(silent.is_passing() && silent.to_string().contains("no answer for 50 ms"), "{silent}");
    drop(listener);
    let refused = refusal(&address).await;
    assert_eq!(refused.code(), "store_unreachable", "{refused}");
    assert!(refused.to_string().contains(&format!("postgres://maria@127.0.0.1:{port}/shop")), "{refused}");
}

#[tokio::test]
async fn a_name_that_postgres_does_not_store_is_refused_and_nothing_is_left() {
    use gesta_store::{Conversations, RunLog};
    let Some(address) = address() else { return };
    let store = Postgres::open(&address, options()).await.unwrap();
    let store = store.of_tenant(gesta_store::new_run_id().as_str());
    let new = crate::server::new_run("r1", Some("a\0b"));
    let refused = store.open(new, &[]).await.unwrap_err();
    assert_eq!(refused.code(), "name_unstorable", "{refused}");
    assert!(store.conversations(0).await.unwrap().is_empty());
}
