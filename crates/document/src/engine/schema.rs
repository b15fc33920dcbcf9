//! Types of the engine as JSON schemas (`spec/documents.md`, 3.8).

use gesta_run::json::Object;
use serde_json::{Value, json};
use stof::model::{Field, Func, Graph, NodeRef, Param};
use stof::runtime::instructions::Base;
use stof::runtime::{NumT, Type, Val};

/// Prototypes within prototypes that are spelled out.
const DEPTH_MAX: usize = 6;
/// Properties of prototypes that are spelled out in one tool: a document can make its types refer to each other.
const PROPERTIES_MAX: usize = 200;

/// The schema of a function's arguments. `docs` has descriptions by parameter.
pub(crate) fn of_parameters(graph: &Graph, function: &Func, docs: &[(String, String)]) -> Value {
    let mut properties = Object::new();
    let mut required = Vec::new();
    let mut left = PROPERTIES_MAX;
    for param in function.params.iter() {
        let name = param.name.as_str();
        let mut schema = of_type(graph, &param.param_type, 0, &mut left);
        if is_optional(param) {
            schema = or_null(schema);
        }
        if let (Some((_, text)), Value::Object(schema)) = (docs.iter().find(|(of, _)| of == name), &mut schema) {
            schema.insert("description".to_owned(), Value::from(text.as_str()));
        }
        properties.insert(name.to_owned(), schema);
        if param.default.is_none() {
            required.push(Value::from(name));
        }
    }
    let mut schema = Object::new();
    schema.insert("type".to_owned(), Value::from("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".to_owned(), Value::Array(required));
    }
    Value::Object(schema)
}

/// Whether a parameter is null where it is not given.
fn is_optional(param: &Param) -> bool {
    let default = param.default.as_ref().map(|default| default.as_dyn_any().downcast_ref::<Base>());
    matches!(default, Some(Some(Base::Literal(Val::Null))))
}

fn or_null(schema: Value) -> Value {
    match schema.as_object() {
        Some(fields) if fields.is_empty() => schema,
        Some(fields) if fields.len() == 1 && fields.contains_key("type") => match &fields["type"] {
            Value::Array(names) => {
                let mut names = names.clone();
                names.push(Value::from("null"));
                json!({"type": names})
            }
            name => json!({"type": [name, "null"]}),
        },
        _ => json!({"anyOf": [schema, {"type": "null"}]}),
    }
}

/// The schema of a type.
fn of_type(graph: &Graph, of: &Type, depth: usize, left: &mut usize) -> Value {
    match of {
        Type::Null | Type::Void => json!({"type": "null"}),
        Type::Bool => json!({"type": "boolean"}),
        Type::Num(NumT::Int) => json!({"type": "integer"}),
        Type::Num(_) => json!({"type": "number"}),
        Type::Str | Type::Ver | Type::Prompt => json!({"type": "string"}),
        Type::Blob => json!({"type": "string", "contentEncoding": "base64"}),
        Type::List => json!({"type": "array"}),
        Type::Set => json!({"type": "array", "uniqueItems": true}),
        Type::Tup(items) => {
            let items: Vec<Value> = items.iter().map(|item| of_type(graph, item, depth, left)).collect();
            json!({"type": "array", "prefixItems": items, "minItems": items.len(), "maxItems": items.len()})
        }
        Type::Map => json!({"type": "object"}),
        Type::Obj(name) => of_prototype(graph, name, depth, left),
        Type::NotNull(inner) | Type::Promise(inner) => of_type(graph, inner, depth, left),
        Type::Union(alternatives) => {
            let all: Vec<Value> = alternatives.iter().map(|one| of_type(graph, one, depth, left)).collect();
            match simple_names(&all) {
                Some(names) => json!({"type": names}),
                None => json!({"anyOf": all}),
            }
        }
        Type::Unknown | Type::Fn | Type::Data(_) => json!({}),
    }
}

/// The names of alternatives that are nothing but a name of a type.
fn simple_names(schemas: &[Value]) -> Option<Vec<&str>> {
    schemas.iter().map(|schema| if schema.as_object()?.len() == 1 { schema["type"].as_str() } else { None }).collect()
}

/// A prototype with fields is an object with properties.
fn of_prototype(graph: &Graph, name: &NodeRef, depth: usize, left: &mut usize) -> Value {
    let node = if name.node_exists(graph) { Some(name.clone()) } else { graph.find_type(name.as_str(), None) };
    let Some(node) = node.as_ref().and_then(|node| node.node(graph)).filter(|_| depth < DEPTH_MAX) else {
        return json!({"type": "object"});
    };
    let mut properties = Object::new();
    for (field_name, data) in &node.data {
        let Some(field) = graph.get_stof_data::<Field>(data) else { continue };
        let value = field.value.val.read_recursive();
        let of = field.value.vtype.clone().unwrap_or_else(|| value.gen_type());
        if matches!(of, Type::Fn) {
            continue;
        }
        let Some(fewer) = left.checked_sub(1) else { break };
        *left = fewer;
        let held = value.try_obj();
        let schema = match held {
            Some(held) => of_prototype(graph, &held, depth + 1, left),
            None => of_type(graph, &of, depth + 1, left),
        };
        properties.insert(field_name.clone(), schema);
    }
    if properties.is_empty() { json!({"type": "object"}) } else { json!({"type": "object", "properties": properties}) }
}
