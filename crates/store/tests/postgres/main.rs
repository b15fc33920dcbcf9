//! What only a server can do to a store: be shared by processes, be made anew by several at once, break in the middle.
//!
//! `cargo xtask test --only postgres` sets up what `GESTA_TEST_POSTGRES` and `GESTA_TEST_POSTGRES_BIN` name.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that can't go on is to stop where it stands")]

mod addresses;
mod broken;
mod form;
mod processes;
mod server;
mod together;
