//! Sorts what goes wrong, by HTTP status and by the error objects of providers, into faults of ours.

use gesta_run::json::cut;
use gesta_run::reply::{Fault, FaultKind, Usage};
use http::HeaderMap;
use memchr::memmem;
use serde_json::Value;

use crate::transport::{Limit, TransportError};

/// The longest piece of a provider's own words in a fault, in bytes.
const WORDS_BYTES_MAX: usize = 400;

/// A run of this many bytes that stands in the request as well is taken for content of the conversation.
const QUOTE_BYTES: usize = 24;

/// A fault of this kind, retryable or not as the kind usually is.
pub(crate) fn fault(kind: FaultKind, message: impl Into<String>) -> Fault {
    let retryable = matches!(
        kind,
        FaultKind::Network
            | FaultKind::Timeout
            | FaultKind::CutShort
            | FaultKind::Malformed
            | FaultKind::RateLimit
            | FaultKind::Overloaded
    );
    Fault { kind, message: message.into(), retryable, status: None, retry_after_ms: None, usage: Usage::default() }
}

/// The stream ended before the answer did.
pub(crate) fn cut_short(usage: Usage) -> Fault {
    Fault { usage, ..fault(FaultKind::CutShort, "the stream ended before the answer did") }
}

/// The reply is not of the protocol.
pub(crate) fn malformed(why: &str) -> Fault {
    fault(FaultKind::Malformed, format!("the provider's reply cannot be read: {why}"))
}

/// The answer has a content encoding, and none was asked for. Another try would come to the same.
pub(crate) fn encoded(encoding: &str) -> Fault {
    let why = format!(
        "it is encoded as `{}`, which was not asked for; look at what stands between us and the provider",
        one_line(encoding, WORDS_BYTES_MAX / 8)
    );
    Fault { retryable: false, ..malformed(&why) }
}

/// The answer came whole and holds not one event. `head` is its beginning, `request` what it answers.
pub(crate) fn no_stream(kind: &str, head: &[u8], request: &[u8]) -> Fault {
    let kind = one_line(kind, WORDS_BYTES_MAX / 4);
    let kind = if kind.is_empty() { "without a content type".to_owned() } else { format!("of type `{kind}`") };
    if head.trim_ascii().is_empty() {
        return malformed(&format!("it is empty, {kind}"));
    }
    let words = without_content(&String::from_utf8_lossy(head), request);
    malformed(&format!("it is no stream of events but something {kind} that begins with `{}`", words.trim()))
}

fn one_line(text: &str, bytes_max: usize) -> String {
    let line: String = text.chars().filter(|c| !c.is_control()).collect();
    cut(line.trim(), bytes_max).to_owned()
}

/// What the transport met.
pub(crate) fn from_transport(error: &TransportError) -> Fault {
    let kind = match error {
        TransportError::Timeout(_) => FaultKind::Timeout,
        TransportError::TooLong { .. } => FaultKind::Malformed,
        TransportError::Address(_) | TransportError::Roots { .. } | TransportError::Forbidden { .. } => {
            FaultKind::Config
        }
        TransportError::Connect { .. }
        | TransportError::Tls { .. }
        | TransportError::Proxy { .. }
        | TransportError::Broken { .. } => FaultKind::Network,
    };
    let mut fault = fault(kind, error.to_string());
    if matches!(error, TransportError::Tls { .. } | TransportError::TooLong { .. }) {
        fault.retryable = false;
    }
    if matches!(error, TransportError::Timeout(Limit::Whole)) {
        fault.message.push_str("; raise the limit for long answers");
    }
    fault
}

/// What a response with an error status means. `body` is what came with it, `request` what it answers.
pub(crate) fn from_status(status: u16, headers: &HeaderMap, body: &[u8], request: &[u8]) -> Fault {
    if (300..400).contains(&status) {
        return redirected(status, headers);
    }
    let value: Option<Value> = serde_json::from_slice(body).ok();
    let words = value.as_ref().map(ErrorWords::read).unwrap_or_default();
    let kind = kind_of_status(status, &words);
    let mut fault = words.fault(kind, request);
    fault.status = Some(status);
    if words.message.is_empty() {
        fault.message = format!("{} (HTTP {status}{})", usual(kind), form_of(body, value.is_some()));
    } else {
        fault.message = format!("{} (HTTP {status})", fault.message);
    }
    fault.retry_after_ms = retry_after_ms(headers);
    fault.retryable = match headers.get("x-should-retry").map(http::HeaderValue::as_bytes) {
        Some(b"true") => true,
        Some(b"false") => false,
        _ => fault.retryable && !matches!(status, 501 | 505),
    };
    fault
}

