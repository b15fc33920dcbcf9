//! The commands that people are told to paste: a shell runs the program that they name, with what was meant, and nothing
//! else, whatever the model or a file put into them.

#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Home, World, says};

/// Ids that a model may give to a call.
fn hostile_ids() -> Vec<String> {
    let mut ids: Vec<String> = [
        "plain_1",
        "$(touch${IFS}pwned);x",
        "`touch pwned`",
        "a b\n;touch pwned;",
        "'; touch pwned; '",
        "\" & touch pwned & \"",
        "--deny",
        "-x",
        "--approve=other",
        "@0.0",
        "a\u{202e}b\u{2066}",
        "\u{1b}[2Kx\r",
        "nul\u{0}byte",
        "~/.ssh > pwned",
        "\u{65e5}\u{672c}\u{8a9e}",
        "other other",
        "%s\\n%n",
        "!! #",
    ]
    .map(str::to_owned)
    .into();
    ids.push("x".repeat(5_000));
    ids
}

const ARGUMENTS: &str = r#"{"n":"'; touch pwned; ' $(touch pwned)\n\u202e\u0085"}"#;
/// Each name of the data folder is as bad as a file system allows.
const DATA: &str = "d'a $(touch pwned)\nta\u{202e}";

fn asks(id: &str) -> Value {
    let call = |id: &str, tool: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": tool, "arguments": arguments}});
    json!({"role": "assistant", "content": null, "tool_calls": [call("other", "pay", "{}"), call(id, "ship", ARGUMENTS)]})
}

/// Puts a program in the place of `gesta` that writes down what it was called with.
fn stand_in(home: &Home) {
    let path = home.write("bin/gesta", "#!/bin/sh\nprintf '%s\\000' \"$#\" \"$@\" >> argv\n");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// What the stand-in was called with when a shell was given this line.
fn pasted(home: &Home, line: &str) -> Vec<String> {
    let path = format!("{}:{}", home.path("bin").display(), std::env::var("PATH").unwrap());
    let said = Command::new("sh").args(["-c", line]).env("PATH", path).current_dir(home.path("")).output().unwrap();
    assert!(said.status.success(), "{line}: {said:?}");
    let argv = String::from_utf8(std::fs::read(home.path("argv")).unwrap()).unwrap();
    std::fs::remove_file(home.path("argv")).unwrap();
    assert!(!home.path("pwned").exists(), "the shell ran what the model wrote: {line}");
    let mut words = argv.trim_end_matches('\0').split('\0').map(str::to_owned);
    let count: usize = words.next().unwrap().parse().unwrap();
    let words: Vec<String> = words.collect();
    assert_eq!(words.len(), count, "it was called once: {line}");
    words
}

/// The commands of a text, for the second hold.
fn commands(text: &str) -> Vec<String> {
    let all: Vec<&str> = text.lines().map(str::trim).filter(|line| line.starts_with("gesta resume")).collect();
    assert_eq!(all.len(), 6, "{text}");
    all[3..].iter().map(|line| (*line).to_owned()).collect()
}

fn parked(id: &str) -> (Home, World) {
    let (home, world) = (Home::new(), World::start(vec![asks(id), says("done")]));
    let rule = "[[decisions]]\ntool = \"*\"\naction = \"defer\"\n";
    home.write("a/agent.toml", &(world.agent(&[("pay", "once"), ("ship", "once")], "") + rule));
    stand_in(&home);
    home.gesta(&["run", "a", "go", "--data", DATA]).ended(3);
    (home, world)
}

#[test]
fn a_pasted_command_means_the_call_that_was_shown_and_runs_nothing_else() {
    for (n, id) in hostile_ids().into_iter().enumerate() {
        let (home, world) = parked(&id);
        let shown = home.gesta(&["show", "last", "--data", DATA]).ended(0);
        let mut texts = vec![shown.out.clone()];
        // Every place prints them in the same way: a few show that it does.
        if n % 6 == 1 {
            texts.push(home.gesta(&["resume", "last", "--data", DATA]).ended(3).err);
            texts.push(home.gesta(&["run", "a", "go", "--data", DATA]).ended(3).err);
            texts.push(home.gesta_with(&["chat", "a", "--data", DATA], "go\n").ended(3).out);
        }
        for text in &texts {
            let clean = |c: char| !c.is_control() && !matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
            assert!(text.chars().all(|c| clean(c) || c == '\n'), "{text:?}");
            for line in commands(text) {
                let words = pasted(&home, &line);
                assert_eq!((words[0].as_str(), words[words.len() - 1].as_str()), ("resume", DATA), "{line}");
            }
        }
        let [approve, edit, _] = commands(&shown.out).try_into().unwrap();
        let edited = pasted(&home, &edit);
        let arguments: Value = serde_json::from_str(&edited[5]).unwrap();
        assert_eq!(arguments, serde_json::from_str::<Value>(ARGUMENTS).unwrap(), "{edit}");
        let words = pasted(&home, &approve);
        home.gesta(&words.iter().map(String::as_str).collect::<Vec<_>>()).ended(3);
        assert_eq!((world.calls("pay").len(), world.calls("ship").len()), (0, 1), "{id:?} as {approve}");
        let listed = home.gesta(&["runs", "--data", DATA]).ended(0);
        assert!(listed.out.lines().all(|line| line.chars().count() < 200), "{}", listed.out);
    }
}

#[test]
fn an_id_names_its_call_whatever_it_is() {
    let id = "a b\n;c";
    let (home, world) = parked(id);
    home.gesta(&["resume", "last", "--approve", id, "--data", DATA]).ended(3);
    assert_eq!((world.calls("pay").len(), world.calls("ship").len()), (0, 1));
    // Its place names it, too, when it has been answered.
    home.gesta(&["resume", "last", "--approve", "@0.1", "--data", DATA]).ended(3).has(&["@0.1 was answered like this"]);
    home.gesta(&["resume", "last", "--approve", "@7.0", "--data", DATA]).ended(1).has(&["no hold `@7.0`"]);
}

#[test]
fn folders_are_quoted_in_every_hint() {
    let home = Home::new();
    stand_in(&home);
    let dir = "it's $(touch pwned)";
    let hints = [
        home.gesta(&["init", dir]).ended(0).out,
        home.gesta(&["init", dir]).ended(2).err,
        home.gesta(&["check", "no $(touch pwned)"]).ended(2).err,
        {
            home.write(&format!("{dir}/agent.toml"), "nmae = \"x\"\n");
            home.gesta(&["run", dir, "x"]).ended(2).err
        },
    ];
    for hint in hints {
        let commands = hint.split('`').skip(1).step_by(2).filter(|it| it.starts_with("gesta "));
        for command in commands {
            assert!(pasted(&home, command)[1].contains("$(touch pwned)"), "{command}");
        }
    }
}
