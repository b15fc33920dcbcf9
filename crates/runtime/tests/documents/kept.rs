//! The document is kept with the turn: adopted when it completed, taken back on any other end.

use gesta_document::{Image, SWITCHED_OFF};
use gesta_run::{CallStatus, Decision, HoldAnswer, HoldReply, Outcome, Status};
use gesta_runtime::{AgentError, CallAsked, Resume};
use gesta_store::Secrets;
use libtest_mimic::Trial;
use serde_json::json;

use crate::desk::{self, Till, adds, builder, call, in_conversation};
use crate::trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("what_a_turn_added_and_noted_is_there_in_the_next_in_another_process", next_turn),
        trial("a_turn_that_does_not_complete_leaves_the_document_as_it_was", taken_back),
        trial("a_parked_turn_keeps_its_working_copy_and_leaves_it_when_it_completes", parked),
        trial("a_run_that_its_caller_keeps_takes_its_working_copy_along", saved),
        trial("conversations_have_documents_of_their_own", apart),
        trial("a_changed_base_sets_aside_what_it_took_the_name_of", changed_base),
        trial("a_damaged_document_is_an_error_that_says_what_to_do", damaged),
        trial("a_working_copy_that_cannot_be_read_keeps_no_conversation_busy", unreadable_copy),
        trial("a_document_that_does_not_open_leaves_no_trace_and_a_run_that_waits_as_it_was", unopened),
        trial("a_tool_that_a_person_switched_off_is_not_written_anew", switched_off),
        trial("a_store_needs_a_key_to_sign_with", unsigned),
    ]
}

fn agent(dir: &std::path::Path, script: &str) -> gesta_runtime::AgentBuilder {
    builder(script, &Till::default()).store(desk::store(dir)).secrets(desk::secrets())
}

async fn next_turn() {
    let dir = tempfile::tempdir().unwrap();
    let script =
        format!("{}model: calls c2 remember {{\"text\":\"likes tea\"}}\nmodel: Noted.\n", adds("c1", desk::TOTAL));
    let first = agent(dir.path(), &script).build().unwrap().run(in_conversation("Note it", "k")).await.unwrap();
    assert_eq!(first.outcome, Some(Outcome::Completed), "{:?}", first.error);

    let script = "model: calls c1 total_spent {}\nmodel: calls c2 remember {\"text\":\"and cake\"}\nmodel: 290.\n";
    let second =
        agent(dir.path(), script).build().unwrap().run(in_conversation("What did I spend?", "k")).await.unwrap();
    assert_eq!(call(&second, "c1").result.as_f64(), Some(290.0), "{:?}", second.tool_calls);
    assert_eq!(call(&second, "c2").result, json!(2), "the first note is there");
    let stored = desk::store(dir.path()).document(&"k".into()).await.unwrap().unwrap();
    assert_eq!(stored.version, 2);
}

async fn taken_back() {
    let dir = tempfile::tempdir().unwrap();
    // The last answer still makes a call: the run ends for want of trips, and a new message settles it.
    let script = adds("c1", desk::TOTAL);
    let limits = gesta_run::Limits { trips_max: 1, ..gesta_run::Limits::default() };
    let first = agent(dir.path(), &script).limits(limits).build().unwrap();
    let first = first.run(in_conversation("Add it", "k")).await.unwrap();
    assert_eq!(first.outcome, Some(Outcome::MaxTrips));
    let store = desk::store(dir.path());
    assert!(store.document(&"k".into()).await.unwrap().is_none());
    assert!(store.working(&first.report.run_id).await.unwrap().is_some(), "a run that can go on keeps its copy");

    let script = "model: calls c1 total_spent {}\nmodel: There is no such tool.\n";
    let second = agent(dir.path(), script).build().unwrap().run(in_conversation("Use it", "k")).await.unwrap();
    assert_eq!(call(&second, "c1").status, CallStatus::UnknownTool);
    assert!(store.working(&first.report.run_id).await.unwrap().is_none());
}