/// A redirect is never followed: a key would go to whoever is named there. Another try would come to the same.
fn redirected(status: u16, headers: &HeaderMap) -> Fault {
    let target = headers.get(http::header::LOCATION).and_then(|value| value.to_str().ok()).map(shown_address);
    let message = match target {
        Some(target) => format!(
            "the provider's address redirects to {target} (HTTP {status}), which is not followed; \
             see whether `base_url` lacks a path such as /v1 or should begin with https://"
        ),
        None => {
            format!("the provider's address answers with a redirect to nowhere (HTTP {status}); look at `base_url`")
        }
    };
    Fault { status: Some(status), ..fault(FaultKind::Config, message) }
}

/// An address without what may be secret in it, on one line, cut.
fn shown_address(text: &str) -> String {
    let bare = match url::Url::parse(text) {
        Ok(mut url) => {
            // An address that has no host takes neither name nor password; then it has none to hide.
            let _ = url.set_username("");
            let _ = url.set_password(None);
            url.set_query(None);
            url.set_fragment(None);
            url.to_string()
        }
        Err(_) => text.split(['?', '#']).next().unwrap_or_default().to_owned(),
    };
    let line: String = bare.chars().filter(|c| !c.is_control()).collect();
    cut(&line, WORDS_BYTES_MAX / 2).to_owned()
}

/// How long that is, for people: the two largest units at most.
pub(crate) fn length_of(ms: u64) -> String {
    let seconds = ms.div_ceil(1000);
    let units = [("d", seconds / 86_400), ("h", seconds / 3600 % 24), ("min", seconds / 60 % 60), ("s", seconds % 60)];
    let said: Vec<String> = units
        .iter()
        .skip_while(|(_, n)| *n == 0)
        .take(2)
        .filter(|(_, n)| *n > 0)
        .map(|(unit, n)| format!("{n} {unit}"))
        .collect();
    if said.is_empty() { "0 s".to_owned() } else { said.join(" ") }
}

/// What an error object in place of an answer, or in the middle of a stream, means.
pub(crate) fn from_error(value: &Value, request: &[u8]) -> Fault {
    let words = ErrorWords::read(value);
    let kind = match words.status {
        Some(status) if (400..600).contains(&status) => kind_of_status(status, &words),
        _ => kind_of_words(&words).unwrap_or(FaultKind::Overloaded),
    };
    let mut fault = words.fault(kind, request);
    fault.status = words.status;
    fault
}

/// What providers say about an error, wherever they put it.
#[derive(Debug, Default)]
struct ErrorWords {
    code: String,
    kind: String,
    message: String,
    status: Option<u16>,
}

impl ErrorWords {
    fn read(value: &Value) -> Self {
        let inner = match value.get("error") {
            Some(error @ Value::Object(_)) => error,
            Some(Value::String(text)) => {
                return Self { message: text.clone(), ..Self::default() };
            }
            _ => value,
        };
        let text = |key: &str| match inner.get(key) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            Some(object @ Value::Object(_)) => object.to_string(),
            _ => String::new(),
        };
        let message = Some(text("message")).filter(|it| !it.is_empty()).unwrap_or_else(|| text("detail"));
        let code = text("code");
        let status = code.parse().ok().or_else(|| text("status").parse().ok());
        Self { kind: text("type"), message, status, code }
    }

    fn fault(&self, kind: FaultKind, request: &[u8]) -> Fault {
        let mut fault = fault(kind, usual(kind));
        // What a provider says about a key may quote it.
        if kind != FaultKind::Auth && !self.message.is_empty() {
            fault.message = format!("{}: {}", usual(kind), without_content(&self.message, request));
        }
        if self.code == "insufficient_quota" || self.kind == "insufficient_quota" {
            fault.retryable = false;
        }
        fault
    }
}

fn usual(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::Network => "the connection broke",
        FaultKind::Timeout => "no answer came in time",
        FaultKind::CutShort => "the stream ended before the answer did",
        FaultKind::Malformed => "the provider's reply cannot be read",
        FaultKind::Auth => "the provider refused the key",
        FaultKind::RateLimit => "too many requests",
        FaultKind::Overloaded => "the provider is overloaded or failed inside",
        FaultKind::ContextLength => "the request does not fit the model's window",
        FaultKind::BadRequest => "the provider refused the request",
        FaultKind::Config => "the model cannot be used as it is configured",
    }
}

