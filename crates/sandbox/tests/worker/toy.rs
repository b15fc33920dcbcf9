//! A document whose tools do one bad thing each, so that the walls are tested and not an engine.

use std::fs::{self, File};
use std::io::Write;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::process::Command;

use gesta_document::{
    AddedTool, CallError, Called, Document, Form, GrantName, Host, OpenError, Record, Refused, Terms,
};
use gesta_run::ToolSpec;
use gesta_run::json::Object;
use serde_json::{Value, json};

/// A base that begins like this is played here; any other is the real engine's.
pub(crate) const TOY: &str = "toy";

pub(crate) fn open(record: &Record, terms: &Terms) -> Result<Box<dyn Document>, OpenError> {
    if !record.base.starts_with(TOY) {
        return gesta_document::open(record, terms);
    }
    match record.base.as_str() {
        "toy spin" => spin(),
        "toy damaged" => return Err(OpenError::Data { message: "the saved data is damaged".to_owned() }),
        _ => {}
    }
    let count = record.data.as_ref().and_then(|data| data.first().copied()).unwrap_or(0);
    Ok(Box::new(Toy { count, added: record.added.clone() }))
}

struct Toy {
    count: u8,
    added: Vec<AddedTool>,
}

impl Document for Toy {
    fn specs(&mut self) -> Result<Vec<ToolSpec>, CallError> {
        Ok(self.added.iter().map(|tool| ToolSpec::new(&tool.name, "added", json!({"type": "object"}))).collect())
    }

    fn call(&mut self, tool: &str, arguments: &Object, host: &mut dyn Host) -> Result<Called, CallError> {
        let text = |key: &str| arguments.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let result = match tool {
            "echo" => Value::Object(arguments.clone()),
            "count" => {
                self.count += 1;
                return Ok(Called { result: json!(self.count), data: Some(vec![self.count]), ..Called::default() });
            }
            "ask" => ask(host, &text("grant"), arguments.clone())?,
            "ask_then_die" => {
                ask(host, &text("grant"), arguments.clone())?;
                std::process::abort()
            }
            "ask_often" => {
                let times = arguments["times"].as_u64().unwrap_or(0);
                let fine = (0..times).filter(|_| ask(host, "orders", Object::new()).is_ok()).count();
                json!(fine)
            }
            "add" => {
                let tool = added(text("name"), text("source"));
                self.added.push(tool.clone());
                return Ok(Called { result: json!("added"), added: vec![tool], ..Called::default() });
            }
            "pid" => json!(std::process::id()),
            "throw" => return Err(CallError::Thrown { message: text("message") }),
            "say" => {
                say(&text("text"));
                Value::Null
            }
            "large" => json!("x".repeat(arguments["bytes"].as_u64().unwrap_or(0) as usize)),
            "sleep_then_limit" => return Err(CallError::TimedOut { limit_ms: 300 }),
            "probe" => {
                let parent = arguments["parent"].as_i64().and_then(|pid| i32::try_from(pid).ok());
                probe(parent.and_then(rustix::process::Pid::from_raw).unwrap())
            }
            other if self.added.iter().any(|tool| tool.name == other) => ask(host, "orders", arguments.clone())?,
            bad => misbehave(bad, host)?,
        };
        Ok(Called { result, ..Called::default() })
    }

    fn add_tool(&mut self, source: &str) -> Result<AddedTool, Refused> {
        if source.is_empty() {
            return Err(Refused { message: "there is nothing in it".to_owned(), at: None });
        }
        let tool = added(source.to_owned(), source.to_owned());
        self.added.push(tool.clone());
        Ok(tool)
    }

    fn main(&mut self, host: &mut dyn Host) -> Result<Called, CallError> {
        self.call("say", json!({"text": "main"}).as_object().unwrap(), host)
    }

    fn added(&self) -> &[AddedTool] {
        &self.added
    }

    fn export(&mut self, _form: Form) -> Result<Vec<u8>, CallError> {
        Ok(vec![self.count])
    }

    fn save(&mut self) -> Result<Vec<u8>, CallError> {
        Ok(vec![self.count])
    }
}

fn added(name: String, source: String) -> AddedTool {
    AddedTool { name, source, author: None, at: None, set_aside: None }
}

fn ask(host: &mut dyn Host, name: &str, arguments: Object) -> Result<Value, CallError> {
    let grant = GrantName { library: "App".to_owned(), name: name.to_owned() };
    host.grant(&grant, arguments).map_err(|message| CallError::Thrown { message })
}

