//! Which objects are kept: those of the base, those in fields, and those that a kept one refers to. What a call made
//! for itself and forgot is neither saved nor left in memory.

use std::collections::{BTreeSet, HashSet};

use stof::model::{Field, Graph, NodeRef, Prototype};
use stof::runtime::Val;

use super::data::DataError;

/// Levels of objects.
pub(crate) const OBJECTS_DEPTH_MAX: usize = 128;
/// Objects of one document.
pub(crate) const OBJECTS_MAX: usize = 100_000;

/// The objects that are kept.
pub(crate) fn kept(graph: &Graph, base: &HashSet<NodeRef>) -> Result<BTreeSet<NodeRef>, DataError> {
    let mut kept = BTreeSet::new();
    let mut open: Vec<NodeRef> = graph.roots.iter().cloned().collect();
    open.extend(base.iter().filter(|node| graph.nodes.contains_key(*node)).cloned());
    while let Some(id) = open.pop() {
        let Some(node) = graph.nodes.get(&id).filter(|_| !kept.contains(&id)) else { continue };
        keep_with_parents(graph, &id, &mut open)?;
        let is_field = |child: &&NodeRef| graph.nodes.get(*child).is_some_and(stof::model::Node::is_field);
        open.extend(node.children.iter().filter(is_field).cloned());
        for data in node.data.values().filter_map(|data| graph.data.get(data)) {
            if let Some(field) = data.get::<Field>() {
                let mut left = OBJECTS_MAX;
                objects_in(&field.value.val.read_recursive(), 0, &mut left, &mut open);
            } else if let Some(prototype) = data.get::<Prototype>() {
                open.push(prototype.node.clone());
            }
        }
        kept.insert(id);
        if kept.len() > OBJECTS_MAX {
            return Err(DataError::Objects);
        }
    }
    Ok(kept)
}

/// An object is found through those that it is in, so they are kept as well.
fn keep_with_parents(graph: &Graph, node: &NodeRef, open: &mut Vec<NodeRef>) -> Result<(), DataError> {
    let mut parent = graph.nodes.get(node).and_then(|node| node.parent.clone());
    let mut depth = 0;
    while let Some(id) = parent {
        depth += 1;
        if depth > OBJECTS_DEPTH_MAX {
            return Err(DataError::Objects);
        }
        parent = graph.nodes.get(&id).and_then(|node| node.parent.clone());
        open.push(id);
    }
    Ok(())
}

fn objects_in(value: &Val, depth: usize, left: &mut usize, found: &mut Vec<NodeRef>) {
    if depth > OBJECTS_DEPTH_MAX || *left == 0 {
        return;
    }
    *left -= 1;
    match value {
        Val::Obj(node) => found.push(node.clone()),
        Val::List(items) | Val::Tup(items) => {
            items.iter().for_each(|item| objects_in(&item.read_recursive(), depth + 1, left, found));
        }
        Val::Set(items) => items.iter().for_each(|item| objects_in(&item.read_recursive(), depth + 1, left, found)),
        Val::Map(entries) => entries.iter().for_each(|(key, item)| {
            objects_in(&key.read_recursive(), depth + 1, left, found);
            objects_in(&item.read_recursive(), depth + 1, left, found);
        }),
        _ => {}
    }
}

/// Removes all other objects, one by one: there may be many within each other.
pub(crate) fn sweep(graph: &mut Graph, kept: &BTreeSet<NodeRef>) {
    if graph.nodes.len() == kept.len() {
        return;
    }
    let lost: Vec<NodeRef> = graph.nodes.keys().filter(|id| !kept.contains(*id)).cloned().collect();
    let mut parents = BTreeSet::new();
    for id in lost {
        let Some(node) = graph.nodes.remove(&id) else { continue };
        for data in node.data.values() {
            let alone = graph.data.get_mut(data).is_some_and(|data| {
                data.nodes.remove(&id);
                data.nodes.is_empty()
            });
            if alone {
                graph.data.remove(data);
            }
        }
        graph.remove_type(&id);
        parents.extend(node.parent);
    }
    for id in parents {
        let Some(mut parent) = graph.nodes.remove(&id) else { continue };
        parent.children.retain(|child| graph.nodes.contains_key(child));
        graph.nodes.insert(id, parent);
    }
}

/// Whether no value of a graph is so deep, or part of itself, that dropping it would overflow the stack.
pub(crate) fn can_be_dropped(graph: &Graph) -> bool {
    let mut left = 1_000_000;
    graph.data.values().filter_map(|data| data.get::<Field>()).all(|field| {
        let value = field.value.val.read_recursive();
        is_shallow(&value, 0, &mut left)
    })
}

fn is_shallow(value: &Val, depth: usize, left: &mut usize) -> bool {
    if depth > OBJECTS_DEPTH_MAX || *left == 0 {
        return false;
    }
    *left -= 1;
    match value {
        Val::List(items) | Val::Tup(items) => {
            items.iter().all(|item| is_shallow(&item.read_recursive(), depth + 1, left))
        }
        Val::Set(items) => items.iter().all(|item| is_shallow(&item.read_recursive(), depth + 1, left)),
        Val::Map(entries) => entries.iter().all(|(key, item)| {
            is_shallow(&key.read_recursive(), depth + 1, left) && is_shallow(&item.read_recursive(), depth + 1, left)
        }),
        _ => true,
    }
}
