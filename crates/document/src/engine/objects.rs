//! Objects made of JSON, for parameters that want one. Nothing refers to them but the call, so they are not saved.

use serde_json::Value;
use stof::imbl::Vector;
use stof::model::{Field, Graph, NodeRef, SId};
use stof::runtime::{Num, Val, ValRef, Variable};

/// The value with each JSON object as an object of the graph. Its limits have been checked.
pub(crate) fn made_of(graph: &mut Graph, value: &Value) -> Val {
    let root = graph.ensure_main_root();
    made_on(graph, value, &root)
}

fn made_on(graph: &mut Graph, value: &Value, parent: &NodeRef) -> Val {
    match value {
        Value::Null => Val::Null,
        Value::Bool(yes) => Val::Bool(*yes),
        Value::Number(number) => Val::Num(match number.as_i64() {
            Some(int) => Num::Int(int),
            None => Num::Float(number.as_f64().unwrap_or(f64::NAN)),
        }),
        Value::String(text) => Val::Str(text.as_str().into()),
        Value::Array(items) => {
            let items: Vector<_> = items.iter().map(|item| ValRef::new(made_on(graph, item, parent))).collect();
            Val::List(items)
        }
        Value::Object(entries) => {
            let object = graph.insert_child(SId::default(), parent, false);
            for (name, value) in entries {
                let value = made_on(graph, value, &object);
                let field = Field::new(Variable::val(value), None);
                graph.insert_stof_data(&object, name.as_str(), Box::new(field), None);
            }
            Val::Obj(object)
        }
    }
}
