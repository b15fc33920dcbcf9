//! `gesta fake-model`: a strict model service on this machine, for everybody's tests.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use gesta_fakes::model::{Faults, Options, serve};
use gesta_scene::Script;

use super::Globals;
use crate::exit::{Ended, Exit, Failure};
use crate::terminal::{Look, Screen};

/// Serve a script as a model service that refuses what the real ones would refuse
///
/// Speaks OpenAI Chat Completions and Anthropic Messages, plain and streaming. A history that the real services would
/// refuse is refused, with the reason. `GET /__journal` shows what was asked.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesta fake-model examples/coach/model.script --listen 127.0.0.1:9090
  OPENAI_BASE_URL=http://127.0.0.1:9090/v1 gesta chat examples/coach --model openai:any
  ANTHROPIC_BASE_URL=http://127.0.0.1:9090 gesta chat examples/coach --model anthropic:any
  gesta fake-model a.script --faults 'delay=20ms, drop=10%, seed=7'
  gesta fake-model a.script --faults 'status=429, retry-after=1, once'

Faults: delay=20ms, pace=5ms, cut, cut=40, split, split=3, malformed, stall, hang, status=429, retry-after=2, html,
error-object, error-event, drop, drop=30%, chance=30%, seed=7, once. Ctrl-C ends it.")]
pub(crate) struct FakeModel {
    /// The script: `model:` lines, as in model.script
    script: PathBuf,
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// What goes wrong on purpose, with commas between
    #[arg(long, value_name = "WORDS", default_value = "")]
    faults: Faults,
    /// The key that each request must carry
    #[arg(long)]
    key: Option<String>,
    /// The models that there are; without one every name is taken
    #[arg(long = "name", value_name = "MODEL")]
    models: Vec<String>,
}

impl FakeModel {
    pub(crate) fn run(self, globals: &Globals) -> Ended {
        let text = std::fs::read_to_string(&self.script).map_err(|why| Failure::file(&self.script, &why))?;
        let script = Script::parse(&text).map_err(|why| {
            let message = format!("{}:{}: {}", self.script.display(), why.line, why.reason);
            Failure::usage(message, "docs/scenes.md lists what a script may say")
        })?;
        let (listen, quiet) = (self.listen, globals.quiet);
        let options =
            Options { bind: listen, key: self.key, models: self.models, faults: self.faults, ..Options::default() };
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|why| Failure::usage(format!("no server can run: {why}"), "free some memory"))?;
        runtime.block_on(async {
            let taken = |why: std::io::Error| {
                Failure::usage(format!("cannot listen on {listen}: {why}"), "name another address with --listen")
            };
            let server = serve(script, options).await.map_err(taken)?;
            let mut screen = Screen::stdout();
            // The first line is for programs that wait for it.
            screen.line(Look::Strong, &format!("listening on {}", server.url()));
            if !quiet {
                screen.line(
                    Look::Faint,
                    &format!("OPENAI_BASE_URL={}  ANTHROPIC_BASE_URL={}", server.url_v1(), server.url()),
                );
            }
            screen.flush();
            let pressed = tokio::signal::ctrl_c().await;
            server.shut_down().await;
            Ok(if pressed.is_ok() { Exit::Done } else { Exit::Other })
        })
    }
}
