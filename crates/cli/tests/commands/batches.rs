//! The matrix of mixed batches on the file of a data folder.

#![cfg(unix)]

use crate::pairs::{Place, play};

#[test]
fn each_pair_of_decisions_answers_and_disturbances_on_sqlite() {
    play(&Place { database: None, lapse: &|_| {} });
}
