//! Reads a stream of server-sent events, cut anywhere, in time linear in its length.

use memchr::memchr2;

/// Puts events together from the bytes of a body. Only their data counts: comments and other fields are skipped.
/// Line ends may be LF, CRLF or CR; a byte order mark at the start and a missing blank line at the end are borne.
/// A line that begins with `{` is taken for data, as servers send that report an error in the middle of a stream.
#[derive(Debug, Default)]
pub struct EventReader {
    /// A line whose end has not come yet.
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// The last byte was CR, so an LF that follows belongs to it.
    after_cr: bool,
    begun: bool,
}

impl EventReader {
    /// Takes the next bytes and hands the data of each event that is complete to `on`.
    ///
    /// # Errors
    /// The first error of `on`; what follows is not read.
    pub fn feed<E>(&mut self, mut bytes: &[u8], mut on: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        while !bytes.is_empty() {
            if self.after_cr {
                self.after_cr = false;
                if bytes[0] == b'\n' {
                    bytes = &bytes[1..];
                    continue;
                }
            }
            let Some(end) = memchr2(b'\n', b'\r', bytes) else {
                self.line.extend_from_slice(bytes);
                return Ok(());
            };
            self.after_cr = bytes[end] == b'\r';
            if self.line.is_empty() {
                self.take_line(&bytes[..end], &mut on)?;
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&bytes[..end]);
                self.take_line(&line, &mut on)?;
                line.clear();
                self.line = line;
            }
            bytes = &bytes[end + 1..];
        }
        Ok(())
    }

    /// Says that no more bytes come: an event that lacks its blank line is handed over.
    ///
    /// # Errors
    /// The error of `on`.
    pub fn finish<E>(&mut self, mut on: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        if !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.take_line(&line, &mut on)?;
        }
        self.take_line(b"", &mut on)
    }

    /// How many bytes are held back because their event is not complete.
    pub fn pending(&self) -> usize {
        self.line.len() + self.data.len()
    }

    fn take_line<E>(&mut self, line: &[u8], on: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut line = line;
        if !self.begun {
            self.begun = true;
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            if !self.has_data {
                return Ok(());
            }
            self.has_data = false;
            let result = on(&self.data);
            self.data.clear();
            return result;
        }
        let data = match line.strip_prefix(b"data") {
            Some([b':', b' ', rest @ ..] | [b':', rest @ ..]) => rest,
            Some([]) => b"",
            _ if line[0] == b'{' => line,
            _ => return Ok(()),
        };
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(data);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<String> {
        let mut reader = EventReader::default();
        let mut events = Vec::new();
        let mut on = |data: &[u8]| -> Result<(), ()> {
            events.push(String::from_utf8_lossy(data).into_owned());
            Ok(())
        };
        for piece in pieces {
            reader.feed(piece, &mut on).unwrap();
        }
        reader.finish(&mut on).unwrap();
        events
    }

    const STREAM: &[u8] =
        "\u{feff}: hi\r\nevent: x\r\ndata: {\"a\":\r\ndata: \"é😀\"}\r\n\r\nid: 3\ndata:two\n\ndata\n\n\
        \r\r\ndata: three\rdata:  four\r\r{\"error\":1}\n\nretry: 5\n\ndata: [DONE]"
            .as_bytes();

    #[test]
    fn every_form_of_line_end_and_field_is_read() {
        let expected = ["{\"a\":\n\"é😀\"}", "two", "", "three\n four", "{\"error\":1}", "[DONE]"];
        assert_eq!(read(&[STREAM]), expected);
    }

    #[test]
    fn a_split_anywhere_changes_nothing() {
        let expected = read(&[STREAM]);
        for at in 0..=STREAM.len() {
            assert_eq!(read(&[&STREAM[..at], &STREAM[at..]]), expected, "split at {at}");
        }
        let single: Vec<&[u8]> = STREAM.chunks(1).collect();
        assert_eq!(read(&single), expected);
    }

    #[test]
    fn a_line_of_ten_megabytes_is_read_in_linear_time() {
        let mut line = b"data: ".to_vec();
        line.resize(10_000_000, b'x');
        line.extend_from_slice(b"\n\n");
        // In pieces of 1 kB: reading the line anew for each would take minutes.
        let pieces: Vec<&[u8]> = line.chunks(1024).collect();
        assert_eq!(read(&pieces)[0].len(), 10_000_000 - 6);
    }
}
