//! What a document may use (`spec/documents.md`, 3).

use serde::{Deserialize, Serialize};

/// Limits of one document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Running time of one call inside the document, grants left out, in milliseconds.
    pub call_time_max_ms: u64,
    /// Instructions of one call: the same on every machine, where time is not.
    pub instructions_max: u64,
    /// Functions that call each other.
    pub call_depth_max: usize,
    /// Async functions that one call begins.
    pub processes_max: usize,
    /// Grant calls of one call.
    pub grants_max: u32,
    /// Bytes of the arguments of one grant call.
    pub grant_arguments_bytes_max: usize,
    /// Bytes of the result of one grant call.
    pub grant_result_bytes_max: usize,
    /// Levels of a value that crosses the boundary.
    pub value_depth_max: usize,
    /// Bytes of such a value, as JSON.
    pub value_bytes_max: usize,
    /// Keys of such a value, all its objects together.
    pub value_keys_max: usize,
    /// Bytes of a source from outside.
    pub source_bytes_max: usize,
    /// Tools that were added.
    pub added_tools_max: usize,
    /// Bytes that a call may print.
    pub log_bytes_max: usize,
    /// Bytes of the saved data.
    pub data_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            call_time_max_ms: 2_000,
            instructions_max: 50_000_000,
            call_depth_max: 1_000,
            processes_max: 256,
            grants_max: 50,
            grant_arguments_bytes_max: 64 * 1024,
            grant_result_bytes_max: 256 * 1024,
            value_depth_max: 64,
            value_bytes_max: 256 * 1024,
            value_keys_max: 10_000,
            source_bytes_max: 8 * 1024,
            added_tools_max: 32,
            log_bytes_max: 16 * 1024,
            data_bytes_max: 1024 * 1024,
        }
    }
}
