//! Tries one tool of a JSON file in this process.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]
use gesta_document::{AddedTools, GrantName, GrantSpec, Host, Limits, Record, Terms, open};
use serde_json::{Value, json};
struct H;
impl Host for H {
    fn grant(&mut self, grant: &GrantName, _: gesta_run::json::Object) -> Result<Value, String> {
        Ok(if grant.name == "orders" { json!([{"id": "o_1", "total": 40}, {"id": "o_2", "total": 250}]) } else { json!("done") })
    }
}
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let base = std::fs::read_to_string(&args[1]).unwrap();
    let tools: Value = serde_json::from_str(&std::fs::read_to_string(&args[2]).unwrap()).unwrap();
    let (source, given) = match &tools {
        Value::Object(map) => (map[&args[3]].as_str().unwrap().to_owned(), json!({})),
        Value::Array(list) => {
            let one = list.iter().find(|one| one["name"] == args[3].as_str()).unwrap();
            (one["source"].as_str().unwrap().to_owned(), one.get("arguments").cloned().unwrap_or(json!({})))
        }
        _ => panic!(),
    };
    let grant = |name: &str, params: &[&str]| GrantSpec { name: GrantName { library: "App".into(), name: name.into() }, params: params.iter().map(|p| (*p).to_owned()).collect() };
    let terms = Terms { grants: vec![grant("orders", &["customer_id"]), grant("refund", &["order_id", "amount"])], limits: Limits { call_time_max_ms: 300, ..Limits::default() }, added_tools: AddedTools::On, ..Terms::default() };
    let mut document = open(&Record { base, ..Record::default() }, &terms).unwrap();
    let before = document.save().unwrap();
    match document.call("add_tool", json!({"source": source}).as_object().unwrap(), &mut H) {
        Ok(added) if added.added.is_empty() => { println!("REFUSED(ok) {}", added.result.to_string().replace('\n', " ")); return }
        Err(error) => { println!("REFUSED {}", error.to_string().replace('\n', " ")); return }
        Ok(_) => {}
    }
    let name = document.added().last().unwrap().name.clone();
    let start = std::time::Instant::now();
    let outcome = document.call(&name, given.as_object().unwrap(), &mut H);
    let ms = start.elapsed().as_millis();
    match outcome {
        Ok(called) => println!("OK {ms}ms {} log={} data={}", &called.result.to_string().chars().take(100).collect::<String>(), called.log.len(), called.data.is_some()),
        Err(error) => println!("ERR {ms}ms {}", error.to_string().replace('\n', " | ")),
    }
    let recent = document.call("recent_orders", json!({"customer_id": "c"}).as_object().unwrap(), &mut H).map(|c| c.result.to_string());
    let same = document.save().unwrap() == before;
    println!("   after: {} same_data={same}", recent.map(|t| t.chars().take(40).collect::<String>()).unwrap_or_else(|e| e.to_string()));
}
