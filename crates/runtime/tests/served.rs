//! Agents whose model is served over HTTP by a strict fake: a turn that is run and one that is streamed leave the same
//! log, in both protocols, plain and streamed, whatever goes wrong on the way.

#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};

use futures_util::StreamExt;
use gesta_fakes::model::{ModelServer, Options, serve};
use gesta_model::{HttpModel, Protocol, Provider, ProviderSpec, Retries, Timeouts, Transport, TransportSpec};
use gesta_run::reply::FaultKind;
use gesta_run::{ActWhenAsked, Event, EventKind, Outcome, RunResult, Timestamp, Usage};
use gesta_runtime::{Agent, Ask, Clock, Progress, Scope, Tool};
use gesta_scene::Script;
use serde_json::json;

const SCRIPT: &str = r#"model: Shall I move it to Friday, as you like it best?
model: One moment.
and: calls c1 move_visit {"day":"fri","note":"it's \"ok\" 😀"}
and: calls c2 move_visit {"day":"sat"}
model: Your visits are on Friday and Saturday now.
"#;

/// Long for a loaded machine; no case waits for any of them.
const TIMEOUTS: Timeouts = Timeouts { connect_ms: 20_000, first_byte_ms: 20_000, idle_ms: 20_000, whole_ms: 60_000 };
const RETRIES: Retries = Retries { attempts_max: 3, base_ms: 1, wait_ms_max: 20 };

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Move {
    day: String,
}

async fn served(faults: &str) -> ModelServer {
    let options = Options { faults: faults.parse().unwrap(), ..Options::default() };
    serve(Script::parse(SCRIPT).unwrap(), options).await.unwrap()
}

fn agent(protocol: Protocol, server: &ModelServer, plain: bool) -> Agent {
    let mut spec = ProviderSpec::new(protocol);
    spec.base_url = Some(server.url_v1());
    let provider = Provider::new("fake", &spec, &|_| None).unwrap();
    let model = HttpModel::new(provider, Transport::new(TransportSpec::default()), TIMEOUTS, RETRIES);
    let tool = Tool::new("move_visit", "Moves a visit.", |it: Move, _: Scope| async move {
        Ok::<_, String>(json!({ "moved": it.day }))
    });
    let builder = Agent::builder()
        .name("mover")
        .model(Arc::new(model), "m-1")
        .tool(tool)
        .act_when_asked(ActWhenAsked::new(["move"], ["move_visit"]))
        .clock(Clock::new(|| Timestamp(1_000)));
    if plain { builder.plain() } else { builder }.build().unwrap()
}

fn ask() -> Ask {
    Ask { run: Some("r1".into()), ..Ask::from("Move my visit to Friday") }
}

fn log_of(told: Vec<Progress>) -> Vec<Event> {
    let event = |it| match it {
        Progress::Happened(event) => Some(Arc::unwrap_or_clone(event)),
        Progress::Started { .. }
        | Progress::TakenUp { .. }
        | Progress::TripStarted { .. }
        | Progress::Delta { .. }
        | Progress::Finished(_) => None,
    };
    told.into_iter().filter_map(event).collect()
}

/// The log and the result of a turn that is run to its end.
async fn run(agent: &Agent) -> (Vec<Event>, RunResult) {
    let told: Arc<Mutex<Vec<Progress>>> = Arc::default();
    let listened = told.clone();
    let listener = Arc::new(move |progress| listened.lock().unwrap().push(progress));
    let result = agent.run(Ask { listener: Some(listener), ..ask() }).await.unwrap();
    let told = std::mem::take(&mut *told.lock().unwrap());
    (log_of(told), result)
}

/// The same of a turn that is streamed, whose deltas must add up to what was said.
async fn stream(agent: &Agent) -> (Vec<Event>, RunResult) {
    let told: Vec<Progress> = agent.stream(ask()).map(Result::unwrap).collect().await;
    let Some(Progress::Finished(result)) = told.last().cloned() else { panic!("a stream ends with its result") };
    let mut said = String::new();
    for progress in &told {
        match progress {
            Progress::TripStarted { .. } => said.clear(),
            Progress::Delta { delta: gesta_run::Delta::Text { text, .. }, .. } => said.push_str(text),
            _ => {}
        }
    }
    if result.outcome == Some(Outcome::Completed) {
        assert!(said.is_empty() || said == result.text, "{said}");
    }
    (log_of(told), Arc::unwrap_or_clone(result))
}

