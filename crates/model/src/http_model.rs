//! A model behind HTTP: one request, its answer piece by piece, tried again only while nothing was handed out.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use gesta_run::reply::{Delta, Fault, FaultKind, Reply, Usage};
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Uri};

use crate::check::check_history;
use crate::decoder::{self, Decoder};
use crate::fault::{cut_short, encoded, fault, from_status, from_transport, length_of, malformed, no_stream};
use crate::provider::{Protocol, Provider};
use crate::request::{Answer, Model, Piece, Request, Retrying};
use crate::retry::Retries;
use crate::sse::EventReader;
use crate::transport::{BODY_BYTES_MAX, Body, Outgoing, Response, Timeouts, Transport, TransportError};
use crate::wire::{Capture, Wire, WireRecord};
use crate::{anthropic, openai};

/// A provider's models.
#[derive(Debug, Clone)]
pub struct HttpModel(Arc<Shared>);

#[derive(Debug, Clone)]
struct Shared {
    provider: Provider,
    transport: Transport,
    timeouts: Timeouts,
    retries: Retries,
    wire: Option<Wire>,
}

impl HttpModel {
    /// Models of this provider.
    pub fn new(provider: Provider, transport: Transport, timeouts: Timeouts, retries: Retries) -> Self {
        Self(Arc::new(Shared { provider, transport, timeouts, retries, wire: None }))
    }

    fn prepare(&self, request: &Request<'_>) -> Result<Outgoing, Fault> {
        check_history(request.all())?;
        let provider = &self.0.provider;
        let body = match provider.protocol {
            Protocol::OpenAi => openai::request(request, &provider.dialect)?,
            Protocol::Anthropic => anthropic::request(request, &provider.dialect)?,
        };
        let unusable = |why| fault(FaultKind::Config, format!("the address of `{}`: {why}", provider.name));
        let mut headers = provider.headers.clone();
        let accept = if request.stream { "text/event-stream" } else { "application/json" };
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        let uri = provider.uri(request.model).map_err(unusable)?;
        Ok(Outgoing { method: Method::POST, uri, headers, body: body.into() })
    }
}

impl Model for HttpModel {
    fn ask(&self, request: &Request<'_>) -> Answer {
        let outgoing = match self.prepare(request) {
            Ok(outgoing) => outgoing,
            Err(fault) => return Box::pin(stream::iter([Err(fault)])),
        };
        let asking = Box::new(Asking {
            shared: self.0.clone(),
            outgoing,
            stream: request.stream,
            attempt: 0,
            phase: Phase::Begin,
            ready: Vec::new().into_iter(),
            handed_out: false,
            spent: Usage::default(),
        });
        Box::pin(stream::unfold(asking, |mut asking| async move {
            let piece = asking.next().await?;
            Some((piece, asking))
        }))
    }

    fn protocol(&self) -> &str {
        self.0.provider.protocol.as_str()
    }

    fn supports_output_schema(&self) -> bool {
        self.0.provider.dialect.output_schema
    }

    fn captured(&self, wire: Wire) -> Option<Arc<dyn Model>> {
        let shared = Shared { wire: Some(wire), ..(*self.0).clone() };
        Some(Arc::new(Self(Arc::new(shared))))
    }
}

/// One answer that is being asked for.
struct Asking {
    shared: Arc<Shared>,
    outgoing: Outgoing,
    stream: bool,
    attempt: u32,
    phase: Phase,
    /// Deltas that go out before anything more is read.
    ready: std::vec::IntoIter<Delta>,
    handed_out: bool,
    /// Tokens of attempts that failed.
    spent: Usage,
}

enum Phase {
    Begin,
    /// Waits, in milliseconds, before it begins anew.
    Waiting(u64),
    Reading(Box<Reading>),
    Ready(Box<Reply>),
    /// What went wrong behind the deltas that go out first.
    Failed(Box<Fault>),
    Over,
}

/// A stream that is being read.
struct Reading {
    body: Body,
    reader: EventReader,
    decoder: Decoder,
    capture: Option<Capture>,
    begun: bool,
    /// What the server calls it.
    kind: String,
    /// Its first bytes, as long as no event was read from it.
    head: Option<Vec<u8>>,
}

/// How much of a body that is no stream is looked at, to say what it is.
const HEAD_BYTES: usize = 64;

