//! Cuts a source into tokens, as the engine does, and refuses what it does not know.

use crate::Refused;

/// A piece of a source, with the offset in bytes at which it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind<'a>,
    pub(crate) at: usize,
    /// The first byte after it.
    pub(crate) end: usize,
}

/// What a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind<'a> {
    /// A word: letters, digits, underscores.
    Word(&'a str),
    /// A number, with its unit if it has one.
    Number(&'a str),
    /// A string, with its escapes resolved.
    Text(String),
    /// A template string; what stands in its `${…}` has been checked as tokens.
    Template,
    /// `(`, `[` or `{`.
    Open(char),
    /// `)`, `]` or `}`.
    Close(char),
    /// A documentation comment.
    Doc(&'a str),
    /// Any other sign, one at a time.
    Sign(char),
}

/// Levels of brackets that a source may have; the engine's parser slows down with every one.
pub(crate) const NESTING_MAX: usize = 24;
/// Levels of template strings within template strings.
const TEMPLATES_MAX: usize = 3;
const SIGNS: &str = "+-*/%=<>!&|^~?:;,.@";

/// All tokens of the source, its brackets matched.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token<'_>>, Refused> {
    let mut cursor = Cursor { text, at: 0, templates: 0 };
    let mut found = Vec::new();
    let mut open: Vec<(char, usize)> = Vec::new();
    while let Some(token) = cursor.next()? {
        match token.kind {
            Kind::Open(bracket) => {
                open.push((bracket, token.at));
                if open.len() > NESTING_MAX {
                    return Err(Refused::at(text, token.at, format!("more than {NESTING_MAX} levels of brackets")));
                }
            }
            Kind::Close(bracket) => close(text, &mut open, bracket, token.at)?,
            _ => {}
        }
        found.push(token);
    }
    match open.last() {
        Some((bracket, at)) => Err(Refused::at(text, *at, format!("this `{bracket}` is never closed"))),
        None => Ok(found),
    }
}

fn close(text: &str, open: &mut Vec<(char, usize)>, bracket: char, at: usize) -> Result<(), Refused> {
    let expected = match open.pop() {
        Some(('(', _)) => ')',
        Some(('[', _)) => ']',
        Some(_) => '}',
        None => return Err(Refused::at(text, at, format!("this `{bracket}` closes nothing"))),
    };
    if bracket == expected {
        return Ok(());
    }
    Err(Refused::at(text, at, format!("expected `{expected}` here, found `{bracket}`")))
}

/// Where the tokenizer stands.
struct Cursor<'a> {
    text: &'a str,
    at: usize,
    /// Template strings around this text.
    templates: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn refuse(&self, at: usize, message: impl Into<String>) -> Refused {
        Refused::at(self.text, at, message)
    }

    fn token(&mut self, kind: Kind<'a>, bytes: usize) -> Token<'a> {
        let at = self.at;
        self.at += bytes;
        Token { kind, at, end: self.at }
    }

    /// The next token, or none at the end.
    fn next(&mut self) -> Result<Option<Token<'a>>, Refused> {
        loop {
            let rest = self.rest();
            let Some(first) = rest.chars().next() else { return Ok(None) };
            return match first {
                ' ' | '\t' | '\n' => {
                    self.at += 1;
                    continue;
                }
                '\r' if rest[1..].starts_with('\n') => {
                    self.at += 2;
                    continue;
                }
                '/' if rest.starts_with("//") || rest.starts_with("/*") => match self.comment()? {
                    Some(doc) => Ok(Some(doc)),
                    None => continue,
                },
                'r' if rest.starts_with("r#\"") => self.raw().map(Some),
                '"' | '\'' => self.quoted(first).map(Some),
                '`' => self.template().map(Some),
                '(' | '[' | '{' => Ok(Some(self.token(Kind::Open(first), 1))),
                ')' | ']' | '}' => Ok(Some(self.token(Kind::Close(first), 1))),
                'a'..='z' | 'A'..='Z' | '_' => Ok(Some(self.word())),
                '0'..='9' => Ok(Some(self.number())),
                '#' if rest.starts_with("#[") => Ok(Some(self.token(Kind::Sign('#'), 1))),
                _ if SIGNS.contains(first) => Ok(Some(self.token(Kind::Sign(first), 1))),
                _ => Err(self.refuse(self.at, format!("`{}` cannot stand here", first.escape_default()))),
            };
        }
    }

    fn word(&mut self) -> Token<'a> {
        let rest = self.rest();
        let bytes = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        self.token(Kind::Word(&rest[..bytes]), bytes)
    }

    fn number(&mut self) -> Token<'a> {
        let rest = self.rest().as_bytes();
        let mut bytes = 0;
        while let Some(byte) = rest.get(bytes) {
            let fraction = *byte == b'.' && rest.get(bytes + 1).is_some_and(u8::is_ascii_digit);
            if !(byte.is_ascii_alphanumeric() || *byte == b'_' || fraction) {
                break;
            }
            bytes += 1;
        }
        let text = &self.rest()[..bytes];
        self.token(Kind::Number(text), bytes)
    }

    /// A comment; a documentation comment is a token.
    fn comment(&mut self) -> Result<Option<Token<'a>>, Refused> {
        let rest = self.rest();
        let line = rest.starts_with("//");
        let doc = rest.starts_with("///") || rest.starts_with("/**");
        let opening = if doc { 3 } else { 2 };
        if rest.starts_with("/*!") {
            return Err(self.refuse(self.at, "a comment that begins with `/*!` is not allowed here; write `//`"));
        }
        let length = if line {
            let length = rest.find(['\n', '\r']).unwrap_or(rest.len());
            if rest[length..].starts_with('\r') && !rest[length..].starts_with("\r\n") {
                return Err(self.refuse(self.at + length, "a carriage return without a line feed"));
            }
            length
        } else {
            let closing = rest[opening..].find("*/");
            opening + 2 + closing.ok_or_else(|| self.refuse(self.at, "this comment is never closed"))?
        };
        let text = &rest[opening..if line { length } else { length - 2 }];
        visible(text).map_err(|offset| self.refuse(self.at + opening + offset, HIDDEN))?;
        if doc {
            return Ok(Some(self.token(Kind::Doc(text), length)));
        }
        self.at += length;
        Ok(None)
    }

    fn raw(&mut self) -> Result<Token<'a>, Refused> {
        let inner = &self.rest()[3..];
        let length = inner.find("\"#").ok_or_else(|| self.refuse(self.at, "this `r#\"` is never closed by `\"#`"))?;
        visible(&inner[..length]).map_err(|offset| self.refuse(self.at + 3 + offset, HIDDEN))?;
        Ok(self.token(Kind::Text(inner[..length].to_owned()), length + 5))
    }

    fn quoted(&mut self, quote: char) -> Result<Token<'a>, Refused> {
        let (text, bytes) = self.unescape(quote, &[quote])?;
        Ok(self.token(Kind::Text(text), bytes))
    }

    /// A template string. The engine resolves its escapes first and then parses what stands in `${…}`; so do we.
    fn template(&mut self) -> Result<Token<'a>, Refused> {
        let (text, bytes) = self.unescape('`', &['`', '$'])?;
        if self.templates >= TEMPLATES_MAX {
            return Err(self.refuse(self.at, "too many template strings within each other"));
        }
        let mut from = 0;
        while let Some(found) = text[from..].find("${") {
            let inner = from + found + 2;
            let mut cursor = Cursor { text: &text, at: inner, templates: self.templates + 1 };
            from = cursor
                .expression()
                .map_err(|refused| self.refuse(self.at, format!("in this template string: {}", refused.message)))?;
        }
        Ok(self.token(Kind::Template, bytes))
    }

    /// Checks what stands in `${…}` and gives the offset after its closing bracket.
    fn expression(&mut self) -> Result<usize, Refused> {
        let mut open = vec![('{', self.at)];
        while let Some(token) = self.next()? {
            match token.kind {
                Kind::Open(bracket) if open.len() < NESTING_MAX => open.push((bracket, token.at)),
                Kind::Open(_) => return Err(self.refuse(token.at, "too many levels of brackets")),
                Kind::Close(bracket) => close(self.text, &mut open, bracket, token.at)?,
                Kind::Sign('#') | Kind::Doc(_) => {
                    return Err(self.refuse(token.at, "only an expression can stand here"));
                }
                _ => {}
            }
            if open.is_empty() {
                return Ok(token.end);
            }
        }
        let nested = "a `${` is never closed before the next backtick; a template string cannot stand inside another: \
                      give the inner one a name first, const part = `…`;";
        Err(self.refuse(self.at, nested))
    }

    /// The text between two quotes with its escapes resolved, and the bytes it took with them. A dollar that was
    /// escaped becomes a sign that begins no expression.
    fn unescape(&self, quote: char, escapable: &[char]) -> Result<(String, usize), Refused> {
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((offset, found)) = chars.next() {
            match found {
                _ if found == quote => return Ok((text, offset + 1)),
                '\\' => match chars.next() {
                    Some((_, '\\')) => text.push('\\'),
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 'r')) => text.push('\r'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, '$')) if escapable.contains(&'$') => text.push('\u{FFFD}'),
                    Some((_, escaped)) if escapable.contains(&escaped) => text.push(escaped),
                    _ => {
                        return Err(self.refuse(
                            self.at + offset,
                            "unknown escape in a string (write `\\\\` for a backslash, or use r#\"…\"#)",
                        ));
                    }
                },
                _ if is_hidden(found) => return Err(self.refuse(self.at + offset, HIDDEN)),
                _ => text.push(found),
            }
        }
        Err(self.refuse(self.at, format!("this string is never closed (missing `{quote}`)")))
    }
}

const HIDDEN: &str = "a character that cannot be seen; remove it";

/// The offset of the first character that a reader would not see.
fn visible(text: &str) -> Result<(), usize> {
    text.char_indices().find(|(_, found)| is_hidden(*found)).map_or(Ok(()), |(offset, _)| Err(offset))
}

/// Characters that hide or reorder text, and those that the engine uses for itself.
pub(crate) fn is_hidden(found: char) -> bool {
    matches!(found,
        '\0'..='\u{8}' | '\u{B}' | '\u{C}' | '\u{E}'..='\u{1F}' | '\u{7F}'..='\u{9F}' | '\u{AD}' | '\u{61C}'
        | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{E000}'..='\u{F8FF}'
        | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E0FFF}' | '\u{F0000}'..='\u{10FFFF}')
}
