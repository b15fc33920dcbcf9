//! Saved data laid over what the base and the added tools make, by path; under another base too
//! (`spec/documents.md`, 3.10).

use std::collections::{BTreeSet, HashMap, HashSet};

use stof::imbl::{OrdMap, OrdSet, Vector};
use stof::model::{Field, Func, Graph, Node, NodeRef, Prototype};
use stof::runtime::{Type, Val, ValRef};

use super::census::{functions_in, is_within};
use super::data::{DataError, UNCHANGED};
use super::kept::{OBJECTS_DEPTH_MAX, OBJECTS_MAX};
use super::tools;
use crate::Limits;

/// Tools that are named where a foreign image has more than there are.
const LEFT_OUT_MAX: usize = 64;

/// Puts saved data into a graph that holds the base and the added tools. `same_base` says that the base is the one it
/// was saved under: then what the base has and the data has not was removed by the document. Gives the tools that stand
/// in the data and not in the graph: its functions are not taken.
pub(crate) fn restore(
    graph: &mut Graph,
    bytes: &[u8],
    same_base: bool,
    limits: &Limits,
) -> Result<Vec<String>, DataError> {
    if bytes.len() > limits.data_bytes_max {
        return Err(DataError::Size { max: limits.data_bytes_max });
    }
    let image = stof::model::cautious::bincode_deserialize::<Graph>(bytes)
        .map_err(|error| DataError::Read(error.to_string()))?;
    let mut merge = Merge { image: &image, graph, objects: HashMap::new(), same_base, base: HashSet::new() };
    merge.base = merge.graph.nodes.keys().cloned().collect();
    merge.pair_objects()?;
    merge.fields();
    if same_base {
        merge.remove_missing();
    }
    let known = tools::all(graph);
    let mut left_out = tools_of(&image);
    left_out.retain(|name| !known.iter().any(|tool| tool.name == *name));
    left_out.truncate(LEFT_OUT_MAX);
    Ok(left_out)
}

/// The functions tagged `tool` of an image, sorted, wherever they stand: nothing is followed in what may be damaged.
fn tools_of(image: &Graph) -> Vec<String> {
    let named = image.nodes.values().flat_map(|node| node.data.iter());
    let is_tool = |id| {
        let function = image.data.get(id).and_then(|data| data.get::<Func>());
        function.is_some_and(|function| function.attributes.contains_key("tool"))
    };
    let names: BTreeSet<String> = named.filter(|(_, id)| is_tool(*id)).map(|(name, _)| name.to_string()).collect();
    names.into_iter().collect()
}

struct Merge<'a> {
    image: &'a Graph,
    graph: &'a mut Graph,
    /// From an object of the image to the one in the graph.
    objects: HashMap<NodeRef, NodeRef>,
    same_base: bool,
    base: HashSet<NodeRef>,
}

