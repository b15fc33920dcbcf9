//! `gesta keys`: who may ask the server.

use clap::{Args, Subcommand};
use gesta_run::Timestamp;
use gesta_server::{Scope, new_key};
use gesta_store::ApiKey;
use serde_json::json;

use super::show::moment;
use super::{Globals, wait_for};
use crate::exit::{Ended, Exit, Failure};
use crate::place::Place;
use crate::terminal::{Look, Screen};

/// Make, list and take back the keys to the server
///
/// As soon as there is a key, `gesta serve` answers nobody without one. A key is shown when it is made and never again:
/// only its hash is kept.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesta keys new shop --scope run --scope read
  gesta keys new inbox --scope answer --agent desk
  gesta keys list
  gesta keys revoke 4f1d2c3b4a596877")]
pub(crate) struct KeysCommand {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Make a key, and show it this once
    New {
        /// What it is called
        name: String,
        /// What it is good for: run, read, answer, admin; once for each [default: run and read]
        #[arg(long, value_name = "SCOPE")]
        scope: Vec<Scope>,
        /// For which agent; once for each [default: all]
        #[arg(long, value_name = "AGENT")]
        agent: Vec<String>,
        /// Print the key alone
        #[arg(long)]
        bare: bool,
    },
    /// List the keys
    List {
        /// Print each as JSON, one on a line
        #[arg(long)]
        json: bool,
    },
    /// Take a key back, at once
    Revoke {
        /// Its id, as `gesta keys list` shows it
        id: String,
    },
}

impl KeysCommand {
    pub(crate) fn run(self, globals: &Globals) -> Ended {
        wait_for(async {
            let place = Place::open(globals, None).await?;
            match self.what {
                What::New { name, scope, agent, bare } => make(&place, &name, scope, agent, bare).await?,
                What::List { json } => list(&place, json).await?,
                What::Revoke { id } => revoke(&place, &id).await?,
            }
            place.close().await;
            Ok(Exit::Done)
        })
    }
}

fn now() -> Timestamp {
    Timestamp(jiff::Timestamp::now().as_millisecond())
}

async fn make(
    place: &Place,
    name: &str,
    mut scopes: Vec<Scope>,
    agents: Vec<String>,
    bare: bool,
) -> Result<(), Failure> {
    if scopes.is_empty() {
        scopes = vec![Scope::Run, Scope::Read];
    }
    scopes.sort_unstable();
    scopes.dedup();
    let agents = (!agents.is_empty()).then_some(agents);
    let no_dice = |why| Failure::new(Exit::Other, why, "try again");
    let (shown, key) = new_key(name, &scopes, agents, now()).map_err(no_dice)?;
    place.front().put_key(key.clone()).await?;
    let mut screen = Screen::stdout();
    if bare {
        screen.line(Look::Plain, &shown);
        return Ok(());
    }
    screen.line(Look::Strong, &shown);
    screen.line(Look::Faint, &format!("{}; it is not shown again", line_of(&key)));
    Ok(())
}

async fn list(place: &Place, as_json: bool) -> Result<(), Failure> {
    let keys = place.front().keys().await?;
    let mut screen = Screen::stdout();
    if keys.is_empty() && !as_json {
        screen.line(Look::Faint, "no keys; make one with `gesta keys new NAME`");
    }
    for key in keys {
        if as_json {
            let mut shown = json!(key);
            if let Some(fields) = shown.as_object_mut() {
                fields.remove("hash");
            }
            screen.json(&shown);
        } else {
            let look = if key.revoked_at.is_some() { Look::Faint } else { Look::Plain };
            screen.line(look, &line_of(&key));
        }
    }
    Ok(())
}

async fn revoke(place: &Place, id: &str) -> Result<(), Failure> {
    if place.front().revoke_key(id, now()).await? {
        Screen::stdout().line(Look::Plain, &format!("{id} opens nothing any more"));
        return Ok(());
    }
    Err(Failure::usage(format!("there is no key `{id}` that could be taken back"), "`gesta keys list` shows them"))
}

fn line_of(key: &ApiKey) -> String {
    let agents = key.agents.as_ref().map_or_else(|| "all agents".to_owned(), |agents| agents.join(", "));
    let state = match key.revoked_at {
        Some(at) => format!("taken back {}", moment(at)),
        None => format!("made {}", moment(key.created_at)),
    };
    format!("{}  {}  {}  {agents}  {state}", key.id, key.name, key.scopes.join(", "))
}
