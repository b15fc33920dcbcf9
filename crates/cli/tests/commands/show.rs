//! `gesta show` and `gesta runs`.

use serde_json::{Value, json};

use crate::support::{Home, World, calls, example, says};

#[test]
fn a_run_is_shown_as_a_scene_that_plays() {
    let home = Home::new();
    home.gesta(&["run", &example("coach"), "Swap squats for lunges"]).ended(0);
    home.gesta(&["run", &example("desk"), "Refund order 7, 250 dollars"]).ended(3);
    for (agent, text) in [("coach", "prompts the model (act when asked)"), ("desk", "holds r1 refund_order")] {
        let runs = home.gesta(&["runs", "--agent", agent, "--json"]).json();
        let scene = home.gesta(&["show", runs["run"].as_str().unwrap(), "--scene"]).ended(0);
        assert!(scene.out.contains(text), "{}", scene.out);
        home.write("told.scene", &scene.out);
        home.gesta(&["scenes", "told.scene"]).ended(0).has(&["1 of 1 scenes hold"]);
    }
}

#[test]
fn a_run_is_found_by_a_part_of_its_id_that_is_its_own() {
    let home = Home::new();
    home.gesta(&["show", "last"]).ended(2).has(&["there is no run yet"]);
    for text in ["one", "two"] {
        home.gesta(&["run", &example("coach"), text]).ended(0);
    }
    let listed = home.gesta(&["runs", "--json"]).ended(0);
    let ids: Vec<String> = listed
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["run"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids.len(), 2);
    for id in &ids {
        for part in [&id[..], &id[..13], &id[24..]] {
            home.gesta(&["show", part]).ended(0).has(&[&format!("run {id}")]);
        }
    }
    home.gesta(&["show", &ids[0][..2]]).ended(2).has(&["2 runs are named by", "help: write more of the id"]);
    home.gesta(&["show", "zzz"]).ended(2).has(&["there is no run `zzz`", "help: `gesta runs`"]);
    home.gesta(&["show", "last"]).ended(0).has(&[&format!("run {}", ids[0])]);
}

#[test]
fn runs_are_listed_with_what_waits() {
    let home = Home::new();
    home.gesta(&["runs"]).ended(0).has(&["no runs"]);
    home.gesta(&["run", &example("coach"), "hello"]).ended(0);
    home.gesta(&["run", &example("desk"), "Refund order 7, 250 dollars"]).ended(3);
    home.gesta(&["runs"]).ended(0).has(&["RUN", "coach", "completed", "desk", "parked", "refund_order (r1)"]);
    let parked = home.gesta(&["runs", "--status", "parked", "--json"]).json();
    assert_eq!(parked["holds"][0]["arguments"], json!({"order": "7", "amount": 250}));
    assert_eq!(home.gesta(&["runs", "--limit", "1", "--json"]).json()["agent"], json!("desk"));
    home.gesta(&["runs", "--limit", "0"]).ended(2);
}

#[test]
fn an_action_that_waits_for_a_person_is_listed_with_what_is_parked() {
    let home = Home::new();
    home.write(
        "a/agent.toml",
        "name = \"a\"\n[[tools]]\nname = \"mail\"\neffect = \"staged\"\nneeds_approval = true\nanswers = [{ result = 1 }]\n",
    );
    home.write("a/model.script", "model: calls m1 mail {}\nmodel: It is written.\n");
    let said = home.gesta(&["run", "-q", "a", "Write to her"]).ended(0);
    assert!(said.err.starts_with("run ") && said.err.contains("waits for an answer to mail (m1)"), "{said:?}");
    home.gesta(&["run", &example("coach"), "hello"]).ended(0);
    let waits = home.gesta(&["runs", "--status", "parked", "--json"]).ended(0).json();
    assert_eq!((&waits["status"], &waits["holds"][0]["name"]), (&json!("ended"), &json!("mail")));
    home.gesta(&["runs", "--status", "parked", "--agent", "coach"]).ended(0).has(&["no run is like that"]);
}