impl Asking {
    async fn next(&mut self) -> Option<Result<Piece, Fault>> {
        loop {
            if let Some(delta) = self.ready.next() {
                self.handed_out = true;
                return Some(Ok(Piece::Delta(delta)));
            }
            let result = match std::mem::replace(&mut self.phase, Phase::Over) {
                Phase::Begin => self.begin().await,
                Phase::Waiting(wait_ms) => {
                    tokio::time::sleep(Duration::from_millis(wait_ms)).await;
                    self.begin().await
                }
                Phase::Reading(reading) => self.read(reading).await,
                Phase::Ready(mut reply) => {
                    reply.usage += self.spent;
                    return Some(Ok(Piece::Finished(reply)));
                }
                Phase::Failed(fault) => Err(*fault),
                Phase::Over => return None,
            };
            let Err(mut fault) = result else { continue };
            self.ready = Vec::new().into_iter();
            let dice = fastrand::f64();
            let wait = self.shared.retries.wait_ms(self.attempt, &fault, dice).filter(|_| !self.handed_out);
            let Some(wait_ms) = wait else {
                self.way_out(&mut fault);
                fault.message = self.shared.provider.hide(fault.message);
                fault.usage += self.spent;
                return Some(Err(fault));
            };
            self.spent += fault.usage;
            self.attempt += 1;
            self.phase = Phase::Waiting(wait_ms);
            return Some(Ok(Piece::Retrying(Retrying {
                attempt: self.attempt + 1,
                attempts_max: self.shared.retries.attempts_max,
                wait_ms,
                because: self.shared.provider.hide(fault.message),
            })));
        }
    }

    /// Adds what only the request as a whole can tell: whose key it was, how long to wait, how often it was tried.
    fn way_out(&self, fault: &mut Fault) {
        if fault.kind == FaultKind::Auth {
            fault.message.push_str("; ");
            fault.message.push_str(&self.shared.provider.key_hint());
        }
        if let Some(ms) = fault.retry_after_ms {
            fault.message.push_str(&format!("; it asks to wait {}", length_of(ms)));
        }
        if self.attempt > 0 {
            fault.message.push_str(&format!("; it was tried {} times", self.attempt + 1));
        }
    }

    async fn begin(&mut self) -> Result<(), Fault> {
        let mut capture = self.capture();
        let result = self.exchange(&mut capture).await;
        if let (Err(fault), Some(capture)) = (&result, &mut capture) {
            capture.record.failure.get_or_insert_with(|| self.shared.provider.hide(fault.message.clone()));
        }
        let Some(response) = result? else { return Ok(()) };
        let decoder = Decoder::new(self.shared.provider.protocol, &self.shared.provider.dialect.origin);
        let reader = EventReader::default();
        let kind = kind_of(&response.headers);
        let body = response.body;
        let reading = Reading { body, reader, decoder, capture, begun: false, kind, head: Some(Vec::new()) };
        self.phase = Phase::Reading(Box::new(reading));
        Ok(())
    }

    /// Sends the request. A stream is handed back; a whole answer is read here.
    async fn exchange(&mut self, capture: &mut Option<Capture>) -> Result<Option<Response>, Fault> {
        let shared = self.shared.clone();
        let opening = shared.transport.open(&self.outgoing, shared.timeouts, BODY_BYTES_MAX);
        let response = opening.await.map_err(|error| from_transport(&error))?;
        if let Some(capture) = capture {
            capture.record.status = Some(response.status.as_u16());
        }
        let is_error = !response.status.is_success();
        let encoding = response.headers.get(CONTENT_ENCODING).map(|value| String::from_utf8_lossy(value.as_bytes()));
        if let Some(encoding) = encoding.filter(|it| !is_error && !it.trim().eq_ignore_ascii_case("identity")) {
            return Err(encoded(&encoding));
        }
        if !is_error && self.is_stream(&response.headers) {
            return Ok(Some(response));
        }
        let Response { status, headers, body } = response;
        let body = body.whole().await;
        if let (Some(capture), Ok(body)) = (capture, &body) {
            capture.record.response.extend_from_slice(body);
        }
        if is_error {
            // An error whose page broke off is still that error.
            let body = body.unwrap_or_default();
            return Err(from_status(status.as_u16(), &headers, &body, &self.outgoing.body));
        }
        let body = body.map_err(|error| while_reading(&error, Usage::default(), true))?;
        self.phase = Phase::Ready(Box::new(self.whole(&body)?));
        Ok(None)
    }

    /// Whether the body is a stream: what the server says counts, then what was asked for.
    fn is_stream(&self, headers: &HeaderMap) -> bool {
        let kind = kind_of(headers).to_ascii_lowercase();
        let is_whole = kind.contains("json") && !kind.contains("ndjson") || kind.contains("html");
        kind.contains("event-stream") || self.stream && !is_whole
    }

    fn whole(&self, body: &Bytes) -> Result<Reply, Fault> {
        if body.trim_ascii_start().first() == Some(&b'<') {
            return Err(malformed("it is a page in HTML; is something between us and the provider?"));
        }
        let provider = &self.shared.provider;
        decoder::whole(provider.protocol, body, &provider.dialect.origin, &self.outgoing.body)
    }

