//! The one shape that may join a document: a function tagged `#[tool('…')]`.

use super::tokens::{Kind, Token, tokens};
use crate::refused::place;
use crate::{Place, Refused};

/// What the guard read of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) name_at: usize,
}

/// Characters of a description.
const DESCRIPTION_MAX: usize = 1_000;
const NAME_MAX: usize = 64;
const SHAPE: &str = "a tool is exactly one function: #[tool('what it does')] fn name(parameter: type) -> type { … }";

/// Reads tokens in order.
pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) tokens: &'a [Token<'a>],
    pub(super) next: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str, tokens: &'a [Token<'a>]) -> Self {
        Self { text, tokens, next: 0 }
    }

    pub(super) fn peek(&self) -> Option<&'a Kind<'a>> {
        self.tokens.get(self.next).map(|token| &token.kind)
    }

    pub(super) fn offset(&self) -> usize {
        self.tokens.get(self.next).map_or(self.text.len(), |token| token.at)
    }

    pub(super) fn refuse(&self, message: impl Into<String>) -> Refused {
        Refused::at(self.text, self.offset(), message)
    }

    pub(super) fn skip_docs(&mut self) {
        while let Some(Kind::Doc(_)) = self.peek() {
            self.next += 1;
        }
    }

    pub(super) fn eat(&mut self, kind: &Kind<'_>) -> bool {
        let found = self.peek() == Some(kind);
        self.next += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, kind: &Kind<'_>, message: &str) -> Result<(), Refused> {
        if self.eat(kind) { Ok(()) } else { Err(self.refuse(message)) }
    }

    /// Skips from an opening bracket to behind its closing one and gives the tokens between. The brackets match: the
    /// tokenizer saw to it.
    pub(super) fn group(&mut self) -> &'a [Token<'a>] {
        let from = self.next + 1;
        let mut depth = 0_usize;
        while let Some(kind) = self.peek() {
            self.next += 1;
            match kind {
                Kind::Open(_) => depth += 1,
                Kind::Close(_) => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        self.tokens.get(from..self.next.saturating_sub(1)).unwrap_or(&[])
    }
}

/// Reads a source that is to be one tool.
pub(super) fn only_tool(text: &str, tokens: &[Token<'_>]) -> Result<Function, Refused> {
    if tokens.is_empty() {
        return Err(Refused::whole(format!("the source is empty; {SHAPE}")));
    }
    let mut reader = Reader::new(text, tokens);
    reader.skip_docs();
    if reader.peek() != Some(&Kind::Sign('#')) {
        let message = match reader.peek() {
            Some(Kind::Word("fn" | "async")) => "the function has no tag; write #[tool('what it does')] before it",
            _ => SHAPE,
        };
        return Err(reader.refuse(message));
    }
    tool_attribute(&mut reader)?;
    reader.skip_docs();
    if reader.peek() == Some(&Kind::Sign('#')) {
        return Err(reader.refuse("only one tag is allowed, #[tool('…')]"));
    }
    let function = function(&mut reader)?;
    legal_name(&reader, &function)?;
    if reader.peek().is_some() {
        return Err(reader.refuse(format!("nothing may follow the function; {SHAPE}")));
    }
    Ok(function)
}

/// Reads `#[tool('…')]`.
pub(super) fn tool_attribute(reader: &mut Reader<'_>) -> Result<(), Refused> {
    reader.next += 2; // `#[`: the tokenizer gives the sign only before a bracket.
    reader.expect(&Kind::Word("tool"), "the only tag allowed is #[tool('what it does')]")?;
    if !adjacent(reader) {
        return Err(reader.refuse("the description belongs directly behind `tool`: #[tool('what it does')]"));
    }
    reader.expect(&Kind::Open('('), "the tag needs a description: #[tool('what it does')]")?;
    let Some(Kind::Text(description)) = reader.peek() else {
        return Err(reader.refuse("the description must be a plain string, in quotes"));
    };
    let length = description.chars().count();
    if description.trim().is_empty() || length > DESCRIPTION_MAX {
        return Err(reader.refuse(format!("the description must have 1 to {DESCRIPTION_MAX} characters")));
    }
    if description.chars().any(super::is_hidden) {
        return Err(reader.refuse("the description holds a character that cannot be seen"));
    }
    reader.next += 1;
    reader.expect(&Kind::Close(')'), "the description must be one plain string, nothing more")?;
    reader.expect(&Kind::Close(']'), "expected `]`")
}

/// Whether the next token begins where the last one ended.
fn adjacent(reader: &Reader<'_>) -> bool {
    reader.next > 0 && reader.tokens.get(reader.next - 1).is_some_and(|token| token.end == reader.offset())
}

/// Reads a function from `async` or `fn` to its closing bracket.
pub(super) fn function(reader: &mut Reader<'_>) -> Result<Function, Refused> {
    reader.eat(&Kind::Word("async"));
    reader.expect(&Kind::Word("fn"), SHAPE)?;
    let name_at = reader.offset();
    let name = name(reader)?;
    if reader.peek() != Some(&Kind::Open('(')) || !adjacent(reader) {
        return Err(reader.refuse("expected `(` directly behind the function's name"));
    }
    let parameters = reader.group();
    body(reader.text, parameters)?;
    distinct(reader.text, parameters)?;
    if reader.eat(&Kind::Sign('-')) {
        reader.expect(&Kind::Sign('>'), "expected `->` before the type of the result")?;
        return_type(reader)?;
    }
    if reader.peek() != Some(&Kind::Open('{')) {
        return Err(reader.refuse("expected `{`, the function's body"));
    }
    let inside = reader.group();
    body(reader.text, inside)?;
    Ok(Function { name, name_at })
}

/// Each parameter has a name of its own: of two, one could never be given.
fn distinct(text: &str, tokens: &[Token<'_>]) -> Result<(), Refused> {
    let mut seen: Vec<&str> = Vec::new();
    let (mut depth, mut begins) = (0_usize, true);
    for token in tokens {
        match &token.kind {
            Kind::Open(_) => depth += 1,
            Kind::Close(_) => depth = depth.saturating_sub(1),
            Kind::Doc(_) => continue,
            Kind::Sign(',') if depth == 0 => {
                begins = true;
                continue;
            }
            Kind::Word(name) if begins && seen.contains(name) => {
                return Err(Refused::at(text, token.at, format!("there is a parameter `{name}` already")));
            }
            Kind::Word(name) if begins => seen.push(name),
            _ => {}
        }
        begins = false;
    }
    Ok(())
}

/// A name: words and hyphens without a gap.
fn name(reader: &mut Reader<'_>) -> Result<String, Refused> {
    let Some(Kind::Word(first)) = reader.peek() else {
        return Err(reader.refuse("expected the function's name"));
    };
    let mut name = (*first).to_owned();
    reader.next += 1;
    while adjacent(reader) {
        match reader.peek() {
            Some(Kind::Word(more) | Kind::Number(more)) => name.push_str(more),
            Some(Kind::Sign('-')) => name.push('-'),
            _ => break,
        }
        reader.next += 1;
    }
    Ok(name)
}

fn legal_name(reader: &Reader<'_>, function: &Function) -> Result<(), Refused> {
    let legal = function.name.len() <= NAME_MAX
        && function.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if legal {
        return Ok(());
    }
    let message = format!("the name must be 1 to {NAME_MAX} letters, digits, `_` or `-`");
    Err(Refused::at(reader.text, function.name_at, message))
}

/// A type: words, dots, bars, angle brackets, tuples.
fn return_type(reader: &mut Reader<'_>) -> Result<(), Refused> {
    let from = reader.next;
    loop {
        match reader.peek() {
            Some(Kind::Word(_) | Kind::Sign('|' | '.' | '<' | '>' | '!' | '?')) => reader.next += 1,
            Some(Kind::Open('(')) => {
                reader.group();
            }
            _ if reader.next == from => return Err(reader.refuse("expected the type of the result behind `->`")),
            _ => return Ok(()),
        }
    }
}

/// What may not stand inside a function.
fn body(text: &str, tokens: &[Token<'_>]) -> Result<(), Refused> {
    for (index, token) in tokens.iter().enumerate() {
        let following = tokens.get(index + 1).map(|next| &next.kind);
        let message = match (&token.kind, following) {
            (Kind::Sign('#'), _) => "a tag cannot stand inside a function",
            (Kind::Doc(_), _) => "a documentation comment cannot stand inside a function; write `//`",
            (Kind::Word("fn"), Some(Kind::Word(_))) => {
                "a function cannot be defined inside another; write const helper = (x: float): float => …;"
            }
            (Kind::Word("new"), Some(Kind::Word("root"))) | (Kind::Word("newroot"), _) => "a root cannot be made here",
            _ => continue,
        };
        return Err(Refused::at(text, token.at, message));
    }
    Ok(())
}

/// The functions tagged `#[tool]` of a source, as often as they are written: the name of each, and where it stands.
/// Sources that cannot be read have none.
pub(crate) fn tagged_tools(text: &str) -> Vec<(String, Place)> {
    let Ok(tokens) = tokens(text) else { return Vec::new() };
    let mut found = Vec::new();
    let mut tagged = false;
    for (at, token) in tokens.iter().enumerate() {
        let kind = |ahead: usize| tokens.get(at + ahead).map(|token| &token.kind);
        match (&token.kind, kind(1), kind(2)) {
            (Kind::Sign('#'), Some(Kind::Open('[')), Some(Kind::Word("tool"))) => tagged = true,
            (Kind::Word("fn"), Some(Kind::Word(_)), _) => {
                let behind = &tokens[at + 1..];
                let open = behind.iter().find(|token| token.kind == Kind::Open('('));
                if let (true, Some(open)) = (std::mem::take(&mut tagged), open) {
                    let name = text.get(behind[0].at..open.at).unwrap_or_default().trim();
                    found.push((name.to_owned(), place(text, behind[0].at)));
                }
            }
            _ => {}
        }
    }
    found
}

/// The functions of libraries that a source calls, as `Library.name(` or `Library::name(`, whether they exist or not.
/// A library is a word with a capital, or one of those that are `known`. Sources that cannot be read have none.
pub(crate) fn calls_of_libraries(text: &str, known: &[String]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    collect_calls(text, known, &mut found, 0);
    found.sort();
    found.dedup();
    found
}

fn collect_calls(text: &str, known: &[String], found: &mut Vec<(String, String)>, depth: usize) {
    let Ok(tokens) = tokens(text) else { return };
    for (index, token) in tokens.iter().enumerate() {
        let Kind::Word(library) = &token.kind else {
            if let Kind::Template = token.kind
                && depth < 3
                && let Some(inner) = text.get(token.at..token.end)
            {
                template_calls(inner, known, found, depth + 1);
            }
            continue;
        };
        let behind_dot = index > 0 && matches!(tokens[index - 1].kind, Kind::Sign('.' | ':' | '@'));
        let is_library =
            library.starts_with(|first: char| first.is_ascii_uppercase()) || known.iter().any(|known| known == library);
        if behind_dot || !is_library {
            continue;
        }
        let after = &tokens[index + 1..];
        let name = match after {
            [dot, name, open, ..] if dot.kind == Kind::Sign('.') && open.kind == Kind::Open('(') => &name.kind,
            [one, two, name, open, ..]
                if one.kind == Kind::Sign(':') && two.kind == Kind::Sign(':') && open.kind == Kind::Open('(') =>
            {
                &name.kind
            }
            _ => continue,
        };
        if let Kind::Word(name) = name {
            found.push(((*library).to_owned(), (*name).to_owned()));
        }
    }
}

/// Looks into the expressions of a template string.
fn template_calls(template: &str, known: &[String], found: &mut Vec<(String, String)>, depth: usize) {
    let mut rest = template;
    while let Some(at) = rest.find("${") {
        let inner = &rest[at + 2..];
        let end = inner.find('}').unwrap_or(inner.len());
        collect_calls(&inner[..end], known, found, depth);
        rest = &inner[end..];
    }
}
