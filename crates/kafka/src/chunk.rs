//! Messages put together to a piece of a body.

use crate::source::Offsets;

/// A chunk is complete at this size, in bytes.
pub const CHUNK_BYTES: usize = 256 * 1024;

/// How messages become lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// A message is lines, as many as it has.
    Lines,
    /// A message is one line: line breaks in it become blanks, as those between JSON's tokens may.
    OneLine,
}

/// Messages, and how far they lead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Each message ends with a line break.
    pub bytes: Vec<u8>,
    /// Messages in `bytes`.
    pub messages: u64,
    /// The next offsets of the partitions that moved on, which may be beyond the last message.
    pub next: Offsets,
    /// The offsets at which partitions end, as far as there is news.
    pub ends: Offsets,
    /// Whether there is nothing more to read at the moment.
    pub is_caught_up: bool,
}

impl Chunk {
    pub(crate) fn push(&mut self, message: &[u8], framing: Framing) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(message);
        match framing {
            Framing::Lines => {
                if message.last() == Some(&b'\n') {
                    self.bytes.pop();
                }
            }
            Framing::OneLine => {
                for byte in &mut self.bytes[from..] {
                    if matches!(byte, b'\n' | b'\r') {
                        *byte = b' ';
                    }
                }
            }
        }
        self.bytes.push(b'\n');
        self.messages += 1;
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= CHUNK_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(framing: Framing, messages: &[&str]) -> String {
        let mut chunk = Chunk::default();
        messages.iter().for_each(|message| chunk.push(message.as_bytes(), framing));
        assert_eq!(chunk.messages, messages.len() as u64);
        String::from_utf8(chunk.bytes).expect("as it came")
    }

    #[test]
    fn each_message_ends_a_line_and_none_reaches_into_the_next() {
        assert_eq!(framed(Framing::Lines, &["1,a", "2,b\n", "3,c\n4,d"]), "1,a\n2,b\n3,c\n4,d\n");
        assert_eq!(
            framed(Framing::OneLine, &["{\"a\":1}", "{\n \"a\":\r\n2\n}\n"]),
            "{\"a\":1}\n{  \"a\":  2 } \n"
        );
    }
}
