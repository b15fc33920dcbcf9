//! What a person types, line by line: an editor with history on a terminal, plain lines from a pipe.

use std::io::{self, BufRead, IsTerminal, Read};
use std::path::PathBuf;
use std::sync::mpsc;

use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use tokio::sync::oneshot;

use crate::signals::{Signal, Signals};

/// The longest line, and the longest input from a pipe, in bytes.
pub(crate) const INPUT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What editors of other systems put in front of UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What came of asking for a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Typed {
    /// A line, without its end.
    Line(String),
    /// Ctrl-C.
    Interrupted,
    /// Nothing more will come.
    End,
    /// What was typed is no text; more can be read.
    Unusable(String),
    /// Nothing can be read.
    Failed(String),
}

struct Question {
    prompt: String,
    /// The line goes into the history.
    remember: bool,
    answer: oneshot::Sender<Typed>,
}

/// Reads lines on a thread of its own, so that nobody waits for a person inside the runtime.
pub(crate) struct Lines {
    ask: mpsc::Sender<Question>,
    /// A person types.
    pub(crate) interactive: bool,
}

impl Lines {
    /// Reads standard input; on a terminal with the history in this file.
    pub(crate) fn of_stdin(history: PathBuf) -> Self {
        let interactive = io::stdin().is_terminal() && io::stdout().is_terminal();
        let (ask, questions) = mpsc::channel::<Question>();
        std::thread::spawn(
            move || {
                if interactive { from_terminal(&questions, &history) } else { from_pipe(&questions) }
            },
        );
        Self { ask, interactive }
    }

    /// Asks for a line.
    pub(crate) async fn read(&self, prompt: &str, remember: bool) -> Typed {
        let (answer, typed) = oneshot::channel();
        let question = Question { prompt: prompt.to_owned(), remember, answer };
        if self.ask.send(question).is_err() {
            return Typed::End;
        }
        tokio::pin!(typed);
        let mut signals = Signals::listen();
        loop {
            tokio::select! {
                typed = &mut typed => return typed.unwrap_or(Typed::End),
                signal = signals.next() => match signal {
                    // An editor takes Ctrl-C as a key; from a pipe it is the signal that counts.
                    Signal::Interrupt if self.interactive => {}
                    Signal::Interrupt => return Typed::Interrupted,
                    Signal::End => return Typed::End,
                },
            }
        }
    }
}

fn from_terminal(questions: &mpsc::Receiver<Question>, history: &PathBuf) {
    let mut editor = match DefaultEditor::new() {
        Ok(editor) => editor,
        Err(_) => return from_pipe(questions),
    };
    // A history that is not there yet, or cannot be read, is an empty one.
    let _ = editor.load_history(history);
    while let Ok(question) = questions.recv() {
        let typed = match editor.readline(&question.prompt) {
            Ok(line) => {
                if question.remember && !line.trim().is_empty() {
                    let _ = editor.add_history_entry(line.as_str());
                    let _ = editor.save_history(history);
                }
                Typed::Line(line)
            }
            Err(ReadlineError::Interrupted) => Typed::Interrupted,
            Err(ReadlineError::Eof) => Typed::End,
            Err(ReadlineError::Io(why)) if why.kind() == io::ErrorKind::InvalidData => refused(&mut editor),
            Err(why) => Typed::Failed(why.to_string()),
        };
        if question.answer.send(typed).is_err() {
            return;
        }
    }
}

/// A key that is no UTF-8 stops the editor in the middle of a line: what is still typed of it is no line of its own.
fn refused(editor: &mut DefaultEditor) -> Typed {
    while let Err(ReadlineError::Io(why)) = editor.readline("  not UTF-8: press Enter, and type it anew ") {
        if why.kind() != io::ErrorKind::InvalidData {
            return Typed::Failed(why.to_string());
        }
    }
    Typed::Unusable(NOT_UTF8.to_owned())
}

const NOT_UTF8: &str = "a line is not UTF-8";

fn from_pipe(questions: &mpsc::Receiver<Question>) {
    let mut stdin = io::stdin().lock();
    while let Ok(question) = questions.recv() {
        let typed = read_line(&mut stdin);
        if question.answer.send(typed).is_err() {
            return;
        }
    }
}

fn read_line(from: &mut impl BufRead) -> Typed {
    let mut bytes = Vec::new();
    match from.take(INPUT_BYTES_MAX + 1).read_until(b'\n', &mut bytes) {
        Ok(0) => Typed::End,
        Ok(_) if bytes.len() as u64 > INPUT_BYTES_MAX => {
            Typed::Failed(format!("a line is longer than {INPUT_BYTES_MAX} bytes"))
        }
        Ok(_) => match String::from_utf8(bytes) {
            Ok(line) => Typed::Line(line.trim_end_matches(['\n', '\r']).to_owned()),
            Err(_) => Typed::Unusable(NOT_UTF8.to_owned()),
        },
        Err(why) => Typed::Failed(why.to_string()),
    }
}

/// All that a pipe holds, without a byte order mark at its beginning.
///
/// # Errors
/// It cannot be read, is too long, or is not UTF-8; with the way out.
pub(crate) fn whole_stdin() -> Result<String, (String, &'static str)> {
    let mut bytes = Vec::new();
    let read = io::stdin().lock().take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|why| (why.to_string(), "pipe a text into it"))?;
    if bytes.len() as u64 > INPUT_BYTES_MAX {
        return Err((format!("it is longer than {INPUT_BYTES_MAX} bytes"), "send less, or a part of it"));
    }
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    String::from_utf8(bytes).map_err(|_| ("it is not UTF-8".to_owned(), "convert it to UTF-8, or add it with --file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_one_by_one_and_what_is_no_text_is_said() {
        let mut from = io::Cursor::new(b"a\r\n\n\xc3\xa4 b\n\xff\nlast".to_vec());
        let typed: Vec<Typed> = std::iter::repeat_with(|| read_line(&mut from)).take(6).collect();
        let line = |text: &str| Typed::Line(text.to_owned());
        let bad = Typed::Unusable(NOT_UTF8.to_owned());
        assert_eq!(typed, [line("a"), line(""), line("ä b"), bad, line("last"), Typed::End]);
    }
}