    /// Reads one piece of the stream.
    async fn read(&mut self, mut reading: Box<Reading>) -> Result<(), Fault> {
        let result = self.read_piece(&mut reading).await;
        if let (Err(fault), Some(capture)) = (&result, &mut reading.capture) {
            capture.record.failure = Some(self.shared.provider.hide(fault.message.clone()));
        }
        let mut is_over = result?;
        let mut failed = None;
        // What has come in one go goes out in one go: a delta for each event would cost more than reading it.
        while let Some(piece) = if is_over { None } else { reading.body.piece_at_hand() } {
            match self.take(&mut reading, &piece) {
                Ok(over) => is_over = over,
                Err(fault) => {
                    failed = Some(fault);
                    break;
                }
            }
        }
        if let (Some(fault), Some(capture)) = (&failed, &mut reading.capture) {
            capture.record.failure = Some(self.shared.provider.hide(fault.message.clone()));
        }
        self.ready = reading.decoder.take_deltas().into_iter();
        if let Some(fault) = failed {
            self.phase = Phase::Failed(Box::new(fault));
            return Ok(());
        }
        if !is_over {
            self.phase = Phase::Reading(reading);
            return Ok(());
        }
        let Reading { body, decoder, capture, kind, head, .. } = *reading;
        let cut = |fault: Fault| match &head {
            // Not one event: it was no stream of ours, and nothing that was cut.
            Some(head) if fault.kind == FaultKind::CutShort && !is_of_events(&kind, head) => {
                no_stream(&kind, head, &self.outgoing.body)
            }
            _ => fault,
        };
        let reply = decoder.finish().map_err(cut);
        if let (Err(fault), Some(mut capture)) = (&reply, capture) {
            capture.record.failure = Some(fault.message.clone());
        }
        body.let_go();
        self.phase = Phase::Ready(Box::new(reply?));
        Ok(())
    }

    /// Whether the answer is complete.
    async fn read_piece(&self, reading: &mut Reading) -> Result<bool, Fault> {
        let Reading { body, reader, decoder, begun, head, .. } = reading;
        let request = &self.outgoing.body;
        let piece = body.piece().await.map_err(|error| while_reading(&error, decoder.usage(), *begun))?;
        let Some(piece) = piece else {
            let end = reader.finish(|data| {
                *head = None;
                decoder.event(data, request)
            });
            return match end {
                Err(fault) if fault.kind == FaultKind::Malformed => Err(cut_short(decoder.usage())),
                Err(fault) => Err(fault),
                Ok(()) => {
                    decoder.close();
                    Ok(true)
                }
            };
        };
        self.take(reading, &piece)
    }

    /// Reads a piece. Whether the answer is complete with it.
    fn take(&self, reading: &mut Reading, piece: &Bytes) -> Result<bool, Fault> {
        let Reading { reader, decoder, capture, begun, head, .. } = reading;
        *begun = true;
        if let Some(head) = head {
            head.extend(piece.iter().take(HEAD_BYTES.saturating_sub(head.len())));
        }
        if let Some(capture) = capture {
            capture.record.response.extend_from_slice(piece);
        }
        reader.feed(piece, |data| {
            *head = None;
            decoder.event(data, &self.outgoing.body)
        })?;
        if decoder.is_done() {
            decoder.close();
        }
        Ok(decoder.is_done())
    }

    fn capture(&self) -> Option<Capture> {
        let wire = self.shared.wire.as_ref()?;
        let uri = &self.outgoing.uri;
        let record = WireRecord {
            url: without_secrets(uri),
            attempt: self.attempt,
            request: self.outgoing.body.clone(),
            ..WireRecord::default()
        };
        Some(Capture::begin(wire, record))
    }
}

/// Whether a stream that gave no event may have been one all the same, such as one of comments alone.
fn is_of_events(kind: &str, head: &[u8]) -> bool {
    kind.to_ascii_lowercase().contains("event-stream") && std::str::from_utf8(head).is_ok()
}

fn kind_of(headers: &HeaderMap) -> String {
    headers.get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).unwrap_or_default()
}

/// An address without its user and query, either of which may hold a key.
fn without_secrets(uri: &Uri) -> String {
    let port = uri.port().map(|port| format!(":{port}")).unwrap_or_default();
    let (scheme, host) = (uri.scheme_str().unwrap_or_default(), uri.host().unwrap_or_default());
    format!("{scheme}://{host}{port}{}", uri.path())
}

/// A connection that breaks in the middle of an answer has cut it.
fn while_reading(error: &TransportError, usage: Usage, begun: bool) -> Fault {
    match error {
        TransportError::Broken { .. } if begun => cut_short(usage),
        _ => Fault { usage, ..from_transport(error) },
    }
}
