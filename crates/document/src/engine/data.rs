//! The data of a document in the engine's own binary form: fields and objects, never functions
//! (`spec/documents.md`, 3.9).

use std::collections::{BTreeSet, HashMap, HashSet};

use stof::imbl::{OrdMap, OrdSet, Vector};
use stof::model::{
    BstfFormat, Data, DataRef, Field, Format as _, Graph, NOEXPORT_FIELD_ATTR, Node, NodeRef, Prototype,
};
use stof::runtime::{Val, ValRef};

use super::census::functions_in;
use super::kept::{OBJECTS_DEPTH_MAX, OBJECTS_MAX};
use super::libraries::bare_graph;
use super::values::ValueError;
use crate::Limits;

/// Why data cannot be saved or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DataError {
    #[error("the document cannot be saved: in `{field}`, {error}")]
    Value { field: String, error: ValueError },
    #[error("the document's data is larger than {max} bytes; remove something")]
    Size { max: usize },
    #[error("the document has more than {OBJECTS_MAX} objects, or more than {OBJECTS_DEPTH_MAX} levels of them")]
    Objects,
    #[error("the data cannot be written: {0}")]
    Write(String),
    #[error("the saved data cannot be read ({0}); import an export of it, or begin anew")]
    Read(String),
}

/// What the base makes, before anything is added or restored.
#[derive(Debug, Default)]
pub(crate) struct Base {
    /// Its objects.
    pub(crate) nodes: HashSet<NodeRef>,
    /// The values of its fields.
    initial: HashMap<DataRef, Val>,
}

impl Base {
    /// Of a graph that holds nothing else.
    pub(crate) fn of(graph: &Graph) -> Self {
        let initial = |(id, data): (&DataRef, &Data)| {
            let field = data.get::<Field>()?;
            Some((id.clone(), copied(&field.value.val.read_recursive(), 0)?))
        };
        Self { nodes: graph.nodes.keys().cloned().collect(), initial: graph.data.iter().filter_map(initial).collect() }
    }

    /// Whether a field of the base has the value that the base gave it. The value is within the limits.
    fn is_unchanged(&self, id: &DataRef, value: &Val) -> bool {
        self.initial
            .get(id)
            .is_some_and(|initial| std::mem::discriminant(initial) == std::mem::discriminant(value) && initial == value)
    }
}

/// Marks, in saved data alone, a field that the document has not changed: under a new base it takes the new value.
pub(crate) const UNCHANGED: &str = "gesta-unchanged";

/// A copy that shares nothing which can be changed; none of what is too deep.
fn copied(value: &Val, depth: usize) -> Option<Val> {
    if depth > OBJECTS_DEPTH_MAX {
        return None;
    }
    let inner = |item: &ValRef<Val>| Some(ValRef::new(copied(&item.read_recursive(), depth + 1)?));
    Some(match value {
        Val::List(items) => Val::List(items.iter().map(inner).collect::<Option<Vector<_>>>()?),
        Val::Tup(items) => Val::Tup(items.iter().map(inner).collect::<Option<Vector<_>>>()?),
        Val::Set(items) => Val::Set(items.iter().map(inner).collect::<Option<OrdSet<_>>>()?),
        Val::Map(entries) => {
            let pairs = entries.iter().map(|(key, item)| Some((inner(key)?, inner(item)?)));
            Val::Map(pairs.collect::<Option<OrdMap<_, _>>>()?)
        }
        other => other.clone(),
    })
}

/// Writes the data of the objects that are kept ([`super::kept`]).
pub(crate) fn save(
    graph: &Graph,
    kept: &BTreeSet<NodeRef>,
    base: &Base,
    limits: &Limits,
) -> Result<Vec<u8>, DataError> {
    let mut saver = Saver { graph, base, limits, bytes_left: limits.data_bytes_max };
    let mut image = bare_graph();
    // In order of their ids, so that the same data gives the same bytes.
    for id in kept {
        let Some(node) = graph.nodes.get(id) else { continue };
        let mut copy = object(node, kept);
        for (name, data) in &node.data {
            if let Some(data) = saver.field(node, name, data)? {
                copy.data.insert(name.clone(), data.id.clone());
                image.data.insert(data.id.clone(), data);
            }
        }
        if node.parent.is_none() {
            image.roots.insert(id.clone());
        }
        image.nodes.insert(id.clone(), copy);
    }
    let bytes = BstfFormat {}
        .binary_export(&image, "bstf", None)
        .map_err(|error| DataError::Write(super::errors::plain(&error.to_string())))?;
    if bytes.len() > limits.data_bytes_max {
        return Err(DataError::Size { max: limits.data_bytes_max });
    }
    Ok(bytes.to_vec())
}

