//! Cleaning of notes, and the line that tells the model what was performed (`spec/channel.md`, 11 and 16).

use crate::record::{Entry, Status};
use crate::text::{collapse, cut_at_word, without_shapes};

/// A note's text as it is written: shapes of personal data replaced, control characters gone, white space collapsed, cut
/// at a word. Blank where nothing is left.
pub fn clean(text: &str, chars_max: u64) -> String {
    let spaced: String = text
        .chars()
        .filter(|c| !c.is_control() || c.is_whitespace())
        .filter(
            |c| !matches!(c, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}'),
        )
        .collect();
    let text = without_shapes(&spaced, "[removed]");
    cut_at_word(&collapse(&text), usize::try_from(chars_max).unwrap_or(usize::MAX)).to_owned()
}

/// The server's line for a turn of the history: performed actions alone, by id, events left out. None where there are none.
pub fn performed(entries: &[Entry]) -> Option<String> {
    let told: Vec<String> =
        entries.iter().filter(|it| it.status == Status::Performed && it.tool != "send_event").map(told).collect();
    (!told.is_empty()).then(|| format!("[actions performed: {}]", told.join(", ")))
}

fn told(entry: &Entry) -> String {
    match &entry.value {
        Some(value) => format!("{} {}={value}", entry.tool, entry.id),
        None => format!("{} {}", entry.tool, entry.id),
    }
}

/// An error's text without a note that it quotes (`spec/channel.md`, 16).
pub fn without_note(error: &str, note: &str) -> String {
    if note.is_empty() { error.to_owned() } else { error.replace(note, "[note]") }
}