fn say(text: &str) {
    println!("{text}");
}

fn spin() {
    let mut n = 0_u64;
    loop {
        n = std::hint::black_box(n.wrapping_add(1));
    }
}

/// The ways in which an engine takes its process with it.
fn misbehave(how: &str, host: &mut dyn Host) -> Result<Value, CallError> {
    match how {
        "spin" => spin(),
        "deadlock" => loop {
            std::thread::park();
        },
        "bomb" => {
            let mut all: Vec<Vec<u8>> = Vec::new();
            loop {
                all.push(std::hint::black_box(Vec::with_capacity(1024 * 1024)));
            }
        }
        "one_large_allocation" => drop(std::hint::black_box(vec![1_u8; 1_000_000_000])),
        "recurse" => drop(std::hint::black_box(deeper(0))),
        "abort" => std::process::abort(),
        "panic" => panic!("inside a character"),
        "exit" => std::process::exit(0),
        "flood" => loop {
            say(&"x".repeat(1_000));
        },
        "grant_flood" => loop {
            ask(host, "orders", Object::new()).ok();
        },
        _ => return Err(CallError::UnknownTool { name: how.to_owned() }),
    }
    Ok(Value::Null)
}

#[expect(unconditional_recursion, reason = "the stack's end is what is tested")]
fn deeper(n: u64) -> u64 {
    let room = std::hint::black_box([n; 64]);
    deeper(n + 1) + room[1]
}

/// What somebody who got out of the engine would try, and how each try ends.
fn probe(parent: rustix::process::Pid) -> Value {
    let mut ends = Object::new();
    let mut end = |what: &str, how: Result<(), String>| {
        ends.insert(what.to_owned(), how.map_or_else(Value::String, |()| Value::Null));
    };
    let told = |why: std::io::Error| why.to_string();
    end("read a file", fs::read("/etc/hostname").map(drop).map_err(told));
    end("read its own program", File::open("/proc/self/exe").map(drop).map_err(told));
    end("read its parent's memory", File::open("/proc/1/mem").map(drop).map_err(told));
    end("list a folder", fs::read_dir("/").map(drop).map_err(told));
    end("write a file", fs::write("/tmp/gesta-escaped", "out").map_err(told));
    end("make a folder", fs::create_dir("/tmp/gesta-escaped.d").map_err(told));
    end("remove a file", fs::remove_file("/etc/hostname").map_err(told));
    end("make a link", std::os::unix::fs::symlink("/etc", "/tmp/gesta-link").map_err(told));
    end("open a socket", TcpStream::connect("127.0.0.1:9").map(drop).map_err(told));
    end("listen", TcpListener::bind("127.0.0.1:0").map(drop).map_err(told));
    end("send a datagram", UdpSocket::bind("127.0.0.1:0").map(drop).map_err(told));
    end("open a local socket", UnixStream::pair().map(drop).map_err(told));
    end("start a process", Command::new("/bin/true").spawn().map(drop).map_err(told));
    let thread = std::thread::Builder::new().spawn(|| ()).map(drop);
    end("start a thread", thread.map_err(told));
    end(
        "run another program",
        Err(std::os::unix::process::CommandExt::exec(&mut Command::new("/bin/true")).to_string()),
    );
    let environment: Vec<_> = std::env::vars_os().collect();
    end("read the environment", if environment.is_empty() { Err("empty".to_owned()) } else { Ok(()) });
    end("read the environment from the system", fs::read("/proc/self/environ").map(drop).map_err(told));
    let kill = rustix::process::test_kill_process(parent);
    end("signal its parent", kill.map_err(|why| why.to_string()));
    let limit = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
    let lowered = rustix::process::prlimit(Some(parent), rustix::process::Resource::Cpu, limit);
    end("limit its parent", lowered.map(drop).map_err(|why| why.to_string()));
    let more = rustix::process::Rlimit { current: None, maximum: None };
    let limit = rustix::process::setrlimit(rustix::process::Resource::As, more);
    end("raise its limit of memory", limit.map_err(|why| why.to_string()));
    end("become dumpable", {
        let dumpable = rustix::process::DumpableBehavior::Dumpable;
        rustix::process::set_dumpable_behavior(dumpable).map_err(|why| why.to_string())
    });
    let mut input = [0; 1];
    let read = std::io::Read::read(&mut std::io::stdin(), &mut input);
    end("read standard input", if matches!(read, Ok(0)) { Err("at its end".to_owned()) } else { Ok(()) });
    std::io::stdout().flush().ok();
    Value::Object(ends)
}
