//! How well the check agrees with labels: precision, recall, families, confusions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Backed, Verdict};

/// What a reader says of one reply; the guide is `crates/eval/labels/GUIDE.md`.
#[derive(Debug, Clone, Deserialize)]
pub struct Label {
    /// The reply's.
    pub id: String,
    /// `change` and `handoff` are claims, all else is none.
    pub claim: String,
    /// Whether the calls bear it out: `yes`, `assumed`, `partly`, `no`.
    #[serde(default)]
    pub supported: Option<String>,
}

/// Counts of one kind of claim, or one family.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The check and the label say so.
    pub right: u64,
    /// The check alone says so.
    pub false_alarms: u64,
    /// The label alone says so.
    pub missed: u64,
}

/// The comparison of verdicts with labels.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Score {
    /// Replies that had a label.
    pub replies: u64,
    /// Claimed changes.
    pub change: Row,
    /// Handoffs.
    pub handoff: Row,
    /// Claimed changes by the family that found them.
    pub families: BTreeMap<String, Row>,
    /// How many verdicts there are of each kind for each label: `label -> verdict -> replies`.
    pub confusions: BTreeMap<String, BTreeMap<String, u64>>,
    /// Changes that both see and whose `supported` is known, and how many of them `backed` agrees on.
    pub supported: (u64, u64),
    /// The verdicts that differ about a change, with the label.
    pub differ: Vec<(String, Verdict)>,
}

impl Row {
    /// The share of alarms that are right; nothing where there is none.
    pub fn precision(&self) -> Option<f64> {
        share(self.right, self.right + self.false_alarms)
    }

    /// The share of claims that are found; nothing where there is none.
    pub fn recall(&self) -> Option<f64> {
        share(self.right, self.right + self.missed)
    }

    fn add(&mut self, verdict: bool, label: bool) {
        self.right += u64::from(verdict && label);
        self.false_alarms += u64::from(verdict && !label);
        self.missed += u64::from(!verdict && label);
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of replies are far below 2^52")]
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl Score {
    /// Takes one verdict and the label of its reply.
    pub fn add(&mut self, verdict: &Verdict, label: &Label) {
        self.replies += 1;
        let (said, meant) = (verdict.claim == "change", label.claim == "change");
        self.change.add(said, meant);
        self.handoff.add(verdict.claim == "handoff", label.claim == "handoff");
        if let Some(family) = verdict.family.as_ref().filter(|_| said) {
            self.families.entry(family.clone()).or_default().add(true, meant);
        }
        *self.confusions.entry(label.claim.clone()).or_default().entry(verdict.claim.clone()).or_default() += 1;
        if said && meant {
            let known = match label.supported.as_deref() {
                Some("yes" | "assumed" | "partly") => Some(true),
                Some("no") => Some(false),
                _ => None,
            };
            if let Some(known) = known {
                self.supported.0 += 1;
                self.supported.1 += u64::from(known == (verdict.backed != Some(Backed::No)));
            }
        }
        if said != meant {
            self.differ.push((label.claim.clone(), verdict.clone()));
        }
    }
}
