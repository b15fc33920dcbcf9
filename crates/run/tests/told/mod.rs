//! A run that a test tells things, one after another.

#![allow(dead_code, unreachable_pub)]

use std::sync::Arc;

use gesta_run::{
    Answer, Block, CallStatus, Decision, Effect, Event, FeedError, Functions, HoldAnswer, HoldReply, Input, InputKind,
    Met, Opening, Part, Plan, PlanSpec, Reply, Run, Timestamp, Want,
};

pub struct World {
    pub run: Run,
    pub log: Vec<Event>,
    pub now: i64,
}

impl World {
    pub fn new(spec: PlanSpec) -> Self {
        Self::of(Plan::new(spec, Functions::default()).expect("a sound plan"))
    }

    /// A run of a plan that many share: making one costs more than a run.
    pub fn of(plan: Arc<Plan>) -> Self {
        let mut world = Self { run: Run::new(plan), log: Vec::new(), now: 0 };
        world.feed(InputKind::Opened(opening("Refund it"))).expect("it opens");
        world
    }

    pub fn feed(&mut self, kind: InputKind) -> Result<Vec<Event>, FeedError> {
        let events = self.run.feed(Input { at: Timestamp(self.now), kind })?.to_vec();
        self.log.extend(events.clone());
        Ok(events)
    }

    pub fn want(&self, effect: impl Fn(&Effect) -> bool) -> Want {
        self.run.wants().into_iter().find(|it| effect(&it.effect)).expect("it is wanted")
    }

    pub fn meet(&mut self, effect: impl Fn(&Effect) -> bool, met: Met) -> Vec<Event> {
        let want = self.want(effect).id;
        self.feed(InputKind::Met { want, met }).expect("it is in turn")
    }

    pub fn reply(&mut self, blocks: Vec<Block>) -> Vec<Event> {
        self.meet(|it| *it == Effect::CallModel, Met::Replied(Reply { blocks, ..Reply::default() }))
    }

    pub fn decide(&mut self, call: &str, decision: Decision) -> Vec<Event> {
        self.meet(|it| *it == Effect::Decide(call.into()), Met::Decided(Ok(decision)))
    }

    pub fn answer(&mut self, call: &str, answer: Answer) -> Vec<Event> {
        self.meet(|it| *it == Effect::RunTool(call.into()), Met::Answered(answer))
    }

    pub fn hold_answer(&self, call: &str, answer: HoldReply) -> HoldAnswer {
        let hold = self.run.holds().into_iter().find(|it| it.id.as_str() == call).expect("it is held");
        HoldAnswer { binding: hold.binding, answer }
    }

    pub fn say(&mut self, answers: Vec<HoldAnswer>) -> Result<Vec<Event>, FeedError> {
        self.feed(InputKind::Answers { answers, missing_tools: Vec::new(), now: String::new() })
    }

    pub fn person(&mut self, call: &str, answer: HoldReply) -> Vec<Event> {
        let answer = self.hold_answer(call, answer);
        self.say(vec![answer]).expect("it is taken")
    }

    pub fn status_of(&self, call: &str) -> Option<CallStatus> {
        self.run.result().tool_calls.into_iter().find(|it| it.id.as_str() == call).map(|it| it.status)
    }

    /// The run as another process would find it, its log written down and read again.
    pub fn restart(&mut self) {
        let text = serde_json::to_vec(&self.log).expect("events are plain data");
        let log: Vec<Event> = gesta_run::json::read_stored(&text).expect("events are read again");
        let again = Run::replay(self.run.plan().clone(), &log);
        assert_eq!(again.wants(), self.run.wants());
        assert_eq!(again.result(), self.run.result());
        self.run = again;
    }
}

pub fn opening(text: &str) -> Opening {
    Opening {
        run: "r".into(),
        conversation: None,
        contact: None,
        input: vec![Part::text(text)],
        now: String::new(),
        trace: None,
    }
}
