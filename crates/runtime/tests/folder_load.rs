//! What is read from a folder: defaults, overrides, secrets, snapshots, and what `check` doubts.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;

use gesta_run::Decision;
use gesta_run::plan::Prices;
use gesta_runtime::folder::{Folder, check};
use serde_json::json;

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    dir
}

fn load(dir: &Path, variables: &[(&str, &str)]) -> Result<Folder, String> {
    let variables: BTreeMap<String, String> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Folder::load(dir, &|name| variables.get(name).cloned()).map_err(|errors| errors.to_string())
}

const SCRIPT: (&str, &str) = ("model.script", "model: Good morning.\n");

#[test]
fn a_folder_needs_no_more_than_a_name_and_a_script() {
    let dir = folder(&[("agent.toml", "name = \"a\""), SCRIPT, ("prompt.md", "\u{feff}You are \"a\".\n\n")]);
    let folder = load(dir.path(), &[]).unwrap();
    let plan = &folder.settings.plan;
    assert_eq!((plan.agent.as_str(), plan.model.as_str(), plan.timezone.as_str()), ("a", "script", "UTC"));
    assert_eq!(plan.instructions, "You are \"a\".\n\n", "read verbatim");
    assert_eq!(plan.limits.trips_max, 10);
    assert!(!plan.hook && folder.settings.stream);
    assert_eq!(folder.settings.history.turns_max, 50);
    assert_eq!(folder.storage.data, None, "the program's own");
}

#[test]
fn the_environment_overrides_the_folder_and_the_process_its_env_file() {
    let env = "OPENAI_API_KEY=from-file\nGESTA_TIMEZONE=\"Europe/Vienna\"\nGESTA_DATA=/data\n";
    let dir = folder(&[("agent.toml", "timezone = \"Asia/Tokyo\""), SCRIPT, (".env", env)]);
    let folder = load(dir.path(), &[("GESTA_MODEL", "openai:gpt-5-mini"), ("OPENAI_API_KEY", "from-process")]).unwrap();
    assert_eq!(folder.settings.plan.model, "openai:gpt-5-mini");
    assert_eq!(folder.settings.plan.timezone, "Europe/Vienna");
    assert_eq!(folder.storage.data.as_deref(), Some(Path::new("/data")));
    assert_eq!(folder.secrets.get("OPENAI_API_KEY").unwrap().expose(), "from-process");
    let prices = folder.settings.plan.limits.prices;
    assert_eq!(prices, Some(Prices { input: 0.25, output: 2.0, cached: Some(0.025) }));
    assert_eq!(folder.settings.history.tokens_max, Some(240_000), "60 % of the model's window");
    let unknown = load(dir.path(), &[("GESTA_MODEL", "opnai:x")]).unwrap_err();
    assert!(unknown.starts_with("--model or GESTA_MODEL: there is no provider `opnai`"), "{unknown}");
    assert!(load(dir.path(), &[("GESTA_TIMEZONE", "Moon")]).unwrap_err().contains("is no time zone"));
}

#[test]
fn a_broken_env_file_is_told_without_its_text() {
    let dir = folder(&[("agent.toml", ""), SCRIPT, (".env", "# ours\nA=1\nKEY = s3cret words here\nB=2\n")]);
    let error = load(dir.path(), &[]).unwrap_err();
    assert!(error.starts_with(".env:3:1: the line cannot be read; write NAME=value"), "{error}");
    assert!(!error.contains("s3cret"), "{error}");
}

/// Puts something in the place of a file.
type Make<'a> = &'a dyn Fn(&Path);

