//! A server on loopback for each test, and a client that checks every answer against the server's own description.

mod client;
mod described;
mod gate;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gesta_model::Lookup;
use gesta_run::Timestamp;
use gesta_runtime::folder::Folder;
use gesta_server::{Hosts, Limits, NewKey, Scope, Served, Server, Setup, Webhook};
use gesta_store::{Keys, Secrets, Sqlite, StoreOptions};
use gesta_telemetry::Traces;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) use client::{Answer, Client, Said};
pub(crate) use gate::Gate;

/// A server and its data, which outlast each other.
pub(crate) struct World {
    data: TempDir,
    folders: Vec<PathBuf>,
    serving: Option<Serving>,
    limits: Limits,
    needs_keys: bool,
    proxies: Vec<IpAddr>,
    webhook: Option<(String, String)>,
    traces: Option<Traces>,
}

struct Serving {
    store: Sqlite,
    client: Client,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<std::io::Result<usize>>,
}

impl World {
    /// A server for these folders.
    pub(crate) async fn of(folders: &[PathBuf]) -> Self {
        Self::with(folders, Limits::default()).await
    }

    pub(crate) async fn with(folders: &[PathBuf], limits: Limits) -> Self {
        let mut world = Self {
            data: TempDir::new().unwrap(),
            folders: folders.to_vec(),
            serving: None,
            limits,
            needs_keys: false,
            proxies: Vec::new(),
            webhook: None,
            traces: None,
        };
        world.start().await;
        world
    }

    /// A server for the support desk among the examples.
    pub(crate) async fn desk() -> Self {
        Self::of(&[example("desk")]).await
    }

    /// A server that tells somebody.
    pub(crate) async fn telling(folders: &[PathBuf], url: &str, secrets: &str) -> Self {
        let mut world = Self::of(folders).await;
        world.tell(url, secrets).await;
        world
    }

    /// From now on somebody is told.
    pub(crate) async fn tell(&mut self, url: &str, secrets: &str) {
        self.stop().await;
        self.webhook = Some((url.to_owned(), secrets.to_owned()));
        self.start().await;
    }

    /// A server whose runs are traced.
    pub(crate) async fn traced(folders: &[PathBuf], traces: Traces) -> Self {
        let mut world = Self::of(folders).await;
        world.stop().await;
        world.traces = Some(traces);
        world.start().await;
        world
    }

    /// A server that needs keys.
    pub(crate) async fn locked(folders: &[PathBuf]) -> Self {
        let mut world = Self::of(folders).await;
        world.stop().await;
        world.needs_keys = true;
        world.start().await;
        world
    }

    /// A client with a fresh key, and the key's id.
    pub(crate) async fn keyed(&self, scopes: &[Scope], agents: Option<&[&str]>) -> (Client, String) {
        self.keyed_of(None, scopes, agents).await
    }

    /// The same, for this tenant.
    pub(crate) async fn keyed_of(
        &self,
        tenant: Option<&str>,
        scopes: &[Scope],
        agents: Option<&[&str]>,
    ) -> (Client, String) {
        let agents = agents.map(|agents| agents.iter().map(|it| (*it).to_owned()).collect());
        let new = NewKey { name: "test", scopes, agents, tenant, at: Timestamp(1) };
        let (shown, key) = gesta_server::new_key(new).unwrap();
        let store = &self.serving.as_ref().unwrap().store;
        store.put_key(key.clone()).await.unwrap();
        (self.client().with("authorization", &format!("Bearer {shown}")), key.id)
    }

    /// From the next start on it is reached through these.
    pub(crate) fn behind(&mut self, proxies: &[&str]) {
        self.proxies = proxies.iter().map(|it| it.parse().unwrap()).collect();
    }

    /// From the next start on with these limits.
    pub(crate) fn limit(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Where its data is.
    pub(crate) fn data(&self) -> &Path {
        self.data.path()
    }

    /// The store while no server has it.
    pub(crate) async fn with_store(&self, work: impl AsyncFnOnce(&Sqlite)) {
        let store = Sqlite::open(self.data.path(), StoreOptions::default()).await.unwrap();
        work(&store).await;
        store.close().await;
    }

    /// All files of its data folder.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.data.path()).unwrap();
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect()
    }

    /// The store of the server.
    pub(crate) fn store(&self) -> &Sqlite {
        &self.serving.as_ref().unwrap().store
    }

    pub(crate) async fn start(&mut self) {
        let store = Sqlite::open(self.data.path(), StoreOptions::default()).await.unwrap();
        let env: Lookup = Arc::new(|_| None);
        let served = |dir: &PathBuf| Served { folder: Folder::load(dir, &*env).unwrap(), env: env.clone() };
        let data = self.data.path().to_owned();
        let setup = Setup {
            agents: self.folders.iter().map(served).collect(),
            store: Arc::new(store.clone()),
            secrets: Arc::new(move || Secrets::load(None, &data)),
            needs_keys: self.needs_keys,
            hosts: Hosts { local: true, proxies: self.proxies.clone(), ..Hosts::default() },
            webhook: self.webhook.as_ref().map(|(url, secrets)| {
                let mut webhook = Webhook::new(url, secrets, &env).unwrap();
                webhook.retries = vec![Duration::ZERO; 3];
                webhook
            }),
            traces: self.traces.clone(),
            limits: self.limits.clone(),
        };
        let server = Server::new(setup).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = Client::new(listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let kept = store.clone();
        let ended = tokio::spawn(async move {
            let left = server.serve(listener, async { drop(stopped.await) }).await;
            store.close().await;
            left
        });
        self.serving = Some(Serving { store: kept, client, stop, ended });
    }

    /// Stops the server as a signal would. Gives how many runs it let go of.
    pub(crate) async fn stop(&mut self) -> usize {
        let serving = self.serving.take().unwrap();
        let _ = serving.stop.send(());
        serving.ended.await.unwrap().unwrap()
    }

    pub(crate) fn client(&self) -> Client {
        self.serving.as_ref().unwrap().client.clone()
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.client().get(path).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.client().post(path, body).await
    }

    /// A run of the desk that waits for a person, and its hold.
    pub(crate) async fn parked(&self) -> (String, Value) {
        let body = json!({ "input": "Refund order 7, 250 dollars" });
        let run = self.post("/v1/agents/desk/runs", body).await.ok();
        assert_eq!(run["status"], "parked", "{run}");
        (run["report"]["run_id"].as_str().unwrap().to_owned(), run["deferred"][0].clone())
    }
}

/// One of the examples of the repository.
pub(crate) fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

/// Folders of agents that a test writes itself.
pub(crate) struct Folders {
    dir: TempDir,
}

impl Folders {
    pub(crate) fn new() -> Self {
        Self { dir: TempDir::new().unwrap() }
    }

    /// An agent with a scripted model.
    pub(crate) fn agent(&self, name: &str, more: &str, script: &str) -> PathBuf {
        let dir = self.dir.path().join(name);
        std::fs::create_dir_all(&dir).unwrap();
        let toml = format!("name = \"{name}\"\nmodel = \"script\"\n{more}\n");
        std::fs::write(dir.join("agent.toml"), toml).unwrap();
        std::fs::write(dir.join("prompt.md"), "You are brief.").unwrap();
        std::fs::write(dir.join("model.script"), script).unwrap();
        dir
    }
}
