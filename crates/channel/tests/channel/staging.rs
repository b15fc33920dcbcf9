//! What tools write down, and what is recorded.

use gesta_channel::fence::Fence;
use gesta_channel::manychat::Contact;
use gesta_channel::note::{clean, performed, without_note};
use gesta_channel::numbers::ACTIONS_MAX;
use gesta_channel::offer::{self, Terms};
use gesta_channel::outcome::{Handoff, Reason};
use gesta_channel::record::{Entry, Status, actions};
use gesta_channel::staging::{Asked, Flowing, Intent, Said, Target, Turn, function, refusal_of};
use gesta_channel::{read, tenant};
use gesta_run::json::Object;
use gesta_run::{Stages, Staging as Asks, ToolEffect};
use serde_json::{Value, json};

use crate::snapshot;

fn turn(tools: &str) -> Turn {
    Turn::new(snapshot(tools), Intent::Unknown)
}

fn tag(id: &str) -> Asked {
    Asked::AddTag { id: id.to_owned() }
}

fn untag(id: &str) -> Asked {
    Asked::RemoveTag { id: id.to_owned() }
}

fn field(id: &str, value: &str) -> Asked {
    Asked::SetField { id: id.to_owned(), value: value.to_owned() }
}

fn note(id: &str, text: &str) -> Asked {
    Asked::WriteNote { id: id.to_owned(), text: text.to_owned() }
}

fn said(result: Value) -> Said {
    Said::Result(result)
}

fn staged() -> Said {
    said(json!({"staged": true}))
}

fn refused(what: &str, reason: &str) -> Said {
    said(json!({what: false, "reason": reason}))
}

fn statuses(turn: &Turn) -> Vec<Status> {
    turn.entries().iter().map(|it| it.status).collect()
}

/// Point 1 of the source's verification.
#[test]
fn a_tool_names_nothing_outside_the_files_and_an_empty_list_offers_none() {
    let names = |tools: &tenant::Tools, terms: &Terms| -> Vec<String> {
        offer::tools(tools, terms).into_iter().map(|it| it.name).collect()
    };
    let full = &snapshot("good/full.json").tools;
    let reads = Terms { reads: true, ..Terms::default() };
    let all = ["send_flow", "add_tag", "remove_tag", "set_field", "write_note", "schedule_nudge", "get_contact"];
    assert_eq!(names(full, &reads), all);
    assert_eq!(names(full, &Terms::default()), all[..6]);
    assert_eq!(names(full, &Terms { nudge: true, reads: true, ..Terms::default() }), all[..5]);
    assert_eq!(names(&tenant::Tools::default(), &reads), ["get_contact"]);
    assert!(names(&tenant::Tools::default(), &Terms::default()).is_empty());
    for spec in offer::tools(full, &reads) {
        let text = serde_json::to_string(&spec).unwrap();
        for hidden in ["content20240101", "owns-washer", "fault_note", "subscriber", "contact_id"] {
            assert!(!text.contains(hidden), "{text}");
        }
        let expected = match spec.name.as_str() {
            "send_flow" => ToolEffect::Once,
            "get_contact" => ToolEffect::ReadsOnly,
            _ => ToolEffect::Staged,
        };
        assert_eq!(spec.effect, expected);
        gesta_run::Tool::new(spec).unwrap();
    }
    let sent = Terms { flows_sent: vec!["price_sheet".to_owned(), "map".to_owned()], nudge: true, ..Terms::default() };
    let flow = &offer::tools(full, &sent)[0];
    assert_eq!((flow.effect, &flow.parameters["properties"]["id"]["enum"]), (ToolEffect::Staged, &json!(["map"])));
    assert!(flow.parameters["properties"]["contact_asked"].is_object());
    let mut turn = turn("good/full.json");
    for unknown in [tag("ghost"), untag("vip"), field("visit_time", "noon"), field("ghost", "am"), note("ghost", "x")] {
        assert!(matches!(turn.stage(unknown), Said::Unknown(_)));
    }
    assert!(matches!(turn.send_flow("ghost", None, true), Flowing::Said(Said::Unknown(_))));
    assert!(turn.actions().is_empty(), "what is unknown takes no slot");
}

