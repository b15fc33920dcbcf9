//! Several processes at once.

use crate::support::{Home, Said, World, says};

#[test]
fn a_conversation_has_one_run_at_a_time() {
    let (home, world) = (Home::new(), World::start(vec![says("done")]));
    home.write("a/agent.toml", &world.agent(&[], ""));
    world.stop_at(1);
    let first = home.start(&["run", "a", "one", "--conversation", "k"]);
    world.wait();
    home.gesta(&["run", "a", "two", "--conversation", "k"]).ended(1).has(&["is going on", "help: "]);
    home.gesta(&["run", "a", "three"]).ended(0);
    world.release();
    let first: Said = first.wait_with_output().unwrap().into();
    first.ended(0);
    home.gesta(&["run", "a", "four", "--conversation", "k"]).ended(0);
}

#[test]
fn many_at_once_share_one_data_folder() {
    let home = Home::new();
    home.write("a/agent.toml", "name = \"a\"\n");
    home.write("a/model.script", "model: Hi.\n");
    let children: Vec<_> = (0..8).map(|_| home.start(&["run", "a", "hello"])).collect();
    for child in children {
        let said: Said = child.wait_with_output().unwrap().into();
        said.ended(0);
    }
    assert_eq!(home.gesta(&["runs", "--json"]).ended(0).out.lines().count(), 8);
}
