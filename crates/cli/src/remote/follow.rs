//! Runs on a server, followed while they go on: also over a restart of the server in the middle.

use std::sync::Arc;

use gesta_model::EventReader;
use gesta_run::event::EventKind;
use gesta_run::{ConversationId, Delta, HoldAnswer, InputLabel, RunId, Status};
use gesta_runtime::{Cancel, Listener, Progress};
use http::{HeaderValue, Method};
use serde_json::{Value, json};

use super::{AGAIN_AFTER, Body, Failure, Remote, encoded, wire};
use crate::stored::Shown;

/// A run that the server works on.
pub(crate) struct Begun {
    /// As it stood when it was taken up.
    pub(crate) shown: Shown,
    stream: Stream,
}

/// A stream of events.
struct Stream {
    body: Body,
    reader: EventReader,
    /// What was looked at and not yet told.
    seen: Vec<Value>,
}

impl Stream {
    /// What has come; nothing at the end, also where the connection broke.
    async fn next(&mut self) -> Option<Vec<Value>> {
        if !self.seen.is_empty() {
            return Some(std::mem::take(&mut self.seen));
        }
        let piece = self.body.piece().await.ok()??;
        let mut values = Vec::new();
        let read = self.reader.feed(&piece, |data| {
            values.extend(serde_json::from_slice::<Value>(data).ok());
            Ok::<(), std::convert::Infallible>(())
        });
        read.ok().map(|()| values)
    }
}

impl Remote {
    /// Begins a turn.
    ///
    /// # Errors
    /// The server refuses it, or stays away.
    pub(crate) async fn begin(&self, agent: &str, conversation: &ConversationId, text: &str) -> Result<Begun, Failure> {
        let body = json!({ "input": text, "conversation": conversation, "stream": true });
        let path = format!("/v1/agents/{}/runs", encoded(agent));
        // Sent again under the same key it is the same turn, whether or not it arrived.
        let key = gesta_store::new_run_id();
        self.patiently(|| async {
            let mut stream = self.stream(&path, Some(body.clone()), Some(&key), None).await?;
            loop {
                let values = stream.next().await.ok_or_else(|| self.off("the connection broke"))?;
                if let Some(run) = values.iter().find_map(|value| value.get("run")?.as_str()) {
                    let shown = self.log(&RunId::new(run)).await?;
                    stream.seen = values;
                    return Ok(Begun { shown, stream });
                }
            }
        })
        .await
    }

    /// Answers holds of a run.
    ///
    /// # Errors
    /// The server refuses them, or stays away.
    pub(crate) async fn answer_live(&self, run: &RunId, answers: &[HoldAnswer]) -> Result<Begun, Failure> {
        let answers: Vec<Value> = answers.iter().map(wire).collect();
        let body = json!({ "answers": answers, "stream": true });
        let path = format!("/v1/runs/{}/answers", encoded(run.as_str()));
        let key = gesta_store::new_run_id();
        let shown = self.log(run).await?;
        let stream = self.patiently(|| self.stream(&path, Some(body.clone()), Some(&key), None)).await?;
        Ok(Begun { shown, stream })
    }

    /// Tells what happens in a run behind the first `known` events until nobody works on it any more, and gives it as
    /// it stands then. Cancels it where that is asked for.
    ///
    /// # Errors
    /// The server refuses, or stays away.
    pub(crate) async fn follow(
        &self,
        begun: Begun,
        known: usize,
        cancel: Cancel,
        listener: Listener,
    ) -> Result<Shown, Failure> {
        let Begun { shown, mut stream } = begun;
        let run = shown.stored.head.run;
        let mut telling = Telling { listener, known, trip: None, replied: None, said: String::new() };
        // What was asked for with a request ends when all of it is done; what is followed after a break does not end.
        let (mut whole, mut ends) = (true, false);
        loop {
            let values = tokio::select! {
                () = cancel.cancelled(), if !ends => {
                    ends = true;
                    let path = format!("/v1/runs/{}/cancel", encoded(run.as_str()));
                    self.patiently(|| self.ask::<Value>(Method::POST, &path, None)).await?;
                    continue;
                }
                values = stream.next() => values,
            };
            let is_over = values.is_none();
            let fresh = values.into_iter().flatten().filter(|value| !telling.live(value)).count();
            if fresh == 0 && !is_over {
                continue;
            }
            let shown = self.patiently(|| self.log(&run)).await?;
            telling.events(&shown);
            if shown.stored.head.status != Status::Open && (is_over || !whole) {
                return Ok(shown);
            }
            if is_over {
                tokio::time::sleep(AGAIN_AFTER).await;
                let path = format!("/v1/runs/{}/events", encoded(run.as_str()));
                let last = shown.stored.events.len().checked_sub(1).map(|last| format!("{last}.0"));
                stream = self.patiently(|| self.stream(&path, None, None, last.as_deref())).await?;
                whole = false;
            }
        }
    }

