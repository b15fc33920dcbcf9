//! `gesta doctor`: whether what agents need is there, and what to do about what is not.

use std::path::{Path, PathBuf};

use clap::Args;
use gesta_model::transport::Outgoing;
use gesta_model::{Protocol, Timeouts, Transport, TransportSpec};
use gesta_runtime::folder::Folder;
use gesta_sandbox::{Pool, PoolSettings};
use gesta_store::RunFilter;
use serde::Serialize;

use super::{Globals, wait_for};
use crate::environment::Environment;
use crate::exit::{Ended, Exit, Failure};
use crate::place::{Named, Place, agent_folder, named};
use crate::terminal::{Look, Screen};

/// Look whether keys, providers, data folder and store are there
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesta doctor
  gesta doctor examples/coach             also whether this agent can run
  gesta doctor --offline --json

Keys are never shown, and none is sent. Exit codes: 0 what is needed is there, 1 something is missing.")]
pub(crate) struct Doctor {
    /// An agent's folder whose needs are looked at too
    folder: Option<PathBuf>,
    /// Reach nobody
    #[arg(long)]
    offline: bool,
    /// Print each finding as JSON, one on a line
    #[arg(long)]
    json: bool,
}

/// One thing that was looked at.
#[derive(Debug, Clone, Serialize)]
struct Finding {
    /// What was looked at.
    what: String,
    /// How it is.
    state: State,
    /// What was found.
    found: String,
    /// What to do about it; blank where nothing has to be done.
    help: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Ok,
    /// Not there, and not needed by everybody.
    Unset,
    Missing,
}

impl Finding {
    fn ok(what: &str, found: impl Into<String>) -> Self {
        Self { what: what.to_owned(), state: State::Ok, found: found.into(), help: String::new() }
    }

    fn unset(what: &str, help: impl Into<String>) -> Self {
        Self { what: what.to_owned(), state: State::Unset, found: "not set".to_owned(), help: help.into() }
    }

    fn missing(what: &str, found: impl Into<String>, help: impl Into<String>) -> Self {
        Self { what: what.to_owned(), state: State::Missing, found: found.into(), help: help.into() }
    }
}

/// A provider that is looked at: its name, its key's variable, its address and the variable that changes it.
const PROVIDERS: [(&str, &str, &str, &str); 2] = [
    ("openai", "OPENAI_API_KEY", "https://api.openai.com/v1", "OPENAI_BASE_URL"),
    ("anthropic", "ANTHROPIC_API_KEY", "https://api.anthropic.com", "ANTHROPIC_BASE_URL"),
];

impl Doctor {
    pub(crate) fn run(self, globals: &Globals) -> Ended {
        wait_for(async {
            let mut environment = Environment::default();
            let mut findings = vec![Finding::ok("version", env!("CARGO_PKG_VERSION"))];
            let mut providers = Served::built_in(&environment);
            if let Some(dir) = &self.folder {
                let dotenv = dir.join(".env");
                if dotenv.is_file() {
                    environment = environment.and_file(&dotenv)?;
                }
                let (finding, folder) = agent(dir, &environment);
                findings.push(finding);
                providers = Served::built_in(&environment);
                if let Some(folder) = folder {
                    providers = Served::of_agent(&folder, providers);
                }
            }
            findings.extend(storage(globals, self.offline).await);
            findings.push(workers().await);
            for it in providers {
                let set = |key: &String| environment.get(key).is_some_and(|key| !key.trim().is_empty());
                findings.extend(it.key.as_ref().map(|key| match (set(key), &it.elsewhere) {
                    (true, _) => Finding::ok(key, "set"),
                    (false, Some(base)) => Finding::ok(key, format!("not set, and {base} names another server")),
                    (false, None) => {
                        Finding::unset(key, format!("set it to use `{}:…`; `script` needs no key", it.name))
                    }
                }));
                let usable = it.key.as_ref().is_none_or(set) || it.elsewhere.is_some();
                if usable && !self.offline {
                    findings.push(reach(&it.name, &it.url, &environment).await);
                }
            }
            let missing = findings.iter().any(|finding| finding.state == State::Missing);
            self.print(&findings);
            Ok(if missing { Exit::Other } else { Exit::Done })
        })
    }

    fn print(&self, findings: &[Finding]) {
        let mut screen = Screen::stdout();
        let width = findings.iter().map(|finding| finding.what.chars().count()).max().unwrap_or(0);
        for finding in findings {
            if self.json {
                screen.json(finding);
                continue;
            }
            let (look, word) = match finding.state {
                State::Ok => (Look::Good, "ok     "),
                State::Unset => (Look::Faint, "unset  "),
                State::Missing => (Look::Bad, "missing"),
            };
            screen.text(look, word);
            screen.line_on(&format!("  {:<width$}  {}", finding.what, finding.found));
            if !finding.help.is_empty() {
                screen.line(Look::Faint, &format!("         {:<width$}  help: {}", "", finding.help));
            }
        }
    }
}

/// A provider that is looked at.
struct Served {
    name: String,
    /// The variable with its key, where it takes one.
    key: Option<String>,
    url: String,
    /// What names another server than the provider's own, which may need no key.
    elsewhere: Option<&'static str>,
}

