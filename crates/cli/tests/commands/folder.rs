//! Commands around an agent's folder: init, check, test, scenes, schema, completions, doctor, help.

use serde_json::Value;

use crate::support::{Home, example};

#[test]
fn a_new_agent_runs_at_once() {
    let home = Home::new();
    home.gesta(&["init", "my agent"]).ended(0).has(&["my agent/agent.toml", "gesta chat 'my agent'"]);
    home.gesta(&["check", "my agent"]).ended(0).has(&["can be used"]);
    home.gesta(&["test", "my agent"]).ended(0).has(&["scenes hold"]);
    home.gesta_with(&["chat", "my agent"], "hello\n").ended(0);
    home.gesta(&["init", "my agent"]).ended(2).has(&["is there already", "help: "]);
}

#[test]
fn the_examples_are_in_order() {
    let home = Home::new();
    for name in ["coach", "desk", "shop"] {
        home.gesta(&["check", &example(name)]).ended(0);
        home.gesta(&["test", &example(name)]).ended(0).has(&["scenes hold"]);
    }
}

#[test]
fn a_broken_folder_is_told_by_file_line_and_key() {
    let home = Home::new();
    home.write("a/agent.toml", "name = \"a\"\nmodle = \"script\"\n");
    home.gesta(&["check", "a"]).ended(2).has(&["agent.toml:2:1", "model"]);
    let report = home.gesta(&["check", "a", "--json"]).ended(2).json();
    assert_eq!(report["problems"][0]["line"], 2);
    home.gesta(&["check", "b"]).ended(2).has(&["b is not there", "agents near it: a"]);
}

#[test]
fn a_proxy_for_tools_that_cannot_be_read_lets_nothing_run() {
    let home = Home::new();
    for words in [["run", &example("desk"), "Hello"].as_slice(), &["check", &example("desk")]] {
        let said: crate::support::Said =
            home.command(words).env("GESTA_EGRESS_PROXY", "::bad").output().unwrap().into();
        said.ended(2).has(&["GESTA_EGRESS_PROXY holds no address", "help: write http://HOST:PORT"]);
    }
}

#[test]
fn scenes_are_played_and_written_anew_on_request() {
    let home = Home::new();
    let scene = "user: Hello\n    asks the model\nmodel: Hi.\n    says: Ho.\nclient: delivered\n    ends: completed\n";
    let path = home.write("s/a.scene", scene);
    home.write("s/deep/b.scene", "user: Hello\n    asks the model\n");
    home.gesta(&["scenes", "s"]).ended(1).has(&["- ", "says: Ho.", "+ ", "says: Hi.", "1 of 2 scenes hold", "help: "]);
    home.gesta(&["scenes", "s", "--update"]).ended(0).has(&["1 written anew"]);
    assert!(std::fs::read_to_string(path).unwrap().contains("says: Hi."));
    home.gesta(&["scenes", "s", "s/a.scene"]).ended(0).has(&["3 of 3 scenes hold"]);
    home.write("bad.scene", "usr: x\n");
    home.gesta(&["scenes", "bad.scene"]).ended(1).has(&["line 1", "`user:`"]);
    home.gesta(&["scenes", "gone"]).ended(2).has(&["gone is not there"]);
}

#[test]
fn an_agents_scenes_need_no_secrets() {
    let home = Home::new();
    home.write("a/agent.toml", "name = \"a\"\nmodel = \"openai:x\"\n");
    let scene = "user: Hello\n    asks the model\nmodel: Hi.\n    says: Hi.\nclient: delivered\n    ends: completed\n";
    home.write("a/scenes/hello.scene", scene);
    home.gesta(&["test", "a"]).ended(0).has(&["1 of 1 scenes hold"]);
    home.gesta(&["check", "a"]).ended(2).has(&["OPENAI_API_KEY"]);
}

#[test]
fn schema_and_completions_are_printed() {
    let home = Home::new();
    let schema: Value = serde_json::from_str(&home.gesta(&["schema"]).ended(0).out).unwrap();
    assert_eq!(schema["title"], "agent.toml");
    for shell in ["bash", "zsh", "fish"] {
        assert!(home.gesta(&["completions", shell]).ended(0).out.contains("fake-model"), "{shell}");
    }
}

#[test]
fn the_doctor_tells_what_is_missing_and_never_a_key() {
    let home = Home::new();
    home.gesta(&["doctor", "--offline"]).ended(0).has(&["data folder", "store", "OPENAI_API_KEY", "not set"]);
    home.gesta(&["doctor", "--offline", &example("coach")]).ended(0).has(&["coach with 2 tools"]);
    home.write("taken", "");
    home.gesta(&["doctor", "--offline", "--data", "taken"]).ended(1).has(&["missing", "help: "]);
    let mut command = home.command(&["doctor", "--json"]);
    let output =
        command.env("OPENAI_API_KEY", "sk-shown-to-nobody").env("OPENAI_BASE_URL", "http://127.0.0.1:9").output();
    let said: crate::support::Said = output.unwrap().into();
    let said = said.ended(1).has(&["openai server"]);
    assert!(!said.out.contains("shown-to-nobody"), "{said:?}");
}

#[test]
fn every_command_has_help_with_examples() {
    let home = Home::new();
    let all = home.gesta(&["--help"]).ended(0).has(&["docs/errors.md"]);
    let commands = all.out.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let mut seen = 0;
    for command in commands.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
        home.gesta(&[command, "--help"]).ended(0).has(&["Examples:", "gesta "]);
        seen += 1;
    }
    assert_eq!(seen, 16);
}
