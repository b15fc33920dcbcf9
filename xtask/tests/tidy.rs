//! Each rule of tidy finds what it is there for. That the house itself is tidy is tested in `crates/gesta/tests/house.rs`.

use xtask::{Tree, tidy};

/// What tidy says about these files, a line each.
fn said(files: &[(&str, &str)]) -> String {
    let findings = tidy::check(&Tree::of(files));
    findings.iter().map(|it| format!("{it}\n")).collect()
}

fn crate_of(name: &str, dependencies: &str) -> String {
    format!("[package]\nname = \"gesta-{name}\"\n[dependencies]\n{dependencies}\n[lints]\nworkspace = true\n")
}

#[test]
fn a_good_file_gives_no_finding() {
    assert_eq!(said(&[("crates/run/src/good.rs", "//! Good.\n\nfn short() {}\n")]), "");
}

#[test]
fn a_long_file_is_found() {
    let text = format!("//! Long.\n{}", "const _: () = ();\n".repeat(500));
    assert!(said(&[("a.rs", &text)]).contains("501 lines; a file has at most 500"));
    let text = format!("//! Long.\n{}", "const _: () = ();\n".repeat(499));
    assert_eq!(said(&[("a.rs", &text)]), "");
}

#[test]
fn a_long_function_is_found_wherever_it_stands() {
    for (before, after) in [("", ""), ("impl A {\n", "\n}"), ("mod inner {\n", "\n}"), ("fn outer() {\n", "\n}")] {
        let text = format!("//! Long.\n{before}fn slow() {{\n{}}}{after}\n", "    let _ = \"}\";\n".repeat(69));
        assert!(said(&[("a.rs", &text)]).contains("`slow` has 71 lines"), "{before}");
        let text = format!("//! Long.\nfn slow() {{\n{}}}\n", "    let _ = \"}\";\n".repeat(68));
        assert_eq!(said(&[("a.rs", &text)]), "");
    }
}

#[test]
fn a_file_without_a_header_is_found() {
    assert!(said(&[("a.rs", "fn f() {}\n")]).starts_with("a.rs:1: begin with a `//!` header"));
}

#[test]
fn ignored_tests_and_unfinished_code_are_found() {
    for word in [concat!("#[", "ignore]\nfn f() {}"), concat!("fn f() { to", "do!() }")] {
        let found = said(&[("a.rs", &format!("//! A.\n{word}\n"))]);
        assert!(found.contains("a.rs:2: ") && found.contains("nothing ignored or unfinished"), "{found}");
    }
}

#[test]
fn a_name_that_says_nothing_is_found() {
    assert!(said(&[("a.rs", "//! A.\n\nstruct ToolManager;\n")]).contains("a.rs:3: `ToolManager`"));
    assert!(said(&[("a.rs", "//! A.\n\nenum RunService {}\n")]).contains("`Service` says nothing"));
}

#[test]
fn a_file_that_does_not_parse_is_found() {
    assert!(said(&[("a.rs", "//! A.\nfn (\n")]).contains("does not parse"));
}

#[test]
fn arrows_between_crates_only_point_upwards() {
    let down = crate_of("store", "gesta-runtime.workspace = true");
    assert!(said(&[("crates/store/Cargo.toml", &down)]).contains("`store` may not use `gesta-runtime`"));
    let facade = crate_of("cli", "gesta.workspace = true");
    assert!(said(&[("crates/cli/Cargo.toml", &facade)]).contains("`cli` may not use `gesta`"));
    let up = crate_of("runtime", "gesta-store.workspace = true\n[dev-dependencies]\ngesta-cli.workspace = true");
    assert_eq!(said(&[("crates/runtime/Cargo.toml", &up)]), "");
    let stranger = crate_of("stranger", "");
    assert!(said(&[("crates/stranger/Cargo.toml", &stranger)]).contains("has no place in the order"));
}

#[test]
fn only_the_sandbox_may_leave_the_lints_that_forbid_unsafe() {
    let own = crate_of("model", "").replace("workspace = true\n", "[lints.rust]\nunsafe_code = \"allow\"\n");
    assert!(said(&[("crates/model/Cargo.toml", &own)]).contains("`unsafe` is for `sandbox` alone"));
    let own = own.replace("model", "sandbox");
    assert_eq!(said(&[("crates/sandbox/Cargo.toml", &own)]), "");
}

#[test]
fn a_power_stays_with_the_crate_that_holds_it() {
    let sql = crate_of("runtime", "rusqlite.workspace = true");
    assert!(said(&[("crates/runtime/Cargo.toml", &sql)]).contains("it is for: store"));
    let calls = crate_of("model", "[target.'cfg(unix)'.dependencies]\nlibc.workspace = true");
    assert!(said(&[("crates/model/Cargo.toml", &calls)]).contains("`libc` is not for `model`; it is for: sandbox"));
    let clock = crate_of("run", "jiff.workspace = true");
    assert!(said(&[("crates/run/Cargo.toml", &clock)]).contains("`run` is pure"));
}

#[test]
fn a_version_stands_in_the_workspace_and_has_a_reason() {
    let own = crate_of("run", "regex = \"1\"");
    assert!(said(&[("crates/run/Cargo.toml", &own)]).contains("belongs into the workspace's manifest"));
    let workspace = ("Cargo.toml", "[workspace.dependencies]\nregex = \"1\"\ngesta-run = { path = \"crates/run\" }\n");
    assert!(said(&[workspace]).contains("`regex` has no line with its reason"));
    let reasons = "docs/decisions/0002-dependencies.md";
    assert_eq!(said(&[workspace, (reasons, "# Why\n\n| `regex` | MIT | patterns |\n")]), "");
    let stale = said(&[workspace, (reasons, "\n| `regex` | MIT | patterns |\n| `rand` | MIT | dice |\n")]);
    assert!(stale.contains("`rand` is no dependency"), "{stale}");
}

#[test]
fn a_glossary_names_what_is_in_the_code() {
    let code = ("a.rs", "//! A.\n\nstruct Run;\nfn feed() {}\n");
    assert_eq!(said(&[code, ("GLOSSARY.md", "| run | what runs | `Run::feed`, `a.rs` |\n")]), "");
    let found = said(&[code, ("GLOSSARY.md", "| run | what runs | `Run::eat`, `b.rs` |\n")]);
    assert!(found.contains("`Run::eat`") && found.contains("`b.rs`"), "{found}");
}

#[test]
fn a_link_leads_somewhere() {
    let found = said(&[("docs/a.md", "[up](../README.md#use) [gone](./gone.md)"), ("README.md", "[docs](docs/)")]);
    assert_eq!(found, "docs/a.md:1: links to `./gone.md`, which is not there\n");
}

#[test]
fn a_place_on_one_machine_is_found() {
    let home = concat!("/ho", "me/ann/gesta");
    assert!(said(&[("a.md", &format!("see {home}\n"))]).contains("a place on one machine"));
    assert_eq!(said(&[("a.md", &format!("see https://example.com{home}\n"))]), "");
    let lock = "source = \"sparse+https://mirror.example/index/\"\n";
    assert!(said(&[("Cargo.lock", lock)]).contains("Cargo.lock:1: a dependency from elsewhere"));
}
