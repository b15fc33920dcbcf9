//! JSON schemas: compiled once, checked often.

mod plain;

use std::sync::OnceLock;

use jsonschema::{Draft, Validator};
use serde_json::{Map, Value};

use crate::json::{self, Object};
use plain::Plain;

/// A schema that can be checked against.
#[derive(Debug)]
pub(crate) struct Schema {
    source: Value,
    /// Read here, where it has plain words alone. Then the validator is compiled only for what is not accepted.
    plain: Option<Plain>,
    validator: OnceLock<Result<Validator, String>>,
}

impl Schema {
    /// Checks and compiles a schema.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub(crate) fn compile(schema: &Value) -> Result<Self, String> {
        let plain = Plain::read(schema);
        let compiled = OnceLock::new();
        if plain.is_none() {
            let _ = compiled.set(Ok(validator(schema)?));
        }
        Ok(Self { source: schema.clone(), plain, validator: compiled })
    }

    /// Checks a value. The error names up to three issues, each with its place.
    ///
    /// # Errors
    /// The text that the model, or the person who edits, is shown.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        if self.plain.as_ref().is_some_and(|plain| plain.accepts(value)) {
            return Ok(());
        }
        match self.validator.get_or_init(|| validator(&self.source)) {
            Ok(validator) => check(validator, value),
            Err(why) => Err(why.clone()),
        }
    }

    /// As [`Schema::check`], of an object.
    ///
    /// # Errors
    /// As [`Schema::check`].
    pub(crate) fn check_object(&self, object: &Object) -> Result<(), String> {
        if self.plain.as_ref().is_some_and(|plain| plain.accepts_object(object)) {
            return Ok(());
        }
        self.check(&Value::Object(object.clone()))
    }
}

/// Compiles a schema, which is checked against the schema of schemas before.
fn validator(schema: &Value) -> Result<Validator, String> {
    let mut options = jsonschema::options();
    if is_common(schema) {
        // It means the same in every draft, and the schema of schemas of an older one is compiled much sooner.
        options = options.with_draft(Draft::Draft7).should_validate_formats(false);
    }
    options.build(schema).map_err(|why| match outside_reference(schema) {
        Some(target) => format!(
            "`$ref` to `{}` leads to another document, and none is fetched; put what it names below `$defs` and write \
             `#/$defs/NAME`",
            json::cut(target, 200)
        ),
        None => json::cut(&why.to_string(), 500).to_owned(),
    })
}

/// The first reference that leads out of the schema.
fn outside_reference(schema: &Value) -> Option<&str> {
    match schema {
        Value::Object(object) => {
            let target = object.get("$ref").and_then(Value::as_str).filter(|target| !target.starts_with('#'));
            target.or_else(|| object.values().find_map(outside_reference))
        }
        Value::Array(list) => list.iter().find_map(outside_reference),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Whether a schema has only words that all drafts share, as those of most tools do.
fn is_common(schema: &Value) -> bool {
    const WORDS: [&str; 16] = [
        "type",
        "description",
        "title",
        "default",
        "enum",
        "const",
        "format",
        "required",
        "minimum",
        "maximum",
        "pattern",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "uniqueItems",
    ];
    let all = |object: &Map<String, Value>| object.values().all(is_common);
    match schema {
        Value::Bool(_) => true,
        Value::Object(object) => object.iter().all(|(word, value)| match word.as_str() {
            "properties" => value.as_object().is_some_and(all),
            "items" | "additionalProperties" | "not" => is_common(value),
            "anyOf" | "oneOf" | "allOf" => value.as_array().is_some_and(|list| list.iter().all(is_common)),
            word => WORDS.contains(&word),
        }),
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    }
}

fn check(validator: &Validator, value: &Value) -> Result<(), String> {
    if validator.is_valid(value) {
        return Ok(());
    }
    let mut issues = Vec::new();
    for issue in validator.iter_errors(value).take(3) {
        let place = issue.instance_path().to_string();
        let place = if place.is_empty() { String::new() } else { format!("{place}: ") };
        issues.push(format!("{place}{}", json::cut(&issue.to_string(), 300)));
    }
    Err(issues.join("; "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_of_common_words_is_checked_as_any_other() {
        let common = json!({"type": "object", "required": ["n"], "additionalProperties": false, "properties": {
            "n": {"type": ["integer", "null"], "minimum": 1, "format": "uint32"},
            "mail": {"type": "string", "format": "email", "maxLength": 20},
            "list": {"type": "array", "items": {"anyOf": [{"enum": ["a", "b"]}, {"const": 3}]}, "maxItems": 2},
        }});
        let mut other = common.clone();
        other["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
        assert!(is_common(&common) && !is_common(&other));
        let (common, other) = (Schema::compile(&common).unwrap(), Schema::compile(&other).unwrap());
        let values = [
            json!({"n": 1}),
            json!({"n": 0}),
            json!({"n": 1.0, "mail": "no mail"}),
            json!({"n": null, "list": ["a", 3]}),
            json!({"n": null, "list": ["c", 3, 3]}),
            json!({"n": "1", "x": 1}),
            json!({}),
            json!([]),
        ];
        for value in values {
            assert_eq!(common.check(&value), other.check(&value), "{value}");
        }
    }

    #[test]
    fn a_reference_to_another_document_is_named_with_the_way_out() {
        for target in ["other.json", "https://example.com/a.json#/x"] {
            let why = Schema::compile(&json!({"properties": {"n": {"$ref": target}}})).unwrap_err();
            assert!(why.starts_with(&format!("`$ref` to `{target}` leads to another document")), "{why}");
        }
        assert!(Schema::compile(&json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "object"}}})).is_ok());
        assert!(!Schema::compile(&json!({"$ref": "#/$defs/n"})).unwrap_err().contains("another document"));
    }

    #[test]
    fn a_schema_that_is_none_is_refused_in_every_draft() {
        for bad in [json!({"type": "objekt"}), json!({"required": "n"}), json!({"properties": {"n": {"minimum": "1"}}})]
        {
            assert!(Schema::compile(&bad).is_err(), "{bad}");
        }
    }
}
