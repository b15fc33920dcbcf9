//! The documents of conversations, read and changed as they are stored.

use std::collections::BTreeMap;

use gesta_document::{Image, ImageError, Record};
use gesta_run::event::EventKind;
use gesta_run::{ConversationId, RunId};
use gesta_store::RunFilter;

use crate::app::App;
use crate::problem::Problem;

/// A conversation's document, out of the store. Nothing of it has run.
pub(crate) struct Kept {
    conversation: ConversationId,
    /// What it is made of.
    pub(crate) record: Record,
    /// Goes up with each change.
    pub(crate) version: u64,
    /// The agent of the conversation.
    pub(crate) agent: String,
}

impl Kept {
    /// Reads it.
    ///
    /// # Errors
    /// There is no such conversation, its agent has no document here, or what is stored cannot be used.
    pub(crate) async fn read(app: &App, name: &str) -> Result<Self, Problem> {
        Self::read_of(app, name, None).await
    }

    /// The same, where the conversation is with this agent.
    ///
    /// # Errors
    /// As [`Kept::read`]; a conversation of another agent is none.
    pub(crate) async fn read_of(app: &App, name: &str, of: Option<&str>) -> Result<Self, Problem> {
        let conversation = ConversationId::new(name);
        let missing = |what: String| Problem::missing("no_document", what, "look at the conversation");
        // Before its head: what is changed meanwhile has a version behind this one.
        let stored = app.store.document(&conversation).await?;
        let head = app.store.conversation(&conversation).await?;
        let head = head.filter(|head| of.is_none_or(|of| of == head.agent));
        let agent = head.ok_or_else(|| missing(format!("there is no conversation `{name}`")))?.agent;
        let part = app.agents.get(&agent).and_then(|live| live.served.folder.settings.document.as_ref());
        let base = part.ok_or_else(|| missing(format!("the agent `{agent}` has no document here")))?.base.clone();
        let version = stored.as_ref().map_or(0, |stored| stored.version);
        let record = match stored {
            Some(stored) => {
                let secrets = app.sealing().await?;
                let keys: Vec<&[u8]> = secrets.keys().collect();
                Image::decode(&stored.image, &keys).map_err(|why| unusable(&why))?.record(&base)
            }
            None => Record { base, ..Record::default() },
        };
        Ok(Self { conversation, record, version, agent })
    }

    /// Puts it back, changed.
    ///
    /// # Errors
    /// It has changed meanwhile, or cannot be stored.
    pub(crate) async fn keep(self, app: &App) -> Result<u64, Problem> {
        let Self { conversation, record, version, agent: _ } = self;
        let secrets = app.sealing().await?;
        let keys: Vec<&[u8]> = secrets.keys().collect();
        let image = Image::of(&record).encode(&keys).map_err(|why| unusable(&why))?;
        Ok(app.store.put_document(&conversation, version, image).await?)
    }

    /// What the model was last told of each of its tools, as far as the runs tell that offered them: those of the agent's
    /// own file too.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn told(
        &self,
        app: &App,
        authors: impl Iterator<Item = RunId>,
    ) -> Result<BTreeMap<String, String>, Problem> {
        let newest = RunFilter { conversation: Some(self.conversation.clone()), limit: 1, ..RunFilter::default() };
        let newest = app.store.runs(&newest).await?.into_iter().map(|head| head.run);
        let mut told = BTreeMap::new();
        for run in authors.chain(newest) {
            // The run that wrote a tool may be erased for its age while the document stays.
            let Ok(stored) = app.store.load(&run).await else { continue };
            for event in stored.events {
                if let EventKind::Offered { added, .. } = event.what {
                    told.extend(added.into_iter().map(|spec| (spec.name, spec.description)));
                }
            }
        }
        Ok(told)
    }
}

fn unusable(why: &ImageError) -> Problem {
    Problem::conflict("image_unusable", why.to_string(), "look at it with `gesta document`")
}