#[test]
fn what_only_reads_makes_nothing() {
    let home = Home::new();
    for words in [&["runs"][..], &["show", "last"], &["resume", "last"]] {
        let said = home.gesta(&[&["--data", "typo"], words].concat()).ended(2);
        said.has(&["the data folder typo is not there"]);
        assert!(!home.path("typo").exists(), "{words:?}");
    }
    home.gesta(&["runs"]).ended(0).has(&["no runs; begin one"]);
    home.gesta(&["show", "last"]).ended(2).has(&["there is no run yet"]);
    assert!(!home.path("gesta").exists());
    home.gesta(&["run", &example("coach"), "Hello"]).ended(0);
    home.gesta(&["runs", "--agent", "nobody"]).ended(0).has(&["no run is like that"]);
    let data = home.path("gesta");
    let named = home.gesta(&["--data", data.to_str().unwrap(), "show", "nonesuch"]).ended(2);
    named.has(&["`gesta runs --data "]);
}

#[test]
fn events_and_exchanges_are_shown_as_they_are() {
    let (home, world) = (Home::new(), World::start(vec![says("hi")]));
    home.write("a/agent.toml", &world.agent(&[], "[storage]\nwire = true\n"));
    home.gesta(&["run", "a", "hello"]).ended(0);
    let events = home.gesta(&["show", "last", "--events"]).ended(0);
    let first: Value = serde_json::from_str(events.out.lines().next().unwrap()).unwrap();
    assert!(first["what"]["opened"].is_object(), "{first}");
    let wire = home.gesta(&["show", "last", "--wire"]).ended(0);
    assert!(wire.out.contains("POST http://127.0.0.1") && wire.out.contains("\"content\":\"hi\""), "{}", wire.out);
    assert!(wire.out.contains(&format!("POST http://127.0.0.1:{}/v1/", world.port)), "{}", wire.out);
    home.gesta(&["run", &example("coach"), "hello"]).ended(0);
    home.gesta(&["show", "last", "--wire"]).ended(2).has(&["no exchange of this run was kept"]);
}

#[test]
fn the_data_folder_may_be_named_in_every_way() {
    let home = Home::new();
    let coach = example("coach");
    home.gesta(&["--data", "here", "run", &coach, "hello"]).ended(0);
    home.gesta(&["show", "last", "--data", "here"]).ended(0);
    home.gesta(&["show", "last"]).ended(2);
    let by_env = |name: &str, value: &str| home.command(&["show", "last"]).env(name, value).output().unwrap().status;
    assert_eq!(by_env("GESTA_DATA", "here").code(), Some(0));
    assert_eq!(by_env("DATABASE_URL", "sqlite:here/gesta.db").code(), Some(0));
    assert_eq!(by_env("DATABASE_URL", "mysql://localhost/x").code(), Some(2));
    assert_eq!(by_env("GESTA_DATA", "elsewhere").code(), Some(2));
}

#[test]
fn exchanges_are_kept_also_after_a_run_was_resumed() {
    let (home, world) = (Home::new(), World::start(vec![calls(&[("c1", "pay")]), says("paid")]));
    let rule = "[[decisions]]\ntool = \"pay\"\naction = \"defer\"\n";
    home.write("a/agent.toml", &(world.agent(&[("pay", "once")], "[storage]\nwire = true\n") + rule));
    home.gesta(&["run", "a", "pay"]).ended(3);
    // The request of the tool, then that of the model, in whose middle the process dies.
    world.stop_at(2);
    let mut child = home.start(&["resume", "last", "--approve", "c1"]);
    world.wait();
    child.kill().unwrap();
    child.wait().unwrap();
    world.release();
    home.gesta(&["resume", "last"]).ended(0).has(&["paid"]);
    let wire = home.gesta(&["show", "last", "--wire"]).ended(0);
    assert!(wire.out.contains("# trip 0, attempt 0") && wire.out.contains("# trip 1, attempt 0"), "{}", wire.out);
    assert_eq!(world.calls("pay").len(), 1);
}
