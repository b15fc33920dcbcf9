//! One conversation's document for the length of a turn: a working copy, whichever worker has it open.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use gesta_document::{AddedTool, Author, Called, Form, Record, Terms};
use gesta_run::json::Object;
use gesta_run::{Timestamp, ToolSpec};
use tokio::time::timeout;

use crate::pool::{Leased, Opened, Pool};
use crate::protocol::{Answer, Ask, answer_bytes_max};
use crate::talk::{self, Lending, hard_limit};
use crate::worker::{Broken, Worker};
use crate::{Cause, Failure, GrantCall, Grants, NoGrants, Usage};

/// A call of a tool of the document.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// Which tool.
    pub tool: &'a str,
    /// Its arguments by name.
    pub arguments: &'a Object,
    /// How long it may take with all its grants, in milliseconds; waiting for a worker counts too.
    pub time_limit_ms: u64,
    /// Who is to be named as the author of tools that it adds.
    pub author: Option<&'a Author>,
    /// When it is called: the time of tools that it adds.
    pub at: Option<Timestamp>,
}

/// A working copy of a conversation's document.
///
/// Between calls it holds no worker: the pool keeps one for it with the document open, and where that is gone the next
/// call opens the last good state in a fresh one. What is dropped in the middle of a call has not happened to the
/// document, and its worker has ended.
#[derive(Debug)]
pub struct Session {
    pool: Pool,
    document: Opened,
    /// The tools as last described, until something changes.
    specs: Option<Vec<ToolSpec>>,
    left_out: Vec<String>,
}

/// An answer, what was printed meanwhile, and the worker that gave it.
struct Asked {
    answer: Answer,
    log: String,
    leased: Leased,
}

/// Why there is no answer, and what was printed until then.
struct Stopped {
    cause: Cause,
    log: String,
}

impl<T: Into<Cause>> From<T> for Stopped {
    fn from(cause: T) -> Self {
        Self { cause: cause.into(), log: String::new() }
    }
}

impl Stopped {
    fn after(self, grants: Vec<GrantCall>) -> Failure {
        Failure { cause: self.cause, grants, log: self.log }
    }
}

/// How often a worker that turns out to have died before it was asked is replaced by another.
const TRIES_MAX: usize = 3;

impl Pool {
    /// A working copy of a document. `conversation` names whose it is, across all tenants: no process ever sees two.
    pub fn session(&self, conversation: &str, record: Record, terms: Terms) -> Session {
        let document = Opened { conversation: conversation.into(), record: Arc::new(record), terms: Arc::new(terms) };
        Session { pool: self.clone(), document, specs: None, left_out: Vec::new() }
    }
}

impl Session {
    /// The document as it stands after the last call that succeeded.
    pub fn record(&self) -> &Record {
        &self.document.record
    }

    /// Tools that stood in the data of the record as it was last opened, and were not taken: functions come from the base
    /// and the recorded sources alone.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// The tools, as the model is to see them.
    ///
    /// # Errors
    /// The document cannot be opened or does not describe itself.
    pub async fn specs(&mut self) -> Result<Vec<ToolSpec>, Failure> {
        if let Some(specs) = &self.specs {
            return Ok(specs.clone());
        }
        let read = |answer| match answer {
            Answer::Specs { specs } => Ok(specs),
            other => Err(Box::new(other)),
        };
        let specs = self.plainly(&Ask::Specs, read).await?;
        self.specs = Some(specs.clone());
        Ok(specs)
    }

    /// Runs a tool. What it changed and added is in [`Session::record`] afterwards.
    ///
    /// # Errors
    /// As [`Cause`] says; the record is as it was before. Effects of grants stand: [`Failure::grants`] has them.
    pub async fn call(&mut self, call: Call<'_>, grants: &dyn Grants) -> Result<Called, Failure> {
        let ask = Ask::Call { tool: call.tool.into(), arguments: Cow::Borrowed(call.arguments) };
        self.run(&ask, call, grants).await
    }

    /// Runs the functions tagged `#[main]`; [`Call::tool`] and [`Call::arguments`] have no meaning here.
    ///
    /// # Errors
    /// As [`Session::call`].
    pub async fn main(&mut self, call: Call<'_>, grants: &dyn Grants) -> Result<Called, Failure> {
        self.run(&Ask::Main, call, grants).await
    }

