//! What goes wrong with a document is said where it is seen, with the way out: faults of the folder, of the command line,
//! of a tool, of a file that is no image.

use serde_json::{Value, json};

use crate::support::{Home, World, calls, example, says};

const AGENT: &str = "name = \"a\"\nmodel = \"script\"\n";

/// An agent with this document, and a model that says this.
fn agent(tools: &str, script: &str, more: &str) -> Home {
    let home = Home::new();
    home.write("a/agent.toml", &format!("{AGENT}{more}"));
    home.write("a/model.script", script);
    home.write("a/prompt.md", "You are brief.\n");
    home.write("a/tools.stof", tools);
    home
}

#[test]
fn a_document_that_does_not_open_is_a_fault_of_the_folder_and_leaves_no_run() {
    let home = agent("tools: {\n    #[tool('x')]\n    fn a( {\n}\n", "model: Hello.\n", "");
    for more in [&[][..], &["--conversation", "k"]] {
        let said = home.gesta(&[&["run", "a", "Hello"], more].concat()).ended(2);
        said.has(&["a/tools.stof:3:", "\n  3 |     fn a( {\n", "^\n", "help: "]);
    }
    let line = home.gesta(&["run", "a", "Hello", "--json"]).ended(2).json();
    assert_eq!(line["error"]["code"], "document_invalid", "{line}");
    assert!(line["error"]["details"][1].as_str().unwrap().ends_with('^'), "{line}");
    home.gesta(&["show", "last"]).ended(2);
    // What its first functions do wrong is a fault of the same kind.
    for (body, why) in [("throw('no luck');", "no luck"), ("while (true) {}", "longer than 300 ms")] {
        let source = format!("tools: {{}}\n#[init]\nfn boot() {{ {body} }}\n");
        home.write("init.stof", &source);
        let check = ["document", "check", "init.stof", "--call-time-max", "300ms"];
        home.gesta(&check).ended(2).has(&["init.stof:3:1: ", "#[init] function `boot`", why, "3 | fn boot"]);
        home.write("a/agent.toml", &format!("{AGENT}[document]\ncall_time_max_ms = 300\n"));
        home.write("a/tools.stof", &source);
        home.gesta(&["run", "a", "Hello"]).ended(2).has(&["a/tools.stof:3:1: ", why]);
        home.gesta(&["check", "a"]).ended(2).has(&["tools.stof:3:1", why]);
    }
}

#[test]
fn a_source_that_the_agent_wrote_wrong_is_shown_with_its_caret() {
    let source = json!({"source": "#[tool('x')]\nfn broken( {"}).to_string();
    let script = format!("model: calls c1 add_tool {source}\nmodel: I could not.\n");
    let home = agent("tools: {}\n", &script, "[document]\nadded_tools = \"on\"\n");
    let said = home.gesta(&["run", "a", "Write one"]).ended(0);
    let caret = said.err.lines().position(|line| line.trim_end().ends_with('^')).expect("there is a caret");
    let shown: Vec<&str> = said.err.lines().collect();
    assert!(shown[caret - 1].contains("2 | fn broken( {"), "{said:#?}");
    let place = |line: &str| line.find('|').unwrap();
    assert_eq!(place(shown[caret]), place(shown[caret - 1]), "{said:#?}");
}

#[test]
fn what_was_printed_is_there_whatever_came_of_it() {
    let home = Home::new();
    let tools = "tools: {
        #[tool('Throws')] fn throws() -> int { pln('before'); throw('now'); 1 }
        #[tool('Spins')] fn spins() -> int { pln('before'); while (true) {} 1 }
        #[tool('Nests')] fn nests(n: int) -> int { if (n == 0) pln('before'); 1 + self.nests(n + 1) }
        #[tool('Swells')] fn swells() -> int { pln('before'); let s = 'aaaaaaaaaaaaaaaa'; for (let i = 0; i < 40; i += 1) { s = s + s; } 1 }
        #[tool('Panics')] fn panics() -> str { pln('before'); 'h\u{e9}llo'.substring(0, 2) }
        #[tool('Talks')] fn talks() -> int { for (let i = 0; i < 3000; i += 1) { pln('a line of some length'); } 1 }
    }
    #[main]
    fn main() { pln('before'); pln('\u{1b}[31mred'); throw('main threw'); }
    ";
    home.write("t.stof", tools);
    for (tool, limit) in
        [("throws", Value::Null), ("spins", json!("call_time")), ("nests", json!("stack")), ("panics", Value::Null)]
    {
        for more in [&[][..], &["--unsafe-in-process"]] {
            let words = ["document", "call", "t.stof", tool, "{\"n\":0}", "--call-time-max", "500ms", "--json"];
            let line = home.gesta(&[&words[..], more].concat()).ended(1).json();
            let log = line["log"].as_str().unwrap();
            assert!(log.starts_with("before\n"), "{tool} {more:?}: {line}");
            assert_eq!(line["limit"], limit, "{tool}: {line}");
            assert!(!line.to_string().contains(".rs") && !log.contains("BACKTRACE"), "{tool}: {line}");
        }
    }
    // A worker that dies has said it as well.
    let line = home.gesta(&["document", "call", "t.stof", "swells", "--json"]).ended(1).json();
    assert!(line["limit"].is_string() && line["log"].as_str().unwrap().starts_with("before\n"), "{line}");
    let line = home.gesta(&["document", "call", "t.stof", "talks", "--json"]).ended(0).json();
    let log = line["log"].as_str().unwrap();
    assert!(log.len() <= 16 * 1024 && log.ends_with("beyond 16384 bytes is left out]\n"), "{log}");
    let said = home.gesta(&["document", "run", "t.stof"]).ended(1).has(&["error: main threw"]);
    assert!(said.out.starts_with("before\n"), "{said:?}");
}

