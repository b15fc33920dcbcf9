//! The webhook: what comes in, what goes back.

use gesta_channel::inbound::Inbound;
use gesta_channel::numbers::{BODY_BYTES_MAX, KEY_CHARS_MAX, TEXT_CHARS_MAX};
use gesta_channel::profile::Messenger;
use gesta_channel::response::{Callback, block, check};
use serde_json::json;

fn error(body: &str) -> String {
    Inbound::read(body.as_bytes()).map(|it| format!("{it:?}")).expect_err(body).to_string()
}

#[test]
fn a_body_is_read_strictly_and_brought_into_one_form() {
    let read = |body: serde_json::Value| Inbound::read(body.to_string().as_bytes()).unwrap();
    let whole =
        read(json!({"subscriber_id": 12345, "text": "Hi", "first_name": null, "last_name": " ", "locale": "en",
        "channel": "whatsapp", "ai_token": "", "course": "washer", "message_id": "m1"}));
    assert_eq!((whole.contact.as_str(), whole.text.as_str()), ("12345", "Hi"));
    assert_eq!((whole.first_name, whole.last_name, whole.ai_token), (None, None, None));
    assert_eq!((whole.offering.as_deref(), whole.message_id.as_deref()), (Some("washer"), Some("m1")));
    let both = read(json!({"subscriber_id": "u1", "text": "", "course": "a", "offering": "b"}));
    assert_eq!((both.offering.as_deref(), both.text.as_str()), (Some("b"), ""));
    let wins = read(json!({"subscriber_id": "u1", "text": "a\u{0}b", "course": "a", "offering": ""}));
    assert_eq!((wins.offering, wins.text.as_str()), (None, "a\u{FFFD}b"));
    let unrendered =
        read(json!({"subscriber_id": "u1", "text": "x", "offering": "{{cuf_offering}}", "locale": "{{locale}}"}));
    assert_eq!((unrendered.offering, unrendered.locale), (None, None));
}

