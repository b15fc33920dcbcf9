//! `gesta audit`: who did what, to keep elsewhere and to look whether it is whole.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use gesta_store::{AuditRecord, Front, StoreError, TENANT_LOCAL};

use super::{Globals, wait_for};
use crate::exit::{Ended, Exit, Failure};
use crate::place::Place;
use crate::terminal::{Look, Screen};

/// Export who did what through the server, and check that nothing of it was changed
///
/// Each answer to a hold, each cancellation, erasure, key and sign-in is a record that names the hash of the one before.
/// Whoever changes, removes or inserts one breaks all that follow. Records that are cut off at the end leave no break:
/// keep the last hash that `verify` prints somewhere else, and compare.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesta audit export > audit.jsonl
  gesta audit verify
  gesta audit verify audit.jsonl
  gesta audit verify --tenant shop --has 4f1d2c…")]
pub(crate) struct AuditCommand {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Print all records, each as JSON on a line, the oldest first
    Export {
        /// Whose [default: the store's own]
        #[arg(long, value_name = "TENANT")]
        tenant: Option<String>,
    },
    /// Check the chain from its first record on, and name the first that breaks it
    Verify {
        /// A file that was exported, in place of the store
        #[arg(value_name = "FILE", conflicts_with = "tenant")]
        file: Option<PathBuf>,
        /// Whose [default: the store's own]
        #[arg(long, value_name = "TENANT")]
        tenant: Option<String>,
        /// A hash that an earlier check printed, and that must be in the chain still
        #[arg(long, value_name = "HASH")]
        has: Option<String>,
    },
}

impl AuditCommand {
    pub(crate) fn run(self, globals: &Globals) -> Ended {
        wait_for(async {
            match self.what {
                What::Export { tenant } => {
                    let (place, mut chain) = Chain::open(globals, tenant.as_deref()).await?;
                    let mut screen = Screen::stdout();
                    while let Some(record) = chain.next().await? {
                        screen.json(&record);
                    }
                    place.close().await;
                    Ok(Exit::Done)
                }
                What::Verify { file: Some(file), has, .. } => verify_file(&file, has.as_deref()),
                What::Verify { file: None, tenant, has } => {
                    let (place, mut chain) = Chain::open(globals, tenant.as_deref()).await?;
                    let mut checked = Checked::default();
                    while let Some(record) = chain.next().await? {
                        checked.next(&record, has.as_deref())?;
                    }
                    place.close().await;
                    checked.end(has.as_deref())
                }
            }
        })
    }
}

/// The records of a store, one after another.
struct Chain {
    front: Arc<dyn Front>,
    page: std::vec::IntoIter<AuditRecord>,
    after: u64,
}

impl Chain {
    async fn open(globals: &Globals, tenant: Option<&str>) -> Result<(Place, Self), Failure> {
        let place = Place::open_to_read(globals).await?;
        let front = place.tenants().front_of(tenant.unwrap_or(TENANT_LOCAL));
        Ok((place, Self { front, page: Vec::new().into_iter(), after: 0 }))
    }

    async fn next(&mut self) -> Result<Option<AuditRecord>, Failure> {
        if let Some(record) = self.page.next() {
            return Ok(Some(record));
        }
        let page = match self.front.audit(self.after, 0).await {
            // One of them is damaged: those before it are read one by one.
            Err(StoreError::DamagedRow { .. }) => match self.front.audit(self.after, 1).await {
                Err(StoreError::DamagedRow { reason, .. }) => return Err(broken(self.after + 1, &reason)),
                other => other?,
            },
            other => other?,
        };
        self.after = page.last().map_or(self.after, |last| last.seq.max(self.after + 1));
        self.page = page.into_iter();
        Ok(self.page.next())
    }
}

fn broken(seq: u64, why: &str) -> Failure {
    let help = "it was changed after it was written: compare it with an export or a backup of before";
    Failure::new(Exit::Other, format!("the audit is broken at record {seq}: {why}"), help).coded("audit_broken")
}

/// How far the chain was found to be whole.
#[derive(Default)]
struct Checked {
    last: Option<(u64, String)>,
    found: bool,
}

impl Checked {
    fn next(&mut self, record: &AuditRecord, has: Option<&str>) -> Result<(), Failure> {
        let last = self.last.as_ref().map(|(seq, hash)| (*seq, hash.as_str()));
        let seq = last.map_or(1, |(seq, _)| seq + 1);
        if record.seq != seq {
            return Err(broken(seq, &format!("record {} stands in its place", record.seq)));
        }
        if !record.follows(last) {
            let before = last.map_or_else(|| "0".repeat(64), |(_, hash)| hash.to_owned());
            let why = if record.previous == before {
                "what it says is not what its hash was made of"
            } else {
                "it names another record before it"
            };
            return Err(broken(seq, why));
        }
        self.found |= has == Some(record.hash.as_str());
        self.last = Some((seq, record.hash.clone()));
        Ok(())
    }

    fn end(self, has: Option<&str>) -> Ended {
        let (count, hash) = self.last.unwrap_or_else(|| (0, "0".repeat(64)));
        if let Some(has) = has.filter(|_| !self.found) {
            let message = format!("the audit has no record with the hash {has}; its last is {count}, {hash}");
            let help = "records were cut off or written anew: compare it with an export or a backup of before";
            return Err(Failure::new(Exit::Other, message, help).coded("audit_broken"));
        }
        let mut screen = Screen::stdout();
        screen.line(Look::Good, &format!("{count} records, the chain is whole"));
        screen.line(Look::Faint, &format!("last hash {hash}"));
        Ok(Exit::Done)
    }
}

fn verify_file(file: &PathBuf, has: Option<&str>) -> Ended {
    let text = std::fs::read_to_string(file).map_err(|why| {
        Failure::usage(format!("{} cannot be read: {why}", file.display()), "name what `gesta audit export` wrote")
    })?;
    let mut checked = Checked::default();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let at = checked.last.as_ref().map_or(1, |(seq, _)| seq + 1);
        let record = serde_json::from_str(line).map_err(|why| broken(at, &why.to_string()))?;
        checked.next(&record, has)?;
    }
    checked.end(has)
}
