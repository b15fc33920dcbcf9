//! The rules of the house, as a library so that an ordinary `cargo test` can check them too, and a server for tests.

pub mod postgres;
pub mod tidy;
mod tree;

use std::ffi::OsString;
use std::path::PathBuf;

pub use tree::Tree;

/// The variable by which a group of `cargo xtask test` says that all is there that its tests ask for.
pub const GROUP: &str = "GESTA_TEST_GROUP";

/// A program or a server from outside that a test needs, by the variable that names it. `group` is the group of
/// `cargo xtask test` that sets it; everywhere else the test is not run, and this says so.
///
/// # Panics
/// The group itself runs and the variable is not set: no test passes there by not being run.
#[allow(clippy::print_stdout)] // Whoever looks at a test that was left out reads it.
pub fn outside(variable: &str, group: &str) -> Option<OsString> {
    let found = std::env::var_os(variable).filter(|it| !it.is_empty());
    if found.is_none() {
        let why = format!("not run: {variable} is not set; `cargo xtask test --only {group}` sets it");
        assert!(std::env::var_os(GROUP).is_none(), "{why}");
        println!("{why}");
    }
    found
}

/// The root of the workspace.
///
/// # Panics
/// Never: this crate lies one folder below the root.
pub fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask lies in the workspace's root").to_path_buf()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    /// Plays this test's program again, as a test that asks for something which is not there.
    fn asked(group: bool) -> bool {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "tests::a_test_that_asks"]).env("GESTA_TEST_ASKS", "yes").env_remove(super::GROUP);
        if group {
            again.env(super::GROUP, "others");
        }
        again.output().unwrap().status.success()
    }

    #[test]
    fn a_test_that_asks() {
        if std::env::var_os("GESTA_TEST_ASKS").is_some() {
            assert_eq!(super::outside("GESTA_TEST_NOTHING", "others"), None);
        }
    }

    #[test]
    fn what_is_missing_leaves_a_test_out_and_fails_it_in_its_own_group() {
        assert!(asked(false));
        assert!(!asked(true));
    }
}
