//! Which paragraph each number comes from, and which test shows it.

use gesta_channel::numbers as n;
use gesta_channel::profile::QUICK_REPLIES_MAX;

/// Paragraph of `spec/channel.md`, its number as it stands there, ours, and the test that shows it at work: blank where
/// the number is kept above this crate, by whoever waits, counts or asks.
const NUMBERS: [(&str, u64, u64, &str); 37] = [
    ("2: body, bytes", 65_536, n::BODY_BYTES_MAX as u64, "what_does_not_fit_is_named_and_not_quoted"),
    ("2: text, characters", 4096, n::TEXT_CHARS_MAX as u64, "what_does_not_fit_is_named_and_not_quoted"),
    ("2: token, offering, message id", 256, n::KEY_CHARS_MAX as u64, "what_does_not_fit_is_named_and_not_quoted"),
    ("3: each secret, characters", 16, n::SECRET_CHARS_MIN as u64, ""),
    ("3: requests a minute", 300, n::REQUESTS_PER_MINUTE_MAX as u64, ""),
    (
        "4: callback, seconds",
        86_400,
        n::CALLBACK_SECONDS,
        "every_response_fits_its_messenger_and_carries_the_callers_own_secret",
    ),
    ("4: quick replies", 11, QUICK_REPLIES_MAX as u64, "a_response_that_does_not_fit_is_told_by_its_place"),
    ("4: ManyChat waits, ms", 10_000, n::MANYCHAT_WAITS_MS, "the_bounds_of_the_race_fit_into_each_other"),
    ("5: race, ms", 8_000, n::RACE_DEADLINE_MS, "the_race_runs_from_arrival_and_knows_what_to_say_at_each_moment"),
    ("5: reserve, ms", 2_000, n::RESERVE_MS, "the_bounds_of_the_race_fit_into_each_other"),
    (
        "5: abort, ms",
        30_000,
        n::MODEL_ABORT_MS,
        "the_abort_leaves_out_what_was_spent_parked_and_a_turn_expires_38_seconds_after_its_claim",
    ),
    (
        "5: a flow's play time, s",
        30,
        n::SETTLE_SECONDS_MAX,
        "every_fault_of_a_bad_file_is_told_at_once_with_its_place_and_the_way_out",
    ),
    ("5: a read, ms", 1_500, n::READ_MS, ""),
    ("5: a call, ms", 10_000, n::CALL_MS, ""),
    (
        "6: a turn expires, ms",
        38_000,
        n::TURN_WAIT_MS,
        "the_abort_leaves_out_what_was_spent_parked_and_a_turn_expires_38_seconds_after_its_claim",
    ),
    ("7: trips", 4, n::TRIPS_MAX as u64, ""),
    (
        "7: actions",
        8,
        n::ACTIONS_MAX as u64,
        "the_ninth_action_is_refused_and_recorded_and_equal_ones_are_looked_for_before",
    ),
    ("7: reads", 2, n::READS_MAX as u64, "who_is_no_prospect_yet_gets_no_write_but_intent_and_notes"),
    ("7: turns of history", 10, n::HISTORY_TURNS_MAX as u64, ""),
    ("7: messages of a reply", 3, n::REPLY_MESSAGES_MAX as u64, "count_and_length_are_clamped_and_recorded"),
    ("7: characters of a message", 1000, n::REPLY_CHARS_MAX as u64, "count_and_length_are_clamped_and_recorded"),
    (
        "8: a note, characters",
        500,
        n::NOTE_CHARS_MAX,
        "every_fault_of_a_bad_file_is_told_at_once_with_its_place_and_the_way_out",
    ),
    (
        "8: a nudge, minutes",
        1380,
        n::NUDGE_MINUTES_MAX,
        "every_fault_of_a_bad_file_is_told_at_once_with_its_place_and_the_way_out",
    ),
    ("10: waiting for actions, ms", 30_000, n::ACTION_WAIT_MS, ""),
    ("17: nudges are looked for, ms", 15_000, n::NUDGE_POLL_MS, ""),
    ("18: the outbox is looked at, ms", 1_000, n::OUTBOX_POLL_MS, ""),
    ("18: rows of a claim", 10, n::OUTBOX_CLAIM_MAX as u64, ""),
    ("18: attempts", 5, n::OUTBOX_ATTEMPTS_MAX as u64, "a_row_waits_longer_each_time_and_dies_at_the_fifth_attempt"),
    (
        "18: longest wait, s",
        300,
        n::OUTBOX_WAIT_SECONDS_MAX,
        "a_row_waits_longer_each_time_and_dies_at_the_fifth_attempt",
    ),
    ("18: gap, ms", 2_000, n::REPLY_GAP_MS, "parts_go_on_where_they_stopped_and_are_paced"),
    ("18: longest gap, ms", 10_000, n::REPLY_GAP_MS_MAX, "parts_go_on_where_they_stopped_and_are_paced"),
    ("19: requests a second", 10, n::REQUESTS_PER_SECOND as u64, "the_limiter_gives_five_at_once_and_ten_a_second"),
    ("19: burst", 5, n::REQUESTS_BURST as u64, "the_limiter_gives_five_at_once_and_ten_a_second"),
    (
        "19: flows of a contact's hour",
        100,
        n::FLOWS_PER_HOUR_MAX as u64,
        "twenty_of_a_contacts_hundred_flows_are_kept_for_replies",
    ),
    (
        "19: of these for replies",
        20,
        n::FLOWS_KEPT_FOR_REPLIES as u64,
        "twenty_of_a_contacts_hundred_flows_are_kept_for_replies",
    ),
    ("19: the hour, ms", 3_600_000, n::HOUR_MS, "twenty_of_a_contacts_hundred_flows_are_kept_for_replies"),
    ("21: scheduling lag, ms", 1_000, n::LAG_MS_MAX, ""),
];

