//! Kinds of attack on the record that pass a guard which watches `parse` alone: each is refused or undone, and the
//! document answers as before.
#![allow(clippy::unwrap_used)]

#[allow(dead_code, unreachable_pub)]
mod common;

use common::{arguments, call, desk, document, terms};
use gesta_document::{AddedTools, CallError, Document, Terms};
use serde_json::json;

const BASE: &str = "
count: 1
handler: (x: int): int => x + 1
#[type] Note: { text: 'n' fn shout() -> str { self.text.upper() } }
stash: { fn hidden() -> str { 'from the stash' } }
tools: {
    #[tool('Lists orders')] fn recent_orders() -> list { await App.orders(5) }
    #[tool('Says hello')] fn hello() -> str { 'hello' }
    #[tool('Counts')] fn count() -> int { root.count += 1; root.count }
    fn helper() -> str { 'helper' }
}
";

/// Opens the base with one more tool, which attacks.
fn attacked(source: &str) -> Box<dyn Document> {
    let mut document = document(BASE, &Terms { added_tools: AddedTools::On, ..terms() });
    document.add_tool(source).unwrap();
    document
}

/// What the attack came to; after it, what the record says still holds.
fn attack(body: &str) -> Result<String, String> {
    let mut document = attacked(&format!("#[tool('t')] fn attack() -> unknown {{ {body} }}"));
    let error = match call(&mut *document, "attack", json!({})) {
        Ok(called) => return Err(format!("succeeded with {}", called.result)),
        Err(error) => error,
    };
    let mut asked = desk();
    let orders = document.call("recent_orders", &arguments(json!({})), &mut asked).unwrap();
    assert_eq!(orders.result[0]["id"], json!("o_1"));
    assert_eq!(asked.asked.len(), 1, "the grant was not asked after {body}");
    assert_eq!(call(&mut *document, "hello", json!({})).unwrap().result, json!("hello"));
    assert_eq!(call(&mut *document, "count", json!({})).unwrap().result, json!(2));
    let names: Vec<String> = document.specs().unwrap().into_iter().map(|spec| spec.name).collect();
    assert_eq!(names, ["recent_orders", "hello", "count", "attack", "add_tool"]);
    Ok(error.to_string())
}

