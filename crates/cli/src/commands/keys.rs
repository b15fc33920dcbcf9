//! `gesta keys`: who may ask the server.

use clap::{Args, Subcommand};
use gesta_run::Timestamp;
use gesta_server::{NewKey, Scope, new_key, new_link};
use gesta_store::{ApiKey, TENANT_LOCAL};
use serde_json::json;

use super::show::moment;
use super::{Globals, wait_for};
use crate::exit::{Ended, Exit, Failure};
use crate::place::Place;
use crate::terminal::{Look, Screen};

/// Make, list and take back the keys to the server
///
/// As soon as there is a key, `gesta serve` answers nobody without one, and stays so when the last one is taken back. A
/// key is shown when it is made and never again: only its hash is kept. A server that runs knows of it at once.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesta keys new shop --scope run --scope read
  gesta keys new inbox --scope answer --agent desk
  gesta keys new acme --tenant acme --scope admin
  gesta keys link --key inbox
  gesta keys list
  gesta keys revoke 4f1d2c3b4a596877")]
pub(crate) struct KeysCommand {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Make a key, and show it this once
    #[command(visible_alias = "add")]
    New {
        /// What it is called
        name: String,
        /// What it is good for: run, read, answer, admin; once for each [default: run and read]
        #[arg(long, value_name = "SCOPE")]
        scope: Vec<Scope>,
        /// For which agent; once for each [default: all]
        #[arg(long, value_name = "AGENT")]
        agent: Vec<String>,
        /// Whose runs, conversations, holds and audit it opens; nothing of one tenant is reached from another [default:
        /// the store's own]
        #[arg(long, value_name = "TENANT")]
        tenant: Option<String>,
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
    /// Make a link that lets its owner into the console once, within ten minutes
    Link {
        /// The name or id of the key whose owner it lets in [default: the oldest that is good, those with admin first]
        #[arg(long, value_name = "KEY")]
        key: Option<String>,
        /// Where browsers reach the server
        #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7450", env = "GESTA_SERVER")]
        at: String,
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
                What::New { name, scope, agent, tenant, bare } => {
                    let tenant = tenant.as_deref();
                    make(&place, NewKey { name: &name, scopes: &scope, agents: some(agent), tenant, at: now() }, bare)
                        .await?;
                }
                What::Link { key, at } => link(&place, key.as_deref(), &at).await?,
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

fn some(agents: Vec<String>) -> Option<Vec<String>> {
    Some(agents).filter(|agents| !agents.is_empty())
}

async fn make(place: &Place, new: NewKey<'_>, bare: bool) -> Result<(), Failure> {
    let mut scopes = if new.scopes.is_empty() { vec![Scope::Run, Scope::Read] } else { new.scopes.to_vec() };
    scopes.sort_unstable();
    scopes.dedup();
    let refused = |why| Failure::usage(why, "`gesta keys new --help` says what a key may be");
    let (shown, key) = new_key(NewKey { scopes: &scopes, ..new }).map_err(refused)?;
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
    let mut keys = place.front().keys().await?;
    keys.retain(|key| key.link_to.is_none());
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

async fn link(place: &Place, named: Option<&str>, at: &str) -> Result<(), Failure> {
    let keys = place.front().keys().await?;
    let Some(key) = chosen(&keys, named) else {
        let what = named.map_or_else(|| "there is no key".to_owned(), |name| format!("there is no good key `{name}`"));
        return Err(Failure::usage(what, "`gesta keys list` shows them, `gesta keys new NAME` makes one"));
    };
    let address = link_for(place, key, at).await?;
    let mut screen = Screen::stdout();
    screen.line(Look::Strong, &address);
    let whose = format!("lets in whoever has the key {} ({}), once, within ten minutes", key.id, key.name);
    Screen::stderr().line(Look::Faint, &whose);
    Ok(())
}

/// The key that a link is for: the one that is named, else the oldest that is good, those with admin first.
pub(super) fn chosen<'a>(keys: &'a [ApiKey], named: Option<&str>) -> Option<&'a ApiKey> {
    let good = || keys.iter().filter(|key| key.link_to.is_none() && key.is_good(now()));
    match named {
        Some(name) => good().find(|key| key.id == name || key.name == name),
        None => {
            let is_admin = |key: &&ApiKey| key.scopes.iter().any(|it| it == Scope::Admin.as_str());
            let own = || good().filter(|key| key.tenant == TENANT_LOCAL);
            own().find(is_admin).or_else(|| own().next()).or_else(|| good().next())
        }
    }
}

/// Makes a link for whoever has this key, at this server.
pub(super) async fn link_for(place: &Place, key: &ApiKey, at: &str) -> Result<String, Failure> {
    let no_dice = |why| Failure::new(Exit::Other, why, "try again");
    let (end, link) = new_link(key, now()).map_err(no_dice)?;
    place.front().put_key(link).await?;
    Ok(format!("{}{end}", at.trim_end_matches('/')))
}

fn line_of(key: &ApiKey) -> String {
    let agents = key.agents.as_ref().map_or_else(|| "all agents".to_owned(), |agents| agents.join(", "));
    let state = match key.revoked_at {
        Some(at) => format!("taken back {}", moment(at)),
        None => format!("made {}", moment(key.created_at)),
    };
    let tenant = Some(&key.tenant).filter(|name| *name != TENANT_LOCAL);
    let tenant = tenant.map(|name| format!("tenant {name}  ")).unwrap_or_default();
    format!("{}  {}  {}  {agents}  {tenant}{state}", key.id, key.name, key.scopes.join(", "))
}