/// Further paragraphs of the specification, without a number of their own.
const RULES: [(&str, &str); 24] = [
    ("2: one form of a body", "a_body_is_read_strictly_and_brought_into_one_form"),
    ("2: media", "a_link_to_media_is_recognised_and_nothing_else_is"),
    ("4: messengers, L15", "what_is_beyond_the_limit_is_joined_and_nothing_is_lost"),
    ("5: outcomes, L57 to L59", "every_ending_has_its_outcome_reason_and_notes"),
    ("6: guards in order", "the_guards_stand_in_their_order"),
    ("6: keywords, L53", "keywords_match_folded_on_word_boundaries"),
    ("7: schema", "a_reply_that_breaks_the_schema_is_a_handoff"),
    ("7: echo, L17", "lines_that_echo_a_field_or_the_note_are_taken_out"),
    ("7: leak, L18 and L44", "a_marker_or_a_heading_in_any_text_is_a_leak"),
    ("7: confidence", "escalation_and_confidence_make_the_tenants_text_the_whole_reply"),
    ("7: repetition, L27", "a_word_for_word_repetition_is_replaced_by_the_closer"),
    ("7: one question, L16", "a_good_reply_goes_out_with_exactly_one_question_at_its_end"),
    ("7: fence, L43", "marker_like_text_is_gone_however_it_was_nested"),
    ("7: refusals of the profile", "staged_and_sent_false_with_a_reason_are_refusals"),
    ("8: both spellings", "both_spellings_load_and_say_the_same"),
    ("8: no file, no tools", "without_the_file_there_are_no_tools_and_the_version_is_that_of_all_four"),
    ("9: enums from the files", "a_tool_names_nothing_outside_the_files_and_an_empty_list_offers_none"),
    ("10: equal actions", "equal_actions_collapse_only_with_nothing_on_the_same_thing_between"),
    ("10: discard", "every_handoff_discards_and_only_the_models_own_keep_notes_for_staff"),
    ("11: null and []", "the_record_tells_no_tools_from_none_used_and_names_ids_alone"),
    ("11: the note", "the_note_of_the_history_names_what_was_performed_and_nothing_else"),
    ("16: reads", "a_read_shows_configured_ids_and_fences_notes"),
    ("18: one delivery, L2", "a_delivery_is_the_field_and_then_the_flow"),
    ("18: dead at once, L62", "what_is_dead_at_once_and_what_is_tried_again"),
];

#[test]
fn every_number_is_the_specifications_and_every_test_named_here_is_there() {
    let mut code = String::new();
    for folder in ["src", "src/manychat", "src/tenant", "tests/channel"] {
        let path = format!("{}/{folder}", env!("CARGO_MANIFEST_DIR"));
        for file in std::fs::read_dir(path).unwrap().map(|it| it.unwrap().path()) {
            code += &std::fs::read_to_string(file).unwrap_or_default();
        }
    }
    for (paragraph, theirs, ours, _) in NUMBERS {
        assert_eq!(theirs, ours, "{paragraph}");
    }
    let named = NUMBERS.iter().map(|it| (it.0, it.3)).chain(RULES).filter(|(_, test)| !test.is_empty());
    for (paragraph, test) in named {
        assert!(code.contains(&format!("fn {test}(")), "{paragraph}: `{test}` is not there");
    }
}

#[test]
fn the_bounds_of_the_race_fit_into_each_other() {
    assert_eq!(n::RACE_DEADLINE_MS + n::RESERVE_MS, n::MANYCHAT_WAITS_MS);
    assert_eq!(n::MODEL_ABORT_MS + n::RACE_DEADLINE_MS, n::TURN_WAIT_MS);
}