fn form_of(body: &[u8], is_json: bool) -> &'static str {
    let start = body.trim_ascii_start();
    if start.first() == Some(&b'<') {
        ", with a page in HTML; is something between us and the provider?"
    } else if start.is_empty() {
        ", with nothing beside it"
    } else if is_json {
        ", with an error of an unknown form"
    } else {
        ", with a text that is no JSON"
    }
}

fn kind_of_status(status: u16, words: &ErrorWords) -> FaultKind {
    match status {
        401 | 403 => FaultKind::Auth,
        408 => FaultKind::Timeout,
        429 => FaultKind::RateLimit,
        409 | 425 | 500..=599 => FaultKind::Overloaded,
        400..=499 => match kind_of_words(words) {
            Some(kind @ (FaultKind::ContextLength | FaultKind::Auth)) => kind,
            _ => FaultKind::BadRequest,
        },
        // Whatever else a server may say, it is no answer.
        _ => FaultKind::Malformed,
    }
}

fn kind_of_words(words: &ErrorWords) -> Option<FaultKind> {
    if is_context_length(words) {
        return Some(FaultKind::ContextLength);
    }
    for word in [words.code.as_str(), words.kind.as_str()] {
        let kind = match word {
            "overloaded_error" | "api_error" | "server_error" | "internal_server_error" | "service_unavailable" => {
                FaultKind::Overloaded
            }
            "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" | "requests" | "tokens" => {
                FaultKind::RateLimit
            }
            "authentication_error" | "permission_error" | "invalid_api_key" => FaultKind::Auth,
            "timeout_error" | "timeout" => FaultKind::Timeout,
            "invalid_request_error"
            | "not_found_error"
            | "request_too_large"
            | "billing_error"
            | "BadRequestError"
            | "model_not_found"
            | "content_policy_violation"
            | "content_filter" => FaultKind::BadRequest,
            _ => continue,
        };
        return Some(kind);
    }
    None
}

fn is_context_length(words: &ErrorWords) -> bool {
    if words.code == "context_length_exceeded" || words.kind == "exceed_context_size_error" {
        return true;
    }
    let message = words.message.to_ascii_lowercase();
    // The words of OpenAI, Anthropic, vLLM, llama.cpp, Groq, Mistral and OpenRouter.
    [
        "maximum context length",
        "prompt is too long",
        "exceed context limit",
        "exceeds the context window",
        "exceeds the available context size",
        "exceed the context window",
        "context window exceed",
        "context length exceeded",
        "reduce the length of the messages",
        "too large for model with",
        "input is too long",
    ]
    .iter()
    .any(|words| message.contains(words))
}

/// The provider's words without what they quote from the request, on one line, cut.
fn without_content(message: &str, request: &[u8]) -> String {
    let line: String = message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = cut(&line, WORDS_BYTES_MAX);
    let mut hidden = vec![false; line.len()];
    for at in 0..line.len().saturating_sub(QUOTE_BYTES - 1) {
        let window = &line.as_bytes()[at..at + QUOTE_BYTES];
        if memmem::find(request, window).is_some() {
            hidden[at..at + QUOTE_BYTES].fill(true);
        }
    }
    let mut out = String::with_capacity(line.len());
    for (at, c) in line.char_indices() {
        match hidden[at..at + c.len_utf8()].iter().any(|it| *it) {
            false => out.push(c),
            true if out.ends_with('…') => {}
            true => out.push('…'),
        }
    }
    out
}