#[test]
fn what_does_not_fit_is_named_and_not_quoted() {
    let long = |key: &str, n: usize| json!({"subscriber_id": "u", "text": "x", key: "y".repeat(n)}).to_string();
    let text = |n: usize| json!({"subscriber_id": "u", "text": "é".repeat(n)}).to_string();
    for (body, expected) in [
        ("[]".to_owned(), "no JSON object"),
        ("{".to_owned(), "no JSON object"),
        (r#"{"subscriber_id": "u", "text": "x", "text": "y"}"#.to_owned(), "no JSON object"),
        (json!({"text": "x"}).to_string(), "`subscriber_id` is missing"),
        (json!({"subscriber_id": "u"}).to_string(), "`text` is missing"),
        (json!({"subscriber_id": "u", "text": null}).to_string(), "`text` must be a string"),
        (json!({"subscriber_id": 1.5, "text": "x"}).to_string(), "`subscriber_id` must be"),
        (json!({"subscriber_id": -1, "text": "x"}).to_string(), "`subscriber_id` must be"),
        (json!({"subscriber_id": " ", "text": "x"}).to_string(), "`subscriber_id` must be"),
        (json!({"subscriber_id": "{{user_id}}", "text": "x"}).to_string(), "`subscriber_id` must be"),
        (json!({"subscriber_id": "u", "text": "x", "tools": "all"}).to_string(), "unknown key"),
        (json!({"subscriber_id": "u", "text": "x", "locale": 3}).to_string(), "`locale` must be"),
        (text(TEXT_CHARS_MAX + 1), "`text` has more than 4096 characters"),
        (long("message_id", KEY_CHARS_MAX + 1), "`message_id` has more than 256"),
        (long("ai_token", KEY_CHARS_MAX + 1), "`ai_token` has more than 256"),
        (long("offering", KEY_CHARS_MAX + 1), "`offering` has more than 256"),
        (" ".repeat(BODY_BYTES_MAX + 1), "more than 65536 bytes"),
    ] {
        assert!(error(&body).contains(expected), "{expected}: {}", error(&body));
    }
    for fits in [text(TEXT_CHARS_MAX), long("message_id", KEY_CHARS_MAX), long("offering", KEY_CHARS_MAX)] {
        Inbound::read(fits.as_bytes()).unwrap();
    }
}

#[test]
fn a_link_to_media_is_recognised_and_nothing_else_is() {
    let host = Some("files.manychat.example");
    for (text, host, expected) in [
        (" https://any.example/a/b.OGG?sig=1 ", None, true),
        ("https://any.example/a.jpeg", None, true),
        ("HTTPS://any.example/a.3gp#x", None, true),
        ("https://any.example/a.pdf", None, false),
        ("http://any.example/a.jpg", None, false),
        ("see https://any.example/a.jpg", None, false),
        ("https://any.example/a.jpg please", None, false),
        ("https://any.example.jpg", None, false),
        ("https://files.manychat.example/anything", host, true),
        ("https://files.manychat.example:443/a", host, true),
        ("https://files.manychat.example.evil.example/a.jpg", host, false),
        ("https://files.manychat.example@evil.example/a.jpg", host, false),
        ("https://any.example/a.jpg", host, false),
        ("", None, false),
        ("https:/é", None, false),
    ] {
        let body = json!({"subscriber_id": "u", "text": text}).to_string();
        assert_eq!(Inbound::read(body.as_bytes()).unwrap().is_media(host), expected, "{text}");
    }
}

fn callback() -> Callback {
    Callback {
        base: "https://agent.example/".to_owned(),
        secret: "the-second-secret".to_owned(),
        token_field: "ai_token".to_owned(),
    }
}

#[test]
fn every_response_fits_its_messenger_and_carries_the_callers_own_secret() {
    let texts: Vec<String> = (0..12).map(|n| format!("m{n}")).collect();
    for name in Messenger::names() {
        let profile = Messenger::named(name).unwrap().profile();
        for messages in [&texts[..0], &texts[..1], &texts[..3], &texts[..]] {
            let response = block(&profile, messages, &callback());
            check(&profile, &response).unwrap();
            let content = &response["content"];
            assert_eq!(content.get("type").and_then(|it| it.as_str()), profile.kind);
            assert_eq!(content.get("quick_replies").is_some(), profile.quick_replies, "{name}");
            assert_eq!(content["messages"].as_array().unwrap().len(), messages.len().min(profile.messages_max));
            let shown = content["messages"].to_string();
            assert!(messages.iter().all(|it| shown.contains(it)), "{shown}");
        }
    }
    let response = block(&Messenger::Whatsapp.profile(), &[], &callback());
    assert_eq!(
        response["content"]["external_message_callback"],
        json!({
            "url": "https://agent.example/v1/channels/manychat/message",
            "method": "post",
            "headers": {"Authorization": "Bearer the-second-secret"},
            "payload": {"text": "{{last_input_text}}", "subscriber_id": "{{user_id}}", "ai_token": "{{cuf_ai_token}}"},
            "timeout": 86400,
        })
    );
}

#[test]
fn a_response_that_does_not_fit_is_told_by_its_place() {
    let profile = Messenger::Whatsapp.profile();
    for (pointer, value, expected) in [
        ("/version", json!("v1"), "`version`"),
        ("/content/type", json!("telegram"), "`content.type`"),
        ("/content/quick_replies", json!([]), "must be absent"),
        ("/content/extra", json!(1), "unknown key `extra`"),
        ("/content/messages", json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), "more than 1"),
        ("/content/messages", json!([{"type": "text", "text": ""}]), "at least one character"),
        ("/content/actions", json!([1, 2, 3, 4, 5, 6]), "more than 5"),
        ("/content/external_message_callback", json!(null), "is no object"),
        ("/content/external_message_callback/timeout", json!(60), "`timeout`"),
        ("/content/external_message_callback/headers", json!({}), "bearer"),
    ] {
        let mut response = block(&profile, &["a".to_owned()], &callback());
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        response.pointer_mut(parent).unwrap()[key] = value;
        let why = check(&profile, &response).unwrap_err();
        assert!(why.contains(expected), "{pointer}: {why}");
    }
    let mut absent = block(&profile, &["a".to_owned()], &callback());
    absent["content"].as_object_mut().unwrap().remove("type");
    check(&profile, &absent).unwrap();
}
