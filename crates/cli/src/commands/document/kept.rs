//! A conversation's document as the store keeps it: read with the keys of this place, written with its next version.

use std::path::PathBuf;

use clap::Args;
use gesta_document::{AddedTool, Image, ImageError, Record, Terms};
use gesta_run::{ConversationId, ToolSpec};
use gesta_runtime::folder::{DocumentPart, Folder};
use gesta_sandbox::{Pool, PoolSettings, Session};
use gesta_store::Secrets;
use serde_json::{Value, json};

use super::told;
use crate::commands::Globals;
use crate::environment::Environment;
use crate::exit::{Exit, Failure};
use crate::place::{Place, agent_folder};
use crate::shell::quoted;

/// Whose document is meant.
#[derive(Debug, Clone, Args)]
pub(super) struct Whose {
    /// The agent's folder, which has the document that every conversation begins with
    pub(super) folder: PathBuf,
    /// The conversation [default: the one that `gesta chat` goes on with]
    #[arg(long, value_name = "NAME")]
    conversation: Option<String>,
}

/// A conversation's document, out of the store.
pub(super) struct Kept {
    pub(super) conversation: ConversationId,
    pub(super) record: Record,
    /// How often it was changed; 0 where the conversation has only what the folder says.
    pub(super) version: u64,
    place: Place,
    secrets: Secrets,
    pool: Pool,
    terms: Terms,
}

impl Whose {
    /// A conversation of an agent.
    pub(super) fn of(folder: PathBuf, conversation: String) -> Self {
        Self { folder, conversation: Some(conversation) }
    }

    /// Reads the document. Nothing of it has run.
    ///
    /// # Errors
    /// The folder has none, or what is stored cannot be read.
    pub(super) async fn read(&self, globals: &Globals) -> Result<Kept, Failure> {
        self.read_or(globals, |why| Err(image(&why))).await
    }

    /// As [`Whose::read`], to put another in its place: what cannot be read counts as the base alone.
    pub(super) async fn read_to_replace(&self, globals: &Globals) -> Result<Kept, Failure> {
        self.read_or(globals, |_| Ok(Image::default())).await
    }

    async fn read_or(
        &self,
        globals: &Globals,
        unreadable: impl Fn(ImageError) -> Result<Image, Failure>,
    ) -> Result<Kept, Failure> {
        let folder = agent_folder(&self.folder, &Environment::default().with_placeholders())?;
        let (document, terms) = self.document(&folder)?;
        let conversation = match &self.conversation {
            Some(name) => ConversationId::new(name.as_str()),
            None => ConversationId::new(format!("chat/{}", folder.settings.plan.agent)),
        };
        let place = Place::open(globals, Some(&folder)).await?;
        let secrets = place.secrets().map_err(|why| {
            let whole = why.to_string();
            let (message, help) = whole.split_once("; ").unwrap_or((&whole, "`gesta doctor` looks at the data folder"));
            Failure::usage(message, help)
        })?;
        let stored = place.store().document(&conversation).await?;
        let version = stored.as_ref().map_or(0, |stored| stored.version);
        let base = document.base.clone();
        let record = match stored {
            Some(stored) => Image::decode(&stored.image, &keys(&secrets)).or_else(unreadable)?.record(&base),
            None => Record { base, ..Record::default() },
        };
        let pool = Pool::new(PoolSettings { warm: 0, ..document.pool() });
        pool.start().await.map_err(|why| told::not_started(&why))?;
        Ok(Kept { conversation, record, version, place, secrets, pool, terms })
    }

    fn document<'a>(&self, folder: &'a Folder) -> Result<(&'a DocumentPart, Terms), Failure> {
        let document = folder.settings.document.as_ref().zip(folder.document_terms());
        document.ok_or_else(|| {
            let help = "write `tools.stof` beside agent.toml: docs/guides/documents.md";
            Failure::usage(format!("{} has no document", self.folder.display()), help)
        })
    }

    /// The file that its base stands in, for messages.
    pub(super) fn file(&self) -> PathBuf {
        self.folder.join("tools.stof")
    }
}

impl Kept {
    /// What programs are told of it: the names of all tools that it offers, and those that were added.
    pub(super) fn listed(&self, specs: &[ToolSpec], added: &[AddedTool]) -> Value {
        let offered: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
        json!({ "conversation": self.conversation, "version": self.version, "offered": offered, "added": added })
    }

    /// The document in a worker.
    pub(super) fn session(&self, record: &Record) -> Session {
        self.pool.session(&format!("kept/{}", self.conversation), record.clone(), self.terms.clone())
    }

    /// The bytes of an image, signed with the first key of this place.
    pub(super) fn encode(&self, record: &Record) -> Result<Vec<u8>, Failure> {
        Image::of(record).encode(&keys(&self.secrets)).map_err(|why| image(&why))
    }

    /// Reads an image that was brought here.
    pub(super) fn decode(&self, bytes: &[u8]) -> Result<Image, ImageError> {
        Image::decode(bytes, &keys(&self.secrets))
    }

    /// Keeps a record as the conversation's document. Gives its version.
    pub(super) async fn put(&self, record: &Record) -> Result<u64, Failure> {
        let bytes = self.encode(record)?;
        Ok(self.place.store().put_document(&self.conversation, self.version, bytes).await?)
    }

    /// Roots of the file that give way to the libraries of grants.
    pub(super) fn stand_ins(&self) -> Vec<String> {
        let mut libraries: Vec<String> = self.terms.grants.iter().map(|grant| grant.name.library.clone()).collect();
        libraries.sort();
        libraries.dedup();
        let is_root = |library: &String| {
            self.record.base.lines().any(|line| {
                let mut words = line.split_whitespace();
                words.next() == Some("root")
                    && words.next().map(|name| name.trim_end_matches([':', '{'])) == Some(library)
            })
        };
        libraries.into_iter().filter(is_root).collect()
    }

    pub(super) async fn close(self) {
        self.place.close().await;
    }

    /// How the conversation is named on a command line.
    pub(super) fn name(&self) -> String {
        quoted(self.conversation.as_str())
    }
}

fn keys(secrets: &Secrets) -> Vec<&[u8]> {
    secrets.keys().collect()
}

/// Why an image cannot be read or written.
pub(super) fn image(why: &ImageError) -> Failure {
    let whole = why.to_string();
    let (message, help) = whole.split_once("; ").unwrap_or((&whole, ""));
    Failure::new(Exit::Usage, message, help).coded("image_unusable")
}