/// How long a response asks to wait: `retry-after-ms`, or `retry-after` in seconds or as a date.
pub(crate) fn retry_after_ms(headers: &HeaderMap) -> Option<u64> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let number = |text: &str| text.parse::<f64>().ok().filter(|it| it.is_finite() && *it >= 0.0);
    if let Some(ms) = text("retry-after-ms").and_then(number) {
        return Some(ms as u64);
    }
    let after = text("retry-after")?;
    if let Some(seconds) = number(after) {
        return Some((seconds * 1000.0) as u64);
    }
    let at = jiff::fmt::rfc2822::parse(after).ok()?.timestamp();
    let ms = at.as_millisecond().saturating_sub(jiff::Timestamp::now().as_millisecond());
    Some(u64::try_from(ms).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, body: &str) -> Fault {
        from_status(status, &HeaderMap::new(), body.as_bytes(), b"{\"messages\":\"my secret wish is a red horse\"}")
    }

    #[test]
    fn each_status_has_its_kind() {
        use FaultKind::{Auth, BadRequest, ContextLength, Overloaded, RateLimit, Timeout};
        let window = r#"{"error":{"message":"This model's maximum context length is 8192 tokens","code":null}}"#;
        let cases = [
            (400, "{}", BadRequest, false),
            (400, window, ContextLength, false),
            (
                413,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}"#,
                ContextLength,
                false,
            ),
            (401, "", Auth, false),
            (403, "<html>", Auth, false),
            (404, "", BadRequest, false),
            (408, "", Timeout, true),
            (429, "", RateLimit, true),
            (429, r#"{"error":{"code":"insufficient_quota","message":"pay"}}"#, RateLimit, false),
            (500, "<html>", Overloaded, true),
            (501, "", Overloaded, false),
            (529, r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#, Overloaded, true),
        ];
        for (status, body, kind, retryable) in cases {
            let fault = of(status, body);
            assert_eq!((fault.kind, fault.retryable), (kind, retryable), "{status} {body}");
            assert_eq!(fault.status, Some(status));
        }
        assert!(of(502, "<html><h1>Bad gateway").message.contains("HTML"));
    }

    #[test]
    fn a_fault_quotes_neither_key_nor_conversation() {
        let quoting = r#"{"error":{"message":"cannot read: my secret wish is a red horse, sorry"}}"#;
        assert_eq!(of(400, quoting).message, "the provider refused the request: cannot read: …, sorry (HTTP 400)");
        let key = r#"{"error":{"message":"Incorrect API key provided: sk-1234567890"}}"#;
        assert_eq!(of(401, key).message, "the provider refused the key (HTTP 401)");
    }

    #[test]
    fn a_redirect_names_its_target_and_no_secret_of_it() {
        let of = |location: Option<&str>| {
            let mut headers = HeaderMap::new();
            location.map(|it| headers.insert("location", it.parse().unwrap()));
            let fault = from_status(302, &headers, b"", b"");
            assert_eq!((fault.kind, fault.retryable, fault.status), (FaultKind::Config, false, Some(302)));
            fault.message
        };
        let message = of(Some("https://me:pw@api.example/v1?key=sk-1#x"));
        assert!(message.contains("redirects to https://api.example/v1 (HTTP 302)"), "{message}");
        assert!(of(Some("/login?next=secret")).contains("redirects to /login (HTTP 302)"));
        assert!(of(None).contains("redirect to nowhere (HTTP 302); look at `base_url`"));
    }

    #[test]
    fn waits_are_told_in_their_largest_units() {
        let cases = [(0, "0 s"), (1, "1 s"), (61_000, "1 min 1 s"), (86_400_000, "1 d"), (90_061_000, "1 d 1 h")];
        for (ms, said) in cases {
            assert_eq!(length_of(ms), said);
        }
    }

    #[test]
    fn waiting_times_are_read_in_every_form() {
        let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(100);
        let date = jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&soon).unwrap();
        let mut headers = HeaderMap::new();
        for (value, low, high) in [("2", 2000, 2000), ("0.5", 500, 500), (date.as_str(), 90_000, 100_000)] {
            headers.insert("retry-after", value.parse().unwrap());
            let ms = retry_after_ms(&headers).unwrap();
            assert!((low..=high).contains(&ms), "{value}: {ms}");
        }
        headers.insert("retry-after", "soon".parse().unwrap());
        assert_eq!(retry_after_ms(&headers), None);
        headers.insert("retry-after-ms", "1500".parse().unwrap());
        assert_eq!(retry_after_ms(&headers), Some(1500));
    }

    #[test]
    fn error_objects_in_a_200_are_sorted_by_their_words() {
        use FaultKind::{BadRequest, Overloaded, RateLimit};
        let cases = [
            (r#"{"error":"boom"}"#, Overloaded),
            (r#"{"error":{"code":429,"message":"slow"}}"#, RateLimit),
            (r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#, Overloaded),
            (r#"{"object":"error","message":"no","type":"BadRequestError","code":400}"#, BadRequest),
        ];
        for (json, kind) in cases {
            assert_eq!(from_error(&serde_json::from_str(json).unwrap(), b"").kind, kind, "{json}");
        }
    }
}
