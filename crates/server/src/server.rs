//! The server: all routes behind one listener, until it is told to stop.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use http::header;
use tokio::net::TcpListener;
use tower_http::catch_panic::CatchPanicLayer;

use crate::app::SetupError;
use crate::apps::Apps;
use crate::options::Setup;
use crate::problem::Problem;
use crate::{ask, console, hosts, repeat, requests, routes, sweep, webhook};

/// The agents behind a listener.
pub struct Server {
    apps: Arc<Apps>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("agents", &self.apps.first.agents.keys()).finish_non_exhaustive()
    }
}

impl Server {
    /// Opens all agents.
    ///
    /// # Errors
    /// There is none, two have one name, or one cannot be used.
    pub fn new(setup: Setup) -> Result<Self, SetupError> {
        Ok(Self { apps: Arc::new(Apps::new(setup)?) })
    }

    /// The names of the agents, in order.
    pub fn agents(&self) -> impl Iterator<Item = &str> {
        self.apps.first.agents.keys().map(String::as_str)
    }

    /// Takes up what was left in the store, and answers requests until `stop` is ready. Then it takes no new work, waits for what goes on as long as
    /// [`crate::Limits::stop_wait`] says, and lets go of the rest: its runs are taken up by whoever serves the store
    /// next. Gives how many that were.
    ///
    /// # Errors
    /// The listener fails.
    pub async fn serve(self, listener: TcpListener, stop: impl Future<Output = ()> + Send) -> io::Result<usize> {
        let (app, router) = (self.apps.first.clone(), self.router());
        let agents = self.agents().collect::<Vec<_>>().join(" ");
        let (address, keys) = (listener.local_addr()?, self.apps.needs_keys().await.unwrap_or(true));
        tracing::info!(%address, agents, keys, "serving");
        let sweeping = tokio::spawn(sweep::sweep(self.apps.clone()));
        if let Some(hurry) = self.apps.hurry() {
            tokio::spawn(webhook::send(self.apps.clone(), hurry));
        }
        // While it stops, requests are still answered: whoever asks whether it is ready is told that it is not.
        let (closed, closing) = tokio::sync::oneshot::channel::<()>();
        let stopping = async move { drop(closing.await) };
        let router = router.into_make_service_with_connect_info::<SocketAddr>();
        let serving = axum::serve(listener, router).with_graceful_shutdown(stopping);
        let serving = std::pin::pin!(serving.into_future());
        let stop = std::pin::pin!(async {
            stop.await;
            tracing::info!(going = app.works.count(), "stopping");
            let left = app.works.stop(app.limits.stop_wait).await;
            drop(closed);
            left
        });
        let ended = match futures_util::future::select(serving, stop).await {
            futures_util::future::Either::Left((ended, _)) => ended.map(|()| 0),
            futures_util::future::Either::Right((left, serving)) => {
                // Answers that are on their way are sent; a client that does not read them is not waited for.
                let _ = tokio::time::timeout(std::time::Duration::from_secs(5), serving).await;
                tracing::info!(left, "stopped");
                Ok(left)
            }
        };
        // The store may be closed now.
        sweeping.abort();
        let _ = sweeping.await;
        ended
    }

    fn router(&self) -> Router {
        let (router, document) = routes::all();
        let document: Arc<str> = document.to_json().unwrap_or_default().into();
        let openapi = move || async move { ([(header::CONTENT_TYPE, "application/json")], document.to_string()) };
        router
            .merge(console::routes())
            .route("/openapi.json", axum::routing::get(openapi))
            .fallback(routes::nowhere)
            .method_not_allowed_fallback(routes::not_like_this)
            .layer(from_fn_with_state(self.apps.clone(), repeat::once))
            .layer(from_fn_with_state(self.apps.clone(), ask::ask))
            .layer(from_fn_with_state(self.apps.clone(), hosts::check))
            .layer(from_fn_with_state(self.apps.clone(), requests::seen))
            .layer(CatchPanicLayer::custom(panicked))
            .with_state(self.apps.clone())
    }
}

/// The OpenAPI document of all routes, as `/openapi.json` gives it.
pub fn document() -> String {
    routes::all().1.to_pretty_json().unwrap_or_default()
}

fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    tracing::error!("a request met a bug: its handler panicked");
    Problem::internal("the server met a bug of its own").into_response()
}
