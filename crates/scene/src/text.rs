//! The letters of the form: lines at the margin, text over several lines, quoted and escaped text.

use std::borrow::Cow;

use serde_json::Value;

use crate::error::{ReadError, ReadReason};

/// One line at the margin, with the text that stands under it after `|`.
#[derive(Debug, Clone)]
pub(crate) struct Line<'a> {
    /// Counted from 1.
    pub(crate) number: usize,
    /// As it stands, without trailing space and without `|`.
    pub(crate) head: &'a str,
    /// The text under it.
    pub(crate) block: Option<String>,
}

/// A file as an editor of another system writes it, in our letters: without a byte order mark, and with LF alone.
pub(crate) fn plain(source: &str) -> Cow<'_, str> {
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    if source.contains("\r\n") { source.replace("\r\n", "\n").into() } else { source.into() }
}

/// Splits a file into its margin lines, empty ones among them. Indented lines that belong to no `|` are left out: they are what a run did.
/// In a scene the text under a line stands deeper than those (`text_indent_min`).
pub(crate) fn margin_lines(source: &str, text_indent_min: usize) -> Vec<Line<'_>> {
    let lines: Vec<&str> = source.lines().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at].trim_end();
        let number = at + 1;
        at += 1;
        let next = lines[at..].iter().find(|line| !line.trim().is_empty());
        let inside = line.is_empty() && next.is_some_and(|next| next.starts_with([' ', '\t']));
        if inside || line.starts_with([' ', '\t']) {
            continue;
        }
        let opened = if line.starts_with('#') { None } else { line.strip_suffix('|') };
        match opened.filter(|head| head.ends_with([' ', ':'])) {
            Some(head) => {
                let (block, taken) = block(&lines[at..], text_indent_min);
                at += taken;
                found.push(Line { number, head: head.trim_end(), block: Some(block) });
            }
            None => found.push(Line { number, head: line, block: None }),
        }
    }
    found
}

/// The text at the head of `lines` that is indented by at least `indent_min`, without that indentation,
/// and how many lines it takes.
fn block(lines: &[&str], indent_min: usize) -> (String, usize) {
    let indent = match lines.iter().find(|line| !line.trim().is_empty()) {
        Some(first) => depth(first),
        None => return (String::new(), 0),
    };
    if indent < indent_min.max(1) {
        return (String::new(), 0);
    }
    let belongs = |line: &&&str| line.trim().is_empty() || depth(line) >= indent;
    let mut taken = lines.iter().take_while(belongs).count();
    while taken > 0 && lines[taken - 1].trim().is_empty() {
        taken -= 1;
    }
    let text: Vec<&str> = lines[..taken].iter().map(|line| line.get(indent..).unwrap_or("").trim_end()).collect();
    (text.join("\n"), taken)
}

fn depth(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Reads one line from left to right.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    pub(crate) line: usize,
    pub(crate) rest: &'a str,
    pub(crate) block: Option<&'a str>,
}

impl<'a> Cursor<'a> {
    /// Splits a margin line into its keyword (what stands before the first colon) and the rest.
    pub(crate) fn keyword(line: &'a Line<'_>) -> Option<(&'a str, Self)> {
        let (word, rest) = line.head.split_once(':')?;
        Some((word, Self { line: line.number, rest: rest.trim(), block: line.block.as_deref() }))
    }

    /// Takes `word` if it stands next, as a whole word.
    pub(crate) fn eat(&mut self, word: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(word) else { return false };
        let glued = rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        if glued && word.ends_with(|c: char| c.is_alphanumeric()) {
            return false;
        }
        self.rest = rest.trim_start();
        true
    }

    /// Takes the next word, up to white space; a word in quotes is a JSON string.
    pub(crate) fn word(&mut self, expected: &'static str) -> Result<String, ReadError> {
        if self.rest.starts_with('"') {
            let mut values = serde_json::Deserializer::from_str(self.rest).into_iter::<String>();
            if let Some(Ok(text)) = values.next() {
                let end = values.byte_offset();
                self.rest = self.rest[end..].trim_start();
                return Ok(text);
            }
        }
        let end = self.rest.find(char::is_whitespace).unwrap_or(self.rest.len());
        if end == 0 {
            return Err(self.expected(expected));
        }
        let word = self.rest[..end].to_owned();
        self.rest = self.rest[end..].trim_start();
        Ok(word)
    }

    /// Takes a number, digits alone.
    pub(crate) fn number(&mut self, expected: &'static str) -> Result<u64, ReadError> {
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let number = self.rest[..end].parse().map_err(|_| self.expected(expected))?;
        self.rest = self.rest[end..].trim_start();
        Ok(number)
    }

    /// Takes everything that is left as a text: the block under the line, a JSON string, or the words themselves.
    pub(crate) fn text(&mut self) -> String {
        let rest = std::mem::take(&mut self.rest);
        match self.block.take() {
            Some(block) if rest.is_empty() => block.to_owned(),
            Some(block) => format!("{rest}\n{block}"),
            None => read_text(rest),
        }
    }

