//! Tenant files, good and bad.

use expect_test::expect_file;
use gesta_channel::tenant::{Files, Snapshot};

use crate::{files, fixture, reserved, snapshot, told};

#[test]
fn every_fault_of_a_bad_file_is_told_at_once_with_its_place_and_the_way_out() {
    let folder = format!("{}/fixtures/tenant/bad", env!("CARGO_MANIFEST_DIR"));
    let mut names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path()).collect();
    names.retain(|it| it.extension().is_some_and(|it| it == "json"));
    assert!(names.len() >= 10, "{names:?}");
    for path in names {
        let text = std::fs::read_to_string(&path).unwrap();
        let faults = Snapshot::read(&files(Some(text)), &reserved()).expect_err(&path.display().to_string());
        expect_file![path.with_extension("faults")].assert_eq(&told(&faults));
    }
}

#[test]
fn both_spellings_load_and_say_the_same() {
    let camel = snapshot("good/camel.json");
    let snake = fixture("good/camel.json")
        .replace("flowNs", "flow_ns")
        .replace("settleSeconds", "settle_seconds")
        .replace("maxLength", "max_length")
        .replace("neverRendered", "never_rendered")
        .replace("onEscalation", "on_escalation");
    let snake = Snapshot::read(&files(Some(snake)), &reserved()).unwrap();
    assert_eq!(camel.tools, snake.tools);
    assert_eq!((camel.tools.flows[0].settle_seconds, camel.tools.notes[0].on_escalation), (30, true));
}

#[test]
fn without_the_file_there_are_no_tools_and_the_version_is_that_of_all_four() {
    let none = Snapshot::read(&files(None), &reserved()).unwrap();
    let empty = snapshot("good/empty.json");
    assert_eq!(none.tools, empty.tools);
    assert_ne!(none.version, empty.version);
    let mut other = files(None);
    other.rules = other.rules.replace("One moment", "A moment");
    assert_ne!(Snapshot::read(&other, &reserved()).unwrap().version, none.version);
    assert_eq!(Snapshot::read(&files(None), &reserved()).unwrap().version, none.version);
}

#[test]
fn the_defaults_of_the_rules_are_those_of_the_specification() {
    let mut files = files(None);
    files.rules = r#"{"messages": {"acknowledgement": "a", "escalation": "e"}}"#.to_owned();
    let rules = &Snapshot::read(&files, &reserved()).unwrap().rules;
    assert_eq!(rules.confidence_threshold, 0.6);
    assert_eq!((rules.max_turns_per_conversation, rules.idle_reset_hours, rules.history_days), (25, 24, 30));
    assert_eq!((rules.daily_token_cap, rules.daily_cost_cap_usd), (1_000_000, 5.0));
    assert_eq!((rules.turns_per_contact_per_hour, rules.silent_while_escalated), (60, true));
    assert_eq!((&rules.media_fallback, &rules.closer, &rules.human_active_tag), (&None, &None, &None));
}

#[test]
fn faults_of_all_files_stand_in_one_list() {
    let files = Files {
        prompt: " \n".to_owned(),
        catalog:
            r#"{"business_name": "x", "currency": "EURO", "offerings": [{"id": "a", "name": "A", "description": "d",
            "price": {"amount": 1.5, "currency": "EUR"}}, {"id": "a", "name": "A", "description": "d"}], "rate": 1}"#
                .to_owned(),
        rules: r#"{"messages": {"escalation": "e"}, "confidence_threshold": 1.01, "history_days": 0,
            "opening_trigger": {"keywords": [], "message": "m"}, "budget": {"daily_cost_cap_usd": 0},
            "handoff": {"while_escalated": "loud", "human_active_tag": "owns-washer"}}"#
            .to_owned(),
        tools: Some(
            r#"{"tags": [{"id": "washer", "tag": "owns-washer", "description": "d"}], "events": [{}]}"#.to_owned(),
        ),
    };
    let faults = Snapshot::read(&files, &reserved()).unwrap_err();
    expect_file!["../../fixtures/tenant/all.faults"].assert_eq(&told(&faults));
}
