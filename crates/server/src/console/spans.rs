//! Where a run's time went: the model, tools, waiting. As a table whose last column draws it.

use std::collections::BTreeMap;

use gesta_run::{CallId, Event, EventKind, Timestamp};
use maud::{Markup, html};

use super::parts::{length, visible};

/// How wide the drawing is, in its own units.
const WIDTH: f64 = 1_000.0;
/// How much of it one long wait takes.
const WAIT_WIDTH: f64 = 140.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Model,
    Tool,
    Waiting,
}

#[derive(Debug, Clone)]
struct Span {
    kind: Kind,
    name: String,
    from: i64,
    to: i64,
    goes_on: bool,
}

/// The spans of a run's events, in order.
fn spans(events: &[Event], now: Timestamp) -> Vec<Span> {
    let mut all: Vec<Span> = Vec::new();
    let mut names: BTreeMap<CallId, String> = BTreeMap::new();
    let mut waits: BTreeMap<CallId, usize> = BTreeMap::new();
    let mut before: Option<i64> = None;
    for event in events {
        let at = event.at.0;
        match &event.what {
            EventKind::Replied { trip, reply, calls } => {
                for (block, call) in reply.calls().zip(calls) {
                    names.insert(call.id.clone(), block.name.clone());
                }
                let from = before.unwrap_or(at);
                all.push(Span { kind: Kind::Model, name: format!("trip {}", trip + 1), from, to: at, goes_on: false });
            }
            EventKind::Answered { call, duration_ms, .. } => {
                close(&mut all, &mut waits, call, at);
                let took = i64::try_from(*duration_ms).unwrap_or(0).clamp(0, at);
                if let Some(name) = names.get(call).filter(|_| took > 0 || began(events, call)) {
                    all.push(Span { kind: Kind::Tool, name: name.clone(), from: at - took, to: at, goes_on: false });
                }
            }
            EventKind::Held { call, .. } => {
                waits.insert(call.clone(), all.len());
                let name = names.get(call).cloned().unwrap_or_default();
                all.push(Span { kind: Kind::Waiting, name, from: at, to: now.0.max(at), goes_on: true });
            }
            EventKind::HoldAnswered { call, .. } => close(&mut all, &mut waits, call, at),
            EventKind::Ended { .. } => {
                for call in waits.keys().cloned().collect::<Vec<_>>() {
                    close(&mut all, &mut waits, &call, at);
                }
            }
            _ => {}
        }
        before = Some(at);
    }
    all
}

fn close(all: &mut [Span], waits: &mut BTreeMap<CallId, usize>, call: &CallId, at: i64) {
    if let Some(span) = waits.remove(call).and_then(|index| all.get_mut(index)) {
        span.to = at;
        span.goes_on = false;
    }
}

fn began(events: &[Event], call: &CallId) -> bool {
    events.iter().any(|event| matches!(&event.what, EventKind::Started { call: started } if started == call))
}

/// From times to places: long waits are drawn short, so that the rest is seen.
struct Scale {
    /// Beginning, end and width of each stretch, in order and without gaps.
    stretches: Vec<(i64, i64, f64)>,
}

