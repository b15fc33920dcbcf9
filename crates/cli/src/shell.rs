//! Words as a shell takes them: what is printed to be pasted runs the program that it names and nothing else.

use std::ffi::OsStr;

use crate::visible::is_shown;

/// A word that any POSIX shell reads as this very word, whatever stands in it: a path, an argument, an id.
///
/// A word that nobody sees as it is, because it holds characters that steer a terminal or is no UTF-8, is put together
/// by `printf` from its bytes, so that the line can be read and copied. Only line ends at its very end stay line ends:
/// the shell would take them away.
pub(crate) fn quoted(word: impl AsRef<OsStr>) -> String {
    let bytes = word.as_ref().as_encoded_bytes();
    match std::str::from_utf8(bytes) {
        Ok(text) if is_plain(text) => text.to_owned(),
        Ok(text) if text.chars().all(is_shown) => single(text),
        _ => printed(bytes),
    }
}

/// No shell takes any of these characters for something else, wherever in a word they stand.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+:@%,".contains(c))
}

fn single(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn printed(bytes: &[u8]) -> String {
    let ends = bytes.iter().rev().take_while(|byte| **byte == b'\n').count();
    let (body, ends) = bytes.split_at(bytes.len() - ends);
    let mut out = String::from("\"$(printf '");
    for chunk in body.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '%' => out.push_str("%%"),
                '\\' => out.push_str("\\\\"),
                '\'' | '-' => out.push_str(&octal(c as u8)),
                c if is_shown(c) => out.push(c),
                c => c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| out.push_str(&octal(byte))),
            }
        }
        chunk.invalid().iter().for_each(|byte| out.push_str(&octal(*byte)));
    }
    out.push_str("')\"");
    if !ends.is_empty() {
        out.push_str(&format!("'{}'", "\n".repeat(ends.len())));
    }
    out
}

fn octal(byte: u8) -> String {
    format!("\\{byte:03o}")
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::process::Command;

    use super::*;

    /// What the shell makes of it.
    fn read_by_sh(word: &str) -> Vec<u8> {
        let said = Command::new("sh").args(["-c", &format!("printf %s {word}")]).output().expect("there is a shell");
        assert!(said.status.success(), "{word}");
        said.stdout
    }

    #[test]
    fn a_shell_reads_every_word_as_it_was() {
        let long = "x'$(id)".repeat(1_000);
        let words: [&[u8]; 18] = [
            b"plain",
            b"",
            b"two words",
            b"it's",
            b"$(touch pwned);x `id` ${IFS} \"$HOME\"",
            b"a\nb",
            b"a\n\n",
            b"\n",
            b"-rf",
            b"a\\nb%s\\",
            b"\x1b]0;title\x07\r",
            "a\u{202e}b\u{2066}".as_bytes(),
            "\u{65e5}\u{672c} 'x'\u{85}".as_bytes(),
            b"not utf-8 \xff\xfe'",
            b"~/x",
            b"=ls",
            b"!x #y &",
            long.as_bytes(),
        ];
        for word in words {
            let written = quoted(OsStr::from_bytes(word));
            assert_eq!(read_by_sh(&written), word, "{written}");
            let body = written.trim_end_matches(['\n', '\'']);
            assert!(body.chars().all(is_shown), "{written:?}");
        }
        assert_eq!(quoted("/a/b-c.d"), "/a/b-c.d");
        let odd = std::ffi::OsString::from_vec(b"a\xff".to_vec());
        assert_eq!(quoted(odd), "\"$(printf 'a\\377')\"");
    }
}
