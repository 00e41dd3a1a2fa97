//! Combines messages into a piece of a body.

use crate::source::Offsets;

/// A chunk is complete at this size, in bytes.
pub const CHUNK_BYTES: usize = 256 * 1024;

/// How messages become lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// A message consists of any number of lines.
    Lines,
    /// A message is one line of JSON: line breaks between its tokens become blanks, as they may. Those in its texts become
    /// another character that JSON does not allow there either, so that the message is refused as it would have been.
    OneLine,
}

/// How messages are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub framing: Framing,
    /// Whether [`Chunk::places`] are wanted.
    pub has_places: bool,
}

/// The position of a message in a chunk, and in its topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub partition: i32,
    pub offset: i64,
    /// Behind its line break in [`Chunk::bytes`].
    pub end: usize,
}

/// A byte that JSON never contains unescaped and that ends no line.
const ILLEGAL: u8 = 0x01;

/// Messages, and how far they lead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Each message ends with a line break.
    pub bytes: Vec<u8>,
    /// Messages in `bytes`.
    pub messages: u64,
    /// The place of each of them, in their order, if they are wanted.
    pub places: Vec<Place>,
    /// The next offsets of the partitions that moved on, which may be beyond the last message.
    pub next: Offsets,
    /// The offsets at which partitions end, as far as there is news.
    pub ends: Offsets,
    /// Whether there is currently nothing more to read.
    pub is_caught_up: bool,
}

impl Chunk {
    /// Appends a message.
    pub fn push(&mut self, message: &[u8], framing: Framing) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(message);
        match framing {
            Framing::Lines => {
                if message.last() == Some(&b'\n') {
                    self.bytes.pop();
                }
            }
            Framing::OneLine => join_lines(&mut self.bytes[from..]),
        }
        self.bytes.push(b'\n');
        self.messages += 1;
    }

    /// Appends a message, as it is wanted, with its place.
    pub fn push_from(&mut self, partition: i32, offset: i64, message: &[u8], shape: Shape) {
        self.push(message, shape.framing);
        if shape.has_places {
            self.places.push(Place { partition, offset, end: self.bytes.len() });
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= CHUNK_BYTES
    }
}

/// Makes one line of a message of JSON.
fn join_lines(message: &mut [u8]) {
    let is_break = |byte: &u8| matches!(byte, b'\n' | b'\r');
    // Most have no line break.
    let Some(first) = message.iter().position(is_break) else { return };
    let (mut is_text, mut is_escaped) = (false, false);
    for (place, byte) in message.iter_mut().enumerate() {
        match *byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            _ => {}
        }
        if place >= first && is_break(byte) {
            *byte = if is_text { ILLEGAL } else { b' ' };
        }
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
        let mut chunk = Chunk::default();
        let shape = Shape { framing: Framing::Lines, has_places: true };
        chunk.push_from(3, 7, b"1\n2\n", shape);
        chunk.push_from(4, 0, b"", shape);
        let place = |partition, offset, end| Place { partition, offset, end };
        assert_eq!(chunk.places, [place(3, 7, 4), place(4, 0, 5)]);
        // A break in a text is illegal before and after.
        assert_eq!(
            framed(Framing::OneLine, &["{\"a\\\"\n\":\n\"\\\\\"\n}", "{\"a\":\"\\\n\"}"]),
            "{\"a\\\"\u{1}\": \"\\\\\" }\n{\"a\":\"\\\u{1}\"}\n"
        );
    }
}