/// An object without its data.
fn object(node: &Node, kept: &BTreeSet<NodeRef>) -> Node {
    let mut copy = Node::new(node.name.clone(), node.id.clone(), node.is_field());
    copy.parent.clone_from(&node.parent);
    copy.children = node.children.iter().filter(|child| kept.contains(*child)).cloned().collect();
    copy
}

struct Saver<'a> {
    graph: &'a Graph,
    base: &'a Base,
    limits: &'a Limits,
    bytes_left: usize,
}

impl Saver<'_> {
    /// A field that is saved, with its value checked: within limits, and without functions.
    fn field(&mut self, node: &Node, name: &str, id: &DataRef) -> Result<Option<Data>, DataError> {
        let Some(data) = self.graph.data.get(id) else { return Ok(None) };
        if data.get::<Prototype>().is_some() {
            // Those of the record come from the base.
            return Ok((!self.base.nodes.contains(&node.id)).then(|| alone(data, node)));
        }
        let Some(field) = data.get::<Field>() else { return Ok(None) };
        let value = field.value.val.read_recursive();
        if self.is_made_in_passing(node, name, field, &value) {
            return Ok(None);
        }
        let error = |error| DataError::Value { field: name.to_owned(), error };
        self.measure(&value, 0).map_err(error)?;
        for attribute in field.attributes.values() {
            self.measure(attribute, 0).map_err(error)?;
        }
        self.take(64 + name.len()).map_err(error)?;
        if !functions_in(&value).is_empty() {
            return Ok(None);
        }
        let mut copy = alone(data, node);
        if self.base.is_unchanged(id, &value)
            && let Some(field) = copy.get_mut::<Field>()
        {
            field.attributes.insert(UNCHANGED.to_owned(), Val::Null);
        }
        Ok(Some(copy))
    }

    /// The engine makes a field for an object when somebody looks for it; that is no change.
    fn is_made_in_passing(&self, node: &Node, name: &str, field: &Field, value: &Val) -> bool {
        let Val::Obj(child) = value else { return false };
        field.attributes.contains_key(NOEXPORT_FIELD_ATTR.as_str())
            && node.children.contains(child)
            && self.graph.nodes.get(child).is_some_and(|child| child.name.as_str() == name && child.is_field())
    }

    fn take(&mut self, bytes: usize) -> Result<(), ValueError> {
        let left = self.bytes_left.checked_sub(bytes);
        self.bytes_left = left.ok_or(ValueError::Size { max: self.limits.data_bytes_max })?;
        Ok(())
    }

    /// Counts a value against the limits before it is written: writing one that contains itself would never end.
    fn measure(&mut self, value: &Val, depth: usize) -> Result<(), ValueError> {
        if depth > self.limits.value_depth_max {
            return Err(ValueError::Depth { max: self.limits.value_depth_max });
        }
        self.take(5)?;
        match value {
            Val::Str(text) => self.take(text.len()),
            Val::Blob(bytes) => self.take(bytes.len()),
            Val::List(items) | Val::Tup(items) => {
                items.iter().try_for_each(|item| self.measure(&item.read_recursive(), depth + 1))
            }
            Val::Set(items) => items.iter().try_for_each(|item| self.measure(&item.read_recursive(), depth + 1)),
            Val::Map(entries) => entries.iter().try_for_each(|(key, item)| {
                self.measure(&key.read_recursive(), depth + 1)?;
                self.measure(&item.read_recursive(), depth + 1)
            }),
            Val::Prompt(prompt) => self.prompt(prompt, depth),
            _ => Ok(()),
        }
    }

    fn prompt(&mut self, prompt: &stof::runtime::Prompt, depth: usize) -> Result<(), ValueError> {
        if depth > self.limits.value_depth_max {
            return Err(ValueError::Depth { max: self.limits.value_depth_max });
        }
        self.take(prompt.text.len() + 8)?;
        prompt.prompts.iter().try_for_each(|inner| self.prompt(inner, depth + 1))
    }
}

/// A copy that belongs to this object alone.
fn alone(data: &Data, node: &Node) -> Data {
    let mut copy = data.clone();
    copy.dirty.clear();
    copy.nodes.clear();
    copy.nodes.insert(node.id.clone());
    copy
}
