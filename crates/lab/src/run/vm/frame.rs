//! How a command and its input and output travel between the host and the virtual machine: frames on one stream.
//!
//! A frame is a byte for its kind, the length of its content as four bytes, and the content. Pure: bytes in, frames
//! out, wherever the bytes were split on the way.

use serde::{Deserialize, Serialize};

/// Longest content of a frame; more is an error. Only a request comes near: a long script as an argument.
pub const LONGEST: usize = 1 << 20;
/// Input and output are cut into frames of this length.
pub const PIECE: usize = 32 << 10;
const HEADER: usize = 5;

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// What to run. The first frame.
    Request(Request),
    /// Input of the command.
    Input(Vec<u8>),
    /// There is no more input.
    InputEnd,
    /// What the command printed.
    Output(Vec<u8>),
    /// What the command printed as errors.
    Errors(Vec<u8>),
    /// The command ended with this code. The last frame.
    Exit(u8),
}

/// A command of this program to run in the virtual machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Arguments after `lab --name NAME`.
    pub arguments: Vec<String>,
    /// Whether output may be coloured.
    pub colour: bool,
    /// The terminal it is run from, if it wants one of its own.
    pub terminal: Option<Terminal>,
}

/// What a program wants to know about a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terminal {
    /// `TERM`.
    pub kind: String,
    /// Height and width as `stty size` prints them.
    pub size: String,
}

/// Bytes that are no frames: the other end is not what we think.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A kind nobody sends.
    #[error("a message of unknown kind {0}")]
    Kind(u8),
    /// A length that this kind cannot have.
    #[error("a message of kind {kind} with {length} bytes")]
    Length {
        /// Of the frame.
        kind: u8,
        /// As announced.
        length: usize,
    },
    /// A request that cannot be read.
    #[error("a request that cannot be read: {0}")]
    Request(String),
}

impl Frame {
    /// The frame as bytes. Content must not be longer than [`LONGEST`]; the other end refuses it.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, content) = match self {
            // A request is made of strings and numbers, which JSON can always hold.
            Self::Request(request) => (0, serde_json::to_vec(request).unwrap_or_default()),
            Self::Input(bytes) => (1, bytes.clone()),
            Self::InputEnd => (2, vec![]),
            Self::Output(bytes) => (3, bytes.clone()),
            Self::Errors(bytes) => (4, bytes.clone()),
            Self::Exit(code) => (5, vec![*code]),
        };
        let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
        let mut bytes = Vec::with_capacity(HEADER + content.len());
        bytes.push(kind);
        bytes.extend(length.to_be_bytes());
        bytes.extend(content);
        bytes
    }

    fn decode(kind: u8, content: &[u8]) -> Result<Self, FrameError> {
        let length = content.len();
        let wrong = FrameError::Length { kind, length };
        match (kind, content) {
            (0, _) => serde_json::from_slice(content)
                .map(Self::Request)
                .map_err(|error| FrameError::Request(error.to_string())),
            (1, [_, ..]) => Ok(Self::Input(content.to_vec())),
            (2, []) => Ok(Self::InputEnd),
            (3, [_, ..]) => Ok(Self::Output(content.to_vec())),
            (4, [_, ..]) => Ok(Self::Errors(content.to_vec())),
            (5, [code]) => Ok(Self::Exit(*code)),
            (0..=5, _) => Err(wrong),
            _ => Err(FrameError::Kind(kind)),
        }
    }
}

/// Puts frames together from pieces of a stream.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
}

impl Decoder {
    /// Takes what arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next frame, if all of it has arrived. A wrong length is an error as soon as it is seen, before its content.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let Some((&[kind, a, b, c, d], rest)) = self.bytes.split_first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if length > LONGEST {
            return Err(FrameError::Length { kind, length });
        }
        let Some(content) = rest.get(..length) else { return Ok(None) };
        let frame = Frame::decode(kind, content)?;
        self.bytes.drain(..HEADER + length);
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Frame> {
        let request = Request {
            arguments: vec!["exec".to_owned(), "tor".to_owned(), "--".to_owned(), "ip link".to_owned()],
            colour: true,
            terminal: Some(Terminal { kind: "xterm".to_owned(), size: "24 80".to_owned() }),
        };
        vec![
            Frame::Request(request),
            Frame::Input(b"hello".to_vec()),
            Frame::InputEnd,
            Frame::Output(vec![0, 255, 10]),
            Frame::Errors(b"no".to_vec()),
            Frame::Exit(3),
        ]
    }

    fn read(decoder: &mut Decoder, bytes: &[u8]) -> Vec<Frame> {
        decoder.push(bytes);
        std::iter::from_fn(|| decoder.next_frame().unwrap()).collect()
    }

    #[test]
    fn frames_survive_a_split_at_every_point() {
        let stream: Vec<u8> = all().iter().flat_map(Frame::encode).collect();
        for at in 0..=stream.len() {
            let mut decoder = Decoder::default();
            let mut frames = read(&mut decoder, &stream[..at]);
            frames.extend(read(&mut decoder, &stream[at..]));
            assert_eq!(frames, all(), "split at {at}");
        }
    }

    #[test]
    fn frames_survive_byte_by_byte() {
        let mut decoder = Decoder::default();
        let stream = all().iter().flat_map(Frame::encode).collect::<Vec<u8>>();
        let frames: Vec<Frame> = stream.into_iter().flat_map(|byte| read(&mut decoder, &[byte])).collect();
        assert_eq!(frames, all());
    }

    #[test]
    fn a_frame_may_be_as_long_as_allowed_and_no_longer() {
        let longest = Frame::Output(vec![7; LONGEST]);
        assert_eq!(read(&mut Decoder::default(), &longest.encode()), [longest]);
        let mut decoder = Decoder::default();
        // The header alone is enough to refuse.
        decoder.push(&Frame::Output(vec![7; LONGEST + 1]).encode()[..HEADER]);
        assert_eq!(decoder.next_frame(), Err(FrameError::Length { kind: 3, length: LONGEST + 1 }));
        let mut decoder = Decoder::default();
        decoder.push(&[1, 255, 255, 255, 255]);
        assert!(decoder.next_frame().is_err());
    }

    #[test]
    fn lengths_that_a_kind_cannot_have_are_refused() {
        for bytes in [
            vec![1, 0, 0, 0, 0],
            vec![2, 0, 0, 0, 1, 9],
            vec![3, 0, 0, 0, 0],
            vec![4, 0, 0, 0, 0],
            vec![5, 0, 0, 0, 0],
            vec![5, 0, 0, 0, 2, 1, 1],
        ] {
            let mut decoder = Decoder::default();
            decoder.push(&bytes);
            let refused = matches!(decoder.next_frame(), Err(FrameError::Length { .. }));
            assert!(refused, "{bytes:?}");
        }
    }

    #[test]
    fn unknown_kinds_and_broken_requests_are_refused() {
        let mut decoder = Decoder::default();
        decoder.push(&[6, 0, 0, 0, 0]);
        assert_eq!(decoder.next_frame(), Err(FrameError::Kind(6)));
        let mut decoder = Decoder::default();
        decoder.push(&[0, 0, 0, 0, 1, b'{']);
        assert!(matches!(decoder.next_frame(), Err(FrameError::Request(_))));
    }
}
