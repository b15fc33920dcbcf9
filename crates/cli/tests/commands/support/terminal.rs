//! The binary at a terminal, with somebody who reads and types.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::Home;

/// How long something that must come is waited for.
const WAIT: Duration = Duration::from_secs(60);

/// A terminal of which we are the screen and the keyboard.
pub(crate) struct Terminal {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    /// What was shown and not yet looked for.
    shown: String,
    /// All that was ever shown.
    all: String,
}

impl Terminal {
    /// Starts the binary on a terminal of this width.
    pub(crate) fn start(home: &Home, words: &[&str], columns: u16) -> Self {
        Self::start_with(home, words, columns, &[])
    }

    /// The same, with these variables.
    pub(crate) fn start_with(home: &Home, words: &[&str], columns: u16, variables: &[(&str, &str)]) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        tcsetwinsize(&ours, Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let not_ours = i32::try_from(OpenptFlags::NOCTTY.bits()).unwrap();
        let path = std::ffi::OsStr::from_bytes(name.as_bytes());
        let theirs = OpenOptions::new().read(true).write(true).custom_flags(not_ours).open(path).unwrap();
        let end = || Stdio::from(theirs.try_clone().unwrap());
        let mut command = home.command(words);
        let child = command
            .env("TERM", "xterm")
            .envs(variables.iter().copied())
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        drop(command);
        let keyboard = File::from(ours);
        let mut from = keyboard.try_clone().unwrap();
        let (send, screen) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The screen ends with an error when nobody has the other end any more.
            while let Ok(n @ 1..) = from.read(&mut bytes) {
                if send.send(bytes[..n].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, keyboard, screen, shown: String::new(), all: String::new() }
    }

    /// Waits until this is shown, and goes on behind it.
    #[track_caller]
    pub(crate) fn until(&mut self, text: &str) -> &mut Self {
        loop {
            if let Some(at) = self.shown.find(text) {
                self.shown.drain(..at + text.len());
                return self;
            }
            match self.screen.recv_timeout(WAIT) {
                Ok(bytes) => self.take(&bytes),
                Err(_) => panic!("`{text}` is not shown: {}", self.all),
            }
        }
    }

    /// Types a line.
    pub(crate) fn line(&mut self, text: &str) -> &mut Self {
        self.keyboard.write_all(format!("{text}\r").as_bytes()).unwrap();
        self
    }

    /// Presses a key.
    pub(crate) fn key(&mut self, byte: u8) -> &mut Self {
        self.keyboard.write_all(&[byte]).unwrap();
        self
    }

    /// Waits for the end: its exit code, and all that was shown.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        while let Ok(bytes) = self.screen.recv_timeout(WAIT) {
            self.take(&bytes);
        }
        (code, std::mem::take(&mut self.all))
    }

    fn take(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        self.shown.push_str(&text);
        self.all.push_str(&text);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
