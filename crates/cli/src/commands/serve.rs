//! `gesta serve`: agents over HTTP, until a signal ends it.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use gesta_server::{Hosts, Limits, Served, Server, Setup, Webhook, WebhookError};
use gesta_store::ApiKey;
use gesta_telemetry::{Exporter, Settings, Traces, redact};
use tokio::net::TcpListener;

use super::Globals;
use super::keys::{chosen, link_for};
use crate::environment::Environment;
use crate::exit::{Ended, Exit, Failure};
use crate::logs::LogFormat;
use crate::place::{Place, agent_folder};
use crate::terminal::{Look, Screen};

/// Serve agents over HTTP
///
/// Any number of agents' folders, behind the paths that /openapi.json describes. Runs and conversations are kept in the
/// data folder. Without a key (`gesta keys new NAME`) this machine alone reaches it; with one, nobody is answered without,
/// and a link is printed that lets its owner into the console once. The first SIGTERM or Ctrl-C lets what goes on come to its end, the second ends at once; a run that is
/// cut off is taken up at the next start.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesta serve examples/desk
  gesta serve agents/* --listen 127.0.0.1:8080
  curl -s localhost:7450/v1/agents/desk/runs -H 'content-type: application/json' \\
       -d '{\"input\":\"Refund order 7, 250 dollars\"}'")]
pub(crate) struct Serve {
    /// The agents' folders
    #[arg(required = true, value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// Where to listen
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7450", env = "GESTA_LISTEN")]
    listen: SocketAddr,
    /// A name by which the server is called, beside its address; once for each
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// An origin whose pages may ask the server, beside its own; once for each
    #[arg(long, value_name = "ORIGIN")]
    origin: Vec<String>,
    /// The address of a proxy whose X-Forwarded-For and X-Forwarded-Proto are believed; once for each
    #[arg(long, value_name = "ADDRESS")]
    proxy: Vec<IpAddr>,
    /// Tell this address when a hold is opened or about to expire, and when a run has ended; signed with the secrets
    /// of GESTA_WEBHOOK_SECRET
    #[arg(long, value_name = "URL", env = "GESTA_WEBHOOK_URL", hide_env_values = true)]
    webhook: Option<String>,
    /// Seconds that a stopping server waits for what goes on
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    stop_wait: u64,
    /// Runs that may go on at the same time
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    runs_max: usize,
    /// Requests a second that one key may make, or one address where there are no keys; four times as many at once
    #[arg(long, value_name = "N", default_value_t = Limits::default().rate_max)]
    rate_max: NonZeroU32,
    /// How the log is written; GESTA_LOG says what
    #[arg(long, value_name = "FORMAT", default_value = "text", env = "GESTA_LOG_FORMAT")]
    pub(crate) log_format: LogFormat,
}

/// How many sockets a run needs: its client's and its model's.
#[cfg(unix)]
const FILES_A_RUN: u64 = 2;
/// How many files the process needs beside its runs: store, workers, listeners.
#[cfg(unix)]
const FILES_BESIDE: u64 = 64;

/// How long the last spans have to be taken.
const FLUSH: Duration = Duration::from_secs(5);

impl Serve {
    pub(crate) fn run(self, globals: &Globals) -> Ended {
        let environment = Environment::default();
        let mut agents = Vec::new();
        for dir in &self.folders {
            let folder = agent_folder(dir, &environment)?;
            let env_file = dir.join(".env");
            let env = if env_file.is_file() { environment.clone().and_file(&env_file)? } else { environment.clone() };
            agents.push(Served { folder, env: env.lookup() });
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(|why| {
            Failure::new(Exit::Other, format!("no threads can be started: {why}"), "free some memory or files")
        })?;
        let place = runtime.block_on(Place::open(globals, None))?;
        let keys = runtime.block_on(self.keys(&place))?;
        let hosts = Hosts {
            local: self.listen.ip().is_loopback(),
            names: self.host.clone(),
            origins: self.origin.clone(),
            proxies: self.proxy.clone(),
        };
        let exporter = {
            let _within = runtime.enter();
            self.exporter(&environment)?
        };
        let traces = exporter.as_ref().map(|(exporter, content)| traces(exporter, *content, &place)).transpose()?;
        let keeper = place.clone();
        let (runs_max, rate_max) = (self.runs_max, self.rate_max);
        let limits = Limits { runs_max, rate_max, stop_wait: Duration::from_secs(self.stop_wait), ..Limits::default() };
        let setup = Setup {
            agents,
            store: place.tenants(),
            secrets: Arc::new(move || keeper.secrets()),
            needs_keys: !keys.is_empty(),
            hosts,
            webhook: self.webhook()?,
            traces,
            limits,
        };
        let ended = runtime.block_on(async {
            let ended = self.serve(setup, place, &keys).await;
            if let Some((exporter, _)) = exporter {
                exporter.finish(FLUSH).await;
            }
            ended
        });
        runtime.shutdown_background();
        ended
    }

    /// Lets the process have as many open files as the system grants it, and says where that is not enough: each run that
    /// goes on needs a socket to its client and one to its model.
    fn allow_files(&self) -> Option<String> {
        #[cfg(unix)]
        {
            use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
            let maximum = getrlimit(Resource::Nofile).maximum;
            // Where it is refused, what there was before is what there is, and is looked at below.
            let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
            let files = getrlimit(Resource::Nofile).current?;
            let runs = files.saturating_sub(FILES_BESIDE) / FILES_A_RUN;
            let few = usize::try_from(runs).is_ok_and(|runs| runs < self.runs_max);
            few.then(|| {
                format!("only {files} files may be open, enough for {runs} runs at once; raise `ulimit -n`, or lower --runs-max")
            })
        }
        #[cfg(not(unix))]
        None
    }

    /// What sends spans, where OpenTelemetry's variables name a collector; and whether what was said goes along.
    fn exporter(&self, environment: &Environment) -> Result<Option<(Exporter, bool)>, Failure> {
        let lookup = |name: &str| environment.get(name);
        let help = "docs/guides/observability.md names the variables";
        let settings = Settings::from_lookup(&lookup).map_err(|why| Failure::usage(why.to_string(), help))?;
        let Some(mut settings) = settings else { return Ok(None) };
        settings.describe("service.version", env!("CARGO_PKG_VERSION").to_owned());
        self.say(Look::Faint, &format!("traces go to {}", settings.endpoint.host().unwrap_or_default()));
        let content = settings.content;
        if content {
            self.say(Look::Warn, "what is said goes along with the traces, because the environment asks for it");
        }
        Ok(Some((Exporter::start(settings, &lookup), content)))
    }

    /// Says something to whoever started the server: in the log, where that is for programs.
    fn say(&self, look: Look, text: &str) {
        match (self.log_format, look) {
            (LogFormat::Text, _) => Screen::stderr().line(look, text),
            (LogFormat::Json, Look::Warn) => tracing::warn!(target: "gesta", "{text}"),
            (LogFormat::Json, _) => tracing::info!(target: "gesta", "{text}"),
        }
    }

    fn webhook(&self) -> Result<Option<Webhook>, Failure> {
        let Some(url) = &self.webhook else { return Ok(None) };
        let environment = Environment::default();
        let secrets = environment.get("GESTA_WEBHOOK_SECRET").unwrap_or_default();
        let help =
            "set GESTA_WEBHOOK_SECRET to `whsec_` and the base64 of 24 to 64 random bytes, and name an https address";
        let refused = |why: WebhookError| Failure::usage(why.to_string(), help);
        Webhook::new(url, &secrets, &environment.lookup()).map(Some).map_err(refused)
    }

    /// The keys there are, those that were taken back too: with any, clients need one. Without one nobody but this machine
    /// may reach the server, by whatever name and from whatever page.
    async fn keys(&self, place: &Place) -> Result<Vec<ApiKey>, Failure> {
        let keys = place.front().keys().await?;
        if !keys.is_empty() {
            return Ok(keys);
        }
        let from_outside = [
            (!self.listen.ip().is_loopback()).then(|| self.listen.to_string()),
            self.host.iter().find(|name| !is_here(name)).map(|name| format!("--host {name}")),
            self.origin.iter().find(|origin| !is_here(host_of(origin))).map(|origin| format!("--origin {origin}")),
            self.proxy.first().map(|proxy| format!("--proxy {proxy}")),
        ];
        let Some(what) = from_outside.into_iter().flatten().next() else { return Ok(keys) };
        let what = format!("with {what} it can be reached from outside, and there is no key to it");
        let help = format!("make one with `gesta keys new NAME{}`, or keep to 127.0.0.1", place.flag);
        Err(Failure::usage(what, help))
    }

    /// Says who reaches it, and how somebody comes in.
    async fn say_who(&self, place: &Place, keys: &[ApiKey], at: SocketAddr) -> Result<(), Failure> {
        let flag = &place.flag;
        if keys.is_empty() {
            let make = format!("`gesta keys new NAME{flag}` makes one");
            self.say(Look::Faint, &format!("reached from this machine alone, without a key; {make}"));
            return Ok(());
        }
        let from = if at.ip().is_loopback() { "from this machine alone" } else { "from outside" };
        self.say(Look::Faint, &format!("reached {from}, with a key"));
        let Some(key) = chosen(keys, None) else {
            let make = format!("`gesta keys new NAME{flag}` makes one");
            self.say(Look::Warn, &format!("all keys were taken back, so nobody is answered; {make}"));
            return Ok(());
        };
        let here = match (self.host.iter().find(|name| !is_here(name)), at.ip().is_unspecified()) {
            (Some(name), _) => format!("https://{name}"),
            (None, true) => format!("http://127.0.0.1:{}", at.port()),
            (None, false) => format!("http://{at}"),
        };
        // Logs for programs are kept and sent on: what lets somebody in does not belong there.
        if matches!(self.log_format, LogFormat::Json) {
            self.say(Look::Faint, &format!("`gesta keys link{flag}` makes a link to the console"));
            return Ok(());
        }
        let link = link_for(place, key, &here).await?;
        let how = format!("the console, once and within ten minutes, as {} ({}): {link}", key.name, key.id);
        self.say(Look::Faint, &how);
        Ok(())
    }

    async fn serve(&self, setup: Setup, place: Place, keys: &[ApiKey]) -> Ended {
        let kept: Vec<String> = setup.agents.iter().map(kept).collect();
        let server = Server::new(setup).map_err(|why| {
            Failure::usage(why.to_string(), "`gesta check FOLDER` looks at an agent").coded("agent_invalid")
        })?;
        let listener = TcpListener::bind(self.listen).await.map_err(|why| {
            let help = "name another one with --listen, or end the process that has it";
            Failure::usage(format!("{} cannot be listened on: {why}", self.listen), help)
        })?;
        let at = listener.local_addr().unwrap_or(self.listen);
        let names: Vec<&str> = server.agents().collect();
        self.say(Look::Strong, &format!("serving {} on http://{at}", names.join(", ")));
        self.say_who(&place, keys, at).await?;
        kept.iter().for_each(|text| self.say(Look::Faint, text));
        if let Some(few) = self.allow_files() {
            self.say(Look::Warn, &few);
        }
        let stop = async {
            signalled().await;
            self.say(Look::Faint, "stopping; once more ends it at once");
            // Whatever is being written is written whole or not at all: the store sees to that.
            tokio::spawn(async {
                signalled().await;
                std::process::exit(130);
            });
        };
        let served = server.serve(listener, stop).await;
        place.close().await;
        match served {
            Ok(0) => Ok(Exit::Done),
            Ok(left) => {
                let text = format!("{left} runs were cut off; they are taken up at the next start");
                self.say(Look::Warn, &text);
                Ok(Exit::Done)
            }
            Err(why) => Err(Failure::new(Exit::Other, format!("the listener failed: {why}"), "start it again")),
        }
    }
}

/// Whether a name without a port is this machine's for itself.
fn is_here(name: &str) -> bool {
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|it| it.is_loopback())
}

/// The name in an origin, without scheme and port.
fn host_of(origin: &str) -> &str {
    let authority = origin.split_once("://").map_or(origin, |(_, rest)| rest);
    match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => authority.split(':').next().unwrap_or(authority),
    }
}

/// How long is kept what an agent did.
fn kept(served: &Served) -> String {
    let agent = &served.folder.plan.spec.agent;
    match served.folder.storage.keep_ms {
        Some(ms) => format!("what {agent} did is kept for {} after it has ended", length(ms)),
        None => format!("what {agent} did is kept without end; `keep` below [storage] in agent.toml ends it"),
    }
}

/// A length of time in the largest unit that it is whole in.
fn length(ms: u64) -> String {
    let units = [("days", 86_400_000), ("hours", 3_600_000), ("minutes", 60_000), ("seconds", 1_000)];
    let whole = units.into_iter().find(|(_, unit)| ms.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{ms} ms"), |(name, unit)| format!("{} {name}", ms / unit))
}

/// Where spans of runs go. A conversation is known in them by a digest that only this store's keys can make.
fn traces(exporter: &Exporter, content: bool, place: &Place) -> Result<Traces, Failure> {
    let secrets = place.secrets().map_err(|why| {
        Failure::new(Exit::Other, why.to_string(), "mend GESTA_SECRET, or the file `secret` in the data folder")
    })?;
    let alias = move |name: &str| secrets.sign("gesta/trace", name.as_bytes()).get(..32).unwrap_or_default().to_owned();
    let traces = exporter.traces().with_alias(alias);
    Ok(if content { traces.with_content(redact) } else { traces })
}

/// Waits for Ctrl-C, or for SIGTERM where there is such.
async fn signalled() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut term) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = term.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}
