//! The door of a server that has keys.

use super::world::before_folders;
use std::path::Path;

#[tokio::test(flavor = "multi_thread")]
async fn who_has_a_key_comes_in_for_what_it_is_good_for() {
    let desk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/desk");
    let first: &[&[&str]] = &[&["keys", "new", "eyes", "--scope", "read"]];
    before_folders(&[desk], first, async |world| {
        let said = world.said();
        let key = said.split_whitespace().find(|word| word.starts_with("gesta_")).expect("the key is shown once");
        let browser = world.browser().await;
        browser.open("/console/runs").await;
        browser.write("#key", "gesta_0123456789abcdef_wrong\n").await;
        browser.read("The key is not known, or was taken back.").await;
        browser.write("#key", &format!("{key}\n")).await;
        browser.read("No run yet").await;
        browser.open("/console/agents/desk/try").await;
        browser.read("This needs a key with the scope run or admin.").await;
        browser.open("/console").await;
        browser.click(".leave button").await;
        browser.see("#key").await;
        browser.open("/console/agents").await;
        browser.see("#key").await;
    })
    .await;
}
