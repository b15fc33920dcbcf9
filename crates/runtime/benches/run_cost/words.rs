//! What the model says in the run that is measured: three calls, then one, then 600 characters of text.

use std::fmt::Write as _;

/// What the person says.
pub(crate) const INPUT: &str =
    "Please swap the squats on Monday for lunges, and tell me what the week looks like then.";

/// What the model is told about itself.
pub(crate) const INSTRUCTIONS: &str = "You look after training plans. Look before you change anything, change what you \
    are asked to change, and then say in plain words what the plan looks like now. Never promise what you did not do.";

/// The calls of the first answers: id, tool, arguments.
pub(crate) const CALLS: [&[(&str, &str, &str)]; 2] = [
    &[
        ("call_01", "look_at_plan", r#"{"day":"monday","exercise":"squats","count":3}"#),
        ("call_02", "look_at_plan", r#"{"day":"tuesday","exercise":"any","count":1}"#),
        ("call_03", "look_at_exercise", r#"{"day":"monday","exercise":"lunges","count":3}"#),
    ],
    &[("call_04", "swap_exercise", r#"{"day":"monday","exercise":"lunges","count":3}"#)],
];

/// The definitions of the tools as they are sent: what Gesta makes of the types, word for word.
pub(crate) const TOOLS: &str = concat!(
    r#"["#,
    r#"{"type":"function","function":{"name":"look_at_plan","description":"Shows what a day of the plan holds.","parameters":{"#,
    r#""type":"object","properties":{"count":{"description":"How many sets.","type":"integer","format":"uint32","minimum":0},"#,
    r#""day":{"description":"The day of the week.","type":"string"},"exercise":{"description":"The exercise.","type":"string"}},"required":["day","exercise","count"],"description":"What every tool takes."}}},"#,
    r#"{"type":"function","function":{"name":"look_at_exercise","description":"Shows an exercise and what it is good for.","parameters":{"#,
    r#""type":"object","properties":{"count":{"description":"How many sets.","type":"integer","format":"uint32","minimum":0},"#,
    r#""day":{"description":"The day of the week.","type":"string"},"exercise":{"description":"The exercise.","type":"string"}},"required":["day","exercise","count"],"description":"What every tool takes."}}},"#,
    r#"{"type":"function","function":{"name":"swap_exercise","description":"Puts another exercise in the place of one. Call it only when the person asked for it.","parameters":{"#,
    r#""type":"object","properties":{"count":{"description":"How many sets.","type":"integer","format":"uint32","minimum":0},"#,
    r#""day":{"description":"The day of the week.","type":"string"},"exercise":{"description":"The exercise.","type":"string"}},"required":["day","exercise","count"],"description":"What every tool takes."}}}]"#,
);

/// How many pieces of 12 characters the text of the last answer has.
const TEXT_PIECES: usize = 50;
/// How many pieces the arguments of a streamed call come in.
const ARGUMENT_PIECES: usize = 4;

/// How many exchanges a run has.
pub(crate) const EXCHANGES: usize = 3;

/// One piece of the last answer.
fn piece(n: usize) -> String {
    format!("piece {n:05} ")
}

/// Which exchange a request belongs to: the results in it tell.
pub(crate) fn exchange_of(body: &[u8]) -> usize {
    match memchr::memmem::find_iter(body, b"\"role\":\"tool\"").count() {
        0 => 0,
        1..=3 => 1,
        _ => 2,
    }
}

/// The body of a whole answer.
pub(crate) fn plain(exchange: usize) -> String {
    let message = match CALLS.get(exchange) {
        Some(calls) => {
            let call = |(id, name, arguments): &(&str, &str, &str)| {
                let function = serde_json::json!({"name": name, "arguments": arguments});
                serde_json::json!({"id": id, "type": "function", "function": function})
            };
            let calls: Vec<_> = calls.iter().map(call).collect();
            serde_json::json!({"role": "assistant", "content": null, "tool_calls": calls})
        }
        None => {
            let text: String = (0..TEXT_PIECES).map(piece).collect();
            serde_json::json!({"role": "assistant", "content": text})
        }
    };
    let reason = if exchange < CALLS.len() { "tool_calls" } else { "stop" };
    let choice = serde_json::json!({"index": 0, "message": message, "logprobs": null, "finish_reason": reason});
    let head = serde_json::json!({
        "id": "chatcmpl-measured", "object": "chat.completion", "created": 1_790_000_000, "model": "measured",
        "choices": [choice], "usage": usage(), "system_fingerprint": "fp_0",
    });
    head.to_string()
}

fn usage() -> serde_json::Value {
    serde_json::json!({"prompt_tokens": 420, "completion_tokens": 60, "total_tokens": 480})
}

/// The events of a streamed answer, each with its blank line: 78 in the three exchanges, `[DONE]` left out.
pub(crate) fn events(exchange: usize) -> Vec<String> {
    let mut events = Vec::new();
    match CALLS.get(exchange) {
        Some(calls) => {
            events.push(event(r#"{"role":"assistant","content":null}"#, "null"));
            for (n, (id, name, arguments)) in calls.iter().enumerate() {
                let begun = format!(
                    r#"{{"index":{n},"id":"{id}","type":"function","function":{{"name":"{name}","arguments":""}}}}"#
                );
                events.push(event(&format!(r#"{{"tool_calls":[{begun}]}}"#), "null"));
                let bytes = arguments.as_bytes().chunks(arguments.len().div_ceil(ARGUMENT_PIECES));
                for more in bytes.map(String::from_utf8_lossy) {
                    let more = serde_json::Value::from(more.into_owned());
                    let call = format!(r#"{{"index":{n},"function":{{"arguments":{more}}}}}"#);
                    events.push(event(&format!(r#"{{"tool_calls":[{call}]}}"#), "null"));
                }
            }
            events.push(event("{}", "\"tool_calls\""));
        }
        None => {
            for n in 0..TEXT_PIECES {
                events.push(event(&format!(r#"{{"content":"{}"}}"#, piece(n)), "null"));
            }
            events.push(event("{}", "\"stop\""));
        }
    }
    let usage = usage();
    events.push(with_head(&format!(r#""choices":[],"usage":{usage}"#)));
    events
}

fn event(delta: &str, reason: &str) -> String {
    with_head(&format!(
        r#""choices":[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{reason}}}],"usage":null"#
    ))
}

fn with_head(rest: &str) -> String {
    let head = r#""id":"chatcmpl-measured","object":"chat.completion.chunk","created":1790000000,"model":"measured""#;
    format!("data: {{{head},\"system_fingerprint\":\"fp_0\",{rest}}}\n\n")
}

/// One piece of a chunked body.
pub(crate) fn chunk(data: &str, out: &mut String) {
    let _ = write!(out, "{:x}\r\n{data}\r\n", data.len());
}
