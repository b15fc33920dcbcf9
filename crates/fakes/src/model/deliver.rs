//! Turns an answer and the faults that it shows into the bytes, pauses and breaks of a response.

use std::time::Duration;

use bytes::Bytes;
use http::Response;

use super::faults::{Cut, Faults};
use super::refusal::{Protocol, Refusal, usual};
use crate::body::{Step, Steps};
use crate::server::{plain, with_body};

const HTML: &str = "<!DOCTYPE html>\n<html><head><title>Bad gateway</title></head>\
    <body><h1>Bad gateway</h1><p>A proxy stands in between.</p></body></html>\n";

/// An answer of the model in the bytes of a protocol.
#[derive(Debug, Clone)]
pub(crate) enum Written {
    /// In one piece.
    Plain(Bytes),
    /// The events of a stream, each with its blank line.
    Events(Vec<Bytes>),
}

/// An error in place of an answer.
pub(crate) fn refused(protocol: Protocol, refusal: &Refusal) -> Response<Steps> {
    plain(refusal.status, "application/json", refusal.body(protocol).to_string())
}

/// An answer that shows these faults. Waiting, hanging and dropping are done before.
pub(crate) fn deliver(protocol: Protocol, written: &Written, faults: &Faults) -> Response<Steps> {
    if let Some(response) = instead(protocol, written, faults) {
        return response;
    }
    let is_stream = matches!(written, Written::Events(_));
    let pieces = match written {
        Written::Plain(body) if faults.malformed => vec![body.slice(..body.len() / 2)],
        Written::Plain(body) => vec![body.clone()],
        Written::Events(events) if faults.malformed => {
            broken(events, Bytes::from_static(b"data: {\"type\": \"broken\", \"choices\": [{\n\n"))
        }
        Written::Events(events) if faults.error_event => broken(events, error_event(protocol)),
        Written::Events(events) => events.clone(),
    };
    let total: usize = pieces.iter().map(Bytes::len).sum();
    let length = (!is_stream).then_some(total as u64);
    let end = match (faults.cut, faults.stall) {
        (Some(Cut::Half), _) => Some((total / 2, Step::Cut)),
        (Some(Cut::After(bytes)), _) => Some((bytes.min(total), Step::Cut)),
        (None, true) => Some((total / 2, Step::Stall)),
        (None, false) => None,
    };
    let content_type = if is_stream { "text/event-stream; charset=utf-8" } else { "application/json" };
    with_body(200, content_type, Steps::new(steps(pieces, faults, end), length))
}

/// An answer of another kind, where the faults ask for one.
fn instead(protocol: Protocol, written: &Written, faults: &Faults) -> Option<Response<Steps>> {
    let plain_event = faults.error_event && matches!(written, Written::Plain(_));
    let mut response = if faults.html {
        plain(faults.status.unwrap_or(502), "text/html; charset=utf-8", HTML)
    } else if let Some(status) = faults.status {
        refused(protocol, &usual(protocol, status))
    } else if faults.error_object || plain_event {
        plain(200, "application/json", usual(protocol, 500).body(protocol).to_string())
    } else {
        return None;
    };
    if let Some(seconds) = faults.retry_after_s {
        response.headers_mut().insert(http::header::RETRY_AFTER, seconds.into());
    }
    Some(response)
}

/// The first half of a stream and then something else.
fn broken(events: &[Bytes], last: Bytes) -> Vec<Bytes> {
    events[..events.len() / 2].iter().cloned().chain([last]).collect()
}

fn error_event(protocol: Protocol) -> Bytes {
    let error = usual(protocol, 503).body(protocol);
    match protocol {
        Protocol::OpenAi => format!("data: {error}\n\n").into(),
        Protocol::Anthropic => format!("event: error\ndata: {error}\n\n").into(),
    }
}

/// The pieces one by one, cut to the size that is wanted, up to the end that is wanted.
fn steps(pieces: Vec<Bytes>, faults: &Faults, end: Option<(usize, Step)>) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut left = end.as_ref().map_or(usize::MAX, |(bytes, _)| *bytes);
    for mut piece in pieces {
        piece.truncate(left);
        left -= piece.len();
        if faults.pace_ms > 0 && !steps.is_empty() {
            steps.push(Step::Pause(Duration::from_millis(faults.pace_ms)));
        }
        match faults.split_bytes {
            None => steps.push(Step::Send(piece)),
            Some(size) => {
                while !piece.is_empty() {
                    steps.push(Step::Send(piece.split_to(size.min(piece.len()))));
                    steps.push(Step::Flush);
                }
            }
        }
        if left == 0 {
            break;
        }
    }
    if let Some((_, last)) = end {
        // Without it the bytes before the break might never leave this process.
        steps.extend([Step::Flush, last]);
    }
    steps
}
