//! The worker's end of the pipes: blocking reads, one write a message.

use std::io::{self, BufRead, Write};

use crate::protocol::{ASK_BYTES_MAX, Answer, Ask, print};

/// Where asks come from and answers go to.
pub(crate) struct Wire<R, W> {
    reader: R,
    writer: W,
    line: Vec<u8>,
}

impl<R: BufRead, W: Write> Wire<R, W> {
    pub(crate) fn new(reader: R, writer: W) -> Self {
        Self { reader, writer, line: Vec::new() }
    }

    /// The next ask; none once the parent has gone.
    pub(crate) fn hear(&mut self) -> io::Result<Option<Ask<'static>>> {
        self.line.clear();
        let max = u64::try_from(ASK_BYTES_MAX).unwrap_or(u64::MAX);
        let bytes = io::Read::take(&mut self.reader, max).read_until(b'\n', &mut self.line)?;
        if bytes == 0 {
            return Ok(None);
        }
        if self.line.pop() != Some(b'\n') {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a line without an end"));
        }
        Ok(Some(serde_json::from_slice(&self.line)?))
    }

    pub(crate) fn tell(&mut self, answer: &Answer) -> io::Result<()> {
        self.line.clear();
        print(answer, &mut self.line)?;
        self.writer.write_all(&self.line)
    }
}
