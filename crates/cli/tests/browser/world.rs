//! A server, a browser, and what a person does in it.

use std::ffi::OsStr;
use std::future::Future;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use thirtyfour::ChromiumLikeCapabilities;
use thirtyfour::prelude::*;

/// Longer than anything takes on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(60);
const OFTEN: Duration = Duration::from_millis(50);

/// One browser at a time: each is several processes.
static ONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// A process that ends with its owner.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server and browsers before it.
pub(crate) struct World {
    _server: Ends,
    driver: String,
    data: TempDir,
    /// `127.0.0.1:PORT`.
    pub(crate) at: String,
    browsers: tokio::sync::Mutex<Vec<WebDriver>>,
}

/// Runs a test before a server of these examples, in a browser that is closed however the test ends.
pub(crate) async fn before<F>(folders: &[&str], test: impl FnOnce(Arc<World>) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let example = |name: &&str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    let folders: Vec<PathBuf> = folders.iter().map(example).collect();
    before_folders(&folders, &[], test).await;
}

/// The same with folders from anywhere, and commands of `gesta` that are run on the data folder first.
pub(crate) async fn before_folders<F>(folders: &[PathBuf], first: &[&[&str]], test: impl FnOnce(Arc<World>) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let Some(program) = xtask::outside("GESTA_CHROMEDRIVER", "browser") else { return };
    let _one = ONE.lock().await;
    let data = tempfile::tempdir().unwrap();
    for command in first {
        let ran = gesta(&data).args(*command).stdout(Stdio::piped()).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        std::fs::write(data.path().join("said"), ran.stdout).unwrap();
    }
    let (server, at) = serve(&data, folders);
    let (_driver, driver) = drive(&program, &data);
    let world = Arc::new(World { _server: server, driver, data, at, browsers: tokio::sync::Mutex::default() });
    let ended = tokio::spawn(test(world.clone())).await;
    for browser in world.browsers.lock().await.drain(..) {
        let _ = browser.quit().await;
    }
    if let Err(why) = ended {
        std::panic::resume_unwind(why.into_panic());
    }
}

/// Starts chromedriver on a port that it finds itself, so that no other run of the tests takes it before.
fn drive(program: &OsStr, data: &TempDir) -> (Ends, String) {
    let mut command = Command::new(program);
    command.arg("--port=0").env("TMPDIR", data.path()).stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let driver = Ends(child);
    let mut lines = said.by_ref().lines().map_while(Result::ok);
    let port =
        lines.find_map(|line| line.split_once("successfully on port ")?.1.trim_end_matches('.').parse::<u16>().ok());
    let port = port.expect("chromedriver says where it listens");
    // What else it says is read, so that it never waits for a reader.
    std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    (driver, format!("http://127.0.0.1:{port}"))
}

fn gesta(data: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gesta"));
    command.arg("--data").arg(data.path().join("data")).stdin(Stdio::null());
    command
}

fn serve(data: &TempDir, folders: &[PathBuf]) -> (Ends, String) {
    let mut command = gesta(data);
    command.arg("serve").args(folders).args(["--listen", "127.0.0.1:0", "--stop-wait", "1"]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let server = Ends(child);
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let at = line.trim().rsplit_once("http://").unwrap_or_else(|| panic!("the server said: {line}")).1.to_owned();
    // What else it says is read, so that it never waits for a reader.
    std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    (server, at)
}

fn until<T>(mut look: impl FnMut() -> Option<T>, otherwise: &str) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "{otherwise}");
        std::thread::sleep(OFTEN);
    }
}

