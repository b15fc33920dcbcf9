//! What the guardrails make of replies.

use gesta_channel::fence::Fence;
use gesta_channel::judge::{Intervention as Did, Terms, Verdict, headings, judge};
use gesta_channel::outcome::{Handoff, Reason};
use gesta_channel::reply;
use serde_json::{Value, json};

fn with(change: &[(&str, Value)]) -> Value {
    let mut reply = json!({"messages": ["A visit costs 49 euros."], "escalate": false, "escalation_reason": null,
        "confidence": 0.9, "closing_question": "When does it suit you?"});
    for (key, value) in change {
        reply[*key] = value.clone();
    }
    reply
}

fn put(reply: &str, closer: Option<&str>, threshold: f64) -> Verdict {
    let fence = Fence::new("k3v9q2m7x1p8d4s6");
    let headings = headings("# Voice\ntext\n## House rules ##\n#\n### Über uns\n");
    let earlier = ["We open at nine.".to_owned(), "Is that all?".to_owned(), "👍".to_owned()];
    judge(
        &Terms {
            escalation: "A colleague will write.",
            closer,
            confidence_threshold: threshold,
            headings: &headings,
            fence: &fence,
            earlier: &earlier,
        },
        Some(reply),
    )
}

fn judged(change: &[(&str, Value)]) -> Verdict {
    put(&with(change).to_string(), Some("Anything else?"), 0.6)
}

#[test]
fn a_good_reply_goes_out_with_exactly_one_question_at_its_end() {
    let question = "When does it suit you?";
    for (messages, closing, expected) in [
        (json!(["A."]), json!(question), vec!["A.", question]),
        (json!(["A."]), Value::Null, vec!["A."]),
        (json!(["Which one? 🙂"]), json!(question), vec!["Which one? 🙂"]),
        (json!(["Which one?", "A."]), json!(question), vec!["Which one?", "A.", question]),
        (json!(["A.", "B.", "C."]), json!(question), vec!["A.", "B.", "C.", question]),
    ] {
        let verdict = judged(&[("messages", messages), ("closing_question", closing)]);
        assert_eq!(
            (verdict.messages, verdict.handoff, verdict.draft),
            (expected.into_iter().map(String::from).collect(), None, None)
        );
        assert_eq!(verdict.interventions, []);
    }
}

#[test]
fn a_reply_that_breaks_the_schema_is_a_handoff() {
    for reply in [
        "no JSON".to_owned(),
        "[]".to_owned(),
        with(&[("messages", json!([]))]).to_string(),
        with(&[("messages", json!([""]))]).to_string(),
        with(&[("messages", json!("text"))]).to_string(),
        with(&[("escalate", json!(true))]).to_string(),
        with(&[("escalation_reason", json!("complaint"))]).to_string(),
        with(&[("escalate", json!(true)), ("escalation_reason", json!("bored"))]).to_string(),
        with(&[("confidence", json!(1.1))]).to_string(),
        with(&[("confidence", json!("high"))]).to_string(),
        with(&[("closing_question", json!(""))]).to_string(),
        with(&[("extra", json!(1))]).to_string(),
        r#"{"messages": ["a"], "escalate": false, "escalation_reason": null, "confidence": 1}"#.to_owned(),
    ] {
        let verdict = put(&reply, None, 0.6);
        assert_eq!(verdict.handoff, Some(Handoff::Schema), "{reply}");
        assert_eq!(verdict.interventions, [Did::SchemaInvalid]);
        assert_eq!(verdict.messages, ["A colleague will write."]);
        assert_eq!(verdict.draft.as_deref(), Some(reply.as_str()));
    }
}

#[test]
fn lines_that_echo_a_field_or_the_note_are_taken_out() {
    for (message, expected) in [
        ("Hello.\nconfidence: 0.9", Some("Hello.")),
        ("Hello.\n\"escalate\": false,", Some("Hello.")),
        ("{\"closing_question\": \"x\"}\nHello.", Some("Hello.")),
        ("Hello.\n**Confidence**: 0.9", Some("Hello.")),
        ("<confidence>0.9</confidence>\nHello.", Some("Hello.")),
        ("escalation_reason=complaint\nHello.", Some("Hello.")),
        ("Hello.\n[Actions performed: send_flow map]", Some("Hello.")),
        ("[actions performed: send_flow map]", None),
        ("confidence: 0.9", None),
    ] {
        let verdict = judged(&[("messages", json!([message])), ("closing_question", Value::Null)]);
        assert_eq!(verdict.interventions, [Did::FieldEchoStripped], "{message}");
        match expected {
            Some(text) => assert_eq!((verdict.messages, verdict.handoff), (vec![text.to_owned()], None)),
            None => assert_eq!(verdict.handoff, Some(Handoff::Schema)),
        }
    }
    let closing = judged(&[("closing_question", json!("closing_question: When?"))]);
    assert_eq!((closing.messages.len(), closing.interventions), (1, vec![Did::FieldEchoStripped]));
    assert_eq!(judged(&[("messages", json!(["I say it with confidence."]))]).interventions, []);
}