impl Scale {
    fn of(spans: &[Span]) -> Self {
        let mut cuts: Vec<i64> = spans.iter().flat_map(|span| [span.from, span.to]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let pairs: Vec<(i64, i64)> = cuts.windows(2).map(|pair| (pair[0], pair[1])).collect();
        let only_waits = |from: i64, to: i64| {
            let mut over = spans.iter().filter(|span| span.from < to && span.to > from).peekable();
            over.peek().is_none() || over.all(|span| span.kind == Kind::Waiting)
        };
        let busy: i64 = pairs.iter().filter(|(from, to)| !only_waits(*from, *to)).map(|(from, to)| to - from).sum();
        let long = |from: i64, to: i64| only_waits(from, to) && (to - from) > busy / 4;
        let waits = pairs.iter().filter(|(from, to)| long(*from, *to)).count();
        let all: i64 = pairs.iter().filter(|(from, to)| !long(*from, *to)).map(|(from, to)| to - from).sum();
        #[allow(clippy::cast_precision_loss, reason = "a drawing")]
        let stretches = {
            let wait = WAIT_WIDTH.min(WIDTH / 2.0 / waits.max(1) as f64);
            let rest = WIDTH - wait * waits as f64;
            let width =
                |from: i64, to: i64| if long(from, to) { wait } else { rest * (to - from) as f64 / all.max(1) as f64 };
            pairs.iter().map(|(from, to)| (*from, *to, width(*from, *to))).collect()
        };
        Self { stretches }
    }

    #[allow(clippy::cast_precision_loss, reason = "a drawing")]
    fn place(&self, at: i64) -> f64 {
        let mut x = 0.0;
        for (from, to, width) in &self.stretches {
            if at >= *to {
                x += width;
            } else {
                return x + width * (at - from).max(0) as f64 / (to - from).max(1) as f64;
            }
        }
        x
    }
}

/// The table, where there is anything to draw.
pub(super) fn waterfall(events: &[Event], now: Timestamp) -> Markup {
    let spans = spans(events, now);
    let Some(begun) = events.first().map(|event| event.at.0).filter(|_| !spans.is_empty()) else { return html! {} };
    let scale = Scale::of(&spans);
    let sum = |kind: Kind| spans.iter().filter(|span| span.kind == kind).map(|span| span.to - span.from).sum::<i64>();
    html! {
        details.time open {
            summary { "Time" span.faint { " · model " (length(sum(Kind::Model))) ", tools " (length(sum(Kind::Tool)))
                ", waiting " (length(sum(Kind::Waiting))) } }
            div.scroll tabindex="0" role="group" aria-label="Where the time went" {
                table.waterfall {
                    thead { tr { th scope="col" { "What" } th scope="col" { "From" } th scope="col" { "Took" } th.bars scope="col" { "Drawn" } } }
                    tbody {
                        @for span in &spans {
                            tr {
                                th scope="row" { (kind_word(span.kind)) " " (visible(&span.name)) }
                                td { "+" (length(span.from - begun)) }
                                td { (length(span.to - span.from)) @if span.goes_on { " so far" } }
                                td.bars { (bar(&scale, span)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn kind_word(kind: Kind) -> &'static str {
    match kind {
        Kind::Model => "model",
        Kind::Tool => "tool",
        Kind::Waiting => "waiting",
    }
}

fn bar(scale: &Scale, span: &Span) -> Markup {
    let from = scale.place(span.from);
    let width = (scale.place(span.to) - from).max(6.0);
    let from = from.min(WIDTH - width);
    html! {
        svg.drawn viewBox="0 0 1000 16" preserveAspectRatio="none" aria-hidden="true" {
            rect.track x="0" y="7" width="1000" height="2" {}
            rect class=(kind_word(span.kind)) x=(format!("{from:.1}")) y="2" width=(format!("{width:.1}")) height="12" rx="3" {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(kind: Kind, from: i64, to: i64) -> Span {
        Span { kind, name: String::new(), from, to, goes_on: false }
    }

    #[test]
    fn a_wait_of_days_leaves_room_for_the_rest() {
        let day = 86_400_000;
        let spans = [span(Kind::Model, 0, 1_000), span(Kind::Waiting, 1_000, day), span(Kind::Model, day, day + 3_000)];
        let scale = Scale::of(&spans);
        let widths: Vec<f64> = spans.iter().map(|it| (scale.place(it.to) - scale.place(it.from)).round()).collect();
        assert_eq!(widths, [215.0, 140.0, 645.0]);
        assert!((scale.place(day + 3_000) - WIDTH).abs() < 0.001);
    }

    #[test]
    fn nothing_but_waiting_fills_the_drawing_at_most() {
        for spans in [vec![span(Kind::Waiting, 5, 5)], vec![span(Kind::Waiting, 5, 900)], Vec::new()] {
            let scale = Scale::of(&spans);
            let end = spans.first().map_or(0, |it| it.to);
            assert!((0.0..=WIDTH).contains(&scale.place(end)));
        }
    }
}
