//! Checks the tools that a request offers, and how it wants them chosen.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::model::fields::{Kind, found, is_word, openai, openai_needs};
use crate::model::refusal::{Checked, Refusal};

/// How many tools a request may offer.
const TOOLS_MAX: usize = 128;

pub(super) fn check(body: &Map<String, Value>) -> Checked {
    let offered = body.get("tools").filter(|tools| !tools.is_null());
    let Some(tools) = offered.and_then(Value::as_array) else {
        for key in ["tool_choice", "parallel_tool_calls"] {
            if body.get(key).is_some_and(|value| !value.is_null() && value != "none") {
                return Err(Refusal::bad(format!("'{key}' is only allowed when 'tools' are specified.")).at(key));
            }
        }
        return Ok(());
    };
    if tools.is_empty() {
        return Err(empty("tools"));
    }
    if tools.len() > TOOLS_MAX {
        let why = format!(
            "Invalid 'tools': array too long. Expected an array with maximum length {TOOLS_MAX}, but got an \
             array with length {} instead.",
            tools.len()
        );
        return Err(Refusal::bad(why).code("array_above_max_length").at("tools"));
    }
    let mut names = HashSet::new();
    for (n, tool) in tools.iter().enumerate() {
        let at = format!("tools[{n}]");
        let Some(name) = one(tool, &at)? else { continue };
        if !names.insert(name) {
            return Err(Refusal::bad(format!("Duplicate tool name '{name}' in '{at}'.")).code("invalid_value").at(at));
        }
    }
    choice(body.get("tool_choice"), &names)
}

/// One tool; its name, if it is a function.
fn one<'a>(tool: &'a Value, at: &str) -> Checked<Option<&'a str>> {
    let Value::Object(tool) = tool else {
        let why = format!("Invalid type for '{at}': expected an object, but got {} instead.", found(tool));
        return Err(Refusal::bad(why).code("invalid_type").at(at));
    };
    match openai_needs(tool, at, ("type", Kind::Text))?.as_str().unwrap_or_default() {
        "function" => {}
        "custom" => return Ok(None),
        other => {
            let why = format!("Invalid value: '{other}'. Supported values are: 'function' and 'custom'.");
            return Err(Refusal::bad(why).code("invalid_value").at(format!("{at}.type")));
        }
    }
    let at = format!("{at}.function");
    let Value::Object(function) = openai_needs(tool, at.trim_end_matches(".function"), ("function", Kind::Object))?
    else {
        return Ok(None);
    };
    let name_of = openai_needs(function, &at, ("name", Kind::Text))?.as_str().unwrap_or_default();
    name(name_of, &format!("{at}.name"))?;
    openai(function, &at, &[("description", Kind::Text), ("strict", Kind::Flag), ("parameters", Kind::Object)])?;
    if let Some(why) = function.get("parameters").and_then(wrong_schema) {
        return Err(Refusal::bad(format!("Invalid schema for function '{name_of}': {why}"))
            .code("invalid_function_parameters")
            .at(format!("{at}.parameters")));
    }
    Ok(Some(name_of))
}

/// What is wrong with the schema of a tool's parameters, as far as a service looks.
pub(in crate::model) fn wrong_schema(schema: &Value) -> Option<String> {
    let object = schema.as_object()?;
    match object.get("type") {
        None if object.is_empty() => {}
        Some(kind) if kind == "object" => {}
        kind => {
            let kind = kind.unwrap_or(&Value::Null);
            return Some(format!("schema must be a JSON Schema of 'type: \"object\"', got 'type: {kind}'."));
        }
    }
    if object.get("properties").is_some_and(|it| !it.is_object()) {
        return Some("'properties' must be an object.".to_owned());
    }
    let names = |list: &Vec<Value>| list.iter().all(Value::is_string);
    if object.get("required").is_some_and(|it| !it.as_array().is_some_and(names)) {
        return Some("'required' must be an array of strings.".to_owned());
    }
    for (name, property) in object.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if !property.is_object() && !property.is_boolean() {
            return Some(format!(
                "In context=('properties', '{name}'), {property} is not of type 'object', 'boolean'."
            ));
        }
        let is_array = property.get("type").is_some_and(|kind| kind == "array");
        if is_array && property.get("items").is_none() && property.get("prefixItems").is_none() {
            return Some(format!("In context=('properties', '{name}'), array schema missing items."));
        }
    }
    None
}

/// A name that the service takes.
pub(super) fn name(name: &str, at: &str) -> Checked {
    let refused = |why: String, code| Err(Refusal::bad(format!("Invalid '{at}': {why}")).code(code).at(at));
    if name.len() > 64 {
        let length = name.len();
        return refused(
            format!(
                "string too long. Expected a string with maximum length 64, but got a string with length {length} instead."
            ),
            "string_above_max_length",
        );
    }
    if name.is_empty() {
        let why = "empty string. Expected a string with minimum length 1, but got an empty string instead.";
        return refused(why.to_owned(), "empty_string");
    }
    if !is_word(name, 64) {
        let why = "string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.";
        return refused(why.to_owned(), "invalid_value");
    }
    Ok(())
}

fn choice(choice: Option<&Value>, names: &HashSet<&str>) -> Checked {
    match choice {
        Some(Value::String(word)) if !matches!(word.as_str(), "none" | "auto" | "required" | "any") => {
            let why = format!("Invalid value: '{word}'. Supported values are: 'none', 'auto', and 'required'.");
            Err(Refusal::bad(why).code("invalid_value").at("tool_choice"))
        }
        Some(Value::Object(choice)) if choice.get("type").is_some_and(|kind| kind == "function") => {
            let Value::Object(function) = openai_needs(choice, "tool_choice", ("function", Kind::Object))? else {
                return Ok(());
            };
            let name = openai_needs(function, "tool_choice.function", ("name", Kind::Text))?;
            let name = name.as_str().unwrap_or_default();
            if !names.contains(name) {
                let why = format!("Tool choice '{name}' not found in 'tools' parameter.");
                return Err(Refusal::bad(why).at("tool_choice"));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// A list that must not be empty.
pub(super) fn empty(at: &str) -> Refusal {
    let why = "empty array. Expected an array with minimum length 1, but got an empty array instead.";
    Refusal::bad(format!("Invalid '{at}': {why}")).code("empty_array").at(at)
}