#[cfg(unix)]
#[test]
fn what_is_no_file_or_leads_out_of_the_folder_is_refused_at_once() {
    use std::os::unix::fs::symlink;
    let outside = folder(&[("secret.txt", "s3cret")]);
    let secret = outside.path().join("secret.txt").canonicalize().unwrap();
    let toml = "[[tools]]\nname = \"a\"\nanswers = [{ result = 1 }]\nparameters_file = \"x.json\"\n";
    for name in ["agent.toml", "prompt.md", "model.script", ".env", "x.json"] {
        let files = [("agent.toml", toml), SCRIPT, ("prompt.md", "Be kind."), (".env", "A=1"), ("x.json", "{}")];
        let kinds: [(Make<'_>, &str); 4] = [
            (&|path| symlink(&secret, path).unwrap(), "leads out of the folder, to "),
            (&|path| drop(std::os::unix::net::UnixListener::bind(path).unwrap()), "is a socket, and no file"),
            (&|path| std::fs::create_dir(path).unwrap(), "is a folder, and no file"),
            (&|path| pipe(path), "is a pipe, and no file"),
        ];
        for (make, said) in kinds {
            let dir = folder(&files);
            let path = dir.path().join(name);
            std::fs::remove_file(&path).unwrap();
            make(&path);
            let error = load(dir.path(), &[]).unwrap_err();
            assert!(error.contains(&format!("`{name}` {said}")) && !error.contains("s3cret"), "{name}: {error}");
        }
    }
}

/// A pipe that nobody writes into: opening it would wait for ever.
#[cfg(unix)]
fn pipe(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[cfg(unix)]
#[test]
fn a_link_to_another_file_of_the_folder_is_followed() {
    let dir = folder(&[("agent.toml", ""), SCRIPT, ("..data/prompt.md", "Be kind.")]);
    std::os::unix::fs::symlink("..data/prompt.md", dir.path().join("prompt.md")).unwrap();
    assert_eq!(load(dir.path(), &[]).unwrap().settings.plan.instructions, "Be kind.");
}

#[test]
fn a_header_that_sounds_like_a_secret_is_doubted() {
    let toml =
        "[[tools]]\nname = \"a\"\nurl = \"https://a.example/\"\nheaders = { X-Shop-Token = \"abc\", X-Kind = \"b\" }\n";
    let dir = folder(&[("agent.toml", toml), SCRIPT, ("prompt.md", "Be kind.")]);
    let report = check(dir.path(), &|_| None);
    let told: Vec<String> = report.warnings.iter().map(ToString::to_string).collect();
    assert!(report.problems.is_empty(), "{report:?}");
    assert!(
        told.iter().any(|it| it.starts_with("agent.toml:4:13: tools[0].headers.X-Shop-Token: if this is")),
        "{told:?}"
    );
    assert!(told.iter().all(|it| !it.contains("X-Kind") && !it.contains("abc")), "{told:?}");
}

const AGENT: &str = r#"
version = "3"
prices = "own.toml"
[act_when_asked]
intents = ["refund"]
required_tools = ["refund"]
[[tools]]
name = "refund"
parameters_file = "refund.json"
url = "https://shop.example/refund"
headers = { Authorization = "Bearer env:SHOP_KEY" }
[[tools]]
name = "ask_shop"
external = true
[[decisions]]
tool = "refund"
when = { amount = { greater_than = 100 } }
action = "defer"
"#;

fn shop() -> tempfile::TempDir {
    let schema = r#"{"type":"object","properties":{"amount":{"type":"number"}},"required":["amount"]}"#;
    let prices = "written = \"2026-11-30\"\n[models.script]\ninput = 1\noutput = 2\n";
    folder(&[("agent.toml", AGENT), SCRIPT, ("refund.json", schema), ("own.toml", prices)])
}

#[test]
fn a_snapshot_brings_the_same_agent_back_without_its_files_and_holds_no_secret() {
    let dir = shop();
    let folder = load(dir.path(), &[("SHOP_KEY", "s3cret")]).unwrap();
    let snapshot = folder.snapshot();
    assert!(!snapshot.to_string().contains("s3cret"));
    drop(dir);
    let back = Folder::from_snapshot(snapshot.clone(), &|_| Some("s3cret".to_owned())).unwrap();
    assert_eq!(back.settings, folder.settings);
    assert_eq!(back.plan.hash(), folder.plan.hash());
    assert_eq!(back.settings.plan.limits.prices, Some(Prices { input: 1.0, output: 2.0, cached: None }));
    let amount = json!({"amount": 250});
    assert_eq!(back.decisions.decide("refund", amount.as_object().unwrap()).decision, Decision::defer());
    assert_eq!(back.decisions.decide("ask_shop", amount.as_object().unwrap()).decision, Decision::defer());
    let missing = Folder::from_snapshot(snapshot.clone(), &|_| None).unwrap_err().to_string();
    assert!(missing.contains("needs the variable `SHOP_KEY`"), "{missing}");
    let mut newer = snapshot;
    newer["snapshot"] = json!(99);
    let newer = Folder::from_snapshot(newer, &|_| None).unwrap_err().to_string();
    assert_eq!(newer, "snapshot: is of version 99, which this program does not read");
    assert!(Folder::from_snapshot(json!({"snapshot": 1}), &|_| None).is_err());
    assert!(Folder::from_snapshot(json!(null), &|_| None).is_err());
}

#[test]
fn every_change_of_the_rules_is_another_version() {
    let dir = shop();
    let hash = |dir: &Path| load(dir, &[("SHOP_KEY", "x")]).unwrap().plan.hash().to_owned();
    let before = hash(dir.path());
    assert_eq!(before, hash(dir.path()));
    for (old, new) in [("100", "200"), ("shop.example", "other.example"), ("defer", "run")] {
        std::fs::write(dir.path().join("agent.toml"), AGENT.replace(old, new)).unwrap();
        assert_ne!(before, hash(dir.path()), "{old} to {new}");
    }
    std::fs::write(dir.path().join("agent.toml"), AGENT).unwrap();
    std::fs::write(dir.path().join("model.script"), "model: Good evening.\n").unwrap();
    assert_ne!(before, hash(dir.path()));
}

#[test]
fn a_check_tells_of_scripts_and_scenes_with_their_lines() {
    let dir = folder(&[
        ("agent.toml", "prompt = \"p.md\""),
        ("p.md", "You are."),
        ("model.script", "model: a\n\nmodle: b\n"),
        ("scenes/a.scene", "usr: Hello\n"),
    ]);
    let report = check(dir.path(), &|_| None);
    let told: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["model.script:3:1: `modle: b` is no line of a script; did you mean `model:`?"]);
    std::fs::write(dir.path().join("model.script"), "model: a\n").unwrap();
    let report = check(dir.path(), &|_| None);
    // The folder can be used all the same.
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    assert!(report.warnings[0].to_string().starts_with("scenes/a.scene:1:1: "), "{:?}", report.warnings);
    let missing = check(&dir.path().join("nowhere"), &|_| None).problems[0].to_string();
    assert!(missing.starts_with("agent.toml: is not in ") && missing.ends_with("`gesta init`"), "{missing}");
}

#[test]
fn a_check_doubts_what_is_probably_not_meant() {
    let agent = r#"
[providers.mine]
protocol = "anthropic"
[act_when_asked]
intents = ["ad", " "]
required_tools = ["refund"]
[limits]
cost_usd_max = 1
[[tools]]
name = "refund"
answers = [{ result = 1 }]
parameters = { type = "object", properties = { amount = { type = "string" } }, required = ["amount", "order"] }
[[decisions]]
tool = "re*"
when = { amount = { greater_than = 100 } }
action = "defer"
[[decisions]]
tool = "refund"
when = { order = { at_most = 3 } , "/note/n" = { at_least = 1 } }
action = "defer"
[[decisions]]
tool = "refund"
action = "run"
[[decisions]]
tool = "refund"
when = { amount = "1" }
action = "defer"
[[decisions]]
tool = "send_*"
action = "defer"
"#;
    let dir = folder(&[("agent.toml", agent), SCRIPT]);
    let report = check(dir.path(), &|_| None);
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    let told: Vec<String> = report.warnings.iter().map(ToString::to_string).collect();
    let expected = [
        "agent.toml:1:1: prompt: the model is told nothing",
        "agent.toml:5:12: act_when_asked.intents[0]: \"ad\" is short",
        "agent.toml:5:18: act_when_asked.intents[1]: it is blank",
        "agent.toml:8:1: limits.cost_usd_max: `script` has no price",
        "agent.toml:9:1: tools[0]: tool `refund` has no description",
        "agent.toml:12:1: tools[0].parameters: `order` is required and not described",
        "agent.toml:15:10: decisions[0].when.amount: tool `refund`: its schema does not say that `amount` is a number",
        "agent.toml:19:10: decisions[1].when.order: tool `refund`: its schema does not describe `order`",
        "agent.toml:19:36: decisions[1].when./note/n: tool `refund`: its schema does not require `note`",
        "agent.toml:24:1: decisions[3]: is never reached: decision 2",
        "agent.toml:29:1: decisions[4].tool: no tool fits `send_*`",
        "agent.toml:2:12: providers.mine: the protocol's own service is sent no key",
    ];
    for text in expected {
        assert!(told.iter().any(|it| it.starts_with(text)), "{text} in\n{}", told.join("\n"));
    }
}
