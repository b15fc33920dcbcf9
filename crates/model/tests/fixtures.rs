//! Every fixture is read as expected, however its bytes are cut, and can be sent back in either protocol.
#![allow(clippy::unwrap_used)]

mod support;

use std::path::{Path, PathBuf};

use gesta_model::Protocol;
use gesta_run::json::Object;
use gesta_run::reply::{Fault, Reply, ReplyBuilder};
use serde::{Deserialize, Serialize};
use support::{read_stream, read_whole, request, tools, transcript, write};

const PROTOCOLS: [Protocol; 2] = [Protocol::OpenAi, Protocol::Anthropic];

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Expected {
    Reply(Reply),
    Fault(Fault),
}

impl From<Result<Reply, Fault>> for Expected {
    fn from(result: Result<Reply, Fault>) -> Self {
        match result {
            Ok(reply) => Self::Reply(reply),
            Err(fault) => Self::Fault(fault),
        }
    }
}

fn fixtures(ending: &str) -> Vec<(Protocol, PathBuf, Vec<u8>)> {
    let mut out = Vec::new();
    for protocol in PROTOCOLS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(protocol.as_str());
        let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name.ends_with(ending) && !name.ends_with(".expected.json") {
                out.push((protocol, path.clone(), std::fs::read(&path).unwrap()));
            }
        }
    }
    assert!(out.len() > 5);
    out
}

fn expect(path: &Path, found: Result<Reply, Fault>) {
    let found = Expected::from(found);
    let file = PathBuf::from(format!("{}.expected.json", path.display()));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&file, serde_json::to_string_pretty(&found).unwrap() + "\n").unwrap();
    }
    let expected = std::fs::read_to_string(&file).expect("a fixture has what is expected of it beside it");
    let expected: Expected = serde_json::from_str(&expected).unwrap();
    assert_eq!(found, expected, "{}", path.display());
}

#[test]
fn every_answer_is_read_as_expected() {
    for (protocol, path, bytes) in fixtures(".json") {
        expect(&path, read_whole(protocol, &bytes));
    }
    for (protocol, path, bytes) in fixtures(".sse") {
        expect(&path, read_stream(protocol, &[&bytes]).0);
    }
}

#[test]
fn a_stream_cut_into_pieces_anywhere_gives_the_same_answer() {
    for (protocol, path, bytes) in fixtures(".sse") {
        let whole = read_stream(protocol, &[&bytes]).0;
        for at in 0..=bytes.len() {
            let (found, _) = read_stream(protocol, &[&bytes[..at], &bytes[at..]]);
            assert_eq!(found, whole, "{} split at {at}", path.display());
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read_stream(protocol, &single).0, whole, "{} byte by byte", path.display());
        let text = String::from_utf8(bytes).unwrap();
        for end in ["\r\n", "\r"] {
            let other = text.replace('\n', end);
            assert_eq!(read_stream(protocol, &[other.as_bytes()]).0, whole, "{} with {end:?}", path.display());
        }
    }
}

#[test]
fn the_deltas_of_a_stream_add_up_to_its_answer() {
    for (protocol, path, bytes) in fixtures(".sse") {
        for size in [1, 7, 100, bytes.len()] {
            let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
            let (Ok(reply), deltas) = read_stream(protocol, &pieces) else { continue };
            let mut builder = ReplyBuilder::default();
            deltas.into_iter().for_each(|delta| builder.push(delta));
            assert_eq!(builder.finish().blocks, reply.blocks, "{} in pieces of {size}", path.display());
        }
    }
}

#[test]
fn a_stream_that_breaks_off_is_never_a_shorter_success() {
    for (protocol, path, bytes) in fixtures(".sse") {
        let whole = read_stream(protocol, &[&bytes]).0;
        for at in 0..bytes.len() {
            if let (Ok(cut), _) = read_stream(protocol, &[&bytes[..at]]) {
                let whole = whole.as_ref().unwrap_or_else(|fault| panic!("{}: {fault} at {at}", path.display()));
                assert_eq!(cut.blocks, whole.blocks, "{} cut at {at}", path.display());
                assert_eq!(cut.finish, whole.finish);
            }
        }
    }
}

#[test]
fn every_answer_can_be_sent_back_in_either_protocol() {
    let (tools, options) = (tools(), Object::new());
    let streams = fixtures(".sse").into_iter().map(|(p, path, bytes)| (path, read_stream(p, &[&bytes]).0));
    let wholes = fixtures(".json").into_iter().map(|(p, path, bytes)| (path, read_whole(p, &bytes)));
    for (path, reply) in streams.chain(wholes) {
        let Ok(reply) = reply else { continue };
        // Twice over, so that ids repeat as they do across runs.
        let mut messages = transcript(&reply);
        messages.extend(transcript(&reply));
        for protocol in PROTOCOLS {
            if let Err(why) = write(protocol, &request(&messages, &tools, &options)) {
                panic!("{} as {}: {why}", path.display(), protocol.as_str());
            }
        }
    }
}

#[test]
fn raw_forms_go_back_verbatim_to_where_they_came_from() {
    let (tools, options) = (tools(), Object::new());
    for (protocol, path, bytes) in fixtures(".sse") {
        let Ok(reply) = read_stream(protocol, &[&bytes]).0 else { continue };
        let messages = transcript(&reply);
        for to in PROTOCOLS {
            let sent = write(to, &request(&messages, &tools, &options)).unwrap().to_string();
            for raw in reply.blocks.iter().filter_map(|block| block.raw.as_ref()) {
                for (key, value) in raw.item.as_object().unwrap() {
                    let field = format!("\"{key}\":{value}");
                    if to == protocol && key != "id" {
                        assert!(sent.contains(&field), "{}: {field} in {sent}", path.display());
                    }
                    if to != protocol && !matches!(key.as_str(), "type" | "text" | "name" | "id" | "refusal") {
                        assert!(!sent.contains(&field), "{}: {field} in {sent}", path.display());
                    }
                }
            }
        }
    }
}