/// What the model's failure was, where it is what ended the run.
fn failed(log: &[Event]) -> Option<FaultKind> {
    log.iter().find_map(|event| match &event.what {
        EventKind::ModelFailed { fault, .. } => Some(fault.kind),
        _ => None,
    })
}

/// What is wrong, and how a turn ends then: with a plain answer, and with a streamed one, of which nothing is asked for
/// again once a piece was handed on.
const CASES: [(&str, Option<FaultKind>, Option<FaultKind>); 17] = [
    ("", None, None),
    ("delay=3ms", None, None),
    ("pace=1ms", None, None),
    ("split", None, None),
    ("split=7, delay=1ms", None, None),
    ("status=429, retry-after=0, once", None, None),
    ("status=500, once", None, None),
    ("drop, once", None, None),
    ("html, once", None, None),
    ("cut, once", None, Some(FaultKind::CutShort)),
    ("cut=20, once", None, None),
    ("malformed, once", None, Some(FaultKind::Malformed)),
    ("error-event, once", None, Some(FaultKind::Overloaded)),
    ("status=429, retry-after=60", Some(FaultKind::RateLimit), Some(FaultKind::RateLimit)),
    ("status=500", Some(FaultKind::Overloaded), Some(FaultKind::Overloaded)),
    ("cut", Some(FaultKind::CutShort), Some(FaultKind::CutShort)),
    ("malformed", Some(FaultKind::Malformed), Some(FaultKind::Malformed)),
];

#[tokio::test]
async fn a_turn_that_is_run_and_one_that_is_streamed_leave_the_same_log_whatever_goes_wrong() {
    for (protocol, (faults, plainly, streaming)) in
        [Protocol::OpenAi, Protocol::Anthropic].into_iter().flat_map(|it| CASES.map(|case| (it, case)))
    {
        for (plain, expected) in [(true, plainly), (false, streaming)] {
            // A server of its own for each, since some faults are shown once.
            let (first, second) = (served(faults).await, served(faults).await);
            let ran = run(&agent(protocol, &first, plain)).await;
            let streamed = stream(&agent(protocol, &second, plain)).await;
            let case = format!("{} `{faults}`, plain: {plain}", protocol.as_str());
            assert_eq!(ran.0, streamed.0, "{case}");
            assert_eq!(ran.1, streamed.1, "{case}");
            assert_eq!(failed(&ran.0), expected, "{case}: {:?}", ran.1.error);
            let outcome = if expected.is_none() { Outcome::Completed } else { Outcome::ModelFailed };
            assert_eq!(ran.1.outcome, Some(outcome), "{case}");
            if expected.is_none() {
                assert_eq!(ran.1.text, "Your visits are on Friday and Saturday now.", "{case}");
                assert_eq!((ran.1.trips, ran.1.contract.interventions.len()), (3, 1), "{case}");
            }
            for server in [first, second] {
                assert_eq!(server.journal().refusals(), Vec::<String>::new(), "{case}");
            }
        }
    }
}

/// The log without the numbers of tokens: the fake counts them by the bytes of a request, which says whether it wants a
/// stream.
fn uncounted(mut log: Vec<Event>) -> Vec<Event> {
    for event in &mut log {
        if let EventKind::Replied { reply, .. } = &mut event.what {
            assert!(reply.usage.input > 0 && reply.usage.output > 0);
            reply.usage = Usage::default();
        }
    }
    log
}

#[tokio::test]
async fn a_plain_answer_and_a_streamed_one_leave_the_same_log() {
    for protocol in [Protocol::OpenAi, Protocol::Anthropic] {
        let server = served("").await;
        let plain = run(&agent(protocol, &server, true)).await;
        let streamed = run(&agent(protocol, &server, false)).await;
        assert_eq!(plain.1.transcript, streamed.1.transcript, "{}", protocol.as_str());
        assert_eq!(uncounted(plain.0), uncounted(streamed.0), "{}", protocol.as_str());
    }
}
