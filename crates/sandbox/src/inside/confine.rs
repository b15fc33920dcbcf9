//! The walls, raised by the worker around itself before it reads a word (`spec/durability.md`, 6.4).

#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod linux;

use std::io;

use super::Open;

/// Walls this process in and serves over its standard input and output.
///
/// # Errors
/// The walls could not be raised, which the parent has been told, or the pipes broke.
#[cfg(target_os = "linux")]
pub(super) fn enter(open: Open) -> io::Result<()> {
    linux::enter(open)
}

/// Refuses: there are no walls here.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub(super) fn enter(_open: Open) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "documents need Linux"))
}
