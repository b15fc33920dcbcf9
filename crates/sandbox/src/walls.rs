//! Which walls stand around a worker: told by the worker itself once it has started, printed by the parent at boot.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One thing that keeps a worker from the world (`spec/durability.md`, 6.4, layers 3 and 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Wall {
    /// An empty environment, a process group of its own, no descriptor but the pipes to the parent.
    Bare,
    /// The kernel kills it when its parent dies.
    DiesWithParent,
    /// No new privileges, and no capabilities even where the parent is root.
    NoPrivileges,
    /// Others of the same user cannot read or trace it.
    NotDumpable,
    /// Limits of the kernel: address space, stack, CPU time, no files, no core dump, no processes.
    Limits,
    /// Landlock with no rule: no file, no TCP port, no signal or abstract socket beyond it.
    Landlock,
    /// A list of allowed system calls; every other fails.
    Seccomp,
}

impl Wall {
    const ALL: [Self; 7] = [
        Self::Bare,
        Self::DiesWithParent,
        Self::NoPrivileges,
        Self::NotDumpable,
        Self::Limits,
        Self::Landlock,
        Self::Seccomp,
    ];
}

impl fmt::Display for Wall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bare => "bare start",
            Self::DiesWithParent => "dies with its parent",
            Self::NoPrivileges => "no privileges",
            Self::NotDumpable => "not dumpable",
            Self::Limits => "limits",
            Self::Landlock => "Landlock",
            Self::Seccomp => "seccomp",
        })
    }
}

/// The walls of a worker: which are in force, which the kernel lacks, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Walls {
    /// In force.
    pub standing: Vec<Wall>,
    /// Not in force, each with its reason.
    pub missing: Vec<(Wall, String)>,
}

impl Walls {
    /// No wall at all, for this reason.
    pub(crate) fn none(why: &str) -> Self {
        let missing = Wall::ALL.map(|wall| (wall, why.to_owned()));
        Self { standing: Vec::new(), missing: missing.to_vec() }
    }

    /// Whether every wall stands.
    pub fn are_whole(&self) -> bool {
        self.missing.is_empty()
    }
}

impl fmt::Display for Walls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (true, Some((_, why))) = (self.standing.is_empty(), self.missing.first()) {
            return write!(f, "none: {why}");
        }
        for (at, wall) in self.standing.iter().enumerate() {
            write!(f, "{}{wall}", if at > 0 { ", " } else { "" })?;
        }
        for (wall, why) in &self.missing {
            write!(f, "; without {wall}: {why}")?;
        }
        Ok(())
    }
}

/// What to do where the kernel lacks a wall (`sandbox` in `agent.toml`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Demand {
    /// Start with those that there are, and say so.
    #[default]
    Available,
    /// Refuse to start.
    Required,
}

/// What a worker's process uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Memory now, in bytes.
    pub resident_bytes: u64,
    /// The most it has ever had, in bytes; 0 where the system does not say.
    pub peak_bytes: u64,
    /// CPU time since it started, in microseconds.
    pub cpu_us: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walls_are_told_in_one_line() {
        let walls = Walls {
            standing: vec![Wall::Limits, Wall::Seccomp],
            missing: vec![(Wall::Landlock, "the kernel has none".to_owned())],
        };
        assert_eq!(walls.to_string(), "limits, seccomp; without Landlock: the kernel has none");
        assert!(!walls.are_whole());
    }
}
