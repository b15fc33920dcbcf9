//! Tools with a body: typed async functions, or anything that implements [`ToolBody`].

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use gesta_run::json::Object;
use gesta_run::{
    Accepts, Answer, Arguments, CallId, ContactId, ConversationId, PatternSpec, RunId, ToolEffect, ToolSpec,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Whose call a body is running. The host's own words: no parameter of the model can change them.
#[derive(Debug, Clone)]
pub struct Scope {
    /// The run.
    pub run: RunId,
    /// The call.
    pub call: CallId,
    /// The conversation, where the run belongs to one.
    pub conversation: Option<ConversationId>,
    /// Who is at the other end.
    pub contact: Option<ContactId>,
}

impl Scope {
    /// The key under which a receiver recognises a repetition: run id and call id.
    pub fn idempotency_key(&self) -> String {
        format!("{}/{}", self.run, self.call)
    }
}

/// What a body gives back, some time later.
pub type AnswerFuture = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// Runs calls of a tool. Arguments have passed the schema. A body that panics fails its call and nothing else.
pub trait ToolBody: Send + Sync {
    /// Runs one call. The time limit is the driver's.
    fn call(&self, arguments: Object, scope: Scope) -> AnswerFuture;

    /// The same with arguments that the run still has, which are copied for [`ToolBody::call`]. A body that only reads
    /// them need not do so.
    fn call_shared(&self, arguments: Arguments, scope: Scope) -> AnswerFuture {
        self.call(arguments.into_object(), scope)
    }
}

impl<F> ToolBody for F
where
    F: Fn(Object, Scope) -> AnswerFuture + Send + Sync,
{
    fn call(&self, arguments: Object, scope: Scope) -> AnswerFuture {
        self(arguments, scope)
    }
}

/// A function whose arguments have a type.
struct Typed<A, B> {
    body: B,
    arguments: PhantomData<fn(A)>,
}

impl<A, R, E, Fut, B> ToolBody for Typed<A, B>
where
    A: DeserializeOwned + Send,
    R: Serialize,
    E: std::fmt::Display,
    Fut: Future<Output = Result<R, E>> + Send + 'static,
    B: Fn(A, Scope) -> Fut + Send + Sync + 'static,
{
    fn call(&self, arguments: Object, scope: Scope) -> AnswerFuture {
        self.call_shared(arguments.into(), scope)
    }

    fn call_shared(&self, arguments: Arguments, scope: Scope) -> AnswerFuture {
        match A::deserialize(&*arguments) {
            Ok(arguments) => {
                let running = (self.body)(arguments, scope);
                Box::pin(async move { answer_of(running.await) })
            }
            Err(why) => Box::pin(std::future::ready(Answer::Error(format!("the arguments do not fit: {why}")))),
        }
    }
}

/// A tool for [`crate::AgentBuilder::tool`]: what the model is told, and the body.
#[derive(Clone)]
pub struct Tool {
    pub(crate) spec: ToolSpec,
    pub(crate) body: Option<Arc<dyn ToolBody>>,
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Tool").field(&self.spec.name).finish()
    }
}

impl Tool {
    /// A tool from a typed async function. The schema comes from the type of its arguments; an `Err` is the error
    /// that the model reads.
    pub fn new<A, R, E, Fut>(
        name: &str,
        description: &str,
        body: impl Fn(A, Scope) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        R: Serialize,
        E: std::fmt::Display,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
    {
        let (parameters, body) = Self::typed(body);
        Self::with_body(ToolSpec::new(name, description, parameters), body)
    }

    /// The schema of a typed function's arguments, and the function as a body.
    pub(crate) fn typed<A, R, E, Fut>(
        body: impl Fn(A, Scope) -> Fut + Send + Sync + 'static,
    ) -> (Value, impl ToolBody + 'static)
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        R: Serialize,
        E: std::fmt::Display,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
    {
        let schema = schemars::generate::SchemaSettings::draft2020_12()
            .with(|settings| settings.inline_subschemas = true)
            .into_generator()
            .into_root_schema_for::<A>();
        (parameters(schema.to_value()), Typed { body, arguments: PhantomData })
    }

    /// A tool whose schema is written by hand.
    pub fn with_body(spec: ToolSpec, body: impl ToolBody + 'static) -> Self {
        Self { spec, body: Some(Arc::new(body)) }
    }

    /// A tool that whoever called the agent runs: every call is deferred to them, and they hand in the result.
    pub fn external(spec: ToolSpec) -> Self {
        Self { spec: ToolSpec { accepts: Accepts::External, ..spec }, body: None }
    }

    /// Says what running it does to the world. `once` without this.
    #[must_use]
    pub fn effect(mut self, effect: ToolEffect) -> Self {
        self.spec.effect = effect;
        self
    }

    /// How long its body may take.
    #[must_use]
    pub fn time_limit(mut self, limit: std::time::Duration) -> Self {
        self.spec.time_limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// A match in its text result or error is a refusal.
    #[must_use]
    pub fn refusal(mut self, pattern: PatternSpec) -> Self {
        self.spec.refusal = Some(pattern);
        self
    }

    /// Which answers its holds take.
    #[must_use]
    pub fn accepts(mut self, accepts: Accepts) -> Self {
        self.spec.accepts = accepts;
        self
    }

    /// An answer that calls silent tools alone ends the turn with the text beside the calls.
    #[must_use]
    pub fn silent(mut self) -> Self {
        self.spec.silent = true;
        self
    }
}

fn answer_of<R: Serialize, E: std::fmt::Display>(result: Result<R, E>) -> Answer {
    match result {
        Ok(value) => match serde_json::to_value(value) {
            Ok(value) => Answer::Ok(value),
            Err(why) => Answer::Error(format!("the result cannot be written as JSON: {why}")),
        },
        Err(why) => Answer::Error(why.to_string()),
    }
}

/// What providers want of a schema: an object, without the words that only describe the schema itself.
fn parameters(mut schema: Value) -> Value {
    if let Some(object) = schema.as_object_mut() {
        object.remove("$schema");
        object.remove("title");
        object.entry("type").or_insert_with(|| "object".into());
        object.entry("properties").or_insert_with(|| Value::Object(Object::new()));
    }
    schema
}
