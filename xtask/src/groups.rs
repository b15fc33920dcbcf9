//! The groups of the test command: what each is for and how it is run.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::shell::{self, Count, command};
use crate::tools;

/// One group of checks.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// It depends on something outside that may be out of reach: not an error even in strict runs.
    pub(crate) optional: bool,
    pub(crate) run: fn(verbose: bool) -> Result<Count, String>,
}

const fn group(name: &'static str, what: &'static str, run: fn(bool) -> Result<Count, String>) -> Group {
    Group { name, what, optional: false, run }
}

/// All groups, cheapest first, so that a mistake shows early.
pub(crate) const GROUPS: [Group; 17] = [
    group("fmt", "the sources are formatted", |v| Ok(shell::run(&mut command("cargo fmt --all --check"), v))),
    group("tidy", "sizes, headers, arrows, words, links, places", tidy),
    group("lint", "clippy without a warning", |v| {
        Ok(shell::run(&mut command("cargo clippy --workspace --all-targets --quiet -- -D warnings"), v))
    }),
    group("test", "unit and integration tests of every crate", |v| {
        let mut cargo = command("cargo test --workspace --lib --bins --tests --examples --no-fail-fast");
        // The simulation has a group of its own.
        Ok(shell::run(cargo.env("GESTA_SEEDS", "1000"), v))
    }),
    group("doctest", "the examples in the documentation, the guides among them", |v| {
        Ok(shell::run(&mut command("cargo test --workspace --doc --no-fail-fast"), v))
    }),
    group("doc", "the documentation builds without a warning", doc),
    group("scenes", "all scenes, as a user plays them", |v| Ok(gesta(&["scenes", "scenes"], v))),
    group("examples", "the agents and programs under examples/", examples),
    group("simulate", "50,000 random runs with repeats, crashes and replay", |v| {
        let line = "cargo run --quiet -p gesta-run --example simulate -- --seeds 50000 --start 0";
        Ok(shell::run(&mut command(line), v))
    }),
    group("others", "against model services that others wrote, from npm", others),
    group("openapi", "a live server keeps what /openapi.json says, asked by schemathesis", crate::openapi::run),
    group("load", "runs at once over HTTP, against a model that takes its time", |_| {
        Ok(crate::soak::Load::SHORT.run("dev", "debug"))
    }),
    group("postgres", "the store on a Postgres server: DATABASE_URL, or one of its own", postgres),
    group("browser", "the console in Chromium: what people do there, and whether everybody can", browser),
    group("deploy", "the unit of systemd and the Dockerfile, by their linters", crate::deploy::run),
    group("deny", "licences, bans and sources of all dependencies", |v| {
        Ok(shell::run(tools::cargo_deny()?.args(["--log-level", "error", "check", "bans", "licenses", "sources"]), v))
    }),
    Group { name: "advisories", what: "known weaknesses of dependencies", optional: true, run: advisories },
];

fn tidy(_: bool) -> Result<Count, String> {
    let fine = crate::tidied();
    Ok(Count { passed: u64::from(fine), failed: u64::from(!fine) })
}

fn doc(verbose: bool) -> Result<Count, String> {
    let mut cargo = command("cargo doc --workspace --no-deps --quiet");
    Ok(shell::run(cargo.env("RUSTDOCFLAGS", "-D warnings"), verbose))
}

/// The program itself, built with the profile that the tests use.
fn gesta(arguments: &[&str], verbose: bool) -> Count {
    shell::run(command("cargo run --quiet -p gesta-cli --bin gesta --").args(arguments), verbose)
}

/// The first command of the README does what the README says; each agent's folder is checked and its scenes are played;
/// each numbered program runs to its end.
fn examples(verbose: bool) -> Result<Count, String> {
    let mut count = first_command();
    let folder = fs::read_dir(xtask::root().join("examples")).map_err(|why| format!("cannot read examples/: {why}"))?;
    let mut paths: Vec<_> = folder.filter_map(Result::ok).map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.join("agent.toml").exists() {
            let folder = format!("examples/{name}");
            count.add(gesta(&["check", &folder], verbose));
            count.add(gesta(&["test", &folder], verbose));
        } else if path.extension().is_some_and(|it| it == "rs") {
            let line = format!("cargo run --quiet -p gesta --example {name}");
            count.add(shell::run(&mut command(&line), verbose));
        }
    }
    Ok(count)
}

