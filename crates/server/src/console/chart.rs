//! Small charts of the last days: how runs ended, and how often the runtime stepped in.

use gesta_run::{Status, Timestamp};
use gesta_store::RunHead;
use maud::{Markup, html};

use super::facts::Facts;
use super::parts::{day, standing};

/// How many days are drawn.
pub(super) const DAYS: i64 = 14;
const DAY_MS: i64 = 86_400_000;
const HEIGHT: f64 = 80.0;
const STEP: f64 = 20.0;

/// One day.
#[derive(Debug, Default, Clone)]
struct Day {
    name: String,
    /// Completed, waiting or running, ended by somebody, failed.
    runs: [u32; 4],
    interventions: u32,
}

const TONES: [(&str, &str); 4] =
    [("good", "completed"), ("wait", "running or waiting"), ("off", "cancelled or closed"), ("bad", "failed")];

/// The moment at which the first of the days begins.
pub(super) fn since(now: Timestamp) -> Timestamp {
    Timestamp((now.0.div_euclid(DAY_MS) - (DAYS - 1)) * DAY_MS)
}

fn days(heads: &[RunHead], facts: &[Option<Facts>], now: Timestamp) -> Vec<Day> {
    let first = since(now);
    let mut all: Vec<Day> =
        (0..DAYS).map(|at| Day { name: day(Timestamp(first.0 + at * DAY_MS)), ..Day::default() }).collect();
    for (head, facts) in heads.iter().zip(facts) {
        let at = usize::try_from((head.started_at.0 - first.0).div_euclid(DAY_MS)).ok();
        let Some(day) = at.and_then(|at| all.get_mut(at)) else { continue };
        let tone = if head.status == Status::Ended { standing(head.status, head.outcome).1 } else { "wait" };
        let place = TONES.iter().position(|(name, _)| *name == tone).unwrap_or(2);
        day.runs[place] += 1;
        day.interventions += facts.map_or(0, |it| it.interventions);
    }
    all
}

/// Both charts, with their numbers as a table.
pub(super) fn charts(heads: &[RunHead], facts: &[Option<Facts>], now: Timestamp, whole: bool) -> Markup {
    let days = days(heads, facts, now);
    let runs: u32 = days.iter().flat_map(|day| day.runs).sum();
    let stepped: u32 = days.iter().map(|day| day.interventions).sum();
    let of_runs: Vec<Vec<(u32, &str)>> =
        days.iter().map(|day| day.runs.iter().zip(TONES).map(|(count, (tone, _))| (*count, tone)).collect()).collect();
    let of_steps: Vec<Vec<(u32, &str)>> = days.iter().map(|day| vec![(day.interventions, "info")]).collect();
    html! {
        div.charts {
            figure {
                figcaption { "Runs by outcome" span.faint { (runs) } }
                (bars(&of_runs, &days, "runs"))
                (axis(&days))
                p.legend { @for (tone, word) in TONES { span { span class=(tone) {} (word) } } }
            }
            figure {
                figcaption { "Interventions" span.faint { (stepped) } }
                (bars(&of_steps, &days, "interventions"))
                (axis(&days))
                p.legend { "Prompts that the runtime sent of its own accord" }
            }
        }
        details.numbers {
            summary { "The last " (DAYS) " days in numbers" }
            div.scroll tabindex="0" role="group" aria-label="Runs and interventions by day" { (numbers(&days)) }
            @if !whole { p.note { "Only the newest runs are counted; load the page again to count further back." } }
        }
    }
}

fn axis(days: &[Day]) -> Markup {
    html! { p.axis aria-hidden="true" { span { (days.first().map_or("", |it| &it.name)) } span { "today" } } }
}

fn bars(stacks: &[Vec<(u32, &str)>], days: &[Day], what: &str) -> Markup {
    let most = stacks.iter().map(|stack| stack.iter().map(|(count, _)| count).sum::<u32>()).max().unwrap_or(0).max(1);
    let width = STEP * f64::from(u32::try_from(stacks.len()).unwrap_or(0));
    html! {
        svg.chart viewBox=(format!("0 0 {width} {}", HEIGHT + 2.0)) preserveAspectRatio="none" role="img"
            aria-label=(format!("{what} per day, at most {most} on one day; the numbers stand below")) {
            rect.track x="0" y=(HEIGHT) width=(width) height="1" {}
            @for (at, (stack, day)) in stacks.iter().zip(days).enumerate() {
                @let x = STEP * f64::from(u32::try_from(at).unwrap_or(0)) + 3.0;
                g {
                    title { (day.name) ": " (stack.iter().map(|(count, _)| count).sum::<u32>()) " " (what) }
                    @for (y, height, tone) in stacked(stack, most) {
                        rect class=(tone) x=(x) y=(format!("{y:.1}")) width=(STEP - 6.0) height=(format!("{height:.1}")) rx="1.5" {}
                    }
                }
            }
        }
    }
}

fn stacked<'a>(stack: &[(u32, &'a str)], most: u32) -> Vec<(f64, f64, &'a str)> {
    let mut top = HEIGHT;
    let mut out = Vec::new();
    for (count, tone) in stack.iter().filter(|(count, _)| *count > 0) {
        let height = (f64::from(*count) / f64::from(most) * (HEIGHT - 4.0)).max(1.5);
        top -= height;
        out.push((top, height, *tone));
    }
    out
}

fn numbers(days: &[Day]) -> Markup {
    html! {
        table {
            thead {
                tr {
                    th scope="col" { "Day (UTC)" }
                    @for (_, word) in TONES { th scope="col" { (word) } }
                    th scope="col" { "interventions" }
                }
            }
            tbody {
                @for day in days.iter().rev() {
                    tr { th scope="row" { (day.name) } @for count in day.runs { td { (count) } } td { (day.interventions) } }
                }
            }
        }
    }
}