impl Merge<'_> {
    /// Finds each object of the image in the graph, by its path, and makes those that are not there.
    fn pair_objects(&mut self) -> Result<(), DataError> {
        let mut open = Vec::new();
        for root in &self.image.roots {
            let Some(name) = self.image.nodes.get(root).map(|node| node.name.clone()) else { continue };
            if let Some(own) = self.graph.find_root_named(name) {
                open.push((root.clone(), own, 0));
            }
        }
        while let Some((theirs, own, depth)) = open.pop() {
            if self.objects.insert(theirs.clone(), own.clone()).is_some() {
                continue;
            }
            if depth > OBJECTS_DEPTH_MAX || self.objects.len() > OBJECTS_MAX {
                return Err(DataError::Objects);
            }
            let Some(node) = self.image.nodes.get(&theirs) else { continue };
            for child in &node.children {
                let Some(node) = self.image.nodes.get(child).filter(|node| node.parent.as_ref() == Some(&theirs))
                else {
                    continue;
                };
                let found = self.child_named(&own, node);
                let own_child = found.unwrap_or_else(|| self.make_object(node, &own));
                open.push((child.clone(), own_child, depth + 1));
            }
        }
        Ok(())
    }

    fn child_named(&self, parent: &NodeRef, wanted: &Node) -> Option<NodeRef> {
        let parent = self.graph.nodes.get(parent)?;
        let of_base = |child: &&NodeRef| self.base.contains(*child);
        let named = |child: &&NodeRef| self.graph.nodes.get(*child).is_some_and(|node| node.name == wanted.name);
        parent.children.iter().filter(of_base).find(named).cloned()
    }

    fn make_object(&mut self, node: &Node, parent: &NodeRef) -> NodeRef {
        let id = if self.graph.nodes.contains_key(&node.id) { NodeRef::default() } else { node.id.clone() };
        let made = Node::new(node.name.clone(), id, node.is_field());
        self.graph.insert_stof_node(made, Some(parent.clone()))
    }

    /// Takes the values of the image's fields.
    fn fields(&mut self) {
        let pairs: Vec<(NodeRef, NodeRef)> =
            self.objects.iter().map(|(theirs, own)| (theirs.clone(), own.clone())).collect();
        for (theirs, own) in pairs {
            let Some(node) = self.image.nodes.get(&theirs) else { continue };
            for (name, id) in &node.data {
                let Some(data) = self.image.data.get(id).filter(|data| data.nodes.contains(&theirs)) else { continue };
                if let Some(prototype) = data.get::<Prototype>() {
                    self.prototype(&own, name, prototype);
                } else if let Some(field) = data.get::<Field>() {
                    self.field(&own, name, field);
                }
            }
        }
    }

    /// A new object keeps its prototype where that is a type of the base.
    fn prototype(&mut self, own: &NodeRef, name: &str, prototype: &Prototype) {
        let Some(target) = self.objects.get(&prototype.node).cloned() else { return };
        let types = &self.graph.typemap;
        let is_type = is_within(self.graph, &target, |node| types.values().any(|nodes| nodes.contains(node)));
        if is_type && self.base.contains(&target) && !self.base.contains(own) {
            let data = Box::new(Prototype { node: target });
            self.graph.insert_stof_data(own, name, data, None);
        }
    }

    fn field(&mut self, own: &NodeRef, name: &str, field: &Field) {
        if !self.same_base && field.attributes.contains_key(UNCHANGED) {
            return;
        }
        let Some(value) = self.value(&field.value.val.read_recursive(), 0) else { return };
        let existing = self.graph.nodes.get(own).and_then(|node| node.data.get(name)).cloned();
        let mut restored = field.clone();
        restored.value.val = ValRef::new(value);
        restored.attributes.retain(|key, value| key != UNCHANGED && functions_in(value).is_empty());
        match existing {
            None => {
                self.turn_type(&mut restored);
                self.graph.insert_stof_data(own, name, Box::new(restored), None);
            }
            Some(existing) => {
                let Some(base) = self.graph.get_stof_data::<Field>(&existing) else { return };
                // What a document cannot set is the operator's, under a new base too.
                let settable = base.value.mutable && base.can_set();
                if settable && functions_in(&base.value.val.read_recursive()).is_empty() {
                    restored.attributes.clone_from(&base.attributes);
                    restored.value.mutable = base.value.mutable;
                    restored.value.vtype.clone_from(&base.value.vtype);
                    self.graph.set_stof_data(&existing, Box::new(restored));
                }
            }
        }
    }

    /// A type that is an object of the image becomes the one of the graph.
    fn turn_type(&self, field: &mut Field) {
        if let Some(Type::Obj(of)) = &mut field.value.vtype
            && let Some(own) = self.objects.get(of)
        {
            *of = own.clone();
        }
    }

    /// The value with its references to objects turned to the graph's; none where it refers to what is not there, or
    /// holds a function.
    fn value(&self, value: &Val, depth: usize) -> Option<Val> {
        if depth > OBJECTS_DEPTH_MAX {
            return None;
        }
        let inner = |item: &ValRef<Val>| Some(ValRef::new(self.value(&item.read_recursive(), depth + 1)?));
        Some(match value {
            Val::Obj(node) => Val::Obj(self.objects.get(node)?.clone()),
            Val::Fn(_) | Val::Data(_) | Val::Promise(..) => return None,
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

    /// Removes fields and objects of the base that the document had removed. What has functions stays.
    fn remove_missing(&mut self) {
        debug_assert!(self.same_base);
        let matched: HashSet<NodeRef> = self.objects.values().cloned().collect();
        let gone: Vec<NodeRef> =
            self.base.iter().filter(|node| !matched.contains(*node) && !self.has_functions(node)).cloned().collect();
        for node in gone {
            self.graph.remove_node(&node, true);
        }
        let mut fields = Vec::new();
        for (theirs, own) in &self.objects {
            let (Some(theirs), Some(own)) = (self.image.nodes.get(theirs), self.graph.nodes.get(own)) else { continue };
            for (name, id) in &own.data {
                let Some(field) = self.graph.get_stof_data::<Field>(id).filter(|_| !theirs.data.contains_key(name))
                else {
                    continue;
                };
                let value = field.value.val.read_recursive();
                if !matches!(&*value, Val::Obj(_)) && functions_in(&value).is_empty() {
                    fields.push(id.clone());
                }
            }
        }
        for field in fields {
            self.graph.remove_data(&field, None);
        }
    }

    /// Whether something below an object can act.
    fn has_functions(&self, node: &NodeRef) -> bool {
        let below = self.graph.all_child_nodes(node, true);
        below.iter().any(|node| {
            let Some(node) = self.graph.nodes.get(node) else { return false };
            node.data.values().any(|id| {
                self.graph.data.get(id).is_some_and(|data| match data.get::<Field>() {
                    Some(field) => !functions_in(&field.value.val.read_recursive()).is_empty(),
                    None => true,
                })
            })
        })
    }
}
