//! One conversation in its worker: asks are answered one after another until the parent closes the pipe.

use std::io::{self, BufRead, Write};

use gesta_document::{CallError, Called, Document, GrantName, Host, Record, Terms};
use gesta_run::json::Object;
use serde_json::Value;

use super::{Open, Wire};
use crate::Usage;
use crate::protocol::{Answer, Ask, Blob};

/// What the process around a document can say and be told; nothing where there is none of its own.
pub(crate) trait Process {
    /// Something is about to run that may take `ms`: bounds its CPU time, as a backstop behind the parent's clock.
    fn allow_cpu_ms(&self, _ms: u64) {}

    fn usage(&self) -> Usage {
        Usage::default()
    }

    /// Takes what a document prints into the log of the process; whether it did.
    fn print(&self, _text: &str) -> bool {
        false
    }

    /// Memory, as it was lately.
    fn resident_bytes(&self) -> u64 {
        0
    }
}

/// Serves until the parent has gone.
///
/// # Errors
/// The pipes broke, or something came over them that is no ask.
pub(crate) fn serve<R: BufRead, W: Write>(wire: &mut Wire<R, W>, open: Open, process: &dyn Process) -> io::Result<()> {
    let mut document = None;
    let mut time_max_ms = 0;
    while let Some(ask) = wire.hear()? {
        let answer = match (ask, &mut document) {
            (Ask::Open { record, terms }, None) => {
                time_max_ms = terms.limits.call_time_max_ms;
                process.allow_cpu_ms(time_max_ms);
                opened(open, &record, &terms, &mut document)
            }
            (Ask::Check { base, terms }, None) => {
                process.allow_cpu_ms(terms.limits.call_time_max_ms);
                match gesta_document::check(&base, &terms) {
                    Ok(report) => Answer::Checked { report: Box::new(report) },
                    Err(error) => Answer::NotOpened { error },
                }
            }
            (Ask::Usage, _) => Answer::Usage { usage: process.usage() },
            (ask, Some(document)) => {
                process.allow_cpu_ms(time_max_ms);
                answer(ask, document.as_mut(), wire, process)
            }
            (_, None) => Answer::Misled { why: "no document is open".to_owned() },
        };
        // What the engine printed must be in its pipe before the parent reads the answer. A pipe that is closed is
        // the parent's end, which the next line finds out.
        io::stdout().flush().ok();
        wire.tell(&answer)?;
    }
    Ok(())
}

fn opened(open: Open, record: &Record, terms: &Terms, document: &mut Option<Box<dyn Document>>) -> Answer {
    match open(record, terms) {
        Ok(new) => {
            let left_out = new.left_out().to_vec();
            Answer::Opened { added: document.insert(new).added().to_vec(), left_out }
        }
        Err(error) => Answer::NotOpened { error },
    }
}

fn answer<R: BufRead, W: Write>(
    ask: Ask<'_>,
    document: &mut dyn Document,
    wire: &mut Wire<R, W>,
    process: &dyn Process,
) -> Answer {
    let mut lent = Lent { wire, process, calls: 0, printed: String::new() };
    match ask {
        Ask::Call { tool, arguments } => {
            let outcome = document.call(&tool, &arguments, &mut lent);
            ended(outcome, lent.printed, process)
        }
        Ask::Main => {
            let outcome = document.main(&mut lent);
            ended(outcome, lent.printed, process)
        }
        Ask::Specs => or_failed(document.specs(), process, |specs| Answer::Specs { specs }),
        Ask::Export { form } => {
            or_failed(document.export(form), process, |bytes| Answer::Exported { bytes: Blob(bytes) })
        }
        Ask::Save => or_failed(document.save(), process, |data| Answer::Saved { data: Blob(data) }),
        Ask::AddTool { source } => match document.add_tool(&source) {
            Ok(tool) => Answer::ToolAdded { tool },
            Err(refused) => Answer::ToolRefused { refused },
        },
        Ask::Open { .. } | Ask::Check { .. } => {
            Answer::Misled { why: "a worker opens one document in its life".to_owned() }
        }
        Ask::Granted { n, .. } => Answer::Misled { why: format!("no grant call {n} is open") },
        Ask::Usage => Answer::Usage { usage: process.usage() },
    }
}

fn ended(outcome: Result<Called, CallError>, mut printed: String, process: &dyn Process) -> Answer {
    let resident_bytes = process.resident_bytes();
    match outcome {
        Ok(called) => {
            printed.push_str(&called.log);
            Answer::Called {
                result: called.result,
                added: called.added,
                data: called.data.map(Blob),
                log: printed,
                running_us: called.running_us,
                resident_bytes,
            }
        }
        Err(error) => Answer::Failed { error, log: printed, resident_bytes },
    }
}

fn or_failed<T>(outcome: Result<T, CallError>, process: &dyn Process, told: impl FnOnce(T) -> Answer) -> Answer {
    match outcome {
        Ok(it) => told(it),
        Err(error) => Answer::Failed { error, log: String::new(), resident_bytes: process.resident_bytes() },
    }
}

/// The host as a document sees it: each grant call goes over the pipe and waits for its answer.
struct Lent<'a, R, W> {
    wire: &'a mut Wire<R, W>,
    process: &'a dyn Process,
    calls: u32,
    /// What the document has printed and the process has no log for.
    printed: String,
}

impl<R: BufRead, W: Write> Host for Lent<'_, R, W> {
    fn print(&mut self, text: &str) -> bool {
        if !self.process.print(text) {
            self.printed.push_str(text);
        }
        true
    }

    fn grant(&mut self, grant: &GrantName, arguments: Object) -> Result<Value, String> {
        self.calls = self.calls.saturating_add(1);
        let asked = Answer::Grant { n: self.calls, grant: grant.clone(), arguments };
        let answer = self.wire.tell(&asked).and_then(|()| self.wire.hear());
        match answer {
            Ok(Some(Ask::Granted { n, result })) if n == self.calls => result,
            // With the parent gone the kernel ends this process; nothing that is thrown here is seen by anybody.
            _ => Err(format!("{grant}: the host has gone")),
        }
    }
}
