//! Every line of the form, with an example and its meaning: the page `docs/scenes.md` is printed from it.

/// One line of the form.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// How it is written; capitals stand for what varies.
    pub form: &'static str,
    /// One that can be read.
    pub example: &'static str,
    /// What it says.
    pub meaning: &'static str,
}

/// Lines that belong together.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// Its heading on the page.
    pub title: &'static str,
    /// Its lines.
    pub entries: &'static [Entry],
}

const fn e(form: &'static str, example: &'static str, meaning: &'static str) -> Entry {
    Entry { form, example, meaning }
}

/// What the model answers: lines of scenes and of scripts.
pub const ANSWERS: Group = Group {
    title: "What the model answers",
    entries: &[
        e("model: TEXT", "model: Shall I move it?", "the answer is a text; nothing behind the colon is a blank answer"),
        e("and: PIECE", "and: Wait.", "one more piece of the same answer"),
        e(r"model: \TEXT", r"model: \calls for a vote", "a text that begins like another piece, or with a backslash"),
        e(
            "calls ID NAME ARGUMENTS",
            r#"model: calls c1 move {"day":"fri"}"#,
            r#"a tool call, its arguments as the model writes them, right or wrong; `-` is a call without an id; behind a backslash a JSON string holds arguments that no line can"#,
        ),
        e("says: TEXT", "model: says: Hello", "a text, said at length"),
        e("thinks: TEXT", "model: thinks: They greet me.", "the model's thinking"),
        e("cut off", "model: cut off", "the provider cut the answer for its length"),
        e("cut off: TEXT", "model: cut off: I will mo", "a text that was cut"),
        e(
            "finishes WORD [REASON]",
            "model: finishes content filter SAFETY",
            "why the model stopped, where it is not the usual reason (`stop`, `tool calls`, `length`, `content filter`, `refusal`, `other`), and the provider's own word",
        ),
        e(
            "uses N tokens in, N out",
            "model: uses 120 tokens in, 30 out, 10 cached, 5 reasoning, 3 written",
            "the tokens it cost",
        ),
        e("answered by MODEL", "model: answered by gpt-x", "the model that answered"),
        e(
            "fails KIND[, DETAIL][: MESSAGE]",
            "model: fails rate limit, again after 2000 ms: slow down",
            "no answer. Kinds: `network`, `timeout`, `cut short`, `malformed`, `auth`, `rate limit`, `overloaded`, `context length`, `bad request`, `config`. Details: `status N`, `no status`, `again after N ms`, `for good`, `for now`",
        ),
        e(
            "raw form PROTOCOL JSON",
            "model: Hi\nand: raw form anthropic {\"type\":\"text\"}",
            "the provider's own form of the piece before",
        ),
        e(
            "raw block PROTOCOL JSON",
            r#"model: raw block anthropic {"type":"new"}"#,
            "a piece that only its provider understands",
        ),
        e(
            "served with FAULT, …",
            "model: served with delay 300 ms, split",
            "what a server that plays the answer does wrong: `delay N ms`, `cut`, `split`, `malformed`, `stall`, `status N [retry after N s]`. A scene plays the answer without it",
        ),
    ],
};

/// Lines of scripts alone.
pub const SCRIPT: Group = Group {
    title: "Sections of a script",
    entries: &[
        e(
            "user matches PATTERN, …:",
            "user matches \"move\", /^re/i:",
            "the answers below are for runs whose input matches",
        ),
        e("otherwise:", "otherwise:", "the answers below are for all other runs"),
    ],
};

