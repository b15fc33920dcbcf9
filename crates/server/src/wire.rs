//! What clients send, and the forms that OpenAPI describes.

use gesta_run::json::Object;
use gesta_run::{Binding, HoldAnswer, HoldReply, Part, RunId, Source};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::described::BindingBody;
use crate::problem::Problem;

/// What begins a run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewRunBody {
    /// What is said: a text, or a list of parts.
    pub(crate) input: InputBody,
    /// The conversation it belongs to, by a name of the caller's; without one the run has no history.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    pub(crate) conversation: Option<String>,
    /// Who is at the other end, by a name of the caller's.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    pub(crate) contact: Option<String>,
    /// Waits for its turn while another run has the conversation, instead of being refused.
    #[serde(default)]
    pub(crate) queue: bool,
    /// Tools of the caller's own, beside the agent's: their calls wait in `deferred` for the caller's `result`.
    #[serde(default)]
    #[schema(max_items = 64)]
    pub(crate) tools: Vec<CallerTool>,
    /// Answers with server-sent events instead of one object.
    #[serde(default)]
    pub(crate) stream: bool,
}

/// A tool that the caller runs.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallerTool {
    /// What the model calls it: 1 to 64 letters, digits, `_` or `-`, and none of the agent's own names.
    #[schema(pattern = "^[a-zA-Z0-9_-]{1,64}$")]
    pub(crate) name: String,
    /// What the model is told about it.
    pub(crate) description: String,
    /// JSON schema of its arguments, an object; without one it takes none.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub(crate) parameters: Option<Value>,
}

/// What is said.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "`input` is a text, or a list of parts: {\"type\":\"text\",\"text\":…}, \
    {\"type\":\"image\",\"media_type\":…,\"base64\" or \"url\":…}, {\"type\":\"file\",…}"
)]
pub(crate) enum InputBody {
    /// A text.
    Text(String),
    /// Texts, pictures and files.
    Parts(Vec<PartBody>),
}

/// A text, a picture or a file.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum PartBody {
    /// A text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture: its bytes in `base64`, or an address that the provider fetches in `url`.
    Image {
        /// For instance `image/png`.
        #[schema(pattern = "^image/")]
        media_type: String,
        /// Its bytes.
        #[serde(default)]
        #[schema(content_encoding = "base64")]
        base64: Option<String>,
        /// Its address, by https.
        #[serde(default)]
        #[schema(pattern = "^https://")]
        url: Option<String>,
    },
    /// A file: its bytes in `base64`, or an address that the provider fetches in `url`.
    File {
        /// For instance `application/pdf`.
        #[schema(pattern = "^[^/]*/")]
        media_type: String,
        /// The name a person gave it.
        #[serde(default)]
        name: Option<String>,
        /// Its bytes.
        #[serde(default)]
        #[schema(content_encoding = "base64")]
        base64: Option<String>,
        /// Its address, by https.
        #[serde(default)]
        #[schema(pattern = "^https://")]
        url: Option<String>,
    },
}

impl InputBody {
    /// As the runtime takes it.
    pub(crate) fn parts(self) -> Result<Vec<Part>, Problem> {
        match self {
            Self::Text(text) => Ok(vec![Part::text(text)]),
            Self::Parts(parts) => parts.into_iter().enumerate().map(|(at, part)| part.part(at)).collect(),
        }
    }
}

impl PartBody {
    fn part(self, at: usize) -> Result<Part, Problem> {
        Ok(match self {
            Self::Text { text } => Part::Text { text },
            Self::Image { media_type, base64, url } => {
                Part::Image { source: source(at, "image/", &media_type, base64, url)?, media_type }
            }
            Self::File { media_type, name, base64, url } => {
                Part::File { source: source(at, "", &media_type, base64, url)?, media_type, name }
            }
        })
    }
}

fn source(
    at: usize,
    begins: &str,
    media_type: &str,
    base64: Option<String>,
    url: Option<String>,
) -> Result<Source, Problem> {
    use base64::Engine as _;
    let bad = |why: &str| {
        let help = "give `media_type`, and either `base64` or an https `url`";
        Problem::bad("input_invalid", format!("input[{at}]: {why}"), help)
    };
    if !media_type.starts_with(begins) || !media_type.contains('/') {
        return Err(bad("its `media_type` does not fit"));
    }
    match (base64, url) {
        (Some(bytes), None) => match base64::engine::general_purpose::STANDARD.decode(&bytes) {
            Ok(decoded) if !decoded.is_empty() => Ok(Source::Base64(bytes)),
            Ok(_) => Err(bad("it is empty")),
            Err(why) => Err(bad(&format!("its `base64` is none: {why}"))),
        },
        (None, Some(url)) if url.starts_with("https://") => Ok(Source::Url(url)),
        (None, Some(_)) => Err(bad("its `url` is not fetched without encryption")),
        _ => Err(bad("it needs one of `base64` and `url`")),
    }
}

