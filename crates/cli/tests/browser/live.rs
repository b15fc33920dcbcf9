//! What is new comes by itself, and takes nothing away from who is at work.

use serde_json::json;

use super::world::before;

#[tokio::test(flavor = "multi_thread")]
async fn a_new_call_comes_into_an_open_inbox() {
    before(&["desk"], async |world| {
        let browser = world.browser().await;
        browser.open("/console").await;
        browser.read("Nothing waits for you").await;
        browser.read("Live").await;
        browser.tell("document.querySelector('nav a').focus()").await;
        world.parked();
        browser.see(".hold").await;
        browser.wait_for("return document.getElementById('none').hidden").await;
        browser.wait_for("return document.getElementById('waiting').innerText.startsWith('1')").await;
        browser.wait_for("return document.getElementById('said').textContent === 'A new call waits.'").await;
        let focused = browser.tell("return document.activeElement === document.querySelector('nav a')").await;
        assert_eq!(focused, json!(true), "the focus has not moved");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_being_written_stays_when_another_call_comes() {
    before(&["desk"], async |world| {
        let first = world.parked();
        let browser = world.browser().await;
        browser.open("/console").await;
        browser.read("Live").await;
        browser.click(".hold details.choice:nth-of-type(2) > summary").await;
        browser.write(".hold [name=reason]", "Not without").await;
        world.parked();
        browser.wait_for("return document.querySelectorAll('.hold').length === 2").await;
        browser.press(" a receipt").await;
        let reason = browser.tell("return document.querySelector('.hold [name=reason]').value").await;
        assert_eq!(reason, json!("Not without a receipt"));
        let order = browser.tell("return document.querySelector('.hold a[href*=runs]').getAttribute('href')").await;
        assert!(order.as_str().unwrap().contains(&first), "the oldest stays first");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_looks_at_a_call_that_somebody_else_answers_is_told() {
    before(&["desk"], async |world| {
        let run = world.parked();
        let (one, other) = (world.browser().await, world.browser().await);
        other.open("/console").await;
        other.read("Live").await;
        other.click(".hold details.choice:nth-of-type(2) > summary").await;
        other.write(".hold [name=reason]", "I was about to").await;
        one.open("/console").await;
        one.click(".hold .primary").await;
        other.see("[data-settled]").await;
        other.read("approved").await;
        other.wait_for("return document.activeElement.matches('[data-settled]')").await;
        world.ended(&run);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_before_its_readers_eyes() {
    before(&["desk"], async |world| {
        let run = world.parked();
        let browser = world.browser().await;
        browser.open(&format!("/console/runs/{run}")).await;
        browser.read("Live").await;
        browser.click(".hold .primary").await;
        browser.read("A colleague has decided on the refund").await;
        browser.wait_for("return document.getElementById('state').innerText.startsWith('completed')").await;
    })
    .await;
}
