//! A form for a tool's arguments, made from its schema, and the arguments that such a form says.

use gesta_run::json::{Object, read_strict};
use maud::{Markup, html};
use serde_json::Value;

use super::parts::pretty;
use super::who::Posted;

/// One argument of a tool.
struct Field<'a> {
    name: &'a str,
    schema: &'a Value,
    required: bool,
    /// What the model asked for, where it did.
    value: Option<&'a Value>,
}

enum Kind<'a> {
    Choice(Vec<&'a Value>),
    Text,
    Number,
    Json,
}

impl Field<'_> {
    fn kind(&self) -> Kind<'_> {
        if let Some(all) = self.schema.get("enum").and_then(Value::as_array) {
            return Kind::Choice(all.iter().collect());
        }
        match self.schema.get("type").and_then(Value::as_str) {
            Some("boolean") => Kind::Choice(vec![&Value::Bool(true), &Value::Bool(false)]),
            Some("string") if self.value.is_none_or(Value::is_string) => Kind::Text,
            Some("number" | "integer") if self.value.is_none_or(Value::is_number) => Kind::Number,
            _ => Kind::Json,
        }
    }
}

/// All arguments that the schema names or the model gave.
fn fields<'a>(schema: &'a Value, given: &'a Object) -> Vec<Field<'a>> {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|it| it.as_str() == Some(name)));
    let known = schema.get("properties").and_then(Value::as_object);
    let named = known.into_iter().flatten().map(|(name, schema)| Field {
        name,
        schema,
        required: is_required(name),
        value: given.get(name),
    });
    let others = given.iter().filter(|(name, _)| known.is_none_or(|known| !known.contains_key(*name)));
    let others = others.map(|(name, value)| Field { name, schema: &Value::Null, required: false, value: Some(value) });
    named.chain(others).collect()
}

/// The fields of a form. `form` tells their ids from those of other forms of the page.
pub(super) fn inputs(form: &str, schema: &Value, given: &Object) -> Markup {
    html! {
        @for (at, field) in fields(schema, given).iter().enumerate() {
            @let id = format!("{form}-arg-{at}");
            @let about = field.schema.get("description").and_then(Value::as_str);
            @let described = about.map(|_| format!("{id}-about"));
            div.field {
                label for=(id) {
                    (field.name)
                    @if !field.required { span.faint { " (may be left out)" } }
                }
                @if let Some(about) = about { p.hint id=[&described] { (about) } }
                (input(field, &id, described.as_deref()))
            }
        }
    }
}

fn input(field: &Field<'_>, id: &str, described: Option<&str>) -> Markup {
    let name = format!("arg.{}", field.name);
    let shown = match (field.kind(), field.value) {
        (_, None) => String::new(),
        (Kind::Text, Some(Value::String(text))) => text.clone(),
        (Kind::Json, Some(value)) => pretty(value),
        (_, Some(value)) => value.to_string(),
    };
    match field.kind() {
        Kind::Choice(all) => html! {
            select id=(id) name=(name) aria-describedby=[described] {
                @if !field.required || field.value.is_none() { option value="" selected[field.value.is_none()] { "—" } }
                @for value in all {
                    @let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    option value=(value) selected[field.value == Some(value)] { (text) }
                }
            }
        },
        Kind::Number => html! {
            input id=(id) name=(name) value=(shown) inputmode="decimal" autocomplete="off" aria-describedby=[described];
        },
        Kind::Text if shown.len() <= 80 && !shown.contains('\n') => html! {
            input id=(id) name=(name) value=(shown) autocomplete="off" spellcheck="false" aria-describedby=[described];
        },
        Kind::Text => html! { textarea id=(id) name=(name) rows="6" aria-describedby=[described] { "\n" (shown) } },
        Kind::Json => html! {
            textarea.code id=(id) name=(name) rows="6" spellcheck="false" aria-describedby=[described] { "\n" (shown) }
        },
    }
}

/// The arguments that a form says. A field that was left empty is left out, unless the model gave an empty text there.
///
/// # Errors
/// What cannot be read, with its field's name.
pub(super) fn read(posted: &Posted, schema: &Value, given: &Object) -> Result<Object, String> {
    let mut arguments = Object::new();
    for field in fields(schema, given) {
        let Some(said) = posted.get(&format!("arg.{}", field.name)) else { continue };
        // Browsers send line ends in the form of the network.
        let said = said.replace("\r\n", "\n");
        let value = match field.kind() {
            Kind::Text if said.is_empty() && field.value.and_then(Value::as_str) != Some("") => continue,
            Kind::Text => Value::String(said),
            _ if said.trim().is_empty() => continue,
            Kind::Number => match read_strict(said.trim()) {
                Ok(number @ Value::Number(_)) => number,
                _ => return Err(format!("{}: `{}` is no number", field.name, said.trim())),
            },
            Kind::Choice(_) | Kind::Json => {
                read_strict(said.trim()).map_err(|why| format!("{}: this is no JSON: {why}", field.name))?
            }
        };
        arguments.insert(field.name.to_owned(), value);
    }
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(all: &[(&str, &str)]) -> Posted {
        Posted::of(all.iter().map(|(name, value)| (format!("arg.{name}"), (*value).to_owned())).collect())
    }

    #[test]
    fn what_is_not_touched_comes_back_as_it_was() {
        let schema = json!({ "type": "object", "required": ["a"], "properties": {
            "a": { "type": "string" }, "n": { "type": "number" }, "b": { "type": "boolean" },
            "e": { "enum": ["x", 2] }, "o": { "type": "object" }, "gone": { "type": "string" }, "any": {},
        }});
        let given = json!({
            "a": "", "n": 1.50, "b": false, "e": 2, "o": { "deep": ["\"", "<b>"] }, "any": "text", "more": [1],
        });
        let given = given.as_object().unwrap();
        let html = inputs("f", &schema, given).into_string();
        assert!(!html.contains("<b>"), "{html}");
        let form = [
            ("a", ""),
            ("n", "1.5"),
            ("b", "false"),
            ("e", "2"),
            ("o", "{\"deep\": [\"\\\"\", \"<b>\"]}"),
            ("gone", ""),
            ("any", "\"text\""),
            ("more", "[1]"),
        ];
        assert_eq!(&read(&said(&form), &schema, given).unwrap(), given);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let schema = json!({ "properties": { "n": { "type": "integer" }, "o": { "type": "array" } } });
        for (form, told) in [(("n", "many"), "n: `many` is no number"), (("o", "[1"), "o: this is no JSON")] {
            let why = read(&said(&[form]), &schema, &Object::new()).unwrap_err();
            assert!(why.starts_with(told), "{why}");
        }
    }
}
