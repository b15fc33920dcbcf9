//! A copy of everything that is kept, and back again.

use std::fs;

use crate::support::{Home, example};

const REFUND: &str = "Refund order 7, 250 dollars";

#[test]
fn a_parked_run_is_approved_from_a_copy_that_was_put_back() {
    let home = Home::new();
    home.gesta(&["run", &example("desk"), REFUND]).ended(3);
    let (copy, data) = (home.path("copy"), home.path("gesta"));
    let copy = copy.to_str().unwrap();
    home.gesta(&["backup", copy]).ended(0).has(&["1 run and 0 conversations", "gesta runs --data"]);
    home.gesta(&["runs", "--data", copy]).ended(0).has(&["parked"]);
    home.gesta(&["backup", copy]).ended(2).has(&["is there already"]);

    home.gesta(&["restore", copy]).ended(2).has(&["is there already", "--replace"]);
    home.gesta(&["restore", copy, "--replace"]).ended(0).has(&["what was there lies in"]);
    fs::remove_dir_all(&data).unwrap();
    home.gesta(&["restore", copy]).ended(0).has(&["1 run"]);
    home.gesta(&["resume", "last", "--approve", "r1"]).ended(0);
    home.gesta(&["runs", "--data", copy]).ended(0).has(&["parked"]);
}

#[test]
fn what_cannot_be_copied_is_named() {
    let home = Home::new();
    home.gesta(&["backup", "copy"]).ended(2).has(&["gesta holds no store", "help: nothing was kept there yet"]);
    home.gesta(&["restore", "nowhere"]).ended(2).has(&["nowhere holds no store"]);
    fs::write(home.path("file"), "hello").unwrap();
    home.gesta(&["run", &example("coach"), "Hello"]).ended(0);
    home.gesta(&["backup", home.path("file").to_str().unwrap()]).ended(5).has(&["file", "folder"]);
}
