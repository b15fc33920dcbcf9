//! Sends spans to a collector in the background. A collector that is away costs spans and nothing else.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gesta_model::transport::{LookupRef, Outgoing};
use gesta_model::{Timeouts, Transport, TransportSpec};
use http::{HeaderValue, Method, StatusCode, header};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::fields;
use crate::queue::Queue;
use crate::recorder::Traces;
use crate::settings::Settings;

/// How long is waited after each attempt that failed and may be repeated; then a batch is dropped.
const WAITS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];
/// How much of an answer is read; nothing is done with it.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// A task that sends spans, until it is ended.
pub struct Exporter {
    traces: Traces,
    end: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl std::fmt::Debug for Exporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exporter").finish_non_exhaustive()
    }
}

impl Exporter {
    /// Begins, on the runtime that this is called in. `lookup` is asked for a proxy and for certificates.
    pub fn start(settings: Settings, lookup: LookupRef<'_>) -> Self {
        let queue = Arc::new(Queue::new(settings.queue_max, settings.batch_max.max(1)));
        let traces = Traces::new(queue.clone(), settings.sampler);
        let transport = Transport::new(TransportSpec { lookup: Some(lookup), ..TransportSpec::default() });
        let (end, ended) = watch::channel(false);
        let task = tokio::spawn(Sender { settings, transport, queue, ended, is_away: false }.send_all());
        Self { traces, end, task }
    }

    /// Where spans go: [`Traces::with_content`] and [`Traces::with_alias`] say more of what stands in them.
    pub fn traces(&self) -> Traces {
        self.traces.clone()
    }

    /// Sends what waits, and ends; what is not taken within this time is dropped.
    pub async fn finish(self, within: Duration) {
        let _ = self.end.send(true);
        let stop = self.task.abort_handle();
        if tokio::time::timeout(within, self.task).await.is_err() {
            stop.abort();
            tracing::warn!("the collector did not take the last spans in time; they are dropped");
        }
    }
}

struct Sender {
    settings: Settings,
    transport: Transport,
    queue: Arc<Queue>,
    ended: watch::Receiver<bool>,
    /// The last batch was not taken: that is said once.
    is_away: bool,
}

impl Sender {
    async fn send_all(mut self) {
        loop {
            let is_last = *self.ended.borrow();
            if !is_last && !self.queue.is_due() {
                tokio::select! {
                    () = self.queue.due.notified() => {}
                    () = tokio::time::sleep(self.settings.delay) => {}
                    _ = self.ended.changed() => {}
                }
            }
            loop {
                let (spans, dropped) = self.queue.take();
                if dropped > 0 {
                    tracing::warn!(dropped, "spans were dropped: more came than the collector took");
                }
                if spans.is_empty() {
                    break;
                }
                self.send(spans).await;
            }
            if is_last {
                return;
            }
        }
    }

    async fn send(&mut self, spans: Vec<Span>) {
        let count = spans.len();
        let body = Bytes::from(self.request(spans).encode_to_vec());
        let mut waits = WAITS.iter();
        let why = loop {
            let (why, may_help) = match self.attempt(body.clone()).await {
                Ok(()) => {
                    self.is_away = false;
                    return;
                }
                Err(failed) => failed,
            };
            let Some(wait) = waits.next().filter(|_| may_help && !*self.ended.borrow()) else { break why };
            tokio::select! {
                () = tokio::time::sleep(*wait) => {}
                _ = self.ended.changed() => {}
            }
        };
        if !std::mem::replace(&mut self.is_away, true) {
            tracing::warn!(why, spans = count, "the collector did not take spans; runs go on without");
        }
    }

    /// Says why it was not taken, and whether another attempt may help.
    async fn attempt(&self, body: Bytes) -> Result<(), (String, bool)> {
        let mut headers = self.settings.headers.clone();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        let request = Outgoing { method: Method::POST, uri: self.settings.endpoint.clone(), headers, body };
        let ms = u64::try_from(self.settings.timeout.as_millis()).unwrap_or(u64::MAX);
        let timeouts = Timeouts { connect_ms: ms, first_byte_ms: ms, idle_ms: ms, whole_ms: ms };
        match self.transport.send(&request, timeouts, ANSWER_BYTES_MAX).await {
            Ok(received) if received.status.is_success() => Ok(()),
            Ok(received) => {
                let again = [
                    StatusCode::TOO_MANY_REQUESTS,
                    StatusCode::BAD_GATEWAY,
                    StatusCode::SERVICE_UNAVAILABLE,
                    StatusCode::GATEWAY_TIMEOUT,
                ];
                Err((format!("it answered {}", received.status), again.contains(&received.status)))
            }
            // The whole text may hold the address, and that a password.
            Err(_) => Err(("it was not reached".to_owned(), true)),
        }
    }

    fn request(&self, spans: Vec<Span>) -> ExportTraceServiceRequest {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let own = [("telemetry.sdk.name", "gesta"), ("telemetry.sdk.language", "rust")];
        let own = own.into_iter().map(|(name, value)| fields::text(name, value));
        let attributes = self.settings.resource.iter().map(|(name, value)| fields::text(name, value)).chain(own);
        ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(Resource { attributes: attributes.collect(), ..Resource::default() }),
                scope_spans: vec![ScopeSpans {
                    scope: Some(InstrumentationScope {
                        name: "gesta".to_owned(),
                        version,
                        ..InstrumentationScope::default()
                    }),
                    spans,
                    schema_url: String::new(),
                }],
                schema_url: String::new(),
            }],
        }
    }
}
