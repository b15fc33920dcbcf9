//! A folder's document and its grants: defaults, limits, and what is wrong with them.

#![allow(clippy::unwrap_used)]

use gesta_document::{AddedTools, GrantName, Limits};
use gesta_run::ToolEffect;
use gesta_runtime::folder::{Body, Folder, check};
use gesta_sandbox::Demand;

const TOOLS: &str = "tools: {\n    #[tool('Lists orders')]\n    fn orders() -> list { await App.orders() }\n}\n";

fn folder(agent: &str, tools: Option<&str>) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("agent.toml"), agent).unwrap();
    std::fs::write(dir.path().join("model.script"), "model: Good morning.\n").unwrap();
    std::fs::write(dir.path().join("prompt.md"), "You are the order desk.\n").unwrap();
    if let Some(tools) = tools {
        std::fs::write(dir.path().join("tools.stof"), tools).unwrap();
    }
    dir
}

fn load(agent: &str, tools: Option<&str>) -> Result<Folder, String> {
    Folder::load(folder(agent, tools).path(), &|_| None).map_err(|errors| errors.to_string())
}

#[test]
fn a_file_named_tools_makes_a_document() {
    let with = load("name = \"a\"", Some(TOOLS)).unwrap();
    let document = with.settings.document.as_ref().unwrap();
    assert_eq!((document.file.as_str(), document.base.as_str()), ("tools.stof", TOOLS));
    assert_eq!((document.added_tools, document.sandbox), (AddedTools::AsBase, Demand::Available));
    assert_eq!(document.limits, Limits::default());
    assert!(with.settings.plan.tools_change, "tools are read anew on each trip");
    let without = load("name = \"a\"", None).unwrap();
    assert_eq!(without.settings.document, None);
    assert!(!without.settings.plan.tools_change && without.document_terms().is_none());
}

#[test]
fn the_table_says_how_it_runs_and_grants_what_it_may_call() {
    let agent = r#"
        [document]
        added_tools = "on"
        sandbox = "required"
        call_time_max_ms = 300
        grants_max = 7
        workers_max = 1
        worker_wait_time_limit = "2s"

        [grants.App.orders]
        answers = [{ result = [] }]
        effect = "reads_only"

        [grants.App.refund]
        url = "https://shop.example/refund"
        params = ["order_id", "amount"]
        parameters = { type = "object", required = ["amount"], properties = { amount = { type = "number" } } }
        headers = { X-Shop = "north" }

        [[decisions]]
        tool = "App.refund"
        when = { amount = { greater_than = 100 } }
        action = "deny"
        reason = "a person approves it"

        [[decisions]]
        tool = "a_tool_of_the_document"
        action = "run"

        [[tools]]
        name = "look_up"
        description = "Looks something up."
        answers = [{ result = 1 }]
    "#;
    let dir = folder(agent, Some(TOOLS));
    let report = check(dir.path(), &|_| None);
    assert!(report.problems.is_empty() && report.warnings.is_empty(), "{report:#?}");
    let folder = Folder::load(dir.path(), &|_| None).unwrap();
    let document = folder.settings.document.as_ref().unwrap();
    assert_eq!((document.limits.call_time_max_ms, folder.settings.plan.limits.grants_max), (300, 7));
    let pool = document.pool();
    assert_eq!((pool.demand, pool.workers_max, pool.warm, pool.wait_max_ms), (Demand::Required, 1, 1, 2_000));
    let terms = folder.document_terms().unwrap();
    assert_eq!((terms.added_tools, terms.names_taken), (AddedTools::On, vec!["look_up".to_owned()]));
    assert_eq!(terms.grants[1].name, GrantName { library: "App".to_owned(), name: "refund".to_owned() });
    assert_eq!(terms.grants[1].params, ["order_id", "amount"]);
    let grants = &folder.settings.plan.grants;
    assert_eq!((grants[0].effect, grants[0].time_limit_ms), (ToolEffect::ReadsOnly, 10_000));
    assert!(matches!(folder.settings.grants["App.refund"], Body::Http(_)));
    let arguments = serde_json::json!({"order_id": "o_1", "amount": 250});
    assert_eq!(folder.decisions.decide("App.refund", arguments.as_object().unwrap()).rule, Some(0));
    let again = Folder::from_snapshot(folder.snapshot(), &|_| None).unwrap();
    assert_eq!(again.settings, folder.settings);
}

#[test]
fn what_is_wrong_is_told_with_its_key() {
    for (agent, tools, expected) in [
        (
            "[grants.App.refund]\nanswers = [{ result = 1 }]\neffect = \"staged\"",
            Some(TOOLS),
            "agent.toml:3:1: grants.App.refund.effect: grant `App.refund`: a grant with the effect `staged`",
        ),
        (
            "[grants.App.refund]\nparams = []",
            Some(TOOLS),
            "grants.App.refund: must have exactly one of `url` and `answers`",
        ),
        (
            "[grants.App.refund]\nanswers = [{ result = 1 }]\nheaders = { A = \"b\" }",
            Some(TOOLS),
            "grants.App.refund.headers: headers need a `url`",
        ),
        (
            "[grants.App.refund]\nanswers = [{}]",
            Some(TOOLS),
            "grants.App.refund.answers[0]: must have exactly one of `result` and `error`",
        ),
        (
            "[grants.App.refund]\nurl = \"https://x.example\"\nheaders = { Authorization = \"secret\" }",
            Some(TOOLS),
            "grants.App.refund.headers.Authorization: ",
        ),
        (
            "[grants.App.refund]\nanswers = [{ result = 1 }]\nparameters = { type = 7 }",
            Some(TOOLS),
            "grants.App.refund.parameters: grant `App.refund`: its parameters are not a usable JSON schema",
        ),
        (
            "[grants.App.refund]\nanswers = [{ result = 1 }]\nparams = [\"a\", \"a\"]",
            Some(TOOLS),
            "grants.App.refund.params: grant `App.refund` is there twice, or two of its parameters share a name",
        ),
        ("[grants.App.\"re fund\"]\nanswers = [{ result = 1 }]", Some(TOOLS), "letters, digits and `_`"),
        (
            "[grants.App.refund]\nanswers = [{ result = 1 }]",
            None,
            "grants are lent to a document, and the folder has none",
        ),
        ("[document]\nadded_tools = \"on\"", None, "tools.stof: `tools.stof` is not there; write the document there"),
        ("[document]\nfile = \"gone.stof\"", None, "agent.toml:2:1: document.file: `gone.stof`"),
        (
            "[grants.App.refund]\nanswers = [{ result = 1 }]\n[[decisions]]\ntool = \"App.refnd\"\naction = \"defer\"",
            Some(TOOLS),
            "decisions[0].tool: there is no grant `App.refnd`; did you mean `App.refund`?",
        ),
        ("added_tools = \"on\"", Some(TOOLS), "`added_tools` belongs into `[document]`"),
    ] {
        let errors = load(agent, tools).expect_err(agent);
        assert!(errors.contains(expected), "{agent}\n{errors}");
    }
}
