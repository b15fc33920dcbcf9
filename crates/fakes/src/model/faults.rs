//! What a fake does wrong on purpose, in words: `delay=20ms, cut`.

use std::fmt;
use std::str::FromStr;

use gesta_scene::ServerFaults;

/// What a server does wrong on purpose while it answers. Written as words with commas between them:
///
/// | word | what happens |
/// | --- | --- |
/// | `delay=20ms` | it waits before its first byte |
/// | `pace=5ms` | it waits between the events of a stream |
/// | `cut`, `cut=40` | the connection breaks in the middle of the answer, or after so many bytes of it |
/// | `split`, `split=3` | the answer travels in pieces of one byte, or of so many |
/// | `malformed` | the answer breaks off into something that is no JSON |
/// | `stall` | half of the answer, then nothing |
/// | `hang` | nothing at all |
/// | `status=429` | this status with an error of the protocol |
/// | `retry-after=2` | beside a status: the header with so many seconds |
/// | `html` | a page in HTML, with the status or 502 |
/// | `error-object` | status 200 with an error object |
/// | `error-event` | an error in the middle of a stream; as `error-object` where it is plain |
/// | `drop`, `drop=30%` | the connection is closed instead of an answer, always or so often |
/// | `chance=30%` | all other faults are shown only so often |
/// | `seed=7` | the dice of `drop` and `chance`, for the options of a server alone |
/// | `once` | all faults are shown only to the first request with the same body, so that another try succeeds |
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    /// Waits so many milliseconds before the first byte.
    pub delay_ms: u64,
    /// Waits so many milliseconds between the events of a stream.
    pub pace_ms: u64,
    /// Breaks the connection in the middle of the answer.
    pub cut: Option<Cut>,
    /// Sends pieces of so many bytes.
    pub split_bytes: Option<usize>,
    /// Breaks off into something that is no JSON.
    pub malformed: bool,
    /// Sends half of the answer and keeps the connection.
    pub stall: bool,
    /// Sends nothing and keeps the connection.
    pub hang: bool,
    /// Answers with this status and an error.
    pub status: Option<u16>,
    /// Asks the client to wait so many seconds.
    pub retry_after_s: Option<u64>,
    /// Answers with a page in HTML.
    pub html: bool,
    /// Answers with status 200 and an error object.
    pub error_object: bool,
    /// Sends an error in the middle of a stream.
    pub error_event: bool,
    /// Closes the connection instead of answering, in so many of a hundred requests.
    pub drop_percent: Option<u8>,
    /// Shows the other faults only in so many of a hundred requests.
    pub chance_percent: Option<u8>,
    /// The seed of the dice.
    pub seed: u64,
    /// Shows faults only to the first request with the same body.
    pub once: bool,
}

/// Where an answer is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// After half of its bytes.
    Half,
    /// After so many bytes of its body.
    After(usize),
}

/// A word that is no fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no fault; use delay=20ms, pace=5ms, cut, cut=40, split, split=3, malformed, stall, hang, status=429, \
     retry-after=2, html, error-object, error-event, drop, drop=30%, chance=30%, seed=7 or once, with commas between"
)]
pub struct FaultError(String);

impl FromStr for Faults {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let mut faults = Self::default();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            faults.word(word).ok_or_else(|| FaultError(word.to_owned()))?;
        }
        Ok(faults)
    }
}

