//! What of a document can act: its roots, functions, prototypes. Counted after loading, compared after each call
//! (`spec/documents.md`, 3.6).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use stof::model::{DataRef, Field, Func, Graph, NodeRef, Prototype, SId};
use stof::runtime::Val;

/// What may act, as the record has it.
#[derive(Debug, Default)]
pub(crate) struct Census {
    roots: HashSet<NodeRef>,
    functions: HashMap<DataRef, Known>,
    /// Objects that functions belong to, with the path by which they are found.
    holders: HashMap<NodeRef, String>,
    prototypes: HashMap<NodeRef, NodeRef>,
    types: HashMap<String, HashSet<NodeRef>>,
    /// Fields that hold functions.
    holding: HashMap<DataRef, Vec<DataRef>>,
    /// All objects.
    pub(crate) nodes: Arc<HashSet<NodeRef>>,
}

/// A function as it was.
#[derive(Debug)]
struct Known {
    name: SId,
    nodes: HashSet<NodeRef>,
    function: Func,
}

/// Objects within objects.
const PATH_MAX: usize = 256;
/// Levels of a value that are searched for functions.
const DEPTH_MAX: usize = 64;

impl Census {
    /// Counts.
    pub(crate) fn take(graph: &Graph) -> Self {
        let mut census = Self { roots: graph.roots.iter().cloned().collect(), ..Self::default() };
        for (id, data) in &graph.data {
            if let Some(function) = data.get::<Func>() {
                let nodes: HashSet<NodeRef> = data.nodes.iter().cloned().collect();
                for node in &nodes {
                    census.holders.insert(node.clone(), path(graph, node));
                }
                census
                    .functions
                    .insert(id.clone(), Known { name: data.name.clone(), nodes, function: function.clone() });
            } else if let Some(prototype) = data.get::<Prototype>() {
                for node in &data.nodes {
                    census.prototypes.insert(node.clone(), prototype.node.clone());
                }
            } else if let Some(field) = data.get::<Field>() {
                let held = functions_in(&field.value.val.read_recursive());
                if !held.is_empty() {
                    census.holding.insert(id.clone(), held);
                }
            }
        }
        for (name, nodes) in &graph.typemap {
            census.types.insert(name.clone(), nodes.iter().cloned().collect());
        }
        census.nodes = Arc::new(graph.nodes.keys().cloned().collect());
        census
    }

    /// What differs from the record, in words; none where nothing does. `allowed` are tools that this call added.
    pub(crate) fn difference(&self, graph: &Graph, tools: Option<&NodeRef>, allowed: &[&str]) -> Option<String> {
        self.roots_differ(graph)
            .or_else(|| self.functions_differ(graph, tools, allowed))
            .or_else(|| self.prototypes_differ(graph))
            .or_else(|| self.types_differ(graph))
    }

    /// Whether there is a root too many or too few, in words.
    pub(crate) fn roots_differ(&self, graph: &Graph) -> Option<String> {
        let strange = graph.roots.iter().find(|root| !self.roots.contains(*root));
        if let Some(root) = strange {
            let name = root.node_name(graph).map(|name| name.to_string()).unwrap_or_default();
            return Some(format!("the call made the root `{name}`"));
        }
        (graph.roots.len() < self.roots.len()).then(|| "the call removed a root".to_owned())
    }

