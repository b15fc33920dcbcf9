//! One [`App`] for each tenant: whoever asks is given that of its key, and reaches nothing of the others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::FromRequestParts;
use gesta_store::TENANT_LOCAL;
use http::request::Parts;
use tokio::sync::{Mutex, Notify, OnceCell};

use crate::app::{App, Common, SetupError};
use crate::hosts::Hosts;
use crate::metrics::Metrics;
use crate::options::Setup;
use crate::problem::Problem;
use crate::rates::Rates;
use crate::work::Works;

/// All tenants of a server.
pub(crate) struct Apps {
    /// That of the store itself: of those who ask without a key, and of strangers.
    pub(crate) first: Arc<App>,
    pub(crate) hosts: Hosts,
    pub(crate) rates: Rates,
    common: Common,
    others: Mutex<BTreeMap<String, Arc<App>>>,
    needs_keys: AtomicBool,
}

impl Apps {
    /// Opens all agents for the store's own tenant.
    pub(crate) fn new(setup: Setup) -> Result<Self, SetupError> {
        let common = Common {
            served: setup.agents.into_iter().map(Arc::new).collect(),
            ring: setup.store.front_of(TENANT_LOCAL),
            kept: setup.store,
            webhook: setup.webhook.map(|webhook| (Arc::new(webhook), Arc::<Notify>::default())),
            works: Arc::new(Works::new(setup.limits.runs_max)),
            metrics: Arc::new(Metrics::new()),
            secrets: setup.secrets,
            sealing: Arc::new(OnceCell::new()),
            traces: setup.traces,
            limits: Arc::new(setup.limits),
        };
        Ok(Self {
            first: Arc::new(App::of(&common, TENANT_LOCAL)?),
            hosts: setup.hosts,
            rates: Rates::new(&common.limits),
            common,
            others: Mutex::default(),
            needs_keys: AtomicBool::new(setup.needs_keys),
        })
    }

    /// That of a tenant. Its agents are opened when it is first asked for.
    pub(crate) async fn of(&self, tenant: &str) -> Result<Arc<App>, Problem> {
        if tenant == TENANT_LOCAL {
            return Ok(self.first.clone());
        }
        let mut others = self.others.lock().await;
        if let Some(app) = others.get(tenant) {
            return Ok(app.clone());
        }
        let (common, name) = (self.common.clone(), tenant.to_owned());
        let opened = tokio::task::spawn_blocking(move || App::of(&common, &name)).await;
        let app = Arc::new(opened.map_err(|_| Problem::internal("the agents of a tenant cannot be opened"))??);
        others.insert(tenant.to_owned(), app.clone());
        Ok(app)
    }

    /// All tenants that there is a key to, one that was taken back too, and the store's own.
    pub(crate) async fn all(&self) -> Result<Vec<Arc<App>>, Problem> {
        let mut names: Vec<String> = self.common.ring.keys().await?.into_iter().map(|key| key.tenant).collect();
        names.sort_unstable();
        names.dedup();
        let mut all = vec![self.first.clone()];
        for name in names.iter().filter(|name| *name != TENANT_LOCAL) {
            all.push(self.of(name).await?);
        }
        Ok(all)
    }

    /// Those that somebody has asked for, or that were swept.
    pub(crate) async fn opened(&self) -> Vec<Arc<App>> {
        let others = self.others.lock().await;
        std::iter::once(self.first.clone()).chain(others.values().cloned()).collect()
    }

    /// Whether who asks needs a key: as soon as there is one, and for good. A server that would be open again when its
    /// last key is taken back would surprise whoever took it back.
    pub(crate) async fn needs_keys(&self) -> Result<bool, Problem> {
        if self.needs_keys.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let needs = !self.common.ring.keys().await?.is_empty();
        self.needs_keys.fetch_or(needs, Ordering::Relaxed);
        Ok(needs)
    }

    /// Wakes whoever sends dispatches.
    pub(crate) fn hurry(&self) -> Option<Arc<Notify>> {
        self.common.webhook.as_ref().map(|(_, hurry)| hurry.clone())
    }
}

/// The tenant of whoever asks.
pub(crate) struct Mine(pub(crate) Arc<App>);

impl<S: Send + Sync> FromRequestParts<S> for Mine {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let app = parts.extensions.get::<Arc<App>>().cloned();
        app.map(Self).ok_or_else(|| Problem::internal("nobody asked whose rows they are"))
    }
}
