//! Where spans are sent and how, by the variables that OpenTelemetry names.

use std::time::Duration;

use gesta_model::transport::LookupRef;
use gesta_run::Opening;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};

use crate::fields::trace_of;

/// Where spans go, and how many at once.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The whole address, `…/v1/traces`.
    pub endpoint: Uri,
    /// Sent with each batch. Secrets may stand in them.
    pub headers: HeaderMap,
    /// How long one attempt may take. 10 s by default.
    pub timeout: Duration,
    /// Who speaks: `service.name` and what else is known of the process.
    pub resource: Vec<(String, String)>,
    /// Spans that wait at most; those beyond are dropped. 2,048 by default.
    pub queue_max: usize,
    /// Spans of one request at most. 512 by default.
    pub batch_max: usize,
    /// How long a span waits for others. 5 s by default.
    pub delay: Duration,
    /// Which runs are recorded.
    pub sampler: Sampler,
    /// Whether what was said goes along: `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`. False by default.
    pub content: bool,
}

/// Which runs are recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampler {
    /// Where the run's caller has a trace, its word counts.
    pub parent_based: bool,
    /// Else this part of all runs, from 0 to 1; the same ones on every machine.
    pub ratio: f64,
}

impl Default for Sampler {
    fn default() -> Self {
        Self { parent_based: true, ratio: 1.0 }
    }
}

impl Sampler {
    /// Whether a run is recorded.
    #[allow(clippy::cast_precision_loss, reason = "a part of 2^56")]
    pub(crate) fn takes(self, opening: &Opening) -> bool {
        if let Some(parent) = opening.trace.filter(|_| self.parent_based) {
            return parent.sampled;
        }
        let trace = opening.trace.map_or_else(|| trace_of(opening.run.as_str()), |it| it.trace);
        let dice = trace[9..].iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        (dice as f64) < self.ratio * (1_u64 << 56) as f64
    }
}

/// A variable holds something that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable} {what}")]
pub struct SettingsError {
    /// Which.
    pub variable: &'static str,
    /// What is wrong, and what it takes. The value is not repeated: it may be a secret.
    pub what: String,
}

fn wrong(variable: &'static str, what: &str) -> SettingsError {
    SettingsError { variable, what: what.to_owned() }
}

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";

impl Settings {
    /// To this address, which is taken as it stands, with everything else by default.
    pub fn to(endpoint: Uri) -> Self {
        Self {
            endpoint,
            headers: HeaderMap::new(),
            timeout: Duration::from_secs(10),
            resource: vec![("service.name".to_owned(), "gesta".to_owned())],
            queue_max: 2_048,
            batch_max: 512,
            delay: Duration::from_secs(5),
            sampler: Sampler::default(),
            content: false,
        }
    }