    async fn stream(
        &self,
        path: &str,
        body: Option<Value>,
        key: Option<&RunId>,
        last: Option<&str>,
    ) -> Result<Stream, Failure> {
        let method = if body.is_some() { Method::POST } else { Method::GET };
        let mut request = self.request(method, path, body)?;
        request.headers.insert("accept", HeaderValue::from_static("text/event-stream"));
        for (name, value) in [("idempotency-key", key.map(RunId::as_str)), ("last-event-id", last)] {
            if let Some(value) = value.and_then(|it| HeaderValue::from_str(it).ok()) {
                request.headers.insert(name, value);
            }
        }
        Ok(Stream { body: self.open(request).await?, reader: EventReader::default(), seen: Vec::new() })
    }
}

/// Tells each thing once, whether it was heard live or read in the log, before a break or after it.
struct Telling {
    listener: Listener,
    /// How many events of the log were told.
    known: usize,
    trip: Option<u32>,
    /// The last trip whose answer was told: what is heard of it live comes too late.
    replied: Option<u32>,
    /// What was shown of the present answer.
    said: String,
}

impl Telling {
    /// Tells a piece of an answer. Gives back whether that is all there was to it: anything else stands in the log.
    fn live(&mut self, value: &Value) -> bool {
        let Some(trip) = value.get("trip").and_then(Value::as_u64).and_then(|it| u32::try_from(it).ok()) else {
            return false;
        };
        let (offset, text) = (value.get("offset").and_then(Value::as_u64), value.get("text").and_then(Value::as_str));
        let (Some(offset), Some(text)) = (offset, text) else {
            // That a trip has started.
            return value.as_object().is_some_and(|all| all.len() == 2);
        };
        if self.replied.is_some_and(|replied| trip <= replied) {
            return true;
        }
        self.in_trip(trip);
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.said.len());
        let behind = self.said.get(from..).unwrap_or_default();
        if let Some(rest) = text.strip_prefix(behind) {
            self.say(rest);
        } else if !behind.starts_with(text) {
            // The model was asked again after a break, and says something else.
            let again = format!("{}{text}", self.said.get(..from).unwrap_or_default());
            self.say_anew(again);
        }
        true
    }

    fn in_trip(&mut self, trip: u32) {
        if self.trip.replace(trip) != Some(trip) {
            self.said.clear();
            (self.listener)(Progress::TripStarted { trip, label: InputLabel::Input });
        }
    }

    fn say(&mut self, text: &str) {
        self.said.push_str(text);
        let delta = Delta::Text { block: 0, text: text.to_owned() };
        (self.listener)(Progress::Delta { trip: self.trip.unwrap_or_default(), delta });
    }

    fn say_anew(&mut self, text: String) {
        self.say("\n");
        self.say(&text);
        self.said = text;
    }

    /// Tells what has happened since.
    fn events(&mut self, shown: &Shown) {
        for event in shown.stored.events.iter().skip(self.known) {
            if let EventKind::Replied { trip, reply, .. } = &event.what {
                self.in_trip(*trip);
                self.replied = Some(*trip);
                let whole = reply.joined_text();
                match whole.strip_prefix(self.said.as_str()) {
                    // Nothing was shown: whoever shows the event shows its text.
                    _ if self.said.is_empty() => {}
                    Some(rest) => self.say(rest),
                    None => self.say_anew(whole),
                }
            }
            (self.listener)(Progress::Happened(Arc::new(event.clone())));
        }
        self.known = self.known.max(shown.stored.events.len());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Hears pieces as `(trip, offset, text)`. Gives what is shown of them.
    fn heard(pieces: &[(u32, usize, &str)]) -> String {
        let shown = Arc::new(Mutex::new(String::new()));
        let into = shown.clone();
        let listener: Listener = Arc::new(move |progress| match progress {
            Progress::Delta { delta: Delta::Text { text, .. }, .. } => into.lock().expect("no panic").push_str(&text),
            Progress::TripStarted { trip, .. } => into.lock().expect("no panic").push_str(&format!("[{trip}]")),
            _ => {}
        });
        let mut telling = Telling { listener, known: 0, trip: None, replied: None, said: String::new() };
        for (trip, offset, text) in pieces {
            assert!(telling.live(&json!({ "run": "r", "trip": trip, "offset": offset, "text": text })));
        }
        let shown = shown.lock().expect("no panic");
        shown.clone()
    }

    #[test]
    fn each_piece_is_shown_once_also_after_a_break() {
        assert_eq!(heard(&[(0, 0, "Good "), (0, 5, "day"), (1, 0, "Bye")]), "[0]Good day[1]Bye");
        // Behind a break the answer is told from its beginning: the same, or what the model says when it is asked again.
        assert_eq!(heard(&[(0, 0, "Good "), (0, 0, "Good day"), (0, 8, ".")]), "[0]Good day.");
        assert_eq!(heard(&[(0, 0, "Good day"), (0, 0, "Good "), (0, 5, "day.")]), "[0]Good day.");
        assert_eq!(heard(&[(0, 0, "Good day"), (0, 0, "Go"), (0, 2, "ing")]), "[0]Good day\nGoing");
        // An offset in the middle of a letter is one of another text.
        assert_eq!(heard(&[(0, 0, "\u{e4}"), (0, 1, "x")]), "[0]\u{e4}x");
    }
}
