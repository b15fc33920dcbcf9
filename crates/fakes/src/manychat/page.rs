//! The phone as a page: made here, without scripts, and with nothing fetched from elsewhere (`spec/channel.md`, 24).

use std::sync::Arc;

use http::Response;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::{Map, Value};

use super::faults::{Fault, Switch};
use super::serve::Page;
use super::state::{Seen, SeenBy};
use crate::body::Steps;
use crate::server::plain;

const STYLE: &str = "body{font:16px/1.4 system-ui,sans-serif;margin:0 auto;max-width:42rem;padding:1rem;background:#f4f4f2;\
color:#1b1b1b}iframe{width:100%;height:26rem;border:1px solid #999;border-radius:.5rem;background:#fff}\
form{display:flex;flex-wrap:wrap;gap:.5rem;margin:.75rem 0}input[name=text]{flex:1}input,select,button{font:inherit;\
padding:.4rem}.line{margin:.4rem 0;padding:.4rem .7rem;border-radius:.7rem;width:fit-content;max-width:85%;\
white-space:pre-wrap;overflow-wrap:anywhere;background:#e8e8e4}.contact{margin-left:auto;background:#cfe8cf}\
.silent,.lost{background:none;color:#555;font-size:.85rem}.lost{color:#a00}small{display:block;color:#555}";

/// The faults that the page offers, by the word in its form.
const OFFERED: [(&str, &str, Fault); 10] = [
    ("delay", "answers after 3 s", Fault::DelayMs(3000)),
    ("hang", "never answers", Fault::Hang),
    ("details", "400 with details", Fault::Details),
    ("code", "400 with code 3011", Fault::Code(3011)),
    ("unauthorized", "401", Fault::Status(401)),
    ("limited", "429", Fault::RetryAfter(5)),
    ("broken", "502", Fault::Status(502)),
    ("error", "200 with an error", Fault::ErrorIn2xx),
    ("html", "200 without JSON", Fault::NotJson),
    ("lost", "accepted, not delivered", Fault::NotDelivered),
];

const ENDPOINTS: [&str; 5] = [
    "/fb/sending/sendFlow",
    "/fb/subscriber/setCustomFieldByName",
    "/fb/subscriber/addTagByName",
    "/fb/subscriber/removeTagByName",
    "/fb/subscriber/getInfo",
];

pub(crate) fn answer(
    page: &Arc<Page>,
    method: &str,
    path: &str,
    query: &Map<String, Value>,
    form: &Map<String, Value>,
) -> Response<Steps> {
    let text =
        |map: &Map<String, Value>, key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let contact = text(if method == "POST" { form } else { query }, "contact");
    match (method, path) {
        ("GET", "/" | "/phone") => {
            let first = page.state().contacts.keys().next().cloned().unwrap_or_default();
            shown(200, &phone(page, if contact.is_empty() { &first } else { &contact }))
        }
        ("GET", "/phone/timeline") => shown(200, &timeline(&page.timeline(&contact))),
        ("POST", "/phone/say") => {
            let (page, from, said) = (Arc::clone(page), contact.clone(), text(form, "text"));
            // The phone does not wait: what comes of it stands on the timeline.
            tokio::spawn(async move { drop(page.inbound(&from, &said).await) });
            back(&contact)
        }
        ("POST", "/phone/fault") => {
            if let Some((.., fault)) = OFFERED.iter().find(|(word, ..)| *word == text(form, "fault")) {
                let nth = text(form, "nth").parse().ok();
                let switch = Switch { nth, ..Switch::each(&text(form, "endpoint"), *fault) };
                page.state().switches.push(switch);
            }
            back(&contact)
        }
        ("POST", "/phone/clear") => {
            page.state().switches.clear();
            back(&contact)
        }
        _ => plain(404, "text/plain", "there is no such page; /phone is one"),
    }
}

fn shown(status: u16, markup: &Markup) -> Response<Steps> {
    let mut response = plain(status, "text/html; charset=utf-8", markup.0.clone());
    let policy = "default-src 'none'; style-src 'unsafe-inline'; frame-src 'self'; form-action 'self'";
    response.headers_mut().insert("content-security-policy", http::HeaderValue::from_static(policy));
    response
}

fn back(contact: &str) -> Response<Steps> {
    let mut response = plain(303, "text/plain", "");
    let query: String = url::form_urlencoded::byte_serialize(contact.as_bytes()).collect();
    if let Ok(to) = format!("/phone?contact={query}").parse() {
        response.headers_mut().insert(http::header::LOCATION, to);
    }
    response
}

fn head(title: &str, refresh: bool) -> Markup {
    html! {
        (DOCTYPE)
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            @if refresh { meta http-equiv="refresh" content="1"; }
            title { (title) }
            style { (PreEscaped(STYLE)) }
        }
    }
}

fn phone(page: &Page, contact: &str) -> Markup {
    let state = page.state();
    let query: String = url::form_urlencoded::byte_serialize(contact.as_bytes()).collect();
    html! {
        html lang="en" {
            (head("Fake phone", false))
            body {
                h1 { "Phone of " (contact) }
                form method="get" action="/phone" {
                    label for="contact" { "Contact" }
                    select #contact name="contact" {
                        @for id in state.contacts.keys() { option value=(id) selected[id == contact] { (id) } }
                    }
                    button { "Show" }
                }
                iframe title="Timeline" src=(format!("/phone/timeline?contact={query}")) {}
                form method="post" action="/phone/say" {
                    input type="hidden" name="contact" value=(contact);
                    input name="text" aria-label="Message" autocomplete="off" autofocus;
                    button { "Send" }
                }
                h2 { "Faults" }
                form method="post" action="/phone/fault" {
                    input type="hidden" name="contact" value=(contact);
                    select name="endpoint" aria-label="Endpoint" {
                        option value="" { "every endpoint" }
                        @for endpoint in ENDPOINTS { option { (endpoint) } }
                    }
                    select name="fault" aria-label="Fault" {
                        @for (word, told, _) in OFFERED { option value=(word) { (told) } }
                    }
                    input name="nth" type="number" min="1" aria-label="Which call; blank for each" placeholder="each call";
                    button { "Switch on" }
                }
                ul {
                    @for switch in &state.switches {
                        li { (format!("{:?}", switch.fault)) " at " (switch.endpoint) " " (format!("{:?}", switch.nth)) }
                    }
                }
                form method="post" action="/phone/clear" {
                    input type="hidden" name="contact" value=(contact);
                    button { "Switch all off" }
                }
            }
        }
    }
}

fn timeline(lines: &[Seen]) -> Markup {
    html! {
        html lang="en" {
            (head("Timeline", true))
            body { @for line in lines { (told(line)) } }
        }
    }
}

fn told(line: &Seen) -> Markup {
    let (class, from) = match &line.by {
        SeenBy::Contact => ("contact", String::new()),
        SeenBy::Inline => ("inline", "in the response".to_owned()),
        SeenBy::Flow(flow) => ("flow", format!("by flow {flow}")),
        SeenBy::Field(flow, field) => ("flow", format!("by flow {flow}, from field {field}")),
        SeenBy::Lost(flow) => ("lost", format!("flow {flow}")),
        SeenBy::Silent => ("silent", String::new()),
    };
    html! { div class=(format!("line {class}")) { (line.text) @if !from.is_empty() { small { (from) } } } }
}