#[cfg(unix)]
#[test]
fn what_a_document_prints_cannot_steer_a_terminal() {
    let home = Home::new();
    let tools = "tools: { #[tool('x')] fn red() -> int { pln('\u{1b}[31mred'); 1 } }\n#[main]\nfn main() { pln('\u{1b}[31mred'); }\n";
    home.write("t.stof", tools);
    for words in [&["document", "run", "t.stof"][..], &["document", "call", "t.stof", "red"]] {
        let mut terminal = crate::support::Terminal::start(&home, words, 100);
        terminal.until("\\u{1b}[31mred");
        assert_eq!(terminal.end().0, Some(0));
    }
}

#[test]
fn arguments_are_checked_as_those_of_a_model() {
    let home = Home::new();
    home.write("t.stof", "tools: {\n    #[tool('Adds one')]\n    fn more(n: int) -> int { n + 1 }\n}\n");
    for arguments in ["{}", "{\"n\": \"two\"}", "{\"n\": 1.5}"] {
        let line = home.gesta(&["document", "call", "t.stof", "more", arguments, "--json"]).ended(2).json();
        assert_eq!(line["error"]["code"], "arguments_invalid", "{arguments}: {line}");
        assert!(line["error"]["details"][0].as_str().unwrap().contains('n'), "{line}");
    }
    home.gesta(&["document", "call", "t.stof", "more", "{\"n\": 2, \"m\": 3}"]).ended(0).has(&["3"]);
    home.gesta(&["document", "call", "t.stof", "main"]).ended(2).has(&["no tool `main`", "document run t.stof"]);
    home.gesta(&["document", "run", "t.stof"]).ended(2).has(&["no function tagged #[main]"]);
}

#[test]
fn what_is_doubtful_in_a_file_is_said() {
    let home = Home::new();
    home.write("t.stof", "tools: {\n    #[tool('One')]\n    fn same(n: int) -> int { n }\n    #[tool('Two')]\n    fn same(n: int) -> int { n }\n    #[tool('Three')]\n    fn other(n: int, n: int) -> int { n }\n}\n");
    let said = home.gesta(&["document", "check", "t.stof"]).ended(0);
    said.has(&["two tools are named `same` (lines 3 and 5)", "`other` has two parameters named `n`"]);
    home.write("add.stof", "#[tool('x')]\nfn added(n: int, n: str) -> int { 1 }\n");
    let refused = home.gesta(&["document", "check", "t.stof", "--add", "add.stof"]).ended(2);
    refused.has(&["add.stof:2:18: there is a parameter `n` already"]);
    home.write("add.stof", "#[tool('x')]\nfn added(n: int) -> str { `a ${`b ${n}`}` }\n");
    let refused = home.gesta(&["document", "check", "t.stof", "--add", "add.stof"]).ended(2);
    refused.has(&["a template string cannot stand inside another"]);
    home.write("add.stof", "#[tool('x')]\nfn added(n: int) -> int { n }\n");
    let said = home.gesta(&["document", "check", "t.stof", "--add", "add.stof"]).ended(0).has(&["added can be added"]);
    assert!(!said.out.contains("no tools can be added"), "{said:?}");
    home.write("slow.stof", "tools: {}\nx: (():int => { while (true) {} 1 })()\n");
    let slow = home.gesta(&["document", "check", "slow.stof", "--call-time-max", "300ms"]).ended(2);
    slow.has(&["slow.stof", "help: "]);
}

#[test]
fn a_grant_that_a_rule_defers_is_told_by_check_and_by_the_run() {
    let grant =
        "[grants.App.refund]\nanswers = [{ result = 1 }]\n[[decisions]]\ntool = \"App.*\"\naction = \"defer\"\n";
    let tools = "tools: {\n    #[tool('Refunds')]\n    fn refund() -> unknown { await App.refund() }\n}\n";
    let home = agent(tools, "model: calls c1 refund {}\nmodel: I could not.\n", grant);
    let said = home.gesta(&["check", "a"]).ended(0);
    said.has(&["agent.toml:6:", "decisions[0].tool", "App.refund cannot wait for a person"]);
    let said = home.gesta(&["run", "a", "Refund it"]).ended(0).has(&["App.refund", "a grant cannot wait for a person"]);
    assert!(!said.err.contains("is left to a person"), "{said:?}");
    let call = home.result("last")["tool_calls"][0].clone();
    assert!(call["result"].as_str().unwrap().contains("needs approval"), "{call}");
}

