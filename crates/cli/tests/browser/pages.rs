//! Every page: it can be used by everybody, at every width, light and dark, and does nothing that it was told by others.

use serde_json::{Value, json};

use super::world::{Browser, World, before};

/// A server with something on every page. Gives the pages.
fn full(world: &World) -> Vec<String> {
    let parked = world.parked();
    for (agent, said, conversation) in [
        ("desk", "Refund order 8, 40 dollars", "ben"),
        ("desk", "Refund order 1, 45 dollars", "ben"),
        ("coach", "My knee hurts. Swap squats for lunges", "dan"),
        ("shop", "How much did I spend in all?", "eve"),
        ("desk", "Refund order 7, 250 dollars", "anna"),
    ] {
        world.run(agent, &json!({ "input": said, "conversation": conversation, "contact": conversation }));
    }
    let fixed = [
        "/console",
        "/console/runs",
        "/console/runs?state=blocked",
        "/console/conversations",
        "/console/conversations/ben",
        "/console/conversations/dan",
        "/console/conversations/anna",
        "/console/conversations/eve/tools",
        "/console/agents",
        "/console/agents/desk",
        "/console/agents/coach",
        "/console/agents/shop",
        "/console/agents/desk/try",
        "/console/runs/none",
    ];
    fixed.into_iter().map(str::to_owned).chain([format!("/console/runs/{parked}")]).collect()
}

/// What axe finds that keeps somebody from using a page.
async fn findings(browser: &Browser, axe: &str) -> Vec<String> {
    browser.driver.execute(axe, Vec::new()).await.unwrap();
    let script = "const done = arguments[arguments.length - 1]; axe.run().then((it) => done(it.violations))";
    let found = browser.driver.execute_async(script, Vec::new()).await.unwrap();
    let found: Vec<Value> = found.json().as_array().cloned().unwrap();
    let grave = found.iter().filter(|it| it["impact"] == "serious" || it["impact"] == "critical");
    grave.map(|it| format!("{}: {}", it["id"], it["nodes"][0]["html"])).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_keeps_anybody_out_in_light_and_dark_narrow_and_wide() {
    before(&["desk", "coach", "shop"], async |world| {
        let pages = full(&world);
        let axe = xtask::outside("GESTA_AXE", "browser").map(|path| std::fs::read_to_string(path).unwrap());
        let browser = world.browser().await;
        for width in [360, 1280] {
            let size = json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false });
            browser.order("Emulation.setDeviceMetricsOverride", size).await;
            for scheme in ["light", "dark"] {
                let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
                browser.order("Emulation.setEmulatedMedia", features).await;
                for page in &pages {
                    browser.open(page).await;
                    browser.see("h1").await;
                    // What can be opened is looked at too.
                    browser.tell("for (const it of document.querySelectorAll('details')) { it.removeAttribute('name'); it.open = true }").await;
                    let wide = browser.tell("return document.documentElement.scrollWidth").await;
                    assert!(wide.as_i64().unwrap() <= width, "{page} is {wide} wide at {width}");
                    if let Some(axe) = &axe {
                        let found = findings(&browser, axe).await;
                        assert!(found.is_empty(), "{page}, {width}, {scheme}: {found:#?}");
                    }
                }
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_wrote_stays_text() {
    before(&["desk"], async |world| {
        let evil = "<img src=x onerror=\"window.had=1\"><script>window.had=1</script>";
        let said = format!("Refund order 7, 250 dollars {evil} \u{202e}desrever");
        world.run("desk", &json!({ "input": said, "conversation": evil, "contact": evil }));
        let browser = world.browser().await;
        browser.open("/console/conversations").await;
        browser.see(".row").await;
        let path = browser.tell("return document.querySelector('.row').getAttribute('href')").await;
        for page in ["/console", "/console/runs", "/console/conversations", path.as_str().unwrap()] {
            browser.open(page).await;
            browser.read(evil).await;
            let touched = browser.tell("return [window.had ?? 0, document.querySelectorAll('main img').length]").await;
            assert_eq!(touched, json!([0, 0]), "{page}");
        }
        browser.open("/console").await;
        browser.read("U+202E").await;
        // A script that stands in a page is not run even if one got there.
        let script = "const it = document.createElement('script'); it.textContent = 'window.had = 2'; \
                      document.body.append(it); return window.had ?? 0";
        assert_eq!(browser.tell(script).await, json!(0));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_copied_as_a_scene_and_found_by_its_outcome() {
    before(&["desk"], async |world| {
        let run = world.run("desk", &json!({ "input": "Refund order 8, 40 dollars" }));
        world.parked();
        let browser = world.browser().await;
        browser.open("/console/runs?state=completed").await;
        browser.wait_for("return document.querySelectorAll('.list tbody tr').length === 1").await;
        browser.click(".list tbody a").await;
        browser.see("[data-copy]").await;
        let permission = json!({ "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"] });
        browser.order("Browser.grantPermissions", permission).await;
        browser.click("[data-copy]").await;
        browser.read("Copied").await;
        let (_, scene) = world.ask("GET", &format!("/console/runs/{run}/scene"), "", "");
        assert!(scene.contains("user: Refund order 8, 40 dollars") && scene.contains("ends: completed"), "{scene}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_from_elsewhere_does_nothing() {
    before(&["desk"], async |world| {
        let run = world.parked();
        let path = format!("/console/holds/{run}/r1");
        let form = "content-type: application/x-www-form-urlencoded\r\n";
        for headers in [
            form.to_owned(),
            format!("{form}origin: http://evil.test\r\n"),
            format!("{form}cookie: gesta_console=1\r\n"),
        ] {
            let (status, page) = world.ask("POST", &path, &headers, "do=approve&token=guessed&binding=%7B%7D");
            assert_eq!(status, 403, "{page}");
        }
        let (_, run) = world.ask("GET", &format!("/v1/runs/{run}"), "", "");
        assert!(run.contains("\"parked\""), "{run}");
    })
    .await;
}
