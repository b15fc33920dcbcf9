//! What may be parsed into an object that a call made for itself: plain values and functions.

use super::function::{Reader, function, tool_attribute};
use super::tokens::{Kind, Token};
use crate::Refused;

/// Checks a whole text.
pub(super) fn check(text: &str, tokens: &[Token<'_>]) -> Result<(), Refused> {
    let mut reader = Reader::new(text, tokens);
    if reader.eat(&Kind::Open('{')) {
        items(&mut reader)?;
        reader.expect(&Kind::Close('}'), "expected `}`")?;
    } else {
        items(&mut reader)?;
    }
    if reader.peek().is_some() {
        return Err(reader.refuse("only fields with plain values, and functions, can be parsed here"));
    }
    Ok(())
}

/// Fields and functions, up to a closing bracket or the end.
fn items(reader: &mut Reader<'_>) -> Result<(), Refused> {
    loop {
        reader.skip_docs();
        match reader.peek() {
            None | Some(Kind::Close(_)) => return Ok(()),
            Some(Kind::Sign('#')) => {
                tool_attribute(reader)?;
                reader.skip_docs();
                function(reader)?;
            }
            Some(Kind::Word("fn")) => {
                function(reader)?;
            }
            Some(Kind::Word("async")) if is_function(reader) => {
                function(reader)?;
            }
            Some(Kind::Word("root" | "import" | "data")) if !before_colon(reader) => {
                return Err(reader.refuse("no root, import or binary block can be parsed here"));
            }
            Some(Kind::Word(_) | Kind::Text(_)) => field(reader)?,
            Some(_) => return Err(reader.refuse("only fields with plain values, and functions, can be parsed here")),
        }
    }
}

fn is_function(reader: &Reader<'_>) -> bool {
    reader.tokens.get(reader.next + 1).is_some_and(|token| token.kind == Kind::Word("fn"))
}

fn before_colon(reader: &Reader<'_>) -> bool {
    reader.tokens.get(reader.next + 1).is_some_and(|token| token.kind == Kind::Sign(':'))
}

/// `name: value`, `type name: value`, `const name: value`, with the name in quotes or without.
fn field(reader: &mut Reader<'_>) -> Result<(), Refused> {
    let mut words = 0;
    while let Some(Kind::Word(_) | Kind::Text(_)) = reader.peek() {
        reader.next += 1;
        words += 1;
    }
    if words > 3 {
        return Err(reader.refuse("expected a field: name: value"));
    }
    reader.expect(&Kind::Sign(':'), "expected `:` and a plain value")?;
    if reader.peek() == Some(&Kind::Sign(':')) {
        return Err(reader.refuse("expected a plain value"));
    }
    value(reader)?;
    if !reader.eat(&Kind::Sign(',')) {
        reader.eat(&Kind::Sign(';'));
    }
    Ok(())
}

/// A plain value: a string, a number, `true`, `false`, `null`, a list or an object of such.
fn value(reader: &mut Reader<'_>) -> Result<(), Refused> {
    match reader.peek() {
        Some(Kind::Text(_) | Kind::Number(_) | Kind::Word("true" | "false" | "null")) => reader.next += 1,
        Some(Kind::Sign('-')) if is_number(reader) => reader.next += 2,
        Some(Kind::Open('[')) => {
            reader.next += 1;
            while !reader.eat(&Kind::Close(']')) {
                value(reader)?;
                if !reader.eat(&Kind::Sign(',')) && reader.peek() != Some(&Kind::Close(']')) {
                    return Err(reader.refuse("expected `,` or `]`"));
                }
            }
        }
        Some(Kind::Open('{')) => {
            reader.next += 1;
            items(reader)?;
            reader.expect(&Kind::Close('}'), "expected `}`")?;
        }
        _ => return Err(reader.refuse("expected a plain value: nothing may run while a text is parsed")),
    }
    if ends_value(reader) { Ok(()) } else { Err(reader.refuse("expected a plain value, nothing more")) }
}

fn is_number(reader: &Reader<'_>) -> bool {
    matches!(reader.tokens.get(reader.next + 1), Some(Token { kind: Kind::Number(_), .. }))
}

/// Whether the value ends here: an operator or a call behind it would make it an expression.
fn ends_value(reader: &Reader<'_>) -> bool {
    match reader.peek() {
        None | Some(Kind::Close(_) | Kind::Doc(_) | Kind::Sign(',' | ';' | '#')) => true,
        Some(Kind::Word(word)) => *word != "as",
        Some(Kind::Text(_)) => true,
        Some(_) => false,
    }
}
