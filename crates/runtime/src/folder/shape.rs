//! A TOML tree held against the JSON schema of its file: unknown keys, wrong types, missing keys, each with its place.

use serde_json::{Map, Value};

use super::format;
use super::later;
use super::nearest::nearest;
use super::problem::Problem;
use super::source::{Entry, Kind, Node, Source, Step, path_text};

/// Problems reported of one file.
const PROBLEMS_MAX: usize = 50;

/// Checks a file against a schema of the kind that `schemars` derives.
pub(crate) fn check(source: &Source, schema: &Value) -> Vec<Problem> {
    let mut shape = Shape { source, root: schema, problems: Vec::new() };
    shape.node(&source.root, schema, &mut Vec::new());
    shape.problems.truncate(PROBLEMS_MAX);
    shape.problems
}

struct Shape<'a> {
    source: &'a Source,
    root: &'a Value,
    problems: Vec<Problem>,
}

impl<'a> Shape<'a> {
    fn node(&mut self, node: &'a Node, schema: &'a Value, path: &mut Vec<Step<'a>>) {
        if matches!(node.kind, Kind::NoNumber) {
            return self.report(node, path, "a number that is too large, or is none".to_owned());
        }
        let branches = self.branches(schema);
        if branches.is_empty() {
            return self.free(node, path);
        }
        let Some(branch) = branches.iter().find(|branch| takes(branch, node)) else {
            let expected = list_of(branches.iter().filter_map(|branch| kind_of_schema(branch)));
            self.report(node, path, format!("must be {expected}, not {}", kind_of_node(node)));
            return;
        };
        match &node.kind {
            Kind::Table(entries) => self.table(node, entries, branch, path),
            Kind::List(items) if branch.get("items").is_none() => self.each(items, path),
            Kind::List(items) => {
                if let Some(schema) = branch.get("items") {
                    for (at, item) in items.iter().enumerate() {
                        path.push(Step::Index(at));
                        self.node(item, schema, path);
                        path.pop();
                    }
                }
            }
            Kind::Plain(Value::String(text)) => self.text(node, text, &branches, branch, path),
            Kind::Plain(Value::Number(number)) => {
                if let Some(wrong) = wrong_number(number, branch) {
                    self.report(node, path, wrong);
                }
            }
            Kind::Plain(_) | Kind::Date(_) | Kind::NoNumber => {}
        }
    }

    /// What may be anything is looked at for numbers that are none.
    fn free(&mut self, node: &'a Node, path: &mut Vec<Step<'a>>) {
        match &node.kind {
            Kind::NoNumber => self.report(node, path, "a number that is too large, or is none".to_owned()),
            Kind::List(items) => self.each(items, path),
            Kind::Table(entries) => {
                for entry in entries {
                    path.push(Step::Key(&entry.key));
                    self.free(&entry.value, path);
                    path.pop();
                }
            }
            Kind::Plain(_) | Kind::Date(_) => {}
        }
    }

    fn each(&mut self, items: &'a [Node], path: &mut Vec<Step<'a>>) {
        for (at, item) in items.iter().enumerate() {
            path.push(Step::Index(at));
            self.free(item, path);
            path.pop();
        }
    }

