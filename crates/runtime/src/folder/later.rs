//! Keys that are known and refused: not in this version, or only for agents written in Rust. Never ignored.

/// What is said of a refused key, and why it is refused. The path has no list indexes: `tools.kind`.
pub(crate) fn refused(path: &str) -> Option<String> {
    let (_, why) = REFUSED.iter().find(|(key, _)| *key == path)?;
    Some(match why {
        Why::Later(what) => format!("is not in this version ({what})"),
        Why::Rust(what) => format!("is for agents written in Rust ({what})"),
        Why::Instead(what) => (*what).to_owned(),
    })
}

enum Why {
    Later(&'static str),
    Rust(&'static str),
    Instead(&'static str),
}

const REFUSED: &[(&str, Why)] = &[
    // Left out on purpose (`spec/contract.md`, 11).
    ("on_turn", Why::Later("further exchanges within a run")),
    ("exchanges_max", Why::Later("further exchanges within a run")),
    ("limits.exchanges_max", Why::Later("further exchanges within a run")),
    ("middleware", Why::Later("middleware around the model")),
    ("cache", Why::Later("caches of answers")),
    ("force_tool_choice", Why::Later("forcing a call through the provider's tool choice")),
    ("model_options.force_tool_choice", Why::Later("forcing a call through the provider's tool choice")),
    ("act_when_asked.force_tool_choice", Why::Later("forcing a call through the provider's tool choice")),
    ("repair", Why::Later("another trip to mend invalid structured output")),
    ("output.repair", Why::Later("another trip to mend invalid structured output")),
    ("kill_switch", Why::Later("a kill switch for a tenant")),
    ("tools.kind", Why::Later("tools of another kind, such as `agent`; a tool has `url`, `answers` or `external`")),
    ("tools.agent", Why::Later("an agent used as a tool")),
    // What later capabilities bring.
    ("channel", Why::Later("the customer channel")),
    ("channels", Why::Later("the customer channel")),
    ("guardrails", Why::Later("guardrails on replies")),
    ("catalog", Why::Later("the customer channel")),
    ("live", Why::Later("live sessions")),
    ("eval", Why::Later("evaluation")),
    ("evals", Why::Later("evaluation")),
    ("server", Why::Later("the HTTP server")),
    ("tenants", Why::Later("the HTTP server")),
    ("mcp", Why::Later("MCP servers")),
    ("mcp_servers", Why::Later("MCP servers")),
    ("tools.mcp", Why::Later("MCP servers")),
    // Functions.
    ("on_tool_refusal.is_refusal", Why::Rust("a function; here use `preset = \"patterns\"` or the tool's `refusal`")),
    ("backstops.detect", Why::Rust("a function; here use `when_input` and `when_reply`")),
    ("backstops.run", Why::Rust("a function; here use `url` and `prompt`")),
    ("on_tool_call", Why::Rust("a function; here use `[[decisions]]`")),
    // Words of other systems, and secrets in the wrong place.
    ("system_prompt", Why::Instead("is not a key; write the persona into `prompt.md`")),
    ("instructions", Why::Instead("is not a key; write the persona into `prompt.md`")),
    ("api_key", Why::Instead("is not a key; set `OPENAI_API_KEY` or the like in the environment or in `.env`")),
    ("temperature", Why::Instead("belongs into `[model_options]`")),
    ("max_tokens", Why::Instead("belongs into `[model_options]`")),
    ("trips_max", Why::Instead("belongs into `[limits]`")),
    ("tokens_max", Why::Instead("belongs into `[limits]`, or into `[history]`")),
    ("cost_usd_max", Why::Instead("belongs into `[limits]`")),
    ("seconds_max", Why::Instead("belongs into `[limits]`")),
    ("turns_max", Why::Instead("belongs into `[history]`")),
    ("max_turns", Why::Instead("is not a key; a run's model calls are `trips_max` in `[limits]`")),
    ("output_schema", Why::Instead("is not a key; write `[output]` with `schema` or `schema_file`")),
    ("documents", Why::Instead("is not a key; an agent has one document, described in `[document]`")),
    ("added_tools", Why::Instead("belongs into `[document]`")),
    ("sandbox", Why::Instead("belongs into `[document]`")),
    ("call_time_max_ms", Why::Instead("belongs into `[document]`")),
    ("limits.grants_max", Why::Instead("belongs into `[document]`")),
    ("url", Why::Instead("belongs into `[[tools]]` or `[[backstops]]`")),
];
