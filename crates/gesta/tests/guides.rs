//! The agents in the guides can be loaded: each `toml` block is the whole `agent.toml` of a folder.

use std::fs;

use gesta::runtime::folder::Folder;

#[test]
fn every_agent_of_the_guides_can_be_loaded() {
    let mut loaded = 0;
    for guide in fs::read_dir(xtask::root().join("docs/guides")).expect("the guides are there") {
        let path = guide.expect("the guides can be listed").path();
        let text = fs::read_to_string(&path).expect("a guide can be read");
        for (at, block) in text.split("```toml\n").skip(1).enumerate() {
            let toml = block.split("```").next().unwrap_or_default();
            let folder = tempfile::tempdir().expect("a folder can be made");
            fs::write(folder.path().join("agent.toml"), toml).expect("a file can be written");
            fs::write(folder.path().join("prompt.md"), "You are brief.").expect("a file can be written");
            fs::write(folder.path().join("model.script"), "model: Yes.\n").expect("a file can be written");
            if toml.contains("[document]") || toml.contains("[grants.") {
                fs::write(folder.path().join("tools.stof"), "tools: {}\n").expect("a file can be written");
            }
            let key = |name: &str| (name == "OPENAI_API_KEY").then(|| "key".to_owned());
            if let Err(why) = Folder::load(folder.path(), &key) {
                panic!("{}, block {}: {why}", path.display(), at + 1);
            }
            loaded += 1;
        }
    }
    assert!(loaded >= 6, "{loaded} agents");
}
