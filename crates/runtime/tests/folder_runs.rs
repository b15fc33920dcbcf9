//! The agents that come with the project, driven from end to end with their scripted models.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gesta_model::Lookup;
use gesta_run::{CallStatus, HoldAnswer, HoldReply, Outcome, RunResult, Status};
use gesta_runtime::folder::Folder;
use gesta_runtime::{Agent, FolderAgent, Resume};
use gesta_store::{Memory, SecretError, Secrets, Store};
use serde_json::json;

fn env() -> Lookup {
    Arc::new(|_| None)
}

/// No folder here has a document.
fn no_secrets() -> Result<Secrets, SecretError> {
    Secrets::from_list("")
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

fn open(dir: &Path, store: Option<Arc<dyn Store>>) -> Agent {
    let folder = Folder::load(dir, &|_| None).unwrap();
    FolderAgent::open(&folder, &env(), store, &no_secrets).unwrap().agent().clone()
}

/// The calls of a run: tool, status.
fn calls(result: &RunResult) -> Vec<(&str, CallStatus)> {
    result.tool_calls.iter().map(|call| (call.name.as_str(), call.status)).collect()
}

/// What the contract sent, by kind.
fn sent(result: &RunResult) -> Vec<String> {
    let sent = result.contract.interventions.iter().map(|it| serde_json::to_value(it).unwrap());
    sent.filter(|it| it["outcome"] == "sent").map(|it| it["kind"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn the_coach_does_what_it_says() {
    use CallStatus::{Completed, Refused};
    let agent = open(&example("coach"), None);
    type Talk<'a> = (&'a str, &'a str, Vec<(&'a str, CallStatus)>, Vec<&'a str>);
    let talks: [Talk<'_>; 6] = [
        (
            "Swap squats for lunges",
            "I have swapped squats for lunges.",
            vec![("update_plan", Completed)],
            vec!["act_when_asked"],
        ),
        (
            "Replace the bench press with dips, please",
            "The library has no dips, so I have put push-ups in place of the bench press.",
            vec![("update_plan", Refused), ("update_plan", Completed)],
            vec!["tool_refusal"],
        ),
        (
            "Change the plank into crunches",
            "There are no crunches in the library; the side plank has taken the plank's place.",
            vec![("update_plan", Refused), ("update_plan", Completed)],
            vec!["act_when_asked", "tool_refusal"],
        ),
        (
            "My knee hurts",
            "I am sorry to hear that. Leave the exercise out until a doctor has looked at it. Then we adapt your plan.",
            vec![],
            vec!["backstop"],
        ),
        (
            "Show me my plan",
            "On Mondays and Thursdays you do squats, the bench press and the plank.",
            vec![("show_plan", Completed)],
            vec![],
        ),
        ("Hello", "I look after your training plan. Try: Swap squats for lunges.", vec![], vec![]),
    ];
    for (said, text, called, prompted) in talks {
        let result = agent.run(said).await.unwrap();
        assert_eq!(result.outcome, Some(Outcome::Completed), "{said}");
        assert_eq!(result.text, text, "{said}");
        assert_eq!(calls(&result), called, "{said}");
        assert_eq!(sent(&result), prompted, "{said}");
    }
}

#[tokio::test]
async fn a_large_refund_waits_for_a_person_and_runs_once_with_what_was_approved() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let parked = open(&example("desk"), Some(store.clone())).run("Refund order 7, 250 dollars").await.unwrap();
    assert_eq!(parked.status, Status::Parked);
    assert_eq!(parked.deferred[0].reason.as_deref(), Some("refunds of more than 100 dollars are approved by a person"));
    let arguments = json!({"order": "7", "amount": 200}).as_object().cloned();
    let approve = || HoldAnswer {
        binding: parked.deferred[0].binding.clone(),
        answer: HoldReply::Approve { arguments: arguments.clone() },
    };
    let resume = || Resume { answers: vec![approve()], ..Resume::default() };
    // Another process: neither the folder nor the agent of before is at hand.
    let run = &parked.report.run_id;
    let resumed = FolderAgent::resume(store.clone(), run, &env(), &no_secrets, resume()).await.unwrap();
    assert_eq!(resumed.result.outcome, Some(Outcome::Completed));
    let refund = &resumed.result.tool_calls[1];
    assert_eq!(refund.arguments, json!({"order": "7", "amount": 200}));
    assert_eq!(refund.result, json!({"ok": true, "order": "7", "dollars": 200}));
    let again = FolderAgent::resume(store, run, &env(), &no_secrets, resume()).await.unwrap();
    assert_eq!(again.already_answered, std::slice::from_ref(&refund.id));
}

#[tokio::test]
async fn the_desk_pays_small_refunds_and_keeps_to_its_rules() {
    let agent = open(&example("desk"), None);
    let small = agent.run("Please refund 40 dollars of order 8. It is order 8").await.unwrap();
    assert_eq!(small.text, "I have paid back 40 dollars for order 8.");
    assert_eq!(calls(&small), [("find_order", CallStatus::Completed), ("refund_order", CallStatus::Completed)]);
    let old = agent.run("Refund order 1").await.unwrap();
    assert_eq!(calls(&old), [("refund_order", CallStatus::Denied)]);
    assert!(sent(&old).is_empty());
}