    fn text(&mut self, node: &Node, text: &str, branches: &[&Object], branch: &Object, path: &[Step<'_>]) {
        let words = words(branches);
        if !words.is_empty() && !words.contains(&text) {
            let hint = nearest(text, words.iter().copied()).map(|it| format!("did you mean \"{it}\"?"));
            let known = words.iter().map(|word| format!("\"{word}\""));
            let problem = format!("\"{}\" is not one of its words", shown(text));
            self.report_fix(node, path, problem, hint.unwrap_or_else(|| format!("write {}", list_of(known))));
            return;
        }
        let Some(format) = branch.get("format").and_then(Value::as_str) else { return };
        if let Err(why) = format::check(format, text) {
            self.report(node, path, why);
        }
    }

    fn table(&mut self, node: &'a Node, entries: &'a [Entry], schema: &'a Object, path: &mut Vec<Step<'a>>) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let rest = schema.get("additionalProperties");
        for entry in entries {
            let known = properties.and_then(|properties| properties.get(&entry.key));
            path.push(Step::Key(&entry.key));
            match known.or(rest) {
                Some(Value::Bool(false)) => self.unknown_key(entry, properties, path),
                Some(schema) => self.node(&entry.value, schema, path),
                None => self.free(&entry.value, path),
            }
            path.pop();
        }
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        for key in required.filter_map(Value::as_str) {
            if !entries.iter().any(|entry| entry.key == key) {
                self.report(node, path, format!("`{key}` is missing"));
            }
        }
    }

    fn unknown_key(&mut self, entry: &Entry, properties: Option<&Object>, path: &[Step<'_>]) {
        let plain: Vec<Step<'_>> = path.iter().copied().filter(|step| matches!(step, Step::Key(_))).collect();
        let place = self.source.place(entry.key_span.start);
        let about = path_text(path);
        let problem = if let Some(why) = later::refused(&path_text(&plain)) {
            Problem::new(&self.source.file, format!("`{}` {why}", entry.key))
        } else {
            let mut known: Vec<&str> = properties.into_iter().flat_map(Map::keys).map(String::as_str).collect();
            known.sort_unstable();
            let at_top = path.len() > 1 && self.is_key_of_the_top(&entry.key);
            let fix = match nearest(&entry.key, known.iter().copied()) {
                _ if at_top => format!(
                    "`{}` is a key of the top: write it above the first `[table]`, since whatever follows one belongs to it",
                    entry.key
                ),
                Some(near) => format!("did you mean `{near}`?"),
                None if path.len() > 1 && self.is_last(entry) => {
                    format!("known here: {}; a key of the top stands above the first `[table]`", known.join(", "))
                }
                None => format!("known here: {}", known.join(", ")),
            };
            Problem::new(&self.source.file, format!("unknown key `{}`", shown(&entry.key))).fixed_by(fix)
        };
        self.problems.push(problem.at(Some(place)).about(if path.len() > 1 { about } else { String::new() }));
    }

    fn is_key_of_the_top(&self, key: &str) -> bool {
        self.root.get("properties").and_then(|keys| keys.get(key)).is_some()
    }

    /// Whether no table begins behind this key: there a key lands that is added at the end of the file.
    fn is_last(&self, entry: &Entry) -> bool {
        let behind = self.source.text.get(entry.value.span.end..).unwrap_or_default();
        !behind.lines().any(|line| line.trim_start().starts_with('['))
    }

    fn report(&mut self, node: &Node, path: &[Step<'_>], message: String) {
        self.report_fix(node, path, message, String::new());
    }

    fn report_fix(&mut self, node: &Node, path: &[Step<'_>], message: String, fix: String) {
        let place = self.source.place(node.span.start);
        let problem = Problem::new(&self.source.file, message).at(Some(place)).about(path_text(path)).fixed_by(fix);
        self.problems.push(problem);
    }

    /// The alternatives of a schema, references followed. Empty where everything is allowed.
    fn branches(&self, schema: &'a Value) -> Vec<&'a Object> {
        let mut found = Vec::new();
        self.gather(schema, &mut found, 0);
        found
    }

    fn gather(&self, schema: &'a Value, found: &mut Vec<&'a Object>, depth: usize) {
        let Some(object) = schema.as_object().filter(|_| depth < 16) else { return };
        if let Some(target) = object.get("$ref").and_then(Value::as_str) {
            if let Some(inner) = target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)) {
                self.gather(inner, found, depth + 1);
            }
            return;
        }
        match object.get("anyOf").or_else(|| object.get("oneOf")).and_then(Value::as_array) {
            Some(list) => list.iter().for_each(|inner| self.gather(inner, found, depth + 1)),
            None if object.contains_key("type") || object.contains_key("const") => found.push(object),
            None => {}
        }
    }
}

type Object = Map<String, Value>;

/// Whether the schema's type is that of the node. Which word or number it is does not count here.
fn takes(schema: &Object, node: &Node) -> bool {
    let name = match &node.kind {
        Kind::Table(_) => "object",
        Kind::List(_) => "array",
        Kind::Plain(Value::String(_)) => "string",
        Kind::Plain(Value::Bool(_)) => "boolean",
        Kind::Plain(Value::Number(number)) if number.is_f64() => "number",
        Kind::Plain(Value::Number(_)) => return types(schema).any(|it| it == "integer" || it == "number"),
        Kind::Plain(_) | Kind::Date(_) | Kind::NoNumber => return false,
    };
    types(schema).any(|it| it == name)
}

fn types(schema: &Object) -> impl Iterator<Item = &str> {
    let (one, many) = match schema.get("type") {
        Some(Value::String(one)) => (Some(one.as_str()), [].as_slice()),
        Some(Value::Array(many)) => (None, many.as_slice()),
        _ => (schema.get("const").filter(|it| it.is_string()).map(|_| "string"), [].as_slice()),
    };
    one.into_iter().chain(many.iter().filter_map(Value::as_str))
}

/// The words that a text may be; none where it is free.
fn words<'a>(branches: &[&'a Object]) -> Vec<&'a str> {
    let mut words = Vec::new();
    for branch in branches.iter().filter(|branch| types(branch).any(|it| it == "string")) {
        match (branch.get("const").and_then(Value::as_str), branch.get("enum").and_then(Value::as_array)) {
            (Some(word), _) => words.push(word),
            (None, Some(list)) => words.extend(list.iter().filter_map(Value::as_str)),
            (None, None) => return Vec::new(),
        }
    }
    words
}