#[test]
fn what_a_file_brings_and_what_it_leaves_out_is_said() {
    let home = Home::new();
    let shop = example("shop");
    home.gesta(&["run", &shop, "--conversation", "anna", "How much did I spend in all?"]).ended(0);
    let of = |command: &str, more: &[&str]| {
        home.gesta(&[&["document", command, shop.as_str(), "--conversation", "anna"], more].concat())
    };
    let said = of("export", &["--stof"]).ended(0).has(&["left out: comments", "`root App`"]);
    assert!(!said.out.contains("root App") && said.out.contains("total_spent"), "{said:?}");
    of("export", &["--bstf", "-o", "anna.bstf"]).ended(0);
    let import = |file: &str| {
        let words = ["document", "import", &shop, file, "--conversation", "bert", "--trust"];
        home.gesta(&words)
    };
    import("anna.bstf").ended(0).has(&["not taken: total_spent"]);
    home.write("empty.image", "");
    import("empty.image").ended(2).has(&["empty.image is empty"]);
    home.write("tools.stof", "tools: {}\n");
    import("tools.stof").ended(2).has(&["tools.stof is text and no image", "agent's folder"]);
    let checked = ["document", "check", shop.as_str(), "--conversation"];
    home.gesta(&[&checked[..], &["anna"]].concat()).ended(0).has(&["total_spent()", "version 1, 1 tool added"]);
    let line = home.gesta(&[&checked[..], &["bert", "--json"]].concat()).ended(0).json();
    assert_eq!((&line["version"], &line["added"]), (&json!(1), &json!([])), "{line}");
}

#[test]
fn a_key_file_that_is_too_short_is_named() {
    let home = Home::new();
    let shop = example("shop");
    home.gesta(&["run", &shop, "--conversation", "anna", "Please remember: tea", "--data", "d"]).ended(0);
    let files = std::fs::read_dir(home.path("d")).unwrap().flatten();
    let key = files.map(|entry| entry.path()).find(|path| std::fs::read(path).is_ok_and(|it| it.len() == 64)).unwrap();
    std::fs::write(&key, "short").unwrap();
    let name = key.file_name().unwrap().to_str().unwrap();
    for words in [&["document", "tools", &shop, "--data", "d"][..], &["run", &shop, "Hello", "--data", "d"]] {
        let said = home.gesta(words).ended(2).has(&[name, "has 5 bytes", "at least"]);
        assert!(!said.err.contains("GESTA_SECRET"), "{said:?}");
    }
}

#[test]
fn a_run_whose_copy_of_the_document_cannot_be_read_says_what_to_do() {
    let tools = "notes: []\ntools: {\n    #[tool('Notes')]\n    fn note(text: str) -> int { root.notes.push_back(text); 1 }\n    #[tool('Asks')]\n    fn ask() -> int { 1 }\n}\n";
    let script = "user matches \"Hello\":\nmodel: Hi.\notherwise:\nmodel: calls c1 note {\"text\":\"tea\"}\nmodel: calls c2 ask {}\nmodel: Done.\n";
    let home = agent(tools, script, "[[decisions]]\ntool = \"ask\"\naction = \"defer\"\n");
    home.gesta(&["run", "a", "Ask", "--conversation", "k"]).ended(3);
    let with_key = |words: &[&str]| {
        let mut command = home.command(words);
        command.env("GESTA_SECRET", "another key that is long enough for a test of it");
        crate::support::Said::from(command.output().unwrap())
    };
    for _ in 0..2 {
        let said = with_key(&["resume", "last", "--approve", "c2"]).ended(2);
        said.has(&["cannot go on", "no key signed", "GESTA_SECRET", "a new message of its conversation"]);
    }
    home.gesta(&["show", "last"]).ended(0).has(&["ask"]);
    with_key(&["run", "a", "Hello", "--conversation", "k"]).ended(0).has(&["Hi."]);
}

#[cfg(unix)]
#[test]
fn a_turn_that_takes_a_crashed_one_up_names_its_calls() {
    let home = Home::new();
    let world = World::start(vec![calls(&[("c1", "pay"), ("c2", "look")]), says("done")]);
    home.write("a/agent.toml", &world.agent(&[("pay", "once"), ("look", "reads_only")], ""));
    world.stop_at(2);
    let mut child = home.start(&["run", "a", "go", "--conversation", "k"]);
    world.wait();
    child.kill().unwrap();
    child.wait().unwrap();
    world.release();
    let said = home.gesta(&["run", "a", "next", "--conversation", "k"]).ended(0);
    assert!(!said.err.contains("a call "), "{said:#?}");
    let (taken_up, _) = said.err.split_once("now to what was said").unwrap();
    assert!(taken_up.contains("look returned") || taken_up.contains("pay returned"), "{said:#?}");
}
