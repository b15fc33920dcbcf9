//! A tool whose answers wait until the test lets them go.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};

/// The tool.
pub(crate) struct Gate {
    port: u16,
    shared: Arc<Shared>,
    begun: mpsc::UnboundedReceiver<()>,
}

struct Shared {
    open: Semaphore,
    calls: AtomicUsize,
    tell: mpsc::UnboundedSender<()>,
}

impl Gate {
    pub(crate) async fn new() -> Self {
        let (tell, begun) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared { open: Semaphore::new(0), calls: AtomicUsize::new(0), tell });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let router = Router::new().route("/", post(answer)).with_state(shared.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { port, shared, begun }
    }

    /// The part of `agent.toml` that declares it as `slow`.
    pub(crate) fn toml(&self, more: &str) -> String {
        let port = self.port;
        format!(
            "{more}\n[network]\nallow = [\"127.0.0.1:{port}\"]\n[[tools]]\nname = \"slow\"\ndescription = \"Waits.\"\n\
             url = \"http://127.0.0.1:{port}/\"\nparameters = {{ type = \"object\" }}\n"
        )
    }

    /// Waits until it is called.
    pub(crate) async fn called(&mut self) {
        self.begun.recv().await.unwrap();
    }

    /// Lets so many calls go on.
    pub(crate) fn open(&self, calls: usize) {
        self.shared.open.add_permits(calls);
    }

    /// How often it was called.
    pub(crate) fn calls(&self) -> usize {
        self.shared.calls.load(Ordering::SeqCst)
    }
}

async fn answer(State(shared): State<Arc<Shared>>) -> axum::Json<Value> {
    shared.calls.fetch_add(1, Ordering::SeqCst);
    let _ = shared.tell.send(());
    shared.open.acquire().await.unwrap().forget();
    axum::Json(json!({ "done": true }))
}
