//! Checks a request as the service does: fields and their kinds.

use serde_json::{Map, Value};

use super::{messages, tools};
use crate::model::fields::{Field, Kind, openai, openai_needs};
use crate::model::refusal::{Checked, Refusal};
use crate::model::serve::Asked;

/// What the service knows, and what the compatible servers around it know besides.
const FIELDS: [Field; 62] = [
    ("audio", Kind::Object),
    ("cache_salt", Kind::Text),
    ("chat_template_kwargs", Kind::Object),
    ("enable_thinking", Kind::Flag),
    ("extra_body", Kind::Object),
    ("format", Kind::TextOrObject),
    ("frequency_penalty", Kind::Number),
    ("function_call", Kind::TextOrObject),
    ("functions", Kind::List),
    ("grammar", Kind::Text),
    ("guided_json", Kind::TextOrObject),
    ("ignore_eos", Kind::Flag),
    ("include_reasoning", Kind::Flag),
    ("keep_alive", Kind::Any),
    ("logit_bias", Kind::Object),
    ("logprobs", Kind::Flag),
    ("max_completion_tokens", Kind::Integer),
    ("max_tokens", Kind::Integer),
    ("messages", Kind::List),
    ("metadata", Kind::Object),
    ("min_p", Kind::Number),
    ("min_tokens", Kind::Integer),
    ("modalities", Kind::List),
    ("model", Kind::Text),
    ("models", Kind::List),
    ("n", Kind::Integer),
    ("options", Kind::Object),
    ("parallel_tool_calls", Kind::Flag),
    ("plugins", Kind::List),
    ("prediction", Kind::Object),
    ("presence_penalty", Kind::Number),
    ("prompt_cache_key", Kind::Text),
    ("prompt_cache_retention", Kind::Text),
    ("provider", Kind::Object),
    ("random_seed", Kind::Integer),
    ("reasoning", Kind::Object),
    ("reasoning_effort", Kind::Text),
    ("reasoning_format", Kind::Text),
    ("repetition_penalty", Kind::Number),
    ("response_format", Kind::Object),
    ("safe_prompt", Kind::Flag),
    ("safety_identifier", Kind::Text),
    ("search_parameters", Kind::Object),
    ("seed", Kind::Integer),
    ("service_tier", Kind::Text),
    ("stop", Kind::TextOrList),
    ("store", Kind::Flag),
    ("stream", Kind::Flag),
    ("stream_options", Kind::Object),
    ("temperature", Kind::Number),
    ("thinking", Kind::Object),
    ("tool_choice", Kind::TextOrObject),
    ("tools", Kind::List),
    ("top_k", Kind::Integer),
    ("top_logprobs", Kind::Integer),
    ("top_p", Kind::Number),
    ("transforms", Kind::List),
    ("user", Kind::Text),
    ("usage", Kind::Object),
    ("verbosity", Kind::Text),
    ("web_search_options", Kind::Object),
    ("return_token_ids", Kind::Flag),
];

/// Checks a request body. `deployment` is the model that an Azure path names.
pub(in crate::model) fn check(body: &Map<String, Value>, deployment: Option<&str>) -> Checked<Asked> {
    for key in body.keys() {
        if !FIELDS.iter().any(|(known, _)| known == key) {
            return Err(Refusal::bad(format!("Unrecognized request argument supplied: {key}")));
        }
    }
    let model = match deployment {
        Some(deployment) => deployment,
        None => body.get("model").and_then(Value::as_str).filter(|model| !model.is_empty()).ok_or_else(|| {
            Refusal::bad("you must provide a model parameter").at("model").code("missing_required_parameter")
        })?,
    };
    openai(body, "", &FIELDS)?;
    let list = openai_needs(body, "", ("messages", Kind::List))?;
    options(body)?;
    tools::check(body)?;
    messages::check(list.as_array().map_or(&[], Vec::as_slice))?;
    let is_on = |value: Option<&Value>| value.and_then(Value::as_bool).unwrap_or(false);
    Ok(Asked {
        model: model.to_owned(),
        stream: is_on(body.get("stream")),
        stream_usage: is_on(body.get("stream_options").and_then(|options| options.get("include_usage"))),
        thinking: false,
    })
}

fn options(body: &Map<String, Value>) -> Checked {
    let number = |key: &str| body.get(key).and_then(Value::as_f64);
    let is_set = |key: &str| body.get(key).is_some_and(|value| !value.is_null());
    let ranges = [
        ("temperature", 0.0, 2.0),
        ("top_p", 0.0, 1.0),
        ("presence_penalty", -2.0, 2.0),
        ("frequency_penalty", -2.0, 2.0),
        ("top_logprobs", 0.0, 20.0),
    ];
    for (key, least, most) in ranges {
        if let Some(value) = number(key).filter(|value| !(least..=most).contains(value)) {
            let why = format!("Invalid '{key}': expected a value from {least} to {most}, but got {value} instead.");
            return Err(Refusal::bad(why).code("decimal_out_of_range").at(key));
        }
    }
    for key in ["max_tokens", "max_completion_tokens"] {
        if let Some(value) = number(key).filter(|value| *value < 1.0) {
            let why = format!("Invalid '{key}': expected a value >= 1, but got {value} instead.");
            return Err(Refusal::bad(why).code("integer_below_min_value").at(key));
        }
    }
    if is_set("max_tokens") && is_set("max_completion_tokens") {
        let why = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.";
        return Err(Refusal::bad(why).code("invalid_parameter_combination"));
    }
    if let Some(n) = number("n").filter(|n| *n != 1.0) {
        return Err(Refusal::bad(format!("Invalid 'n': the script gives one choice, not {n}.")).at("n"));
    }
    if is_set("stream_options") && body.get("stream") != Some(&Value::Bool(true)) {
        let why = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
        return Err(Refusal::bad(why).at("stream_options"));
    }
    if let Some(Value::Object(options)) = body.get("stream_options") {
        let fields = [("include_usage", Kind::Flag), ("include_obfuscation", Kind::Flag)];
        openai(options, "stream_options", &fields)?;
    }
    stop(body.get("stop"))?;
    response_format(body.get("response_format"))
}

fn stop(stop: Option<&Value>) -> Checked {
    let Some(Value::Array(list)) = stop else { return Ok(()) };
    if list.len() > 4 || list.iter().any(|it| !it.is_string()) {
        let why = "Invalid 'stop': expected a string or an array of at most 4 strings.";
        return Err(Refusal::bad(why).code("invalid_type").at("stop"));
    }
    Ok(())
}

fn response_format(format: Option<&Value>) -> Checked {
    let Some(Value::Object(format)) = format else { return Ok(()) };
    let kind = openai_needs(format, "response_format", ("type", Kind::Text))?.as_str().unwrap_or_default();
    match kind {
        "text" | "json_object" => Ok(()),
        "json_schema" => {
            let at = "response_format.json_schema";
            let inner = openai_needs(format, "response_format", ("json_schema", Kind::Object))?;
            let Value::Object(inner) = inner else { return Ok(()) };
            openai(inner, at, &[("description", Kind::Text), ("strict", Kind::Flag), ("schema", Kind::Object)])?;
            let name = openai_needs(inner, at, ("name", Kind::Text))?.as_str().unwrap_or_default();
            tools::name(name, &format!("{at}.name"))
        }
        other => Err(Refusal::bad(format!(
            "Invalid value: '{other}'. Supported values are: 'json_object', 'json_schema', and 'text'."
        ))
        .code("invalid_value")
        .at("response_format.type")),
    }
}
