//! Trying an agent, and the tools that it writes.

use super::world::before;

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_tried_and_goes_on_when_a_person_has_decided() {
    before(&["desk"], async |world| {
        let browser = world.browser().await;
        browser.open("/console/agents/desk").await;
        browser.read("amount is more than 100").await;
        browser.click("a[href$='/try']").await;
        browser.write("#say", "Refund order 8, 40 dollars\n").await;
        browser.read("I have paid back 40 dollars for order 8.").await;
        browser.write("#say", "Refund order 7, 250 dollars\n").await;
        browser.read("The run waits for a person.").await;
        let other = world.browser().await;
        other.open("/console").await;
        other.click(".hold .primary").await;
        browser.read("A colleague has decided on the refund for order 7.").await;
        browser.click("[data-conversation]").await;
        browser.read("2 finished turns").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_the_agent_wrote_is_switched_off_and_on_and_taken_out() {
    before(&["shop"], async |world| {
        world.run("shop", &serde_json::json!({ "input": "How much did I spend in all?", "conversation": "chat/eve" }));
        let browser = world.browser().await;
        browser.open("/console/conversations").await;
        browser.click(".row").await;
        browser.click("a[href$='/tools']").await;
        browser.read("fn total_spent() -> float").await;
        browser.read("by the agent").await;
        browser.click("article form:nth-of-type(1) button").await;
        browser.read("Not offered: switched off by a person").await;
        browser.click("article form:nth-of-type(1) button").await;
        browser.wait_for("return !document.body.innerText.includes('Not offered')").await;
        browser.click("article .choice > summary").await;
        browser.click("article .choice[open] .danger").await;
        browser.read("Nothing was added").await;
    })
    .await;
}