impl World {
    /// Opens a browser.
    pub(crate) async fn browser(&self) -> Browser {
        let mut wishes = DesiredCapabilities::chrome();
        for wish in ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run"] {
            wishes.add_arg(wish).unwrap();
        }
        wishes.add_arg("--window-size=1280,900").unwrap();
        if let Some(chromium) = std::env::var_os("GESTA_CHROMIUM") {
            wishes.set_binary(chromium.to_str().unwrap()).unwrap();
        }
        let driver = WebDriver::new(&self.driver, wishes).await.unwrap();
        self.browsers.lock().await.push(driver.clone());
        Browser { driver, at: self.at.clone() }
    }

    /// What the last command before the server said.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(self.data.path().join("said")).unwrap()
    }

    /// Asks the server as a program does. Gives status and body.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.at).unwrap();
        let (at, length) = (&self.at, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// Begins a run and waits until it stands. Gives its id.
    pub(crate) fn run(&self, agent: &str, body: &Value) -> String {
        let path = format!("/v1/agents/{agent}/runs");
        let (status, answer) = self.ask("POST", &path, "content-type: application/json\r\n", &body.to_string());
        assert_eq!(status, 200, "{answer}");
        let result: Value = serde_json::from_str(&answer).unwrap();
        result["report"]["run_id"].as_str().unwrap().to_owned()
    }

    /// A run of the desk that waits for a person.
    pub(crate) fn parked(&self) -> String {
        self.run("desk", &json!({ "input": "Refund order 7, 250 dollars", "contact": "Anna Berg" }))
    }

    /// A run once it has ended.
    pub(crate) fn ended(&self, run: &str) -> Value {
        let look = || {
            let (_, answer) = self.ask("GET", &format!("/v1/runs/{run}"), "", "");
            let result: Value = serde_json::from_str(&answer).unwrap();
            (result["status"] == "ended").then_some(result)
        };
        until(look, "the run does not end")
    }
}

/// The call of that name in a run's result.
pub(crate) fn call<'a>(result: &'a Value, name: &str) -> &'a Value {
    let calls = result["tool_calls"].as_array().unwrap();
    calls.iter().find(|call| call["name"] == name).unwrap_or_else(|| panic!("no call of {name}: {result}"))
}

/// A browser, and the eyes and hands before it.
pub(crate) struct Browser {
    pub(crate) driver: WebDriver,
    at: String,
}

impl Browser {
    pub(crate) async fn open(&self, path: &str) {
        self.driver.goto(format!("http://{}{path}", self.at)).await.unwrap();
    }

    /// The first of these, as soon as it is there and seen.
    pub(crate) async fn see(&self, css: &str) -> WebElement {
        let query = self.driver.query(By::Css(css)).wait(PATIENCE, OFTEN).and_displayed();
        match query.first().await {
            Ok(found) => found,
            Err(why) => panic!("{css} is not seen: {why}\n{}", self.text().await),
        }
    }

    /// Waits until a script's answer is true.
    pub(crate) async fn wait_for(&self, script: &str) {
        let end = Instant::now() + PATIENCE;
        while self.tell(script).await != json!(true) {
            assert!(Instant::now() < end, "never true: {script}\n{}", self.text().await);
            tokio::time::sleep(OFTEN).await;
        }
    }

    /// Waits until the page says this.
    pub(crate) async fn read(&self, words: &str) {
        self.wait_for(&format!("return document.body.innerText.includes({})", json!(words))).await;
    }

    /// What a script answers.
    pub(crate) async fn tell(&self, script: &str) -> Value {
        match self.driver.execute(script, Vec::new()).await {
            Ok(said) => said.json().clone(),
            // The page is being changed for another one.
            Err(_) => Value::Null,
        }
    }

    /// All text that is seen.
    pub(crate) async fn text(&self) -> String {
        self.tell("return document.body.innerText").await.as_str().unwrap_or_default().to_owned()
    }

    pub(crate) async fn click(&self, css: &str) {
        self.see(css).await.click().await.unwrap();
    }

    pub(crate) async fn write(&self, css: &str, text: &str) {
        let field = self.see(css).await;
        field.clear().await.unwrap();
        field.send_keys(text).await.unwrap();
    }

    /// Presses a key wherever the focus is.
    pub(crate) async fn press(&self, key: impl Into<TypingData>) {
        self.driver.active_element().await.unwrap().send_keys(key).await.unwrap();
    }

    /// Does something that only this kind of browser can.
    pub(crate) async fn order(&self, command: &str, with: Value) {
        self.driver.cdp().send_raw(command, with).await.unwrap();
    }

    /// The page as somebody without scripts has it.
    pub(crate) async fn without_scripts(&self) {
        self.order("Emulation.setScriptExecutionDisabled", json!({ "value": true })).await;
    }
}