async fn parked() {
    let dir = tempfile::tempdir().unwrap();
    let script = format!(
        "{}model: calls c2 refund {{\"order\":\"o_1\",\"amount\":40}}\nmodel: calls c3 total_spent {{}}\nmodel: Done.\n",
        adds("c1", desk::TOTAL)
    );
    let decide =
        |call: CallAsked| async move { if call.name == "refund" { Decision::defer() } else { Decision::run() } };
    let first = agent(dir.path(), &script).on_tool_call(decide).build().unwrap();
    let first = first.run(in_conversation("Refund it", "k")).await.unwrap();
    assert_eq!(first.status, Status::Parked, "{:?}", first.error);
    let store = desk::store(dir.path());
    assert!(store.document(&"k".into()).await.unwrap().is_none());

    let till = Till::default();
    let second = builder(&script, &till).store(store.clone()).secrets(desk::secrets()).on_tool_call(decide);
    let binding = first.deferred[0].binding.clone();
    let answers = vec![HoldAnswer { binding, answer: HoldReply::Approve { arguments: None } }];
    let second = second.build().unwrap();
    let resumed = second.resume(&first.report.run_id, Resume { answers, ..Resume::default() }).await.unwrap().result;
    assert_eq!(resumed.outcome, Some(Outcome::Completed), "{:?}", resumed.error);
    assert_eq!(call(&resumed, "c3").result.as_f64(), Some(290.0));
    assert_eq!(till.times(), 1);
    assert_eq!(store.document(&"k".into()).await.unwrap().unwrap().version, 1);
}

async fn saved() {
    let script = format!(
        "{}model: calls c2 refund {{\"order\":\"o_1\",\"amount\":40}}\nmodel: calls c3 total_spent {{}}\nmodel: Done.\n",
        adds("c1", desk::TOTAL)
    );
    let decide =
        |call: CallAsked| async move { if call.name == "refund" { Decision::defer() } else { Decision::run() } };
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = agent(here.path(), &script).on_tool_call(decide).build().unwrap();
    let parked = first.run(in_conversation("Refund it", "k")).await.unwrap();
    let saved = first.save(&parked.report.run_id).await.unwrap();

    let second = agent(there.path(), &script).on_tool_call(decide).build().unwrap();
    let run = second.take_saved(&saved).await.unwrap();
    let binding = parked.deferred[0].binding.clone();
    let answers = vec![HoldAnswer { binding, answer: HoldReply::Approve { arguments: None } }];
    let resumed = second.resume(&run, Resume { answers, ..Resume::default() }).await.unwrap().result;
    assert_eq!(resumed.outcome, Some(Outcome::Completed), "{:?}", resumed.error);
    assert_eq!(call(&resumed, "c3").result.as_f64(), Some(290.0), "the tool it wrote came along");
}

async fn apart() {
    let dir = tempfile::tempdir().unwrap();
    let script = "model: calls c1 remember {\"text\":\"x\"}\nmodel: Noted.\n";
    let agent = agent(dir.path(), script).build().unwrap();
    for conversation in ["a", "b"] {
        let result = agent.run(in_conversation("Note", conversation)).await.unwrap();
        assert_eq!(call(&result, "c1").result, json!(1));
    }
}

async fn changed_base() {
    let dir = tempfile::tempdir().unwrap();
    let script = format!("{}model: Added.\n", adds("c1", desk::TOTAL));
    agent(dir.path(), &script).build().unwrap().run(in_conversation("Add it", "k")).await.unwrap();

    let base = desk::DESK.replace(
        "    #[tool('Says no')]",
        "    #[tool('The operator counts')]\n    fn total_spent() -> int { 7 }\n\n    #[tool('Says no')]",
    );
    let script = "model: calls c1 total_spent {}\nmodel: Seven.\n";
    let second = agent(dir.path(), script).document(&base).build().unwrap();
    let second = second.run(in_conversation("And now?", "k")).await.unwrap();
    assert_eq!(call(&second, "c1").result, json!(7), "{:?}", second.tool_calls);
}

async fn damaged() {
    let dir = tempfile::tempdir().unwrap();
    let store = desk::store(dir.path());
    store.put_document(&"k".into(), 0, b"gesta document 1\nnot a document".to_vec()).await.unwrap();
    let agent = agent(dir.path(), "model: Hello.\n").build().unwrap();
    let why = agent.run(in_conversation("Hello", "k")).await.unwrap_err();
    assert!(matches!(why, AgentError::Document(_)), "{why}");
    assert!(why.to_string().contains("damaged"), "{why}");
    // Nothing was begun, so that the document can be put right; another conversation is not concerned.
    assert!(store.runs(&Default::default()).await.unwrap().is_empty());
    assert!(agent.run(in_conversation("Hello", "other")).await.is_ok());
    let whole = store.document(&"other".into()).await.unwrap();
    assert!(whole.is_none(), "a turn that changed nothing keeps nothing");
    let good = self::agent(dir.path(), &format!("{}model: Added.\n", adds("c1", desk::TOTAL))).build().unwrap();
    good.run(in_conversation("Add it", "good")).await.unwrap();
    let image = store.document(&"good".into()).await.unwrap().unwrap().image;
    store.put_document(&"k".into(), 1, image).await.unwrap();
    assert_eq!(agent.run(in_conversation("Hello", "k")).await.unwrap().outcome, Some(Outcome::Completed));
}

