//! The matrix of mixed batches, all of it: three calls, each run, denied, left for approval or left to the caller;
//! answered in every order, by one or several requests; each way undisturbed, told twice, raced, told wrongly, run out,
//! and with the process dying between any two steps.

// Tests stand outside of the machine: they have files, threads and a clock.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod sim;
mod told;

use std::collections::BTreeMap;
use std::sync::Arc;

use gesta_run::{
    Accepts, Answer, AnswerError, Binding, Block, CallStatus, Decision, Effect, EventKind, FeedError, Functions,
    HoldAnswer, HoldReply, HoldState, InputKind, Met, OnUndecided, Outcome, Plan, PlanSpec, Reply, ToolSpec, Want,
};
use serde_json::{Value, json};
use told::World;

const IDS: [&str; 3] = ["a", "b", "c"];

/// What becomes of one call of the batch, and what is said to it where it is held.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Run,
    Denied,
    Approval(Said),
    External(Said),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Said {
    Approve,
    Edit,
    Deny,
    Result,
    Error,
}

/// Every way there is for one call: what a hold does not accept is said wrongly instead (see [`wrong`]).
const WAYS: [Way; 9] = [
    Way::Run,
    Way::Denied,
    Way::Approval(Said::Approve),
    Way::Approval(Said::Edit),
    Way::Approval(Said::Deny),
    Way::Approval(Said::Error),
    Way::External(Said::Result),
    Way::External(Said::Deny),
    Way::External(Said::Error),
];

impl Way {
    fn tool(self) -> &'static str {
        match self {
            Self::Run | Self::Denied => "free",
            Self::Approval(_) => "asks",
            Self::External(_) => "elsewhere",
        }
    }

    fn said(self) -> Option<Said> {
        match self {
            Self::Run | Self::Denied => None,
            Self::Approval(said) | Self::External(said) => Some(said),
        }
    }

    /// Whether its body runs here.
    fn runs(self) -> bool {
        matches!(self, Self::Run | Self::Approval(Said::Approve | Said::Edit))
    }

    /// How the call ends where nothing goes wrong.
    fn ends(self) -> CallStatus {
        match self {
            Self::Run | Self::Approval(Said::Approve | Said::Edit) | Self::External(Said::Result) => {
                CallStatus::Completed
            }
            Self::Denied => CallStatus::Denied,
            Self::Approval(said) | Self::External(said) => match said {
                Said::Deny => CallStatus::Denied,
                Said::Approve | Said::Edit | Said::Result | Said::Error => CallStatus::Failed,
            },
        }
    }
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Trouble {
    Nothing,
    /// Every request comes again, at once and at the end.
    Twice,
    /// After every request nineteen others say something else to the same holds.
    Raced,
    /// Before every request each of its answers comes in every wrong form.
    Wrong,
    /// The holds run out after this many requests.
    Expired(usize),
    /// The process dies after this many inputs; an approved call that had begun is left undecided, or told as unknown.
    Crash(usize, OnUndecided),
}

struct Play {
    world: World,
    ways: [Way; 3],
    trouble: Trouble,
    inputs: usize,
    crashed: bool,
    /// How often each body was begun, over both processes, and with what.
    begun: BTreeMap<String, u32>,
    /// Of this process.
    doing: Vec<Want>,
    bindings: BTreeMap<String, Binding>,
}

/// The plans of all runs, each made once.
struct Plans {
    usual: Arc<Plan>,
    expiring: Arc<Plan>,
    tells: Arc<Plan>,
}

impl Plans {
    fn new() -> Self {
        let plan = |spec| Plan::new(spec, Functions::default()).expect("a sound plan");
        Self {
            usual: plan(spec()),
            expiring: plan(PlanSpec { hold_ttl_ms: Some(1_000), ..spec() }),
            tells: plan(PlanSpec { on_undecided: OnUndecided::TellModel, ..spec() }),
        }
    }

    fn of(&self, trouble: Trouble) -> Arc<Plan> {
        match trouble {
            Trouble::Expired(_) => self.expiring.clone(),
            Trouble::Crash(_, OnUndecided::TellModel) => self.tells.clone(),
            _ => self.usual.clone(),
        }
    }
}

fn spec() -> PlanSpec {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "maximum": 100}}, "required": ["n"]});
    let tool = |name: &str, accepts| ToolSpec { accepts, ..ToolSpec::new(name, "", schema.clone()) };
    PlanSpec {
        tools: vec![
            tool("free", Accepts::Any),
            tool("asks", Accepts::ApprovalOnly),
            tool("elsewhere", Accepts::External),
        ],
        hook: true,
        ..PlanSpec::default()
    }
}