    fn functions_differ(&self, graph: &Graph, tools: Option<&NodeRef>, allowed: &[&str]) -> Option<String> {
        let is_allowed = |name: &str, nodes: &HashSet<NodeRef>| {
            allowed.contains(&name) && tools.is_some_and(|tools| nodes.len() == 1 && nodes.contains(tools))
        };
        let mut found = 0;
        for (id, data) in &graph.data {
            if let Some(function) = data.get::<Func>() {
                let nodes: HashSet<NodeRef> = data.nodes.iter().cloned().collect();
                match self.functions.get(id) {
                    Some(known) if known.is(&data.name, &nodes, function) => found += 1,
                    Some(_) => return Some(format!("the call changed the function `{}`", data.name)),
                    None if is_allowed(data.name.as_str(), &nodes) => {}
                    None => return Some(format!("the call attached the function `{}`", data.name)),
                }
            } else if let Some(field) = data.get::<Field>() {
                let held = functions_in(&field.value.val.read_recursive());
                if self.holding.get(id).map_or(!held.is_empty(), |known| known != &held) {
                    return Some(format!("the call changed the functions in the field `{}`", data.name));
                }
            }
        }
        let replaced = self
            .functions
            .iter()
            .filter(|(id, known)| !graph.data.contains_key(*id) && is_allowed(known.name.as_str(), &known.nodes));
        if found + replaced.count() < self.functions.len() {
            let gone = self.functions.iter().find(|(id, _)| !graph.data.contains_key(*id));
            let name = gone.map(|(_, known)| known.name.to_string()).unwrap_or_default();
            return Some(format!("the call removed the function `{name}`"));
        }
        let moved = self.holders.iter().find(|(node, known)| {
            path(graph, node) != **known
                || graph.find_node_named(known.as_str(), None).as_ref() != Some(*node)
                || is_hidden(graph, node)
        });
        moved.map(|(_, path)| format!("the call moved or hid the object `{path}`, which has functions"))
    }

    /// A new object may have a prototype that the record knows as a type; all other prototypes stay as they are.
    fn prototypes_differ(&self, graph: &Graph) -> Option<String> {
        let mut found = 0;
        for data in graph.data.values() {
            let Some(prototype) = data.get::<Prototype>() else { continue };
            for node in &data.nodes {
                match self.prototypes.get(node) {
                    Some(known) if known == &prototype.node => found += 1,
                    Some(_) => return Some("the call changed a prototype".to_owned()),
                    None if !self.nodes.contains(node) && self.is_type(graph, &prototype.node) => {}
                    None => return Some("the call gave an object a prototype".to_owned()),
                }
            }
        }
        let dropped = self.prototypes.keys().filter(|node| !graph.nodes.contains_key(*node)).count();
        (found + dropped < self.prototypes.len()).then(|| "the call removed a prototype".to_owned())
    }

    /// Whether an object is a type of the record, or belongs to one.
    fn is_type(&self, graph: &Graph, node: &NodeRef) -> bool {
        self.nodes.contains(node)
            && is_within(graph, node, |node| self.types.values().any(|nodes| nodes.contains(node)))
    }

    fn types_differ(&self, graph: &Graph) -> Option<String> {
        let strange = graph.typemap.iter().find(|(name, nodes)| {
            self.types.get(*name).is_none_or(|known| nodes.iter().any(|node| !known.contains(node)))
        });
        strange.map(|(name, _)| format!("the call made the type `{name}`"))
    }

    /// Removes the arrow functions that a call left in the graph; they are made anew each time they are evaluated.
    pub(crate) fn sweep_arrows(&self, graph: &mut Graph) {
        let stray: Vec<DataRef> = graph
            .data
            .iter()
            .filter(|(id, data)| {
                !self.functions.contains_key(*id)
                    && data.name == **id
                    && data.get::<Func>().is_some_and(|function| {
                        function.attributes.contains_key("arrow")
                            && function.attributes.keys().all(|key| key == "arrow" || key == "async")
                    })
            })
            .map(|(id, _)| id.clone())
            .collect();
        for id in stray {
            graph.remove_data(&id, None);
        }
    }
}

impl Known {
    /// Whether the function is the same: the engine shares what it does not change.
    fn is(&self, name: &SId, nodes: &HashSet<NodeRef>, function: &Func) -> bool {
        &self.name == name
            && &self.nodes == nodes
            && Arc::ptr_eq(&self.function.params, &function.params)
            && self.has_instructions_of(function)
            && self.function.attributes.len() == function.attributes.len()
            && function
                .attributes
                .iter()
                .all(|(key, value)| self.function.attributes.get(key).is_some_and(|known| same_attribute(known, value)))
    }
}