/// `cargo run -- chat examples/coach`, as a newcomer types it, with a data folder of its own.
fn first_command() -> Count {
    let data = tools::target().join("tools/first-command");
    let mut chat = command("cargo run --quiet -- chat examples/coach --new --data");
    let told = shell::told(chat.arg(&data), "Swap squats for lunges\n");
    let ran = told.matches("update_plan returned").count();
    let fine = ran == 1 && told.contains("I have swapped squats for lunges.");
    if !fine {
        println!("the first command of the README ran the tool {ran} times and said:\n{told}");
    }
    Count { passed: u64::from(fine), failed: u64::from(!fine) }
}

/// The tests of the console, in Debian's browser, with axe from npm.
fn browser(verbose: bool) -> Result<Count, String> {
    let (driver, chromium) = tools::chromium()?;
    let axe = tools::axe()?;
    let mut cargo = command("cargo test --no-fail-fast -p gesta-cli --test browser");
    let cargo = cargo
        .env("GESTA_CHROMEDRIVER", driver)
        .env("GESTA_CHROMIUM", chromium)
        .env("GESTA_AXE", axe)
        .env(xtask::GROUP, "browser");
    Ok(shell::run(cargo, verbose))
}

/// The tests of the command line that ask for a program of others by the variables `GESTA_AIMOCK` and `GESTA_NODE`.
fn others(verbose: bool) -> Result<Count, String> {
    let (aimock, node) = (tools::aimock()?, tools::node()?.join("node"));
    let mut tests = tests_that_name("GESTA_AIMOCK");
    tests.extend(tests_that_name("GESTA_NODE"));
    if tests.is_empty() {
        return Err("no test asks for them".to_owned());
    }
    let mut cargo = command("cargo test --no-fail-fast");
    for (package, test) in &tests {
        cargo.args(["-p", package, "--test", test]);
    }
    Ok(shell::run(cargo.env(xtask::GROUP, "others").env("GESTA_AIMOCK", aimock).env("GESTA_NODE", node), verbose))
}

/// The tests that ask for a server by the variable `GESTA_TEST_POSTGRES`, and for the programs of one that they may
/// kill.
fn postgres(verbose: bool) -> Result<Count, String> {
    let programs = tools::postgres()?;
    let given = std::env::var("DATABASE_URL").ok().filter(|url| url.starts_with("postgres"));
    let own = match given {
        Some(_) => None,
        None => Some(xtask::postgres::Cluster::start(&programs)?),
    };
    let address = given.or_else(|| own.as_ref().map(xtask::postgres::Cluster::address)).unwrap_or_default();
    // Of the whole workspace, as the group `test` built it: other features would build everything again.
    let tests = tests_that_name("GESTA_TEST_POSTGRES");
    if tests.is_empty() {
        return Err("no test asks for it".to_owned());
    }
    let mut cargo = command("cargo test --workspace --no-fail-fast");
    for (_, test) in &tests {
        cargo.args(["--test", test]);
    }
    cargo.env(xtask::GROUP, "postgres");
    Ok(shell::run(cargo.env("GESTA_TEST_POSTGRES", address).env("GESTA_TEST_POSTGRES_BIN", programs), verbose))
}

/// Packages and integration tests whose source holds a word.
fn tests_that_name(word: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for package in folder(&xtask::root().join("crates")) {
        for test in &folder(&package.join("tests")) {
            // A test is a file, or a folder with several.
            let sources = if test.join("main.rs").is_file() { folder(test) } else { vec![test.clone()] };
            if sources.iter().any(|it| fs::read_to_string(it).is_ok_and(|text| text.contains(word))) {
                let name = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                found.push((format!("gesta-{}", name(&package)), name(test)));
            }
        }
    }
    found
}

fn folder(path: &Path) -> Vec<std::path::PathBuf> {
    let mut paths: Vec<_> =
        fs::read_dir(path).into_iter().flatten().filter_map(Result::ok).map(|it| it.path()).collect();
    paths.sort();
    paths
}

fn advisories(verbose: bool) -> Result<Count, String> {
    let mut fetch: Command = tools::cargo_deny()?;
    let fetched = fetch.args(["fetch", "db"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !fetched.is_ok_and(|status| status.success()) {
        return Err("the database of advisories cannot be reached from here".to_owned());
    }
    Ok(shell::run(
        tools::cargo_deny()?.args(["--log-level", "error", "check", "--disable-fetch", "advisories"]),
        verbose,
    ))
}