/// What the world says.
pub const WORLD: Group = Group {
    title: "What the world says",
    entries: &[
        e(
            "user: TEXT",
            "user: Move my visit",
            "a user speaks: a run begins. A run of the same conversation that is parked, or could have gone on, is closed before it",
        ),
        e("and: text: TEXT", "user: a\nand: text: b", "one more part of the message"),
        e(
            "and: image TYPE at URL",
            "user: a\nand: image image/png at https://example.com/a.png",
            "a picture; its bytes stand behind `base64` instead of `at`",
        ),
        e("and: file TYPE [named NAME] at URL", "user: a\nand: file application/pdf named a.pdf base64 AAAA", "a file"),
        e(
            "and: run: ID",
            "user: a\nand: run: r7",
            "the run's id. `conversation:`, `contact:` and `now:` set the rest of what the host adds",
        ),
        e(
            "and: conversation: ID",
            "user: a\nand: conversation: c7",
            "the conversation. Runs of different ones go on side by side; all that say none are of one",
        ),
        e("and: contact: ID", "user: a\nand: contact: p7", "the person at the other end"),
        e("and: now: TEXT", "user: a\nand: now: today", "the notice of the time"),
        e("offer: nothing", "offer: nothing", "the tools are those of the plan"),
        e("offer: TOOL", "offer: count {\"upto\":\"integer\"}\nand: list", "these tools are there besides"),
        e("policy: ID run", "policy: c1 run", "the hook lets a call run; with JSON behind it, with these arguments"),
        e("policy: ID deny REASON", "policy: c1 deny too much", "the hook denies it"),
        e("policy: ID defer [REASON]", "policy: c1 defer over 200", "the hook leaves it to someone outside"),
        e("policy: ID nothing", "policy: c1 nothing", "the hook returns nothing"),
        e(
            "policy: ID answers JSON",
            r#"policy: c1 answers {"action":"perhaps"}"#,
            "the hook's answer as it comes over the wire, right or wrong",
        ),
        e("policy: ID fails [WHY]", "policy: c1 fails no connection", "the hook fails"),
        e("tool: ID ok [JSON]", r#"tool: c1 ok {"moved":"fri"}"#, "a tool returns a result; `null` without one"),
        e("tool: ID error TEXT", "tool: c1 error the box is locked", "its body fails"),
        e("tool: ID times out [TEXT]", "tool: c1 times out", "its time limit passes; with a text that says which"),
        e("tool: ID unknown", "tool: c1 unknown", "it began, and nobody knows what came of it"),
        e(
            "document: ID asks GRANT [JSON]",
            r#"document: c1 asks App.refund {"amount":7}"#,
            "the running call of a document's tool calls a grant, with its arguments by name",
        ),
        e(
            "grant: ID/N ok [JSON]",
            r#"grant: c1/0 ok {"paid":7}"#,
            "a grant answers; `error TEXT`, `times out` and `unknown` as with a tool. `policy: ID/N …` decides on it",
        ),
        e(
            "grant: LIBRARY.NAME ok [JSON]",
            r#"grant: App.orders ok [{"total":40}]"#,
            "from here on this grant answers so by itself, in a scene that carries a document; `error TEXT`, `times out` and `unknown` alike",
        ),
        e("backstop: NAME wanted", "backstop: note wanted", "its `detect` says yes"),
        e("backstop: NAME not wanted", "backstop: note not wanted", "its `detect` says no"),
        e("backstop: NAME cannot tell [WHY]", "backstop: note cannot tell no connection", "its `detect` fails"),
        e("backstop: NAME done", "backstop: note done", "its `run` returns no prompt"),
        e("backstop: NAME prompts TEXT", "backstop: note prompts Look again.", "its `run` returns a prompt"),
        e("backstop: NAME fails [WHY]", "backstop: note fails no connection", "its `run` fails"),
        e(
            "and: state JSON",
            "backstop: note done\nand: state {\"x\":1}",
            "the state that backstops share, as it left it",
        ),
        e(
            "person: ID approve [JSON]",
            r#"person: c1 approve {"amount":100}"#,
            "someone approves a held call, as it is or with these arguments",
        ),
        e("person: ID deny REASON", "person: c1 deny too old", "someone denies it"),
        e("person: ID result JSON", r#"person: c1 result {"refunded":1}"#, "it was done elsewhere"),
        e("person: ID error TEXT", "person: c1 error the bank refused", "it was tried elsewhere"),
        e("person: ID outcome unknown", "person: c1 outcome unknown", "nobody knows what came of it"),
        e(
            "person: ID of another PART …",
            "person: c1 of another fingerprint approve",
            "the answer quotes a wrong binding: `run`, `tool`, `fingerprint` or `config version`",
        ),
        e("and: ID …", "person: c1 approve\nand: c2 deny no", "one more answer of the same request"),
        e(
            "person: nothing",
            "person: nothing",
            "a request without answers: it changes nothing where holds are open, and lets a run go on that failed",
        ),
        e("and: now: TEXT", "person: c1 approve\nand: now: today", "the notice of the time that goes with the results"),
        e("client: delivered [by PATH]", "client: delivered by stream", "the reply has reached the client"),
        e("action: ID performed", "action: c1 performed", "a staged action was accepted by its receiver"),
        e("action: ID fails WHY", "action: c1 fails the bank is closed", "it was not, or nobody knows"),
        e(
            "world: cancelled",
            "world: cancelled",
            "the cancellation signal fires; ahead of all `user:` lines, the first run finds it",
        ),
        e("world: crashed", "world: crashed", "the process dies; another takes the run up from its log"),
        e("world: N UNIT pass", "world: 61 s pass", "time passes (`ms`, `s`, `min`, `h`, `d`), and the run is told so"),
        e(
            "world: resumed [with N trips]",
            "world: resumed with 20 trips",
            "a run that ended for want of trips, model or store goes on",
        ),
        e("world: new message", "world: new message", "a message comes whose own run is not told here"),
        e("world: tool NAME is gone", "world: tool refund is gone", "the process that takes answers has no such tool"),
        e("world: tool NAME is back", "world: tool refund is back", "it has it again"),
        e(
            "clock: N UNIT",
            "clock: 2 h",
            "the next line happens this long after the one before; without it, one second",
        ),
        e("clock: at N", "clock: at 1767225600000", "the next line happens at this moment, in milliseconds since 1970"),
    ],
};

/// What can be looked at.
pub const SHOWN: Group = Group {
    title: "What can be looked at",
    entries: &[
        e("show: messages", "show: messages", "the transcript, without notices"),
        e("show: result", "show: result", "status, outcome, text, trips, error"),
        e("show: calls", "show: calls", "the records of the calls that have ended"),
        e("show: interventions", "show: interventions", "what the contract did, and what it left"),
        e(
            "show: contract",
            "show: contract",
            "whether it was asked, whether it acted, what is unmet and what was refused",
        ),
        e("show: holds", "show: holds", "what waits for someone"),
        e("show: actions", "show: actions", "the staged actions, and what became of them"),
        e("show: usage", "show: usage", "the tokens of the run, and what they cost where there is a price"),
        e("show: events", "show: events", "the kinds of the run's events, in order"),
    ],
};

/// Clauses of the plan.
pub const PLAN: Group = Group {
    title: "Clauses of the plan",
    entries: &[
        e(
            "plan: tool NAME [SCHEMA][, OPTION …][: DESCRIPTION]",
            "plan: tool move {\"day\":\"string\",\"note\":\"string?\"}, reads only, within 5 s: Moves a visit",
            "a tool. The short schema names each argument's type (`?`: may be left out; a list: one of these); without one it takes anything. Options: `reads only`, `once`, `staged`, `needs approval`, `silent`, `approval only`, `external`, `in the document`, `within N UNIT`, `refuses by PATTERN`",
        ),
        e(
            "plan: grant LIBRARY.NAME(PARAMETER, …) [SCHEMA][, OPTION …]",
            "plan: grant App.refund(order, amount) {\"amount\":\"number\"}, once, within 5 s",
            "what the host lends to the document's tools, its parameters in order. Options: `reads only`, `once`, `staged`, `within N UNIT`",
        ),
        e(
            "plan: document:",
            "plan: document: |\n        tools: {}",
            "the scene carries a document: its source stands under the line, indented. An engine plays its tools, and what they do is written below the margin",
        ),
        e(
            "plan: the agent's document",
            "plan: the agent's document",
            "the tools are played by the document of the agent's folder (`gesta test`)",
        ),
        e(
            "plan: tools can be added",
            "plan: tools can be added",
            "`added_tools` of the document that the scene carries",
        ),
        e("plan: no tools can be added", "plan: no tools can be added", "the same, off"),
        e("plan: grants of a call at most N", "plan: grants of a call at most 3", "grants that one call may use"),
        e(
            "plan: no other tools",
            "plan: no other tools",
            "tools that are only named do not exist; without this clause they take anything",
        ),
        e("plan: tools change", "plan: tools change", "the tools are asked for on each trip"),
        e(
            "plan: on PATTERN, … must call [any of, all of] TOOL, …",
            "plan: on \"move\", /^swap/i must call all of move, tell",
            "`act_when_asked`. `on nothing` has no intent; `any of`, which may be left out, is `require: any`",
        ),
        e("plan: prompts to act at most N", "plan: prompts to act at most 2", "`max_reprompts`"),
        e(
            "plan: hint to act: TEXT",
            "plan: hint to act: Do it now.",
            "the hint instead of the default, sent as it stands",
        ),
        e(
            "plan: refusals are retried once",
            "plan: refusals are retried 2 times",
            "`on_tool_refusal` with its `retries`: `never`, `once`, `N times`",
        ),
        e("plan: failures are refusals", "plan: failures are refusals", "the preset `errors`"),
        e("plan: refusals match PATTERN, …", "plan: refusals match \"locked\", /^no such/i", "the preset `patterns`"),
        e(
            "plan: hint on refusal: TEXT",
            "plan: hint on refusal: {tool} refused: {reason}",
            "the prompt instead of the default, one for each refusal; `{tool}` and `{reason}` are filled in",
        ),
        e(
            "plan: backstop NAME before",
            "plan: backstop note after within 5 s",
            "a backstop `before` or `after` the model, with its time limit",
        ),
        e("plan: trips at most N", "plan: trips at most 4", "`trips_max`"),
        e("plan: calls at most N", "plan: calls at most 3", "calls of one answer"),
        e("plan: calls at once at most N", "plan: calls at once at most 1", "calls that run at the same time"),
        e("plan: actions at most N", "plan: actions at most 2", "staged actions"),
        e("plan: result bytes at most N", "plan: result bytes at most 20", "one tool result"),
        e("plan: input bytes at most N", "plan: input bytes at most 20", "the input"),
        e("plan: error bytes at most N", "plan: error bytes at most 20", "an error's text"),
        e("plan: tokens at most N", "plan: tokens at most 1000", "tokens of the run"),
        e("plan: seconds at most N", "plan: seconds at most 60", "seconds of the run, parked time left out"),
        e("plan: cost at most N", "plan: cost at most 0.5", "US dollars of the run"),
        e("plan: prices JSON", r#"plan: prices {"input":1,"output":2}"#, "US dollars of a million tokens"),
        e("plan: output SCHEMA", r#"plan: output {"type":"object"}"#, "the schema of the final answer"),
        e(
            "plan: hook on",
            "plan: hook on",
            "calls are put to the hook. Without the clause they are where a line of a policy stands",
        ),
        e("plan: hook off", "plan: hook off", "calls are not put to a hook"),
        e("plan: a failed hook denies", "plan: a failed hook denies", "`on_hook_error`: deny"),
        e("plan: holds expire after N UNIT", "plan: holds expire after 1 h", "`hold_ttl`"),
        e(
            "plan: undecided calls are told to the model",
            "plan: undecided calls are told to the model",
            "`on_undecided`: tell the model",
        ),
        e(
            "plan: messages are refused while parked",
            "plan: messages are refused while parked",
            "`on_message_while_parked`: refuse",
        ),
        e("plan: live", "plan: live", "a turn of a live session"),
        e(
            "plan: the last trip has no tools",
            "plan: the last trip has no tools",
            "the last permitted trip offers no tools",
        ),
        e(
            "plan: replies are judged",
            "plan: replies are judged",
            "guardrails judge each reply: refused until there are any",
        ),
        e(
            "plan: agent: NAME",
            "plan: agent: coach",
            "the agent; `version:`, `instructions:`, `model:` and `timezone:` are written alike",
        ),
        e("plan: version: TEXT", "plan: version: 3", "its version"),
        e("plan: instructions: TEXT", "plan: instructions: You are a coach.", "the system prompt"),
        e("plan: model: NAME", "plan: model: openai:gpt-x", "the model"),
        e("plan: model options JSON", r#"plan: model options {"temperature":0}"#, "the model's options"),
        e("plan: timezone: NAME", "plan: timezone: Europe/Berlin", "the zone of the notice"),
        e(
            "plan: intent function matches PATTERN",
            "plan: intent function matches \"swap\"",
            "an intent that is a function",
        ),
        e("plan: intent function fails: WHY", "plan: intent function fails: broken", "one that fails"),
        e(
            "plan: hint function says: TEXT",
            "plan: hint function says: {input} {reply} {tools} {trip}",
            "the hint is written by a function, which is told `{input}`, `{reply}`, `{tools}` (those still missing) and `{trip}`; `fails:` makes it fail",
        ),
        e(
            "plan: refusal hint function says: TEXT",
            "plan: refusal hint function says: {tool} {reason}",
            "each refusal's prompt is written by a function, which is told `{tool}` and `{reason}`; `fails:` makes it fail",
        ),
        e(
            "plan: refusal function on TOOL says WORD",
            "plan: refusal function on swap says: locked",
            "`is_refusal` for one tool's calls: `says yes`, `says no`, `says nothing`, `says: REASON`, `fails: WHY`",
        ),
        e(
            "plan: staging function on TOOL says WORD",
            "plan: staging function on refund says: not_prospect",
            "what becomes of one tool's staged calls: `says yes` (new), `says nothing` (there already), `says: REASON` (refused), `fails: WHY`",
        ),
    ],
};

/// What the run did: the indented lines, which nobody writes.
pub const DID: Group = Group {
    title: "What the run did",
    entries: &[
        e("asks the model", "", "the model is called; `without tools` on a last trip that offers none"),
        e("asks which tools there are", "", "the list of tools is read anew"),
        e("asks whether ID may run", "", "the hook is asked"),
        e("runs ID TOOL ARGUMENTS", "", "a tool's body is run with these arguments"),
        e("asks whether ID/N GRANT ARGUMENTS may run", "", "the hook is asked about a grant"),
        e("runs grant ID/N GRANT ARGUMENTS", "", "a grant is run with these arguments"),
        e("closes ID as STATUS: TEXT", "", "a call ended without completing, and what the model reads"),
        e("has no decision about ID: WHY", "", "the hook failed or answered nonsense"),
        e("holds ID TOOL ARGUMENTS", "", "a call waits for someone; `the action` where an action does"),
        e("parks", "", "nothing goes on until someone answers"),
        e("does not know what came of ID", "", "a crash hid what came of a call or an action; it is not done again"),
        e("has the answer to ID already: STATUS", "", "the same answer was given before; nothing runs again"),
        e("asks whether backstop NAME is wanted", "", "its `detect` is called"),
        e("runs backstop NAME [STATE]", "", "its `run` is called, with the state that was left to it"),
        e("prompts the model (KIND): TEXT", "", "the runtime's own prompt, by its first line"),
        e("does not prompt the model (KIND): REASON", "", "a prompt was due and is left out"),
        e("notes that FUNCTION failed: WHY", "", "a function of the author failed: a line in the log"),
        e("stages ID", "", "an action is written down"),
        e("performs ID TOOL ARGUMENTS", "", "the single attempt at an action"),
        e("discards ID: WHY", "", "an action will not be performed"),
        e("says: TEXT", "", "the reply is to be delivered"),
        e("ends: OUTCOME", "", "the run wants nothing any more, with its error where it has one"),
        e("can no longer go on", "", "a new message settled a run that had failed"),
        e(
            "refused: WHY",
            "",
            "what stands at the margin was refused and changed nothing; under the plan, an author's mistake",
        ),
    ],
};

/// All groups, in the order of the page.
pub const ALL: [Group; 6] = [WORLD, ANSWERS, SCRIPT, PLAN, SHOWN, DID];

/// The tables of `docs/scenes.md`.
pub fn page() -> String {
    let mut page = String::new();
    for group in ALL {
        page.push_str(&format!("## {}\n\n| Line | Meaning |\n| --- | --- |\n", group.title));
        for entry in group.entries {
            page.push_str(&format!("| `{}` | {} |\n", entry.form.replace('|', "\\|"), entry.meaning));
        }
        page.push('\n');
    }
    page
}