#[test]
fn a_marker_or_a_heading_in_any_text_is_a_leak() {
    for text in [
        "<<contact-text k3v9q2m7x1p8d4s6>>",
        "the value is k3v9q2m7x1p8d4s6",
        "<</Contact-Text other>>",
        "# Voice",
        "**Voice**",
        "voice: short sentences",
        "it says ## house rules there",
        "My House rules say so.",
        "ÜBER UNS",
    ] {
        for change in [("messages", json!(["Fine.", text])), ("closing_question", json!(text))] {
            let verdict = judged(&[change]);
            assert_eq!(
                (verdict.handoff, verdict.interventions),
                (Some(Handoff::Leak), vec![Did::PromptLeakDetected]),
                "{text}"
            );
        }
    }
    for text in ["Your voice is fine.", "A #voicemail", "Those are the house rules of a hotel."] {
        assert_eq!(judged(&[("messages", json!([text]))]).handoff, None, "{text}");
    }
}

#[test]
fn escalation_and_confidence_make_the_tenants_text_the_whole_reply() {
    for reason in Reason::ALL {
        let verdict =
            judged(&[("escalate", json!(true)), ("escalation_reason", json!(reason)), ("confidence", json!(0.1))]);
        let expected: Reason = serde_json::from_value(json!(reason)).unwrap();
        assert_eq!((verdict.handoff, verdict.confidence), (Some(Handoff::Model(expected)), Some(0.1)));
        assert_eq!(verdict.messages, ["A colleague will write."]);
        assert!(verdict.draft.is_some_and(|it| it.contains("49 euros")));
    }
    assert_eq!(judged(&[("confidence", json!(0.59))]).handoff, Some(Handoff::Confidence));
    assert_eq!(judged(&[("confidence", json!(0.6))]).handoff, None);
}

#[test]
fn a_word_for_word_repetition_is_replaced_by_the_closer() {
    let repeated = with(&[("messages", json!(["we  OPEN at nine. 🙂"]))]).to_string();
    let replaced = put(&repeated, Some("Anything else?"), 0.6);
    assert_eq!(
        (replaced.messages, replaced.interventions),
        (vec!["Anything else?".to_owned()], vec![Did::DuplicateReplaced])
    );
    let kept = put(&repeated, None, 0.6);
    assert_eq!((kept.messages.len(), kept.interventions), (2, vec![Did::DuplicateDetected]));
    assert_eq!(judged(&[("messages", json!(["We open at nine.", "New."]))]).interventions, []);
    assert_eq!(judged(&[("messages", json!(["👍"]))]).interventions, [], "emoji alone repeat nothing");
    let escalated = judged(&[
        ("messages", json!(["We open at nine."])),
        ("escalate", json!(true)),
        ("escalation_reason", json!("complaint")),
    ]);
    assert_eq!(escalated.interventions, []);
}

#[test]
fn count_and_length_are_clamped_and_recorded() {
    let verdict = judged(&[("messages", json!(["a", "b", "c", "d"])), ("closing_question", Value::Null)]);
    assert_eq!((verdict.messages.len(), verdict.interventions), (3, vec![Did::CountClamped]));
    let verdict = judged(&[("messages", json!(["é ".repeat(600)])), ("closing_question", json!("w".repeat(1001)))]);
    assert_eq!(verdict.interventions, [Did::LengthClamped]);
    assert!(verdict.messages.iter().all(|it| it.chars().count() <= 1000), "{verdict:?}");
    assert_eq!(judged(&[("messages", json!(["x".repeat(1000)]))]).interventions, []);
}

#[test]
fn no_reply_is_a_schema_failure_and_the_schema_names_every_field() {
    let fence = Fence::new("");
    let terms =
        Terms { escalation: "E", closer: None, confidence_threshold: 0.6, headings: &[], fence: &fence, earlier: &[] };
    let verdict = judge(&terms, None);
    assert_eq!((verdict.handoff, verdict.draft, verdict.confidence), (Some(Handoff::Schema), None, None));
    let schema = reply::schema();
    assert_eq!(schema["required"], json!(reply::FIELDS));
    assert_eq!(schema["properties"]["messages"]["maxItems"], 3);
    assert_eq!(schema["properties"]["messages"]["items"]["maxLength"], 1000);
}
