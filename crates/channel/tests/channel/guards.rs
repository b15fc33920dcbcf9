//! The guards ahead of the model.

use gesta_channel::outcome::Handoff;
use gesta_channel::precheck::{Facts, Verdict, check};

use crate::snapshot;

#[test]
fn the_guards_stand_in_their_order() {
    let snapshot = snapshot("good/full.json");
    let rules = &snapshot.rules;
    let facts = Facts { text: "my washer leaks", turns: 1, ..Facts::default() };
    let media = Facts { is_media: true, text: "https://a.example/human.jpg", ..facts };
    let refused = Verdict::Refused;
    let welcome = Verdict::Scripted("Welcome. What is broken?");
    for (facts, expected) in [
        (facts, Verdict::Ask),
        (Facts { is_escalated: true, ..facts }, Verdict::WithPerson),
        (Facts { human_active: true, text: "start", ..facts }, Verdict::WithPerson),
        (media, Verdict::Media(Some("I can only read text."))),
        (Facts { turns: 26, ..media }, refused(Handoff::TurnCap)),
        (Facts { turns_of_hour: 60, ..media }, refused(Handoff::Rate)),
        (Facts { tokens_of_day: 1_000_000, ..media }, refused(Handoff::Budget)),
        (Facts { text: " Start ", ..facts }, welcome.clone()),
        (Facts { text: "start", turns: 99, turns_of_hour: 99, tokens_of_day: u64::MAX, ..facts }, welcome),
        (Facts { text: "start now", ..facts }, Verdict::Ask),
        (Facts { text: "A HUMAN, please", turns: 99, ..facts }, refused(Handoff::Keyword)),
        (Facts { text: "humane", ..facts }, Verdict::Ask),
        (Facts { text: "ОПЕРАТОР!", ..facts }, refused(Handoff::Keyword)),
        (Facts { turns: 25, ..facts }, Verdict::Ask),
        (Facts { turns: 26, turns_of_hour: 60, ..facts }, refused(Handoff::TurnCap)),
        (Facts { turns_of_hour: 59, ..facts }, Verdict::Ask),
        (Facts { turns_of_hour: 60, ..facts }, refused(Handoff::Rate)),
        (Facts { tokens_of_day: 999_999, cost_usd_of_day: 4.99, ..facts }, Verdict::Ask),
        (Facts { cost_usd_of_day: 5.0, ..facts }, refused(Handoff::Budget)),
    ] {
        assert_eq!(check(rules, &facts), expected, "{facts:?}");
    }
    let answering =
        gesta_channel::tenant::Rules { silent_while_escalated: false, media_fallback: None, ..rules.clone() };
    assert_eq!(check(&answering, &Facts { is_escalated: true, ..facts }), Verdict::Ask);
    assert_eq!(check(&answering, &media), Verdict::Media(None));
}