fn reply_of(index: usize, said: Said) -> HoldReply {
    match said {
        Said::Approve => HoldReply::Approve { arguments: None },
        Said::Edit => HoldReply::Approve { arguments: json!({"n": 10 + index}).as_object().cloned() },
        Said::Deny => HoldReply::Deny { reason: "not today".to_owned() },
        Said::Result => HoldReply::Result { value: json!({"done": index}) },
        Said::Error => HoldReply::Error { text: "it is closed".to_owned() },
    }
}

impl Play {
    fn new(plans: &Plans, ways: [Way; 3], trouble: Trouble) -> Self {
        Self {
            world: World::of(plans.of(trouble)),
            ways,
            trouble,
            inputs: 1,
            crashed: false,
            begun: BTreeMap::new(),
            doing: Vec::new(),
            bindings: BTreeMap::new(),
        }
    }

    /// Plays it to its end; gives how many inputs that took.
    fn play(mut self, requests: &[Vec<usize>]) -> usize {
        self.work();
        for (number, request) in requests.iter().enumerate() {
            if self.trouble == Trouble::Expired(number) {
                return self.runs_out(&requests[number..]);
            }
            if self.trouble == Trouble::Wrong {
                wrong(&mut self, request);
            }
            self.say(request);
            self.disturb(request);
            self.work();
        }
        self.settle_undecided();
        for request in requests {
            self.disturb(request);
        }
        self.check();
        self.inputs
    }

    fn answers(&self, request: &[usize]) -> Vec<HoldAnswer> {
        let answer = |index: &usize| {
            let answer = reply_of(*index, self.ways[*index].said().expect("only holds are answered"));
            HoldAnswer { binding: self.bindings[IDS[*index]].clone(), answer }
        };
        request.iter().map(answer).collect()
    }

    fn say(&mut self, request: &[usize]) {
        let answers = self.answers(request);
        self.world.say(answers).expect("the first answers count");
        self.after_input();
    }

    /// What others say to holds that are answered changes nothing.
    fn disturb(&mut self, request: &[usize]) {
        let before = self.world.log.len();
        match self.trouble {
            Trouble::Twice => {
                let again = self.answers(request);
                assert_eq!(self.world.say(again), Ok(Vec::new()), "the same again is no conflict");
            }
            Trouble::Raced => {
                for client in 0..19 {
                    let mut answers = self.answers(request);
                    for answer in &mut answers {
                        answer.answer = HoldReply::Deny { reason: format!("client {client} came later") };
                    }
                    let told = self.world.say(answers);
                    assert!(matches!(told, Err(FeedError::Answers(AnswerError::Conflict { .. }))), "{told:?}");
                }
            }
            Trouble::Nothing | Trouble::Wrong | Trouble::Expired(_) | Trouble::Crash(..) => {}
        }
        assert_eq!(self.world.log.len(), before);
    }

    /// Does what is wanted until only people are waited for.
    fn work(&mut self) {
        self.begin();
        loop {
            let wants = self.world.run.wants();
            let Some(want) = wants.into_iter().find(|it| !matches!(it.effect, Effect::Hold(_))) else { break };
            let met = self.met(&want.effect);
            self.world.feed(InputKind::Met { want: want.id, met }).expect("it is wanted");
            self.after_input();
        }
    }

    fn met(&mut self, effect: &Effect) -> Met {
        match effect {
            Effect::CallModel => {
                assert_eq!(sim::sent::refused(self.world.run.transcript()), None, "it cannot be sent");
                let asked = self.world.log.iter().any(|it| matches!(it.what, EventKind::Replied { .. }));
                let call = |index: usize| {
                    Block::call(IDS[index], self.ways[index].tool(), format!("{{\"n\":{index}}}").as_str())
                };
                let blocks = if asked { vec![Block::text("Done.")] } else { (0..3).map(call).collect() };
                Met::Replied(Reply { blocks, ..Reply::default() })
            }
            Effect::Decide(call) => Met::Decided(Ok(match self.way(call.as_str()) {
                Way::Run => Decision::run(),
                Way::Denied => Decision::deny("never"),
                Way::Approval(_) | Way::External(_) => Decision::defer(),
            })),
            Effect::RunTool(_) => Met::Answered(Answer::Ok(json!({"did": true}))),
            Effect::Deliver => Met::Delivered { path: "inline".to_owned() },
            other => panic!("{other:?} is not wanted in this matrix"),
        }
    }