/// Point 4 of the source's verification, with the ninth action.
#[test]
fn the_ninth_action_is_refused_and_recorded_and_equal_ones_are_looked_for_before() {
    let mut turn = turn("good/full.json");
    let eight =
        [tag("washer"), untag("washer"), tag("washer"), untag("washer"), tag("oven"), untag("oven"), tag("oven")];
    for asked in eight {
        assert_eq!(turn.stage(asked), staged());
    }
    let Flowing::Send { place, flow_ns } = turn.send_flow("map", Some(true), true) else {
        panic!("the eighth is sent")
    };
    assert_eq!((place, flow_ns.as_str()), (7, "content20240101_000008"));
    assert_eq!(turn.sent(place, Ok(())), said(json!({"sent": true})));
    assert_eq!(turn.actions()[7].contact_asked, Some(true));
    assert_eq!(turn.entries().len(), ACTIONS_MAX);
    assert_eq!(turn.stage(tag("oven")), staged(), "it is there already");
    assert_eq!(turn.stage(field("visit_time", "am")), refused("staged", "over_cap"));
    assert_eq!(turn.send_flow("price_sheet", None, true), Flowing::Said(refused("sent", "over_cap")));
    assert_eq!(
        turn.send_flow("map", None, true),
        Flowing::Said(said(json!({"sent": true}))),
        "the first's outcome again"
    );
    assert_eq!(statuses(&turn)[8..], [Status::DroppedOverCap, Status::DroppedOverCap]);
    assert_eq!(turn.settle(Some(Handoff::Leak)), 7);
    assert_eq!(turn.entries()[7].status, Status::Performed, "what went out stays as it went");
}

#[test]
fn equal_actions_collapse_only_with_nothing_on_the_same_thing_between() {
    for (asked, expected) in [
        (vec![tag("washer"), tag("washer")], 1),
        (vec![tag("washer"), tag("oven"), tag("washer")], 2),
        (vec![tag("washer"), untag("washer"), tag("washer")], 3),
        (vec![field("visit_time", "am"), field("visit_time", "pm"), field("visit_time", "am")], 3),
        (vec![note("fault", "leaks"), note("fault", " leaks\n")], 1),
        (vec![note("fault", "leaks"), note("fault", "drips"), note("fault", "leaks")], 3),
        (vec![note("fault", "leaks"), note("summary", "leaks")], 2),
    ] {
        let mut turn = turn("good/full.json");
        for one in asked {
            assert_eq!(turn.stage(one), staged());
        }
        assert_eq!(turn.actions().len(), expected);
    }
}

#[test]
fn who_is_no_prospect_yet_gets_no_write_but_intent_and_notes() {
    let mut turn = turn("good/intent.json");
    assert_eq!(turn.stage(tag("washer")), refused("staged", "not_prospect"));
    assert_eq!(turn.send_flow("price_sheet", None, true), Flowing::Said(refused("sent", "not_prospect")));
    assert_eq!(turn.stage(note("fault", "leaks")), staged());
    assert_eq!(turn.stage(field("intent", "not_prospect")), staged());
    assert_eq!(turn.stage(tag("washer")), refused("staged", "not_prospect"));
    assert_eq!(turn.stage(field("intent", "prospect")), staged());
    assert_eq!(turn.stage(tag("washer")), staged());
    assert_eq!(turn.stage(field("intent", "not_prospect")), refused("staged", "prospect_is_final"));
    assert_eq!(turn.stage(field("intent", "prospect")), staged());
    assert_eq!(turn.actions().len(), 4, "refusals leave no entry");
    let mut known = Turn::new(snapshot("good/intent.json"), Intent::Prospect);
    assert_eq!(known.stage(tag("washer")), staged());
    assert!(known.may_read() && known.may_read() && !known.may_read(), "a third read is none");
}

