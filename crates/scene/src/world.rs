//! What stands at the margin of a scene: the world, as it speaks to a run.

use gesta_run::call::Answer;
use gesta_run::hold::HoldReply;
use gesta_run::input::Attempt;
use gesta_run::json::Object;
use gesta_run::message::Part;
use gesta_run::tool::ToolSpec;
use serde_json::Value;

use crate::answer::ModelAnswer;

/// One line at the margin, with those that continue it.
#[derive(Debug, Clone)]
pub(crate) enum Item {
    /// An empty line.
    Blank,
    /// A title or a comment.
    Comment(String),
    /// A clause of the plan, as it stands.
    Plan(String),
    /// The world speaks.
    World(World),
    /// The scene's document speaks: found out in a rehearsal, and no part of the margin.
    Document(World),
}

/// What the world says.
#[derive(Debug, Clone)]
pub(crate) enum World {
    User(UserLine),
    Model(ModelAnswer),
    Offer(Vec<ToolSpec>),
    Policy {
        call: String,
        says: Policy,
    },
    Tool {
        call: String,
        answer: Answer,
    },
    /// A document's running call asks for a grant.
    Document {
        call: String,
        grant: String,
        arguments: Object,
    },
    /// A grant answers; the id is its tool's call and which of that call.
    Grant {
        id: String,
        answer: Answer,
    },
    Backstop {
        name: String,
        says: Backstop,
    },
    Person {
        answers: Vec<PersonAnswer>,
        now: Option<String>,
    },
    Client {
        path: String,
    },
    Action {
        call: String,
        attempt: Attempt,
    },
    Outside(Outside),
    Clock(Clock),
    Show(Show),
}

/// A user's message, and what the host adds to it.
#[derive(Debug, Clone, Default)]
pub(crate) struct UserLine {
    pub(crate) parts: Vec<Part>,
    pub(crate) run: Option<String>,
    pub(crate) now: Option<String>,
    pub(crate) conversation: Option<String>,
    pub(crate) contact: Option<String>,
}

/// What the hook says about a call.
#[derive(Debug, Clone)]
pub(crate) enum Policy {
    /// A decision as it comes over the wire, right or wrong.
    Wire(Value),
    /// The hook failed.
    Fails(String),
}

/// What a backstop says.
#[derive(Debug, Clone)]
pub(crate) enum Backstop {
    Wanted,
    NotWanted,
    DetectFails(String),
    Ran { prompt: Option<String>, state: Option<Value> },
    RunFails(String),
}

/// One person's answer to one hold.
#[derive(Debug, Clone)]
pub(crate) struct PersonAnswer {
    pub(crate) call: String,
    /// The part of the binding that is quoted wrongly.
    pub(crate) wrong: Option<BindingPart>,
    pub(crate) says: HoldReply,
}

/// A part of a hold's binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BindingPart {
    Run,
    Tool,
    Fingerprint,
    ConfigVersion,
}

/// What happens around a run.
#[derive(Debug, Clone)]
pub(crate) enum Outside {
    /// The cancellation signal fires.
    Cancelled,
    /// The process dies; another takes the run up from its log.
    Crashed,
    /// This much time passes.
    Pass { ms: u64 },
    /// Someone asks that an ended run goes on.
    Resumed { trips_max: Option<u32>, now: Option<String> },
    /// A new message of the contact comes, whose own run is not told here.
    NewMessage,
    /// A tool of the plan is not there any more, in the process that takes answers.
    ToolGone(String),
    /// It is back.
    ToolBack(String),
    /// Someone asks for the run's holds to be looked at again, answering none. Holds the new notice.
    NoAnswers,
}

/// When the next line happens.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Clock {
    /// This long after the line before.
    After { ms: u64 },
    /// At this moment, in milliseconds since 1970.
    At { ms: i64 },
}

/// What is to be printed, indented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Show {
    Messages,
    Result,
    Calls,
    Interventions,
    Contract,
    Holds,
    Actions,
    Usage,
    Events,
}
