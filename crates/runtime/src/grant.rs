//! Grants with a body: typed async functions that the tools of a document may call.

use std::future::Future;
use std::sync::Arc;

use gesta_run::{GrantSpec, ToolEffect};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::tool::{Scope, Tool, ToolBody};

/// A grant for [`crate::AgentBuilder::grant`]. It is made for one conversation: whom it concerns is in the [`Scope`],
/// never in an argument (`spec/documents.md`, 3.14).
#[derive(Clone)]
pub struct Grant {
    pub(crate) spec: GrantSpec,
    pub(crate) body: Arc<dyn ToolBody>,
}

impl std::fmt::Debug for Grant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Grant").field(&self.spec.full_name()).finish()
    }
}

impl Grant {
    /// A grant from a typed async function: library and name under which documents call it (`App`, `refund`), its
    /// parameters in order, and the body. An `Err` is thrown inside the document.
    pub fn new<A, R, E, Fut>(
        library: &str,
        name: &str,
        params: &[&str],
        body: impl Fn(A, Scope) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        R: Serialize,
        E: std::fmt::Display,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
    {
        let (parameters, body) = Tool::typed(body);
        let spec = GrantSpec { parameters, ..GrantSpec::new(library, name, params.iter().copied()) };
        Self { spec, body: Arc::new(body) }
    }

    /// A grant whose schema is written by hand.
    pub fn with_body(spec: GrantSpec, body: impl ToolBody + 'static) -> Self {
        Self { spec, body: Arc::new(body) }
    }

    /// Says what calling it does to the world. `once` without this.
    #[must_use]
    pub fn effect(mut self, effect: ToolEffect) -> Self {
        self.spec.effect = effect;
        self
    }

    /// How long it may take. 10 s without this.
    #[must_use]
    pub fn time_limit(mut self, limit: std::time::Duration) -> Self {
        self.spec.time_limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        self
    }
}