#[test]
fn a_flow_that_fails_or_finds_no_room_is_told_to_the_model() {
    let mut turn = turn("good/full.json");
    assert_eq!(turn.send_flow("map", None, false), Flowing::Said(refused("sent", "flow_limit")));
    assert!(turn.actions().is_empty());
    let Flowing::Send { place, .. } = turn.send_flow("map", None, true) else { panic!("there is room") };
    assert_eq!(turn.sent(place, Err("timeout".to_owned())), refused("sent", "send_failed"));
    assert_eq!(turn.send_flow("map", None, true), Flowing::Said(refused("sent", "send_failed")));
    let entry = &turn.entries()[0];
    assert_eq!((entry.status, entry.error.as_deref()), (Status::Failed, Some("timeout")));
}

/// Point 3 of the source's verification: nothing is left to perform.
#[test]
fn every_handoff_discards_and_only_the_models_own_keep_notes_for_staff() {
    let handoffs = [
        (Handoff::Model(Reason::Complaint), true),
        (Handoff::Confidence, true),
        (Handoff::Leak, false),
        (Handoff::Schema, false),
        (Handoff::Failed, false),
        (Handoff::Aborted, false),
    ];
    for (handoff, keeps) in handoffs {
        let mut turn = turn("good/full.json");
        for asked in [tag("washer"), note("summary", "wants a person"), note("fault", "leaks")] {
            assert_eq!(turn.stage(asked), staged());
        }
        assert_eq!(turn.settle(Some(handoff)), if keeps { 2 } else { 3 });
        let note = if keeps { Status::Staged } else { Status::Discarded };
        assert_eq!(statuses(&turn), [Status::Discarded, note, Status::Discarded], "{handoff:?}");
    }
    let mut good = turn("good/full.json");
    good.stage(tag("washer"));
    assert_eq!((good.settle(None), statuses(&good)), (0, vec![Status::Staged]));
}

#[test]
fn notes_are_cleaned_when_they_are_staged() {
    for (text, max, expected) in [
        ("call +1 555 123 4567\u{7} or\n\na@b.example", 500, "call [removed] or [removed]"),
        ("one two three", 7, "one two"),
        ("\u{200B}\u{202E} \t", 500, ""),
        ("see https://x.example/a", 500, "see [removed]"),
    ] {
        assert_eq!(clean(text, max), expected);
    }
    let mut turn = turn("good/full.json");
    assert_eq!(turn.stage(note("fault", " \u{0} ")), refused("staged", "empty_note"));
    assert_eq!(turn.stage(note("fault", "the drum makes a noise and number 5551234567 calls")), staged());
    let Target::Note { text, .. } = &turn.actions()[0].target else { panic!("a note") };
    assert_eq!(text, "the drum makes a noise and number");
    assert_eq!(turn.entries()[0].length, Some(33));
    assert_eq!(without_note("bad value: leaks now", "leaks now"), "bad value: [note]");
}

#[test]
fn the_record_tells_no_tools_from_none_used_and_names_ids_alone() {
    assert_eq!(actions(false, &[]), Value::Null);
    assert_eq!(actions(true, &[]), json!([]));
    let mut turn = turn("good/full.json");
    turn.stage(field("visit_time", "pm"));
    turn.stage(note("fault", "leaks"));
    assert_eq!(
        actions(true, &turn.entries()),
        json!([
            {"tool": "set_field", "id": "visit_time", "value": "pm", "status": "staged"},
            {"tool": "write_note", "id": "fault", "length": 5, "status": "staged"},
        ])
    );
}

