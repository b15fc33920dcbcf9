//! All of it without a mouse.

use serde_json::json;
use thirtyfour::prelude::*;

use super::world::{Browser, before, call};

/// Presses Tab until the focus is on one of these. What has it is seen to have it.
async fn tab_to(browser: &Browser, css: &str) {
    for _ in 0..60 {
        browser.press(Key::Tab).await;
        let script = format!(
            "const it = document.activeElement; const seen = getComputedStyle(it).outlineStyle !== 'none'; \
             return it.matches({css}) ? (seen ? 'seen' : 'unseen') : ''",
            css = json!(css)
        );
        match browser.tell(&script).await.as_str() {
            Some("seen") => return,
            Some("unseen") => panic!("{css} has the focus and does not show it"),
            _ => {}
        }
    }
    panic!("no Tab leads to {css}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_edited_and_approved_by_keys_alone() {
    before(&["desk"], async |world| {
        let run = world.parked();
        let browser = world.browser().await;
        browser.open("/console").await;
        browser.see(".hold").await;
        tab_to(&browser, "a.skip").await;
        browser.press(Key::Enter).await;
        tab_to(&browser, ".hold details.choice > summary").await;
        browser.press(Key::Enter).await;
        tab_to(&browser, "[name='arg.amount']").await;
        browser.press(Key::Control + "a").await;
        browser.press("120").await;
        browser.see(".check .fine").await;
        tab_to(&browser, ".choice[open] .primary").await;
        browser.press(Key::Enter).await;
        browser.read("approved, edited").await;
        assert_eq!(call(&world.ended(&run), "refund_order")["arguments"]["amount"], 120);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_denied_by_keys_alone_and_without_scripts() {
    before(&["desk"], async |world| {
        let run = world.parked();
        let browser = world.browser().await;
        browser.without_scripts().await;
        browser.open("/console").await;
        let reason = browser.see(".hold").await;
        reason
            .find(By::Css("details.choice:nth-of-type(2) > summary"))
            .await
            .unwrap()
            .send_keys(Key::Enter + "")
            .await
            .unwrap();
        browser.see("[name=reason]").await.send_keys("No receipt." + Key::Tab).await.unwrap();
        browser.press(Key::Enter).await;
        browser.see("[data-settled]").await;
        let text = browser.see("main").await.text().await.unwrap();
        assert!(text.contains("denied") && text.contains("No receipt."), "{text}");
        assert_eq!(call(&world.ended(&run), "refund_order")["status"], "denied");
    })
    .await;
}
