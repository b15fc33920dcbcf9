//! `cargo xtask`: the chores of the house.

fn main() {}