impl Served {
    fn built_in(environment: &Environment) -> Vec<Self> {
        let served = |(name, key, url, base): (&str, &str, &str, &'static str)| {
            let address = environment.get(base).filter(|url| !url.trim().is_empty());
            Self {
                name: name.to_owned(),
                key: Some(key.to_owned()),
                elsewhere: address.is_some().then_some(base),
                url: address.unwrap_or_else(|| url.to_owned()),
            }
        };
        PROVIDERS.into_iter().map(served).collect()
    }

    /// The one that the agent's model is asked of: its folder's own, or one of these. None where it is a script.
    fn of_agent(folder: &Folder, built_in: Vec<Self>) -> Vec<Self> {
        let name = folder.settings.plan.model.split(':').next().unwrap_or_default();
        let Some(spec) = folder.settings.providers.get(name) else {
            return built_in.into_iter().filter(|it| it.name == name).collect();
        };
        let [(_, _, openai, _), (_, _, anthropic, _)] = PROVIDERS;
        let own = if spec.protocol == Protocol::Anthropic { anthropic } else { openai };
        let url = spec.base_url.clone().unwrap_or_else(|| own.to_owned());
        vec![Self { name: name.to_owned(), key: spec.api_key_env.clone(), url, elsewhere: None }]
    }
}

fn agent(dir: &Path, environment: &Environment) -> (Finding, Option<Folder>) {
    match agent_folder(dir, environment) {
        Ok(folder) => {
            let plan = &folder.settings.plan;
            let found = format!("{} with {} tools, model {}", plan.agent, plan.tools.len(), plan.model);
            (Finding::ok("agent", found), Some(folder))
        }
        Err(failure) => {
            let found = std::iter::once(failure.message).chain(failure.details).collect::<Vec<_>>().join("; ");
            (Finding::missing("agent", found, failure.help), None)
        }
    }
}

/// Whether documents of tools can run here, and within which walls.
async fn workers() -> Finding {
    let pool = Pool::new(PoolSettings { warm: 0, ..PoolSettings::default() });
    match pool.start().await {
        Ok(walls) => Finding::ok("document workers", walls.to_string()),
        Err(why) => Finding { state: State::Unset, ..Finding::missing("document workers", why.to_string(), "") },
    }
}

async fn storage(globals: &Globals, offline: bool) -> Vec<Finding> {
    let Named { folder, server } = match named(globals, None) {
        Ok(named) => named,
        Err(failure) => return vec![Finding::missing("data folder", failure.message, failure.help)],
    };
    let folder = gesta_store::data_folder(folder.as_deref()).and_then(|data| {
        gesta_store::writable(&data)?;
        Ok(data)
    });
    let data = match folder {
        Ok(data) => Finding::ok("data folder", data.display().to_string()),
        Err(why) => of_failure("data folder", why.into()),
    };
    if server.is_some() && offline {
        return vec![data, Finding::ok("store", "PostgreSQL, by DATABASE_URL; it was not asked")];
    }
    let mut findings = vec![data, store(globals).await];
    if server.is_some() && Environment::default().get("GESTA_SECRET").is_none() {
        findings
            .push(Finding::unset("GESTA_SECRET", "set it where documents are kept on a server, the same everywhere"));
    }
    findings
}

/// What a folder holds that nothing was ever kept in.
const NOTHING: &str = "SQLite, made when it is needed";

async fn store(globals: &Globals) -> Finding {
    let counted = async {
        let Some(place) = Place::open_if_there(globals).await? else { return Ok((NOTHING.to_owned(), 0)) };
        let runs = place.store().runs(&RunFilter::default()).await?;
        let what = place.what();
        let sound = place.check().await;
        place.close().await;
        sound.map(|()| (what, runs.len()))
    };
    match counted.await {
        Ok((what, runs)) if runs >= gesta_store::PAGE_MAX as usize => {
            Finding::ok("store", format!("{what}, many runs"))
        }
        Ok((what, runs)) => Finding::ok("store", format!("{what}, {runs} run{}", if runs == 1 { "" } else { "s" })),
        Err(failure) => of_failure("store", failure),
    }
}

/// A failure whose way out is this command again names another one.
fn of_failure(what: &str, failure: Failure) -> Finding {
    let help = if failure.help.contains("gesta doctor") {
        "look at the disk: its free space, how it is mounted, who may write; or name another folder with --data".into()
    } else {
        failure.help
    };
    Finding::missing(what, failure.message, help)
}

/// How long a provider may take to answer at all, in milliseconds.
const REACH_MS: u64 = 5_000;
/// How much of its answer is looked at, in bytes.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Whether someone answers at an address. No key is sent.
async fn reach(name: &str, url: &str, environment: &Environment) -> Finding {
    let what = format!("{name} server");
    let help = "look at the network, at HTTPS_PROXY and at SSL_CERT_FILE";
    let Ok(uri) = url.parse() else {
        return Finding::missing(&what, format!("{url} is no address"), "write https://HOST/PATH");
    };
    let lookup = environment.lookup();
    let transport = Transport::new(TransportSpec { lookup: Some(&*lookup), ..TransportSpec::default() });
    let request =
        Outgoing { method: http::Method::GET, uri, headers: http::HeaderMap::new(), body: Default::default() };
    let timeouts = Timeouts { connect_ms: REACH_MS, first_byte_ms: REACH_MS, idle_ms: REACH_MS, whole_ms: REACH_MS };
    match transport.send(&request, timeouts, ANSWER_BYTES_MAX).await {
        Ok(answer) => Finding::ok(&what, format!("{url} answers (status {})", answer.status.as_u16())),
        Err(why) => Finding::missing(&what, format!("{url}: {why}"), help),
    }
}
