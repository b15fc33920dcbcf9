//! What a document asks of its host while it runs, and what came of it.

use std::fmt;
use std::pin::Pin;

use gesta_document::GrantName;
use gesta_run::json::Object;
use serde_json::Value;

/// What a grant comes to.
pub type GrantFuture<'a> = Pin<Box<dyn Future<Output = Result<Value, String>> + Send + 'a>>;

/// The functions that a host lends to a document, made for one conversation (`spec/documents.md`, 3.14).
pub trait Grants: Send + Sync {
    /// Runs a grant: the `n`th of its call, from 1, with its arguments by name. An error is thrown inside the document.
    ///
    /// The document's clock stands still meanwhile. The future is dropped where it takes longer than a grant may
    /// (`PoolSettings::grant_time_max_ms`) or the whole call has to end; its outcome then counts as unknown.
    fn call(&self, n: u32, grant: GrantName, arguments: Object) -> GrantFuture<'_>;
}

/// For documents that are lent nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoGrants;

impl Grants for NoGrants {
    fn call(&self, _n: u32, grant: GrantName, _arguments: Object) -> GrantFuture<'_> {
        Box::pin(async move { Err(format!("grant {grant} is not available")) })
    }
}

/// A grant call that began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantCall {
    /// Which of its call, from 1.
    pub n: u32,
    /// Which grant.
    pub grant: GrantName,
    /// What came of it.
    pub outcome: GrantOutcome,
}

/// What came of a grant call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantOutcome {
    /// It gave a result: its effect stands.
    Done,
    /// It gave an error.
    Failed,
    /// It began, and nobody waited for its end.
    Unknown,
}

/// Lists what stands and what is unknown after a call that failed; writes nothing where there is neither.
pub(crate) fn write_effects(calls: &[GrantCall], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let kinds = [
        (GrantOutcome::Done, "; what it had called stands: "),
        (GrantOutcome::Unknown, "; the outcome is unknown of: "),
    ];
    for (outcome, before) in kinds {
        let mut told: Vec<(&GrantName, usize)> = Vec::new();
        for call in calls.iter().filter(|call| call.outcome == outcome) {
            match told.iter_mut().find(|(other, _)| **other == call.grant) {
                Some((_, times)) => *times += 1,
                None => told.push((&call.grant, 1)),
            }
        }
        for (at, (name, times)) in told.iter().enumerate() {
            f.write_str(if at == 0 { before } else { ", " })?;
            write!(f, "{name}")?;
            if *times > 1 {
                write!(f, " ({times} times)")?;
            }
        }
    }
    Ok(())
}
