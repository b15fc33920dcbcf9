//! A run that is shown as a scene is a test: alone, and in the folder of its agent.

use std::path::Path;

use serde_json::Value;

use crate::support::{Home, World, calls, example, says};

/// Copies an agent's folder, its scenes aside.
fn copy(from: &str, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        } else if entry.file_name() != "scenes" {
            copy(entry.path().to_str().unwrap(), &to.join(entry.file_name()));
        }
    }
}

/// Shows every run of the home as a scene, and plays each alone and in the folder.
#[track_caller]
fn all_hold(home: &Home, folder: &str) -> usize {
    let listed = home.gesta(&["runs", "--json"]).ended(0);
    let mut kept = 0;
    for line in listed.out.lines() {
        let run: Value = serde_json::from_str(line).unwrap();
        let shown = home.gesta(&["show", run["run"].as_str().unwrap(), "--scene"]).ended(0);
        assert!(!shown.out.contains("no line brings this about"), "{}", shown.out);
        home.write(&format!("{folder}/scenes/{kept}.scene"), &shown.out);
        home.gesta(&["scenes", &format!("{folder}/scenes/{kept}.scene")]).ended(0).has(&["1 of 1 scenes hold"]);
        kept += 1;
    }
    home.gesta(&["test", folder]).ended(0).has(&[&format!("{kept} of {kept} scenes hold")]);
    kept
}

