//! Decisions: approve, edit, deny, hand in; and two people at once.

use serde_json::json;

use super::world::{before, before_folders, call};

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_shown_whole_and_approved() {
    before(&["desk"], async |world| {
        let long = "please ".repeat(600);
        let said = format!("Refund order 7, 250 dollars. {long}<b>The end.</b>");
        let run = world.run("desk", &json!({ "input": said, "conversation": "anna", "contact": "Anna <Berg>" }));
        let browser = world.browser().await;
        browser.open("/console").await;
        browser.see(".hold").await;
        let text = browser.text().await;
        for words in [
            "refund_order",
            "250",
            "refunds of more than 100 dollars are approved by a person",
            "amount is more than 100",
            "Anna <Berg>",
            "<b>The end.</b>",
            "expires in 7 d",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(text.contains(long.trim()), "what the contact said is cut");
        browser.click(".hold .primary").await;
        browser.read("Answered").await;
        browser.see("[data-settled]").await;
        let focused = browser.tell("return document.activeElement.matches('[data-settled]')").await;
        assert_eq!(focused, json!(true), "the focus stays where the answer was given");
        let result = world.ended(&run);
        assert_eq!(call(&result, "refund_order")["status"], "completed", "{result}");
        assert_eq!(call(&result, "refund_order")["arguments"], json!({ "order": "7", "amount": 250 }));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn edited_arguments_are_checked_while_they_are_typed() {
    before(&["desk"], async |world| {
        let run = world.parked();
        let browser = world.browser().await;
        browser.open("/console").await;
        browser.click(".hold details.choice:nth-of-type(1) > summary").await;
        let amount = ".hold [name='arg.amount']";
        browser.write(amount, "-5").await;
        browser.see(".check .wrong").await;
        assert_eq!(browser.see(amount).await.attr("aria-invalid").await.unwrap().as_deref(), Some("true"));
        browser.write(amount, "many").await;
        browser.read("amount: `many` is no number").await;
        // It is checked again when it is sent, and nothing has run.
        browser.click(".choice[open] .primary").await;
        browser.see(".acts > .problem").await;
        browser.write(amount, "200").await;
        browser.see(".check .fine").await;
        browser.click(".choice[open] .primary").await;
        browser.read("approved, edited").await;
        let result = world.ended(&run);
        let refund = call(&result, "refund_order");
        assert_eq!(refund["arguments"], json!({ "order": "7", "amount": 200 }), "{refund}");
        assert_eq!(refund["arguments_by"], "approver");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denial_has_a_reason_that_the_model_reads() {
    before(&["desk"], async |world| {
        let run = world.parked();
        let browser = world.browser().await;
        browser.open("/console").await;
        browser.click(".hold details.choice:nth-of-type(2) > summary").await;
        browser.write(".hold [name=reason]", "The armchair was used.").await;
        browser.click(".choice[open] .danger").await;
        browser.read("Answered").await;
        browser.read("The armchair was used.").await;
        let result = world.ended(&run);
        let refund = call(&result, "refund_order");
        assert_eq!(
            (&refund["status"], refund["result"].as_str().unwrap().contains("armchair")),
            (&json!("denied"), true)
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_handed_in_for_a_tool_that_the_caller_runs() {
    let dir = tempfile::tempdir().unwrap();
    let toml = "name = \"store\"\nmodel = \"script\"\n[[tools]]\nname = \"count\"\nexternal = true\n";
    std::fs::write(dir.path().join("agent.toml"), toml).unwrap();
    std::fs::write(dir.path().join("prompt.md"), "You count.").unwrap();
    let script = "user matches /count/i:\nmodel: calls c1 count {}\nmodel: It is counted.\n";
    std::fs::write(dir.path().join("model.script"), script).unwrap();
    before_folders(&[dir.path().to_owned()], &[], async |world| {
        let run = world.run("store", &json!({ "input": "Count the chairs" }));
        let browser = world.browser().await;
        browser.open("/console").await;
        browser.see(".hold").await;
        assert!(!browser.text().await.contains("Approve"), "nobody may approve what the caller runs");
        browser.click(".hold details.choice:nth-of-type(2) > summary").await;
        browser.write(".hold [name=result]", "{\"chairs\": 12}").await;
        browser.click(".choice[open] .primary").await;
        browser.read("result handed in").await;
        assert_eq!(call(&world.ended(&run), "count")["result"], json!({ "chairs": 12 }));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_people_one_wins_and_the_other_is_told_so() {
    before(&["desk"], async |world| {
        let (one, other) = (world.browser().await, world.browser().await);
        // Without scripts the page of the slower one is as old as it looks: she sends what has been answered.
        other.without_scripts().await;
        let run = world.parked();
        one.open("/console").await;
        other.open("/console").await;
        one.click(".hold .primary").await;
        one.read("Answered").await;
        other.click(".hold .primary").await;
        other.see("[data-settled]").await;
        let text = other.see("main").await.text().await.unwrap();
        assert!(text.contains("Somebody else was first") && text.contains("approved"), "{text}");
        let result = world.ended(&run);
        let refunds = result["tool_calls"].as_array().unwrap().iter().filter(|it| it["name"] == "refund_order");
        assert_eq!(refunds.count(), 1, "{result}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clicks_at_the_same_moment_have_one_winner() {
    before(&["desk"], async |world| {
        let (one, other) = (world.browser().await, world.browser().await);
        one.without_scripts().await;
        other.without_scripts().await;
        let run = world.parked();
        one.open("/console").await;
        other.open("/console").await;
        let (first, second) = (one.see(".hold .primary").await, other.see(".hold .primary").await);
        let (a, b) = tokio::join!(first.click(), second.click());
        a.unwrap();
        b.unwrap();
        let mut lost = 0;
        for browser in [&one, &other] {
            browser.see("[data-settled]").await;
            let text = browser.see("main").await.text().await.unwrap();
            lost += usize::from(text.contains("Somebody else was first"));
        }
        assert_eq!(lost, 1, "one has won and one is told so");
        world.ended(&run);
    })
    .await;
}
