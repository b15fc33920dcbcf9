//! What the property tests see of the engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use stof::model::{Graph, NodeRef, Params};
use stof::runtime::instruction::Instructions;

use super::values::{Bounds, ValueError, from_json, to_json};
use super::{additions, libraries, native, parse};
use crate::{Limits, Refused};

/// A graph to parse into, which counts how often something in it runs.
pub(crate) struct Scratch {
    graph: Graph,
    home: NodeRef,
    runs: Arc<AtomicUsize>,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        let mut graph = libraries::graph();
        let runs = Arc::new(AtomicUsize::new(0));
        let root = graph.ensure_main_root();
        let home = graph.insert_child("tools", &root, true);
        // Whatever a text calls by the names that the corpus uses.
        for (library, name) in [("Std", "pln"), ("App", "orders"), ("Std", "throw"), ("Std", "str")] {
            let runs = runs.clone();
            let body = move |_: &mut _, _: &mut Graph, _: Vec<_>| {
                runs.fetch_add(1, Ordering::Relaxed);
                Ok(Instructions::default())
            };
            native::install(&mut graph, library, name, Params::from([]), true, Arc::new(body));
        }
        Self { graph, home, runs }
    }

    pub(crate) fn parse_tool(&mut self, text: &str, name: &str) -> Result<(), Refused> {
        let home = self.home.clone();
        additions::parse_tool(&mut self.graph, text, &home, name).map(|_| ())
    }

    pub(crate) fn parse_fragment(&mut self, text: &str) {
        let home = self.home.clone();
        let _ = parse::into(&mut self.graph, text, Some(&home));
    }

    pub(crate) fn roots(&self) -> usize {
        self.graph.roots.len()
    }

    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::Relaxed)
    }
}

/// A value in the engine and out again.
pub(crate) fn there_and_back(value: &Value, limits: &Limits) -> Result<Value, ValueError> {
    let bounds = Bounds::of(limits);
    to_json(&libraries::bare_graph(), &from_json(value, bounds)?, bounds)
}
