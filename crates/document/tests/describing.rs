//! How tools are described: types as schemas, comments as descriptions, and what is crossed by values.
#![allow(clippy::unwrap_used)]

#[allow(dead_code, unreachable_pub)]
mod common;

use common::{call, document, terms};
use gesta_document::{CallError, Limits, Terms};
use serde_json::{Value, json};

const BASE: &str = "
#[type] Address: { str street: '' int number: 1 }
#[type] Customer: { str name: 'x' list tags: [] address: { str city: 'c' } fn greet() -> str { 'hi ' + self.name } }
tools: {
    /**
     * Everything at once.
     * @param text - what is said
     * - count: how often,
     *   at most ten
     */
    #[tool('All types')]
    fn all(text: str, count: int, price: float, yes: bool, items: list, data: map, any: unknown, either: str | int,
        maybe?: str, limit: int = 5, who: Customer = null, of: set = null, pair: (int, str) = null, span: ms = 5ms) -> unknown { 1 }
    #[tool('No parameters')] fn none() -> int { 1 }
    #[tool('Takes an object')] fn object(o: obj) -> unknown { o.a }
    #[tool('Takes a customer')] fn greet(who: Customer) -> str { who.greet() }
    #[tool('Results')] fn result(kind: str) -> unknown {
        switch (kind) {
            case 'map': {'b': 1, 'a': {'x': null}}
            case 'set': set(3, 1)
            case 'tuple': (1, 'x')
            case 'blob': |1, 2, 3|
            case 'duration': 90s
            case 'float': 2.0
            case 'big': 9007199254740993
            case 'nan': nan()
            case 'object': new Customer { name: 'n' }
            case 'function': self.none
            case 'keys': {1: 'a', true: 'b'}
            default: null
        }
    }
    group: { #[tool('Below')] fn below() -> str { 'below' } fn untagged() -> int { 1 } }
}
#[tool('Not below tools')] fn outside() -> int { 1 }
";

#[test]
fn types_become_schemas_and_comments_descriptions() {
    let mut document = document(BASE, &terms());
    let specs = document.specs().unwrap();
    let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(names, ["all", "none", "object", "greet", "result", "below"]);
    let properties = &specs[0].parameters["properties"];
    for (name, schema) in [
        ("text", json!({"type": "string", "description": "what is said"})),
        ("count", json!({"type": "integer", "description": "how often, at most ten"})),
        ("price", json!({"type": "number"})),
        ("yes", json!({"type": "boolean"})),
        ("items", json!({"type": "array"})),
        ("data", json!({"type": "object"})),
        ("any", json!({})),
        ("either", json!({"type": ["string", "integer"]})),
        ("maybe", json!({"type": ["string", "null"]})),
        ("limit", json!({"type": "integer"})),
        (
            "pair",
            json!({"anyOf": [
                {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2},
                {"type": "null"},
            ]}),
        ),
        ("span", json!({"type": "number"})),
    ] {
        assert_eq!(properties[name], schema, "{name}");
    }
    assert_eq!(
        properties["who"]["anyOf"][0]["properties"],
        json!({
            "name": {"type": "string"}, "tags": {"type": "array"},
            "address": {"type": "object", "properties": {"city": {"type": "string"}}},
        })
    );
    let required = json!(["text", "count", "price", "yes", "items", "data", "any", "either"]);
    assert_eq!(specs[0].parameters["required"], required);
    assert_eq!(specs[1].parameters, json!({"type": "object", "properties": {}}));
    assert_eq!(call(&mut *document, "below", json!({})).unwrap().result, json!("below"));
    assert!(matches!(call(&mut *document, "outside", json!({})), Err(CallError::UnknownTool { .. })));
}

#[test]
fn objects_can_be_given_and_every_kind_of_result_has_a_form() {
    let mut document = document(BASE, &terms());
    assert_eq!(call(&mut *document, "object", json!({"o": {"a": [1]}})).unwrap().result, json!([1]));
    let greeted = call(&mut *document, "greet", json!({"who": {"name": "Ann"}})).unwrap();
    assert_eq!((greeted.result, greeted.data), (json!("hi Ann"), None));
    for (kind, result) in [
        ("map", json!({"a": {"x": null}, "b": 1})),
        ("set", json!([1, 3])),
        ("tuple", json!([1, "x"])),
        ("blob", json!("AQID")),
        ("duration", json!("90s")),
        ("float", json!(2.0)),
        ("big", json!(9_007_199_254_740_993_i64)),
        ("object", json!({"name": "n", "tags": [], "address": {"city": "c"}})),
        ("keys", json!({"true": "b", "1": "a"})),
        ("other", Value::Null),
    ] {
        assert_eq!(call(&mut *document, "result", json!({"kind": kind})).unwrap().result, result, "{kind}");
    }
    for (kind, what) in
        [("function", "a function"), ("nan", "a number that is none or infinite, as after a division by zero")]
    {
        let error = call(&mut *document, "result", json!({"kind": kind})).unwrap_err().to_string();
        assert_eq!(error, format!("the tool's result cannot be given: the value holds {what}, which has no JSON form"));
    }
}

#[test]
fn a_result_that_is_too_large_is_cut_and_says_so() {
    let base = "tools: {
        #[tool('t')] fn text() -> str { let s = 'äb'; for (const i in 6) s = s + s; s }
        #[tool('t')] fn list() -> list { let l = []; for (const i in 40) l.push_back('item'); l }
        #[tool('t')] fn keys() -> map { const m = map(); for (const i in 9) m.insert(i, i); m }
        #[tool('t')] fn echo(v: unknown) -> int { 1 }
    }";
    let limits = Limits { value_bytes_max: 150, value_keys_max: 8, value_depth_max: 4, ..terms().limits };
    let mut document = document(base, &Terms { limits, ..terms() });
    for (tool, begins) in [("text", "äbäb"), ("list", "[\"item\",\"item\"")] {
        let result = call(&mut *document, tool, json!({})).unwrap().result;
        let text = result.as_str().unwrap();
        assert!(text.starts_with(begins) && text.ends_with("Ask for less.]") && text.len() <= 150, "{text}");
    }
    for (tool, given, says) in [
        ("keys", json!({}), "the tool's result cannot be given: the value has more than 8 keys"),
        (
            "echo",
            json!({"v": [[[[[1]]]]]}),
            "the arguments cannot be taken: the value contains itself or has more than 4 levels",
        ),
        ("echo", json!({"v": "x".repeat(200)}), "the arguments cannot be taken: the value is larger than 150 bytes"),
    ] {
        assert_eq!(call(&mut *document, tool, given).unwrap_err().to_string(), says);
    }
}

#[test]
fn types_that_refer_to_each_other_are_described_in_bounds() {
    let base = "#[type] T: { a: 1 }
    tools: {
        #[tool('t')] fn take(t: T) -> int { 1 }
        #[tool('t')] fn tie() -> int { for (const i in 30) root.T.insert(`f${i}`, root.T); 1 }
    }";
    let mut document = document(base, &terms());
    call(&mut *document, "tie", json!({})).unwrap();
    let specs = document.specs().unwrap();
    assert!(specs[0].parameters.to_string().len() < 20_000);
}
