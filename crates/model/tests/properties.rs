//! Whatever comes in, nothing panics, and whatever is sent keeps to the rules.
#![allow(clippy::unwrap_used)]

mod support;

use gesta_model::Protocol;
use gesta_run::json::Object;
use gesta_run::message::{Block, BlockKind, Message, Part, Raw};
use proptest::prelude::*;
use support::{read_stream, read_whole, request, results, said, tools, write};

fn block() -> impl Strategy<Value = Block> {
    let text = prop_oneof![Just(String::new()), Just(" ".to_owned()), ".{0,12}"];
    let raw = prop_oneof![
        Just(None),
        Just(Some(Raw { origin: "openai".into(), item: serde_json::json!({"reasoning_content": "x"}) })),
        Just(Some(Raw { origin: "anthropic".into(), item: serde_json::json!({"type": "redacted_thinking"}) })),
        Just(Some(Raw { origin: "elsewhere".into(), item: serde_json::json!(7) })),
    ];
    let arguments = prop_oneof![Just("{}".to_owned()), Just("{\"a\":".to_owned()), Just("null".to_owned()), ".{0,9}"];
    prop_oneof![
        text.clone().prop_map(|it| BlockKind::Text(it).into()),
        (text.clone(), raw.clone()).prop_map(|(it, raw)| Block { kind: BlockKind::Thinking(it), raw }),
        raw.prop_map(|raw| Block { kind: BlockKind::Other, raw }),
        (text, ".{0,70}", arguments).prop_map(|(id, name, arguments)| Block::call(&id, &name, arguments)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_checked_history_is_sendable(
        turns in prop::collection::vec((".{0,9}", prop::collection::vec(block(), 0..4)), 1..5),
    ) {
        let mut messages = Vec::new();
        for (text, blocks) in turns {
            messages.push(Message::User { parts: vec![Part::text(text)], prompted: false });
            let results = results(&blocks);
            messages.push(Message::Assistant { blocks });
            if !results.is_empty() {
                messages.push(Message::Tools { results });
            }
        }
        messages.push(said("go on"));
        let (tools, options) = (tools(), Object::new());
        for protocol in [Protocol::OpenAi, Protocol::Anthropic] {
            let sent = write(protocol, &request(&messages, &tools, &options));
            prop_assert!(sent.is_ok(), "{:?}: {:?}", protocol, sent);
        }
    }

    #[test]
    fn bytes_of_any_kind_are_read_without_a_panic(
        at in 0usize..10_000,
        noise in prop::collection::vec(any::<u8>(), 0..40),
        which in 0usize..100,
        cut in 0usize..400,
    ) {
        for protocol in [Protocol::OpenAi, Protocol::Anthropic] {
            let folder = format!("{}/fixtures/{}", env!("CARGO_MANIFEST_DIR"), protocol.as_str());
            let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
            paths.sort();
            let mut bytes = std::fs::read(&paths[which % paths.len()]).unwrap();
            let at = at % (bytes.len() + 1);
            let end = (at + cut).min(bytes.len());
            bytes.splice(at..end, noise.iter().copied());
            let whole = read_stream(protocol, &[&bytes]).0;
            prop_assert_eq!(read_stream(protocol, &[&bytes[..at], &bytes[at..]]).0, whole);
            let _ = read_whole(protocol, &bytes);
        }
    }
}
