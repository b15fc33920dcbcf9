//! The console in a real browser, before the program as people start it. Needs `GESTA_CHROMEDRIVER`, and for the
//! checks of accessibility `GESTA_AXE`: `cargo xtask test --only browser` sets both up.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that can't go on is to stop where it stands")]

mod answers;
mod chat;
mod keyboard;
mod keys;
mod live;
mod pages;
mod world;