    /// As the variables say (<https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/>). None
    /// where no address is named, or `OTEL_SDK_DISABLED` or `OTEL_TRACES_EXPORTER` switches it off.
    ///
    /// # Errors
    /// One of them cannot be used.
    pub fn from_lookup(lookup: LookupRef<'_>) -> Result<Option<Self>, SettingsError> {
        let get = |name: &str| lookup(name).map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
        let is_true = |name: &str| get(name).is_some_and(|it| it.eq_ignore_ascii_case("true"));
        if is_true("OTEL_SDK_DISABLED") || get("OTEL_TRACES_EXPORTER").is_some_and(|it| it == "none") {
            return Ok(None);
        }
        let (variable, text) = match (get(TRACES_ENDPOINT), get(ENDPOINT)) {
            (Some(whole), _) => (TRACES_ENDPOINT, whole),
            (None, Some(base)) => (ENDPOINT, format!("{}/v1/traces", base.trim_end_matches('/'))),
            (None, None) => return Ok(None),
        };
        let endpoint: Option<Uri> = text.parse().ok();
        let usable = |it: &Uri| matches!(it.scheme_str(), Some("http" | "https")) && it.host().is_some();
        let endpoint = endpoint.filter(usable);
        let endpoint = endpoint.ok_or_else(|| wrong(variable, "is no address; write http://HOST:4318"))?;
        for name in ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"] {
            match get(name).as_deref() {
                None => {}
                Some("http/protobuf") => break,
                Some(_) => {
                    return Err(SettingsError {
                        variable: "OTEL_EXPORTER_OTLP_PROTOCOL",
                        what: "is spoken as http/protobuf alone; name the collector's port for it, mostly 4318"
                            .to_owned(),
                    });
                }
            }
        }
        let mut settings = Self::to(endpoint);
        let headers = get("OTEL_EXPORTER_OTLP_TRACES_HEADERS").or_else(|| get("OTEL_EXPORTER_OTLP_HEADERS"));
        settings.headers = headers_of(headers.as_deref().unwrap_or_default())?;
        let timeout = ["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"];
        if let Some(ms) = number(&get, timeout[0])?.or(number(&get, timeout[1])?) {
            settings.timeout = Duration::from_millis(ms);
        }
        if let Some(ms) = number(&get, "OTEL_BSP_SCHEDULE_DELAY")? {
            settings.delay = Duration::from_millis(ms);
        }
        let count = |name| Ok(number(&get, name)?.map(|it| usize::try_from(it).unwrap_or(usize::MAX)));
        settings.queue_max = count("OTEL_BSP_MAX_QUEUE_SIZE")?.unwrap_or(settings.queue_max);
        settings.batch_max = count("OTEL_BSP_MAX_EXPORT_BATCH_SIZE")?.unwrap_or(settings.batch_max);
        settings.sampler = sampler(get("OTEL_TRACES_SAMPLER"), get("OTEL_TRACES_SAMPLER_ARG"))?;
        settings.content = is_true("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT");
        for (name, value) in pairs(&get("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default()) {
            settings.describe(&name, value);
        }
        if let Some(name) = get("OTEL_SERVICE_NAME") {
            settings.describe("service.name", name);
        }
        Ok(Some(settings))
    }

    /// Says something of who speaks.
    pub fn describe(&mut self, name: &str, value: String) {
        self.resource.retain(|(known, _)| known != name);
        self.resource.push((name.to_owned(), value));
    }
}

/// `name=value,name=value`, values percent-encoded, as W3C Baggage has it. What has another form is left out.
fn pairs(text: &str) -> impl Iterator<Item = (String, String)> {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        Some((name.trim().to_owned(), decoded(value.trim())))
    };
    text.split(',').filter_map(pair).filter(|(name, _)| !name.is_empty())
}

fn decoded(text: &str) -> String {
    let (mut out, bytes) = (Vec::with_capacity(text.len()), text.as_bytes());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let coded = text.get(at + 1..at + 3).filter(|_| *byte == b'%');
        match coded.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn headers_of(text: &str) -> Result<HeaderMap, SettingsError> {
    let unusable = || wrong("OTEL_EXPORTER_OTLP_HEADERS", "holds no headers; write NAME=VALUE,NAME=VALUE");
    let mut headers = HeaderMap::new();
    for (name, value) in pairs(text) {
        let name: HeaderName = name.parse().map_err(|_| unusable())?;
        let mut value: HeaderValue = value.parse().map_err(|_| unusable())?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

fn number(get: &impl Fn(&str) -> Option<String>, name: &'static str) -> Result<Option<u64>, SettingsError> {
    let read = |text: String| text.parse().ok().filter(|it| *it > 0).ok_or_else(|| wrong(name, "is no number above 0"));
    get(name).map(read).transpose()
}

fn sampler(name: Option<String>, ratio: Option<String>) -> Result<Sampler, SettingsError> {
    const NAME: &str = "OTEL_TRACES_SAMPLER";
    const ARG: &str = "OTEL_TRACES_SAMPLER_ARG";
    let Some(name) = name else { return Ok(Sampler::default()) };
    let bare = name.strip_prefix("parentbased_");
    let parent_based = bare.is_some();
    let ratio = match bare.unwrap_or(&name) {
        "always_on" => 1.0,
        "always_off" => 0.0,
        "traceidratio" => {
            let ratio = ratio.map_or(Some(1.0), |it| it.parse().ok().filter(|it| (0.0..=1.0).contains(it)));
            ratio.ok_or_else(|| wrong(ARG, "is no number from 0 to 1"))?
        }
        _ => {
            let what = "is none of always_on, always_off and traceidratio, each also with parentbased_ before it";
            return Err(wrong(NAME, what));
        }
    };
    Ok(Sampler { parent_based, ratio })
}
