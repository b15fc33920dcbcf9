//! The program under load: a process of its own, whose memory, files and time the system tells.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::Failed;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Each run needs a socket of ours and one of the model's: as many as the system grants.
pub(crate) fn allow_files() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let maximum = getrlimit(Resource::Nofile).maximum;
        // Where it is refused, the first run that finds no socket says so.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// `gesta serve`, which ends with this.
pub(crate) struct Program {
    child: Child,
    address: SocketAddr,
}

impl Program {
    /// Serves the desk with this model, and a store in `home`.
    pub(crate) fn start(gesta: &Path, home: &Path, model: &str, at_once: u32) -> Result<Self, Failed> {
        let (from, folder) = (root().join("examples/desk"), home.join("desk"));
        std::fs::create_dir(&folder)?;
        std::fs::copy(from.join("prompt.md"), folder.join("prompt.md"))?;
        let agent = std::fs::read_to_string(from.join("agent.toml"))?;
        std::fs::write(folder.join("agent.toml"), agent.replace("model = \"script\"", "model = \"openai:any\""))?;
        // With so few files, as some systems begin, it has to ask for more by itself.
        let mut serve = Command::new("sh");
        serve.args(["-c", "ulimit -S -n 100; exec \"$0\" \"$@\""]).arg(gesta);
        serve.args(["serve", "--listen", "127.0.0.1:0", "--runs-max", &(at_once + 10).to_string(), "--data"]);
        serve.arg(home.join("data")).arg(&folder);
        serve.env_remove("DATABASE_URL").env_remove("GESTA_WEBHOOK_URL");
        serve.env("OPENAI_BASE_URL", model).env("OPENAI_API_KEY", "a-key-for-tests");
        let mut child = serve.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut said = BufReader::new(child.stderr.take().ok_or("the program has no output")?);
        let mut line = String::new();
        said.read_line(&mut line)?;
        let address = line.trim().rsplit('/').next().and_then(|it| it.parse().ok());
        let Some(address) = address else {
            child.kill()?;
            return Err(format!("it does not start: {line}").into());
        };
        std::thread::spawn(move || said.read_to_end(&mut Vec::new()));
        Ok(Self { child, address })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The memory that it has, in kB.
    pub(crate) fn memory_kb(&self) -> Option<u64> {
        let status = self.proc("status")?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
        line.split_whitespace().nth(1)?.parse().ok()
    }

    /// How many files and sockets it has open.
    pub(crate) fn files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).map_or(0, Iterator::count)
    }

    /// The processor's time that it took, in hundredths of a second.
    pub(crate) fn cpu_ticks(&self) -> Option<u64> {
        let stat = self.proc("stat")?;
        // The name may hold blanks, and ends with the last bracket.
        let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
        Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
    }

    fn proc(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(format!("/proc/{}/{name}", self.child.id())).ok()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