#[test]
fn every_run_of_the_examples_is_a_scene_that_holds() {
    let home = Home::new();
    copy(&example("coach"), &home.path("coach"));
    for text in ["Swap squats for lunges", "Show my plan", "Hello", "Swap squats for cartwheels"] {
        home.gesta(&["run", "coach", text]);
    }
    home.gesta_with(&["chat", "coach"], "Swap squats for lunges\nMy knee hurts\nShow my plan\n");
    assert_eq!(all_hold(&home, "coach"), 7);

    let home = Home::new();
    copy(&example("desk"), &home.path("desk"));
    let refund = ["run", "desk", "Refund order 7, 250 dollars"];
    for answer in [
        &["--approve", "r1"][..],
        &["--approve", "r1", "--arguments", r#"{"order":"7","amount":50}"#],
        &["--deny", "r1", "--reason", "ask for a receipt, \"please\"\nand a photo"],
        &[],
    ] {
        home.gesta(&refund).ended(3);
        home.gesta(&[&["resume", "last"], answer].concat());
    }
    home.gesta(&["run", "desk", "Refund order 7, 20 dollars"]);
    // A message that closes what waited.
    home.gesta_with(&["chat", "desk"], "Refund order 7, 250 dollars\nHello\n/why\n");
    assert_eq!(all_hold(&home, "desk"), 7);
}

#[test]
fn runs_of_other_shapes_are_scenes_that_hold_too() {
    let odd = "a b\n;c \"q\" \u{202e}";
    let (home, world) = (
        Home::new(),
        World::start(vec![
            calls(&[("c1", "pay"), (odd, "look")]),
            calls(&[("", "pay"), ("c1", "gone")]),
            says("done\n"),
        ]),
    );
    let rules = "[[decisions]]\ntool = \"pay\"\naction = \"defer\"\nreason = \"look: \\\"twice\\\"\"\n";
    let more = "on_tool_refusal = \"retry_once_with_hint\"\n\
                [act_when_asked]\nintents = [\"go\"]\nrequired_tools = [\"pay\"]\nmax_reprompts = 2\n";
    home.write("a/agent.toml", &(world.agent(&[("pay", "once"), ("look", "reads_only")], more) + rules));
    home.write("a/prompt.md", "Be brief.\n\n- One\n- Two |\n");
    home.gesta(&["run", "a", "go |"]).ended(3);
    home.gesta(&["resume", "last", "--error", "c1", "it is closed", "--json"]).ended(3);
    home.gesta(&["resume", "last", "--deny", "@1.0", "--reason", "no"]).ended(0);
    home.gesta(&["run", "a", "  \"quoted\" go\n\nsecond line ", "--conversation", "k"]);
    home.gesta(&["run", "a", "and now?", "--conversation", "k"]);
    assert_eq!(all_hold(&home, "a"), 3);
}

#[test]
fn runs_that_ended_in_every_other_way_are_scenes_that_hold() {
    let home = Home::new();
    let tools = "[[tools]]\nname = \"t\"\nanswers = [{ result = { ok = false, reason = \"no\" } }]\n\
                 [[tools]]\nname = \"held\"\nanswers = [{ result = 1 }]\n\
                 [[decisions]]\ntool = \"held\"\naction = \"defer\"\n";
    let head =
        "name = \"a\"\nhold_ttl = \"1ms\"\non_tool_refusal = \"retry_once_with_hint\"\n[limits]\ntrips_max = 2\n";
    home.write("a/agent.toml", &format!("{head}{tools}"));
    let script = "user matches \"fail\":\nmodel: fails overloaded, for good: busy\n\n\
                  user matches \"cut\":\nmodel: cut off: It is\n\n\
                  user matches \"loop\":\nmodel: calls - t {}\n\n\
                  user matches \"odd\":\nmodel: calls x t {not json\nand: calls x gone {}\nand: thinks: Hm.\nmodel: Yes.\n\n\
                  user matches \"hold\":\nmodel: calls h held {}\nmodel: Later.\n\notherwise:\nmodel: Hi.\n";
    home.write("a/model.script", script);
    for (text, code) in [("hello", 0), ("fail", 4), ("cut", 1), ("loop", 1), ("odd", 0), ("hold", 3)] {
        home.gesta(&["run", "a", text]).ended(code);
    }
    home.gesta(&["resume", "last", "--approve", "h"]).ended(1).has(&["has expired"]);
    home.gesta(&["run", "a", "hold"]).ended(3);
    home.gesta(&["run", "a", "loop"]).ended(1);
    home.gesta(&["resume", "last", "--trips", "4"]).ended(1);
    home.gesta(&["run", "a", "fail"]).ended(4);
    home.gesta(&["resume", "last"]).ended(4);
    assert_eq!(all_hold(&home, "a"), 9);
}

#[test]
fn the_guide_to_a_first_agent_does_what_it_says() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/first-agent.md");
    let page = std::fs::read_to_string(page).unwrap();
    let home = Home::new();
    for name in ["visits/prompt.md", "visits/agent.toml", "visits/model.script"] {
        let (_, behind) = page.split_once(&format!("`{name}`")).unwrap();
        let block = behind.split("```").nth(1).unwrap();
        home.write(name, block.split_once('\n').unwrap().1);
    }
    home.gesta(&["check", "visits"]).ended(0);
    home.gesta_with(&["chat", "visits"], "Move my visit to Friday\n").ended(0).has(&["prompts the model"]);
    assert!(page.contains("`gesta show last --scene`") && page.contains("`visits/scenes/friday.scene`"));
    let scene = home.gesta(&["show", "last", "--scene"]).ended(0).out;
    home.write("visits/scenes/friday.scene", &scene);
    home.gesta(&["test", "visits"]).ended(0).has(&["1 of 1 scenes hold"]);
}

#[cfg(unix)]
#[test]
fn a_run_that_was_taken_up_after_a_crash_is_a_scene_that_holds() {
    for at in 1..=4 {
        let (home, world) = (Home::new(), World::start(vec![calls(&[("c1", "pay"), ("c2", "look")]), says("done")]));
        home.write("a/agent.toml", &world.agent(&[("pay", "once"), ("look", "reads_only")], ""));
        world.stop_at(at);
        let mut child = home.start(&["run", "a", "go"]);
        world.wait();
        child.kill().unwrap();
        child.wait().unwrap();
        world.release();
        // Also as it was left.
        assert_eq!(all_hold(&home, "a"), 1, "{at}");
        home.gesta(&["resume", "last"]).ended(0);
        assert_eq!(all_hold(&home, "a"), 1, "{at}");
    }
}

