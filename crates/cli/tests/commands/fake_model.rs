//! `gesta fake-model`, as the model of an agent.

use std::io::{BufRead, BufReader};
use std::process::Child;

use serde_json::json;

use crate::support::{Home, Said, example};

/// A fake model in a process of its own; it ends with the test.
struct Fake {
    child: Child,
    url: String,
}

impl Drop for Fake {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(home: &Home, faults: &str) -> Fake {
    let script = format!("{}/model.script", example("coach"));
    let mut child = home.start(&["fake-model", &script, "--key", "k", "--faults", faults]);
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("listening on ").expect("its first line says where it listens").to_owned();
    Fake { child, url }
}

fn swap(home: &Home, fake: &Fake, agent: &str, protocol: &str) -> Said {
    let words = ["run", agent, "--json", "--model", &format!("{protocol}:any"), "Swap squats for lunges"];
    let mut command = home.command(&words);
    command.env("OPENAI_BASE_URL", format!("{}/v1", fake.url)).env("OPENAI_API_KEY", "k");
    command.env("ANTHROPIC_BASE_URL", &fake.url).env("ANTHROPIC_API_KEY", "k");
    command.output().unwrap().into()
}

#[test]
fn the_coach_acts_alike_in_both_protocols_streamed_and_plain_and_over_bad_lines() {
    let home = Home::new();
    let toml = std::fs::read_to_string(format!("{}/agent.toml", example("coach"))).unwrap();
    for stream in [true, false] {
        home.write("coach/agent.toml", &format!("stream = {stream}\n{toml}"));
        home.write("coach/model.script", "model: unused\n");
        for faults in ["", "split=3", "drop=100%, once", "status=429, retry-after=0, once"] {
            let fake = start(&home, faults);
            for protocol in ["openai", "anthropic"] {
                let result = swap(&home, &fake, "coach", protocol).ended(0).json();
                let how = format!("{protocol}, streamed {stream}, {faults}");
                assert_eq!(result["text"], json!("I have swapped squats for lunges."), "{how}");
                assert_eq!(
                    (&result["trips"], &result["tool_calls"][0]["status"]),
                    (&json!(3), &json!("completed")),
                    "{how}"
                );
            }
        }
    }
}

#[test]
fn an_answer_that_is_cut_or_malformed_is_a_failed_model_and_never_a_shorter_success() {
    let home = Home::new();
    let fake = start(&home, "cut");
    for protocol in ["openai", "anthropic"] {
        let result = swap(&home, &fake, &example("coach"), protocol).ended(4).json();
        assert_eq!((&result["outcome"], &result["tool_calls"]), (&json!("model_failed"), &json!([])));
    }
}

#[test]
fn what_cannot_be_served_is_said() {
    let home = Home::new();
    home.write("bad.script", "mdoel: x\n");
    home.gesta(&["fake-model", "bad.script"]).ended(2).has(&["bad.script:1:", "`model:`", "help: "]);
    home.gesta(&["fake-model", "gone.script"]).ended(2).has(&["gone.script"]);
    home.write("good.script", "model: x\n");
    home.gesta(&["fake-model", "good.script", "--faults", "explode"]).ended(2).has(&["`explode` is no fault"]);
}
