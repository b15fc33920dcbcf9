//! `gesta serve`: agents over HTTP, until a signal ends it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use gesta_server::{Hosts, Limits, Served, Server, Setup, Webhook, WebhookError};
use tokio::net::TcpListener;

use super::Globals;
use crate::environment::Environment;
use crate::exit::{Ended, Exit, Failure};
use crate::place::{Place, agent_folder};
use crate::terminal::{Look, Screen};

/// Serve agents over HTTP
///
/// Any number of agents' folders, behind the paths that /openapi.json describes. Runs and conversations are kept in the
/// data folder. The first SIGTERM or Ctrl-C lets what goes on come to its end, the second ends at once; a run that is
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
    /// Tell this address when a hold is opened or about to expire, and when a run has ended; signed with the secrets
    /// of GESTA_WEBHOOK_SECRET
    #[arg(long, value_name = "URL", env = "GESTA_WEBHOOK_URL")]
    webhook: Option<String>,
    /// Seconds that a stopping server waits for what goes on
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    stop_wait: u64,
    /// Runs that may go on at the same time
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    runs_max: usize,
}

/// How many sockets a run needs: its client's and its model's.
#[cfg(unix)]
const FILES_A_RUN: u64 = 2;
/// How many files the process needs beside its runs: store, workers, listeners.
#[cfg(unix)]
const FILES_BESIDE: u64 = 64;

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
        let needs_keys = runtime.block_on(self.needs_keys(&place))?;
        let hosts =
            Hosts { local: self.listen.ip().is_loopback(), names: self.host.clone(), origins: self.origin.clone() };
        let keeper = place.clone();
        let limits =
            Limits { runs_max: self.runs_max, stop_wait: Duration::from_secs(self.stop_wait), ..Limits::default() };
        let setup = Setup {
            agents,
            store: place.store(),
            front: place.front(),
            secrets: Arc::new(move || keeper.secrets()),
            needs_keys,
            hosts,
            webhook: self.webhook()?,
            limits,
        };
        let ended = runtime.block_on(self.serve(setup, place));
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

    fn webhook(&self) -> Result<Option<Webhook>, Failure> {
        let Some(url) = &self.webhook else { return Ok(None) };
        let environment = Environment::default();
        let secrets = environment.get("GESTA_WEBHOOK_SECRET").unwrap_or_default();
        let help =
            "set GESTA_WEBHOOK_SECRET to `whsec_` and the base64 of 24 to 64 random bytes, and name an https address";
        let refused = |why: WebhookError| Failure::usage(why.to_string(), help);
        Webhook::new(url, &secrets, &environment.lookup()).map(Some).map_err(refused)
    }

    /// Whether clients need a key: as soon as there is one. Without one nobody but this machine may reach the server.
    async fn needs_keys(&self, place: &Place) -> Result<bool, Failure> {
        let has_keys = place.front().keys().await?.iter().any(|key| key.revoked_at.is_none());
        if has_keys || self.listen.ip().is_loopback() {
            return Ok(has_keys);
        }
        let what = format!("{} can be reached from outside, and there is no key to it", self.listen);
        let help = format!("make one with `gesta keys new NAME{}`, or listen on 127.0.0.1", place.flag);
        Err(Failure::usage(what, help))
    }

    async fn serve(&self, setup: Setup, place: Place) -> Ended {
        let needs_keys = setup.needs_keys;
        let server = Server::new(setup).map_err(|why| {
            Failure::usage(why.to_string(), "`gesta check FOLDER` looks at an agent").coded("agent_invalid")
        })?;
        let listener = TcpListener::bind(self.listen).await.map_err(|why| {
            let help = "name another one with --listen, or end the process that has it";
            Failure::usage(format!("{} cannot be listened on: {why}", self.listen), help)
        })?;
        let at = listener.local_addr().unwrap_or(self.listen);
        let names: Vec<&str> = server.agents().collect();
        let mut screen = Screen::stderr();
        screen.line(Look::Strong, &format!("serving {} on http://{at}", names.join(", ")));
        let who = match (needs_keys, at.ip().is_loopback()) {
            (true, true) => "reached from this machine alone, with a key",
            (true, false) => "reached from outside, with a key",
            (false, _) => "reached from this machine alone, without a key; `gesta keys new NAME` makes one",
        };
        screen.line(Look::Faint, who);
        if let Some(few) = self.allow_files() {
            screen.line(Look::Warn, &few);
        }
        let stop = async {
            signalled().await;
            Screen::stderr().line(Look::Faint, "stopping; once more ends it at once");
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
                screen.line(Look::Warn, &text);
                Ok(Exit::Done)
            }
            Err(why) => Err(Failure::new(Exit::Other, format!("the listener failed: {why}"), "start it again")),
        }
    }
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
