//! Characters that nobody sees but that change what is seen: shown by their number.

/// What may stand on a screen as it is: no control character, and none that turns the direction of a line, joins lines
/// or has no width. What joins letters and emoji has its use in every text.
pub(crate) fn is_shown(c: char) -> bool {
    !c.is_control() && !is_format(c)
}

fn is_format(c: char) -> bool {
    is_mark(c)
        || matches!(c,
            '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Marks of direction, which running text in Hebrew or Arabic needs.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}')
}

/// A text for the screen: ends of lines and tabs as they are, what is not seen as `\u{202e}`.
pub(crate) fn visible(text: &str) -> String {
    shown_by(text, |c| is_shown(c) || matches!(c, '\n' | '\t'))
}

/// As [`visible`], for what a person or a model says at length: marks of direction stay.
pub(crate) fn visible_prose(text: &str) -> String {
    shown_by(text, |c| is_shown(c) || is_mark(c) || matches!(c, '\n' | '\t'))
}

fn shown_by(text: &str, shown: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            c if shown(c) => out.push(c),
            '\r' if chars.peek() == Some(&'\n') => {}
            c => out.extend(c.escape_unicode()),
        }
    }
    out
}

/// The same JSON with nothing in it that is not seen: JSON has a way of its own to write those characters.
pub(crate) fn visible_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if is_shown(c) || c == '\n' {
            out.push(c);
        } else {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_shown_by_its_number() {
        for (text, seen) in [
            ("a\tb\n\u{65e5}\u{672c} \u{1f468}\u{200d}\u{1f469}", "a\tb\n\u{65e5}\u{672c} \u{1f468}\u{200d}\u{1f469}"),
            ("a\r\nb\rc", "a\nb\\u{d}c"),
            ("\u{1b}[31m", "\\u{1b}[31m"),
            ("pay \u{202e}05\u{202c}", "pay \\u{202e}05\\u{202c}"),
            ("\u{200f}\u{200b}", "\\u{200f}\\u{200b}"),
        ] {
            assert_eq!(visible(text), seen);
        }
        assert_eq!(visible_prose("\u{200f}\u{200b}"), "\u{200f}\\u{200b}");
    }

    #[test]
    fn json_stays_the_same_value() {
        let value = serde_json::json!({"a\u{202e}": "\u{7f}\u{85}\u{e0041}\n \u{1f642}"});
        let seen = visible_json(&value.to_string());
        assert!(seen.chars().all(is_shown), "{seen}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&seen).ok(), Some(value));
    }
}
