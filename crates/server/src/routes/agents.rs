//! Agents: what is served here, and what each may do.

use axum::response::Response;
use gesta_document::Author;
use gesta_run::{RunId, ToolEffect, ToolSpec};
use gesta_runtime::folder::{Body, Folder};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::json;
use crate::app::{App, Live};
use crate::apps::Mine;
use crate::ask::Asker;
use crate::described::Accepts;
use crate::documents::Kept;
use crate::extract::{Asked, Named};
use crate::keys::Scope;
use crate::problem::{Problem, ProblemBody};
use crate::wire::Page;

/// An agent.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgentBody {
    /// Its name.
    name: String,
    /// Its version, as its folder has it.
    version: String,
    /// `provider:model`.
    model: String,
    /// How many tools it has, those of its document left out.
    tools: usize,
    /// It has a document of tools, which may grow in a conversation.
    document: bool,
    /// The hash of its whole configuration: runs that begin now are pinned to it.
    config: String,
}

impl AgentBody {
    fn of(live: &Live) -> Self {
        let plan = live.agent.agent().plan();
        Self {
            name: plan.spec.agent.clone(),
            version: plan.spec.version.clone(),
            model: plan.spec.model.clone(),
            tools: plan.spec.tools.len(),
            document: plan.spec.document.is_some(),
            config: plan.hash().to_owned(),
        }
    }
}

/// List the agents.
#[utoipa::path(
    get, path = "/v1/agents", operation_id = "list_agents", tag = "agents",
    responses(
        (status = 200, description = "All of them, by name", body = Page<AgentBody>),
        (status = "default", description = "Not listed", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn list(Mine(app): Mine, asker: Asker) -> Response {
    let known = app.agents.iter().filter(|(name, _)| asker.knows(name));
    let items: Vec<AgentBody> = known.map(|(_, live)| AgentBody::of(live)).collect();
    json(&Page { items, next: None })
}

/// Who runs a tool.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum RunBy {
    /// A server that is called.
    Http,
    /// Nobody: its answers stand in the folder.
    Answers,
    /// Whoever began the run.
    Caller,
    /// The document.
    Document,
}

/// What a tool does to the world.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum EffectBody {
    /// Nothing: it may be run again after a crash.
    ReadsOnly,
    /// It writes an action down, which is performed after delivery.
    Staged,
    /// It has effects, and is never repeated by itself.
    Once,
}

/// A tool.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ToolBody {
    /// What the model calls it.
    name: String,
    /// What the model is told about it.
    description: String,
    /// JSON schema of its arguments.
    #[schema(value_type = Object)]
    parameters: Value,
    /// What it does to the world.
    effect: EffectBody,
    /// Which answers its holds take.
    #[schema(value_type = Accepts)]
    accepts: gesta_run::Accepts,
    /// Each of its actions waits for a person.
    needs_approval: bool,
    /// How long it may take, in milliseconds.
    time_limit_ms: u64,
    /// Who runs it.
    run_by: RunBy,
}

impl ToolBody {
    fn of(spec: &ToolSpec, folder: &Folder) -> Self {
        let body = folder.settings.bodies.get(&spec.name);
        let run_by = match body {
            _ if spec.document => RunBy::Document,
            Some(Body::Http(_)) => RunBy::Http,
            Some(Body::Answers(_)) => RunBy::Answers,
            Some(Body::External) | None => RunBy::Caller,
        };
        let effect = match spec.effect {
            ToolEffect::ReadsOnly => EffectBody::ReadsOnly,
            ToolEffect::Staged => EffectBody::Staged,
            ToolEffect::Once => EffectBody::Once,
        };
        Self {
            name: spec.name.clone(),
            description: spec.description.clone(),
            parameters: spec.parameters.clone(),
            effect,
            accepts: spec.accepts,
            needs_approval: spec.needs_approval,
            time_limit_ms: spec.time_limit_ms,
            run_by,
        }
    }
}

/// Who wrote a tool of a document.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "by", rename_all = "snake_case")]
enum AuthorBody {
    /// The agent, in a run.
    Agent {
        /// The run.
        run: String,
    },
    /// A person.
    Person {
        /// Their name, or that of their key.
        name: String,
    },
}

/// A tool that was added to a conversation's document.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DocumentToolBody {
    /// What the model calls it.
    name: String,
    /// What the model was last told about it, where it was offered to it.
    description: Option<String>,
    /// Its source.
    source: String,
    /// Who wrote it, where that is known.
    author: Option<AuthorBody>,
    /// When it was written, in milliseconds since 1970.
    at: Option<i64>,
    /// It is offered to the model.
    enabled: bool,
    /// Why it is not.
    set_aside: Option<String>,
}

/// An agent's tools.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ToolsPage {
    /// Those that it has in every conversation, the tools of its own document file among them.
    items: Vec<ToolBody>,
    /// There is no other page.
    next: Option<String>,
    /// Those that were added to the document of the conversation that was named, the oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    document: Option<Vec<DocumentToolBody>>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ToolsAsked {
    /// With the tools of this conversation's document, for a key that may read.
    conversation: Option<String>,
}

/// List an agent's tools.
///
/// Tools that were added to its document belong to a conversation, and are listed for the one that is named.
#[utoipa::path(
    get, path = "/v1/agents/{agent}/tools", operation_id = "list_tools", tag = "agents",
    params(("agent" = String, Path, description = "The agent's name"), ToolsAsked),
    responses(
        (status = 200, description = "Its tools", body = ToolsPage),
        (status = "default", description = "Not listed", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn tools(
    Mine(app): Mine,
    asker: Asker,
    Named(agent): Named<String>,
    Asked(asked): Asked<ToolsAsked>,
) -> Result<Response, Problem> {
    asker.may_with(&Scope::ALL, &agent)?;
    let live = app.agent(&agent)?;
    let specs = &live.agent.agent().plan().spec.tools;
    let items: Vec<ToolBody> = specs.iter().map(|spec| ToolBody::of(spec, &live.served.folder)).collect();
    let document = match asked.conversation {
        Some(name) => {
            // Its sources are what was said there, too.
            asker.may_with(&[Scope::Read], &agent)?;
            Some(document(&app, &agent, &name).await?)
        }
        None => None,
    };
    Ok(json(&ToolsPage { items, next: None, document }))
}

async fn document(app: &App, agent: &str, conversation: &str) -> Result<Vec<DocumentToolBody>, Problem> {
    let kept = Kept::read_of(app, conversation, Some(agent)).await?;
    let written = kept.record.added.iter().filter_map(|tool| match &tool.author {
        Some(Author::Agent { run }) => Some(RunId::new(run.clone())),
        _ => None,
    });
    let mut told = kept.told(app, written).await?;
    let added = kept
        .record
        .added
        .iter()
        .map(|tool| DocumentToolBody {
            name: tool.name.clone(),
            description: told.remove(&tool.name),
            source: tool.source.clone(),
            author: tool.author.as_ref().map(|author| match author {
                Author::Agent { run } => AuthorBody::Agent { run: run.clone() },
                Author::Person { name } => AuthorBody::Person { name: name.clone() },
            }),
            at: tool.at.map(|at| at.0),
            enabled: tool.set_aside.is_none(),
            set_aside: tool.set_aside.clone(),
        })
        .collect();
    Ok(added)
}
