//! What a model is told about writing tools: every example passes the guard and runs.
#![allow(clippy::unwrap_used)]

#[allow(dead_code, unreachable_pub)]
mod common;

use common::{call, document, terms};
use gesta_document::{ADD_TOOL_GUIDANCE, AddedTools, Terms, examples_of_guidance};
use serde_json::json;

#[test]
fn every_example_is_added_offered_and_runs() {
    let results = [
        json!(290.0),
        json!([{"id": "o_2", "total": 250.0}, {"id": "o_1", "total": 40.0}]),
        json!({"unknown": 2}),
        json!("refunded 5 on o_1"),
    ];
    let given = json!({"above": 30, "order_id": "o_1", "amount": 5.0, "limit": 3});
    let sources: Vec<&str> = examples_of_guidance().collect();
    assert_eq!(sources.len(), results.len());
    for (source, result) in sources.into_iter().zip(results) {
        let mut document = document("tools: {}", &Terms { added_tools: AddedTools::On, ..terms() });
        let added = call(&mut *document, "add_tool", json!({"source": source})).unwrap();
        assert!(!added.result.as_str().unwrap().contains("note:"), "{}", added.result);
        let name = &added.added[0].name;
        let spec = document.specs().unwrap().into_iter().find(|spec| spec.name == *name).unwrap();
        assert!(!spec.description.is_empty());
        assert_eq!(call(&mut *document, name, given.clone()).unwrap().result, result, "{name}");
    }
}

#[test]
fn the_calls_that_are_shown_in_passing_exist() {
    let source = "#[tool('t')] fn all(value: str | null = null) -> list {
        const m = {'key': 1}; m.insert('b', 2); const e = map(); e.insert('x', 1);
        const l = [1, 2]; l.push_back(3); const helper = (x: float): float => x * 2;
        [m.get('key'), m.get('none'), l.len(), l.at(0), l.contains(3), helper(2.0), `text ${1 + 1}`, 'a' + 'b',
         'aB'.upper(), 'aB'.lower(), ' a '.trim(), 'a,b'.split(','), 'ab'.contains('x'), 'ab'.replace('a', 'b'), 'ab'.len(),
         str(5), e.len(), value]
    }";
    let mut document = document("tools: {}", &Terms { added_tools: AddedTools::On, ..terms() });
    document.add_tool(source).unwrap();
    assert_eq!(
        call(&mut *document, "all", json!({})).unwrap().result,
        json!([1, null, 3, 1, true, 4.0, "text 2", "ab", "AB", "ab", "a", ["a", "b"], false, "bb", 2, "5", 1, null])
    );
    assert!(ADD_TOOL_GUIDANCE.len() < 4_000, "{} bytes in every prompt", ADD_TOOL_GUIDANCE.len());
}