    fn way(&self, call: &str) -> Way {
        self.ways[IDS.iter().position(|id| *id == call).expect("one of the three")]
    }

    /// Begins what is newly wanted, and dies where it is to die.
    fn after_input(&mut self) {
        self.begin();
        self.inputs += 1;
        if let Trouble::Crash(at, _) = self.trouble
            && !self.crashed
            && self.inputs >= at
        {
            self.crashed = true;
            self.world.restart();
            self.doing.clear();
            self.world.feed(InputKind::Recovered).expect("it was opened");
            self.begin();
        }
    }

    fn begin(&mut self) {
        for hold in self.world.run.holds() {
            self.bindings.insert(hold.id.to_string(), hold.binding);
        }
        for want in self.world.run.wants() {
            if self.doing.contains(&want) {
                continue;
            }
            if let Effect::RunTool(call) = &want.effect {
                let index = IDS.iter().position(|id| call.as_str() == *id).expect("one of the three");
                let n = if self.ways[index] == Way::Approval(Said::Edit) { 10 + index } else { index };
                let arguments = self.world.run.arguments_to_run(call).map(|it| Value::Object(it.clone()));
                assert_eq!(arguments, Some(json!({"n": n})), "what runs is what was approved");
                *self.begun.entry(call.to_string()).or_insert(0) += 1;
            }
            self.doing.push(want);
        }
    }

    /// A person looks what came of the approved calls that a crash cut off.
    fn settle_undecided(&mut self) {
        let undecided: Vec<_> =
            self.world.run.holds().into_iter().filter(|hold| hold.state == HoldState::Undecided).collect();
        for hold in undecided {
            let again = HoldAnswer { binding: hold.binding.clone(), answer: HoldReply::OutcomeUnknown };
            self.world.say(vec![again]).expect("only a person knows");
        }
        self.work();
    }

    fn runs_out(mut self, left: &[Vec<usize>]) -> usize {
        self.world.now += 1_001;
        let late = self.world.say(self.answers(&left[0]));
        assert!(matches!(late, Err(FeedError::Answers(AnswerError::Expired { .. }))), "{late:?}");
        self.world.feed(InputKind::Tick).expect("time passes");
        self.begin();
        self.work();
        assert_eq!(self.world.run.outcome(), Some(&Outcome::Expired));
        for (index, way) in self.ways.into_iter().enumerate() {
            let expired = left.iter().flatten().any(|it| *it == index);
            let ends = if expired { CallStatus::Expired } else { way.ends() };
            assert_eq!(self.world.status_of(IDS[index]), Some(ends));
            assert_eq!(self.begun.contains_key(IDS[index]), way.runs() && !expired, "{}", IDS[index]);
        }
        self.check_log();
        self.inputs
    }

    /// Each effect once, each answer once, the model asked once.
    fn check(&self) {
        let run = &self.world.run;
        assert_eq!(run.outcome(), Some(&Outcome::Completed));
        let replies = self.world.log.iter().filter(|it| matches!(it.what, EventKind::Replied { .. })).count();
        assert_eq!(replies, 2, "the model is asked once after all answers");
        for (index, way) in self.ways.into_iter().enumerate() {
            let id = IDS[index];
            let begun = self.begun.get(id).copied().unwrap_or(0);
            assert_eq!(begun, u32::from(way.runs()), "{id} was begun {begun} times");
            let answered = |it: &&gesta_run::Event| {
                matches!(&it.what, EventKind::HoldAnswered { call, answer, .. }
                if call.as_str() == id && *answer != HoldReply::OutcomeUnknown)
            };
            let answers = self.world.log.iter().filter(answered).count();
            assert_eq!(answers, usize::from(way.said().is_some()), "{id} was answered {answers} times");
            let status = self.world.status_of(id).expect("it has ended");
            let hidden = self.crashed && way.runs() && status == CallStatus::OutcomeUnknown;
            assert!(hidden || status == way.ends(), "{id} ended {status:?}");
        }
        self.check_log();
    }

    fn check_log(&self) {
        let run = &self.world.run;
        assert_eq!(sim::check::check(run.plan(), &self.world.log), Vec::<String>::new());
        let order: Vec<String> = run.result().tool_calls.iter().map(|it| it.id.to_string()).collect();
        assert_eq!(order, IDS);
    }
}

