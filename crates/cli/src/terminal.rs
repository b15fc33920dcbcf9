//! Where text goes: colours on a terminal alone, its width, and no noise when the reader has gone.

use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthChar;

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
/// The narrowest terminal that lines are cut for.
const COLUMNS_MIN: usize = 20;

/// One of the two outputs of the process.
pub(crate) struct Screen {
    out: Box<dyn Write>,
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
        Self::new(Box::new(out), io::stdout().is_terminal(), columns)
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
        Self { out, colour: terminal && !set("NO_COLOR") && !dumb, columns, begun: false, gone: false }
    }

    /// Writes a text as it comes, without an end of line. Control characters that could steer a terminal are left out.
    pub(crate) fn text(&mut self, look: Look, text: &str) {
        let clean: String = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
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

    /// A write that fails because nobody reads any more is no failure; the work goes on. Nor is there anywhere to tell
    /// of another one.
    fn took(&mut self, written: io::Result<()>) {
        if written.is_err() && !self.gone {
            self.gone = true;
            self.out = Box::new(io::sink());
        }
    }

    /// One line of a text that may be long: cut to the width of the terminal, with `used` columns taken already.
    pub(crate) fn fit(&self, text: &str, used: usize) -> String {
        let room = self.columns.map_or(LINE_CHARS_MAX, |columns| columns.saturating_sub(used).max(COLUMNS_MIN / 2));
        cut(text, room)
    }
}

/// The text on one line, in at most so many columns.
pub(crate) fn cut(text: &str, columns_max: usize) -> String {
    let (mut out, mut used) = (String::new(), 0);
    let mut chars = text.trim().chars().peekable();
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
            ("a\nb\u{1b}[31m", 9, "a b [31m"),
            ("日本語", 5, "日本…"),
            ("", 3, ""),
        ] {
            assert_eq!(cut(text, columns), expected);
        }
    }
}