    /// Adds a tool on behalf of a person or of the host.
    ///
    /// # Errors
    /// [`Cause::Refused`] with what is wrong and where; as [`Cause`] says.
    pub async fn add_tool(
        &mut self,
        source: &str,
        author: Option<Author>,
        at: Option<Timestamp>,
    ) -> Result<AddedTool, Failure> {
        let asked = self.ask(&Ask::AddTool { source: source.into() }, &NoGrants, &mut Vec::new()).await;
        let Asked { answer, log, leased } = asked.map_err(|stopped| stopped.after(Vec::new()))?;
        let tool = match answer {
            Answer::ToolAdded { tool } => AddedTool { author, at, ..tool },
            answer => return Err(self.not(answer, log, leased).after(Vec::new())),
        };
        let called = Called { added: vec![tool.clone()], ..Called::default() };
        self.take_up(&called, leased, 0).map_err(|stopped| stopped.after(Vec::new()))?;
        Ok(tool)
    }

    /// Writes the document for other programs.
    ///
    /// # Errors
    /// It cannot be written in that form; as [`Cause`] says.
    pub async fn export(&mut self, form: Form) -> Result<Vec<u8>, Failure> {
        let read = |answer| match answer {
            Answer::Exported { bytes } => Ok(bytes.0),
            other => Err(Box::new(other)),
        };
        self.plainly(&Ask::Export { form }, read).await
    }

    /// Gives the data as it is, also where no call has changed it.
    ///
    /// # Errors
    /// The data cannot be saved; as [`Cause`] says.
    pub async fn save(&mut self) -> Result<Vec<u8>, Failure> {
        let read = |answer| match answer {
            Answer::Saved { data } => Ok(data.0),
            other => Err(Box::new(other)),
        };
        self.plainly(&Ask::Save, read).await
    }

    /// What the worker uses that has the document open; a fresh one where the last has died.
    ///
    /// # Errors
    /// As [`Cause`] says.
    pub async fn usage(&mut self) -> Result<Usage, Failure> {
        let read = |answer| match answer {
            Answer::Usage { usage } => Ok(usage),
            other => Err(Box::new(other)),
        };
        self.plainly(&Ask::Usage, read).await
    }

    /// Asks for what changes nothing and calls no grant.
    async fn plainly<T>(&mut self, ask: &Ask<'_>, read: fn(Answer) -> Result<T, Box<Answer>>) -> Result<T, Failure> {
        let asked = self.ask(ask, &NoGrants, &mut Vec::new()).await;
        let Asked { answer, log, leased } = asked.map_err(|stopped| stopped.after(Vec::new()))?;
        match read(answer) {
            Ok(it) => {
                leased.keep(self.document.clone(), 0);
                Ok(it)
            }
            Err(answer) => Err(self.not(*answer, log, leased).after(Vec::new())),
        }
    }

    async fn run(&mut self, ask: &Ask<'_>, call: Call<'_>, grants: &dyn Grants) -> Result<Called, Failure> {
        let mut calls = Vec::new();
        let limit_ms = call.time_limit_ms;
        let asked = timeout(Duration::from_millis(limit_ms), self.ask(ask, grants, &mut calls)).await;
        let asked = asked.unwrap_or_else(|_| Err(Cause::CallTimedOut { limit_ms }.into()));
        asked.and_then(|asked| self.called(asked, call)).map_err(|stopped| stopped.after(calls))
    }

    /// Reads what a call came to, and takes it up.
    fn called(&mut self, asked: Asked, call: Call<'_>) -> Result<Called, Stopped> {
        let Asked { answer, log: printed, leased } = asked;
        let Answer::Called { result, added, data, mut log, running_us, resident_bytes } = answer else {
            return Err(self.not(answer, printed, leased));
        };
        log.push_str(&printed);
        cut(&mut log, self.document.terms.limits.log_bytes_max);
        let by = |tool: AddedTool| AddedTool { author: call.author.cloned(), at: call.at, ..tool };
        let added = added.into_iter().map(by).collect();
        let called = Called { result, added, data: data.map(|data| data.0), log, running_us };
        self.take_up(&called, leased, resident_bytes)?;
        Ok(called)
    }

    /// Makes what a call changed part of the record, within the limits that a worker is not trusted to keep.
    fn take_up(&mut self, called: &Called, leased: Leased, resident_bytes: u64) -> Result<(), Stopped> {
        let limits = &self.document.terms.limits;
        let mut record = Arc::clone(&self.document.record);
        if called.data.is_some() || !called.added.is_empty() {
            Arc::make_mut(&mut record).keep(called);
        }
        let offered = record.added.iter().filter(|tool| tool.set_aside.is_none()).count();
        let tools = offered.max(called.added.len());
        let long = called.added.iter().any(|tool| tool.source.len() > limits.source_bytes_max);
        let large = called.data.as_ref().is_some_and(|data| data.len() > limits.data_bytes_max);
        if large || long || (tools > limits.added_tools_max && !called.added.is_empty()) {
            return Err(Cause::Crash { how: "it wants more kept than there may be".to_owned() }.into());
        }
        if called.data.is_some() || !called.added.is_empty() {
            self.specs = None;
            self.document.record = record;
        }
        leased.keep(self.document.clone(), resident_bytes);
        Ok(())
    }