/// Says each answer of a request in every wrong form: nothing is taken, also beside answers that are right.
fn wrong(play: &mut Play, request: &[usize]) {
    let right = play.answers(request);
    for place in 0..right.len() {
        let way = play.ways[request[place]];
        for form in forms(&right[place], way) {
            let mut answers = right.clone();
            answers[place] = form;
            refused(play, answers, &[]);
        }
        let mut two = right.clone();
        two.push(HoldAnswer { answer: HoldReply::Deny { reason: "both at once".to_owned() }, ..right[place].clone() });
        refused(play, two, &[]);
        if matches!(right[place].answer, HoldReply::Approve { .. }) {
            refused(play, right.clone(), &[way.tool()]);
        }
    }
}

fn forms(right: &HoldAnswer, way: Way) -> Vec<HoldAnswer> {
    let bound = |change: fn(&mut Binding)| {
        let mut form = right.clone();
        change(&mut form.binding);
        form
    };
    let says = |answer| HoldAnswer { answer, ..right.clone() };
    let unfit = json!({"n": "many"}).as_object().cloned();
    let mut forms = vec![
        bound(|it| it.run_id = "another".into()),
        bound(|it| it.call_id = "another".into()),
        bound(|it| it.tool = "another".into()),
        bound(|it| it.fingerprint = it.fingerprint.to_uppercase() + "0"),
        bound(|it| it.config_version = "of another day".to_owned()),
        says(HoldReply::Deny { reason: " ".to_owned() }),
        says(HoldReply::OutcomeUnknown),
    ];
    forms.push(says(match way {
        Way::External(_) => HoldReply::Approve { arguments: None },
        Way::Run | Way::Denied | Way::Approval(_) => HoldReply::Result { value: Value::Null },
    }));
    forms.push(says(HoldReply::Approve { arguments: unfit }));
    forms
}

fn refused(play: &mut Play, answers: Vec<HoldAnswer>, missing: &[&str]) {
    let missing_tools = missing.iter().map(|it| (*it).to_owned()).collect();
    let told = play.world.feed(InputKind::Answers { answers, missing_tools, now: String::new() });
    assert!(matches!(told, Err(FeedError::Answers(_))), "{told:?}");
}

/// Every way to answer these holds by one or several requests, in every order of the requests.
fn orders(holds: &[usize]) -> Vec<Vec<Vec<usize>>> {
    let Some(most) = 1_usize.checked_shl(u32::try_from(holds.len()).unwrap_or(0)) else { return Vec::new() };
    if holds.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for first in 1..most {
        let (now, later): (Vec<usize>, Vec<usize>) = (0..holds.len()).partition(|place| first & (1 << place) != 0);
        let of = |places: Vec<usize>| places.into_iter().map(|place| holds[place]).collect::<Vec<usize>>();
        let now = of(now);
        for rest in orders(&of(later)) {
            all.push([vec![now.clone()], rest].concat());
        }
    }
    all
}

fn play_batch(plans: &Plans, ways: [Way; 3]) -> u64 {
    let holds: Vec<usize> = (0..3).filter(|index| ways[*index].said().is_some()).collect();
    let mut runs = 0;
    for requests in orders(&holds) {
        let mut one = |trouble| {
            runs += 1;
            let told = || Play::new(plans, ways, trouble).play(&requests);
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(told))
                .unwrap_or_else(|_| panic!("{ways:?}, answered {requests:?}, {trouble:?}"))
        };
        let inputs = one(Trouble::Nothing);
        one(Trouble::Twice);
        one(Trouble::Raced);
        one(Trouble::Wrong);
        for number in 0..requests.len() {
            one(Trouble::Expired(number));
        }
        let approved = ways.iter().any(|way| way.said().is_some() && way.runs());
        for at in 2..=inputs {
            one(Trouble::Crash(at, OnUndecided::Ask));
            if approved {
                one(Trouble::Crash(at, OnUndecided::TellModel));
            }
        }
    }
    runs
}

#[test]
fn every_mixed_batch_keeps_every_promise() {
    let plans = Plans::new();
    let mut batches = Vec::new();
    for a in WAYS {
        for b in WAYS {
            for c in WAYS {
                batches.push([a, b, c]);
            }
        }
    }
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let share =
        |thread: usize| batches.iter().skip(thread).step_by(threads).map(|ways| play_batch(&plans, *ways)).sum::<u64>();
    let runs: u64 = std::thread::scope(|scope| {
        let share = &share;
        let workers: Vec<_> = (0..threads).map(|thread| scope.spawn(move || share(thread))).collect();
        workers.into_iter().map(|worker| worker.join().expect("every batch holds")).sum()
    });
    assert!(runs > 100_000, "{runs} runs are not all of them");
}