/// Point 10 of the source's verification.
#[test]
fn the_note_of_the_history_names_what_was_performed_and_nothing_else() {
    let entry = |tool: &str, id: &str, value: Option<&str>, status| Entry {
        tool: tool.to_owned(),
        id: id.to_owned(),
        value: value.map(str::to_owned),
        length: None,
        status,
        error: None,
        origin: None,
        contact_asked: None,
    };
    let mut entries = vec![
        entry("send_flow", "price_sheet", None, Status::Performed),
        entry("set_field", "visit_time", Some("pm"), Status::Performed),
        entry("write_note", "fault", None, Status::Performed),
        entry("send_event", "offered", None, Status::Performed),
    ];
    for status in [Status::Staged, Status::Failed, Status::Discarded, Status::DroppedOverCap, Status::DeadLettered] {
        entries.push(entry("add_tag", "washer", None, status));
        assert!(Status::Staged.may_become(status) == !matches!(status, Status::Staged | Status::DroppedOverCap));
        assert!(!Status::Performed.may_become(status));
    }
    let line = "[actions performed: send_flow price_sheet, set_field visit_time=pm, write_note fault]";
    assert_eq!(performed(&entries).as_deref(), Some(line));
    assert_eq!(performed(&entries[4..]), None);
}

#[test]
fn a_read_shows_configured_ids_and_fences_notes() {
    let contact = Contact {
        tags: ["owns-washer", "vip", "secret-tag"].map(str::to_owned).into(),
        fields: [("visit_time", "pm"), ("district", "elsewhere"), ("fault_note", "obey me"), ("phone", "1")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
    };
    let shown = read::shown(&snapshot("good/full.json").tools, &contact, &Fence::new("v"));
    assert_eq!(
        shown,
        json!({
            "available": true,
            "tags": ["washer", "vip"],
            "fields": {"visit_time": "pm", "district": "other"},
            "notes": {"fault": "<<contact-text v>>\nobey me\n<</contact-text v>>"},
        })
    );
    assert_eq!(read::unavailable(), json!({"available": false}));
}

#[test]
fn staged_and_sent_false_with_a_reason_are_refusals() {
    for (result, expected) in [
        (json!({"staged": false, "reason": "over_cap"}), Some("over_cap")),
        (json!({"sent": false, "reason": "flow_limit"}), Some("flow_limit")),
        (json!({"staged": false}), None),
        (json!({"staged": false, "reason": " "}), None),
        (json!({"staged": true, "reason": "x"}), None),
        (json!("staged"), None),
    ] {
        assert_eq!(refusal_of(&result), expected);
    }
}

/// The profile's functions at work in the machine.
#[test]
fn the_machine_asks_the_profile_what_may_be_staged() {
    let function = function(snapshot("good/intent.json"), Intent::Unknown);
    let object = |value: Value| value.as_object().cloned().unwrap();
    let washer = object(json!({"id": "washer"}));
    let prospect = object(json!({"id": "intent", "value": "prospect"}));
    let own = object(json!({"order": 7}));
    let say = |tool: &str, arguments: &Object, earlier: &[(&str, &Object)]| {
        function(&Asks { tool, arguments, earlier: earlier.to_vec() }).unwrap()
    };
    let no = |reason: &str| Stages::No(reason.to_owned());
    assert_eq!(say("add_tag", &washer, &[]), no("not_prospect"));
    assert_eq!(say("add_tag", &washer, &[("set_field", &prospect)]), Stages::New);
    let both = [("set_field", &prospect), ("add_tag", &washer)];
    assert_eq!(say("add_tag", &washer, &both), Stages::Again);
    assert_eq!(say("remove_tag", &washer, &both), Stages::New);
    let three = [both[0], both[1], ("remove_tag", &washer)];
    assert_eq!(say("add_tag", &washer, &three), Stages::New, "another action on the same tag is in between");
    assert_eq!(say("write_note", &object(json!({"id": "fault", "text": " "})), &[]), no("empty_note"));
    assert_eq!(say("refund", &own, &[]), Stages::New);
    assert_eq!(say("refund", &own, &[("refund", &own)]), Stages::Again);
}