/// Answers to holds, or nothing for a run that can go on.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswersBody {
    /// The answers: all of them count, or none.
    #[serde(default)]
    pub(crate) answers: Vec<AnswerBody>,
    /// A higher limit of trips, for a run that ended for want of them.
    #[serde(default)]
    pub(crate) trips_max: Option<u32>,
    /// Where the tool of an approved call is gone, tells the model so instead of refusing the answer.
    #[serde(default)]
    pub(crate) force: bool,
    /// Answers with server-sent events instead of one object.
    #[serde(default)]
    pub(crate) stream: bool,
}

/// An answer to one hold: its binding, and exactly one of the rest.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerBody {
    /// The binding of the hold, as it was handed out in `deferred`.
    #[serde(default)]
    #[schema(value_type = Option<BindingBody>)]
    pub(crate) binding: Option<Binding>,
    /// The call runs now.
    #[serde(default)]
    pub(crate) approve: Option<bool>,
    /// Beside `approve`: with these arguments instead of the model's.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub(crate) arguments: Option<Object>,
    /// It does not run; the model reads the reason.
    #[serde(default)]
    pub(crate) deny: Option<String>,
    /// It was done elsewhere, and this came of it.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Value>)]
    pub(crate) result: Option<Value>,
    /// It was tried elsewhere, or cannot be done.
    #[serde(default)]
    pub(crate) error: Option<String>,
    /// Nobody knows: only for a hold whose state is `undecided`.
    #[serde(default)]
    pub(crate) outcome_unknown: Option<bool>,
}

/// A `null` that was given is another thing than nothing.
fn present<'de, D: Deserializer<'de>>(source: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(source).map(Some)
}

impl AnswerBody {
    /// As the runtime takes it. `run` is that of the path.
    pub(crate) fn answer(self, at: usize, run: &RunId, open: &[gesta_run::CallId]) -> Result<HoldAnswer, Problem> {
        let Some(binding) = self.binding else {
            let detail = format!("answers[{at}] quotes no `binding`, so nobody knows which call it is for");
            let help = "copy `binding` from the hold, in `deferred` of the run or from GET /v1/holds";
            return Err(Problem::bad("no_binding", detail, help).with("open", open));
        };
        if binding.run_id != *run {
            let detail = format!("answers[{at}] is bound to run `{}`, and was sent to run `{run}`", binding.run_id);
            tracing::warn!(%run, security = true, "an answer to a hold was bound to another run");
            return Err(Problem::conflict("binding_differs", detail, "send it to its own run").with("part", "run"));
        }
        let approve = match (self.approve, self.arguments) {
            (Some(true), arguments) => Some(HoldReply::Approve { arguments }),
            (None, None) => None,
            _ => {
                let detail =
                    format!("answers[{at}]: `arguments` stands beside `approve: true`, and `approve` is never false");
                return Err(Problem::bad("answer_invalid", detail, "to say no, send `deny` with a reason"));
            }
        };
        let unknown = self.outcome_unknown.and_then(|it| it.then_some(HoldReply::OutcomeUnknown));
        let kinds = [
            approve,
            self.deny.map(|reason| HoldReply::Deny { reason }),
            self.result.map(|value| HoldReply::Result { value }),
            self.error.map(|text| HoldReply::Error { text }),
            unknown,
        ];
        let mut given = kinds.into_iter().flatten();
        match (given.next(), given.next()) {
            (Some(answer), None) => Ok(HoldAnswer { binding, answer }),
            (found, _) => {
                let how = if found.is_some() { "says more than one thing" } else { "says nothing" };
                let help = "give exactly one of `approve`, `deny`, `result`, `error`, `outcome_unknown`";
                Err(Problem::bad("answer_invalid", format!("answers[{at}] {how}"), help))
            }
        }
    }
}

/// One page of a listing.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Page<T> {
    /// What was asked for.
    pub(crate) items: Vec<T>,
    /// Where it goes on: the `after` of the next page. Nothing where this was the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}
