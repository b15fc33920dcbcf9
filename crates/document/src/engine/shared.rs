//! What the functions that the host lends to the engine share with the loop that runs it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gesta_run::json::Object;
use serde_json::Value;
use stof::model::{NodeRef, SId};

use crate::guard::Names;
use crate::{AddedTool, GrantName, Limits};

/// State behind a lock, for functions that the engine wants to be `Send` and `Sync`. Never held while the engine runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shared(Arc<Mutex<State>>);

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One document's state beside the engine.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// While a call runs. Without one, grants and additions are refused: the base is being loaded.
    pub(crate) call: Option<CallState>,
    pub(crate) limits: Limits,
    /// Names that an added tool cannot take, and those added already.
    pub(crate) names: Names,
    /// Whether tools may be added at all.
    pub(crate) may_add: bool,
    /// The object that tools belong to.
    pub(crate) tools: Option<NodeRef>,
    /// Objects that the record knows; all else is an object that this call made.
    pub(crate) live: Arc<std::collections::HashSet<NodeRef>>,
    /// Libraries of which missing functions are named ones: every grant's, and every unknown one that a source calls.
    pub(crate) libraries: Vec<String>,
    /// What the parser found odd in the tool that was added last.
    pub(crate) warnings: Vec<String>,
}

/// One call's state.
#[derive(Debug, Default)]
pub(crate) struct CallState {
    /// What was printed and the host has not taken.
    pub(crate) log: String,
    /// Bytes that the host has taken of it.
    pub(crate) log_taken: usize,
    /// Whether something was printed that is not in the log.
    pub(crate) log_full: bool,
    /// Tools that were added, in order.
    pub(crate) added: Vec<AddedTool>,
    /// Grants called so far.
    pub(crate) grants: u32,
    /// Grant calls that wait for their answer, by the process that made them.
    pub(crate) asked: HashMap<SId, Asked>,
    /// Answers that wait for their process.
    pub(crate) answers: HashMap<SId, Result<Value, String>>,
}

/// A grant call that waits.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) grant: GrantName,
    pub(crate) arguments: Object,
}

impl CallState {
    /// Adds a line to the log, cut at its limit, which is said.
    pub(crate) fn print(&mut self, line: &str, bytes_max: usize) {
        if self.log_full {
            return;
        }
        let cut = log_cut(bytes_max);
        let room = bytes_max.saturating_sub(self.log_taken + self.log.len() + cut.len() + 1);
        let kept = gesta_run::json::cut(line, room);
        self.log_full = kept.len() < line.len();
        if !kept.is_empty() || !self.log_full {
            self.log.push_str(kept);
            self.log.push('\n');
        }
        if self.log_full {
            self.log.push_str(&cut);
        }
    }

    /// What was printed since this was last asked.
    pub(crate) fn take_log(&mut self) -> String {
        self.log_taken += self.log.len();
        std::mem::take(&mut self.log)
    }
}

/// The last line of a log that is not whole; none where the log is too short for it.
fn log_cut(bytes_max: usize) -> String {
    if bytes_max < 512 { String::new() } else { format!("[what was printed beyond {bytes_max} bytes is left out]\n") }
}