async fn unreadable_copy() {
    let dir = tempfile::tempdir().unwrap();
    let script = format!(
        "{}model: calls c2 refund {{\"order\":\"o_1\",\"amount\":40}}\nmodel: Done.\n",
        adds("c1", desk::TOTAL)
    );
    let decide =
        |call: CallAsked| async move { if call.name == "refund" { Decision::defer() } else { Decision::run() } };
    let first = agent(dir.path(), &script).on_tool_call(decide).build().unwrap();
    let parked = first.run(in_conversation("Refund it", "k")).await.unwrap();
    let id = parked.report.run_id;

    // Another key: the run cannot go on, at once and as often as it is tried, and a new message closes it all the same.
    let other = Secrets::from_list("another key that is long enough for a test of it").unwrap();
    let till = Till::default();
    let second = builder("model: Hello.\n", &till).store(desk::store(dir.path())).secrets(other).on_tool_call(decide);
    let second = second.build().unwrap();
    for _ in 0..2 {
        let why = second.resume(&id, Resume::default()).await.unwrap_err();
        assert!(matches!(&why, AgentError::WorkingCopy { run, .. } if *run == id), "{why}");
    }
    let next = second.run(in_conversation("Hello", "k")).await.unwrap();
    assert_eq!(next.outcome, Some(Outcome::Completed), "{:?}", next.error);
    let store = desk::store(dir.path());
    assert!(store.working(&id).await.unwrap().is_none());
}

async fn unopened() {
    let dir = tempfile::tempdir().unwrap();
    let broken = "tools: {\n    #[tool('x')]\n    fn a( {\n}\n";
    let named = || gesta_runtime::DocumentSettings { name: "desk.stof".to_owned(), ..desk::settings(2_000) };
    let second = agent(dir.path(), "model: Hello.\n").document(broken).document_settings(named()).build().unwrap();
    let why = second.run(in_conversation("Hello", "k")).await.unwrap_err();
    let AgentError::Unopened { document, why } = &why else { panic!("{why}") };
    assert!(document == "desk.stof" && why.to_string().contains("line 3"), "{document}: {why}");
    let store = desk::store(dir.path());
    assert!(store.conversation(&"k".into()).await.unwrap().and_then(|head| head.run).is_none());

    let script = "model: calls c1 refund {\"order\":\"o_1\",\"amount\":40}\nmodel: Done.\n";
    let decide =
        |call: CallAsked| async move { if call.name == "refund" { Decision::defer() } else { Decision::run() } };
    let first = agent(dir.path(), script).on_tool_call(decide).build().unwrap();
    let parked = first.run(in_conversation("Refund it", "k")).await.unwrap();
    let id = parked.report.run_id;
    for _ in 0..2 {
        let why = second.resume(&id, Resume::default()).await.unwrap_err();
        assert!(!matches!(why, AgentError::Store(_)), "{why}");
    }
    assert_eq!(store.head(&id).await.unwrap().status, Status::Parked);
}

async fn unsigned() {
    let dir = tempfile::tempdir().unwrap();
    let built = builder("model: Hello.\n", &Till::default()).store(desk::store(dir.path())).build();
    assert!(built.unwrap_err().to_string().contains("signed"));
}

async fn switched_off() {
    let dir = tempfile::tempdir().unwrap();
    let script = format!("{}model: Added.\n", adds("c1", desk::TOTAL));
    let agent = agent(dir.path(), &script).build().unwrap();
    agent.run(in_conversation("Add it", "k")).await.unwrap();

    let (store, secrets) = (desk::store(dir.path()), desk::secrets());
    let keys: Vec<&[u8]> = secrets.keys().collect();
    let stored = store.document(&"k".into()).await.unwrap().unwrap();
    let mut image = Image::decode(&stored.image, &keys).unwrap();
    image.added[0].set_aside = Some(SWITCHED_OFF.to_owned());
    store.put_document(&"k".into(), stored.version, image.encode(&keys).unwrap()).await.unwrap();

    let again = agent.run(in_conversation("Add it again", "k")).await.unwrap();
    let told = call(&again, "c1").result.to_string();
    assert!(told.contains("is taken"), "{told}");
    let stored = store.document(&"k".into()).await.unwrap().unwrap();
    assert_eq!(Image::decode(&stored.image, &keys).unwrap().added.len(), 1);
}