#[test]
fn a_scene_with_another_plan_than_its_agents_says_so_and_is_freed_of_it_on_request() {
    let home = Home::new();
    copy(&example("desk"), &home.path("desk"));
    home.gesta(&["run", "desk", "Refund order 7, 20 dollars"]);
    let scene = home.gesta(&["show", "last", "--scene"]).ended(0).out;
    let path = home.write("desk/scenes/kept.scene", &scene);
    // What a run does not depend on may change.
    home.write("desk/prompt.md", "Be brief.");
    home.gesta(&["test", "desk"]).ended(0).has(&["1 of 1 scenes hold"]);
    let toml = std::fs::read_to_string(home.path("desk/agent.toml")).unwrap();
    let fewer = toml.replace(r#", "money back"]"#, "]");
    assert_ne!(toml, fewer);
    home.write("desk/agent.toml", &fewer);
    let clause = r#"plan: on "refund", "money back" must call refund_order"#;
    let line = 1 + scene.lines().position(|line| line == clause).unwrap();
    home.gesta(&["test", "desk"]).ended(1).has(&[
        &format!("line {line}: the agent's plan is another: it does not say `{clause}`"),
        "0 of 1 scenes hold",
        "--update",
    ]);
    home.gesta(&["test", "desk", "--update"]).ended(0).has(&["1 written anew"]);
    let freed = std::fs::read_to_string(path).unwrap();
    assert!(!freed.contains("plan:") && freed.contains("refund_order"), "{freed}");
    home.gesta(&["test", "desk"]).ended(0).has(&["1 of 1 scenes hold"]);
    home.write("desk/agent.toml", &toml);
    home.gesta(&["test", "desk"]).ended(0).has(&["1 of 1 scenes hold"]);
}

#[test]
fn what_cannot_be_played_is_never_written_as_if_it_were_meant() {
    let home = Home::new();
    home.write("a/agent.toml", "name = \"a\"\n[[tools]]\nname = \"t\"\nanswers = [{ result = 1 }]\n");
    home.write("a/model.script", "model: Hi.\n");
    let turn = "user: Hello\n    asks the model\n";
    for (scene, why) in [
        (format!("plan: tool t, reads only: Another.\n{turn}"), "line 1: the agent has another tool of that name"),
        (format!("plan: tool x\nplan: tool x, reads only\n{turn}"), "line 2: the agent has another tool of that name"),
        (format!("plan: trips at most 0\n{turn}"), "trips_max must be more than zero"),
        (format!("{turn}plan: live\n"), "line 3: the plan stands ahead"),
        ("modle: x\n".to_owned(), "did you mean `model:`"),
        (String::new(), "line 1: there is nothing to play"),
        ("# Only a title\n".to_owned(), "line 1: there is nothing to play"),
    ] {
        let path = home.write("a/scenes/one.scene", &scene);
        for words in [&["test", "a", "--update"][..], &["scenes", "a/scenes"], &["scenes", "a/scenes", "--update"]] {
            let said = home.gesta(words);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), scene, "{words:?}: {said:?}");
            assert!(!said.out.contains("with --update"), "{said:?}");
        }
        home.gesta(&["test", "a"]).ended(1).has(&[why, "0 of 1 scenes hold"]);
    }
}

#[cfg(unix)]
#[test]
fn a_link_to_a_folder_above_plays_nothing_twice() {
    let home = Home::new();
    home.write("s/a.scene", "user: Hello\n    asks the model\n");
    home.write("s/deep/b.scene", "user: Hello\n    asks the model\n");
    std::os::unix::fs::symlink("..", home.path("s/deep/again")).unwrap();
    home.gesta(&["scenes", "s"]).ended(0).has(&["2 of 2 scenes hold"]);
}