impl Faults {
    fn word(&mut self, word: &str) -> Option<()> {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None => (word, None),
        };
        match (name, value) {
            ("delay", Some(time)) => self.delay_ms = milliseconds(time)?,
            ("pace", Some(time)) => self.pace_ms = milliseconds(time)?,
            ("cut", None) => self.cut = Some(Cut::Half),
            ("cut", Some(bytes)) => self.cut = Some(Cut::After(bytes.parse().ok()?)),
            ("split", None) => self.split_bytes = Some(1),
            ("split", Some(bytes)) => self.split_bytes = Some(bytes.parse().ok().filter(|bytes| *bytes > 0)?),
            ("malformed", None) => self.malformed = true,
            ("stall", None) => self.stall = true,
            ("hang", None) => self.hang = true,
            ("status", Some(status)) => {
                self.status = Some(status.parse().ok().filter(|status| (200..600).contains(status))?);
            }
            ("retry-after", Some(time)) => {
                self.retry_after_s = Some(time.strip_suffix('s').unwrap_or(time).trim().parse().ok()?);
            }
            ("html", None) => self.html = true,
            ("error-object", None) => self.error_object = true,
            ("error-event", None) => self.error_event = true,
            ("drop", None) => self.drop_percent = Some(100),
            ("drop", Some(part)) => self.drop_percent = Some(percent(part)?),
            ("chance", Some(part)) => self.chance_percent = Some(percent(part)?),
            ("seed", Some(seed)) => self.seed = seed.parse().ok()?,
            ("once", None) => self.once = true,
            _ => return None,
        }
        Some(())
    }

    /// These faults and those of an answer; where both say something, the more particular.
    pub(crate) fn and(mut self, more: &Self) -> Self {
        let or = |flag: &mut bool, more: bool| *flag |= more;
        if more.delay_ms > 0 {
            self.delay_ms = more.delay_ms;
        }
        if more.pace_ms > 0 {
            self.pace_ms = more.pace_ms;
        }
        self.cut = more.cut.or(self.cut);
        self.split_bytes = more.split_bytes.or(self.split_bytes);
        self.status = more.status.or(self.status);
        self.retry_after_s = more.retry_after_s.or(self.retry_after_s);
        self.drop_percent = more.drop_percent.or(self.drop_percent);
        self.chance_percent = more.chance_percent.or(self.chance_percent);
        or(&mut self.malformed, more.malformed);
        or(&mut self.stall, more.stall);
        or(&mut self.hang, more.hang);
        or(&mut self.html, more.html);
        or(&mut self.error_object, more.error_object);
        or(&mut self.error_event, more.error_event);
        or(&mut self.once, more.once);
        self
    }

    /// Whether nothing is wrong on purpose.
    pub fn is_none(&self) -> bool {
        Self { seed: 0, once: false, ..self.clone() } == Self::default()
    }
}

impl From<&ServerFaults> for Faults {
    fn from(from: &ServerFaults) -> Self {
        Self {
            delay_ms: from.delay_ms,
            cut: from.cut.then_some(Cut::Half),
            // Pieces of a few bytes are what a script asks for; one byte is the hardest of them.
            split_bytes: from.split.then_some(1),
            malformed: from.malformed,
            stall: from.stall,
            status: from.status,
            retry_after_s: from.retry_after_s,
            ..Self::default()
        }
    }
}

fn milliseconds(text: &str) -> Option<u64> {
    match text.strip_suffix("ms") {
        Some(ms) => ms.trim().parse().ok(),
        None => text.strip_suffix('s')?.trim().parse::<u64>().ok()?.checked_mul(1000),
    }
}

fn percent(text: &str) -> Option<u8> {
    text.strip_suffix('%').unwrap_or(text).trim().parse().ok().filter(|part| *part <= 100)
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words: Vec<String> = Vec::new();
        let mut timed = |name: &str, ms: u64| (ms > 0).then(|| words.push(format!("{name}={ms}ms")));
        timed("delay", self.delay_ms);
        timed("pace", self.pace_ms);
        match self.cut {
            Some(Cut::Half) => words.push("cut".to_owned()),
            Some(Cut::After(bytes)) => words.push(format!("cut={bytes}")),
            None => {}
        }
        let numbers = [
            ("split", self.split_bytes.map(|bytes| bytes as u64)),
            ("status", self.status.map(u64::from)),
            ("retry-after", self.retry_after_s),
        ];
        words.extend(numbers.iter().filter_map(|(name, number)| number.map(|number| format!("{name}={number}"))));
        let flags = [
            ("malformed", self.malformed),
            ("stall", self.stall),
            ("hang", self.hang),
            ("html", self.html),
            ("error-object", self.error_object),
            ("error-event", self.error_event),
            ("once", self.once),
        ];
        words.extend(flags.iter().filter(|(_, on)| *on).map(|(name, _)| (*name).to_owned()));
        let parts = [("drop", self.drop_percent), ("chance", self.chance_percent)];
        words.extend(parts.iter().filter_map(|(name, part)| part.map(|part| format!("{name}={part}%"))));
        if self.seed > 0 {
            words.push(format!("seed={}", self.seed));
        }
        f.write_str(&words.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_printed_as_they_are_read() {
        let all = "delay=20ms, pace=2ms, cut=7, split=3, status=429, retry-after=2, malformed, stall, hang, html, \
                   error-object, error-event, once, drop=30%, chance=5%, seed=7";
        assert_eq!(all.parse::<Faults>().unwrap().to_string(), all);
        assert_eq!("cut,delay=1s, drop".parse::<Faults>().unwrap().to_string(), "delay=1000ms, cut, drop=100%");
        for wrong in ["delay", "delay=5", "split=0", "cutt", "drop=101%", "status=99"] {
            let error = wrong.parse::<Faults>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{wrong}` is no fault; use delay=20ms")), "{error}");
        }
    }
}