fn wrong_number(number: &serde_json::Number, schema: &Object) -> Option<String> {
    let value = number.as_f64()?;
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    if let Some(least) = bound("minimum").filter(|least| value < *least) {
        return Some(format!("must be {least} or more"));
    }
    if let Some(least) = bound("exclusiveMinimum").filter(|least| value <= *least) {
        return Some(format!("must be more than {least}"));
    }
    let format = schema.get("format").and_then(Value::as_str);
    let natural = if format == Some("uint32") { Some(f64::from(u32::MAX)) } else { None };
    if let Some(most) = bound("maximum").or(natural).filter(|most| value > *most) {
        return Some(format!("must be {most} or less"));
    }
    match format {
        Some("seconds") => super::duration::Length::from_seconds(value).err(),
        _ => None,
    }
}

fn kind_of_schema(schema: &Object) -> Option<String> {
    let name = match types(schema).find(|it| *it != "null")? {
        "object" => "a table",
        "array" => "a list",
        "string" => "a text",
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        _ => return None,
    };
    Some(name.to_owned())
}

fn kind_of_node(node: &Node) -> &'static str {
    match &node.kind {
        Kind::Table(_) => "a table",
        Kind::List(_) => "a list",
        Kind::Date(_) => "a date (write it as a text)",
        Kind::Plain(Value::String(_)) => "a text",
        Kind::Plain(Value::Bool(_)) => "a truth value",
        Kind::Plain(Value::Number(number)) if number.is_f64() => "a number with a fraction",
        Kind::Plain(_) | Kind::NoNumber => "a number",
    }
}

/// `a`, `a or b`, `a, b or c`, each once.
fn list_of(items: impl Iterator<Item = String>) -> String {
    let mut list: Vec<String> = Vec::new();
    for item in items {
        if !list.contains(&item) {
            list.push(item);
        }
    }
    match list.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => list.join(""),
    }
}

/// What is shown of a text that may be long.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(60).collect()
}
