//! A Postgres server for tests: on loopback, in a folder of its own, gone when it is dropped, whatever happened.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Who may do everything there, and the password.
const USER: &str = "gesta";

/// How long a server may take to start or to end, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(120);

/// How the folders begin, before the id of the process that made them.
const PREFIX: &str = "gesta-postgres-";

/// How many ports are tried.
const PORTS_TRIED: u32 = 5;

/// A server that runs for as long as this lives.
#[derive(Debug)]
pub struct Cluster {
    folder: tempfile::TempDir,
    programs: PathBuf,
    port: u16,
    is_secure: bool,
    server: Option<Child>,
}

impl Cluster {
    /// Makes a cluster and starts its server. `programs` is the folder of `initdb` and `postgres`, which refuse to run
    /// as root: then they run as `postgres`, or as `nobody`.
    ///
    /// # Errors
    /// One of the programs fails, in the words it said.
    pub fn start(programs: &Path) -> Result<Self, String> {
        sweep(&std::env::temp_dir());
        let folder = tempfile::Builder::new().prefix(&format!("{PREFIX}{}-", std::process::id())).tempdir();
        let folder = folder.map_err(|why| format!("cannot make a folder: {why}"))?;
        let password = folder.path().join("password");
        fs::write(&password, USER).map_err(|why| format!("cannot write a password: {why}"))?;
        if let Some(user) = servant() {
            said(Command::new("chown").args(["-R", user]).arg(folder.path()))?;
        }
        let mut cluster = Self { folder, programs: programs.to_owned(), port: 0, is_secure: false, server: None };
        let mut initdb = cluster.program("initdb");
        initdb.args(["--no-sync", "--encoding=UTF8", "--locale=C.UTF-8", "--auth=scram-sha-256", "-U", USER]);
        said(initdb.arg("--pwfile").arg(&password).arg("-D").arg(cluster.data()))?;
        // Between looking and listening somebody else may take a port: then it is another one.
        let mut started = Ok(());
        for _ in 0..PORTS_TRIED {
            cluster.port = free_port().map_err(|why| format!("no port is free: {why}"))?;
            started = cluster.try_start();
            if started.is_ok() {
                return Ok(cluster);
            }
        }
        started.map(|()| cluster)
    }

    /// The address of its one database that is there from the start.
    pub fn address(&self) -> String {
        format!("postgres://{USER}:{USER}@127.0.0.1:{}/postgres", self.port)
    }

    /// Starts the server again, this time with TLS.
    ///
    /// # Errors
    /// The files cannot be copied, or it does not start.
    pub fn secure(&mut self, certificate: &Path, key: &Path) -> Result<(), String> {
        for (from, name) in [(certificate, "server.crt"), (key, "server.key")] {
            let to = self.data().join(name);
            said(Command::new("install").args(["-m", "600"]).arg(from).arg(&to))?;
            if let Some(user) = servant() {
                said(Command::new("chown").arg(user).arg(&to))?;
            }
        }
        self.is_secure = true;
        self.kill();
        self.resume()
    }

    /// Kills the server as a crash would, with all that it does.
    pub fn kill(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }

