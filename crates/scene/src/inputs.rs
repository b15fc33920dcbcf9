//! Turns a line of the world into the input that it tells a run.

use gesta_run::Run;
use gesta_run::decision::{Decision, HookError};
use gesta_run::hold::{Binding, HoldAnswer};
use gesta_run::id::{CallId, WantId, WantKind};
use gesta_run::input::{InputKind, Met, Ran};

use crate::grants;
use crate::stage::Stage;
use crate::world::{Backstop, BindingPart, Outside, PersonAnswer, Policy, World};

/// Which run a line is for, and what it tells it.
pub(crate) fn of(stage: &Stage, line: &World) -> Result<(usize, InputKind), String> {
    let last = stage.last_track().ok_or("nothing has been said yet")?;
    let of_call = |call: &str| stage.track_of(&call.into()).unwrap_or(last);
    let of_grant_or_call = |id: &str| of_call(grants::parse_id(id).map_or(id, |(call, _)| call));
    let met = |track: usize, kind: WantKind, subject: Option<&str>, met: Met| {
        (track, InputKind::Met { want: stage.want(track, kind, subject), met })
    };
    Ok(match line {
        World::Model(answer) => {
            let reply = match answer.outcome.clone() {
                Ok(reply) => Met::Replied(reply),
                Err(fault) => Met::Failed(fault),
            };
            met(stage.wanting(WantKind::Model, None).unwrap_or(last), WantKind::Model, None, reply)
        }
        World::Offer(added) => {
            let track = stage.wanting(WantKind::Offer, None).unwrap_or(last);
            met(track, WantKind::Offer, None, Met::Offered { added: added.clone() })
        }
        World::Policy { call, says } => {
            let track = of_grant_or_call(call);
            let wants = |kind, subject: &str| stage.wants(track, kind, Some(subject));
            match grants::kind_of(wants, call, WantKind::Decide, WantKind::DecideGrant) {
                WantKind::DecideGrant => (
                    track,
                    InputKind::Met {
                        want: want_of_grant(WantKind::DecideGrant, call),
                        met: Met::Decided(ruling(says)),
                    },
                ),
                kind => met(track, kind, Some(call), Met::Decided(ruling(says))),
            }
        }
        World::Document { call, grant, arguments } => {
            let track = of_call(call);
            let asked =
                stage.run(track).and_then(|run| run.call(&call.as_str().into())).map_or(0, |it| it.grants().len());
            let n = u32::try_from(asked).unwrap_or(u32::MAX);
            met(track, WantKind::Run, Some(call), Met::Asked { n, grant: grant.clone(), arguments: arguments.clone() })
        }
        World::Grant { id, answer } => {
            let want = want_of_grant(WantKind::Grant, id);
            (of_grant_or_call(id), InputKind::Met { want, met: Met::Answered(answer.clone()) })
        }
        World::Tool { call, answer } => met(of_call(call), WantKind::Run, Some(call), Met::Answered(answer.clone())),
        World::Backstop { name, says } => {
            let (kind, says) = backstop(says);
            met(stage.wanting(kind, Some(name)).unwrap_or(last), kind, Some(name), says)
        }
        World::Client { path } => {
            let track = stage.wanting(WantKind::Deliver, None).unwrap_or(last);
            met(track, WantKind::Deliver, None, Met::Delivered { path: path.clone() })
        }
        World::Action { call, attempt } => {
            met(of_call(call), WantKind::Perform, Some(call), Met::Performed(attempt.clone()))
        }
        World::Person { answers, now } => {
            let track = answers.first().map_or(last, |answer| of_call(&answer.call));
            let now = now.clone().unwrap_or_else(|| stage.now_text());
            (track, answers_of(stage, track, answers, now))
        }
        World::Outside(what) => (last, outside(stage, what)?),
        World::User(_) | World::Clock(_) | World::Show(_) => return Err("this line tells a run nothing".to_owned()),
    })
}

/// The want that is about this grant call, whether the run has it or not.
fn want_of_grant(kind: WantKind, id: &str) -> WantId {
    let (call, n) = grants::parse_id(id).unwrap_or((id, 0));
    WantId { kind, subject: Some(call.into()), trip: 0, attempt: n }
}

fn ruling(says: &Policy) -> Result<Decision, HookError> {
    match says {
        Policy::Wire(wire) => Decision::from_wire(wire),
        Policy::Fails(why) => Err(HookError(why.clone())),
    }
}

fn backstop(says: &Backstop) -> (WantKind, Met) {
    match says {
        Backstop::Wanted => (WantKind::Detect, Met::Detected(Ok(true))),
        Backstop::NotWanted => (WantKind::Detect, Met::Detected(Ok(false))),
        Backstop::DetectFails(why) => (WantKind::Detect, Met::Detected(Err(why.clone()))),
        Backstop::RunFails(why) => (WantKind::Backstop, Met::Ran(Err(why.clone()))),
        Backstop::Ran { prompt, state } => {
            (WantKind::Backstop, Met::Ran(Ok(Ran { prompt: prompt.clone(), state: state.clone() })))
        }
    }
}

fn answers_of(stage: &Stage, track: usize, answers: &[PersonAnswer], now: String) -> InputKind {
    let answers = answers
        .iter()
        .map(|answer| {
            let call: CallId = answer.call.as_str().into();
            let mut binding = stage.binding(track, &call);
            if let Some(part) = answer.wrong {
                spoil(&mut binding, part);
            }
            HoldAnswer { binding, answer: answer.says.clone() }
        })
        .collect();
    InputKind::Answers { answers, missing_tools: stage.missing_tools(), now }
}

fn spoil(binding: &mut Binding, part: BindingPart) {
    match part {
        BindingPart::Run => binding.run_id = "another".into(),
        BindingPart::Tool => binding.tool = "another".to_owned(),
        BindingPart::Fingerprint => binding.fingerprint = "0".repeat(64),
        BindingPart::ConfigVersion => binding.config_version = "0".repeat(64),
    }
}

fn outside(stage: &Stage, what: &Outside) -> Result<InputKind, String> {
    Ok(match what {
        Outside::Cancelled => InputKind::Cancelled,
        Outside::Crashed => InputKind::Recovered,
        Outside::Pass { .. } => InputKind::Tick,
        Outside::Resumed { trips_max, now } => {
            InputKind::Resumed { trips_max: *trips_max, now: now.clone().unwrap_or_else(|| stage.now_text()) }
        }
        Outside::NewMessage => InputKind::Superseded,
        // Someone who goes on with a run that failed has no holds to answer.
        Outside::NoAnswers if stage.last().is_some_and(Run::can_go_on) => {
            InputKind::Resumed { trips_max: None, now: stage.now_text() }
        }
        Outside::NoAnswers => InputKind::Answers {
            answers: Vec::<HoldAnswer>::new(),
            missing_tools: stage.missing_tools(),
            now: stage.now_text(),
        },
        Outside::ToolGone(_) | Outside::ToolBack(_) => return Err("this line tells a run nothing".to_owned()),
    })
}
