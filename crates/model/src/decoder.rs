//! The adapters as one: which of them reads an answer follows from the protocol.

use gesta_run::reply::{Delta, Fault, Reply, Usage};

use crate::provider::Protocol;
use crate::{anthropic, openai};

/// A streamed answer that is being read.
#[derive(Debug)]
pub(crate) enum Decoder {
    OpenAi(openai::Stream),
    Anthropic(anthropic::Stream),
}

impl Decoder {
    pub(crate) fn new(protocol: Protocol, origin: &str) -> Self {
        match protocol {
            Protocol::OpenAi => Self::OpenAi(openai::Stream::new(origin)),
            Protocol::Anthropic => Self::Anthropic(anthropic::Stream::new(origin)),
        }
    }

    pub(crate) fn event(&mut self, data: &[u8], request: &[u8]) -> Result<(), Fault> {
        match self {
            Self::OpenAi(stream) => stream.event(data, request),
            Self::Anthropic(stream) => stream.event(data, request),
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        match self {
            Self::OpenAi(stream) => stream.is_done(),
            Self::Anthropic(stream) => stream.is_done(),
        }
    }

    /// Nothing more comes: what is known only now becomes deltas.
    pub(crate) fn close(&mut self) {
        match self {
            Self::OpenAi(stream) => stream.close(),
            Self::Anthropic(_) => {}
        }
    }

    pub(crate) fn take_deltas(&mut self) -> Vec<Delta> {
        match self {
            Self::OpenAi(stream) => stream.take_deltas(),
            Self::Anthropic(stream) => stream.take_deltas(),
        }
    }

    pub(crate) fn usage(&self) -> Usage {
        match self {
            Self::OpenAi(stream) => stream.usage(),
            Self::Anthropic(stream) => stream.usage(),
        }
    }

    pub(crate) fn finish(self) -> Result<Reply, Fault> {
        match self {
            Self::OpenAi(stream) => stream.finish(),
            Self::Anthropic(stream) => stream.finish(),
        }
    }
}

/// Reads an answer that came in one piece.
pub(crate) fn whole(protocol: Protocol, body: &[u8], origin: &str, request: &[u8]) -> Result<Reply, Fault> {
    match protocol {
        Protocol::OpenAi => openai::reply(body, origin, request),
        Protocol::Anthropic => anthropic::reply(body, origin, request),
    }
}
