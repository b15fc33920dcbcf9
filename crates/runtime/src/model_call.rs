//! One model call: asks, hands the pieces on, holds back text that may be a call.

use futures_util::StreamExt;
use gesta_model::{Answer, Piece, Request};
use gesta_run::{Delta, Fault, FaultKind, Met, ToolList, Usage, WantId, may_become_a_call};

use crate::perform::{Done, Performing, Stage};
use crate::progress::{Listener, Progress};

pub(crate) fn ask(stage: &Stage<'_>, want: WantId) -> Performing {
    let (parts, run) = (stage.parts, stage.run);
    let none = ToolList::default();
    let request = Request {
        model: &parts.model_name,
        system: if adds_tools(run) { &parts.system_adding } else { &parts.system },
        history: stage.history,
        messages: run.transcript(),
        tools: run.offered().map_or(&none, |tools| tools.as_ref()),
        output_schema: run.plan().spec.output_schema.as_ref(),
        options: &run.plan().spec.model_options,
        stream: parts.stream,
        failed_before: run.model_failures().saturating_add(u32::from(stage.shortened)),
    };
    let trip = run.trip();
    let answer = match (parts.wire, run.opening()) {
        (true, Some(opening)) => {
            crate::wire::captured(parts, &opening.run, trip, want.attempt > 0).map(|model| model.ask(&request))
        }
        _ => None,
    };
    let answer = answer.unwrap_or_else(|| parts.model.ask(&request));
    let pieces = Pieces { trip, listener: stage.listener.cloned(), held: Some(String::new()), block: 0 };
    Box::pin(async move {
        let (met, held_back) = pieces.follow(answer).await;
        Done { want, met, held_back }
    })
}

/// Whether this trip offers the document's `add_tool`.
fn adds_tools(run: &gesta_run::Run) -> bool {
    run.offered().and_then(|tools| tools.get("add_tool")).is_some_and(|tool| tool.spec.document)
}

struct Pieces {
    trip: u32,
    listener: Option<Listener>,
    /// Text that may still become a call; none once it cannot.
    held: Option<String>,
    block: u32,
}

impl Pieces {
    async fn follow(mut self, mut answer: Answer) -> (Met, Option<Delta>) {
        while let Some(piece) = answer.next().await {
            match piece {
                Ok(Piece::Delta(delta)) => self.show(delta),
                Ok(Piece::Retrying(retrying)) => {
                    if let Some(listener) = &self.listener {
                        listener(Progress::Retrying { trip: self.trip, retrying });
                    }
                }
                Ok(Piece::Finished(reply)) => {
                    let held = self.held.take().filter(|text| !text.is_empty());
                    return (Met::Replied(*reply), held.map(|text| Delta::Text { block: self.block, text }));
                }
                Err(fault) => return (Met::Failed(fault), None),
            }
        }
        let fault = Fault {
            kind: FaultKind::CutShort,
            message: "the answer stopped before its end".to_owned(),
            retryable: true,
            status: None,
            retry_after_ms: None,
            usage: Usage::default(),
        };
        (Met::Failed(fault), None)
    }

    fn show(&mut self, delta: Delta) {
        let Some(listener) = &self.listener else { return };
        let delta = match (delta, self.held.as_mut()) {
            (Delta::Text { block, text }, Some(held)) => {
                held.push_str(&text);
                self.block = block;
                if may_become_a_call(held) {
                    return;
                }
                let text = self.held.take().unwrap_or_default();
                Delta::Text { block, text }
            }
            (delta, _) => delta,
        };
        listener(Progress::Delta { trip: self.trip, delta });
    }
}
