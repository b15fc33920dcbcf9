//! The files under `deploy/`, looked through by the linters of those who run them.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::shell::Count;
use crate::tools;

/// The highest exposure that `systemd-analyze security` may find, in tenths; 100 is a service without any wall.
const EXPOSURE_MAX: &str = "20";
const PROGRAM: &str = "/usr/local/bin/gesta";

/// Looks them through.
pub(crate) fn run(_: bool) -> Result<Count, String> {
    let folder = tempfile::tempdir().map_err(|why| format!("cannot make a folder: {why}"))?;
    let unit = unit(folder.path())?;
    let mut verify = tools::systemd_analyze()?;
    verify.arg("verify").arg(&unit);
    let mut security = tools::systemd_analyze()?;
    security.args(["security", "--offline=true", "--no-pager", "--threshold", EXPOSURE_MAX]).arg(&unit);
    let mut hadolint = tools::hadolint()?;
    hadolint.arg("deploy/Dockerfile");
    // What these two find nothing in they say nothing about; some findings are told with a success.
    let mut count = Count::default();
    for (command, is_silent) in [(&mut verify, true), (&mut security, false), (&mut hadolint, true)] {
        count.add(looked(command, is_silent)?);
    }
    Ok(count)
}

/// The unit, with a program in it that is there: whether ours is installed here does not matter.
fn unit(folder: &Path) -> Result<std::path::PathBuf, String> {
    let text = fs::read_to_string(xtask::root().join("deploy/gesta.service"));
    let text = text.map_err(|why| format!("cannot read deploy/gesta.service: {why}"))?;
    let unit = folder.join("gesta.service");
    let written = fs::write(&unit, text.replace(PROGRAM, "/bin/true"));
    written.map_err(|why| format!("cannot write {}: {why}", unit.display()))?;
    Ok(unit)
}

fn looked(command: &mut Command, is_silent: bool) -> Result<Count, String> {
    let name = command.get_program().display().to_string();
    let output = command.output().map_err(|why| format!("cannot start {name}: {why}"))?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let fine = output.status.success() && (!is_silent || said.trim().is_empty());
    if !fine {
        println!("{name}:\n{said}");
    }
    Ok(Count { passed: u64::from(fine), failed: u64::from(!fine) })
}