    /// Starts the server again, on the same port, and waits until it answers.
    ///
    /// # Errors
    /// It does not start, in the words it said.
    pub fn resume(&mut self) -> Result<(), String> {
        let began = Instant::now();
        loop {
            // What a killed server left behind may still be ending: then this one ends at once, and another is tried.
            match self.try_start() {
                Err(_) if began.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(100)),
                done => return done,
            }
        }
    }

    /// Starts the server once.
    fn try_start(&mut self) -> Result<(), String> {
        let began = Instant::now();
        let log = self.folder.path().join("log");
        let mut server = self.program("postgres");
        server.arg("-D").arg(self.data()).args(["-p", &self.port.to_string()]);
        for setting in [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "fsync=off",
            "shared_buffers=32MB",
            "max_connections=200",
        ] {
            server.args(["-c", setting]);
        }
        if self.is_secure {
            server.args(["-c", "ssl=on"]);
        }
        let into = fs::File::create(&log).map_err(|why| format!("cannot write {}: {why}", log.display()))?;
        server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(into);
        let mut server = server.spawn().map_err(|why| format!("cannot start postgres: {why}"))?;
        while began.elapsed() < PATIENCE && matches!(server.try_wait(), Ok(None)) {
            if self.is_ready(server.id()) {
                self.server = Some(server);
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = server.kill();
        let _ = server.wait();
        let text = fs::read_to_string(&log).unwrap_or_default();
        Err(format!("postgres does not start: {}", text.lines().last().unwrap_or("it said nothing")))
    }

    /// Whether this very process takes connections, as it says itself: on the same port another run of the tests might
    /// have a server that answers.
    fn is_ready(&self, server: u32) -> bool {
        let text = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        lines.first() == Some(&&*server.to_string()) && lines.get(7) == Some(&"ready")
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A program of the server's, as somebody whom it accepts, which ends with its starter where the system can see to
    /// that.
    fn program(&self, name: &str) -> Command {
        let path = self.programs.join(name);
        let with_starter = Command::new("setpriv").arg("--version").output().is_ok_and(|it| it.status.success());
        let mut command = match with_starter {
            true => Command::new("setpriv"),
            false => Command::new(&path),
        };
        if with_starter {
            if let Some(user) = servant() {
                command.args(["--reuid", user, "--regid", user_group(user), "--clear-groups"]);
            }
            command.args(["--pdeathsig", "QUIT"]).arg(&path);
        }
        command.current_dir(self.folder.path()).env("LC_ALL", "C");
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        // At once, but so that it leaves nothing in the system's memory.
        let _ = Command::new("kill").args(["-QUIT", &server.id().to_string()]).status();
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            match server.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(20)),
                _ => return,
            }
        }
        let _ = server.kill();
        let _ = server.wait();
    }
}

/// Removes what processes left behind that were killed, as by Ctrl-C: their servers have ended with them.
fn sweep(folder: &Path) {
    if !Path::new("/proc/self").exists() {
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            // What belongs to somebody else stays.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The folder of the newest server's programs on this machine.
pub fn programs() -> Option<PathBuf> {
    let has_server = |folder: &PathBuf| folder.join("initdb").is_file() && folder.join("postgres").is_file();
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = debian
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .filter(|(_, folder)| has_server(folder))
        .collect();
    versions.sort();
    let on_path = || std::env::split_paths(&std::env::var_os("PATH")?).find(has_server);
    versions.pop().map(|(_, folder)| folder).or_else(on_path)
}

/// Whom a root's server runs as; none where we are not root.
fn servant() -> Option<&'static str> {
    let id = |arguments: &[&str]| Command::new("id").args(arguments).output().ok().filter(|it| it.status.success());
    let is_root = id(&["-u"]).is_some_and(|it| it.stdout.trim_ascii() == b"0");
    is_root.then(|| ["postgres", "nobody"].into_iter().find(|user| id(&[user]).is_some())).flatten()
}

fn user_group(user: &str) -> &str {
    if user == "nobody" { "nogroup" } else { user }
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Runs a program that ends by itself; an error in its own words.
fn said(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().display().to_string();
    let output = command.stdin(Stdio::null()).output().map_err(|why| format!("cannot start {name}: {why}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("{name} failed: {}", text.lines().last().unwrap_or("it said nothing")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let mut gone = Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        let [left, own, other] =
            [format!("{PREFIX}{}-a", gone.id()), format!("{PREFIX}{}-b", std::process::id()), "c".to_owned()]
                .map(|name| folder.path().join(name));
        for path in [&left, &own, &other] {
            fs::create_dir(path).unwrap();
        }
        sweep(folder.path());
        assert_eq!([left, own, other].map(|it| it.exists()), [false, true, true]);
    }
}
