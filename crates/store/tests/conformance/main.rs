//! What every backend must do, as one list of cases, each played on every backend there is.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that can't go on is to stop where it stands")]

mod bench;
mod cases_conversation;
mod cases_document;
mod cases_hold;
mod cases_lease;
mod cases_log;

/// Plays every case on one backend. A backend that comes later adds one line at the end.
macro_rules! suite {
    ($backend:ident: $open:path; $($group:ident { $($case:ident)* })*) => {
        mod $backend {
            $($(
                #[tokio::test]
                async fn $case() {
                    // A backend that is not to be had here says so.
                    if let Some(bench) = $open().await {
                        crate::$group::$case(bench).await;
                    }
                }
            )*)*
        }
    };
}

macro_rules! suites {
    ($($backend:ident: $open:path;)*) => {
        $(suite! { $backend: $open;
            cases_log {
                what_was_appended_is_loaded_in_order
                an_append_at_another_position_is_refused_and_changes_nothing
                of_many_appends_at_one_position_one_is_kept
                an_append_without_events_changes_the_head_alone
                an_id_is_used_for_one_run
                an_unknown_run_is_said_by_name
                runs_are_listed_newest_first_filtered_and_in_pages
                a_large_event_comes_back_whole
                what_a_call_was_read_into_is_no_part_of_the_log
                tenants_never_meet
                a_snapshot_is_kept_under_its_hash
                captured_exchanges_come_back_in_order
            }
            cases_lease {
                a_run_is_not_claimed_while_someone_works_on_it
                a_lease_that_lapsed_is_taken_and_its_owner_is_fenced
                a_run_that_was_given_back_is_claimed_at_once
                an_append_that_releases_gives_the_run_back
                appending_and_renewing_keep_a_lease
                of_many_claims_one_succeeds
            }
            cases_conversation {
                a_conversation_has_one_run_at_a_time
                of_many_runs_opened_at_once_one_has_the_conversation
                a_busy_conversation_says_how_it_is_held
                a_turn_enters_the_history_with_the_append_that_ends_it
                the_history_is_the_last_turns_in_order
                a_run_adds_its_turn_once
                a_run_that_failed_keeps_its_conversation_until_it_is_settled
                a_run_that_goes_on_after_its_end_needs_its_conversation_back
                a_run_without_a_conversation_has_no_history
                conversations_are_listed_by_their_last_change
                erasing_a_conversation_leaves_nothing_of_it_and_all_of_the_others
                a_run_whose_conversation_was_erased_is_fenced
                what_is_old_is_erased_and_nothing_that_goes_on_or_waits
            }
            cases_document {
                a_working_copy_is_its_runs_alone_until_the_turn_adopts_it
                the_last_working_copy_counts
                a_working_copy_that_is_dropped_leaves_the_document_as_it_was
                a_document_that_changed_during_the_turn_refuses_the_whole_append
                where_there_is_nothing_to_adopt_nothing_is_refused
                an_append_that_is_refused_changes_no_document
                whoever_takes_a_run_up_finds_its_working_copy
                a_document_is_put_from_outside_while_no_run_has_the_conversation
                of_many_puts_of_one_version_one_is_kept
                an_image_is_kept_byte_for_byte_and_up_to_its_limit
                documents_are_listed_by_their_last_change
                documents_of_tenants_never_meet
                erasing_a_conversation_takes_its_document_and_the_working_copies_along
            }
            cases_hold {
                holds_are_listed_oldest_first_filtered_and_in_pages
                the_first_committed_answer_wins_and_a_refused_one_stores_nothing
                of_many_answers_at_once_one_is_kept
                a_hold_that_was_opened_and_closed_in_one_append_never_waits
                a_call_that_was_lost_after_its_approval_waits_again
                a_hold_that_was_never_opened_is_not_closed
                a_hold_closed_without_an_answer_says_so
            }
        })*
    };
}

suites! {
    memory: crate::bench::memory;
    sqlite: crate::bench::sqlite;
    postgres: crate::bench::postgres;
    postgres_that_waits_for_locks: crate::bench::postgres_that_waits;
}
