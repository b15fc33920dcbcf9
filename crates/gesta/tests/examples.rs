//! The numbered programs of `examples/`, run as they are.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::process::Command;

/// What a program prints. `cargo test` builds them; where only this test was built, cargo is asked for the program.
fn output(name: &str) -> String {
    let test = std::env::current_exe().unwrap();
    let built: PathBuf = test.parent().unwrap().parent().unwrap().join("examples").join(name);
    let mut command = if built.is_file() {
        Command::new(built)
    } else {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["run", "--quiet", "--package", "gesta", "--example", name]);
        cargo
    };
    let output = command.output().unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn an_agent_with_a_tool_acts_instead_of_offering() {
    let expected = "I have swapped squats for lunges.\n  \
                    update_plan {\"from\":\"squats\",\"to\":\"lunges\"} -> \"lunges is in\"\n  prompted 1 time(s)\n";
    assert_eq!(output("1_an_agent_with_a_tool"), expected);
}

#[test]
fn each_call_gets_its_decision() {
    let said = output("2_a_decision_on_each_call");
    let calls: Vec<&str> = said.lines().collect();
    assert!(calls[0].starts_with(r#"c1 {"order":"7","amount":20} -> Completed"#), "{said}");
    assert!(calls[1].starts_with(r#"c2 {"order":"8","amount":50} -> Completed"#), "{said}");
    assert!(calls[2].starts_with(r#"c3 {"order":"1","amount":10} -> Denied"#), "{said}");
}

#[test]
fn another_process_approves_and_the_call_runs_once() {
    let said = output("3_park_and_resume");
    assert!(said.starts_with("Parked: refund waits\npaying 200 for order 7, key "), "{said}");
    assert!(said.ends_with("A colleague has decided on your refund.\nanswered before: [\"c1\"]\n"), "{said}");
    assert_eq!(said.matches("paying").count(), 1);
}