    /// What an answer means that is not the one hoped for. The worker is kept where it has met no limit.
    fn not(&self, answer: Answer, printed: String, leased: Leased) -> Stopped {
        let mut log = String::new();
        let (cause, resident_bytes) = match answer {
            Answer::Failed { error, log: said, resident_bytes } => {
                log = said;
                (Cause::Document(error), resident_bytes)
            }
            Answer::ToolRefused { refused } => (Cause::Refused(refused), 0),
            Answer::Misled { why } => (Cause::Crash { how: why }, 0),
            _ => (Cause::Crash { how: "it answers something else".to_owned() }, 0),
        };
        if !cause.spends_the_worker() {
            leased.keep(self.document.clone(), resident_bytes);
        }
        log.push_str(&printed);
        cut(&mut log, self.document.terms.limits.log_bytes_max);
        Stopped { cause, log }
    }

    /// Asks the worker that has the document open, or a fresh one.
    async fn ask(&mut self, ask: &Ask<'_>, grants: &dyn Grants, calls: &mut Vec<GrantCall>) -> Result<Asked, Stopped> {
        let terms = Arc::clone(&self.document.terms);
        let time_max_ms = self.pool.settings().grant_time_max_ms;
        for _ in 0..TRIES_MAX {
            let mut leased = self.pool.lease(&self.document).await?;
            let opened = leased.take_opened() || self.open(&mut leased).await?;
            let (true, Some(worker)) = (opened, leased.worker()) else { continue };
            let lent = Lending { grants, terms: &terms, time_max_ms, calls: &mut *calls };
            match talk::ask(worker, ask, lent).await {
                Ok(answer) => {
                    let log = worker.take_output(terms.limits.log_bytes_max);
                    return Ok(Asked { answer, log, leased });
                }
                // It had died since it was last used; nothing of this call has happened.
                Err(Broken::Unheard) => {}
                Err(broken) => return Err(self.end(leased, broken).await),
            }
        }
        Err(Cause::Crash { how: format!("{TRIES_MAX} workers died before they were asked") }.into())
    }

    /// Opens the document in a worker that has none. Not where that had died before.
    async fn open(&mut self, leased: &mut Leased) -> Result<bool, Stopped> {
        let terms = Arc::clone(&self.document.terms);
        let Some(worker) = leased.worker() else { return Ok(false) };
        worker.answer_bytes_max = answer_bytes_max(&terms.limits);
        let ask = Ask::Open { record: Cow::Borrowed(&self.document.record), terms: Cow::Borrowed(&terms) };
        match worker.ask(&ask, hard_limit(&terms)).await {
            Ok(Answer::Opened { added, left_out }) => {
                self.set_aside(&added);
                self.left_out = left_out;
                Ok(true)
            }
            Ok(Answer::NotOpened { error }) => Err(error.into()),
            Ok(_) => Err(Cause::Crash { how: "it answers something else".to_owned() }.into()),
            Err(Broken::Unheard) => Ok(false),
            Err(broken) => match leased.take() {
                Some(worker) => Err(end(worker, broken, &terms).await),
                None => Ok(false),
            },
        }
    }

    /// Notes which added tools the document set aside as it was opened, and why. Nothing else is the worker's to say.
    fn set_aside(&mut self, seen: &[AddedTool]) {
        let news = |tool: &AddedTool| {
            let seen = seen.iter().find(|seen| seen.name == tool.name && seen.source == tool.source)?;
            (seen.set_aside != tool.set_aside).then(|| seen.set_aside.clone())
        };
        if self.document.record.added.iter().any(|tool| news(tool).is_some()) {
            for tool in &mut Arc::make_mut(&mut self.document.record).added {
                if let Some(set_aside) = news(tool) {
                    tool.set_aside = set_aside;
                }
            }
        }
    }

    async fn end(&self, mut leased: Leased, broken: Broken) -> Stopped {
        match leased.take() {
            Some(worker) => end(worker, broken, &self.document.terms).await,
            None => Cause::Crash { how: "there was none".to_owned() }.into(),
        }
    }
}

async fn end(worker: Worker, broken: Broken, terms: &Terms) -> Stopped {
    let limits = &terms.limits;
    let (cause, log) = worker.end(broken, limits.call_time_max_ms, limits.log_bytes_max).await;
    Stopped { cause, log }
}

/// Cuts a text at a limit, between characters.
fn cut(text: &mut String, bytes_max: usize) {
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max));
    }
}
