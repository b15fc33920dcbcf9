//! A character that a server cuts in two, as servers do that count in UTF-16, is whole again in the answer.
#![allow(clippy::unwrap_used)]

mod support;

use gesta_model::Protocol;
use gesta_run::reply::{Reply, ReplyBuilder};
use support::{read_stream, read_whole};

const PROTOCOLS: [Protocol; 2] = [Protocol::OpenAi, Protocol::Anthropic];

/// A JSON string as such servers write it: every unit of UTF-16 beyond ASCII as an escape, halves too.
fn quoted(units: &[u16]) -> String {
    let mut out = String::from("\"");
    for unit in units {
        match u8::try_from(*unit).map(char::from) {
            Ok(c @ ('"' | '\\')) => out.extend(['\\', c]),
            Ok(c @ ' '..='~') => out.push(c),
            _ => out.push_str(&format!("\\u{unit:04x}")),
        }
    }
    out + "\""
}

/// A stream whose text and whose arguments come in these pieces.
fn streamed(protocol: Protocol, text: &[&[u16]], arguments: &[&[u16]]) -> String {
    let mut events = Vec::new();
    match protocol {
        Protocol::OpenAi => {
            let choice = |delta: String| format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#);
            events.extend(text.iter().map(|it| choice(format!(r#"{{"content":{}}}"#, quoted(it)))));
            events.extend(arguments.iter().map(|it| {
                let function = format!(r#"{{"name":"note","arguments":{}}}"#, quoted(it));
                choice(format!(r#"{{"tool_calls":[{{"index":0,"id":"c1","function":{function}}}]}}"#))
            }));
            events.push(r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#.to_owned());
            events.push("[DONE]".to_owned());
        }
        Protocol::Anthropic => {
            let start = |n: u32, block: &str| {
                format!(r#"{{"type":"content_block_start","index":{n},"content_block":{block}}}"#)
            };
            let delta = |n: u32, kind: &str, key: &str, units: &[u16]| {
                let delta = format!(r#"{{"type":"{kind}","{key}":{}}}"#, quoted(units));
                format!(r#"{{"type":"content_block_delta","index":{n},"delta":{delta}}}"#)
            };
            events.push(start(0, r#"{"type":"text","text":""}"#));
            events.extend(text.iter().map(|it| delta(0, "text_delta", "text", it)));
            events.push(start(1, r#"{"type":"tool_use","id":"c1","name":"note","input":{}}"#));
            events.extend(arguments.iter().map(|it| delta(1, "input_json_delta", "partial_json", it)));
            events.push(r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#.to_owned());
            events.push(r#"{"type":"message_stop"}"#.to_owned());
        }
    }
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

fn plain(protocol: Protocol, text: &[u16], arguments: &[u16]) -> String {
    match protocol {
        Protocol::OpenAi => {
            let function = format!(r#"{{"name":"note","arguments":{}}}"#, quoted(arguments));
            let calls = format!(r#"[{{"id":"c1","function":{function}}}]"#);
            let message = format!(r#"{{"content":{},"tool_calls":{calls}}}"#, quoted(text));
            format!(r#"{{"choices":[{{"message":{message},"finish_reason":"tool_calls"}}]}}"#)
        }
        Protocol::Anthropic => {
            let text = format!(r#"{{"type":"text","text":{}}}"#, quoted(text));
            // The input is no text here but JSON itself.
            let input = String::from_utf16(arguments).unwrap();
            let call = format!(r#"{{"type":"tool_use","id":"c1","name":"note","input":{input}}}"#);
            format!(r#"{{"content":[{text},{call}],"stop_reason":"tool_use"}}"#)
        }
    }
}

fn read(protocol: Protocol, stream: &str) -> (String, String) {
    let (reply, deltas) = read_stream(protocol, &[stream.as_bytes()]);
    let reply = reply.unwrap_or_else(|fault| panic!("{fault}: {stream}"));
    let mut builder = ReplyBuilder::default();
    deltas.into_iter().for_each(|delta| builder.push(delta));
    assert_eq!(builder.finish().blocks, reply.blocks, "{stream}");
    told(&reply)
}

fn told(reply: &Reply) -> (String, String) {
    (reply.joined_text(), reply.calls().map(|call| call.arguments.as_str()).collect())
}

/// Texts in UTF-16 with escapes for halves that stand alone, and what is read from them.
const CASES: [(&str, &str); 7] = [
    ("a😀b", "a😀b"),
    ("😀😀", "😀😀"),
    ("é\u{10ffff}\u{10f83d}\"\\", "é\u{10ffff}\u{10f83d}\"\\"),
    ("a\u{10000}", "a\u{10000}"),
    ("<d83d>", "\u{fffd}"),
    ("a<de00><d83d>b😀<d83d>", "a\u{fffd}\u{fffd}b😀\u{fffd}"),
    ("<d83d><d83d><de00><de00>", "\u{fffd}😀\u{fffd}"),
];

/// The units of a text in which `<d83d>` stands for half a character.
fn units(text: &str) -> Vec<u16> {
    let mut out = Vec::new();
    for piece in text.split_inclusive('>') {
        match piece.split_once('<') {
            Some((before, half)) => {
                out.extend(before.encode_utf16());
                out.push(u16::from_str_radix(half.trim_end_matches('>'), 16).unwrap());
            }
            None => out.extend(piece.encode_utf16()),
        }
    }
    out
}

/// Every way to cut this into three pieces, some of them empty.
fn cuts(units: &[u16]) -> Vec<[&[u16]; 3]> {
    let ends = |a: usize| (a..=units.len()).map(move |b| (a, b));
    (0..=units.len()).flat_map(ends).map(|(a, b)| [&units[..a], &units[a..b], &units[b..]]).collect()
}

#[test]
fn a_character_cut_between_two_deltas_of_text_is_joined_and_a_lone_half_is_replaced() {
    for (text, expected) in CASES {
        let units = units(text);
        for (protocol, pieces) in PROTOCOLS.iter().flat_map(|it| cuts(&units).into_iter().map(move |cut| (*it, cut))) {
            // What legally stands at the edge of a piece cannot be told from a mark, so such an event has none.
            let is_split = pieces.iter().any(|piece| String::from_utf16(piece).is_err());
            if is_split && text.contains('\u{10f83d}') {
                continue;
            }
            let stream = streamed(protocol, &pieces, &[&[b'{'.into(), b'}'.into()]]);
            assert_eq!(read(protocol, &stream), (expected.to_owned(), "{}".to_owned()), "{stream}");
        }
    }
}

#[test]
fn arguments_are_mended_in_the_json_around_them_and_in_their_own_escapes() {
    for (text, expected) in CASES.into_iter().filter(|(text, _)| !text.contains('\\')) {
        let inner = [&[b'{', b'"', b'a', b'"', b':', b'"'].map(u16::from), &*units(text), &[b'"', b'}'].map(u16::from)];
        let arguments: Vec<u16> = inner.concat();
        for (protocol, pieces) in
            PROTOCOLS.iter().flat_map(|it| cuts(&arguments).into_iter().map(move |cut| (*it, cut)))
        {
            let stream = streamed(protocol, &[], &pieces);
            assert_eq!(read(protocol, &stream).1, format!(r#"{{"a":"{expected}"}}"#), "{stream}");
        }
    }
    let escaped = r#"{"a":"\ud83d\ude00\u00e9\\ud83d","b":"\ud83d","c":"\ude00\n"}"#;
    let expected = r#"{"a":"\ud83d\ude00\u00e9\\ud83d","b":"\ufffd","c":"\ufffd\n"}"#;
    let units: Vec<u16> = escaped.encode_utf16().collect();
    for (protocol, pieces) in PROTOCOLS.iter().flat_map(|it| cuts(&units).into_iter().map(move |cut| (*it, cut))) {
        let stream = streamed(protocol, &[], &pieces);
        assert_eq!(read(protocol, &stream).1, expected, "{stream}");
    }
}

#[test]
fn a_plain_answer_is_mended_too() {
    let arguments = r#"{"a":"\ud83d\ude00","b":"\ud83d"}"#.encode_utf16().collect::<Vec<u16>>();
    for (protocol, (text, expected)) in PROTOCOLS.iter().flat_map(|it| CASES.map(|case| (*it, case))) {
        let body = plain(protocol, &units(text), &arguments);
        let reply = read_whole(protocol, body.as_bytes()).unwrap_or_else(|fault| panic!("{fault}: {body}"));
        let (text, arguments) = told(&reply);
        assert_eq!(text, expected, "{body}");
        let read: serde_json::Value = serde_json::from_str(&arguments).unwrap();
        assert_eq!(read, serde_json::json!({"a": "😀", "b": "\u{fffd}"}), "{body}");
    }
}
