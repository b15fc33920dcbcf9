//! Lists of patterns on a line: `"a substring", /an expression/i`.

use gesta_run::pattern::{PatternSpec, RegexSpec};
use serde_json::Value;

use crate::error::{ReadError, ReadReason};
use crate::text::Cursor;

/// Takes patterns, separated by commas.
pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Vec<PatternSpec>, ReadError> {
    let mut patterns = Vec::new();
    loop {
        patterns.push(read_one(cursor)?);
        let Some(rest) = cursor.rest.strip_prefix(',') else { return Ok(patterns) };
        cursor.rest = rest.trim_start();
    }
}

/// Takes one pattern, as it stands: whether it compiles is for whoever uses it.
pub(crate) fn read_one(cursor: &mut Cursor<'_>) -> Result<PatternSpec, ReadError> {
    let expected = "a pattern, `\"words\"` or `/expression/`";
    if let Some(source) = cursor.rest.strip_prefix('/') {
        let end = closing_slash(source).ok_or_else(|| cursor.expected(expected))?;
        let regex = source[..end].replace("\\/", "/");
        let flags = &source[end + 1..];
        let ignore_case = flags.starts_with('i');
        cursor.rest = flags[usize::from(ignore_case)..].trim_start();
        return Ok(PatternSpec::Regex(RegexSpec { regex, ignore_case }));
    }
    let mut values = serde_json::Deserializer::from_str(cursor.rest).into_iter::<Value>();
    match values.next() {
        Some(Ok(Value::String(text))) => {
            cursor.rest = cursor.rest[values.byte_offset()..].trim_start();
            Ok(PatternSpec::Substring(text))
        }
        _ => Err(cursor.expected(expected)),
    }
}

fn closing_slash(source: &str) -> Option<usize> {
    let mut escaped = false;
    source.char_indices().find_map(|(at, c)| {
        let closes = c == '/' && !escaped;
        escaped = c == '\\' && !escaped;
        closes.then_some(at)
    })
}

/// Writes patterns so that reading gives them back.
pub(crate) fn write(patterns: &[PatternSpec]) -> String {
    patterns.iter().map(write_one).collect::<Vec<_>>().join(", ")
}

/// Writes one pattern.
pub(crate) fn write_one(pattern: &PatternSpec) -> String {
    match pattern {
        PatternSpec::Substring(text) => Value::from(text.as_str()).to_string(),
        PatternSpec::Regex(spec) => {
            format!("/{}/{}", spec.regex.replace('/', "\\/"), if spec.ignore_case { "i" } else { "" })
        }
    }
}

/// The error of a pattern that does not compile.
pub(crate) fn check(line: usize, pattern: &PatternSpec) -> Result<gesta_run::pattern::Pattern, ReadError> {
    pattern.compile().map_err(|why| ReadError::new(line, ReadReason::Pattern(why)))
}
