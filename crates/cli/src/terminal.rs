//! Where text goes: colours on a terminal alone, its width, and no noise when the reader has gone.

use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthChar;

use crate::visible::{visible, visible_json, visible_prose};

/// How a text is to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// As it is.
    Plain,
    /// Beside the matter.
    Faint,
    /// A heading, or who speaks.
    Strong,
    /// Something was done.
    Good,
    /// Something to look at.
    Warn,
    /// Something failed.
    Bad,
}

impl Look {
    fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Faint => Style::new().dimmed(),
            Self::Strong => Style::new().bold(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Warn => AnsiColor::Yellow.on_default(),
            Self::Bad => AnsiColor::Red.on_default(),
        }
    }
}

/// How many characters a line may have where no terminal limits it.
const LINE_CHARS_MAX: usize = 4_000;
/// How much of a line is left at least: on a narrower terminal it takes several rows, and says what it has to say.
const COLUMNS_MIN: usize = 72;

/// Why standard output could not be written, where it could not.
static LOST: OnceLock<String> = OnceLock::new();

/// Why something that was to stand on standard output does not. A reader that has gone wanted no more, and is no reason.
pub(crate) fn lost() -> Option<&'static str> {
    if let Err(why) = io::stdout().flush() {
        lose(&why);
    }
    LOST.get().map(String::as_str)
}

fn lose(why: &io::Error) {
    if why.kind() != io::ErrorKind::BrokenPipe {
        // The first reason is the one that is told.
        let _ = LOST.set(why.to_string());
    }
}

/// One of the two outputs of the process.
pub(crate) struct Screen {
    out: Box<dyn Write>,
    /// It is standard output, which others rely on.
    relied_on: bool,
    /// Where it is no terminal, what is said at length is written as it is.
    verbatim: bool,
    terminal: bool,
    colour: bool,
    columns: Option<usize>,
    /// Text stands on the present line.
    begun: bool,
    /// The reader has gone: what is written from now on is dropped.
    gone: bool,
}

impl Screen {
    /// Standard output.
    pub(crate) fn stdout() -> Self {
        let out = io::stdout();
        let columns = terminal_size::terminal_size_of(&out);
        Self { relied_on: true, ..Self::new(Box::new(out), io::stdout().is_terminal(), columns) }
    }

    /// Standard error.
    pub(crate) fn stderr() -> Self {
        let out = io::stderr();
        let columns = terminal_size::terminal_size_of(&out);
        Self::new(Box::new(out), io::stderr().is_terminal(), columns)
    }

    /// Nowhere: for `-q`.
    pub(crate) fn nowhere() -> Self {
        Self::new(Box::new(io::sink()), false, None)
    }

    fn new(out: Box<dyn Write>, terminal: bool, size: Option<(terminal_size::Width, terminal_size::Height)>) -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let columns = size.map(|(width, _)| usize::from(width.0).max(COLUMNS_MIN)).filter(|_| terminal);
        let colour = terminal && !set("NO_COLOR") && !dumb;
        Self { out, relied_on: false, verbatim: false, terminal, colour, columns, begun: false, gone: false }
    }

    /// For programs that read what is said: as it is, where it goes to no terminal.
    #[must_use]
    pub(crate) fn verbatim(mut self) -> Self {
        self.verbatim = !self.terminal;
        self
    }

    /// Writes a text as it comes, without an end of line. What nobody would see, and what could steer a terminal, is
    /// shown by its number.
    pub(crate) fn text(&mut self, look: Look, text: &str) {
        self.write(look, &visible(text));
    }

    /// As [`Screen::text`], for what is said at length: marks of direction stay as they are.
    pub(crate) fn prose(&mut self, look: Look, text: &str) {
        if self.verbatim {
            self.write(look, text);
        } else {
            self.write(look, &visible_prose(text));
        }
    }

    /// Writes a line for programs and files: as it is, except on a terminal.
    pub(crate) fn data(&mut self, text: &str) {
        self.end_line();
        if self.terminal {
            self.text(Look::Plain, text);
        } else {
            self.write(Look::Plain, text);
        }
        if !text.ends_with('\n') {
            self.write(Look::Plain, "\n");
        }
        self.end_line();
    }

    /// Writes a value as JSON on one line, with nothing in it that is not seen.
    pub(crate) fn json(&mut self, value: &impl serde::Serialize) {
        self.data(&visible_json(&serde_json::to_string(value).unwrap_or_default()));
    }

    fn write(&mut self, look: Look, clean: &str) {
        if clean.is_empty() {
            return;
        }
        self.begun = !clean.ends_with('\n');
        let style = look.style();
        let painted = self.colour && look != Look::Plain;
        let written =
            if painted { write!(self.out, "{style}{clean}{style:#}") } else { self.out.write_all(clean.as_bytes()) };
        self.took(written);
    }

    /// Writes a whole line, on a line of its own.
    pub(crate) fn line(&mut self, look: Look, text: &str) {
        self.end_line();
        self.text(look, text);
        self.text(Look::Plain, "\n");
        self.begun = false;
    }

    /// Writes a whole line of what is said at length.
    pub(crate) fn prose_line(&mut self, text: &str) {
        self.end_line();
        self.prose(Look::Plain, text);
        self.write(Look::Plain, "\n");
        self.begun = false;
    }

    /// Ends the present line with this text.
    pub(crate) fn line_on(&mut self, text: &str) {
        self.text(Look::Plain, text);
        self.end_line();
    }

    /// Ends the present line, where something stands on it.
    pub(crate) fn end_line(&mut self) {
        if self.begun {
            self.text(Look::Plain, "\n");
        }
        self.begun = false;
        let flushed = self.out.flush();
        self.took(flushed);
    }

    /// Shows what was written so far.
    pub(crate) fn flush(&mut self) {
        let flushed = self.out.flush();
        self.took(flushed);
    }

    /// A write that fails stops no work; what was lost on standard output is told at the end of the command.
    fn took(&mut self, written: io::Result<()>) {
        let Err(why) = written else { return };
        if self.relied_on {
            lose(&why);
        }
        if !self.gone {
            self.gone = true;
            self.out = Box::new(io::sink());
        }
    }

    /// One line of a text that may be long: cut to the width of the terminal, with `used` columns taken already.
    pub(crate) fn fit(&self, text: &str, used: usize) -> String {
        let room = self.columns.map_or(LINE_CHARS_MAX, |columns| columns.saturating_sub(used));
        cut(text, room)
    }
}

/// The text on one line, in at most so many columns.
pub(crate) fn cut(text: &str, columns_max: usize) -> String {
    let (mut out, mut used) = (String::new(), 0);
    let text = visible(text.trim());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let c = if c.is_control() { ' ' } else { c };
        let width = c.width().unwrap_or(0);
        let reserve = usize::from(chars.peek().is_some());
        if used + width + reserve > columns_max {
            out.push('…');
            break;
        }
        used += width;
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn a_long_text_is_cut_to_its_columns_and_stays_on_one_line() {
        for (text, columns, expected) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("a\nb\u{1b}[31m", 14, "a b\\u{1b}[31m"),
            ("日本語", 5, "日本…"),
            ("", 3, ""),
        ] {
            assert_eq!(cut(text, columns), expected);
        }
    }
}