impl Known {
    /// Short lists of instructions are not shared as a whole, but their instructions are.
    fn has_instructions_of(&self, function: &Func) -> bool {
        let (own, theirs) = (&self.function.instructions, &function.instructions);
        own.ptr_eq(theirs)
            || own.len() == theirs.len() && own.iter().zip(theirs).all(|(own, theirs)| Arc::ptr_eq(own, theirs))
    }
}

fn same_attribute(known: &Val, value: &Val) -> bool {
    match (known, value) {
        (Val::Str(known), Val::Str(value)) => known == value,
        (Val::Null | Val::Void, Val::Null | Val::Void) => true,
        (Val::Bool(known), Val::Bool(value)) => known == value,
        (Val::Num(known), Val::Num(value)) => known == value,
        // Others mean nothing to the host.
        _ => std::mem::discriminant(known) == std::mem::discriminant(value),
    }
}

/// The functions in a value.
pub(crate) fn functions_in(value: &Val) -> Vec<DataRef> {
    let mut found = Vec::new();
    // Deeper than this, or larger, the value is refused when it is saved.
    let mut left = 100_000_usize;
    collect(value, 0, &mut left, &mut found);
    found
}

fn collect(value: &Val, depth: usize, left: &mut usize, found: &mut Vec<DataRef>) {
    if depth > DEPTH_MAX || *left == 0 {
        return;
    }
    *left -= 1;
    match value {
        Val::Fn(function) => found.push(function.clone()),
        Val::List(items) | Val::Tup(items) => {
            items.iter().for_each(|item| collect(&item.read_recursive(), depth + 1, left, found));
        }
        Val::Set(items) => items.iter().for_each(|item| collect(&item.read_recursive(), depth + 1, left, found)),
        Val::Map(entries) => entries.iter().for_each(|(key, item)| {
            collect(&key.read_recursive(), depth + 1, left, found);
            collect(&item.read_recursive(), depth + 1, left, found);
        }),
        _ => {}
    }
}

/// Whether a field of another value stands where an object, or one that it is in, is looked for.
fn is_hidden(graph: &Graph, node: &NodeRef) -> bool {
    let mut current = node.clone();
    for _ in 0..PATH_MAX {
        let Some(node) = graph.nodes.get(&current) else { return true };
        let Some(parent) = node.parent.clone() else { return false };
        let data = graph.nodes.get(&parent).and_then(|parent| parent.data.get(node.name.as_str()));
        if let Some(data) = data {
            let field = graph.get_stof_data::<Field>(data);
            if field.and_then(|field| field.value.try_obj()).as_ref() != Some(&current) {
                return true;
            }
        }
        current = parent;
    }
    true
}

/// Whether an object, or one that it is in, is such.
pub(crate) fn is_within(graph: &Graph, node: &NodeRef, is_such: impl Fn(&NodeRef) -> bool) -> bool {
    let mut current = Some(node.clone());
    for _ in 0..PATH_MAX {
        let Some(node) = current else { return false };
        if is_such(&node) {
            return true;
        }
        current = graph.nodes.get(&node).and_then(|node| node.parent.clone());
    }
    false
}

/// The path of an object, by names from its root. Objects that were moved into each other have none.
pub(crate) fn path(graph: &Graph, node: &NodeRef) -> String {
    let mut names = Vec::new();
    let mut next = Some(node.clone());
    while let Some(current) = next {
        let Some(node) = graph.nodes.get(&current).filter(|_| names.len() < PATH_MAX) else { return String::new() };
        names.push(node.name.as_str());
        next = node.parent.clone();
    }
    names.reverse();
    names.join(".")
}
