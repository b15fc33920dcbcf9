//! The shop of `examples/`: an agent that writes a tool and uses it, and a document that is kept between processes.

use serde_json::{Value, json};

use crate::support::{Home, example};

fn say(home: &Home, text: &str) -> Value {
    let said = home.gesta(&["run", &example("shop"), "--conversation", "anna", "--json", text]);
    said.ended(0).json()
}

fn tools(home: &Home, more: &[&str]) -> Value {
    let shop = example("shop");
    let words = [&["document", "tools", &shop, "--conversation", "anna", "--json"], more].concat();
    home.gesta(&words).ended(0).json()
}

#[test]
fn asked_for_what_no_tool_gives_it_writes_one_and_uses_it_in_the_same_turn() {
    let home = Home::new();
    let result = say(&home, "How much did I spend in all?");
    assert_eq!(result["text"], "You have spent 365 dollars with us in all.");
    let calls = result["tool_calls"].as_array().unwrap();
    assert_eq!((&calls[0]["name"], &calls[0]["result"]), (&json!("add_tool"), &json!("added total_spent")), "{result}");
    assert_eq!((&calls[1]["name"], &calls[1]["result"]), (&json!("total_spent"), &json!(365.0)), "{result}");
    assert_eq!(calls[1]["grants"][0]["name"], "App.orders", "{result}");
    home.gesta(&["show", "last"]).ended(0).has(&["new tool total_spent: Adds up the totals of all orders"]);
    // Another process has it, and knows who wrote it.
    let kept = tools(&home, &[]);
    assert_eq!(kept["added"][0]["name"], "total_spent");
    assert_eq!(kept["added"][0]["author"]["by"], "agent");
    assert!(kept["added"][0]["at"].is_number() && kept["version"] == 1, "{kept}");
    assert!(kept["offered"].as_array().unwrap().contains(&json!("total_spent")), "{kept}");
}

#[test]
fn a_chat_shows_a_tool_as_it_appears() {
    let home = Home::new();
    let said = home.gesta_with(&["chat", &example("shop")], "How much did I spend in all?\n").ended(0);
    said.has(&["new tool total_spent: Adds up the totals of all orders", "365 dollars"]);
}

#[test]
fn a_note_is_there_in_the_next_process() {
    let home = Home::new();
    say(&home, "Please remember: deliver after five");
    let result = say(&home, "What do you know about me?");
    assert_eq!(result["tool_calls"][0]["result"], json!(["deliver after five"]), "{result}");
    let other =
        home.gesta(&["run", &example("shop"), "--conversation", "bert", "--json", "What do you know about me?"]);
    assert_eq!(other.ended(0).json()["tool_calls"][0]["result"], json!([]));
}

#[test]
fn limits_and_rules_hold_for_grants_whichever_tool_calls_them() {
    let home = Home::new();
    for (text, status, result) in [
        ("Refund order o_1, 40 dollars", "completed", json!({"ok": true, "order_id": "o_1", "refunded": 40.0})),
        ("Refund order o_2, 250 dollars", "failed", json!("refunds over $100 need a person to approve them")),
        ("Refund order o_0", "failed", json!("order o_0 is of last year; it is not refunded any more")),
    ] {
        let call = say(&home, text)["tool_calls"][0].clone();
        assert_eq!((&call["status"], &call["result"]), (&json!(status), &result), "{call}");
    }
    assert_eq!(say(&home, "How much did I spend?")["tool_calls"][0]["result"], json!(290.0));
}

#[test]
fn a_person_switches_an_added_tool_off_and_on_and_out() {
    let home = Home::new();
    say(&home, "How much did I spend in all?");
    let offers = |kept: &Value| kept["offered"].as_array().unwrap().contains(&json!("total_spent"));
    let off = tools(&home, &["--disable", "total_spent"]);
    assert!(!offers(&off) && off["added"][0]["set_aside"].is_string(), "{off}");
    assert!(!offers(&tools(&home, &[])), "it stays off");
    assert!(offers(&tools(&home, &["--enable", "total_spent"])));
    let removed = tools(&home, &["--remove", "total_spent"]);
    assert!(!offers(&removed) && removed["added"] == json!([]), "{removed}");
    let words = ["document", "tools", &example("shop"), "--conversation", "anna", "--disable", "refund"];
    home.gesta(&words).ended(2).has(&["no tool `refund` was added", "help: "]);
}

#[test]
fn a_document_moves_to_another_place() {
    let home = Home::new();
    say(&home, "How much did I spend in all?");
    say(&home, "Please remember: deliver after five");
    let shop = example("shop");
    let export = |more: &[&str]| {
        home.gesta(&[&["document", "export", shop.as_str(), "--conversation", "anna"], more].concat()).ended(0)
    };
    export(&["--stof"]).has(&["total_spent", "deliver after five"]);
    export(&["-o", "anna.image"]).has(&["anna.image"]);
    export(&["--bstf", "-o", "anna.bstf"]);
    // Elsewhere another key signs.
    let import = |file: &str, to: &str, more: &[&str]| {
        let words = ["document", "import", shop.as_str(), file, "--conversation", to, "--data", "elsewhere"];
        home.gesta(&[&words[..], more].concat())
    };
    import("anna.image", "anna", &[]).ended(2).has(&["no key signed this image", "--trust"]);
    import("anna.bstf", "anna", &[]).ended(2).has(&["no signed image", "add --trust"]);
    import("anna.image", "anna", &["--trust"]).ended(0).has(&["version 1", "total_spent"]);
    let words = ["run", shop.as_str(), "--conversation", "anna", "--data", "elsewhere", "--json", "What do you know?"];
    let result = home.gesta(&words).ended(0).json();
    assert_eq!(result["tool_calls"][0]["result"], json!(["deliver after five"]), "{result}");
    home.write("damaged.image", "gesta document 1\n{}\n");
    import("damaged.image", "anna", &["--trust"]).ended(2).has(&["damaged"]);
}