    /// Takes everything that is left as it stands; behind a backslash a JSON string.
    pub(crate) fn verbatim(&mut self) -> String {
        let rest = std::mem::take(&mut self.rest);
        if let Some(block) = self.block.take() {
            return block.to_owned();
        }
        let quoted = rest.strip_prefix('\\').and_then(|quoted| serde_json::from_str(quoted).ok());
        quoted.unwrap_or_else(|| rest.to_owned())
    }

    /// Takes one JSON value; what stands behind it stays.
    pub(crate) fn json(&mut self) -> Result<Value, ReadError> {
        let source = match self.block.take() {
            Some(block) if self.rest.is_empty() => block,
            _ => std::mem::take(&mut self.rest),
        };
        let mut values = serde_json::Deserializer::from_str(source).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                self.rest = source[values.byte_offset()..].trim_start();
                Ok(value)
            }
            Some(Err(why)) => Err(ReadError::new(self.line, ReadReason::Json { why: why.to_string() })),
            None => Err(self.expected("a JSON value")),
        }
    }

    /// Whether nothing is left.
    pub(crate) fn is_done(&self) -> bool {
        self.rest.is_empty() && self.block.is_none()
    }

    /// Nothing may be left.
    pub(crate) fn done(&self) -> Result<(), ReadError> {
        if self.is_done() { Ok(()) } else { Err(self.expected("the end of the line")) }
    }

    pub(crate) fn misplaced(&self, why: &'static str) -> ReadError {
        ReadError::new(self.line, ReadReason::Misplaced(why))
    }

    /// What was expected here.
    pub(crate) fn expected(&self, expected: &'static str) -> ReadError {
        ReadError::expected(self.line, expected, self.rest)
    }
}

/// A text as it stands on one line: a JSON string is unquoted, a backslash in front protects the rest.
fn read_text(rest: &str) -> String {
    if rest.starts_with('"')
        && let Ok(text) = serde_json::from_str(rest)
    {
        return text;
    }
    rest.strip_prefix('\\').unwrap_or(rest).to_owned()
}

/// How a text is written behind `prefix` so that reading gives it back: on the line where that can be, under it after
/// `|` where it has several lines, as a JSON string otherwise. `taken` says which beginnings mean something else.
pub(crate) fn write_text(prefix: &str, text: &str, indent: usize, taken: impl Fn(&str) -> bool) -> String {
    let gap = if prefix.is_empty() || prefix.ends_with(' ') { "" } else { " " };
    let odd_end = |line: &str| line.ends_with(char::is_whitespace) || line.contains(|c: char| c.is_control());
    if text.contains('\n') {
        let lines: Vec<&str> = text.split('\n').collect();
        let first = lines[0];
        let edge = first.is_empty() || first.starts_with(char::is_whitespace) || text.ends_with('\n');
        if !edge && !lines.iter().any(|line| odd_end(line)) {
            let pad = " ".repeat(indent);
            let lines = lines.iter().map(|line| if line.is_empty() { String::new() } else { format!("{pad}{line}") });
            return format!("{prefix}{gap}|\n{}", lines.collect::<Vec<_>>().join("\n"));
        }
        return format!("{prefix}{gap}{}", Value::from(text));
    }
    if text.is_empty() || text.starts_with(char::is_whitespace) || odd_end(text) || text.ends_with('|') {
        return format!("{prefix}{gap}{}", Value::from(text));
    }
    if text.starts_with('"') && serde_json::from_str::<String>(text).is_ok() {
        return format!("{prefix}{gap}{}", Value::from(text));
    }
    let escape = if text.starts_with('\\') || taken(text) { "\\" } else { "" };
    format!("{prefix}{gap}{escape}{text}")
}

/// A word of a line: as it stands where it can be read back, as a JSON string otherwise.
pub(crate) fn write_word(word: &str) -> String {
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && c != '"' && c != '|';
    if !word.is_empty() && word != "-" && word.chars().all(plain) {
        word.to_owned()
    } else {
        Value::from(word).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_read_as_it_was_written() {
        let taken = |text: &str| text.starts_with("calls");
        for text in [
            "plain",
            "",
            " ",
            "a\nb",
            "a\n\n  b",
            "a\n",
            "\na",
            "\\x",
            "calls me",
            "\"q\"",
            "\"q\" he said",
            "a |",
            "|",
            "tab\tinside",
            "é\r\nü",
            "# no comment",
            "a\u{7f}b",
        ] {
            let written = write_text("model:", text, 8, taken);
            let lines = margin_lines(&written, 5);
            assert_eq!(lines.len(), 1, "{written}");
            let (word, mut cursor) = Cursor::keyword(&lines[0]).unwrap();
            assert_eq!((word, cursor.text().as_str()), ("model", text), "{written}");
        }
    }
}