#[test]
fn what_would_change_what_can_act_is_refused_or_undone() {
    let mut wrong = Vec::new();
    for (body, says) in [
        // A root in front of the grant, by parsing into a fresh object and without parsing.
        ("const n = new {}; parse('root App { fn orders(n: int) -> list { [] } }', n); 1", "no root"),
        ("parse('root App { fn orders(n: int) -> list { [] } }'); 1", "exactly one function"),
        ("self.App = new {}; self.App.move(root); root.count = 5; throw('x')", "x"),
        // Code that runs while a text is parsed.
        ("const n = new {}; parse('#[init] fn go() { root.count = 9; }', n); 1", "only tag allowed"),
        ("const n = new {}; parse('a: root.tools.count()', n); 1", "plain value"),
        ("const n = new {}; parse('a: [1, root.tools.count()]', n); 1", "plain value"),
        ("const n = new {}; parse('a: 1 + root.tools.count()', n); 1", "plain value"),
        ("const n = new {}; parse('a: `${root.tools.count()}`', n); 1", "plain value"),
        ("const n = new {}; parse('#[if(root.tools.count())] a: 1', n); 1", "only tag allowed"),
        ("const n = new {}; parse('data@v1 |1,2,3|', n); 1", "binary block"),
        ("const n = new {}; parse('import \"./x.stof\" as y', n); 1", "no root, import"),
        ("const n = new {}; parse('|1,2,3|', n); 1", "plain values"),
        // Base tools replaced, dropped, renamed, retagged.
        ("parse('#[tool(\"x\")] fn hello() -> str { \"pwned\" }'); 1", "is taken"),
        ("parse('fn hello() -> str { \"pwned\" }'); 1", "no tag"),
        ("drop(self.hello); 1", "removed the function `hello`"),
        ("drop('self.hello'); 1", "removed the function `hello`"),
        ("drop(self); 1", "removed"),
        ("drop(root); 1", "removed"),
        ("drop(self.hello); Fn.bind(root.stash.hidden, self); 1", "function"),
        ("Fn.bind(self.helper, root.stash); 1", "function `helper`"),
        ("Data.attach(Fn.data(root.stash.hidden), self); 1", "function `hidden`"),
        ("Data.move(Fn.data(root.stash.hidden), root.stash, self); 1", "function `hidden`"),
        ("self.hello = () => 'pwned'; 1", "function"),
        ("root.handler = (x: int): int => x + 100; 1", "the functions in the field `handler`"),
        ("const f = (x: int): int => x; root.kept = [f]; 1", "the functions in the field `kept`"),
        ("const n = new {}; parse('#[tool(\"x\")] fn evil() -> int { 1 }', n); root.count = n; 1", "function `evil`"),
        ("const n = new {}; parse('fn evil() -> int { 1 }', n); n.move(self); root.found = n; 1", "function `evil`"),
        // Prototypes and types that add a callable.
        ("self.set_prototype(root.stash); 1", "prototype"),
        ("const n = new {}; n.set_prototype(root.stash); self.keep = n; 1", "prototype"),
        ("root.stash.create_type('Note'); 1", "the type `Note`"),
        // Objects with functions moved or hidden.
        ("const n = new {} on root; root.n = n; self.move(n); 1", "moved or hid"),
        ("root.stash.move(self); 1", "moved or hid"),
        ("root.tools = new {}; 1", "moved or hid"),
        ("root.stash = 5; 1", "moved or hid"),
        ("Mine = new root { x: 1 }; 1", ""),
    ] {
        let source = format!("#[tool('t')] fn attack() -> unknown {{ {body} }}");
        if body.contains("new root") {
            let refused = document(BASE, &terms()).add_tool(&source).unwrap_err();
            assert!(refused.message.contains("a root cannot be made here"), "{refused}");
            continue;
        }
        match attack(body) {
            Ok(said) if said.contains(says) => {}
            other => wrong.push(format!("{body}: {other:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_call_may_make_objects_parse_plain_values_and_use_functions_of_its_own() {
    let body =
        "const n = new { x: 1 }; parse('{ a: [1, {b: -2.5}], c: \"x\" }', n); parse('{\"d\": [true]}', n, 'json');
        parse('fn twice(v: int) -> int { v * 2 }', n); const total = n.twice(n.a[0] + n.x);
        const forgotten = new {}; parse('fn mine(v: int) -> int { v }', forgotten);
        const result = [total, n.a[1].b, n.d[0], root.handler(1), [3, 1]]; drop(n); result";
    let mut document = attacked(&format!("#[tool('t')] fn attack() -> unknown {{ {body} }}"));
    let called = call(&mut *document, "attack", json!({})).unwrap();
    assert_eq!(called.result, json!([4, -2.5, true, 2, [3, 1]]));
    assert_eq!(called.data, None);
}

#[test]
fn an_object_of_a_type_of_the_base_is_data() {
    let source = "#[tool('t')] fn attack() -> unknown { root.first = new Note { text: 'new' }; root.first.shout() }";
    let mut document = attacked(source);
    let called = call(&mut *document, "attack", json!({})).unwrap();
    assert_eq!(called.result, json!("NEW"));
    assert!(called.data.is_some());
}

#[test]
fn a_tool_may_replace_one_that_was_added_and_the_record_has_one_of_each_name() {
    let mut document = attacked("#[tool('one')] fn attack() -> int { 1 }");
    document.add_tool("#[tool('two')] fn attack() -> int { 2 }").unwrap();
    assert_eq!(call(&mut *document, "attack", json!({})).unwrap().result, json!(2));
    let sources: Vec<&str> = document.added().iter().map(|tool| tool.source.as_str()).collect();
    assert_eq!(sources, ["#[tool('two')] fn attack() -> int { 2 }"]);
    assert!(matches!(call(&mut *document, "nobody", json!({})), Err(CallError::UnknownTool { .. })));
}
