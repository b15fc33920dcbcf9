//! A data folder that is damaged, full or cannot be written, and an output that cannot be.

#![cfg(unix)]

use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::support::{Home, Said, example};

const REFUND: &str = "Refund order 7, 250 dollars";

/// Turns over every so many bytes of the database.
fn damage(home: &Home, from: usize, every: usize) {
    let path = home.path("gesta/gesta.db");
    let mut bytes = fs::read(&path).unwrap();
    bytes.iter_mut().skip(from).step_by(every).for_each(|byte| *byte ^= 0xff);
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_damaged_database_is_said_to_be_damaged_and_never_to_be_empty() {
    for (from, every) in [(4_096, 7), (4_096, 1), (100, 7)] {
        let home = Home::new();
        home.gesta(&["run", &example("desk"), REFUND]).ended(3);
        damage(&home, from, every);
        let before = fs::read(home.path("gesta/gesta.db")).unwrap();
        for words in [
            &["runs"][..],
            &["runs", "--status", "ended"],
            &["show", "last"],
            &["show", "01"],
            &["resume", "last", "--approve", "r1"],
            &["run", &example("desk"), "Hello"],
        ] {
            let said =
                home.gesta(words).ended(5).has(&["is damaged", "help: nothing was changed: move it away or restore"]);
            assert!(!said.err.contains("no run"), "{said:?}");
        }
        home.gesta(&["doctor", "--offline"]).ended(1).has(&["missing  store", "is damaged"]);
        assert_eq!(fs::read(home.path("gesta/gesta.db")).unwrap(), before, "{from}, {every}");
    }
}

#[test]
fn what_is_kept_in_a_folder_that_cannot_be_written_is_shown_all_the_same() {
    let home = Home::new();
    home.gesta(&["run", &example("desk"), REFUND]).ended(3);
    let folder = home.path("gesta");
    // Somebody else's folder; who may write everywhere, as tests in a container often may, writes there too.
    fs::remove_dir_all(folder.join("owners")).unwrap();
    let set = |mode| fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
    set(0o500);
    let free = fs::write(folder.join("probe"), "").is_ok();
    let listed = home.gesta(&["runs"]).ended(0).has(&["desk", "refund_order (r1)"]);
    let shown = home.gesta(&["show", "last"]).ended(0).has(&[REFUND]);
    let doctor = home.gesta(&["doctor", "--offline"]);
    let refused = home.gesta(&["resume", "last", "--approve", "r1"]);
    set(0o700);
    if free {
        return assert_eq!((doctor.code, refused.code), (Some(0), Some(0)), "{doctor:?}, {refused:?}");
    }
    assert!(listed.err.contains("only read: ") && shown.err.contains("only read: "), "{listed:?}");
    refused.ended(5).has(&["no permission for ", "--data"]);
    doctor.ended(1).has(&["missing  data folder", "no permission for", "ok       store"]);
}

#[test]
fn the_doctor_never_sends_anybody_to_itself() {
    let home = Home::new();
    home.write("taken", "");
    for data in ["taken", "taken/inner", "/proc/none"] {
        let said = home.gesta(&["doctor", "--offline", "--data", data]).ended(1).has(&["help: "]);
        assert!(!said.out.contains("gesta doctor"), "{said:?}");
    }
}

/// Runs the binary in a shell that lets no file grow beyond so many blocks, as a full disk would.
#[cfg(target_os = "linux")]
fn limited(home: &Home, blocks: u32, words: &[&str]) -> Said {
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    let gesta = home.command(words);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script]).arg(gesta.get_program()).args(gesta.get_args());
    for (name, value) in gesta.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.current_dir(home.path("")).output().unwrap().into()
}

#[cfg(target_os = "linux")]
#[test]
fn a_store_that_fails_in_the_middle_is_told_in_our_words_and_the_run_goes_on_later() {
    let mut failed = 0;
    for blocks in [8, 50, 70, 90, 110, 130] {
        let home = Home::new();
        home.gesta(&["run", &example("desk"), "Hello"]).ended(0);
        let said = limited(&home, blocks, &["run", &example("desk"), REFUND]);
        assert!(!said.err.contains("gesta_runtime") && !said.err.contains("ERROR"), "{said:?}");
        if said.code != Some(5) {
            continue;
        }
        failed += 1;
        assert!(!said.err.contains("--approve"), "nobody is to answer what may not be there: {said:?}");
        if said.err.contains("store_failed, ") {
            let said = said.has(&["ends: store_failed: ", "help: go on from here with `gesta resume "]);
            assert!(!said.err.contains("parked"), "{said:?}");
            home.gesta(&["resume", "last"]).ended(3).has(&["--approve r1"]);
        } else {
            said.has(&["error: ", "help: "]);
        }
        home.gesta(&["runs"]).ended(0).has(&["completed"]);
    }
    assert!(failed > 1, "{failed}");
}

/// Runs the binary with a standard output that takes nothing.
#[cfg(target_os = "linux")]
fn unwritten(home: &Home, words: &[&str]) -> Said {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    home.command(words).stdout(full).output().unwrap().into()
}

#[cfg(target_os = "linux")]
#[test]
fn an_output_that_cannot_be_written_is_told_and_has_its_exit_code() {
    let home = Home::new();
    let coach = example("coach");
    home.gesta(&["run", &coach, "Hello"]).ended(0);
    for words in [
        &["run", &coach, "Hello", "--json"][..],
        &["run", &coach, "Hello"],
        &["runs"],
        &["runs", "--json"],
        &["show", "last"],
        &["show", "last", "--scene"],
        &["show", "last", "--json"],
        &["schema"],
        &["--help"],
        &["--version"],
        &["run", "--help"],
        &["check", &coach],
        &["test", &coach],
        &["run", &example("desk"), REFUND, "--json"],
    ] {
        unwritten(&home, words).ended(6).has(&["error: standard output cannot be written: ", "help: "]);
    }
    assert_eq!(home.result("last")["status"], json!("parked"), "what was asked was done");
    // Where something else is wrong, that is what counts.
    unwritten(&home, &["show", "none"]).ended(2);
    unwritten(&home, &["run", "-q", &example("desk"), REFUND]).ended(3);
}
