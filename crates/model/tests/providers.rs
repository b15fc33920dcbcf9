//! From a name to a model: built-in providers, those of a configuration, and what is missing.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt;
use gesta_model::{
    Model, Piece, Protocol, Provider, ProviderSpec, Providers, Request, ScriptedModel, Transport, TransportSpec,
};
use gesta_run::json::Object;
use gesta_run::message::{Block, Message, Part};
use gesta_run::reply::{FaultKind, ReplyBuilder};
use gesta_run::tool::ToolList;
use gesta_scene::Script;

fn providers(variables: &[(&str, &str)]) -> Providers {
    let variables: BTreeMap<String, String> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Providers::new(Arc::new(move |name| variables.get(name).cloned()), Transport::new(TransportSpec::default()))
}

fn spec(json: &str) -> ProviderSpec {
    serde_json::from_str(json).unwrap()
}

#[test]
fn a_name_leads_to_a_provider_and_an_error_names_the_way_out() {
    let mut some = providers(&[("OPENAI_API_KEY", "k"), ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9/v1/")]);
    some.specs.insert("work".into(), spec(r#"{"protocol":"openai","base_url":"http://localhost:11434/v1"}"#));
    some.specs.insert("azure".into(), spec(r#"{"protocol":"openai","api_key_env":"AZURE_KEY"}"#));
    let cases = [
        ("openai:gpt-4o", Ok(("openai", "gpt-4o"))),
        ("anthropic:claude-x", Ok(("anthropic", "claude-x"))),
        ("work:llama3:8b", Ok(("work", "llama3:8b"))),
        ("azure:x", Err("provider `azure` needs a key; set AZURE_KEY")),
        ("gpt-4o", Err("model `gpt-4o` names no provider; write `provider:model`, for instance `openai:gpt-4o`")),
        ("groq:x", Err("there is no provider `groq`; known are anthropic, azure, openai, script, work")),
        ("script", Err("the model is `script`, but there is no script; write one as `model.script`")),
    ];
    for (name, expected) in cases {
        let found = some.resolve(name);
        match expected {
            Ok((provider, model)) => {
                let found = found.unwrap();
                assert_eq!((found.provider.as_str(), found.name.as_str()), (provider, model));
            }
            Err(message) => assert_eq!(found.unwrap_err().to_string(), message),
        }
    }
    let error = providers(&[]).resolve("openai:gpt-4o").unwrap_err();
    assert_eq!(error.to_string(), "provider `openai` needs a key; set OPENAI_API_KEY");
    assert_eq!(some.provider("anthropic").unwrap().url, "http://127.0.0.1:9/v1/messages");
    assert_eq!(some.provider("openai").unwrap().url, "https://api.openai.com/v1/chat/completions");
}

#[test]
fn a_path_and_a_query_of_one_s_own_make_an_azure_address() {
    let azure = spec(
        r#"{"protocol":"openai","base_url":"https://x.openai.azure.com","api_key_env":"K","auth":"api_key",
            "path":"openai/deployments/{model}/chat/completions","query":{"api-version":"2024-10-21"}}"#,
    );
    let provider = Provider::new("azure", &azure, &|_| Some("key-1".into())).unwrap();
    let url = "https://x.openai.azure.com/openai/deployments/{model}/chat/completions?api-version=2024-10-21";
    assert_eq!(provider.url, url);
    assert!(!format!("{provider:?}").contains("key-1"));
}

#[test]
fn addresses_and_headers_that_cannot_be_used_are_refused() {
    let lookup = |_: &str| Some("two\nlines".to_owned());
    for base in ["ftp://x", "not an address", "http://me:pw@host", ""] {
        let mut spec = ProviderSpec::new(Protocol::OpenAi);
        spec.base_url = Some(base.into());
        let error = Provider::new("x", &spec, &lookup).unwrap_err().to_string();
        assert!(error.starts_with("provider `x`: its address cannot be used") && !error.contains("pw"), "{error}");
    }
    let mut spec = ProviderSpec::new(Protocol::OpenAi);
    spec.api_key_env = Some("K".into());
    let error = Provider::new("x", &spec, &lookup).unwrap_err().to_string();
    assert!(error.contains("`authorization` cannot be sent") && !error.contains("two"), "{error}");
    assert!(serde_json::from_str::<ProviderSpec>(r#"{"protocol":"openai","base_ulr":"x"}"#).is_err());
}

#[tokio::test]
async fn a_scripted_model_follows_from_the_request_alone() {
    let source = "user matches \"move\":\nmodel: Shall I move it for you, to Friday or another day?\n\
        model: calls c1 move {\"day\":\"fri\"}\nand: thinks: done soon\notherwise:\nmodel: fails rate limit\n";
    let model = ScriptedModel::new(Arc::new(Script::parse(source).unwrap()));
    let said = |text: &str| Message::User { parts: vec![Part::text(text)], prompted: false };
    let answer = Message::Assistant { blocks: vec![Block::text("x")] };
    let (tools, options) = (ToolList::default(), Object::new());
    let ask = async |messages: &[Message], stream: bool| {
        let history = [said("else"), answer.clone()];
        let request = Request {
            model: "script",
            system: "",
            history: &history,
            messages,
            tools: &tools,
            output_schema: None,
            options: &options,
            stream,
            failed_before: 0,
        };
        model.ask(&request).collect::<Vec<_>>().await
    };
    for given in 0..3 {
        let mut messages = vec![said("please move it")];
        messages.extend(std::iter::repeat_n(answer.clone(), given));
        let mut builder = ReplyBuilder::default();
        let mut pieces = ask(&messages, true).await;
        let Some(Ok(Piece::Finished(reply))) = pieces.pop() else { panic!("no end") };
        assert!(pieces.len() > 2);
        for piece in pieces {
            let Ok(Piece::Delta(delta)) = piece else { panic!("{piece:?}") };
            builder.push(delta);
        }
        assert_eq!(builder.finish().blocks, reply.blocks);
        assert_eq!(reply.calls().count(), usize::from(given > 0));
        assert_eq!(ask(&messages, false).await, [Ok(Piece::Finished(reply))]);
    }
    let pieces = ask(&[said("hm")], true).await;
    assert!(matches!(&pieces[..], [Err(fault)] if fault.kind == FaultKind::RateLimit));
}
