//! Many runs at once, over HTTP, against the real program and a model that takes its time: whether each ends as it should,
//! what the program adds to the model's own time, and whether its memory stays level.
//!
//! `cargo xtask test --only load` runs it for seconds, `cargo xtask soak load` for minutes.
#![allow(clippy::print_stdout)]

#[path = "load/asking.rs"]
mod asking;
#[path = "load/measured.rs"]
mod measured;
#[path = "load/program.rs"]
mod program;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use gesta_fakes::model::{Faults, Options, serve};
use gesta_scene::Script;
use tokio::task::JoinHandle;

use asking::{Asked, Whom};
use measured::Measured;
use program::Program;

/// Many runs at once, against a slow model.
#[derive(Debug, Parser)]
struct Load {
    /// The program `gesta`
    #[arg(long)]
    gesta: PathBuf,
    /// Runs at the same time
    #[arg(long, default_value_t = 50)]
    at_once: u32,
    /// How long new runs are begun
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// How long the model waits before each answer
    #[arg(long, default_value_t = 500)]
    delay_ms: u64,
    /// How long it waits between two pieces of an answer
    #[arg(long, default_value_t = 10)]
    pace_ms: u64,
}

type Failed = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<ExitCode, Failed> {
    program::allow_files();
    let load = Load::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(load.run())
}

impl Load {
    async fn run(self) -> Result<ExitCode, Failed> {
        let faults = Faults { delay_ms: self.delay_ms, pace_ms: self.pace_ms, ..Faults::default() };
        let script = std::fs::read_to_string(program::root().join("examples/desk/model.script"))?;
        let script = Script::parse(&script).map_err(|why| why.reason.to_string())?;
        let options = Options { faults, journal_entries_max: 10, ..Options::default() };
        let model = serve(script, options).await?;
        let own = asking::own_time(model.address()).await?;
        println!(
            "{} at once for {} s; the model alone takes {} ms for what one run asks",
            self.at_once,
            self.seconds,
            own.as_millis()
        );
        let until = Instant::now() + (own * 3).min(Duration::from_secs(self.seconds));
        let mut alone = Measured::default();
        for asking in self.ask(Whom::Model, model.address(), own, until) {
            alone.add(asking.await?, own);
        }
        println!("the model asked by as many at once is late by {}", alone.added());
        let home = tempfile::tempdir()?;
        let program = Program::start(&self.gesta, home.path(), &model.url_v1(), self.at_once)?;
        let mut measured = Measured::default();
        let until = Instant::now() + Duration::from_secs(self.seconds);
        let asking = self.ask(Whom::Server, program.address(), own, until);
        while Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(500)).await;
            measured.look(&program);
        }
        for asking in asking {
            measured.add(asking.await?, own);
        }
        measured.cpu(&program);
        model.shut_down().await;
        let fine = measured.tell(self.at_once);
        Ok(if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// So many who ask, until the time is up. People do not all speak at the same moment.
    fn ask(&self, whom: Whom, at: SocketAddr, own: Duration, until: Instant) -> Vec<JoinHandle<Asked>> {
        let wait = |nth| own * nth / self.at_once;
        (0..self.at_once).map(|nth| tokio::spawn(asking::ask_until(whom, at, wait(nth), until))).collect()
    }
}
