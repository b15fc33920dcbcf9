//! What the two ends of a worker's pipes say to each other: one JSON value a line, each line bounded.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gesta_document::{AddedTool, CallError, Form, GrantName, Limits, OpenError, Record, Refused, Report, Terms};
use gesta_run::ToolSpec;
use gesta_run::json::Object;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::{Usage, Walls};

/// Bytes of a line to a worker. The parent writes them, so this only keeps a mistake from growing without end.
pub(crate) const ASK_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of a line from a worker, whose author is not trusted: what a call within its limits can come to, doubled for
/// what JSON escapes.
pub(crate) fn answer_bytes_max(limits: &Limits) -> usize {
    let value = limits.value_bytes_max.max(limits.grant_arguments_bytes_max);
    let sources = limits.source_bytes_max.saturating_mul(limits.added_tools_max);
    let sum = [value, limits.data_bytes_max, limits.log_bytes_max, sources].into_iter().fold(0, usize::saturating_add);
    sum.saturating_mul(2).saturating_add(256 * 1024)
}

/// To the worker. Each is answered by one [`Answer`], but for [`Ask::Granted`], which goes on with the call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ask<'a> {
    /// Open this document; the first thing asked, and asked once.
    Open { record: Cow<'a, Record>, terms: Cow<'a, Terms> },
    /// Say what this base holds, in place of opening one.
    Check { base: Cow<'a, str>, terms: Cow<'a, Terms> },
    /// Describe the tools.
    Specs,
    /// Run a tool.
    Call { tool: Cow<'a, str>, arguments: Cow<'a, Object> },
    /// Run the functions tagged `#[main]`.
    Main,
    /// Add a tool from outside.
    AddTool { source: Cow<'a, str> },
    /// Write the document for other programs.
    Export { form: Form },
    /// Give the data.
    Save,
    /// Say what the process uses.
    Usage,
    /// What a grant came to.
    Granted { n: u32, result: Result<Value, String> },
}

/// From the worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// The process stands within these walls; said once, unasked.
    Ready {
        walls: Walls,
    },
    /// The walls could not be raised.
    NotReady {
        why: String,
    },
    Opened {
        added: Vec<AddedTool>,
        /// Tools of the data that were not taken.
        #[serde(default)]
        left_out: Vec<String>,
    },
    NotOpened {
        error: OpenError,
    },
    Checked {
        report: Box<Report>,
    },
    Specs {
        specs: Vec<ToolSpec>,
    },
    /// A call or a main function came to an end.
    Called {
        result: Value,
        added: Vec<AddedTool>,
        data: Option<Blob>,
        log: String,
        running_us: u64,
        resident_bytes: u64,
    },
    /// Whatever was asked did not succeed; the document is as it was before.
    Failed {
        error: CallError,
        /// What was printed until then, where the process has no log of its own for it.
        #[serde(default)]
        log: String,
        resident_bytes: u64,
    },
    ToolAdded {
        tool: AddedTool,
    },
    ToolRefused {
        refused: Refused,
    },
    Exported {
        bytes: Blob,
    },
    Saved {
        data: Blob,
    },
    Usage {
        usage: Usage,
    },
    /// The document calls a grant; the parent owes an [`Ask::Granted`] with the same number.
    Grant {
        n: u32,
        grant: GrantName,
        arguments: Object,
    },
    /// Something was asked out of turn.
    Misled {
        why: String,
    },
}

/// Bytes, as base64 in JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blob(pub(crate) Vec<u8>);

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&base64::display::Base64Display::new(&self.0, &STANDARD))
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <Cow<'de, str>>::deserialize(deserializer)?;
        STANDARD.decode(text.as_bytes()).map(Self).map_err(serde::de::Error::custom)
    }
}

/// Appends a message and its line end.
///
/// # Errors
/// Never for the messages of this file, whose keys are all text; what serde says.
pub(crate) fn print(message: &impl Serialize, line: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    serde_json::to_writer(&mut *line, message)?;
    line.push(b'\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_and_comes_back_as_it_went() {
        let mut line = Vec::new();
        let sent = Answer::Called {
            result: serde_json::json!({"text": "two\nlines", "n": 1.5}),
            added: Vec::new(),
            data: Some(Blob(vec![0, 10, 255])),
            log: "a\nb".to_owned(),
            running_us: 7,
            resident_bytes: 8,
        };
        print(&sent, &mut line).unwrap();
        assert_eq!(memchr::memchr_iter(b'\n', &line).collect::<Vec<_>>(), [line.len() - 1]);
        let read: Answer = serde_json::from_slice(&line).unwrap();
        assert_eq!(format!("{read:?}"), format!("{sent:?}"));
    }

    #[test]
    fn a_call_within_its_limits_fits_into_a_line() {
        let limits = Limits::default();
        let quotes = "\"".repeat(limits.value_bytes_max / 2);
        let sent = Answer::Called {
            result: Value::String(quotes),
            added: Vec::new(),
            data: Some(Blob(vec![1; limits.data_bytes_max])),
            log: "\\".repeat(limits.log_bytes_max),
            running_us: 0,
            resident_bytes: 0,
        };
        let mut line = Vec::new();
        print(&sent, &mut line).unwrap();
        assert!(line.len() < answer_bytes_max(&limits));
    }
}
