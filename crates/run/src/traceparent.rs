//! Where a run stands in a trace that somebody else began: the W3C `traceparent`, kept with the run so that whoever goes
//! on with it, days later and elsewhere, goes on with its trace too.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A `traceparent` of version 00: a trace, a span of it, and whether it is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TraceParent {
    /// The trace. Not all zeros.
    pub trace: [u8; 16],
    /// The span under which what follows stands. Not all zeros.
    pub span: [u8; 8],
    /// Whether who began it records it.
    pub sampled: bool,
}

/// The text is no `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no `traceparent`: it is `00-`, 32 and 16 lower-case hexadecimal digits, not all 0, and two of flags")]
pub struct NoTraceParent;

impl FromStr for TraceParent {
    type Err = NoTraceParent;

    /// Reads the header as <https://www.w3.org/TR/trace-context/> says: a later version may have more behind the flags.
    fn from_str(text: &str) -> Result<Self, NoTraceParent> {
        let mut parts = text.split('-');
        let mut next = || parts.next().ok_or(NoTraceParent);
        let (version, trace, span, flags) =
            (bytes::<1>(next()?)?, bytes(next()?)?, bytes(next()?)?, bytes::<1>(next()?)?);
        let more = parts.next().is_some();
        if version[0] == 0xff || (version[0] == 0 && more) || trace == [0; 16] || span == [0; 8] {
            return Err(NoTraceParent);
        }
        Ok(Self { trace, span, sampled: flags[0] & 1 == 1 })
    }
}

/// So many bytes in lower-case hexadecimal digits.
fn bytes<const N: usize>(text: &str) -> Result<[u8; N], NoTraceParent> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'a'..=b'f' => Ok(byte - b'a' + 10),
        _ => Err(NoTraceParent),
    };
    if text.len() != 2 * N {
        return Err(NoTraceParent);
    }
    let mut out = [0; N];
    for (byte, pair) in out.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Ok(out)
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("00-")?;
        self.trace.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("-")?;
        self.span.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, "-{:02x}", u8::from(self.sampled))
    }
}

impl TryFrom<String> for TraceParent {
    type Error = NoTraceParent;

    fn try_from(text: String) -> Result<Self, NoTraceParent> {
        text.parse()
    }
}

impl From<TraceParent> for String {
    fn from(it: TraceParent) -> Self {
        it.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_header_is_read_and_written_as_it_stands_and_no_other_text_is_taken() {
        assert_eq!(GOOD.parse::<TraceParent>().unwrap().to_string(), GOOD);
        let off = GOOD.replace("-01", "-00");
        assert!(!off.parse::<TraceParent>().unwrap().sampled);
        // A later version has its first four parts where they are.
        assert_eq!(format!("cc{}-more", &GOOD[2..]).parse::<TraceParent>().unwrap().to_string(), GOOD);
        let zeros = format!("00-{}-b7ad6b7169203331-01", "0".repeat(32));
        let upper = GOOD.to_uppercase();
        let long = format!("{GOOD}-more");
        for bad in ["", "00", &GOOD[..54], &upper, &zeros, &long, &GOOD.replace("00-", "ff-"), "00-é-b7-01"] {
            assert_eq!(bad.parse::<TraceParent>(), Err(NoTraceParent), "{bad}");
        }
    }
}
